package ibid

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxBreaches is the number of breaches that an error lists.
const maxBreaches = 10

// Check returns nil if a is valid, and otherwise an error that lists the first ten breaches, each with its place.
// Answers that ibid decodes are always valid; one built or modified by hand may not be. In a valid answer:
//
//   - The text is valid UTF-8, and every span lies in it with its ends on rune boundaries.
//   - Parts are adjacent and cover the text. An answer may have no parts.
//   - Sources have unique ids, as do citations. Every citation has a ref, and every ref names a source.
//   - Citations are sorted by end and start. Those without a place come last and have the zero span and [AnchorNone]. A
//     point is empty; a claim or a link is not.
//   - Scores are finite, and a source has a score origin if and only if it has a score.
//   - Kinds, anchors and the like are those this package defines.
//   - The alternatives are valid too.
func (a *Answer) Check() error {
	c := &checker{answer: a}
	c.check()
	if len(c.breaches) == 0 {
		return nil
	}
	return fmt.Errorf("checking answer: %w", errors.Join(c.breaches...))
}

// checker collects the breaches of one answer.
type checker struct {
	answer   *Answer
	breaches []error
}

func (c *checker) breach(format string, args ...any) {
	if len(c.breaches) < maxBreaches {
		c.breaches = append(c.breaches, fmt.Errorf(format, args...))
	}
}

func (c *checker) check() {
	a := c.answer
	if !utf8.ValidString(a.Text) {
		c.breach("the text is not valid UTF-8")
	}
	switch a.Finish {
	case "", FinishStop, FinishLength, FinishTool, FinishRefusal, FinishFilter, FinishError:
	default:
		c.breach("the finish %q is unknown", a.Finish)
	}
	c.checkParts()
	c.checkActivities()
	sources := c.checkSources()
	c.checkCitations(sources)
	for i, other := range a.Alternatives {
		if other == nil {
			c.breach("alternative %d is nil", i)
			continue
		}
		sub := &checker{answer: other}
		sub.check()
		for _, err := range sub.breaches {
			c.breach("alternative %d: %w", i, err)
		}
	}
}

func (c *checker) checkParts() {
	a := c.answer
	end := 0
	for i, p := range a.Parts {
		switch p.Kind {
		case AnswerPart, CommentaryPart, RefusalPart:
		default:
			c.breach("part %d: the kind %q is unknown", i, p.Kind)
		}
		c.checkSpan(p.Span, "part %d", i)
		if p.Start != end {
			c.breach("part %d begins at byte %d, not at %d where the one before ends", i, p.Start, end)
		}
		if p.Message < 0 || p.Content < 0 {
			c.breach("part %d: message %d, content %d: negative", i, p.Message, p.Content)
		}
		end = p.End
	}
	if len(a.Parts) > 0 && end != len(a.Text) {
		c.breach("the parts end at byte %d of %d", end, len(a.Text))
	}
}

func (c *checker) checkActivities() {
	for i := range c.answer.Activities {
		a := &c.answer.Activities[i]
		c.checkSpan(Span{a.At, a.At}, "activity %d", i)
		if a.Kind != ReasoningActivity && a.Kind != ToolActivity {
			c.breach("activity %d: the kind %q is unknown", i, a.Kind)
		}
	}
}

func (c *checker) checkSpan(s Span, place string, args ...any) {
	if why := badSpan(c.answer.Text, s); why != "" {
		c.breach("%s: bytes %d to %d: %s", fmt.Sprintf(place, args...), s.Start, s.End, why)
	}
}

// checkSources returns the ids it found.
func (c *checker) checkSources() map[string]bool {
	ids := make(map[string]bool, len(c.answer.Sources))
	for i := range c.answer.Sources {
		s := &c.answer.Sources[i]
		switch {
		case s.ID == "":
			c.breach("source %d has no id", i)
		case ids[s.ID]:
			c.breach("source %d: the id %q is taken", i, s.ID)
		}
		ids[s.ID] = true
		switch s.Kind {
		case Web, File, DocumentKind, Tool, Map, Image:
		default:
			c.breach("source %q: the kind %q is unknown", s.ID, s.Kind)
		}
		switch s.ScoreOrigin {
		case "", ScoreProvider, ScoreRetriever, ScoreRank, ScoreOverlap:
		default:
			c.breach("source %q: the score origin %q is unknown", s.ID, s.ScoreOrigin)
		}
		if (s.Score == nil) != (s.ScoreOrigin == "") {
			c.breach("source %q has a score or its origin without the other", s.ID)
		}
		c.checkScore(s.Score, "score", s.ID)
		for k := range s.Chunks {
			c.checkScore(s.Chunks[k].Score, "chunk's score", s.ID)
		}
	}
	return ids
}

func (c *checker) checkScore(score *float64, what, source string) {
	if score != nil && !isFinite(*score) {
		c.breach("source %q: the %s is not a number", source, what)
	}
}

func (c *checker) checkCitations(sources map[string]bool) {
	ids := make(map[string]bool, len(c.answer.Citations))
	for i := range c.answer.Citations {
		cite := &c.answer.Citations[i]
		place := fmt.Sprintf("citation %d (%s)", i, cite.ID)
		switch {
		case cite.ID == "":
			c.breach("citation %d has no id", i)
		case ids[cite.ID]:
			c.breach("%s: the id is taken", place)
		}
		ids[cite.ID] = true
		if i > 0 && compareCitations(&c.answer.Citations[i-1], cite) > 0 {
			c.breach("%s comes after one that ends later", place)
		}
		c.checkSpans(cite, place)
		c.checkNames(cite, place)
		if len(cite.Refs) == 0 {
			c.breach("%s names no source", place)
		}
		for _, ref := range cite.Refs {
			if !sources[ref.Source] {
				c.breach("%s: there is no source %q", place, ref.Source)
			}
			if ref.Confidence != nil && !isFinite(*ref.Confidence) {
				c.breach("%s: the confidence is not a number", place)
			}
		}
		if cite.Support != nil && cite.Support.Score != nil && !isFinite(*cite.Support.Score) {
			c.breach("%s: the score of its support is not a number", place)
		}
	}
}

func (c *checker) checkSpans(cite *Citation, place string) {
	c.checkSpan(cite.Claim, "%s: claim", place)
	if !cite.Placed() {
		if cite.Span != (Span{}) {
			c.breach("%s has no place, but the span %d to %d", place, cite.Span.Start, cite.Span.End)
		}
		return
	}
	c.checkSpan(cite.Span, "%s", place)
	switch empty := cite.Span.Len() == 0; {
	case cite.Covers == CoversPoint && !empty:
		c.breach("%s is a point of %d bytes", place, cite.Span.Len())
	case (cite.Covers == CoversClaim || cite.Covers == CoversLink) && empty:
		c.breach("%s is an empty %s", place, cite.Covers)
	}
}

func (c *checker) checkNames(cite *Citation, place string) {
	switch cite.Covers {
	case CoversClaim, CoversLink, CoversPoint, CoversBlock:
	default:
		c.breach("%s: the cover %q is unknown", place, cite.Covers)
	}
	switch cite.Anchor {
	case AnchorExact, AnchorUnitFixed, AnchorMoved, AnchorUnverified, AnchorNone:
	default:
		c.breach("%s: the anchor %q is unknown", place, cite.Anchor)
	}
	switch cite.Origin {
	case OriginProvider, OriginMarker, OriginInferred:
	default:
		c.breach("%s: the origin %q is unknown", place, cite.Origin)
	}
}
