package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/unpack"
)

const (
	// maxDecode is how many bytes a response to decode can have, with the request and the documents that go with it,
	// before and after it is unpacked.
	maxDecode = 64 << 20
	// maxDecoding is how many bytes may be decoded at the same time, by all callers.
	maxDecoding = 8 * maxDecode
	// decodeFor is how long a client may take to send them, or another body that is not small.
	decodeFor = 2 * time.Minute
)

// The names of the parts of a multipart body.
const (
	partResponse  = "response"
	partRequest   = "request"
	partDocuments = "documents"
)

// decode makes an answer document of a provider's response.
func (a *API) decode(w http.ResponseWriter, r *request) error {
	form, err := r.params.form()
	if err != nil {
		return err
	}
	doc, err := r.params.document()
	if err != nil {
		return err
	}
	opts := ibid.DecodeOptions{Format: r.params["format"]}
	if opts.Format != "" {
		if _, err := r.params.choice("format", ibid.Formats()); err != nil {
			return err
		}
	}
	release, err := a.reserve(r, maxDecode)
	if err != nil {
		return err
	}
	defer release()
	body, err := readResponse(w, r, &opts)
	if err != nil {
		return err
	}
	answer, err := ibid.Decode(body, &opts)
	if err := judge(answer, err, opts.Format); err != nil {
		return err
	}
	if form == asJSON {
		return writeJSON(w, r, http.StatusOK, answer.Document(&doc))
	}
	if answer.Error != nil && answer.Text == "" {
		return unreadable("the provider answered with an error: "+answer.Error.Error(), "as=json shows it")
	}
	out, err := renderAnswer(answer, form, &export.Options{Unit: doc.Unit})
	if err != nil {
		return fmt.Errorf("write an answer as %s: %w", form, err)
	}
	write(w, r, http.StatusOK, mediaType(form), out)
	return nil
}

// reserve keeps the bodies that are decoded at the same time from filling the memory.
func (a *API) reserve(r *request, limit int64) (release func(), err error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	size := r.ContentLength
	if size < 0 || r.Header.Get("Content-Encoding") != "" {
		size = limit
	}
	if !a.decodes.TryAcquire(size) {
		return nil, gateway.Unavailable("too much is being decoded at the same time")
	}
	return func() { a.decodes.Release(size) }, nil
}

// judge says why nothing can be shown. What merely breaks off can.
func judge(a *ibid.Answer, err error, format string) error {
	blank := a.ID == "" && a.Text == "" && len(a.Sources) == 0 && len(a.ToolCalls) == 0 && a.Finish == "" &&
		a.Error == nil
	switch {
	case errors.Is(err, ibid.ErrEmpty):
		return unreadable("the body is empty", "send the provider's response as it came: curl --data-binary @FILE")
	case errors.Is(err, ibid.ErrBinary):
		return unreadable(
			"the body is not JSON, an event stream or text", "if it is compressed, say how in Content-Encoding",
		)
	case err != nil && blank:
		return unreadable(err.Error(), "nothing of it could be read")
	case blank && format != "" && format != ibid.Generic:
		return unreadable("nothing in it is of the format "+format, "without format it is recognised")
	}
	return nil
}

func unreadable(detail, hint string) error {
	return &gateway.Problem{
		Status: http.StatusUnprocessableEntity,
		Code:   gateway.CodeUnreadable,
		Detail: detail,
		Hint:   hint,
	}
}

// readResponse reads the response to decode, and what goes with it into opts.
func readResponse(w http.ResponseWriter, r *request, opts *ibid.DecodeOptions) ([]byte, error) {
	return unpacked(w, r, maxDecode, func(body io.Reader) ([]byte, error) {
		mediaType, attributes, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if !strings.HasPrefix(mediaType, "multipart/") {
			return readAll(body) // whatever it says it is: curl calls everything a form
		}
		if err != nil || mediaType != "multipart/form-data" || attributes["boundary"] == "" {
			return nil, &gateway.Problem{
				Status: http.StatusUnsupportedMediaType,
				Code:   gateway.CodeMediaType,
				Detail: "a multipart body must be multipart/form-data with a boundary",
				Hint:   "curl --form response=@FILE --form request=@FILE",
			}
		}
		return readParts(multipart.NewReader(body, attributes["boundary"]), opts)
	})
}

// readBody reads a body of up to so many bytes, packed and unpacked.
func readBody(w http.ResponseWriter, r *request, limit int64) ([]byte, error) {
	return unpacked(w, r, limit, readAll)
}

// unpacked calls read with the body as it was before its Content-Encoding, and keeps its size and its time within
// bounds.
func unpacked(w http.ResponseWriter, r *request, limit int64, read func(io.Reader) ([]byte, error)) ([]byte, error) {
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(decodeFor)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	packed := http.MaxBytesReader(w, r.Body, limit)
	coding, known := unpack.Find(r.Header.Get("Content-Encoding"))
	if !known {
		return nil, &gateway.Problem{
			Status: http.StatusUnsupportedMediaType,
			Code:   gateway.CodeMediaType,
			Detail: "the body's Content-Encoding cannot be unpacked",
			Hint:   "it is one of gzip, deflate, br, zstd",
			Header: http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}},
		}
	}
	plain, err := coding.Reader(packed, unpack.MaxWindow)
	if err != nil {
		return nil, badBody(err)
	}
	return read(unpack.Limit(plain, limit, &http.MaxBytesError{Limit: limit}))
}

// readParts reads the parts of a multipart body. It returns the response.
func readParts(form *multipart.Reader, opts *ibid.DecodeOptions) ([]byte, error) {
	names := []string{partResponse, partRequest, partDocuments}
	parts := map[string][]byte{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, badBody(err)
		}
		name := part.FormName()
		if _, twice := parts[name]; twice || !slices.Contains(names, name) {
			return nil, badRequest(
				fmt.Sprintf("the part %q is one too many", cut(name)),
				"there is one each of "+strings.Join(names, ", "),
			)
		}
		if parts[name], err = readAll(part); err != nil {
			return nil, err
		}
	}
	response, found := parts[partResponse]
	if !found {
		return nil, badRequest("the part response is missing", "curl --form response=@FILE")
	}
	opts.Request = parts[partRequest]
	if raw, found := parts[partDocuments]; found {
		documents, err := ibid.ReadDocuments(raw)
		if err != nil {
			return nil, badRequest(
				err.Error(),
				`they are a JSON array of strings, flat objects or {"id", "data"}; a whole request is the part request`,
			)
		}
		opts.Documents = documents
	}
	return response, nil
}

func readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, badBody(err)
	}
	return body, nil
}

// badBody says why a body could not be read. Limits keep their own words.
func badBody(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return large
	}
	return badRequest(
		"the body cannot be read: "+cut(err.Error()),
		"if it is compressed, Content-Encoding says how: gzip, deflate, br or zstd; else leave that out",
	)
}
