package call

import (
	"encoding/json"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestAsk(t *testing.T) {
	for _, test := range []struct {
		about string
		ask   Ask
		want  string
	}{
		{
			"no more than a question",
			Ask{Model: "m", User: "Is <a> & b?"},
			`{"model":"m","messages":[{"role":"user","content":"Is <a> & b?"}],"stream":false}`,
		},
		{
			"all",
			Ask{Model: "m", System: "s", User: "u", Schema: json.RawMessage(`{"type":"object"}`), Name: "n", Alternatives: 5},
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}},` +
				`"logprobs":true,"top_logprobs":5,"stream":false,"temperature":0}`,
		},
	} {
		body := testenv.Must(test.ask.Body())(t)
		testenv.Equal(t, test.about, test.want, string(body))
	}
	if _, err := (&Ask{Schema: json.RawMessage("{")}).Body(); err == nil {
		t.Error("a schema that is no JSON is no error")
	}
}

func TestReadTokens(t *testing.T) {
	got := ReadTokens([]byte(` {"choices":[{"logprobs":{"content":[
		{"token":"Ye","logprob":-0.1,"bytes":[89,101],"top_logprobs":[{"token":"Ye","logprob":-0.1},{"token":"No","logprob":"-2.5"},{"token":"?","logprob":null}]},
		{"token":"s"}]}},{"logprobs":{"content":[{"token":"another"}]}}]} `))
	want := []Token{{"Ye", []Alternative{{"Ye", -0.1}, {"No", -2.5}}}, {Text: "s"}}
	testenv.Equal(t, "", want, got)
	for _, body := range []string{"", "null", "[]", `{"choices":[]}`, `{"choices":[{"logprobs":null}]}`, `{"choices":{"logprobs":{}}}`, `{"choices":[{"logprobs":{"content":"x"}`} {
		if got := ReadTokens([]byte(body)); got != nil {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func TestGroundingCheck(t *testing.T) {
	for want, g := range map[string]GroundingCheck{
		`{"answerCandidate":"a","facts":[{"factText":"b"},{"factText":""}],"groundingSpec":{"citationThreshold":0.7,"enableClaimLevelScore":true}}`: {Text: "a", Facts: []string{"b", ""}, Threshold: .7},
		`{"answerCandidate":"","facts":[],"groundingSpec":{"enableClaimLevelScore":true}}`:                                                          {},
	} {
		body := testenv.Must(g.Body())(t)
		testenv.Equal(t, "", want, string(body))
	}
}

func TestReadGrounding(t *testing.T) {
	for _, test := range testenv.Table[struct {
		About, Body string
		Want        *Grounding // nil for an error
	}](t, "testdata/tables/read-grounding.txt") {
		t.Run(test.About, func(t *testing.T) {
			got, err := ReadGrounding([]byte(test.Body))
			if (err == nil) != (test.Want != nil) {
				t.Fatal(err)
			}
			testenv.Equal(t, "", test.Want, got)
		})
	}
}
