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
	// alertsEvery is how often the store is asked for alerts to deliver to webhooks, lookEvery how often the keys and
	// the database are checked.
	alertsEvery = time.Second
	lookEvery   = 5 * time.Second
	// awayFor is how long the database must refuse answers before that is an alert.
	awayFor = 10 * time.Second
	// alertBatch is how many alerts are handed to the webhooks at a time.
	alertBatch = 100
	// maxPendingAlerts is how many alerts wait in memory for the database. Any more are dropped and logged.
	maxPendingAlerts = 1000
	// deliveriesAtOnce is how many deliveries to a webhook run at a time, deliveryLease how long no other node tries
	// one.
	deliveriesAtOnce = 4
	deliveryLease    = time.Minute
)

// webhookPauses are the pauses after failed deliveries, give or take a tenth: about two days in all. After one more
// failure the delivery is given up.
var webhookPauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	4 * time.Hour, 8 * time.Hour, 12 * time.Hour, 20 * time.Hour,
}

// AlertsOptions are the options of [NewAlerts]. Store is required.
type AlertsOptions struct {
	Store    *store.Store
	Webhooks []Webhook
	// Client calls the webhooks and is required if there are any. One returned by snapshot.Fetcher.Client only connects
	// to public and explicitly allowed addresses.
	Client *http.Client
	// Keys returns our signing keys, including revoked ones; nil means there are none.
	Keys func() []keyring.Key
	// Away returns why the database refuses answers at the moment, or nil. If the function is nil, this is not checked.
	Away    func(context.Context) error
	Origin  string                // of the links sent to webhooks: https://ibid.example; if empty, links are paths
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Alerts reports what needs attention: it stores the alerts passed to [Alerts.Add], creates those about revoked keys
// and an unavailable database, and delivers all of them to the webhooks, each at least once, in no particular order.
// Several nodes can share the work.
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

	// The following are used only by Run.
	told    map[string]map[string]bool // webhooks that already got an outage's alert, by its id
	revoked map[string]bool            // keys already reported
	since   time.Time                  // when the database was first found unavailable; zero while it is available
	outage  *outage                    // the outage being reported; nil if there is none
}

// outage is an alert delivered from memory because the database is unavailable.
type outage struct {
	alert    store.Alert
	attempts map[string]int       // failed attempts by webhook
	next     map[string]time.Time // when to retry, by webhook
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
	if a.made, err = newCounter(o.Metrics, "ibid_alerts_total", "Alerts by kind.", "kind"); err != nil {
		return nil, err
	}
	for _, kind := range store.AlertKinds() {
		a.made.WithLabelValues(string(kind))
	}
	if a.sent, err = newCounter(
		o.Metrics, "ibid_webhook_deliveries_total",
		"Attempts to deliver an alert by result: delivered, failed (to be retried), given-up or dropped.",
		"webhook", "result",
	); err != nil {
		return nil, err
	}
	a.pending = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ibid_webhook_pending", Help: "Alerts waiting for a webhook.",
	}, []string{"webhook"})
	if o.Metrics != nil {
		if err := o.Metrics.Register(a.pending); err != nil {
			return nil, fmt.Errorf("registering a gauge: %w", err)
		}
	}
	for i := range o.Webhooks {
		h := &a.options.Webhooks[i]
		if h.Name == "" || h.URL == "" || len(h.Secret) < MinWebhookSecret || a.webhooks[h.Name] != nil {
			return nil, fmt.Errorf("webhook %q has no name, URL or secret, or is a duplicate", h.Name)
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

// Add queues an alert for storage. It never blocks. While the database is unavailable, up to 1,000 alerts wait in
// memory; any more are dropped.
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
		a.log.Warn("an alert was dropped: too many are waiting for the database", slog.String("kind", string(one.Kind)))
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Run runs until ctx ends and returns nil.
func (a *Alerts) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	for _, name := range a.names { // independently, so that a webhook that hangs does not delay the others
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

// keep stores the waiting alerts, and hands stored ones to the webhooks.
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
			a.log.WarnContext(ctx, "an alert will not be delivered: too many are waiting", slog.String("webhook", name))
			a.sent.WithLabelValues(name, "dropped").Inc()
		}
		if len(relayed) < alertBatch {
			return
		}
	}
}

// route returns the names of the webhooks for an alert, without those that already got it.
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

// look checks for revoked keys and an unavailable database, which nothing else reports, and counts pending deliveries.
func (a *Alerts) look(ctx context.Context) {
	if a.options.Keys != nil { // a revoked key is reported as long as alerts are kept
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
		return // keep the last values
	}
	for _, name := range a.names {
		a.pending.WithLabelValues(name).Set(float64(pending[name]))
	}
}

// lookAtStore reports that the database refuses answers, once for each outage. Webhooks are notified at once, from
// memory.
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

// tellOutage notifies the webhooks that are due and have not got the alert.
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

// deliver attempts a delivery and records the result.
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
	case ctx.Err() != nil && err != nil: // interrupted: the next start retries it after the lease
		return
	case err != nil && !isOver(err) && d.Attempts < len(a.pauses):
		next = a.options.Store.Now().Add(a.pauseAfter(d.Attempts))
	}
	a.count(ctx, h.Name, d.Attempts, err)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancel()
	if err := a.options.Store.EndDelivery(end, d, next); err != nil { // it is retried after the lease
		a.log.WarnContext(ctx, "the result of a delivery could not be stored", slog.Any("error", err))
	}
}

// pauseAfter returns the pause after a failure that follows the given number of earlier ones.
func (a *Alerts) pauseAfter(attempts int) time.Duration {
	return jittered(a.pauses[min(attempts, len(a.pauses)-1)])
}

// count counts and logs the result of an attempt that follows the given number of failed ones.
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
	// MinWebhookSecret is the minimum length of a webhook's secret in bytes.
	MinWebhookSecret = 24
	// secretPrefix marks a webhook secret encoded as base64.
	secretPrefix = "whsec_"
	// deliverFor bounds one delivery.
	deliverFor = 15 * time.Second
)

// Webhook is an endpoint that receives alerts as specified by Standard Webhooks: a POST whose body is the alert as
// JSON, with the headers webhook-id (the alert's id), webhook-timestamp and webhook-signature (v1, HMAC-SHA256).
type Webhook struct {
	Name   string
	URL    string
	Secret []byte            // signs the messages; see [ReadWebhookSecret]
	Kinds  []store.AlertKind // the kinds it receives; empty means all
	Tenant string            // the tenant whose alerts it receives; empty means all
}

// ReadWebhookSecret returns the bytes of a configured secret: whsec_ and base64, or plain text. It must have
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
		return nil, fmt.Errorf("it has %d bytes, but needs %d", len(secret), MinWebhookSecret)
	}
	return secret, nil
}

// statusError is the status of a webhook's response if it is not 2xx.
type statusError int

func (e statusError) Error() string { return "it responded with status " + strconv.Itoa(int(e)) }

// isOver reports whether retrying is pointless because the endpoint is gone.
func isOver(err error) bool {
	status, ok := errors.AsType[statusError](err)
	return ok && status == http.StatusGone
}

// deliveryReason describes why a delivery failed, without the webhook's address, which may be a secret.
func deliveryReason(err error) string {
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		return strings.TrimSpace(string(f.Kind) + " " + f.Reason)
	}
	if status, ok := errors.AsType[statusError](err); ok {
		return status.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not respond in time"
	}
	return "the request failed"
}

// send sends an alert to a webhook. The error is a [statusError], or that of the client.
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
	_ = res.Body.Close() // the body is ignored
	if res.StatusCode/100 != 2 {
		return statusError(res.StatusCode)
	}
	return nil
}

// signWebhook signs a message by version 1 of Standard Webhooks.
func signWebhook(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
