package snapshot

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readHTML reads a page.
func readHTML(t *Text, b []byte, params map[string]string) error {
	if t.MediaType == typeXHTML && params["charset"] == "" {
		if name := known(declared(b[:min(len(b), prescanned)])); name != "" {
			params = map[string]string{"charset": name}
		}
	}
	b, name, err := decodeHTML(b, params)
	if err != nil {
		return err
	}
	t.Charset = name
	w := htmlWalk{}
	if !w.fast(b) {
		if err := w.parse(b); err != nil {
			return err
		}
	}
	w.finish(t)
	w.meta.fill(t)
	return nil
}

// parse reads a page as the HTML standard says.
func (w *htmlWalk) parse(b []byte) error {
	if err := guardHTML(b); err != nil {
		return err
	}
	root, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTooDeep, err) // a reader of bytes has no other error
	}
	w.walk(root)
	return nil
}

// htmlWalk collects the visible text of a page. Trees can be deeper than the stack of the parser, so it does not
// recurse.
type htmlWalk struct {
	stream
	kinds []htmlKind // of the block elements that are open
	meta  pageFacts
}

// htmlKind is what the text in an element is.
type htmlKind struct {
	kind  BlockKind
	level int
}

func (w *htmlWalk) walk(root *html.Node) {
	w.kinds = append(w.kinds[:0], htmlKind{kind: Paragraph})
	for n := root; n != nil; {
		if w.enter(n) && n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for {
			w.leave(n)
			if n == root {
				return
			}
			if n.NextSibling != nil {
				n = n.NextSibling
				break
			}
			n = n.Parent
		}
	}
}

// enter reads the beginning of a node, and reports whether what is in it counts.
func (w *htmlWalk) enter(n *html.Node) bool {
	switch n.Type {
	case html.TextNode:
		w.raw = append(w.raw, n.Data...)
		return false
	case html.DocumentNode:
		return true
	case html.ElementNode:
	default:
		return false
	}
	w.meta.element(n)
	if isSkipped(n) {
		if n.DataAtom == atom.Head {
			w.meta.head(n)
		}
		return false
	}
	if isBlock(n.DataAtom) {
		k := w.kindOf(n.DataAtom)
		w.kinds = append(w.kinds, k)
		w.begin(k.kind, k.level, 0)
	}
	return true
}

func (w *htmlWalk) leave(n *html.Node) {
	if n.Type != html.ElementNode || isSkipped(n) || !isBlock(n.DataAtom) {
		return
	}
	w.kinds = w.kinds[:len(w.kinds)-1]
	k := w.kinds[len(w.kinds)-1]
	w.begin(k.kind, k.level, 0)
}

// kindOf returns what the text in a block element is: of an element that says nothing, what it is around it.
func (w *htmlWalk) kindOf(a atom.Atom) htmlKind {
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return htmlKind{Heading, int(a.String()[1] - '0')}
	case atom.Li, atom.Dt, atom.Dd:
		return htmlKind{kind: Item}
	case atom.Td, atom.Th, atom.Caption:
		return htmlKind{kind: Cell}
	case atom.Pre:
		return htmlKind{kind: Code}
	default:
		return w.kinds[len(w.kinds)-1]
	}
}

// isSkipped reports whether nothing in an element is visible text.
func isSkipped(n *html.Node) bool {
	if isUnseen(n.DataAtom) {
		return true
	}
	for i := range n.Attr {
		if n.Attr[i].Key == "hidden" && n.Attr[i].Namespace == "" {
			return true
		}
	}
	return false
}

// isUnseen reports whether nothing in elements of a kind is visible text.
func isUnseen(a atom.Atom) bool {
	switch a {
	case atom.Head, atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Object, atom.Svg,
		atom.Select, atom.Textarea:
		return true
	default:
		return false
	}
}

// isBlock reports whether line breaks stand around an element.
func isBlock(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Br, atom.Caption, atom.Center,
		atom.Dd, atom.Details, atom.Dialog, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure,
		atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr,
		atom.Legend, atom.Li, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.Option, atom.P, atom.Pre, atom.Search,
		atom.Section, atom.Summary, atom.Table, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul:
		return true
	default:
		return false
	}
}

// MaxHTMLNodes is how many nodes a page may have once it is parsed, estimated from above. A page of a hundred bytes a
// tag has so many at 200 MB.
const MaxHTMLNodes = 2_000_000

// guardHTML refuses a page whose tree would be many times as large as the page: elements such as <b> that are not
// closed are opened again in each block after them, with all their attributes, and the attributes of each <html> and
// <body> are compared with those before.
func guardHTML(b []byte) error {
	z := html.NewTokenizer(bytes.NewReader(b))
	open := formatting{count: map[string]int{}}
	nodes, global := 0, 0
	foreign := false
	for nodes <= MaxHTMLNodes {
		kind := z.Next()
		if kind == html.ErrorToken {
			return nil
		}
		nodes++
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		raw, more := z.TagName()
		name := atom.Lookup(raw)
		weight := 1
		for more {
			_, _, more = z.TagAttr()
			weight++
		}
		nodes += weight / 4 // an attribute has a fourth of a node's size
		foreign = foreign || name == atom.Svg || name == atom.Math
		if foreign || name != atom.Script && name != atom.Style {
			z.NextIsNotRawText() // the parser may not take it for such, either
		}
		switch {
		case isFormatting(name) && kind == html.EndTagToken:
			open.close(name)
		case isFormatting(name):
			open.open(name, string(z.Raw()), weight)
		case name == atom.Html, name == atom.Body:
			global += weight
			nodes += open.weight + global
		default:
			nodes += open.weight
		}
	}
	return fmt.Errorf("%w: its tree has more than %d nodes", ErrTooLarge, MaxHTMLNodes)
}

// formatting is which elements would be opened again. The parser remembers at most three that are alike.
type formatting struct {
	stack  []formatTag
	count  map[string]int // by how the tag is written
	weight int            // of all
}

type formatTag struct {
	name   atom.Atom
	tag    string
	weight int
}

func (f *formatting) open(name atom.Atom, tag string, weight int) {
	const alike = 3
	if f.count[tag] >= alike {
		return
	}
	f.count[tag]++
	f.weight += weight
	f.stack = append(f.stack, formatTag{name, tag, weight})
}

func (f *formatting) close(name atom.Atom) {
	const depth = 64 // how far down an element is looked for
	for i := len(f.stack) - 1; i >= max(0, len(f.stack)-depth); i-- {
		if t := f.stack[i]; t.name == name {
			f.weight -= t.weight
			f.count[t.tag]--
			f.stack = append(f.stack[:i], f.stack[i+1:]...)
			return
		}
	}
}

// isFormatting reports whether an element is opened again where it was not closed.
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike,
		atom.Strong, atom.Tt, atom.U:
		return true
	default:
		return false
	}
}

// attr returns an attribute of an element; empty: it has none of that name.
func attr(n *html.Node, key string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return strings.TrimSpace(n.Attr[i].Val)
		}
	}
	return ""
}
