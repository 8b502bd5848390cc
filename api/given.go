package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

// givenOrder is an answer as text, with what its marks refer to.
type givenOrder struct {
	// the text, in which marks such as [1] cite the documents
	Text string `json:"text" required:"" minLength:"1"`
	// the documents in the order in which the model had them: strings, flat objects, or objects with id and data
	Documents json.RawMessage `json:"documents"`
	// what was asked: the question as a string, or the request to the model
	Request json.RawMessage `json:"request"`
}

// newAnswer stores the answer in the body: a provider's response, an answer document, or text with documents.
func (a *API) newAnswer(w *httpx.Reply, r *httpx.Request) error {
	call, err := gateway.NewGiven(r.Request, r.Who)
	if err != nil {
		return err
	}
	body, release, err := a.bodies.Read(w, r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
	call.Bytes = int64(len(body))
	opts := ibid.DecodeOptions{Format: r.Params.Get("format"), Context: r.Context()}
	if body, err = readParts(r.Header.Get("Content-Type"), body, &opts); err != nil {
		return err
	}
	if body, err = readGiven(body, &opts, call); err != nil {
		return err
	}
	answer, read, err := a.readAnswer(r, body, &opts)
	if err != nil {
		return err
	}
	defer read()
	if IsBlank(answer) {
		return unreadable("there is no answer in the body", `send a provider's response, an answer document, or `+
			`{"text": "… [1]", "documents": ["…"]}`)
	}
	settleGiven(answer)
	if err := answer.Check(); err != nil {
		return unreadable(text.Line(err.Error(), maxReason), "docs/answer.md describes the document")
	}
	call.Answer = answer
	AddPrompt(call, &opts)
	if err := a.Keep(r.Context(), call); err != nil {
		return err
	}
	h := w.Header()
	h.Set(gateway.AnswerHeader, call.AnswerID)
	h.Set(gateway.RunHeader, call.Run)
	h.Set("Location", "/v1/answers/"+call.AnswerID)
	if call.Publish {
		a.reader.CatchUp(r.Context())
		a.cite(h, r, call)
	}
	return w.JSON(http.StatusCreated, showCall(call, documentOptions(r)))
}

// readGiven returns the text of a body that is text with documents, for which it sets the options; any other body is
// returned as it is.
func readGiven(body []byte, opts *ibid.DecodeOptions, c *store.Call) ([]byte, error) {
	var members map[string]json.RawMessage
	if opts.Format != "" || !isObject(body) || json.Unmarshal(body, &members) != nil || members["text"] == nil {
		return body, nil //nolint:nilerr // what is no such object may be a response
	}
	for name := range members {
		if name != "text" && name != "documents" && name != "request" {
			return body, nil
		}
	}
	var q givenOrder
	if err := httpx.DecodeJSON(bytes.NewReader(body), &q); err != nil {
		return nil, err
	}
	if q.Text == "" {
		return nil, httpx.BadRequest("text: empty", "")
	}
	var question string
	switch {
	case isAbsent(q.Request):
	case json.Unmarshal(q.Request, &question) == nil:
		c.Prompt = []store.Message{{Role: store.RoleUser, Text: question}}
	default:
		opts.Request = q.Request
	}
	if !isAbsent(q.Documents) {
		var err error
		if opts.Documents, err = readDocuments(q.Documents); err != nil {
			return nil, err
		}
	}
	opts.Format = ibid.Generic
	return []byte(q.Text), nil
}

// settleGiven fills in what a document written by other software may leave out.
func settleGiven(answer *ibid.Answer) {
	for i := range answer.Sources {
		switch s := &answer.Sources[i]; {
		case s.Kind != "":
		case s.URL != "":
			s.Kind = ibid.Web
		default:
			s.Kind = ibid.DocumentKind
		}
	}
	for i := range answer.Citations {
		if c := &answer.Citations[i]; c.Claim == (ibid.Span{}) && c.Placed() {
			c.Claim = c.Span
		}
	}
}

// AddPrompt adds the messages of the request that an answer was decoded with, if it can be read.
func AddPrompt(c *store.Call, opts *ibid.DecodeOptions) {
	if len(opts.Request) == 0 {
		return
	}
	asked, err := call.ReadRequest(c.Answer.Format, opts.Request)
	if err != nil {
		return
	}
	for _, m := range asked.Messages {
		c.Prompt = append(c.Prompt, store.Message{Role: m.Role, Text: m.Text})
	}
}

// Keep stores an answer that no upstream gave, like a captured one. The error is a problem or for the log.
func (a *API) Keep(ctx context.Context, c *store.Call) error {
	if a.o.Gateway != nil {
		return a.o.Gateway.Submit(ctx, c) //nolint:wrapcheck // it says what failed
	}
	ctx, cancel := context.WithTimeout(ctx, httpx.StoreTime)
	defer cancel()
	return httpx.StoreError("store an answer", a.store.Put(ctx, []*store.Call{c}))
}
