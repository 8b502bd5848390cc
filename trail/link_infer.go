package trail

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// infer asks the checker which steps concluded the sentences, and what those rest on that nothing else ties to a
// passage.
func (l *linker) infer(ctx context.Context) error {
	texts, answers := &pool{}, &pool{} // without texts it still tells which sentences say something
	if !l.options.NoInference && len(l.links.Sentences) > 0 {
		l.links.By = l.checker.Info().By()
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
		texts = l.pool(rows, steps)
		answers = l.pool(nil, slices.DeleteFunc(steps, l.repeats))
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
			var all []*had
			for k := range s.Passages {
				all = append(all, s.Passages[k].had)
			}
			l.concludeWeakly(s, &said[i], answers, all)
			continue
		}
		s.Skipped = found[i].Skipped
		if len(s.concluded) == 1 {
			found[i].Together = nil // it is that step which put it together
		}
		hits := l.hits(s.Text, &found[i], texts)
		l.concludeWeakly(s, &said[i], answers, l.hadBy(hits))
		if err := l.addHits(ctx, s, hits); err != nil {
			return err
		}
		if len(hits) > 0 && hits[0].together && !s.hasFigures() {
			s.Passages = nil // the answers among them have some that were worked out
		} else if len(s.Passages) == 0 && s.Skipped == "" {
			if err := l.addDiffering(ctx, i, &found[i], texts, &said[i], answers); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeats reports whether the answer of a step is nothing but what the step retrieved: such a step concluded nothing.
func (l *linker) repeats(step int) bool {
	s := &l.t.Steps[step]
	rest := s.Answer
	for i := range s.Sources {
		if text := s.Sources[i].text(); text != "" {
			rest = strings.ReplaceAll(rest, text, "")
		}
	}
	return len(rest) < len(s.Answer)/2
}

// concluders returns the steps that concluded a sentence, of those whose answers say it: the first that has all figures
// of it; of one without figures the first that says it, unless another one says it much better. The others only pass it
// on. Those that say it together all did.
func (l *linker) concluders(claim string, said *support.SentenceSupport, answers *pool) []int {
	var best []hit
	for i := range said.Candidates {
		c := &said.Candidates[i]
		if _, ok := l.says(claim, answers.text(c), &c.Verdict, true); ok || l.holds(&c.Verdict) {
			best = append(best, l.hit(c, &c.Verdict, answers))
		}
	}
	if len(best) == 0 {
		best = l.hits(claim, said, answers) // together
		var steps []int
		for _, h := range best {
			steps = append(steps, h.step)
		}
		return distinct(steps)
	}
	return l.first(claim, best)
}

// first returns the first of the steps, each of which says a sentence alone.
func (l *linker) first(claim string, hits []hit) []int {
	if len(hits) == 0 {
		return nil
	}
	top := slices.MinFunc(hits, func(a, b hit) int { return compareScores(a.score, b.score) })
	first := top.step
	for _, h := range hits {
		close := h.score != nil && top.score != nil && *h.score >= *top.score-passedOn
		if h.step < first && (close || figures.MatchString(claim)) {
			first = h.step
		}
	}
	return []int{first}
}

// weakly is the least score with which the answer of a step that had a sentence's passage says the sentence, where no
// answer says all of it: answers leave out what was asked.
const weakly = .2

// concludeWeakly finds who concluded a sentence that no step's answer says in full: the step whose answer says the most
// of it, of those that had a passage of it or build on one that had.
func (l *linker) concludeWeakly(s *Sentence, said *support.SentenceSupport, answers *pool, passages []*had) {
	if len(s.concluded) > 0 || len(s.Steps) > 0 {
		return
	}
	best := 0.
	for i := range said.Candidates {
		score, step := jsonNumber(said.Candidates[i].Verdict.Score), answers.of[said.Candidates[i].Document].step
		distance := -1
		for _, h := range passages {
			if h != nil && distance != 0 {
				_, distance = h.nearest(l, []int{step})
			}
		}
		if score == nil || *score < weakly || said.Candidates[i].Verdict.Changed || distance < 0 {
			continue
		}
		strength := *score
		if distance == 0 { // who read the passage rather than who read what somebody else made of it
			strength++
		}
		if strength > best {
			best, s.concluded = strength, []int{step}
		}
	}
}

// hadBy returns who had the passages among the hits.
func (l *linker) hadBy(hits []hit) (all []*had) {
	for _, h := range hits {
		if h.row >= 0 {
			all = append(all, l.had[h.row])
		}
	}
	return all
}

// passedOn is how much better than the first step another one must say a sentence to have concluded it.
const passedOn = .15

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
		if open <= 0 || !strings.HasSuffix(rest, "]") && !strings.HasSuffix(rest, "】") || strings.Contains(rest[open:], "](") {
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

// isFigure reports whether what a passage lacks is a number, or a date with one.
func isFigure(t *support.Term) bool {
	return (t.Kind == support.TermNumber || t.Kind == support.TermDate) && strings.ContainsAny(t.Text, "0123456789")
}

// hits returns the texts that support a sentence, best first: each alone; where none does, the one that has all figures of
// it and says most of it, or else those that support it together, or the one that says most of it: see [linker.says].
func (l *linker) hits(claim string, s *support.SentenceSupport, p *pool) []hit {
	var all, partly []hit
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if l.holds(&c.Verdict) {
			all = append(all, l.hit(c, &c.Verdict, p))
		} else if least, ok := l.says(claim, p.text(c), &c.Verdict, p.of[c.Document].row < 0); ok {
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

// hasFigures reports whether the passages of a sentence have all figures of it.
func (s *Sentence) hasFigures() bool {
	var text strings.Builder
	for i := range s.Passages {
		text.WriteString(s.Passages[i].Text() + "\n")
	}
	return hasFigures(text.String(), s.Text)
}

func isAnswer(h hit) bool  { return h.row < 0 }
func isPassage(h hit) bool { return h.row >= 0 }

// The least scores with which a text says most of a claim that it is not known to support: with all figures of the
// claim, and of a claim without any. They were chosen on testdata/runs.json.
const (
	saysFigures    = .3
	saysWords      = .4
	answersFigures = .05 // of the answer of a step
)

// says reports whether a text says so much of a claim that it is where the claim comes from, paraphrased: it has all
// figures of it, and nothing in it differs.
func (l *linker) says(claim, text string, v *support.Verdict, answer bool) (least float64, ok bool) {
	least = saysWords
	if figures.MatchString(claim) {
		least = saysFigures
		if answer {
			least = answersFigures
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
	for _, h := range l.nearest(hits, s.concluded) {
		if len(s.Passages) < l.options.PerSentence {
			s.add(l.inferred(h, h.score, nil))
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

// nearest returns the hits that are passages: those that the steps which concluded a sentence had, else those that the
// steps before these had, else all. Passages that support it together stay together.
func (l *linker) nearest(hits []hit, concluded []int) []hit {
	const elsewhere = 1 << 30
	var passages []hit
	best := elsewhere
	for _, h := range hits {
		if h.row < 0 {
			continue
		}
		_, distance := l.had[h.row].nearest(l, concluded)
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

// addDiffering links a sentence that no passage supports to those that would, if the sentence had their values.
func (l *linker) addDiffering(
	ctx context.Context, i int, found *support.SentenceSupport, texts *pool, said *support.SentenceSupport, answers *pool,
) error {
	s := &l.links.Sentences[i]
	hits, err := l.differing(ctx, i, found, texts, len(s.concluded) > 0)
	if err != nil || len(hits) == 0 {
		return err
	}
	if len(s.concluded) == 0 {
		own, err := l.differing(ctx, i, said, answers, false)
		if err != nil {
			return err
		}
		s.concluded = l.first(s.Text, own)
		l.concludeWeakly(s, said, answers, l.hadBy(hits))
	}
	for _, h := range l.nearest(hits, s.concluded) {
		if len(s.Passages) < l.options.PerSentence {
			link := l.inferred(h, nil, nil)
			link.Threshold, link.Differs = 0, h.differs.text
			s.add(link)
		}
	}
	return nil
}

// differing returns the candidates of sentence i that support it once it has their values. Counted says that a step's
// answer has the sentence's own value, which may have been worked out from others: then only what looks
// like a slip differs.
func (l *linker) differing(ctx context.Context, i int, found *support.SentenceSupport, p *pool, counted bool) ([]hit, error) {
	var all []hit
	var pairs []support.Pair
	for k := range found.Candidates {
		c := &found.Candidates[k]
		text := p.text(c)
		for claim, differs := range withOtherValues(l.final.Text[found.Claim.Start:found.Claim.End], text, &c.Verdict) {
			h := l.hit(c, &c.Verdict, p)
			h.differs = differs
			all, pairs = append(all, h), append(pairs, l.pair(i, claim, text))
		}
	}
	verdicts, err := l.ask(ctx, pairs)
	if err != nil {
		return nil, err
	}
	var hits []hit
	for k := range verdicts {
		_, says := l.says(pairs[k].Claim, pairs[k].Passages[0].Text, &verdicts[k], false)
		if (says || l.holds(&verdicts[k])) && (!counted || all[k].differs.slip) {
			all[k].score = jsonNumber(verdicts[k].Score)
			hits = append(hits, all[k])
		}
	}
	// Of one passage the value counts that fits best and is nearest; then the passages by how well they fit.
	fit := func(h *hit) float64 {
		if h.score == nil {
			return -h.differs.apart
		}
		return *h.score - h.differs.apart/2 // at most by 0.35
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(fit(&b), fit(&a)) })
	seen := map[pooled]bool{}
	return slices.DeleteFunc(hits, func(h hit) bool {
		known := seen[h.pooled]
		seen[h.pooled] = true
		return known
	}), nil
}

// maxDiffering is how many passages that a citation or a mark names are compared with their sentences.
const maxDiffering = 1000

// markDiffering marks the passages that citations and marks name and that differ from their sentence in a value.
func (l *linker) markDiffering(ctx context.Context) error {
	var links []*Link
	var pairs, corrected []support.Pair
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		for k := range s.Passages {
			if text := s.Passages[k].Text(); text != "" && len(pairs) < maxDiffering {
				links, pairs = append(links, &s.Passages[k]), append(pairs, l.pair(i, s.Text, text))
			}
		}
	}
	verdicts, err := l.ask(ctx, pairs)
	if err != nil {
		return err
	}
	var changed []*Link
	var values []string
	for k := range verdicts {
		if l.holds(&verdicts[k]) {
			continue
		}
		for claim, differs := range withOtherValues(pairs[k].Claim, pairs[k].Passages[0].Text, &verdicts[k]) {
			pair := pairs[k]
			pair.Claim = claim
			changed, values, corrected = append(changed, links[k]), append(values, differs.text), append(corrected, pair)
		}
	}
	if verdicts, err = l.ask(ctx, corrected); err != nil {
		return err
	}
	for k := range verdicts {
		if l.holds(&verdicts[k]) { // else the passage says something else altogether
			changed[k].Differs = cmp.Or(changed[k].Differs, values[k])
		}
	}
	return nil
}

// pair is words of sentence i and a passage, with the sentence before as context.
func (l *linker) pair(i int, claim, passage string) support.Pair {
	p := support.Pair{Claim: claim, Passages: []support.Passage{{Text: passage}}}
	if i > 0 {
		p.Context = l.links.Sentences[i-1].Text
	}
	return p
}

func (l *linker) ask(ctx context.Context, pairs []support.Pair) ([]support.Verdict, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	verdicts, err := l.checker.Check(ctx, pairs)
	if err == nil && len(verdicts) != len(pairs) {
		err = fmt.Errorf("checker %s gave %d verdicts for %d pairs", l.checker.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, err
}

// withOtherValues yields a claim with values of a passage in the place of its own, by what a verdict says of both, each
// with these values: "62". In the place of one figure come in turn the figures of the passage that it may be: see
// [otherFigures]; then the values with which the claim is in conflict.
func withOtherValues(claim, passage string, v *support.Verdict) iter.Seq2[string, otherValue] {
	return func(yield func(string, otherValue) bool) {
		var lacks []ibid.Span
		for i := range v.Missing {
			if isFigure(&v.Missing[i]) {
				lacks = append(lacks, v.Missing[i].Span)
			}
		}
		for i := range v.Conflicts {
			overlaps := func(s ibid.Span) bool {
				return s.Start < v.Conflicts[i].A.Value.End && v.Conflicts[i].A.Value.Start < s.End
			}
			if v.Conflicts[i].A.Passage == support.InClaim && !slices.ContainsFunc(lacks, overlaps) {
				lacks = append(lacks, v.Conflicts[i].A.Value)
			}
		}
		if len(lacks) == 1 && lacks[0].Start >= 0 && lacks[0].Start <= lacks[0].End && lacks[0].End <= len(claim) {
			if at := figures.FindStringIndex(claim[lacks[0].Start:lacks[0].End]); at != nil {
				from, to := lacks[0].Start+at[0], lacks[0].Start+at[1]
				for _, other := range otherFigures(claim, ibid.Span{Start: from, End: to}, passage) {
					if !yield(claim[:from]+other.text+claim[to:], other) {
						return
					}
				}
			}
		}
		if corrected, differs := withValues(claim, v.Conflicts); differs != "" {
			yield(corrected, otherValue{text: differs})
		}
	}
}

// otherValue is what a passage has in the place of what a claim says.
type otherValue struct {
	text  string
	apart float64 // how far the figures are from each other: the logarithm of their ratio
	unit  bool    // they stand before the same word
	slip  bool    // they have the same digits but one, or in another order
}

// otherFigures returns the figures of a passage that the one at a place of a claim may be meant to be, those of about the
// same size: before the same word first, then by their size.
func otherFigures(claim string, at ibid.Span, passage string) []otherValue {
	size, unit := sizeOf(claim[at.Start:at.End]), wordAfter(claim[at.End:])
	var others []otherValue
	for _, found := range figures.FindAllStringIndex(passage, maxFigures) {
		other := otherValue{text: passage[found[0]:found[1]]}
		other.apart = math.Abs(math.Log(sizeOf(other.text) / size))
		other.unit = unit != "" && unit == wordAfter(passage[found[1]:])
		if other.slip = isSlip(claim[at.Start:at.End], other.text); other.slip {
			other.apart = 0
		}
		if !strings.Contains(claim, other.text) && other.apart <= math.Ln2 && !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	slices.SortStableFunc(others, func(a, b otherValue) int {
		if a.unit != b.unit && a.unit {
			return -1
		} else if a.unit != b.unit {
			return 1
		}
		return cmp.Compare(a.apart, b.apart)
	})
	return others[:min(len(others), maxTried)]
}

const (
	maxFigures = 1000 // how many figures of a passage are looked at
	maxTried   = 8    // how many of them are tried in the place of one that it lacks
)

// isSlip reports whether two figures have the same digits but one, or the same in another order.
func isSlip(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	others := 0
	for i := range len(a) {
		if a[i] != b[i] {
			others++
		}
	}
	return others == 1 || slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// sizeOf returns a figure as a number, whatever separates its thousands and decimals; NaN: none.
func sizeOf(figure string) float64 {
	if at := strings.LastIndexAny(figure, ".,"); at >= 0 && len(figure)-at == 4 {
		figure = figure[:at] + figure[at+1:]
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(figure, ",", "."), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// wordAfter returns the word that follows on a figure, in lower case; empty: none.
func wordAfter(text string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(text, " \u00a0-"), " ")
	return strings.ToLower(strings.Trim(word, ".,;:!?)"))
}

// figures matches numbers, times of day included.
var figures = regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`)

// withValues returns a claim with the values of the evidence in the place of its own, and these values without what the
// claim's have in common with them: "62" for 62 turbines instead of 72 turbines. Empty: nothing can be put in place.
func withValues(claim string, conflicts []support.Conflict) (corrected, differs string) {
	conflicts = slices.SortedFunc(slices.Values(conflicts), func(a, b support.Conflict) int {
		return cmp.Compare(a.A.Value.Start, b.A.Value.Start)
	})
	var values []string
	from := 0
	for i := range conflicts {
		at, value := conflicts[i].A.Value, conflicts[i].B.ValueText()
		if conflicts[i].A.Passage != support.InClaim || value == "" || at.Start < from || at.Len() <= 0 ||
			at.End > len(claim) {
			continue
		}
		corrected += claim[from:at.Start] + value
		own, other := strings.Fields(claim[at.Start:at.End]), strings.Fields(value)
		for len(own) > 1 && len(other) > 1 && own[len(own)-1] == other[len(other)-1] {
			own, other = own[:len(own)-1], other[:len(other)-1]
		}
		values = append(values, strings.Join(other, " "))
		from = at.End
	}
	return corrected + claim[from:], strings.Join(values, ", ")
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
		case len(w.sentence.Passages) < w.options.PerSentence && hasFigures(w.rows[h.row].text(), w.sentence.Text):
			w.sentence.add(w.inferred(h, score, at.via))
		}
	}
}

// hasFigures reports whether a text has all figures of a sentence: one that has not is not where they come from, whatever
// they were worked out from.
func hasFigures(text, sentence string) bool {
	in := map[string]bool{}
	for _, f := range figures.FindAllString(text, -1) {
		in[f] = true
	}
	for _, f := range figures.FindAllString(sentence, -1) {
		if !in[f] {
			return false
		}
	}
	return true
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
