package trail

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// nameSteps sets the step numbers of a sentence and of its passages.
func (l *linker) nameSteps(s *Sentence) {
	numbers := func(steps []int) (all []int) {
		for _, i := range steps[:min(len(steps), maxNamed)] {
			all = append(all, l.t.Steps[i].Number)
		}
		return distinct(all)
	}
	s.Steps = append(s.Steps, numbers(s.concluded)...)
	for k := range s.Passages {
		p := &s.Passages[k]
		if p.holders != nil {
			steps, _ := p.holders.nearest(l, s.concluded)
			p.Steps = numbers(steps)
		}
		if len(s.concluded) == 0 {
			s.Steps = append(s.Steps, p.Steps...)
		}
		s.Steps = append(s.Steps, p.Via...)
	}
	s.Steps = distinct(s.Steps)
}

// onlyRepeats reports whether more than half of a step's answer is copied from what the step retrieved: such a step
// concluded nothing.
func (l *linker) onlyRepeats(step int) bool {
	s := &l.t.Steps[step]
	rest := s.Answer
	for i := range s.Sources {
		if text := s.Sources[i].text(); text != "" {
			rest = strings.ReplaceAll(rest, text, "")
		}
	}
	return len(rest) < len(s.Answer)/2
}

// How much of a sentence a step's answer says is its relevance to the sentence, plus passageShare of its relevance to
// the words of the passage that the sentence rests on, times hadNoPassage if the step did not have that passage. The
// first step with at least asMuch of the highest value concluded the sentence, and the others only pass it on.
const (
	passageShare = .5
	hadNoPassage = .8
	asMuch       = .85
)

// concluders returns the steps that concluded a sentence: all whose answers support it together, else the one whose
// answer says most of it, among those that have most of its figures. The answer of a step that did not have the passage
// counts only if it supports the sentence, or if both it and the passage are only near the sentence. If no other step
// says what a passage does, the step that gave the final answer concluded it.
func (l *linker) concluders(s *Sentence, answers comparison, on ...hit) []int {
	if len(s.Steps) > 0 {
		return nil // a mark names the steps
	}
	if t := answers.Together; t != nil && l.holds(&t.Verdict) {
		var steps []int
		for _, i := range t.Candidates {
			steps = append(steps, answers.of[answers.Candidates[i].Document].step)
		}
		return distinct(steps)
	}
	var had []int
	var evidence []float64 // the relevance of each step's answer to it
	for _, h := range on {
		had = append(had, l.holders[h.row].steps()...)
	}
	for i := range s.Passages {
		if s.Passages[i].holders != nil {
			had = append(had, s.Passages[i].holders.steps()...)
		}
	}
	if len(on) > 0 {
		evidence = l.answerRelevance(on[0].evidence)
	}
	supported := len(on) > 0 && !on[0].near
	type concluder struct {
		step, figures int
		share         float64
	}
	var all []concluder
	for i := range answers.Candidates {
		c := &answers.Candidates[i]
		text, step := answers.text(c), answers.of[c.Document].step
		counts := l.holds(&c.Verdict) || !supported && l.near(s.Text, c, answers.pool, nil) && hasFigures(text, s.Text)
		if !counts && !slices.Contains(had, step) {
			continue
		}
		one := concluder{step, commonFigures(s.Text, text), c.Relevance}
		if evidence != nil {
			one.share += passageShare * evidence[step]
		}
		if had != nil && !slices.Contains(had, step) {
			one.share *= hadNoPassage
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		if had == nil || l.last < 0 {
			return nil
		}
		return []int{l.last}
	}
	best := slices.MaxFunc(all, func(a, b concluder) int {
		return cmp.Or(cmp.Compare(a.figures, b.figures), cmp.Compare(a.share, b.share))
	})
	slices.SortFunc(all, func(a, b concluder) int { return cmp.Compare(a.step, b.step) })
	first := slices.IndexFunc(all, func(a concluder) bool {
		return a.figures == best.figures && a.share >= asMuch*best.share
	})
	return []int{all[first].step}
}

// answerRelevance returns the relevance of each step's answer to the words of a passage.
func (l *linker) answerRelevance(words string) []float64 {
	if l.answers == nil {
		texts := make([]support.Passage, len(l.t.Steps))
		for i := range texts {
			texts[i].Text = l.t.Steps[i].Answer
		}
		l.answers = support.NewCorpus(texts)
	}
	return l.answers.Relevance(words)
}

// holders has the indices of the steps that had a passage, ascending.
type holders struct {
	title           string
	used, retrieved []int
}

func (h *holders) steps() []int {
	if len(h.used) > 0 {
		return h.used
	}
	return h.retrieved
}

// nearest returns the steps that had the passage and concluded a sentence, else the nearest before those that concluded
// it, and how many steps before. If there are none, it returns all that had the passage, and -1.
func (h *holders) nearest(l *linker, concluded []int) (steps []int, distance int) {
	distance = -1
	for _, step := range h.steps() {
		for _, c := range concluded {
			d, ok := l.stepsBefore(c)[step]
			if !ok || distance >= 0 && d > distance {
				continue
			}
			if d != distance {
				steps, distance = nil, d
			}
			steps = append(steps, step)
		}
	}
	if distance < 0 {
		return h.steps(), distance
	}
	return steps, distance
}

// maxEarlier is how many of the steps that one builds on are looked at.
const maxEarlier = 10_000

// stepsBefore returns how many steps back each step is that a step builds on, directly or not; the step itself is at 0.
func (l *linker) stepsBefore(step int) map[int]int {
	if known := l.earlier[step]; known != nil {
		return known
	}
	far := map[int]int{step: 0}
	for todo := []int{step}; len(todo) > 0 && len(far) < maxEarlier; todo = todo[1:] {
		for _, b := range l.before[todo[0]] {
			if _, ok := far[b]; !ok {
				far[b] = far[todo[0]] + 1
				todo = append(todo, b)
			}
		}
	}
	l.earlier[step] = far
	return far
}

// notePassage adds the step of a row to the holders of its passage. Known has the passages of the rows before.
func (l *linker) notePassage(row int, known *passageIndex) {
	r := &l.rows[row]
	name := l.names[r.document]
	k, ok := known.find(name, r.Source)
	if !ok {
		k = len(l.passages)
		known.add(name, r.Source)
		l.passages = append(l.passages, &holders{})
	} else {
		known.join(k, r.Source)
	}
	h := l.passages[k]
	l.holders[row] = h
	h.title = cmp.Or(h.title, r.Title)
	list := &h.retrieved
	if r.counts() {
		list = &h.used
	}
	if n := len(*list); n == 0 || (*list)[n-1] != r.step { // rows are in step order
		*list = append(*list, r.step)
	}
}
