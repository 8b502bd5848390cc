package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// The promise of a level has the date on which --publish was raised to it, and keys stay served when it is lowered.
func TestPromiseIsDated(t *testing.T) {
	data := t.TempDir()
	for _, step := range []struct {
		level string
		dated []string // the levels with a date
		keys  int      // the status of the keys
	}{
		{"1", nil, http.StatusNotFound},
		{"3", []string{"2", "3"}, http.StatusOK},
		{"3", []string{"2", "3"}, http.StatusOK},
		{"1", nil, http.StatusOK},
		{"2", []string{"2"}, http.StatusOK},
	} {
		w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
			c.Data, c.PublicURL, c.Publish.Level = data, "http://127.0.0.1:1", step.level
		}})
		response, err := http.Get(w.URL + manifest.DiscoveryPath)
		testenv.OK(t, err)
		var d manifest.Discovery
		testenv.OK(t, json.NewDecoder(response.Body).Decode(&d))
		testenv.OK(t, response.Body.Close())
		keys, err := http.Get(w.URL + manifest.KeysPath)
		testenv.OK(t, err)
		testenv.OK(t, keys.Body.Close())
		testenv.Equal(t, "the keys at level "+step.level, step.keys, keys.StatusCode)
		testenv.Equal(t, "the dates at level "+step.level, len(step.dated), len(d.LevelsSince))
		for _, level := range step.dated {
			if since, ok := d.LevelsSince[level]; !ok || since.Time().IsZero() {
				t.Errorf("at level %s, level %s has no date: %v", step.level, level, d.LevelsSince)
			}
		}
		testenv.OK(t, w.Stop())
	}
}
