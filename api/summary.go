package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/experiment"
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

// summarise bounds how long making a summary may take. That it waits for others and for the store is bounded by
// httpx.StoreTime.
const summarise = 2 * time.Minute

// summaryOptions are how a summary is wanted.
type summaryOptions struct {
	trail.SummaryOptions

	form, strategy string
	content        bool                            // with all words of the passages that steps had
	known          map[string]support.QualityInput // what people said of documents
}

// summary shows what a run rested on, and what each sentence of its answer does. Requests for the same summary at the
// same time share one.
func (a *API) summary(w *httpx.Reply, r *httpx.Request) error {
	opts := readSummaryOptions(r.Params)
	id, err := r.PathID()
	if err != nil {
		return err
	}
	same := []any{r.Who.Tenant, id, r.Params.Given()}
	body, err := shared(r.Context(), a, same, func(ctx context.Context) ([]byte, error) {
		return a.makeSummary(ctx, r.Who.Tenant, id, opts)
	})
	if err != nil {
		return err
	}
	w.Body(http.StatusOK, cmp.Or(biblio.Format(opts.form).MediaType(), "application/json"), body)
	return nil
}

// Summary returns what GET /v1/runs/{id}/summary shows of a run unless it is told otherwise, within the same bounds:
// with the sentences linked, the sources assessed with what people said of them, and of passages only excerpts. Who
// asks for the same at the same time gets the same one, so nobody may change it. It returns when ctx ends, though
// others may still wait. A run that is not there is store.ErrNotFound.
func (a *API) Summary(ctx context.Context, tenant, run string) (*trail.Summary, error) {
	params, err := httpx.ReadParams("", summaryParams())
	if err != nil {
		return nil, err
	}
	opts := readSummaryOptions(params)
	return shared(ctx, a, []any{tenant, run}, func(ctx context.Context) (*trail.Summary, error) {
		var s *trail.Summary
		err := a.readRun(
			ctx, tenant, run, opts, func(ctx context.Context, t *trail.Trail, link *trail.LinkOptions) (err error) {
				s, err = summarised(ctx, t, opts, link)
				return err
			},
		)
		return s, err
	})
}

// ExportRun returns a run as GET /v1/runs/{id}/summary writes it, as json, prov or otlp; empty is json. Another word is
// an error for whoever asked.
func (a *API) ExportRun(ctx context.Context, tenant, run, as string) ([]byte, error) {
	query := ""
	if as != "" {
		query = url.Values{"as": {as}}.Encode()
	}
	params, err := httpx.ReadParams(query, summaryParams())
	if err != nil {
		return nil, err
	}
	opts := readSummaryOptions(params)
	return shared(ctx, a, []any{tenant, run, params.Given()}, func(ctx context.Context) ([]byte, error) {
		return a.makeSummary(ctx, tenant, run, opts)
	})
}

// shared returns what work returns, once for all who ask for the same at the same time and as long as one of them does.
func shared[T any](ctx context.Context, a *API, same []any, work func(context.Context) (T, error)) (T, error) {
	var none T
	key, err := json.Marshal(same)
	if err != nil {
		return none, fmt.Errorf("summarise a run: %w", err)
	}
	v, err := a.flights.do(ctx, string(key), func(ctx context.Context) (any, error) { return work(ctx) })
	if err != nil {
		return none, err
	}
	return v.(T), nil //nolint:forcetypeassert // it is what work returns; no two sorts of it have the same key
}

func (a *API) makeSummary(ctx context.Context, tenant, id string, opts *summaryOptions) ([]byte, error) {
	var body []byte
	err := a.readRun(
		ctx, tenant, id, opts, func(ctx context.Context, t *trail.Trail, link *trail.LinkOptions) (err error) {
			body, err = renderTrail(ctx, t, opts, link)
			return err
		},
	)
	return body, err
}

// readRun calls use with a run and how its sentences are linked, within the bounds of summaries. It completes opts.
func (a *API) readRun(
	ctx context.Context, tenant, id string, opts *summaryOptions,
	use func(context.Context, *trail.Trail, *trail.LinkOptions) error,
) error {
	waiting, cancel := context.WithTimeout(ctx, httpx.StoreTime)
	defer cancel()
	a.reader.CatchUp(waiting)
	release, err := a.summaries.Hold(waiting, a.store, tenant, id)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel = context.WithTimeout(ctx, summarise)
	defer cancel()
	t, err := a.store.Trail(ctx, tenant, id)
	if err != nil {
		return httpx.StoreError("read a run", err)
	}
	// Sentences are linked by the strategy that was asked for, else by the run's own, if it is known here, else by the
	// defaults. Whatever the strategy's checker is, it is the built-in one that infers: a page that is opened should
	// cost nothing but time.
	link := &trail.LinkOptions{}
	strategy, err := experiment.Find(a.o.Strategies, cmp.Or(opts.strategy, t.Strategy))
	switch {
	case err == nil:
		link = strategy.Link()
	case opts.strategy != "":
		return httpx.BadRequest(
			err.Error(), "strategies of your own stand under strategies in the file of ibid serve --config",
		)
	}
	if opts.form == asJSON { // the others say nothing of it
		if opts.known, err = a.knownOf(ctx, tenant, id); err != nil {
			return httpx.StoreError("read what people said of a run", err)
		}
	}
	if err := use(ctx, t, link); err != nil {
		return fmt.Errorf("summarise a run: %w", err)
	}
	return nil
}

// The relevance that people give counts as an up from one of these on, as a down up to the other, and not in between.
const (
	upFrom   = 0.6
	downUpTo = 0.3
)

// knownOf returns what people said of the sources of a run. The last word of a person on a source and step counts; of
// more than store.MaxLimit words in all, the last ones do.
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

// renderTrail links the sentences of a run's answer with what they rest on, and writes the run in a form.
func renderTrail(ctx context.Context, t *trail.Trail, opts *summaryOptions, link *trail.LinkOptions) ([]byte, error) {
	if opts.form == asOTLP {
		return otel.Write(t, otel.JSON, &otel.WriteOptions{NoContent: opts.NoExcerpts})
	}
	if opts.form == asPROV { // the answer derives from the steps that feed it, which are known then
		if _, err := t.Link(ctx, nil, link); err != nil {
			return nil, err
		}
		return t.PROV(&trail.PROVOptions{Content: !opts.NoExcerpts, Linked: true})
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
	return httpx.Encode(s)
}

// summarised links and weighs a run and adds it up.
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
	s.Links = links
	s.Assess(&trail.AssessOptions{Now: time.Now().Truncate(24 * time.Hour), Known: opts.known})
	if !opts.content {
		leaveOutContent(t)
	}
	return s, nil
}

// leaveOutContent leaves of the passages of a run's steps their excerpts.
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

// The bounds of the parameters of a summary.
const (
	maxTop     = 1000
	maxExcerpt = 10_000
)

// summaryParams are the parameters of a summary.
func summaryParams() []httpx.Param {
	share := strconv.FormatFloat(trail.DefaultThreshold, 'g', -1, 64)
	return []httpx.Param{
		httpx.OneOf("as: the summary, the run in another program's format, or a bibliography",
			slices.Concat([]string{asJSON, asPROV, asOTLP}, text.Strings(biblio.Formats()))...),
		{
			Name: "threshold", Kind: httpx.Share, Default: share, Doc: "primary sources are more relevant than this",
		},
		httpx.Number("top: how many primary sources there are at most", trail.DefaultTop, 1, maxTop),
		httpx.Number("excerpt: characters of a passage that are shown; 0: none", trail.DefaultExcerpt, 0, maxExcerpt),
		httpx.OneOf("adjust: rank sources by their relevance times the confidence of their step", "false", "true"),
		httpx.Texts("strategy: by which strategy sentences are linked; without it, the run's own")[0],
		httpx.OneOf("content: with the whole words of passages", "false", "true"),
	}
}

// readSummaryOptions returns how a summary is wanted.
func readSummaryOptions(p httpx.Params) *summaryOptions {
	threshold := p.Float("threshold")
	return &summaryOptions{
		SummaryOptions: trail.SummaryOptions{
			Threshold: &threshold, Top: p.Int("top"), Excerpt: p.Int("excerpt"), NoExcerpts: p.Int("excerpt") == 0,
			Adjust: p.Get("adjust") == "true",
		},
		form: p.Get("as"), strategy: p.Get("strategy"), content: p.Get("content") == "true",
	}
}

// flights is work whose result all get who ask for the same at the same time. It goes on as long as one of them waits
// for it. The zero value is ready.
type flights struct {
	mu sync.Mutex
	of map[string]*flight // what is being done
}

// flight is one of them.
type flight struct {
	waiting int // how many want its result; guarded by flights.mu
	cancel  context.CancelFunc
	done    chan struct{} // closed when the rest is there
	value   any
	err     error
	panic   any
}

// do returns what work returns, or why ctx has ended if it does before. Who leaves last ends the work and waits for
// that. A panic of the work is one of all who wait.
func (f *flights) do(ctx context.Context, key string, work func(context.Context) (any, error)) (any, error) {
	one := f.join(ctx, key, work)
	select {
	case <-one.done:
		if one.panic != nil {
			panic(one.panic)
		}
		return one.value, one.err
	case <-ctx.Done():
		if f.leave(key, one) {
			<-one.done
		}
		return nil, ctx.Err()
	}
}

// join begins the work, if nobody has.
func (f *flights) join(ctx context.Context, key string, work func(context.Context) (any, error)) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of[key]
	if one == nil {
		one = &flight{done: make(chan struct{})}
		// others may wait for it when whoever asked first has left
		ctx, one.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if f.of == nil {
			f.of = map[string]*flight{}
		}
		f.of[key] = one
		go f.run(ctx, key, one, work)
	}
	one.waiting++
	return one
}

func (f *flights) run(ctx context.Context, key string, one *flight, work func(context.Context) (any, error)) {
	defer close(one.done)
	defer one.cancel()
	defer func() {
		if p := recover(); p != nil {
			one.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.forget(key, one)
	}()
	one.value, one.err = work(ctx)
}

// leave says that somebody does not wait any more. The last one ends the work.
func (f *flights) leave(key string, one *flight) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting > 0 {
		return false
	}
	f.forget(key, one)
	one.cancel()
	return true
}

// forget lets whoever asks from now on begin anew.
func (f *flights) forget(key string, one *flight) {
	if f.of[key] == one {
		delete(f.of, key)
	}
}
