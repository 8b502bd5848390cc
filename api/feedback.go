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

// countsBody adds feedback up.
type countsBody struct {
	Verdicts  map[string]int `json:"verdicts"`
	Ratings   int            `json:"ratings"`
	Relevance *float64       `json:"mean_relevance"`
}

// feedbackOrder is what a person says.
type feedbackOrder struct {
	// any name, as the page or the app knows the person.
	By       string `json:"by"`
	AnswerID string `json:"answer_id"`
	// its id in the answer's document; without it the verdict is on the answer as a whole.
	Citation string `json:"citation"`
	Run      string `json:"run"`
	// the number of a step of the run; without it the run as a whole is meant.
	Step *int `json:"step" minimum:"1"`
	// the source's document_id or key.
	Source string `json:"source"`
	// wrong-source where another source says it, and not-said where the source does not say this.
	Verdict string `json:"verdict" enum:"right wrong-source not-said other"`
	// how relevant the source was.
	Relevance *float64 `json:"relevance" maximum:"1" minimum:"0"`
	// up to 8 KiB of text.
	Note string `json:"note"`
}

// newFeedback stores what a person says of a citation or a source.
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

// badFeedback says what is wrong with a feedback.
func badFeedback(err error) error {
	return httpx.BadRequest(
		err.Error(),
		`{"answer_id": "ans_…", "citation": "…", "verdict": "wrong-source"} or `+
			`{"run": "…", "step": 1, "source": "…", "relevance": 0.5}`,
	)
}

// AddFeedback stores what somebody who may write says, as POST /v1/feedback does: what it is about must be there. It
// sets the feedback's id and time. The error is one that [gateway.ProblemOf] knows, unless something went wrong inside.
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
		isIt := func(c ibid.DocumentCitation) bool { return c.ID == f.Citation }
		document := call.Answer.Document(&ibid.DocumentOptions{Bare: true})
		if f.Citation != "" && !slices.ContainsFunc(document.Citations, isIt) {
			return httpx.BadRequest(
				fmt.Sprintf("citation: the answer has none with the id %q", httpx.Said(f.Citation)),
				"it is the id of a citation in the answer's document",
			)
		}
		if f.Run != "" && f.Run != call.Run {
			return httpx.BadRequest(
				fmt.Sprintf("run: the answer is not of the run %q", httpx.Said(f.Run)),
				"leave it out: the answer has its run",
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

// maxChecked is how many bytes may be stored of a run for a feedback's step and source to be looked for in it.
const maxChecked = 8 << 20

// checkSubject says that the run of a feedback has no such step or source. In a run that is too large it is not looked
// for.
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
		fmt.Sprintf("source: there is no %q among those of the run or the step", httpx.Said(f.Source)),
		"it is the document_id or the key of a source; GET /v1/runs/{run}/summary lists them by step")
	if !found {
		p.Detail = fmt.Sprintf("step: the run has no step %d", f.Step)
	}
	return p
}

// smallRun reads a run; nil: it is too large to be looked into.
func (a *API) smallRun(ctx context.Context, tenant, run string) (*trail.Trail, error) {
	weight, err := a.store.Weight(ctx, tenant, run)
	if err != nil || weight > maxChecked {
		return nil, err
	}
	return a.store.Trail(ctx, tenant, run)
}

// hasSource reports whether a step, or a run nested in it, has a source with that id or key; every step has the empty
// one.
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

// feedback lists what people said, the last first, and counts it.
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

// ExportFeedback hands out all feedback of a tenant as GET /v1/feedback?as=csv or jsonl does. On an error the response
// may have begun, which an [httpx.Mux] breaks off then.
func (a *API) ExportFeedback(w http.ResponseWriter, r *http.Request, tenant, as string) error {
	if as != asCSV && as != asJSONL {
		return httpx.BadRequest(fmt.Sprintf("as: there is no %q", httpx.Said(as)), "it is one of csv, jsonl")
	}
	return a.exportFeedback(w, r, as, &feedbackExport{a: a, tenant: tenant})
}

// exportFeedback hands out all feedback that fits, page by page: one row for each source that it is about.
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
	ctx, cancel := context.WithTimeout(ctx, httpx.StoreTime)
	defer cancel()
	page, err := e.a.store.Feedback(ctx, e.tenant, &e.query)
	if err != nil {
		return nil, httpx.StoreError("list feedback", err)
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
		one.Source, one.Step = &key, httpx.OrNull(cmp.Or(f.Step, e.call.Step.Number))
		one.SourceTitle, one.ScoreOrigin = httpx.OrNull(s.Title), httpx.OrNull(s.ScoreOrigin)
		one.RetrieverScore = s.Score
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

// fill fills in what a step of a run, or any step if none is named, says of a source and is not known yet. A search's
// own score goes before others.
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

// encodeFeedback writes rows as lines.
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
		_ = w.Write(feedbackColumns) // a buffer takes everything
	}
	for i := range rows {
		_ = w.Write(rows[i].cells())
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// feedbackColumns are the columns of feedback as CSV; as JSON lines they are members.
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

// formulas are what a cell begins with that some program for tables takes for a formula: Excel, LibreOffice, Google
// Sheets, Numbers and those that know Lotus's, in narrow and in wide forms.
const formulas = "=+-@|%\t\r\n\u00ad\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66"

// textCell returns text for a table. Programs for tables run what looks like a formula, behind white space too: it gets
// an apostrophe before it.
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
