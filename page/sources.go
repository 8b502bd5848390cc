package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// usesListed is how many answers a page of the uses of a source has.
	usesListed = 20
	// versionsListed is how many of its versions are shown, the last ones.
	versionsListed = 20
	// alarmsListed is how many of its incidents are.
	alarmsListed = 5
	// maxAsking is how many bytes an address or a key has that is asked for.
	maxAsking = 4 << 10
)

// sourcesBody is the list of sources.
type sourcesBody struct {
	Read   string // of which answers it is made
	Top    []topView
	Broken []brokenView
}

// sourcePage is one source with what rests on it.
type sourcePage struct {
	Title, Site, Letter string
	URL                 string // empty: it has none
	Open                string // where it can be opened; empty: nowhere
	Uses                []answerUse
	Next                string
	More                bool // it is not the first page
	Versions            []versionView
	Older               bool // there are more versions
	Alarms              []incidentRow
	AlarmsLink          string // where all its incidents are; empty: those are all
	Search              string // where its answers can be searched
}

// answerUse is an answer that has the source.
type answerUse struct {
	Link     string
	Question string
	Model    string
	Started  time.Time
	Cites    []citedAs
}

// citedAs is what an answer cites of a source: its own words, and the source's.
type citedAs struct {
	Claim string // empty: the citation has no place in the text
	Quote quoteView
	Said  bool // there is a quote
	Badge badge
}

// versionView is a state that a source was found in.
type versionView struct {
	First, Last time.Time
	Hash        string // its beginning
	Whole       string
	Status      int
	MediaType   string
	Final       string // where it was, if it was elsewhere
	Copy        string // the address of its octets here; empty: they are not kept
}

func sourceLink(key string) string        { return "/ui/sources?key=" + url.QueryEscape(key) }
func sourceURLLink(address string) string { return "/ui/sources?url=" + url.QueryEscape(address) }

// sources lists sources, or shows one.
func (p *Page) sources(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	query := &store.SourceQuery{Cursor: q.Get("cursor"), Limit: usesListed}
	var err error
	if query.URL, err = named(q.Get("url")); err != nil {
		return err
	}
	if query.ID, err = named(q.Get("key")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	if query.URL != "" || query.ID != "" {
		p.caughtUp(ctx)
		return p.source(ctx, w, r, query)
	}
	d, err := p.digest(ctx, r.who.Tenant)
	if err != nil {
		return err
	}
	body := &sourcesBody{Top: topViews(d.top, manySources), Broken: brokenViews(d.broken, manySources)}
	if d.older {
		body.Read = "In the last " + counted(d.answers, "answer", "answers") + "."
	}
	return p.page(w, r, "sources", &view{Title: "Sources", Section: "sources", Body: body})
}

// named returns an address, a key or a list of these that is asked for. One that is too long is refused: without it the
// answer would be another.
func named(s string) (string, error) {
	if len(s) > maxAsking {
		return "", badRequest(
			"What is asked for is too long.", "An address may have "+strconv.Itoa(maxAsking)+" bytes.",
		)
	}
	return s, nil
}

// source shows one source.
func (p *Page) source(ctx context.Context, w http.ResponseWriter, r *request, q *store.SourceQuery) error {
	uses, err := p.o.Store.Sources(ctx, r.who.Tenant, q)
	if errors.Is(err, store.ErrCursor) {
		return badRequest("There is no such page of this list.", "Begin again with the first.")
	}
	if err != nil {
		return err
	}
	body := &sourcePage{URL: q.URL, More: q.Cursor != "", Next: nextURL("/ui/sources", r.URL, uses.Next)}
	if len(uses.Items) == 0 && q.URL == "" {
		return p.nowhere(w, r)
	}
	s := &ibid.Source{URL: q.URL}
	if err := p.addUses(ctx, r.who.Tenant, body, uses.Items, s); err != nil {
		return err
	}
	body.Title, body.Site, body.Letter, body.URL, body.Open = sourceTitle(
		s,
	), siteOf(
		s,
	), letterOf(
		s,
	), s.URL, passageURL(
		s, nil,
	)
	body.Search = "/ui/search?source=" + url.QueryEscape(cmp.Or(s.URL, q.ID))
	if s.URL != "" {
		if err := p.addHistory(ctx, r.who.Tenant, body, s.URL); err != nil {
			return err
		}
	}
	return p.page(w, r, "source", &view{Title: body.Title, Section: "sources", Body: body})
}

// addUses adds the answers, each once, with what they cite of the source, and makes source what the first of them knows
// it as.
func (p *Page) addUses(
	ctx context.Context, tenant string, body *sourcePage, uses []store.SourceUse, source *ibid.Source,
) error {
	seen := map[string]bool{}
	for i := range uses {
		u := &uses[i]
		if seen[u.AnswerID] {
			continue
		}
		call, err := p.o.Store.Call(ctx, tenant, u.AnswerID)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		if len(seen) == 0 {
			*source = *sourceWith(call.Answer, u.Key, source)
		}
		seen[u.AnswerID] = true
		v := answerUse{
			Link:     answerURL(u.AnswerID),
			Question: questionOf(call),
			Model:    cut(oneLine(call.Answer.Model), maxLabel),
			Started:  call.Started,
		}
		for k := range uses[i:] {
			if same := &uses[i+k]; same.AnswerID == u.AnswerID {
				v.Cites = append(v.Cites, citedOf(call.Answer, same.Key)...)
			}
		}
		body.Uses = append(body.Uses, v)
	}
	return nil
}

// sourceWith returns the source of an answer with a key, else what it is taken for.
func sourceWith(a *ibid.Answer, key string, otherwise *ibid.Source) *ibid.Source {
	for i := range a.Sources {
		if a.Sources[i].Key() == key {
			return &a.Sources[i]
		}
	}
	return otherwise
}

// citedOf returns what an answer cites of the source with a key.
func citedOf(a *ibid.Answer, key string) []citedAs {
	var list []citedAs
	for i := range a.Citations {
		c := &a.Citations[i]
		for k := range c.Refs {
			ref := &c.Refs[k]
			if s := a.Source(ref.Source); s == nil || s.Key() != key {
				continue
			}
			claim := short(plainWords(cutBytes(claimOf(a, c), 8*maxClaimShown)), maxClaimShown)
			v := citedAs{Claim: claim, Badge: quoteBadge(c.Verification), Said: ref.Quote != ""}
			if v.Said {
				v.Quote = newClaimWords(claim).show(ref.Quote)
			}
			list = append(list, v)
		}
	}
	return list
}

// maxClaimShown is how many characters of a claim are shown where it stands by itself.
const maxClaimShown = 600

// addHistory adds the versions of a source, and its incidents.
func (p *Page) addHistory(ctx context.Context, tenant string, body *sourcePage, address string) error {
	if clean, err := snapshot.CleanURL(address); err == nil {
		versions, err := p.o.Store.Versions(ctx, tenant, clean, &store.Query{Limit: versionsListed})
		if err != nil {
			return err
		}
		body.Older = versions.Next != ""
		for i := range versions.Items {
			body.Versions = append(body.Versions, versionViewOf(&versions.Items[i]))
		}
	}
	alarms, err := p.o.Store.Incidents(ctx, tenant, &store.IncidentQuery{Source: address, Limit: alarmsListed})
	if err != nil {
		return err
	}
	body.Alarms = incidentRows(alarms.Items)
	if alarms.Next != "" {
		body.AlarmsLink = "/ui/incidents?source=" + url.QueryEscape(address)
	}
	return nil
}

func versionViewOf(v *store.Version) versionView {
	view := versionView{
		First:     v.FetchedAt,
		Last:      v.LastSeen,
		Hash:      short(shortHash(v.Hash), 16),
		Whole:     v.Hash,
		Status:    v.Status,
		MediaType: v.MediaType,
	}
	if v.FinalURL != v.URL {
		view.Final = shownAddress(v.FinalURL)
	}
	if v.Kept {
		view.Copy = "/ui/copies/" + url.PathEscape(v.Hash)
	}
	return view
}

// shortHash returns the beginning of a hash, without the name of its algorithm.
func shortHash(hash string) string {
	if len(hash) > 7 && hash[:7] == "sha256:" {
		hash = hash[7:]
	}
	return hash[:min(len(hash), 12)]
}

// sourceOfPin returns the source that a pin is of.
func sourceOfPin(p *store.Pin) *ibid.Source {
	return &ibid.Source{ID: p.SourceID, URL: p.URL, Title: p.Source.Title}
}
