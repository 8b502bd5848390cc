package api

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/store"
)

// answerBody is a stored answer as JSON: its document, and how it came to be.
type answerBody struct {
	*ibid.Document

	Call callBody `json:"call"`
}

// callBody is a call as JSON.
type callBody struct {
	Run          *string         `json:"run"`
	Step         *int            `json:"step"` // null: it is not stored yet
	Tool         *string         `json:"tool"`
	After        []int           `json:"after"` // null: not said
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

// showCall returns a call as it is shown. The numbering of opts, if any, may grow.
func showCall(c *store.Call, opts ibid.DocumentOptions) answerBody {
	opts.AnswerID = c.AnswerID
	return answerBody{
		Document: c.Answer.Document(&opts),
		Call: callBody{
			Run:   orNull(c.Run),
			Step:  orNull(c.Step.Number),
			Tool:  orNull(c.Step.Tool),
			After: c.Step.After,
			Conversation: orNull(
				c.Conversation,
			),
			Agent:       orNull(c.Agent),
			Upstream:    c.Upstream,
			Route:       c.Route,
			Status:      c.Status,
			StartedAt:   c.Started.UTC(),
			FirstByteMS: milliseconds(c.FirstByte),
			DurationMS:  milliseconds(c.Duration),
			Prompt:      orEmpty(c.Prompt),
		},
	}
}

// milliseconds returns d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// orNull returns what JSON shows of v: null where it is zero, which means unknown.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// orEmpty returns s as JSON shows lists: [] and not null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// timeOrNull returns a time as it is shown.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// mediaType returns the media type of an answer in a form.
func mediaType(form string) string {
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
	return cmp.Or(biblio.Format(form).MediaType(), "application/json") // an export is JSON, too
}

// renderAnswer writes an answer in a form that is not its document: the text with its citations and the list of
// sources, a bibliography of what it cites, or the shape of another program.
func renderAnswer(a *ibid.Answer, form string, opts *export.Options) ([]byte, error) {
	var b bytes.Buffer
	if f := biblio.Format(form); slices.Contains(biblio.Formats(), f) {
		err := biblio.Write(&b, f, biblio.Cited(a), nil)
		return b.Bytes(), err
	}
	if f := export.Format(form); slices.Contains(export.Formats(), f) {
		err := export.Write(&b, f, a, opts)
		return b.Bytes(), err
	}
	b.WriteString(a.Render(&ibid.RenderOptions{Style: ibid.Style(form), List: true}))
	if !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}
