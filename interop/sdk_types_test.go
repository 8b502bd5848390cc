package interop

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/ibidhq/ibid/internal/testenv"
)

// Every kind of citation that the official SDKs know is one that internal/wire knows: a new version of an SDK with a new
// one fails here. docs/providers.md says by which fields each is read.
func TestSDKTypes(t *testing.T) {
	const openai, anthropic = "github.com/openai/openai-go/v3", "github.com/anthropics/anthropic-sdk-go"
	kinds := map[string][]string{
		"anthropic TextCitationUnion": unionKinds(t, anthropic, "", "TextCitationUnion"),
		"openai ResponseOutputTextAnnotationUnion": unionKinds(
			t, openai, "responses", "ResponseOutputTextAnnotationUnion"),
		"openai AnnotationUnion": unionKinds(t, openai, "", "AnnotationUnion"),
		"genai GroundingChunk":   members(reflect.TypeFor[genai.GroundingChunk]()),
		"genai GroundingSupport": members(reflect.TypeFor[genai.GroundingSupport]()),
		"genai Segment":          members(reflect.TypeFor[genai.Segment]()),
	}
	checkKinds(t, kinds)
}

// The same of the official SDKs of PyPI, with Cohere's.
func TestSDKTypesPython(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), testenv.Python(t), filepath.Join("python", "kinds.py")).Output()
	if err != nil {
		t.Fatalf("asking the SDKs: %v", err)
	}
	var kinds map[string][]string
	testenv.OK(t, json.Unmarshal(out, &kinds))
	checkKinds(t, kinds)
}

// checkKinds fails for kinds and members, by where they are from, that internal/wire does not know.
func checkKinds(t *testing.T, kinds map[string][]string) {
	t.Helper()
	// which part of the answer as Google renders it, not of its text
	ignored := map[string]bool{"renderedParts": true}
	parsers := source(t, filepath.Join("..", "internal", "wire"))
	for from, all := range kinds {
		if len(all) < 2 {
			t.Errorf("%s has the kinds %q: the SDK is written in another way", from, all)
		}
		for _, kind := range all {
			if !ignored[kind] && !strings.Contains(parsers, `"`+kind+`"`) && !strings.Contains(parsers, `:"`+kind+`,`) {
				t.Errorf("%s: internal/wire does not know %q", from, kind)
			}
		}
	}
}

var quoted = regexp.MustCompile(`"(\w+)"`)

// unionKinds returns the kinds of a union of an SDK: its field Type lists them in its comment.
func unionKinds(t *testing.T, module, dir, name string) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding %s: %v", module, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				if len(field.Names) == 1 && field.Names[0].Name == "Type" {
					for _, m := range quoted.FindAllStringSubmatch(field.Doc.Text(), -1) {
						kinds = append(kinds, m[1])
					}
				}
			}
			return false
		})
	}
	return kinds
}

// members returns the JSON names of a struct's fields.
func members(of reflect.Type) []string {
	var names []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// source returns the source code of a package, without its tests.
func source(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
