package wire

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// template recognises the next of many documents that differ in little else than one string: the text deltas of a
// stream. It learns from a document that was walked in full; a document like it needs no walk.
//
// It is the learned document, divided into bytes that must be the same and holes where others may stand.
type template struct {
	doc     []byte // the learned document from where the template begins
	holes   []hole
	anchor  []byte // at which the template begins; empty: at the document's start
	at      int    // where it began in the learned document
	tail    int    // doc[tail:] follows the last hole
	anyTail bool   // what follows the last hole does not matter
	part    Part   // whose text it is
}

// hole is a place where documents differ. doc[from:to] stands before it and must be the same.
type hole struct {
	kind     holeKind
	from, to int
}

type holeKind uint8

const (
	textHole   holeKind = iota // the content of the string that matters
	stringHole                 // the content of another string
	numberHole                 // digits
)

// variation says what else than the text may differ between documents that are alike.
type variation struct {
	// anchors are members at the first of which the template begins: before it may stand anything.
	anchors []string
	counter string     // a member before the text, with a number
	echo    bool       // a message before the text's, which repeats the text so far
	padding string     // a member behind the text, with a string
	numbers scan.Value // a value behind the text; from there on all numbers
	anyTail bool       // everything behind the text
}

// maxAnchor is how far into a document an anchor is looked for.
const maxAnchor = 2048

// learn remembers doc, in which text is a string, in place of what it knows.
func (t *template) learn(doc, text scan.Value, p Part, v variation) {
	t.forget()
	start := cap(doc) - cap(text) + 1 // both end at the end of the same memory
	end := start + len(text) - 2
	if len(text) < 2 || start < 1 || end >= len(doc) || &doc[start-1] != &text[0] {
		return
	}
	t.anchor, t.at = t.anchor[:0], 0
	for _, anchor := range v.anchors {
		if i := bytes.Index(doc[:min(start, maxAnchor)], []byte(anchor)); i >= 0 {
			t.anchor, t.at = append(t.anchor, anchor...), i
			break
		}
	}
	t.doc, t.part, t.anyTail = append(t.doc[:0], doc[t.at:]...), p, v.anyTail
	start, end = start-t.at, end-t.at
	from := 0
	add := func(kind holeKind, at, to int) {
		t.holes = append(t.holes, hole{kind, from, at})
		from = to
	}
	if v.counter != "" {
		if i := behind(t.doc[:start], `"`+v.counter+`":`); i > 0 && digits(t.doc, i) > i {
			add(numberHole, i, digits(t.doc, i))
		}
	}
	if v.echo {
		if i := echoed(t.doc[:start]); i > 0 {
			add(stringHole, i, scan.StringEnd(t.doc, i)-1)
		}
	}
	add(textHole, start, end)
	if v.padding != "" {
		if i := behind(t.doc[end:], `"`+v.padding+`":"`); i > 0 {
			add(stringHole, end+i, scan.StringEnd(t.doc, end+i)-1)
		}
	}
	if at := cap(doc) - cap(v.numbers) - t.at; v.numbers != nil && at >= from {
		for i := at; i < len(t.doc); i++ {
			if to := digits(t.doc, i); to > i {
				add(numberHole, i, to)
				i = to
			}
		}
	}
	t.tail = from
}

// forget makes the template match nothing.
func (t *template) forget() { t.holes = t.holes[:0] }

// match returns the content of doc's text as it stands between the quotes, and the first number that may differ, where
// doc is like the learned document.
func (t *template) match(doc []byte) (text []byte, counter scan.Value, ok bool) {
	if len(t.holes) == 0 {
		return nil, nil, false
	}
	first := t.doc[:t.holes[0].to]
	i := min(t.at, len(doc))
	if !bytes.HasPrefix(doc[i:], first) {
		i = bytes.Index(doc[:min(len(doc), maxAnchor)], t.anchor)
		if len(t.anchor) == 0 || i < 0 || !bytes.HasPrefix(doc[i:], first) {
			return nil, nil, false
		}
	}
	for k := range t.holes {
		h := &t.holes[k]
		if k > 0 && !bytes.HasPrefix(doc[i:], t.doc[h.from:h.to]) {
			return nil, nil, false
		}
		i += h.to - h.from
		from := i
		if h.kind == numberHole {
			if i = digits(doc, from); i == from {
				return nil, nil, false
			}
			if counter == nil {
				counter = doc[from:i]
			}
			continue
		}
		if i = scan.StringEnd(doc, from) - 1; i < from || doc[i] != '"' {
			return nil, nil, false
		}
		if h.kind == textHole {
			text = doc[from:i]
		}
	}
	if t.anyTail && i+1 < len(doc) || !t.anyTail && bytes.Equal(doc[i:], t.doc[t.tail:]) {
		return text, counter, true
	}
	return nil, nil, false
}

// behind returns the offset behind the first mark in b; 0: there is none.
func behind(b []byte, mark string) int {
	if i := bytes.Index(b, []byte(mark)); i >= 0 {
		return i + len(mark)
	}
	return 0
}

// echoed returns where in head the text so far begins that is repeated in a message before the delta; 0: nowhere.
func echoed(head []byte) int {
	i := bytes.LastIndex(head, []byte(`"message":{`))
	if i < 0 || !bytes.Contains(head[i:], []byte(`"delta":{`)) {
		return 0
	}
	j := behind(head[i:], `"content":"`)
	if j == 0 || scan.StringEnd(head, i+j) >= len(head) { // it is the text itself
		return 0
	}
	return i + j
}

// before reports whether v, a member that tells which part the text belongs to, stands before it in their document.
// Proxies that sort members put it behind, and then what follows the text does matter.
func before(v, text scan.Value) bool { return len(v) > 0 && cap(v) > cap(text) }

// digits returns the offset behind the digits that begin at b[i].
func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
