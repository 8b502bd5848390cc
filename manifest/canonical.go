package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// Canonical returns the manifest as it is served, hashed and signed: JSON by RFC 8785, where equal manifests are equal
// bytes. What Parse would refuse is an error, so whatever is published can be read.
func (m *Manifest) Canonical() ([]byte, error) {
	w := &writer{sorted: true}
	w.object(m)
	if w.err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", w.err)
	}
	if !w.raws {
		if _, err := Parse(w.out); err != nil {
			return nil, fmt.Errorf("writing a manifest: %w", err)
		}
		return w.out, nil
	}
	return m.transformed()
}

// transformed is Canonical of a manifest with members that are not ours: their forms are not known.
func (m *Manifest) transformed() ([]byte, error) {
	b, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if _, err := Parse(b); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	b, err = transform(b)
	if err == nil && len(b) > MaxBytes { // 1e9 is written with all its digits
		err = errors.New("it is larger than " + strconv.Itoa(MaxBytes) + " bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return b, nil
}

// transform returns b, which walk found to be sound, by RFC 8785.
func transform(b []byte) (canonical []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			canonical, err = nil, fmt.Errorf("making it canonical: %v", r)
		}
	}()
	return jcs.Transform(b)
}

// MarshalJSON writes the manifest with its extra members, in the order of [Manifest]. See [Manifest.Canonical] for what
// is published.
func (m Manifest) MarshalJSON() ([]byte, error) {
	w := &writer{}
	w.object(&m)
	if w.err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", w.err)
	}
	return w.out, nil
}

// UnmarshalJSON is Parse.
func (m *Manifest) UnmarshalJSON(b []byte) error {
	read, err := Parse(b)
	if err == nil {
		*m = *read
	}
	return err
}

// writer writes objects as JSON. encoding/json would turn bytes that are no UTF-8 into other text without a word.
type writer struct {
	out    []byte
	err    error
	sorted bool // members are in the order of RFC 8785, so that what is written is canonical unless there are raws
	raws   bool // members as they came
}

func (w *writer) object(o object) {
	members, extra := o.members()
	if w.sorted {
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) }) // all ASCII
	}
	w.out = append(w.out, '{')
	first := true
	name := func(name string) {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.text(name)
		w.out = append(w.out, ':')
	}
	for _, m := range members {
		if m.required || !reflect.ValueOf(m.place).Elem().IsZero() {
			name(m.name)
			w.value(m.place)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(*extra)) {
		if !slices.ContainsFunc(members, func(m member) bool { return m.name == key }) {
			name(key)
			w.raw((*extra)[key])
		}
	}
	w.out = append(w.out, '}')
}

func (w *writer) value(place any) {
	switch p := place.(type) {
	case *string:
		w.text(*p)
	case *Time:
		w.text(string(*p))
	case *int:
		w.out = strconv.AppendInt(w.out, int64(*p), 10)
	case *bool:
		w.out = strconv.AppendBool(w.out, *p)
	case **int:
		w.value(*p)
	case **bool:
		w.value(*p)
	case **float64:
		n, err := jcs.NumberToJSON(**p)
		w.fail(err)
		w.out = append(w.out, n...)
	case **Range:
		writeList(w, (*p)[:])
	case **Output:
		w.object(*p)
	case **Excerpt:
		w.object(*p)
	case *json.RawMessage:
		w.raw(*p)
	default:
		w.list(place)
	}
}

func (w *writer) list(place any) {
	switch p := place.(type) {
	case *[]int:
		writeList(w, *p)
	case *[]string:
		writeList(w, *p)
	case *[]Source:
		writeList(w, *p)
	case *[]Claim:
		writeList(w, *p)
	case *[]ClaimSource:
		writeList(w, *p)
	case *[]Step:
		writeList(w, *p)
	default:
		w.object(place.(object))
	}
}

func writeList[T any](w *writer, list []T) {
	w.out = append(w.out, '[')
	for i := range list {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.value(&list[i])
	}
	w.out = append(w.out, ']')
}

func (w *writer) raw(b json.RawMessage) {
	w.raws = true
	if !json.Valid(b) { // or it could break out of its member
		w.fail(errors.New("a member that is no JSON"))
		return
	}
	w.out = append(w.out, b...)
}

func (w *writer) text(s string) {
	if !utf8.ValidString(s) {
		w.fail(errors.New("a string that is no UTF-8"))
	}
	w.out = append(w.out, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.out = append(w.out, s[from:i]...)
		from = i + 1
		if short := strings.IndexByte("\b\t\n\f\r\"\\", c); short >= 0 {
			w.out = append(w.out, '\\', `btnfr"\`[short])
		} else {
			w.out = fmt.Appendf(w.out, `\u%04x`, c)
		}
	}
	w.out = append(append(w.out, s[from:]...), '"')
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
