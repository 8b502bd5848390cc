package bench_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// piece is one piece of an answer's text, as streamed. Source is the source of the statement that ends with it, or -1.
type piece struct {
	text   string
	source int
}

// passage is a cited statement and its place in the text, in three units.
type passage struct {
	words  string
	source int
	bytes  [2]int
	points [2]int
	utf16  [2]int
}

// phrases are the building blocks of the answers: mostly ASCII, like real answers, of 20 to 60 characters.
var phrases = []string{
	" the ferry leaves the old harbour at seven",
	" and reaches the islands before the mist lifts,",
	" where two keepers still count the herons",
	" by lantern light, as their parents did,",
	" although the café by the pier has long closed",
	" and the winter tides have taken the north wall.",
	" Repairs began in March under a new master,",
	" who found timber from three earlier quays",
	" – one of them older than the town itself –",
	" and a bell that nobody had rung since 1871.",
	" Its tone was measured at 415 hertz,",
	" a little lower than the Zürich standard.",
}

const (
	pieces    = 2000
	citeEvery = 12
	sources   = 40
)

// story returns the text of an answer in n pieces.
func story(n int) []piece {
	out := make([]piece, n)
	for i := range out {
		out[i] = piece{phrases[i%len(phrases)], -1}
		if i%17 == 8 {
			out[i].text = " a line with \"quotes\",\n\nand a \"name\" in it"
		}
		if i%citeEvery == citeEvery-1 {
			out[i].source = i / citeEvery % sources
		}
	}
	return out
}

// uncited returns a story without sources.
func uncited(story []piece) []piece {
	for i := range story {
		story[i].source = -1
	}
	return story
}

// passages returns the statements of a story that rest on a source: the pieces since the last full stop.
func passages(story []piece) []passage {
	var out []passage
	var at, from [3]int
	words := ""
	for i, p := range story {
		if i%6 == 0 {
			from, words = at, ""
		}
		words += p.text
		at[0] += len(p.text)
		at[1] += utf8.RuneCountInString(p.text)
		at[2] += len(utf16.Encode([]rune(p.text)))
		if p.source >= 0 {
			out = append(out, passage{
				words, p.source,
				[2]int{from[0], at[0]},
				[2]int{from[1], at[1]},
				[2]int{from[2], at[2]},
			})
		}
	}
	return out
}

func joined(story []piece) string {
	var b strings.Builder
	for _, p := range story {
		b.WriteString(p.text)
	}
	return b.String()
}

func url(source int) string {
	return fmt.Sprintf("https://harbour.example/%d/reports/annual-survey-%03d", 1990+source, source)
}

func title(source int) string { return fmt.Sprintf("Annual survey of the harbour, part %d", source) }

func content(source int) string {
	return fmt.Sprintf("Survey %d. ", source) + strings.Repeat("The master of the harbour counted boats, herons and bells. ", 8)
}

// quoted returns s as JSON.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// list returns the JSON array of f's results for 0 to n-1.
func list(n int, f func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = f(i)
	}
	return "[" + strings.Join(items, ",") + "]"
}
