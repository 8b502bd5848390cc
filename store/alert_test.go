package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// alertsOf lists the alerts of a tenant as kind, answer and key, page by page.
func alertsOf(tb testing.TB, s *store.Store, tenant string, q store.AlertQuery) []string {
	tb.Helper()
	list := []string{}
	for q.Limit = 2; ; {
		page := testenv.Must(s.Alerts(tb.Context(), tenant, &q))(tb)
		for _, a := range page.Items {
			list = append(list, fmt.Sprintf("%s %s%s", a.Kind, a.Subject.AnswerID, a.Subject.Key))
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return list
		}
	}
}

// A problem with an answer causes one alert, however often it is found; deleting the answer deletes its alerts.
func (suite) Alerts(t *testing.T, dsn string) {
	t.Helper()
	s, ctx := open(t, dsn), t.Context()
	c := call(1, "Bees dance.", "bees.example", "wasps.example")
	put(t, s, c)
	testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c)))
	pin := pins(t, s, "bees.example")[0].ID
	status := func(status verify.Status, counts verify.Counts) {
		setStatus(t, s, store.PinStatus{ID: pin, Status: status, Counts: counts, CheckedAt: noon()})
	}
	status(verify.ExcerptFound, verify.CountPass)
	status(verify.Unreachable, verify.CountUnverifiable)
	diff(t, "nothing is wrong", alertsOf(t, s, store.DefaultTenant, store.AlertQuery{}), []string{})
	for range 2 {
		status(verify.ExcerptAltered, verify.CountFailure)
		status(verify.ExcerptMissing, verify.CountFailure)
	}
	differs, revoked := incident(1, verify.ClaimDiffers), incident(2, verify.KeyRevoked)
	for _, in := range [][]verify.Incident{{differs}, {differs, revoked}, {incident(3, verify.ExcerptMissing)}} {
		testenv.Must(s.AddIncidents(ctx, store.DefaultTenant, in))(t)
	}
	own := []store.Alert{{Kind: store.AlertKeyRevoked, Tenant: store.DefaultTenant, Subject: store.AlertSubject{Key: "k1"}}}
	for _, want := range []int{1, 0} {
		if n, err := s.AddAlerts(ctx, own); n != want || err != nil {
			t.Errorf("AddAlerts: %d, %v; want %d", n, err, want)
		}
	}
	all := []string{"key-revoked k1", "key-revoked ", "differs ", "source-changed ans_0001"}
	diff(t, "alerts", alertsOf(t, s, store.DefaultTenant, store.AlertQuery{}), all)
	diff(t, "of one kind", alertsOf(t, s, store.DefaultTenant, store.AlertQuery{Kind: store.AlertKeyRevoked}), all[:2])
	diff(t, "of another tenant", alertsOf(t, s, "other", store.AlertQuery{}), []string{})

	first := testenv.Must(s.Alerts(ctx, store.DefaultTenant, nil))(t).Items[3]
	if first.Link != "/ui/answers/ans_0001" || first.Subject.Source != "https://bees.example/page" || first.SeenAt != nil ||
		first.Summary != "A source at bees.example does not say what an answer cites of it (excerpt-altered)." {
		t.Errorf("the alert: %+v", first)
	}
	for _, seen := range []bool{true, false, true} {
		got, err := s.SeeAlert(ctx, store.DefaultTenant, first.ID, seen)
		if err != nil || (got.SeenAt != nil) != seen {
			t.Errorf("SeeAlert(%v): %+v, %v", seen, got, err)
		}
	}
	for _, err := range []error{
		second(s.SeeAlert(ctx, "other", first.ID, true)), second(s.SeeAlert(ctx, store.DefaultTenant, "alert_x", true)),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an alert that is not there: %v", err)
		}
	}
	diff(t, "unseen", alertsOf(t, s, store.DefaultTenant, store.AlertQuery{Unseen: true}), all[:3])
	diff(t, "how many", testenv.Must(s.UnseenAlerts(ctx, store.DefaultTenant))(t), 3)
	diff(t, "seen at once", testenv.Must(s.SeeAllAlerts(ctx, store.DefaultTenant))(t), 3)
	diff(t, "how many then", testenv.Must(s.UnseenAlerts(ctx, store.DefaultTenant))(t), 0)
	testenv.OK(t, s.Delete(ctx, store.DefaultTenant, c.AnswerID))
	diff(t, "without the answer", alertsOf(t, s, store.DefaultTenant, store.AlertQuery{}), all[:3])
	keep := &store.Retention{Now: time.Now().Add(store.AlertsKept - time.Hour)}
	for _, want := range []int{3, 0} {
		testenv.Must(s.Prune(ctx, keep))(t)
		diff(t, "after pruning", len(alertsOf(t, s, store.DefaultTenant, store.AlertQuery{})), want)
		keep.Now = keep.Now.Add(2 * time.Hour)
	}
}

// An alert goes to each webhook that it is routed to until its delivery is ended, and never twice at the same time.
func (suite) Deliveries(t *testing.T, dsn string) {
	t.Helper()
	s, ctx := open(t, dsn), t.Context()
	add := func(n int) {
		var list []store.Alert
		for i := range n {
			list = append(list, store.Alert{
				Kind: store.AlertKeyRevoked, Tenant: store.DefaultTenant, Subject: store.AlertSubject{Key: fmt.Sprint(n, "-", i)},
			})
		}
		testenv.Must(s.AddAlerts(ctx, list))(t)
	}
	relay := func(webhooks ...string) (relayed, lost int) {
		list, dropped, err := s.RelayAlerts(ctx, 100, func(*store.Alert) []string { return webhooks })
		testenv.OK(t, err)
		return len(list), len(dropped)
	}
	due := func(webhooks ...string) []string {
		var list []string
		for _, d := range testenv.Must(s.DueDeliveries(ctx, webhooks, 10, time.Hour))(t) {
			list = append(list, fmt.Sprint(d.Webhook, " ", d.Alert.Subject.Key, " ", d.Attempts))
		}
		slices.Sort(list)
		return list
	}
	add(1)
	if n, dropped := relay("a", "it's"); n != 1 || dropped != 0 {
		t.Errorf("%d relayed, %d dropped", n, dropped)
	}
	if n, _ := relay("a"); n != 0 {
		t.Errorf("%d relayed again", n)
	}
	diff(t, "without webhooks", due(), []string(nil))
	list := testenv.Must(s.DueDeliveries(ctx, []string{"a"}, 10, 0))(t)
	diff(t, "for one webhook", len(list), 1)
	diff(t, "when the lease is over", due("a", "it's"), []string{"a 1-0 0", "it's 1-0 0"})
	diff(t, "while it lasts", due("a", "it's"), []string(nil))
	testenv.OK(t, s.EndDelivery(ctx, &list[0], time.Now().Add(-time.Second)))
	list = testenv.Must(s.DueDeliveries(ctx, []string{"a", "it's"}, 10, time.Hour))(t)
	if len(list) != 1 || list[0].Attempts != 1 || list[0].Alert.Subject.Key != "1-0" || list[0].Alert.ID == "" {
		t.Fatalf("after a failure: %+v", list)
	}
	testenv.OK(t, s.EndDelivery(ctx, &list[0], time.Time{}))
	diff(t, "pending", testenv.Must(s.PendingDeliveries(ctx))(t), map[string]int{"it's": 1})
	add(101)
	for range 2 {
		relay("full")
	}
	fill(t, dsn, "full", store.MaxDeliveries-101)
	add(2)
	if n, dropped := relay("full"); n != 2 || dropped != 2 {
		t.Errorf("of a full webhook: %d relayed, %d dropped", n, dropped)
	}
}

// fill adds n deliveries for a webhook.
func fill(t *testing.T, dsn, webhook string, n int) {
	t.Helper()
	testenv.Must(raw(t, dsn).ExecContext(t.Context(), fmt.Sprintf(
		"INSERT INTO deliveries (webhook, n, at, due, attempts) WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL "+
			"SELECT i + 1 FROM s WHERE i < %d) SELECT '%s', -i, 0, 0, 0 FROM s", n, webhook)))(t)
}

// A tenant's usage follows its answers as they are added, changed and removed.
func (suite) Usage(t *testing.T, dsn string) {
	t.Helper()
	s, ctx := open(t, dsn), t.Context()
	check := func(about string) {
		t.Helper()
		var bytes int64
		testenv.OK(t, raw(t, dsn).QueryRowContext(
			ctx, "SELECT CAST(coalesce(sum(octet_length(call)), 0) AS BIGINT) FROM calls",
		).Scan(&bytes))
		diff(t, about, testenv.Must(s.Usage(ctx, []string{store.DefaultTenant, "other"}))(t), map[string]int64{store.DefaultTenant: bytes})
	}
	put(t, s, call(1, "Bees dance.", "bees.example"), call(2, "Ants do not."))
	check("put")
	put(t, s, call(1, "Bees dance.", "bees.example"))
	check("put again")
	later := call(4, "Bees dance, it is said.", "wasps.example", "bees.example")
	later.Of = "ans_0001"
	put(t, s, call(3, "Wasps?"), later)
	check("changed")
	testenv.OK(t, s.Delete(ctx, store.DefaultTenant, "ans_0001"))
	check("deleted")
	testenv.Must(s.Prune(ctx, &store.Retention{Default: time.Hour, Now: noon().Add(2 * time.Hour)}))(t)
	check("pruned")
}
