package trail

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// nameSteps names the steps of a sentence and of its passages.
func (l *linker) nameSteps(s *Sentence) {
	if len(s.concluded) == 0 && len(s.Steps) == 0 {
		s.concluded = l.concludersOfUnsaid(s)
	}
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
			steps, distance := p.holders.nearest(l, s.concluded)
			if distance < 0 {
				steps = l.closestSteps(s, steps)
			}
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

// concluders returns the steps that concluded a sentence, of those whose answers say it: the first that has all figures
// of it; of one without figures the first that says it, unless another one says it much better. The others only pass it
// on. Those that say it together all did.
func (l *linker) concluders(claim string, said *support.SentenceSupport, answers *pool) []int {
	var best []hit
	for i := range said.Candidates {
		c := &said.Candidates[i]
		if _, ok := l.paraphrases(claim, answers.text(c), &c.Verdict, true); ok || l.holds(&c.Verdict) {
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
	return l.firstToSay(claim, best)
}

// firstToSay returns the step of the hits that concluded a sentence, each of which says it alone: see
// [linker.concluders].
func (l *linker) firstToSay(claim string, hits []hit) []int {
	if len(hits) == 0 {
		return nil
	}
	top := slices.MinFunc(hits, func(a, b hit) int { return compareScores(a.score, b.score) })
	first := top.step
	for _, h := range hits {
		asGood := h.score != nil && top.score != nil && *h.score >= *top.score-muchBetter
		if h.step < first && (asGood || figures.MatchString(claim)) {
			first = h.step
		}
	}
	return []int{first}
}

// muchBetter is how much better than the first step another one must say a sentence to have concluded it.
const muchBetter = .15

// leastConcluding is the least score of a step's answer with which the step concluded a sentence of which it had a
// passage, where no answer says all of it: answers do not repeat what was asked.
const leastConcluding = .2

// concludeByMostSaid finds who concluded a sentence that no step's answer says in full: of the steps that had a passage
// of it, or else of those that build on one that had, the one whose answer says the most of it.
func (l *linker) concludeByMostSaid(s *Sentence, said *support.SentenceSupport, answers *pool, passages []*holders) {
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
		if score == nil || *score < leastConcluding || said.Candidates[i].Verdict.Changed || distance < 0 {
			continue
		}
		strength := *score
		if distance == 0 { // a step that read the passage goes before those that read another one's answer
			strength++
		}
		if strength > best {
			best, s.concluded = strength, []int{step}
		}
	}
}

// concludersOfUnsaid returns the steps that concluded a sentence which no step's answer says before the final one: the
// step that gave the final answer; or, where that had none of the passages itself, the closest of those that had one
// and answered.
func (l *linker) concludersOfUnsaid(s *Sentence) []int {
	var had []int
	for k := range s.Passages {
		if s.Passages[k].holders == nil {
			continue
		}
		for _, step := range s.Passages[k].holders.steps() {
			if step == l.last {
				return []int{l.last}
			}
			if l.t.Steps[step].Answer != "" && !l.onlyRepeats(step) {
				had = append(had, step)
			}
		}
	}
	switch {
	case l.last < 0 || len(s.Passages) == 0:
		return nil
	case len(had) > 0:
		return l.closestSteps(s, distinct(had))
	}
	return []int{l.last}
}

// closestSteps returns, of several steps that had a passage of a sentence which no step's answer says, the one whose
// question and answer have the most words in common with it; all of them where another one has about as many.
func (l *linker) closestSteps(s *Sentence, steps []int) []int {
	if len(steps) < 2 || l.options.NoInference {
		return steps
	}
	if l.words == nil {
		texts := make([]support.Passage, len(l.t.Steps))
		for i := range texts {
			texts[i].Text = l.t.Steps[i].Question + "\n" + l.t.Steps[i].Answer
		}
		l.words = support.NewCorpus(texts)
	}
	relevance := l.words.Relevance(s.Text)
	best := slices.MaxFunc(steps, func(a, b int) int { return cmp.Compare(relevance[a], relevance[b]) })
	for _, i := range steps {
		if i != best && relevance[i] >= asRelevant*relevance[best] {
			return steps
		}
	}
	return []int{best}
}

// asRelevant is the share of the closest step's relevance from which on another one may be meant as well.
const asRelevant = .95

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

// holdersOf returns the holders of the passages among the hits.
func (l *linker) holdersOf(hits []hit) (all []*holders) {
	for _, h := range hits {
		if h.row >= 0 {
			all = append(all, l.holders[h.row])
		}
	}
	return all
}
