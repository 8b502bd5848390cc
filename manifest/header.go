package manifest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// HeaderName is the name of the field, header or trailer, that announces sources.
const HeaderName = "Citation-Source"

// The limits of the field. What writers leave out, they announce with a last member that has More.
const (
	MaxHeaderMembers = 64       // written
	MaxHeaderBytes   = 6144     // written
	MaxHeaderRead    = 16 << 10 // read: of all the field's lines together
)

// The names of what has no address.
const (
	SourceURN = "urn:ibid:src:" // and an id: a source that cannot be fetched
	moreURN   = "urn:ibid:more" // that there are more sources, in the form Link
	moreToken = "more"          // the same in the form List
)

// digestName is SHA-256 as RFC 9530 calls it.
const digestName = "sha-256"

// ErrHeader is that a Citation-Source field is of neither form or over the limits (status header-malformed).
var ErrHeader = errors.New("malformed " + HeaderName + " field")

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
	case a.Count < 0 || a.Count > maxInt:
		return errors.New("the count is out of range")
	case a.ID != "" && !isID(a.ID):
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

// FormatHeader returns the field's value for the list, MaxHeaderMembers and MaxHeaderBytes at most. Fragments of URLs
// are left out. What does not fit, and what cannot be written (a URL of another scheme, or with characters that URLs do
// not have), is announced by number in a last member that has More, for each manifest. Nothing to say is "".
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
	n := min(len(members), MaxHeaderMembers)
	for _, a := range said[n:] {
		rest.add(&Announcement{Manifest: a.Manifest, Digest: a.Digest, Count: 1})
	}
	for ; ; n-- {
		all := append(slices.Clone(members[:n]), rest.members()...)
		if value := strings.Join(all, ", "); len(all) <= MaxHeaderMembers && len(value) <= MaxHeaderBytes {
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
	case a.Count == 0 || r.list[i].Count == 0 || a.Count > maxInt-r.list[i].Count: // it stays unknown
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
		if length += len(members[i]) + len(", "); i == MaxHeaderMembers || length > MaxHeaderBytes {
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
// form. The error wraps ErrHeader.
func ParseHeader(values []string) ([]Announcement, error) {
	value := strings.Join(values, ", ")
	first := strings.TrimLeft(value, " \t,")
	if len(value) > MaxHeaderRead {
		return nil, fmt.Errorf("%w: it is longer than %s", ErrHeader, plural(MaxHeaderRead, "byte"))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) {
		return nil, fmt.Errorf("%w: it has characters that are not of ASCII, or control characters", ErrHeader)
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
		return nil, fmt.Errorf("%w: %w", ErrHeader, err)
	}
	var union []Announcement
	seen := make(map[same]bool)
	for i := range list {
		if err := list[i].check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrHeader, err)
		}
		if key := list[i].same(); !seen[key] {
			seen[key] = true
			union = append(union, list[i])
		}
	}
	return union, nil
}

// same is what two announcements that say the same have in common: all of it, in a form that can be compared.
type same struct {
	url, manifest, id, digest string
	more                      bool
	count                     int
}

func (a *Announcement) same() same {
	return same{a.URL, a.Manifest, a.ID, string(a.Digest), a.More, a.Count}
}
