package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Error is why bytes are not a manifest, and where.
type Error struct {
	Status       string // StatusMalformed or StatusVersion
	Path         string // JSON pointer (RFC 6901); "" is the whole document
	Line, Column int    // of the place, from 1; Column counts code points
	Detail       string // what is wrong there
}

// maxShown is how much of a document's own words an error repeats.
const maxShown = 120

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("reading a manifest: line %d, column %d, %s: %s", e.Line, e.Column, shown(e.Path), e.Detail)
}

// shown returns a pointer or a value as a message may repeat it: not endless, without control characters.
func shown(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return strconv.Quote(s)
}

// Parse reads a manifest. It is strict: what two readers could read differently is refused, and so is whatever exceeds
// a limit of this package. The error is an *Error for the first thing that is wrong. Parse looks at the form alone:
// whether the manifest contradicts itself, [Manifest.Problems] says, and whether it is true is for package verify.
func Parse(b []byte) (*Manifest, error) {
	m, errs := parse(b, 1)
	if len(errs) > 0 {
		return nil, &errs[0]
	}
	return m, nil
}

// parse reads a manifest and returns up to most things that are wrong with it. The manifest is nil if there is no
// reading on.
func parse(b []byte, most int) (*Manifest, []Error) {
	if err := walk(b, nil); err != nil {
		return nil, []Error{*err}
	}
	d := &decoder{most: most}
	m := &Manifest{}
	doc := document(b)
	if version := doc.Get("version"); version.IsString() && !strings.HasPrefix(version.Str(), "1.") {
		d.path = append(d.path, "/version"...)
		d.fail("this is version " + shown(version.Str()) + " of the format, and only 1 is known")
		d.errs[0].Status = StatusVersion
		m = nil
	} else {
		d.value(doc, recordForm(m), m)
	}
	locate(b, d.errs)
	return m, d.errs
}

func document(b []byte) scan.Value {
	return scan.Value(strings.TrimSpace(string(b))) // a copy: what is kept of it must not change with b
}

// locate fills in where the errors are.
func locate(b []byte, errs []Error) {
	places := make(map[string]*place, len(errs))
	for i := range errs {
		places[errs[i].Path] = &place{}
	}
	findPlaces(b, places)
	for i := range errs {
		p := places[errs[i].Path]
		errs[i].Line, errs[i].Column = p.line, p.column
	}
}

// findPlaces sets the places of the pointers that are the keys of places.
func findPlaces(b []byte, places map[string]*place) {
	if len(places) == 0 {
		return
	}
	_ = walk(b, func(path []byte, at int) { // of a document that breaks off, there is only what stands before
		if p := places[string(path)]; p != nil {
			p.at = at
		}
	})
	setPositions(b, places)
}

// decoder reads values of a document that walk found to be sound, and notes where their form is not that of a manifest.
type decoder struct {
	path []byte
	errs []Error
	most int
}

func (d *decoder) full() bool { return len(d.errs) >= d.most }

func (d *decoder) fail(detail string) {
	if !d.full() {
		d.errs = append(d.errs, Error{Status: StatusMalformed, Path: string(d.path), Detail: detail})
	}
}

// value reads v into place, which is a pointer to what the form says.
func (d *decoder) value(v scan.Value, f *form, place any) {
	switch f.kind {
	case kindAny:
		*place.(*json.RawMessage) = json.RawMessage(v)
	case kindString:
		d.text(v, f, place)
	case kindInteger, kindNumber:
		d.number(v, f, place)
	case kindBool:
		d.boolean(v, place)
	case kindArray:
		d.array(v, f, place)
	case kindObject:
		d.object(v, place)
	}
}

// mismatch says that v is of another kind.
func (d *decoder) mismatch(want kind, v scan.Value) {
	got := kindNumber
	switch {
	case v.IsNull():
		got = "null"
	case v.IsString():
		got = kindString
	case v.IsArray():
		got = kindArray
	case v.IsObject():
		got = kindObject
	case string(v) == "true" || string(v) == "false":
		got = kindBool
	}
	d.fail("it should be of type " + string(want) + ", and is of type " + string(got))
}

func (d *decoder) text(v scan.Value, f *form, place any) {
	if !v.IsString() {
		d.mismatch(kindString, v)
		return
	}
	s := v.Str()
	if why := f.refuses(s); why != "" {
		d.fail(why)
	}
	switch place := place.(type) {
	case *string:
		*place = s
	case *Time:
		*place = Time(s)
	}
}

func (d *decoder) number(v scan.Value, f *form, place any) {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		d.mismatch(f.kind, v)
		return
	}
	whole, err := strconv.Atoi(string(v))
	if f.kind == kindInteger && err != nil {
		d.fail("it should be an integer, written without fraction and exponent")
		return
	}
	if n < float64(f.min) || n > float64(f.max) {
		d.fail(fmt.Sprintf("it should be from %d to %d", f.min, f.max))
		return
	}
	switch place := place.(type) {
	case *int:
		*place = whole
	case **int:
		*place = &whole
	case **float64:
		*place = &n
	}
}

func (d *decoder) boolean(v scan.Value, place any) {
	is := v.IsTrue()
	if !is && string(v) != "false" {
		d.mismatch(kindBool, v)
		return
	}
	switch place := place.(type) {
	case *bool:
		*place = is
	case **bool:
		*place = &is
	}
}

func (d *decoder) array(v scan.Value, f *form, place any) {
	if f.orOne && v.IsString() {
		*place.(*[]string) = []string{v.Str()}
		if why := f.of.refuses(v.Str()); why != "" {
			d.fail(why)
		}
		return
	}
	if !v.IsArray() {
		d.mismatch(kindArray, v)
		return
	}
	switch place := place.(type) {
	case **Range:
		list := elements[int](d, v, f)
		if len(list) == len(Range{}) {
			*place = (*Range)(list)
		}
	case *[]int:
		*place = elements[int](d, v, f)
	case *[]string:
		*place = elements[string](d, v, f)
	case *[]Source:
		*place = elements[Source](d, v, f)
	case *[]Claim:
		*place = elements[Claim](d, v, f)
	case *[]ClaimSource:
		*place = elements[ClaimSource](d, v, f)
	case *[]Step:
		*place = elements[Step](d, v, f)
	}
}

func elements[T any](d *decoder, v scan.Value, f *form) []T {
	list := []T{}
	outside := len(d.path)
	for a := scan.Elements(v); a.Next() && !d.full(); d.path = d.path[:outside] {
		if len(list) == f.max {
			d.fail("it has more than " + plural(f.max, "element"))
			return list
		}
		d.path = strconv.AppendInt(append(d.path, '/'), int64(len(list)), 10)
		var element T
		d.value(a.Val, f.of, &element)
		list = append(list, element)
	}
	if len(list) < f.min {
		d.fail("it has fewer than " + plural(f.min, "element"))
	}
	return list
}

func (d *decoder) object(v scan.Value, place any) {
	if !v.IsObject() {
		d.mismatch(kindObject, v)
		return
	}
	known, extra := objectAt(place).members()
	var seen uint64 // by the place in known
	outside := len(d.path)
	for walk := scan.Members(v); walk.Next() && !d.full(); d.path = d.path[:outside] {
		name := string(walk.Key)
		i := slices.IndexFunc(known, func(m member) bool { return m.name == name })
		if i < 0 {
			if *extra == nil {
				*extra = Extra{}
			}
			(*extra)[name] = json.RawMessage(walk.Val)
			continue
		}
		seen |= 1 << i
		d.path = appendToken(d.path, name)
		d.value(walk.Val, known[i].form(), known[i].place)
	}
	for i, m := range known {
		if m.required && seen&(1<<i) == 0 {
			d.fail("its member " + m.name + " is missing")
		}
	}
}

// objectAt returns the object that is read into a place.
func objectAt(place any) object {
	switch place := place.(type) {
	case **Output:
		*place = &Output{}
		return *place
	case **Excerpt:
		*place = &Excerpt{}
		return *place
	default:
		return place.(object)
	}
}
