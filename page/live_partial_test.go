package page

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// What is shown of an arriving text is not changed by the pieces that follow.
func TestSettled(t *testing.T) {
	long := strings.Repeat("long ", 200)
	tests := append(testenv.Cases(t, "testdata/settled.txt", 3),
		[]string{"emphasis that nobody closes", "**" + long, "**" + long})
	for _, row := range tests {
		t.Run(row[0], func(t *testing.T) {
			a := &ibid.Answer{
				Text:  row[1],
				Parts: []ibid.Part{{Span: ibid.Span{End: len(row[1])}, Kind: ibid.AnswerPart}},
				Citations: []ibid.Citation{{
					Span: ibid.Span{End: len(row[1])}, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "a"}},
				}},
				Sources: []ibid.Source{{ID: "a"}},
			}
			got := settled(a, 0)
			testenv.Equal(t, "", row[2], got.Text)
			if cut := got.Text != row[1]; cut != (len(got.Citations) == 0) {
				t.Errorf("cut: %v, citations: %d", cut, len(got.Citations))
			}
			if n := len(got.Parts); n > 0 && got.Parts[n-1].End > len(got.Text) {
				t.Errorf("a part ends at %d of %d", got.Parts[n-1].End, len(got.Text))
			}
		})
	}
}

// A growing text only grows on the page.
func FuzzSettled(f *testing.F) {
	for _, s := range []string{
		"a **b** c", "- a\n- b\n", "[x](y) | `z`", "# a\n\nb\n==\n", "蒼鷺 ~~は~~", "\xff *a", "", "a _b_ c_d `e`` f", "```go\na *b\n\nc\n```\nd _e\n| f |\n",
		"*a\nb ", "*a\n| b |\n", "~~~\n``` a\n~~~\n[b] (c) \\`d", "a\r\n1. *b\r\n", "[ a ]( b", "***a** b*",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		a := settled(&ibid.Answer{Text: text}, 0)
		testenv.OK(t, a.Check())
		text = text[:runeStart(text, min(len(text), maxHeld))] // beyond that, a mark may turn out not to be one
		before := 0
		for i := range text + "." {
			end := settledEnd(text[:i])
			if end < before || end > i || strings.ToValidUTF8(text[:end], "?") != text[:end] {
				t.Fatalf("of %q %d bytes are shown, and were %d: %q", text[:i], end, before, text[:before])
			}
			before = end
		}
	})
}

// What was shown stays, even if the rest was held back for too long.
func TestSettledStays(t *testing.T) {
	text, shown := "*a "+strings.Repeat("b ", maxHeld/2)+"*c* _d e ", 0
	for i := range text {
		a := settled(&ibid.Answer{Text: text[:i]}, shown)
		if len(a.Text) < shown {
			t.Fatalf("%d bytes are shown, and were %d", len(a.Text), shown)
		}
		shown = len(a.Text)
	}
	if a := settled(&ibid.Answer{Text: "shorter"}, shown); a.Text != "shorter" {
		t.Errorf("of a text that was corrected %q is shown", a.Text)
	}
}

func TestBlocksOf(t *testing.T) {
	tests := []struct {
		html string
		want []string
	}{
		{"", nil},
		{"<p>a <b>b</b></p>\n<hr />\n<ul>\n<li>c</li>\n</ul>\n", []string{"<p>a <b>b</b></p>", "<hr />", "<ul>\n<li>c</li>\n</ul>"}},
		{"<!-- raw HTML omitted -->\n<p>a<br>b<img src=\"x\" alt=\"a > b\"></p>", []string{`<p>a<br>b<img src="x" alt="a > b"></p>`}},
		{"<hr>\n<p>a</p>", []string{"<hr>", "<p>a</p>"}},
		{"<p>a", nil},
		{"</p><p>b</p>", []string{"</p>", "<p>b</p>"}},
		{"<p title='>'>b</p>", []string{"<p title='>'>b</p>"}},
	}
	for _, tt := range tests {
		testenv.Equal(t, tt.html, tt.want, blocksOf(tt.html))
	}
}
