// Command size measures the size of the code of the tree: `make size`.
//
//	go -C tools run ./size [DIR]
//
// It counts the Go files tracked by git in all modules but bench and examples. Code is everything but comments and
// blank lines, in bytes with indentation and line ends. Hand-written tables embedded as text are added to it;
// descriptions that `make generate` writes from the code are also embedded, but counted separately.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	modulePath   = "github.com/ibidhq/ibid"
	maxColumns   = 120
	tabWidth     = 4
	smallFile    = 60 // lines: a file with fewer is a fragment
	rootModule   = "root module"
	wholeProject = "all modules but bench and examples"
)

// generated are the embedded files that `make generate` writes.
var generated = []string{"api/openapi.json", "manifest/schema/manifest-v1.json"}

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := os.Chdir(dir); err != nil {
		fatal(err)
	}
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		fatal(fmt.Errorf("listing the tracked files: %w", err))
	}
	var t tree
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if err := t.add(name); err != nil {
			fatal(fmt.Errorf("%s: %w", name, err))
		}
	}
	t.print()
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "size:", err)
	os.Exit(1)
}

// tree holds the counts.
type tree struct {
	code, tables, generated, comments, tests int // bytes
	files, small                             int // non-test files of the root module
	long                                     []string
	packages                                 map[string]*pkg // by directory
}

// pkg is the non-test part of a package.
type pkg struct {
	name     string
	code     int
	exported map[string]bool // top-level names, and whether non-test code of another package uses them
	imports  []*ast.File
}

func (t *tree) add(name string) error {
	if strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "examples/") || path.Ext(name) != ".go" {
		return nil
	}
	b, err := os.ReadFile(name)
	if os.IsNotExist(err) { // deleted, but still in git's index
		return nil
	}
	if err != nil || strings.Contains(name, "testdata/") {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		t.tests += len(b)
		return nil
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, b, parser.ParseComments)
	if err != nil {
		return err
	}
	code, comments := t.lines(name, b, fset, syntax)
	t.code += code
	t.comments += comments
	if err := t.addTables(name, syntax); err != nil {
		return err
	}
	if isNested(name) {
		return nil
	}
	t.files++
	if path.Base(name) != "doc.go" && bytes.Count(b, []byte("\n")) < smallFile {
		t.small++
	}
	t.addNames(path.Dir(name), code, syntax)
	return nil
}

// lines counts the bytes of code lines and of comment-only lines, and records lines that are too long.
func (t *tree) lines(name string, b []byte, fset *token.FileSet, syntax *ast.File) (code, comments int) {
	commented := map[int]bool{} // lines inside a comment
	for _, group := range syntax.Comments {
		for _, c := range group.List {
			for l := fset.Position(c.Pos()).Line; l <= fset.Position(c.End()).Line; l++ {
				commented[l] = true
			}
		}
	}
	n := 0
	for line := range bytes.Lines(b) {
		n++
		trimmed := bytes.TrimSpace(line)
		switch {
		case len(trimmed) == 0:
		case commented[n] && bytes.HasPrefix(trimmed, []byte("//")):
			comments += len(line)
		default:
			code += len(line)
		}
		if columns(line) > maxColumns && !bytes.Contains(line, []byte("://")) {
			t.long = append(t.long, fmt.Sprintf("%s:%d", name, n))
		}
	}
	return code, comments
}

func columns(line []byte) int {
	line = bytes.TrimRight(line, "\n")
	return utf8.RuneCount(line) + bytes.Count(line, []byte("\t"))*(tabWidth-1)
}

// addTables counts the text files that a Go file embeds, except pages and SQL.
func (t *tree) addTables(name string, syntax *ast.File) error {
	for _, group := range syntax.Comments {
		for _, c := range group.List {
			patterns, ok := strings.CutPrefix(c.Text, "//go:embed ")
			if !ok {
				continue
			}
			for pattern := range strings.FieldsSeq(patterns) {
				files, err := filepath.Glob(path.Join(path.Dir(name), pattern))
				if err != nil {
					return err
				}
				for _, file := range files {
					if !slices.Contains([]string{".txt", ".tsv", ".csv", ".json"}, path.Ext(file)) {
						continue
					}
					info, err := os.Stat(file)
					if err != nil {
						return err
					}
					if slices.Contains(generated, file) {
						t.generated += int(info.Size())
					} else {
						t.tables += int(info.Size())
					}
				}
			}
		}
	}
	return nil
}

// isNested reports whether a file belongs to a nested module.
func isNested(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

func (t *tree) addNames(dir string, code int, syntax *ast.File) {
	if t.packages == nil {
		t.packages = map[string]*pkg{}
	}
	p := t.packages[dir]
	if p == nil {
		p = &pkg{name: syntax.Name.Name, exported: map[string]bool{}}
		t.packages[dir] = p
	}
	p.code += code
	p.imports = append(p.imports, syntax)
	declare := func(id *ast.Ident) {
		if id.IsExported() {
			p.exported[id.Name] = false
		}
	}
	for _, d := range syntax.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				declare(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declare(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						declare(id)
					}
				}
			}
		}
	}
}

// markUses records which exported names other packages use.
func (t *tree) markUses() {
	for dir, p := range t.packages {
		for _, file := range p.imports {
			names := map[string]*pkg{} // by the package's name in the file
			for _, spec := range file.Imports {
				imported := strings.Trim(spec.Path.Value, `"`)
				to, ours := strings.CutPrefix(imported+"/", modulePath+"/")
				to = strings.TrimSuffix(to, "/")
				if to == "" {
					to = "."
				}
				q := t.packages[to]
				if !ours || q == nil || to == dir {
					continue
				}
				name := q.name
				if spec.Name != nil {
					name = spec.Name.Name
				}
				names[name] = q
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != nil {
						if _, ok := names[x.Name].exported[s.Sel.Name]; ok {
							names[x.Name].exported[s.Sel.Name] = true
						}
					}
				}
				return true
			})
		}
	}
}

func (t *tree) print() {
	t.markUses()
	row := func(what string, format string, args ...any) {
		fmt.Printf("%-58s %s\n", what, fmt.Sprintf(format, args...))
	}
	row("code and embedded tables, bytes, "+wholeProject, "%d (%d of them tables)", t.code+t.tables, t.tables)
	row("generated, embedded, bytes", "%d", t.generated)
	row("comments, share of code and comments", "%.1f %%", 100*float64(t.comments)/float64(t.comments+t.code))
	row("test Go, bytes", "%d", t.tests)
	row(
		fmt.Sprintf("non-test files of the %s; of fewer than %d lines", rootModule, smallFile),
		"%d; %d",
		t.files,
		t.small,
	)
	row(fmt.Sprintf("non-test lines over %d columns, addresses aside", maxColumns), "%d", len(t.long))
	for _, place := range t.long[:min(len(t.long), 10)] {
		fmt.Println("    " + place)
	}
	fmt.Printf("\n%-24s %10s   %s\n", "package", "code", "exported names; not used by another package of ours")
	for _, dir := range slices.Sorted(keys(t.packages)) {
		p := t.packages[dir]
		var unused []string
		for name, used := range p.exported {
			if !used {
				unused = append(unused, name)
			}
		}
		fmt.Printf("%-24s %10d   %d; %d\n", dir, p.code, len(p.exported), len(unused))
	}
}

func keys(m map[string]*pkg) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
