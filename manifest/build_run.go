package manifest

import (
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// run is the part of a trail that led to the answer.
type run struct {
	steps  []*step // each after those it builds on, except in cycles
	makers []*step // those that made every claim
	fed    bool    // trail.Step.Fed refers to this answer
	cut    int     // number of steps beyond maxSteps
	edges  int     // number of edges left out of the chain
}

// step is one step of a chain that is being built.
type step struct {
	*trail.Step
	number  int
	before  []*step
	sources []*source
	has     map[*source]bool
}

// add adds a source to the step, once.
func (s *step) add(one *source) {
	if s.has[one] {
		return
	}
	if s.has == nil {
		s.has = map[*source]bool{}
	}
	s.has[one] = true
	s.sources = append(s.sources, one)
}

// runOf returns the steps that led to an answer. There is always one.
func runOf(a *ibid.Answer, t *trail.Trail) *run {
	if t == nil || len(t.Steps) == 0 {
		only := &step{Step: &trail.Step{Answer: a.Text}, number: 1}
		return &run{steps: []*step{only}, makers: []*step{only}}
	}
	r := &run{fed: t.Final == a || t.Answer == a.Text || t.Final != nil && t.Final.Text == a.Text}
	last := -1 // the step that gave the answer
	for i := range t.Steps {
		s := &t.Steps[i]
		if a.Text != "" && s.Answer == a.Text || slices.ContainsFunc(s.Answers, func(one trail.StepAnswer) bool {
			return one.Answer != nil && (one.Answer == a || a.Text != "" && one.Answer.Text == a.Text)
		}) {
			last = i
		}
	}
	before := before(t)
	order := t.Order()
	if last >= 0 && !r.fed {
		wanted := ancestors(before, last)
		order = slices.DeleteFunc(order, func(i int) bool { return !wanted[i] })
	}
	if r.cut = max(0, len(order)-maxSteps); r.cut > 0 {
		order = order[r.cut:]
	}
	r.addSteps(t, order, before)
	built := map[*step]bool{} // steps that another one builds on
	for _, s := range r.steps {
		for _, b := range s.before {
			built[b] = true
		}
	}
	r.makers = slices.DeleteFunc(slices.Clone(r.steps), func(s *step) bool {
		return last >= 0 && s.Step != &t.Steps[last] || last < 0 && built[s]
	})
	if len(r.makers) == 0 { // all are in cycles
		r.makers = r.steps[len(r.steps)-1:]
	}
	r.number()
	return r
}

// before returns Trail.Before of every step, in linear time.
func before(t *trail.Trail) [][]int {
	byNumber := make(map[int]int, len(t.Steps))
	for i := range t.Steps {
		byNumber[t.Steps[i].Number] = i
	}
	list, previous := make([][]int, len(t.Steps)), -1
	for i := range t.Steps {
		s := &t.Steps[i]
		if i > 0 && t.Steps[i-1].Number != s.Number {
			previous = i - 1
		}
		if s.After == nil && previous >= 0 {
			list[i] = []int{previous}
		}
		for _, number := range s.After {
			if b, ok := byNumber[number]; ok && number != s.Number && !slices.Contains(list[i], b) {
				list[i] = append(list[i], b)
			}
		}
	}
	return list
}

// ancestors returns a step and all steps that it builds on.
func ancestors(before [][]int, from int) map[int]bool {
	seen := map[int]bool{from: true}
	for todo := []int{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range before[at] {
			if !seen[b] {
				seen[b] = true
				todo = append(todo, b)
			}
		}
	}
	return seen
}

// addSteps adds the steps of a trail to the run.
func (r *run) addSteps(t *trail.Trail, order []int, before [][]int) {
	at := make(map[int]*step, len(order))
	for _, i := range order {
		at[i] = &step{Step: &t.Steps[i], number: t.Steps[i].Number}
		r.steps = append(r.steps, at[i])
	}
	for _, i := range order {
		for _, b := range before[i] {
			if at[b] == nil {
				r.edges++ // to a step that was left out
				continue
			}
			at[i].before = append(at[i].before, at[b])
		}
	}
}

// number numbers the steps so that numbers ascend along the edges, and keeps their own numbers if these do. Edges that
// lead back, which close a cycle, are removed.
func (r *run) number() {
	taken, sound := map[int]bool{}, true
	for _, s := range r.steps {
		sound = sound && s.number > 0 && s.number <= maxInt && !taken[s.number] &&
			!slices.ContainsFunc(s.before, func(b *step) bool { return b.number >= s.number })
		taken[s.number] = true
	}
	if sound {
		return
	}
	for i, s := range r.steps {
		s.number = i + 1
	}
	for _, s := range r.steps {
		all := len(s.before)
		s.before = slices.DeleteFunc(s.before, func(b *step) bool { return b.number >= s.number })
		r.edges += all - len(s.before)
	}
}

// stepsFor returns the numbers of the steps that made a claim, ascending.
func (r *run) stepsFor(claim ibid.Span) []int {
	numbers := make([]int, 0, len(r.makers))
	for _, s := range r.makers {
		numbers = append(numbers, s.number)
	}
	for _, s := range r.steps {
		if r.fed &&
			slices.ContainsFunc(s.Fed, func(f ibid.Span) bool { return f.Start < claim.End && claim.Start < f.End }) {
			numbers = append(numbers, s.number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
