package prose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestGraphemeEnd(t *testing.T) {
	tests := testenv.Table[struct {
		Name, Text string
		At, Want   int
	}](t, "testdata/tables/grapheme-end.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			if got := GraphemeEnd(tt.Text, tt.At); got != tt.Want {
				t.Errorf("GraphemeEnd(%q, %d) = %d, want %d", tt.Text, tt.At, got, tt.Want)
			}
		})
	}
}

func TestWordEnd(t *testing.T) {
	testOffsets(t, func(text string, at int) string { return text[:WordEnd(text, at)] }, "word-end.txt")
	if got := WordEnd("one", 99) + WordEnd("one", -1); got != 3 {
		t.Errorf("out of range: got %d", got)
	}
}

// Anything longer than the window is cut: a call must not read all of a hostile text.
func TestEndsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"marks":  strings.Repeat("\u0301", 20000),
		"word":   strings.Repeat("a", 40000),
		"joined": strings.Repeat("👩\u200d", 6000),
		"Hindi":  strings.Repeat("क\u094d", 7000),
	} {
		at := runeStart(text, 20001)
		for _, end := range []int{GraphemeEnd(text, at), WordEnd(text, at)} {
			if end < at || end > at+2*Window || end != runeEnd(text, end) {
				t.Errorf("%s: got %d for %d", name, end, at)
			}
		}
	}
}

func TestWords(t *testing.T) {
	text := "Don’t—it’s 3.14 € in U.S.A: 漢字 café\u0301 1️⃣ 🎉 …!"
	want := []string{"Don’t", "it’s", "3.14", "in", "U.S.A", "漢", "字", "café\u0301", "1️⃣"}
	var got []string
	for start, end := range Words(text) {
		got = append(got, text[start:end])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGraphemes(t *testing.T) {
	want := []string{"a", "e\u0301", "🇩🇪", "👍🏽", "\r\n", "क्षि"}
	text := strings.Join(want, "")
	var got []string
	for start, end := range Graphemes(text) {
		got = append(got, text[start:end])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAfterPunctuation(t *testing.T) {
	testOffsets(t, func(text string, at int) string { return text[at:AfterPunctuation(text, at)] }, "after-punctuation.txt")
	if got := AfterPunctuation("a.", 99) + AfterPunctuation("a.", -1); got != 2 {
		t.Errorf("out of range: got %d", got)
	}
	if got := AfterPunctuation("a"+strings.Repeat(")", 9999), 1); got != 1 {
		t.Errorf("brackets without end: got %d", got)
	}
}
