package ibid

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/prose"
)

// standsApart reports whether a link or mark is not part of its sentence: it is a mark, or in parentheses.
func standsApart(link string) bool {
	return isMark(link) || strings.HasPrefix(link, "(") && strings.HasSuffix(link, ")")
}

// maxLabelWords is the maximum number of words in a label before links: "Source:", "Read more:".
const maxLabelWords = 3

// labelLen returns the length in bytes of the label at the start of s, including its colon, or 0 if there is none.
func labelLen(s string) int {
	colon := strings.IndexAny(s, ":：")
	if colon < 0 || strings.ContainsAny(s[:colon], "[]()<>【】\n.!?。") {
		return 0
	}
	if words := len(strings.Fields(s[:colon])); words == 0 || words > maxLabelWords {
		return 0
	}
	_, n := utf8.DecodeRuneInString(s[colon:])
	return colon + n
}

// isLabel reports whether s is only a label before links.
func isLabel(s string) bool {
	n := labelLen(s)
	return n > 0 && !hasWord(s[n:])
}

func hasWord(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// maxStructure is how many bytes of a candidate's text are parsed as markdown to find the claims of links in separate
// paragraphs. Real answers are far shorter. Beyond it, such links are their own claims.
const maxStructure = 256 << 10

// structure is the markdown structure of a candidate's text, built once all links are known.
type structure struct {
	parts map[Span][]structureLeaf // by parsed stretch of text
	size  int                      // total bytes of these stretches
	links map[int]int              // visible links and marks: end by start
}

// structureLeaf is a leaf of a stretch of text. Its span is relative to the stretch.
type structureLeaf struct {
	markdown.Leaf
	links  bool // a paragraph of only links and marks, perhaps after a label
	above  int  // index of the paragraph whose last sentence links in this leaf support, or -1
	figure bool // a table or code lies between that paragraph and this leaf
}

// statementAbove returns the statement that a link at offset at supports if nothing precedes it on its line. The part
// with the statement begins at base. It returns false if there is none, and until all links are known.
func (c *candidate) statementAbove(base, at int) (Span, bool) {
	if !c.placed || len(c.parts) == 0 {
		return Span{}, false
	}
	leaves, text := c.leaves(base, at), c.text.String()[base:]
	at -= base
	i := sort.Search(len(leaves), func(i int) bool { return leaves[i].Start > at }) - 1
	if i < 0 {
		return Span{}, false
	}
	leaf := &leaves[i]
	inside := leaf.Kind == markdown.ParagraphLeaf && at <= leaf.End
	below, _, _ := strings.Cut(text[at:], "\n")
	alone := !inside && at > leaf.End && strings.TrimSpace(below) == "" // a point on an empty line
	if inside && !leaf.links || alone && leaf.Kind == markdown.TableLeaf && strings.Count(text[leaf.End:at], "\n") < 2 {
		// Package prose treats each line of a quote and of a table as a separate block.
		head := strings.TrimRightFunc(text[:at], func(r rune) bool {
			return unicode.IsSpace(r) || r == '>' || r == '('
		})
		if start, end := prose.SentenceBefore(head, len(head)); start < end && start >= leaf.Start {
			return Span{base + start, base + end}, true
		}
	}
	if alone {
		leaf = &leaves[i+1]
	}
	if leaf.above < 0 || !alone && (!inside || !leaf.links) {
		return Span{}, false
	}
	above := &leaves[leaf.above]
	if introduces(text[above.Start:above.End], leaf.figure) {
		return Span{}, false
	}
	start, end := prose.SentenceBefore(text[:above.End], above.End)
	return Span{base + start, base + end}, start < end
}

// introduces reports whether a paragraph introduces the links that follow it: its last line is all bold, like a
// heading, or ends with a colon. If a figure lies between them, the colon announces the figure.
func introduces(paragraph string, figure bool) bool {
	last := strings.TrimSpace(paragraph[strings.LastIndexByte(paragraph, '\n')+1:])
	bare := strings.TrimRight(last, "*_")
	return !figure && (strings.HasSuffix(bare, ":") || strings.HasSuffix(bare, "：")) ||
		strings.HasPrefix(last, "**") && strings.HasSuffix(last, "**")
}

// leaves returns the leaves of the text from base, the start of a part, to the end of the part that contains offset at.
func (c *candidate) leaves(base, at int) []structureLeaf {
	i, begins := c.partFrom(at)
	if !begins {
		i--
	}
	stretch := Span{base, c.parts[max(i, 0)].end}
	if known, ok := c.structure.parts[stretch]; ok || stretch.Len() <= 0 {
		return known
	}
	if c.structure.size += stretch.Len(); c.structure.size > maxStructure {
		c.fold.limit("text parsed for links in separate paragraphs")
		return nil
	}
	if c.structure.parts == nil {
		c.structure.parts, c.structure.links = map[Span][]structureLeaf{}, map[int]int{}
		for end, start := range c.links() {
			c.structure.links[start] = max(c.structure.links[start], end)
		}
	}
	doc := markdown.ParseUntil(c.fold.halt, c.text.String()[stretch.Start:stretch.End])
	var out []structureLeaf
	for _, leaf := range doc.Leaves() {
		links := leaf.Kind == markdown.ParagraphLeaf && c.onlyLinks(doc, leaf.Span, base)
		if n := labelLen(doc.Text[leaf.Start:leaf.End]); leaf.Kind == markdown.ParagraphLeaf && n > 0 && !links {
			behind := markdown.Span{Start: leaf.Start + n, End: leaf.End}
			links = hasWord(doc.Text[behind.Start:behind.End]) && c.onlyLinks(doc, behind, base)
		}
		out = append(out, structureLeaf{Leaf: leaf, links: links})
	}
	past := markdown.Span{Start: stretch.Len() + 1, End: stretch.Len() + 1}
	out = append(out, structureLeaf{Leaf: markdown.Leaf{Span: past}})
	setAbove(out)
	c.structure.parts[stretch] = out
	return out
}

// setAbove sets the paragraph above each leaf that links in the leaf support. Paragraphs of only links are skipped.
//
//   - A table or code may lie between: the prose introduces it, and the links support the prose, since no row or line
//     of code is a statement. If the prose has links of its own before the figure, links below the figure support
//     nothing.
//   - A heading, a rule or HTML separates: links below do not support what is above.
//   - Links that open a list item are an entry in a list of sources, and support no sentence.
func setAbove(leaves []structureLeaf) {
	above, figure, linked := -1, false, false
	for i := range leaves {
		leaf := &leaves[i]
		leaf.above, leaf.figure = above, figure
		switch {
		case leaf.links && !leaf.Opens:
			linked = true
		case leaf.Kind == markdown.ParagraphLeaf && !leaf.links:
			above, figure, linked = i, false, false
		case (leaf.Kind == markdown.TableLeaf || leaf.Kind == markdown.CodeLeaf) && !linked:
			figure = true
		default:
			above = -1
		}
		if leaf.links && leaf.Opens {
			leaf.above = -1
		}
	}
}

// onlyLinks reports whether a stretch of a document, which begins at base, has no words outside links and marks.
func (c *candidate) onlyLinks(doc *markdown.Document, s markdown.Span, base int) bool {
	for at := s.Start; at < s.End; {
		if end := c.structure.links[base+at] - base; end > at {
			at = end
			continue
		}
		if link, ok := doc.SolidAt(at); ok && link.Kind != markdown.CodeSolid && link.Kind != markdown.MathSolid {
			at = link.End
			continue
		}
		r, n := utf8.DecodeRuneInString(doc.Text[at:s.End])
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return false
		}
		at += n
	}
	return true
}

// linkRunStart returns the start of the run of links and marks that ends at offset at: all of them support the
// statement before the first.
func (c *candidate) linkRunStart(text string, at int) int {
	const limit = 64 // links of a run that are followed back
	for range limit {
		end := len(strings.TrimRight(text[:at], " ,;"))
		start, ok := c.links()[end]
		if !ok {
			return at
		}
		at = start
	}
	return at
}

// partFrom returns the index of the first part that begins at or after an offset, and whether it begins there.
func (c *candidate) partFrom(at int) (i int, begins bool) {
	return slices.BinarySearchFunc(c.parts, at, func(p foldPart, at int) int { return p.start - at })
}

// partBefore returns the start of the part that contains the text right before an offset, if it is in the same message.
func (c *candidate) partBefore(at int) int {
	i, begins := c.partFrom(at)
	switch {
	case i == 0:
		return 0
	case begins && c.parts[i].key.Message != c.parts[i-1].key.Message:
		return at
	default:
		return c.parts[i-1].start
	}
}

// messageEnd returns the end of the message that contains an offset or ends there.
func (c *candidate) messageEnd(at int) int {
	i, _ := c.partFrom(at)
	for ; i > 0 && i < len(c.parts); i++ {
		if c.parts[i].key.Message != c.parts[i-1].key.Message {
			return c.parts[i].start
		}
	}
	return c.text.Len()
}

// links returns the starts of all visible links and marks by their ends.
func (c *candidate) links() map[int]int {
	for ; c.linked < len(c.cites); c.linked++ {
		cite := &c.cites[c.linked]
		if cite.withdrawn {
			continue
		}
		if cite.anchor == "" { // not placed yet
			break
		}
		if cite.covers == CoversLink && cite.anchor != AnchorNone {
			if c.linkEnds == nil {
				c.linkEnds = map[int]int{}
			}
			c.linkEnds[cite.span.End] = cite.span.Start
		}
	}
	return c.linkEnds
}
