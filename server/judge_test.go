package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// With --judge, a judge decides in the background what words do not settle of a captured answer's citations, and what
// it was asked is counted.
func TestServeJudges(t *testing.T) {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"Yes"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":50,"completion_tokens":1}}`)
	}))
	defer model.Close()
	w := servertest.Start(t, &servertest.Setup{
		Configure: func(c *server.Config) { c.Judge = model.URL + "/v1#minicheck" },
	})
	response, err := http.Post(
		w.URL+"/anthropic/v1/messages", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"How many herons nest at Lake Tonbo?"}]}`),
	)
	testenv.OK(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	testenv.OK(t, errors.Join(err, response.Body.Close()))
	get := func(path string) []byte {
		got, err := http.Get(w.URL + path)
		testenv.OK(t, err)
		defer got.Body.Close()
		return testenv.Must(io.ReadAll(got.Body))(t)
	}
	var answer struct {
		Citations []struct {
			Support *struct{ Label, By string }
		}
	}
	for end := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		testenv.OK(t, json.Unmarshal(get("/v1/answers/"+response.Header.Get("Ibid-Answer")), &answer))
		if len(answer.Citations) > 0 && answer.Citations[0].Support != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no citation was judged: %+v", answer)
		}
	}
	judged := 0
	for _, c := range answer.Citations {
		if c.Support == nil || c.Support.Label != "supported" {
			t.Errorf("a citation: %+v", c.Support)
		} else if strings.Contains(c.Support.By, "minicheck") {
			judged++
		}
	}
	metrics := string(get("/metrics"))
	if !strings.Contains(metrics, `ibid_judging_total{result="judged"} 1`) ||
		judged > 0 && strings.Contains(metrics, "ibid_judge_sent_tokens_total 0") {
		t.Errorf("%d judged; the metrics are others", judged)
	}
	testenv.OK(t, w.Stop())
}
