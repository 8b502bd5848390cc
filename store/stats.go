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

// Limits of what is counted for an overview, so that it takes no longer in a large store.
const (
	// MaxCounted is how far [Store.Counts] counts.
	MaxCounted = 10_000
	// maxChecked is how many answers, most recently stored first, [Store.CheckedDays] covers.
	maxChecked = 5_000
	// maxBroken is how many citations of each status [Store.BrokenSources] covers.
	maxBroken = 5_000
)

// Counts counts what a tenant has, of runs those that [Query.Stepped] selects. If there are more than [MaxCounted], a
// count is one more.
type Counts struct {
	Answers, Conversations, Runs, Incidents int
}

// Counts counts what a tenant has.
func (s *Store) Counts(ctx context.Context, tenant string) (*Counts, error) {
	upTo := func(from string) string {
		return "(SELECT count(*) FROM (SELECT 1 FROM " + from + " LIMIT $2) AS found)"
	}
	nonEmpty := func(t *groupTable) string { return upTo(t.name + " WHERE tenant = $1 AND " + t.nonEmpty) }
	c := &Counts{}
	err := each(
		ctx, s.db,
		into(&c.Answers, &c.Conversations, &c.Runs, &c.Incidents),
		"SELECT "+upTo("calls WHERE tenant = $1")+", "+nonEmpty(conversationTable())+", "+
			upTo("runs WHERE tenant = $1 AND "+stepped)+", "+
			upTo("incidents WHERE tenant = $1"),
		lookup(tenant), MaxCounted+1,
	)
	return c, wrap(err, "counting what is stored")
}

// CheckedDay counts the checked citations of the answers that began on one day. Each counts once, by the worst result
// among its sources; unchecked ones do not count.
type CheckedDay struct {
	Day                          time.Time // its midnight, UTC
	Passed, Unverifiable, Failed int
}

// day is the number of microseconds in a day.
const day = int64(24 * time.Hour / time.Microsecond)

// CheckedDays returns the results of checking the citations of the last 5,000 answers, by the day of the answer, oldest
// first. Days without a checked citation are left out.
func (s *Store) CheckedDays(ctx context.Context, tenant string) ([]CheckedDay, error) {
	// CROSS JOIN makes SQLite start with the answers and look up their pins. Otherwise it reads all of the tenant's
	// pins.
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
	return list, wrap(err, "counting checks")
}

// BrokenSource is a source that does not, or no longer, say what was cited from it, or that cannot be read.
type BrokenSource struct {
	Pin // the last citation of it with that status

	Answers int // how many cite it
}

// brokenStatuses returns the statuses of broken sources. It includes neither those that must not or cannot be checked
// nor those that pass.
func brokenStatuses() []verify.Status {
	return []verify.Status{
		verify.Gone, verify.Unreachable, verify.AccessDenied, verify.ExcerptMissing, verify.ExcerptAltered,
		verify.ExcerptMismatch,
	}
}

// BrokenSources returns up to limit broken sources, most recently cited first. A source that is broken in several ways
// is listed once for each. At most 5,000 citations are considered for each status.
func (s *Store) BrokenSources(ctx context.Context, tenant string, limit int) (list []BrokenSource, err error) {
	defer wrapResult(&err, "listing broken sources")
	c := conditions{args: []any{lookup(tenant), maxBroken}}
	pinned := "pins"
	if !s.postgres {
		pinned += " INDEXED BY pins_by_status" // otherwise it reads all checked pins, by pins_by_rank
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

// Usage returns the size in bytes of the stored answers of tenants, as encoded. Tenants without answers are left out.
func (s *Store) Usage(ctx context.Context, tenants []string) (map[string]int64, error) {
	usage := make(map[string]int64, len(tenants))
	for _, tenant := range tenants {
		var bytes int64
		found, err := find(ctx, s.db, []any{&bytes}, "SELECT bytes FROM usage WHERE tenant = $1", lookup(tenant))
		if err != nil {
			return nil, wrap(err, "reading usage")
		}
		if found {
			usage[tenant] = bytes
		}
	}
	return usage, nil
}

// addUsage updates tenants' usage. It is the last step of a transaction, because these rows are contended.
func (tx *transaction) addUsage(ctx context.Context, by map[string]int64) error {
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
