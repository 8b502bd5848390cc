package otel

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// attributes are the attributes of a span, an event or a resource. A value is a string, bool, int64, float64, []any,
// map[string]any or nil. Bytes are kept in base64, as OTLP's JSON has them.
type attributes map[string]any

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
	return f, isFinite(f)
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

// tooDeep reports whether JSON is nested deeper than a span's values may be.
func tooDeep(s string) bool {
	depth, _ := nesting(s)
	return depth > MaxSpanDepth
}

// nesting returns how deep JSON is nested, and how many objects it has. What it returns of other text means nothing.
func nesting(s string) (deepest, objects int) {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
			if c == '{' {
				objects++
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, objects
}

// list returns the items of a list that was flattened into attributes: prefix.0.name, prefix.1.name, … in their order.
// Nil: there are none.
func (a attributes) list(prefix string) []attributes {
	items := map[int]attributes{}
	for key, value := range a {
		rest, ok := strings.CutPrefix(key, prefix+".")
		if !ok {
			continue
		}
		index, name, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 {
			continue
		}
		if items[n] == nil {
			items[n] = attributes{}
		}
		items[n][name] = value
	}
	var list []attributes
	for _, n := range slices.Sorted(maps.Keys(items)) {
		list = append(list, items[n])
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
		if !isFinite(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = finite(x)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			out[name] = finite(x)
		}
		return out
	}
	return v
}
