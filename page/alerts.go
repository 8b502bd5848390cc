package page

import (
	"context"
	"net/http"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// alertsBody is the list of alerts.
type alertsBody struct {
	Kinds, Seen []choice
	Rows        []store.Alert
	Unseen      int // of all, also those that are not listed here
	Next, Here  string
	More        bool // it is not the first page
	Filtered    bool // the list is narrowed
	May         bool // the reader may say that one was seen
}

// alertWords are the kinds of alerts in words, with the kinds of their badges.
var alertWords = map[store.AlertKind][2]string{
	store.AlertSourceChanged: {"source changed", badgeBad},
	store.AlertDoubtful:      {"doubtful claim", badgeClose},
	store.AlertUncited:       {"no citations", badgeClose},
	store.AlertKeyRevoked:    {"key revoked", badgeBad},
	store.AlertStoreAway:     {"database away", badgeBad},
	store.AlertQuota:         {"not kept", badgeLost},
}

// alertBadge says what an alert is about.
func alertBadge(a *store.Alert) badge {
	known := alertWords[a.Kind]
	if known[0] == "" {
		known = [2]string{words(string(a.Kind)), badgeNone}
	}
	return badge{Kind: known[1], Word: known[0], Code: string(a.Kind)}
}

// alerts lists what somebody should look at.
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
