package support

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// benchPassage is prose of 1.4 KB, and benchClaim a claim about it.
const benchClaim = "The lighthouse on Gull Rock was built in 1874 by the engineer Anna Petersen, and its lamp could be seen from 32 kilometres away."

var benchPassage = strings.Join([]string{
	"Gull Rock is a small island at the mouth of the Tarn estuary, known for the lighthouse that has stood on its western cliff since the nineteenth century.",
	"After the loss of the barque Meridian with all hands in the winter of 1869, merchants of the nearby port petitioned the harbour board for a light.",
	"The board hired Anna Petersen, an engineer who had made her name with two iron bridges in the north, and work began in the spring of 1872.",
	"Granite was shipped from the mainland in flat barges, which could land only in calm weather; on average the masons worked no more than nine days a month.",
	"The tower was finished in 1874. It is 41 metres high, and its walls are almost three metres thick at the base.",
	"Its first lamp burned colza oil behind a lens of the first order, made in Paris, and was said to be visible at a distance of 32 kilometres on a clear night.",
	"Paraffin replaced the oil in 1891, and electricity came by an undersea cable in 1934, which was cut twice by trawlers and finally buried in 1958.",
	"The last keeper, Johan Lindqvist, left the island in November 1983, when the light was made automatic.",
	"Since then volunteers have looked after the keepers' cottage, which is open to visitors from May to September.",
	"In 2006 the tower was listed as a monument of national importance, although the harbour board had wanted to sell it.",
	"A survey of 2019 found that salt had eaten into the mortar of the upper floors; repairs are expected to cost 2.4 million crowns and to last until 2027.",
}, " ")

func BenchmarkIndex(b *testing.B) {
	b.SetBytes(int64(len(benchPassage)))
	b.ReportAllocs()
	for b.Loop() {
		indexPassage(benchPassage)
	}
}

func BenchmarkClaim(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		englishClaim(benchClaim)
	}
}

func BenchmarkScore(b *testing.B) {
	c, list := englishClaim(benchClaim), []*indexedPassage{indexPassage(benchPassage)}
	var s scorer
	b.ReportAllocs()
	for b.Loop() {
		s.compare(c, list)
		s.score()
	}
}

func TestScoreAllocates(t *testing.T) {
	c, list := englishClaim(benchClaim), []*indexedPassage{indexPassage(benchPassage)}
	var s scorer
	if n := testing.AllocsPerRun(100, func() { s.compare(c, list); s.score() }); n != 0 {
		t.Errorf("scoring a pair allocates %g times", n)
	}
}

// BenchmarkPair checks one claim against one passage, alone: what docs/support.md says of the time. The passage is a
// paragraph about the claim's subject, and as much more of real pages, this module's documentation.
func BenchmarkPair(b *testing.B) {
	var pages strings.Builder
	for _, name := range testenv.Must(filepath.Glob("../docs/*.md"))(b) {
		pages.Write(testenv.Must(os.ReadFile(name))(b))
	}
	about, more := strings.Fields(benchPassage), strings.Fields(pages.String())
	for _, n := range []int{len(about), 1_000, 10_000} {
		text := strings.Join(append(slices.Clip(about), more[:n-len(about)]...), " ")
		pair := []Pair{{Claim: benchClaim, Passages: []Passage{{Text: text}}}}
		b.Run(fmt.Sprintf("words=%d", n), func(b *testing.B) {
			for b.Loop() {
				testenv.Must(new(Lexical).Check(b.Context(), pair))(b)
			}
		})
	}
}

// BenchmarkAnswer checks an answer of 15 sentences against 20 passages, each sentence against each.
func BenchmarkAnswer(b *testing.B) {
	pairs := answerPairs()
	b.ReportAllocs()
	for b.Loop() {
		testenv.Must(new(Lexical).Check(b.Context(), pairs))(b)
	}
}

func answerPairs() []Pair {
	var pairs []Pair
	for i := range 15 {
		claim := fmt.Sprintf("%s The report of %d adds that the keeper's cottage had %d rooms.", benchClaim[:60+i], 1900+i, i)
		for j := range 20 {
			text := strings.ReplaceAll(benchPassage, "harbour board", fmt.Sprintf("board of port %d", j))
			if j%3 > 0 { // most passages are about something else
				text = strings.NewReplacer("lighthouse", "abbey", "Gull Rock", "Saint Ruth", "tower", "nave", "lamp", "choir", "18", "15").Replace(text)
			}
			pairs = append(pairs, Pair{Claim: claim, Passages: []Passage{{Text: text}}})
		}
	}
	return pairs
}

// match is what a claim and a passage have in common.
type match struct {
	// Score is P(supported), in [0, 1]. A claim or passage without words has 0.
	Score float64
	// Window is the part of the passage that contains most of the claim: one to three sentences.
	Window ibid.Span
	// Sentence is the one sentence of the passage that contains most of the claim.
	Sentence ibid.Span
}

// Score compares a claim with a passage. It does not allocate once s has seen a pair of their size, unless the passage
// is long (150 sentences).
//
// It compares words only, where [Lexical] also looks for figures in another form (a dozen for 12).
func (s *scorer) Score(c *parsedClaim, p *indexedPassage) match {
	one := [1]*indexedPassage{p}
	s.agreements = s.agreements[:0]
	var m match
	if s.compare(c, one[:]) {
		m.Score = s.score()
		m.Window.Start = p.sentences[s.window.from].span().Start
		m.Window.End = p.sentences[s.window.to-1].span().End
		m.Sentence = p.sentences[s.lengths[0].best().at].span()
	}
	s.claim, s.passages = nil, nil
	return m
}

// englishClaim parses a claim without a question.
func englishClaim(text string) *parsedClaim { return parseClaim("", text, english().weight) }
