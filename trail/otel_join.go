package trail

import "cmp"

// isApart reports whether a span is another step than the one with its number: nothing is lost of two that each have a
// nested run, and of two spans of a program that say different things. One that [Trail.Traces] wrote is the same step
// again.
func (s *Step) isApart(n *spanNode, spanned bool) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return s.Nested != nil && n.step.Nested != nil ||
		spanned && !n.Own &&
			(differ(s.Answer, n.step.Answer) || differ(s.Question, n.step.Question) || differ(string(s.Outputs), string(n.step.Outputs)))
}

// join adds what a span knows to the step whose number it has.
func (s *Step) join(from *Step) {
	s.ID, s.Tool, s.Question, s.Answer = cmp.Or(
		s.ID, from.ID,
	), cmp.Or(
		s.Tool, from.Tool,
	), cmp.Or(
		s.Question, from.Question,
	), cmp.Or(
		s.Answer, from.Answer,
	)
	s.Reasoning, s.Error = cmp.Or(s.Reasoning, from.Reasoning), cmp.Or(s.Error, from.Error)
	s.Confidence, s.Duration, s.Nested = cmp.Or(
		s.Confidence, from.Confidence,
	), cmp.Or(
		s.Duration, from.Duration,
	), cmp.Or(
		s.Nested, from.Nested,
	)
	if s.Started.IsZero() {
		s.Started = from.Started
	}
	if s.Inputs == nil && s.InputsDigest == "" {
		s.Inputs, s.InputsDigest = from.Inputs, from.InputsDigest
	}
	if s.Outputs == nil && s.OutputsDigest == "" {
		s.Outputs, s.OutputsDigest = from.Outputs, from.OutputsDigest
	}
	s.AddSources(from.Sources...)
	s.NoSources = s.NoSources && from.NoSources
	s.Issues = append(s.Issues, from.Issues...)
}
