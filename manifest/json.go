package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/text"
)

// Error is why bytes are not a manifest, and where.
type Error struct {
	Status       string // StatusMalformed or StatusVersion
	Path         string // JSON pointer (RFC 6901); "" is the whole document
	Line, Column int    // of the place, from 1; Column counts code points
	Detail       string // what is wrong there
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("reading a manifest: line %d, column %d, %s: %s", e.Line, e.Column, quoted(e.Path), e.Detail)
}

// quoted returns a pointer or a value as a message may repeat it: not endless, without control characters.
func quoted(s string) string {
	const most = 120 // bytes
	if len(s) > most {
		s = text.Head(s, most) + "…"
	}
	return strconv.Quote(s)
}

// Parse reads a manifest by the rules of encoding/json/v2 and stricter ones: what two readers could read differently is
// refused, and so is whatever exceeds a limit of this package. The error is an *Error for the first thing that is
// wrong. Parse looks at the form alone: whether the manifest contradicts itself, [Manifest.Problems] says, and whether
// it is true is for package verify.
func Parse(b []byte) (*Manifest, error) {
	m, errs := parse(b, 1)
	if len(errs) > 0 {
		return nil, &errs[0]
	}
	return m, nil
}

// parse reads a manifest and returns up to most things that are wrong with its form. The manifest is nil, and the error
// is one, where the document cannot be read to its end or is of another version.
func parse(b []byte, most int) (*Manifest, []Error) {
	r := newReader(b)
	r.most = most
	m := &Manifest{}
	switch {
	case len(b) > MaxBytes:
		r.stop("", 0, "it is larger than "+strconv.Itoa(MaxBytes)+" bytes")
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		r.stop("", 0, "it begins with a byte order mark")
	case len(bytes.TrimSpace(b)) == 0:
		r.stop("", len(b), "it is empty")
	default:
		r.value(reflect.ValueOf(m).Elem(), &form{}, &form{})
		if r.broken == nil {
			if after := bytes.TrimLeft(b[r.dec.InputOffset():], " \t\r\n"); len(after) > 0 {
				r.stop("", len(b)-len(after), "something follows the document")
			}
		}
	}
	switch {
	case r.broken != nil:
		m, r.errs = nil, []Error{*r.broken}
	case r.version != nil:
		m, r.errs = nil, []Error{*r.version}
	}
	at := make([]int, len(r.errs))
	for i := range at {
		at[i] = r.errs[i].Column
	}
	for i, p := range positions(b, at) {
		r.errs[i].Line, r.errs[i].Column = p.line, p.column
	}
	return m, r.errs
}

// position is a place in a document, from 1; the column counts code points.
type position struct{ line, column int }

// positions returns the lines and columns of offsets, in one pass: a document may be one long line.
func positions(doc []byte, offsets []int) []position {
	order := make([]int, len(offsets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(offsets[a], offsets[b]) })
	list, last, p := make([]position, len(offsets)), 0, position{1, 1}
	for _, i := range order {
		between := doc[last:offsets[i]]
		if n := bytes.Count(between, []byte{'\n'}); n > 0 {
			p = position{p.line + n, 1}
			between = between[bytes.LastIndexByte(between, '\n')+1:]
		}
		p.column += utf8.RuneCount(between)
		last, list[i] = offsets[i], p
	}
	return list
}

// offsets returns where the values of these JSON pointers begin in a document; 0 for one that is not there.
func offsets(doc []byte, pointers []string) map[string]int {
	at := make(map[string]int, len(pointers))
	for _, p := range pointers {
		at[p] = 0
	}
	r := newReader(doc)
	for r.broken == nil {
		raw := r.nextInside()
		if pointer := string(r.dec.StackPointer()); raw != nil && at[pointer] == 0 {
			at[pointer] = r.offset(raw)
		}
	}
	return at
}

// rawType is the type of members that may be any JSON.
var rawType = reflect.TypeFor[json.RawMessage]()

// reader reads a document strictly into values, and notes where their form is not that of a manifest.
type reader struct {
	doc  []byte
	dec  *jsontext.Decoder
	most int     // of errs
	errs []Error // their Column is an offset until all are known

	broken  *Error // why the rest of the document cannot be read
	version *Error // of the format: another one
}

func newReader(doc []byte) *reader {
	return &reader{doc: doc, dec: jsontext.NewDecoder(bytes.NewBuffer(doc))}
}

// stop notes that the document cannot be read on.
func (r *reader) stop(path jsontext.Pointer, at int, detail string) {
	if r.broken == nil {
		r.broken = &Error{Status: StatusMalformed, Path: string(path), Detail: detail, Column: min(at, len(r.doc))}
	}
}

// fail notes what is wrong with the value that was read last, which begins at an offset.
func (r *reader) fail(at int, detail string) {
	if len(r.errs) < r.most {
		path := string(r.dec.StackPointer())
		r.errs = append(r.errs, Error{Status: StatusMalformed, Path: path, Detail: detail, Column: at})
	}
}

// failed notes an error of the decoder.
func (r *reader) failed(err error) {
	path, at, detail := r.dec.StackPointer(), len(r.doc), "the document breaks off"
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		path, at = syntax.JSONPointer, int(syntax.ByteOffset)
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			detail = "the member stands there twice"
		case !errors.Is(err, io.ErrUnexpectedEOF):
			detail = "this is no JSON: " + syntax.Err.Error()
		}
	}
	r.stop(path, at, detail)
}

// next reads a scalar value, or the bracket that begins an object or array; nil: it cannot be read.
func (r *reader) next() []byte {
	kind := r.dec.PeekKind()
	var raw []byte
	var err error
	if kind == '{' || kind == '[' {
		_, err = r.dec.ReadToken()
		raw = []byte{byte(kind)}
	} else {
		raw, err = r.dec.ReadValue()
	}
	switch {
	case err != nil:
		r.failed(err)
		return nil
	case r.dec.StackDepth() > maxDepth:
		r.stop(r.dec.StackPointer(), r.offset(raw), "it is nested deeper than "+strconv.Itoa(maxDepth)+" levels")
		return nil
	case kind == '0':
		if n, err := strconv.ParseFloat(string(raw), 64); err != nil || math.Abs(n) > maxNumber {
			r.stop(r.dec.StackPointer(), r.offset(raw), "a number beyond 2^53-1, which not every reader can hold")
			return nil
		}
	}
	return raw
}

// offset returns where what was read last begins.
func (r *reader) offset(raw []byte) int { return int(r.dec.InputOffset()) - len(raw) }

// skip reads what is left of the object or array at a depth.
func (r *reader) skip(depth int) {
	for r.broken == nil && r.dec.StackDepth() > depth {
		r.nextInside()
	}
}

// nextInside is next, and nil also for a member's name and for the end of an object or array.
func (r *reader) nextInside() []byte {
	kind, length := r.dec.StackIndex(r.dec.StackDepth())
	if isName := kind == '{' && length%2 == 0; !isName && r.dec.PeekKind() != ']' {
		return r.next()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.failed(err)
	}
	return nil
}

// value reads a value of this form into v. A value of another type leaves v as it is.
func (r *reader) value(v reflect.Value, f, of *form) {
	depth := r.dec.StackDepth()
	raw := r.next()
	if raw == nil {
		return
	}
	at := r.offset(raw)
	kind, want := typesOfJSON[jsontext.Value(raw).Kind()], kindOf(v.Type())
	to := v
	if v.Kind() == reflect.Pointer {
		to = reflect.New(v.Type().Elem()).Elem()
	}
	known := len(r.errs)
	switch {
	case want == "":
		r.skip(depth)
		to.SetBytes(bytes.Clone(r.doc[at:r.dec.InputOffset()]))
	case want == "array" && f.orOne && kind == "string":
		to.Set(reflect.ValueOf([]string{r.text(raw, at, of)}))
	case kind != want && (kind != "number" || want != "integer"):
		r.skip(depth)
		r.fail(at, "it should be of type "+want+", and is of type "+kind)
		return
	case want == "string":
		to.SetString(r.text(raw, at, f))
	case want == "boolean":
		to.SetBool(raw[0] == 't')
	case want == "object":
		r.object(to, at)
	case want == "array":
		r.array(to, f, of, at)
	default: // a number
		n, _ := strconv.ParseFloat(string(raw), 64)
		whole, err := strconv.Atoi(string(raw))
		switch {
		case want == "integer" && err != nil:
			r.fail(at, "it should be an integer, written without fraction and exponent")
		case n < float64(f.min) || n > float64(f.max):
			r.fail(at, fmt.Sprintf("it should be from %d to %d", f.min, f.max))
		case want == "integer":
			to.SetInt(int64(whole))
		default:
			to.SetFloat(n)
		}
	}
	if v.Kind() == reflect.Pointer && (want == "object" || len(r.errs) == known) {
		v.Set(to.Addr())
	}
}

var typesOfJSON = map[jsontext.Kind]string{
	'{': "object", '[': "array", '"': "string", 't': "boolean", 'f': "boolean", 'n': "null", '0': "number",
}

func (r *reader) text(raw []byte, at int, f *form) string {
	unquoted, _ := jsontext.AppendUnquote(nil, raw) // it was read
	s := string(unquoted)
	if f == forms["version"] && !strings.HasPrefix(s, "1.") {
		detail := "this is version " + quoted(s) + " of the format, and only 1 is known"
		r.version = &Error{Status: StatusVersion, Path: "/version", Detail: detail, Column: at}
	} else if why := f.refuses(s); why != "" {
		r.fail(at, why)
	}
	return s
}

func (r *reader) array(v reflect.Value, f, of *form, at int) {
	list := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), 0, 0)
	depth, n := r.dec.StackDepth(), 0
	for ; r.broken == nil && r.dec.PeekKind() != ']' && n < f.max; n++ {
		element := reflect.New(v.Type().Elem()).Elem()
		r.value(element, of, &form{})
		list = reflect.Append(list, element)
	}
	over := r.dec.PeekKind() != ']'
	r.skip(depth - 1)
	switch {
	case r.broken != nil:
		return
	case over:
		r.fail(at, "it has more than "+plural(f.max, "element"))
	case n < f.min:
		r.fail(at, "it has fewer than "+plural(f.min, "element"))
	case v.Kind() == reflect.Array:
		reflect.Copy(v, list)
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(list)
	}
}

func (r *reader) object(v reflect.Value, at int) {
	known := members[v.Type()]
	seen := make([]bool, len(known))
	for r.broken == nil && r.dec.PeekKind() != '}' {
		token, err := r.dec.ReadToken()
		if err != nil {
			r.failed(err)
			return
		}
		name := token.String()
		if i := slices.IndexFunc(known, func(m member) bool { return m.name == name }); i >= 0 {
			seen[i] = true
			r.value(v.Field(known[i].index), known[i].form, known[i].of)
			continue
		}
		var raw json.RawMessage
		r.value(reflect.ValueOf(&raw).Elem(), &form{}, nil)
		extra := v.FieldByName("Extra").Addr().Interface().(*Extra)
		if *extra == nil {
			*extra = Extra{}
		}
		(*extra)[name] = raw
	}
	r.skip(r.dec.StackDepth() - 1)
	for i, m := range known {
		if r.broken == nil && m.required && !seen[i] {
			r.fail(at, "its member "+m.name+" is missing")
		}
	}
}

// Canonical returns the manifest as it is served, hashed and signed: JSON by RFC 8785, where equal manifests are equal
// bytes. What Parse would refuse is an error, so whatever is published can be read.
func (m *Manifest) Canonical() ([]byte, error) {
	b, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if _, err := Parse(b); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	err = (*jsontext.Value)(&b).Canonicalize()
	if err == nil && len(b) > MaxBytes { // it has grown: 1e9 is written with all its digits
		err = errors.New("it is larger than " + strconv.Itoa(MaxBytes) + " bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return b, nil
}

// MarshalJSON writes the manifest with its extra members, in the order of [Manifest]. See [Manifest.Canonical] for what
// is published.
func (m Manifest) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := writeValue(jsontext.NewEncoder(&b), reflect.ValueOf(m)); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON is Parse.
func (m *Manifest) UnmarshalJSON(b []byte) error {
	read, err := Parse(b)
	if err == nil {
		*m = *read
	}
	return err
}

// writeValue writes a value: of an object the members that are there or required, then the extra ones.
func writeValue(enc *jsontext.Encoder, v reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	known, isObject := members[v.Type()]
	switch {
	case v.Type() == rawType:
		return enc.WriteValue(v.Bytes())
	case isObject:
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		err := enc.WriteToken(jsontext.BeginArray)
		for i := 0; err == nil && i < v.Len(); i++ {
			err = writeValue(enc, v.Index(i))
		}
		if err == nil {
			err = enc.WriteToken(jsontext.EndArray)
		}
		return err
	default:
		return json2.MarshalEncode(enc, v.Interface())
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range known {
		if field := v.Field(m.index); m.required || !field.IsZero() {
			if err := cmp.Or(enc.WriteToken(jsontext.String(m.name)), writeValue(enc, field)); err != nil {
				return err
			}
		}
	}
	extra := v.FieldByName("Extra").Interface().(Extra)
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.ContainsFunc(known, func(m member) bool { return m.name == name }) {
			continue
		}
		err := cmp.Or(enc.WriteToken(jsontext.String(name)), enc.WriteValue(jsontext.Value(extra[name])))
		if err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
