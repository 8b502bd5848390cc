package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/verify"
)

// The bounds of what is added up for an overview. What is beyond them is not looked at, so that it takes no longer
// where there is more.
const (
	// MaxCounted is how far [Store.Counts] counts.
	MaxCounted = 10_000
	// maxChecked is of how many answers, the last stored ones, [Store.CheckedDays] looks at the citations.
	maxChecked = 5_000
	// maxBroken is how many citations of each status [Store.BrokenSources] looks at.
	maxBroken = 5_000
)

// Counts says how much a tenant has: each up to [MaxCounted] and then one more.
type Counts struct {
	Answers, Conversations, Runs, Incidents int
}

// Counts counts what a tenant has.
func (s *Store) Counts(ctx context.Context, tenant string) (*Counts, error) {
	upTo := func(from string) string {
		return "(SELECT count(*) FROM (SELECT 1 FROM " + from + " LIMIT $2) AS found)"
	}
	there := func(t *groupTable) string { return upTo(t.name + " WHERE tenant = $1 AND " + t.there) }
	c := &Counts{}
	err := each(
		ctx, s.db,
		into(&c.Answers, &c.Conversations, &c.Runs, &c.Incidents),
		"SELECT "+upTo("calls WHERE tenant = $1")+", "+there(conversationTable())+", "+there(runTable())+", "+
			upTo("incidents WHERE tenant = $1"),
		lookup(tenant), MaxCounted+1,
	)
	return c, about(err, "counting what there is")
}

// CheckedDay says what came of checking the citations of the answers that began on one day. A citation counts once, by
// the worst that came of its sources; one that was never checked does not count.
type CheckedDay struct {
	Day                          time.Time // its midnight, UTC
	Passed, Unverifiable, Failed int
}

// day is how many microseconds a day has.
const day = int64(24 * time.Hour / time.Microsecond)

// CheckedDays returns what came of checking the citations of the last 5,000 answers, by the day of the answer, the
// oldest first. Days without a checked citation are left out.
func (s *Store) CheckedDays(ctx context.Context, tenant string) ([]CheckedDay, error) {
	// CROSS JOIN, for SQLite: the answers first, then of each its pins. Else it reads all of a tenant's.
	list, err := collect(ctx, s.db, func(rows *sql.Rows, d *CheckedDay) error {
		var number int64
		err := rows.Scan(&number, &d.Passed, &d.Unverifiable, &d.Failed)
		d.Day = instant(number * day)
		return err
	}, `SELECT day, count(CASE WHEN worst < $2 THEN 1 END), count(CASE WHEN worst = $2 THEN 1 END),
	count(CASE WHEN worst > $2 THEN 1 END) FROM (
	SELECT recent.started / $3 AS day, max(pins.rank) AS worst
	FROM (SELECT answer_id, started FROM calls WHERE tenant = $1 ORDER BY n DESC LIMIT $4) AS recent CROSS JOIN pins
	WHERE pins.tenant = $1 AND pins.answer_id = recent.answer_id AND pins.rank > 0
	GROUP BY recent.started / $3, pins.answer_id, pins.citation
) AS citations GROUP BY day ORDER BY day`, lookup(tenant), rankUnverifiable, day, maxChecked)
	return list, about(err, "adding up what was checked")
}

// BrokenSource is a source that does not say (any more) what was cited of it, or that cannot be read.
type BrokenSource struct {
	Pin // the last citation of it with that status

	Answers int // how many rest on it
}

// brokenStatuses returns what sources come to that are broken: not those that nobody may or can look at, and none that
// passes.
func brokenStatuses() []verify.Status {
	return []verify.Status{
		verify.Gone, verify.Unreachable, verify.AccessDenied, verify.ExcerptMissing, verify.ExcerptAltered,
		verify.ExcerptMismatch,
	}
}

// BrokenSources returns up to limit sources that were found broken, the one that was cited last first. A source that is
// broken in several ways comes once for each. Of more than 5,000 citations that are broken in one way not all are
// looked at.
func (s *Store) BrokenSources(ctx context.Context, tenant string, limit int) (list []BrokenSource, err error) {
	defer explain(&err, "listing broken sources")
	c := conditions{args: []any{lookup(tenant), maxBroken}}
	pinned := "pins"
	if !s.postgres {
		pinned += " INDEXED BY pins_by_status" // else it reads all that were checked, by pins_by_rank
	}
	some := make([]string, 0, len(brokenStatuses()))
	for _, status := range brokenStatuses() {
		some = append(some, "SELECT * FROM (SELECT n, url, status, answer_id FROM "+pinned+
			" WHERE tenant = $1 AND rank > 0 AND status = "+c.param(lookup(string(status)))+" LIMIT $2) AS one")
	}
	answers, ns := map[int64]int{}, []int64{}
	err = each(ctx, s.db, func(rows *sql.Rows) error {
		var n int64
		var count int
		err := rows.Scan(&n, &count)
		answers[n], ns = count, append(ns, n)
		return err
	}, "SELECT max(n), count(DISTINCT answer_id) FROM ("+strings.Join(some, " UNION ALL ")+") AS broken GROUP "+
		"BY url, status ORDER BY max(n) DESC LIMIT "+
		c.param(limitOf(limit)), c.args...)
	if err != nil || len(ns) == 0 {
		return nil, err
	}
	var chosen conditions
	in(&chosen, "n", ns)
	pins, err := scanPins(ctx, s.db, chosen.where[0]+" ORDER BY n DESC", chosen.args...)
	for i := range pins {
		list = append(list, BrokenSource{Pin: pins[i], Answers: answers[pins[i].ID]})
	}
	return list, err
}

// Usage returns how many bytes the stored answers of some tenants have, as they are encoded: one that has none is left
// out.
func (s *Store) Usage(ctx context.Context, tenants []string) (map[string]int64, error) {
	usage := make(map[string]int64, len(tenants))
	for _, tenant := range tenants {
		var bytes int64
		found, err := find(ctx, s.db, []any{&bytes}, "SELECT bytes FROM usage WHERE tenant = $1", lookup(tenant))
		if err != nil {
			return nil, about(err, "reading how much is stored")
		}
		if found {
			usage[tenant] = bytes
		}
	}
	return usage, nil
}

// grow adds to how many bytes tenants have, as the last that a transaction does: their rows are everybody's.
func (tx *transaction) grow(ctx context.Context, by map[string]int64) error {
	for _, tenant := range slices.Sorted(maps.Keys(by)) {
		if by[tenant] == 0 {
			continue
		}
		if err := tx.exec(
			ctx, "INSERT INTO usage (tenant, bytes) VALUES ($1, $2) "+
				"ON CONFLICT (tenant) DO UPDATE SET bytes = usage.bytes + excluded.bytes", tenant, by[tenant],
		); err != nil {
			return err
		}
	}
	return nil
}
