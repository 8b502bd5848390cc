package pdf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// TestLoopsArePaid checks that every loop of the reader pays for its steps: it calls spend, directly or through a
// function of this package that does, or a comment in its first line, "paid:", says who has paid for it. A loop that
// pays nothing can be endless, and no limit stops it.
func TestLoopsArePaid(t *testing.T) {
	set := token.NewFileSet()
	var files []*ast.File
	for _, entry := range testenv.Must(os.ReadDir("."))(t) {
		if name := entry.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !outside[name] {
			files = append(files, testenv.Must(parser.ParseFile(set, name, nil, parser.ParseComments))(t))
		}
	}
	pays := payers(files)
	loops := 0
	for _, file := range files {
		paid := map[int]bool{} // lines
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "// paid: ") {
					paid[set.Position(c.Pos()).Line] = true
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				loops++
				if at := set.Position(n.Pos()); !callsAny(n, pays) && !paid[at.Line] {
					t.Errorf("%s: this loop neither calls spend nor says who paid for it", at)
				}
			}
			return true
		})
	}
	if loops < 50 {
		t.Errorf("%d loops were found", loops)
	}
}

// outside lists the files that read nothing of a PDF.
var outside = map[string]bool{"isolate.go": true, "isolate_rlimit.go": true, "isolate_other.go": true}

// payers returns the names of the functions that pay: spend, and those whose first call of a payer is not in a branch
// that may be skipped.
func payers(files []*ast.File) map[string]bool {
	pays := map[string]bool{"spend": true}
	for before := 0; before < len(pays); {
		before = len(pays)
		for _, file := range files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && alwaysCalls(f.Body, pays) {
					pays[f.Name.Name] = true
				}
			}
		}
	}
	return pays
}

// alwaysCalls reports whether a body calls one of the functions in a statement of its own or in the condition of one.
func alwaysCalls(body *ast.BlockStmt, names map[string]bool) bool {
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.IfStmt:
			if s.Init != nil && callsAny(s.Init, names) || callsAny(s.Cond, names) {
				return true
			}
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
		default:
			if callsAny(s, names) {
				return true
			}
		}
	}
	return false
}

// callsAny reports whether a node calls one of the functions.
func callsAny(n ast.Node, names map[string]bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return !found
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			found = found || names[f.Name]
		case *ast.SelectorExpr:
			found = found || names[f.Sel.Name]
		}
		return !found
	})
	return found
}
