package support

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// cascadePairs returns pairs with a high, a low and a middle score, and one without passages.
func cascadePairs() []Pair {
	return slices.Concat(
		one("In 1932 the bridge was opened.", bridge),
		one("Penguins breed on the Antarctic continent in winter.", bridge),
		one("The long bridge was celebrated by the crowds who had waited.", bridge),
		one("Nothing."),
	)
}

func cascadeScores(t *testing.T) []float64 {
	t.Helper()
	verdicts := testenv.Must((&Lexical{}).Check(t.Context(), cascadePairs()))(t)
	scores := make([]float64, 3)
	for i := range scores {
		if verdicts[i].Closeness == nil {
			t.Fatalf("no score: %+v", verdicts[i])
		}
		scores[i] = *verdicts[i].Closeness
	}
	if !(scores[1] < scores[2] && scores[2] < scores[0]) {
		t.Fatalf("the scores %v are not in the expected order", scores)
	}
	return scores
}

// The slow checker is asked about claims that are not verbatim.
func TestCascade(t *testing.T) {
	scores := cascadeScores(t)
	m := newModel(t, func(j judged) string { return element(j.ID, "contradicted", "It is 503 metres long") })
	c := Cascade(&Lexical{}, m.judge(), Budget{})
	in := append(cascadePairs(), one("It is 503 metres long.", bridge)...)
	got := testenv.Must(c.Check(t.Context(), in))(t)
	for i, want := range []struct {
		label Label
		by    string
		asked bool
	}{
		{Contradicted, "judge@2/test-model", true},
		{Contradicted, "judge@2/test-model", true},
		{Contradicted, "judge@2/test-model", true},
		{Unchecked, "lexical@2", false}, // there is no passage to ask about
		{Supported, "lexical@2", false},
	} {
		if got[i].Label != want.label || got[i].By != want.by || got[i].Escalated != want.asked {
			t.Errorf("verdict %d: %s by %s, escalated %t", i, got[i].Label, got[i].By, got[i].Escalated)
		}
	}
	v := got[2]
	if v.Closeness != nil || v.Signals["fast"] != scores[2] || len(v.Missing) == 0 {
		t.Errorf("closeness %v, signals %v, missing %v", v.Closeness, v.Signals, v.Missing)
	}
	if info := c.Info(); info.By() != "cascade@2" || info.Params == "" {
		t.Errorf("info %+v", info)
	}
}

// The judge decides; what differs only annotates its verdict.
func TestCascadeDiffers(t *testing.T) {
	in := one("The bridge was opened in 1933.", bridge)
	fast, err := (&Lexical{}).Check(t.Context(), in)
	if err != nil || fast[0].Label != Differs {
		t.Fatalf("%+v, %v", fast, err)
	}
	m := newModel(t, func(j judged) string { return element(j.ID, "contradicted", "opened in 1932.") })
	got, err := Cascade(&Lexical{}, m.judge(), Budget{}).Check(t.Context(), in)
	if err != nil || got[0].Label != Contradicted || !got[0].Escalated || len(got[0].Differences) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// If the slow checker cannot decide, the fast verdict is kept, with an issue.
func TestCascadeKeepsFast(t *testing.T) {
	fast := testenv.Must((&Lexical{}).Check(t.Context(), cascadePairs()))(t)
	abstains := newModel(t, func(j judged) string { return element(j.ID, "supported", "words that are nowhere") })
	refuses := newModel(t, nil)
	refuses.refuse = func(*chatRequest) bool { return true }
	stuck := newModel(t, nil)
	release := make(chan struct{})
	stuck.say = func(judged) string { <-release; return "" }
	t.Cleanup(func() { close(release) })
	gone := &Judge{URL: refuses.URL + "/elsewhere", Model: "m", Retries: -1}

	for _, test := range []struct {
		about  string
		slow   Checker
		budget Budget
		issue  string
		detail string // part of the issue's detail
		asked  bool
	}{
		{"abstains", abstains.judge(), Budget{}, issueNotDecided, "", true},
		{"refuses", refuses.judge(), Budget{}, issueSlowFailed, "asking judge@2/test-model: asking a judge: the server answered 400 Bad Request (invalid_request_error)", true},
		{"is gone", gone, Budget{}, issueSlowFailed, "asking judge@2/m: asking a judge: the server answered 404 Not Found", true},
		{"takes too long", stuck.judge(), Budget{Timeout: 20 * time.Millisecond}, issueSlowFailed, "deadline exceeded", true},
		{"may not be asked", abstains.judge(), Budget{Pairs: -1}, issueOverBudget, "", false},
		{"has no time", abstains.judge(), Budget{Timeout: time.Nanosecond}, issueOverBudget, "", false},
	} {
		t.Run(test.about, func(t *testing.T) {
			got := testenv.Must(Cascade(&Lexical{}, test.slow, test.budget).Check(t.Context(), cascadePairs()))(t)
			for i := range 3 {
				v := got[i]
				if v.Label != fast[i].Label || !cmp.Equal(v.Closeness, fast[i].Closeness) || v.By != fast[i].By || !cmp.Equal(v.Evidence, fast[i].Evidence) {
					t.Errorf("verdict %d lost the fast checker's: %+v", i, v)
				}
				if v.Escalated != test.asked || v.Err != nil {
					t.Errorf("verdict %d: escalated %t, error %v", i, v.Escalated, v.Err)
				}
				if !slices.ContainsFunc(v.Issues, func(is ibid.Issue) bool { return is.Code == test.issue && strings.Contains(is.Detail, test.detail) }) {
					t.Errorf("verdict %d: issues %v, want %s: %s", i, v.Issues, test.issue, test.detail)
				}
			}
		})
	}
}

// A judge whose server returns no probabilities decides all the same: its label counts, and has no score of the fast
// checker's.
func TestCascadeUnscored(t *testing.T) {
	scores := cascadeScores(t)
	m := newModel(t, func(j judged) string { return element(j.ID, "supported", "It is 503 metres long") })
	c := Cascade(&Lexical{}, m.judge(), Budget{})
	got := testenv.Must(c.Check(t.Context(), cascadePairs()[1:2]))(t)
	v := got[0]
	if v.Label != Supported || v.Closeness != nil || v.By != "judge@2/test-model" || v.Signals["fast"] != scores[1] || len(v.Evidence) != 1 {
		t.Errorf("%+v", v)
	}
}

// The budget goes to the pairs whose passages are closest.
func TestCascadeBudget(t *testing.T) {
	m := newModel(t, func(j judged) string { return element(j.ID, "unsupported", "") })
	got := testenv.Must(Cascade(&Lexical{}, m.judge(), Budget{Pairs: 1}).Check(t.Context(), cascadePairs()))(t)
	var asked []bool
	for _, v := range got {
		asked = append(asked, v.Escalated)
	}
	testenv.Equal(t, "escalated", []bool{true, false, false, false}, asked)
	testenv.Equal(t, "issues", []string{issueOverBudget}, codes(got[2].Issues))
}

// The budget limits the size of the slow checker's calls, and how many run at a time.
func TestCascadeConcurrency(t *testing.T) {
	var now, most atomic.Int32
	m := newModel(t, func(j judged) string { return element(j.ID, "unsupported", "") })
	inner := m.Config.Handler
	m.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		defer now.Add(-1)
		inner.ServeHTTP(w, r)
	})
	var in []Pair
	for i := range 20 {
		in = append(in, one(fmt.Sprintf("Claim %d of the bridge.", i), bridge)...)
	}
	c := Cascade(&Lexical{}, m.judge(), Budget{Batch: 4, Concurrency: 2})
	got := testenv.Must(c.Check(t.Context(), in))(t)
	for i := range got {
		if !got[i].Escalated || got[i].Label != Unsupported {
			t.Errorf("verdict %d: %+v", i, got[i])
		}
	}
	if len(m.requests) != 5 || most.Load() > 2 {
		t.Errorf("%d calls, %d at a time", len(m.requests), most.Load())
	}
}

func TestNearest(t *testing.T) {
	m := newModel(t, func(j judged) string { return element(j.ID, "supported", "It is 503 metres long") })
	passages := []string{"Trains run on rails.", "Herons eat fish.", bridge, "The moon is far.", "Long ago."}
	got := testenv.Must(Nearest(m.judge(), 2).Check(t.Context(), one("The bridge is 503 metres long.", passages...)))(t)
	if len(m.requests) != 2 || got[0].Label != Supported || got[0].Evidence[0].Passage != 2 {
		t.Errorf("%d requests, %+v", len(m.requests), got[0])
	}
	// If no passage shares a word with the claim, two are shown all the same.
	if _, err := Nearest(m.judge(), 2).Check(t.Context(), one("Xyzzy.", passages...)); err != nil || len(m.requests) != 4 {
		t.Errorf("%d requests, %v", len(m.requests), err)
	}
	if got, err := Nearest(m.judge(), 0).Check(t.Context(), one("All.", passages...)); err != nil || len(m.requests) != 9 {
		t.Errorf("%d requests, %+v, %v", len(m.requests), got, err)
	}
}

// A claim that its passages do not say and another source does gets an issue, and keeps its label.
func TestRightSource(t *testing.T) {
	others := []Passage{{ID: "tea", Text: "Tea is a drink."}, {ID: "traffic", Text: "It is old. The bridge has eight lanes of road traffic."}}
	for _, test := range []struct {
		claim, passage string
		label          Label
		where          string // in the others
	}{
		{"The bridge has eight lanes.", "The towers of the bridge are 89 metres high.", Unjudged, "The bridge has eight lanes of road traffic."},
		{"The bridge has eight lanes.", "The bridge has six lanes.", Differs, "The bridge has eight lanes of road traffic."},
		{"The bridge has eight lanes.", "The bridge has eight lanes, all of them toll lanes.", Supported, ""},
		{"The bridge has nine lanes.", "The towers of the bridge are 89 metres high.", Unjudged, ""},
	} {
		p := Pair{Claim: test.claim, Passages: passages(test.passage), Others: others}
		got := testenv.Must(RightSource(&Lexical{}).Check(t.Context(), []Pair{p}))(t)
		v, where := &got[0], ""
		if v.WrongSource != nil {
			where = textAt(others[v.WrongSource.Passage].Text, v.WrongSource.Span)
		}
		if named := v.has(issueWrongSource); v.Label != test.label || where != test.where || named != (where != "") {
			t.Errorf("%s: %s, said in %q, named %t", test.claim, v.Label, where, named)
		}
	}
}
