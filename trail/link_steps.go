package trail

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// nameSteps names the steps of a sentence and of its passages.
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

// How much a step's answer says of a sentence is its relevance for that, and half as much that for the words of the
// passage that the sentence rests on; a step that did not have the passage says less. Of those that say about as much
// the first concluded it, and the others only pass it on.
const (
	passageShare = .5
	hadNoPassage = .8
	asMuch       = .85
)

// concluders returns the steps that concluded a sentence: the one whose answer says most of it, of those that have the
// most of its figures; those that say it together all did. Of a step that did not have its passage the answer
// counts only if it supports the sentence, or is near it where the passage is no more than that; the step that gave the
// final answer concluded what no other one says of a passage.
func (l *linker) concluders(s *Sentence, said sought, on ...hit) []int {
	if len(s.Steps) > 0 {
		return nil // a mark names the steps
	}
	if t := said.Together; t != nil && l.holds(&t.Verdict) {
		var steps []int
		for _, i := range t.Candidates {
			steps = append(steps, said.of[said.Candidates[i].Document].step)
		}
		return distinct(steps)
	}
	var had []int
	var evidence []float64 // how relevant each step's answer is for it
	for _, h := range on {
		had = append(had, l.holders[h.row].steps()...)
	}
	for i := range s.Passages {
		if s.Passages[i].holders != nil {
			had = append(had, s.Passages[i].holders.steps()...)
		}
	}
	if len(on) > 0 {
		evidence = l.saidOf(on[0].evidence)
	}
	isHeld := len(on) > 0 && !on[0].near // by a passage that supports it
	type sayer struct {
		step, figures int
		says          float64
	}
	var all []sayer
	for i := range said.Candidates {
		c := &said.Candidates[i]
		text, step := said.text(c), said.of[c.Document].step
		says := l.holds(&c.Verdict) || !isHeld && l.near(s.Text, c, said.pool, nil) && hasFigures(text, s.Text)
		if !says && !slices.Contains(had, step) {
			continue
		}
		one := sayer{step, commonFigures(s.Text, text), c.Relevance}
		if evidence != nil {
			one.says += passageShare * evidence[step]
		}
		if had != nil && !slices.Contains(had, step) {
			one.says *= hadNoPassage
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		if had == nil || l.last < 0 {
			return nil
		}
		return []int{l.last}
	}
	best := slices.MaxFunc(all, func(a, b sayer) int {
		return cmp.Or(cmp.Compare(a.figures, b.figures), cmp.Compare(a.says, b.says))
	})
	slices.SortFunc(all, func(a, b sayer) int { return cmp.Compare(a.step, b.step) })
	first := slices.IndexFunc(all, func(a sayer) bool {
		return a.figures == best.figures && a.says >= asMuch*best.says
	})
	return []int{all[first].step}
}

// saidOf returns how relevant each step's answer is for the words of a passage.
func (l *linker) saidOf(words string) []float64 {
	if l.answers == nil {
		texts := make([]support.Passage, len(l.t.Steps))
		for i := range texts {
			texts[i].Text = l.t.Steps[i].Answer
		}
		l.answers = support.NewCorpus(texts)
	}
	return l.answers.Relevance(words)
}

// holders says which steps had a passage: their indices, ascending.
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

// nearest returns the steps that had the passage and concluded a sentence, else the nearest before those that did, with
// how many steps before; where neither had it, all that had it and -1.
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

// maxFeeders is how many of the steps that one builds on are looked at.
const maxFeeders = 10_000

// stepsBefore returns a step, at 0, and those that it builds on, each with how many steps back it is.
func (l *linker) stepsBefore(step int) map[int]int {
	if known := l.feeders[step]; known != nil {
		return known
	}
	far := map[int]int{step: 0}
	for todo := []int{step}; len(todo) > 0 && len(far) < maxFeeders; todo = todo[1:] {
		for _, b := range l.before[todo[0]] {
			if _, ok := far[b]; !ok {
				far[b] = far[todo[0]] + 1
				todo = append(todo, b)
			}
		}
	}
	l.feeders[step] = far
	return far
}

// notePassage enters the step of a row among the holders of its passage. Known has the passages of the rows before.
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
	if n := len(*list); n == 0 || (*list)[n-1] != r.step { // rows stand in the order of steps
		*list = append(*list, r.step)
	}
}
