package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
)

// The states of a publication.
const (
	stateWaiting = "waiting" // for the end of its run
	statePending = "pending" // to be built
	stateBuilt   = "built"   // it is served, and does not change any more
	stateFailed  = "failed"  // it cannot be built
	stateExpired = "expired" // its retention is over: only its digest is left, so that no other can have its path
)

const (
	// maxPublicationError is how many bytes of why a publication could not be built are kept.
	maxPublicationError = 1 << 10
	// idleBatch is how many runs PublishIdle looks at in one transaction.
	idleBatch = 256
)

// Publication is a manifest that is to be built: see [Store.DuePublications].
type Publication struct {
	Pub        string // the public id of the run
	Tenant     string
	Run        string // empty: the answer is in none
	AnswerID   string // empty: the run's final one
	Revision   int    // from 1: of what was published and has changed since
	Path       string // where it will be served: see [manifest.Path]
	Supersedes string // the path of the revision before it; empty: none
	Salt       []byte // 32 bytes: of the HMACs of private inputs. [Store.Salt] tells it later
	Attempts   int    // how often it was tried, this time included
	Error      string // why it could not be built the last time, if that was said

	claim   int64 // until when it is ours
	changes int64 // of what it is made of, until it was claimed
}

// publicationKey is what publications are revisions of.
type publicationKey struct{ pub, tenant, run, answer string }

// publicationKeys returns the keys of what rows are published as: of each answer, and of each run once. A call in no
// run has no run's.
func publicationKeys(rows []*row) (answers, finals []publicationKey) {
	for _, r := range rows {
		if r.pub == "" {
			continue
		}
		k := publicationKey{r.pub, lookup(r.Tenant), lookup(r.Run), lookup(r.AnswerID)}
		answers = append(answers, k)
		k.answer = ""
		if r.Run != "" && !slices.Contains(finals, k) {
			finals = append(finals, k)
		}
	}
	// as everybody locks them
	slices.SortFunc(finals, func(a, b publicationKey) int { return strings.Compare(a.pub, b.pub) })
	return answers, finals
}

// isAlone reports whether the run of a call is made for it: nobody named it, so no other call will be in it.
func isAlone(c *Call) bool {
	return strings.TrimPrefix(c.Run, "run_") == strings.TrimPrefix(c.AnswerID, "ans_")
}

// putPublications notes what is to be published of fresh rows. What is noted already stays as it is.
func (tx *transaction) putPublications(ctx context.Context, rows []*row) error {
	answers, finals := publicationKeys(rows)
	if len(answers) == 0 {
		return nil
	}
	now := micros(time.Now())
	values := make([][]any, 0, len(answers))
	for i := range answers {
		values = append(values, answers[i].fresh(statePending, now))
	}
	if err := tx.exec(
		ctx,
		tx.insertPublications(" ON CONFLICT (pub, answer_id, revision) DO NOTHING"),
		values,
	); err != nil {
		return err
	}
	alone := map[string]bool{}
	for _, r := range rows {
		alone[r.pub] = alone[r.pub] || r.pub != "" && isAlone(r.Call)
	}
	for i := range finals {
		state := stateWaiting
		ended, err := tx.isFinished(ctx, &finals[i])
		if err != nil {
			return err
		}
		if ended || alone[finals[i].pub] {
			state = statePending
		}
		if err := tx.publish(ctx, &finals[i], state, now); err != nil {
			return err
		}
	}
	return nil
}

// isFinished reports whether it was said that a run has ended: that may come before its last answer is indexed.
func (tx *transaction) isFinished(ctx context.Context, k *publicationKey) (bool, error) {
	finished := int64(0)
	err := each(
		ctx, tx,
		func(rows *sql.Rows) error { return rows.Scan(&finished) },
		"SELECT finished FROM runs WHERE tenant = $1 AND id = $2", k.tenant, k.run,
	)
	return finished > 0, err
}

const publicationColumns = "pub, answer_id, revision, tenant, run, path, supersedes, state, due, attempts, changes, salt, digest, signed, error"

func (tx *transaction) insertPublications(after string) *tuples {
	return &tuples{
		before: tx.insertInto(
			"publications", publicationColumns,
		),
		row:   "($, $, $, $, $, $, $, $, $, $, $, $, $, $, $)",
		after: after,
	}
}

// fresh returns the row of a first revision.
func (k *publicationKey) fresh(state string, now int64) []any {
	return k.row(&published{revision: 1, state: state, due: now}, newSalt())
}

// row returns the row of a revision, of which at least the number, the state and when it is due are known.
func (k *publicationKey) row(p *published, salt string) []any {
	path := cmp.Or(p.path, manifest.Path(k.pub, k.answer, int(p.revision)))
	return []any{
		k.pub, k.answer, p.revision, k.tenant, k.run, path, p.supersedes, p.state, p.due, 0, 0, salt, "", "", "",
	}
}

// publish notes that what k names is to be published, or has changed: state is waiting or pending. What was built has
// another revision after it; what is pending stays so.
func (tx *transaction) publish(ctx context.Context, k *publicationKey, state string, now int64) error {
	var revision int64
	var there, path, salt string
	err := each(
		ctx,
		tx,
		func(rows *sql.Rows) error { return rows.Scan(&revision, &there, &path, &salt) },
		"SELECT revision, state, path, salt FROM publications WHERE pub = $1 AND answer_id = $2 ORDER BY revision DESC LIMIT 1"+tx.forUpdate(),
		k.pub,
		k.answer,
	)
	if err != nil {
		return err
	}
	switch there {
	case "":
		_, err = tx.ExecContext(ctx, tx.insertPublications("").text(1, tx.postgres), k.fresh(state, now)...)
	case stateBuilt, stateExpired:
		_, err = tx.ExecContext(
			ctx, tx.insertPublications("").text(1, tx.postgres),
			k.row(
				&published{revision: revision + 1, supersedes: path, state: state, due: now},
				cmp.Or(salt, newSalt()),
			)...)
	case statePending: // it is not made to wait again; due may be somebody's claim
		_, err = tx.ExecContext(
			ctx, "UPDATE publications SET changes = changes + 1 WHERE pub = $1 AND answer_id = $2 AND revision = $3",
			k.pub, k.answer, revision,
		)
	default:
		_, err = tx.ExecContext(
			ctx,
			"UPDATE publications SET changes = changes + 1, state = $1, due = $2, attempts = 0, error = '' "+
				"WHERE pub = $3 AND answer_id = $4 AND revision = $5",
			state, now, k.pub, k.answer, revision,
		)
	}
	return err
}

// publishAgain notes that an answer that is published has changed, if it is, and with it its run.
func (tx *transaction) publishAgain(ctx context.Context, c *Call) error {
	pub, err := tx.pubOf(ctx, "tenant = $1 AND answer_id = $2", lookup(c.Tenant), lookup(c.AnswerID))
	if err != nil || pub == "" {
		return err
	}
	k, now := publicationKey{pub, lookup(c.Tenant), lookup(c.Run), lookup(c.AnswerID)}, micros(time.Now())
	if err := tx.publish(ctx, &k, statePending, now); err != nil || k.run == "" {
		return err
	}
	k.answer = ""
	state := ""
	err = each(ctx, tx, func(rows *sql.Rows) error { return rows.Scan(&state) },
		"SELECT state FROM publications WHERE pub = $1 AND answer_id = '' ORDER BY revision DESC LIMIT 1", pub)
	if err != nil {
		return err
	}
	if state != stateWaiting { // the run had ended
		state = statePending
	}
	return tx.publish(ctx, &k, state, now)
}

// pubOf returns the public id of what is published where that holds; empty: nothing is.
func (tx *transaction) pubOf(ctx context.Context, where string, args ...any) (string, error) {
	pub := ""
	err := each(
		ctx, tx,
		func(rows *sql.Rows) error { return rows.Scan(&pub) },
		"SELECT pub FROM publications WHERE "+where+" LIMIT 1",
		args...)
	return pub, err
}

// PublishIdle makes the final manifests of those runs due that nobody said the end of, and that had no call for so
// long, and returns how many these are. A run of which more is published later has another revision of its final
// manifest. One that somebody is busy with now is left to the next time.
func (s *Store) PublishIdle(ctx context.Context, idle time.Duration) (int, error) {
	now, sum := time.Now(), 0
	for {
		var n int64
		err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
			result, err := tx.ExecContext(
				ctx,
				"UPDATE publications SET state = '"+statePending+"', due = $1 WHERE path IN (SELECT path FROM publications"+
					" WHERE state = '"+stateWaiting+"' AND due <= $2"+
					" AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = publications.tenant AND calls.run = publications.run AND calls.started > $2)"+
					" ORDER BY due, pub LIMIT $3"+tx.skipLocked()+")",
				micros(now),
				micros(now.Add(-idle)),
				idleBatch,
			)
			if err == nil {
				n, err = result.RowsAffected()
			}
			return err
		})
		if err != nil {
			return sum, fmt.Errorf("publishing idle runs: %w", err)
		}
		if sum += int(n); n < idleBatch {
			return sum, nil
		}
	}
}

// DuePublications returns up to limit manifests that are to be built now, those that wait longest first, and keeps them
// from other callers for as long as lease says, on all nodes. Each is then ended by [Store.KeepPublication],
// [Store.PostponePublication] or [Store.FailPublication]; one of which nobody is heard comes again after its lease, and
// one of whose run something is deleted meanwhile comes again at once.
func (s *Store) DuePublications(ctx context.Context, limit int, lease time.Duration) ([]Publication, error) {
	var list []Publication
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		now := time.Now()
		list = nil
		err := each(ctx, tx, func(rows *sql.Rows) error {
			p := Publication{claim: micros(now.Add(lease))}
			var salt string
			err := rows.Scan(
				&p.Pub, &p.AnswerID, &p.Revision, &p.Tenant, &p.Run, &p.Path, &p.Supersedes, &p.Attempts, &p.changes,
				&salt, &p.Error,
			)
			if err != nil {
				return err
			}
			p.Attempts++
			p.Salt, err = base64.RawURLEncoding.DecodeString(salt)
			list = append(list, p)
			return err
		}, "SELECT pub, answer_id, revision, tenant, run, path, supersedes, attempts, changes, salt, error FROM publications WHERE state = '"+
			statePending+"' AND due <= $1 ORDER BY due, answer_id DESC, pub LIMIT $2"+tx.skipLocked(), micros(now), limitOf(limit))
		if err != nil {
			return err
		}
		for i := range list {
			p := &list[i]
			if _, err := tx.ExecContext(
				ctx,
				"UPDATE publications SET due = $1, attempts = $2 WHERE pub = $3 AND answer_id = $4 AND revision = $5",
				p.claim, p.Attempts, p.Pub, p.AnswerID, p.Revision,
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for due manifests: %w", err)
	}
	return list, nil
}

// skipLocked ends a query for rows that others may be busy with, who then have them.
func (tx *transaction) skipLocked() string {
	if tx.postgres {
		return " FOR UPDATE SKIP LOCKED"
	}
	return ""
}

// PostponePublication says that p cannot be built now, and why, and makes it due again after that time.
func (s *Store) PostponePublication(ctx context.Context, p *Publication, why string, after time.Duration) error {
	return s.endClaim(ctx, p, statePending, why, time.Now().Add(after))
}

// FailPublication says that p cannot be built, and why. Its path is not found from then on, unless what it is of
// changes.
func (s *Store) FailPublication(ctx context.Context, p *Publication, why string) error {
	return s.endClaim(ctx, p, stateFailed, why, time.Now())
}

// endClaim changes a publication if it is still p's. What has changed meanwhile is tried at once.
func (s *Store) endClaim(ctx context.Context, p *Publication, state, why string, due time.Time) error {
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(
			ctx,
			"UPDATE publications SET state = CASE WHEN changes = $1 THEN $2 ELSE '"+statePending+"' END, "+
				"due = CASE WHEN changes = $1 THEN CAST($3 AS BIGINT) ELSE 0 END, error = $4 "+
				"WHERE pub = $5 AND answer_id = $6 AND revision = $7 AND state = '"+statePending+"' AND due = $8",
			p.changes, state, micros(due),
			cutText(plain(why), maxPublicationError),
			p.Pub, p.AnswerID, p.Revision, p.claim,
		)
		return err
	})
	if err != nil {
		return fmt.Errorf("setting manifest %s aside: %w", p.Path, err)
	}
	return nil
}

func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Salt returns the salt of the private inputs in the manifest of an answer, or in the final one of a run, for whoever
// audits them. That of an answer that was deleted is gone: [ErrNotFound].
func (s *Store) Salt(ctx context.Context, tenant, answerOrRun string) ([]byte, error) {
	text := ""
	err := each(
		ctx,
		s.db,
		func(rows *sql.Rows) error { return rows.Scan(&text) },
		"SELECT salt FROM publications WHERE tenant = $1 AND (answer_id = $2 OR answer_id = '' AND run = $2) AND salt <> '' ORDER BY revision DESC LIMIT 1",
		lookup(tenant),
		lookup(answerOrRun),
	)
	if err == nil && text == "" {
		err = ErrNotFound
	}
	salt, bad := base64.RawURLEncoding.DecodeString(text)
	if err := errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("reading the salt of %.60q: %w", answerOrRun, err)
	}
	return salt, nil
}
