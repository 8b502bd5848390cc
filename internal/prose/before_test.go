package prose

import "testing"

func TestSentenceBefore(t *testing.T) {
	tests := []struct{ name, text, want string }{ // ^ is the offset
		{"a link in parentheses", "A b. C d (^[x](u))", "C d"},
		{"at the parenthesis", "A b. C d ^([x](u))", "C d"},
		{"after the full stop", "A b. C d. ^[1]", "C d."},
		{"close after the full stop", "A b. C d.^[1]", "C d."},
		{"the second mark", "A b. C d.[1]^[2]", "C d."},
		{"the second mark apart", "A b. C d [1], ^[2]", "C d"},
		{"the second link of a group", "A b. C d ([x](u), ^[y](v))", "C d"},
		{"after a group", "A b. C d. ([x](u)) ^([y](v))", "C d."},
		{"the next sentence's", "A b.[1] C d ^[2]", "C d"},
		{"after a linked number", "A b. C d [1](u)^[2](v)", "C d"},
		{"after a site's name", "A b. C d [a.example](https://a.example) ^[b.example](v)", "C d"},
		{"a link that is a part of the sentence", "A b. See [the long story](u) ^[1]", "See [the long story](u)"},
		{"in a raised element", "A b.<sup>^[1](u)</sup>", "A b."},
		{"after a raised element", "A b.<sup>[1](u)</sup> C d<sup>^", "C d"},
		{"after 【】", "A b. C d【1†s】^【2†s】", "C d"},
		{"after a comma", "A b. C d, ^[1]", "C d"},
		{"after a dash", "A b. C d – ^[1]", "C d"},
		{"an abbreviation", "A b. By Lee et al. ^[1]", "By Lee et al."},
		{"a quote", "A b. He said “C.” ^[1]", "He said “C.”"},
		{"an open quote", "A b. He said \"^", "He said"},
		{"emphasis", "A b. **C d.** ^[1]", "**C d.**"},
		{"before emphasis", "A b. C d **^[1]**", "C d"},
		{"code", "A b. Use `c` ^[1]", "Use `c`"},
		{"a percentage", "A b. It is 5% ^[1]", "It is 5%"},
		{"brackets that are a part", "A b. C d (of 2020) ^[1]", "C d (of 2020)"},
		{"a list item", "Text.\n- one two ^[1]", "one two"},
		{"a star item", "Text.\n*   **Wind:** 5 km/h ^[1]", "**Wind:** 5 km/h"},
		{"a numbered item", "Text.\n12. one two ^[1]", "one two"},
		{"a heading", "Text\n## One two ^[1]", "One two"},
		{"a quoted line", "Text\n> One two ^[1]", "One two"},
		{"a table row", "| a |\n|---|\n| Bonn | 0.3 | ^[1] |", "Bonn | 0.3"},
		{"the next line of an item", "- one two\n  ^([x](u))", "one two"},
		{"after a blank line", "A b.\n\n^[1]", ""},
		{"an empty item", "A b.\n- ^[1]", ""},
		{"the start of the text", "^[1]", ""},
		{"only marks", "[1]^[2]", ""},
		{"after ideographs", "甲乙。丙丁。^[1]", "丙丁。"},
		{"inside a sentence of ideographs", "甲乙。丙丁^[1]。", "丙丁"},
		{"after Arabic", "مرحبا. كيف حالك؟ ^[1]", "كيف حالك؟"},
		{"after an emoji", "A b. C d 🎉 ^[1]", "C d 🎉"},
		{"what follows does not count", "A b. C^ d", "C"},
		{"a question with an answer", "Is it so? Yes ^[1].", "Yes"},
		{"a number", "It grew. It is 3.14 ^[1]", "It is 3.14"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, at := offset(t, tt.text)
			start, end := SentenceBefore(text, at)
			if got := text[start:end]; got != tt.want {
				t.Errorf("SentenceBefore(%q, %d) = %q, want %q", text, at, got, tt.want)
			}
			if s, e := SentenceBefore(text[:at], at); s != start || e != end {
				t.Errorf("without the rest: %d, %d, want %d, %d", s, e, start, end)
			}
		})
	}
}
