package manifest_test

import (
	"net/http"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
)

// Paths are unique, and the manifest of every answer is served, whatever its id.
func TestPath(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range []struct {
		pub, answer string
		revision    int
		want        string
	}{
		{"r1", "", 1, "/runs/r1/cite"},
		{"r1", "", 0, "/runs/r1/cite"},
		{"r1", "", 2, "/runs/r1/cite.2"},
		{"r1", "ans_1", 1, "/runs/r1/cite/ans_1"},
		{"r1", "ans_1", 2, "/runs/r1/cite/ans_1.2"},
		{"r1", "ans_1.2", 1, "/runs/r1/cite/ans_1~2E2"},
		{"r1", "ans_1.2", 2, "/runs/r1/cite/ans_1~2E2.2"},
		{"r1", "ans_1~2E2", 1, "/runs/r1/cite/ans_1~7E2E2"},
		{"r1", "ans_1.tlog-proof", 1, "/runs/r1/cite/ans_1~2Etlog-proof"},
		{"r1", "..", 1, "/runs/r1/cite/~2E~2E"},
		{"..", "a/b", 1, "/runs/~2E~2E/cite/a~2Fb"},
		{"r1/cite", "\u00e9%", 1, "/runs/r1~2Fcite/cite/~C3~A9~25"},
	} {
		path := manifest.Path(test.pub, test.answer, test.revision)
		if path != test.want {
			t.Errorf("Path(%q, %q, %d) = %s, want %s", test.pub, test.answer, test.revision, path, test.want)
		}
		if seen[path] && test.revision > 0 {
			t.Errorf("%s is not unique", path)
		}
		seen[path] = true
		p := &manifest.Publisher{Origin: origin, Level: 2}
		b := &manifest.Builder{Self: p.URL(path), RunID: "r1", AgentID: "agent.example/v1", By: manifest.ByObserver}
		m, err := b.Build(t.Context(), &ibid.Answer{Text: "x y", Complete: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Publish(t.Context(), path, m); err != nil {
			t.Error(err)
		}
		if r := get(t, p.Handler(), http.MethodGet, path); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}
