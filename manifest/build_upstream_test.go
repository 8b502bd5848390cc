package manifest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// A source that announces a manifest of itself is an agent's answer: whoever verifies is to follow it.
func TestBuildUpstream(t *testing.T) {
	const up = "https://other.example/runs/1/cite/a"
	for _, test := range []struct {
		name   string
		header []string
		want   string
	}{
		{"an answer", []string{`<https://birds.example/heron>; manifest="` + up + `", <https://birds.example/mill>; manifest="` + up + `"`}, up},
		{"a stream", []string{`<urn:ibid:more>; manifest="` + up + `"`}, up},
		{"of several", []string{`<https://birds.example/heron>; manifest="` + up + `", <https://birds.example/mill>; manifest="` + up + `b"`}, ""},
		{"only sources", []string{`<https://birds.example/heron>`}, ""},
		{"malformed", []string{`<<<`}, ""},
		{"a page", nil, ""},
	} {
		b := manifest.Builder{
			Self: "https://agent.example/runs/2/cite", RunID: "2", AgentID: "agent.example/v1",
			Read: func(_ context.Context, url string) (*snapshot.Snapshot, error) {
				h := http.Header{}
				if test.header != nil {
					h[manifest.HeaderName] = test.header
				}
				return &snapshot.Snapshot{URL: url, FinalURL: url, Status: 200, Header: h, MediaType: "text/plain", Octets: []byte("Herons stand up to 98 cm tall.")}, nil
			},
		}
		a := &ibid.Answer{Text: "Herons grow to 98 cm.", Sources: []ibid.Source{{ID: "1", Kind: ibid.Web, URL: "https://other.example/ask"}}}
		if err := a.Cite(ibid.Span{Start: 0, End: len(a.Text)}, ibid.Ref{Source: "1", Quote: "Herons stand up to 98 cm tall."}); err != nil {
			t.Fatal(err)
		}
		m, err := b.Build(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Sources[0].UpstreamManifest; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
