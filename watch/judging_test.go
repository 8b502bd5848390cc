package watch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

// judgeServer serves the chat completions API. As a model of the MiniCheck family it answers each claim by Yes or No.
type judgeServer struct {
	*httptest.Server

	asked atomic.Int64
	fails atomic.Bool
}

func newJudgeServer(t *testing.T) *judgeServer {
	t.Helper()
	j := &judgeServer{}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		j.asked.Add(1)
		if j.fails.Load() {
			http.Error(w, "out of order", http.StatusBadRequest)
			return
		}
		var q struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		_, claim, _ := strings.Cut(q.Messages[len(q.Messages)-1].Content, "Claim: ")
		says := "Yes"
		if strings.Contains(claim, "cheerful") {
			says = "No"
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":100,"completion_tokens":1}}`, says)
	}))
	t.Cleanup(j.Close)
	return j
}

// judgedAnswer has two citations of one claim, one of another, and one without a passage. The passages begin with some
// words, which tell them from others.
func judgedAnswer(id, first string) *store.Call {
	text := "Herons return to the lake before the ice has gone. Keepers of the lake are cheerful. Nobody knows why."
	at := func(words string) ibid.Span {
		i := strings.Index(text, words)
		return ibid.Span{Start: i, End: i + len(words)}
	}
	cite := func(words, source, quote string) ibid.Citation {
		return ibid.Citation{
			ID: "c-" + source, Span: at(words), Claim: at(words), Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider,
			Refs: []ibid.Ref{{Source: source, Quote: quote}},
		}
	}
	return &store.Call{AnswerID: id, Tenant: "acme", Answer: &ibid.Answer{
		Text: text, Complete: true,
		Sources: []ibid.Source{{ID: "a", Kind: ibid.Web}, {ID: "b", Kind: ibid.Web}, {ID: "d", Kind: ibid.Web}, {ID: "e", Kind: ibid.Web}},
		Citations: []ibid.Citation{
			cite("Herons return to the lake before the ice has gone.", "a", "The lake is still frozen when herons come back."),
			cite("Herons return to the lake before the ice has gone.", "b", first+"The ice goes in April, herons come in March."),
			cite("Keepers of the lake are cheerful.", "d", first+"The keepers of the lake live in a hut."),
			cite("Nobody knows why.", "e", ""),
		},
	}}
}

// The claims of a captured answer are judged, each with all its passages; verdicts are kept in the store for the tenant;
// and what the judge did not decide is unjudged, with the reason.
func TestJudging(t *testing.T) {
	server, metrics := newJudgeServer(t), prometheus.NewRegistry()
	var tenants []string
	data := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer data.Close()
	meter := &support.Meter{PriceIn: 2}
	checker := support.WithJudge(&support.Judge{
		URL: server.URL + "/v1", Model: "bespoke-minicheck", Preset: support.PresetMiniCheck, Retries: -1, Meter: meter,
		Cache: &watch.Verdicts{Memory: func(tenant string) verify.Memory {
			tenants = append(tenants, tenant)
			return data.Memory(tenant)
		}},
	})
	judge := func(id, first string, ends chan *store.Call) *watch.Judging {
		g, err := watch.NewJudging(&watch.JudgingOptions{
			Checker: checker, Store: func(context.Context, *store.Call) error { return nil },
		})
		testenv.OK(t, err)
		if !g.Offer(watch.Job{Call: judgedAnswer(id, first), Done: func(c *store.Call) { ends <- c }}) {
			t.Fatal("the answer was refused")
		}
		return g
	}
	run := func(id, first string) *ibid.Answer {
		ctx, cancel := context.WithCancel(t.Context())
		ends, stopped := make(chan *store.Call, 1), make(chan error, 1)
		g := judge(id, first, ends)
		go func() { stopped <- g.Run(ctx) }()
		c := <-ends
		cancel()
		testenv.OK(t, <-stopped)
		return c.Answer
	}
	labels := func(a *ibid.Answer) string {
		var all []string
		for i := range a.Citations {
			if s := a.Citations[i].Support; s == nil {
				all = append(all, "none")
			} else {
				all = append(all, s.Label)
			}
		}
		return strings.Join(all, " ")
	}
	first := run("ans_1", "")
	testenv.Equal(t, "verdicts", "supported supported unsupported none", labels(first))
	testenv.Equal(t, "requests", int64(2), server.asked.Load())
	testenv.Equal(t, "issues", 0, len(first.Issues))
	testenv.Equal(t, "known verdicts", "supported supported unsupported none", labels(run("ans_2", "")))
	testenv.Equal(t, "requests for known verdicts", int64(2), server.asked.Load())
	for _, tenant := range tenants {
		testenv.Equal(t, "the tenant of a verdict", "acme", tenant)
	}
	if s := meter.Spent(); s.TokensIn != 200 || s.Cost == nil || *s.Cost != 200*2/1e6 {
		t.Errorf("spent %+v", s)
	}
	server.fails.Store(true)
	failed := run("ans_3", "Again: ")
	testenv.Equal(t, "verdicts of a judge that fails", "unjudged unjudged unjudged none", labels(failed))
	if len(failed.Issues) != 1 || failed.Issues[0].Code != watch.IssueUnjudged || !strings.Contains(failed.Issues[0].Detail, "2 of 2 claims: judge-failed") {
		t.Errorf("issues: %+v", failed.Issues)
	}
	counted, err := watch.NewJudging(&watch.JudgingOptions{
		Checker: checker, Spent: meter.Spent, Metrics: metrics, Store: func(context.Context, *store.Call) error { return nil },
	})
	testenv.OK(t, err)
	if counted.Offer(watch.Job{Call: &store.Call{Answer: &ibid.Answer{Text: "Nothing."}}}) {
		t.Error("an answer without citations was taken")
	}
	want := "# HELP ibid_judge_sent_tokens_total Tokens sent to the judge, as it counts them.\n" +
		"# TYPE ibid_judge_sent_tokens_total counter\nibid_judge_sent_tokens_total 200\n"
	testenv.OK(t, testutil.GatherAndCompare(metrics, strings.NewReader(want), "ibid_judge_sent_tokens_total"))
}
