package trail_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// towers is a run whose sources disagree about a height; one of them was only retrieved.
func towers() *trail.Trail {
	sources := trail.SourcesFromResults([]trail.Result{
		{DocumentID: "guide", URL: "https://www.paris.gouv.fr/tower", Content: "The Eiffel Tower is 330 m tall.", ChunkIndex: new(2), Version: "2026-05-01"},
		{DocumentID: "post", URL: "http://old.reddit.com/r/x", Content: "The Eiffel Tower is 312 m tall."},
		{DocumentID: "book", Content: "It was built by the company of Gustave Eiffel."},
	})
	sources[1].Used = false
	return &trail.Trail{
		Answer: "The Eiffel Tower is 330 m tall [guide][book].",
		Steps: []trail.Step{{Number: 1, Sources: sources, Answers: []trail.StepAnswer{{Answer: &ibid.Answer{Sources: []ibid.Source{
			{ID: "book", Kind: ibid.DocumentKind, Authors: []string{"A. Smith"}, License: "CC BY 4.0", PublishedAt: "2021-11-21"},
		}}}}}},
	}
}

func TestAssess(t *testing.T) {
	for _, c := range []struct {
		name    string
		options trail.SummaryOptions
		want    string
	}{
		{"with excerpts", trail.SummaryOptions{}, `[{"kind":"number","a":{"document_id":"guide","chunk_index":2,"excerpt":"The Eiffel Tower is 330 m tall."},"b":{"document_id":"post","chunk_index":null,"excerpt":"The Eiffel Tower is 312 m tall."},"note":"possible conflict: number: 330 m, 312 m"}]`},
		{"without", trail.SummaryOptions{NoExcerpts: true}, `[{"kind":"number","a":{"document_id":"guide","chunk_index":2,"excerpt":null},"b":{"document_id":"post","chunk_index":null,"excerpt":null},"note":"possible conflict: number"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := towers()
			s := run.Summary(&c.options)
			var err error
			if s.Links, err = run.Link(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.Assess(t.Context(), &trail.AssessOptions{
				Now:   time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
				Known: map[string]support.QualityInput{"guide": {Feedback: &support.Tally{Good: 50}}},
			}); err != nil {
				t.Fatal(err)
			}
			data := testenv.Must(s.MarshalJSON())(t)
			var got struct {
				Summary struct {
					Conflicts json.RawMessage `json:"conflicts"`
					All       []struct {
						ID      string `json:"document_id"`
						Quality struct {
							Score *float64 `json:"score"`
							Known float64  `json:"known"`
							Parts []struct {
								Name, Why string
							} `json:"parts"`
						} `json:"quality"`
					} `json:"all_sources"`
				} `json:"source_summary"`
			}
			testenv.OK(t, json.Unmarshal(data, &got))
			testenv.Equal(t, "conflicts", c.want, string(got.Summary.Conflicts))
			var parts []string
			for _, d := range got.Summary.All {
				if d.Quality.Score == nil || *d.Quality.Score <= 0 || *d.Quality.Score > 1 || d.Quality.Known <= 0 {
					t.Errorf("%s: %+v", d.ID, d.Quality)
				}
				for _, p := range d.Quality.Parts {
					parts = append(parts, d.ID+": "+p.Name+": "+p.Why)
				}
			}
			want := []string{
				"guide: prior: nothing is known", "guide: host: host class official (suffix gouv.fr)", "guide: age: changed 2026-05-01",
				"guide: agreement: statements shared, possible conflicts: 1, 1", "guide: feedback: ups, downs: 50, 0",
				"book: prior: nothing is known", "book: age: published 2021-11-21", "book: author: names an author", "book: licence: names a licence",
				"book: agreement: statements shared, possible conflicts: 1, 0",
			}
			testenv.Equal(t, "quality", want, parts)
			again, err := trail.Read(data)
			if err != nil || len(again.Extra) > 0 {
				t.Errorf("read again: %v, unknown %v", err, again.Extra)
			}
		})
	}
}

// The output has conflicts only after Assess, even if it finds none.
func TestAssessNothing(t *testing.T) {
	s := (&trail.Trail{}).Summary(nil)
	data, err := s.MarshalJSON()
	if err != nil || strings.Contains(string(data), "conflicts") {
		t.Errorf("%s, %v", data, err)
	}
	if err := s.Assess(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if data, err = s.MarshalJSON(); err != nil || !strings.Contains(string(data), `"conflicts":[]`) {
		t.Errorf("%s, %v", data, err)
	}
}
