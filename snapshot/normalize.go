package snapshot

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid"
)

// stream is the text of a document before it is normalised, with the places where its blocks begin. Right before each
// of these stands a line break, which composes with nothing: what lies between two of them can be normalised by itself.
type stream struct {
	raw   []byte
	marks []mark
}

// mark is where a block begins in a stream.
type mark struct {
	at    int
	kind  BlockKind
	level int
	page  int
}

// begin ends the block before and begins another.
func (s *stream) begin(kind BlockKind, level, page int) {
	s.raw = append(s.raw, '\n')
	m := mark{len(s.raw), kind, level, page}
	if n := len(s.marks); n > 0 && s.marks[n-1].at+1 == m.at {
		s.marks[n-1] = m // nothing stands in the last one
		return
	}
	s.marks = append(s.marks, m)
}

// finish normalises the stream into t.Content and t.Blocks.
func (s *stream) finish(t *Text) {
	if len(s.marks) == 0 || s.marks[0].at > 0 {
		s.marks = append([]mark{{kind: Paragraph}}, s.marks...)
	}
	n := normalizer{out: make([]byte, 0, len(s.raw))}
	for i, m := range s.marks {
		end := len(s.raw)
		if i+1 < len(s.marks) {
			end = s.marks[i+1].at
		}
		if span := n.add(s.raw[m.at:end]); span.Len() > 0 {
			t.Blocks = append(t.Blocks, Block{Span: span, Kind: m.kind, Level: m.level, Page: m.page})
		}
	}
	t.Content = string(n.out)
}

// Normalize returns text as [Text.Content] has it: in Unicode's form NFC, without characters of category Cf and U+FFFD,
// each run of white space one space, none at the ends. A quote that is normalised can be looked for in a Content.
// Normalizing again may change a text in which a character of category Cf stood between a letter and its accent.
func Normalize(text string) string {
	n := normalizer{out: make([]byte, 0, len(text))}
	n.add([]byte(text))
	return string(n.out)
}

// normalizer writes normalised text.
type normalizer struct {
	out   []byte
	space bool // white space stands before what comes next
}

// add appends raw, set apart by a space from what is there, and returns where it stands.
func (n *normalizer) add(raw []byte) ibid.Span {
	n.space = true
	raw = norm.NFC.Bytes(raw)
	start := -1
	for i := 0; i < len(raw); {
		size, keep := n.character(raw[i:])
		if !keep {
			i += size
			continue
		}
		if n.space && len(n.out) > 0 {
			n.out = append(n.out, ' ')
		}
		n.space = false
		if start < 0 {
			start = len(n.out)
		}
		end := i + size
		for end < len(raw) && ' ' < raw[end] && raw[end] < utf8.RuneSelf {
			end++ // with what is as ordinary, all at once
		}
		n.out = append(n.out, raw[i:end]...)
		i = end
	}
	if start < 0 {
		return ibid.Span{}
	}
	return ibid.Span{Start: start, End: len(n.out)}
}

// character returns how many bytes the first character has, and whether it stays. White space it notes.
func (n *normalizer) character(raw []byte) (size int, keep bool) {
	c := raw[0]
	if c < utf8.RuneSelf {
		if c > ' ' || !unicode.IsSpace(rune(c)) {
			return 1, true
		}
		n.space = true
		return 1, false
	}
	r, size := utf8.DecodeRune(raw)
	switch {
	case 0xa0 < r && r < 0x600 && r != 0xad,
		0x3000 < r && r < 0xfeff: // letters of Europe and East Asia, to which nothing below applies
		return size, true
	case unicode.IsSpace(r):
		n.space = true
		return size, false
	default:
		return size, r != utf8.RuneError && !unicode.Is(unicode.Cf, r)
	}
}
