package server_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// A start with other settings than the previous one is recorded in the audit log; no other start is.
func TestSettingsAreAudited(t *testing.T) {
	data := t.TempDir()
	for i, start := range []struct {
		prompts   string
		bootstrap string
		excerpts  string
		want      int // entries so far
	}{
		{"all", "", "none", 1},
		{"all", "", "none", 1},
		{"none", "", "none", 2},
		{"all", "", "none", 3},
		{"all", "", "all", 4},
		{"all", strings.Repeat("a", 40), "all", 5},
		{"all", strings.Repeat("b", 40), "all", 6},
	} {
		w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
			c.Data, c.Prompts, c.Chat, c.BootstrapToken = data, start.prompts, nil, start.bootstrap
			c.Publish.Excerpts = start.excerpts
			c.Upstreams = map[string]*server.Upstream{"up": {URL: "http://127.0.0.1:1"}}
		}})
		log := testenv.Must(w.Store.AuditLog(t.Context(), store.DefaultTenant, "", store.MaxLimit))(t)
		changed := 0
		for _, e := range log.Items {
			if e.Action == store.AuditSettingsChanged && e.Actor == store.ActorServer {
				changed++
				if first := e.Detail == "of the first start"; first != (e.Prev == "") {
					t.Errorf("entry %d: %q", e.Seq, e.Detail)
				}
			}
		}
		if changed != start.want {
			t.Errorf("after start %d: %d entries, want %d", i, changed, start.want)
		}
		testenv.OK(t, w.Stop())
	}
}
