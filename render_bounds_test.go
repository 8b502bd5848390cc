package ibid

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// shapes are texts of about n bytes whose parts a naive renderer compares with each other or repeats.
var shapes = map[string]func(n int) string{
	"marks":              repeated("a [1] "),
	"open brackets":      repeated("[ "),
	"nested brackets":    func(n int) string { return nested("[", "a", "]", n) },
	"nested quotes":      repeated(strings.Repeat("> ", 60) + "a\n\n"),
	"flat quotes":        repeated(">>>a\n\n"),
	"mixed quotes":       repeated(">- >- a\n\n"),
	"emphasis runs":      repeated("*_~~a "),
	"unmatched emphasis": func(n int) string { return repeated("_a ")(n/2) + repeated("a* ")(n/2) },
	"triple emphasis":    repeated("a***b**c*"),
	"nested emphasis":    func(n int) string { return nested("*a **b", "c", " b** a*", n) },
	"wide table": func(n int) string {
		return repeated("|a")(n/3) + "\n" + repeated("|-")(n/3) + "\n" + repeated("|b\n")(n/3)
	},
	"empty cells": func(n int) string {
		return "|" + strings.Repeat("a|", 20) + "\n|" + strings.Repeat(":-:|", 20) + "\n" + repeated(strings.Repeat("|", 21)+"\n")(n)
	},
	"code in cells":     func(n int) string { return "|a|b|\n|-|-|\n" + repeated("|`\\|`|b|\n")(n) },
	"small tables":      repeated("|a|\n|-|\n\n"),
	"links":             repeated("[a](b) [b](https://x.example/)\n"),
	"links in links":    func(n int) string { return nested("[", "a", "](b)", n) },
	"open destinations": repeated("[a](<b"),
	"open titles":       repeated("[a](b 'c "),
	"images":            func(n int) string { return nested("![", "a", "](b)", n) },
	"references in lines": func(n int) string {
		return "[x]: mailto:&\n\n" + repeated("[x]\n")(n)
	},
	"long reference": func(n int) string {
		return "[x]: https://x.example/" + strings.Repeat("a", n/2) + "\n\n" + repeated("[x] ")(n/2)
	},
	"definitions":       counted("[a%d]: https://x.example/%[1]d\n"),
	"equal definitions": repeated("[a]: b\n"),
	"footnotes":         counted("a[^%d]\n\n[^%[1]d]: note\n\n"),
	"one footnote":      func(n int) string { return repeated("a[^1] ")(n) + "\n\n[^1]: note\n" },
	"entities":          repeated("&amp;&lt;&"),
	"backquotes": func(n int) string {
		var b strings.Builder
		for i := 1; b.Len() < n; i++ {
			b.WriteString(strings.Repeat("`", i) + " ")
		}
		return b.String()
	},
	"HTML openings":   repeated("a <b c='d' "),
	"HTML comments":   repeated("a <!-- <? <!A <![CDATA[ "),
	"HTML blocks":     repeated("<div>\n\n"),
	"items in a line": repeated("- * 1. "),
	"nested items": func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n/2; i++ {
			b.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
		}
		return b.String() + strings.Repeat("\n", n/2) + "a"
	},
	"blank lines in items": func(n int) string { return strings.Repeat("- ", 60) + "a\n" + strings.Repeat("\n", n) },
	"blank lines in code in items": func(n int) string {
		return strings.Repeat("- ", 60) + "```\n" + strings.Repeat("\n", n) + "a"
	},
	"tasks":         repeated("- [ ] a\n"),
	"rules":         repeated("---\n"),
	"white space":   repeated(" \n"),
	"autolinks":     repeated("<https://x.example/> <a"),
	"bare links":    repeated("https://x.example/a www.x.example a@b.example "),
	"no addresses":  repeated("://"),
	"math":          repeated("$a$ $$b$$ "),
	"open math":     repeated(`\(`),
	"escapes":       repeated(`^~"\` + "`"),
	"fences":        repeated("```\n\\end\n\n\n\n```\n"),
	"file marks":    repeated("a【1†b】"),
	"one long word": repeated("a."),
}

func repeated(s string) func(int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)+1) }
}

func counted(format string) func(int) string {
	return func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
}

func nested(before, middle, after string, n int) string {
	n /= len(before) + len(after)
	return strings.Repeat(before, n) + middle + strings.Repeat(after, n)
}

// boundsAnswer returns an answer with a citation for every hundred bytes of text, and with the size of its parts.
func boundsAnswer(text, title, url string) (a *Answer, size int) {
	a = &Answer{Text: text, Sources: []Source{{ID: "s", Kind: Web, Title: title, URL: url}}}
	for at := 100; at < len(text); at += 100 {
		s := Span{at - 8, at}
		if badSpan(text, s) == "" {
			a.Citations = append(a.Citations, Citation{
				Span: s, Claim: s, Covers: CoversClaim, Anchor: AnchorExact, Refs: []Ref{{Source: "s"}},
			})
		}
	}
	return a, len(text) + len(title) + len(url)
}

// renderings are all ways to write an answer.
var renderings = map[string]func(a *Answer) string{
	"markdown":  func(a *Answer) string { return a.Render(nil) },
	"plain":     func(a *Answer) string { return a.Render(&RenderOptions{Style: StylePlain, List: true}) },
	"html":      func(a *Answer) string { return a.Render(&RenderOptions{Style: StyleHTML}) },
	"footnotes": func(a *Answer) string { return a.Render(&RenderOptions{Style: StyleFootnotes}) },
	"latex":     func(a *Answer) string { return a.Render(&RenderOptions{Style: StyleLaTeX, List: true}) },
	"claims": func(a *Answer) string {
		return a.Render(&RenderOptions{Style: StyleHTML, List: true, Cited: func([]int) (before, after string) {
			return "<b>", "</b>"
		}})
	},
	"live": renderLive,
}

func renderLive(a *Answer) string {
	var b strings.Builder
	live := Live{W: &b}
	for rest := a.Text; rest != ""; {
		n := min(len(rest), 400)
		live.Event(Event{Kind: EventText, Text: rest[:n]})
		rest = rest[n:]
	}
	live.Event(Event{Kind: EventAnswer, Answer: a})
	return b.String()
}

// A rendering takes at most 2 KB of memory for a byte of the text, garbage included, whatever the text.
func TestRenderMemoryBounded(t *testing.T) {
	const size, perByte = 30_000, 2048
	for name, shape := range shapes {
		a, _ := boundsAnswer(shape(size), "T", "https://s.example/p")
		for _, style := range []string{"claims", "latex", "live"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			renderings[style](a)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) / size; got > perByte {
				t.Errorf("%s, %s: %d bytes for each", name, style, got)
			}
		}
	}
}

// No rendering is longer than 16 times the answer and a megabyte, whatever is in it.
func TestRenderOutputBounded(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			a, size := boundsAnswer(shape(60_000), strings.Repeat(`"`, 500), "https://s.example/"+strings.Repeat("&", 5_000))
			for style, render := range renderings {
				if got := len(render(a)); got > 16*size+1<<20 {
					t.Errorf("%s: %d bytes of %d", style, got, size)
				}
			}
		})
	}
}

// FuzzRenderBounds repeats text in text, and asks that no rendering is longer than its bound or takes work out of
// proportion, which garbage measures.
func FuzzRenderBounds(f *testing.F) {
	for _, s := range [][3]string{
		{"[x]: https://x.example/a\n\n", "[x] ", ""},
		{"- - - - a\n", "\n", "a"},
		{"|a|b|\n|-|-|\n", "|`\\|`|b|\n", ""},
		{"", ">- >- a\n\n", ""},
		{"", "<div>\n\n", "</div>"},
		{"", "*a **b [", ""},
		{"a[^1]\n\n[^1]: b\n", "a [1] ", "`"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, before, again, after string) {
		const size, perByte, floor = 8_000, 4096, 16 << 20
		if again == "" || len(before)+len(again)+len(after) > size/10 {
			t.Skip()
		}
		text := strings.ToValidUTF8(before+strings.Repeat(again, size/len(again))+after, "?")
		a, n := boundsAnswer(text, "T", "https://s.example/p")
		for _, style := range []string{"claims", "footnotes", "latex", "live"} {
			var began, ended runtime.MemStats
			runtime.ReadMemStats(&began)
			out := renderings[style](a)
			runtime.ReadMemStats(&ended)
			if len(out) > 16*n+1<<20 {
				t.Errorf("%s: %d bytes of %d", style, len(out), n)
			}
			if used := ended.TotalAlloc - began.TotalAlloc; used > perByte*uint64(n)+floor {
				t.Errorf("%s: %d MB for %d bytes", style, used>>20, n)
			}
		}
	})
}
