package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// A client whose base URL lacks the upstream's name is told the right one.
func TestMissingUpstream(t *testing.T) {
	w := servertest.Start(t, nil)
	for path, want := range map[string]string{
		"/v1/chat/completions": "POST /openai/v1/chat/completions",
		"/v1/messages":         "POST /anthropic/v1/messages",
		"/v2/chat":             "POST /cohere/v2/chat",
	} {
		r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+path, strings.NewReader("{}")))(t)
		res, err := http.DefaultClient.Do(r)
		testenv.OK(t, err)
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 404 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
}
