package otel

import (
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/trail"
)

// clockSkew is by how much the clocks of a traced program and of the gateway may differ.
const clockSkew = 2 * time.Second

// joinCalls joins captured calls with the spans of the same calls, and returns the steps that are left. A call and a
// span are the same if the span has the id of the provider's response, or if they were at the same time and have the
// same words; of several such spans, the nearest counts.
func joinCalls(nodes []*spanNode, others []trail.Step) []trail.Step {
	var calls []*spanNode
	for _, n := range nodes {
		if n.Kind == spanLLM && n.isStep && !n.Own && n.Number == 0 {
			calls = append(calls, n)
		}
	}
	if len(calls) == 0 {
		return others
	}
	joined := map[*spanNode]bool{}
	return slices.DeleteFunc(others, func(s trail.Step) bool {
		if len(s.Answers) != 1 || s.Answers[0].Answer == nil {
			return false
		}
		n := spanOf(calls, joined, &s)
		if n == nil {
			return false
		}
		joined[n] = true
		of := n.step
		of.Answers = append(of.Answers, s.Answers...)
		if of.Answer == "" || strings.TrimSpace(of.Answer) == strings.TrimSpace(s.Answer) {
			of.Answer = s.Answer // citations refer to these bytes
		}
		fillTexts(of, &s)
		of.AddSources(s.Sources...)
		of.Issues = append(of.Issues, s.Issues...)
		return true
	})
}

// spanOf returns the span of a captured call, or nil.
func spanOf(calls []*spanNode, joined map[*spanNode]bool, s *trail.Step) *spanNode {
	a := s.Answers[0].Answer
	var nearest *spanNode
	var distance time.Duration
	for _, n := range calls {
		if joined[n] {
			continue
		}
		if a.ID != "" && n.Response == a.ID {
			return n
		}
		if n.start == 0 || s.Started.IsZero() || n.Response != "" && a.ID != "" ||
			strings.TrimSpace(n.step.Answer) != strings.TrimSpace(a.Text) {
			continue
		}
		begin, end := s.Started.UnixNano(), s.Started.Add(s.Duration).UnixNano()
		if begin > n.end+int64(clockSkew) || end < n.start-int64(clockSkew) {
			continue
		}
		if d := time.Duration(begin - n.start).Abs(); nearest == nil || d < distance {
			nearest, distance = n, d
		}
	}
	return nearest
}
