package page

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// usesListed is how many answers a page of the uses of a source has.
	usesListed = 20
	// versionsListed is how many of its latest versions are shown.
	versionsListed = 20
	// alarmsListed is how many of its incidents are shown.
	alarmsListed = 5
	// maxClaimShown is how many characters of a claim are shown on its own.
	maxClaimShown = 600
)

// sourceBody is a source and what rests on it.
type sourceBody struct {
	*ibid.Source

	Title, Site, Letter string
	Uses                []answerUse
	Next                string
	More                bool // it is not the first page
	Versions            []store.Version
	Older               bool // there are more versions
	Alarms              []incidentRow
	MoreAlarms          bool
	Search              string // where its answers can be searched
}

// answerUse is an answer that has the source.
type answerUse struct {
	*store.Call

	Question string
	Cites    []citedAs
}

// citedAs is what an answer cites from a source: its own words, and the source's.
type citedAs struct {
	Claim string     // empty if the citation has no place in the text
	Quote *quoteView // nil if no words of it are quoted
	Badge badge
}

// sources lists sources, or shows one.
func (p *Page) sources(ctx context.Context, r *httpx.Request) (*view, error) {
	q := r.URL.Query()
	query := &store.SourceQuery{Cursor: q.Get("cursor"), Limit: usesListed}
	var err error
	if query.URL, err = askedLong(q.Get("url")); err != nil {
		return nil, err
	}
	if query.ID, err = askedLong(q.Get("key")); err != nil {
		return nil, err
	}
	if query.URL != "" || query.ID != "" {
		p.captured.CatchUp(ctx)
		return p.source(ctx, r, query)
	}
	d, err := p.digest(ctx, r.Who.Tenant)
	if err != nil {
		return nil, err
	}
	return &view{Name: "sources", Title: "Sources", Body: d}, nil
}

// source shows one source.
func (p *Page) source(ctx context.Context, r *httpx.Request, q *store.SourceQuery) (*view, error) {
	uses, err := p.o.Store.Sources(ctx, r.Who.Tenant, q)
	if err != nil {
		return nil, noSuchPage(err)
	}
	if len(uses.Items) == 0 && q.URL == "" {
		return nil, errNotFound
	}
	body := &sourceBody{
		Source: &ibid.Source{URL: q.URL}, More: q.Cursor != "", Next: nextURL(r.URL, uses.Next),
	}
	if err := p.addUses(ctx, r.Who.Tenant, body, uses.Items); err != nil {
		return nil, err
	}
	s := body.Source
	body.Title, body.Site, body.Letter = sourceTitle(s), siteOf(s), letterOf(s)
	body.Search = "/ui/search?source=" + url.QueryEscape(cmp.Or(s.URL, q.ID))
	if s.URL != "" {
		if err := p.addHistory(ctx, r.Who.Tenant, body); err != nil {
			return nil, err
		}
	}
	return &view{Name: "source", Title: body.Title, Body: body}, nil
}

// addUses adds the answers, each once, with what they cite from the source. The source is shown as the first answer
// describes it.
func (p *Page) addUses(ctx context.Context, tenant string, body *sourceBody, uses []store.SourceUse) error {
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
		for k := range call.Answer.Sources {
			if s := &call.Answer.Sources[k]; len(seen) == 0 && s.Key() == u.Key {
				body.Source = s
				break
			}
		}
		seen[u.AnswerID] = true
		v := answerUse{Call: call, Question: questionOf(call)}
		for k := range uses[i:] {
			if same := &uses[i+k]; same.AnswerID == u.AnswerID {
				v.Cites = append(v.Cites, citedOf(call.Answer, same.Key)...)
			}
		}
		body.Uses = append(body.Uses, v)
	}
	return nil
}

// citedOf returns what an answer cites from the source with a key.
func citedOf(a *ibid.Answer, key string) []citedAs {
	var list []citedAs
	for i := range a.Citations {
		c := &a.Citations[i]
		for k := range c.Refs {
			ref := &c.Refs[k]
			if s := a.Source(ref.Source); s == nil || s.Key() != key {
				continue
			}
			claim := short(plainWords(text.Head(claimOf(a, c), 8*maxClaimShown)), maxClaimShown)
			v := citedAs{Claim: claim, Badge: quoteBadge(c.Verification)}
			if strings.TrimSpace(ref.Quote) != "" {
				quote := newQuote(ref.Quote, maxShownQuote)
				quote.compare("", claim)
				v.Quote = new(quote.view())
			}
			list = append(list, v)
		}
	}
	return list
}

// addHistory adds the versions of a source, and its incidents.
func (p *Page) addHistory(ctx context.Context, tenant string, body *sourceBody) error {
	if address := cleanAddress(body.URL); address != "" {
		versions, err := p.o.Store.Versions(ctx, tenant, address, &store.Query{Limit: versionsListed})
		if err != nil {
			return err
		}
		body.Versions, body.Older = versions.Items, versions.Next != ""
	}
	alarms, err := p.o.Store.Incidents(
		ctx, tenant, &store.IncidentQuery{Source: body.URL, Limit: alarmsListed},
	)
	if err != nil {
		return err
	}
	body.MoreAlarms = alarms.Next != ""
	body.Alarms, err = p.incidentRows(ctx, tenant, alarms.Items)
	return err
}

// cleanAddress returns an address in the form under which its copies are kept; empty if it cannot be read.
func cleanAddress(address string) string {
	clean, err := snapshot.CleanURL(address)
	if err != nil {
		return ""
	}
	return clean
}

// usesURL returns the address of the page with all answers that use a source; empty if the key is not valid.
func usesURL(key string) string {
	if key == "" || len(key) > maxAsked {
		return ""
	}
	return sourceKeyURL(key)
}

// shortHash returns the first digits of a hash.
func shortHash(hash string) string { return text.Head(strings.TrimPrefix(hash, "sha256:"), 12) }
