package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
)

const (
	// maxDecode limits the bytes of a response to decode with its request and documents, before and after
	// decompression.
	maxDecode = 64 << 20
)

// decode returns the answer document of a provider's response.
func (a *API) decode(w *httpx.Reply, r *httpx.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}
	opts := ibid.DecodeOptions{Format: r.Params.Get("format"), Context: r.Context()}
	body, release, err := a.bodies.Read(w, r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
	if body, err = readParts(r.Header.Get("Content-Type"), body, &opts); err != nil {
		return err
	}
	answer, decoded, err := a.Decode(r, body, &opts)
	if err != nil {
		return err
	}
	defer decoded()
	return showAnswer(w, r, http.StatusOK, answer, form)
}

// showAnswer sends an answer that is not stored in a form.
func showAnswer(w *httpx.Reply, r *httpx.Request, status int, answer *ibid.Answer, form string) error {
	doc := documentOptions(r)
	if form == asJSON {
		return w.JSON(status, answer.Document(&doc))
	}
	if answer.Error != nil && answer.Text == "" {
		return unreadable("the provider answered with an error: "+answer.Error.Error(), "use as=json to see it")
	}
	out, err := RenderAnswer(
		answer, form, nil, &export.Options{Unit: doc.Unit, Numbers: doc.Numbers, Context: r.Context()},
	)
	if err != nil {
		return fmt.Errorf("write an answer as %s: %w", form, err)
	}
	w.Body(status, MediaType(form), out)
	return nil
}

// Decode decodes a response that was sent with r. It reserves the memory that this takes: call release when the answer
// is no longer needed. The error is a problem, and leaves nothing to release.
func (a *API) Decode(
	r *httpx.Request, body []byte, opts *ibid.DecodeOptions,
) (answer *ibid.Answer, release func(), err error) {
	release, err = a.bodies.HoldWork(r.Who, len(body)+len(opts.Request), gateway.DecodeMemory)
	if err != nil {
		return nil, nil, err
	}
	opts.Mappings = a.o.Mappings
	answer, err = ibid.Decode(body, opts)
	if r.Context().Err() != nil {
		err = context.Cause(r.Context())
	} else {
		err = judge(answer, err, opts.Format)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return answer, release, nil
}

// IsBlank reports whether nothing was found in a response, not even an end or an error.
func IsBlank(a *ibid.Answer) bool {
	return a.ID == "" && a.Text == "" && len(a.Sources)+len(a.ToolCalls) == 0 && a.Finish == "" && a.Error == nil
}

// judge returns an error if there is nothing to show. A truncated response is not an error.
func judge(a *ibid.Answer, err error, format string) error {
	blank := IsBlank(a)
	switch {
	case errors.Is(err, ibid.ErrEmpty):
		return unreadable("the body is empty", "send the provider's response unchanged: curl --data-binary @FILE")
	case errors.Is(err, ibid.ErrBinary):
		return unreadable(
			"the body is not JSON, an event stream or text", "if it is compressed, set Content-Encoding",
		)
	case err != nil && blank:
		return unreadable(err.Error(), "none of it could be read")
	case blank && format != "" && format != ibid.Generic:
		return unreadable("nothing in it has the format "+format, "without format, it is detected")
	}
	return nil
}

// readDocuments reads the documents that a model was given.
func readDocuments(raw []byte) ([]ibid.Source, error) {
	documents, err := ibid.ReadDocuments(raw)
	if err != nil {
		return nil, httpx.BadRequest(err.Error(), `documents are a JSON array of strings, flat objects or {"id", `+
			`"data"}; a request is not among them`)
	}
	return documents, nil
}

func unreadable(detail, hint string) error {
	return gateway.NewProblem(gateway.CodeUnreadable, detail, hint)
}

// readParts returns the response to decode and sets the other parts in opts. A body that is not multipart is the
// response, whatever its Content-Type: curl sends everything as a form by default.
func readParts(mediaType string, body []byte, opts *ibid.DecodeOptions) ([]byte, error) {
	mediaType, attributes, err := mime.ParseMediaType(mediaType)
	if !strings.HasPrefix(mediaType, "multipart/") {
		return body, nil
	}
	if err != nil || mediaType != "multipart/form-data" || attributes["boundary"] == "" {
		return nil, gateway.NewProblem(gateway.CodeMediaType,
			"a multipart body must be multipart/form-data with a boundary",
			"curl --form response=@FILE --form request=@FILE")
	}
	names := []string{"response", "request", "documents"}
	parts := map[string][]byte{}
	form := multipart.NewReader(bytes.NewReader(body), attributes["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, httpx.BadRequest("the body cannot be read: "+httpx.Said(err.Error()), "")
		}
		name := part.FormName()
		if _, twice := parts[name]; twice || !slices.Contains(names, name) {
			return nil, httpx.BadRequest(fmt.Sprintf("the part %q is unknown or repeated", httpx.Said(name)),
				"send at most one each of "+strings.Join(names, ", "))
		}
		if parts[name], err = io.ReadAll(part); err != nil {
			return nil, httpx.BadRequest("the body cannot be read: "+httpx.Said(err.Error()), "")
		}
	}
	response, found := parts["response"]
	if !found {
		return nil, httpx.BadRequest("the part response is missing", "curl --form response=@FILE")
	}
	opts.Request = parts["request"]
	if raw, found := parts["documents"]; found {
		if opts.Documents, err = readDocuments(raw); err != nil {
			return nil, err
		}
	}
	return response, nil
}
