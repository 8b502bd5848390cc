package manifest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// write returns an announcement, which check has seen, as one member of the field.
func write(a *Announcement, f Form) string {
	var b strings.Builder
	param := func(name, quote, value string) {
		sep := "; "
		if f == List {
			sep = ";"
		}
		b.WriteString(sep + name + "=" + quote + value + quote)
	}
	switch {
	case f == List && a.More:
		b.WriteString(moreToken)
	case f == List:
		b.WriteString(`"` + a.URL + `"`)
	case a.More:
		b.WriteString("<" + moreURN + ">")
	default:
		b.WriteString("<" + a.URL + ">")
	}
	if a.Manifest != "" {
		param("manifest", `"`, a.Manifest)
	}
	if a.Digest != nil {
		digest := ":" + base64.StdEncoding.EncodeToString(a.Digest) + ":"
		if f == List {
			param("digest", "", digest)
		} else {
			param("digest", `"`, digestName+"="+digest)
		}
	}
	if a.ID != "" {
		param("id", `"`, a.ID)
	}
	if a.Count > 0 && f == List {
		param("count", "", strconv.Itoa(a.Count))
	} else if a.Count > 0 {
		param("count", `"`, strconv.Itoa(a.Count))
	}
	return b.String()
}

// readList reads the form List.
func readList(values []string) ([]Announcement, error) {
	members, err := unmarshal(values)
	if err != nil {
		return nil, fmt.Errorf("it is neither a list of <URL> nor one of RFC 9651: %w", err)
	}
	var list []Announcement
	for _, m := range members {
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			continue // an inner list is somebody else's extension
		}
		var a Announcement
		switch value := item.Value.(type) {
		case string:
			a.URL = value
		case httpsfv.Token:
			if a.More = value == moreToken; !a.More {
				continue
			}
		default:
			continue
		}
		if err := listParams(&a, item.Params); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func unmarshal(values []string) (list httpsfv.List, err error) {
	defer func() {
		if r := recover(); r != nil {
			list, err = nil, fmt.Errorf("reading it: %v", r)
		}
	}()
	return httpsfv.UnmarshalList(values)
}

func listParams(a *Announcement, params *httpsfv.Params) error {
	for _, name := range params.Names() {
		value, _ := params.Get(name)
		known := true
		switch name {
		case "manifest":
			a.Manifest, known = value.(string)
			known = known && a.Manifest != ""
		case "id":
			a.ID, known = value.(string)
		case "digest":
			a.Digest, known = value.([]byte)
			known = known && a.Digest != nil
		case "count":
			var n int64
			n, known = value.(int64)
			a.Count = int(n)
		}
		if !known {
			return errors.New("the parameter " + name + " is of another type")
		}
	}
	return nil
}

// linkReader reads the form Link. Empty members, as of a line that ends in a comma, are none (RFC 9110, section 5.6.1).
type linkReader struct{ rest string }

func readLinks(value string) ([]Announcement, error) {
	r := &linkReader{rest: value}
	var list []Announcement
	for {
		for r.take(",") {
		}
		if r.rest == "" {
			return list, nil
		}
		a, err := r.member()
		if err != nil {
			return nil, err
		}
		list = append(list, a)
		if r.space(); r.rest != "" && r.rest[0] != ',' {
			return nil, errors.New("a comma is missing between two members")
		}
	}
}

func (r *linkReader) space() { r.rest = strings.TrimLeft(r.rest, " \t") }

// take takes what stands next, after white space and before it.
func (r *linkReader) take(what string) bool {
	r.space()
	rest, found := strings.CutPrefix(r.rest, what)
	if found {
		r.rest = rest
		r.space()
	}
	return found
}

func (r *linkReader) member() (Announcement, error) {
	var a Announcement
	if !r.take("<") {
		return a, errors.New("a member does not begin with <")
	}
	target, rest, closed := strings.Cut(r.rest, ">")
	if !closed {
		return a, errors.New("a member has no >")
	}
	r.rest = rest
	if a.More = target == moreURN; !a.More {
		a.URL = target
	}
	seen := make(map[string]bool)
	for r.take(";") {
		if r.rest == "" || r.rest[0] == ',' || r.rest[0] == ';' {
			continue // RFC 8288 lets an empty parameter be
		}
		name, value, err := r.param()
		if err != nil {
			return a, err
		}
		if seen[name] && slices.Contains([]string{"manifest", "digest", "id", "count"}, name) {
			return a, errors.New("the parameter " + name + " stands there twice")
		}
		seen[name] = true
		if err := linkParam(&a, name, value); err != nil {
			return a, err
		}
	}
	return a, nil
}

// param reads a parameter: its name in small letters, and its value without quotes.
func (r *linkReader) param() (name, value string, err error) {
	if name = strings.ToLower(r.token()); name == "" {
		return "", "", errors.New("a parameter has no name")
	}
	if !r.take("=") {
		return name, "", nil
	}
	if !strings.HasPrefix(r.rest, `"`) {
		if value = r.token(); value == "" {
			err = errors.New("the parameter " + name + " has no value")
		}
		return name, value, err
	}
	var b strings.Builder
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; c {
		case '"':
			r.rest = r.rest[i+1:]
			return name, b.String(), nil
		case '\\':
			if i++; i < len(r.rest) {
				b.WriteByte(r.rest[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a quoted value has no end")
}

// token takes the characters of a token of RFC 9110.
func (r *linkReader) token() string {
	n := 0
	for n < len(r.rest) && isMadeOf(r.rest[n:n+1], "!#$%&'*+-.^_`|~") {
		n++
	}
	token := r.rest[:n]
	r.rest = r.rest[n:]
	return token
}

func linkParam(a *Announcement, name, value string) error {
	switch name {
	case "manifest":
		if a.Manifest = value; value == "" {
			return errors.New("the manifest's URL is empty")
		}
	case "id":
		a.ID = value
	case "count":
		count, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return errors.New("the count is no number")
		}
		a.Count = int(count)
	case "digest":
		digest, err := readDigest(value)
		if err != nil {
			return fmt.Errorf("the digest is not as RFC 9530 has it: %w", err)
		}
		a.Digest = digest
	}
	return nil
}

// readDigest returns the SHA-256 of a value of Content-Digest's form; nil if it has other ones only.
func readDigest(value string) (digest []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			digest, err = nil, fmt.Errorf("reading it: %v", r)
		}
	}()
	sums, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		return nil, err
	}
	sum, found := sums.Get(digestName)
	item, _ := sum.(httpsfv.Item)
	digest, isBytes := item.Value.([]byte)
	if found && (!isBytes || len(digest) == 0) {
		return nil, errors.New(digestName + " is no sequence of bytes")
	}
	return digest, nil
}
