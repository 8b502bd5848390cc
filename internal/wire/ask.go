package wire

import (
	"bytes"
	"encoding/json"

	"github.com/ibidhq/ibid/internal/scan"
)

// Ask is one question to the chat API that OpenAI's clients speak and many servers understand.
type Ask struct {
	Model  string
	System string // instructions; empty: none
	User   string
	// Schema is a JSON schema that the answer must follow, Name what the API calls it. Empty: the answer is free.
	Schema json.RawMessage
	Name   string
	// Alternatives asks for the probabilities of so many alternatives at each token; 0: for none.
	Alternatives int
}

type askRequest struct {
	Model          string        `json:"model"`
	Messages       []roleContent `json:"messages"`
	ResponseFormat *askFormat    `json:"response_format,omitempty"`
	Logprobs       bool          `json:"logprobs,omitempty"`
	TopLogprobs    int           `json:"top_logprobs,omitempty"`
	Stream         bool          `json:"stream"`
	Temperature    *float64      `json:"temperature,omitempty"`
}

type askFormat struct {
	Type   string    `json:"type"`
	Schema askSchema `json:"json_schema"`
}

type askSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// Body returns the request's body. With alternatives it also asks for a temperature of 0: models that refuse the one
// refuse the other.
func (a *Ask) Body() ([]byte, error) {
	r := askRequest{Model: a.Model}
	if a.System != "" {
		r.Messages = append(r.Messages, roleContent{RoleSystem, a.System})
	}
	r.Messages = append(r.Messages, roleContent{RoleUser, a.User})
	if len(a.Schema) > 0 {
		r.ResponseFormat = &askFormat{
			Type:   "json_schema",
			Schema: askSchema{Name: a.Name, Strict: true, Schema: a.Schema},
		}
	}
	if a.Alternatives > 0 {
		r.Logprobs, r.TopLogprobs, r.Temperature = true, a.Alternatives, new(float64)
	}
	return Encode(r)
}

// Token is one token of an answer.
type Token struct {
	Text         string
	Alternatives []Alternative // the likeliest tokens at this place, itself among them
}

// Alternative is a token that could have stood at a place.
type Alternative struct {
	Text string
	Log  float64 // the natural logarithm of its probability
}

// ReadTokens returns the tokens of an answer to [Ask], if the server sent their probabilities; nil: it did not.
// Alternatives without a number are left out.
func ReadTokens(body []byte) []Token {
	var tokens []Token
	first := scan.Elements(scan.Value(bytes.TrimSpace(body)).Get("choices"))
	if !first.Next() {
		return nil
	}
	for each := scan.Elements(first.Val.Get("logprobs").Get("content")); each.Next(); {
		t := Token{Text: each.Val.Get("token").Str()}
		for other := scan.Elements(each.Val.Get("top_logprobs")); other.Next(); {
			if log, ok := other.Val.Get("logprob").Float(); ok {
				t.Alternatives = append(t.Alternatives, Alternative{other.Val.Get("token").Str(), log})
			}
		}
		tokens = append(tokens, t)
	}
	return tokens
}
