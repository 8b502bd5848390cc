package wire

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Mapping says where the responses of a provider that has no format of its own have their text and their sources. The
// fields of package ibid's Mapping, which describes them, are the same.
type Mapping struct {
	Provider string
	Member   string
	Text     string
	Delta    string
	List     string
	Title    string
	URL      string
	ID       string
	Passage  string
	Mark     string
}

// MaxPath is how many names a path of a [Mapping] may have.
const MaxPath = 16

// CheckPath returns an error if a path is not names, numbers or * with dots between them.
func CheckPath(path string) error {
	names := strings.Split(path, ".")
	switch {
	case strings.ContainsAny(path, " \t\r\n[]$/"):
		return errors.New("must be names of members with dots between them, such as result.sources.0.title")
	case slices.Contains(names, ""):
		return errors.New("has an empty name: one dot between two names, none around them")
	case len(names) > MaxPath:
		return fmt.Errorf("has more than %d names", MaxPath)
	}
	return nil
}

// Check returns an error that names the wrong field.
func (m *Mapping) Check() error {
	for _, f := range [...]struct {
		name, path string
		needed     bool
	}{
		{"member", m.Member, false},
		{"text", m.Text, true},
		{"delta", m.Delta, false},
		{"list", m.List, true},
		{"title", m.Title, false},
		{"url", m.URL, false},
		{"id", m.ID, false},
		{"passage", m.Passage, false},
		{"mark", m.Mark, false},
	} {
		if f.path == "" && f.needed {
			return fmt.Errorf("mapping %s: %s is missing", m.Provider, f.name)
		}
		if f.path != "" {
			if err := CheckPath(f.path); err != nil {
				return fmt.Errorf("mapping %s: %s %w", m.Provider, f.name, err)
			}
		}
	}
	if m.Provider == "" {
		return errors.New("mapping: the provider is missing")
	}
	return nil
}

// Looks reports whether a document is of the mapping's provider. Provider is the one that is known to have sent it, or
// empty.
func (m *Mapping) Looks(provider string, doc scan.Value) bool {
	switch {
	case !doc.IsObject():
		return false
	case provider == m.Provider:
		return has(doc, m.Text) || has(doc, m.List) || has(doc, m.Delta) || has(doc, m.Member)
	case m.Member != "":
		return has(doc, m.Member)
	}
	return has(doc, m.Text) && has(doc, m.List)
}

// has reports whether there is a value at a path.
func has(doc scan.Value, path string) bool {
	found := false
	if path != "" {
		each(doc, path, func(v scan.Value) { found = found || !v.IsNull() })
	}
	return found
}

// each calls found with all values at a path.
func each(v scan.Value, path string, found func(scan.Value)) {
	name, rest, more := strings.Cut(path, ".")
	below := func(v scan.Value) {
		switch {
		case v == nil:
		case more:
			each(v, rest, found)
		default:
			found(v)
		}
	}
	switch n, err := strconv.Atoi(name); {
	case name == "*" && v.IsObject():
		for o := scan.Members(v); o.Next(); {
			below(o.Val)
		}
	case name == "*":
		for a := scan.Elements(v); a.Next(); {
			below(a.Val)
		}
	case err == nil && v.IsArray():
		for a := scan.Elements(v); a.Next(); n-- {
			if n == 0 {
				below(a.Val)
				break
			}
		}
	default:
		for o := scan.Members(v); o.Next(); {
			if string(o.Key) == name {
				below(o.Val)
				break
			}
		}
	}
}

// textAt returns the first text at a path.
func textAt(v scan.Value, path string) (text string) {
	each(v, path, func(v scan.Value) {
		if text == "" && !v.IsObject() && !v.IsArray() {
			text = v.Text()
		}
	})
	return text
}

// mapped reads generic-sources by a [Mapping].
type mapped struct {
	out
	reads  *reads
	refs   []Ref // what [1], [2] … are
	lists  int   // how often they were emitted
	held   bool  // they have changed since, and are emitted at the end
	open   bool  // a stream has begun, and only the end of the input ends it
	failed bool
}

func newMapped(c *Config) Parser {
	path := readPath(c.Mapping.List)
	p := &mapped{out: out{Config: c}, reads: readPaths(path)}
	list := p.reads
	for name := range strings.SplitSeq(path, ".") {
		if next := list.members[name]; next != nil {
			list = next
		}
	}
	list.opaque = list != p.reads // the mapping decides which of its members are read
	p.provider(c.Mapping.Provider)
	return p
}

// readPath returns a path as [readPaths] takes it: lists do not count.
func readPath(path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		if _, err := strconv.Atoi(name); err != nil && name != "*" {
			names = append(names, string(appendFolded(nil, []byte(name))))
		}
	}
	return strings.Join(names, ".")
}

// Parse implements [Parser].
func (p *mapped) Parse(event []byte, doc scan.Value) bool {
	m := p.Mapping
	piece := has(doc, m.Delta)
	stream := piece || p.Stream != nil && p.Stream()
	if !m.Looks(m.Provider, doc) {
		_, _, p.failed = ReadError(event, doc)
		return stream && !p.failed && doc.IsObject() // such as the beginning of a stream
	}
	p.unread(doc, p.reads)
	p.heads(doc)
	p.sources(doc)
	switch {
	case piece:
		p.texts(doc, m.Delta)
	case m.Delta != "" && p.open:
		if text := textAt(doc, m.Text); text != "" { // all of it again
			p.emit(Op{Kind: Final, Text: []byte(text)})
		}
	default:
		p.texts(doc, m.Text)
	}
	if p.open = p.open || stream; !p.open {
		p.finish(0, finishStop)
		p.emit(Op{Kind: End})
	}
	return true
}

// texts emits the texts at a path.
func (p *mapped) texts(doc scan.Value, path string) {
	each(doc, path, func(v scan.Value) {
		if !p.text(Part{}, v) && !v.IsNull() {
			p.issue(IssueWrongType, path, v)
		}
	})
}

// Close implements [Parser].
func (p *mapped) Close() {
	if p.held {
		p.marks()
	}
	if p.open && !p.failed {
		p.finish(0, finishStop)
		p.emit(Op{Kind: End})
	}
}

// sources emits the sources of a document, and what marks refer to. A stream may bring them one by one, or repeat those
// that came before.
func (p *mapped) sources(doc scan.Value) {
	var refs []Ref
	each(doc, p.Mapping.List, func(list scan.Value) {
		switch {
		case list.IsArray():
			for a := scan.Elements(list); a.Next() && !a.Cut(); {
				refs = p.element(refs, "", a.Val)
			}
		case isSet(list):
			for o := scan.Members(list); o.Next() && !o.Cut(); {
				refs = p.element(refs, string(o.Key), o.Val)
			}
		case list.IsObject():
			refs = p.element(refs, "", list)
		default:
			p.wantList(p.Mapping.List, list)
		}
	})
	switch {
	case len(refs) == 0:
		return
	case len(p.refs) == 0:
		p.emit(Op{Kind: MarkersOp, Markers: &Markers{Links: true}})
	case refs[0].Source != p.refs[0].Source:
		refs = append(p.refs, refs...)
	case len(refs) <= len(p.refs):
		return
	}
	p.refs = refs
	if p.held = p.lists == maxLists; !p.held {
		p.lists++
		p.marks()
	}
}

// maxLists is how often what marks refer to may change while a stream arrives: each time the text is read again.
const maxLists = 32

func (p *mapped) marks() {
	p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: p.refs, Names: true}})
}

// isSet reports whether an object holds sources by what marks call them.
func isSet(v scan.Value) bool {
	some := false
	for o := scan.Members(v); o.Next(); {
		if !o.Val.IsObject() {
			return false
		}
		some = true
	}
	return some
}

// element emits a source and appends it to what marks refer to. Called is what the list calls it, if that is a set.
func (p *mapped) element(refs []Ref, called string, v scan.Value) []Ref {
	if len(refs)+len(p.refs) >= maxNumber || !p.Keep(2*refSize) {
		return refs
	}
	m := p.Mapping
	s, ok := readListed(v)
	take := func(to *string, path string) {
		if path != "" {
			*to = textAt(v, path)
			ok = ok || *to != ""
		}
	}
	take(&s.Title, m.Title)
	take(&s.URL, m.URL)
	take(&s.ID, m.ID)
	s.Label = called
	take(&s.Label, m.Mark)
	s.Label = strings.Trim(s.Label, "[]()【】^ ")
	var passages []string
	if m.Passage != "" {
		each(v, m.Passage, func(v scan.Value) {
			if words := v.Str(); words != "" {
				passages = append(passages, words)
			}
		})
		s.Content, ok = "", ok || len(passages) > 0
	}
	if !ok {
		p.unknown("source", v)
		return append(refs, Ref{})
	}
	s.Kind = kindOf(s)
	if s.Key = cmp.Or(s.URL, s.ID, s.GlobalID); s.Key == "" {
		s.Key = strings.Join(append([]string{"source", s.Label, s.Title, s.Content}, passages...), "\x00")
	}
	for i := range max(1, len(passages)) {
		if i < len(passages) {
			s.Content = passages[i]
		}
		p.source(s)
	}
	return append(refs, Ref{Source: s.Key})
}
