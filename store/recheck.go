package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	// maxAddress is how many bytes an address may have that is to be read again. Longer ones are no addresses of
	// documents.
	maxAddress = 8 << 10
	// trackBatch is how many answers TrackStored looks at in one transaction.
	trackBatch = 256
	// trackMark is the mark of how far TrackStored has come.
	trackMark = "tracked"
)

// Recheck is a source that is to be read again: see [Store.DueRechecks].
type Recheck struct {
	Tenant   string
	URL      string    // as snapshot.CleanURL returns it
	Checked  time.Time // when it was read last; zero: never
	Failures int       // how often it could not be read since then

	claim int64
}

// cited returns the addresses of the web sources that an answer cites, in the order of their names.
func cited(a *ibid.Answer) []string {
	var list []string
	for i := range a.Sources {
		s := &a.Sources[i]
		if !strings.HasPrefix(s.URL, "http") || !isCited(a, s.ID) {
			continue
		}
		u, err := url.Parse(s.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		clean, err := snapshot.CleanURL(s.URL)
		if err == nil && len(clean) <= maxAddress {
			list = append(list, clean)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func isCited(a *ibid.Answer, source string) bool {
	return slices.ContainsFunc(a.Citations, func(c ibid.Citation) bool {
		return slices.ContainsFunc(c.Refs, func(r ibid.Ref) bool { return r.Source == source })
	})
}

// trackRows notes the addresses of what rows cite.
func (tx *transaction) trackRows(ctx context.Context, rows []*row) error {
	due := micros(time.Now())
	var list []tenantID
	for _, r := range rows {
		for _, address := range r.cited {
			list = append(list, tenantID{lookup(r.Tenant), address})
		}
	}
	slices.SortFunc(list, tenantID.compare) // as everybody locks them
	list = slices.Compact(list)
	values := make([][]any, 0, len(list))
	for _, l := range list {
		values = append(values, []any{l.tenant, lookup(l.id), plain(l.id), due, 0, 0})
	}
	return tx.exec(ctx, &tuples{
		before: tx.insertInto("rechecks", "tenant, url, address, due, checked, failures"), row: "($, $, $, $, $, $)",
		after: " ON CONFLICT (tenant, url) DO NOTHING",
	}, values)
}

// TrackStored notes the web addresses of what those answers cite that were put while [Options.Track] was off, and
// returns how many answers it looked at. It goes on where it ended the last time, and takes small transactions.
func (s *Store) TrackStored(ctx context.Context) (int, error) {
	sum := 0
	for {
		n := 0
		err := s.update(ctx, func(ctx context.Context, tx *transaction) (err error) {
			n, err = tx.trackStored(ctx)
			return err
		})
		if sum += n; n == 0 || err != nil {
			if err != nil {
				err = fmt.Errorf("noting what stored answers cite: %w", err)
			}
			return sum, err
		}
	}
}

// trackStored notes what a batch of answers cite.
func (tx *transaction) trackStored(ctx context.Context) (int, error) {
	var mark int64
	if err := each(
		ctx, tx,
		func(rows *sql.Rows) error { return rows.Scan(&mark) },
		"SELECT value FROM marks WHERE name = $1", trackMark,
	); err != nil {
		return 0, err
	}
	n := 0
	var list []*row
	err := each(ctx, tx, func(rows *sql.Rows) error {
		c, err := scanCall(rows)
		mark = max(mark, c.n)
		n++
		if errors.Is(err, errDamaged) { // whoever reads it is told
			return nil
		}
		if err == nil {
			list = append(list, &row{Call: c.Call, cited: cited(c.Answer)})
		}
		return err
	}, callColumns+"WHERE n > $1 ORDER BY n LIMIT $2", mark, trackBatch)
	if err != nil || n == 0 {
		return 0, err
	}
	if err := tx.trackRows(ctx, list); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(
		ctx, "INSERT INTO marks (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		trackMark, mark,
	)
	return n, err
}

// DueRechecks returns up to limit sources that are to be read again now, those that wait longest first, and keeps them
// from other callers for as long as lease says, on all nodes. Each is then ended by [Store.SetRecheck].
func (s *Store) DueRechecks(ctx context.Context, limit int, lease time.Duration) ([]Recheck, error) {
	var list []Recheck
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		now := time.Now()
		list = nil
		err := each(ctx, tx, func(rows *sql.Rows) error {
			r := Recheck{claim: micros(now.Add(lease))}
			var checked int64
			err := rows.Scan(&r.Tenant, &r.URL, &checked, &r.Failures)
			r.Checked = instant(checked)
			list = append(list, r)
			return err
		}, "SELECT tenant, address, checked, failures FROM rechecks WHERE due <= $1 ORDER BY due LIMIT $2"+tx.skipLocked(), micros(now), limitOf(limit))
		if err != nil {
			return err
		}
		for i := range list {
			r := &list[i]
			if _, err := tx.ExecContext(
				ctx, "UPDATE rechecks SET due = $1 WHERE tenant = $2 AND url = $3", r.claim, r.Tenant, lookup(r.URL),
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for sources to read again: %w", err)
	}
	return list, nil
}

// SetRecheck says when a source is to be read the next time, and whether it could not be read now. With a zero next it
// is not read any more, until another answer cites it. Where the lease has ended and somebody else has taken it,
// nothing changes.
func (s *Store) SetRecheck(ctx context.Context, r *Recheck, next time.Time, failed bool) error {
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		const where = " WHERE tenant = $1 AND url = $2 AND due = $3"
		args := []any{lookup(r.Tenant), lookup(r.URL), r.claim}
		query := "DELETE FROM rechecks"
		switch {
		case next.IsZero():
		case failed:
			query = "UPDATE rechecks SET due = $4, failures = failures + 1"
			args = append(args, micros(next))
		default:
			query = "UPDATE rechecks SET due = $4, failures = 0, checked = $5"
			args = append(args, micros(next), micros(time.Now()))
		}
		_, err := tx.ExecContext(ctx, query+where, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("setting when %.200s is read again: %w", r.URL, err)
	}
	return nil
}
