package snapshot

import (
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// blockBreak stands between two blocks of a passage when it is judged.
const blockBreak = "\n\n"

// Apart returns the passage as it is to be judged: with empty lines between its blocks, so that a heading and what
// stands below it are not read as one sentence. Text is the one that the passage was cut from.
func (p *Passage) Apart(text string) string {
	if len(p.Breaks) == 0 {
		return text[p.Span.Start:p.Span.End]
	}
	var b strings.Builder
	at := p.Span.Start
	for _, next := range p.Breaks {
		if next > at && next <= p.Span.End {
			b.WriteString(strings.TrimRight(text[at:next], " ") + blockBreak)
			at = next
		}
	}
	b.WriteString(text[at:p.Span.End])
	return b.String()
}

// Place returns where evidence, a span of [Passage.Apart], stands in the text: without the heading above it, and
// without white space at its ends. It is empty where s is not in the passage, or cuts a character.
func (p *Passage) Place(text string, s ibid.Span) ibid.Span {
	if s.End <= s.Start || s.End <= 0 {
		return ibid.Span{}
	}
	out := ibid.Span{Start: p.place(text, s.Start), End: p.place(text, s.End)}
	for _, next := range p.Breaks {
		if next > out.Start && next < out.End && p.Heading != "" &&
			strings.HasSuffix(strings.TrimRight(text[out.Start:next], " #"), p.Heading) {
			out.Start = next
			break
		}
	}
	if out.End <= out.Start || !utf8.ValidString(text[out.Start:out.End]) {
		return ibid.Span{}
	}
	return trimmed(text, out)
}

// place returns where a place in [Passage.Apart] is in the text; the passage's start or end where it is not in the
// passage.
func (p *Passage) place(text string, n int) int {
	at := p.Span.Start
	for _, next := range p.Breaks {
		if next <= at || next > p.Span.End {
			continue
		}
		words := len(strings.TrimRight(text[at:next], " "))
		if n <= words {
			break
		}
		n = max(0, n-words-len(blockBreak))
		at = next
	}
	return min(max(p.Span.Start, at+n), p.Span.End)
}
