package prose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGraphemeEnd(t *testing.T) {
	family := "👩‍👩‍👧"
	tests := []struct {
		name, text string
		at, want   int
	}{
		{"between letters", "abc", 1, 1},
		{"inside a rune", "aé", 2, 3},
		{"before a combining mark", "e\u0301a", 1, 3},
		{"inside a family", "a" + family + "b", 5, 1 + len(family)},
		{"after a family", family + "b", len(family), len(family)},
		{"inside a flag", "🇩🇪🇫🇷", 4, 8},
		{"between flags", "🇩🇪🇫🇷", 8, 8},
		{"in the second flag", "🇩🇪🇫🇷", 12, 16},
		{"a skin tone", "👍🏽.", 4, 8},
		{"a keycap", "1️⃣ x", 1, 7},
		{"inside a line break", "a\r\nb", 2, 3},
		{"Hangul jamo", "\u1112\u1161\u11ab", 3, 9},
		{"a Devanagari conjunct", "क्षा", 3, 12},
		{"Arabic with vowels", "بَب", 2, 4},
		{"between ideographs", "漢字", 3, 3},
		{"before the text", "abc", -5, 0},
		{"behind the text", "abc", 9, 3},
		{"no text", "", 3, 0},
		{"bytes that are no text", "a\xff\xfeb", 2, 2},
		{"half a rune at the end", "a\xe6\xbc", 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := GraphemeEnd(tt.text, tt.at); got != tt.want {
				t.Errorf("GraphemeEnd(%q, %d) = %d, want %d", tt.text, tt.at, got, tt.want)
			}
		})
	}
}

func TestWordEnd(t *testing.T) {
	testOffsets(t, func(text string, at int) string { return text[:WordEnd(text, at)] }, []offsetTest{
		{"inside a word", "one tw^o three", "one two"},
		{"at its end", "one two^ three", "one two"},
		{"at its start", "one ^two three", "one "},
		{"an apostrophe", "I don^'t know", "I don't"},
		{"a curly apostrophe", "I don^’t know", "I don’t"},
		{"a decimal", "It is 3^.14 now", "It is 3.14"},
		{"thousands", "It is 1,0^00 now", "It is 1,000"},
		{"an acronym", "the U^.S.A. now", "the U.S.A"},
		{"a host name", "see exa^mple.com/x", "see example.com"},
		{"with an underscore", "a snake_^case", "a snake_case"},
		{"with a hyphen", "a we^ll-known fact", "a well"},
		{"between ideographs", "漢^字漢字", "漢"},
		{"Hiragana", "これ^は", "これ"},
		{"Katakana", "カタ^カナです", "カタカナ"},
		{"Hangul", "안녕^하세요 네", "안녕하세요"},
		{"Hebrew", "של^ום עולם", "שלום"},
		{"Arabic", "مر^حبا بك", "مرحبا"},
		{"a combining mark", "cafe^\u0301 x", "cafe\u0301"},
		{"an emoji", "a 👩^\u200d👧 b", "a 👩\u200d👧"},
		{"at the end", "one^", "one"},
		{"of nothing", "^", ""},
	})
	if got := WordEnd("one", 99) + WordEnd("one", -1); got != 3 {
		t.Errorf("out of range: got %d", got)
	}
}

// What is longer than the window is cut: one call must not read all of a hostile text.
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
	testOffsets(t, func(text string, at int) string { return text[at:AfterPunctuation(text, at)] }, []offsetTest{
		{"a full stop", "It is^. Next", "."},
		{"at the end", "It is^.", "."},
		{"a comma", "It is^, then", ","},
		{"a colon and a semicolon", "It is^:; then", ":;"},
		{"several", "It is^?! Next", "?!"},
		{"an ellipsis", "It is^... Next", "..."},
		{"an ellipsis sign", "It is^… Next", "…"},
		{"nothing", "It is^ so.", ""},
		{"after white space", "It is ^. Next", ""},
		{"at the start", "^. Next", ""},
		{"a stop and a quote", "He said “go^.” Next", ".”"},
		{"a quote and a stop", "He said “go^”. Next", "”."},
		{"an apostrophe", "the cats^’s", ""},
		{"the end of single quotes", "say ‘go^’ now", "’"},
		{"German quotes", "Er sagte „gut^“. Nun", "“."},
		{"an English quote that opens", "this^“that”", ""},
		{"pointed quotes", "il dit «oui^» et", "»"},
		{"pointed quotes turned round", "er sagt »ja^« und", "«"},
		{"pointed quotes that open", "er sagt^«ja»", ""},
		{"CJK stop", "你好^。再见", "。"},
		{"CJK comma", "你好^，再见", "，"},
		{"CJK quotes and stop", "「そう^。」と", "。」"},
		{"CJK brackets", "（好^）。", "）。"},
		{"Arabic", "كيف حالك^؟ نعم", "؟"},
		{"Arabic comma", "نعم^، لا", "،"},
		{"Devanagari", "यह है^। अब", "।"},
		{"straight quotes", "He said \"go^.\" Next", ".\""},
		{"a straight quote that opens", "this is^\" odd", ""},
		{"straight single quotes", "say 'don't go^' now", "'"},
		{"a straight apostrophe", "the cats^' tails", ""},
		{"a parenthesis", "It (is so^). Next", ")."},
		{"a parenthesis that was not opened", "It is so^). Next", ""},
		{"of two", "It (is (so^)) Next", "))"},
		{"a parenthesis of another block", "It (is\n\nso^). Next", ""},
		{"a bracket", "It [is so^]. Next", "]."},
		{"a bracket of a link", "See [it^](https://a.example).", ""},
		{"the destination of a link", "See [it](https://a.example^).", ")."},
		{"a decimal", "It is 3^.14", ""},
		{"a decimal comma", "Es ist 3^,14", ""},
		{"a time", "at 10^:30", ""},
		{"a host", "see example^.com", ""},
		{"the end of a host", "see example.com^. Next", "."},
		{"a query", "see a.example/b^?c=d", ""},
		{"a path", "see a^./b", ""},
		{"an abbreviation", "as e^.g. this", ""},
		{"emphasis", "It **is^.** Next", "."},
		{"before emphasis", "It **is^**. Next", ""},
		{"code", "It `is^`. Next", ""},
		{"a mark", "It is^[1].", ""},
		{"a stop before a mark", "It is^.[1] Next", "."},
		{"an image", "It is^![a](u)", ""},
		{"a table's bar", "| it^ | is |", ""},
		{"a tag", "It is^<br>", ""},
		{"a stop with a selector", "It is^!\ufe0f Next", "!\ufe0f"},
		{"an opening parenthesis", "It^(is)", ""},
		{"inside a rune's word", "é^, a", ","},
	})
	if got := AfterPunctuation("a.", 99) + AfterPunctuation("a.", -1); got != 2 {
		t.Errorf("out of range: got %d", got)
	}
	if got := AfterPunctuation("a"+strings.Repeat(")", 9999), 1); got != 1 {
		t.Errorf("brackets without end: got %d", got)
	}
}
