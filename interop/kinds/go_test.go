package kinds

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// modules are the SDKs for Go, by their names in types.txt.
var modules = map[string]string{
	"openai": "github.com/openai/openai-go/v3", "anthropic": "github.com/anthropics/anthropic-sdk-go",
	"genai": "google.golang.org/genai", "cohere": "github.com/cohere-ai/cohere-go/v2",
}

// readGo reads types from the SDKs' source code, because not even reflection finds the variants of a union.
func readGo(t *testing.T, types []string) map[string]kinds {
	t.Helper()
	all, read := map[string]kinds{}, map[string]*declarations{}
	for _, name := range types {
		module, rest, _ := strings.Cut(name, ":")
		dir, typeName, _ := strings.Cut(rest, ".")
		if read[module+dir] == nil {
			read[module+dir] = declarationsIn(t, filepath.Join(moduleDir(t, modules[module]), dir))
		}
		if all[name] = read[module+dir].kinds(typeName); len(all[name]) == 0 {
			t.Errorf("%s: there is no such type, or nothing in it", name)
		}
	}
	return all
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

// declarations are the declarations of a package.
type declarations struct {
	structs  map[string]*ast.StructType
	variants map[string][]string // by union: the results of its methods As…
	values   map[string][]string // by type: the values of its constants
}

func declarationsIn(t *testing.T, dir string) *declarations {
	t.Helper()
	d := &declarations{map[string]*ast.StructType{}, map[string][]string{}, map[string][]string{}}
	files := testenv.Must(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, decl := range testenv.Must(parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution))(t).Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					d.add(spec)
				}
			case *ast.FuncDecl:
				if decl.Recv != nil && strings.HasPrefix(decl.Name.Name, "As") && decl.Type.Results.NumFields() == 1 {
					union := typeName(decl.Recv.List[0].Type)
					d.variants[union] = append(d.variants[union], typeName(decl.Type.Results.List[0].Type))
				}
			}
		}
	}
	return d
}

func (d *declarations) add(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if s, ok := spec.Type.(*ast.StructType); ok {
			d.structs[spec.Name.Name] = s
		}
	case *ast.ValueSpec:
		for _, v := range spec.Values {
			if literal, ok := v.(*ast.BasicLit); ok && spec.Type != nil {
				value, _ := strconv.Unquote(literal.Value)
				d.values[typeName(spec.Type)] = append(d.values[typeName(spec.Type)], value)
			}
		}
	}
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// kinds returns the kinds of a type: for a union its variants, which are the results of its methods or its fields
// without a JSON name.
func (d *declarations) kinds(name string) kinds {
	all := kinds{}
	for _, value := range d.values[name] {
		all[value] = nil
	}
	variants := d.variants[name]
	if s := d.structs[name]; s != nil {
		kind, members := "", []string(nil)
		for _, f := range s.Fields.List {
			tag := reflect.StructTag("")
			if f.Tag != nil {
				tag = reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
			}
			member, _, _ := strings.Cut(tag.Get("json"), ",")
			_, pointer := f.Type.(*ast.StarExpr)
			switch variant := typeName(f.Type); {
			case member == "type":
				kind = tag.Get("default") + tag.Get("const")
			case member != "" && member != "-":
				members = append(members, member)
			case pointer && d.structs[variant] != nil && len(d.variants[name]) == 0:
				if variants = append(variants, variant); d.kinds(variant)[""] != nil { // as in Cohere: the field names the kind
					all[snake(f.Names[0].Name)] = d.kinds(variant)[""]
				}
			}
		}
		if len(variants) == 0 && len(members) > 0 {
			all[kind] = members
		}
	}
	for _, variant := range variants {
		for kind, members := range d.kinds(variant) {
			if kind != "" {
				all[kind] = members
			}
		}
	}
	return all
}
