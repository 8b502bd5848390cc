package wire

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// chunkTemplate recognises the next of many chunks that differ in their text only. It is for Chat Completions what
// [template] is for others, with three more things that may differ: what stands before the member object or the
// repeated sources, such as an id for each chunk or a growing usage; the text so far, which some repeat in every chunk;
// and the padding at the end.
type chunkTemplate struct {
	anchor []byte // the member at which head begins; empty: the document's start
	head   []byte // up to the text's opening quote, or that of the text so far
	mid    []byte // from the closing quote of the text so far to the text's opening quote; empty: not repeated
	tail   []byte // what follows the text, up to the padding
	rest   []byte // what follows the padding
	padded bool
	part   Part
	at     int // where head began in the learned document
}

// maxAnchor is how far into a document the anchor is looked for.
const maxAnchor = 2048

// learn remembers doc, whose text is a string within it.
func (t *chunkTemplate) learn(doc, text scan.Value, p Part) {
	t.head = t.head[:0]
	start := cap(doc) - cap(text) + 1 // both end at the end of the same memory
	end := start + len(text) - 1
	if len(text) < 2 || start < 1 || end > len(doc) || &doc[start-1] != &text[0] {
		return
	}
	from := 0
	t.anchor = t.anchor[:0]
	for _, anchor := range []string{`"citations":`, `"search_results":`, `"object":`} {
		if i := bytes.Index(doc[:min(start, maxAnchor)], []byte(anchor)); i >= 0 {
			t.anchor = append(t.anchor, anchor...)
			from = i
			break
		}
	}
	head, mid := doc[from:start], scan.Value(nil)
	if i := echo(head); i > 0 {
		j := scan.StringEnd(head, i)
		head, mid = head[:i], head[j-1:]
	}
	t.mid = append(t.mid[:0], mid...)
	tail, rest := doc[end-1:], scan.Value(nil)
	const padding = `"obfuscation":"`
	t.padded = false
	if i := bytes.Index(tail, []byte(padding)); i >= 0 {
		i += len(padding)
		t.padded = true
		tail, rest = tail[:i], tail[scan.StringEnd(tail, i)-1:]
	}
	t.tail, t.rest = append(t.tail[:0], tail...), append(t.rest[:0], rest...)
	t.head, t.part, t.at = append(t.head, head...), p, from
}

// echo returns where in head the text so far begins that is repeated in a message before the delta, or 0.
func echo(head []byte) int {
	i := bytes.LastIndex(head, []byte(`"message":{`))
	if i < 0 || !bytes.Contains(head[i:], []byte(`"delta":{`)) {
		return 0
	}
	const content = `"content":"`
	j := bytes.Index(head[i:], []byte(content))
	if j < 0 {
		return 0
	}
	j += i + len(content)
	if scan.StringEnd(head, j) >= len(head) { // it is the text itself
		return 0
	}
	return j
}

// match returns the content of doc's text as it stands between the quotes, where doc is like the learned one.
func (t *chunkTemplate) match(doc []byte) ([]byte, bool) {
	if len(t.head) == 0 {
		return nil, false
	}
	i := min(t.at, len(doc))
	if !bytes.HasPrefix(doc[i:], t.head) {
		i = bytes.Index(doc[:min(len(doc), maxAnchor)], t.anchor)
		if len(t.anchor) == 0 || i < 0 || !bytes.HasPrefix(doc[i:], t.head) {
			return nil, false
		}
	}
	i += len(t.head)
	if len(t.mid) > 0 {
		if i = scan.StringEnd(doc, i) - 1; i < 0 || !bytes.HasPrefix(doc[i:], t.mid) {
			return nil, false
		}
		i += len(t.mid)
	}
	end := scan.StringEnd(doc, i) - 1
	if end < i || doc[end] != '"' || !t.ends(doc[end:]) {
		return nil, false
	}
	return doc[i:end], true
}

// ends reports whether what follows the text is as learned, but for the padding.
func (t *chunkTemplate) ends(tail []byte) bool {
	if !t.padded {
		return bytes.Equal(tail, t.tail)
	}
	if !bytes.HasPrefix(tail, t.tail) {
		return false
	}
	end := scan.StringEnd(tail, len(t.tail)) - 1
	return end >= len(t.tail) && bytes.Equal(tail[end:], t.rest)
}
