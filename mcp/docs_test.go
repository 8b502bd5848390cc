package mcp_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
)

var update = flag.Bool("update", false, "write what the tests expect anew")

// property is the schema of one member of an object.
type property struct {
	Type        any
	Enum        []string
	Description string
	Default     any
	Minimum     *float64
	Maximum     *float64
	Properties  map[string]*property
	Items       *property
	Required    []string
	MaxItems    *int
	Closed      *bool `json:"additionalProperties"`
}

func allTools(t *testing.T) []*sdk.Tool {
	t.Helper()
	m := mcp.New(&mcp.Options{Store: openStore(t, "a"), Verify: newVerify(t)})
	list := testenv.Must(connect(t, m, "a", nil).ListTools(t.Context(), nil))(t)
	return list.Tools
}

func read(t *testing.T, schema any) *property {
	t.Helper()
	raw := testenv.Must(json.Marshal(schema))(t)
	p := &property{}
	testenv.OK(t, json.Unmarshal(raw, p))
	return p
}

// docs/mcp.md is generated from the schemas of the tools.
func TestDocs(t *testing.T) {
	name := filepath.Join(testenv.Root(t), "docs", "mcp.md")
	page := testenv.Must(os.ReadFile(name))(t)
	const mark = "in mcp/tools. -->\n"
	head, _, found := strings.Cut(string(page), mark)
	if !found {
		t.Fatal("docs/mcp.md lacks the line before the tools")
	}
	var b strings.Builder
	b.WriteString(head + mark)
	tools := allTools(t)
	seen := map[string]string{} // the tool that has a line already, by line
	for _, tool := range tools {
		does, _, _ := strings.Cut(tool.Description, ". ")
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n", tool.Name, strings.TrimSuffix(does, "."))
		var lines strings.Builder
		describe(&lines, read(t, tool.InputSchema), "")
		again := map[string][]string{} // what other tools have too, by tool
		for line := range strings.Lines(lines.String()) {
			if first := seen[line]; first != "" {
				again[first] = append(again[first], "`"+strings.Split(line, "`")[1]+"`")
				continue
			}
			seen[line] = tool.Name
			b.WriteString(line)
		}
		for _, first := range slices.Sorted(maps.Keys(again)) {
			fmt.Fprintf(&b, "- %s: as for [%s](#%s)\n", strings.Join(again[first], ", "), first, first)
		}
	}
	if *update {
		testenv.OK(t, os.WriteFile(name, []byte(b.String()), 0o666))
		return
	}
	if diff := cmp.Diff(b.String(), string(page)); diff != "" {
		t.Errorf("docs/mcp.md is not what the tools say; go test ./mcp -run TestDocs -update writes it:\n%s", diff)
	}
}

// describe writes a line for each member of an object, followed by its own members.
func describe(b *strings.Builder, p *property, path string) {
	names := slices.SortedFunc(maps.Keys(p.Properties), func(x, y string) int {
		rank := func(name string) int {
			if !slices.Contains(p.Required, name) {
				return 1
			}
			return 0
		}
		if d := rank(x) - rank(y); d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	for _, name := range names {
		of := p.Properties[name]
		words := of.Description
		if slices.Contains(p.Required, name) {
			words += " Required."
		}
		if len(of.Enum) > 0 && !strings.Contains(words, of.Enum[0]) {
			words += " One of `" + strings.Join(of.Enum, "`, `") + "`."
		}
		if of.Minimum != nil && of.Maximum != nil {
			words += fmt.Sprintf(" From %v to %v.", *of.Minimum, *of.Maximum)
		}
		if of.Default != nil {
			words += fmt.Sprintf(" Default `%v`.", of.Default)
		}
		fmt.Fprintf(b, "- `%s%s` (%s): %s\n", path, name, typeOf(of), words)
		if of.Closed != nil {
			describe(b, of, path+name+".")
		}
		if of.Items != nil && of.Items.Closed != nil {
			describe(b, of.Items, path+name+"[].")
		}
	}
}

func typeOf(p *property) string {
	switch t := p.Type.(type) {
	case string:
		return t
	case []any:
		var all []string
		for _, one := range t {
			all = append(all, fmt.Sprint(one))
		}
		return strings.Join(all, " or ")
	}
	return "any"
}

// Every member has a description, those that results always have are required, and no others are allowed.
func TestSchemas(t *testing.T) {
	for _, tool := range allTools(t) {
		for which, schema := range map[string]any{"input": tool.InputSchema, "output": tool.OutputSchema} {
			compile(t, schema)
			var walk func(path string, p *property)
			walk = func(path string, p *property) {
				if p.Closed != nil && *p.Closed {
					t.Errorf("%s: more members are allowed", path)
				}
				for name, of := range p.Properties {
					if of.Description == "" && p.Closed != nil {
						t.Errorf("%s.%s says nothing of itself", path, name)
					}
					if which == "output" && p.Closed != nil && !slices.Contains(p.Required, name) {
						t.Errorf("%s.%s may be missing", path, name)
					}
					walk(path+"."+name, of)
				}
				if p.Items != nil {
					walk(path+"[]", p.Items)
				}
			}
			top := read(t, schema)
			if which == "input" {
				checkPlain(t, tool.Name, schema)
			}
			if top.Closed == nil {
				t.Errorf("%s %s: anything is allowed", tool.Name, which)
			}
			walk(tool.Name, top)
		}
	}
}

// checkPlain reports what of an input schema the APIs of some providers refuse in a tool: alternatives, and more than one type.
func checkPlain(t *testing.T, path string, schema any) {
	t.Helper()
	switch s := schema.(type) {
	case map[string]any:
		for name, of := range s {
			if slices.Contains([]string{"anyOf", "oneOf", "allOf", "not", "$ref", "if"}, name) {
				t.Errorf("%s has %s", path, name)
			}
			if _, several := of.([]any); several && name == "type" {
				t.Errorf("%s has several types", path)
			}
			checkPlain(t, path+"."+name, of)
		}
	case []any:
		for _, of := range s {
			checkPlain(t, path+"[]", of)
		}
	}
}

// The words in the schemas are the existing ones.
func TestSchemaWords(t *testing.T) {
	in, out := map[string]*property{}, map[string]*property{}
	for _, tool := range allTools(t) {
		in[tool.Name], out[tool.Name] = read(t, tool.InputSchema), read(t, tool.OutputSchema)
	}
	cite, attribute := in["cite"].Properties, in["attribute"].Properties
	for _, test := range []struct {
		what      string
		got, want []string
	}{
		{"formats", cite["format"].Enum, ibid.Formats()},
		{"styles", cite["style"].Enum, names(ibid.Styles()...)},
		{"units", attribute["unit"].Enum, names(ibid.Units()...)},
		{"labels", out["check"].Properties["label"].Enum, names(support.Supported, support.Differs, support.Unjudged, support.Unsupported, support.Contradicted, support.Unchecked)},
		{"states", out["verify"].Properties["state"].Enum, names(verify.Trusted, verify.Valid, verify.Pending, verify.Unverifiable, verify.Invalid)},
		{"reasons", out["run_sources"].Properties["sentences"].Items.Properties["passages"].Items.Properties["reason"].Enum, names(trail.ReasonCitation, trail.ReasonMarker, trail.ReasonInferred)},
		{"kinds", out["check"].Properties["differences"].Items.Properties["kind"].Enum, names(support.ConflictNumber, support.ConflictDate, support.ConflictUnit, support.ConflictName, support.ConflictNegation, support.ConflictAntonym)},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-is +the schema says):\n%s", test.what, diff)
		}
	}
	for what, pair := range map[string][2]float64{
		"threshold":    {attribute["threshold"].Default.(float64), support.Balanced},
		"per_sentence": {attribute["per_sentence"].Default.(float64), support.DefaultPerSentence},
		"at most":      {*attribute["per_sentence"].Maximum, mcp.MaxPerSentence},
		"sources":      {float64(*attribute["sources"].MaxItems), mcp.MaxSources},
		"passages":     {float64(*in["check"].Properties["passages"].MaxItems), mcp.MaxPassages},
		"trust":        {float64(*in["verify"].Properties["trust"].MaxItems), 64},
		"excerpt":      {in["run_sources"].Properties["excerpt"].Default.(float64), trail.DefaultExcerpt},
		"long excerpt": {*in["run_sources"].Properties["excerpt"].Maximum, mcp.MaxExcerpt},
		"answers":      {*in["find_answers"].Properties["limit"].Maximum, mcp.MaxAnswers},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: the schema says %v, it is %v", what, pair[0], pair[1])
		}
	}
}

func names[T ~string](all ...T) []string {
	list := make([]string, len(all))
	for i, one := range all {
		list[i] = string(one)
	}
	return list
}
