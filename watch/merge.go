package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// The codes of issues caused by a second call. They are listed in docs/answer.md.
const (
	IssueContextDiffers = "backfill-context-differs" // the second call had fewer messages than the first
	IssueTextDiffers    = "backfill-text-differs"    // the second answer is worded differently
)

// minWords is the minimum number of letters and digits in the words of a citation for these to be looked for in another
// text; fewer do not identify a place.
const minWords = 3

// Words that occur more often do not identify a place either. The search is bounded, so that an answer crafted for it
// cannot keep it busy: a citation that is not found only leaves its source.
const (
	maxOccurrences = 256
	maxSearch      = 64 << 20 // bytes of text searched for the citations of one answer
)

// merge returns first with the sources of second and with those of its citations whose words also occur in first.
// Neither is changed.
func merge(first, second *ibid.Answer) (*ibid.Answer, error) {
	merged := *first
	merged.Citations = slices.Clone(first.Citations)
	merged.Issues = slices.Clone(first.Issues)
	merged.Display = appendNew(first.Display, second.Display)
	merged.Queries = appendNew(first.Queries, second.Queries)
	merged.Metadata = maps.Clone(first.Metadata)
	placed := place(first.Text, second)
	ids := mergeSources(&merged, second, placed)
	for _, p := range placed {
		if err := cite(&merged, p, ids); err != nil {
			return nil, fmt.Errorf("completing the answer: %w", err)
		}
	}
	if first.Text != second.Text {
		merged.Issues = append(merged.Issues, ibid.Issue{
			Code: IssueTextDiffers,
			Detail: fmt.Sprintf(
				"%d of %d citations of the second answer are on words that also occur in this one", len(placed),
				len(second.Citations),
			),
		})
	}
	if err := merged.Check(); err != nil {
		return nil, fmt.Errorf("completing the answer: %w", err)
	}
	return &merged, nil
}

func appendNew[T comparable](have, more []T) []T {
	have = slices.Clone(have)
	for _, x := range more {
		if !slices.Contains(have, x) {
			have = append(have, x)
		}
	}
	return have
}

// found is a citation of the second answer with its place in the first.
type found struct {
	*ibid.Citation

	span   ibid.Span
	anchor ibid.Anchor
}

// place returns the citations whose words occur in text, ordered by their places there.
func place(text string, second *ibid.Answer) []found {
	var out []found
	p := placer{from: second.Text, to: text}
	for i := range second.Citations {
		c := &second.Citations[i]
		span := c.Span
		if c.Covers == ibid.CoversLink || c.Covers == ibid.CoversPoint {
			span = c.Claim // the link is only in the second answer, but the sentence before it may be in both
		}
		if !c.Placed() || span.Len() == 0 {
			continue
		}
		if at, ok := p.place(span); ok {
			anchor := ibid.AnchorMoved
			if text == second.Text {
				anchor = c.Anchor
			}
			out = append(out, found{c, at, anchor})
		}
	}
	slices.SortStableFunc(out, func(x, y found) int {
		return cmp.Or(cmp.Compare(x.span.End, y.span.End), cmp.Compare(x.span.Start, y.span.Start))
	})
	return out
}

// placer finds spans of one text in another.
type placer struct {
	from, to string
	last     int // where the last words found begin
	searched int // bytes searched so far
}

// place returns where the words of s occur in the other text: the only occurrence; the corresponding one if there are
// as many as in their own text; else the next one after the words found before.
func (p *placer) place(s ibid.Span) (ibid.Span, bool) {
	if p.from == p.to {
		return s, true
	}
	s = trim(p.from, s)
	words := p.from[s.Start:s.End]
	if letters(words) < minWords {
		return ibid.Span{}, false
	}
	if p.searched += len(p.to); p.searched > maxSearch {
		return ibid.Span{}, false
	}
	there := occurrences(p.to, words)
	if len(there) == 0 || len(there) > maxOccurrences {
		return ibid.Span{}, false
	}
	at := there[0]
	if len(there) > 1 {
		here := occurrences(p.from, words)
		i := slices.Index(here, s.Start)
		if i < 0 || len(here) != len(there) {
			if i = slices.IndexFunc(there, func(o int) bool { return o >= p.last }); i < 0 {
				return ibid.Span{}, false
			}
		}
		at = there[i]
	}
	p.last = at
	return ibid.Span{Start: at, End: at + len(words)}, true
}

// occurrences returns where words occur in text at word boundaries.
func occurrences(text, words string) []int {
	var out []int
	tries := 0
	for from := 0; len(out) <= maxOccurrences; tries++ {
		i := strings.Index(text[from:], words)
		if i < 0 || tries > 2*maxOccurrences {
			return out
		}
		at := from + i
		end := at + len(words)
		if prose.WordEnd(text, at) == at && prose.WordEnd(text, end) == end {
			out = append(out, at)
			from = end
		} else {
			from = prose.GraphemeEnd(text, at+1)
		}
	}
	return out
}

func trim(text string, s ibid.Span) ibid.Span {
	left := strings.TrimLeftFunc(text[s.Start:s.End], unicode.IsSpace)
	s.Start = s.End - len(left)
	return ibid.Span{Start: s.Start, End: s.Start + len(strings.TrimRightFunc(left, unicode.IsSpace))}
}

func letters(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// mergeSources adds the sources of second to a: those used by the placed citations first, in their order, then those of
// a, then the rest. It returns their ids in a by their ids in second. A source that a already has is not changed.
func mergeSources(a *ibid.Answer, second *ibid.Answer, placed []found) map[string]string {
	byKey := map[string]*ibid.Source{}
	taken := map[string]bool{}
	for i := range a.Sources {
		s := &a.Sources[i]
		byKey[s.Key()], taken[s.ID] = s, true
	}
	ids := make(map[string]string, len(second.Sources)) // by the id in second
	sources := make([]ibid.Source, 0, len(a.Sources)+len(second.Sources))
	added := map[string]bool{} // by the id in a
	add := func(s ibid.Source) {
		if !added[s.ID] {
			added[s.ID] = true
			sources = append(sources, s)
		}
	}
	own := func(s *ibid.Source) ibid.Source {
		if had := byKey[s.Key()]; had != nil {
			ids[s.ID] = had.ID
			return *had
		}
		mine := *s
		if id, again := ids[s.ID]; again {
			mine.ID = id
			return mine
		}
		for n := 2; taken[mine.ID]; n++ {
			mine.ID = s.ID + "-" + strconv.Itoa(n)
		}
		ids[s.ID], taken[mine.ID] = mine.ID, true
		return mine
	}
	for _, p := range placed {
		for i := range p.Refs {
			if s := second.Source(p.Refs[i].Source); s != nil {
				add(own(s))
			}
		}
	}
	for i := range a.Sources {
		add(a.Sources[i])
	}
	for i := range second.Sources {
		add(own(&second.Sources[i]))
	}
	a.Sources = sources
	return ids
}

// cite adds a found citation to a.
func cite(a *ibid.Answer, p found, ids map[string]string) error {
	refs := slices.Clone(p.Refs)
	for i := range refs {
		refs[i].Source = ids[refs[i].Source]
	}
	if err := a.Cite(p.span, refs...); err != nil {
		return err
	}
	for i := len(a.Citations) - 1; i >= 0; i-- { // the last one with its span is the new one
		if c := &a.Citations[i]; c.Placed() && c.Span == p.span {
			c.Anchor = p.anchor
			c.ClaimInferred = p.ClaimInferred
			if p.Covers == ibid.CoversBlock {
				c.Covers = p.Covers
			}
			return nil
		}
	}
	return nil
}
