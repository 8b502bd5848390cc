package page

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

const (
	// hitsListed is how many answers a page of a search has.
	hitsListed = 20
	// sitesNamed is how many sources of a hit are named.
	sitesNamed = 4
	// maxHitQuestion is how many characters of what was asked stand above a hit.
	maxHitQuestion = 120
)

// searchBody is what a search shows.
type searchBody struct {
	Query, Source, Badge string
	Badges               []talkFilter
	Said                 string // what was searched, in words
	Hits                 []hitView
	Next                 string // the address of the page that follows; empty: there is none
	More                 bool   // it is not the first page
	Asked                bool   // something was searched for
}

// hitView is an answer that was found.
type hitView struct {
	Link     string
	Question string        // what was asked; else what is known of the answer
	Text     template.HTML // the stretch of the answer that was found, with its words marked
	Provider string
	Model    string
	Started  time.Time
	Talk     string // the address of its conversation; empty: it is in none
	Run      string // likewise
	Cited    int
	Sources  int
	Sites    []string
	MoreOf   int // of the sites
	Badges   []talkBadge
}

// search looks for answers by words, source and what came of checking them.
func (p *Page) search(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	source, err := named(q.Get("source"))
	if err != nil {
		return err
	}
	body := &searchBody{
		Query:  clean(q.Get("q")),
		Source: source,
		Badge:  clean(q.Get("badge")),
		More:   q.Get("cursor") != "",
	}
	body.Badges = talkFilters(body.Badge)
	body.Asked = body.Query+body.Source+body.Badge != ""
	body.Said = saidOf(body)
	if body.Badge != "" && !isChoice(body.Badges) { // a status, which the statuses of reports lead to
		body.Badges = append(body.Badges, talkFilter{Value: body.Badge, Word: words(body.Badge), Chosen: true})
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	page, err := p.o.Store.Calls(ctx, r.who.Tenant, &store.Query{
		Text: body.Query, Source: body.Source, Verification: body.Badge, Cursor: q.Get("cursor"), Limit: hitsListed,
	})
	if errors.Is(err, store.ErrCursor) {
		return badRequest("There is no such page of this search.", "Search again from its beginning.")
	}
	if err != nil {
		return err
	}
	find := newFinder(body.Query)
	for _, call := range page.Items {
		body.Hits = append(body.Hits, hitOf(call, find))
	}
	body.Next = nextURL("/ui/search", r.URL, page.Next)
	return p.page(w, r, "search", &view{Title: "Search", Section: "search", Query: body.Query, Body: body})
}

func isChoice(list []talkFilter) bool {
	for _, f := range list {
		if f.Chosen {
			return true
		}
	}
	return false
}

// nextURL returns the address of the page behind a cursor; empty: there is none.
func nextURL(path string, u *url.URL, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := u.Query()
	q.Set("cursor", cursor)
	return path + "?" + q.Encode()
}

// saidOf says what is searched for.
func saidOf(b *searchBody) string {
	var parts []string
	if b.Query != "" {
		parts = append(parts, "that have the words “"+b.Query+"”")
	}
	if b.Source != "" {
		parts = append(parts, "with the source "+b.Source)
	}
	switch b.Badge {
	case "":
	case store.VerifiedFailed:
		parts = append(parts, "of which a check failed")
	case store.VerifiedUnverifiable:
		parts = append(parts, "of which a source could not be read")
	case store.VerifiedPassed:
		parts = append(parts, "that were checked and are in order")
	case store.VerifiedUnchecked:
		parts = append(parts, "that were not checked")
	default:
		parts = append(parts, "with a citation that came to “"+words(b.Badge)+"”")
	}
	if len(parts) == 0 {
		return "All answers"
	}
	return "Answers " + strings.Join(parts, ", ")
}

// hitOf lays out an answer that was found.
func hitOf(call *store.Call, find *finder) hitView {
	a := call.Answer
	h := hitView{
		Link: answerURL(
			call.AnswerID,
		),
		Question: questionOf(call),
		Text:     find.excerpt(a.Text),
		Provider: cut(oneLine(a.Provider), maxLabel),
		Model:    cut(oneLine(a.Model), maxLabel),
		Started:  call.Started,
		Cited:    len(a.Citations),
		Sources:  len(a.Sources),
	}
	if call.Conversation != "" {
		h.Talk = talkURL(call.Conversation)
	}
	if call.Run != "" {
		h.Run = runURL(call.Run)
	}
	h.Sites, h.MoreOf = sitesOf(a)
	item := &talkItem{}
	for i := range a.Citations {
		item.count(quoteBadge(a.Citations[i].Verification))
	}
	h.Badges = item.Badges
	return h
}

// questionOf returns what was asked last, short; else what is known of the answer.
func questionOf(call *store.Call) string {
	for i := len(call.Prompt) - 1; i >= 0; i-- {
		if m := &call.Prompt[i]; m.Role == store.RoleUser {
			if q := short(m.Text, maxHitQuestion); q != "" {
				return q
			}
		}
	}
	return "An answer by " + cmp.Or(call.Answer.Model, call.Answer.Provider, call.Upstream, "nobody known")
}

// sitesOf names the sources of an answer that it cites, each site once.
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
