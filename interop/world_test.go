package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// key is the key that the upstream requires; it would not arrive if the gateway changed the headers in which SDKs send
// it.
const key = servertest.Key

// world is an upstream and a gateway in front of it.
type world struct {
	upstream, gateway string // URLs, to be followed by a provider's name
}

// start starts ibid in front of the providers. It ends with the test.
func start(t *testing.T) *world {
	t.Helper()
	w := servertest.Start(t, &servertest.Setup{
		Upstream:  withKey(replay.New(nil)),
		Providers: []string{"openai", "gemini", "anthropic", "cohere"},
	})
	return &world{upstream: w.Upstream.URL, gateway: w.URL}
}

// withKey rejects calls without the key.
func withKey(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		if strings.TrimPrefix(in, "Bearer ") != key {
			http.Error(w, `{"error":{"message":"the key did not arrive"}}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// document reads a stored answer from the gateway.
func (w *world) document(t *testing.T, answerID string) *ibid.Document {
	t.Helper()
	if answerID == "" {
		t.Fatal("the response had no Ibid-Answer header")
	}
	var d ibid.Document
	w.get(t, "/v1/answers/"+answerID, &d)
	return &d
}

func (w *world) get(t *testing.T, path string, into any) {
	t.Helper()
	data := testenv.Must(fetch(t.Context(), w.gateway+path))(t)
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, data)
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, res.Status, data)
	}
	return data, err
}
