package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// minKey is the smallest length of a key in bytes. Anything shorter is no real key, and may be a word.
const minKey = 8

// Keys are the keys of a call, in every form in which its response may repeat them: with and without their scheme, and
// escaped for URLs, HTML and JSON strings; longest first. The zero value has none.
type Keys []string

// KeysOf returns the keys in request headers with canonical names.
func KeysOf(headers ...map[string][]string) Keys {
	var keys Keys
	for _, h := range headers {
		for _, name := range KeyHeaders() {
			for _, value := range h[name] {
				keys = append(keys, formsOf(value)...)
			}
		}
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Or(len(y)-len(x), strings.Compare(x, y)) })
	return slices.Compact(keys)
}

// formsOf returns the forms of the key in a header's value, or nil if it is too short to be a key.
func formsOf(value string) []string {
	key := value
	if i := strings.IndexAny(value, " \t"); i > 0 {
		key = strings.TrimSpace(value[i:])
	}
	if len(key) < minKey {
		return nil
	}
	forms := []string{value, key}
	query, path := url.QueryEscape(key), url.PathEscape(key)
	if query == key && path == key { // nothing to escape
		return forms
	}
	for _, form := range []string{
		key, query, path, withSlashes(query), withSlashes(path), lowerEscapes(query), lowerEscapes(path),
		lowerEscapes(withSlashes(query)), lowerEscapes(withSlashes(path)), html.EscapeString(key),
	} {
		forms = append(forms, form, strings.ReplaceAll(form, "/", `\/`), inJSON(form))
	}
	return forms
}

// withSlashes returns an escaped URL with its slashes unescaped, as some programs write them.
func withSlashes(escaped string) string { return strings.ReplaceAll(escaped, "%2F", "/") }

// lowerEscapes returns an escaped URL with lower-case escapes: %2f for %2F.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:min(i+3, len(b))]))
		}
	}
	return string(b)
}

// inJSON returns s as encoding/json writes it in a string.
func inJSON(s string) string {
	b, _ := json.Marshal(s) // strings always encode
	return string(b[1 : len(b)-1])
}

// Hide returns s with each key replaced by an ellipsis.
func (k Keys) Hide(s string) string {
	for _, key := range k {
		s = strings.ReplaceAll(s, key, "…")
	}
	return s
}

// In reports whether b contains a key.
func (k Keys) In(b []byte) bool {
	return slices.ContainsFunc(k, func(key string) bool { return bytes.Contains(b, []byte(key)) })
}

// Mask returns v with the keys masked in all its exported strings and bytes, and whether there were any. Each byte of a
// key becomes an asterisk, so that offsets stay valid. Values that v points to are copied, not changed.
func Mask[T any](k Keys, v T) (masked T, found bool) {
	if len(k) == 0 {
		return v, false
	}
	w, found := k.mask(reflect.ValueOf(&v).Elem())
	if !found {
		return v, false
	}
	return w.Interface().(T), true
}

// MaskText masks the keys in s, as [Mask] does. If more is true, further text follows s: masked then ends before a
// suffix of s that may be the beginning of a key, and withheld is the length of that suffix in bytes.
func (k Keys) MaskText(s string, more bool) (masked string, withheld int) {
	var b []byte // nil until something is masked
	for i := 0; i < len(s); {
		n, open := k.match(s[i:])
		if open && more {
			withheld = len(s) - i
			break
		}
		if n > 0 && b == nil {
			b = []byte(s)
		}
		for j := range n {
			b[i+j] = '*'
		}
		i += max(n, 1)
	}
	if b != nil {
		s = string(b)
	}
	return s[:len(s)-withheld], withheld
}

// match returns the length of the longest key that s begins with, or 0. open means that s may be the beginning of a
// longer one.
func (k Keys) match(s string) (n int, open bool) {
	for _, key := range k { // longest first
		switch {
		case key[0] != s[0]:
		case strings.HasPrefix(s, key):
			return len(key), open
		case strings.HasPrefix(key, s):
			open = true
		}
	}
	return 0, open
}

// mask returns v masked, or v itself if it contains no key. Unexported fields, such as those of times, are ignored.
func (k Keys) mask(v reflect.Value) (masked reflect.Value, found bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		if to, found := k.mask(v.Elem()); found {
			p := reflect.New(v.Type().Elem())
			p.Elem().Set(to)
			return p, true
		}
	case reflect.Struct:
		masked = v
		for i := range v.NumField() {
			if !v.Field(i).CanInterface() { // unexported
				continue
			}
			field, changed := k.mask(v.Field(i))
			if !changed {
				continue
			}
			if !found {
				masked, found = reflect.New(v.Type()).Elem(), true
				masked.Set(v)
			}
			masked.Field(i).Set(field)
		}
		return masked, found
	case reflect.String:
		if s, _ := k.MaskText(v.String(), false); s != v.String() {
			return reflect.ValueOf(s).Convert(v.Type()), true
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if !k.In(v.Bytes()) {
				return v, false
			}
			s, _ := k.MaskText(string(v.Bytes()), false)
			return reflect.ValueOf([]byte(s)).Convert(v.Type()), true
		}
		masked = v
		for i := range v.Len() {
			item, changed := k.mask(v.Index(i))
			if !changed {
				continue
			}
			if !found {
				masked, found = reflect.MakeSlice(v.Type(), v.Len(), v.Len()), true
				reflect.Copy(masked, v)
			}
			masked.Index(i).Set(item)
		}
		return masked, found
	case reflect.Map:
		return k.maskMap(v)
	default:
	}
	return v, false
}

func (k Keys) maskMap(v reflect.Value) (masked reflect.Value, found bool) {
	masked = reflect.MakeMapWithSize(v.Type(), v.Len())
	for name, value := range v.Seq2() {
		newName, changedName := k.mask(name)
		newValue, changedValue := k.mask(value)
		masked.SetMapIndex(newName, newValue)
		found = found || changedName || changedValue
	}
	if !found {
		return v, false
	}
	return masked, true
}
