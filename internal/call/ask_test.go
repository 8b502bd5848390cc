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
			Ask{Model: "m", System: "s", User: "u", Schema: json.RawMessage(`{"type":"object"}`), Name: "n", Steady: true},
			`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}},` +
				`"stream":false,"temperature":0}`,
		},
	} {
		body := testenv.Must(test.ask.Body())(t)
		testenv.Equal(t, test.about, test.want, string(body))
	}
	if _, err := (&Ask{Schema: json.RawMessage("{")}).Body(); err == nil {
		t.Error("a schema that is no JSON is no error")
	}
}

func TestReadUsage(t *testing.T) {
	for body, want := range map[string][2]int{
		` {"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}} `: {12, 3},
		`{"usage":{"prompt_tokens":-1}}`:                                           {}, `{"usage":null}`: {}, "": {}, "[]": {},
	} {
		in, out := ReadUsage([]byte(body))
		testenv.Equal(t, body, want, [2]int{in, out})
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
