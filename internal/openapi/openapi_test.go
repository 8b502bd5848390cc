package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/openapi"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// The encoding of types with their own matches the description, whether their fields are set or not, with no other
// members.
func TestShapes(t *testing.T) {
	schema := compile(t, true)
	full := trail.Trail{}
	fill(reflect.ValueOf(&full).Elem(), 0)
	summary := full.Summary(nil)
	summary.SetLinks(&trail.Links{})
	fill(reflect.ValueOf(summary.Links).Elem(), 3)
	for _, all := range []*[]trail.SummarySource{&summary.Sources, &summary.Primary, &summary.Unused} {
		*all = make([]trail.SummarySource, 1)
		fill(reflect.ValueOf(&(*all)[0]).Elem(), 3)
	}
	summary.Conflicts = make([]trail.Conflict, 1)
	fill(reflect.ValueOf(&summary.Conflicts[0]).Elem(), 3)
	for _, test := range []struct {
		schema string
		value  any
	}{
		{"Trail", full},
		{"Trail", trail.Trail{}},
		{"Step", trail.Step{}},
		{"TrailSource", trail.Source{}},
		{"Summary", summary},
		{"Summary", (&trail.Trail{}).Summary(nil)},
		{"StepAnswer", trail.StepAnswer{}},
		{"Conflict", trail.Conflict{Kind: support.ConflictNumber}},
		{"Verification", ibid.Verification{}},
		{"Verification", ibid.Verification{Status: "verified", CheckedAt: time.Unix(1, 0)}},
	} {
		data := testenv.Must(json.Marshal(test.value))(t)
		value := testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
		if err := schema(test.schema).Validate(value); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
	}
}

// Whatever value a member of a run, of a step or of a source has, the output matches the description, and reading the
// output again gives the same.
func TestMembersOfTheWrongType(t *testing.T) {
	schema := compile(t, false)
	trailSchema, summarySchema := schema("Trail"), schema("Summary")
	values := []string{
		`5`, `-1.5`, `1e999`, `"x"`, `"5"`, `""`, `true`, `null`, `[]`, `[5]`, `["x"]`, `[null]`, `[{}]`, `{}`, `{"x":[5]}`,
	}
	full := trail.Trail{}
	fill(reflect.ValueOf(&full).Elem(), 0)
	members := func(v any) []string {
		var object map[string]json.RawMessage
		testenv.OK(t, json.Unmarshal(testenv.Must(json.Marshal(v))(t), &object))
		return append(slices.Sorted(maps.Keys(object)), "invalid_members", "source_summary", "sentences")
	}
	kept := 0
	for _, at := range []struct {
		text string // a run, with a %s for a member
		of   any
	}{
		{`{"reasoning_steps": [], %s}`, full},
		{`{"reasoning_steps": [{"no_sources": false, %s}]}`, full.Steps[0]},
		{`{"reasoning_steps": [{"source_attributions": [{%s}]}]}`, full.Steps[0].Sources[0]},
	} {
		for _, name := range members(at.of) {
			for _, value := range values {
				text := fmt.Sprintf(at.text, fmt.Sprintf("%q: %s", name, value))
				run, err := trail.Read([]byte(text))
				if err != nil {
					continue // there is no output
				}
				data := testenv.Must(json.Marshal(run))(t)
				if err := trailSchema.Validate(testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)); err != nil {
					t.Errorf("%s: %v\n%s", text, err, data)
				}
				if bytes.Contains(data, []byte(`"invalid_members":{"`+name+`":`)) {
					kept++
				}
				again := testenv.Must(json.Marshal(testenv.Must(trail.Read(data))(t)))(t)
				if !bytes.Equal(again, data) {
					t.Errorf("%s is shown as\n%s\nand that as\n%s", text, data, again)
				}
				data = testenv.Must(json.Marshal(run.Summary(nil)))(t)
				if err := summarySchema.Validate(testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)); err != nil {
					t.Errorf("summary of %s: %v\n%s", text, err, data)
				}
			}
		}
	}
	if kept < 200 {
		t.Errorf("%d values were kept as invalid members", kept)
	}
}

// compile returns the schemas of the description; closed disallows undescribed members.
func compile(t *testing.T, closed bool) func(name string) *jsonschema.Schema {
	t.Helper()
	data := testenv.Must(openapi.Write(&openapi.Options{
		Root: testenv.Root(t), Routes: server.Routes(), Closed: closed,
	}))(t)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	document := testenv.Must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
	location := filepath.Join(t.TempDir(), "openapi.json")
	testenv.OK(t, compiler.AddResource(location, document))
	return func(name string) *jsonschema.Schema {
		return testenv.Must(compiler.Compile(location + "#/components/schemas/" + name))(t)
	}
}

// fill sets every field of v, and gives every list one element. Nested runs do not nest further.
func fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":1}`)))
		return
	case map[string]json.RawMessage:
		return
	case *ibid.Answer:
		v.Set(reflect.ValueOf(&ibid.Answer{Text: "x"}))
		return
	case *trail.Trail:
		if depth > 2 {
			return
		}
	case ibid.ScoreOrigin:
		v.SetString(string(ibid.ScoreRank))
		return
	case trail.LinkReason:
		v.SetString(string(trail.ReasonMarker))
		return
	case support.SkipReason:
		v.SetString(string(support.SkipHeading))
		return
	case support.ConflictKind:
		v.SetString(string(support.ConflictNumber))
		return
	case support.PartKind:
		v.SetString("host")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for f, value := range v.Fields() {
			if f.IsExported() {
				fill(value, depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Bool:
		v.SetBool(true)
	}
}
