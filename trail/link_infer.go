package trail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// infer asks the checker which steps concluded the sentences, and what those rest on that nothing else ties to a
// passage.
func (l *linker) infer(ctx context.Context) error {
	texts, answers := &pool{}, &pool{} // even of no texts, attribute tells which sentences say something
	if !l.options.NoInference && len(l.links.Sentences) > 0 {
		l.links.By = l.checker.Info().By()
		texts, answers = l.finalPools()
	}
	found, err := l.attribute(ctx, l.final, l.links.Sentences, texts, false)
	if err != nil {
		return err
	}
	said, err := l.attribute(ctx, l.final, l.links.Sentences, answers, true)
	if err != nil {
		return err
	}
	if !l.options.NoInference {
		if err := l.markDiffering(ctx); err != nil {
			return err
		}
	}
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		s.concluded = l.concluders(s.Text, &said[i], answers)
		if len(s.Passages) > 0 {
			var all []*holders
			for k := range s.Passages {
				all = append(all, s.Passages[k].holders)
			}
			l.concludeByMostSaid(s, &said[i], answers, all)
		} else if err := l.inferPassages(ctx, i, &found[i], texts, &said[i], answers); err != nil {
			return err
		}
	}
	return nil
}

// finalPools returns what the sentences of the final answer are compared with: all passages and the answers of all
// steps; and of the latter those that are more than a copy of what the step retrieved.
func (l *linker) finalPools() (texts, answers *pool) {
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
	return l.pool(rows, steps), l.pool(nil, slices.DeleteFunc(steps, l.onlyRepeats))
}

// inferPassages links sentence i, which no citation and no mark ties to a passage, to those that support it; else to
// those that would if the sentence had their values.
func (l *linker) inferPassages(
	ctx context.Context, i int, found *support.SentenceSupport, texts *pool,
	said *support.SentenceSupport, answers *pool,
) error {
	s := &l.links.Sentences[i]
	s.Skipped = found.Skipped
	if len(s.concluded) == 1 {
		found.Together = nil // that step put it together, and its answer is followed
	}
	hits := l.hits(s.Text, found, texts)
	l.concludeByMostSaid(s, said, answers, l.holdersOf(hits))
	if err := l.addHits(ctx, s, hits); err != nil {
		return err
	}
	if len(hits) > 0 && hits[0].together && !s.hasFigures() {
		s.Passages = nil // figures of the sentence come from answers that worked them out
		return nil
	}
	if len(s.Passages) == 0 && s.Skipped == "" {
		return l.addDiffering(ctx, i, found, texts, said, answers)
	}
	return nil
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

// text returns what of a text of the pool was checked.
func (p *pool) text(c *support.Candidate) string {
	return p.docs[c.Document].Text[c.Span.Start:c.Span.End]
}

func (l *linker) attribute(
	ctx context.Context, a *ibid.Answer, sentences []Sentence, p *pool, cited bool,
) ([]support.SentenceSupport, error) {
	spans := make([]ibid.Span, len(sentences))
	for i := range sentences {
		spans[i] = withoutMarks(sentences[i].Text, sentences[i].Span)
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
		Cited:       cited,
	})
	if err != nil {
		return nil, err
	}
	return done.Sentences, nil
}

// withoutMarks returns the place of a sentence without the marks at its end: they are none of what it says.
func withoutMarks(text string, at ibid.Span) ibid.Span {
	for {
		rest := strings.TrimRight(text, ".!?。！？… \t\r\n")
		open := strings.LastIndexAny(rest, "[【")
		closed := strings.HasSuffix(rest, "]") || strings.HasSuffix(rest, "】")
		if open <= 0 || !closed || strings.Contains(rest[open:], "](") {
			return ibid.Span{Start: at.Start, End: at.Start + len(text)}
		}
		text = rest[:open]
	}
}

// hit is a text that supports a sentence.
type hit struct {
	pooled
	score     *float64 // nil: the checker has none
	threshold float64
	by        string
	together  bool       // it supports the sentence only with others
	differs   otherValue // the values with which it would; empty: it does as it is
	span      ibid.Span  // the evidence, in the text
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

// hits returns the texts that support a sentence, best first: each alone; where none does, the one that paraphrases it
// (see [linker.paraphrases]), or those that support it together. These go before a paraphrase of a sentence without
// figures. Passages and answers of steps are looked at separately.
func (l *linker) hits(claim string, s *support.SentenceSupport, p *pool) []hit {
	var all, partly []hit
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if l.holds(&c.Verdict) {
			all = append(all, l.hit(c, &c.Verdict, p))
		} else if least, ok := l.paraphrases(claim, p.text(c), &c.Verdict, p.of[c.Document].row < 0); ok {
			h := l.hit(c, &c.Verdict, p)
			h.threshold = least
			partly = append(partly, h)
		}
	}
	oneHasAll := len(partly) > 0 && figures.MatchString(claim)
	if t := s.Together; len(all) == 0 && !oneHasAll && t != nil && l.holds(&t.Verdict) {
		for _, i := range t.Candidates {
			h := l.hit(&s.Candidates[i], &t.Verdict, p)
			h.together = true
			all = append(all, h)
		}
	}
	byScore := func(a, b hit) int { return compareScores(a.score, b.score) }
	for _, of := range []func(hit) bool{isPassage, isAnswer} {
		if len(all) > 0 && all[0].together || slices.ContainsFunc(all, of) {
			continue
		}
		if some := slices.DeleteFunc(slices.Clone(partly), func(h hit) bool { return !of(h) }); len(some) > 0 {
			all = append(all, slices.MinFunc(some, byScore))
		}
	}
	slices.SortStableFunc(all, byScore)
	return all
}

func isAnswer(h hit) bool { return h.row < 0 }

func isPassage(h hit) bool { return h.row >= 0 }

// The least scores with which a text says most of a claim that it is not known to support: with all figures of the
// claim, and of a claim without any. They were chosen on testdata/runs.json.
const (
	leastWithFigures    = .3
	leastWithoutFigures = .4
	leastOfAnswer       = .05 // of the answer of a step
)

// paraphrases reports whether a text that is not known to support a claim says enough of it that the claim comes from
// there: it has all figures of the claim, and nothing in it differs. Least is the score that this takes.
func (l *linker) paraphrases(claim, text string, v *support.Verdict, answer bool) (least float64, ok bool) {
	least = leastWithoutFigures
	if figures.MatchString(claim) {
		least = leastWithFigures
		if answer {
			least = leastOfAnswer
		}
	}
	score := jsonNumber(v.Score)
	return least, l.options.Threshold == 0 && score != nil && *score >= least && !v.Changed &&
		v.Label != support.Contradicted && hasFigures(text, claim) &&
		!slices.ContainsFunc(v.Missing, func(t support.Term) bool { return isFigure(&t) })
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
	w := &walk{linker: l, sentence: s, seen: make(map[[2]int]bool)}
	for _, h := range l.nearestPassages(hits, s.concluded) {
		if len(s.Passages) < l.options.PerSentence {
			s.add(l.inferredLink(h, h.score, nil))
		}
	}
	for _, h := range hits {
		follow := len(s.concluded) == 0 || slices.Contains(s.concluded, h.step)
		if h.row < 0 && (len(s.Passages) == 0 && follow || h.together) {
			if h.together {
				s.concluded = append(s.concluded, h.step)
			}
			w.todo = append(w.todo, way{hit: h, score: h.score, via: []int{l.t.Steps[h.step].Number}})
		}
	}
	return w.run(ctx)
}

// nearestPassages returns the hits that are passages: those that the steps which concluded a sentence had, else those
// that the steps before these had, else all. Passages that support it together stay together.
func (l *linker) nearestPassages(hits []hit, concluded []int) []hit {
	const elsewhere = 1 << 30
	var passages []hit
	best := elsewhere
	for _, h := range hits {
		if h.row < 0 {
			continue
		}
		_, distance := l.holders[h.row].nearest(l, concluded)
		if distance = min(distance, 1); distance < 0 || h.together {
			distance = elsewhere
		}
		if distance < best {
			best, passages = distance, nil
		}
		if distance == best {
			passages = append(passages, h)
		}
	}
	return passages
}

func (l *linker) inferredLink(h hit, score *float64, via []int) Link {
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
		own, err := w.basisOf(ctx, at.step)
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
		case len(w.sentence.Passages) < w.options.PerSentence && hasFigures(w.rows[h.row].text(), w.sentence.Text):
			w.sentence.add(w.inferredLink(h, score, at.via))
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

// basis is what the sentences of a step's answer rest on: its own sources, or answers of the steps before it.
type basis struct {
	sentences []Sentence
	hits      [][]hit // by sentence; none where a citation or a mark says it
}

// basisOf returns what the sentences of a step's answer rest on. It looks at each step once.
func (l *linker) basisOf(ctx context.Context, step int) (*basis, error) {
	if own := l.bases[step]; own != nil {
		return own, nil
	}
	s := &l.t.Steps[step]
	a := &ibid.Answer{Text: s.Answer}
	for i := range s.Answers {
		if captured := s.Answers[i].Answer; captured != nil && captured.Text == s.Answer {
			a = captured
		}
	}
	own := &basis{sentences: l.sentences(a.Text, step)}
	own.hits = make([][]hit, len(own.sentences))
	l.bases[step] = own
	l.linkCitations(a, own.sentences)
	for i := range own.sentences {
		if len(own.sentences[i].Passages) == 0 {
			l.linkMarks(&own.sentences[i], step)
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
	found, err := l.attribute(ctx, a, own.sentences, p, false)
	if err != nil {
		return nil, err
	}
	for i := range own.sentences {
		if len(own.sentences[i].Passages) == 0 {
			own.hits[i] = l.hits(own.sentences[i].Text, &found[i], p)
		}
	}
	return own, nil
}
