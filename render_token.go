package ibid

import (
	"cmp"
	"html"
	"slices"
	"strconv"
	"strings"
)

// token is what stands for a marker or for math while the text goes through a markdown renderer.
type token struct {
	marker *Marker
	math   string
}

// tokens are the tokens of one text. Each is written as open, its index and close; open is in no text.
type tokens struct {
	open string
	all  []token
}

// A token begins and ends with punctuation, as [1](u) does, so that emphasis next to it is read the same.
const (
	tokenBegin = "⸨\uFDD0"
	tokenEnd   = "\uFDD1⸩"
)

// tokenText returns the text of the answer with a token for each marker and each piece of math. Blocks may nest too
// deep in it: see [tooDeep].
func (r *rendering) tokenText() (string, *tokens) {
	t := &tokens{}
	for k := 0; ; k++ {
		t.open = tokenBegin + strconv.Itoa(k) + "\uFDD2"
		if !strings.Contains(r.answer.Text, t.open) {
			break
		}
	}
	var b strings.Builder
	b.Grow(len(r.answer.Text) + 32*len(r.markers))
	for i := range r.sections {
		s := &r.sections[i]
		edits := make([]edit, 0, len(s.layout.cuts)+len(s.places.math))
		for _, c := range s.layout.cuts {
			edits = append(edits, edit{Span: c})
		}
		for _, m := range s.places.math {
			edits = append(edits, edit{m, t.add(token{math: r.answer.Text[s.Start+m.Start : s.Start+m.End]})})
		}
		slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.Start, b.Start) })
		r.writeSection(&b, s, edits, func(b *strings.Builder, m *Marker, st *stop, _ string) {
			if st.space {
				b.WriteByte(' ')
			}
			b.WriteString(t.add(token{marker: m}))
		})
	}
	return b.String(), t
}

// add returns the text of a new token.
func (t *tokens) add(tok token) string {
	t.all = append(t.all, tok)
	return t.open + strconv.Itoa(len(t.all)-1) + tokenEnd
}

// each goes through s: plain gets the text between tokens, tok the tokens, and both where in s it is.
func (t *tokens) each(s string, plain func(int, string), tok func(int, token)) {
	for size := len(s); ; {
		at := size - len(s)
		before, rest, ok := strings.Cut(s, t.open)
		if before != "" {
			plain(at, before)
		}
		if !ok {
			return
		}
		index, rest, ok := strings.Cut(rest, tokenEnd)
		if i, err := strconv.Atoi(index); ok && err == nil && 0 <= i && i < len(t.all) {
			tok(at+len(before), t.all[i])
		}
		s = rest
	}
}

// markdownText returns what a reader sees of inline markdown text: escapes and entities resolved.
func markdownText(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && isASCIIPunct(s[i+1]):
			b.WriteByte(s[i+1])
			i += 2
		case c == '&':
			n := strings.IndexByte(s[i:min(len(s), i+40)], ';') + 1
			if n == 0 {
				n = 1
			}
			b.WriteString(html.UnescapeString(s[i : i+n]))
			i += n
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

func isASCIIPunct(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}
