package support

import (
	"slices"

	"github.com/ibidhq/ibid"
)

// figureKey is what the figures of a text depend on: a sentence of a passage, or a claim, and the language it is read
// in.
type figureKey struct {
	passage  *Index
	sentence int
	claim    *Claim
	language string
}

// worthReading is the least share of the claim that the evidence must have, if it had the figures too, for them to be
// read: reading them costs as much as all the rest, and below it they change no verdict.
const worthReading = 0.6

// agree finds the terms of the claim's figures that its evidence says in another form, a dozen for 12, and tells the
// scorer in which sentence. It reports whether there are any. It looks only if a figure is missing, and would be all
// that keeps claim and evidence apart.
func (q *request) agree(evidence []Span, missing []Term, language string) bool {
	if len(missing) == 0 {
		return false
	}
	s := &q.scorer
	said := q.figuresOf(figureKey{claim: s.claim, language: language}, s.claim.said())
	share := s.features[featWindow] * s.claim.total // that the evidence would have with them
	q.lacking = q.lacking[:0]
	for i := range said {
		n := 0
		for k := range missing {
			if contains(said[i].figure, missing[k].Span) {
				n++
			}
		}
		if n > 0 {
			q.lacking = append(q.lacking, &said[i])
			share += float64(n) * weightNumber
		}
	}
	if len(q.lacking) == 0 || share < worthReading*s.claim.total {
		return false
	}
	base := 0
	for i, p := range q.passages {
		for n := range p.sentences {
			at := p.sentences[n].span()
			if isEvidence(Span{i, at}, evidence) {
				key := figureKey{passage: p, sentence: n, language: language}
				q.hold(q.figuresOf(key, p.text[at.Start:at.End]), base+n)
			}
		}
		base += len(p.sentences)
	}
	return len(s.agreed) > 0
}

// hold notes which figures that are lacking a sentence with others says in another form.
func (q *request) hold(others []Value, sentence int) {
	s := &q.scorer
	for _, v := range q.lacking {
		if !slices.ContainsFunc(others, func(e Value) bool { return v.agrees(&e) }) {
			continue
		}
		for k := range s.claim.tokens {
			t := &s.claim.tokens[k]
			at := ibid.Span{Start: int(t.start) - s.claim.question, End: int(t.end) - s.claim.question}
			if s.claim.terms[t.term].weight > 0 && s.counts[t.term] == 0 && contains(v.figure, at) {
				s.agreed = append(s.agreed, agreed{t.term, sentence})
			}
		}
	}
}

// figuresOf returns the numbers and dates of a text, which it reads once.
func (q *request) figuresOf(key figureKey, text string) []Value {
	values, ok := q.figures[key]
	if !ok {
		values = figuresOf(firstBytes(text, MaxChangedClaim), key.language)
		q.figures[key] = values
	}
	return values
}

// contains reports whether a span begins in another.
func contains(in, s ibid.Span) bool { return s.Start >= in.Start && s.Start < in.End }

func isEvidence(s Span, evidence []Span) bool {
	for i := range evidence {
		if e := &evidence[i]; e.Passage == s.Passage && s.Start < e.End && e.Start < s.End {
			return true
		}
	}
	return false
}

// agreed is a term of a claim that a sentence says in another form: the 12 of a dozen.
type agreed struct {
	term     int32
	sentence int
}

// addAgreed gives a term the first token of a sentence that is none of the claim's.
func (s *Scorer) addAgreed(t int32, sentence []int32) {
	if i := slices.Index(sentence, -1); i >= 0 {
		sentence[i] = t
	}
}

// stands reports whether a term stands in a sentence.
func (s *Scorer) stands(t int32, sentence int) bool {
	return t < maxTogether && s.holds[sentence]>>t&1 != 0
}
