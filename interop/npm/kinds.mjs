// Prints the citation types of the SDKs' own declarations. Standard input has a JSON list of types, each a file of a
// package and the path to the type. Standard output gets an object: for each type, its kinds (the values of the member
// type; "" if it has none) with the names of their members.
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';

const ts = createRequire(new URL('../web/package.json', import.meta.url))('typescript');
const { SymbolFlags, TypeFlags } = ts;

const wanted = JSON.parse(await text(process.stdin)).map((name) => ({ name, ...split(name) }));
const program = ts.createProgram([...new Set(wanted.map((w) => w.file))], {
  noLib: true, types: [], skipLibCheck: true, strict: true, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
});
const checker = program.getTypeChecker();

function split(name) {
  const [file, path] = name.split(' ');
  return { file: `node_modules/${file}`, path: path.split('.') };
}

// find follows a path through namespaces, and finally to the type of a member.
function find({ file, path }) {
  const source = program.getSourceFile(file);
  let symbol;
  for (const [i, step] of path.entries()) {
    const last = i === path.length - 1;
    const found = symbol ? symbol.exports?.get(step) : source.symbol.exports.get(step) ?? source.locals.get(step);
    if (found) {
      symbol = found.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
    } else if (symbol && last) {
      const node = checker.getDeclaredTypeOfSymbol(symbol).getProperty(step)?.valueDeclaration?.type;
      return node && checker.getTypeFromTypeNode(node.typeArguments?.[0] ?? node); // the element type, if it is a list
    } else return undefined;
  }
  return checker.getDeclaredTypeOfSymbol(symbol);
}

function kindsOf(type) {
  const kinds = {};
  const parts = type.isUnion() ? type.types : [type];
  for (const part of parts) {
    if (part.flags & (TypeFlags.Null | TypeFlags.Undefined)) continue;
    if (part.isStringLiteral()) {
      kinds[part.value] = [];
      continue;
    }
    const kind = part.getProperty('type');
    const value = kind && checker.getTypeOfSymbol(kind);
    kinds[value?.isStringLiteral() ? value.value : ''] = part.getProperties().map((p) => p.name);
  }
  return kinds;
}

const all = {};
for (const w of wanted) {
  const type = find(w);
  if (!type) throw new Error(`${w.name}: there is no such type`);
  all[w.name] = kindsOf(type);
}
process.stdout.write(JSON.stringify(all));
