package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// trail returns the summary of the run in the body, which is not stored.
func (a *API) trail(w *httpx.Reply, r *httpx.Request) error {
	opts := readSummaryOptions(r.Params)
	body, release, err := a.readWork(w, r, maxRun, recordMemory)
	if err != nil {
		return err
	}
	defer release()
	t, err := ReadTrail(body)
	if err != nil {
		return badRun(err)
	}
	link, err := a.linkOptions(t, opts)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	done, err := a.summaries.HoldBytes(waiting, int64(len(body)))
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), summarise)
	defer cancel()
	out, err := renderTrail(ctx, t, opts, link)
	if err != nil {
		return err
	}
	w.Body(http.StatusOK, MediaType(opts.form), out)
	return nil
}

// ReadTrail reads a run in any form that package trail accepts, or the one run of an OpenTelemetry trace request as
// JSON.
func ReadTrail(data []byte) (*trail.Trail, error) {
	var request struct {
		Spans json.RawMessage `json:"resourceSpans"`
	}
	if json.Unmarshal(data, &request) != nil || request.Spans == nil {
		return trail.Read(data) //nolint:wrapcheck // it says what failed
	}
	runs, err := otel.Read(otel.JSON, data, nil)
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it says what failed
	case len(runs) != 1:
		return nil, fmt.Errorf("%w: the trace request has %d runs, want one", trail.ErrNoRun, len(runs))
	}
	return runs[0], nil
}

// linkOptions returns how the sentences of a run are linked: by the requested strategy, else the run's own if it is
// configured here, else the defaults. Whatever the strategy's checker, links are inferred by the built-in one: opening
// a page must not cost anything but time.
func (a *API) linkOptions(t *trail.Trail, opts *summaryOptions) (*trail.LinkOptions, error) {
	strategy, err := experiment.Find(a.o.Strategies, cmp.Or(opts.strategy, t.Strategy))
	switch {
	case err == nil:
		return strategy.Link(), nil
	case opts.strategy != "":
		return nil, httpx.BadRequest(
			err.Error(), "define your own under strategies in the file of ibid serve --config",
		)
	}
	return &trail.LinkOptions{}, nil
}

// ErrNoAnswer is the error of [FinalText] for a run without a final answer.
var ErrNoAnswer = errors.New("the run has no final answer")

// FinalText writes the final answer of a run with its citations and sources in a style. If the answer has no citations
// itself, its sentences cite the documents that they rest on, as [trail.Trail.FinalAnswer] finds them.
func FinalText(
	ctx context.Context, t *trail.Trail, style ibid.Style, c support.Checker, link *trail.LinkOptions,
) ([]byte, error) {
	run := *t
	if run.Final != nil && len(run.Final.Citations) == 0 {
		run.Answer, run.Final = run.Final.Text, nil
	}
	answer, err := run.FinalAnswer(ctx, c, link)
	if err == nil && (answer == nil || answer.Text == "") {
		err = ErrNoAnswer
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	return RenderAnswer(answer, string(style), nil, &export.Options{Context: ctx})
}
