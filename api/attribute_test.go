package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// attributed is the part of a response that the tests look at.
type attributed struct {
	Citations []struct {
		Source string `json:"source_id"`
		Origin string `json:"origin"`
		Start  int    `json:"text_start"`
	} `json:"citations"`
	Attribution struct {
		Uncited, Differs []struct {
			Start int    `json:"text_start"`
			Text  string `json:"text"`
		}
		Sentences *[]struct{ Candidates []any }
	} `json:"attribution"`
}

// An answer may be text, a provider's response or a document; marks of its own are citations already.
func TestAttribute(t *testing.T) {
	n := newNode(t, nil)
	const sources = `"sources": [{"id": "birds", "text": "Herons eat fish.\n\nOwls have 9 eggs."}, {"page_content": "Ferns grow in shade."}]`
	response := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	for name, answer := range map[string]string{
		"text":     `"é: Herons eat fish. Owls have 8 eggs. Moss is green."`,
		"document": document(t, "é: Herons eat fish. Owls have 8 eggs. Moss is green.", nil, nil),
	} {
		res := n.do(t, "POST", "/v1/attribute?unit=code-point", `{"answer": `+answer+`, `+sources+`, "explain": true}`)
		var got attributed
		if err := json.Unmarshal([]byte(res.body), &got); err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", name, res.StatusCode, res.body)
		}
		a := got.Attribution
		if len(got.Citations) != 1 || got.Citations[0].Source != "birds" || got.Citations[0].Origin != "inferred" || len(a.Uncited) != 2 ||
			a.Uncited[1].Text != "Moss is green." || a.Uncited[1].Start != 38 || len(a.Differs) != 1 || a.Differs[0].Text != "Owls have 8 eggs." ||
			a.Sentences == nil || len(*a.Sentences) != 3 {
			t.Errorf("%s: %s", name, res.body)
		}
	}
	for body, want := range map[string]string{
		`{"answer": "Moss is green [2].", ` + sources + `}`:                  "Ferns grow",
		`{"answer": ` + response + `, ` + sources + `, "threshold": 1}`:      "harbour.example/rules",
		`{"answer": "Herons eat fish.", "per_sentence": 1, ` + sources + `}`: "birds",
	} {
		res := n.do(t, "POST", "/v1/attribute", body)
		if res.StatusCode != 200 || !strings.Contains(res.body, want) || strings.Contains(res.body, `"sentences":`) {
			t.Errorf("%.80s: %d %s", body, res.StatusCode, res.body)
		}
	}
	plain := n.do(t, "POST", "/v1/attribute?as=plain", `{"answer": "Herons eat fish.", `+sources+`}`)
	wantBody(t, plain, "Herons eat fish.[1]\n\nSources:\n\n[1] birds\n")
}

func TestAttributeRefuses(t *testing.T) {
	n := newNode(t, nil)
	for body, status := range map[string]int{
		"": 400, "{}": 400, `{"answer": "x"}`: 400, `{"answer": "x", "sources": []}`: 400, `{"answer": "x", "sources": "y"}`: 400,
		`{"answer": "x", "sources": [1]}`: 400, `{"answer": "x", "sources": [{"url": "https://a.example/"}]}`: 400,
		`{"answer": 7, "sources": ["x"]}`: 400, `{"answer": " ", "sources": ["x"]}`: 400, `{"answer": null, "sources": ["x"]}`: 400,
		`{"answer": "x", "sources": ["x"], "threshold": 0}`: 400, `{"answer": "x", "sources": ["x"], "threshold": 1.5}`: 400,
		`{"answer": "x", "sources": ["x"], "per_sentence": 11}`: 400, `{"answer": "x", "sources": ["x"], "limit": 1}`: 400,
		`{"answer": "x", "sources": ["x"], "documents": {}}`:                                           400,
		`{"answer": {"version":2,"unit":"utf-8","text":"x","citations":[]}, "sources": ["x"]}`:         422,
		`{"answer": {}, "sources": ["x"]}`:                                                             200,
		`{"answer": "x", "sources": ["` + strings.Repeat("x", 16<<20) + `"]}`:                          413,
		`{"answer": "x", "sources": ["x"], "request": null, "documents": null, "threshold": null}`:     200,
		`{"answer": "x", "sources": ["x"], "documents": ["a", {"id": "b", "data": {"text": "text"}}]}`: 200,
	} {
		if res := n.do(t, "POST", "/v1/attribute", body); res.StatusCode != status {
			t.Errorf("%.90s: %d %s, want %d", body, res.StatusCode, res.body, status)
		}
	}
}

// A document that was rendered is what the library renders.
func TestRenderRoute(t *testing.T) {
	n := newNode(t, nil)
	body := vector(t, "openai-responses/azure-web-search.txtar", "body.json")
	a := testenv.Must(ibid.Decode([]byte(body), nil))(t)
	for _, unit := range ibid.Units() {
		given := document(t, body, nil, &ibid.DocumentOptions{Unit: unit})
		wantBody(t, n.do(t, "POST", "/v1/render", given), document(t, body, nil, nil))
		wantBody(t, n.do(t, "POST", "/v1/render?unit=utf-16&style=html", given),
			document(t, body, nil, &ibid.DocumentOptions{Unit: ibid.UTF16, Style: ibid.StyleHTML}))
		for _, style := range ibid.Styles() {
			want := strings.TrimSuffix(a.Render(&ibid.RenderOptions{Style: style, List: true}), "\n") + "\n"
			wantBody(t, n.do(t, "POST", "/v1/render?as="+string(style), given), want)
		}
	}
	for _, given := range []string{
		"", "text", "[]", body, `{"version": 1}`, `{"version": 1, "unit": "utf-8", "text": "é", "citations": [{"text_start": 1, "text_end": 2}]}`,
	} {
		wantProblem(t, n.do(t, "POST", "/v1/render", given), 422)
	}
	wantProblem(t, n.do(t, "POST", "/v1/render?as=plain&unit=utf-8", "{}"), 400)
}
