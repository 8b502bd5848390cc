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
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// feedbackBody is a feedback as JSON.
type feedbackBody struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	By        *string   `json:"by"`
	AnswerID  *string   `json:"answer_id"`
	Citation  *string   `json:"citation"`
	Run       *string   `json:"run"`
	Step      *int      `json:"step"`
	Source    *string   `json:"source"`
	Verdict   *string   `json:"verdict"`
	Relevance *float64  `json:"relevance"`
	Note      *string   `json:"note"`
}

func showFeedback(_ *httpx.Request, f *store.Feedback) feedbackBody {
	return feedbackBody{
		f.ID, f.At, httpx.OrNull(f.By), httpx.OrNull(f.AnswerID), httpx.OrNull(f.Citation), httpx.OrNull(f.Run),
		httpx.OrNull(f.Step),
		httpx.OrNull(f.Source), httpx.OrNull(f.Verdict), f.Relevance, httpx.OrNull(f.Note),
	}
}

// countsBody counts feedback.
type countsBody struct {
	Verdicts  map[string]int `json:"verdicts"`
	Ratings   int            `json:"ratings"`
	Relevance *float64       `json:"mean_relevance"`
}

// feedbackOrder is a request to store feedback.
type feedbackOrder struct {
	// any name by which the page or the app identifies the person.
	By       string `json:"by"`
	AnswerID string `json:"answer_id"`
	// the citation's id in the answer document; without it, the verdict applies to the whole answer.
	Citation string `json:"citation"`
	Run      string `json:"run"`
	// the number of a step of the run; without it, the feedback applies to the whole run.
	Step *int `json:"step" minimum:"1"`
	// the source's document_id or key.
	Source string `json:"source"`
	// wrong-source means that another source says it, not-said that the source does not say this.
	Verdict string `json:"verdict" enum:"right wrong-source not-said other"`
	// how relevant the source is.
	Relevance *float64 `json:"relevance" maximum:"1" minimum:"0"`
	// up to 8 KiB of text.
	Note string `json:"note"`
}

// newFeedback stores feedback on a citation or a source.
func (a *API) newFeedback(w *httpx.Reply, r *httpx.Request) error {
	var said feedbackOrder
	if err := httpx.ReadJSON(w, r.Request, &said); err != nil {
		return err
	}
	f := &store.Feedback{
		By: said.By, AnswerID: said.AnswerID, Citation: said.Citation, Run: said.Run, Source: said.Source,
		Verdict: said.Verdict, Relevance: said.Relevance, Note: said.Note,
	}
	if said.Step != nil {
		if f.Step = *said.Step; f.Step == 0 {
			return badFeedback(errors.New("step: steps are numbered from 1"))
		}
	}
	if err := a.AddFeedback(r.Context(), r.Who.Tenant, f); err != nil {
		return err
	}
	return w.JSON(http.StatusCreated, showFeedback(nil, f))
}

// badFeedback returns the problem of an invalid feedback.
func badFeedback(err error) error {
	return httpx.BadRequest(
		err.Error(),
		`{"answer_id": "ans_…", "citation": "…", "verdict": "wrong-source"} or `+
			`{"run": "…", "step": 1, "source": "…", "relevance": 0.5}`,
	)
}

// AddFeedback stores the feedback of a caller with write access, as POST /v1/feedback does: its subject must exist. It
// sets the feedback's id and time. Unless it is internal, an error is one that [gateway.ProblemOf] recognises.
func (a *API) AddFeedback(ctx context.Context, tenant string, f *store.Feedback) error {
	if err := f.Check(); err != nil {
		return badFeedback(err)
	}
	ctx, cancel := context.WithTimeout(ctx, httpx.StoreTime)
	defer cancel()
	early := false
	if f.AnswerID != "" {
		call, err := a.reader.Call(ctx, tenant, f.AnswerID)
		if err != nil {
			return err
		}
		matches := func(c ibid.DocumentCitation) bool { return c.ID == f.Citation }
		document := call.Answer.Document(&ibid.DocumentOptions{Bare: true})
		if f.Citation != "" && !slices.ContainsFunc(document.Citations, matches) {
			return httpx.BadRequest(
				fmt.Sprintf("citation: the answer has no citation with the id %q", httpx.Said(f.Citation)),
				"use the id of a citation in the answer document",
			)
		}
		if f.Run != "" && f.Run != call.Run {
			return httpx.BadRequest(
				fmt.Sprintf("run: the answer does not belong to the run %q", httpx.Said(f.Run)),
				"leave it out: it is known from the answer",
			)
		}
		early = call.Step.Number == 0
	}
	a.reader.CatchUp(ctx)
	if err := a.checkSubject(ctx, tenant, f); err != nil {
		return err
	}
	err := a.store.AddFeedback(ctx, tenant, f)
	if early && errors.Is(err, store.ErrNotFound) {
		return gateway.Unavailable("the answer is not in the store yet")
	}
	if err != nil {
		return httpx.StoreError("store feedback", err)
	}
	return nil
}

// maxChecked limits, in stored bytes, the runs in which a feedback's step and source are looked up.
const maxChecked = 8 << 20

// checkSubject returns an error if the run of a feedback does not have its step or source. Runs that are too large are
// not checked.
func (a *API) checkSubject(ctx context.Context, tenant string, f *store.Feedback) error {
	if f.Run == "" || f.Step == 0 && f.Source == "" {
		return nil
	}
	t, err := a.smallRun(ctx, tenant, f.Run)
	if t == nil || err != nil {
		return httpx.StoreError("read a run", err)
	}
	found := false
	for i := range t.Steps {
		if step := &t.Steps[i]; f.Step == 0 || step.Number == f.Step {
			if found = true; hasSource(step, f.Source) {
				return nil
			}
		}
	}
	p := gateway.NewProblem(gateway.CodeNotFound,
		fmt.Sprintf("source: the run or step has no source %q", httpx.Said(f.Source)),
		"use the document_id or the key of a source; GET /v1/runs/{run}/summary lists them by step")
	if !found {
		p.Detail = fmt.Sprintf("step: the run has no step %d", f.Step)
	}
	return p
}

// smallRun reads a run; it returns nil if the run is larger than maxChecked.
func (a *API) smallRun(ctx context.Context, tenant, run string) (*trail.Trail, error) {
	weight, err := a.store.Weight(ctx, tenant, run)
	if err != nil || weight > maxChecked {
		return nil, err
	}
	return a.store.Trail(ctx, tenant, run)
}

// hasSource reports whether a step, or a run nested in it, has a source with that id or key. An empty id always
// matches.
func hasSource(s *trail.Step, id string) bool {
	return id == "" ||
		slices.ContainsFunc(s.Sources, func(f trail.Source) bool { return f.DocumentID == id || f.Key == id }) ||
		s.Nested != nil && slices.ContainsFunc(s.Nested.Steps, func(in trail.Step) bool { return hasSource(&in, id) })
}

// feedbackList is a page of feedback as JSON.
type feedbackList struct {
	Feedback   []feedbackBody `json:"feedback"`
	Counts     countsBody     `json:"counts"`
	NextCursor *string        `json:"next_cursor"`
}

// feedback lists feedback, most recent first, and counts it.
func (a *API) feedback(w *httpx.Reply, r *httpx.Request) error {
	q := &store.FeedbackQuery{
		AnswerID: r.Params.Get("answer"), Run: r.Params.Get("run"), Source: r.Params.Get("source"),
		Strategy: r.Params.Get("strategy"), Cursor: r.Params.Get("cursor"), Limit: r.Params.Int("limit"),
	}
	if as := r.Params.Get("as"); as != asJSON {
		return a.exportFeedback(w, r.Request, as, &feedbackExport{a: a, tenant: r.Who.Tenant, query: *q})
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	a.reader.CatchUp(ctx)
	counts, err := a.store.FeedbackCounts(ctx, r.Who.Tenant, q)
	if err != nil {
		return httpx.StoreError("count feedback", err)
	}
	page, err := a.store.Feedback(ctx, r.Who.Tenant, q)
	if err != nil {
		return httpx.StoreError("list feedback", err)
	}
	body := feedbackList{
		[]feedbackBody{}, countsBody{counts.Verdicts, counts.Ratings, counts.Relevance}, httpx.OrNull(page.Next),
	}
	for i := range page.Items {
		body.Feedback = append(body.Feedback, showFeedback(r, &page.Items[i]))
	}
	return w.JSON(http.StatusOK, body)
}

// The values of as for feedback, besides json.
const (
	asCSV   = "csv"
	asJSONL = "jsonl"
)

// feedbackRow is the feedback on one source, with the retriever's own rating of it.
type feedbackRow struct {
	feedbackBody

	SourceTitle    *string           `json:"source_title"`
	RetrieverScore *float64          `json:"retriever_score"`
	ScoreOrigin    *ibid.ScoreOrigin `json:"score_origin"`
	Rank           *int              `json:"rank"`
}

// ExportFeedback writes all feedback of a tenant as GET /v1/feedback?as=csv or jsonl does. On an error the response may
// have begun; an [httpx.Mux] then aborts it.
func (a *API) ExportFeedback(w http.ResponseWriter, r *http.Request, tenant, as string) error {
	if as != asCSV && as != asJSONL {
		return httpx.BadRequest(fmt.Sprintf("as: unknown form %q", httpx.Said(as)), "use csv or jsonl")
	}
	return a.exportFeedback(w, r, as, &feedbackExport{a: a, tenant: tenant})
}

// exportFeedback writes all matching feedback page by page: one row for each source it is about.
func (a *API) exportFeedback(w http.ResponseWriter, r *http.Request, as string, e *feedbackExport) error {
	e.query.Limit = store.MaxLimit
	page, err := e.page(r.Context())
	if err != nil {
		return err
	}
	mediaType := "application/jsonl"
	if as == asCSV {
		mediaType = "text/csv; charset=utf-8; header=present"
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Disposition", "attachment; filename=feedback."+as)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	out := httpx.NewStream(w, httpx.StoreTime)
	defer out.End()
	for first := true; ; first = false {
		body, err := encodeFeedback(as, page, first)
		if err == nil {
			_, err = out.Write(body)
		}
		if err == nil && e.query.Cursor != "" {
			page, err = e.page(r.Context())
		} else {
			return err
		}
		if err != nil {
			return err
		}
	}
}

// feedbackExport looks up the subjects of feedback. It caches the last answer and run, since people rate one after
// another.
type feedbackExport struct {
	a      *API
	tenant string
	query  store.FeedbackQuery // of the next page
	call   *store.Call
	run    string
	trail  *trail.Trail // of run; nil if it is gone or larger than maxChecked
}

// page returns the rows of a page of feedback and moves the cursor to the next one.
func (e *feedbackExport) page(ctx context.Context) (rows []feedbackRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, httpx.StoreTime)
	defer cancel()
	ctx, release := httpx.WithWorkTime(ctx)
	defer release()
	defer func() {
		if err != nil {
			err = httpx.WorkError(ctx, err)
		}
	}()
	page, err := e.a.store.Feedback(ctx, e.tenant, &e.query)
	if err != nil {
		return nil, httpx.StoreError("list feedback", err)
	}
	e.query.Cursor = page.Next
	rows = make([]feedbackRow, 0, len(page.Items))
	for i := range page.Items {
		some, err := e.rows(ctx, &page.Items[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// rows returns the rows of one feedback: for a verdict on a citation, one for each of its sources.
func (e *feedbackExport) rows(ctx context.Context, f *store.Feedback) ([]feedbackRow, error) {
	row := feedbackRow{feedbackBody: showFeedback(nil, f)}
	if f.Run != "" && f.Run != e.run {
		var err error
		e.run = f.Run
		if e.trail, err = e.a.smallRun(ctx, e.tenant, f.Run); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, httpx.StoreError("read a run", err)
		}
	}
	if f.Citation == "" || f.AnswerID == "" {
		e.fill(&row, f.Run, f.Step, f.Source)
		return []feedbackRow{row}, nil
	}
	if e.call == nil || e.call.AnswerID != f.AnswerID {
		call, err := e.a.reader.Call(ctx, e.tenant, f.AnswerID)
		if errors.Is(err, store.ErrNotFound) { // deleted in the meantime
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
		one.Source, one.Step = &key, httpx.OrNull(cmp.Or(f.Step, e.call.Step.Number))
		one.SourceTitle, one.ScoreOrigin = httpx.OrNull(s.Title), httpx.OrNull(s.ScoreOrigin)
		one.RetrieverScore = s.Score
		e.fill(&one, f.Run, e.call.Step.Number, key)
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		rows = append(rows, row) // the answer was fetched again and no longer has the citation
	}
	return rows, nil
}

// citedSources returns the sources of a citation without duplicates.
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

// fill adds the details of a source known to the step, or to any step if step is 0. A search's own score takes
// precedence.
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
			row.SourceTitle = cmp.Or(row.SourceTitle, httpx.OrNull(f.Title))
			if f.Relevance != nil && (row.RetrieverScore == nil || f.Retrieved && row.Rank == nil) {
				row.RetrieverScore, row.ScoreOrigin = f.Relevance, httpx.OrNull(f.Origin)
			}
			row.Rank = cmp.Or(row.Rank, httpx.OrNull(f.Rank))
		}
	}
}

// encodeFeedback writes rows as CSV or JSON lines.
func encodeFeedback(as string, rows []feedbackRow, first bool) ([]byte, error) {
	var b bytes.Buffer
	if as == asJSONL {
		for i := range rows {
			line, err := httpx.Encode(&rows[i])
			if err != nil {
				return nil, err
			}
			b.Write(line)
		}
		return b.Bytes(), nil
	}
	w := csv.NewWriter(&b)
	if first {
		_ = w.Write(feedbackColumns) // writing to a buffer cannot fail
	}
	for i := range rows {
		_ = w.Write(rows[i].cells())
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// feedbackColumns are the columns of feedback as CSV; in JSON lines they are the members.
var feedbackColumns = strings.Fields(`id at by answer_id citation run step source source_title retriever_score
	score_origin rank verdict relevance note`)

func (r *feedbackRow) cells() []string {
	return []string{
		r.ID, r.At.UTC().Format(time.RFC3339Nano), textCell(r.By), textCell(r.AnswerID), textCell(r.Citation),
		textCell(r.Run), numberCell(r.Step), textCell(r.Source), textCell(r.SourceTitle), scoreCell(r.RetrieverScore),
		textCell((*string)(r.ScoreOrigin)), numberCell(r.Rank), textCell(r.Verdict), scoreCell(r.Relevance),
		textCell(r.Note),
	}
}

// formulas are the first characters of cells that a spreadsheet program takes for a formula: Excel, LibreOffice, Google
// Sheets, Numbers and those that support Lotus syntax, in narrow and wide forms.
const formulas = "=+-@|%\t\r\n\u00ad\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66"

// textCell returns text for a CSV cell. Spreadsheet programs run text that looks like a formula, even after white
// space: such text is prefixed with an apostrophe.
func textCell(s *string) string {
	if s == nil {
		return ""
	}
	bare := strings.TrimLeftFunc(*s, func(r rune) bool {
		return unicode.IsSpace(r) && !strings.ContainsRune(formulas, r) || r == '\ufeff' || r == '\u200b' || r == '"'
	})
	if strings.IndexAny(bare, formulas) == 0 {
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
