package support

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// grounded asks a server that answers with body, and returns the verdict and the facts that the server received.
func grounded(t *testing.T, body string, in []Pair) (Verdict, []string) {
	t.Helper()
	var sent struct {
		Candidate string                      `json:"answerCandidate"`
		Facts     []struct{ FactText string } `json:"facts"`
		Spec      struct {
			Threshold float64 `json:"citationThreshold"`
			Claims    bool    `json:"enableClaimLevelScore"`
		} `json:"groundingSpec"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ya29.token" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	g := &Grounding{URL: server.URL, Threshold: .7, Token: func(context.Context) (string, error) { return "ya29.token", nil }}
	got := testenv.Must(g.Check(t.Context(), in))(t)
	var facts []string
	for _, f := range sent.Facts {
		facts = append(facts, f.FactText)
	}
	if len(facts) > 0 && (sent.Candidate != in[0].Claim || sent.Spec.Threshold != .7 || !sent.Spec.Claims) {
		t.Errorf("sent %+v", sent)
	}
	return got[0], facts
}

func TestGrounding(t *testing.T) {
	const chunks = `"citedChunks":[{"chunkText":"It is 503 metres long","source":"1"},{"chunkText":"another text","source":"0"},{"chunkText":"x","source":"9"}],`
	for _, test := range []struct {
		about, body string
		label       Label
		score       float64 // negative: none
		evidence    []string
		issues      []string
	}{
		{
			"supported", `{"supportScore":0.95,` + chunks + `"claims":[{"startPos":0,"endPos":20,"claimText":"It is long.","citationIndices":[0],"groundingCheckRequired":true,"score":0.9}]}`,
			Supported, .9,
			[]string{"It is 503 metres long"},
			nil,
		},
		{
			"no score of the claim", `{"supportScore":0.95,` + chunks + `"claims":[{"citationIndices":[0]}]}`,
			Supported, .95,
			[]string{"It is 503 metres long"},
			nil,
		},
		{
			"the chunk's words are not those of the fact", `{"supportScore":0.8,` + chunks + `"claims":[{"citationIndices":[1]}]}`,
			Supported, .8,
			[]string{"Herons eat fish."},
			nil,
		},
		{
			"one of two sentences", `{"supportScore":0.5,` + chunks + `"claims":[{"citationIndices":[0],"score":0.9},{"score":0.1}]}`,
			Unsupported, .1,
			[]string{"It is 503 metres long"},
			nil,
		},
		{"no fact", `{"supportScore":0.03,"claims":[{"claimText":"x","score":0.03}]}`, Unsupported, .03, nil, nil},
		{
			"facts against it", `{"supportScore":0.1,` + chunks + `"claims":[{"antiCitationIndices":[0],"score":0.1}]}`,
			Contradicted, .1,
			[]string{"It is 503 metres long"},
			nil,
		},
		{
			"facts for and against it", `{"supportScore":0.6,` + chunks + `"claims":[{"citationIndices":[1],"antiCitationIndices":[0]}]}`,
			Unjudged, .6,
			[]string{"Herons eat fish.", "It is 503 metres long"},
			[]string{issueDisputed},
		},
		{
			"nothing to check", `{"supportScore":0,"claims":[{"claimText":"Hello!","groundingCheckRequired":false}]}`,
			Unjudged, -1, nil,
			[]string{issueNoCheckNeeded},
		},
		{"no claim at all", `{"supportScore":0}`, Unjudged, -1, nil, []string{issueNoCheckNeeded}},
		{
			"indexes that point nowhere", `{"supportScore":"2",` + chunks + `"claims":[{"citationIndices":[-1,3,"x",2]}]}`,
			Supported, -1, nil, nil,
		},
	} {
		t.Run(test.about, func(t *testing.T) {
			in := one("It is a long bridge.", "Herons eat fish.", bridge)
			v, facts := grounded(t, test.body, in)
			testenv.Equal(t, "facts", []string{"Herons eat fish.", bridge}, facts)
			var evidence []string
			for _, e := range v.Evidence {
				evidence = append(evidence, in[0].Passages[e.Passage].Text[e.Start:e.End])
			}
			score := -1.
			if v.Closeness != nil {
				score = *v.Closeness
			}
			if v.Label != test.label || score != test.score || !cmp.Equal(evidence, test.evidence) || !cmp.Equal(codes(v.Issues), test.issues) {
				t.Errorf("%s %v %q %v, want %s %v %q %v", v.Label, score, evidence, v.Issues, test.label, test.score, test.evidence, test.issues)
			}
		})
	}
}

// A long passage is split into facts, none is too long, and evidence in any of them is found in the passage.
func TestGroundingLongPassage(t *testing.T) {
	long := strings.Repeat("Kühe muhen auf der Weide. ", 1000) + "Am Ende steht das Ziel."
	in := one("Das Ziel steht am Ende.", "", long, strings.Repeat("ü", 6000))
	v, facts := grounded(t, `{"supportScore":1,"citedChunks":[{"chunkText":"Am Ende steht das Ziel.","source":"2"}],"claims":[{"citationIndices":[0]}]}`, in)
	if got := in[0].Passages[1].Text[v.Evidence[0].Start:v.Evidence[0].End]; got != "Am Ende steht das Ziel." {
		t.Errorf("evidence %q", got)
	}
	for i, f := range facts {
		if len(f) > groundingFactBytes || strings.Contains(f, "\ufffd") {
			t.Errorf("fact %d: %d bytes, or a cut character", i, len(f))
		}
	}
	if strings.Join(facts[:3], "") != long || len(facts) != 5 {
		t.Errorf("%d facts, or they do not add up to the passage", len(facts))
	}

	// Invalid UTF-8 is split all the same.
	for _, bad := range []string{strings.Repeat("\x80", 2*groundingFactBytes+1), strings.Repeat("x", groundingFactBytes-1) + "ü\xff"} {
		if _, facts := grounded(t, `{"supportScore":0,"claims":[{}]}`, one("A.", bad)); len(facts) != len(bad)/groundingFactBytes+1 {
			t.Errorf("%d bytes: %d facts", len(bad), len(facts))
		}
	}

	var many []string
	for range groundingFacts + 1 {
		many = append(many, "Fact.")
	}
	every := strings.Repeat("0,", 2*groundingFacts) + "0"
	v, _ = grounded(t, `{"citedChunks":[{"chunkText":"Fact.","source":"0"}],"claims":[{"citationIndices":[`+every+`]}]}`, one("A.", many...))
	if len(v.Evidence) != groundingFacts {
		t.Errorf("%d pieces of evidence", len(v.Evidence))
	}
	v, facts = grounded(t, `{"supportScore":0,"claims":[{}]}`, one("A.", many...))
	if len(facts) != groundingFacts || !slices.Contains(codes(v.Issues), issueFactsLeftOut) {
		t.Errorf("%d facts, %v", len(facts), v.Issues)
	}
}

func TestGroundingErrors(t *testing.T) {
	answer := "{}"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	g := &Grounding{URL: server.URL}
	for _, body := range []string{"{}", "[]", "", "<html>", `{"claims":{}}`} {
		answer = body
		if _, err := g.Check(t.Context(), one("A.", bridge)); err == nil || err.Error() != "asking for grounding: reading a grounding: neither a score nor claims" {
			t.Errorf("%s: %v", body, err)
		}
	}
	got, err := g.Check(t.Context(), slices.Concat(one("A."), one(" ", bridge), one(strings.Repeat("x", groundingClaimBytes+1), bridge)))
	if err != nil || got[0].Label != Unjudged || got[0].Err != nil || got[1].Err == nil || got[2].Err == nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []*Grounding{
		{},
		{Project: "p/../../evil"},
		{URL: server.URL, Token: func(context.Context) (string, error) { return "", errors.New("no token") }},
	} {
		if _, err := bad.Check(t.Context(), one("A.", bridge)); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	if got, err := g.Check(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
