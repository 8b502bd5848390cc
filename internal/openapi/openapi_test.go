package openapi_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
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

// Types that write themselves write what is described, whether all is known of them or nothing, and nothing else.
func TestShapes(t *testing.T) {
	schema := compile(t)
	full := trail.Trail{}
	fill(reflect.ValueOf(&full).Elem(), 0)
	summary := full.Summary(nil)
	summary.Links = &trail.Links{}
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
		{"TrailStep", trail.Step{}},
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

// compile returns the schemas of the description, in which objects have no other members.
func compile(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	data := testenv.Must(openapi.Write(&openapi.Options{
		Root: testenv.Root(t), Routes: server.Routes(), Closed: true,
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

// fill gives every field of v a value that is known, and every list one element. Nested runs have no further ones.
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
