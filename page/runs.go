package page

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/ibidhq/ibid/store"
)

const (
	// maxRuns is how many runs a page of the list has.
	maxRuns = 25
	// maxListed is how many bytes may be stored of a run for the list to say what it rested on. Of larger ones their
	// own pages do.
	maxListed = 256 << 10
	// listFor bounds how long is spent on what the runs of a page rested on. What is not known by then the list does
	// not say.
	listFor = time.Second
)

// runsBody is the list of runs.
type runsBody struct {
	Runs []runRow
	Next string // the address of the page that follows; empty: there is none
}

// runRow is a run in the list.
type runRow struct {
	Title   string // its question; empty: it is not known
	ID      string
	URL     string
	Agent   string
	Started time.Time // zero: it is not known
	Open    bool      // nobody said that it has ended
	Answers int       // captured
	Steps   int
	Known   bool   // the rest is known
	Sources int    // that its steps used
	Uncited string // the share of sentences without a source, in words; empty: there are none that say something
}

// showRuns lists runs, the one with the latest call or record first.
func (p *Page) showRuns(w http.ResponseWriter, r *request) error {
	asking, end := context.WithTimeout(r.Context(), askStore)
	defer end()
	p.caughtUp(asking)
	page, err := p.o.Store.Runs(asking, r.who.Tenant, &store.Query{Cursor: r.URL.Query().Get("cursor"), Limit: maxRuns})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), listFor)
	defer cancel()
	body := runsBody{}
	for i := range page.Items {
		body.Runs = append(body.Runs, p.runRow(ctx, r.who.Tenant, &page.Items[i]))
	}
	if page.Next != "" {
		body.Next = "/ui/runs?cursor=" + url.QueryEscape(page.Next)
	}
	return p.page(w, r, "runs", &view{Title: "Runs", Section: "runs", Body: &body})
}

// runRow returns a run as the list has it: with what it rested on, if that is quickly known.
func (p *Page) runRow(ctx context.Context, tenant string, run *store.Run) runRow {
	row := runRow{
		Title:   run.Question,
		ID:      run.ID,
		URL:     runURL(run.ID),
		Agent:   run.Agent,
		Started: run.Started,
		Answers: run.Answers,
		Steps:   max(run.Recorded, run.Answers),
		Open:    run.Recorded > 0 && run.Finished.IsZero(),
	}
	if weight, err := p.o.Store.Weight(ctx, tenant, run.ID); err != nil || weight > maxListed {
		return row
	}
	s, err := p.o.API.Summary(ctx, tenant, run.ID)
	if err != nil {
		return row
	}
	row.Known, row.Steps, row.Sources = true, len(s.Run.Steps), len(s.Sources)
	if s.Links.Uncited != nil {
		row.Uncited = percent(*s.Links.Uncited)
	}
	if row.Title == "" {
		row.Title = s.Run.Question
	}
	return row
}
