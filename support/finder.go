package support

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
)

// FinderPassages is how many passages of a text a [Finder] shows its checker for one claim: TestEvalFinder measured it.
const FinderPassages = 2

// Finder finds the evidence of claims in whole texts: it shows a checker the passages of a text whose words are nearest
// to the claim's, see [Corpus], together. That is what checkers are made for, and costs a fraction of the whole. The
// zero value is ready. It is safe for concurrent use if the checker is.
type Finder struct {
	Checker Checker // nil: [Lexical]
	// Texts remembers what was read of the texts that it remembers. Nil: each text is read anew in each call.
	Texts *snapshot.Texts
}

// Sought is a claim whose evidence is looked for in a text.
type Sought struct {
	Claim string
	Text  *snapshot.Text
}

// Found is what was found for a claim. The zero value says that the text has no word of it.
type Found struct {
	// Verdict is the checker's, on the passages it was shown. Its spans count in those; Evidence and Conflicts are
	// empty therefore.
	Verdict  Verdict
	Evidence ibid.Span // the best evidence, in bytes of Text.Content; empty: none was named
}

// Find looks for the evidence of claims: one Found for each, in their order. The error says that ctx ended, or that the
// checker could not say anything.
func (f *Finder) Find(ctx context.Context, list []Sought) ([]Found, error) {
	s := seeking{texts: map[*snapshot.Text]*opened{}, indexes: map[string]*Index{}}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("reading the text for claim %d of %d: %w", i+1, len(list), err)
		}
		if list[i].Text != nil {
			s.add(f.Texts, i, &list[i])
		}
	}
	verdicts, err := s.check(ctx, f.Checker)
	if err != nil {
		return nil, err
	}
	found := make([]Found, len(list))
	for n := range verdicts {
		at := s.pairs[n].claim
		found[at] = s.pairs[n].found(list[at].Text.Content, &verdicts[n])
	}
	return found, nil
}

// seeking is one call of Find.
type seeking struct {
	texts   map[*snapshot.Text]*opened
	indexes map[string]*Index // of all passages of all texts, by their words as they are judged
	pairs   []soughtPair
}

// opened is a text that is being searched.
type opened struct {
	*reading

	search searcher
}

// soughtPair is a claim and what is shown of a text for it.
type soughtPair struct {
	Pair

	claim int // its index
	cut   []*snapshot.Passage
}

// add chooses the passages for a claim.
func (s *seeking) add(texts *snapshot.Texts, claim int, one *Sought) {
	r := s.texts[one.Text]
	if r == nil {
		r = &opened{reading: readingOf(texts, one.Text)}
		r.search.corpus = r.corpus
		s.texts[one.Text] = r
		for i := range r.shown {
			s.indexes[r.shown[i].Text] = r.indexes[i]
		}
	}
	hits := r.search.search(one.Claim, FinderPassages)
	if len(hits) == 0 {
		return
	}
	slices.SortFunc(hits, func(x, y Hit) int { return cmp.Compare(x.Passage, y.Passage) })
	p := soughtPair{Pair: Pair{Claim: one.Claim}, claim: claim}
	for _, hit := range hits {
		p.Passages, p.cut = append(p.Passages, r.shown[hit.Passage]), append(p.cut, &r.passages[hit.Passage])
	}
	s.pairs = append(s.pairs, p)
}

// check asks the checker. Only the default one can use what was read before.
func (s *seeking) check(ctx context.Context, c Checker) ([]Verdict, error) {
	if len(s.pairs) == 0 {
		return nil, ctx.Err()
	}
	pairs := make([]Pair, len(s.pairs))
	for i := range pairs {
		pairs[i] = s.pairs[i].Pair
	}
	if c == nil {
		c = &Lexical{}
	}
	if l, ok := c.(*Lexical); ok {
		return l.check(ctx, pairs, s.indexes)
	}
	verdicts, err := c.Check(ctx, pairs)
	if err == nil && len(verdicts) != len(pairs) {
		err = fmt.Errorf("%s gave %d verdicts on %d claims", c.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, err
}

// found says where in the text the best evidence of a verdict is. Pieces of it in passages that follow each other are
// one.
func (p *soughtPair) found(text string, v *Verdict) Found {
	f := Found{Verdict: *v}
	f.Verdict.Evidence, f.Verdict.Conflicts = nil, nil
	for i, e := range v.Evidence {
		at := p.place(text, e)
		if i > 0 && (at.Len() == 0 || !p.follows(v.Evidence[i-1], e)) {
			break
		}
		if i == 0 {
			f.Evidence = at
		}
		f.Evidence.End = at.End
	}
	return f
}

// place returns where a piece of evidence is in the text; empty: nowhere.
func (p *soughtPair) place(text string, e Span) ibid.Span {
	if e.Passage < 0 || e.Passage >= len(p.cut) || e.Start < 0 || e.End > len(p.Passages[e.Passage].Text) {
		return ibid.Span{} // a checker that says otherwise than it may
	}
	return p.cut[e.Passage].Place(text, e.Span)
}

// follows reports whether a piece of evidence begins where another ends: a window of sentences that two passages share.
func (p *soughtPair) follows(a, b Span) bool {
	return b.Passage == a.Passage+1 && b.Start == 0 && a.End == len(p.Passages[a.Passage].Text) &&
		p.cut[b.Passage].Index == p.cut[a.Passage].Index+1
}

// reading is what is made of a text to find evidence in it. It is immutable.
type reading struct {
	passages []snapshot.Passage
	shown    []Passage // as they are judged
	indexes  []*Index
	corpus   *Corpus
}

// readingOf reads a text, unless it was read before.
func readingOf(texts *snapshot.Texts, text *snapshot.Text) *reading {
	r, ok := texts.Beside(text, func() (any, int64) {
		r := newReading(text)
		return r, r.size()
	}).(*reading)
	if !ok { // somebody else keeps something there
		r = newReading(text)
	}
	return r
}

func newReading(text *snapshot.Text) *reading {
	r := &reading{passages: text.Passages(nil)}
	language := Language(text.Content)
	for i := range r.passages {
		shown := Passage{Text: r.passages[i].Apart(text.Content)}
		x := NewIndex(shown.Text)
		t := tongueOf(x.text)
		x.tongue = &t
		if t.seen == "" {
			shown.Language = language // a heading, a list: too short to tell
		}
		r.shown, r.indexes = append(r.shown, shown), append(r.indexes, x)
	}
	r.corpus = NewCorpus(r.shown, nil)
	return r
}

// size is about how many bytes a reading has.
func (r *reading) size() int64 {
	const (
		perPassage = 512
		perToken   = 16 // in the lists of an index
		perSlot    = 24 // and in its table
		perKey     = 48 // in the corpus, where most are a term's first
	)
	n := len(r.corpus.keys) * perKey
	for i, x := range r.indexes {
		n += perPassage + len(r.shown[i].Text) + x.tokens*perToken + len(x.table)*perSlot
	}
	return int64(n)
}
