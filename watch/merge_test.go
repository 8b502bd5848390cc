package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// Words are found at word boundaries, if they occur once or in their order; otherwise not.
func TestPlace(t *testing.T) {
	type placed struct {
		Name, From, To string
		Words          []string
		Want           []int
	}
	for _, test := range append(testenv.Table[placed](t, "testdata/place.txt"),
		placed{"far too often", "yes", strings.Repeat("yes ", 300), []string{"yes"}, []int{-1}},
		placed{"far too often inside", "yes", strings.Repeat("yesyes ", 2000) + "yes", []string{"yes"}, []int{-1}},
	) {
		t.Run(test.Name, func(t *testing.T) {
			p := placer{from: test.From, to: test.To}
			got := []int{}
			at := 0
			for _, words := range test.Words {
				at += strings.Index(test.From[at:], words)
				s, ok := p.place(ibid.Span{Start: at, End: at + len(words)})
				if !ok {
					s.Start = -1
				} else if test.To[s.Start:s.End] != strings.TrimSpace(words) {
					t.Errorf("%q is found as %q", words, test.To[s.Start:s.End])
				}
				got = append(got, s.Start)
				at += len(words)
			}
			testenv.Equal(t, "", test.Want, got)
		})
	}
}

// However many citations a second answer has, the search for their words ends.
func TestSearchIsBounded(t *testing.T) {
	text := strings.Repeat("Herons fish in the lake. ", 40_000)
	p := placer{from: "Never said. " + text, to: text}
	start := time.Now()
	for range 10_000 {
		if _, ok := p.place(ibid.Span{End: len("Never said.")}); ok {
			t.Fatal("found what is not there")
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if s, ok := p.place(ibid.Span{Start: 12, End: 20}); ok {
		t.Errorf("still searching: %v", s)
	}
}

// A source that the first answer has is not changed; another one with the same id gets a new id.
func TestMergeSources(t *testing.T) {
	first := &ibid.Answer{
		Text: "Herons fish. They fly.", Complete: true,
		Sources: []ibid.Source{
			{ID: "web:0", Kind: ibid.Web, URL: "https://given.example/", Title: "given"},
			{ID: "web:1", Kind: ibid.Web, URL: "https://fish.example/", Title: "as it was"},
		},
		Issues: []ibid.Issue{{Code: "odd"}},
	}
	second := &ibid.Answer{
		Text: "They fly. Herons fish.", Complete: true,
		Sources: []ibid.Source{
			{ID: "web:0", Kind: ibid.Web, URL: "https://fly.example/"},
			{ID: "web:1", Kind: ibid.Web, URL: "https://fish.example/", Title: "again"},
			{ID: "web:2", Kind: ibid.Web, URL: "https://unused.example/"},
			{ID: "web:0-2", Kind: ibid.Web, URL: "https://clash.example/"},
		},
	}
	testenv.OK(t, second.Cite(ibid.Span{Start: 0, End: 9}, ibid.Ref{Source: "web:0", Quote: "fly"}, ibid.Ref{Source: "web:0-2"}))
	testenv.OK(t, second.Cite(ibid.Span{Start: 10, End: 22}, ibid.Ref{Source: "web:1"}))
	got := testenv.Must(merge(first, second))(t)
	var sources []string
	for _, s := range got.Sources {
		sources = append(sources, s.ID+" "+s.URL+" "+s.Title)
	}
	want := []string{
		"web:1 https://fish.example/ as it was",
		"web:0-2 https://fly.example/ ",
		"web:0-2-2 https://clash.example/ ",
		"web:0 https://given.example/ given",
		"web:2 https://unused.example/ ",
	}
	testenv.Equal(t, "sources", want, sources)
	refs := [][]ibid.Ref{{{Source: "web:1"}}, {{Source: "web:0-2", Quote: "fly"}, {Source: "web:0-2-2"}}}
	for i, c := range got.Citations {
		testenv.Equal(t, fmt.Sprintf("citation %d", i), refs[i], c.Refs)
	}
	if !slices.Contains(got.Issues, first.Issues[0]) || len(first.Issues) != 1 || len(first.Citations) != 0 || first.Sources[0].ID != "web:0" {
		t.Errorf("issues %+v; the first answer is now %+v", got.Issues, first)
	}
}
