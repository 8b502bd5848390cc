package support

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

const (
	// MaxEvidence is how many pieces of evidence a verdict has at most: the best window, then single sentences.
	MaxEvidence = 4
	// MaxMissing is how many missing terms a verdict has at most.
	MaxMissing = 32
	// MaxTerm is how many bytes of a missing term are shown at most.
	MaxTerm = 256
	// moreEvidence is the least share of the claim, by weight, that a sentence outside the window must add.
	moreEvidence = 0.08
)

// evidence returns the best window, and then the sentences that have most of what it lacks.
func (s *Scorer) evidence() []Span {
	spans := s.spans(nil, s.window)
	left := make([]bool, len(s.claim.terms)) // terms without evidence so far
	for i := range left {
		left[i] = !s.inWindow[i] && s.counts[i] > 0 && s.claim.terms[i].weight > weightContent
	}
	for len(spans) < MaxEvidence {
		n, gain := s.bestFor(left)
		if gain < moreEvidence*s.claim.total {
			break
		}
		spans = s.spans(spans, window{n, n + 1})
	}
	return spans
}

// spans appends a window as spans: one for each passage it touches.
func (s *Scorer) spans(list []Span, w window) []Span {
	base := 0
	for i, p := range s.passages {
		from, to := max(w.from-base, 0), min(w.to-base, len(p.sentences))
		base += len(p.sentences)
		if from < to {
			list = append(
				list,
				Span{i, ibid.Span{Start: p.sentences[from].span().Start, End: p.sentences[to-1].span().End}},
			)
		}
	}
	return list
}

// bestFor returns the sentence with the greatest weight of the terms that are left, takes those from left, and says
// what they weigh.
func (s *Scorer) bestFor(left []bool) (n int, gain float64) {
	if !slices.Contains(left, true) {
		return 0, 0
	}
	s.parts.reset(1, len(s.holds))
	sums := s.parts.sums
	s.eachSentence(left, func(t, n int) { sums[n] += s.claim.terms[t].weight })
	for i, sum := range sums {
		if sum > sums[n]+1e-9 {
			n = i
		}
	}
	gain = sums[n]
	s.eachSentence(left, func(t, at int) {
		if at == n {
			left[t] = false
		}
	})
	return n, gain
}

// eachSentence calls f once for each term that is left and each sentence that has it.
func (s *Scorer) eachSentence(left []bool, f func(term, sentence int)) {
	for t := range left {
		if !left[t] {
			continue
		}
		base := 0
		for i, p := range s.passages {
			last := noSlot
			for _, at := range p.at(s.slots[i*len(left)+t]) {
				if n := p.sentence[at]; n != last {
					f(t, base+int(n))
					last = n
				}
			}
			base += len(p.sentences)
		}
	}
}

// missing returns what the claim says and no passage does, rarest first.
func (s *Scorer) missing() []Term {
	type lack struct {
		Term
		weight float64
		token  int
	}
	lacks := make([]lack, 0, 16)
	said := s.claim.said()
	for i := range s.claim.tokens {
		t := &s.claim.tokens[i]
		e := &s.claim.terms[t.term]
		negation := t.flags&flagNegation != 0
		if s.counts[t.term] > 0 || int(e.token) != i || int(t.start) < s.claim.question ||
			e.weight <= weightContent && !negation {
			continue
		}
		span := ibid.Span{Start: int(t.start) - s.claim.question, End: int(t.end) - s.claim.question}
		if n := len(lacks); n > 0 && span.Start < lacks[n-1].Span.End {
			continue // US is two words in one place
		} else if n > 0 && e.kind == TermName && lacks[n-1].Kind == TermName && lacks[n-1].token == i-1 &&
			said[lacks[n-1].Span.End:span.Start] == " " {
			last := &lacks[n-1]
			last.Span.End, last.token, last.weight = span.End, i, max(last.weight, e.weight)
			last.Text = said[last.Span.Start:span.End]
			continue
		}
		text := said[span.Start:span.End]
		lacks = append(lacks, lack{Term{text, termKind(text, e.kind), span}, e.weight, i})
	}
	slices.SortStableFunc(lacks, func(a, b lack) int { return cmp.Compare(b.weight, a.weight) })
	terms := make([]Term, 0, min(len(lacks), MaxMissing))
	for i := range lacks[:min(len(lacks), MaxMissing)] {
		term := lacks[i].Term
		if len(term.Text) > MaxTerm {
			term.Text = wholeRunes(term.Text[:MaxTerm])
			term.Span.End = term.Span.Start + len(term.Text)
		}
		terms = append(terms, term)
	}
	return terms
}

// termKind tells dates from other numbers and words: years, and the names of months.
func termKind(text string, kind TermKind) TermKind {
	if kind == TermNumber && len(text) == 4 && (text[0] == '1' || text[0] == '2') &&
		strings.Trim(text, "0123456789") == "" {
		return TermDate
	}
	if kind == TermName {
		switch text {
		case "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
			"November", "December":
			return TermDate
		}
	}
	return kind
}

// signals returns the features by name.
func (s *Scorer) signals() map[string]float64 {
	m := make(map[string]float64, featureCount)
	for i, name := range featureNames() {
		m[name] = s.features[i]
	}
	return m
}

// verbatim reports whether one of the passages has the claim as it is.
func (q *request) verbatim() bool {
	c := newRawClaim(q.scorer.claim.said())
	return slices.ContainsFunc(q.passages, func(x *Index) bool { return x.verbatim(c) })
}

// changed returns what the claim says otherwise than its passages. They are read as a whole, since what the evidence
// says otherwise may stand elsewhere as it was said; but only if there is reason to: something differs from the
// evidence, or a value is in no passage.
func (q *request) changed(evidence []Span, missing []Term) []Conflict {
	isValue := func(t Term) bool { return t.Kind != TermWord }
	if len(q.changedIn(evidence)) == 0 && !slices.ContainsFunc(missing, isValue) {
		return nil
	}
	whole := make([]Span, len(q.passages))
	for i, p := range q.passages {
		whole[i] = Span{i, ibid.Span{End: len(p.text)}}
	}
	return q.changedIn(whole)
}

// changedIn returns what the claim says otherwise than some pieces of its passages.
func (q *request) changedIn(evidence []Span) []Conflict {
	if len(evidence) == 0 {
		return nil
	}
	pieces := make([]piece, len(evidence))
	for i, e := range evidence {
		pieces[i] = piece{e.Passage, e.Start, textAt(q.passages[e.Passage].text, e.Span)}
	}
	return changedIn(q.scorer.claim.said(), pieces...)
}
