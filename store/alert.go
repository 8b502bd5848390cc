package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/verify"
)

const (
	// AlertsKept is how long alerts are kept, seen or not.
	AlertsKept = 90 * 24 * time.Hour
	// MaxDeliveries is how many alerts may wait for one webhook. Alerts beyond it are not delivered.
	MaxDeliveries = 10_000
	// maxAlertSummary is how many bytes an alert's summary may have; a longer one is cut.
	maxAlertSummary = 500
)

// AlertKind is the kind of an alert.
type AlertKind string

// The kinds of alerts.
const (
	AlertSourceChanged AlertKind = "source-changed" // a source does not, or no longer, say what an answer cites
	AlertDiffers       AlertKind = "differs"        // a claim differs from its source, or a judge denies it
	AlertUncited       AlertKind = "uncited"        // an answer that was expected to have citations has none
	AlertKeyRevoked    AlertKind = "key-revoked"    // a signing key was revoked, ours or a manifest's
	AlertStoreAway     AlertKind = "store-away"     // the database accepts no answers
	AlertQuota         AlertKind = "quota"          // a tenant is over its quota, and its answers are not kept
	AlertSetAside      AlertKind = "set-aside"      // work that ended its process several times is not tried again
)

// AlertKinds returns all kinds.
func AlertKinds() []AlertKind {
	return []AlertKind{
		AlertSourceChanged, AlertDiffers, AlertUncited, AlertKeyRevoked, AlertStoreAway, AlertQuota,
		AlertSetAside,
	}
}

// Alert notifies the operator, or a tenant, of something to look at. Alerts about the whole server belong to
// [DefaultTenant], the operator's tenant.
type Alert struct {
	ID        string       `json:"id"` // derived from kind, tenant and subject, so that nothing is reported twice
	CreatedAt time.Time    `json:"created_at"`
	Kind      AlertKind    `json:"kind"`
	Tenant    string       `json:"tenant"`
	Subject   AlertSubject `json:"subject"`
	Summary   string       `json:"summary"` // one sentence
	Link      string       `json:"link"`    // the page about it: a path, or a full URL in what webhooks receive
	SeenAt    *time.Time   `json:"seen_at"` // null if unseen
}

// AlertSubject is what an alert is about. Unknown and inapplicable members are omitted.
type AlertSubject struct {
	AnswerID string `json:"answer_id,omitempty"`
	Run      string `json:"run,omitempty"`      // for what was recorded of a run, without an answer
	Source   string `json:"source,omitempty"`   // its address
	Key      string `json:"key,omitempty"`      // the id of a signing key
	Upstream string `json:"upstream,omitempty"` // its name at the gateway
	Since    string `json:"since,omitempty"`    // distinguishes occurrences of what can happen again: a day or a time
}

// Fill sets the members that follow from the others: the id, the link, and the creation time unless it is set.
// [Store.AddAlerts] does so too.
func (a *Alert) Fill() {
	s := &a.Subject
	a.ID = "alert_" + hash(strings.Join([]string{
		string(a.Kind), a.Tenant, s.owner(), s.Source, s.Key, s.Upstream, s.Since,
	}, "\x00"))[:32]
	a.Summary = plain(text.Head(a.Summary, maxAlertSummary))
	if a.CreatedAt.IsZero() {
		a.CreatedAt = time.Now()
	}
	a.CreatedAt = a.CreatedAt.UTC().Truncate(time.Microsecond)
	switch {
	case s.AnswerID != "":
		a.Link = "/ui/answers/" + url.PathEscape(s.AnswerID)
	case s.Run != "":
		a.Link = "/ui/runs/" + url.PathEscape(s.Run)
	default:
		a.Link = "/ui/alerts"
	}
}

// owner is what an alert is deleted with: an answer, or what was recorded of a run; empty if neither.
func (s *AlertSubject) owner() string {
	if s.AnswerID == "" && s.Run != "" {
		return runOwner(s.Run)
	}
	return s.AnswerID
}

// AddAlerts stores alerts and returns how many are new. Existing ones stay as they are, seen or not.
func (s *Store) AddAlerts(ctx context.Context, list []Alert) (added int, err error) {
	err = s.update(ctx, func(tx *transaction) (err error) {
		added, err = tx.addAlerts(ctx, list)
		return err
	})
	return added, wrap(err, "storing alerts")
}

func (tx *transaction) addAlerts(ctx context.Context, list []Alert) (added int, err error) {
	for i := range list {
		a := list[i]
		a.Fill()
		if a.Tenant = lookup(a.Tenant); a.Tenant == "" {
			return added, errors.New("an alert has no tenant")
		}
		a.SeenAt = nil
		encoded, err := json.Marshal(&a)
		if err != nil {
			return added, err
		}
		found, err := exists(ctx, tx, "SELECT 1 FROM alerts WHERE tenant = $1 AND id = $2", a.Tenant, a.ID)
		if err != nil {
			return added, err
		}
		if found {
			continue
		}
		if err := tx.insertNumbered(
			ctx, "alerts", "tenant, id, kind, answer_id, at, seen, relayed, alert", a.Tenant, a.ID, string(a.Kind),
			lookup(a.Subject.owner()), micros(a.CreatedAt), 0, 0, plain(string(encoded)),
		); err != nil {
			return added, err
		}
		added++
	}
	return added, nil
}

// incidentAlert returns the alert for an incident with one of the tenant's answers (empty if with none); nil if it
// needs none. Findings about the tenant's own citations are reported when their status is stored.
func incidentAlert(tenant, answer string, i *verify.Incident) *Alert {
	a := &Alert{Tenant: tenant, Subject: AlertSubject{AnswerID: answer}}
	if answer == "" {
		a.Subject.Source = cmp.Or(i.ManifestURL, i.ResponseURL)
	}
	switch {
	case i.Status.DeniesClaim():
		a.Kind, a.Summary = AlertDiffers, "A claim differs from its source: "+i.Detail
	case i.Status == verify.KeyRevoked:
		a.Kind, a.Summary = AlertKeyRevoked, "The key of a manifest was revoked: "+i.Detail
	default:
		return nil
	}
	return a
}

// failedAlert returns the alert for a citation whose source does not say what is cited from it.
func failedAlert(tenant string, p *Pin) Alert {
	a := Alert{Kind: AlertSourceChanged, Tenant: tenant, Subject: AlertSubject{AnswerID: p.AnswerID, Source: p.URL}}
	who := "an answer"
	if p.AnswerID == "" {
		a.Subject.Run, who = p.Run, "a run"
	}
	a.Summary = "A source at " + hostOf(p.URL) + " does not say what " + who + " cites of it (" +
		string(p.Status) + ")."
	return a
}

// hostOf returns the host of an address, or all of what has none.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}

// AlertQuery selects alerts. Nil and the zero value select all. Conditions in several fields must all hold.
type AlertQuery struct {
	Kind   AlertKind
	Unseen bool   // only unseen ones
	Cursor string // Page.Next of the page before; empty for the first page
	Limit  int    // 0 means DefaultLimit; capped at MaxLimit
}

// storedAlert is a row of alerts.
type storedAlert struct {
	Alert
	n int64
}

// Alerts returns the alerts of a tenant, newest first.
func (s *Store) Alerts(ctx context.Context, tenant string, q *AlertQuery) (*Page[Alert], error) {
	q = cmp.Or(q, &AlertQuery{})
	alerts := numberedList[storedAlert, Alert]{
		letter: "a", query: alertQuery, column: "n", scan: scanAlert,
		item: func(a *storedAlert) (Alert, int64) { return a.Alert, a.n },
	}
	c := conditionsOf(tenant)
	c.andIfSet("kind = $", lookup(string(q.Kind)))
	if q.Unseen {
		c.where = append(c.where, "seen = 0")
	}
	page, err := alerts.page(ctx, s.db, c, q.Cursor, q.Limit)
	return page, wrap(err, "listing alerts")
}

const alertQuery = "SELECT n, seen, alert FROM alerts"

// scanAlert reads a row of alertQuery.
func scanAlert(rows *sql.Rows, a *storedAlert) error {
	var seen int64
	var encoded []byte
	if err := rows.Scan(&a.n, &seen, &encoded); err != nil {
		return err
	}
	err := decode(encoded, &a.Alert, "an alert")
	if seen != 0 {
		at := instant(seen).UTC()
		a.SeenAt = &at
	}
	return err
}

// UnseenAlerts counts a tenant's unseen alerts. If there are more than [MaxCounted], it returns one more.
func (s *Store) UnseenAlerts(ctx context.Context, tenant string) (n int, err error) {
	err = each(
		ctx, s.db, into(&n),
		"SELECT count(*) FROM (SELECT 1 FROM alerts WHERE tenant = $1 AND seen = 0 LIMIT $2) AS found",
		lookup(tenant), MaxCounted+1,
	)
	return n, wrap(err, "counting alerts")
}

// SeeAlert marks an alert as seen, or as unseen if seen is false, and returns it. An alert already seen keeps its time.
// It fails with [ErrNotFound] if the tenant has no such alert.
func (s *Store) SeeAlert(ctx context.Context, tenant, id string, seen bool) (a *Alert, err error) {
	defer wrapResult(&err, "marking alert %.60q", id)
	set, args := "seen = 0", []any{lookup(tenant), lookup(id)}
	if seen {
		set = "seen = CASE WHEN seen = 0 THEN $3 ELSE seen END"
		args = append(args, micros(s.now()))
	}
	err = s.update(ctx, func(tx *transaction) error {
		n, err := tx.changed(ctx, "UPDATE alerts SET "+set+" WHERE tenant = $1 AND id = $2", args...)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		action := AuditAlertUnseen
		if seen {
			action = AuditAlertSeen
		}
		return tx.audit(ctx, tenant, AuditEntry{Action: action, Object: id})
	})
	if err != nil {
		return nil, err
	}
	found, err := readOne(ctx, s.db, scanAlert, alertQuery+" WHERE tenant = $1 AND id = $2", args[:2]...)
	if err != nil {
		return nil, err
	}
	return &found.Alert, nil
}

// SeeAllAlerts marks all alerts of a tenant as seen and returns how many were not.
func (s *Store) SeeAllAlerts(ctx context.Context, tenant string) (int, error) {
	var n int
	err := s.update(ctx, func(tx *transaction) (err error) {
		n, err = tx.changed(
			ctx, "UPDATE alerts SET seen = $1 WHERE tenant = $2 AND seen = 0", micros(tx.now()), lookup(tenant),
		)
		if err != nil || n == 0 {
			return err
		}
		return tx.audit(ctx, tenant, AuditEntry{Action: AuditAlertSeen, Detail: fmt.Sprintf("all %d of them", n)})
	})
	return n, wrap(err, "marking alerts")
}

// RelayAlerts queues up to limit new alerts for the webhooks that route names. It returns these alerts and, once for
// each delivery that was dropped, the webhook that had [MaxDeliveries] waiting. Each name that route returned for an
// alert is a [Delivery] from then on, even after a crash. Several nodes share the work.
func (s *Store) RelayAlerts(
	ctx context.Context, limit int, route func(*Alert) []string,
) (relayed []Alert, dropped []string, err error) {
	defer wrapResult(&err, "handing alerts to webhooks")
	// Usually there are none, and nothing is written.
	if some, err := exists(ctx, s.db, "SELECT 1 FROM alerts WHERE relayed = 0 LIMIT 1"); err != nil || !some {
		return nil, nil, err
	}
	err = s.update(ctx, func(tx *transaction) error {
		relayed, dropped = nil, nil
		list, err := collect(
			ctx, tx, scanAlert, alertQuery+" WHERE relayed = 0 ORDER BY n LIMIT $1"+tx.skipLocked(), limitOf(limit),
		)
		if err != nil {
			return err
		}
		waiting := map[string]int{} // by webhook, as far as counted
		for i := range list {
			a := &list[i]
			for _, webhook := range route(&a.Alert) {
				n, known := waiting[webhook]
				if !known {
					const waits = "SELECT count(*) FROM deliveries WHERE webhook = $1"
					if err := each(ctx, tx, into(&n), waits, lookup(webhook)); err != nil {
						return err
					}
				}
				if waiting[webhook] = n; n >= MaxDeliveries {
					dropped = append(dropped, webhook)
					continue
				}
				waiting[webhook]++
				if err := tx.insert(
					ctx, "deliveries", "webhook, n, at, due, attempts", lookup(webhook), a.n, micros(a.CreatedAt),
					micros(s.now()), 0,
				); err != nil {
					return err
				}
			}
			if err := tx.exec(ctx, "UPDATE alerts SET relayed = 1 WHERE n = $1", a.n); err != nil {
				return err
			}
			relayed = append(relayed, a.Alert)
		}
		return nil
	})
	return relayed, dropped, err
}

// Delivery is an alert to be sent to a webhook.
type Delivery struct {
	Alert    Alert
	Webhook  string // its name
	Attempts int    // that failed so far
	n        int64
}

// DueDeliveries returns up to limit deliveries that are due to one of webhooks, and leases each: for that long, no
// other caller on any node gets it. Each is ended by [Store.EndDelivery].
func (s *Store) DueDeliveries(
	ctx context.Context, webhooks []string, limit int, lease time.Duration,
) ([]Delivery, error) {
	if len(webhooks) == 0 {
		return nil, nil
	}
	named := make([]string, len(webhooks)) // from the configuration, whose names have no quotes
	for i, name := range webhooks {
		named[i] = "'" + strings.ReplaceAll(lookup(name), "'", "''") + "'"
	}
	where := "deliveries WHERE due <= $1 AND webhook IN (" + strings.Join(named, ", ") + ")"
	if some, err := exists(ctx, s.db, "SELECT 1 FROM "+where+" LIMIT 1", micros(s.now())); err != nil || !some {
		return nil, wrap(err, "looking for alerts to deliver")
	}
	until := micros(s.now().Add(lease))
	list, err := claimDue(
		ctx, s, limit, "SELECT webhook, n, attempts FROM "+where+" ORDER BY due",
		func(rows *sql.Rows, d *Delivery) error { return rows.Scan(&d.Webhook, &d.n, &d.Attempts) },
		func(tx *transaction, d *Delivery) error {
			found, err := collect(ctx, tx, scanAlert, alertQuery+" WHERE n = $1", d.n)
			if err != nil {
				return err
			}
			if len(found) > 0 {
				d.Alert = found[0].Alert
			}
			return tx.exec(
				ctx, "UPDATE deliveries SET due = $1 WHERE webhook = $2 AND n = $3", until, d.Webhook, d.n,
			)
		},
	)
	return slices.DeleteFunc(list, func(d Delivery) bool { return d.Alert.ID == "" }),
		wrap(err, "looking for alerts to deliver")
}

// EndDelivery records the outcome of a delivery. If next is zero, it is done, delivered or given up; otherwise it
// failed and is due again at next.
func (s *Store) EndDelivery(ctx context.Context, d *Delivery, next time.Time) error {
	query, args := "DELETE FROM deliveries WHERE webhook = $1 AND n = $2", []any{lookup(d.Webhook), d.n}
	if !next.IsZero() {
		query = "UPDATE deliveries SET due = $3, attempts = attempts + 1 WHERE webhook = $1 AND n = $2"
		args = append(args, micros(next))
	}
	_, err := s.change(ctx, query, args...)
	return wrap(err, "ending a delivery")
}

// PendingDeliveries counts the alerts waiting for webhooks, by the webhook's name.
func (s *Store) PendingDeliveries(ctx context.Context) (map[string]int, error) {
	pending := map[string]int{}
	err := each(ctx, s.db, func(rows *sql.Rows) error {
		var name string
		var n int
		err := rows.Scan(&name, &n)
		pending[name] = n
		return err
	}, "SELECT webhook, count(*) FROM deliveries GROUP BY webhook")
	return pending, wrap(err, "counting deliveries")
}
