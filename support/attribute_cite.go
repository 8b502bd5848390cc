package support

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	maxQuote   = 1000 // bytes of a quote
	maxContext = 500  // bytes of an answer before a sentence
	// nearWindows is how many bytes two windows of one source may be apart and still be one.
	nearWindows = 300
)

// copyAnswer returns a copy of an answer that citations can be added to.
func copyAnswer(a *ibid.Answer) *ibid.Answer {
	c := *a
	c.Sources = slices.Clone(a.Sources)
	c.Citations = slices.Clone(a.Citations)
	return &c
}

// titleOf returns what stands before a passage when it is judged: its document's title and its heading, unless it begins with them. A
// passage seldom repeats what it is about.
func titleOf(d *Document, p *snapshot.Passage) string {
	var b strings.Builder
	for _, words := range []string{d.Source.Title, p.Heading} {
		head := d.Text[p.Span.Start:min(p.Span.End, p.Span.Start+2*len(words)+16)]
		if words != "" && !strings.Contains(head, words) && !strings.Contains(b.String(), words) {
			b.WriteString(words + blockBreak)
		}
	}
	return b.String()
}

// blockBreak stands between two blocks of a passage when it is judged, so that they are not read as one sentence.
const blockBreak = "\n\n"

// readable returns a passage as it is judged: with what it is about before it, and with its blocks apart.
func readable(d *Document, p *snapshot.Passage) string {
	var b strings.Builder
	b.WriteString(titleOf(d, p))
	at := p.Span.Start
	for _, next := range p.Breaks {
		if next > at && next <= p.Span.End {
			b.WriteString(strings.TrimRight(d.Text[at:next], " ") + blockBreak)
			at = next
		}
	}
	b.WriteString(d.Text[at:p.Span.End])
	return b.String()
}

// inDocument returns where a span of a readable passage stands in its document; empty: in none of it.
func inDocument(d *Document, p *snapshot.Passage, s ibid.Span) ibid.Span {
	back := func(n int) int {
		n -= len(titleOf(d, p))
		at := p.Span.Start
		for _, next := range p.Breaks {
			if next <= at || next > p.Span.End {
				continue
			}
			words := len(strings.TrimRight(d.Text[at:next], " "))
			if n <= words {
				break
			}
			n = max(0, n-words-len(blockBreak))
			at = next
		}
		return min(max(p.Span.Start, at+n), p.Span.End)
	}
	if s.Start < 0 || s.End <= s.Start {
		return ibid.Span{}
	}
	out := ibid.Span{Start: back(s.Start), End: back(s.End)}
	for _, next := range p.Breaks { // a heading is no part of the evidence below it
		if next > out.Start && next < out.End && p.Heading != "" && strings.HasSuffix(strings.TrimRight(d.Text[out.Start:next], " #"), p.Heading) {
			out.Start = next
			break
		}
	}
	if out.End <= out.Start || !utf8.ValidString(d.Text[out.Start:out.End]) {
		return ibid.Span{}
	}
	return trimSpan(d.Text, out)
}

// before returns the words of an answer before a place in it.
func before(text string, at int) string {
	from := max(0, at-maxContext)
	for from < at && !utf8.RuneStart(text[from]) {
		from++
	}
	return strings.TrimSpace(text[from:at])
}

// trimSpan returns s without the white space at its ends.
func trimSpan(text string, s ibid.Span) ibid.Span {
	words := text[s.Start:s.End]
	left := strings.TrimLeft(words, " \t\r\n")
	s.Start += len(words) - len(left)
	s.End = s.Start + len(strings.TrimRight(left, " \t\r\n"))
	return s
}

// citer adds citations to an answer.
type citer struct {
	answer  *ibid.Answer
	byKey   map[string]string // ids of its sources, by their keys
	taken   map[string]bool   // ids
	last    map[string]int    // the last number that an id was made with, by what stands before it
	sources map[int]string    // ids of its sources, by document
	chunks  map[place]bool    // passages that stand among the chunks of their source
}

func newCiter(a *ibid.Answer) citer {
	c := citer{a, map[string]string{}, map[string]bool{}, map[string]int{}, map[int]string{}, map[place]bool{}}
	for i := range a.Sources {
		s := &a.Sources[i]
		c.taken[s.ID] = true
		if _, known := c.byKey[s.Key()]; !known {
			c.byKey[s.Key()] = s.ID
		}
	}
	return c
}

// source returns the id of the answer's source for a document, which it adds if it is not there.
func (c *citer) source(document int, d *Document) string {
	if id, known := c.sources[document]; known {
		return id
	}
	s := d.Source
	if s.Kind == "" {
		s.Kind = ibid.DocumentKind
	}
	if (s.Score == nil) != (s.ScoreOrigin == "") {
		s.Score, s.ScoreOrigin = nil, ""
	}
	if s.Content == "" && s.URL == "" && s.GlobalID == "" {
		s.Content = cut(d.Text, maxQuote) // what tells it from others
	}
	key := s.Key()
	id, known := c.byKey[key]
	if !known {
		id = c.freeID(s.ID)
		s.ID, s.Chunks = id, slices.Clone(s.Chunks)
		c.taken[id] = true
		c.byKey[key] = id
		c.answer.Sources = append(c.answer.Sources, s)
	}
	c.sources[document] = id
	return id
}

// freeID returns an id that no source has: the wanted one, else that with a number, and d1, d2 … where none is wanted.
func (c *citer) freeID(wanted string) string {
	if wanted != "" && !c.taken[wanted] {
		return wanted
	}
	prefix := wanted + "-"
	if wanted == "" {
		prefix = "d"
	}
	for {
		c.last[prefix]++
		if id := prefix + strconv.Itoa(c.last[prefix]); !c.taken[id] {
			return id
		}
	}
}

// cite cites the best candidates of a sentence, if any is good enough.
func (a *attributor) cite(s *SentenceSupport) error {
	picked := a.pick(s)
	if len(picked) == 0 {
		return nil
	}
	refs := make([]ibid.Ref, 0, len(picked))
	for _, c := range picked {
		d := &a.docs[c.Document]
		id := a.citer.source(c.Document, d)
		c.Source = id
		refs = append(refs, a.ref(c, d, id))
		a.chunk(c, d, id)
	}
	answer := a.out.Answer
	if err := answer.Cite(s.Claim, refs...); err != nil {
		return err
	}
	for i := len(answer.Citations) - 1; i >= 0; i-- {
		if x := &answer.Citations[i]; x.Span == s.Claim && x.Origin == ibid.OriginInferred && x.Support == nil {
			best := &picked[0].Verdict
			x.Support = &ibid.Support{Label: string(best.Label), Score: best.Score, By: best.By}
			break
		}
	}
	s.Cited++
	return nil
}

// pick returns the candidates that a sentence cites: those with at least the threshold, one of a place. A passage in which a value
// differs is none, however much else it has in common.
func (a *attributor) pick(s *SentenceSupport) []*Candidate {
	var picked []*Candidate
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if v := &c.Verdict; v.Score == nil || *v.Score < a.options.Threshold || v.Label == Contradicted || v.Changed {
			continue
		}
		if a.merge(picked, c) {
			continue
		}
		if len(picked) < a.options.PerSentence {
			picked = append(picked, c)
		}
	}
	return picked
}

// merge widens a window that was picked by that of a candidate beside it in the same document.
func (a *attributor) merge(picked []*Candidate, c *Candidate) bool {
	for _, p := range picked {
		if p.Document != c.Document {
			continue
		}
		x, y := p.window(), c.window()
		gap := max(x.Start, y.Start) - min(x.End, y.End)
		joined := ibid.Span{Start: min(x.Start, y.Start), End: max(x.End, y.End)}
		if gap <= nearWindows {
			if joined.Len() <= maxQuote && p.Evidence.Len() > 0 {
				p.Evidence = joined
			}
			return true
		}
	}
	return false
}

// window returns where the evidence is: the passage where the checker names none.
func (c *Candidate) window() ibid.Span {
	if c.Evidence.Len() > 0 {
		return c.Evidence
	}
	return c.Span
}

// ref returns the reference to a candidate.
func (a *attributor) ref(c *Candidate, d *Document, id string) ibid.Ref {
	w := c.window()
	quote := cut(d.Text[w.Start:w.End], maxQuote)
	w.End = w.Start + len(quote)
	quote = strings.Join(strings.Fields(quote), " ")
	score := *c.Verdict.Score
	l := &ibid.Locator{Page: d.Passages[c.Passage].Page, Chunk: strconv.Itoa(c.Passage)}
	if start, end := a.offsets(c.Document).In(ibid.CodePoint, w); start >= 0 {
		l.CharStart, l.CharEnd = &start, &end
	}
	return ibid.Ref{Source: id, Quote: quote, Locator: l, Confidence: &score}
}

// chunk adds a cited passage to the chunks of its source.
func (a *attributor) chunk(c *Candidate, d *Document, id string) {
	at := place{c.Document, c.Passage}
	s := a.out.Answer.Source(id)
	if a.citer.chunks[at] || s == nil {
		return
	}
	a.citer.chunks[at] = true
	chunk := ibid.Chunk{ID: strconv.Itoa(c.Passage), Content: d.Text[c.Span.Start:c.Span.End]}
	if page := d.Passages[c.Passage].Page; page > 0 {
		chunk.Locator = &ibid.Locator{Page: page}
	}
	s.Chunks = append(slices.Clip(s.Chunks), chunk)
}

// cut returns at most n bytes of text, whole runes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return wholeRunes(text[:n])
}

// uncited returns the share of sentences without a citation among those that say something.
func uncited(sentences []SentenceSupport) *float64 {
	n, without := 0.0, 0.0
	for i := range sentences {
		s := &sentences[i]
		if s.Says() {
			n++
		}
		if s.Uncited() {
			without++
		}
	}
	if n == 0 {
		return nil
	}
	share := without / n
	return &share
}
