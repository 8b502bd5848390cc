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

// minKey is the length in bytes from which a key is looked for. Anything shorter is no real key, and may be a word.
const minKey = 8

// Keys are the keys that a call was made with, in all forms in which its response may repeat them: with their scheme,
// without it, as a part of a URL, of HTML and of a JSON string; longer ones first. The zero value has none.
type Keys []string

// KeysOf returns the keys in the headers of requests, whose names are as net/http writes them.
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

// formsOf returns the forms of the key in the value of a header; nil: it is too short to be one.
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
	if query == key && path == key { // it has nothing to escape
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

// withSlashes returns an escaped URL whose slashes are not escaped, as some leave them.
func withSlashes(escaped string) string { return strings.ReplaceAll(escaped, "%2F", "/") }

// lowerEscapes returns an escaped URL with lower-case digits in its escapes: %2f for %2F.
func lowerEscapes(escaped string) string {
	b := []byte(escaped)
	for i := range b {
		if b[i] == '%' {
			copy(b[i:], bytes.ToLower(b[i:min(i+3, len(b))]))
		}
	}
	return string(b)
}

// inJSON returns how encoding/json writes s in a string.
func inJSON(s string) string {
	b, _ := json.Marshal(s) // a string can always be encoded
	return string(b[1 : len(b)-1])
}

// Hide returns words with an ellipsis in the place of each key.
func (k Keys) Hide(words string) string {
	for _, key := range k {
		words = strings.ReplaceAll(words, key, "…")
	}
	return words
}

// In reports whether b has a key.
func (k Keys) In(b []byte) bool {
	return slices.ContainsFunc(k, func(key string) bool { return bytes.Contains(b, []byte(key)) })
}

// Mask returns v with the keys masked in all its exported strings and bytes, and whether there were any. Each byte of a
// key becomes an asterisk, so that offsets stay right. What v points to is not changed, but copied.
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

// MaskText masks the keys in s, as [Mask] does. More says that further text follows s: then masked is without the end
// of s that may be the beginning of a key, and withheld is the length of that end, in bytes.
func (k Keys) MaskText(s string, more bool) (masked string, withheld int) {
	var b []byte // nil: nothing was masked so far
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

// match returns the length of the longest key that s begins with; 0: there is none. Open says that s may be the
// beginning of a longer one.
func (k Keys) match(s string) (n int, open bool) {
	for _, key := range k { // the longest first
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

// mask returns v masked, or v itself if it has no key. Fields that are not exported, such as those of times, are left
// alone.
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
			if !v.Field(i).CanInterface() { // it is not exported
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
