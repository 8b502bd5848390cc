package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// The values of as of feedback, besides json.
const (
	asCSV   = "csv"
	asJSONL = "jsonl"
)

// feedbackRow is what was said of one source, beside what the retriever said of it.
type feedbackRow struct {
	feedbackBody

	SourceTitle    *string           `json:"source_title"`
	RetrieverScore *float64          `json:"retriever_score"`
	ScoreOrigin    *ibid.ScoreOrigin `json:"score_origin"`
	Rank           *int              `json:"rank"`
}

// ExportFeedback hands out all feedback of a tenant as GET /v1/feedback?as=csv or jsonl does. An error comes before
// anything was written; after that a handler that gives up panics, as http.ErrAbortHandler says.
func (a *API) ExportFeedback(w http.ResponseWriter, r *http.Request, tenant, as string) error {
	if as != asCSV && as != asJSONL {
		return badRequest(fmt.Sprintf("as: there is no %q", cut(as)), "it is one of csv, jsonl")
	}
	begun, err := a.exportFeedback(w, r, as, &feedbackExport{a: a, tenant: tenant, query: store.FeedbackQuery{}})
	if err != nil && begun {
		panic(http.ErrAbortHandler)
	}
	return err
}

// exportFeedback hands out all feedback that fits, page by page: one row for each source that it is about. It reports
// whether it has begun to.
func (a *API) exportFeedback(
	w http.ResponseWriter, r *http.Request, as string, e *feedbackExport,
) (begun bool, err error) {
	e.query.Limit = store.MaxLimit
	page, err := e.page(r.Context())
	if err != nil {
		return false, err
	}
	mediaType := "application/jsonl"
	if as == asCSV {
		mediaType = "text/csv; charset=utf-8; header=present"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Disposition", "attachment; filename=feedback."+as)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return true, nil
	}
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	for first := true; ; first = false {
		body, err := encodeFeedback(as, page, first)
		if err != nil {
			return true, err
		}
		// A server that cannot set deadlines has its own ways with slow readers.
		if err := rc.SetWriteDeadline(time.Now().Add(askStore)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return true, err
		}
		if _, err := w.Write(body); err != nil {
			return true, err
		}
		if e.query.Cursor == "" {
			return true, nil
		}
		if page, err = e.page(r.Context()); err != nil {
			return true, err
		}
	}
}

// feedbackExport finds what feedback is about. What it read last it keeps: who judges goes through an answer or a run.
type feedbackExport struct {
	a      *API
	tenant string
	query  store.FeedbackQuery // of the next page
	call   *store.Call
	run    string
	trail  *trail.Trail // of run; nil: it is gone, or too large to be looked into
}

// page returns the rows of a page of feedback, and moves the cursor to the next one.
func (e *feedbackExport) page(ctx context.Context) ([]feedbackRow, error) {
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	page, err := e.a.store.Feedback(ctx, e.tenant, &e.query)
	if err != nil {
		return nil, storeError("list feedback", err)
	}
	e.query.Cursor = page.Next
	rows := make([]feedbackRow, 0, len(page.Items))
	for i := range page.Items {
		some, err := e.rows(ctx, &page.Items[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// rows returns the rows of one feedback: a verdict on a citation has one for each source of the citation.
func (e *feedbackExport) rows(ctx context.Context, f *store.Feedback) ([]feedbackRow, error) {
	row := feedbackRow{feedbackBody: showFeedback(f)}
	if f.Run != "" && f.Run != e.run {
		if err := e.readTrail(ctx, f.Run); err != nil {
			return nil, err
		}
	}
	if f.Citation == "" || f.AnswerID == "" {
		e.fill(&row, f.Run, f.Step, f.Source)
		return []feedbackRow{row}, nil
	}
	if e.call == nil || e.call.AnswerID != f.AnswerID {
		call, err := e.a.callOf(ctx, e.tenant, f.AnswerID)
		if errors.Is(err, store.ErrNotFound) { // it was deleted meanwhile
			return []feedbackRow{row}, nil
		}
		if err != nil {
			return nil, err
		}
		e.call = call
	}
	var rows []feedbackRow
	for _, s := range citedSources(e.call.Answer, f.Citation) {
		one := row
		key := s.Key()
		one.Source, one.Step = &key, orNull(cmp.Or(f.Step, e.call.Step.Number))
		one.SourceTitle, one.RetrieverScore, one.ScoreOrigin = orNull(s.Title), s.Score, orNull(s.ScoreOrigin)
		e.fill(&one, f.Run, e.call.Step.Number, key)
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		rows = append(rows, row) // the answer was fetched again, and does not have the citation any more
	}
	return rows, nil
}

// citedSources returns the sources of a citation, each once.
func citedSources(a *ibid.Answer, citation string) []*ibid.Source {
	var sources []*ibid.Source
	for i := range a.Citations {
		if a.Citations[i].ID != citation {
			continue
		}
		for _, ref := range a.Citations[i].Refs {
			at := slices.IndexFunc(a.Sources, func(s ibid.Source) bool { return s.ID == ref.Source })
			if at >= 0 && !slices.Contains(sources, &a.Sources[at]) {
				sources = append(sources, &a.Sources[at])
			}
		}
	}
	return sources
}

// readTrail reads a run, unless it is gone or too large.
func (e *feedbackExport) readTrail(ctx context.Context, run string) error {
	e.run, e.trail = run, nil
	weight, err := e.a.store.Weight(ctx, e.tenant, run)
	if err == nil && weight <= maxChecked {
		e.trail, err = e.a.store.Trail(ctx, e.tenant, run)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeError("read a run", err)
	}
	return nil
}

// fill fills in what a step of a run, or any step if none is named, says of a source.
func (e *feedbackExport) fill(row *feedbackRow, run string, step int, source string) {
	if e.trail == nil || run != e.run || source == "" {
		return
	}
	for i := range e.trail.Steps {
		s := &e.trail.Steps[i]
		if step != 0 && s.Number != step {
			continue
		}
		for k := range s.Sources {
			f := &s.Sources[k]
			if f.DocumentID != source && f.Key != source {
				continue
			}
			row.take(f)
		}
	}
}

// take fills in what a passage says that is not known yet. A search's own score goes before others.
func (r *feedbackRow) take(f *trail.Source) {
	r.SourceTitle = cmp.Or(r.SourceTitle, orNull(f.Title))
	if f.Relevance != nil && (r.RetrieverScore == nil || f.Retrieved && r.Rank == nil) {
		r.RetrieverScore, r.ScoreOrigin = f.Relevance, orNull(f.Origin)
	}
	if r.Rank == nil {
		r.Rank = orNull(f.Rank)
	}
}

// encodeFeedback writes rows as lines.
func encodeFeedback(as string, rows []feedbackRow, first bool) ([]byte, error) {
	var b bytes.Buffer
	if as == asJSONL {
		for i := range rows {
			line, err := encode(&rows[i])
			if err != nil {
				return nil, err
			}
			b.Write(line)
		}
		return b.Bytes(), nil
	}
	w := csv.NewWriter(&b)
	if first {
		_ = w.Write(feedbackColumns()) // a buffer takes everything
	}
	for i := range rows {
		_ = w.Write(rows[i].cells())
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// feedbackColumns are the columns of feedback as CSV; as JSON lines they are members.
func feedbackColumns() []string {
	return []string{
		"id", "at", "by", "answer_id", "citation", "run", "step", "source", "source_title", "retriever_score",
		"score_origin", "rank", "verdict", "relevance", "note",
	}
}

func (r *feedbackRow) cells() []string {
	return []string{
		r.ID, r.At.UTC().Format(time.RFC3339Nano), textCell(r.By), textCell(r.AnswerID), textCell(r.Citation),
		textCell(r.Run), numberCell(r.Step),
		textCell(
			r.Source,
		),
		textCell(r.SourceTitle), scoreCell(r.RetrieverScore),
		textCell((*string)(r.ScoreOrigin)),
		numberCell(r.Rank), textCell(r.Verdict), scoreCell(r.Relevance), textCell(r.Note),
	}
}

// textCell returns text for a table. Programs for tables run what looks like a formula: it gets an apostrophe before
// it.
func textCell(s *string) string {
	if s == nil {
		return ""
	}
	if strings.IndexAny(*s, "=+-@\t\r") == 0 {
		return "'" + *s
	}
	return *s
}

func numberCell(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func scoreCell(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'g', -1, 64)
}
