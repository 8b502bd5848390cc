package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// attributes are the attributes of a span, an event or a resource. A value is a string, bool, int64, float64, []any,
// map[string]any or nil. Bytes are kept in base64, as OTLP's JSON has them.
type attributes map[string]any

// rawSpan is a span as OTLP has it, without what no trail needs.
type rawSpan struct {
	trace, id, parent string // lower-case hex; parent may be empty
	name              string
	start, end        uint64 // nanoseconds since 1970; 0: not said
	attrs             attributes
	events            []rawEvent
	failed            bool
	message           string // of the status
}

type rawEvent struct {
	name  string
	attrs attributes
}

// budget bounds what one span may hold.
type budget struct{ values, depth int }

var (
	errSpanBytes = fmt.Errorf("it has more than %d bytes", MaxSpanBytes)
	errValues    = fmt.Errorf("it has more than %d values", MaxSpanValues)
	errDepth     = fmt.Errorf("its values are nested more than %d deep", MaxSpanDepth)
	errIDs       = errors.New("its trace id or its span id is missing or has another form than OTLP's")
)

// checkSpanSize bounds what reading a span takes before it is looked into.
func checkSpanSize(b []byte) error {
	if len(b) > MaxSpanBytes {
		return errSpanBytes
	}
	return nil
}

func newBudget() *budget { return &budget{values: MaxSpanValues} }

func (b *budget) take() error {
	if b.values--; b.values < 0 {
		return errValues
	}
	return nil
}

// nested runs do one level deeper.
func (b *budget) nested(do func() error) error {
	if b.depth++; b.depth > MaxSpanDepth {
		return errDepth
	}
	err := do()
	b.depth--
	return err
}

// check reports what keeps s from being a span at all.
func (s *rawSpan) check() error {
	if !isID(s.trace, 32) || !isID(s.id, 16) || s.parent != "" && !isHex(s.parent, 16) {
		return errIDs
	}
	if !isID(s.parent, 16) {
		s.parent = "" // zeros say that there is none
	}
	return nil
}

func isHex(s string, size int) bool {
	return len(s) == size && strings.Trim(s, "0123456789abcdef") == ""
}

// isID reports whether s is an id of OpenTelemetry: hex, and not all zero.
func isID(s string, size int) bool { return isHex(s, size) && strings.Trim(s, "0") != "" }

// text returns the first of the attributes that is a text or a number and not empty.
func (a attributes) text(keys ...string) string {
	for _, key := range keys {
		if s := scalar(a[key]); s != "" {
			return s
		}
	}
	return ""
}

// scalar returns a text or a number as text; empty for everything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		return v.String()
	}
	return ""
}

// number returns v as a finite number.
func number(v any) (float64, bool) {
	var f float64
	switch v := v.(type) {
	case int64:
		f = float64(v)
	case float64:
		f = v
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			return 0, false
		}
		f = n
	case string: // instrumentations in languages without types
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return 0, false
		}
		f = n
	default:
		return 0, false
	}
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// whole returns v as a whole number that is not negative.
func whole(v any) (int, bool) {
	f, ok := number(v)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int(f), true
}

// structured returns the value of the first attribute that there is, with JSON in a string taken for what it says: the
// conventions allow either form.
func (a attributes) structured(keys ...string) any {
	for _, key := range keys {
		if v, ok := a[key]; ok && v != "" {
			return structuredValue(v)
		}
	}
	return nil
}

func structuredValue(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if parsed, ok := parseJSON(s); ok {
		return parsed
	}
	return s
}

// parseJSON reads an object, an array or a string of JSON; other JSON is text that happens to look so.
func parseJSON(s string) (any, bool) {
	t := strings.TrimLeft(s, " \t\r\n")
	if t == "" || !strings.ContainsRune(`{["`, rune(t[0])) || tooDeep(t) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(t))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(strings.TrimRight(t, " \t\r\n"))) {
		return nil, false
	}
	return v, true
}

// tooDeep reports whether JSON is nested deeper than a span's values may be. What it says of other text means nothing.
func tooDeep(s string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxSpanDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// list returns the items of a list that was flattened into attributes: prefix.0.name, prefix.1.name, … in their order.
// Nil: there are none.
func (a attributes) list(prefix string) []attributes {
	type item struct {
		index int
		attrs attributes
	}
	var items []*item
	byIndex := map[int]*item{}
	for key, value := range a {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok || !strings.HasPrefix(rest, ".") {
			continue
		}
		index, name, _ := strings.Cut(rest[1:], ".")
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 {
			continue
		}
		it := byIndex[n]
		if it == nil {
			it = &item{n, attributes{}}
			byIndex[n] = it
			items = append(items, it)
		}
		it.attrs[name] = value
	}
	if items == nil {
		return nil
	}
	slices.SortFunc(items, func(x, y *item) int { return cmp.Compare(x.index, y.index) })
	list := make([]attributes, len(items))
	for i, it := range items {
		list[i] = it.attrs
	}
	return list
}

// members returns v as an object.
func members(v any) attributes {
	switch v := v.(type) {
	case map[string]any:
		return v
	case attributes:
		return v
	}
	return nil
}

// encodeValue returns v as JSON: compact, without escapes for HTML, members by name.
func encodeValue(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(finite(v)); err != nil {
		return nil // nothing of what was read does not go into JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// finite replaces the numbers that JSON does not have by their names.
func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		if !slices.ContainsFunc(v, isOdd) {
			return v
		}
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = finite(x)
		}
		return out
	case map[string]any:
		out := maps.Clone(v)
		for name, x := range v {
			out[name] = finite(x)
		}
		return out
	}
	return v
}

// isOdd reports whether [finite] may change v.
func isOdd(v any) bool {
	switch v.(type) {
	case float64, []any, map[string]any:
		return true
	}
	return false
}
