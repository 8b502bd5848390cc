package watch_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver accepts webhooks and responds by path: /fail with 500 as long as told to, /gone with 410, others with 204.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	fails  bool
	tries  map[string]int // by path
	bodies map[string][]store.Alert
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{fails: true, tries: map[string]int{}, bodies: map[string][]store.Alert{}}
	secret := testenv.Must(watch.ReadWebhookSecret(webhookSecret))(t)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		h := req.Header
		if err != nil || req.Method != "POST" || h.Get("Content-Type") != "application/json" ||
			h.Get("webhook-signature") != watch.SignWebhook(secret, h.Get("webhook-id"), h.Get("webhook-timestamp"), body) {
			t.Errorf("%s: %v, %v, %s", req.URL.Path, err, h, body)
		}
		var a store.Alert
		if err := json.Unmarshal(body, &a); err != nil || a.ID != h.Get("webhook-id") {
			t.Errorf("%v: %s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tries[req.URL.Path]++
		switch {
		case req.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		case req.URL.Path == "/fail" && r.fails && r.tries["/fail"]%2 == 0:
			panic(http.ErrAbortHandler)
		case req.URL.Path == "/fail" && r.fails:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			r.bodies[req.URL.Path] = append(r.bodies[req.URL.Path], a)
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// got returns the subjects of the alerts received at a path, sorted, and the number of attempts.
func (r *receiver) got(path string) (subjects []string, tries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.bodies[path] {
		subjects = append(subjects, a.Subject.Key+a.Subject.Since)
	}
	slices.Sort(subjects)
	return subjects, r.tries[path]
}

func (r *receiver) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = false
}

// webhook returns an endpoint of the receiver.
func (r *receiver) webhook(t *testing.T, path, tenant string, kinds ...store.AlertKind) watch.Webhook {
	t.Helper()
	return watch.Webhook{
		Name: strings.TrimPrefix(path, "/"), URL: r.URL + path, Tenant: tenant, Kinds: kinds,
		Secret: testenv.Must(watch.ReadWebhookSecret(webhookSecret))(t),
	}
}

func alertOf(tenant, key string) store.Alert {
	return store.Alert{Kind: store.AlertKeyRevoked, Tenant: tenant, Subject: store.AlertSubject{Key: key}, Summary: "A key was revoked."}
}

// counted returns how many attempts of a webhook were counted with that result.
func counted(t *testing.T, metrics *prometheus.Registry, webhook, result string) float64 {
	t.Helper()
	for _, family := range testenv.Must(metrics.Gather())(t) {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "ibid_webhook_deliveries_total" && labels["webhook"] == webhook && labels["result"] == result {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no count of %s for %s", result, webhook)
	return 0
}

// hurryDeliveries makes all deliveries due now.
func hurryDeliveries(t *testing.T, dsn string) {
	t.Helper()
	db := testenv.Must(sql.Open("sqlite", dsn))(t)
	defer db.Close()
	testenv.Must(db.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000; UPDATE deliveries SET due = 0"))(t)
}

// Each webhook gets each alert meant for it, however often that fails, and even if the program ends in between.
func TestWebhooks(t *testing.T) {
	r, dsn := newReceiver(t), filepath.Join(t.TempDir(), "ibid.db")
	log := &lines{note: make(chan struct{}, 1)}
	begin := func(pauses int) (a *watch.Alerts, metrics *prometheus.Registry, end func()) {
		s := openStore(t, dsn)
		metrics = prometheus.NewRegistry()
		a = testenv.Must(watch.NewAlerts(&watch.AlertsOptions{
			Store: s, Client: fetcher(t, snapshot.FetchOptions{}).Client(), Origin: "https://ibid.example",
			Logger: (&house{log: log}).logger(), Metrics: metrics,
			Webhooks: []watch.Webhook{
				r.webhook(t, "/all", ""), r.webhook(t, "/fail", "one"), r.webhook(t, "/gone", ""),
				r.webhook(t, "/other", "", store.AlertDiffers),
			},
		}))(t)
		a.Hurry(10*time.Millisecond, pauses)
		return a, metrics, start(t, a.Run)
	}
	a, metrics, end := begin(1000)
	for _, alert := range []store.Alert{alertOf("one", "1"), alertOf("one", "1"), alertOf("two", "2")} {
		a.Add(&alert)
	}
	testenv.Until(t, "the first fails several times", func() bool { _, tries := r.got("/fail"); return tries >= 3 })
	testenv.Until(t, "the others have theirs", func() bool { got, _ := r.got("/all"); return len(got) == 2 })
	testenv.Until(t, "what is gone is over", func() bool {
		return counted(t, metrics, "gone", "given-up") == 2
	})
	end()
	s := openStore(t, dsn)
	testenv.Equal(t, "pending after the end", map[string]int{"fail": 1}, testenv.Must(s.PendingDeliveries(t.Context()))(t))
	r.heal()
	// A delivery in progress when the program ended is due after its lease, which is skipped here.
	a, metrics, end = begin(1000)
	more := alertOf("one", "3")
	a.Add(&more)
	hurryDeliveries(t, dsn)
	testenv.Until(t, "all arrive", func() bool { got, _ := r.got("/fail"); return len(got) == 2 })
	testenv.Until(t, "nothing is left", func() bool { return len(testenv.Must(s.PendingDeliveries(t.Context()))(t)) == 0 })
	end()
	for path, want := range map[string]string{"/fail": "[1 3]", "/all": "[1 2 3]", "/other": "[]"} {
		if got, _ := r.got(path); fmt.Sprint(got) != want {
			t.Errorf("%s got %v, want %s", path, got, want)
		}
	}
	if got := r.bodies["/fail"][0]; got.Link != "https://ibid.example/ui/alerts" || got.Tenant != "one" || got.Summary == "" {
		t.Errorf("the body: %+v", got)
	}
	if n := counted(t, metrics, "fail", "delivered"); n != 2 {
		t.Errorf("%v were counted as delivered", n)
	}
	if text := log.String(); strings.Contains(text, webhookSecret[6:]) || strings.Contains(text, r.URL) || !strings.Contains(text, "it responded with status 500") {
		t.Errorf("the log: %s", text)
	}
}

// A webhook that hangs does not delay others, however many alerts wait for it.
func TestWebhookHangs(t *testing.T) {
	r, s := newReceiver(t), newStore(t)
	leave := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-leave }))
	t.Cleanup(hang.Close)
	t.Cleanup(func() { close(leave) })
	hanging := r.webhook(t, "/hanging", "")
	hanging.URL = hang.URL
	a := testenv.Must(watch.NewAlerts(&watch.AlertsOptions{
		Store: s, Client: fetcher(t, snapshot.FetchOptions{}).Client(), Webhooks: []watch.Webhook{hanging, r.webhook(t, "/all", "")},
	}))(t)
	start(t, a.Run)
	const all = 40
	for i := range all {
		alert := alertOf("one", fmt.Sprint(i))
		a.Add(&alert)
	}
	testenv.Until(t, "the other has all", func() bool { got, _ := r.got("/all"); return len(got) == all })
}

// A delivery is given up after its last pause.
func TestWebhookGivesUp(t *testing.T) {
	r, s := newReceiver(t), newStore(t)
	metrics := prometheus.NewRegistry()
	a := testenv.Must(watch.NewAlerts(&watch.AlertsOptions{
		Store: s, Client: fetcher(t, snapshot.FetchOptions{}).Client(), Metrics: metrics, Webhooks: []watch.Webhook{r.webhook(t, "/fail", "")},
	}))(t)
	a.Hurry(time.Millisecond, 2)
	start(t, a.Run)
	alert := alertOf("one", "1")
	a.Add(&alert)
	testenv.Until(t, "it is given up", func() bool {
		return counted(t, metrics, "fail", "given-up") == 1
	})
	testenv.Until(t, "nothing is left", func() bool { return len(testenv.Must(s.PendingDeliveries(t.Context()))(t)) == 0 })
	if _, tries := r.got("/fail"); tries != 3 {
		t.Errorf("%d tries, want 3", tries)
	}
}

// Webhooks can only be at addresses that are open to other requests.
func TestWebhookGuarded(t *testing.T) {
	r, s := newReceiver(t), newStore(t)
	f := snapshot.NewFetcher(nil)
	t.Cleanup(func() { _ = f.Close() })
	log := &lines{note: make(chan struct{}, 1)}
	a := testenv.Must(watch.NewAlerts(&watch.AlertsOptions{
		Store: s, Client: f.Client(), Webhooks: []watch.Webhook{r.webhook(t, "/all", "")}, Logger: (&house{log: log}).logger(),
	}))(t)
	start(t, a.Run)
	alert := alertOf("one", "1")
	a.Add(&alert)
	testenv.Until(t, "it is refused", func() bool { return strings.Contains(log.String(), "blocked") })
	if _, tries := r.got("/all"); tries != 0 {
		t.Errorf("%d connections", tries)
	}
}

// A long outage of the database is reported once, from memory, and stored when it is over. A short one is not reported.
func TestStoreAway(t *testing.T) {
	r, s := newReceiver(t), newStore(t)
	var away error
	a := testenv.Must(watch.NewAlerts(&watch.AlertsOptions{
		Store: s, Client: fetcher(t, snapshot.FetchOptions{}).Client(), Webhooks: []watch.Webhook{r.webhook(t, "/all", "")},
		Away: func(context.Context) error { return away },
	}))(t)
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after time.Duration
		away  bool
		want  string // what the webhook received
	}{
		{0, true, "[]"},
		{9 * time.Second, true, "[]"},
		{12 * time.Second, false, "[]"},
		{20 * time.Second, true, "[]"},
		{30 * time.Second, true, "[2026-11-21T12:00:20Z]"},
		{time.Hour, true, "[2026-11-21T12:00:20Z]"},
		{2 * time.Hour, false, "[2026-11-21T12:00:20Z]"},
		{3 * time.Hour, true, "[2026-11-21T12:00:20Z]"},
		{4 * time.Hour, true, "[2026-11-21T12:00:20Z 2026-11-21T15:00:00Z]"},
	} {
		if away = nil; step.away {
			away = errors.New("it is away")
		}
		a.LookAt(t.Context(), at.Add(step.after))
		if got, _ := r.got("/all"); fmt.Sprint(got) != step.want {
			t.Errorf("after %v: %v, want %s", step.after, got, step.want)
		}
	}
	page := testenv.Must(s.Alerts(t.Context(), store.DefaultTenant, nil))(t)
	if len(page.Items) != 2 || page.Items[0].Kind != store.AlertStoreAway ||
		page.Items[0].Summary != "The database has taken no answers since 2026-11-21 15:00:00 UTC; they wait in the journal." {
		t.Errorf("the alerts: %+v", page.Items)
	}
	testenv.Equal(t, "delivered from memory, and not again", map[string]int{}, testenv.Must(s.PendingDeliveries(t.Context()))(t))
}

// A key revoked while the server runs is reported once, even after a restart.
func TestKeyRevoked(t *testing.T) {
	s := newStore(t)
	ring := testenv.Must(keyring.Open(t.TempDir(), nil))(t)
	k := testenv.Must(ring.New(&keyring.NewOptions{Use: keyring.Manifest}))(t)
	for revoked, want := range []int{0, 1, 1} {
		if revoked == 1 {
			testenv.OK(t, ring.Revoke(k.ID, time.Now(), "it was lost"))
		}
		a := testenv.Must(watch.NewAlerts(&watch.AlertsOptions{Store: s, Keys: ring.List}))(t)
		a.LookAt(t.Context(), time.Now())
		page := testenv.Must(s.Alerts(t.Context(), store.DefaultTenant, nil))(t)
		if len(page.Items) != want || want > 0 && (page.Items[0].Subject.Key != k.ID || !strings.HasSuffix(page.Items[0].Summary, "was revoked: it was lost.")) {
			t.Errorf("%d: %+v", revoked, page.Items)
		}
	}
}

// The signature is that of the specification's example, and short secrets are refused.
func TestWebhookSignature(t *testing.T) {
	secret := testenv.Must(watch.ReadWebhookSecret(webhookSecret + "\n"))(t)
	got := watch.SignWebhook(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
	for text, ok := range map[string]bool{
		"": false, "whsec_": false, "whsec_!": false, strings.Repeat("x", 23): false, strings.Repeat("x", 24): true, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLQ==": false,
	} {
		if _, err := watch.ReadWebhookSecret(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
