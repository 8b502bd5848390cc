package trail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// infer asks the checker about the sentences that nothing else ties to a passage.
func (l *linker) infer(ctx context.Context) error {
	if !slices.ContainsFunc(l.links.Sentences, func(s Sentence) bool { return len(s.Passages) == 0 }) {
		return ctx.Err()
	}
	p := &pool{} // without texts it still tells which sentences say something
	if !l.options.NoInference {
		l.links.By = l.checker.Info().By()
		p = l.everything()
	}
	found, err := l.attribute(ctx, l.final, l.links.Sentences, p)
	if err != nil {
		return err
	}
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		if len(s.Passages) > 0 || i >= len(found) {
			continue
		}
		s.Skipped = found[i].Skipped
		if err := l.addHits(ctx, s, l.hits(&found[i], p)); err != nil {
			return err
		}
	}
	return nil
}

// everything returns the passages of all rows, and the answers of all steps.
func (l *linker) everything() *pool {
	rows := make([]int, len(l.rows))
	for i := range rows {
		rows[i] = i
	}
	var steps []int
	for i := range l.t.Steps {
		if a := l.t.Steps[i].Answer; a != "" && a != l.final.Text {
			steps = append(steps, i)
		}
	}
	return l.pool(rows, steps)
}

// pool is the texts that sentences are compared with.
type pool struct {
	docs []support.Document
	of   []pooled
}

// pooled is what a text of a pool is: a row, or the answer of a step.
type pooled struct {
	row  int // -1: it is an answer
	step int
}

// pool returns the passages of rows, each text of a document once, and the answers of steps.
func (l *linker) pool(rows, steps []int) *pool {
	p := &pool{}
	type text struct {
		document int
		text     string
	}
	seen := make(map[text]bool, len(rows))
	left := 0
	put := func(words string, what pooled, relevance *float64) {
		if len(p.docs) == maxPassages {
			left++
			return
		}
		p.docs = append(
			p.docs,
			support.Document{
				Source: ibid.Source{ID: strconv.Itoa(len(p.docs)), Kind: ibid.DocumentKind, Score: relevance},
				Text:   words,
			},
		)
		p.of = append(p.of, what)
	}
	for _, i := range steps {
		put(l.t.Steps[i].Answer, pooled{row: -1, step: i}, nil)
	}
	for _, i := range rows {
		r := &l.rows[i]
		if key := (text{r.document, r.text()}); key.text != "" && !seen[key] {
			seen[key] = true
			put(key.text, pooled{row: i, step: r.step}, r.Relevance)
		}
	}
	if left > 0 {
		l.links.Issues = append(l.links.Issues, ibid.Issue{
			Code: issueLimit,
			Detail: fmt.Sprintf(
				"%d passages over the limit of %d were not compared with the sentences", left, maxPassages,
			),
		})
	}
	return p
}

func (l *linker) attribute(
	ctx context.Context, a *ibid.Answer, sentences []Sentence, p *pool,
) ([]support.SentenceSupport, error) {
	spans := make([]ibid.Span, len(sentences))
	for i := range sentences {
		spans[i] = sentences[i].Span
	}
	threshold := support.Balanced
	if t := l.options.Threshold; t > 0 && t <= 1 {
		threshold = t
	}
	done, err := support.Attribute(ctx, a, p.docs, &support.AttributeOptions{
		Threshold:   threshold,
		PerSentence: l.options.PerSentence,
		Candidates:  2 * l.options.Candidates,
		Checker:     l.checker,
		ByScore:     l.options.ByScore,
		Sentences:   spans,
	})
	if err != nil {
		return nil, err
	}
	return done.Sentences, nil
}

// hit is a text that supports a sentence.
type hit struct {
	pooled
	score     *float64 // nil: the checker has none
	threshold float64
	by        string
	together  bool      // it supports the sentence only with others
	span      ibid.Span // the evidence, in the text
	evidence  string
}

// holds reports whether a verdict is good enough to say that words rest on a passage.
func (l *linker) holds(v *support.Verdict) bool {
	switch {
	case v.Changed || v.Label == support.Contradicted:
		return false
	case l.options.Threshold > 0 && jsonNumber(v.Score) != nil:
		return *v.Score >= l.options.Threshold
	default:
		return v.Label == support.Supported
	}
}

// hits returns the texts that support a sentence, best first: each alone, or where none does, those that do together.
func (l *linker) hits(s *support.SentenceSupport, p *pool) []hit {
	var all []hit
	for i := range s.Candidates {
		if c := &s.Candidates[i]; l.holds(&c.Verdict) {
			all = append(all, l.hit(c, &c.Verdict, p))
		}
	}
	if t := s.Together; len(all) == 0 && t != nil && l.holds(&t.Verdict) {
		for _, i := range t.Candidates {
			h := l.hit(&s.Candidates[i], &t.Verdict, p)
			h.together = true
			all = append(all, h)
		}
	}
	slices.SortStableFunc(all, func(a, b hit) int { return compareScores(a.score, b.score) })
	return all
}

// hit returns a candidate as what a verdict says that it supports.
func (l *linker) hit(c *support.Candidate, v *support.Verdict, p *pool) hit {
	h := hit{pooled: p.of[c.Document], threshold: cmp.Or(l.options.Threshold, v.Threshold), by: v.By, span: c.Evidence}
	if h.score = jsonNumber(v.Score); h.score == nil {
		h.threshold = 0
	}
	if h.span.Len() <= 0 {
		h.span = c.Span
	} else {
		h.evidence = p.docs[c.Document].Text[c.Evidence.Start:c.Evidence.End]
	}
	return h
}

// addHits adds what supports a sentence. Where no passage does, it follows the answers that do back through the steps.
func (l *linker) addHits(ctx context.Context, s *Sentence, hits []hit) error {
	for _, h := range hits {
		switch {
		case h.row < 0:
			s.Steps = append(s.Steps, l.t.Steps[h.step].Number)
		case len(s.Passages) < l.options.PerSentence:
			s.add(l.inferred(h, h.score, nil))
		}
	}
	w := &walk{linker: l, sentence: s, seen: make(map[[2]int]bool)}
	for _, h := range hits {
		if h.row < 0 && (len(s.Passages) == 0 || h.together) {
			w.todo = append(w.todo, way{hit: h, score: h.score, via: []int{l.t.Steps[h.step].Number}})
		}
	}
	return w.run(ctx)
}

func (l *linker) inferred(h hit, score *float64, via []int) Link {
	r := l.linkToRow(h.row)
	r.Reason, r.Score, r.Threshold, r.By = ReasonInferred, score, h.threshold, h.by
	r.Evidence, r.Via = h.evidence, via
	return r
}

// walk follows one sentence of the final answer back through the answers of the steps.
type walk struct {
	*linker
	sentence *Sentence
	todo     []way
	seen     map[[2]int]bool // step and sentence
}

// way is words of a step's answer that the sentence rests on, and how it comes to them.
type way struct {
	hit

	score *float64 // of the least sure link so far; nil: of one it is not known
	via   []int    // numbers of steps
}

func (w *walk) run(ctx context.Context) error {
	for len(w.todo) > 0 && len(w.seen) < maxWay && len(w.sentence.Passages) < w.options.PerSentence {
		at := w.todo[0]
		w.todo = w.todo[1:]
		own, err := w.ownWork(ctx, at.step)
		if err != nil {
			return err
		}
		for k := range own.sentences {
			s := &own.sentences[k]
			if s.Span.Start >= at.span.End || s.Span.End <= at.span.Start || w.seen[[2]int{at.step, k}] {
				continue
			}
			w.seen[[2]int{at.step, k}] = true
			w.step(at, s, own.hits[k])
		}
	}
	return nil
}

// step takes up what one sentence of a step's answer rests on.
func (w *walk) step(at way, s *Sentence, hits []hit) {
	for _, link := range s.Passages { // the step's answer cites it; that the final answer says the same is inferred
		link.Reason, link.Via, link.Threshold, link.By = ReasonInferred, at.via, at.threshold, at.by
		link.Score = at.score
		w.sentence.add(link)
	}
	for _, h := range hits {
		score := leastScore(at.score, h.score)
		switch {
		case h.row < 0:
			via := append(slices.Clone(at.via), w.t.Steps[h.step].Number)
			w.todo = append(w.todo, way{hit: h, score: score, via: via})
		case len(w.sentence.Passages) < w.options.PerSentence:
			w.sentence.add(w.inferred(h, score, at.via))
		}
	}
}

// leastScore returns the lesser score; nil where one is not known.
func leastScore(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(min(*a, *b))
}

// ownWork is what the sentences of a step's answer rest on: its own sources, or answers of the steps before it.
type ownWork struct {
	sentences []Sentence
	hits      [][]hit // by sentence; none where a citation or a mark says it
}

// ownWork looks at a step once.
func (l *linker) ownWork(ctx context.Context, step int) (*ownWork, error) {
	if own := l.own[step]; own != nil {
		return own, nil
	}
	s := &l.t.Steps[step]
	a := &ibid.Answer{Text: s.Answer}
	for i := range s.Answers {
		if captured := s.Answers[i].Answer; captured != nil && captured.Text == s.Answer {
			a = captured
		}
	}
	own := &ownWork{sentences: l.sentences(a.Text, step)}
	own.hits = make([][]hit, len(own.sentences))
	l.own[step] = own
	l.cited(a, own.sentences)
	for i := range own.sentences {
		if len(own.sentences[i].Passages) == 0 {
			l.marked(&own.sentences[i], step)
		}
	}
	var rows, steps []int
	for k := range s.Sources {
		rows = append(rows, l.at[&s.Sources[k]])
	}
	for _, b := range l.before[step] {
		if l.t.Steps[b].Answer != "" {
			steps = append(steps, b)
		}
	}
	p := l.pool(rows, steps)
	found, err := l.attribute(ctx, a, own.sentences, p)
	if err != nil {
		return nil, err
	}
	for i := range own.sentences {
		if i < len(found) && len(own.sentences[i].Passages) == 0 {
			own.hits[i] = l.hits(&found[i], p)
		}
	}
	return own, nil
}
