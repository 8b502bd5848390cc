package trail

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// infer asks the checker which steps concluded the sentences, and which passages support those that no citation or mark
// links to one.
func (l *linker) infer(ctx context.Context) error {
	passages, answers := &pool{}, &pool{} // even without texts, attribute finds which sentences to skip
	if !l.options.NoInference && len(l.links.Sentences) > 0 {
		l.links.By = l.checker.Info().By()
		var rows, steps []int
		for i := range l.rows {
			rows = append(rows, i)
		}
		for i := range l.t.Steps {
			if a := l.t.Steps[i].Answer; a != "" && a != l.final.Text && !l.onlyRepeats(i) {
				steps = append(steps, i)
			}
		}
		passages, answers = l.pool(rows, nil), l.pool(nil, steps)
	}
	byPassages, err := l.attribute(ctx, l.final, l.links.Sentences, passages, false)
	if err != nil {
		return err
	}
	byAnswers, err := l.attribute(ctx, l.final, l.links.Sentences, answers, true)
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
		if len(s.Passages) > 0 {
			s.concluded = l.concluders(s, byAnswers[i])
		} else {
			var before *Sentence
			if i > 0 {
				before = &l.links.Sentences[i-1]
			}
			if err := l.inferPassages(ctx, s, before, byPassages[i], byAnswers[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// comparison is a pool that a sentence was compared with, and the result.
type comparison struct {
	*support.SentenceSupport
	*pool
}

// inferPassages links a sentence without citations and marks to the passages that support it, else to what the answers
// of the steps that concluded it rest on, else to passages with another value.
func (l *linker) inferPassages(ctx context.Context, s, before *Sentence, passages, answers comparison) error {
	s.Skipped = passages.Skipped
	hits, answered := l.hits(s.Text, passages, &answers), l.hits(s.Text, answers, nil)
	if len(hits) == 0 || hits[0].near {
		from, states := l.calculatedFrom(s, before, passages)
		if states {
			hits = from
		} else if all := l.covering(s, passages, &answers); all != nil {
			hits = all
		}
		if states && len(hits) == 0 {
			s.concluded = l.concluders(s, answers)
			return nil
		}
	}
	if len(hits) > 0 && hits[0].near && len(answered) > 0 && answered[0].relevance > hits[0].relevance &&
		!slices.Contains(l.holders[hits[0].row].steps(), answered[0].step) {
		hits = nil // that step says more of it, and has it from elsewhere
	}
	s.concluded = l.concluders(s, answers, hits...)
	for _, h := range l.nearestPassages(hits, s.concluded) {
		if len(s.Passages) < l.options.PerSentence {
			s.add(l.inferredLink(h, h.score, nil))
		}
	}
	if len(s.Passages) == 0 {
		seen := map[[2]int]bool{}
		for _, h := range answered {
			if slices.Contains(s.concluded, h.step) && (!h.near || figures.MatchString(s.Text)) {
				if err := l.follow(ctx, s, h, h.score, nil, seen); err != nil {
					return err
				}
			}
		}
	}
	if len(s.Passages) == 0 && s.Skipped == "" {
		l.addDiffering(s, passages, answers)
	}
	return nil
}

// pool holds the texts that sentences are compared with.
type pool struct {
	docs []support.Document
	of   []pooled
}

// pooled identifies a text of a pool: a row, or the answer of a step.
type pooled struct {
	row  int // -1 for an answer
	step int
}

// pool returns the passages of rows, each text of a document once, and the answers of steps.
func (l *linker) pool(rows, steps []int) *pool {
	p := &pool{}
	put := func(words string, what pooled, relevance *float64) {
		from := ibid.Source{ID: strconv.Itoa(len(p.docs)), Kind: ibid.DocumentKind, Score: relevance}
		p.docs, p.of = append(p.docs, support.Document{Source: from, Text: words}), append(p.of, what)
	}
	for _, i := range steps {
		put(l.t.Steps[i].Answer, pooled{row: -1, step: i}, nil)
	}
	for _, i := range l.withWords(rows) {
		r := &l.rows[i]
		put(r.text(), pooled{row: i, step: r.step}, r.Relevance)
	}
	if left := len(p.docs) - maxPassages; left > 0 {
		p.docs, p.of = p.docs[:maxPassages], p.of[:maxPassages]
		const format = "%d passages over the limit of %d were not compared with the sentences"
		detail := fmt.Sprintf(format, left, maxPassages)
		l.links.Issues = append(l.links.Issues, ibid.Issue{Code: issueLimit, Detail: detail})
	}
	return p
}

// text returns the part of a text that was checked.
func (p *pool) text(c *support.Candidate) string {
	return p.docs[c.Document].Text[c.Span.Start:c.Span.End]
}

func (l *linker) attribute(
	ctx context.Context, a *ibid.Answer, sentences []Sentence, p *pool, cited bool,
) ([]comparison, error) {
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
	all := make([]comparison, len(sentences))
	for i := range all {
		all[i] = comparison{&done.Sentences[i], p}
	}
	return all, nil
}

// withoutMarks returns the span of a sentence without the marks at its end, which are not part of what it says.
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
	relevance float64
	score     *float64 // nil if the checker gives none
	threshold float64
	by        string
	near      bool      // it is not found to support the sentence, but [linker.near] it
	together  bool      // it supports the sentence only with others
	differs   string    // the value that it has instead, if any
	span      ibid.Span // the evidence, in the text
	evidence  string
}

// holds reports whether a verdict is good enough to link a sentence.
func (l *linker) holds(v *support.Verdict) bool {
	closeness := jsonNumber(v.Closeness)
	switch {
	case v.Label == support.Supported && v.Escalated: // a judge says so
		return true
	case v.Label == support.Differs || v.Label == support.Contradicted || v.Label == support.Unsupported:
		return false
	case l.options.Threshold > 0 && closeness != nil:
		return *closeness >= l.options.Threshold
	default:
		return v.IsClose()
	}
}

// hits returns the texts that a sentence rests on, best first: those that support it alone; else those that support it
// together; else the most relevant one, if it is [linker.near] and has no other values. For a sentence with figures
// that one comes before those that support it together, unless it is one of them. Answers are as in near.
func (l *linker) hits(claim string, s comparison, answers *comparison) []hit {
	var all []hit
	var nearest *support.Candidate
	atNearest := -1
	for i := range s.Candidates {
		c := &s.Candidates[i]
		switch {
		case l.holds(&c.Verdict):
			all = append(all, l.hit(c, &c.Verdict, s.pool))
		case (nearest == nil || c.Relevance > nearest.Relevance) && l.near(claim, c, s.pool, answers) &&
			!saysOtherwise(&c.Verdict, claim, s.text(c)):
			nearest, atNearest = c, i
		}
	}
	slices.SortStableFunc(all, func(a, b hit) int { return compareScores(a.score, b.score) })
	if t := s.Together; len(all) == 0 && t != nil && l.holds(&t.Verdict) &&
		(nearest == nil || !figures.MatchString(claim) || slices.Contains(t.Candidates, atNearest)) {
		for _, i := range t.Candidates {
			h := l.hit(&s.Candidates[i], &t.Verdict, s.pool)
			h.together = true
			all = append(all, h)
		}
	}
	if len(all) == 0 && nearest != nil {
		h := l.hit(nearest, &nearest.Verdict, s.pool)
		h.threshold, h.near = 0, true
		all = append(all, h)
	}
	return all
}

// A text that is not found to support a sentence is near it if its relevance is at least leastRelevance. Which of a
// run's few texts a paraphrase comes from, if any, is better told by the words that only one of them shares with it
// than by how much of it that text has. A figure, a name and a word that refers to something named before each halve
// this limit, down to leastOfAll, because sentences about nothing in particular more often rest on no source. The
// relevance of a passage includes answerShare of that of the answers of the steps that had it. Chosen on
// testdata/runs.json.
const (
	leastRelevance = .25
	leastOfAll     = .06
	answerShare    = .25
	leastLikely    = .3 // the least score instead, of checkers other than support.Lexical
)

var particulars = []*regexp.Regexp{
	figures,
	regexp.MustCompile(`(?i)\b(?:the|this|that|these|those|it|its|they|them|their|he|him|his|she|her|there)\b`),
}

// near reports whether a text is about the same thing as a claim. Answers are the steps' if the text is a passage, and
// nil if it is an answer itself.
func (l *linker) near(claim string, c *support.Candidate, p *pool, answers *comparison) bool {
	if l.options.Threshold != 0 || c.Verdict.Label == support.Unsupported || c.Verdict.Label == support.Contradicted {
		return false
	}
	least := leastRelevance
	text := p.text(c)
	for _, particular := range particulars {
		if particular.MatchString(claim) {
			least /= 2
		}
	}
	switch named, shared := sharesName(claim, text); {
	case shared:
		least /= 2
	case named && !figures.MatchString(claim) && !l.sharesWords(claim, text, 2):
		return false // it is about something that the text does not name
	}
	byAnswers := c.Relevance
	if answers != nil {
		byAnswers = 0
		steps := l.holders[p.of[c.Document].row].steps()
		for i := range answers.Candidates {
			if a := &answers.Candidates[i]; slices.Contains(steps, answers.of[a.Document].step) {
				byAnswers = max(byAnswers, a.Relevance)
			}
		}
	}
	return c.Relevance+answerShare*byAnswers >= max(least, leastOfAll) &&
		(figures.MatchString(claim) || !l.sharesTopicOnly(claim, p.text(c)))
}

// names matches names within a sentence: words with a capital letter that do not begin it.
var names = regexp.MustCompile(`[\pL\pN,;:] (\p{Lu}\pL+)`)

// sharesName reports whether a claim has names, and whether a text has one of them.
func sharesName(claim, text string) (named, shared bool) {
	for _, m := range names.FindAllStringSubmatch(claim, -1) {
		named = true
		if strings.Contains(text, m[1]) {
			return true, true
		}
	}
	return named, false
}

// sharesWords reports whether a claim shares at least n words with a text that the question does not have.
func (l *linker) sharesWords(claim, text string, n int) bool {
	asked, there := wordBeginnings(l.t.Question), wordBeginnings(text)
	for word := range wordBeginnings(claim) {
		if there[word] && !asked[word] {
			n--
		}
	}
	return n <= 0
}

// sharesTopicOnly reports whether a claim shares only one word with a text, and that is in the run's question, as in
// everything that the run read.
func (l *linker) sharesTopicOnly(claim, text string) bool {
	asked, there := wordBeginnings(l.t.Question), wordBeginnings(text)
	shared := 0
	for word := range wordBeginnings(claim) {
		if there[word] {
			if shared++; shared > 1 || !asked[word] {
				return false
			}
		}
	}
	return shared == 1
}

// longWords matches numbers, and words long enough to have a meaning of their own in most languages.
var longWords = regexp.MustCompile(`[0-9]+|[\pL\pN]{4,}`)

// wordBeginnings returns the first five letters of the words of a text, so that nests and nesting are the same.
func wordBeginnings(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range longWords.FindAllString(strings.ToLower(text), -1) {
		runes := []rune(word)
		all[string(runes[:min(len(runes), 5)])] = true
	}
	return all
}

// saysOtherwise reports whether a text gives another value than a claim. A negation counts only in texts that are close
// to the claim. A figure that rounds the text's is the same.
func saysOtherwise(v *support.Verdict, claim, text string) bool {
	if v.Label == support.Contradicted || slices.ContainsFunc(v.Missing, isFigure) && !hasFigures(text, claim) {
		return true
	}
	return v.Label == support.Differs &&
		(v.Closeness == nil || *v.Closeness >= support.CloseEnough || slices.ContainsFunc(v.Differences, isValue))
}

// hit returns a candidate with the verdict on it as a hit.
func (l *linker) hit(c *support.Candidate, v *support.Verdict, p *pool) hit {
	h := hit{
		pooled: p.of[c.Document], relevance: c.Relevance, threshold: cmp.Or(l.options.Threshold, support.CloseEnough),
		by: v.By, span: c.Evidence,
	}
	if h.score = jsonNumber(v.Closeness); h.score == nil {
		h.threshold = 0
	}
	if h.span.Len() <= 0 {
		h.span = c.Span
	} else {
		h.evidence = p.docs[c.Document].Text[c.Evidence.Start:c.Evidence.End]
	}
	return h
}

// nearestPassages returns the hits whose passages the steps that concluded a sentence had, else the steps before these,
// else all hits. Passages that support the sentence together stay together.
func (l *linker) nearestPassages(hits []hit, concluded []int) []hit {
	const elsewhere = 1 << 30
	var passages []hit
	best := elsewhere
	for _, h := range hits {
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
	r.Evidence, r.Via, r.near = h.evidence, via, h.near
	return r
}

// follow links a sentence of the final answer that rests on a step's answer (at) to what that rests on: passages of the
// step and, recursively, answers of the steps before it. Score is that of the least sure link so far, via has the
// numbers of the steps on the way, and seen the steps and sentences that were visited.
func (l *linker) follow(
	ctx context.Context, s *Sentence, at hit, score *float64, via []int, seen map[[2]int]bool,
) error {
	own, err := l.basisOf(ctx, at.step)
	if err != nil {
		return err
	}
	via = append(slices.Clone(via), l.t.Steps[at.step].Number)
	for k := range own.sentences {
		from, place := &own.sentences[k], [2]int{at.step, k}
		if from.Span.Start >= at.span.End || from.Span.End <= at.span.Start || seen[place] || len(seen) >= maxFollowed {
			continue
		}
		seen[place] = true
		for _, link := range from.Passages { // the step's answer cites it; that the final one says the same is inferred
			link.Reason, link.Via, link.Threshold, link.By = ReasonInferred, via, at.threshold, at.by
			link.Score = score
			s.add(link)
		}
		for _, h := range own.hits[k] {
			least := leastScore(score, h.score)
			switch {
			case len(s.Passages) >= l.options.PerSentence:
				return nil
			case h.row < 0:
				if err := l.follow(ctx, s, h, least, via, seen); err != nil {
					return err
				}
			case hasFigures(l.rows[h.row].text(), s.Text):
				s.add(l.inferredLink(h, least, via))
			}
		}
	}
	return nil
}

// leastScore returns the lower score, or nil if one is unknown.
func leastScore(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(min(*a, *b))
}

// basis is what the sentences of a step's answer rest on: its own sources, or answers of the steps before it.
type basis struct {
	sentences []Sentence
	hits      [][]hit // by sentence; none if it has citations or marks
}

// basisOf returns what the sentences of a step's answer rest on, computed once for each step.
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
	byPassages, err := l.attribute(ctx, a, own.sentences, l.pool(rows, nil), false)
	if err != nil {
		return nil, err
	}
	byAnswers, err := l.attribute(ctx, a, own.sentences, l.pool(nil, steps), false)
	if err != nil {
		return nil, err
	}
	for i := range own.sentences {
		if len(own.sentences[i].Passages) == 0 {
			own.hits[i] = append(
				l.hits(own.sentences[i].Text, byPassages[i], nil),
				l.hits(own.sentences[i].Text, byAnswers[i], nil)...,
			)
		}
	}
	return own, nil
}
