package manifest

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
)

// HeaderName is the name of the header or trailer field that announces sources.
const HeaderName = "Citation-Source"

// The limits of the field. Writers announce what they leave out with a last member that has More.
const (
	maxHeaderMembers = 64       // written
	maxHeaderBytes   = 6144     // written
	MaxHeaderRead    = 16 << 10 // bytes that are read, for all lines of the field together

	maxCount = 999_999_999_999_999 // the largest integer of RFC 9651
)

// The names of things without an address.
const (
	SourceURN = "urn:ibid:src:" // followed by an id: a source that cannot be fetched
	moreURN   = "urn:ibid:more" // there are more sources, in the form Link
	moreToken = "more"          // the same in the form List
)

// digestName is the name of SHA-256 in RFC 9530.
const digestName = "sha-256"

// errHeader means that a Citation-Source field has neither form or exceeds the limits (status header-malformed).
var errHeader = errors.New("malformed " + HeaderName + " field")

// Announcement is one member of a Citation-Source field: a consulted source, or a note that there are more.
type Announcement struct {
	// of the source: absolute http or https, or SourceURN and an id; empty if More
	URL      string `json:"url,omitempty"`
	Manifest string `json:"manifest,omitempty"` // URL of the manifest; empty at level 1
	ID       string `json:"id,omitempty"`       // the source's id in the manifest; may be empty
	Digest   []byte `json:"digest,omitempty"`   // SHA-256 of the manifest's body; nil if not yet known
	More     bool   `json:"more,omitempty"`     // there are, or may be, more sources: see the manifest
	Count    int    `json:"count,omitempty"`    // how many more; 0 if not yet known
	Invalid  string `json:"invalid,omitempty"`  // why a member that was read is void: it announces one more source
}

// Form is the syntax of a Citation-Source field. Readers accept both.
type Form string

// The forms of the field.
const (
	Link Form = "link" // <URL>; manifest="…", as Link fields (RFC 8288) are written. The empty Form, too
	List Form = "list" // "URL";manifest="…", a List of RFC 9651
)

// check returns an error if an announcement is invalid. It is used both for reading and for writing, so that nothing
// unreadable is written, least of all a line break.
func (a *Announcement) check() error {
	if !a.More || a.URL != "" {
		if err := checkSourceURL(a.URL); err != nil {
			return fmt.Errorf("the source's URL: %w", err)
		}
	}
	switch {
	case a.Count < 0 || int64(a.Count) > maxCount:
		return errors.New("the count is out of range")
	case a.ID != "" && forms["id"].refuses(a.ID) != "":
		return errors.New("the id has characters other than letters, digits and ._~-")
	case a.Digest != nil && len(a.Digest) != 32:
		return errors.New("the digest does not have 32 bytes")
	case a.Manifest == "":
		return nil
	}
	if err := checkWebURL(a.Manifest); err != nil {
		return fmt.Errorf("the manifest's URL: %w", err)
	}
	return nil
}

// checkSourceURL returns an error unless address can be a source's URL in the field.
func checkSourceURL(address string) error {
	id, urn := strings.CutPrefix(address, SourceURN)
	switch {
	case !urn:
		return checkWebURL(address)
	case id == "" || len(address) > MaxURL || strings.Contains(id, "#"):
		return errors.New(SourceURN + " is not followed by an id")
	}
	return checkSent(address)
}

// checkWebURL returns an error unless address is a URL that can be fetched, as it is sent: absolute, http or https,
// without user name and fragment.
func checkWebURL(address string) error {
	if err := checkSent(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return errors.New("it is neither an http nor an https URL")
	case u.Hostname() == "":
		return errors.New("it has no host")
	case u.User != nil:
		return errors.New("it has a user name")
	case strings.Contains(address, "#"):
		return errors.New("it has a fragment")
	case len(address) > MaxURL:
		return errors.New("it is longer than " + plural(MaxURL, "character"))
	}
	return nil
}

// checkSent refuses characters that a URL on the wire cannot have.
func checkSent(address string) error {
	for _, c := range []byte(address) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`<>"\`, c) >= 0 {
			return errors.New("it has characters that have to be percent-encoded")
		}
	}
	return nil
}

// FormatHeader returns the field's value for the list, with at most maxHeaderMembers and maxHeaderBytes. Fragments of
// URLs are left out. Members that do not fit, or cannot be written (URLs with another scheme or invalid characters),
// are counted in a last member that has More, one for each manifest. An empty list gives "".
func FormatHeader(list []Announcement, f Form) string {
	var members []string
	var written []Announcement
	rest := &remainder{form: f}
	for i := range list {
		a := list[i]
		a.URL = withoutFragment(a.URL)
		switch {
		case a.More:
			rest.add(&a)
		case a.check() != nil:
			rest.add(&Announcement{Manifest: a.Manifest, Count: 1})
		default:
			members, written = append(members, write(&a, f)), append(written, a)
		}
	}
	n := min(len(members), maxHeaderMembers)
	for _, a := range written[n:] {
		rest.add(&Announcement{Manifest: a.Manifest, Digest: a.Digest, Count: 1})
	}
	for ; ; n-- {
		all := append(slices.Clone(members[:n]), rest.members()...)
		if value := strings.Join(all, ", "); len(all) <= maxHeaderMembers && len(value) <= maxHeaderBytes {
			return value
		}
		if n == 0 {
			return strings.Join(rest.first(), ", ")
		}
		rest.add(&Announcement{Manifest: written[n-1].Manifest, Digest: written[n-1].Digest, Count: 1})
	}
}

// remainder counts the members that a field leaves out, by manifest.
type remainder struct {
	form Form
	list []Announcement
}

func (r *remainder) add(a *Announcement) {
	a.More, a.URL, a.ID = true, "", ""
	if a.check() != nil { // its manifest cannot be fetched
		a.Manifest, a.Digest, a.Count = "", nil, max(a.Count, 0)
	}
	i := slices.IndexFunc(r.list, func(b Announcement) bool { return b.Manifest == a.Manifest })
	switch {
	case i < 0:
		r.list = append(r.list, *a)
	case a.Count == 0 || r.list[i].Count == 0 || int64(a.Count)+int64(r.list[i].Count) > maxCount: // it stays unknown
		r.list[i].Count = 0
	default:
		r.list[i].Count += a.Count
	}
}

func (r *remainder) members() []string {
	var members []string
	for i := range r.list {
		members = append(members, write(&r.list[i], r.form))
	}
	return members
}

// first returns as many members as fit: rather than write a field that is refused, it leaves out whole manifests.
func (r *remainder) first() []string {
	members := r.members()
	length := 0
	for i := range members {
		if length += len(members[i]) + len(", "); i == maxHeaderMembers || length > maxHeaderBytes {
			return members[:i]
		}
	}
	return members
}

// SetHeader sets the field in h, or removes it if there is nothing to announce.
func SetHeader(h http.Header, f Form, list ...Announcement) {
	if value := FormatHeader(list, f); value != "" {
		h.Set(HeaderName, value)
	} else {
		h.Del(HeaderName)
	}
}

// ParseHeader reads the field's values, one for each line, of header and trailer together, and returns the union of
// what they announce, without duplicates. Unknown parameters are ignored; no values mean no announcements. All lines
// must have the same form. A malformed member voids itself: it has only Invalid, and More, since what it announces is
// unknown. The field is malformed if its members cannot be told apart, or none of them is valid.
func ParseHeader(values []string) ([]Announcement, error) {
	value := strings.Join(values, ", ")
	first := strings.TrimLeft(value, " \t,")
	if len(value) > MaxHeaderRead {
		return nil, fmt.Errorf("%w: it is longer than %s", errHeader, plural(MaxHeaderRead, "byte"))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
		return nil, fmt.Errorf("%w: it has non-ASCII or control characters", errHeader)
	}
	var list []Announcement
	var err error
	switch {
	case first == "":
		return nil, nil
	case first[0] == '<':
		list, err = readLinks(value)
	default:
		list, err = readList(values)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errHeader, err)
	}
	var union []Announcement
	var invalid error
	seen := make(map[string]bool)
	valid := len(list) == 0
	for i := range list {
		a := &list[i]
		if err := a.invalid(); err != nil {
			invalid = cmp.Or(invalid, err)
			union = append(union, Announcement{More: true, Count: 1, Invalid: err.Error()})
			continue
		}
		valid = true
		if key := write(a, Link); !seen[key] {
			seen[key] = true
			union = append(union, *a)
		}
	}
	if !valid {
		return nil, fmt.Errorf("%w: %w", errHeader, invalid)
	}
	return union, nil
}

// invalid returns why a member that was read is void, or nil.
func (a *Announcement) invalid() error {
	if a.Invalid != "" {
		return errors.New(a.Invalid)
	}
	return a.check()
}

// write returns an announcement, which must have passed check, as one member of the field.
func write(a *Announcement, f Form) string {
	item, link := httpsfv.NewItem(a.URL), "<"+a.URL+">"
	if a.More {
		item, link = httpsfv.NewItem(httpsfv.Token(moreToken)), "<"+moreURN+">"
	}
	add := func(name string, value any, text string) {
		item.Params.Add(name, value)
		link += "; " + name + `="` + text + `"`
	}
	if a.Manifest != "" {
		add("manifest", a.Manifest, a.Manifest)
	}
	if a.Digest != nil {
		add("digest", a.Digest, digestName+"=:"+base64.StdEncoding.EncodeToString(a.Digest)+":")
	}
	if a.ID != "" {
		add("id", a.ID, a.ID)
	}
	if a.Count > 0 {
		add("count", int64(a.Count), strconv.Itoa(a.Count))
	}
	if f != List {
		return link
	}
	member, _ := httpsfv.Marshal(item) // cannot fail after check
	return member
}

// readList reads the form List.
func readList(values []string) ([]Announcement, error) {
	members, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return nil, fmt.Errorf("it is neither a list of <URL> nor a list of RFC 9651: %w", err)
	}
	var list []Announcement
	for _, m := range members {
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			continue // an inner list is an extension of others
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
		for _, name := range item.Params.Names() {
			if value, _ := item.Params.Get(name); !a.setParam(name, value) {
				a.Invalid = "the parameter " + name + " has the wrong type"
			}
		}
		list = append(list, a)
	}
	return list, nil
}

// setParam sets the field of a parameter, and returns false if the value has the wrong type.
func (a *Announcement) setParam(name string, value any) (known bool) {
	switch name {
	case "manifest":
		a.Manifest, known = value.(string)
		return known && a.Manifest != ""
	case "id":
		a.ID, known = value.(string)
	case "digest":
		a.Digest, known = value.([]byte)
		return known && a.Digest != nil
	case "count":
		var n int64
		n, known = value.(int64)
		a.Count = int(n)
	default:
		return true
	}
	return known
}

// linkReader reads the form Link. Empty members, as after a trailing comma, are ignored (RFC 9110, section 5.6.1).
type linkReader struct{ rest string }

func readLinks(value string) ([]Announcement, error) {
	r := &linkReader{rest: value}
	var list []Announcement
	for {
		for r.accept(",") {
		}
		if r.rest == "" {
			return list, nil
		}
		if r.rest[0] == '"' {
			return nil, errors.New("it has members of both forms")
		}
		begin := r.rest
		a, err := r.member()
		if r.space(); err == nil && r.rest != "" && r.rest[0] != ',' {
			err = errors.New("a comma is missing between two members")
		}
		if err != nil {
			a.Invalid = err.Error()
			if r.rest = begin; !r.skip() {
				return nil, err
			}
		}
		list = append(list, a)
	}
}

// skip skips a malformed member, and returns false if it has no end: a bracket or quotation mark is not closed.
func (r *linkReader) skip() bool {
	for i, open := 0, byte(0); ; i++ {
		switch {
		case i >= len(r.rest):
			r.rest = ""
			return open == 0
		case open == '"' && r.rest[i] == '\\':
			i++
		case open != 0:
			if r.rest[i] == open {
				open = 0
			}
		case r.rest[i] == '<':
			open = '>'
		case r.rest[i] == '"':
			open = '"'
		case r.rest[i] == ',':
			r.rest = r.rest[i:]
			return true
		}
	}
}

func (r *linkReader) space() { r.rest = strings.TrimLeft(r.rest, " \t") }

// accept skips white space, then what if it comes next, then white space, and reports whether what was there.
func (r *linkReader) accept(what string) bool {
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
	if !r.accept("<") {
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
	for r.accept(";") {
		if r.rest == "" || r.rest[0] == ',' || r.rest[0] == ';' {
			continue // RFC 8288 allows empty parameters
		}
		name, value, err := r.param()
		if err != nil {
			return a, err
		}
		if seen[name] && slices.Contains([]string{"manifest", "digest", "id", "count"}, name) {
			return a, errors.New("the parameter " + name + " is duplicated")
		}
		seen[name] = true
		if err := linkParam(&a, name, value); err != nil {
			return a, err
		}
	}
	return a, nil
}

// param reads a parameter: its name in lower case, and its value without quotes.
func (r *linkReader) param() (name, value string, err error) {
	if name = strings.ToLower(r.token()); name == "" {
		return "", "", errors.New("a parameter has no name")
	}
	if !r.accept("=") {
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

// token reads a token of RFC 9110.
func (r *linkReader) token() string {
	n := 0
	for n < len(r.rest) && isMadeOf(r.rest[n:n+1], "!#$%&'*+-.^_`|~") {
		n++
	}
	token := r.rest[:n]
	r.rest = r.rest[n:]
	return token
}

// linkParam sets the field of a parameter in the form Link, where all values are strings.
func linkParam(a *Announcement, name, value string) error {
	var written any = value
	switch name {
	case "count":
		count, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return errors.New("the count is not a number")
		}
		written = int64(count)
	case "digest":
		digest, err := readDigest(value)
		if err != nil {
			return fmt.Errorf("the digest is not in the form of RFC 9530: %w", err)
		}
		if digest == nil {
			return nil // only other algorithms
		}
		written = digest
	}
	if !a.setParam(name, written) {
		return errors.New("the manifest's URL is empty")
	}
	return nil
}

// readDigest returns the SHA-256 in a value of the form of Content-Digest, or nil if it only has other algorithms.
func readDigest(value string) ([]byte, error) {
	sums, err := httpsfv.UnmarshalDictionary([]string{value})
	if err != nil {
		return nil, err
	}
	sum, found := sums.Get(digestName)
	item, _ := sum.(httpsfv.Item)
	digest, isBytes := item.Value.([]byte)
	if found && (!isBytes || len(digest) == 0) {
		return nil, errors.New(digestName + " is not a byte sequence")
	}
	return digest, nil
}
