package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/manifest"
)

// The states of a publication.
const (
	stateWaiting = "waiting" // for its run to end
	statePending = "pending" // to be built
	stateBuilt   = "built"   // served, and never changed again
	stateFailed  = "failed"  // cannot be built
	stateExpired = "expired" // its retention is over; only its digest is left, so that nothing else can have its path
)

const (
	// maxPublicationError is how many bytes of the error of a failed build are kept.
	maxPublicationError = 1 << 10
	// idleBatch is how many runs PublishIdle processes in one transaction.
	idleBatch = 256
)

// Publication is a manifest to be built: see [Store.DuePublications].
type Publication struct {
	Pub        string // the public id of the run
	Tenant     string
	Run        string // empty if the answer is in none
	AnswerID   string // empty for the run's final one
	Revision   int    // from 1; a change after publication makes the next
	Path       string // where it will be served: see [manifest.Path]
	Supersedes string // the path of the revision before it; empty if there is none
	Salt       []byte // 32 bytes, for the HMACs of private inputs; see [Store.Salt]
	Attempts   int    // including this one
	Error      string // why it could not be built the last time, if known

	salt    string
	changes int64 // of its content, as of the claim
	lease
}

// publicationKey identifies the manifest that publications are revisions of.
type publicationKey struct{ pub, tenant, run, answer string }

// putPublications records what is to be published of new rows: each answer, and once for each run its final manifest,
// which a call outside of runs does not have. Existing publications stay as they are.
func (tx *transaction) putPublications(ctx context.Context, rows []*row) error {
	now := micros(tx.now())
	var answers [][]any
	finals := map[publicationKey]bool{} // whether the run is implicit: made for one call, it gets no other
	for _, r := range rows {
		if r.pub == "" {
			continue
		}
		k := publicationKey{r.pub, lookup(r.Tenant), lookup(r.Run), lookup(r.AnswerID)}
		answers = append(answers, k.firstRow(statePending, now))
		if k.answer = ""; r.Run != "" {
			alone := strings.TrimPrefix(r.Run, "run_") == strings.TrimPrefix(r.AnswerID, "ans_")
			finals[k] = finals[k] || alone
		}
	}
	if err := tx.insertPublications(ctx, " ON CONFLICT (pub, answer_id, revision) DO NOTHING", answers...); err != nil {
		return err
	}
	// in the order in which all transactions lock them
	byPub := func(a, b publicationKey) int { return strings.Compare(a.pub, b.pub) }
	for _, k := range slices.SortedFunc(maps.Keys(finals), byPub) {
		var finished int64 // a run may be reported finished before its last answer is stored
		const finish = "SELECT finished FROM runs WHERE tenant = $1 AND id = $2"
		if err := each(ctx, tx, into(&finished), finish, k.tenant, k.run); err != nil {
			return err
		}
		state := stateWaiting
		if finished > 0 || finals[k] {
			state = statePending
		}
		if err := tx.publish(ctx, &k, state, now); err != nil {
			return err
		}
	}
	return nil
}

// insertPublications stores rows. after is the conflict action.
func (tx *transaction) insertPublications(ctx context.Context, after string, rows ...[]any) error {
	const columns = "pub, answer_id, revision, tenant, run, path, supersedes, state, due, attempts, changes, salt, " +
		"digest, signed, error"
	return tx.execAll(ctx, tx.insertion("publications", columns, after), rows)
}

// firstRow returns the row of a first revision.
func (k *publicationKey) firstRow(state string, now int64) []any {
	return k.row(&published{revision: 1, state: state, due: now}, newSalt())
}

// row returns the row of a revision, of which at least the number, the state and the due time are set.
func (k *publicationKey) row(p *published, salt string) []any {
	path := cmp.Or(p.path, manifest.Path(k.pub, k.answer, int(p.revision)))
	return []any{
		k.pub, k.answer, p.revision, k.tenant, k.run, path, p.supersedes, p.state, p.due, 0, 0, salt, "", "", "",
	}
}

// publish schedules the publication of what k names, which is new or has changed: state is waiting or pending. If the
// latest revision was built, it adds another; if it is pending, it stays so.
func (tx *transaction) publish(ctx context.Context, k *publicationKey, state string, now int64) error {
	var revision int64
	var current, path, salt string
	err := each(
		ctx, tx, into(&revision, &current, &path, &salt),
		"SELECT revision, state, path, salt FROM publications WHERE pub = $1 AND answer_id = $2 ORDER BY "+
			"revision DESC LIMIT 1"+tx.forUpdate(), k.pub, k.answer,
	)
	if err != nil {
		return err
	}
	switch current {
	case "":
		return tx.insertPublications(ctx, "", k.firstRow(state, now))
	case stateBuilt, stateExpired:
		next := &published{revision: revision + 1, supersedes: path, state: state, due: now}
		return tx.insertPublications(ctx, "", k.row(next, cmp.Or(salt, newSalt())))
	case statePending: // not delayed again; due may be the end of a lease
		return tx.exec(ctx, "UPDATE publications SET changes = changes + 1 WHERE path = $1", path)
	}
	return tx.exec(
		ctx,
		"UPDATE publications SET changes = changes + 1, state = $1, due = $2, attempts = 0, error = ''"+released+
			" WHERE path = $3",
		state, now, path,
	)
}

// publishAgain schedules a new revision of an answer that has changed, and of its run, if they are published.
func (tx *transaction) publishAgain(ctx context.Context, c *Call) error {
	pub, err := tx.pubOf(ctx, "tenant = $1 AND answer_id = $2", lookup(c.Tenant), lookup(c.AnswerID))
	if err != nil || pub == "" {
		return err
	}
	k, now := publicationKey{pub, lookup(c.Tenant), lookup(c.Run), lookup(c.AnswerID)}, micros(tx.now())
	if err := tx.publish(ctx, &k, statePending, now); err != nil || k.run == "" {
		return err
	}
	k.answer = ""
	state := ""
	err = each(ctx, tx, into(&state),
		"SELECT state FROM publications WHERE pub = $1 AND answer_id = '' ORDER BY revision DESC LIMIT 1", pub)
	if err != nil {
		return err
	}
	if state != stateWaiting { // the run had ended
		state = statePending
	}
	return tx.publish(ctx, &k, state, now)
}

// PublishAgain schedules a new revision of the manifest at path, and with that of an answer, also of its run, because
// what is known about its sources has changed. answerID is empty if path is a run's. It does nothing if there is a
// later revision already, built or not, or if the answer was deleted.
func (s *Store) PublishAgain(ctx context.Context, tenant, answerID, path string) error {
	var call *Call
	var err error
	if answerID != "" {
		if call, err = s.Call(ctx, tenant, answerID); errors.Is(err, ErrNotFound) {
			return nil
		}
	}
	if err == nil {
		err = s.update(ctx, func(tx *transaction) error {
			state, k := "", publicationKey{tenant: lookup(tenant)}
			err := each(
				ctx, tx, into(&state, &k.pub, &k.run),
				"SELECT state, pub, run FROM publications p WHERE path = $1 AND tenant = $2 AND NOT EXISTS "+
					"(SELECT 1 FROM publications WHERE pub = p.pub AND answer_id = p.answer_id AND "+
					"revision > p.revision)", plain(path), k.tenant,
			)
			switch {
			case err != nil || state != stateBuilt:
				return err
			case call != nil:
				return tx.publishAgain(ctx, call)
			default:
				return tx.publish(ctx, &k, statePending, micros(s.now()))
			}
		})
	}
	return wrap(err, "publishing "+path+" again")
}

// pubOf returns the public id of a publication that where selects; empty if there is none.
func (tx *transaction) pubOf(ctx context.Context, where string, args ...any) (string, error) {
	pub := ""
	err := each(ctx, tx, into(&pub), "SELECT pub FROM publications WHERE "+where+" LIMIT 1", args...)
	return pub, err
}

// PublishIdle makes due the final manifests of runs that were not reported finished and had no call for the given time,
// and returns how many they are. A run of which more is published later gets another revision of its final manifest.
// Manifests locked by others are left for the next time.
func (s *Store) PublishIdle(ctx context.Context, idle time.Duration) (int, error) {
	now, sum := s.now(), 0
	for {
		n, err := s.change(
			ctx,
			"UPDATE publications SET state = '"+statePending+"', due = $1 WHERE path IN (SELECT path FROM "+
				"publications WHERE state = '"+stateWaiting+"' AND due <= $2 AND NOT EXISTS (SELECT 1 FROM calls "+
				"WHERE calls.tenant = publications.tenant AND calls.run = publications.run AND calls.started > $2) "+
				"ORDER BY due, pub LIMIT $3"+s.skipLocked()+")",
			micros(now), micros(now.Add(-idle)), idleBatch,
		)
		if err != nil {
			return sum, fmt.Errorf("publishing idle runs: %w", err)
		}
		if sum += n; n < idleBatch {
			return sum, nil
		}
	}
}

// DuePublications returns up to limit manifests that are due to be built, longest overdue first, and leases each: for
// that long, no other caller on any node gets it. Each is ended by [Store.KeepPublication], [Store.PostponePublication]
// or [Store.FailPublication]. Otherwise it is due again after its lease, or at once if part of its run is deleted
// meanwhile. One during which [MaxDeaths] processes ended has failed.
func (s *Store) DuePublications(ctx context.Context, limit int, lease time.Duration) ([]Publication, error) {
	list, err := claimPending(ctx, s, limit, lease, &pendingPublications)
	return list, wrap(err, "looking for due manifests")
}

var pendingPublications = pending[Publication]{
	table:   "publications",
	columns: "pub, answer_id, revision, tenant, run, path, supersedes, attempts + 1, changes, salt, error",
	where:   "state = '" + statePending + "' AND ",
	order:   "due, answer_id DESC, pub",
	scan: func(p *Publication) []any {
		return []any{
			&p.Pub, &p.AnswerID, &p.Revision, &p.Tenant, &p.Run, &p.Path, &p.Supersedes, &p.Attempts, &p.changes,
			&p.salt, &p.Error,
		}
	},
	ready: func(p *Publication) (err error) {
		p.Salt, err = base64.RawURLEncoding.DecodeString(p.salt)
		return err
	},
	lease: func(p *Publication) *lease { return &p.lease },
	key:   func(p *Publication) (string, []any) { return "path = $4", []any{p.Path} },
	claim: ", attempts = attempts + 1",
	aside: ", state = '" + stateFailed + "', error = 'the process ended each time it was built'",
	alert: func(p *Publication) *Alert {
		return &Alert{
			Tenant: p.Tenant, Subject: AlertSubject{AnswerID: p.AnswerID, Run: p.Run},
			Summary: "The manifest " + p.Path,
		}
	},
}

// PostponePublication records why p cannot be built now, and makes it due again after the given time.
func (s *Store) PostponePublication(ctx context.Context, p *Publication, why string, after time.Duration) error {
	return s.endClaim(ctx, p, statePending, why, s.now().Add(after))
}

// FailPublication records why p cannot be built. From then on its path is not found, unless its content changes.
func (s *Store) FailPublication(ctx context.Context, p *Publication, why string) error {
	return s.endClaim(ctx, p, stateFailed, why, s.now())
}

// endClaim updates a publication if it is still leased to p. If its content has changed meanwhile, it is due at once.
func (s *Store) endClaim(ctx context.Context, p *Publication, state, why string, due time.Time) error {
	_, err := s.change(
		ctx,
		"UPDATE publications SET state = CASE WHEN changes = $1 THEN $2 ELSE '"+statePending+"' END, "+
			"due = CASE WHEN changes = $1 THEN CAST($3 AS BIGINT) ELSE 0 END, error = $4"+released+
			" WHERE path = $5 AND state = '"+statePending+"' AND due = $6",
		p.changes, state, micros(due), text.Head(plain(why), maxPublicationError), p.Path, p.claim,
	)
	return wrap(err, "releasing manifest %s", p.Path)
}

// Salt returns the salt of the private inputs in the manifest of an answer, or in the final one of a run, for auditors.
// If the answer was deleted, it fails with [ErrNotFound].
func (s *Store) Salt(ctx context.Context, tenant, answerOrRun string) ([]byte, error) {
	text := ""
	err := each(
		ctx, s.db, into(&text),
		"SELECT salt FROM publications WHERE tenant = $1 AND (answer_id = $2 OR answer_id = '' AND run = $2) "+
			"AND salt <> '' ORDER BY revision DESC LIMIT 1", lookup(tenant), lookup(answerOrRun),
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

// EventManifest is the kind of event for a manifest that has been published. Its data is an object with answer_id (null
// for the run's final one), path (where it is served, below the publisher's address), sha256 (of its body,
// hexadecimal), revision, and supersedes (the path of the revision before it, or null).
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

// published holds those columns of a row of publications that keeping it needs.
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

// KeepPublication stores a manifest that was built, with its pins, and writes an event: from then on it is served and
// never changes. The pins replace those of the revision before it and those in no manifest, and keep the status of an
// equal one. If its content has changed since p was claimed, the next revision is due at once.
//
// Keeping the same manifest again changes nothing but the pins. It fails with [manifest.ErrMutated] if another body is
// stored, which stays; with [ErrNotFound] if the answer was deleted meanwhile or the manifest has expired; and with
// [ErrConflict] if p is no longer the caller's, because its lease ended and another caller holds it or part of its run
// was deleted.
func (s *Store) KeepPublication(ctx context.Context, p *Publication, signed *manifest.Signed, pins []Pin) error {
	err := s.update(ctx, func(tx *transaction) error {
		row, err := tx.published(ctx, p.Path)
		if err != nil {
			return err
		}
		if row.digest == "" && (row.state != statePending || row.due != p.claim) {
			return refuse(ErrConflict, "part of its content was deleted, or another node is building it")
		}
		if err := tx.insertPublication(ctx, row, signed); err != nil {
			return err
		}
		if row.changes != p.changes {
			if err := tx.publish(ctx, &row.publicationKey, statePending, micros(s.now())); err != nil {
				return err
			}
			// so that keeping it again schedules no other
			if err := tx.exec(
				ctx, "UPDATE publications SET changes = $1 WHERE path = $2", p.changes, row.path,
			); err != nil {
				return err
			}
		}
		return tx.putPins(ctx, row.tenant, row, pins)
	})
	return wrap(err, "keeping manifest %s", p.Path)
}

// KeepManifest stores a manifest under a path, as [manifest.Manifests] requires: one that the store itself publishes
// (see [Store.KeepPublication]), or any other of an agent that chooses its own paths.
func (s *Store) KeepManifest(ctx context.Context, path string, signed *manifest.Signed) error {
	if path != plain(path) || len(path) > maxPath {
		return fmt.Errorf("keeping a manifest: its path is not text of up to %d bytes", maxPath)
	}
	err := s.update(ctx, func(tx *transaction) error {
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
				due:      micros(s.now()),
			}
			err = tx.insertPublications(ctx, "", row.row(row, ""))
		}
		if err != nil {
			return err
		}
		return tx.insertPublication(ctx, row, signed)
	})
	return wrap(err, "keeping manifest %s", path)
}

// insertPublication stores the manifest that is served under the path of row.
func (tx *transaction) insertPublication(ctx context.Context, row *published, signed *manifest.Signed) error {
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
	if err := tx.exec(
		ctx,
		"UPDATE publications SET state = '"+stateBuilt+"', due = $1, digest = $2, signed = $3, error = ''"+released+
			" WHERE path = $4",
		micros(tx.now()), digest, tx.text(bundle), row.path,
	); err != nil {
		return err
	}
	event, err := newEvent(row.tenant, row.run, EventManifest, &manifestEvent{
		nullable(row.answer), row.path, digest, row.revision, nullable(row.supersedes),
	})
	if err != nil {
		return err
	}
	return tx.addRunEvents(ctx, []Event{event})
}

// published returns the row of a path and locks it and its run. Others lock the run first.
func (tx *transaction) published(ctx context.Context, path string) (*published, error) {
	row, err := tx.publishedRow(ctx, path, "")
	if err == nil && tx.postgres {
		if _, err := tx.hasRun(ctx, tenantID{row.tenant, row.run}); err != nil {
			return nil, err
		}
		row, err = tx.publishedRow(ctx, path, tx.forUpdate())
	}
	return row, err
}

func (tx *transaction) publishedRow(ctx context.Context, path, lock string) (*published, error) {
	return readOne(ctx, tx, func(rows *sql.Rows, p *published) error {
		return rows.Scan(
			&p.pub, &p.answer, &p.tenant, &p.run, &p.revision, &p.path, &p.supersedes, &p.state, &p.due, &p.changes,
			&p.digest,
		)
	}, "SELECT pub, answer_id, tenant, run, revision, path, supersedes, state, due, changes, digest FROM "+
		"publications WHERE path = $1"+lock, path)
}

// Manifest returns the manifest served under a path, as [manifest.Manifests] requires. It fails with
// [manifest.ErrPending] if it is still to be built, and with [manifest.ErrNotFound] if there is none or it cannot be
// built.
func (s *Store) Manifest(ctx context.Context, path string) (*manifest.Signed, error) {
	state := ""
	var bundle []byte
	err := each(ctx, s.db, into(&state, &bundle), "SELECT state, signed FROM publications WHERE path = $1", plain(path))
	signed := &manifest.Signed{}
	switch {
	case err != nil:
	case state == stateBuilt:
		err = decode(bundle, signed, "a manifest")
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

// LastManifest returns the path of the latest revision of a manifest that is served or still to be built, and the
// SHA-256 of its body, hexadecimal, which is empty if it is still to be built. pub is the public id of its run, and
// answerID is empty for the run's final manifest. It fails with [manifest.ErrNotFound] if there is none.
func (s *Store) LastManifest(ctx context.Context, pub, answerID string) (path, digest string, err error) {
	err = each(
		ctx, s.db,
		into(&path, &digest),
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

// addRunEvents numbers and stores events of runs. Events of runs that do not, or no longer, exist are dropped.
func (tx *transaction) addRunEvents(ctx context.Context, events []Event) error {
	seqs := map[tenantID]int64{} // how many events a run gets, then the number of its last one so far
	for i := range events {
		if events[i].Run != "" {
			seqs[tenantID{events[i].Tenant, events[i].Run}]++
		}
	}
	for _, run := range slices.SortedFunc(maps.Keys(seqs), tenantID.compare) {
		last, err := tx.addSeq(ctx, run, seqs[run])
		if err != nil {
			return err
		}
		if seqs[run] = last - seqs[run]; last == 0 {
			delete(seqs, run)
		}
	}
	told := make([]Event, 0, len(events))
	for _, e := range events {
		run := tenantID{e.Tenant, e.Run}
		if _, ok := seqs[run]; ok {
			seqs[run]++
			e.Seq = seqs[run]
			told = append(told, e)
		}
	}
	return tx.addEvents(ctx, told)
}

// addSeq reserves the next n event numbers of a run and returns the last; 0 if there is no such run.
func (tx *transaction) addSeq(ctx context.Context, run tenantID, n int64) (last int64, err error) {
	err = each(ctx, tx, into(&last), "UPDATE runs SET seq = seq + $1 WHERE tenant = $2 AND id = $3 RETURNING seq",
		n, run.tenant, run.id)
	return last, err
}

// hasRun reports whether a run exists, and locks it.
func (tx *transaction) hasRun(ctx context.Context, id tenantID) (bool, error) {
	return exists(ctx, tx, "SELECT 1 FROM runs WHERE tenant = $1 AND id = $2"+tx.forUpdate(), id.tenant, id.id)
}

// pubBytes is how much of the HMAC a public id contains: 128 bits cannot be guessed.
const pubBytes = 16

// PubNames derives the ids under which manifests of runs are published. The id of a run is always the same, even before
// anything of the run is stored. It reveals neither the tenant nor the client's name of the run, and cannot be computed
// without a secret of the store. PubNames is safe for concurrent use.
type PubNames struct{ secret []byte }

// Of returns the public id of a run: 26 characters of a-z and 2-7. It does no I/O. A call outside of runs is published
// under the id derived from its answer's id.
func (p *PubNames) Of(tenant, run string) string {
	mac := hmac.New(sha256.New, p.secret)
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(tenant))) // so that no two pairs are the same bytes
	mac.Write(size[:])
	mac.Write([]byte(tenant))
	mac.Write([]byte(run))
	sum := mac.Sum(nil)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:pubBytes]))
}

// Pub returns the public id of a run, which need not exist: see [PubNames.Of].
func (s *Store) Pub(ctx context.Context, tenant, run string) (string, error) {
	names, err := s.Publications(ctx)
	if err != nil {
		return "", err
	}
	return names.Of(tenant, run), nil
}

// Publications returns the source of the public ids of runs. It reads the store's secret once; in a new store, the
// first caller creates it.
func (s *Store) Publications(ctx context.Context) (*PubNames, error) {
	names := s.names.Load()
	if names == nil {
		secret, err := s.secret(ctx, "publications")
		if err != nil {
			return nil, fmt.Errorf("reading the secret of publication ids: %w", err)
		}
		names = &PubNames{secret}
		s.names.Store(names)
	}
	return names, nil
}

// KnownPub is like [Store.Pub] but does no I/O; it returns the empty string if the store's secret was not read yet.
func (s *Store) KnownPub(tenant, run string) string {
	names := s.names.Load()
	if names == nil {
		return ""
	}
	return names.Of(tenant, run)
}

// secret returns 32 random bytes, always the same for a name. If several nodes create them at the same time, one
// prevails.
func (s *Store) secret(ctx context.Context, name string) ([]byte, error) {
	value, err := readSecret(ctx, s.db, name)
	if err == nil && value == "" {
		err = s.update(ctx, func(tx *transaction) error {
			if err := tx.execAll(
				ctx, tx.insertion("secrets", "name, value", " ON CONFLICT (name) DO NOTHING"),
				[][]any{{name, newSalt()}},
			); err != nil {
				return err
			}
			value, err = readSecret(ctx, tx, name)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	secret, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(secret) != sha256.Size {
		return nil, fmt.Errorf("%w: the secret %q", errDamaged, name) // an error would quote it
	}
	return secret, nil
}

func readSecret(ctx context.Context, q querier, name string) (string, error) {
	value := ""
	err := each(ctx, q, into(&value), "SELECT value FROM secrets WHERE name = $1", name)
	return value, err
}

// newSalt returns 32 random bytes as they are stored.
func newSalt() string {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails, as documented
	return base64.RawURLEncoding.EncodeToString(random[:])
}
