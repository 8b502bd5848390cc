package ibid

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// fullAnswer sets every field that a document contains.
func fullAnswer() *Answer {
	score, page, start := 0.85, 3, 7
	// 0 "Ça" 3 " va" 6 " 🎉" 11 " 東京は" 21 " e\u0301t" 26 " שלום" 35 "." 36
	text := "Ça va 🎉 東京は e\u0301t שלום."
	a := &Answer{
		ID: "r1", Provider: "openai", Format: "openai-responses", Model: "m-1",
		Created: time.Date(2026, 2, 3, 4, 5, 6, 7_000, time.UTC),
		Text:    text,
		Parts: []Part{
			{Span: Span{0, 11}, Kind: CommentaryPart},
			{Span: Span{11, len(text)}, Kind: AnswerPart, Message: 1, Content: 2},
		},
		Sources: []Source{
			{
				ID: "w", Kind: Web, Title: "A <b> & c", URL: "https://a.example/x?a=1&b=2", OriginalURL: "https://a.example/x?a=1&b=2&utm_source=openai",
				Site: "A", Authors: []string{"Ada B."}, PublishedAt: "2025-12-31", RetrievedAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), License: "CC0",
			},
			{
				ID: "f", Kind: File, GlobalID: "file-77", Title: "b.pdf", Filename: "b.pdf", Content: "first", Score: &score, ScoreOrigin: ScoreProvider,
				Chunks: []Chunk{{ID: "k1", Content: "first", Score: &score, Locator: &Locator{Page: 3, Pages: []int{3, 4}}}, {Content: "second"}},
			},
			{ID: "doc:0", Kind: DocumentKind, Content: "never used"},
		},
		Citations: []Citation{
			{ID: "c-1", Span: Span{7, 11}, Covers: CoversLink, Claim: Span{0, 11}, ClaimInferred: true, Anchor: AnchorUnitFixed, Origin: OriginProvider, Refs: []Ref{{Source: "w"}}},
			{
				ID: "c-2", Span: Span{12, 21}, Covers: CoversClaim, Claim: Span{12, 21}, Anchor: AnchorExact, Origin: OriginMarker,
				Refs: []Ref{
					{Source: "w", Confidence: &score},
					{Source: "f", Quote: "q1", Locator: &Locator{Chunk: "k1", Block: &page, CharStart: &start}},
					{Source: "f", Quote: "q2"},
				},
				Support:      &Support{Label: "supported", Score: &score, By: "overlap"},
				Verification: &Verification{Status: "same", CheckedAt: time.Date(2026, 2, 2, 2, 2, 2, 0, time.UTC)},
			},
			{ID: "c-3", Span: Span{12, 21}, Covers: CoversClaim, Claim: Span{12, 21}, Anchor: AnchorMoved, Origin: OriginInferred, Refs: []Ref{{Source: "w"}}, Support: &Support{Label: "unverified", By: "x"}},
			{ID: "c-4", Span: Span{26, 26}, Covers: CoversPoint, Anchor: AnchorUnverified, Origin: OriginProvider, Refs: []Ref{{Source: "f"}}, Verification: &Verification{Status: "pending"}},
			{ID: "c-5", Span: Span{27, 35}, Covers: CoversBlock, Claim: Span{27, 35}, Anchor: AnchorExact, Origin: OriginProvider, Refs: []Ref{{Source: "f"}}},
			{ID: "c-6", Covers: CoversClaim, Anchor: AnchorNone, Origin: OriginProvider, Refs: []Ref{{Source: "w"}}},
		},
		Queries: []string{"tides > 3 m"}, ToolCalls: []ToolCall{{ID: "t1", Name: "search"}},
		Display: []Display{{Kind: "google-search-suggestions", HTML: "<div>&amp;</div>"}},
		Issues:  []Issue{{Code: "chunk-index-out-of-range", Detail: "4 of 2"}}, Complete: true, Finish: FinishStop,
		Error: &ProviderError{Code: "503", Message: "busy"},
	}
	a.Alternatives = []*Answer{{Text: "日本", Complete: true, Finish: FinishLength, Sources: []Source{{ID: "w", Kind: Web, URL: "https://b.example/"}}}}
	return a
}

// randomAnswer returns a random valid answer with the given text.
func randomAnswer(text string, next *rand.Rand) *Answer {
	a := &Answer{Text: text, Model: "m", Complete: next.IntN(2) == 0, Finish: FinishStop}
	boundary := func(i int) int {
		for !isBoundary(text, i) {
			i++
		}
		return i
	}
	cut := boundary(next.IntN(len(text) + 1))
	a.Parts = []Part{{Span: Span{0, cut}, Kind: AnswerPart}, {Span: Span{cut, len(text)}, Kind: AnswerPart, Message: 1}}
	for i := range next.IntN(5) {
		s := Source{ID: fmt.Sprint("s", i), Kind: []SourceKind{Web, File, Tool}[next.IntN(3)], Title: text[:boundary(next.IntN(len(text)+1))]}
		switch next.IntN(3) {
		case 0:
			s.URL = "https://a.example/" + fmt.Sprint(i)
		case 1:
			s.GlobalID = fmt.Sprint("g", i)
		}
		a.Sources = append(a.Sources, s)
	}
	for range min(next.IntN(12), 12*len(a.Sources)) {
		c := Citation{Covers: CoversBlock, Anchor: AnchorExact, Origin: OriginProvider}
		if from, to := boundary(next.IntN(len(text)+1)), boundary(next.IntN(len(text)+1)); from <= to {
			c.Span, c.Claim = Span{from, to}, Span{from, to}
		} else {
			c.Anchor, c.Claim, c.ClaimInferred = AnchorNone, Span{to, from}, true
		}
		for range 1 + next.IntN(3) {
			score := next.Float64()
			c.Refs = append(c.Refs, Ref{Source: a.Sources[next.IntN(len(a.Sources))].ID, Quote: fmt.Sprint(next.IntN(3)), Confidence: &score})
		}
		a.Citations = append(a.Citations, c)
	}
	order(a)
	assignIDs(a, (*Source).Key)
	return a
}
