package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ibidhq/ibid/manifest"
)

// EventManifest is the kind of event that tells that a manifest is served from now on. Its data is an object with
// answer_id (null: it is the run's final one), path (where it is served, below the publisher's address), sha256 (of its
// body, hexadecimal), revision, and supersedes (the path of the revision before it; null: none).
const EventManifest = "manifest"

// manifestEvent is the data of an [EventManifest].
type manifestEvent struct {
	AnswerID   *string `json:"answer_id"`
	Path       string  `json:"path"`
	SHA256     string  `json:"sha256"`
	Revision   int64   `json:"revision"`
	Supersedes *string `json:"supersedes"`
}

// maxPath is how many bytes the path of a manifest may have.
const maxPath = 2 << 10

// published is a row of publications, as far as keeping it needs.
type published struct {
	publicationKey
	revision   int64
	path       string
	supersedes string
	state      string
	due        int64
	changes    int64
	digest     string
}

// KeepPublication stores a manifest that was built, with its pins, and tells of it: from then on it is served, and
// never changes. The pins take the places of those of the revision before it and of those that were in no manifest, and
// keep the status of an equal one. If what it is of has changed since p was claimed, its next revision is due at once.
//
// Keeping the same again changes nothing but the pins. [manifest.ErrMutated] is that another body is there: that one
// stays. Nothing is kept of an answer that was deleted meanwhile, or where the manifest has expired: [ErrNotFound]; nor
// if p is not the caller's any more, because its lease ended and somebody else has it, or something of its run was
// deleted: [ErrConflict].
func (s *Store) KeepPublication(ctx context.Context, p *Publication, signed *manifest.Signed, pins []Pin) error {
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		row, err := tx.published(ctx, p.Path)
		if err != nil {
			return err
		}
		if row.digest == "" && (row.state != statePending || row.due != p.claim) {
			return refuse(ErrConflict, "what it is of was deleted in part, or somebody else builds it")
		}
		if err := tx.keep(ctx, row, signed); err != nil {
			return err
		}
		if row.changes != p.changes {
			if err := tx.publish(ctx, &row.publicationKey, statePending, micros(time.Now())); err != nil {
				return err
			}
			// once
			if _, err := tx.ExecContext(
				ctx, "UPDATE publications SET changes = $1 WHERE path = $2", p.changes, row.path,
			); err != nil {
				return err
			}
		}
		return tx.putPins(ctx, row.tenant, row, pins)
	})
	if err != nil {
		return fmt.Errorf("keeping manifest %s: %w", p.Path, err)
	}
	return nil
}

// KeepManifest stores a manifest under a path, as [manifest.Manifests] wants it: one that is to be published by the
// store itself, or any other of an agent that has paths of its own. See [Store.KeepPublication] for the first.
func (s *Store) KeepManifest(ctx context.Context, path string, signed *manifest.Signed) error {
	if path != plain(path) || len(path) > maxPath {
		return fmt.Errorf("keeping a manifest: its path is not text of up to %d bytes", maxPath)
	}
	err := s.update(ctx, func(ctx context.Context, tx *transaction) error {
		row, err := tx.published(ctx, path)
		if errors.Is(err, ErrNotFound) {
			row = &published{
				publicationKey: publicationKey{
					tenant: DefaultTenant,
					answer: lookup(path),
				},
				revision: 1,
				path:     path,
				state:    statePending,
				due:      micros(time.Now()),
			}
			_, err = tx.ExecContext(ctx, tx.insertPublications("").text(1, tx.postgres), row.row(row, "")...)
		}
		if err != nil {
			return err
		}
		return tx.keep(ctx, row, signed)
	})
	if err != nil {
		return fmt.Errorf("keeping manifest %s: %w", path, err)
	}
	return nil
}

// keep stores what is served under the path of row.
func (tx *transaction) keep(ctx context.Context, row *published, signed *manifest.Signed) error {
	sum := signed.Digest()
	digest := hex.EncodeToString(sum[:])
	switch {
	case row.digest == "":
	case row.digest != digest:
		return manifest.ErrMutated
	case row.state == stateExpired:
		return ErrNotFound
	default:
		return nil
	}
	bundle, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	now := time.Now()
	if _, err := tx.ExecContext(
		ctx,
		"UPDATE publications SET state = '"+stateBuilt+"', due = $1, digest = $2, signed = $3, error = '' WHERE pub = $4 AND answer_id = $5 AND revision = $6",
		micros(now),
		digest,
		tx.text(bundle),
		row.pub,
		row.answer,
		row.revision,
	); err != nil {
		return err
	}
	data, err := json.Marshal(
		&manifestEvent{nullable(row.answer), row.path, digest, row.revision, nullable(row.supersedes)},
	)
	if err != nil {
		return err
	}
	return tx.tellRuns(ctx, []Event{{Tenant: row.tenant, Run: row.run, Kind: EventManifest, At: now, Data: data}})
}

// published returns the row of a path, which is kept from changing, and so is its run, which others lock first.
func (tx *transaction) published(ctx context.Context, path string) (*published, error) {
	row, err := tx.publishedRow(ctx, path, "")
	if err == nil && row != nil && tx.postgres {
		if _, err := tx.hasRun(ctx, tenantID{row.tenant, row.run}); err != nil {
			return nil, err
		}
		row, err = tx.publishedRow(ctx, path, tx.forUpdate())
	}
	if err == nil && row == nil {
		err = ErrNotFound
	}
	return row, err
}

func (tx *transaction) publishedRow(ctx context.Context, path, lock string) (*published, error) {
	var row *published
	err := each(ctx, tx, func(rows *sql.Rows) error {
		p := &published{}
		row = p
		return rows.Scan(
			&p.pub, &p.answer, &p.tenant, &p.run, &p.revision, &p.path, &p.supersedes, &p.state, &p.due, &p.changes,
			&p.digest,
		)
	}, "SELECT pub, answer_id, tenant, run, revision, path, supersedes, state, due, changes, digest FROM publications WHERE path = $1"+lock, path)
	return row, err
}

// forUpdate ends a query for rows that are to be changed.
func (tx *transaction) forUpdate() string {
	if tx.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// Manifest returns what is served under a path, as [manifest.Manifests] wants it. [manifest.ErrPending] is that it is
// still to be built, [manifest.ErrNotFound] that there is none, or that it cannot be built.
func (s *Store) Manifest(ctx context.Context, path string) (*manifest.Signed, error) {
	state := ""
	var bundle []byte
	err := each(
		ctx, s.db,
		func(rows *sql.Rows) error { return rows.Scan(&state, &bundle) },
		"SELECT state, signed FROM publications WHERE path = $1", plain(path),
	)
	signed := &manifest.Signed{}
	switch {
	case err != nil:
	case state == stateBuilt:
		if err = json.Unmarshal(bundle, signed); err != nil {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
	case state == statePending, state == stateWaiting:
		err = manifest.ErrPending
	default:
		err = manifest.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading manifest %.200s: %w", path, err)
	}
	return signed, nil
}

// LastManifest returns where the last revision of a manifest is, of those that are served or still to be built, and the
// SHA-256 of its body, hexadecimal; empty: it is still to be built. pub is the public id of its run, and answerID is
// empty for the run's final one. [manifest.ErrNotFound] is that there is none.
func (s *Store) LastManifest(ctx context.Context, pub, answerID string) (path, digest string, err error) {
	err = each(
		ctx, s.db,
		func(rows *sql.Rows) error { return rows.Scan(&path, &digest) },
		"SELECT path, digest FROM publications WHERE pub = $1 AND answer_id = $2 AND state IN ('"+
			stateBuilt+"', '"+statePending+"', '"+stateWaiting+"') ORDER BY revision DESC LIMIT 1",
		pub, lookup(answerID),
	)
	if err == nil && path == "" {
		err = manifest.ErrNotFound
	}
	if err != nil {
		return "", "", fmt.Errorf("looking for the last manifest of %.200s: %w", cmp.Or(answerID, pub), err)
	}
	return path, digest, nil
}

// tellRuns writes down events of runs, and gives them their numbers. A run that is not there (any more) is told
// nothing.
func (tx *transaction) tellRuns(ctx context.Context, events []Event) error {
	by := map[tenantID]*thread{}
	for i := range events {
		if id := (tenantID{events[i].Tenant, events[i].Run}); id.id != "" {
			by[id] = nil
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(by), tenantID.compare) {
		there, err := tx.hasRun(ctx, id)
		if err != nil {
			return err
		}
		if by[id] = (&thread{tenantID: id}); !there {
			delete(by, id)
		}
	}
	if len(by) == 0 {
		return nil
	}
	list, err := tx.lock(ctx, runTable(), by)
	if err != nil {
		return err
	}
	told := make([]Event, 0, len(events))
	for _, e := range events {
		if t := by[tenantID{e.Tenant, e.Run}]; t != nil {
			t.seq++
			e.Seq = t.seq
			told = append(told, e)
		}
	}
	if err := tx.putThreads(ctx, runTable(), list); err != nil {
		return err
	}
	return tx.addEvents(ctx, told)
}

// hasRun reports whether there is a run, and keeps it from changing.
func (tx *transaction) hasRun(ctx context.Context, id tenantID) (bool, error) {
	there := false
	err := each(
		ctx, tx, func(*sql.Rows) error { there = true; return nil },
		"SELECT 1 FROM runs WHERE tenant = $1 AND id = $2"+tx.forUpdate(), id.tenant, id.id,
	)
	return there, err
}
