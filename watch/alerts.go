package watch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// alertsEvery is how often the store is asked for alerts that webhooks were not told yet, and lookEvery how often
	// the keys and the database are looked at.
	alertsEvery = time.Second
	lookEvery   = 5 * time.Second
	// awayFor is how long the database must take no answers until that is an alert.
	awayFor = 10 * time.Second
	// alertBatch is how many alerts are handed to the webhooks at a time.
	alertBatch = 100
	// maxPendingAlerts is how many alerts wait in memory for the database. One more is dropped, and logged.
	maxPendingAlerts = 1000
	// deliveriesAtOnce is how many deliveries are made to a webhook at a time, deliveryLease for how long no other node
	// tries one.
	deliveriesAtOnce = 4
	deliveryLease    = time.Minute
)

// webhookPauses are the pauses after the failures of a delivery, a tenth more or less: some two days in all. After one
// more failure it is given up.
var webhookPauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 20 * time.Hour,
}

// AlertsOptions are the options of [NewAlerts]. Store is needed.
type AlertsOptions struct {
	Store    *store.Store
	Webhooks []Webhook
	// Client calls the webhooks; needed where there are any. One of snapshot.Fetcher.Client goes to public addresses
	// only, and to those that are allowed.
	Client *http.Client
	// Keys returns our signing keys, with those that were revoked; nil: there are none.
	Keys func() []keyring.Key
	// Away says why the database takes no answers now; a nil error: it does. Nil: nobody asks.
	Away    func(context.Context) error
	Origin  string                // of the links that webhooks get: https://ibid.example; empty: links are paths
	Logger  *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nobody counts
}

// Alerts tells of what somebody should look at: it stores the alerts that others [Alerts.Add], makes those of revoked
// keys and of a database that is away, and delivers all of them to the webhooks, each at least once. Nothing is said
// of their order. Several nodes share the work.
type Alerts struct {
	options  AlertsOptions
	log      *slog.Logger
	webhooks map[string]*Webhook
	names    []string
	made     *prometheus.CounterVec
	sent     *prometheus.CounterVec
	pending  *prometheus.GaugeVec
	wake     chan struct{}
	now      func() time.Time
	pauses   []time.Duration // webhookPauses

	mu      sync.Mutex
	waiting []store.Alert // for the database

	// What only Run looks at.
	told    map[string]map[string]bool // webhooks by the id of an outage's alert that they got
	revoked map[string]bool            // keys that were told of
	since   time.Time                  // when the database was first found away; zero: it is not
	outage  *outage                    // that the webhooks are being told of; nil: none
}

// outage is an alert that webhooks are told of from memory, because the database is away.
type outage struct {
	alert    store.Alert
	attempts map[string]int       // that failed, by webhook
	next     map[string]time.Time // when to try again
	stored   bool                 // the store has its deliveries
}

// NewAlerts checks the options. It starts nothing: see [Alerts.Run].
func NewAlerts(o *AlertsOptions) (_ *Alerts, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("preparing alerts: %w", err)
		}
	}()
	if o == nil || o.Store == nil || len(o.Webhooks) > 0 && o.Client == nil {
		return nil, errors.New("a store or a client is missing")
	}
	a := &Alerts{
		options: *o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), webhooks: map[string]*Webhook{},
		wake: make(chan struct{}, 1), told: map[string]map[string]bool{}, revoked: map[string]bool{}, now: time.Now,
		pauses: webhookPauses,
	}
	if a.made, err = newCounter(o.Metrics, "ibid_alerts_total", "Alerts, by what they are about.", "kind"); err != nil {
		return nil, err
	}
	for _, kind := range store.AlertKinds() {
		a.made.WithLabelValues(string(kind))
	}
	if a.sent, err = newCounter(
		o.Metrics, "ibid_webhook_deliveries_total",
		"Tries to deliver an alert, by what came of them: delivered, failed (it is tried again), given-up or dropped.",
		"webhook", "result",
	); err != nil {
		return nil, err
	}
	a.pending = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ibid_webhook_pending", Help: "Alerts that wait for a webhook.",
	}, []string{"webhook"})
	if o.Metrics != nil {
		if err := o.Metrics.Register(a.pending); err != nil {
			return nil, fmt.Errorf("registering a gauge: %w", err)
		}
	}
	for i := range o.Webhooks {
		h := &a.options.Webhooks[i]
		if h.Name == "" || h.URL == "" || len(h.Secret) < MinWebhookSecret || a.webhooks[h.Name] != nil {
			return nil, fmt.Errorf("webhook %q has no name, URL or secret, or is there twice", h.Name)
		}
		a.webhooks[h.Name] = h
		a.names = append(a.names, h.Name)
		for _, result := range []string{"delivered", "failed", "given-up", "dropped"} {
			a.sent.WithLabelValues(h.Name, result)
		}
		a.pending.WithLabelValues(h.Name).Set(0)
	}
	return a, nil
}

// Add stores an alert soon. It never blocks. While the database is away up to 1,000 wait in memory; what
// is more is dropped.
func (a *Alerts) Add(alert *store.Alert) {
	one := *alert
	one.Fill()
	a.mu.Lock()
	full := len(a.waiting) >= maxPendingAlerts
	if !full {
		a.waiting = append(a.waiting, one)
	}
	a.mu.Unlock()
	if full {
		a.log.Warn("an alert is dropped: too many wait for the database", slog.String("kind", string(one.Kind)))
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends; then it returns nil.
func (a *Alerts) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range a.names { // each on its own, so that one that does not answer keeps no other waiting
		all.Go(func() {
			(&poll[store.Delivery]{
				every: alertsEvery, atOnce: deliveriesAtOnce, do: a.deliver, log: a.log, what: "deliveries",
				due: func(ctx context.Context, limit int) ([]store.Delivery, error) {
					if limit == 0 {
						return nil, nil
					}
					return a.options.Store.DueDeliveries(ctx, []string{name}, limit, deliveryLease)
				},
			}).run(ctx)
		})
	}
	tick, look := time.NewTicker(alertsEvery), time.NewTicker(lookEvery)
	defer tick.Stop()
	defer look.Stop()
	a.look(ctx)
	for ctx.Err() == nil {
		a.keep(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-a.wake:
		case <-look.C:
			a.look(ctx)
		}
	}
	return nil
}

// keep stores the alerts that wait for the database, and hands those that are stored to the webhooks.
func (a *Alerts) keep(ctx context.Context) {
	a.mu.Lock()
	list := slices.Clone(a.waiting)
	a.mu.Unlock()
	if len(list) > 0 {
		work, cancel := context.WithTimeout(ctx, endFor)
		_, err := a.options.Store.AddAlerts(work, list)
		cancel()
		if err != nil && (store.IsTemporary(err) || ctx.Err() != nil) {
			a.log.DebugContext(ctx, "alerts wait for the database", slog.Any("error", err))
			return
		}
		if err != nil {
			a.log.ErrorContext(ctx, "alerts could not be stored", slog.Any("error", err))
		}
		a.mu.Lock()
		a.waiting = slices.Delete(a.waiting, 0, len(list))
		a.mu.Unlock()
	}
	for {
		work, cancel := context.WithTimeout(ctx, endFor)
		relayed, dropped, err := a.options.Store.RelayAlerts(work, alertBatch, a.route)
		cancel()
		if err != nil {
			a.log.DebugContext(ctx, "alerts could not be handed to the webhooks", slog.Any("error", err))
			return
		}
		for i := range relayed {
			a.made.WithLabelValues(string(relayed[i].Kind)).Inc()
			if a.outage != nil && a.outage.alert.ID == relayed[i].ID {
				a.outage.stored = true
			}
		}
		for _, name := range dropped {
			a.log.WarnContext(ctx, "an alert is not delivered: too many wait", slog.String("webhook", name))
			a.sent.WithLabelValues(name, "dropped").Inc()
		}
		if len(relayed) < alertBatch {
			return
		}
	}
}

// route returns the names of the webhooks that an alert goes to, without those that were told of it already.
func (a *Alerts) route(alert *store.Alert) []string {
	var names []string
	for _, name := range a.names {
		h := a.webhooks[name]
		ofTenant := h.Tenant == "" || h.Tenant == alert.Tenant
		ofKind := len(h.Kinds) == 0 || slices.Contains(h.Kinds, alert.Kind)
		if ofTenant && ofKind && !a.told[alert.ID][name] {
			names = append(names, name)
		}
	}
	return names
}

// look finds out what nobody else tells: that keys were revoked, and that the database is away. It also counts what is
// pending.
func (a *Alerts) look(ctx context.Context) {
	if a.options.Keys != nil { // one that was revoked is told of as long as alerts are kept
		for _, k := range a.options.Keys() {
			if k.RevokedAt.IsZero() || a.revoked[k.ID] || a.now().Sub(k.RevokedAt) > store.AlertsKept {
				continue
			}
			a.revoked[k.ID] = true
			why := ""
			if k.Reason != "" {
				why = ": " + k.Reason
			}
			a.Add(&store.Alert{
				Kind: store.AlertKeyRevoked, Tenant: store.DefaultTenant, Subject: store.AlertSubject{Key: k.ID},
				Summary: fmt.Sprintf("The signing key %s (%s) was revoked%s.", k.ID, k.Use, why),
			})
		}
	}
	if a.options.Away != nil {
		a.lookAtStore(ctx)
	}
	if len(a.names) == 0 {
		return
	}
	work, cancel := context.WithTimeout(ctx, endFor)
	defer cancel()
	pending, err := a.options.Store.PendingDeliveries(work)
	if err != nil {
		return // what is known stays
	}
	for _, name := range a.names {
		a.pending.WithLabelValues(name).Set(float64(pending[name]))
	}
}

// lookAtStore tells that the database takes no answers, once for each time. The webhooks are told at once, from memory.
func (a *Alerts) lookAtStore(ctx context.Context) {
	work, cancel := context.WithTimeout(ctx, lookEvery)
	err := a.options.Away(work)
	cancel()
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		a.since, a.outage = time.Time{}, nil
		return
	case a.since.IsZero():
		a.since = a.now()
	}
	if a.outage == nil && a.now().Sub(a.since) >= awayFor {
		since := a.since.UTC().Truncate(time.Second)
		alert := store.Alert{
			Kind: store.AlertStoreAway, Tenant: store.DefaultTenant, CreatedAt: since,
			Subject: store.AlertSubject{Since: since.Format(time.RFC3339)},
			Summary: "The database has taken no answers since " + since.Format("2006-01-02 15:04:05") +
				" UTC; they wait in the journal.",
		}
		alert.Fill()
		a.log.WarnContext(ctx, "the database is away", slog.Time("since", since), slog.Any("error", err))
		a.Add(&alert)
		a.outage = &outage{alert: alert, attempts: map[string]int{}, next: map[string]time.Time{}}
	}
	if a.outage != nil && !a.outage.stored {
		a.tellOutage(ctx, a.outage)
	}
}

// tellOutage tells the webhooks that were not told yet, those whose turn it is.
func (a *Alerts) tellOutage(ctx context.Context, o *outage) {
	for _, name := range a.route(&o.alert) {
		if o.attempts[name] > len(a.pauses) || a.now().Before(o.next[name]) {
			continue
		}
		err := a.send(ctx, a.webhooks[name], &o.alert)
		a.count(ctx, name, o.attempts[name], err)
		if err == nil || isOver(err) {
			if a.told[o.alert.ID] == nil {
				a.told[o.alert.ID] = map[string]bool{}
			}
			a.told[o.alert.ID][name] = true
			continue
		}
		o.next[name] = a.now().Add(a.pauseAfter(o.attempts[name]))
		o.attempts[name]++
	}
}

// deliver makes one try of a delivery, and notes what came of it.
func (a *Alerts) deliver(ctx context.Context, d *store.Delivery) {
	h := a.webhooks[d.Webhook]
	if h == nil {
		return
	}
	err := recovered(ctx, a.log, "delivering an alert", slog.String("webhook", h.Name), func() error {
		return a.send(ctx, h, &d.Alert)
	})
	next := time.Time{}
	switch {
	case ctx.Err() != nil && err != nil: // it was interrupted: the next start tries it when the lease is over
		return
	case err != nil && !isOver(err) && d.Attempts < len(a.pauses):
		next = a.options.Store.Now().Add(a.pauseAfter(d.Attempts))
	}
	a.count(ctx, h.Name, d.Attempts, err)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancel()
	if err := a.options.Store.EndDelivery(end, d, next); err != nil { // it comes again when the lease is over
		a.log.WarnContext(ctx, "what came of a delivery could not be kept", slog.Any("error", err))
	}
}

// pauseAfter returns how long to wait after a failure, before which so many were.
func (a *Alerts) pauseAfter(attempts int) time.Duration {
	return jittered(a.pauses[min(attempts, len(a.pauses)-1)])
}

// count counts and logs what came of a try, before which so many failed.
func (a *Alerts) count(ctx context.Context, webhook string, attempts int, err error) {
	if err == nil {
		a.sent.WithLabelValues(webhook, "delivered").Inc()
		return
	}
	result := "failed"
	if isOver(err) || attempts >= len(a.pauses) {
		result = "given-up"
	}
	a.sent.WithLabelValues(webhook, result).Inc()
	a.log.WarnContext(
		ctx, "an alert was not delivered", slog.String("webhook", webhook), slog.Int("attempt", attempts+1),
		slog.String("result", result), slog.String("error", deliveryReason(err)),
	)
}

const (
	// MinWebhookSecret is how many bytes the secret of a webhook has at least.
	MinWebhookSecret = 24
	// secretPrefix begins a secret of a webhook that is written in base64.
	secretPrefix = "whsec_"
	// deliverFor is how long a delivery may take.
	deliverFor = 15 * time.Second
)

// Webhook is an endpoint that is told of alerts, by the conventions of Standard Webhooks: a POST whose body is the
// alert as JSON, with the headers webhook-id (the alert's id), webhook-timestamp and webhook-signature (v1,
// HMAC-SHA256).
type Webhook struct {
	Name   string
	URL    string
	Secret []byte            // what signs; see [ReadWebhookSecret]
	Kinds  []store.AlertKind // that it is told of; empty: all
	Tenant string            // whose alerts it is told of; empty: everybody's
}

// ReadWebhookSecret returns the bytes of a secret as it is configured: whsec_ and base64, or the text itself. It needs
// [MinWebhookSecret] bytes.
func ReadWebhookSecret(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	secret := []byte(text)
	if encoded, ok := strings.CutPrefix(text, secretPrefix); ok {
		var err error
		if secret, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("what follows " + secretPrefix + " is not base64")
		}
	}
	if len(secret) < MinWebhookSecret {
		return nil, fmt.Errorf("it has %d bytes and needs %d", len(secret), MinWebhookSecret)
	}
	return secret, nil
}

// statusError is that a webhook answered with another status than 2xx.
type statusError int

func (e statusError) Error() string { return "it answered " + strconv.Itoa(int(e)) }

// isOver reports whether trying again is in vain: the endpoint says that it is gone.
func isOver(err error) bool {
	status, ok := errors.AsType[statusError](err)
	return ok && status == http.StatusGone
}

// deliveryReason says why a delivery failed without the webhook's address, which may be a secret.
func deliveryReason(err error) string {
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		return strings.TrimSpace(string(f.Kind) + " " + f.Reason)
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return status.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	return "the request failed"
}

// send sends an alert to a webhook. The error is a [statusError], or the client's.
func (a *Alerts) send(ctx context.Context, h *Webhook, alert *store.Alert) error {
	shown := *alert
	if a.options.Origin != "" {
		shown.Link = a.options.Origin + shown.Link
	}
	body, err := json.Marshal(&shown)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deliverFor)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(a.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", alert.ID)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", signWebhook(h.Secret, alert.ID, at, body))
	res, err := a.options.Client.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close() // what it says is not looked at
	if res.StatusCode/100 != 2 {
		return statusError(res.StatusCode)
	}
	return nil
}

// signWebhook returns the signature of a message, by version 1 of Standard Webhooks.
func signWebhook(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
