package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/store"
)

// problemDocs is the page that explains the codes of problems, each under a heading of its own.
const problemDocs = "https://github.com/ibidhq/ibid/blob/main/docs/http.md#"

// The codes of problems, by which a program may tell them apart: a problem's type ends in its code. docs/http.md
// explains them.
const (
	CodeBadRequest   = "bad-request"      // 400
	CodeToken        = "token-needed"     // 401
	CodeForeign      = "foreign-caller"   // 403: Host or Origin
	CodeScope        = "scope-needed"     // 403
	CodeNotFound     = "not-found"        // 404
	CodeMethod       = "wrong-method"     // 405
	CodeConflict     = "conflict"         // 409
	CodeTooLarge     = "too-large"        // 413, 431
	CodeMediaType    = "wrong-media-type" // 415
	CodeUnreadable   = "unreadable"       // 422
	CodePolicy       = "against-policy"   // 422
	CodeTooMany      = "too-many"         // 429
	CodeInternal     = "internal-error"   // 500
	CodeUpstream     = "upstream-error"   // 502
	CodeUnavailable  = "unavailable"      // 503
	CodeUpstreamSlow = "upstream-timeout" // 504
)

// statuses maps the codes of problems to HTTP statuses.
var statuses = map[string]int{
	CodeBadRequest: 400, CodeToken: 401, CodeForeign: 403, CodeScope: 403, CodeNotFound: 404, CodeMethod: 405,
	CodeConflict: 409, CodeTooLarge: 413, CodeMediaType: 415, CodeUnreadable: 422, CodePolicy: 422,
	CodeTooMany: 429, CodeInternal: 500,
	CodeUpstream: 502, CodeUnavailable: 503, CodeUpstreamSlow: 504,
}

// ProblemType returns the type URI of problems with a code, which is the address of its explanation.
func ProblemType(code string) string { return problemDocs + code }

// Problem is an error that ibid reports over HTTP as RFC 9457 specifies. All of it is shown to the client, so it must
// not contain secrets or data of other tenants.
type Problem struct {
	Status int    // the HTTP status; 0 means 500
	Code   string // one of the codes above; if empty, the type is about:blank
	Title  string // the kind of problem; if empty, the status text
	Detail string // what is wrong with this request
	Hint   string // what the caller can do about it; may be empty
	Header http.Header
	// Plain makes the response one sentence of plain text, for clients that display a body as it is.
	Plain bool
}

// NewProblem returns a problem with its code's status.
func NewProblem(code, detail, hint string) *Problem {
	return &Problem{Status: statuses[code], Code: code, Detail: detail, Hint: hint}
}

// Unavailable returns the problem of something that ibid needs and that is not working at the moment, described by
// detail. It tells the client to try again.
func Unavailable(detail string) *Problem {
	p := NewProblem(CodeUnavailable, detail, "try again; /readyz shows what is not working")
	p.Header = http.Header{"Retry-After": {"2"}}
	return p
}

// TooMany returns the problem of a request that may be repeated after a while, which is rounded up to whole seconds.
func TooMany(after time.Duration, detail, hint string) *Problem {
	p := NewProblem(CodeTooMany, detail, hint)
	p.Header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(after.Seconds())))}}
	return p
}

// Error returns the detail, or the title if there is none.
func (p *Problem) Error() string {
	return cmp.Or(p.Detail, p.Title, http.StatusText(p.status()))
}

// sentence returns the error and its hint as one sentence.
func (p *Problem) sentence() string {
	words := strings.TrimRight(p.Error(), ".")
	if p.Hint != "" {
		words += "; " + strings.TrimRight(p.Hint, ".")
	}
	if word, _, _ := strings.Cut(words, " "); !strings.HasSuffix(word, ":") { // otherwise it is a member's name
		first, n := utf8.DecodeRuneInString(words)
		words = string(unicode.ToUpper(first)) + words[n:]
	}
	return words + "."
}

func (p *Problem) status() int { return cmp.Or(p.Status, http.StatusInternalServerError) }

// ProblemOf returns the problem with which an error is reported to the client. An unknown error becomes a 500 that
// reveals nothing about it, so the caller must log it; see [IsInternal].
func ProblemOf(err error) *Problem {
	var p *Problem
	var large *http.MaxBytesError
	var refused *store.RefusedError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, store.ErrNotFound):
		return NewProblem(CodeNotFound, "there is nothing with this id",
			"ids of other tenants, and what was deleted or pruned, look the same as ids that never were")
	case errors.Is(err, store.ErrCursor):
		return NewProblem(CodeBadRequest, "cursor: it is not from a page of this list",
			"take next_cursor of the page before, and leave the other parameters as they were")
	case errors.As(err, &refused) && errors.Is(refused, store.ErrConflict):
		return NewProblem(CodeConflict, refused.Detail,
			"nothing was recorded; a step is known by its id, else by its number: each needs one of its own")
	case errors.As(err, &refused):
		return NewProblem(CodeTooLarge, refused.Detail, "nothing was recorded; keep large inputs and outputs "+
			"elsewhere and record their digests, or begin a run whose parent_run_id is this one")
	case errors.As(err, &large):
		return NewProblem(CodeTooLarge,
			"the request's body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "")
	case errors.Is(err, context.Canceled):
		return Unavailable("the call was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable("it took too long")
	}
	return NewProblem(CodeInternal, "something went wrong inside ibid", "its log says what")
}

// IsInternal reports whether err is unknown to [ProblemOf]: its text is not shown to the client and should be logged.
func IsInternal(err error) bool { return ProblemOf(err).Code == CodeInternal }

// WriteProblem answers a request with the problem that [ProblemOf] returns for err. Nothing may have been written
// before; header fields set for another response (its length, encoding, tag) are removed.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	body := struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
		Hint   string `json:"hint,omitempty"`
	}{"about:blank", cmp.Or(p.Title, http.StatusText(p.status())), p.status(), p.Detail, p.Hint}
	if p.Code != "" {
		body.Type = ProblemType(p.Code)
	}
	var b bytes.Buffer
	kind := "application/problem+json"
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // strings and a number always encode
	if p.Plain {
		kind = "text/plain; charset=utf-8"
		b.Reset()
		b.WriteString(p.sentence())
	}
	h := w.Header()
	for _, name := range []string{"Content-Encoding", "Etag", "Last-Modified", "Content-Disposition"} {
		h.Del(name)
	}
	maps.Copy(h, p.Header)
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(p.status())
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // the client may have left
	}
}
