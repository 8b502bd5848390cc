package support

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func readWords(text string) []string {
	var words []string
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		words = append(words, strings.TrimSpace(string(t.word)))
	}
	return words
}

func TestReader(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		" — … !":                             "",
		"It isn't John's, can't we?":         "it not john not we",
		"L’été, don’t":                       "l ete not",
		"COVID-19 (B.1.1.7)":                 "covid 19 b 1.1.7",
		"the U.S. and the US, USA; the U.K.": "the united states and the united states united states the united kingdom",
		"tell us":                            "tell us",
		"1,234,567.50 and 007 and 10.00":     "1234567.5 and 7 and 10",
		"3,14 1,23":                          "3.14 1.23",
		"the 12th, the 1990s":                "the 12 the 1990 s",
		"Straße Ångström Đà Nẵng naïve":      "strase angstrom da n\u1eb5ng naive",
		"e\u0301te\u0301":                    "ete",
		"ＡＢＣ１２":                              "abc12",
		"日本の cat":                            "日 本 の cat",
		"said so [1][2, 3]. [4-6] [note 7]":  "said so note 7",
		"a\x00b\xffc\xc3":                    "a b c",
		"नमस्ते दुनिया":                      "नमस्ते दुनिया",
		strings.Repeat("x", 200):             strings.Repeat("x", maxWord),
	} {
		if got := strings.Join(readWords(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Words with the same meaning have one key.
func TestKeys(t *testing.T) {
	key := func(word string) uint32 {
		r := reader{text: word}
		var tok token
		r.next(&tok)
		return tok.key
	}
	for _, line := range []string{
		"lighthouse Lighthouses LIGHTHOUSE lighthouse's",
		"stop stops stopped stopping",
		"city cities",
		"organise organize organised organizing organisation",
		"colour color coloured colouring colours",
		"centre center",
		"electric electricity electrical",
		"write wrote written",
		"Germany German",
		"seven 7 7th seventh",
		"Sept September",
	} {
		words := strings.Fields(line)
		for _, w := range words[1:] {
			if key(w) != key(words[0]) {
				t.Errorf("%s and %s have two keys", words[0], w)
			}
		}
	}
	for _, pair := range [][2]string{{"7", "8"}, {"1874", "1878"}, {"bus", "bush"}, {"unable", "able"}, {"north", "south"}} {
		if key(pair[0]) == key(pair[1]) {
			t.Errorf("%s and %s have one key", pair[0], pair[1])
		}
	}
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		claim string
		want  []string
	}{
		{"", nil},
		{"…", nil},
		{"Yes.", []string{"Yes"}},
		{"The tower was finished in 1874.", []string{"The tower was finished in 1874"}},
		{"US forces left, UK forces stayed.", []string{"US forces left", "UK forces stayed"}},
		{
			"Anna Petersen was born in Leeds, moved to York, and died there in 1990.",
			[]string{"Anna Petersen was born in Leeds", "moved to York, and died there in 1990"},
		},
		{
			"The lamp burned colza oil. It was replaced by paraffin, which was cheaper to ship.",
			[]string{"The lamp burned colza oil", "It was replaced by paraffin", "which was cheaper to ship"},
		},
	} {
		var got []string
		for _, s := range splitClaim(test.claim) {
			got = append(got, test.claim[s.Start:s.End])
		}
		testenv.Equal(t, test.claim, test.want, got)
	}
	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "Tower %d has %d floors. ", 1000+i, 3000+i)
	}
	if n := len(splitClaim(long.String())); n != maxParts {
		t.Errorf("%d parts, want %d", n, maxParts)
	}
}

func TestVerbatim(t *testing.T) {
	text := "The tower — 1,234.5 m² — “was finished” in 1874 [3]. The tower was finished in the year of the flood."
	for claim, want := range map[string]bool{
		"":          false,
		"!":         false,
		"the tower": true,
		"The Tower was finished in the year of the FLOOD": true,
		"the tower was finished in 1874":                  false,
		"1234.50 m² was finished in 1874":                 true,
		"was finished in 1875":                            false,
		"was finished, in 1874. The tower [1]":            true,
		"flood of":                                        false,
		text:                                              true,
		text + " x":                                       false,
	} {
		if got := Verbatim(claim, text); got != want {
			t.Errorf("%q: %t", claim, got)
		}
	}
	for _, lines := range readCases(t, "verbatim.txt") {
		if got := Verbatim(lines[0], lines[1]); fmt.Sprint(got) != lines[2] {
			t.Errorf("%q in %q: %t", lines[0], lines[1], got)
		}
	}
	// Linear in both, however similar the words are.
	if Verbatim(strings.Repeat("a ", 50_000)+"b", strings.Repeat("a ", 100_000)) {
		t.Error("found a claim that is not there")
	}
}

func TestLanguage(t *testing.T) {
	cases := readCases(t, "languages.txt")
	for _, text := range []string{"", "1874 — 1990", "Anna Petersen, Leeds"} {
		cases = append(cases, []string{text, ""})
	}
	cases = append(cases, []string{strings.Repeat("The tower of the port. ", 200) + "灯塔于1874年建成。", "en"})
	for _, lines := range cases {
		if got := Language(lines[0]); got != lines[1] {
			t.Errorf("%q for %.60s, want %q", got, lines[0], lines[1])
		}
	}
}

// A short answer is read with its question, and only then; evidence and missing terms refer to the answer.
func TestQuestion(t *testing.T) {
	p := Pair{Claim: "Anna Petersen", Context: "Who built the lighthouse on Gull Rock?", Passages: passages(benchPassage)}
	with := check(t, p)[0]
	p.Context = "Who painted the ceiling of the opera in Florence?"
	other := check(t, p)[0]
	if !(*with.Closeness > *other.Closeness) {
		t.Errorf("%g as an answer to a question that the passage answers, %g to another", *with.Closeness, *other.Closeness)
	}
	if len(other.Missing) > 0 {
		t.Errorf("words of the question are missing: %v", other.Missing)
	}
	p.Context = "The lighthouse was a sight to see."
	context := check(t, p)[0]
	p.Context = ""
	if diff := cmp.Diff(check(t, p)[0], context); diff != "" {
		t.Errorf("a context that is not a question changes the verdict:\n%s", diff)
	}
	p.Claim, p.Context = benchClaim, "Who built the lighthouse on Gull Rock?"
	long := check(t, p)[0]
	p.Context = ""
	if diff := cmp.Diff(check(t, p)[0], long); diff != "" {
		t.Errorf("a question changes the verdict on a whole sentence:\n%s", diff)
	}
}

// The sentences of the index cover all its tokens, and long ones are split.
func TestIndex(t *testing.T) {
	for _, text := range []string{benchPassage, strings.Repeat("word ", 1000), "1. One\n2. Two\n\n| a | b |\n|---|---|\n| c | d |\n", "…\n\n```\ncode here\n```\nx"} {
		x := indexPassage(text)
		if len(x.sentence) != x.tokens || x.tokens != len(readWords(text)) {
			t.Errorf("%d tokens, %d of them in sentences, of %d", x.tokens, len(x.sentence), len(readWords(text)))
		}
		end := int32(0)
		for i := range x.sentences {
			s := &x.sentences[i]
			checkSpan(t, text, s.span())
			if s.start < end {
				t.Errorf("sentence %d begins at %d, before the end of the one before", i, s.start)
			}
			end = s.end
			next := uint32(x.tokens)
			if i+1 < len(x.sentences) {
				next = x.sentences[i+1].first
			}
			if n := int(next - s.first); n < 1 || n > maxSentence {
				t.Errorf("sentence %d has %d tokens", i, n)
			}
		}
	}
	if n := len(indexPassage(strings.Repeat("word ", 1000)).sentences); n != (1000+maxSentence-1)/maxSentence {
		t.Errorf("%d sentences", n)
	}
}

// The work is bounded for texts made to defeat the tables: words that collide, or all have one prefix.
func TestHostile(t *testing.T) {
	var collide, alike strings.Builder
	home := (&indexedPassage{table: make([]slot, 1<<20)}).hash
	want := home(stemKey([]byte("granit"))) & (1<<10 - 1)
	for i := 0; collide.Len() < 1<<16; i++ {
		word := fmt.Sprintf("q%05x", i)
		if home(stemKey([]byte(word)))&(1<<10-1) == want {
			collide.WriteString(word + " ")
		}
	}
	for i := range 1 << 16 {
		fmt.Fprintf(&alike, "granit%x ", i)
	}
	for _, text := range []string{collide.String(), alike.String()} {
		check(t, Pair{Claim: "Granite towers of granit7f, granitab and granitcd.", Passages: passages(text)}, Pair{Claim: text, Passages: passages(text)})
	}
}
