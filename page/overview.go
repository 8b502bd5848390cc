package page

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// latestListed is how many of the latest things of a kind an overview lists.
const latestListed = 5

// proofRoutes returns the endpoints of what citations rest on and whether it holds: the overview, search, sources,
// incidents, verification and experiments.
func (p *Page) proofRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /{$}":               {handle: p.overview},
		"GET /ui/search":         {handle: p.search},
		"GET /ui/sources":        {handle: p.sources},
		"GET /ui/incidents":      {handle: p.incidents},
		"GET /ui/incidents/{id}": {handle: p.incident},
		"GET /ui/verify":         {handle: p.showVerify},
		"POST /ui/verify":        {scope: store.ScopeVerify, handle: p.verify},
		"GET /ui/experiments":    {handle: p.experiments},
	}
}

// overviewBody is what the overview shows.
type overviewBody struct {
	Empty    bool
	Base     string // the address of this server, for whom nothing is here yet
	Facts    []total
	Read     string // of which answers the numbers are
	Cited    *chart
	Verified *chart // nil: nothing was checked
	Uncited  *shareView
	Bare     *shareView
	Top      []topView
	Broken   []brokenView
	Talks    []talkItem
	Runs     []runRow
	Alarms   []incidentRow
}

// total is a number with its noun, and where there is more of it.
type total struct{ Count, Noun, URL string }

// shareView is a part of something, as a bar and in words.
type shareView struct {
	Width   float64 // of 100
	Percent string
	Words   string
}

func newShare(part, of int, words string) *shareView {
	if of == 0 {
		return nil
	}
	share := float64(part) / float64(of)
	return &shareView{Width: round(100 * share), Percent: percent(share), Words: strconv.Itoa(part) + " of " + words}
}

// topView is a source with a bar for how often it was cited.
type topView struct {
	usedSource

	Link  string  // to its page here
	Width float64 // of 100
}

// brokenView is a source that does not hold.
type brokenView struct {
	Title, Site, Link string
	Badge             badge
	Answers           int
	Checked           time.Time
	Answer            string // the address of the last answer that rests on it
}

// overview shows what is here.
func (p *Page) overview(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	d, err := p.digest(ctx, r.who.Tenant)
	if err != nil {
		return err
	}
	body := &overviewBody{Base: p.baseURL(r), Facts: factsOf(d), Broken: brokenViews(d.broken, topSources)}
	if err := p.addLatest(ctx, r.who.Tenant, body); err != nil {
		return err
	}
	body.Empty = d.counts == (store.Counts{}) && len(body.Talks)+len(body.Runs)+len(body.Alarms) == 0
	body.addNumbers(d)
	return p.page(w, r, "overview", &view{Title: "Overview", Section: "overview", Body: body})
}

// addNumbers adds what a digest says.
func (b *overviewBody) addNumbers(d *digest) {
	b.Cited, b.Verified, b.Top = citationChart(d), verifiedChart(d), topViews(d.top, topSources)
	b.Uncited = newShare(
		d.uncited, d.says,
		counted(d.says, "sentence that says something has", "sentences that say something have")+" no source",
	)
	b.Bare = newShare(d.bare, d.answers, counted(d.answers, "answer has", "answers have")+" no source at all")
	b.Read = "Of all " + counted(d.answers, "answer", "answers") + " with text"
	if d.older {
		b.Read = "Of the last " + counted(d.answers, "answer", "answers") + " with text"
	}
	b.Read += ", as of " + d.at.UTC().Format("15:04 UTC") + "."
}

// addLatest adds the latest things.
func (p *Page) addLatest(ctx context.Context, tenant string, body *overviewBody) error {
	talks, err := p.o.Store.Conversations(ctx, tenant, &store.Query{Limit: latestListed})
	if err != nil {
		return err
	}
	for i := range talks.Items {
		c, err := p.o.Store.Conversation(ctx, tenant, talks.Items[i].ID, &store.Query{Limit: glanced})
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		body.Talks = append(body.Talks, itemOf(c))
	}
	if body.Runs, err = p.latestRuns(ctx, tenant); err != nil {
		return err
	}
	alarms, err := p.o.Store.Incidents(ctx, tenant, &store.IncidentQuery{Limit: latestListed})
	if err != nil {
		return err
	}
	body.Alarms = incidentRows(alarms.Items)
	return nil
}

// latestRuns returns the runs with the latest calls or records, of the latest [maxRuns] first those that somebody
// recorded: each call by itself is a run, too.
func (p *Page) latestRuns(ctx context.Context, tenant string) ([]runRow, error) {
	page, err := p.o.Store.Runs(ctx, tenant, &store.Query{Limit: maxRuns})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(page.Items, func(a, b store.Run) int { return min(b.Recorded, 1) - min(a.Recorded, 1) })
	ctx, cancel := context.WithTimeout(ctx, listFor)
	defer cancel()
	rows := []runRow{}
	for i := range page.Items[:min(len(page.Items), latestListed)] {
		rows = append(rows, p.runRow(ctx, tenant, &page.Items[i]))
	}
	return rows, nil
}

// baseURL returns the address of this server: the one that others have, else the one under which its reader reached it.
func (p *Page) baseURL(r *request) string {
	switch {
	case p.o.PublicURL != "":
		return strings.TrimRight(p.o.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// secure reports whether a reader's browser reaches the page by https, also where a proxy ends TLS.
func (p *Page) secure(r *request) bool {
	return r.TLS != nil || strings.HasPrefix(p.o.PublicURL, "https:")
}

func factsOf(d *digest) []total {
	list := []total{}
	for _, f := range []struct {
		n         int
		one, many string
		url       string
	}{
		{d.counts.Answers, "answer", "answers", "/ui/search"},
		{d.counts.Conversations, "conversation", "conversations", "/ui/conversations"},
		{d.counts.Runs, "run", "runs", "/ui/runs"},
		{d.counts.Incidents, "incident", "incidents", "/ui/incidents"},
	} {
		count, noun := strconv.Itoa(f.n), f.many
		switch {
		case f.n == 1:
			noun = f.one
		case f.n > store.MaxCounted:
			count = "over " + strconv.Itoa(store.MaxCounted)
		}
		list = append(list, total{count, noun, f.url})
	}
	return list
}

func topViews(list []usedSource, most int) []topView {
	views := []topView{}
	for _, u := range list[:min(len(list), most)] {
		views = append(
			views,
			topView{u, sourceLink(u.Key), round(100 * float64(u.Citations) / float64(list[0].Citations))},
		)
	}
	return views
}

func brokenViews(list []store.BrokenSource, most int) []brokenView {
	views := []brokenView{}
	for i := range list[:min(len(list), most)] {
		b := &list[i]
		s := sourceOfPin(&b.Pin)
		views = append(views, brokenView{
			Title: sourceTitle(
				s,
			),
			Site:    siteOf(s),
			Link:    sourceURLLink(b.URL),
			Badge:   statusBadge(b.Status, b.CheckedAt),
			Answers: b.Answers,
			Checked: b.CheckedAt,
			Answer:  answerURL(b.AnswerID),
		})
	}
	return views
}
