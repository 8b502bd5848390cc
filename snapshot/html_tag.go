package snapshot

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// tagged is a tag as it was read.
type tagged struct {
	atom   atom.Atom
	lower  []byte // the name in lower case
	raw    []byte // all of it
	self   bool   // it ends in />
	hidden bool   // it has the attribute hidden
	facts  bool   // its attributes may say something of the page
	unsure bool   // whether it ends in /> depends
	space  [40]byte
}

// scan reads a tag whose name begins at pos, as the parser's tokenizer does.
func (f *fastHTML) scan() bool {
	t, b, start := &f.tag, f.b, f.pos
	t.hidden, t.facts, t.unsure = false, false, false
	at := start
	for at < len(b) && !isSpace(b[at]) && b[at] != '/' && b[at] != '>' {
		at++
	}
	t.lower = appendLower(t.space[:0], b[start:at])
	t.atom = atom.Lookup(t.lower)
	at = skipSpace(b, at)
	lastEnd := -1 // of the value of the last attribute, if it is without quotes
	for at < len(b) && b[at] != '>' {
		key := at
		for at < len(b) && (b[at] != '=' || at == key) && !isSpace(b[at]) && b[at] != '/' && b[at] != '>' {
			at++
		}
		name := b[key:at]
		var value []byte
		value, at, lastEnd = attribute(b, at)
		t.attribute(name, value)
		at = skipSpace(b, at)
	}
	if at >= len(b) {
		f.giveUp()
		return false
	}
	f.pos = at + 1
	t.raw = b[start-1 : f.pos]
	t.self = b[at-1] == '/'
	t.unsure = t.self && lastEnd == at
	return true
}

// attribute reads what follows the name of an attribute. End is where a value without quotes ends; negative: it is
// none.
func attribute(b []byte, at int) (value []byte, next, end int) {
	at = skipSpace(b, at)
	switch {
	case at >= len(b):
		return nil, at, -1
	case b[at] == '/':
		return nil, at + 1, -1
	case b[at] != '=':
		return nil, at, -1
	}
	at = skipSpace(b, at+1)
	if at >= len(b) || b[at] == '>' {
		return nil, at, -1
	}
	if q := b[at]; q == '"' || q == '\'' {
		n := bytes.IndexByte(b[at+1:], q)
		if n < 0 {
			return nil, len(b), -1
		}
		return b[at+1 : at+1+n], at + n + 2, -1
	}
	start := at
	for at < len(b) && !isSpace(b[at]) && b[at] != '>' {
		at++
	}
	return b[start:at], at, at
}

// attribute notes an attribute that matters. It may notice one too often: those that it notices are read again.
func (t *tagged) attribute(name, value []byte) {
	switch len(name) {
	case len("rel"):
		if t.atom == atom.A || t.atom == atom.Link {
			t.facts = t.facts || mayContain(value, "license") || t.atom == atom.Link && mayContain(value, "canonical")
		}
	case len("name"): // and lang, and type
		t.facts = t.facts || t.atom == atom.Meta || t.atom == atom.Html ||
			t.atom == atom.Script && mayContain(value, "ld+json")
	case len("hidden"):
		t.hidden = t.hidden || strings.EqualFold(string(name), "hidden")
	case len("property"):
		t.facts = t.facts || t.atom == atom.Meta
	}
}

// mayContain reports whether a value may contain a word, in any case, once its character references are read.
func mayContain(value []byte, word string) bool {
	return bytes.IndexByte(value, '&') >= 0 || bytes.Contains(bytes.ToLower(value), []byte(word))
}

// node returns the tag as the parser has it.
func (t *tagged) node() *html.Node {
	z := html.NewTokenizer(bytes.NewReader(t.raw))
	z.Next()
	token := z.Token()
	return &html.Node{Type: html.ElementNode, DataAtom: token.DataAtom, Data: token.Data, Attr: token.Attr}
}

// rawText returns what stands up to the end tag of the element of the tag at hand, which is no markup, and goes behind
// that.
func (f *fastHTML) rawText() []byte {
	name, start := f.tag.lower, f.pos
	for at := start; ; {
		i := bytes.Index(f.b[at:], []byte("</"))
		if i < 0 {
			f.giveUp()
			return nil
		}
		at += i + len("</")
		end := at + len(name)
		if end >= len(f.b) || !strings.EqualFold(string(f.b[at:end]), string(name)) ||
			!isSpace(f.b[end]) && f.b[end] != '/' && f.b[end] != '>' {
			continue
		}
		inside := f.b[start : at-len("</")]
		if f.tag.atom == atom.Script && bytes.Contains(inside, []byte("<!--")) {
			f.giveUp() // then an end tag need not be one
			return nil
		}
		f.pos = at
		f.scan()
		return inside
	}
}

// svg goes behind an svg element, of which nothing is visible text. Only what is well nested is understood.
func (f *fastHTML) svg() {
	if f.tag.unsure {
		f.giveUp()
		return
	}
	if f.tag.self {
		return
	}
	open := []string{"svg"}
	for len(open) > 0 && !f.failed {
		i := bytes.IndexByte(f.b[f.pos:], '<')
		if i < 0 || f.pos+i+2 >= len(f.b) {
			f.giveUp()
			return
		}
		f.pos += i + 1
		switch c := f.b[f.pos]; {
		case isLetter(c):
			if f.scan() {
				open = f.svgTag(open)
			}
		case c == '/' && isLetter(f.b[f.pos+1]):
			f.pos++
			if !f.scan() || string(f.tag.lower) != open[len(open)-1] {
				f.giveUp()
				return
			}
			open = open[:len(open)-1]
		case bytes.HasPrefix(f.b[f.pos:], []byte("!--")):
			f.declaration()
		case c == '/' || c == '!' || c == '?':
			f.giveUp()
		}
	}
}

// svgTag reads a start tag in an svg element.
func (f *fastHTML) svgTag(open []string) []string {
	switch open[len(open)-1] {
	case "title", "desc", "foreignobject":
		f.giveUp() // there, it is HTML again
	}
	if leavesSVG(string(f.tag.lower)) || f.tag.unsure || len(f.stack)+len(open) > maxFastDepth {
		f.giveUp()
	}
	if f.tag.self {
		return open
	}
	return append(open, string(f.tag.lower))
}

// leavesSVG reports whether an element cannot be in an svg element: it ends it.
func leavesSVG(name string) bool {
	switch name {
	case "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "font", "h1",
		"h2", "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p",
		"pre", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var":
		return true
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' }

func skipSpace(b []byte, at int) int {
	for at < len(b) && isSpace(b[at]) {
		at++
	}
	return at
}

func appendLower(out, b []byte) []byte {
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return out
}
