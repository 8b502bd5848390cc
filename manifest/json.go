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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/text"
)

// Error is the reason why bytes are not a manifest, and the place.
type Error struct {
	Status       string // manifest-malformed or version-unsupported
	Path         string // JSON pointer (RFC 6901); "" is the whole document
	Line, Column int    // of the place, from 1; Column counts code points
	Detail       string // what is wrong there
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("reading a manifest: line %d, column %d, %s: %s", e.Line, e.Column, quoted(e.Path), e.Detail)
}

// quoted returns a pointer or value for use in a message: bounded, without control characters.
func quoted(s string) string {
	const most = 120 // bytes
	if len(s) > most {
		s = text.Head(s, most) + "…"
	}
	return strconv.Quote(s)
}

// Parse reads a manifest by the rules of encoding/json/v2 and stricter ones: it refuses what two readers could read
// differently, and whatever exceeds a limit of this package. The error is an *Error for the first problem. Parse checks
// only the form: [Manifest.Problems] finds contradictions, and package verify checks whether a manifest is true.
func Parse(b []byte) (*Manifest, error) {
	m, errs := parse(b, 1)
	if len(errs) > 0 {
		return nil, &errs[0]
	}
	return m, nil
}

// parse reads a manifest and returns up to most errors of its form. If the document cannot be read to its end or has
// another version, the manifest is nil and there is one error.
func parse(b []byte, most int) (*Manifest, []Error) {
	m, r := &Manifest{}, reader{dec: jsontext.NewDecoder(bytes.NewBuffer(b)), most: most}
	broken := unreadable(b)
	if broken == nil {
		r.value(reflect.ValueOf(m).Elem(), &form{}, &form{})
		broken = r.version
	}
	if broken != nil {
		m, r.errs = nil, []Error{*broken}
	}
	if len(r.errs) == 0 {
		return m, nil
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

// unreadable returns the first reason why a document cannot be read to its end, or not by every reader, or nil if there
// is none. The Column of the error is an offset.
func unreadable(doc []byte) *Error {
	broken := func(path jsontext.Pointer, at int, detail string) *Error {
		return &Error{Status: statusMalformed, Path: string(path), Detail: detail, Column: min(at, len(doc))}
	}
	switch {
	case len(doc) > MaxBytes:
		return broken("", 0, "it is larger than "+strconv.Itoa(MaxBytes)+" bytes")
	case bytes.HasPrefix(doc, []byte("\xef\xbb\xbf")):
		return broken("", 0, "it begins with a byte order mark")
	case len(bytes.TrimSpace(doc)) == 0:
		return broken("", len(doc), "it is empty")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for {
		of, length := dec.StackIndex(dec.StackDepth())
		kind := dec.PeekKind()
		var raw []byte // of a scalar value
		var err error
		if of == '{' && length%2 == 0 || kind == '{' || kind == '[' || of == '[' && kind == ']' {
			_, err = dec.ReadToken()
		} else {
			raw, err = dec.ReadValue()
		}
		if err != nil {
			path, at, detail := dec.StackPointer(), len(doc), "the document is truncated"
			if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
				path, at = syntax.JSONPointer, int(syntax.ByteOffset)
				switch {
				case errors.Is(err, jsontext.ErrDuplicateName):
					detail = "the member is duplicated"
				case !errors.Is(err, io.ErrUnexpectedEOF):
					detail = "it is not valid JSON: " + syntax.Err.Error()
				}
			}
			return broken(path, at, detail)
		}
		end := int(dec.InputOffset())
		if dec.StackDepth() > maxDepth {
			return broken(dec.StackPointer(), end-1, "it is nested deeper than "+strconv.Itoa(maxDepth)+" levels")
		}
		if kind == '0' {
			if n, err := strconv.ParseFloat(string(raw), 64); err != nil || math.Abs(n) > maxNumber {
				return broken(
					dec.StackPointer(), end-len(raw), "it is beyond 2^53-1, which not every reader can represent",
				)
			}
		}
		if dec.StackDepth() > 0 {
			continue
		}
		if after := bytes.TrimLeft(doc[end:], " \t\r\n"); len(after) > 0 {
			return broken("", len(doc)-len(after), "something follows the document")
		}
		return nil
	}
}

// position is a place in a document, from 1; the column counts code points.
type position struct{ line, column int }

// positions returns the lines and columns of offsets, in one pass, because a document may be one long line.
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

// offsets returns the offsets of the values that JSON pointers refer to, or 0 for those that do not exist.
func offsets(doc []byte, pointers []string) map[string]int {
	at := make(map[string]int, len(pointers))
	for _, p := range pointers {
		at[p] = 0
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc))
	for {
		begin := len(doc) - len(bytes.TrimLeft(doc[dec.InputOffset():], " \t\r\n,:"))
		token, err := dec.ReadToken()
		if err != nil { // the end
			return at
		}
		of, length := dec.StackIndex(dec.StackDepth())
		if isName := of == '{' && length%2 == 1; isName || token.Kind() == '}' || token.Kind() == ']' {
			continue
		}
		pointer := string(dec.StackPointer())
		if known, asked := at[pointer]; asked && known == 0 {
			at[pointer] = begin
		}
	}
}

// rawType is the type of members that may be any JSON.
var rawType = reflect.TypeFor[json.RawMessage]()

// reader reads a document that is not [unreadable] into values, and records where its form is not that of a manifest.
type reader struct {
	dec     *jsontext.Decoder
	most    int     // of errs
	errs    []Error // their Column is an offset at first
	version *Error  // set if the format version is not supported
}

// fail records an error in the value that was read last, which begins at an offset.
func (r *reader) fail(at int, detail string) {
	if len(r.errs) < r.most {
		path := string(r.dec.StackPointer())
		r.errs = append(r.errs, Error{Status: statusMalformed, Path: path, Detail: detail, Column: at})
	}
}

// value reads a value of the form f into v. A value of the wrong type leaves v unchanged.
func (r *reader) value(v reflect.Value, f, of *form) {
	kind, want := typesOfJSON[r.dec.PeekKind()], kindOf(v.Type())
	to := v
	if v.Kind() == reflect.Pointer {
		to = reflect.New(v.Type().Elem()).Elem()
	}
	known := len(r.errs)
	var raw []byte
	if kind == want && (want == "object" || want == "array") {
		_, _ = r.dec.ReadToken()
		raw = []byte{'{'} // or '[': its content is read below
	} else {
		raw, _ = r.dec.ReadValue()
	}
	at := int(r.dec.InputOffset()) - len(raw)
	switch {
	case want == "":
		to.SetBytes(bytes.Clone(raw))
	case want == "array" && f.orOne && kind == "string":
		to.Set(reflect.ValueOf([]string{r.text(raw, at, of)}))
	case kind != want && (kind != "number" || want != "integer"):
		r.fail(at, "it should be of type "+want+", but is of type "+kind)
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
			r.fail(at, "it should be an integer without fraction or exponent")
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
	unquoted, _ := jsontext.AppendUnquote(nil, raw) // it is valid
	s := string(unquoted)
	if f == forms["version"] && !strings.HasPrefix(s, "1.") {
		detail := "the format version is " + quoted(s) + ", and only version 1 is supported"
		r.version = &Error{Status: statusVersion, Path: "/version", Detail: detail, Column: at}
	} else if why := f.refuses(s); why != "" {
		r.fail(at, why)
	}
	return s
}

func (r *reader) array(v reflect.Value, f, of *form, at int) {
	list := reflect.MakeSlice(reflect.SliceOf(v.Type().Elem()), 0, 0)
	n := 0
	for ; r.dec.PeekKind() != ']' && n < f.max; n++ {
		element := reflect.New(v.Type().Elem()).Elem()
		r.value(element, of, &form{})
		list = reflect.Append(list, element)
	}
	over := false
	for ; r.dec.PeekKind() != ']'; over = true {
		_ = r.dec.SkipValue()
	}
	_, _ = r.dec.ReadToken()
	switch {
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
	for r.dec.PeekKind() != '}' {
		token, _ := r.dec.ReadToken()
		name := token.String()
		if i := slices.IndexFunc(known, func(m member) bool { return m.name == name }); i >= 0 {
			seen[i] = true
			r.value(v.Field(known[i].index), known[i].form, known[i].of)
			continue
		}
		extra := v.FieldByName("Extra").Addr().Interface().(*Extra)
		if *extra == nil {
			*extra = Extra{}
		}
		raw, _ := r.dec.ReadValue()
		(*extra)[name] = json.RawMessage(bytes.Clone(raw))
	}
	_, _ = r.dec.ReadToken()
	for i, m := range known {
		if m.required && !seen[i] {
			r.fail(at, "its member "+m.name+" is missing")
		}
	}
}

// Canonical returns the manifest as it is served, hashed and signed: JSON in the form of RFC 8785, in which equal
// manifests are equal bytes. It fails if Parse would refuse the result, so that everything published can be read.
func (m *Manifest) Canonical() ([]byte, error) {
	b, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if _, err := Parse(b); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	err = (*jsontext.Value)(&b).Canonicalize()
	if err == nil && len(b) > MaxBytes { // it may grow: 1e9 is written with all its digits
		err = errors.New("it is larger than " + strconv.Itoa(MaxBytes) + " bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return b, nil
}

// MarshalJSON writes the manifest with its extra members, in the order of [Manifest]. [Manifest.Canonical] returns the
// published form.
func (m Manifest) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := writeValue(jsontext.NewEncoder(&b), reflect.ValueOf(m)); err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON calls Parse.
func (m *Manifest) UnmarshalJSON(b []byte) error {
	read, err := Parse(b)
	if err == nil {
		*m = *read
	}
	return err
}

// writeValue writes a value: for an object the members that are set or required, then the extra ones.
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

// form is what a value must look like beyond its Go type. Parse and the schema use the same forms, so that both refuse
// the same things; schema_test.go lists the exceptions.
type form struct {
	min, max int               // length of a string, value of a number, number of elements
	words    []string          // all permitted strings
	pattern  string            // of a string: a regular expression
	check    func(string) bool // of a string, for Parse; nil means the pattern
	says     string            // what pattern or check requires, in words
	orOne    bool              // a single element of an array may be written without brackets
	def      string            // name of its definition in the schema; empty if it is written inline
}

// forms are named by the form tags of the fields in manifest.go. A second name in a tag is the form of the elements.
var forms = map[string]*form{
	"version": matching(3, 11, `^1\.[0-9]{1,9}$`, "a version: 1, a dot and a number"),
	"agent": matching(1, maxName, `^[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$`,
		"a lower-case host, optionally with a port and a path"),
	"id": matching(1, maxID, `^[A-Za-z0-9._~-]{1,128}$`, "an id of letters, digits and ._~-").named("id"),
	// the manifest's own addresses, which can be fetched
	"web": matching(8, maxOwnURL, `^https?://[^\x00-\x20\x7f]+$`, "an http or https URL"),
	// Addresses of sources. Whether one may be fetched (another scheme, a private address) is for the verifier to
	// decide, source by source; a manifest is not malformed because one of its sources is a file.
	"url": matching(3, MaxURL, `^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f]+$`, "an absolute URL").named("url"),
	// The pattern does not check the length of months; Parse does.
	"time": {
		min: 20, max: 30, pattern: timePattern.String(), says: "a time in UTC, as 2006-01-02T15:04:05Z", def: "time",
		check: func(s string) bool { return !Time(s).Time().IsZero() || strings.HasPrefix(s, "0001-01-01T00:00:00") },
	},
	// SHA-256 hashes. Parse accepts other algorithms, and Problems reports that they are not supported.
	"hash": {
		min: 3, max: maxHash, pattern: `^sha256:[0-9a-f]{64}$`, check: isHash, says: saysHash, def: "hash",
	},
	"private_hash": { // optionally keyed
		min: 3, max: maxHash, pattern: `^(hmac-)?sha256:[0-9a-f]{64}$`, check: isHash, says: saysHash,
		def: "private_hash",
	},

	"name":       {min: 1, max: maxName},
	"tool":       {max: maxName},
	"title":      {max: MaxURL},
	"reference":  {min: 1, max: MaxURL}, // of a source: its URL or id
	"ref":        {min: 1, max: maxRef}, // of an output
	"text":       {min: 1, max: maxText},
	"exact":      {min: 1, max: maxExact},
	"around":     {max: maxAround},
	"reader":     {words: []string{ByPublisher, ByObserver}},
	"origin":     {words: []string{OriginProvider, OriginPublisher, OriginInferred}},
	"relation":   {words: []string{RelationSupports, RelationContradicts, RelationContext}},
	"confidence": {words: []string{ConfidenceHigh, ConfidenceMedium, ConfidenceLow, ConfidenceUnknown}},

	"natural": {max: maxInt},
	"number":  {min: 1, max: maxInt},
	"status":  {min: 100, max: 999},
	"score":   {max: 1},

	"sources":       {max: maxSources},
	"claims":        {max: maxClaims},
	"steps":         {max: maxSteps},
	"claim_sources": {min: 1, max: maxClaimSources},
	"refs":          {min: 1, max: maxSteps, orOne: true},
	"range":         {min: 2, max: 2, def: "range"},
}

var timePattern = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])` +
	`T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$`)

const saysHash = "a hash: sha256: and 64 lower-case hexadecimal digits"

func matching(least, most int, pattern, says string) *form {
	return &form{
		min: least, max: most, pattern: pattern, check: regexp.MustCompile(pattern).MatchString, says: says,
	}
}

func (f *form) named(def string) *form {
	f.def = def
	return f
}

// refuses returns what is wrong with a string, or "" if nothing is.
func (f *form) refuses(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case f.words != nil && !slices.Contains(f.words, s):
		return "it should be one of " + strings.Join(f.words, ", ")
	case f.words != nil:
	case n < f.min && f.check == nil:
		return "it is shorter than " + plural(f.min, "character")
	case n > f.max:
		return "it is longer than " + plural(f.max, "character")
	case f.check != nil && !f.check(s):
		return "it should be " + f.says
	}
	return ""
}

// otherHash matches hashes with an algorithm that this version does not have.
var otherHash = regexp.MustCompile(`^[A-Za-z0-9-]+:[A-Za-z0-9+/=_-]+$`)

func isHash(s string) bool {
	algorithm, sum, _ := strings.Cut(s, ":")
	if algorithm == "sha256" || algorithm == "hmac-sha256" {
		return len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
	}
	return otherHash.MatchString(s)
}

func isDigest(s string) bool { return strings.HasPrefix(s, "sha256:") && isHash(s) }

// isMadeOf reports whether s consists of ASCII letters, digits and the characters in others.
func isMadeOf(s, others string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(others, r)
	})
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// member is a field of one of the types in manifest.go that is a JSON member.
type member struct {
	name     string
	required bool
	index    int   // of the field
	form     *form // of the value
	of       *form // of the elements of an array
}

// members are the members of each type, in their usual order. Others are in the field Extra.
var members = membersOf(Manifest{}, Output{}, Source{}, Claim{}, ClaimSource{}, Excerpt{}, Step{})

func membersOf(structs ...any) map[reflect.Type][]member {
	all := map[reflect.Type][]member{}
	for _, s := range structs {
		t := reflect.TypeOf(s)
		for i := range t.NumField() {
			name, option, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			m := member{name: name, required: option == "", index: i, form: &form{}, of: &form{}}
			if tag := t.Field(i).Tag.Get("form"); tag != "" {
				of, elements, _ := strings.Cut(tag, ",")
				if m.form = forms[of]; m.form == nil || elements != "" && forms[elements] == nil {
					panic(fmt.Sprintf("%s.%s: there is no form %q", t, t.Field(i).Name, tag))
				}
				if elements != "" {
					m.of = forms[elements]
				}
			}
			all[t] = append(all[t], m)
		}
	}
	return all
}

// kindOf returns the JSON type of a Go type, or "" if any JSON is allowed.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == rawType:
		return ""
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "array"
	case t.Kind() == reflect.Int:
		return "integer"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "boolean"
	}
	return "string"
}
