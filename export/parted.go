package export

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// Parted returns a copy of an answer with a blank line between its messages, such as a model's words before and after a
// tool call, as in renderings. All offsets of the copy refer to its own text. The given answer is not changed, and is
// returned itself if it needs no line breaks.
func Parted(a *ibid.Answer) *ibid.Answer {
	var b strings.Builder
	var breaks []int // offsets at which line breaks are inserted
	var sums []int   // bytes inserted up to and including each of them
	starts := messages(a)
	for i, start := range starts {
		end := len(a.Text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		words := a.Text[start:end]
		if missing := text.BlankLine(b.String(), words); i > 0 && missing != "" {
			b.WriteString(missing)
			breaks, sums = append(breaks, start), append(sums, b.Len()-start)
		}
		b.WriteString(words)
	}
	if len(breaks) == 0 {
		return a
	}
	before := func(i int) int {
		if i == 0 {
			return 0
		}
		return sums[i-1]
	}
	// The beginning of a span at a break moves with the text after it; an end, or a point, stays with the text before
	// it.
	begin := func(at int) int { return at + before(sort.SearchInts(breaks, at+1)) }
	end := func(at int) int { return at + before(sort.SearchInts(breaks, at)) }
	move := func(s ibid.Span) ibid.Span {
		if s.Len() == 0 {
			return ibid.Span{Start: end(s.Start), End: end(s.End)}
		}
		return ibid.Span{Start: begin(s.Start), End: end(s.End)}
	}
	out := *a
	out.Text = b.String()
	out.Parts, out.Citations = slices.Clone(a.Parts), slices.Clone(a.Citations)
	out.Activities = slices.Clone(a.Activities)
	for i := range out.Parts { // all text is in parts: a break becomes the end of the part before it
		p := &out.Parts[i]
		p.Start, p.End = begin(p.Start), begin(p.End)
	}
	for i := range out.Activities {
		out.Activities[i].At = end(out.Activities[i].At)
	}
	for i := range out.Citations {
		if c := &out.Citations[i]; c.Placed() {
			c.Span, c.Claim = move(c.Span), move(c.Claim)
		}
	}
	return &out
}

// messages returns the offsets at which the messages of an answer begin. There is at least one.
func messages(a *ibid.Answer) []int {
	starts := []int{0}
	for i := 1; i < len(a.Parts); i++ {
		at := a.Parts[i].Start
		if a.Parts[i].Message != a.Parts[i-1].Message && at > starts[len(starts)-1] && at < len(a.Text) &&
			utf8.RuneStart(a.Text[at]) {
			starts = append(starts, at)
		}
	}
	return starts
}
