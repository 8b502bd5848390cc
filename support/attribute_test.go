package support

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// page returns a page as a document.
func page(tb testing.TB, id, html string) Document {
	tb.Helper()
	text := testenv.Must(snapshot.Extract([]byte(html), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}))(tb)
	return Document{
		Source: ibid.Source{ID: id, Kind: ibid.Web, Title: text.Title, URL: "https://x.example/" + id},
		Text:   text.Content, Passages: text.Passages(nil),
	}
}

func library(tb testing.TB) []Document {
	tb.Helper()
	return []Document{
		page(tb, "tower", `<title>Iron Tower</title><h1>Iron Tower</h1><p>The iron tower was built in 1889 for the world's fair. It stands 330 metres tall.</p>
			<h2>Paint</h2><p>Workers paint it every seven years with sixty tonnes of brown paint.</p>`),
		page(tb, "otters", `<title>Sea otters</title><p>Sea otters hold hands while they sleep 🦦, so that they do not drift apart.</p><p>They eat urchins and clams.</p>`),
	}
}

func attribute(tb testing.TB, text string, o *AttributeOptions) *Attribution {
	tb.Helper()
	got := testenv.Must(Attribute(tb.Context(), &ibid.Answer{Text: text, Complete: true}, library(tb), o))(tb)
	testenv.OK(tb, got.Answer.Check())
	return got
}

func ExampleAttribute() {
	answer := &ibid.Answer{Text: "The tower was built in 1889. It was sold to a robot."}
	docs := []Document{{
		Source: ibid.Source{ID: "guide", Kind: ibid.File, Title: "Guide to the tower"},
		Text:   "Opening hours follow below.\n\nThe tower was built in 1889 by an engineer.",
	}}
	found, err := Attribute(context.Background(), answer, docs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain}))
	fmt.Println(found.Answer.Citations[0].Refs[0].Quote)
	fmt.Println(*found.Uncited)
	// Output:
	// The tower was built in 1889.[1] It was sold to a robot.
	// The tower was built in 1889 by an engineer.
	// 0.5
}

func TestAttribute(t *testing.T) {
	got := attribute(t, "Sea otters hold hands while they sleep. The moon is made of cheese.", nil)
	if len(got.Answer.Citations) != 1 || len(got.Answer.Sources) != 1 {
		t.Fatalf("%d citations, %d sources", len(got.Answer.Citations), len(got.Answer.Sources))
	}
	c := got.Answer.Citations[0]
	if c.Origin != ibid.OriginInferred || c.Covers != ibid.CoversClaim || got.Answer.Text[c.Span.Start:c.Span.End] != "Sea otters hold hands while they sleep" {
		t.Errorf("citation: %+v", c)
	}
	if c.Support == nil || c.Support.Label != "supported" || c.Support.By != "lexical@2" || c.Support.Score == nil {
		t.Fatalf("support: %+v", c.Support)
	}
	ref := c.Refs[0]
	if ref.Confidence == nil || *ref.Confidence != *c.Support.Score || *ref.Confidence < Balanced {
		t.Errorf("confidence %v, score %v", ref.Confidence, c.Support.Score)
	}
	// The quote is where the locator says, in code points.
	doc := library(t)[1]
	if got := string([]rune(doc.Text)[*ref.Locator.CharStart:*ref.Locator.CharEnd]); got != ref.Quote || !strings.Contains(got, "hold hands while they sleep 🦦") {
		t.Errorf("quote %q, at its place %q", ref.Quote, got)
	}
	s := got.Answer.Sources[0]
	if s.ID != "otters" || s.Score != nil || s.ScoreOrigin != "" || len(s.Chunks) != 1 || s.Chunks[0].Score != nil {
		t.Errorf("source: %+v", s)
	}
	if got.Uncited == nil || *got.Uncited != .5 || !got.Sentences[1].Uncited() {
		t.Errorf("uncited %v: %+v", got.Uncited, got.Sentences)
	}
}

// A heading is not part of the evidence below it, but says what it is about.
func TestAttributeHeadings(t *testing.T) {
	got := attribute(t, "Workers paint the iron tower every seven years with sixty tonnes of paint.", nil)
	if len(got.Answer.Citations) != 1 {
		t.Fatalf("sentences: %+v", got.Sentences)
	}
	testenv.Equal(t, "quote", "Workers paint it every seven years with sixty tonnes of brown paint.", got.Answer.Citations[0].Refs[0].Quote)
}

func TestAttributeSkips(t *testing.T) {
	text := "# The iron tower was built\n\nHere is what I found:\n\n**Built in 1889 for the fair**\n\nWhy was the iron tower built in 1889?\n\n" +
		"Yes.\n\n```\nthe iron tower was built\n```\n\nI hope this helps with the iron tower question. It stands 330 metres tall."
	var want, got []string
	want = []string{"heading", "heading", "heading", "question", "short", "code", "boilerplate", ""}
	for _, s := range attribute(t, text, nil).Sentences {
		got = append(got, string(s.Skipped))
	}
	testenv.Equal(t, "", want, got)
}

// A short assertion is a claim. LeftOut counts the sentences that the share leaves out, by reason.
func TestAttributeShort(t *testing.T) {
	claims := "The drug works. Everyone died. It is 1,075. It failed. They won. Prices rose. He lied. No one came. It rained. She is 41."
	rest := "Yes. Of course! Thank you. Herons. 2019"
	got := attribute(t, claims+"\n\n"+rest, nil)
	for i := range got.Sentences {
		s := &got.Sentences[i]
		if words := got.Answer.Text[s.Span.Start:s.Span.End]; s.Says() != strings.Contains(claims, words) {
			t.Errorf("%q is skipped: %q", words, s.Skipped)
		}
	}
	testenv.Equal(t, "left out", map[SkipReason]int{SkipShort: 3, SkipBoilerplate: 2}, got.LeftOut)
}

// The head of a table and an image say nothing that could have a source; the rows of the table do, and so do words
// around an image.
func TestAttributeMarkdown(t *testing.T) {
	text := "| Tower of iron | Built for the fair |\n|:--- | ---: |\n| The iron tower | built in 1889 |\n\n" +
		"![The iron tower at night](https://x.example/iron-tower.png \"The iron tower, built in 1889\")\n\n" +
		"[![iron tower](https://x.example/iron-tower.png)](https://x.example/built-in-1889)\n\n" +
		"The iron tower ![tower](t.png) was built for [the fair](https://x.example/fair)."
	var got []string
	for _, s := range attribute(t, text, nil).Sentences {
		got = append(got, string(s.Skipped))
	}
	testenv.Equal(t, "", []string{"heading", "", "short", "short", ""}, got)
}

// A passage that differs from the sentence only in a number is not cited; conflicts have offsets in the document.
func TestAttributeConflicts(t *testing.T) {
	answer := "The iron tower was built in 1887 for the world's fair."
	got := attribute(t, answer, nil)
	doc := library(t)[0]
	best := got.Sentences[0].Candidates[0]
	if best.Verdict.Label != Differs || len(best.Verdict.Differences) != 1 || len(got.Answer.Citations) != 0 {
		t.Fatalf("verdict: %+v, citations: %+v", best.Verdict, got.Answer.Citations)
	}
	c := best.Verdict.Differences[0]
	if a, b := answer[c.A.Value.Start:c.A.Value.End], doc.Text[c.B.Value.Start:c.B.Value.End]; a != "1887" || b != "1889" {
		t.Errorf("%q for %q", a, b)
	}
}

// The answer's own citations are kept, and the given answer is not changed.
func TestAttributeKeeps(t *testing.T) {
	text := "Sea otters hold hands while they sleep. The iron tower was built in 1889 for the world's fair. Refused."
	a := &ibid.Answer{
		Text: text, Complete: true,
		Sources: []ibid.Source{{ID: "tower", Kind: ibid.Web, URL: "https://other.example/"}, {ID: "o", Kind: ibid.Web, URL: "https://x.example/otters"}},
		Parts:   []ibid.Part{{Span: ibid.Span{End: 95}, Kind: ibid.AnswerPart}, {Span: ibid.Span{Start: 95, End: len(text)}, Kind: ibid.RefusalPart}},
	}
	testenv.OK(t, a.Cite(ibid.Span{Start: 0, End: 38}, ibid.Ref{Source: "o"}))
	a.Citations[0].Origin = ibid.OriginProvider
	before := testenv.Must(a.MarshalJSON())(t)
	got, err := Attribute(t.Context(), a, library(t), nil)
	testenv.OK(t, err)
	if after, _ := a.MarshalJSON(); string(after) != string(before) {
		t.Error("the answer was changed")
	}
	if err := got.Answer.Check(); err != nil {
		t.Error(err)
	}
	testenv.Equal(t, "the provider's citation", a.Citations[0], got.Answer.Citations[0])
	if s := got.Sentences; s[0].Skipped != SkipCited || s[1].Cited != 1 || s[2].Skipped != SkipPart {
		t.Errorf("sentences: %+v", s)
	}
	if *got.Uncited != 0 {
		t.Errorf("uncited %v", *got.Uncited)
	}
	// Its id is taken by another page, so the document gets a counter.
	if ref := got.Answer.Citations[1].Refs[0]; ref.Source != "doc:1" {
		t.Errorf("source %s", ref.Source)
	}
	// With Cited, a page that the answer already has is cited by the answer's id.
	if got, err = Attribute(t.Context(), a, library(t), &AttributeOptions{Cited: true}); err != nil {
		t.Fatal(err)
	}
	if len(got.Answer.Citations) != 3 || got.Answer.Citations[1].Refs[0].Source != "o" || got.Answer.Citations[1].Origin != ibid.OriginInferred {
		t.Errorf("citations: %+v", got.Answer.Citations)
	}
}

// A sentence cites at most two passages by default; adjacent windows count as one.
func TestAttributePerSentence(t *testing.T) {
	same := "Sea otters hold hands while they sleep."
	var docs []Document
	for i := range 5 {
		docs = append(docs, Document{Source: ibid.Source{Kind: ibid.File}, Text: fmt.Sprintf("Number %d of the notes.\n\n%s", i, same)})
	}
	for _, test := range []struct{ most, want int }{{0, 2}, {1, 1}, {4, 4}} {
		got := testenv.Must(Attribute(t.Context(), &ibid.Answer{Text: same}, docs, &AttributeOptions{PerSentence: test.most}))(t)
		testenv.OK(t, got.Answer.Check())
		if n := len(got.Answer.Citations[0].Refs); n != test.want || len(got.Answer.Sources) != test.want {
			t.Errorf("PerSentence %d: %d refs, %d sources, want %d", test.most, n, len(got.Answer.Sources), test.want)
		}
	}
	beside := Document{Text: same + "\n\n" + same, Passages: []snapshot.Passage{{Span: ibid.Span{End: 39}}, {Span: ibid.Span{Start: 41, End: 80}, Index: 1}}}
	got, err := Attribute(t.Context(), &ibid.Answer{Text: same}, []Document{beside}, nil)
	testenv.OK(t, err)
	if refs := got.Answer.Citations[0].Refs; len(refs) != 1 || refs[0].Quote != same {
		t.Errorf("two windows side by side: %+v", refs)
	}
	// Windows under different headings are in different places.
	beside = Document{Text: "# Otters\n\n" + same + "\n\n# Prices of postcards\n\nPostcards cost two euros. " + same}
	if got, err = Attribute(t.Context(), &ibid.Answer{Text: same}, []Document{beside}, nil); err != nil {
		t.Fatal(err)
	}
	if refs := got.Answer.Citations[0].Refs; len(refs) != 2 || strings.Contains(refs[0].Quote, "Prices") || strings.Contains(refs[1].Quote, "Prices") {
		t.Errorf("two windows under two headings: %+v", refs)
	}
}

// scripted is a checker with given verdicts.
type scripted struct {
	verdict func(p *Pair) Verdict
	err     error
}

func (s *scripted) Info() Info { return Info{ID: "scripted", Version: "7"} }

func (s *scripted) Check(_ context.Context, in []Pair) ([]Verdict, error) {
	out := make([]Verdict, 0, len(in))
	for i := range in {
		out = append(out, s.verdict(&in[i]))
	}
	return out, s.err
}

// The checker decides; its evidence is validated and converted.
func TestAttributeChecker(t *testing.T) {
	score := .9
	for _, test := range []struct {
		name    string
		verdict Verdict
		quote   string
	}{
		{"no evidence", Verdict{Label: Supported, Closeness: &score}, "Sea otters hold hands while they sleep 🦦, so that they do not drift apart. They eat urchins and clams."},
		{"evidence out of the text", Verdict{Label: Supported, Closeness: &score, Evidence: []Span{
			{Span: ibid.Span{Start: -4, End: 3}}, {Span: ibid.Span{Start: 4, End: 2}}, {Passage: 3, Span: ibid.Span{End: 4}}, {Span: ibid.Span{Start: 0, End: 10}},
		}}, "Sea otters"},
		{
			"evidence that cuts a character",
			Verdict{Label: Supported, Closeness: &score, Evidence: []Span{{Span: ibid.Span{Start: 0, End: 41}}}},
			"Sea otters hold hands while they sleep 🦦, so that they do not drift apart. They eat urchins and clams.",
		},
		{"no score", Verdict{Label: Supported}, "Sea otters hold hands while they sleep 🦦, so that they do not drift apart. They eat urchins and clams."},
		{"a NaN score", Verdict{Label: Unjudged, Closeness: new(math.NaN())}, ""},
		{"contradicted", Verdict{Label: Contradicted, Closeness: &score}, ""},
		{"differs", Verdict{Label: Differs, Closeness: &score}, ""},
		{"unsupported", Verdict{Label: Unsupported, Closeness: &score}, ""},
		{"failed", Verdict{Label: Unjudged, Err: errors.New("down")}, ""},
	} {
		check := &scripted{verdict: func(p *Pair) Verdict {
			if !strings.Contains(p.Passages[0].Text, "otters") {
				return Verdict{Label: Unsupported}
			}
			v := test.verdict
			v.By = "scripted@7"
			return v
		}}
		got := attribute(t, "Sea otters hold hands together.", &AttributeOptions{Checker: check})
		quote := ""
		if len(got.Answer.Citations) > 0 {
			quote = got.Answer.Citations[0].Refs[0].Quote
		}
		if quote != "" && test.verdict.Closeness == nil && (got.Answer.Citations[0].Refs[0].Confidence != nil || got.Answer.Citations[0].Support.Score != nil) {
			t.Errorf("%s: a score was made up: %+v", test.name, got.Answer.Citations[0])
		}
		if quote != test.quote || got.By != "scripted@7" {
			t.Errorf("%s: quote %q by %s, want %q", test.name, quote, got.By, test.quote)
		}
	}
	down := errors.New("down")
	bad := &scripted{verdict: func(*Pair) Verdict { return Verdict{} }, err: down}
	if _, err := Attribute(t.Context(), &ibid.Answer{Text: "Sea otters hold hands."}, library(t), &AttributeOptions{Checker: bad}); !errors.Is(err, down) {
		t.Errorf("error: %v", err)
	}
}

func TestAttributeBadInput(t *testing.T) {
	a := &ibid.Answer{Text: "Sea otters hold hands."}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Attribute(ended, a, library(t), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	for _, threshold := range []float64{-1, 2, math.NaN()} {
		if _, err := Attribute(t.Context(), a, nil, &AttributeOptions{Threshold: threshold}); err == nil {
			t.Errorf("threshold %v is accepted", threshold)
		}
	}
	outside := []Document{{Text: "x", Passages: []snapshot.Passage{{Span: ibid.Span{End: 2}}}}}
	if _, err := Attribute(t.Context(), a, outside, nil); err == nil || !strings.Contains(err.Error(), "passage 0 of document 0") {
		t.Errorf("a passage outside: %v", err)
	}
	for _, answer := range []string{"", " ", "\xff\xfe", "a", strings.Repeat("x", 1<<20)} {
		got, err := Attribute(t.Context(), &ibid.Answer{Text: answer}, library(t), nil)
		if err != nil || len(got.Answer.Citations) != 0 {
			t.Errorf("%.10q: %v, %v", answer, got, err)
		}
	}
	got, err := Attribute(t.Context(), a, nil, nil)
	if err != nil || *got.Uncited != 1 {
		t.Errorf("no documents: %v, %v", got, err)
	}
}

// An answer of one megabyte against ten thousand passages.
func BenchmarkAttributeLarge(b *testing.B) {
	answer, docs := largeCase(1<<20, 10_000)
	for b.Loop() {
		got := testenv.Must(Attribute(b.Context(), answer, docs, nil))(b)
		b.ReportMetric(float64(len(got.Sentences)), "sentences")
	}
}

// Time grows with the answer, not with its square.
func TestAttributeLarge(t *testing.T) {
	answer, docs := largeCase(100<<10, 1000)
	got := testenv.Must(Attribute(t.Context(), answer, docs, nil))(t)
	if err := got.Answer.Check(); err != nil {
		t.Error(err)
	}
	if len(got.Answer.Citations) == 0 {
		t.Error("nothing is cited")
	}
}

// largeCase returns an answer and documents made of similar sentences.
func largeCase(bytes, passages int) (*ibid.Answer, []Document) {
	words := strings.Fields("river castle engine copper winter harbour market silver bridge garden letter window forest signal bottle doctor island museum planet rocket")
	sentence := func(n int) string {
		return fmt.Sprintf("The %s of %s number %d met the %s in %d.", words[n%20], words[n/20%20], n, words[n/7%20], 1000+n%1000)
	}
	var docs []Document
	for i := range passages {
		docs = append(docs, Document{Source: ibid.Source{Kind: ibid.File}, Text: sentence(i) + " " + sentence(i+passages/2)})
	}
	var answer strings.Builder
	for n := 0; answer.Len() < bytes; n++ {
		answer.WriteString(sentence(n*3) + " ")
	}
	return &ibid.Answer{Text: answer.String(), Complete: true}, docs
}

func TestCorpus(t *testing.T) {
	corpus := NewCorpus([]Passage{
		{Text: "the the the the"}, {Text: "An otter holds the hands of otters."}, {Text: "Copper roofs turn green."}, {Text: ""}, {Text: "Green copper, the roofs."},
	})
	hits := corpus.Search("copper roofs are green", 10)
	if len(hits) != 2 || hits[0].Passage != 2 || hits[1].Passage != 4 || hits[0].Score <= hits[1].Score {
		t.Errorf("hits: %+v", hits)
	}
	for _, h := range corpus.Search("The otters", 10) {
		if h.Relevance <= 0 || h.Relevance > 1 {
			t.Errorf("relevance: %+v", h)
		}
	}
	relevance := corpus.Relevance("Copper roofs turn green.")
	if len(relevance) != 5 || relevance[2] != 1 || relevance[3] != 0 || relevance[1] != 0 {
		t.Errorf("relevance: %v", relevance)
	}
	if got := corpus.Search("", 3); len(got) != 0 {
		t.Errorf("an empty query: %v", got)
	}
	if got := corpus.Search("copper", 0); len(got) != 0 {
		t.Errorf("k = 0: %v", got)
	}
	if got := NewCorpus(nil).Search("copper", 3); len(got) != 0 {
		t.Errorf("an empty corpus: %v", got)
	}
	if got := corpus.Search("copper roofs", 1); len(got) != 1 {
		t.Errorf("k = 1: %v", got)
	}
}

func TestUsage(t *testing.T) {
	text := "Otters swim. Copper rusts."
	got := Usage(text, map[string][]ibid.Span{
		"a": {{Start: 0, End: 11}}, "b": {{Start: 13, End: 25}, {Start: 0, End: 11}, {Start: 0, End: 6}}, "c": nil, "d": {{Start: -5, End: 900}}, "e": {{Start: 3, End: 5}},
	})
	if a := got["a"]; a <= .2 || a >= .8 || math.Abs(got["b"]-1) > 1e-9 || got["c"] != 0 || math.Abs(got["d"]-1) > 1e-9 || got["e"] != 0 {
		t.Errorf("usage: %v", got)
	}
	if got := Usage("", map[string][]ibid.Span{"a": {{End: 3}}}); got["a"] != 0 {
		t.Errorf("usage of nothing: %v", got)
	}
	found := attribute(t, "Sea otters hold hands while they sleep. The moon is made of cheese.", nil)
	shares := Usage(found.Answer.Text, Covered(found.Answer))
	if s := shares["otters"]; s <= .4 || s >= .9 {
		t.Errorf("usage: %v", shares)
	}
}

// Fifteen sentences against twenty passages of 1.4 KB, including reading those.
func BenchmarkAttribute(b *testing.B) {
	_, sentences := largeCase(0, 400)
	var docs []Document
	for i := range 20 {
		var text strings.Builder
		for k := range 11 {
			text.WriteString(sentences[i*17+k].Text + " ")
		}
		docs = append(docs, Document{Source: ibid.Source{Kind: ibid.File}, Text: text.String(), Passages: []snapshot.Passage{{Span: ibid.Span{End: text.Len()}}}})
	}
	answer := &ibid.Answer{Text: strings.Repeat(sentences[3].Text[:60]+". "+sentences[90].Text[:60]+". "+sentences[222].Text[:60]+". ", 5)}
	for b.Loop() {
		testenv.Must(Attribute(b.Context(), answer, docs, nil))(b)
	}
}

// If more passages share words with a sentence than are checked, a retriever's scores can choose among them.
func TestAttributeByScore(t *testing.T) {
	answer := &ibid.Answer{Text: "The ferry to Ostend leaves at noon on Fridays."}
	low, high := 0.1, 0.9
	documents := []Document{
		{Source: ibid.Source{ID: "exact", Kind: ibid.DocumentKind, Score: &low}, Text: "The ferry to Ostend leaves at noon on Fridays."},
		{Source: ibid.Source{ID: "loose", Kind: ibid.DocumentKind, Score: &high}, Text: "On Fridays, at noon, there is a ferry; it leaves for Ostend from the old quay."},
		{Source: ibid.Source{ID: "silent", Kind: ibid.DocumentKind}, Text: "The ferry to Ostend leaves at noon on Fridays, they say."},
	}
	for byScore, want := range map[bool]int{false: 0, true: 1} {
		got := testenv.Must(Attribute(t.Context(), answer, documents, &AttributeOptions{PerSentence: 1, Candidates: 1, ByScore: byScore}))(t)
		candidates := got.Sentences[0].Candidates
		if len(candidates) != 1 || candidates[0].Document != want {
			t.Errorf("by score %t, the candidates are %+v; want document %d alone", byScore, candidates, want)
		}
	}
}

// The threshold decides what is cited; the label stays the checker's.
func TestAttributeLabel(t *testing.T) {
	claim := "The old mill at Lake Tonbo was closed and sold to a brewery in Leeds, whose owner built flats."
	text := "The old mill at Lake Tonbo closed in 1966."
	own := testenv.Must((&Lexical{}).Check(t.Context(), []Pair{{Claim: strings.TrimSuffix(claim, "."), Passages: []Passage{{Text: text}}}}))(t)
	if own[0].Label == Supported {
		t.Fatalf("the passage supports the claim: %+v", own[0])
	}
	found := testenv.Must(Attribute(t.Context(), &ibid.Answer{Text: claim}, []Document{{Text: text}}, &AttributeOptions{Threshold: *own[0].Closeness}))(t)
	if c := found.Answer.Citations; len(c) != 1 || c[0].Support.Label != string(own[0].Label) {
		t.Errorf("citations %+v, want one with the label %s", c, own[0].Label)
	}
}

// Facts of one sentence that are in two passages; facts that differ there; and facts that no passage connects.
func TestAttributeTogether(t *testing.T) {
	docs := []Document{
		{Source: ibid.Source{ID: "sydney"}, Text: "The Sydney Harbour Bridge is 1,149 metres long and its arch span is 503 metres. It carries eight lanes of road traffic. It opened in 1932."},
		{Source: ibid.Source{ID: "gate"}, Text: "The Golden Gate Bridge opened on 27 May 1937. It is 2,737 metres long with a main span of 1,280 metres."},
		{Source: ibid.Source{ID: "opera"}, Text: "The Sydney Opera House was opened by Queen Elizabeth II in 1973. It was designed by the Danish architect Jørn Utzon."},
		{Source: ibid.Source{ID: "census"}, Text: "Volunteers counted 41 nests in the alders on 12 April. Grey herons share the marsh with two pairs of cranes."},
		{Source: ibid.Source{ID: "mill"}, Text: "The old mill at Lake Tonbo closed in 1966 and the first pair of herons nested there in 1968."},
	}
	for _, test := range testenv.Table[struct {
		Text string
		Want string
	}](t, "testdata/attribute-together.txt") {
		for most := range 2 {
			got := testenv.Must(Attribute(t.Context(), &ibid.Answer{Text: test.Text}, docs, &AttributeOptions{PerSentence: 2 - most, Threshold: CloseEnough}))(t)
			if err := got.Answer.Check(); err != nil {
				t.Error(err)
			}
			want := strings.Fields(test.Want)
			if most == 1 && len(want) > 1 {
				want = nil // one citation per sentence, and no passage supports it alone
			}
			var cited []string
			for _, c := range got.Answer.Citations {
				for _, ref := range c.Refs {
					cited = append(cited, ref.Source)
					if together := got.Sentences[0].Together; together != nil && (*ref.Confidence != *together.Verdict.Closeness) {
						t.Errorf("%q: confidence %v, support %+v", test.Text, *ref.Confidence, c.Support)
					}
				}
			}
			slices.Sort(cited)
			slices.Sort(want)
			if !slices.Equal(cited, want) {
				t.Errorf("%q rests on %v, want %v", test.Text, cited, want)
			}
		}
	}
}

// Documents are told apart by their whole text, and pieces of one document share its id.
func TestAttributeSources(t *testing.T) {
	head := strings.Repeat("Licence words that all files begin with. ", 40)
	docs := []Document{
		{Text: head + "\n\nHerons eat fish in the river."},
		{Text: head + "\n\nThe bridge opened in 1932 with a feast."},
		{Source: ibid.Source{ID: "book"}, Text: "Beavers fell birches in October."},
		{Source: ibid.Source{ID: "book"}, Text: "Owls hunt voles at dusk."},
	}
	got := testenv.Must(Attribute(t.Context(), &ibid.Answer{Text: "Herons eat fish in the river. The bridge opened in 1932 with a feast. Beavers fell birches in October. Owls hunt voles at dusk."}, docs, nil))(t)
	if err := got.Answer.Check(); err != nil {
		t.Error(err)
	}
	var ids, keys, chunks []string
	for i := range got.Answer.Sources {
		s := &got.Answer.Sources[i]
		ids, keys = append(ids, s.ID), append(keys, s.Key())
		for k := range s.Chunks {
			chunks = append(chunks, s.ID+" "+s.Chunks[k].ID)
		}
	}
	testenv.Equal(t, "sources", []string{"doc:1", "doc:2", "book"}, ids)
	if keys[0] == keys[1] || !strings.HasPrefix(keys[0], "#sha256:") {
		t.Errorf("keys %q", keys)
	}
	slices.Sort(chunks)
	if chunks = slices.Compact(chunks); len(chunks) != 4 {
		t.Errorf("chunks %q, want four", chunks)
	}
}

// A sentence has the citations that cover any of its words, cover more than it, or stand right after it.
func TestAttributeCounts(t *testing.T) {
	a := &ibid.Answer{Text: "Otters swim in rivers. Owls hunt at night. Beavers fell trees.", Sources: []ibid.Source{{ID: "s"}}}
	for _, span := range []ibid.Span{{Start: 0, End: 42}, {Start: 8, End: 10}, {Start: 22, End: 22}, {Start: 0, End: 5}, {Start: 42, End: 42}, {Start: 20, End: 26}} {
		a.Citations = append(a.Citations, ibid.Citation{Span: span, Claim: span, Anchor: ibid.AnchorExact, Covers: ibid.CoversClaim, Refs: []ibid.Ref{{Source: "s"}}})
	}
	got := testenv.Must(Attribute(t.Context(), a, nil, nil))(t)
	var counts []int
	for _, s := range got.Sentences {
		counts = append(counts, s.Cited)
	}
	testenv.Equal(t, "", []int{5, 3, 0}, counts)
}

// Progress counts only sentences that are not skipped.
func TestAttributeProgress(t *testing.T) {
	var done, of int
	attribute(t, "# Towers\n\nWho built it? The iron tower was built in 1889. Sea otters hold hands while they sleep.", &AttributeOptions{
		Progress: func(d, n int) { done, of = d, n },
	})
	if done != 2 || of != 2 {
		t.Errorf("%d of %d sentences, want 2 of 2", done, of)
	}
}
