package page

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// hitsListed is how many answers a page of a search has, and hitsRanked how many of a search for words: the newest
	// ones that have them, best match first.
	hitsListed = 20
	hitsRanked = 50
	// sitesNamed is how many sources of a hit are named.
	sitesNamed = 4
	// maxHitQuestion is how many characters of the question are shown above a hit.
	maxHitQuestion = 120
)

// searchBody is the content of a search.
type searchBody struct {
	Query, Source, Badge string
	Badges               []choice
	Hits                 []hitView
	Next                 string // the address of the next page; empty if there is none
	More                 bool   // it is not the first page
}

// Asked reports whether there is anything to search for.
func (b *searchBody) Asked() bool { return b.Query+b.Source+b.Badge != "" }

// hitView is an answer that was found.
type hitView struct {
	*store.Call

	Question  string  // the question; else what is known of the answer
	Text      []piece // the stretch of the answer that was found, with its words marked
	Sites     []string
	MoreSites int
	Badges    []countedBadge // of its citations
}

// search finds answers by words, source and the result of checking them.
func (p *Page) search(ctx context.Context, r *httpx.Request) (*view, error) {
	q := r.URL.Query()
	source, err := askedLong(q.Get("source"))
	if err != nil {
		return nil, err
	}
	body := &searchBody{Query: asked(r, "q"), Source: source, Badge: asked(r, "badge"), More: q.Get("cursor") != ""}
	body.Badges = verificationChoices(body.Badge)
	isChosen := func(c choice) bool { return c.Chosen }
	if !slices.ContainsFunc(body.Badges, isChosen) { // a status that reports link to
		body.Badges = append(body.Badges, choice{body.Badge, words(body.Badge), true})
	}
	p.captured.CatchUp(ctx)
	limit := hitsListed
	if body.Query != "" {
		limit = hitsRanked
	}
	page, err := p.o.Store.Calls(ctx, r.Who.Tenant, &store.Query{
		Text: body.Query, Source: body.Source, Verification: body.Badge, Cursor: q.Get("cursor"), Limit: limit,
	})
	if errors.Is(err, store.ErrCursor) {
		return nil, httpx.BadRequest("There is no such page of this search.", "Start the search again.")
	}
	if err != nil {
		return nil, err
	}
	find, until := newFinder(body.Query), time.Now().Add(listFor)
	if body.Query != "" {
		rank(find, page.Items)
	}
	for _, call := range page.Items {
		h := hitView{Call: call, Question: questionOf(call)}
		if call.Answer.Text != "" {
			h.Text = find.excerpt(call.Answer.Text)
		}
		h.Sites, h.MoreSites = sitesOf(call.Answer)
		if h.Badges, err = p.countStandings(ctx, r.Who.Tenant, nil, call, until); err != nil {
			return nil, err
		}
		body.Hits = append(body.Hits, h)
	}
	body.Next = nextURL(r.URL, page.Next)
	return &view{Name: "search", Title: "Search", Query: body.Query, Body: body}, nil
}

// The weights of a matching word, by its place.
const (
	inQuestion = 8
	inTitle    = 4 // of a cited source
	inText     = 1 // for each occurrence, up to mostInText
	mostInText = 3
)

// rank sorts answers by how well they match the query: by words of the question, then by titles of their sources, then
// by the text. Equal matches keep their order.
func rank(find *finder, calls []*store.Call) {
	points := make(map[*store.Call]int, len(calls))
	for _, call := range calls {
		n := inQuestion * find.count(questionOf(call), 1)
		var titles strings.Builder
		for i := range call.Answer.Sources {
			titles.WriteString(call.Answer.Sources[i].Title + "\n")
		}
		n += inTitle * find.count(titles.String(), 1)
		points[call] = n + inText*find.count(text.Head(call.Answer.Text, hitLooked), mostInText)
	}
	slices.SortStableFunc(calls, func(a, b *store.Call) int { return cmp.Compare(points[b], points[a]) })
}

// questionOf returns the last question, shortened; else what is known of the answer.
func questionOf(call *store.Call) string {
	for i := range slices.Backward(call.Prompt) {
		if m := &call.Prompt[i]; m.Role == store.RoleUser {
			if q := short(passage.Question(m.Text), maxHitQuestion); q != "" {
				return q
			}
		}
	}
	return "An answer by " + cmp.Or(call.Answer.Model, call.Answer.Provider, call.Upstream, "an unknown model")
}

// sitesOf names the sites of the sources that an answer cites, each once.
func sitesOf(a *ibid.Answer) (sites []string, more int) {
	seen := map[string]bool{}
	for i := range a.Citations {
		for k := range a.Citations[i].Refs {
			s := a.Source(a.Citations[i].Refs[k].Source)
			if s == nil {
				continue
			}
			name := cmp.Or(siteOf(s), sourceTitle(s))
			if seen[name] {
				continue
			}
			seen[name] = true
			if len(sites) < sitesNamed {
				sites = append(sites, name)
			} else {
				more++
			}
		}
	}
	return sites, more
}
