package markdown

import (
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// Leaf is a block that holds no other blocks.
type Leaf struct {
	Span  // from its first character to its last; exact for ParagraphLeaf only
	Kind  LeafKind
	Opens bool // it is the first leaf of a list item
}

// LeafKind says what a [Leaf] is.
type LeafKind uint8

// The kinds of leaves.
const (
	OtherLeaf     LeafKind = iota // a heading, a rule, HTML
	ParagraphLeaf                 // also the text of a list item
	TableLeaf
	CodeLeaf
)

// Leaves returns the leaves of the document, at any depth, in order.
func (d *Document) Leaves() []Leaf {
	var out []Leaf
	opens := false
	// The only error is that of the function, which returns none.
	_ = ast.Walk(d.tree.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		leaf := Leaf{Opens: opens}
		switch {
		case n.Kind() == ast.KindListItem:
			opens = entering
			return ast.WalkContinue, nil
		case !entering || n.Kind() == ast.KindLinkReferenceDefinition:
			return ast.WalkContinue, nil
		case n.Kind() == ast.KindParagraph, n.Kind() == ast.KindTextBlock:
			leaf.Kind = ParagraphLeaf
		case n.Kind() == east.KindTable:
			leaf.Kind = TableLeaf
		case n.Kind() == ast.KindCodeBlock, n.Kind() == ast.KindFencedCodeBlock:
			leaf.Kind = CodeLeaf
		case n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock:
			return ast.WalkContinue, nil
		case n == d.tree.root:
			return ast.WalkStop, nil
		}
		opens = false
		last := 0
		if len(out) > 0 {
			last = out[len(out)-1].End
		}
		leaf.Start = max(last, startOf(n))
		leaf.End = leaf.Start
		if leaf.Kind == TableLeaf && n.LastChild() != nil && n.LastChild().LastChild() != nil {
			n = n.LastChild().LastChild() // only cells have positions
		}
		if l := n.Lines(); l != nil && l.Len() > 0 {
			leaf.End = max(leaf.Start, l.At(l.Len()-1).Stop)
		}
		if leaf.Kind == ParagraphLeaf {
			leaf.Span = d.trim(leaf.Span)
		}
		out = append(out, leaf)
		return ast.WalkSkipChildren, nil
	})
	return out
}
