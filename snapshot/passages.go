package snapshot

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// Passage is a piece of a text: whole blocks, or whole sentences of one. Passages are adjacent and cover the text
// except for the white space between them.
type Passage struct {
	Span    ibid.Span // in the text it was cut from
	Heading string    // the heading above it, at most 200 bytes; empty if none
	Page    int       // on which it begins, from 1; 0 if there are no pages
	Index   int       // from 0
	// Breaks are the offsets in the text at which its blocks begin, except the first, and for a long block its
	// sentences: no sentence crosses a break. A text cut by the function Passages has its own line breaks, so it has
	// none.
	Breaks []int
}

// PassageOptions are the options for passages. Nil and the zero value mean the defaults.
type PassageOptions struct {
	Size int // maximum length in bytes; 0 means 1000
}

// maxHeading is the maximum length in bytes of Passage.Heading, cut between words: a heading may be as long as its
// document, and each passage below it is read with it.
const maxHeading = 200

// passageSize is the default of PassageOptions.Size.
const passageSize = 1000

// Passages cuts the text into passages, never across a page or a heading. A heading begins the passage that follows it.
func (t *Text) Passages(o *PassageOptions) []Passage {
	return cutPassages(t.Content, t.Blocks, true, o)
}

// Passages cuts a text of unknown type into passages, treating it as Markdown. Spans are offsets in text.
func Passages(text string, o *PassageOptions) []Passage {
	return cutPassages(text, blocks(text, markdown), false, o)
}

func cutPassages(text string, blocks []Block, breaks bool, o *PassageOptions) []Passage {
	p := packer{text: text, size: passageSize, breaks: breaks}
	if o != nil && o.Size > 0 {
		p.size = o.Size
	}
	for _, b := range blocks {
		b.Span = trimmed(text, b.Span)
		if b.Span.Len() == 0 {
			continue
		}
		if b.Kind == Heading {
			p.heading(b)
			continue
		}
		if b.Page != p.page {
			p.flush()
			p.page = b.Page
		}
		p.block(b.Span)
	}
	p.flush()
	return p.passages
}

// packer joins blocks into passages.
type packer struct {
	text     string
	size     int
	breaks   bool // whether passages have Breaks
	passages []Passage
	open     ibid.Span // zero if empty
	body     bool      // open has more than headings
	begins   []int     // starts of the blocks in open, except the first
	title    string
	page     int
}

func (p *packer) heading(b Block) {
	if p.body || b.Page != p.page {
		p.flush()
	}
	p.page = b.Page
	p.title = strings.TrimSpace(strings.TrimLeft(p.text[b.Span.Start:b.Span.End], "# "))
	p.title = strings.TrimSpace(p.title[:cutAt(p.title, maxHeading)])
	if b.Span.Len() > p.size { // it is too long for the size
		p.block(b.Span)
		return
	}
	p.add(b.Span, false)
}

// block adds a block, or the sentences of one that is too long.
func (p *packer) block(s ibid.Span) {
	if s.Len() <= p.size {
		p.add(s, true)
		return
	}
	at := s.Start
	for _, end := range prose.Sentences(p.text[s.Start:s.End]) {
		p.sentence(trimmed(p.text, ibid.Span{Start: at, End: s.Start + end})) // with the marks before it
		at = s.Start + end
	}
	p.sentence(trimmed(p.text, ibid.Span{Start: at, End: s.End}))
}

// sentence adds a sentence, or pieces of one that is too long for a passage, cut between words if possible.
func (p *packer) sentence(s ibid.Span) {
	for s.Len() > p.size {
		cut := cutAt(p.text[s.Start:s.End], p.size)
		p.add(ibid.Span{Start: s.Start, End: s.Start + cut}, true)
		s = trimmed(p.text, ibid.Span{Start: s.Start + cut, End: s.End})
	}
	if s.Len() > 0 {
		p.add(s, true)
	}
}

// cutAt returns where to cut a text to at most the given number of bytes: between words if possible, else between
// characters, and never before the first.
func cutAt(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	cut := strings.LastIndexByte(text[:most], ' ')
	if cut > 0 {
		return cut
	}
	if cut = prose.GraphemeStart(text, most); cut == 0 { // the size is smaller than a character
		cut = prose.GraphemeEnd(text, 1)
	}
	return cut
}

func (p *packer) add(s ibid.Span, body bool) {
	if p.open.Len() > 0 && s.End-p.open.Start > p.size {
		p.flush()
	}
	if p.breaks && p.open.Len() > 0 {
		p.begins = append(p.begins, s.Start)
	}
	if p.open.Len() == 0 {
		p.open.Start = s.Start
	}
	p.open.End = s.End
	p.body = p.body || body
}

func (p *packer) flush() {
	if p.open.Len() > 0 {
		p.passages = append(
			p.passages, Passage{Span: p.open, Heading: p.title, Page: p.page, Index: len(p.passages), Breaks: p.begins},
		)
	}
	p.open, p.body, p.begins = ibid.Span{}, false, nil
}

// trimmed returns s without the white space at its ends.
func trimmed(text string, s ibid.Span) ibid.Span {
	words := text[s.Start:s.End]
	left := strings.TrimLeft(words, " \t\r\n")
	s.Start += len(words) - len(left)
	s.End = s.Start + len(strings.TrimRight(left, " \t\r\n"))
	return s
}

// aroundSize is the length in bytes that [Text.Around] aims at.
const aroundSize = 1500

// Around returns the passage around a place in the text, which is where a quote that was cut goes on: the blocks that
// have the place, and those after and before it up to about 1500 bytes. It does not cross a heading.
func (t *Text) Around(place ibid.Span) string {
	i, found := slices.BinarySearchFunc(t.Blocks, place.Start, func(b Block, at int) int { return b.Span.Start - at })
	if !found {
		i = max(0, i-1)
	}
	if len(t.Blocks) == 0 || place.End > len(t.Content) {
		return ""
	}
	last := i
	for last+1 < len(t.Blocks) && t.Blocks[last+1].Span.Start < place.End {
		last++
	}
	first := i
	size := t.Blocks[last].Span.End - t.Blocks[first].Span.Start
	for last+1 < len(t.Blocks) && t.Blocks[last+1].Kind != Heading && size+t.Blocks[last+1].Span.Len() <= aroundSize {
		last++
		size += t.Blocks[last].Span.Len() + 1
	}
	for first > 0 && t.Blocks[first].Kind != Heading && size+t.Blocks[first-1].Span.Len() <= aroundSize {
		first--
		size += t.Blocks[first].Span.Len() + 1
	}
	span := ibid.Span{Start: t.Blocks[first].Span.Start, End: t.Blocks[last].Span.End}
	if span.Len() > 2*aroundSize { // within a long block
		span.Start, span.End = max(span.Start, place.Start-aroundSize), min(span.End, place.End+aroundSize)
		for span.Start > 0 && !utf8.RuneStart(t.Content[span.Start]) {
			span.Start--
		}
		for span.End < len(t.Content) && !utf8.RuneStart(t.Content[span.End]) {
			span.End++
		}
	}
	return t.Content[span.Start:span.End]
}

// blockBreak separates two blocks of a passage in [Passage.Apart].
const blockBreak = "\n\n"

// Apart returns the passage with empty lines between its blocks, so that a checker does not read a heading and the text
// below it as one sentence. Text is the one that the passage was cut from.
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

// Place returns the place in the text of evidence, a span of [Passage.Apart], without the heading above it and without
// white space at its ends. It is empty if s is not in the passage, or cuts a character.
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

// place converts an offset in [Passage.Apart] to one in the text, limited to the passage.
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
