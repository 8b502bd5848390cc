package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/text"
)

// A source or an answer may end the process that reads it: by a bug, or by more memory than there is. So a row of
// pending work names the process that began it. If its lease ends without a report and another process claims it, the
// first one is taken for dead, and the work is suspect: from then on it is done alone, so that other work in progress
// at the same time is cleared when it next succeeds. After MaxDeaths processes in a row it is set aside.

// MaxDeaths is how many processes in a row may end during the same work before it is set aside.
const MaxDeaths = 3

// lease is the part of a row of pending work that says who does it.
type lease struct {
	claim   int64 // the end of our lease
	process string
	begun   int64
	due     int64
	deaths  int
}

// died reports whether the process that began the work ended during it. Work that was rescheduled meanwhile, whose due
// time is not the end of its lease, is no evidence.
func (l *lease) died(ours string) bool {
	return l.process != "" && l.process != ours && l.begun == l.due
}

// pending is a kind of pending work, T, that is recorded as begun.
type pending[T any] struct {
	table   string
	columns string // of the query
	where   string // selects what is pending; empty, or ends with AND
	order   string
	scan    func(job *T) []any // where the columns are read to
	ready   func(job *T) error // completes a job that was read; may be nil
	lease   func(job *T) *lease
	key     func(job *T) (where string, args []any) // its row; the first argument is $4
	claim   string                                  // what else a claim sets
	aside   string                                  // what else setting aside sets
	alert   func(job *T) *Alert                     // tells that it was set aside; its subject says what it is
}

// suspect selects suspect work that is not set aside.
var suspect = "deaths > 0 AND deaths < " + strconv.Itoa(MaxDeaths)

// claimPending returns up to limit items of pending work that are due, and leases each for the given time. Suspect work
// is returned alone, when this process has no other in progress. Meanwhile it gets nothing else.
func claimPending[T any](
	ctx context.Context, s *Store, limit int, hold time.Duration, p *pending[T],
) (list []T, err error) {
	s.does.Store(p.table, true)
	var aside []*Alert
	now := micros(s.now())
	until := micros(s.now().Add(hold))
	err = s.update(ctx, func(tx *transaction) error {
		list, aside = nil, nil
		due, err := p.due(ctx, tx, now, "", limit)
		if err != nil || len(due) == 0 {
			return err
		}
		for i := range due {
			alert, err := p.count(ctx, tx, &due[i], s.process)
			if err != nil {
				return err
			}
			if alert != nil {
				aside = append(aside, alert)
			}
		}
		waits, busy, err := s.suspects(ctx, tx, now)
		if err != nil {
			return err
		}
		switch {
		case waits && busy:
			return nil
		case waits:
			due, err = p.due(ctx, tx, now, " AND "+suspect, 1)
		case len(aside) > 0:
			due, err = p.due(ctx, tx, now, "", limit)
		}
		if err != nil {
			return err
		}
		for i := range due {
			where, args := p.key(&due[i])
			p.lease(&due[i]).claim = until
			if err := tx.exec(
				ctx, "UPDATE "+p.table+" SET due = $1, begun = $2, process = $3"+p.claim+" WHERE "+where,
				append([]any{until, until, s.process}, args...)...,
			); err != nil {
				return err
			}
		}
		list = due
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, a := range aside {
		address, _, _ := strings.Cut(a.Subject.Source, "?") // a query may be secret
		s.logger.LogAttrs(
			ctx, slog.LevelError, "work was set aside: the process ended each time it was done",
			slog.String("work", p.table), slog.Int("times", MaxDeaths), slog.String("tenant", a.Tenant),
			slog.String("answer_id", a.Subject.AnswerID), slog.String("run", a.Subject.Run),
			slog.String("source", text.Head(address, 200)),
		)
	}
	return list, nil
}

// due returns what is due and not set aside. extra is a further condition.
func (p *pending[T]) due(ctx context.Context, tx *transaction, now int64, extra string, limit int) ([]T, error) {
	list, err := collect(ctx, tx, func(rows *sql.Rows, job *T) error {
		l := p.lease(job)
		if err := rows.Scan(append(p.scan(job), &l.process, &l.begun, &l.due, &l.deaths)...); err != nil {
			return err
		}
		if p.ready != nil {
			return p.ready(job)
		}
		return nil
	}, "SELECT "+p.columns+", process, begun, due, deaths FROM "+p.table+" WHERE "+p.where+"due <= $1 AND deaths < "+
		strconv.Itoa(MaxDeaths)+extra+" ORDER BY "+p.order+" LIMIT $2"+tx.skipLocked(), now, limitOf(limit))
	return list, err
}

// count records that the process which began a job ended during it, if so. It returns an alert if the job was set aside
// for that.
func (p *pending[T]) count(ctx context.Context, tx *transaction, job *T, process string) (*Alert, error) {
	l := p.lease(job)
	if !l.died(process) {
		return nil, nil //nolint:nilnil // as documented
	}
	l.deaths++
	where, args := p.key(job)
	set, aside := "process = '', begun = $1, deaths = $2, due = $3", l.deaths >= MaxDeaths
	if aside {
		set += p.aside
	}
	err := tx.exec(ctx, "UPDATE "+p.table+" SET "+set+" WHERE "+where, append([]any{0, l.deaths, l.due}, args...)...)
	if err != nil || !aside {
		return nil, err
	}
	alert := p.alert(job)
	alert.Kind, alert.Subject.Since = AlertSetAside, tx.now().UTC().Format(time.RFC3339)
	alert.Summary += fmt.Sprintf(" was set aside: the process ended each of the %d times it was tried.", MaxDeaths)
	_, err = tx.addAlerts(ctx, []Alert{*alert})
	return alert, err
}

// suspects reports whether suspect work of the kinds that this process does is due or in progress here, and whether
// anything is in progress here.
func (s *Store) suspects(ctx context.Context, tx *transaction, now int64) (waits, busy bool, err error) {
	s.does.Range(func(key, _ any) bool {
		table, _ := key.(string)
		const begun = " WHERE process <> '' AND process = $1 AND begun > $2"
		var here, doubted, due bool
		if here, err = exists(ctx, tx, "SELECT 1 FROM "+table+begun+" LIMIT 1", s.process, now); err != nil {
			return false
		}
		if here {
			doubted, err = exists(ctx, tx, "SELECT 1 FROM "+table+begun+" AND deaths > 0 LIMIT 1", s.process, now)
		}
		if err == nil {
			due, err = exists(ctx, tx, "SELECT 1 FROM "+table+" WHERE "+suspect+" AND due <= $1 LIMIT 1", now)
		}
		waits, busy = waits || doubted || due, busy || here
		return err == nil
	})
	return waits, busy, err
}

// released ends the SET of a statement that reports the end of work, however it ended: its process has survived it.
const released = ", process = '', begun = 0, deaths = 0"
