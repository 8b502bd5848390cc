package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/verify"
)

const (
	// MaxIncident is how many bytes an incident may have as JSON.
	MaxIncident = 256 << 10
	// incidentBatch is how many incidents are checked at a time.
	incidentBatch = 500
)

// EventIncident is the kind of event for an incident with a citation of a run. Its data is an object with incident_id,
// answer_id (null if unknown), manifest_url, claim_id, source_url, status, detail and observed_at.
const EventIncident = "incident"

// incidentEvent is the data of an [EventIncident].
type incidentEvent struct {
	ID          string        `json:"incident_id"`
	AnswerID    *string       `json:"answer_id"`
	ManifestURL string        `json:"manifest_url"`
	ClaimID     string        `json:"claim_id"`
	SourceURL   string        `json:"source_url"`
	Status      verify.Status `json:"status"`
	Detail      string        `json:"detail"`
	ObservedAt  time.Time     `json:"observed_at"`
}

// AddIncidents appends incidents to a tenant's, each with the id of the one before as its Prev, and returns the new
// ones, with their ids. Incidents whose [verify.Incident.Key] is stored already are skipped. The list itself is not
// changed.
func (s *Store) AddIncidents(
	ctx context.Context, tenant string, list []verify.Incident,
) (added []verify.Incident, err error) {
	defer wrapResult(&err, "storing incidents")
	err = s.update(ctx, func(tx *transaction) error {
		w := &incidentWriter{tx: tx, tenant: lookup(tenant)}
		if err := tx.serialize(ctx, "incidents", w.tenant); err != nil {
			return err
		}
		last, err := scanIncidents(ctx, tx, "tenant = $1 ORDER BY seq DESC LIMIT 1", w.tenant)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			w.seq, w.last = last[0].seq, last[0].ID
		}
		for i := range list {
			if err := w.add(ctx, list[i]); err != nil {
				return err
			}
		}
		added = w.added
		if _, err := tx.addAlerts(ctx, w.alerts); err != nil {
			return err
		}
		return tx.addRunEvents(ctx, w.events)
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// incidentWriter appends to the incidents of a tenant in one transaction.
type incidentWriter struct {
	tx     *transaction
	tenant string
	seq    int64  // of the last one
	last   string // its id
	added  []verify.Incident
	events []Event
	alerts []Alert
}

// add appends an incident unless it is stored already.
func (w *incidentWriter) add(ctx context.Context, i verify.Incident) error {
	text, err := json.Marshal(&i)
	if err == nil {
		err = json.Unmarshal(text, &i) // normalized as readers will see it
	}
	if err != nil {
		return err
	}
	row := columnsOf(&i)
	found, err := exists(ctx, w.tx, "SELECT 1 FROM incidents WHERE tenant = $1 AND key = $2", w.tenant, row.key)
	if err != nil || found {
		return err
	}
	answer, run, err := w.owner(ctx, row.manifest, &i)
	if err != nil {
		return err
	}
	if err := i.Chain(w.last); err != nil {
		return err
	}
	if text, err = json.Marshal(&i); err != nil {
		return err
	}
	if len(text) > MaxIncident {
		return refuse(ErrLimit, "an incident of %d bytes is over the limit of %d", len(text), MaxIncident)
	}
	w.seq++
	if err := w.tx.insert(
		ctx, "incidents", "tenant, seq, key, manifest, source, status, answer_id, incident",
		w.tenant, w.seq, row.key, row.manifest, row.source, row.status, answer, w.tx.text(text),
	); err != nil {
		return err
	}
	w.last = i.ID
	w.added = append(w.added, i)
	event, err := newEvent(w.tenant, run, EventIncident, &incidentEvent{
		i.ID, nullable(answer), i.ManifestURL, i.ClaimID, i.SourceURL, i.Status, i.Detail, i.ObservedAt,
	})
	w.events = append(w.events, event)
	if alert := incidentAlert(w.tenant, answer, &i); alert != nil {
		w.alerts = append(w.alerts, *alert)
	}
	return err
}

// owner returns the stored answer and run that an incident belongs to; empty if unknown.
func (w *incidentWriter) owner(ctx context.Context, digest string, i *verify.Incident) (answer, run string, err error) {
	if digest == "" {
		return "", "", nil
	}
	err = each(
		ctx, w.tx, into(&answer, &run),
		"SELECT pins.answer_id, pins.run FROM publications p JOIN pins ON pins.tenant = p.tenant AND "+
			"pins.path = p.path WHERE p.tenant = $1 AND p.digest = $2 AND pins.claim = $3 LIMIT 1",
		w.tenant, digest, lookup(i.ClaimID),
	)
	if err == nil && answer == "" {
		err = each(
			ctx, w.tx, into(&answer, &run),
			"SELECT answer_id, run FROM publications WHERE tenant = $1 AND digest = $2 LIMIT 1", w.tenant, digest,
		)
	}
	if strings.HasPrefix(answer, ownRun) {
		answer = ""
	}
	return answer, run, err
}

// incidentColumns are the columns of an incident's row that are derived from the incident itself.
type incidentColumns struct{ key, manifest, source, status string }

func columnsOf(i *verify.Incident) incidentColumns {
	written := *i
	written.ManifestSHA256 = digestOf(i.ManifestSHA256) // normalized
	return incidentColumns{written.Key(), written.ManifestSHA256, lookup(i.SourceURL), lookup(string(i.Status))}
}

// digestOf returns a SHA-256 as it is stored: hexadecimal.
func digestOf(s string) string { return lookup(strings.ToLower(strings.TrimPrefix(s, "sha256:"))) }

// IncidentQuery selects incidents. Nil and the zero value select all. Conditions in several fields must all hold.
type IncidentQuery struct {
	Manifest string // the SHA-256 of its body, hexadecimal, with or without "sha256:"
	Source   string // its address, as in the incident
	Status   string
	AnswerID string
	Cursor   string // Page.Next of the page before; empty for the first page
	Limit    int    // 0 means DefaultLimit; capped at MaxLimit
}

// storedIncident is a row of incidents.
type storedIncident struct {
	verify.Incident
	seq     int64
	answer  string // the tenant's own answer; empty if unknown or none
	columns incidentColumns
}

// Incidents returns incidents, most recently stored first.
func (s *Store) Incidents(ctx context.Context, tenant string, q *IncidentQuery) (*Page[verify.Incident], error) {
	q = cmp.Or(q, &IncidentQuery{})
	incidents := numberedList[storedIncident, verify.Incident]{
		letter: "i", query: incidentQuery, column: "seq", scan: scanIncident,
		item: func(i *storedIncident) (verify.Incident, int64) { return i.Incident, i.seq },
	}
	c := conditionsOf(tenant)
	c.andIfSet("manifest = $", digestOf(q.Manifest))
	c.andIfSet("source = $", lookup(asJSON(q.Source)))
	c.andIfSet("status = $", lookup(asJSON(q.Status)))
	c.andIfSet("answer_id = $", lookup(q.AnswerID))
	page, err := incidents.page(ctx, s.db, c, q.Cursor, q.Limit)
	return page, wrap(err, "listing incidents")
}

// asJSON returns s as JSON encodes it: each byte that is not UTF-8 becomes a replacement character.
func asJSON(s string) string { return string([]rune(s)) }

const incidentQuery = "SELECT seq, key, manifest, source, status, answer_id, incident FROM incidents"

// scanIncident reads a row of incidentQuery.
func scanIncident(rows *sql.Rows, i *storedIncident) error {
	var text []byte
	c := &i.columns
	if err := rows.Scan(&i.seq, &c.key, &c.manifest, &c.source, &c.status, &i.answer, &text); err != nil {
		return err
	}
	return decode(text, &i.Incident, "incident "+strconv.FormatInt(i.seq, 10))
}

func scanIncidents(ctx context.Context, q querier, where string, args ...any) ([]storedIncident, error) {
	return collect(ctx, q, scanIncident, incidentQuery+" WHERE "+where, args...)
}

// IncidentKey returns the key by which [Store.Incident] finds an incident.
func IncidentKey(i *verify.Incident) string { return columnsOf(i).key }

// Incident returns the incident with a key from [IncidentKey] and the id of the tenant's own answer that it is about;
// empty if unknown or none.
func (s *Store) Incident(ctx context.Context, tenant, key string) (found *verify.Incident, answerID string, err error) {
	defer wrapResult(&err, "reading an incident")
	i, err := readOne(
		ctx, s.db, scanIncident, incidentQuery+" WHERE tenant = $1 AND key = $2", lookup(tenant), lookup(key),
	)
	if err != nil {
		return nil, "", err
	}
	return &i.Incident, i.answer, nil
}

// CheckIncidents verifies all incidents of a tenant: none was changed, not even in its columns, left out or inserted.
// It returns how many are in order from the first on; the error is about the next, or one of the 500 after it.
// Truncation at the end can be detected only by comparing with an id kept elsewhere.
func (s *Store) CheckIncidents(ctx context.Context, tenant string) (n int, err error) {
	defer wrapResult(&err, "checking incidents")
	chain := []verify.Incident{} // what is checked next, preceded by the last incident checked
	for {
		found, err := scanIncidents(
			ctx, s.db, "tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3", lookup(tenant), n, incidentBatch,
		)
		if err != nil {
			return n, err
		}
		for i := range found {
			if found[i].seq != int64(n+i+1) {
				return n, fmt.Errorf("%w: number %d is missing", errDamaged, n+i+1)
			}
			if found[i].columns != columnsOf(&found[i].Incident) {
				return n + i, fmt.Errorf("%w: number %d differs from its columns", errDamaged, n+i+1)
			}
			chain = append(chain, found[i].Incident)
		}
		if n == 0 && len(chain) > 0 && chain[0].Prev != "" {
			return 0, fmt.Errorf("%w: the first one follows another", errDamaged)
		}
		if err := verify.CheckChain(chain); err != nil {
			return n, fmt.Errorf("%d to %d: %w: %w", n+1, n+len(found), errDamaged, err)
		}
		if len(found) < incidentBatch {
			return n + len(found), nil
		}
		n += len(found)
		chain = []verify.Incident{found[len(found)-1].Incident}
	}
}
