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
	eachCase(t, "claims", func(t *testing.T, text, want string) {
		t.Helper()
		a := claimed(text)
		if diff := cmp.Diff(want+"\n", renderClaims(a)); diff != "" && want != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		checkClaims(t, a)
	})
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
	a.Citations[0].Claim = Span{10, 34} // is removed with the link
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

// Invalid claims are ignored, and at most maxCited citations are passed.
func TestRenderClaimsBounds(t *testing.T) {
	a := &Answer{Text: "Größe", Sources: []Source{{ID: "a"}}}
	for range maxCited + 10 {
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
	want := make([]int, maxCited)
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

// checkClaims checks what Render guarantees for Cited: without its strings the HTML is the same, every stretch is text
// within one element and has no markers, and its text lies in the claims of its citations.
func checkClaims(t *testing.T, a *Answer) {
	t.Helper()
	opts := RenderOptions{Style: StyleHTML, Marker: func(Marker) string { return "<sup></sup>" }, List: true}
	want := a.Render(&opts)
	opts.Cited = func(citations []int) (before, after string) {
		if len(citations) == 0 || !slices.IsSorted(citations) {
			t.Errorf("Cited was called with %v", citations)
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
				t.Errorf("the claim %q of %q differs from its stretches (-want +got):\n%s", words, a.Text, diff)
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

// isSubsequence reports whether the runes of sub occur in s in order.
func isSubsequence(sub, s string) bool {
	for _, r := range s {
		if first, n := utf8.DecodeRuneInString(sub); n > 0 && first == r {
			sub = sub[n:]
		}
	}
	return sub == ""
}

// stretches reads HTML with claims in <mark class="indexes">.
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
