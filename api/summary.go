package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// The values of as of a summary, besides json.
const (
	asPROV = "prov"
	asOTLP = "otlp"
)

// summarise bounds the computation of a summary. Waiting for other summaries and for the store is bounded by
// httpx.StoreTime.
const summarise = 2 * time.Minute

// summaryOptions are the options of a summary.
type summaryOptions struct {
	trail.SummaryOptions

	form, strategy string
	content        bool                            // include the full text of the passages
	from, limit    int                             // the first step and the number of steps; 0 means what fits
	all            bool                            // all steps, however many
	known          map[string]support.QualityInput // people's ratings of documents
}

// summary returns the sources of a run, and which of them each sentence of its answer rests on. Concurrent requests for
// the same summary share one computation.
func (a *API) summary(w *httpx.Reply, r *httpx.Request) error {
	opts := readSummaryOptions(r.Params)
	id, err := r.PathID()
	if err != nil {
		return err
	}
	same := []any{r.Who.Tenant, id, r.Params.Given()}
	body, err := a.makeSummary(r.Context(), r.Who.Tenant, id, opts, same)
	if err != nil {
		return err
	}
	w.Body(http.StatusOK, MediaType(opts.form), body)
	return nil
}

// Summary returns the default result of GET /v1/runs/{id}/summary for a run, within the same limits: with linked
// sentences, sources assessed using people's ratings, and passages reduced to excerpts. Concurrent callers share the
// result and must not modify it. Summary returns when ctx ends, even if other callers are still waiting. An unknown run
// is store.ErrNotFound.
func (a *API) Summary(ctx context.Context, tenant, run string) (*trail.Summary, error) {
	params, err := httpx.ReadParams("", summaryParams())
	if err != nil {
		return nil, err
	}
	opts := readSummaryOptions(params)
	return summariseRun(
		ctx, a, &summarising{tenant, run, []any{tenant, run}, opts},
		func(ctx context.Context, t *trail.Trail, link *trail.LinkOptions) (*trail.Summary, error) {
			return summarised(ctx, t, opts, link)
		},
	)
}

// ExportRun returns a run as GET /v1/runs/{id}/summary writes it, as json, prov or otlp; empty means json. Any other
// word is a bad request.
func (a *API) ExportRun(ctx context.Context, tenant, run, as string) ([]byte, error) {
	query := url.Values{"all": {"true"}}
	if as != "" {
		query.Set("as", as)
	}
	params, err := httpx.ReadParams(query.Encode(), summaryParams())
	if err != nil {
		return nil, err
	}
	opts := readSummaryOptions(params)
	return a.makeSummary(ctx, tenant, run, opts, []any{tenant, run, params.Given()})
}

func (a *API) makeSummary(ctx context.Context, tenant, id string, opts *summaryOptions, same []any) ([]byte, error) {
	return summariseRun(
		ctx, a, &summarising{tenant, id, same, opts},
		func(ctx context.Context, t *trail.Trail, link *trail.LinkOptions) ([]byte, error) {
			return renderTrail(ctx, t, opts, link)
		},
	)
}

// summarising is one way to summarise a run.
type summarising struct {
	tenant, run string
	same        []any // equal for the same result
	opts        *summaryOptions
}

// summariseRun returns the result of use for a run and the options for linking its sentences, within the limits of
// summaries: that of the last time if the run has not changed since. Concurrent callers share it.
func summariseRun[T any](
	ctx context.Context, a *API, s *summarising, use func(context.Context, *trail.Trail, *trail.LinkOptions) (T, error),
) (result T, err error) {
	key, err := json.Marshal(s.same)
	if err != nil {
		return result, fmt.Errorf("summarise a run: %w", err)
	}
	return httpx.Shared(ctx, &a.flights, string(key), func(ctx context.Context) (result T, err error) {
		waiting, cancel := context.WithTimeout(ctx, httpx.StoreTime)
		defer cancel()
		a.reader.CatchUp(waiting)
		revision, err := a.store.Revision(waiting, s.tenant, s.run)
		if err != nil {
			return result, httpx.StoreError("read a run", err)
		}
		revision += today().Format(time.DateOnly) // the age of sources counts
		if known, ok := a.known.get(string(key), revision); ok {
			return known.(T), nil //nolint:forcetypeassert // as in httpx.Shared
		}
		release, err := a.summaries.Hold(waiting, a.store, s.tenant, s.run)
		if err != nil {
			return result, err
		}
		defer release()
		ctx, cancel = context.WithTimeout(ctx, summarise)
		defer cancel()
		t, link, err := a.readRun(ctx, s)
		if err != nil {
			return result, err
		}
		if result, err = use(ctx, t, link); err != nil {
			return result, fmt.Errorf("summarise a run: %w", err)
		}
		if id := t.FinalID(); id == "" || hasAnswer(t, id) {
			size, err := a.store.Weight(ctx, s.tenant, s.run)
			if err == nil && ctx.Err() == nil {
				a.known.put(string(key), revision, result, size)
			}
		}
		return result, nil
	})
}

// today returns the day for which sources are assessed.
func today() time.Time { return time.Now().Truncate(24 * time.Hour) }

// hasAnswer reports whether an answer is that of a step.
func hasAnswer(t *trail.Trail, id string) bool {
	return slices.ContainsFunc(t.Steps, func(s trail.Step) bool {
		return slices.ContainsFunc(s.Answers, func(a trail.StepAnswer) bool { return a.ID == id })
	})
}

// readRun reads a run, and the options for linking its sentences. It completes the options.
func (a *API) readRun(ctx context.Context, s *summarising) (*trail.Trail, *trail.LinkOptions, error) {
	t, err := a.store.Trail(ctx, s.tenant, s.run)
	if err != nil {
		return nil, nil, httpx.StoreError("read a run", err)
	}
	link, err := a.linkOptions(t, s.opts)
	if err != nil {
		return nil, nil, err
	}
	if s.opts.form == asJSON { // other forms do not show it
		if s.opts.known, err = a.knownOf(ctx, s.tenant, s.run); err != nil {
			return nil, nil, httpx.StoreError("read the ratings of a run", err)
		}
	}
	return t, link, nil
}

// A rating counts as positive from upFrom on and as negative up to downUpTo. Others are ignored.
const (
	upFrom   = 0.6
	downUpTo = 0.3
)

// knownOf returns people's ratings of the sources of a run. A person's latest rating of a source in a step counts; of
// more than store.MaxLimit entries, only the latest are read.
func (a *API) knownOf(ctx context.Context, tenant, run string) (map[string]support.QualityInput, error) {
	said, err := a.store.Feedback(ctx, tenant, &store.FeedbackQuery{Run: run, Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	type subject struct {
		by, source string
		step       int
	}
	seen := map[subject]bool{}
	known := map[string]support.QualityInput{}
	for i := range said.Items {
		f := &said.Items[i]
		who := subject{f.By, f.Source, f.Step}
		if f.Relevance == nil || f.By != "" && seen[who] {
			continue
		}
		seen[who] = true
		in := known[f.Source]
		if in.Feedback == nil {
			in.Feedback = &support.Tally{}
		}
		switch {
		case *f.Relevance >= upFrom:
			in.Feedback.Good++
		case *f.Relevance <= downUpTo:
			in.Feedback.Bad++
		}
		known[f.Source] = in
	}
	return known, nil
}

// renderTrail links the sentences of a run's answer to their sources and writes the run in a form.
func renderTrail(ctx context.Context, t *trail.Trail, opts *summaryOptions, link *trail.LinkOptions) ([]byte, error) {
	if opts.form == asOTLP {
		return otel.Write(t, otel.JSON, &otel.WriteOptions{NoContent: opts.NoExcerpts})
	}
	if opts.form == asPROV { // links make the answer derive from the steps that feed it
		if _, err := t.Link(ctx, nil, link); err != nil {
			return nil, err
		}
		return t.PROV(&trail.PROVOptions{Content: !opts.NoExcerpts, Linked: true})
	}
	if style := ibid.Style(opts.form); slices.Contains(ibid.Styles(), style) {
		out, err := FinalText(ctx, t, style, nil, link)
		if errors.Is(err, ErrNoAnswer) {
			return nil, unreadable(err.Error(), "as=json shows its steps")
		}
		return out, err
	}
	if format := biblio.Format(opts.form); slices.Contains(biblio.Formats(), format) {
		var b bytes.Buffer
		err := biblio.Write(&b, format, t.Summary(&opts.SummaryOptions).Bibliography(), nil)
		return b.Bytes(), err
	}
	s, err := summarised(ctx, t, opts, link)
	if err != nil {
		return nil, err
	}
	return encodeSummary(s, opts)
}

// maxSummary is how many bytes a summary has if nothing else is asked for. A longer one is a page of it.
const maxSummary = 200_000

// sourceSize is about how many bytes a source has in a step, and half of what one has in the list of sources.
const sourceSize = 600

// encodeSummary encodes the part of a summary that is asked for, or as much of it as fits.
func encodeSummary(s *trail.Summary, opts *summaryOptions) ([]byte, error) {
	if opts.all || opts.limit > 0 {
		if opts.limit > 0 {
			s = s.Page(opts.from, opts.limit)
		}
		return httpx.Encode(s)
	}
	size, rows := len(s.Run.Steps), 2*len(s.Sources)+2*len(s.Unused)
	for i := range s.Run.Steps {
		rows += len(s.Run.Steps[i].Sources)
	}
	if often := rows * sourceSize; often > 4*maxSummary { // a first guess, instead of encoding all
		size = max(1, size*2*maxSummary/often)
	} else if opts.from == 0 {
		if b, err := httpx.Encode(s); err != nil || len(b) <= maxSummary {
			return b, err
		}
	}
	for {
		b, err := httpx.Encode(s.Page(opts.from, size))
		if err != nil || len(b) <= maxSummary || size <= 1 {
			return b, err
		}
		size = min(size-1, size*maxSummary*9/10/len(b)) // about as many as fit
		size = max(size, 1)
	}
}

// summarised links the sentences of a run, weighs its sources and returns the summary.
func summarised(
	ctx context.Context, t *trail.Trail, opts *summaryOptions, link *trail.LinkOptions,
) (*trail.Summary, error) {
	links, err := t.Link(ctx, nil, link)
	if err != nil {
		return nil, err
	}
	if err := t.Weigh(ctx, nil); err != nil {
		return nil, err
	}
	s := t.Summary(&opts.SummaryOptions)
	s.SetLinks(links)
	if err := s.Assess(ctx, &trail.AssessOptions{Now: today(), Known: opts.known}); err != nil {
		return nil, err
	}
	if !opts.content {
		leaveOutContent(t)
	}
	return s, nil
}

// leaveOutContent replaces the content of the passages by excerpts.
func leaveOutContent(t *trail.Trail) {
	for i := range t.Steps {
		step := &t.Steps[i]
		for k := range step.Sources {
			if f := &step.Sources[k]; f.Content != "" {
				f.Excerpt, f.Content = cmp.Or(f.Excerpt, trail.Excerpt(f.Content, 0)), ""
			}
		}
		if step.Nested != nil {
			leaveOutContent(step.Nested)
		}
	}
}

// Upper bounds of the parameters of a summary.
const (
	maxTop     = 1000
	maxExcerpt = 10_000
	maxSteps   = 100_000
)

// summaryForms are the forms in which a run can be written.
func summaryForms() []string {
	return slices.Concat(
		[]string{asJSON, asPROV, asOTLP}, text.Strings(ibid.Styles()), text.Strings(biblio.Formats()))
}

// summaryParams are the parameters of a summary.
func summaryParams() []httpx.Param {
	share := strconv.FormatFloat(trail.DefaultThreshold, 'g', -1, 64)
	return []httpx.Param{
		httpx.OneOf("as: the summary, the run in another program's format, the final answer with its citations in a "+
			"style, or a bibliography", summaryForms()...),
		{
			Name: "threshold", Kind: httpx.Share, Default: share,
			Doc: "the relevance that a source must exceed to be primary, unless the answer rests on it",
		},
		httpx.Number("top: the maximum number of primary sources", trail.DefaultTop, 1, maxTop),
		httpx.Number(
			"excerpt: the maximum characters of a passage; 0 omits passages", trail.DefaultExcerpt, 0, maxExcerpt),
		httpx.OneOf("adjust: rank sources by relevance times the confidence of their step", "false", "true"),
		httpx.Texts("strategy: the strategy that links sentences; defaults to the run's own")[0],
		httpx.OneOf("content: include the full text of passages", "false", "true"),
		httpx.Number("from_step: the number of the first step to include", 0, 0, math.MaxInt32),
		httpx.Number("limit: the maximum number of steps; 0 means as many as fit in 200 kB", 0, 0, maxSteps),
		httpx.OneOf("all: include all steps, however long the summary is", "false", "true"),
	}
}

// readSummaryOptions returns the options that a request gives.
func readSummaryOptions(p httpx.Params) *summaryOptions {
	threshold := p.Float("threshold")
	return &summaryOptions{
		SummaryOptions: trail.SummaryOptions{
			Threshold: &threshold, Top: p.Int("top"), Excerpt: p.Int("excerpt"), NoExcerpts: p.Int("excerpt") == 0,
			Adjust: p.Get("adjust") == "true",
		},
		form: p.Get("as"), strategy: p.Get("strategy"), content: p.Get("content") == "true",
		from: p.Int("from_step"), limit: p.Int("limit"), all: p.Get("all") == "true",
	}
}
