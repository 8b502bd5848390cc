package support

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/call"
)

// Whatever a server answers, the result is a valid verdict with evidence inside the passage.
func FuzzJudgeAnswer(f *testing.F) {
	const mark = "MARKMARKMARK"
	const passage = "The bridge  was opened\nin 1932. It is 503 metres long."
	for _, text := range []string{
		`{"verdicts":[{"id":"MARKMARK-1","quotes":["It is 503 metres long"],"verdict":"supported"},{"id":"MARKMARK-2","quotes":[],"verdict":"unsupported"}]}`,
		"<think>\n</think>```json\n" + `{"why":[1,{}],"verdicts":[{"sure":0.9,"id":"MARKMARK-1","quote":"opened in 1932.","verdict":"contradicted"},null]}` + "\n```",
		`{"verdicts":[{"verdict":"partial","verdict":"supported","id":"MARKMARK-1"}]} {}`,
		"Yes", " no.\n", "Yes, because", `{"verdicts":[{"id":`, "",
	} {
		content, _ := json.Marshal(text)
		f.Add([]byte(`{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":`+string(content)+`}}]}`), passage)
	}
	f.Fuzz(func(t *testing.T, body []byte, passage string) {
		text := answerText(body)
		pair := Pair{Claim: "The bridge was opened in 1933.", Passages: []Passage{{Text: passage}, {Text: "“" + passage + "—"}}}
		asked := []*question{{claim: pair.Claim}, {claim: "Another."}}
		readRulings(text, mark, asked)
		for i, q := range asked {
			checkAnswer(t, &pair, (&Judge{}).verdict(&pair, q))
			var again question
			kept := &MemoryCache{}
			if q.remember(t.Context(), kept); again.cached(t.Context(), kept) == (q.answer.Label == Unjudged) {
				t.Errorf("question %d: %+v is kept, or is not", i, q.answer)
			}
		}
		asked[0].answer = yesOrNo(text)
		checkAnswer(t, &pair, (&Judge{Preset: PresetMiniCheck}).verdict(&pair, asked[0]))
	})
}

// Only valid JSON is read.
func FuzzParseVerdicts(f *testing.F) {
	f.Add([]byte(`{"verdicts":[{"id":"a","quotes":["b"],"verdict":"supported"}]}`))
	f.Add([]byte(` {"x":{"verdicts":[]}, "verdicts" :[ {"n":[-1e3,null],"verdict" : "unsupported"} , {}], "y":0 } `))
	f.Add([]byte("{\"verdicts\":[{\"verdict\":\"\\u0073upported\x80\"}],\"verdicts\":[{\"verdict\":null}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseVerdicts(string(text)); err == nil && !json.Valid(text) {
			t.Error("invalid JSON was read")
		}
	})
}

// Whatever the API answers, the result is a valid verdict with evidence inside the passages.
func FuzzGroundingAnswer(f *testing.F) {
	for _, body := range []string{
		`{"supportScore":0.95,"citedChunks":[{"chunkText":"It is 503 metres long","source":"1"},{"chunkText":"x","source":"9"}],"claims":[{"startPos":0,"endPos":20,"citationIndices":[0,1],"groundingCheckRequired":true,"score":0.9}]}`,
		`{"supportScore":7,"citedChunks":[{"chunkText":"","source":"0"}],"claims":[{"citationIndices":[0,-1,"0"],"antiCitationIndices":[0]},{"score":"x"}]}`,
		`{"supportScore":0}`, `{"claims":[{"groundingCheckRequired":false}]}`, `{"claims":{}}`, "",
	} {
		f.Add([]byte(body), "The bridge was opened. It is 503 metres long.", uint8(0))
		f.Add([]byte(body), "\x80", uint8(3))
		f.Add([]byte(body), " ü\xff", uint8(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, passage string, times uint8) {
		pair := Pair{Claim: "The bridge is 530 metres long.", Passages: []Passage{{Text: passage}, {Text: strings.Repeat(passage, int(times%4)*groundingFactBytes/max(1, len(passage)))}}}
		facts := factsOf(pair.Passages)
		for i, at := range facts {
			checkSpan(t, pair.Passages[at.Passage].Text, at.Span)
			if at.Len() > groundingFactBytes {
				t.Errorf("fact %d has %d bytes", i, at.Len())
			}
			if i > 0 && at.Passage == facts[i-1].Passage && at.Start != facts[i-1].End {
				t.Errorf("fact %d does not begin where the previous one ends", i)
			}
		}
		found, err := call.ReadGrounding(body)
		if err != nil {
			return
		}
		v := Verdict{Label: Unjudged}
		v.ground(&pair, found, facts)
		checkAnswer(t, &pair, v)
	})
}

// checkAnswer checks the invariants of a verdict, whatever the answer.
func checkAnswer(t *testing.T, p *Pair, v Verdict) {
	t.Helper()
	if !slices.Contains([]Label{Supported, Unsupported, Contradicted, Unjudged}, v.Label) {
		t.Errorf("the label %q", v.Label)
	}
	if score := v.Closeness; score != nil && !(*score >= 0 && *score <= 1) {
		t.Errorf("the score %v", *score)
	}
	for _, e := range v.Evidence {
		checkSpan(t, p.Passages[e.Passage].Text, e.Span)
	}
	if v.Err != nil && v.Label != Unjudged {
		t.Errorf("%s with the error %v", v.Label, v.Err)
	}
}
