package trail

import (
	"slices"
)

// maxPageConflicts is how many conflicts a page of a summary lists.
const maxPageConflicts = 20

// page is what a [Summary] contains of a run, if that is not all.
type page struct {
	from, to, next                   int // numbers of steps; next is 0 on the last page
	steps, sources, unused, conflict int // how many there are on all pages
}

// Page returns the part of the summary of at most size steps, from the one with the number from on. The first page,
// with from 0, has the answer with its sentences, and the sources that these rest on or that are primary; each page has
// the sources of its steps. The page shares memory with s.
func (s *Summary) Page(from, size int) *Summary {
	run := s.Run
	first := slices.IndexFunc(run.Steps, func(step Step) bool { return step.Number >= from })
	if first < 0 {
		first = len(run.Steps)
	}
	end := min(first+max(1, size), len(run.Steps))
	for end > first && end < len(run.Steps) && run.Steps[end].Number == run.Steps[end-1].Number {
		end++ // steps that share a number stay together
	}
	p := &page{steps: len(run.Steps), sources: len(s.Sources), unused: len(s.Unused), conflict: len(s.Conflicts)}
	part, shown := *s, *run
	shown.Steps = run.Steps[first:end]
	here := map[int]bool{}
	for i := range shown.Steps {
		here[shown.Steps[i].Number] = true
	}
	if len(shown.Steps) > 0 {
		p.from, p.to = shown.Steps[0].Number, shown.Steps[len(shown.Steps)-1].Number
	}
	if end < len(run.Steps) {
		p.next = run.Steps[end].Number
	}
	kept := map[string]bool{} // documents that the answer rests on
	if from <= 0 {
		for i := range s.Primary {
			kept[s.Primary[i].DocumentID] = true
		}
		if s.Links != nil {
			for i := range s.Links.Sentences {
				for k := range s.Links.Sentences[i].Passages {
					kept[s.Links.Sentences[i].Passages[k].DocumentID] = true
				}
			}
		}
	} else {
		shown.Answer, shown.Final, part.Links = "", nil, nil
	}
	keep := func(list []SummarySource) []SummarySource {
		return slices.DeleteFunc(slices.Clone(list), func(f SummarySource) bool {
			return !kept[f.DocumentID] && !slices.ContainsFunc(f.Steps, func(n int) bool { return here[n] })
		})
	}
	part.Run, part.Sources, part.Unused = &shown, keep(s.Sources), keep(s.Unused)
	if s.Conflicts != nil {
		part.Conflicts = s.Conflicts[:min(len(s.Conflicts), maxPageConflicts)]
	}
	part.page = p
	return &part
}

// NextStep returns the number of the step that the next page begins with, or 0 if there is none.
func (s *Summary) NextStep() int {
	if s.page == nil {
		return 0
	}
	return s.page.next
}

func (p *page) write(w *objectWriter) {
	w.member("from_step", p.from)
	w.member("to_step", p.to)
	w.orNull("next_step", p.next)
	w.member("steps", p.steps)
	w.member("sources", p.sources)
	w.member("unused_sources", p.unused)
	w.member("conflicts", p.conflict)
}
