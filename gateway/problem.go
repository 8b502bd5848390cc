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

// problemDocs is where the codes of problems are explained; each is a heading there.
const problemDocs = "https://github.com/ibidhq/ibid/blob/main/docs/http.md#"

// The codes of problems. A program may tell problems apart by them: they end the problem's type. docs/http.md says what
// each means.
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

// statuses are the HTTP statuses of problems, by their code.
var statuses = map[string]int{
	CodeBadRequest: 400, CodeToken: 401, CodeForeign: 403, CodeScope: 403, CodeNotFound: 404, CodeMethod: 405,
	CodeConflict: 409, CodeTooLarge: 413, CodeMediaType: 415, CodeUnreadable: 422, CodePolicy: 422,
	CodeTooMany: 429, CodeInternal: 500,
	CodeUpstream: 502, CodeUnavailable: 503, CodeUpstreamSlow: 504,
}

// ProblemType returns the type of the problems that have a code: where it is explained.
func ProblemType(code string) string { return problemDocs + code }

// Problem is an error as ibid answers it over HTTP, by RFC 9457. Everything in it is shown to the client: it holds no
// secrets and nothing of other tenants.
type Problem struct {
	Status int    // the HTTP status; 0 means 500
	Code   string // one of the codes above; empty: the problem has the type about:blank
	Title  string // what kind of problem it is; empty: the status in words
	Detail string // what is wrong with this request
	Hint   string // what the caller can do about it; may be empty
	Header http.Header
	// Plain says that the response is one sentence of plain text: for clients that show a body as it is.
	Plain bool
}

// NewProblem returns a problem with the status of its code.
func NewProblem(code, detail, hint string) *Problem {
	return &Problem{Status: statuses[code], Code: code, Detail: detail, Hint: hint}
}

// Unavailable returns the problem of something that ibid needs and that does not work now, as detail says. The client
// is told to try again.
func Unavailable(detail string) *Problem {
	p := NewProblem(CodeUnavailable, detail, "try again; /readyz says what does not work")
	p.Header = http.Header{"Retry-After": {"2"}}
	return p
}

// TooMany returns the problem of a request that may be made again after a time, which is told in whole seconds.
func TooMany(after time.Duration, detail, hint string) *Problem {
	p := NewProblem(CodeTooMany, detail, hint)
	p.Header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(after.Seconds())))}}
	return p
}

// Error returns the detail, else the title.
func (p *Problem) Error() string {
	return cmp.Or(p.Detail, p.Title, http.StatusText(p.status()))
}

// sentence says what is wrong, and what can be done about it, in one sentence.
func (p *Problem) sentence() string {
	words := strings.TrimRight(p.Error(), ".")
	if p.Hint != "" {
		words += "; " + strings.TrimRight(p.Hint, ".")
	}
	if word, _, _ := strings.Cut(words, " "); !strings.HasSuffix(word, ":") { // else it is a member's name
		first, n := utf8.DecodeRuneInString(words)
		words = string(unicode.ToUpper(first)) + words[n:]
	}
	return words + "."
}

func (p *Problem) status() int { return cmp.Or(p.Status, http.StatusInternalServerError) }

// ProblemOf is the one place that knows which problem an error is to the client. An error that it does not know becomes
// a 500 that says nothing of it, so that the caller has to log it; see [IsInternal].
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
		return Unavailable("the call was given up")
	case errors.Is(err, context.DeadlineExceeded):
		return Unavailable("it took too long")
	}
	return NewProblem(CodeInternal, "something went wrong inside ibid", "its log says what")
}

// IsInternal reports whether [ProblemOf] does not know err: its words are not shown and belong into the log.
func IsInternal(err error) bool { return ProblemOf(err).Code == CodeInternal }

// WriteProblem answers a request with what [ProblemOf] makes of err. Nothing must have been written before; header
// fields that were set for another answer (its length, encoding, tag) are dropped.
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
	_ = encoder.Encode(body) // strings and a number always can be
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
		_, _ = w.Write(b.Bytes()) // who left does not read it
	}
}
