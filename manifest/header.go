package manifest

import (
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

// HeaderName is the name of the field, header or trailer, that announces sources.
const HeaderName = "Citation-Source"

// The limits of the field. What writers leave out, they announce with a last member that has More.
const (
	maxHeaderMembers = 64       // written
	maxHeaderBytes   = 6144     // written
	MaxHeaderRead    = 16 << 10 // bytes that are read, of all lines of the field together

	maxCount = 999_999_999_999_999 // the largest integer of RFC 9651
)

// The names of what has no address.
const (
	SourceURN = "urn:ibid:src:" // and an id: a source that cannot be fetched
	moreURN   = "urn:ibid:more" // that there are more sources, in the form Link
	moreToken = "more"          // the same in the form List
)

// digestName is SHA-256 as RFC 9530 calls it.
const digestName = "sha-256"

// errHeader says that a Citation-Source field has neither form or is over the limits (status header-malformed).
var errHeader = errors.New("malformed " + HeaderName + " field")

// Announcement is one member of a Citation-Source field: a source that was consulted, or that there are more.
type Announcement struct {
	// of the source: absolute http or https, or SourceURN and an id; empty if More
	URL      string `json:"url,omitempty"`
	Manifest string `json:"manifest,omitempty"` // URL of the manifest; empty at level 1
	ID       string `json:"id,omitempty"`       // the source's id in the manifest; may be empty
	Digest   []byte `json:"digest,omitempty"`   // SHA-256 of the manifest's body; nil if it is not known yet
	More     bool   `json:"more,omitempty"`     // there are further sources, or there may be: see the manifest
	Count    int    `json:"count,omitempty"`    // of More: how many; 0 is not known yet
}

// Form is how a Citation-Source field is written. Readers accept both.
type Form string

// The forms of the field.
const (
	Link Form = "link" // <URL>; manifest="…", as Link fields (RFC 8288) are written. The empty Form, too
	List Form = "list" // "URL";manifest="…", a List of RFC 9651
)

// check says why an announcement is none. It is asked of what is read and of what is to be written, so that nothing is
// written which could not be read, least of all the end of a line.
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
		return errors.New("the id is not of letters, digits and ._~-")
	case a.Digest != nil && len(a.Digest) != 32:
		return errors.New("the digest is not of 32 bytes")
	case a.Manifest == "":
		return nil
	}
	if err := checkWebURL(a.Manifest); err != nil {
		return fmt.Errorf("the manifest's URL: %w", err)
	}
	return nil
}

// checkSourceURL says why something is not the URL of a source as the field has them.
func checkSourceURL(address string) error {
	id, urn := strings.CutPrefix(address, SourceURN)
	switch {
	case !urn:
		return checkWebURL(address)
	case id == "" || len(address) > MaxURL || strings.Contains(id, "#"):
		return errors.New("what follows " + SourceURN + " is no id")
	}
	return checkSent(address)
}

// checkWebURL says why something is not a URL that can be fetched, as it is sent: absolute, http or https, without user
// name and fragment.
func checkWebURL(address string) error {
	if err := checkSent(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no URL")
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

// checkSent refuses characters that no URL is sent with.
func checkSent(address string) error {
	for _, c := range []byte(address) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`<>"\`, c) >= 0 {
			return errors.New("it has characters that have to be percent-encoded")
		}
	}
	return nil
}

// FormatHeader returns the field's value for the list, maxHeaderMembers and maxHeaderBytes at most. Fragments of URLs
// are left out. What does not fit, and what cannot be written (a URL of another scheme, or with characters that URLs do
// not have), is announced by number in a last member that has More, for each manifest. An empty list gives "".
func FormatHeader(list []Announcement, f Form) string {
	var members []string
	var said []Announcement
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
			members, said = append(members, write(&a, f)), append(said, a)
		}
	}
	n := min(len(members), maxHeaderMembers)
	for _, a := range said[n:] {
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
		rest.add(&Announcement{Manifest: said[n-1].Manifest, Digest: said[n-1].Digest, Count: 1})
	}
}

// remainder counts what a field leaves out, for each manifest.
type remainder struct {
	form Form
	list []Announcement
}

func (r *remainder) add(a *Announcement) {
	a.More, a.URL, a.ID = true, "", ""
	if a.check() != nil { // it has a manifest that nobody could fetch
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

// first returns as many members as fit, and would rather leave out whole manifests than be refused.
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

// ParseHeader reads the field's values, one for each line, header and trailer together, and returns the union of what
// they announce: no member twice. Unknown parameters are ignored; no values are no announcements. All lines are of one
// form.
func ParseHeader(values []string) ([]Announcement, error) {
	value := strings.Join(values, ", ")
	first := strings.TrimLeft(value, " \t,")
	if len(value) > MaxHeaderRead {
		return nil, fmt.Errorf("%w: it is longer than %s", errHeader, plural(MaxHeaderRead, "byte"))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
		return nil, fmt.Errorf("%w: it has characters that are not of ASCII, or control characters", errHeader)
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
	seen := make(map[string]bool)
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, fmt.Errorf("%w: %w", errHeader, err)
		}
		if key := write(&list[i], Link); !seen[key] {
			seen[key] = true
			union = append(union, list[i])
		}
	}
	return union, nil
}

// write returns an announcement, which check has seen, as one member of the field.
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
	member, _ := httpsfv.Marshal(item) // what check has seen can be written
	return member
}

// readList reads the form List.
func readList(values []string) ([]Announcement, error) {
	members, err := httpsfv.UnmarshalList(values)
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
		for _, name := range item.Params.Names() {
			if value, _ := item.Params.Get(name); !a.setParam(name, value) {
				return nil, errors.New("the parameter " + name + " is of another type")
			}
		}
		list = append(list, a)
	}
	return list, nil
}

// setParam sets what a parameter says; false: it is of another type.
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

// linkReader reads the form Link. Empty members, as of a line that ends in a comma, are none (RFC 9110, section 5.6.1).
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

// accept takes what stands next, after white space and before it.
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

// linkParam sets what a parameter of the form Link says, where all values are strings.
func linkParam(a *Announcement, name, value string) error {
	var said any = value
	switch name {
	case "count":
		count, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return errors.New("the count is no number")
		}
		said = int64(count)
	case "digest":
		digest, err := readDigest(value)
		if err != nil {
			return fmt.Errorf("the digest is not as RFC 9530 has it: %w", err)
		}
		if digest == nil {
			return nil // of other algorithms
		}
		said = digest
	}
	if !a.setParam(name, said) {
		return errors.New("the manifest's URL is empty")
	}
	return nil
}

// readDigest returns the SHA-256 of a value of Content-Digest's form; nil if it has other ones only.
func readDigest(value string) ([]byte, error) {
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
