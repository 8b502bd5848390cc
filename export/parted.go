package export

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// Parted returns an answer with a blank line between its messages, as its renderings have one: such as what a model
// says before it calls a tool and after. All its places are those of its own text. The given answer stays as it is, and
// is what Parted returns if nothing is missing.
func Parted(a *ibid.Answer) *ibid.Answer {
	var b strings.Builder
	var breaks []int // offsets at which line breaks are put in
	var sums []int   // how many bytes of them there are up to and with each
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
	// What begins at a break begins behind it, what ends there ends before it, and so does a point.
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
	for i := range out.Parts { // a break is the end of the part before it: no text is outside of parts
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

// messages returns where the messages of an answer begin, of which there is at least one.
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
