package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// incidentsListed is how many incidents a page of their list has.
const incidentsListed = 25

// incidentsBody is the list of incidents.
type incidentsBody struct {
	Status, Source string
	Statuses       []talkFilter
	Rows           []incidentRow
	Next           string
	More, Filtered bool
	CheckURL       string
	Checked        string // what came of checking the chain; empty: it was not
	Broken         bool   // the chain is
}

// incidentRow is an incident in a list.
type incidentRow struct {
	Link       string
	Badge      badge
	Detail     string
	Site       string // of the source; empty: it is about none
	SourceLink string
	Claim      string // of the manifest; empty: it is about none
	Manifest   string // which one, in words; empty: it is about none, or one that is no manifest of ibid
	At         time.Time
}

// incidentBody is one incident.
type incidentBody struct {
	verify.Incident

	Badge      badge
	Site       string
	SourceLink string
	SourceOpen string
	AnswerLink string // empty: the answer is not ours, or not known
	Expected   []piece
	Observed   []piece
	Same       bool // expected and observed hashes are the same
}

// piece is a stretch of one of two texts that are compared.
type piece struct {
	Text string
	Own  bool // only this text has it
}

func incidentRows(list []verify.Incident) []incidentRow {
	rows := make([]incidentRow, 0, len(list))
	for i := range list {
		in := &list[i]
		row := incidentRow{
			Link:     incidentURL(in),
			Badge:    incidentBadge(in.Status),
			Detail:   in.Detail,
			Claim:    in.ClaimID,
			Manifest: manifestWords(in.ManifestURL),
			At:       in.ObservedAt,
		}
		if in.SourceURL != "" {
			row.Site = siteOf(&ibid.Source{URL: in.SourceURL})
			row.SourceLink = sourceURLLink(in.SourceURL)
		}
		rows = append(rows, row)
	}
	return rows
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

func incidentURL(in *verify.Incident) string { return "/ui/incidents/" + store.IncidentKey(in) }

// incidentBadge is the badge of what failed. All incidents are failures, also those whose status has no badge of its
// own.
func incidentBadge(s verify.Status) badge {
	b := statusBadge(s, time.Time{})
	if b.Kind == badgeNone || b.Kind == badgeGood {
		b = badge{Kind: badgeBad, Word: words(string(s)), Title: "The status is " + string(s) + "."}
	}
	b.Code = string(s)
	return b
}

// incidentStatuses returns what incidents can be chosen by: what fails most often. Others can stand in the address.
func incidentStatuses(chosen string) []talkFilter {
	all := []talkFilter{{Value: "", Word: "anything"}}
	for _, s := range []verify.Status{
		verify.ExcerptMissing, verify.ExcerptAltered, verify.ExcerptMismatch, verify.UnsupportedClaim, verify.ManifestMutated, verify.ManifestInconsistent,
		verify.SignatureInvalid, verify.KeyRevoked, verify.OutputMismatch, verify.Replayed, verify.ChainInvalid, verify.LevelNotMet,
	} {
		all = append(all, talkFilter{Value: string(s), Word: words(string(s))})
	}
	known := false
	for i := range all {
		all[i].Chosen = all[i].Value == chosen
		known = known || all[i].Chosen
	}
	if !known {
		all = append(all, talkFilter{Value: chosen, Word: words(chosen), Chosen: true})
	}
	return all
}

// incidents lists what failed.
func (p *Page) incidents(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	source, err := named(q.Get("source"))
	if err != nil {
		return err
	}
	body := &incidentsBody{Status: clean(q.Get("status")), Source: source, More: q.Get("cursor") != ""}
	body.Statuses, body.Filtered = incidentStatuses(body.Status), body.Status+body.Source != ""
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	page, err := p.o.Store.Incidents(ctx, r.who.Tenant, &store.IncidentQuery{
		Source: body.Source, Status: body.Status, Cursor: q.Get("cursor"), Limit: incidentsListed,
	})
	if errors.Is(err, store.ErrCursor) {
		return badRequest("There is no such page of this list.", "Begin again with the first.")
	}
	if err != nil {
		return err
	}
	body.Rows = incidentRows(page.Items)
	if q.Get("check") != "" {
		if err := p.checkIncidents(ctx, r.who.Tenant, body); err != nil {
			return err
		}
	}
	q.Del("cursor")
	q.Set("check", "chain")
	body.CheckURL = "/ui/incidents?" + q.Encode()
	u := *r.URL
	next := u.Query()
	next.Del("check")
	u.RawQuery = next.Encode()
	body.Next = nextURL("/ui/incidents", &u, page.Next)
	return p.page(w, r, "incidents", &view{Title: "Incidents", Section: "incidents", Body: body})
}

// checkIncidents says whether the chain of all incidents is in order.
func (p *Page) checkIncidents(ctx context.Context, tenant string, body *incidentsBody) error {
	release, ok := p.bounds.verifying.take(tenant, maxVerifying)
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
		return "The chain is broken: the first " + strconv.Itoa(
			n,
		) + " incidents are in order, and one of those behind them " + wrong
	case n == 0:
		return "There are no incidents that could be checked."
	case n == 1:
		return "The only incident is in order: it was not changed."
	}
	return "All " + strconv.Itoa(n) + " incidents are in order: none was changed, left out or put in between."
}

// incident shows one incident.
func (p *Page) incident(w http.ResponseWriter, r *request) error {
	key, err := idOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	in, answer, err := p.o.Store.Incident(ctx, r.who.Tenant, key)
	if err != nil {
		return err
	}
	body := &incidentBody{Incident: *in, Badge: incidentBadge(in.Status)}
	if in.SourceURL != "" {
		s := &ibid.Source{URL: in.SourceURL}
		body.Site, body.SourceLink, body.SourceOpen = siteOf(s), sourceURLLink(in.SourceURL), passageURL(s, nil)
	}
	quoted := ""
	if answer != "" {
		body.AnswerLink = answerURL(answer)
		if quoted, err = p.quoted(ctx, r.who.Tenant, answer, in); err != nil {
			return err
		}
	}
	body.Expected, body.Observed = compareWords(quoted, in.Observed.Nearest)
	body.Same = in.Expected.Hash != "" && in.Expected.Hash == in.Observed.Hash
	return p.page(w, r, "incident", &view{Title: "Incident: " + body.Badge.Word, Section: "incidents", Body: body})
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

// maxPieces is how many words of each text are compared. Of longer ones nothing is marked.
const maxPieces = 600

// compareWords sets two texts beside each other, and says which words only one of them has.
func compareWords(x, y string) (xs, ys []piece) {
	a, b := tokensOf(x), tokensOf(y)
	if x == "" || y == "" || len(a) > maxPieces || len(b) > maxPieces {
		return wholePiece(x), wholePiece(y)
	}
	// The longest common subsequence, from the ends.
	same := make([][]int16, len(a)+1)
	for i := range same {
		same[i] = make([]int16, len(b)+1)
	}
	for i, one := range slices.Backward(a) {
		for k, other := range slices.Backward(b) {
			if one == other {
				same[i][k] = same[i+1][k+1] + 1
			} else {
				same[i][k] = max(same[i+1][k], same[i][k+1])
			}
		}
	}
	for i, k := 0, 0; i < len(a) || k < len(b); {
		switch {
		case i < len(a) && k < len(b) && a[i] == b[k]:
			xs, ys = addPiece(xs, a[i], false), addPiece(ys, b[k], false)
			i, k = i+1, k+1
		case k == len(b) || i < len(a) && same[i+1][k] >= same[i][k+1]:
			xs = addPiece(xs, a[i], true)
			i++
		default:
			ys = addPiece(ys, b[k], true)
			k++
		}
	}
	return xs, ys
}

func wholePiece(text string) []piece {
	if text == "" {
		return nil
	}
	return []piece{{Text: text}}
}

// addPiece puts a token behind pieces.
func addPiece(list []piece, token string, own bool) []piece {
	if n := len(list); n > 0 && list[n-1].Own == own {
		list[n-1].Text += token
		return list
	}
	return append(list, piece{token, own})
}

// tokensOf cuts a text into words and what stands between them.
func tokensOf(text string) []string {
	var list []string
	at := 0
	for start, end := range prose.Words(text) {
		if at < start {
			list = append(list, text[at:start])
		}
		list = append(list, text[start:end])
		at = end
	}
	if at < len(text) {
		list = append(list, text[at:])
	}
	return list
}
