package server_test

import (
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// A server that starts with other settings than the one before it says so in the audit log, and only then.
func TestSettingsAreAudited(t *testing.T) {
	data := t.TempDir()
	for i, start := range []struct {
		prompts string
		want    int // entries so far
	}{{"all", 1}, {"all", 1}, {"none", 2}, {"all", 3}} {
		w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
			c.Data, c.Prompts, c.Chat = data, start.prompts, nil
			c.Upstreams = map[string]*server.Upstream{"up": {URL: "http://127.0.0.1:1"}}
		}})
		log := testenv.Must(w.Store.AuditLog(t.Context(), store.DefaultTenant, "", store.MaxLimit))(t)
		changed := 0
		for _, e := range log.Items {
			if e.Action == store.AuditSettingsChanged && e.Actor == store.ActorServer {
				changed++
			}
		}
		if changed != start.want {
			t.Errorf("after start %d: %d entries, want %d", i, changed, start.want)
		}
		testenv.OK(t, w.Stop())
	}
}
