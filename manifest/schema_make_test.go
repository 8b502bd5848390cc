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

var update = flag.Bool("update", false, "write the schema anew")

// The schema is that of the types: TestMembers says that their members are those that Parse reads.
func TestSchemaFile(t *testing.T) {
	const name = "schema/manifest-v1.json"
	m := &schemaMaker{defs: map[string]any{}}
	s := m.object(&Manifest{})
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
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

// schemaMaker writes forms as schemas.
type schemaMaker struct{ defs map[string]any }

func (s *schemaMaker) object(o object) map[string]any {
	members, _ := o.members()
	properties, required := map[string]any{}, []string{}
	for _, m := range members {
		properties[m.name] = s.form(m.form())
		if m.required {
			required = append(required, m.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// form returns the schema of a form, or a reference to the definition that it goes to.
func (s *schemaMaker) form(f *form) any {
	name := f.def
	if f.kind == kindObject {
		name = strings.ToLower(reflect.TypeOf(f.object).Elem().Name())
	}
	if name == "" {
		return s.inline(f)
	}
	if _, known := s.defs[name]; !known {
		s.defs[name] = s.inline(f)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (s *schemaMaker) inline(f *form) any {
	of := map[string]any{"type": string(f.kind)}
	switch f.kind {
	case kindAny:
		return true
	case kindBool:
	case kindInteger, kindNumber:
		of["minimum"], of["maximum"] = f.min, f.max
	case kindString:
		s.text(f, of)
	case kindArray:
		of["items"], of["minItems"], of["maxItems"] = s.form(f.of), f.min, f.max
	case kindObject:
		return s.object(f.object)
	}
	if f.orOne {
		return map[string]any{"anyOf": []any{s.form(f.of), of}}
	}
	return of
}

func (*schemaMaker) text(f *form, of map[string]any) {
	if f.words != nil {
		of["enum"] = f.words
		return
	}
	of["minLength"], of["maxLength"] = f.min, f.max
	if f.pattern != "" {
		of["pattern"] = f.pattern
	}
}

// What Parse reads is what the types have, in both directions, by the same names.
func TestMembers(t *testing.T) {
	for _, o := range []object{&Manifest{}, &Output{}, &Source{}, &Claim{}, &ClaimSource{}, &Excerpt{}, &Step{}} {
		v := reflect.ValueOf(o).Elem()
		members, extra := o.members()
		if place := v.FieldByName("Extra").Addr().Interface(); place != any(extra) {
			t.Errorf("%T: the extra members go elsewhere", o)
		}
		if len(members) != v.NumField()-1 {
			t.Errorf("%T has %d fields, and %d members are read", o, v.NumField()-1, len(members))
		}
		for i, m := range members {
			tag := v.Type().Field(i).Tag.Get("json")
			name, rest, _ := strings.Cut(tag, ",")
			if name != m.name || v.Field(i).Addr().Interface() != m.place || (rest == "omitempty") == m.required {
				t.Errorf("%T: member %d is %q of %T, required %t; the type has %q", o, i, m.name, m.place, m.required, tag)
			}
		}
	}
}
