package page

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// incidentsListed is how many incidents, or alerts, a page of their list has.
const incidentsListed = 25

// incidentsBody is the content of the list of incidents.
type incidentsBody struct {
	Status, Source string
	Statuses       []choice
	Rows           []incidentRow
	Next           string
	More           bool // it is not the first page
	CheckURL       string
	Checked        string // the result of checking the chain; empty if it was not checked
	Broken         bool   // the chain is
}

// Filtered reports whether the list is filtered.
func (b *incidentsBody) Filtered() bool { return b.Status+b.Source != "" }

// incidentRow is an incident in a list, merged with others about the same change.
type incidentRow struct {
	*verify.Incident

	Said  string   // what happened, in a sentence
	Where []string // which published manifests have it, as far as their paths show
	Again int      // how many other incidents are about the same
	said  bool     // it names the words that changed
	at    int      // its place in the list
}

// changeKey identifies the change that an incident is about: incidents with a common key are about the same.
type changeKey struct{ source, version, manifest, claim, status, detail string }

// changeKeys returns the keys of an incident, and whether it is about a source that does not have what was quoted.
func changeKeys(in *verify.Incident) (keys []changeKey, ofSource bool) {
	ofClaim := changeKey{manifest: in.ManifestSHA256, claim: in.ClaimID}
	itself := changeKey{source: in.SourceURL, claim: in.ClaimID, status: string(in.Status), detail: in.Detail}
	switch {
	case in.SourceURL != "" && badgeOf(aboutQuote, string(in.Status)).Kind == badgeBad:
		if in.Observed.Hash != "" {
			itself = changeKey{source: in.SourceURL, version: in.Observed.Hash}
		}
		return []changeKey{itself, ofClaim}, true
	case in.ClaimID == "":
		itself.claim = in.ID
	}
	return []changeKey{itself}, false
}

// incidentRows merges incidents about one change: a version of a source that lacks what several citations quote, the
// claims that rest on it, and the same claim in the manifests of an answer and of its run.
func (p *Page) incidentRows(ctx context.Context, tenant string, all []verify.Incident) ([]incidentRow, error) {
	rows, at := []incidentRow{}, map[changeKey]int{}
	add := func(i int, keys []changeKey) error {
		in := &all[i]
		n, known := at[keys[0]]
		if !known {
			n, rows = len(rows), append(rows, incidentRow{Incident: in, Said: incidentWords(in, ""), at: i})
		} else {
			rows[n].Again++
			rows[n].at = min(rows[n].at, i)
		}
		for _, key := range keys {
			at[key] = n
		}
		row := &rows[n]
		if in.Observed.Nearest != "" && !row.said {
			quoted, err := p.quotedByAnswer(ctx, tenant, in)
			if err != nil {
				return err
			}
			if row.said = quoted != ""; row.said {
				row.Incident, row.Said = in, incidentWords(in, quoted)
			}
		}
		if where := manifestWords(in.ManifestURL); where != "" && !slices.Contains(row.Where, where) {
			row.Where = append(row.Where, where)
			slices.SortFunc(row.Where, func(a, b string) int { return cmp.Compare(b, a) }) // the answer before its run
		}
		return nil
	}
	for _, sources := range []bool{true, false} { // sources first, because claims rest on them
		for i := range all {
			if keys, ofSource := changeKeys(&all[i]); ofSource == sources {
				if err := add(i, keys); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b incidentRow) int { return cmp.Compare(a.at, b.at) })
	return rows, nil
}

// quotedByAnswer returns what the answer of an incident quotes there; empty if it is not one of ours, or not known. It
// is used for lists: a source may be cited by any number of answers, but an answer cites few sources.
func (p *Page) quotedByAnswer(ctx context.Context, tenant string, in *verify.Incident) (string, error) {
	_, answer, err := p.o.Store.Incident(ctx, tenant, store.IncidentKey(in))
	if err != nil || answer == "" || in.ClaimID == "" {
		return "", err
	}
	pins, err := p.o.Store.AnswerPins(ctx, tenant, answer)
	for i := range pins {
		pin := &pins[i]
		if pin.ClaimID == in.ClaimID && pin.URL == cleanAddress(in.SourceURL) && pin.Claim.Excerpt != nil {
			return pin.Claim.Excerpt.Exact, err
		}
	}
	return "", err
}

// incidentWords returns what happened in a sentence, with the changed words if the quote is known.
func incidentWords(in *verify.Incident, quoted string) string {
	if quoted != "" && in.Observed.Nearest != "" {
		if change := changeBetween(quoted, in.Observed.Nearest); change != nil {
			return change.sentence("")
		}
	}
	b := incidentBadge(in.Status)
	return cmp.Or(readWords[b.Word], b.Title, in.Detail)
}

// incidentBody is one incident.
type incidentBody struct {
	verify.Incident

	Said               string // what happened, in a sentence
	Answer             string // its id; empty if the answer is not one of ours, or not known
	Run                string // whose recorded passage it is about; else empty
	Expected, Observed []piece
}

// manifestWords says whose manifest an address names, as far as its path shows: the same claim can be in that of a run
// and in that of an answer.
func manifestWords(address string) string {
	name := address[strings.LastIndexByte(address, '/')+1:]
	switch {
	case strings.Contains(address, "/cite/"):
		return "the answer"
	case name == "cite", strings.HasPrefix(name, "cite."):
		return "its run"
	}
	return ""
}

// incidentStatuses returns the filters for incidents: the most frequent failures. The address can have others.
func incidentStatuses(chosen string) []choice {
	all := []choice{{Value: "", Word: "anything"}}
	for _, s := range []verify.Status{
		verify.ClaimDiffers, verify.ExcerptMissing, verify.ExcerptAltered, verify.ExcerptMismatch,
		verify.ManifestMutated, verify.ManifestInconsistent, verify.SignatureInvalid,
		verify.KeyRevoked, verify.OutputMismatch, verify.Replayed, verify.ChainInvalid, verify.LevelNotMet,
	} {
		all = append(all, choice{Value: string(s), Word: incidentBadge(s).Word})
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.Value == chosen }) {
		all = append(all, choice{Value: chosen, Word: words(chosen)})
	}
	return choices(chosen, all...)
}

// incidents lists the incidents.
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
	if body.Rows, err = p.incidentRows(ctx, r.Who.Tenant, page.Items); err != nil {
		return nil, err
	}
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

// checkIncidents checks the chain of all incidents.
func (p *Page) checkIncidents(ctx context.Context, tenant string, body *incidentsBody) error {
	release, ok := p.bounds.verifying.Take(tenant)
	if !ok {
		return busy("Other checks are running at the moment.")
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

// chainWords says in a sentence how many incidents from the first on are in order, and whether a later one is not. The
// store checks 500 at a time.
func chainWords(n int, broken bool) string {
	const wrong = "was changed, removed or inserted. The server's log says more."
	switch {
	case broken && n == 0:
		return "The chain is broken: one of its first incidents " + wrong
	case broken && n == 1:
		return "The chain is broken: the first incident is in order, and a later one " + wrong
	case broken:
		return fmt.Sprintf(
			"The chain is broken: the first %d incidents are in order, and a later one "+wrong,
			n,
		)
	case n == 0:
		return "There are no incidents to check."
	case n == 1:
		return "The only incident is in order: it was not changed."
	}
	return fmt.Sprintf("All %d incidents are in order: none was changed, removed or inserted.", n)
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
	quoted, run, err := p.quoted(ctx, r.Who.Tenant, answer, in)
	if err != nil {
		return nil, err
	}
	body := &incidentBody{Incident: *in, Answer: answer, Run: run, Said: incidentWords(in, quoted)}
	body.Expected, body.Observed = compareWords(quoted, in.Observed.Nearest)
	title := "Incident: " + incidentBadge(in.Status).Word
	return &view{Name: "incident", Title: title, Body: body}, nil
}

// quoted returns what was quoted where an incident occurred, by an answer of ours or, if it belongs to none, by a
// recorded run, which is returned too; empty if it is not known. The incident itself has only hashes.
func (p *Page) quoted(ctx context.Context, tenant, answer string, in *verify.Incident) (words, run string, err error) {
	pins, err := p.o.Store.Pins(ctx, tenant, in.SourceURL)
	if err != nil {
		return "", "", err
	}
	for i := range pins {
		pin := &pins[i]
		if pin.AnswerID != answer || pin.ClaimID != in.ClaimID || pin.Claim.Excerpt == nil ||
			pin.Digest != "" && !strings.EqualFold(pin.Digest, in.ManifestSHA256) {
			continue
		}
		if answer == "" {
			if !strings.HasSuffix(in.ResponseURL, "/v1/runs/"+url.PathEscape(pin.Run)) {
				continue
			}
			run = pin.Run
		}
		return pin.Claim.Excerpt.Exact, run, nil
	}
	return "", "", nil
}

// alertsBody is the content of the list of alerts.
type alertsBody struct {
	Kinds, Seen []choice
	Rows        []store.Alert
	Unseen      int // of all, including those not listed here
	Next, Here  string
	More        bool // it is not the first page
	Filtered    bool // the list is filtered
	May         bool // the reader may mark alerts as seen
}

// alertWords are the kinds of alerts in words, with the kinds of their badges.
var alertWords = map[store.AlertKind][2]string{
	store.AlertSourceChanged: {"source changed", badgeBad},
	store.AlertDiffers:       {"claim differs", badgeClose},
	store.AlertUncited:       {"no citations", badgeClose},
	store.AlertKeyRevoked:    {"key revoked", badgeBad},
	store.AlertStoreAway:     {"database unreachable", badgeBad},
	store.AlertQuota:         {"not kept", badgeLost},
	store.AlertSetAside:      {"set aside", badgeBad},
}

// alertBadge returns the badge of an alert.
func alertBadge(a *store.Alert) badge {
	known := alertWords[a.Kind]
	if known[0] == "" {
		known = [2]string{words(string(a.Kind)), badgeNone}
	}
	return badge{Kind: known[1], Word: known[0], Code: string(a.Kind)}
}

// alerts lists the alerts.
func (p *Page) alerts(ctx context.Context, r *httpx.Request) (*view, error) {
	q := r.URL.Query()
	kind, seen := asked(r, "kind"), asked(r, "seen")
	body := &alertsBody{
		Kinds: []choice{{Value: "", Word: "anything"}},
		Seen:  choices(seen, choice{Value: "", Word: "all"}, choice{Value: "no", Word: "not seen yet"}),
		More:  q.Get("cursor") != "", Filtered: kind+seen != "", May: mayWrite(r), Here: r.URL.RequestURI(),
	}
	for _, k := range store.AlertKinds() {
		body.Kinds = append(body.Kinds, choice{Value: string(k), Word: alertWords[k][0]})
	}
	body.Kinds = choices(kind, body.Kinds...)
	page, err := p.o.Store.Alerts(ctx, r.Who.Tenant, &store.AlertQuery{
		Kind: store.AlertKind(kind), Unseen: seen == "no", Cursor: q.Get("cursor"), Limit: incidentsListed,
	})
	if err != nil {
		return nil, noSuchPage(err)
	}
	body.Rows, body.Next = page.Items, nextURL(r.URL, page.Next)
	if body.Unseen, err = p.o.Store.UnseenAlerts(ctx, r.Who.Tenant); err != nil {
		return nil, err
	}
	return &view{Name: "alerts", Title: "Alerts", Body: body}, nil
}

// seeAlerts notes that the reader has seen an alert (id), or without one all of them, and leads back to next.
func (p *Page) seeAlerts(w *httpx.Reply, r *httpx.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	var err error
	if id := r.PostForm.Get("id"); id != "" {
		_, err = p.o.Store.SeeAlert(ctx, r.Who.Tenant, id, true)
	} else {
		_, err = p.o.Store.SeeAllAlerts(ctx, r.Who.Tenant)
	}
	if err != nil {
		return err
	}
	next := localPath(r.PostForm.Get("next"))
	if next == "/" {
		next = "/ui/alerts"
	}
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}
