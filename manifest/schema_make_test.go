package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the schema")

// The schema matches the types and forms that Parse uses.
func TestSchemaFile(t *testing.T) {
	const name = "schema/manifest-v1.json"
	m := &schemaMaker{defs: map[string]any{}}
	s := m.object(reflect.TypeFor[Manifest]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	// An identifier, not a location: publishers serve the schema, and their discovery document has its URL.
	s["$id"] = "urn:ibid:schema:manifest:1"
	s["title"] = "Citation manifest, version 1"
	s["$defs"] = m.defs
	want := encodeSchema(t, s)
	if *update {
		if err := os.WriteFile(name, want, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Schema(), want) {
		t.Errorf("%s is out of date: make generate writes it", name)
	}
}

func encodeSchema(t *testing.T, s map[string]any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// schemaMaker converts forms to schemas.
type schemaMaker struct{ defs map[string]any }

func (s *schemaMaker) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, m := range members[t] {
		properties[m.name] = s.form(t.Field(m.index).Type, m.form, m.of)
		if m.required {
			required = append(required, m.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// form returns the schema of a value, or a reference to its definition.
func (s *schemaMaker) form(t reflect.Type, f, of *form) any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := f.def
	if kindOf(t) == "object" {
		name = strings.ToLower(t.Name())
	}
	if name == "" {
		return s.inline(t, f, of)
	}
	if _, known := s.defs[name]; !known {
		s.defs[name] = s.inline(t, f, of)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (s *schemaMaker) inline(t reflect.Type, f, of *form) any {
	schema := map[string]any{"type": kindOf(t)}
	switch kindOf(t) {
	case "":
		return true
	case "object":
		return s.object(t)
	case "integer", "number":
		schema["minimum"], schema["maximum"] = f.min, f.max
	case "array":
		items := s.form(t.Elem(), of, &form{})
		schema["items"], schema["minItems"], schema["maxItems"] = items, f.min, f.max
		if f.orOne {
			return map[string]any{"anyOf": []any{items, schema}}
		}
	case "string":
		if f.words != nil {
			schema["enum"] = f.words
			break
		}
		schema["minLength"], schema["maxLength"] = f.min, f.max
		if f.pattern != "" {
			schema["pattern"] = f.pattern
		}
	}
	return schema
}
