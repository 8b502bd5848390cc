package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/support"
)

// object is an object of the description.
type object = map[string]any

// schemas collects the schemas of types.
type schemas struct {
	comments comments
	all      object // by name
	names    map[key]string
	// closed disallows undescribed members, for tests; responses may get additional members.
	closed bool
}

// key is a type as sent, or as received, where only members marked as required are.
type key struct {
	t    reflect.Type
	read bool
}

// of returns the schema of a type.
func (s *schemas) of(t reflect.Type, read bool) (object, error) {
	if shape, ok := shapes[t]; ok {
		return s.refer(t, shape, read)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}, nil
	case reflect.TypeFor[json.RawMessage]():
		return object{}, nil
	case reflect.TypeFor[support.GivenText]():
		return givenText(), nil
	}
	switch t.Kind() { //nolint:exhaustive // bodies have no others
	case reflect.Pointer:
		return s.of(t.Elem(), read)
	case reflect.Struct:
		return s.refer(t, t, read)
	case reflect.String:
		about, err := s.comments.of(t)
		if err != nil || len(about.words) == 0 {
			return object{"type": "string"}, err
		}
		s.all[s.name(t, false)] = object{"type": "string", "enum": about.words, "description": about.doc}
		return reference(s.name(t, false)), nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}, nil
	case reflect.Float64:
		return object{"type": "number"}, nil
	case reflect.Slice:
		items, err := s.of(t.Elem(), read)
		return object{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := s.of(t.Elem(), read)
		return object{"type": "object", "additionalProperties": values}, err
	case reflect.Interface:
		return object{}, nil
	}
	return nil, fmt.Errorf("there is no schema of %v", t)
}

// givenText returns the schema of a text in a request.
func givenText() object {
	word := object{"type": "string"}
	return object{"anyOf": []any{word, object{
		"type": "object", "required": []string{"text"},
		"properties": object{"id": word, "title": word, "url": word, "text": word, "language": word},
	}}}
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// refer returns a reference to the schema of a struct: that of its shape if it has its own encoding. The schema of an
// unnamed struct is inlined.
func (s *schemas) refer(t, shape reflect.Type, read bool) (object, error) {
	if t.Name() == "" {
		schema := object{"type": "object"}
		return schema, s.fill(schema, t, shape, read)
	}
	name := s.name(t, read)
	if s.all[name] == nil {
		about, err := s.comments.of(t)
		if err != nil {
			return nil, err
		}
		schema := object{"type": "object"}
		s.all[name] = schema // it may be recursive
		if about.doc != "" {
			schema["description"] = about.doc
		}
		if err := s.fill(schema, t, shape, read); err != nil {
			return nil, err
		}
	}
	return reference(name), nil
}

// fill adds the members of a struct to its schema.
func (s *schemas) fill(schema object, t, shape reflect.Type, read bool) error {
	members, needed := object{}, []string{}
	if err := s.members(shape, read, members, &needed); err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	schema["properties"] = members
	if len(needed) > 0 {
		slices.Sort(needed)
		schema["required"] = needed
	}
	_, tolerant := shapes[t]
	if read && !tolerant || s.closed && !read {
		schema["additionalProperties"] = false
	}
	return nil
}

// members collects the members of a struct, including those of embedded structs.
func (s *schemas) members(t reflect.Type, read bool, members object, needed *[]string) error {
	about, err := s.comments.of(t)
	if err != nil {
		return err
	}
	for f := range t.Fields() {
		if f.Anonymous {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if shape, ok := shapes[inner]; ok {
				inner = shape
			}
			if err := s.members(inner, read, members, needed); err != nil {
				return err
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			return fmt.Errorf("the field %s has no name in JSON", f.Name)
		}
		schema, err := s.of(f.Type, read)
		if err != nil {
			return err
		}
		limit(schema, f.Tag)
		said := cmp.Or(f.Tag.Get("doc"), about.fields[f.Name])
		optional := strings.Contains(options, "omit")
		list := f.Type.Kind() == reflect.Slice && strings.Contains(said, "null")
		if !read && !optional && (f.Type.Kind() == reflect.Pointer || list) {
			schema = orNull(schema)
		}
		if said != "" {
			schema["description"] = said
		}
		members[name] = schema
		if _, must := f.Tag.Lookup("required"); must || !read && !optional {
			*needed = append(*needed, name)
		}
	}
	return nil
}

// limit adds the constraints in the tags of a field: enum, with words separated by spaces, minimum and so on.
func limit(schema object, tag reflect.StructTag) {
	if words := tag.Get("enum"); words != "" {
		schema["enum"] = strings.Fields(words)
	}
	for _, name := range []string{"minimum", "maximum", "minItems", "minLength"} {
		if n, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
			schema[name] = n
		}
	}
}

// orNull returns the schema of a value that may be null.
func orNull(schema object) object {
	if kind, ok := schema["type"]; ok {
		schema["type"] = []any{kind, "null"}
		return schema
	}
	if len(schema) == 0 {
		return schema
	}
	return object{"anyOf": []any{schema, object{"type": "null"}}}
}

// name returns the name of a type's schema: that of the type without suffixes such as Body, prefixed with its package
// if two types share a name.
func (s *schemas) name(t reflect.Type, read bool) string {
	k := key{t, read}
	if s.names[k] != "" {
		return s.names[k]
	}
	name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(t.Name(), "Body"), "Order"), "body")
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	name = capital(cmp.Or(name, pkg))
	if read {
		name += "Request"
	}
	if slices.Contains(slices.Collect(maps.Values(s.names)), name) {
		name = capital(pkg) + name
	}
	s.names[k] = name
	return name
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
