package ibid

import (
	"bytes"
	"cmp"
	"html"
	"math/bits"
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// mostCited is how many citations are named for one stretch of text: those that come first in Answer.Citations. It
// keeps the work in the order of the citations, however deep their claims lie in each other.
const mostCited = 64

// run is a piece of the answer's text as it stands in the text that is rendered.
type run struct {
	Span      // of Answer.Text
	at   int  // where it stands
	size int  // of what stands there
	math bool // a token stands for it, which nothing cuts
}

// claimEdge says that the rendered text from at on lies in the claims of cites.
type claimEdge struct {
	at    int
	cites []int // ascending; empty: in none
}

// claimEdges returns where in the text that runs describe the claims begin and end.
func claimEdges(a *Answer, runs []run) []claimEdge {
	type event struct {
		at, cite int
		begin    bool
	}
	events := make([]event, 0, 2*len(a.Citations))
	for i := range a.Citations {
		c := &a.Citations[i]
		if !c.Placed() || c.Claim.Len() == 0 || badSpan(a.Text, c.Claim) != "" {
			continue
		}
		if s := placeIn(runs, c.Claim); s.Len() > 0 {
			events = append(events, event{s.Start, i, true}, event{s.End, i, false})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	edges := make([]claimEdge, 0, len(events))
	in := make(citationSet, (len(a.Citations)+63)/64)
	for i, e := range events {
		if e.begin {
			in[e.cite/64] |= 1 << (e.cite % 64)
		} else {
			in[e.cite/64] &^= 1 << (e.cite % 64)
		}
		if i+1 < len(events) && events[i+1].at == e.at {
			continue
		}
		cites := in.first(mostCited)
		if n := len(edges); n > 0 && slices.Equal(edges[n-1].cites, cites) {
			continue
		}
		edges = append(edges, claimEdge{e.at, cites})
	}
	return edges
}

// placeIn returns where s of the answer stands in the text of the runs. What is left out of that at the ends of s is
// left out here, too.
func placeIn(runs []run, s Span) Span {
	first, _ := slices.BinarySearchFunc(runs, s.Start, func(r run, at int) int { return cmp.Compare(r.End, at+1) })
	last, _ := slices.BinarySearchFunc(runs, s.End, func(r run, at int) int { return cmp.Compare(r.Start, at) })
	if last--; first > last {
		return Span{}
	}
	out := Span{runs[first].at, runs[last].at + runs[last].size}
	if r := &runs[first]; !r.math {
		out.Start += max(0, s.Start-r.Start)
	}
	if r := &runs[last]; !r.math {
		out.End -= max(0, r.End-s.End)
	}
	return out
}

// citationSet has a bit for each citation.
type citationSet []uint64

// first returns up to most of the citations in s.
func (s citationSet) first(most int) []int {
	var out []int
	for i, word := range s {
		for ; word != 0 && len(out) < most; word &= word - 1 {
			out = append(out, 64*i+bits.TrailingZeros64(word))
		}
	}
	return out
}

// shiftEdges moves edges for a text into which one byte was put before each of the offsets, which ascend. An edge at
// such an offset stays before the byte.
func shiftEdges(edges []claimEdge, offsets []int) {
	n := 0
	for i := range edges {
		for n < len(offsets) && offsets[n] < edges[i].at {
			n++
		}
		edges[i].at += n
	}
}

// htmlBuffer is HTML that is being written: goldmark takes it as its writer as it is.
type htmlBuffer struct {
	bytes.Buffer

	marks []claimMark
}

// claimMark says that the HTML from at on lies in the claims of cites: it is text then, without tags.
type claimMark struct {
	at    int
	cites []int
}

func (*htmlBuffer) Available() int { return 0 }
func (*htmlBuffer) Buffered() int  { return 0 }
func (*htmlBuffer) Flush() error   { return nil }

// mark notes that what is written next lies in the claims of cites.
func (b *htmlBuffer) mark(cites []int) {
	n := len(b.marks)
	switch {
	case n > 0 && b.marks[n-1].at == b.Len():
		b.marks[n-1].cites = cites
	case len(cites) > 0 || n > 0 && len(b.marks[n-1].cites) > 0:
		b.marks = append(b.marks, claimMark{b.Len(), cites})
	}
}

// claimWriter writes the text of nodes and notes in which claims it lies.
type claimWriter struct {
	edges []claimEdge
	out   *htmlBuffer
}

// RegisterFuncs implements renderer.NodeRenderer. The functions write what goldmark's own do.
func (c claimWriter) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindText, c.text)
	reg.Register(ast.KindCodeSpan, c.codeSpan)
	reg.Register(ast.KindCodeBlock, c.codeBlock)
	reg.Register(ast.KindFencedCodeBlock, c.codeBlock)
}

// write writes source[start:end] by a function that gets it in pieces. It cuts only where cut says: that returns the
// first place from an edge on where pieces can end.
func (c claimWriter) write(source []byte, start, end int, cut func(from, at int) int, piece func([]byte)) {
	i, _ := slices.BinarySearchFunc(c.edges, start+1, func(e claimEdge, at int) int { return cmp.Compare(e.at, at) })
	for from := start; from < end; i++ {
		to := end
		if i < len(c.edges) && c.edges[i].at < end {
			to = min(cut(from, max(from, c.edges[i].at)), end)
		}
		if to > from {
			c.out.mark(c.cites(i))
			piece(source[from:to])
			from = to
		}
	}
	c.out.mark(nil)
}

// cites returns the citations whose claims the text before edge i lies in.
func (c claimWriter) cites(i int) []int {
	if i == 0 {
		return nil
	}
	return c.edges[i-1].cites
}

// raw writes s as it is.
func (c claimWriter) raw(w util.BufWriter, source []byte, s text.Segment) {
	c.padding(w, s)
	c.write(
		source, s.Start, s.Stop, func(_, at int) int { return at },
		func(p []byte) { ghtml.DefaultWriter.RawWrite(w, p) },
	)
}

// escaped writes s with the escapes of package html, which are others than goldmark's.
func (c claimWriter) escaped(w util.BufWriter, source []byte, s text.Segment) {
	c.padding(w, s)
	c.write(
		source, s.Start, s.Stop, func(_, at int) int { return at },
		func(p []byte) { _, _ = w.WriteString(html.EscapeString(string(p))) },
	)
}

// padding writes the spaces that a tab at the start of s became.
func (claimWriter) padding(w util.BufWriter, s text.Segment) {
	for range s.Padding {
		_ = w.WriteByte(' ')
	}
}

func (c claimWriter) text(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	t, ok := n.(*ast.Text)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	s := t.Segment
	if t.IsRaw() {
		c.raw(w, source, s)
		return ast.WalkContinue, nil
	}
	c.padding(w, s)
	c.write(source, s.Start, s.Stop, func(from, at int) int { return afterAtom(source[from:s.Stop], at-from) + from },
		func(p []byte) { ghtml.DefaultWriter.Write(w, p) })
	switch {
	case t.HardLineBreak():
		_, _ = w.WriteString("<br>\n")
	case t.SoftLineBreak():
		c.lineBreak(w, s.Stop, '\n')
	}
	return ast.WalkContinue, nil
}

// lineBreak writes what stands for the line break at at.
func (c claimWriter) lineBreak(w util.BufWriter, at int, as byte) {
	i, _ := slices.BinarySearchFunc(c.edges, at+1, func(e claimEdge, at int) int { return cmp.Compare(e.at, at) })
	c.out.mark(c.cites(i))
	_ = w.WriteByte(as)
	c.out.mark(nil)
}

func (c claimWriter) codeSpan(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code>")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<code>")
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		t, ok := child.(*ast.Text)
		if !ok {
			continue
		}
		s := t.Segment
		if s.Stop > s.Start && source[s.Stop-1] == '\n' {
			c.raw(w, source, s.WithStop(s.Stop-1))
			c.lineBreak(w, s.Stop-1, ' ')
			continue
		}
		c.raw(w, source, s)
	}
	return ast.WalkSkipChildren, nil
}

func (c claimWriter) codeBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre><code")
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		if language := f.Language(source); language != nil {
			_, _ = w.WriteString(` class="language-`)
			ghtml.DefaultWriter.Write(w, language)
			_ = w.WriteByte('"')
		}
	}
	_ = w.WriteByte('>')
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		c.raw(w, source, s)
		if s.ForceNewline && s.Padding+s.Stop-s.Start > 0 && (s.Stop == s.Start || source[s.Stop-1] != '\n') {
			_ = w.WriteByte('\n')
		}
	}
	return ast.WalkContinue, nil
}

// afterAtom returns the first place from at on where s can be cut and no escape and no entity comes apart.
func afterAtom(s []byte, at int) int {
	for at > 0 && at < len(s) {
		slashes := at - len(bytes.TrimRight(s[:at], `\`))
		if slashes%2 == 1 && isASCIIPunct(s[at]) {
			at++
			continue
		}
		const longest = 40
		amp := bytes.LastIndexByte(s[max(0, at-longest):at], '&')
		if amp < 0 {
			return at
		}
		name := s[max(0, at-longest)+amp+1:]
		end := bytes.IndexFunc(name, func(r rune) bool { return !isASCIIAlnum(r) && r != '#' })
		to := len(s) - len(name) + end + 1
		if end < 0 || end > longest || name[end] != ';' || to <= at {
			return at
		}
		at = to
	}
	return at
}
