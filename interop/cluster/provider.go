package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	mockName = "mock" // of the upstream
	callPath = "/" + mockName + "/v1/chat/completions"

	pieces    = 16                    // per answer
	pieceTime = 25 * time.Millisecond // between two pieces: an answer takes 0.4 s
	sources   = 3
)

// question returns the request of a streamed call whose answer is derived from a word, so that both ends know it.
func question(word string) string {
	return fmt.Sprintf(`{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":%q}]}`, word)
}

// answerText is the text of the answer for a word, different for each word.
func answerText(word string) string {
	var b strings.Builder
	for i := range pieces {
		b.WriteString(answerPiece(word, i))
	}
	return b.String()
}

func answerPiece(word string, i int) string {
	return fmt.Sprintf("Heron %d of %s: café 東京 🐦. ", i, word)
}

// answerEvents are the events of the stream for a word, and answerBody is all of them.
func answerEvents(word string) []string {
	head := `data: {"id":"chatcmpl-` + word + `","object":"chat.completion.chunk","model":"gpt-4o",` +
		`"choices":[{"index":0,`
	var all []string
	for i := range pieces {
		all = append(all, fmt.Sprintf(`%s"delta":{"content":%q}}]}`+"\n\n", head, answerPiece(word, i)))
	}
	var cited []string
	for i := range sources {
		cited = append(cited, fmt.Sprintf(`{"type":"url_citation","url_citation":`+
			`{"start_index":%d,"end_index":%d,"title":"Source %d","url":"https://example.org/%s/%d"}}`,
			i*10, i*10+5, i, word, i))
	}
	return append(all,
		fmt.Sprintf(`%s"delta":{"annotations":[%s]}}]}`+"\n\n", head, strings.Join(cited, ",")),
		head+`"delta":{},"finish_reason":"stop"}]}`+"\n\n", endMark)
}

const endMark = "data: [DONE]\n\n"

func answerBody(word string) string { return strings.Join(answerEvents(word), "") }

// provider is the upstream: it streams the answer for the requested word at a steady pace.
func provider(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(body, &asked)
	}
	if err != nil || len(asked.Messages) != 1 {
		http.Error(w, "not a question", http.StatusBadRequest)
		return
	}
	word := asked.Messages[0].Content
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for i, event := range answerEvents(word) {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		if err := flush(); err != nil {
			return
		}
		if i < pieces {
			time.Sleep(pieceTime)
		}
	}
}
