package wire

import (
	"slices"
	"strconv"
)

// citeSet joins the sources of one span: some providers send a citation for each source of a span, several times over,
// where others send one citation with all its sources.
type citeSet struct {
	cites   map[citeKey]*heldCite
	touched []*heldCite // those that changed since they were said, in the order of arrival
	full    bool        // one had more references than are kept
}

// citeKey is what makes two citations one.
type citeKey struct {
	part       Part
	unit       Unit
	start, end int
	source     string // without a place each source is a citation of its own
}

// heldCite is a citation that may still get further sources.
type heldCite struct {
	Cite
	touched bool
	refs    map[refKey]bool // nil while there are few
}

// refKey is what makes two references one.
type refKey struct {
	source, quote string
	page          int
}

// maxRefs is how many references one citation may have. Each of them makes the citation be said again.
const maxRefs = 100

// fewRefs is how many references are searched one by one.
const fewRefs = 16

// add files a citation of one source and returns the key under which it will be said. The part, unit, base and offsets
// of c count.
func (s *citeSet) add(c *Cite, ref *Ref) string {
	k := citeKey{part: c.Part, unit: c.Unit, start: c.Start, end: c.End}
	if c.Unit == Nowhere {
		k.source = ref.Source
	}
	if s.cites == nil {
		s.cites = map[citeKey]*heldCite{}
	}
	held := s.cites[k]
	if held == nil {
		held = &heldCite{Cite: *c}
		held.Key, held.Refs = k.String(), nil
		s.cites[k] = held
	}
	if len(held.Refs) == maxRefs {
		s.full = true
		return held.Key
	}
	if held.has(ref) {
		return held.Key
	}
	held.Refs = append(held.Refs, *ref)
	if !held.touched {
		held.touched = true
		s.touched = append(s.touched, held)
	}
	return held.Key
}

// has reports whether a reference is there already. If it is not, the caller adds it.
func (h *heldCite) has(ref *Ref) bool {
	k := keyOf(ref)
	if len(h.Refs) < fewRefs {
		return slices.ContainsFunc(h.Refs, func(r Ref) bool { return keyOf(&r) == k })
	}
	if h.refs == nil {
		h.refs = map[refKey]bool{}
		for i := range h.Refs {
			h.refs[keyOf(&h.Refs[i])] = true
		}
	}
	if h.refs[k] {
		return true
	}
	h.refs[k] = true
	return false
}

func keyOf(r *Ref) refKey { return refKey{r.Source, r.Quote, r.Locator.Page} }

// String names the citation in the response.
func (k citeKey) String() string {
	b := make([]byte, 0, 32+len(k.source))
	b = strconv.AppendInt(b, int64(k.part.Message), 10)
	b = strconv.AppendInt(append(b, '/'), int64(k.part.Content), 10)
	if b = append(b, '/'); k.unit == Nowhere {
		return string(b) + k.source
	}
	b = strconv.AppendInt(b, int64(k.start), 10)
	return string(strconv.AppendInt(append(b, '-'), int64(k.end), 10))
}

// say says those that changed.
func (s *citeSet) say(o *out) {
	for _, c := range s.touched {
		c.touched = false
		o.cite(&c.Cite)
	}
	if s.full {
		s.full = false
		o.issue(IssueLimit, "refs of one citation", nil)
	}
	s.touched = s.touched[:0]
}
