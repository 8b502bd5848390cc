package ibid

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What goldmark may spend on reading addresses that turn out to be no link, in bytes: it reads to the end of the line
// for each, so that a long line of unfinished links would cost the square of its length.
const (
	linkFloor = 4 << 20
	linkPer   = 64 // for every byte of text
)

// inlineParsers returns goldmark's own inline parsers, with the link parser bounded for a text of that size.
func inlineParsers(size int) []util.PrioritizedValue {
	return []util.PrioritizedValue{
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(newLinkParser(size), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300),
		util.Prioritized(parser.NewRawHTMLParser(), 400),
		util.Prioritized(parser.NewEmphasisParser(), 500),
	}
}

// linkParser is goldmark's link parser with a budget. Past it, brackets are text.
type linkParser struct {
	parser.InlineParser
	left int
}

func newLinkParser(size int) *linkParser {
	return &linkParser{InlineParser: parser.NewLinkParser(), left: linkFloor + linkPer*size}
}

func (p *linkParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, _ := block.PeekLine()
	address := len(line) > 1 && line[0] == ']' && line[1] == '('
	if address && p.left < 0 {
		return nil
	}
	n := p.InlineParser.Parse(parent, block, pc)
	if n == nil && address {
		p.left -= len(line)
	}
	return n
}

// CloseBlock hands the end of a block on to goldmark's parser, which keeps state over it.
func (p *linkParser) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := p.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// mayLink reports whether text may hold an address that is a link by its looks alone.
func mayLink(txt []byte) bool {
	return bytes.Contains(txt, []byte("://")) || bytes.Contains(txt, []byte("www.")) || bytes.IndexByte(txt, '@') >= 0
}

// bareLinkParser is goldmark's parser of addresses in prose, which looks at every word, for lines that may hold some.
type bareLinkParser struct {
	parser.InlineParser
	none Span // a stretch of a line without one
}

func newBareLinkParser() *bareLinkParser {
	return &bareLinkParser{InlineParser: extension.NewLinkifyParser()}
}

func (p *bareLinkParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, at := block.PeekLine()
	if p.none.Start <= at.Start && at.Stop <= p.none.End {
		return nil
	}
	if !mayLink(line) {
		p.none = Span{at.Start, at.Stop}
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}
