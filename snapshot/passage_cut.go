package snapshot

import (
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// Passages cuts the text into passages: never across a page or a heading. A heading begins the passage that follows it.
func (t *Text) Passages(o *PassageOptions) []Passage {
	return cutPassages(t.Content, t.Blocks, true, o)
}

// Passages cuts a text of which nothing is known into passages, taking it for Markdown. Spans count in text as it is.
func Passages(text string, o *PassageOptions) []Passage {
	return cutPassages(text, blocks(text, markdown), false, o)
}

func cutPassages(text string, blocks []Block, breaks bool, o *PassageOptions) []Passage {
	p := packer{text: text, size: PassageSize, breaks: breaks}
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

// packer joins blocks to passages.
type packer struct {
	text     string
	size     int
	breaks   bool // they are to be told
	passages []Passage
	open     ibid.Span // zero: empty
	body     bool      // open has more than headings
	begins   []int     // of the blocks in open, but the first
	title    string
	page     int
}

func (p *packer) heading(b Block) {
	if p.body || b.Page != p.page {
		p.flush()
	}
	p.page = b.Page
	p.title = strings.TrimSpace(strings.TrimLeft(p.text[b.Span.Start:b.Span.End], "# "))
	p.title = strings.TrimSpace(p.title[:cutAt(p.title, MaxHeading)])
	if b.Span.Len() > p.size { // a size for which it is too long
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

// sentence adds a sentence, or pieces of one that is too long for a passage, cut between words where there are words.
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

// cutAt returns where a text is cut to have at most so many bytes: between words where there are words, else between
// characters, and never before the first.
func cutAt(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	cut := strings.LastIndexByte(text[:most], ' ')
	if cut > 0 {
		return cut
	}
	for cut = most; cut > 1 && !utf8.RuneStart(text[cut]); cut-- {
	}
	if !utf8.RuneStart(text[cut]) { // a size smaller than a character
		_, cut = utf8.DecodeRuneInString(text)
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
			p.passages,
			Passage{Span: p.open, Heading: p.title, Page: p.page, Index: len(p.passages), Breaks: p.begins},
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
