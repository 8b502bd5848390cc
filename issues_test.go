package ibid_test

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
)

// Exactly the issue codes that exist are documented.
func TestIssueCodesAreDocumented(t *testing.T) {
	if diff := cmp.Diff(issueCodes(t, ".", "internal/wire", "gateway", "tee", "watch"), tableNames(t, "Issues", "code")); diff != "" {
		t.Errorf("codes of issues (-code +docs/answer.md):\n%s", diff)
	}
}

// Every issue code of decoding occurs in a vector.
func TestIssueCodesAreShown(t *testing.T) {
	shown := map[string]bool{"loose-json": true} // issue of reading documents: see TestAnswerUnmarshalLoose
	for _, file := range vectorFiles(t) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "answer.json" {
				for _, code := range documentCodes(t, f.Data) {
					shown[code] = true
				}
			}
		}
	}
	for _, code := range issueCodes(t, ".", "internal/wire") {
		if !shown[code] {
			t.Errorf("no vector shows the issue %s", code)
		}
		delete(shown, code)
	}
	for code := range shown {
		t.Errorf("a vector shows the issue %s, which does not exist", code)
	}
}

// Every format has at least three vectors, with a body and with a stream among them, and is documented.
func TestFormatsAreShown(t *testing.T) {
	bodies, streams, all := map[string]int{}, map[string]int{}, map[string]int{}
	for _, file := range vectorFiles(t) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		format := filepath.Base(filepath.Dir(file))
		all[format]++
		for _, f := range archive.Files {
			switch {
			case strings.HasPrefix(f.Name, "body."):
				bodies[format]++
			case strings.HasPrefix(f.Name, "stream."):
				streams[format]++
			}
		}
	}
	formats := ibid.Formats()
	for _, format := range formats {
		if all[format] < 3 || bodies[format] == 0 || streams[format] == 0 {
			t.Errorf("%s has %d vectors, %d with a body, %d with a stream", format, all[format], bodies[format], streams[format])
		}
	}
	slices.Sort(formats)
	if diff := cmp.Diff(formats, tableNames(t, "Formats", "format")); diff != "" {
		t.Errorf("formats (-code +docs/answer.md):\n%s", diff)
	}
}

// Exactly the members of the document are documented.
func TestDocumentMembersAreDocumented(t *testing.T) {
	for heading, value := range map[string]any{
		"Document":     ibid.Document{},
		"Part":         ibid.DocumentPart{},
		"Source":       ibid.DocumentSource{},
		"Chunk":        ibid.DocumentChunk{},
		"Citation":     ibid.DocumentCitation{},
		"Locator":      ibid.Locator{},
		"Support":      ibid.Support{},
		"Verification": ibid.Verification{},
		"Tool call":    ibid.ToolCall{},
		"Display":      ibid.Display{},
		"Error":        ibid.ProviderError{},
		"Issues":       ibid.Issue{},
	} {
		var members []string
		for f := range reflect.TypeOf(value).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			members = append(members, name)
		}
		slices.Sort(members)
		if diff := cmp.Diff(members, memberNames(t, heading)); diff != "" {
			t.Errorf("%s (-code +docs/answer.md):\n%s", heading, diff)
		}
	}
}

// The example in docs/answer.md is an answer document.
func TestDocumentExample(t *testing.T) {
	for _, block := range parsePage(t, "docs/answer.md").blocks {
		if block.language != "json" {
			continue
		}
		var a ibid.Answer
		if err := json.Unmarshal([]byte(block.code), &a); err != nil {
			t.Fatal(err)
		}
		var want ibid.Document
		if err := json.Unmarshal([]byte(block.code), &want); err != nil {
			t.Fatal(err)
		}
		got := a.Document(&ibid.DocumentOptions{Unit: want.Unit})
		if got.CitedText != want.CitedText || got.Sources[0].Key != want.Sources[0].Key || got.Citations[0].Index != want.Citations[0].Index {
			t.Errorf("the example differs from the document of its answer: %+v", got)
		}
	}
}

// memberNames returns the sorted names in the list of members below a heading of docs/answer.md.
func memberNames(t *testing.T, heading string) []string {
	t.Helper()
	list, _, _ := strings.Cut(section(t, heading), "\nAn issue is ")
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^- ([^(]+) \(`).FindAllStringSubmatch(list, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			names = append(names, strings.Trim(name, "`"))
		}
	}
	slices.Sort(names)
	return names
}

// section returns the section of docs/answer.md with that heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "answer.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/answer.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// tableNames returns the sorted names in the first column of a table of docs/answer.md: the one below the heading whose
// first column has the title.
func tableNames(t *testing.T, heading, title string) []string {
	t.Helper()
	_, table, found := strings.Cut(section(t, heading), "| "+title+" |")
	if !found {
		t.Fatalf("docs/answer.md has no table of a %s below %q", title, heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// issueCodes returns the sorted codes of all issues in the packages of some directories: their constants Issue…, and
// the strings passed to issue and issuef or set as the Code of an Issue.
func issueCodes(t *testing.T, dirs ...string) []string {
	t.Helper()
	codes := map[string]bool{}
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[code] = true
		}
	}
	for _, f := range goFiles(t) {
		if f.test || !slices.Contains(dirs, f.dir) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if strings.HasPrefix(n.Names[0].Name, "Issue") && len(n.Values) > 0 {
					add(n.Values[0])
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && (fun.Sel.Name == "issue" || fun.Sel.Name == "issuef") {
					add(n.Args[0])
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
					add(n.Value)
				}
			}
			return true
		})
	}
	var out []string
	for code := range codes {
		out = append(out, code)
	}
	slices.Sort(out)
	return out
}

// documentCodes returns the codes of the issues in a document.
func documentCodes(t *testing.T, data []byte) []string {
	t.Helper()
	var d ibid.Document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, is := range d.Issues {
		codes = append(codes, is.Code)
	}
	return codes
}
