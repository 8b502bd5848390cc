package ibid

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// claimed returns annotated(text) with each citation's span as its claim.
func claimed(text string) *Answer {
	a := annotated(text)
	for i := range a.Citations {
		if a.Citations[i].Covers == CoversClaim {
			a.Citations[i].Claim = a.Citations[i].Span
		}
	}
	return a
}

// renderClaims renders HTML with {1} for markers and ⟨0,1:…⟩ around claims.
func renderClaims(a *Answer) string {
	return a.Render(&RenderOptions{
		Style: StyleHTML,
		Marker: func(m Marker) string {
			var numbers []string
			for _, it := range m.Items {
				numbers = append(numbers, strconv.Itoa(it.Number))
			}
			return "{" + strings.Join(numbers, ",") + "}"
		},
		Cited: func(citations []int) (before, after string) {
			return "⟨" + strings.Trim(strings.ReplaceAll(fmt.Sprint(citations), " ", ","), "[]") + ":", "⟩"
		},
	})
}

func TestRenderClaims(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"sentence", "It rained. ①«It snowed.» Yes", "<p>It rained. ⟨0:It snowed.⟩{1} Yes</p>"},
		{"nested", "③«It ①«rained» hard».", "<p>⟨1:It ⟩⟨0,1:rained⟩{1}⟨1: hard⟩.{2}</p>"},
		{"same words twice", "③«①«It rained»»", "<p>⟨0,1:It rained⟩{1,2}</p>"},
		{"side by side", "①«It»③« rained»", "<p>⟨0:It⟩{1}⟨1: rained⟩{2}</p>"},
		{"emphasis", "①«It *rained **all** day* long»", "<p>⟨0:It ⟩<em>⟨0:rained ⟩<strong>⟨0:all⟩</strong>⟨0: day⟩</em>⟨0: long⟩{1}</p>"},
		{"ends in emphasis", "It *①«rained» all* day", "<p>It <em>⟨0:rained⟩ all</em>{1} day</p>"},
		{"link", "①«It [rained](https://l.example) hard»", `<p>⟨0:It ⟩<a href="https://l.example" rel="noopener noreferrer nofollow">⟨0:rained⟩</a>⟨0: hard⟩{1}</p>`},
		{"half a link", "①«It [rai»ned](https://l.example) hard", `<p>⟨0:It ⟩<a href="https://l.example" rel="noopener noreferrer nofollow">⟨0:rai⟩ned</a>{1} hard</p>`},
		{"address", "①«See https://l.example/a» and <https://l.example>", `<p>⟨0:See ⟩<a href="https://l.example/a" rel="noopener noreferrer nofollow">⟨0:https://l.example/a⟩</a> {1} and <a href="https://l.example" rel="noopener noreferrer nofollow">https://l.example</a></p>`},
		{"mailbox", "①«Ask (me@z.example)» now", `<p>⟨0:Ask (⟩<a href="mailto:me@z.example" rel="noopener noreferrer nofollow">⟨0:me@z.example⟩</a>⟨0:)⟩ {1} now</p>`},
		{"image", "①«![a map](https://l.example/p.png)»", `<p><a href="https://l.example/p.png" rel="noopener noreferrer nofollow">⟨0:a map⟩</a>{1}</p>`},
		{"code", "①«Call `x <y>` now»", "<p>⟨0:Call ⟩<code>⟨0:x &lt;y&gt;⟩</code>⟨0: now⟩{1}</p>"},
		{"code over lines", "①«Call `x\ny` now»", "<p>⟨0:Call ⟩<code>⟨0:x y⟩</code>⟨0: now⟩{1}</p>"},
		{"code block", "```go\nx ①«:= 1\ny» := 2\n```", "<pre><code class=\"language-go\">x ⟨0::= 1\ny⟩ := 2\n</code></pre>\n<p>{1}</p>"},
		{"indented code", "①«\tx\n\ty»", "<pre><code>⟨0:x\ny⟩\n</code></pre>\n<p>{1}</p>"},
		{"lines", "①«It rained\nand it\\\nsnowed»", "<p>⟨0:It rained\nand it⟩<br>\n⟨0:snowed⟩{1}</p>"},
		{"list", "- one\n- ①«two\n- three»\n", "<ul>\n<li>one</li>\n<li>⟨0:two⟩</li>\n<li>⟨0:three⟩{1}</li>\n</ul>"},
		{"table", "| a | b |\n|---|---|\n| ①«c | d» |\n", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>⟨0:c⟩</td>\n<td>⟨0:d⟩{1}</td>\n</tr>\n</tbody>\n</table>"},
		{"pipe in a cell", "| ①«a\\|b `c\\|d`» |\n|---|\n", "<table>\n<thead>\n<tr>\n<th>⟨0:a|b ⟩<code>⟨0:c|d⟩</code>{1}</th>\n</tr>\n</thead>\n</table>"},
		{"heading", "# ①«Head» #\n\nText", "<h1>⟨0:Head⟩{1}</h1>\n<p>Text</p>"},
		{"paragraphs", "①«One.\n\nTwo.»", "<p>⟨0:One.⟩</p>\n<p>⟨0:Two.⟩{1}</p>"},
		{"math", "①«So $a<b$ holds», $c$", `<p>⟨0:So <span class="math inline">\(a&lt;b\)</span> holds⟩,{1} <span class="math inline">\(c\)</span></p>`},
		{"half of math", "①«So $a» + b$", `<p>⟨0:So <span class="math inline">\(a + b\)</span>⟩{1}</p>`},
		{"entity", "①«AT&am»p;T ①«\\»* x", "<p>⟨0:AT&amp;⟩{1}T ⟨1:*⟩{1} x</p>"},
		{"HTML", "a ①«<b>» b\n\n<div>\n①«raw»\n</div>", "<p>a ⟨0:&lt;b&gt;⟩{1} b</p>\n<p>&lt;div&gt;\n⟨1:raw⟩\n&lt;/div&gt;</p>\n<p>{1}</p>"},
		{"footnote", "①«Rain[^1]»\n\n[^1]: ①«note»", ""},
		{"right to left", "①«ירד גשם» חזק", "<p>⟨0:ירד גשם⟩{1} חזק</p>"},
		{"point", "It rained.①«» Yes", "<p>It rained.{1} Yes</p>"},
		{"task", "- [ ] ①«do»", "<ul>\n<li><input disabled=\"\" type=\"checkbox\"> ⟨0:do⟩{1}</li>\n</ul>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := claimed(tt.text)
			if diff := cmp.Diff(tt.want+"\n", renderClaims(a)); diff != "" && tt.want != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkClaims(t, a)
		})
	}
}

// TestRenderClaimsOfLinks renders claims of links, which are not their spans.
func TestRenderClaimsOfLinks(t *testing.T) {
	a := &Answer{
		Text:    "It rained ([A](https://a.example)). It snowed.",
		Sources: []Source{{ID: "a", URL: "https://a.example"}},
		Citations: []Citation{{
			Span: Span{11, 33}, Covers: CoversLink, Claim: Span{0, 35}, Anchor: AnchorExact, Refs: []Ref{{Source: "a"}},
		}},
	}
	want := "<p>⟨0:It rained.⟩{1} It snowed.</p>\n"
	if diff := cmp.Diff(want, renderClaims(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.Citations[0].Claim = Span{10, 34} // goes with the link
	if diff := cmp.Diff("<p>It rained.{1} It snowed.</p>\n", renderClaims(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenderClaimsOfMessages(t *testing.T) {
	a := &Answer{
		Text:    "Let me look.It rained.",
		Parts:   []Part{{Span: Span{0, 12}}, {Span: Span{12, 22}, Message: 1}},
		Sources: []Source{{ID: "a"}},
	}
	for _, s := range []Span{{4, 22}, {12, 22}} {
		if err := a.Cite(s, Ref{Source: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	want := "<p>Let ⟨0:me look.⟩</p>\n<p>⟨0,1:It rained.⟩{1}</p>\n"
	if diff := cmp.Diff(want, renderClaims(a)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A citation of a bad claim is none, and no more than mostCited are named.
func TestRenderClaimsBounds(t *testing.T) {
	a := &Answer{Text: "Größe", Sources: []Source{{ID: "a"}}}
	for range mostCited + 10 {
		a.Citations = append(a.Citations, Citation{Claim: Span{0, 7}, Span: Span{0, 7}, Anchor: AnchorExact})
	}
	for _, s := range []Span{{-1, 2}, {0, 8}, {0, 3}, {4, 2}} {
		a.Citations = append(a.Citations, Citation{Claim: s, Span: s, Anchor: AnchorExact})
	}
	a.Citations = append(a.Citations, Citation{Claim: Span{0, 7}, Anchor: AnchorNone})
	var got [][]int
	a.Render(&RenderOptions{Style: StyleHTML, Cited: func(citations []int) (before, after string) {
		got = append(got, citations)
		return "", ""
	}})
	want := make([]int, mostCited)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff([][]int{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzRenderClaims renders any text with any claims: see checkClaims.
func FuzzRenderClaims(f *testing.F) {
	for _, s := range renderSeeds {
		for _, spans := range []string{"\x00\xff\x00", "\x00\x10\x00\x10\x80\x01\x40\x60\x05\x90\xf0\x02", "\x20\x30\x04\x50\x70\x08\x80\x90\x0c\xa0\xff\x01"} {
			f.Add(s, []byte(spans))
		}
	}
	f.Add("a &amp; \\* &#x41; \\\\\\[ &nosuch; \\&lt;", []byte("\x10\x30\x00\x31\x60\x01\x61\x90\x02\x91\xb0\x00\xb1\xe0\x01"))
	f.Add(strings.Repeat("> ", 70)+"deep\n\n[^1]: note\n", []byte("\x10\xf0\x00\x31\xe0\x01"))
	f.Fuzz(func(t *testing.T, text string, spans []byte) {
		if len(text) > 2000 || len(spans) > 60 || !utf8.ValidString(text) {
			t.Skip()
		}
		a := fuzzAnswer(text, spans, true)
		for i := range a.Citations {
			c := &a.Citations[i]
			if c.Claim = c.Span; c.Covers == CoversLink && i > 0 {
				c.Claim.Start = min(a.Citations[i-1].Span.Start, c.Claim.Start)
			}
		}
		checkClaims(t, a)
	})
}

// checkClaims checks what Render promises of Cited: without its strings the HTML is the same, every stretch is text in one
// element, no marker stands in one, and what is in one lies in the claims that it names.
func checkClaims(t *testing.T, a *Answer) {
	t.Helper()
	opts := RenderOptions{Style: StyleHTML, Marker: func(Marker) string { return "<sup></sup>" }, List: true}
	want := a.Render(&opts)
	opts.Cited = func(citations []int) (before, after string) {
		if len(citations) == 0 || !slices.IsSorted(citations) {
			t.Errorf("Cited gets %v", citations)
		}
		return `<mark class="` + strings.Trim(fmt.Sprint(citations), "[]") + `">`, "</mark>"
	}
	got := a.Render(&opts)
	if diff := cmp.Diff(want, regexp.MustCompile(`<mark class="[0-9 ]+">|</mark>`).ReplaceAllString(got, "")); diff != "" {
		t.Fatalf("claims change the HTML of %q (-want +got):\n%s", a.Text, diff)
	}
	s := stretches{t: t, html: got, said: make([]strings.Builder, len(a.Citations))}
	s.read()
	for i := range a.Citations {
		claim, said := a.Citations[i].Claim, s.said[i].String()
		if claim.Len() == 0 {
			continue
		}
		words := a.Text[claim.Start:claim.End]
		if !strings.ContainsFunc(a.Text, func(r rune) bool { return !unicode.IsLetter(r) && r != ' ' && r != '.' }) && strings.TrimSpace(words) != "" {
			if diff := cmp.Diff(strings.Fields(words), strings.Fields(said)); diff != "" && !strings.HasPrefix(a.Text, "    ") {
				t.Errorf("the claim %q of %q is not what is in its stretches (-want +got):\n%s", words, a.Text, diff)
			}
		}
		if !strings.ContainsAny(a.Text, `&\$`) && !isSubsequence(strings.Map(letter, said), words) {
			t.Errorf("the stretches of the claim %q have %q", words, said)
		}
	}
}

// letter keeps letters and digits.
func letter(r rune) rune {
	if unicode.IsLetter(r) || unicode.IsNumber(r) {
		return r
	}
	return -1
}

// isSubsequence reports whether the runes of sub occur in s in their order.
func isSubsequence(sub, s string) bool {
	for _, r := range s {
		if first, n := utf8.DecodeRuneInString(sub); n > 0 && first == r {
			sub = sub[n:]
		}
	}
	return sub == ""
}

// stretches reads HTML with claims in <mark class="their indices">.
type stretches struct {
	t    *testing.T
	html string
	open []string
	in   []int
	said []strings.Builder // by citation
}

func (s *stretches) read() {
	s.t.Helper()
	z := html.NewTokenizer(strings.NewReader(s.html))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(s.open) > 0 {
				s.t.Fatalf("%v are open: %q", s.open, s.html)
			}
			return
		case html.TextToken:
			for _, i := range s.in {
				s.said[i].WriteString(html.UnescapeString(string(z.Raw())))
			}
		case html.StartTagToken:
			s.start(z.Token())
		case html.EndTagToken:
			s.end(z.Token().Data)
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
			s.t.Fatalf("%q in %q", z.Raw(), s.html)
		}
	}
}

func (s *stretches) start(tok html.Token) {
	s.t.Helper()
	isMath := tok.Data == "span" && len(tok.Attr) > 0 && strings.HasPrefix(tok.Attr[0].Val, "math ")
	if s.in != nil && !isMath {
		s.t.Fatalf("%s in a stretch of %q", tok, s.html)
	}
	switch tok.Data {
	case "br", "hr", "input":
		return
	case "ul", "ol", "table", "thead", "tbody", "tr":
	case "mark":
		if n := len(s.open); n > 0 && slices.Contains([]string{"ul", "ol", "table", "thead", "tbody", "tr"}, s.open[n-1]) {
			s.t.Fatalf("a stretch in %s of %q", s.open[n-1], s.html)
		}
		for word := range strings.FieldsSeq(tok.Attr[0].Val) {
			i, err := strconv.Atoi(word)
			if err != nil || i >= len(s.said) {
				s.t.Fatalf("stretch of %s", word)
			}
			s.in = append(s.in, i)
		}
	}
	s.open = append(s.open, tok.Data)
}

func (s *stretches) end(name string) {
	s.t.Helper()
	if n := len(s.open); n == 0 || s.open[n-1] != name {
		s.t.Fatalf("%v are open at </%s> of %q", s.open, name, s.html)
	}
	s.open = s.open[:len(s.open)-1]
	if name == "mark" {
		s.in = nil
	}
}
