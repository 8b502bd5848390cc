package markdown

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConstructs parses the construct at the start of each text, which ends at the bar. Without a bar there is none.
func TestConstructs(t *testing.T) {
	for name, test := range map[string]struct {
		read  func(s string, last bool) (n int, certain bool)
		texts []string
	}{
		"code": {Code, []string{
			"`a`| b", "``a ` b``|", "``a`", "`a\n\nb`", "`a\nb`| c", "``", "`a``b`|",
			"`" + strings.Repeat("a", maxCode) + "`",
		}},
		"link": {Link, []string{
			"[a](u)| b", "[a [b] c](u \"t\")|", "[a](u_(v)_w)|", "[a](<u v>)|", "[a] b", `[a\]b](u)|`, "[a](not a link)",
			"[a\n\nb](u)",
		}},
		"brackets": {Brackets, []string{
			"[a]| b", "[a [b]]|", "(a (b))| c", `[a\]]|`, "[a", "[a\n\nb]",
			strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1),
		}},
		"autolink": {autolink, []string{"<https://a.example>| b", "<mailto:a@b.example>|", "<a b>", "<a:b c>", "<b>"}},
		"address": {address, []string{
			"://a.example/b|", "://a.example/b_(c)|)", "://a.example|[1]", "://a.example/[1]|", "://a.example/a.|[1]",
			"://a|<b", ":", ": a",
		}},
		"math": {math, []string{
			`\(a+b\)| c`, `\[a\]|`, "$$a\nb$$|", "$a$| b", "$a $", "$ a$", "$5 and $6", "$a\nb$", "$$a\n\nb$$", `\(a`,
		}},
		"words in brackets": {bracket, []string{"[1]| a", "[a b]|", "[a[b]", "[a\n]", "[" + strings.Repeat("a", maxBracket) + "]"}},
		"wide brackets":     {Wide, []string{"【1】| a", "［2］|", "〔a〕|", "(b)| c", "(a (b)", "【a\n】", "²³| a", "¹|x", "é", "“a"}},
		"an element of code": {codeElement, []string{
			"<code>x[1]</code>| a", "<pre class=\"x\">[2]</pre>|", "<CODE>a</CODE>|", "<codec>", "<c", "<b>[1]</b>", "<var>x",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range test.texts {
				construct, rest, found := strings.Cut(text, "|")
				whole, want := construct+rest, 0
				if found {
					want = len(construct)
				}
				if got, certain := test.read(whole, true); got != want || !certain && got > 0 {
					t.Errorf("%q: %d bytes, want %d", whole, got, want)
				}
				for end := 1; end < len(whole); end++ { // a certain result for a prefix is final
					if got, certain := test.read(whole[:end], false); certain && got != want {
						t.Errorf("%q of %q: certain of %d bytes, want %d", whole[:end], whole, got, want)
					}
				}
			}
		})
	}
}

// TestLexer finds brackets outside other constructs, with the same result however the text is split.
func TestLexer(t *testing.T) {
	for text, want := range map[string][]string{
		"a [b] c [d](u) [e]":                      {"[b]", "[e]"},
		"`[a]` ``[b] ` [c]`` [d]":                 {"[d]"},
		"```\n[a]\n```\n[b]\n~~~ x\n[c]\n~~\n~~~": {"[b]"},
		"> ~~~\n> [a]\n> ~~~\n> [b]":              {"[b]"},
		"```\n[a]":                                nil,
		`\\[a] \[b\] [c]`:                         {"[a]", "[c]"},
		"$x[a]$ $$[b]$$ \\([c]\\) [d]":            {"[d]"},
		"<ab:[b]> https://a.example/[c] [d]":      {"[d]"},
		"[a [b] c] [d\n[e]":                       {"[b]", "[e]"},
	} {
		for _, size := range []int{len(text), 1, 2, 5} {
			var got []string
			var l Lexer
			for end := 0; end < len(text); {
				end = min(end+size, len(text))
				for {
					s, ok := l.Next(text[:end], end == len(text))
					if !ok {
						break
					}
					got = append(got, text[s.Start:s.End])
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q in pieces of %d (-want +got):\n%s", text, size, diff)
			}
		}
	}
}

// TestWideLexer finds other brackets and links, too, and what is inside brackets that are not used.
func TestWideLexer(t *testing.T) {
	const text = "a (b [c]) 【d】 ［e］ km² [f](u) <code>[g]</code> ![h](v)"
	for _, size := range []int{len(text), 1, 3} {
		var got []string
		l := Lexer{Wide: true, Links: true}
		for end := 0; end < len(text); {
			end = min(end+size, len(text))
			for {
				s, ok := l.Next(text[:end], end == len(text))
				if !ok {
					break
				}
				got = append(got, text[s.Start:s.End])
			}
		}
		want := []string{"(b [c])", "[c]", "【d】", "［e］", "²", "[f](u)", "[h](v)"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
	}
}

// TestBlocks expects blocks to end at the bars. In larger pieces Blocks need not find all of them.
func TestBlocks(t *testing.T) {
	for _, test := range []string{
		"One\ntwo.\n\n|Three.", "- one\n|- two\n  more\n|- three", "1. one\n|2. two", "One.\n\n  still\n\n|Two.",
		"```\na\n\nb\n```\n|c", "<!-- a\n\nb -->\n\n|c", "$$\na\n- b\n$$\n\n|c", "# One\n\n|> two\n> three",
	} {
		text := strings.ReplaceAll(test, "|", "")
		for _, size := range []int{1, 3} {
			var got strings.Builder
			var b Blocks
			var buf []byte
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				buf, rest = append(buf, rest[:n]...), rest[n:]
				for {
					end, _, ok := b.Next(buf)
					if !ok {
						break
					}
					got.WriteString(string(buf[:end]) + "|")
					buf = buf[end:]
					b.Cut()
				}
			}
			if diff := cmp.Diff(test, got.String()+string(buf)); diff != "" {
				t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
			}
		}
	}
}

// TestFirstOpen expects the first open construct to begin at the bar.
func TestFirstOpen(t *testing.T) {
	for _, test := range []string{
		"a b", "a |*b c", "a *b* |**c", "a |`b *c", "a `b` c", "a |[b", "a [b] c", "a |[b](c", "a_b c", `a \*b`, "2 * 3",
		"~~a~~ |~~b",
	} {
		before, after, found := strings.Cut(test, "|")
		want := -1
		if found {
			want = len(before)
		}
		if got := FirstOpen(before + after); got != want {
			t.Errorf("FirstOpen(%q) = %d, want %d", before+after, got, want)
		}
	}
}

func TestIsHarmlessMath(t *testing.T) {
	for want, texts := range map[bool][]string{
		true: {`$x$`, `$x_i^2$`, `$$\sum_{i=1}^{n} i$$`, `\(a+b\)`, `\[\vec{v} \cdot w\]`, `$\{a, b\}$`},
		false: {
			`$x^2^3$`, `$x_$`, `$^$`, `${$`, `$}$`, `$a}{b$`, `$\frac{a}$`, `$\def\x{}$`, `$\csname x$`, `$\write18{ls}$`,
			`$x^^M$`, `$a%b$`, `$a#b$`, `$a&b$`, `$é$`, `$\text{a$b}$`, `$\$`, `$ $`,
		},
	} {
		for _, math := range texts {
			if got := isHarmlessMath(math); got != want {
				t.Errorf("isHarmlessMath(%q) = %t", math, got)
			}
		}
	}
}

// TestLeaves lists the leaves of texts with their words: p is a paragraph, P one that opens a list item, t a table, c
// code, and o anything else (without words).
func TestLeaves(t *testing.T) {
	for text, want := range map[string]string{
		"A\nb\n\n> c\n> d\n\nE":              "p<A\nb> p<c\n> d> p<E>",
		"- a\n\n  b\n- c\n-\n\nd":            "P<a> p<b> P<c> p<d>",
		"# A\n\nB\n=\n\n---\n\n<p>\n\nc":     "o o o o p<c>",
		"A:\n```\n# b\n```\nC\n\n    d\n\ne": "p<A:> c<```\n# b\n> p<C> c<d\n> p<e>",
		"| a | b |\n|---|---|\n| c | d |\n":  "t<| a | b |\n|---|---|\n| c | d>",
		"A\r\n\r\n\u00a0B\r\n":               "p<A> p<\u00a0B>",
		"[a]: https://a.example/\n\nB\n":     "p<B>",
		"":                                   "",
	} {
		var got []string
		for _, l := range Parse(text).Leaves() {
			kind := map[LeafKind]string{ParagraphLeaf: "p", TableLeaf: "t", CodeLeaf: "c", OtherLeaf: "o"}[l.Kind]
			if l.Opens {
				kind = strings.ToUpper(kind)
			}
			if l.Kind != OtherLeaf {
				kind += "<" + text[l.Start:l.End] + ">"
			}
			got = append(got, kind)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("leaves of %q (-want +got):\n%s", text, diff)
		}
	}
}
