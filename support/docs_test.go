package support_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// The table in docs/support.md has every code of the package's issues, and no others.
func TestIssueCodesAreDocumented(t *testing.T) {
	page := testenv.Must(os.ReadFile(filepath.Join("..", "docs", "support.md")))(t)
	_, table, found := strings.Cut(string(page), "\n## Issues\n\n| code |")
	if !found {
		t.Fatal("docs/support.md has no table of issues")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(table, -1) {
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, code[1])
		}
	}
	slices.Sort(documented)
	if diff := cmp.Diff(issueConstants(t), documented); diff != "" {
		t.Errorf("codes of issues (-code +docs/support.md):\n%s", diff)
	}
}

// issueConstants returns the values of the package's issue… constants, sorted.
func issueConstants(t *testing.T) []string {
	t.Helper()
	files := testenv.Must(filepath.Glob("*.go"))(t)
	var codes []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := testenv.Must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type != nil || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "issue") {
				return true
			}
			code := testenv.Must(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value))(t)
			codes = append(codes, code)
			return true
		})
	}
	slices.Sort(codes)
	return codes
}
