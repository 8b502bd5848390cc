package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/ibidhq/ibid/internal/wire"
)

// objectWriter writes a JSON object whose members are in the order in which they are added. The zero value is ready to
// use.
type objectWriter struct {
	b   bytes.Buffer
	own []string // the names of its members, including those that were omitted
	err error
}

// member adds a member, whatever its value.
func (w *objectWriter) member(name string, v any) {
	w.own = append(w.own, name)
	if w.err != nil {
		return
	}
	var raw []byte
	if raw, w.err = wire.Encode(v); w.err != nil {
		return
	}
	w.b.WriteByte(',')
	key, _ := wire.Encode(name) // a string can always be encoded
	w.b.Write(key)
	w.b.WriteByte(':')
	w.b.Write(raw)
}

// orNull adds a member, which is null if its value is not known.
func (w *objectWriter) orNull(name string, v any) { w.member(name, known(v)) }

// orOmit adds a member, unless its value is not known.
func (w *objectWriter) orOmit(name string, v any) {
	if v = known(v); v == nil {
		w.own = append(w.own, name)
		return
	}
	w.member(name, v)
}

// nested adds a member that is an object.
func (w *objectWriter) nested(name string, write func(*objectWriter)) {
	var inner objectWriter
	write(&inner)
	raw, err := inner.object(nil)
	w.err = cmp.Or(w.err, err)
	w.member(name, json.RawMessage(raw))
}

// writeList adds a member that is a list of objects, one for each item.
func writeList[T any](w *objectWriter, name string, items []T, write func(*objectWriter, *T)) {
	list := make([]json.RawMessage, len(items))
	for i := range items {
		var inner objectWriter
		write(&inner, &items[i])
		raw, err := inner.object(nil)
		list[i], w.err = raw, cmp.Or(w.err, err)
	}
	w.member(name, list)
}

// object returns the object with extra members after its own. Extra members with the name of one of its own could not
// be read: they go into invalid_members, so that each of its own has the documented type or is null.
func (w *objectWriter) object(extra map[string]json.RawMessage) ([]byte, error) {
	invalid := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		switch raw := extra[name]; {
		case !json.Valid(raw):
		case name == invalidMembers || slices.Contains(w.own, name):
			invalid[name] = raw
		default:
			w.member(name, raw)
		}
	}
	if len(invalid) > 0 {
		w.member(invalidMembers, invalid)
	}
	if w.err != nil || w.b.Len() == 0 {
		return []byte("{}"), w.err
	}
	data := append(w.b.Bytes(), '}')
	data[0] = '{'
	return data, nil
}

// known returns v, or nil if it is the zero value or JSON cannot represent it: a program may have set a number that is
// not finite, or raw JSON that is not valid.
func known(v any) any {
	switch v := v.(type) {
	case *float64:
		if jsonNumber(v) == nil {
			return nil
		}
	case time.Time:
		if v = v.UTC(); v.IsZero() || v.Year() < 0 || v.Year() > 9999 {
			return nil
		}
		return v
	case json.RawMessage:
		if !json.Valid(v) {
			return nil
		}
	}
	if r := reflect.ValueOf(v); !r.IsValid() || r.IsZero() || r.Kind() == reflect.Slice && r.Len() == 0 {
		return nil
	}
	return v
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// jsonNumber returns f, or nil if JSON cannot represent it.
func jsonNumber(f *float64) *float64 {
	if f == nil || !isFinite(*f) {
		return nil
	}
	return f
}
