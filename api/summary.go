package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/trail"
)

// The values of as of a summary, besides json.
const (
	asPROV = "prov"
	asOTLP = "otlp"
)

// maxSummaries is how many summaries are made at the same time: each takes a processor and holds a run.
const maxSummaries = 4

// summary shows what a run rested on, and what each sentence of its answer does.
func (a *API) summary(w http.ResponseWriter, r *request) error {
	opts, err := r.params.summary()
	if err != nil {
		return err
	}
	form, err := r.params.choice("as", []string{asJSON, asPROV, asOTLP})
	if err != nil {
		return err
	}
	id, err := r.pathID()
	if err != nil {
		return err
	}
	ctx, cancel := within(r)
	defer cancel()
	a.settle(ctx)
	if err := a.summaries.Acquire(ctx, 1); err != nil {
		return gateway.Unavailable("too many summaries are being made at the same time")
	}
	defer a.summaries.Release(1)
	t, err := a.store.Trail(ctx, r.who.Tenant, id)
	if err != nil {
		return storeError("read a run", err)
	}
	body, err := renderTrail(ctx, t, form, opts)
	if err != nil {
		return fmt.Errorf("summarise a run: %w", err)
	}
	write(w, r, http.StatusOK, "application/json", body)
	return nil
}

// renderTrail links the sentences of a run's answer with what they rest on, and writes the run in a form.
func renderTrail(ctx context.Context, t *trail.Trail, form string, opts *trail.SummaryOptions) ([]byte, error) {
	if form == asOTLP {
		return t.Traces(trail.TracesJSON, &trail.EmitOptions{NoContent: opts.NoExcerpts})
	}
	links, err := t.Link(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	if form == asPROV { // the answer derives from the steps that feed it, which are known now
		return t.PROV(&trail.PROVOptions{Content: !opts.NoExcerpts})
	}
	if err := t.Weigh(ctx, nil); err != nil {
		return nil, err
	}
	s := t.Summary(opts)
	s.Links = links
	return encode(s)
}

// The bounds of the parameters of a summary.
const (
	maxTop     = 1000
	maxExcerpt = 10_000
)

// summary returns how a summary is wanted.
func (p params) summary() (*trail.SummaryOptions, error) {
	threshold, err := p.share("threshold", trail.DefaultThreshold)
	if err != nil {
		return nil, err
	}
	top, err := p.number("top", trail.DefaultTop, 1, maxTop)
	if err != nil {
		return nil, err
	}
	excerpt, err := p.number("excerpt", trail.DefaultExcerpt, 0, maxExcerpt)
	if err != nil {
		return nil, err
	}
	adjust, err := p.choice("adjust", []string{"false", "true"})
	return &trail.SummaryOptions{
		Threshold: &threshold, Top: int(top), Excerpt: int(excerpt), NoExcerpts: excerpt == 0, Adjust: adjust == "true",
	}, err
}
