package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// The page sizes of lists: the default, and that of a conversation's messages and a run's steps.
const (
	defaultLimit = 20
	maxLimit     = 100
)

// asJSON is the value of as for the answer document.
const asJSON = "json"

func showListedCall(r *httpx.Request, c **store.Call) answerBody {
	return showCall(*c, documentOptions(r))
}

// answer returns one answer, available as soon as it is captured.
func (a *API) answer(w *httpx.Reply, r *httpx.Request) error {
	form, err := formOf(r)
	if err != nil {
		return err
	}
	call, err := a.findCall(r)
	if err != nil {
		return err
	}
	var body []byte
	if opts := documentOptions(r); form == asJSON {
		a.cite(w.Header(), r, call)
		body, err = httpx.Encode(showCall(call, opts))
	} else {
		o := &export.Options{Unit: opts.Unit, Numbers: opts.Numbers, ID: call.AnswerID, Context: r.Context()}
		body, err = RenderAnswer(call.Answer, form, nil, o)
	}
	if err == nil {
		w.Tagged(r, MediaType(form), body)
	}
	return err
}

// findCall returns the answer with the {id} of the path, available as soon as it is captured.
func (a *API) findCall(r *httpx.Request) (*store.Call, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	return a.reader.Call(ctx, r.Who.Tenant, id)
}

// deleteAnswer deletes an answer and everything derived from it.
func (a *API) deleteAnswer(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	a.reader.CatchUp(ctx) // it can only be deleted once it is stored
	// Must come before the deletion, during which the answer may reach the store.
	_, early := a.reader.Captured(r.Who.Tenant, id)
	err = a.store.Delete(ctx, r.Who.Tenant, id)
	if early && errors.Is(err, store.ErrNotFound) {
		return gateway.Unavailable("the answer is not in the store yet and could not be deleted")
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return httpx.StoreError("delete an answer", err)
}

// documentOptions returns the document options that a request gives. Unit is empty by default.
func documentOptions(r *httpx.Request) ibid.DocumentOptions {
	return ibid.DocumentOptions{
		Unit: ibid.Unit(r.Params.Get("unit")), Style: ibid.Style(r.Params.Get("style")), Context: r.Context(),
		Numbers: ibid.Numbers(r.Params.Get("numbers")),
	}
}

// formOf returns the form in which a request wants an answer. Options that only affect JSON are refused with other
// forms.
func formOf(r *httpx.Request) (string, error) {
	form := r.Params.Get("as")
	switch {
	case form == asJSON:
	case r.Params.Has("style"):
		return "", httpx.BadRequest("style: only works with as=json", "remove one of them")
	case r.Params.Has("unit") && form != string(export.OpenAI) && form != string(export.LangChain):
		return "", httpx.BadRequest(
			"unit: only works with as=json, as=openai and as=langchain", "remove one of them")
	}
	return form, nil
}

// answerBody is a stored answer as JSON: its document, and the call that produced it.
type answerBody struct {
	*ibid.Document

	Call callBody `json:"call"`
}

// callBody is a call as JSON.
type callBody struct {
	Run          *string         `json:"run"`
	Step         *int            `json:"step"` // null until it is stored
	Tool         *string         `json:"tool"`
	After        []int           `json:"after"` // null if unknown
	Conversation *string         `json:"conversation"`
	Agent        *string         `json:"agent"`
	Upstream     string          `json:"upstream"`
	Route        string          `json:"route"`
	Status       int             `json:"status"`
	StartedAt    time.Time       `json:"started_at"`
	FirstByteMS  float64         `json:"first_byte_ms"`
	DurationMS   float64         `json:"duration_ms"`
	Prompt       []store.Message `json:"prompt"`
}

// showCall returns a call as JSON. It may add to the numbering of opts.
func showCall(c *store.Call, opts ibid.DocumentOptions) answerBody {
	opts.AnswerID = c.AnswerID
	return answerBody{
		Document: c.Answer.Document(&opts),
		Call: callBody{
			Run:          httpx.OrNull(c.Run),
			Step:         httpx.OrNull(c.Step.Number),
			Tool:         httpx.OrNull(c.Step.Tool),
			After:        c.Step.After,
			Conversation: httpx.OrNull(c.Conversation),
			Agent:        httpx.OrNull(c.Agent),
			Upstream:     c.Upstream,
			Route:        c.Route,
			Status:       c.Status,
			StartedAt:    c.Started.UTC(),
			FirstByteMS:  milliseconds(c.FirstByte),
			DurationMS:   milliseconds(c.Duration),
			Prompt:       httpx.OrEmpty(c.Prompt),
		},
	}
}

// milliseconds returns d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// MediaType returns the media type of an answer in a form, a value of the parameter as.
func MediaType(form string) string {
	switch ibid.Style(form) {
	case ibid.StyleMarkdown, ibid.StyleFootnotes:
		return "text/markdown; charset=utf-8"
	case ibid.StylePlain:
		return "text/plain; charset=utf-8"
	case ibid.StyleHTML:
		return "text/html; charset=utf-8"
	case ibid.StyleLaTeX:
		return "text/x-tex; charset=utf-8"
	}
	return cmp.Or(biblio.Format(form).MediaType(), "application/json") // exports are JSON, too
}

// RenderAnswer writes an answer in a form other than its document: the text with its citations and list of sources, a
// bibliography of the cited sources, or another program's format. The numbering applies to the text only; if it is nil,
// sources are numbered from 1. When the context of opts ends, so does the rendering, and its text is empty.
func RenderAnswer(a *ibid.Answer, form string, numbering *ibid.Numbering, opts *export.Options) ([]byte, error) {
	if opts == nil {
		opts = &export.Options{}
	}
	var b bytes.Buffer
	if f := biblio.Format(form); slices.Contains(biblio.Formats(), f) {
		entries := biblio.Cited(a)
		for i := range entries {
			entries[i].Accessed = checkedAt(a, &entries[i].Source)
		}
		err := biblio.Write(&b, f, entries, nil)
		return b.Bytes(), err
	}
	if f := export.Format(form); slices.Contains(export.Formats(), f) {
		err := export.Write(&b, f, a, opts)
		return b.Bytes(), err
	}
	b.WriteString(a.Render(&ibid.RenderOptions{
		Style: ibid.Style(form), List: true, Numbering: numbering, Numbers: opts.Numbers, Context: opts.Context,
		Note: func(s *ibid.Source) string { return sourceNote(a, s) },
	}))
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// checkedAt returns when a source was last fetched again, or the zero time if it was not since it was retrieved.
func checkedAt(a *ibid.Answer, s *ibid.Source) time.Time {
	last := s.RetrievedAt
	for c := range citationsOf(a, s) {
		if v := c.Verification; v != nil && v.CheckedAt.After(last) && verify.Status(v.Status).Read() {
			last = v.CheckedAt
		}
	}
	if last.Equal(s.RetrievedAt) {
		return time.Time{}
	}
	return last
}

// supportWarnings are what a reader of a citation must know if its claim has these labels.
var supportWarnings = map[support.Label]string{
	support.Differs:      "differs: the cited passage says something else in one place",
	support.Unsupported:  "not supported: the cited passage does not say it, according to a judge",
	support.Contradicted: "contradicted: the cited passage denies it, according to a judge",
}

// sourceNote returns the note on a source for readers of an exported answer: when it was fetched, and any problem found
// when it was fetched again.
func sourceNote(a *ibid.Answer, s *ibid.Source) string {
	var said []string
	read := s.RetrievedAt
	if checked := checkedAt(a, s); !checked.IsZero() {
		read = checked
	}
	if !read.IsZero() {
		said = append(said, "read "+read.UTC().Format("2 January 2006"))
	}
	var warnings []string
	for c := range citationsOf(a, s) {
		if c.Support != nil {
			if w := supportWarnings[support.Label(c.Support.Label)]; w != "" && !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
		if v := c.Verification; v != nil {
			if w := verify.Status(v.Status).Warning(); w != "" && !slices.Contains(warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	if len(warnings) > 0 {
		said = append(said, "WARNING: "+strings.Join(warnings, "; "))
	}
	return strings.Join(said, ", ")
}

// citationsOf yields the citations of an answer that name a source.
func citationsOf(a *ibid.Answer, s *ibid.Source) iter.Seq[*ibid.Citation] {
	return func(yield func(*ibid.Citation) bool) {
		for i := range a.Citations {
			c := &a.Citations[i]
			names := func(ref ibid.Ref) bool { return ref.Source == s.ID }
			if slices.ContainsFunc(c.Refs, names) && !yield(c) {
				return
			}
		}
	}
}

// sourceBody is one use of a source by an answer as JSON.
type sourceBody struct {
	Key          string               `json:"key"`
	URL          *string              `json:"url"`
	Title        *string              `json:"title"`
	AnswerID     string               `json:"answer_id"`
	Conversation *string              `json:"conversation"`
	Run          *string              `json:"run"`
	StartedAt    time.Time            `json:"started_at"`
	Citations    []sourceCitationBody `json:"citations"`
}

type sourceCitationBody struct {
	CitedText *string `json:"cited_text"`
	Quote     *string `json:"quote"`
}

// sources lists the answers that used a source.
func (a *API) sources(ctx context.Context, r *httpx.Request) (*store.Page[store.SourceUse], error) {
	p := r.Params
	if !p.Has("url") && !p.Has("id") {
		return nil, httpx.BadRequest("url or id is required", "/v1/sources?url=https://…")
	}
	return a.store.Sources(ctx, r.Who.Tenant, &store.SourceQuery{
		URL: p.Get("url"), ID: p.Get("id"), Cursor: p.Get("cursor"), Limit: p.Int("limit"),
	})
}

func showUse(_ *httpx.Request, u *store.SourceUse) sourceBody {
	body := sourceBody{
		Key:          u.Key,
		URL:          httpx.OrNull(u.URL),
		Title:        httpx.OrNull(u.Title),
		AnswerID:     u.AnswerID,
		Conversation: httpx.OrNull(u.Conversation),
		Run:          httpx.OrNull(u.Run),
		StartedAt:    u.Started.UTC(),
		Citations:    []sourceCitationBody{},
	}
	for _, c := range u.Citations {
		body.Citations = append(body.Citations, sourceCitationBody{httpx.OrNull(c.CitedText), httpx.OrNull(c.Quote)})
	}
	return body
}
