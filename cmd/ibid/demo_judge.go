package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/support"
)

const (
	// demoJudgeModel names the demo's judge wherever its verdicts are shown. The ending makes ibid ask one claim at a
	// time, to be answered by Yes or No.
	demoJudgeModel = "made-up-minicheck"
	demoJudgePath  = "/judge/v1"
	// demoJudgeClose is the closeness above which the made-up judge says Yes.
	demoJudgeClose = .4
)

// withDemoJudge serves a judge with the chat completions API besides the demo's providers. It is no model: it says Yes
// to claims that are close to the passages, so that the demo can show what verdicts look like.
func withDemoJudge(providers http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", providers)
	mux.HandleFunc("POST "+demoJudgePath+"/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&q); err != nil || len(q.Messages) == 0 {
			http.Error(w, "the request has no messages", http.StatusBadRequest)
			return
		}
		passages, claim, _ := strings.Cut(q.Messages[len(q.Messages)-1].Content, "\nClaim: ")
		verdicts, err := (&support.Lexical{}).Check(r.Context(), []support.Pair{{
			Claim: claim, Passages: []support.Passage{{Text: strings.TrimPrefix(passages, "Document: ")}},
		}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		says := "No"
		if c := verdicts[0].Closeness; verdicts[0].Label != support.Differs && c != nil && *c >= demoJudgeClose {
			says = "Yes"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have left
			"object": "chat.completion", "model": demoJudgeModel,
			"choices": []any{map[string]any{
				"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": says},
			}},
			"usage": map[string]int{"prompt_tokens": len(passages) / 4, "completion_tokens": 1},
		})
	})
	return mux
}
