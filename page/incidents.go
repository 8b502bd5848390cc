package page

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// incidentsListed is how many incidents a page of their list has.
const incidentsListed = 25

// incidentsBody is the list of incidents.
type incidentsBody struct {
	Status, Source string
	Statuses       []choice
	Rows           []verify.Incident
	Next           string
	More           bool // it is not the first page
	CheckURL       string
	Checked        string // what came of checking the chain; empty: it was not
	Broken         bool   // the chain is
}

// Filtered reports whether the list is narrowed.
func (b *incidentsBody) Filtered() bool { return b.Status+b.Source != "" }

// incidentBody is one incident.
type incidentBody struct {
	verify.Incident

	Answer             string // its id; empty: the answer is not ours, or not known
	Expected, Observed []piece
}

// manifestWords says which manifest one at an address is, as far as its path tells: the same claim can stand in that of
// a run and in that of an answer.
func manifestWords(address string) string {
	name := address[strings.LastIndexByte(address, '/')+1:]
	switch {
	case strings.Contains(address, "/cite/"):
		return "in the manifest of the answer"
	case name == "cite", strings.HasPrefix(name, "cite."):
		return "in the manifest of the run"
	}
	return ""
}

// incidentStatuses returns what incidents can be chosen by: what fails most often. Others can stand in the address.
func incidentStatuses(chosen string) []choice {
	all := []choice{{Value: "", Word: "anything"}}
	for _, s := range []verify.Status{
		verify.ClaimDoubtful, verify.ExcerptMissing, verify.ExcerptAltered, verify.ExcerptMismatch,
		verify.UnsupportedClaim, verify.ManifestMutated, verify.ManifestInconsistent, verify.SignatureInvalid,
		verify.KeyRevoked, verify.OutputMismatch, verify.Replayed, verify.ChainInvalid, verify.LevelNotMet,
	} {
		all = append(all, choice{Value: string(s), Word: words(string(s))})
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.Value == chosen }) {
		all = append(all, choice{Value: chosen, Word: words(chosen)})
	}
	return choices(chosen, all...)
}

// incidents lists what failed.
func (p *Page) incidents(ctx context.Context, r *httpx.Request) (*view, error) {
	q := r.URL.Query()
	source, err := askedLong(q.Get("source"))
	if err != nil {
		return nil, err
	}
	body := &incidentsBody{Status: asked(r, "status"), Source: source, More: q.Get("cursor") != ""}
	body.Statuses = incidentStatuses(body.Status)
	page, err := p.o.Store.Incidents(ctx, r.Who.Tenant, &store.IncidentQuery{
		Source: body.Source, Status: body.Status, Cursor: q.Get("cursor"), Limit: incidentsListed,
	})
	if err != nil {
		return nil, noSuchPage(err)
	}
	body.Rows = page.Items
	if q.Get("check") != "" {
		if err := p.checkIncidents(ctx, r.Who.Tenant, body); err != nil {
			return nil, err
		}
	}
	q.Del("check")
	body.Next = nextURL(&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}, page.Next)
	q.Del("cursor")
	q.Set("check", "chain")
	body.CheckURL = r.URL.Path + "?" + q.Encode()
	return &view{Name: "incidents", Title: "Incidents", Body: body}, nil
}

// checkIncidents says whether the chain of all incidents is in order.
func (p *Page) checkIncidents(ctx context.Context, tenant string, body *incidentsBody) error {
	release, ok := p.bounds.verifying.Take(tenant)
	if !ok {
		return busy("Others are checked at the moment.")
	}
	defer release()
	n, err := p.o.Store.CheckIncidents(ctx, tenant)
	if err != nil && (ctx.Err() != nil || store.IsTemporary(err)) {
		return err
	}
	if err != nil {
		p.log.LogAttrs(
			ctx, slog.LevelError, "the chain of incidents is broken", slog.String("tenant", tenant),
			slog.Any("error", err),
		)
	}
	body.Broken, body.Checked = err != nil, chainWords(n, err != nil)
	return nil
}

// chainWords says what came of checking the chain: how many incidents are in order from the first on, and whether
// something is wrong behind them. The store looks at 500 at a time.
func chainWords(n int, broken bool) string {
	const wrong = "was changed, left out or put in between. The server's log says more."
	switch {
	case broken && n == 0:
		return "The chain is broken: one of its first incidents " + wrong
	case broken && n == 1:
		return "The chain is broken: the first incident is in order, and one of those behind it " + wrong
	case broken:
		return fmt.Sprintf(
			"The chain is broken: the first %d incidents are in order, and one of those behind them "+wrong,
			n,
		)
	case n == 0:
		return "There are no incidents that could be checked."
	case n == 1:
		return "The only incident is in order: it was not changed."
	}
	return fmt.Sprintf("All %d incidents are in order: none was changed, left out or put in between.", n)
}

// incident shows one incident.
func (p *Page) incident(ctx context.Context, r *httpx.Request) (*view, error) {
	key, err := r.PathID()
	if err != nil {
		return nil, err
	}
	in, answer, err := p.o.Store.Incident(ctx, r.Who.Tenant, key)
	if err != nil {
		return nil, err
	}
	quoted := ""
	if answer != "" {
		if quoted, err = p.quoted(ctx, r.Who.Tenant, answer, in); err != nil {
			return nil, err
		}
	}
	body := &incidentBody{Incident: *in, Answer: answer}
	body.Expected, body.Observed = compareWords(quoted, in.Observed.Nearest)
	title := "Incident: " + incidentBadge(in.Status).Word
	return &view{Name: "incident", Title: title, Body: body}, nil
}

// quoted returns what an answer of ours quoted where an incident was; empty: it is not known. The record itself has
// only hashes.
func (p *Page) quoted(ctx context.Context, tenant, answer string, in *verify.Incident) (string, error) {
	pins, err := p.o.Store.Pins(ctx, tenant, in.SourceURL)
	if err != nil {
		return "", err
	}
	for i := range pins {
		pin := &pins[i]
		if pin.AnswerID == answer && pin.ClaimID == in.ClaimID && pin.Claim.Excerpt != nil &&
			(pin.Digest == "" || strings.EqualFold(pin.Digest, in.ManifestSHA256)) {
			return pin.Claim.Excerpt.Exact, nil
		}
	}
	return "", nil
}
