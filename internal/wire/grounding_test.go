package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGroundingCheck(t *testing.T) {
	for want, g := range map[string]GroundingCheck{
		`{"answerCandidate":"a","facts":[{"factText":"b"},{"factText":""}],"groundingSpec":{"citationThreshold":0.7,"enableClaimLevelScore":true}}`: {Text: "a", Facts: []string{"b", ""}, Threshold: .7},
		`{"answerCandidate":"","facts":[],"groundingSpec":{"enableClaimLevelScore":true}}`:                                                          {},
	} {
		body, err := g.Body()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(body)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestReadGrounding(t *testing.T) {
	number := func(f float64) *float64 { return &f }
	for _, test := range []struct {
		about, body string
		want        *Grounding // nil: an error
	}{
		{
			"all", `
			{"supportScore":0.75,
			 "citedChunks":[{"chunkText":"A fact.","source":"0","index":"0"},{"chunkText":"Another."}],
			 "citedFacts":[{"chunkText":"A fact."}],
			 "claims":[
				{"startPos":0,"endPos":7,"claimText":"A fact.","citationIndices":[0,1],"groundingCheckRequired":true,"score":0.9},
				{"startPos":8,"endPos":14,"claimText":"Hello!","groundingCheckRequired":false},
				{"startPos":15,"endPos":20,"antiCitationIndices":[1]}]}`,
			&Grounding{
				Score:  number(.75),
				Chunks: []GroundedChunk{{"A fact.", 0}, {"Another.", -1}},
				Claims: []GroundedClaim{
					{Start: 0, End: 7, Score: number(.9), For: []int{0, 1}},
					{Start: 8, End: 14, Unchecked: true},
					{Start: 15, End: 20, Against: []int{1}},
				},
			},
		},
		{"a score alone", `{"supportScore":0}`, &Grounding{Score: number(0)}},
		{"no score", `{"claims":[]}`, &Grounding{}},
		{
			"damaged", `{"supportScore":"high","citedChunks":[7,{"source":"x"}],"claims":["x",{"citationIndices":[2,-1,"1",null]}]}`,
			&Grounding{Chunks: []GroundedChunk{{"", -1}, {"", -1}}, Claims: []GroundedClaim{{}, {For: []int{1}}}},
		},
		{"an error", `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`, nil},
		{"an array", `[{"supportScore":1}]`, nil},
		{"nothing", "", nil},
		{"a page", "<html>", nil},
	} {
		t.Run(test.about, func(t *testing.T) {
			got, err := ReadGrounding([]byte(test.body))
			if (err == nil) != (test.want != nil) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
