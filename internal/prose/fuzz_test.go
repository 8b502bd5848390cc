package prose

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/words"
)

// seeds returns texts that cover all constructs.
func seeds() []string {
	return []string{
		"", "\xff\xfe. \xe6\xbc", "Dr. Who (e.g. \"Tom.\") left at 3.14 p.m. He said “no.”[1] Ok?! (See [a](b.c).)",
		"# Head\n\n- one. Two\n  three ([x](u), [y](v))\n1. [ ] four\n> five\n| a | b. C |\n|---|---|\n```\ncode. X\n```\nEnd",
		"今天。「好。」と。هل؟ नमस्ते। z. B. Die 3. 10. 2024 🇩🇪👩‍👩‍👧e\u0301\u2029x\fy", "A.B. [[1]](u) `a. B` <sup>[1](u)</sup>【1】… www.a.b?c=d!",
		"**Bold line**\nText.** X* y\n===\n~~~\n[^1]: Note. [2]: U", "\r\n- \r\n.\r\n", "a\u200d. \u0600b \u1112\u1161 ．３",
	}
}

func FuzzSentences(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last, covered := 0, 0
		for start, end := range Sentences(text) {
			if start < last || end <= start || end > len(text) {
				t.Fatalf("range %d to %d after %d in %q", start, end, last, text)
			}
			if utf8.ValidString(text) && (!utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end])) {
				t.Fatalf("range %d to %d cuts a rune of %q", start, end, text)
			}
			if s := text[start:end]; strings.TrimSpace(s) != s {
				t.Fatalf("white space around %q", s)
			}
			if n := letterIn(text[last:start]); n >= 0 && !isMarker(text[last:start]) {
				t.Fatalf("letters left out: %q", text[last:start])
			}
			last, covered = end, covered+end-start
		}
		if letterIn(text[last:]) >= 0 && !isMarker(text[last:]) {
			t.Fatalf("letters left out at the end: %q", text[last:])
		}
	})
}

func letterIn(s string) int { return strings.IndexFunc(s, unicode.IsLetter) }

// isMarker reports whether the letters of s belong to a done task or a footnote's name, which are markers.
func isMarker(s string) bool {
	return strings.Contains(s, "[x]") || strings.Contains(s, "[X]") || strings.Contains(s, "[^")
}

// FuzzSentenceAt expects SentenceAt to return what Sentences yields, from any offset inside.
func FuzzSentenceAt(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		start, end := SentenceAt(text, at)
		if start < 0 || end < start || end > len(text) {
			t.Fatalf("range %d to %d of %q", start, end, text)
		}
		if len(text) > Window || strings.Contains(text, "```") || strings.Contains(text, "~~~") {
			return
		}
		for s, e := range Sentences(text) {
			for p := s + 1; p <= e; p++ {
				if b, c := SentenceAt(text, p); b != s || c != e {
					t.Fatalf("SentenceAt(%q, %d) = %q, want %q", text, p, text[b:c], text[s:e])
				}
			}
		}
	})
}

func FuzzSentenceBefore(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		start, end := SentenceBefore(text, at)
		at = clamp(text, at)
		if start < 0 || end < start || end > at || at-start > 2*Window {
			t.Fatalf("range %d to %d before %d of %q", start, end, at, text)
		}
		if s, e := SentenceBefore(text[:at], at); s != start || e != end {
			t.Fatalf("SentenceBefore(%q, %d) = %d, %d; without the rest %d, %d", text, at, start, end, s, e)
		}
		if utf8.ValidString(text) && !utf8.ValidString(text[start:end]) {
			t.Fatalf("range %d to %d cuts a rune of %q", start, end, text)
		}
	})
}

// FuzzEnds expects ends found from nearby to be those found from the start of the text.
func FuzzEnds(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 || !utf8.ValidString(text) {
			for at := range min(len(text), 3000) {
				if p := AfterPunctuation(text, WordEnd(text, at)); p < at || p > len(text) {
					t.Fatalf("offset %d for %d of %q", p, at, text)
				}
			}
			return
		}
		cluster, word := make([]bool, len(text)+1), make([]bool, len(text)+1)
		cluster[0], word[0] = true, true
		for it := graphemes.FromString(text); it.Next(); {
			cluster[it.End()] = true
		}
		for it := words.FromString(text); it.Next(); {
			word[it.End()] = true
		}
		g, w := len(text), len(text)
		for at := len(text); at >= 0; at-- {
			if cluster[at] {
				g = at
				if word[at] {
					w = at
				}
			}
			if got := GraphemeEnd(text, at); got != g {
				t.Fatalf("GraphemeEnd(%q, %d) = %d, want %d", text, at, got, g)
			}
			start := at
			for !cluster[start] {
				start--
			}
			if got := GraphemeStart(text, at); got != start {
				t.Fatalf("GraphemeStart(%q, %d) = %d, want %d", text, at, got, start)
			}
			if got := WordEnd(text, at); got != w {
				t.Fatalf("WordEnd(%q, %d) = %d, want %d", text, at, got, w)
			}
			if got := AfterPunctuation(text, g); got < g || !cluster[got] {
				t.Fatalf("AfterPunctuation(%q, %d) = %d", text, g, got)
			}
		}
	})
}
