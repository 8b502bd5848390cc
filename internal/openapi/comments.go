package openapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const modulePath = "github.com/ibidhq/ibid"

// comments caches the comments of types and of their fields, and their constants.
type comments struct {
	root     string // of the module
	packages map[string]map[string]*typeComment
}

type typeComment struct {
	doc    string
	fields map[string]string
	words  []string // the constants of a string type
}

// of returns the comments of a type of this module. They are empty if there are none.
func (c *comments) of(t reflect.Type) (*typeComment, error) {
	known, ok := c.packages[t.PkgPath()]
	if !ok {
		known = map[string]*typeComment{}
		if dir, ours := strings.CutPrefix(t.PkgPath()+"/", modulePath+"/"); ours {
			if err := read(filepath.Join(c.root, filepath.FromSlash(dir)), known); err != nil {
				return nil, fmt.Errorf("read the comments of %s: %w", t.PkgPath(), err)
			}
		}
		c.packages[t.PkgPath()] = known
	}
	return of(known, t.Name()), nil
}

func of(known map[string]*typeComment, name string) *typeComment {
	if known[name] == nil {
		known[name] = &typeComment{fields: map[string]string{}}
	}
	return known[name]
}

// read reads the source files of a package.
func read(dir string, known map[string]*typeComment) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range block.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					readType(spec, cmpDoc(spec.Doc, block.Doc), of(known, spec.Name.Name))
				case *ast.ValueSpec:
					readWords(block, spec, known)
				}
			}
		}
	}
	return nil
}

func cmpDoc(all ...*ast.CommentGroup) string {
	for _, doc := range all {
		if text := doc.Text(); text != "" {
			return text
		}
	}
	return ""
}

func readType(spec *ast.TypeSpec, doc string, into *typeComment) {
	into.doc = sentence(spec.Name.Name, doc)
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			into.fields[name.Name] = plain(cmpDoc(field.Comment, field.Doc))
		}
	}
}

// readWords collects the constants of a string type.
func readWords(block *ast.GenDecl, spec *ast.ValueSpec, known map[string]*typeComment) {
	named, ok := spec.Type.(*ast.Ident)
	if block.Tok != token.CONST || !ok {
		return
	}
	for _, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			word, _ := strconv.Unquote(literal.Value) // the parser has validated it
			t := of(known, named.Name)
			t.words = append(t.words, word)
			slices.Sort(t.words)
		}
	}
}

var link = regexp.MustCompile(`\[([A-Za-z][\w.*]*)\]`)

// plain returns a comment as one line without Go's link syntax.
func plain(comment string) string {
	return strings.Join(strings.Fields(link.ReplaceAllString(comment, "$1")), " ")
}

// sentence returns the comment of a type without the type's name: "runBody is a run as JSON." becomes "A run as JSON."
func sentence(name, comment string) string {
	rest, ok := strings.CutPrefix(comment, name+" ")
	if !ok {
		return plain(comment)
	}
	return plain(capital(strings.TrimPrefix(rest, "is ")))
}
