package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// A call through the server returns the provider's bytes, and its answer is stored and shown to programs and people.
func TestCallIsKept(t *testing.T) {
	w := servertest.Start(t, nil)
	response, err := http.Post(
		w.URL+"/openai/v1/responses", "application/json",
		strings.NewReader(`{"model":"gpt-5","input":"When does the ferry leave?"}`),
	)
	testenv.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !json.Valid(body) {
		t.Fatalf("the call: %s, %v: %s", response.Status, err, body)
	}
	id := response.Header.Get("Ibid-Answer")
	for path, want := range map[string]string{
		"/v1/answers/" + id: `"answer_id":"` + id + `"`,
		"/ui/answers/" + id: "<html",
		"/v1":               "/v1/answers",
		"/":                 "<html",
		"/favicon.ico":      "",
		"/nobody/v1/models": "nobody",
	} {
		got, err := http.Get(w.URL + path)
		testenv.OK(t, err)
		shown, err := io.ReadAll(got.Body)
		testenv.OK(t, errors.Join(err, got.Body.Close()))
		if !strings.Contains(string(shown), want) {
			t.Errorf("GET %s: %s does not have %q:\n%.300s", path, got.Status, want, shown)
		}
	}
	if err := w.Stop(); err != nil {
		t.Errorf("stopping: %v", err)
	}
}
