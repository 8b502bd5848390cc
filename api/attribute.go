package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/support"
)

const (
	// maxAttribute limits the bytes of an answer and its sources, before and after decompression.
	maxAttribute = 16 << 20
	// maxPerSentence limits the passages cited for one sentence.
	maxPerSentence = 10
)

// attributeOrder is the body of a request for attribution.
type attributeOrder struct {
	// the text, or as an object a provider's response or an answer document
	Answer json.RawMessage `json:"answer" required:""`
	// the texts that its sentences may rest on
	Sources support.GivenTexts `json:"sources" required:"" minItems:"1"`
	// the request that the response answers
	Request json.RawMessage `json:"request"`
	// the documents that the model was given: strings, flat objects, or objects with id and data
	Documents json.RawMessage `json:"documents"`
	// the lowest closeness of a citation, above 0 and at most 1; 0.35 by default
	Threshold *float64 `json:"threshold"`
	// the largest number of passages cited for one sentence, 1 to 10; 2 by default
	PerSentence *int `json:"per_sentence"`
	// whether sentences that have a citation get more
	Cited bool `json:"cited"`
	// whether attribution has all sentences, with the passages considered for each
	Explain bool `json:"explain"`
}

// attributedBody is an answer document with what attribution found.
type attributedBody struct {
	*ibid.Document

	Attribution *support.AttributionReport `json:"attribution"`
}

// attribute finds citations for the sentences of an answer that have none.
func (a *API) attribute(w *httpx.Reply, r *httpx.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}
	body, release, err := a.readWork(w, r, maxAttribute, checkMemory)
	if err != nil {
		return err
	}
	defer release()
	var q attributeOrder
	if err := httpx.DecodeJSON(bytes.NewReader(body), &q); err != nil {
		return err
	}
	opts, err := q.options()
	if err != nil {
		return err
	}
	opts.Checker = a.checker
	answer, decoded, err := a.givenAnswer(r, q.Answer, q.Request, q.Documents)
	if err != nil {
		return err
	}
	defer decoded()
	docs := q.Sources.Documents()
	found, err := Attribute(r.Context(), answer, docs, opts)
	if err != nil {
		return err
	}
	if form != asJSON {
		return showAnswer(w, r, http.StatusOK, found.Answer, form)
	}
	show := documentOptions(r)
	return w.JSON(http.StatusOK, attributedBody{
		found.Answer.Document(&show),
		found.Report(docs, &support.AttributionReportOptions{Unit: show.Unit, Explain: q.Explain}),
	})
}

// Attribute finds citations for the sentences of an answer: those that its own marks name, and those that documents
// support.
func Attribute(
	ctx context.Context, answer *ibid.Answer, docs []support.Document, o *support.AttributeOptions,
) (*support.Attribution, error) {
	marked, err := support.WithMarks(ctx, answer, docs)
	if err != nil {
		return nil, fmt.Errorf("attribute an answer: %w", err)
	}
	return support.Attribute(ctx, marked, docs, o) //nolint:wrapcheck // it says what failed
}

func (q *attributeOrder) options() (*support.AttributeOptions, error) {
	o := &support.AttributeOptions{Cited: q.Cited, Compare: true}
	if t := q.Threshold; t != nil {
		if !(*t > 0 && *t <= 1) {
			return nil, httpx.BadRequest("threshold: not a number above 0 and at most 1", "the default is 0.35")
		}
		o.Threshold = *t
	}
	if n := q.PerSentence; n != nil {
		if *n < 1 || *n > maxPerSentence {
			return nil, httpx.BadRequest(
				fmt.Sprintf("per_sentence: not a whole number from 1 to %d", maxPerSentence), "the default is 2")
		}
		o.PerSentence = *n
	}
	if len(q.Sources) == 0 {
		return nil, httpx.BadRequest("sources: missing or empty", "each is "+support.GivenForm)
	}
	if err := q.Sources.Check(); err != nil {
		return nil, httpx.BadRequest("sources: "+err.Error(), "nothing is fetched: send the texts")
	}
	return o, nil
}

// givenAnswer reads an answer that is a member of a request: a string of text, or an object that is an answer document
// or a provider's response. Call release when it is no longer needed.
func (a *API) givenAnswer(
	r *httpx.Request, answer, request, documents json.RawMessage,
) (*ibid.Answer, func(), error) {
	opts := ibid.DecodeOptions{Context: r.Context()}
	var words string
	switch {
	case isAbsent(answer):
		return nil, nil, httpx.BadRequest("answer: missing", "it is text, a provider's response or an answer document")
	case answer[0] == '{':
	case json.Unmarshal(answer, &words) != nil:
		return nil, nil, httpx.BadRequest(
			"answer: neither a string nor an object", "it is text, a provider's response or an answer document")
	case strings.TrimSpace(words) == "":
		return nil, nil, httpx.BadRequest("answer: empty", "")
	default:
		answer, opts.Format = json.RawMessage(words), ibid.Generic
	}
	if !isAbsent(request) {
		opts.Request = request
	}
	if !isAbsent(documents) {
		var err error
		if opts.Documents, err = readDocuments(documents); err != nil {
			return nil, nil, err
		}
	}
	return a.readAnswer(r, answer, &opts)
}

// isAbsent reports whether a member is missing or null.
func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// readAnswer reads an answer document, or decodes a response. Call release when it is no longer needed.
func (a *API) readAnswer(
	r *httpx.Request, data []byte, opts *ibid.DecodeOptions,
) (answer *ibid.Answer, release func(), err error) {
	if opts.Format != "" || !IsDocument(data) {
		return a.Decode(r, data, opts)
	}
	if release, err = a.bodies.HoldWork(r.Who, len(data), gateway.DecodeMemory); err != nil {
		return nil, nil, err
	}
	answer = &ibid.Answer{}
	if err := json.Unmarshal(data, answer); err != nil {
		release()
		return nil, nil, unreadable(text.Line(err.Error(), maxReason), "docs/answer.md describes the document")
	}
	return answer, release, nil
}

// IsDocument reports whether data is an answer document: an object with members that only these have.
func IsDocument(data []byte) bool {
	var head struct {
		Version   *int            `json:"version"`
		Text      *string         `json:"text"`
		Unit      *string         `json:"unit"`
		Citations json.RawMessage `json:"citations"`
	}
	data = bytes.TrimSpace(data)
	return bytes.HasPrefix(data, []byte("{")) && json.Unmarshal(data, &head) == nil &&
		head.Version != nil && head.Text != nil && head.Unit != nil && head.Citations != nil
}

// render writes an answer document in another form.
func (a *API) render(w *httpx.Reply, r *httpx.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}
	body, release, err := a.bodies.Read(w, r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
	if !IsDocument(body) {
		return unreadable("the body is not an answer document: an object with version, text, unit and citations",
			"POST /v1/decode reads a provider's response")
	}
	answer, read, err := a.readAnswer(r, body, &ibid.DecodeOptions{})
	if err != nil {
		return err
	}
	defer read()
	return showAnswer(w, r, http.StatusOK, answer, form)
}
