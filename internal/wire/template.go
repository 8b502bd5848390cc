package wire

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// template recognises the next of many documents that differ in one string only: the text deltas of a stream. It learns
// the bytes around the string from a document that was walked in full; a document with the same bytes around another
// string needs no walk. A counter before the string, such as a sequence number, may differ, too.
type template struct {
	head, mid, tail []byte // head, counter, mid, string, tail
	counter         bool
	anyTail         bool // nothing after the string matters
	part            Part
}

// learn remembers doc, whose member text is a string within it. Counter is the name of a member before the string whose
// number may differ, or empty; anyTail says that what follows the string does not matter. See [before].
func (t *template) learn(doc, text scan.Value, counter string, p Part, anyTail bool) {
	t.head = t.head[:0]
	start := cap(doc) - cap(text) + 1 // both end at the end of the same memory
	end := start + len(text) - 1
	if len(text) < 2 || start < 1 || end > len(doc) || &doc[start-1] != &text[0] {
		return
	}
	head, mid := doc[:start], scan.Value(nil)
	if t.counter = false; counter != "" {
		if i := bytes.Index(head, []byte(`"`+counter+`":`)); i >= 0 {
			i += len(counter) + 3
			j := digits(head, i)
			head, mid, t.counter = doc[:i], doc[j:start], true
		}
	}
	t.head = append(t.head, head...)
	t.mid = append(t.mid[:0], mid...)
	t.tail = append(t.tail[:0], doc[end-1:]...)
	t.part, t.anyTail = p, anyTail
}

// match returns the content of doc's string as it stands between the quotes, where doc is like the learned one.
func (t *template) match(doc []byte) ([]byte, bool) {
	if len(t.head) == 0 || !bytes.HasPrefix(doc, t.head) {
		return nil, false
	}
	i := len(t.head)
	if t.counter {
		i = digits(doc, i)
		if !bytes.HasPrefix(doc[i:], t.mid) {
			return nil, false
		}
		i += len(t.mid)
	}
	end := scan.StringEnd(doc, i) - 1
	if end < i || doc[end] != '"' || end+1 == len(doc) || !t.anyTail && !bytes.Equal(doc[end:], t.tail) {
		return nil, false
	}
	return doc[i:end], true
}

// before reports whether v, a member that tells which part the text belongs to, stands before it in their document.
// Proxies that sort members put it behind, and then what follows the text does matter.
func before(v, text scan.Value) bool { return len(v) > 0 && cap(v) > cap(text) }

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
