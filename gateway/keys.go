package gateway

import (
	"bytes"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// minKey is how long a key is at least: what is shorter keeps nobody out, and may be a word.
const minKey = 8

// keyForms returns the keys in the header of a request in all forms in which a response may repeat them: with their
// scheme, without it, and as a part of a URL.
func keyForms(h http.Header) []string {
	var forms []string
	for _, name := range call.KeyHeaders() {
		for _, value := range h.Values(name) {
			key := value
			if scheme, rest, ok := strings.Cut(value, " "); ok && scheme != "" {
				key = strings.TrimSpace(rest)
			}
			if len(key) >= minKey {
				forms = append(forms, value, key, url.QueryEscape(key), url.PathEscape(key))
			}
		}
	}
	return forms
}

// HideKeys returns words of a provider without the keys in the header of the request that they are about: some repeat
// in an error what they were sent, and their words are kept, and shown to people who have other keys.
func HideKeys(h http.Header, words string) string {
	for _, key := range keyForms(h) {
		words = strings.ReplaceAll(words, key, "…")
	}
	return words
}

// maskKeys takes the keys of the call out of all that is to be kept of it, and reports whether there were any. The call
// must not have been encoded for anybody else. Each byte of a key becomes an asterisk, so that offsets stay right.
func (e *exchange) maskKeys(c *store.Call) (*store.Call, bool) {
	keys := keyForms(watch.Keys(e.in, e.provider()))
	record, err := c.Encode() // which has all of it
	if err != nil {
		return c, false
	}
	found := false
	for _, key := range keys {
		found = found || bytes.Contains(record, []byte(key))
	}
	if !found {
		return c, false
	}
	m := masker(keys)
	m.mask(reflect.ValueOf(c.Answer))
	m.mask(reflect.ValueOf(&e.prompt))
	masked := e.call(c.Answer, c.Duration)
	masked.Publish = false // a verifier would compare it with the words that the client got
	return masked, true
}

// masker is what is to be masked.
type masker []string

func (m masker) text(s string) string {
	for _, key := range m {
		if strings.Contains(s, key) {
			s = strings.ReplaceAll(s, key, strings.Repeat("*", len(key)))
		}
	}
	return s
}

// mask replaces what is to be masked in all strings and bytes that v has. Values that are no data of ours, such as
// times, have none that can be set.
func (m masker) mask(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.CanInterface() {
			m.mask(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			m.mask(field)
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(m.text(v.String()))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if v.CanSet() && !v.IsNil() {
				v.SetBytes([]byte(m.text(string(v.Bytes()))))
			}
			return
		}
		for i := range v.Len() {
			m.mask(v.Index(i))
		}
	case reflect.Map:
		if !v.CanSet() || v.IsNil() {
			return
		}
		masked := reflect.MakeMap(v.Type())
		for k, value := range v.Seq2() {
			newKey, newValue := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			newKey.Set(k)
			newValue.Set(value)
			m.mask(newKey)
			m.mask(newValue)
			masked.SetMapIndex(newKey, newValue)
		}
		v.Set(masked)
	default:
	}
}
