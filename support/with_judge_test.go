package support

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// The judge is asked about all claims but those that words settle, and decides; values annotate its verdicts.
func TestWithJudge(t *testing.T) {
	m := newModel(t, func(j judged) string { return element(j.ID, "contradicted", "It is 503 metres long") })
	c := WithJudge(m.judge())
	in := slices.Concat(
		one("In 1932 the bridge was opened.", bridge), // in other order
		one("The bridge was opened in 1933.", bridge),
		one("Die Brücke wurde 1932 eröffnet und gefällt den Leuten der Stadt sehr.", bridge),
		one("Nothing."),
		one("It is 503 metres long.", bridge),
		one("Penguins breed on the Antarctic continent during winter.", bridge),
	)
	got := testenv.Must(c.Check(t.Context(), in))(t)
	for i, want := range []struct {
		label Label
		by    string
		asked bool
	}{
		{Contradicted, "judge@3/test-model", true},
		{Contradicted, "judge@3/test-model", true},
		{Contradicted, "judge@3/test-model", true}, // another language may use other words
		{Unchecked, "lexical@2", false},            // there is no passage to ask about
		{Supported, "lexical@2", false},            // verbatim
		{Unjudged, "lexical@2", false},             // no word in common
	} {
		if got[i].Label != want.label || got[i].By != want.by || got[i].Escalated != want.asked {
			t.Errorf("verdict %d: %s by %s, escalated %t, %v", i, got[i].Label, got[i].By, got[i].Escalated, got[i].Issues)
		}
	}
	if len(m.requests) != 1 || len(m.requests[0].claims) != 3 {
		t.Errorf("%d requests", len(m.requests))
	}
	if v := got[1]; v.Closeness == nil || len(v.Differences) != 1 || in[1].Text(v.Evidence[0]) != "It is 503 metres long" {
		t.Errorf("%+v", v)
	}
	if info := c.Info(); info.By() != "judge@3/test-model" || info.Params == m.judge().Info().Params {
		t.Errorf("info %+v", info)
	}
}

// A judge overrules the words in both directions.
func TestWithJudgeOverrules(t *testing.T) {
	for _, label := range []string{"supported", "unsupported", "contradicted"} {
		m := newModel(t, func(j judged) string { return element(j.ID, label, "opened in 1932.") })
		got := testenv.Must(WithJudge(m.judge()).Check(t.Context(), one("The bridge was opened in 1933.", bridge)))(t)
		if v := got[0]; v.Label != Label(label) || len(v.Differences) != 1 {
			t.Errorf("%s: %+v", label, v)
		}
	}
}

// If the judge cannot decide, the verdict of the words stays, with the reason.
func TestWithJudgeFails(t *testing.T) {
	const poison = "The bridge of poison was long admired by all who had waited for it."
	in := slices.Concat(one("The bridge was celebrated by the crowds.", bridge), one("The bridge was opened in 1933.", bridge))
	for _, test := range []struct {
		about  string
		say    func(judged) string
		refuse bool
		budget int
		issues []string
		detail string
	}{
		{"no verdict", func(judged) string { return "{}" }, false, 0, []string{issueNotDecided, issueNoVerdict}, "judge@3/test-model"},
		{"no quote", func(j judged) string { return element(j.ID, "supported", "x") }, false, 0, []string{issueNotDecided, issueQuoteNotFound}, "judge@3/test-model"},
		{"refused", nil, true, 0, []string{issueJudgeFailed}, "judge@3/test-model: asking a judge: the server answered 400 Bad Request (invalid_request_error)"},
	} {
		m := newModel(t, test.say)
		if test.refuse {
			m.refuse = func(*chatRequest) bool { return true }
		}
		got := testenv.Must(WithJudge(m.judge()).Check(t.Context(), in))(t)
		if got[0].Label != Unjudged || got[1].Label != Differs || !got[0].Escalated || got[0].By != "lexical@2" {
			t.Errorf("%s: %+v", test.about, got)
		}
		for _, v := range got {
			if why := v.WhyUnjudged(); !cmp.Equal(codes(v.Issues), test.issues) || why == nil || why.Detail != test.detail {
				t.Errorf("%s: %v", test.about, v.Issues)
			}
		}
	}
	m := newModel(t, func(j judged) string { return element(j.ID, "unsupported", "") })
	judge := m.judge()
	judge.Batch, judge.Meter = 1, &Meter{PerAnswer: 1}
	in = slices.Concat(in[:1], one("The bridge was admired by people of poison.", poison))
	got := testenv.Must(WithJudge(judge).Check(t.Context(), in))(t)
	if got[0].Label != Unsupported || got[1].Escalated || got[1].WhyUnjudged().Code != issueOverBudget {
		t.Errorf("over the budget: %+v", got)
	}
}

func TestNearest(t *testing.T) {
	m := newModel(t, func(j judged) string { return element(j.ID, "supported", "It is 503 metres long") })
	passages := []string{"Trains run on rails.", "Herons eat fish.", bridge, "The moon is far.", "Long ago."}
	got := testenv.Must(Nearest(m.judge(), 2).Check(t.Context(), one("The bridge is 503 metres long.", passages...)))(t)
	if len(m.requests) != 1 || strings.Contains(m.requests[0].Messages[1].Content, "moon") || got[0].Label != Supported || got[0].Evidence[0].Passage != 2 {
		t.Errorf("%d requests, %+v", len(m.requests), got[0])
	}
	// If no passage shares a word with the claim, two are shown all the same.
	if _, err := Nearest(m.judge(), 2).Check(t.Context(), one("Xyzzy.", passages...)); err != nil || len(m.requests) != 2 {
		t.Errorf("%d requests, %v", len(m.requests), err)
	}
	if got, err := Nearest(m.judge(), 0).Check(t.Context(), one("All.", passages...)); err != nil || len(m.requests) != 3 {
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
