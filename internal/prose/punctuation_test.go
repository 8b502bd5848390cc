package prose

import (
	"strings"
	"testing"
)

func TestAfterPunctuation(t *testing.T) {
	tests := []struct{ name, text, want string }{ // ^ is the offset, want what is passed
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, at := offset(t, tt.text)
			if got := text[at:AfterPunctuation(text, at)]; got != tt.want {
				t.Errorf("AfterPunctuation(%q, %d) passes %q, want %q", text, at, got, tt.want)
			}
		})
	}
	if got := AfterPunctuation("a.", 99) + AfterPunctuation("a.", -1); got != 2 {
		t.Errorf("out of range: got %d", got)
	}
	if got := AfterPunctuation("a"+strings.Repeat(")", 9999), 1); got != 1 {
		t.Errorf("brackets without end: got %d", got)
	}
}
