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

// putPublications notes what is to be published of fresh rows: each answer, and of a run once its final manifest, which
// a call in no run has not. What is noted already stays as it is.
func (tx *transaction) putPublications(ctx context.Context, rows []*row) error {
	now := micros(tx.now())
	var answers [][]any
	finals := map[publicationKey]bool{} // whether nobody named the run: it is made for one call, and has no other
	for _, r := range rows {
		if r.pub == "" {
			continue
		}
		k := publicationKey{r.pub, lookup(r.Tenant), lookup(r.Run), lookup(r.AnswerID)}
		answers = append(answers, k.fresh(statePending, now))
		if k.answer = ""; r.Run != "" {
			alone := strings.TrimPrefix(r.Run, "run_") == strings.TrimPrefix(r.AnswerID, "ans_")
			finals[k] = finals[k] || alone
		}
	}
	if err := tx.insertPublications(ctx, " ON CONFLICT (pub, answer_id, revision) DO NOTHING", answers...); err != nil {
		return err
	}
	// as everybody locks them
	byPub := func(a, b publicationKey) int { return strings.Compare(a.pub, b.pub) }
	for _, k := range slices.SortedFunc(maps.Keys(finals), byPub) {
		var finished int64 // it may be said that a run has ended before its last answer is indexed
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

// insertPublications stores rows. What is there already is as after says.
func (tx *transaction) insertPublications(ctx context.Context, after string, rows ...[]any) error {
	const columns = "pub, answer_id, revision, tenant, run, path, supersedes, state, due, attempts, changes, salt, " +
		"digest, signed, error"
	return tx.execAll(ctx, tx.insertion("publications", columns, after), rows)
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
		ctx, tx, into(&revision, &there, &path, &salt),
		"SELECT revision, state, path, salt FROM publications WHERE pub = $1 AND answer_id = $2 ORDER BY "+
			"revision DESC LIMIT 1"+tx.forUpdate(), k.pub, k.answer,
	)
	if err != nil {
		return err
	}
	switch there {
	case "":
		return tx.insertPublications(ctx, "", k.fresh(state, now))
	case stateBuilt, stateExpired:
		next := &published{revision: revision + 1, supersedes: path, state: state, due: now}
		return tx.insertPublications(ctx, "", k.row(next, cmp.Or(salt, newSalt())))
	case statePending: // it is not made to wait again; due may be somebody's claim
		return tx.exec(ctx, "UPDATE publications SET changes = changes + 1 WHERE path = $1", path)
	}
	return tx.exec(
		ctx,
		"UPDATE publications SET changes = changes + 1, state = $1, due = $2, attempts = 0, error = '' WHERE path = $3",
		state, now, path,
	)
}

// publishAgain notes that an answer that is published has changed, if it is, and with it its run.
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

// PublishAgain has the manifest at path superseded, and with that of an answer that of its run: what is known of its
// sources has changed. An empty answerID says that path is a run's. It does nothing where another revision is there
// already or being built, or the answer is gone.
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
	return about(err, "publishing "+path+" again")
}

// pubOf returns the public id of what is published where that holds; empty: nothing is.
func (tx *transaction) pubOf(ctx context.Context, where string, args ...any) (string, error) {
	pub := ""
	err := each(ctx, tx, into(&pub), "SELECT pub FROM publications WHERE "+where+" LIMIT 1", args...)
	return pub, err
}

// PublishIdle makes the final manifests of those runs due that nobody said the end of, and that had no call for so
// long, and returns how many these are. A run of which more is published later has another revision of its final
// manifest. One that somebody is busy with now is left to the next time.
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

// DuePublications returns up to limit manifests that are to be built now, those that wait longest first, and keeps them
// from other callers for as long as lease says, on all nodes. Each is then ended by [Store.KeepPublication],
// [Store.PostponePublication] or [Store.FailPublication]; one of which nobody is heard comes again after its lease, and
// one of whose run something is deleted meanwhile comes again at once.
func (s *Store) DuePublications(ctx context.Context, limit int, lease time.Duration) ([]Publication, error) {
	until := micros(s.now().Add(lease))
	list, err := claimDue(
		ctx, s, limit,
		"SELECT pub, answer_id, revision, tenant, run, path, supersedes, attempts + 1, changes, salt, error "+
			"FROM publications WHERE state = '"+statePending+"' AND due <= $1 ORDER BY due, answer_id DESC, pub",
		func(rows *sql.Rows, p *Publication) error {
			p.claim = until
			var salt string
			err := rows.Scan(
				&p.Pub, &p.AnswerID, &p.Revision, &p.Tenant, &p.Run, &p.Path, &p.Supersedes, &p.Attempts, &p.changes,
				&salt, &p.Error,
			)
			if err == nil {
				p.Salt, err = base64.RawURLEncoding.DecodeString(salt)
			}
			return err
		},
		func(tx *transaction, p *Publication) error {
			return tx.exec(
				ctx, "UPDATE publications SET due = $1, attempts = $2 WHERE path = $3", p.claim, p.Attempts, p.Path,
			)
		},
	)
	return list, about(err, "looking for due manifests")
}

// PostponePublication says that p cannot be built now, and why, and makes it due again after that time.
func (s *Store) PostponePublication(ctx context.Context, p *Publication, why string, after time.Duration) error {
	return s.endClaim(ctx, p, statePending, why, s.now().Add(after))
}

// FailPublication says that p cannot be built, and why. Its path is not found from then on, unless what it is of
// changes.
func (s *Store) FailPublication(ctx context.Context, p *Publication, why string) error {
	return s.endClaim(ctx, p, stateFailed, why, s.now())
}

// endClaim changes a publication if it is still p's. What has changed meanwhile is tried at once.
func (s *Store) endClaim(ctx context.Context, p *Publication, state, why string, due time.Time) error {
	_, err := s.change(
		ctx,
		"UPDATE publications SET state = CASE WHEN changes = $1 THEN $2 ELSE '"+statePending+"' END, "+
			"due = CASE WHEN changes = $1 THEN CAST($3 AS BIGINT) ELSE 0 END, error = $4 "+
			"WHERE path = $5 AND state = '"+statePending+"' AND due = $6",
		p.changes, state, micros(due), text.Head(plain(why), maxPublicationError), p.Path, p.claim,
	)
	return about(err, "setting manifest %s aside", p.Path)
}

// Salt returns the salt of the private inputs in the manifest of an answer, or in the final one of a run, for whoever
// audits them. That of an answer that was deleted is gone: [ErrNotFound].
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
	err := s.update(ctx, func(tx *transaction) error {
		row, err := tx.published(ctx, p.Path)
		if err != nil {
			return err
		}
		if row.digest == "" && (row.state != statePending || row.due != p.claim) {
			return refuse(ErrConflict, "what it is of was deleted in part, or somebody else builds it")
		}
		if err := tx.insertPublication(ctx, row, signed); err != nil {
			return err
		}
		if row.changes != p.changes {
			if err := tx.publish(ctx, &row.publicationKey, statePending, micros(s.now())); err != nil {
				return err
			}
			// once
			if err := tx.exec(
				ctx, "UPDATE publications SET changes = $1 WHERE path = $2", p.changes, row.path,
			); err != nil {
				return err
			}
		}
		return tx.putPins(ctx, row.tenant, row, pins)
	})
	return about(err, "keeping manifest %s", p.Path)
}

// KeepManifest stores a manifest under a path, as [manifest.Manifests] wants it: one that is to be published by the
// store itself, or any other of an agent that has paths of its own. See [Store.KeepPublication] for the first.
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
	return about(err, "keeping manifest %s", path)
}

// insertPublication stores what is served under the path of row.
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
		"UPDATE publications SET state = '"+stateBuilt+"', due = $1, digest = $2, signed = $3, error = '' "+
			"WHERE path = $4",
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
	return tx.tellRuns(ctx, []Event{event})
}

// published returns the row of a path, which is kept from changing, and so is its run, which others lock first.
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

// Manifest returns what is served under a path, as [manifest.Manifests] wants it. [manifest.ErrPending] is that it is
// still to be built, [manifest.ErrNotFound] that there is none, or that it cannot be built.
func (s *Store) Manifest(ctx context.Context, path string) (*manifest.Signed, error) {
	state := ""
	var bundle []byte
	err := each(
		ctx, s.db,
		into(&state, &bundle),
		"SELECT state, signed FROM publications WHERE path = $1", plain(path),
	)
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

// LastManifest returns where the last revision of a manifest is, of those that are served or still to be built, and the
// SHA-256 of its body, hexadecimal; empty: it is still to be built. pub is the public id of its run, and answerID is
// empty for the run's final one. [manifest.ErrNotFound] is that there is none.
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

// tellRuns writes down events of runs, and gives them their numbers. A run that is not there (any more) is told
// nothing.
func (tx *transaction) tellRuns(ctx context.Context, events []Event) error {
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
		if _, there := seqs[run]; there {
			seqs[run]++
			e.Seq = seqs[run]
			told = append(told, e)
		}
	}
	return tx.addEvents(ctx, told)
}

// addSeq takes the next n numbers for events of a run, and returns the last of them; 0: there is no such run.
func (tx *transaction) addSeq(ctx context.Context, run tenantID, n int64) (last int64, err error) {
	err = each(ctx, tx, into(&last), "UPDATE runs SET seq = seq + $1 WHERE tenant = $2 AND id = $3 RETURNING seq",
		n, run.tenant, run.id)
	return last, err
}

// hasRun reports whether there is a run, and keeps it from changing.
func (tx *transaction) hasRun(ctx context.Context, id tenantID) (bool, error) {
	return exists(ctx, tx, "SELECT 1 FROM runs WHERE tenant = $1 AND id = $2"+tx.forUpdate(), id.tenant, id.id)
}

// pubBytes is how much of the HMAC a public id has: 128 bits cannot be guessed.
const pubBytes = 16

// PubNames gives runs the ids under which their manifests are published. They are the same whenever they are asked for,
// from before anything of the run is stored; they show neither the tenant nor the client's name of the run, and cannot
// be computed without a secret of the store. It may be used by many goroutines at once.
type PubNames struct{ secret []byte }

// Of returns the public id of a run: 26 characters of a-z and 2-7. It does no I/O. A call in no run is published under
// that of its answer's id.
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

// Pub returns the public id of a run, which need not be there: see [PubNames.Of].
func (s *Store) Pub(ctx context.Context, tenant, run string) (string, error) {
	names, err := s.Publications(ctx)
	if err != nil {
		return "", err
	}
	return names.Of(tenant, run), nil
}

// Publications returns what gives runs their public ids. The store is asked for its secret once; the first who asks of
// a new store makes it.
func (s *Store) Publications(ctx context.Context) (*PubNames, error) {
	names := s.names.Load()
	if names == nil {
		secret, err := s.secret(ctx, "publications")
		if err != nil {
			return nil, fmt.Errorf("reading what publications are named by: %w", err)
		}
		names = &PubNames{secret}
		s.names.Store(names)
	}
	return names, nil
}

// KnownPub returns what [Store.Pub] does, without asking anybody; empty: the store could not be asked for its secret
// yet.
func (s *Store) KnownPub(tenant, run string) string {
	names := s.names.Load()
	if names == nil {
		return ""
	}
	return names.Of(tenant, run)
}

// secret returns 32 random bytes that are always the same for a name. Of several nodes that make them at the same time
// one does.
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
	err := each(
		ctx, q,
		into(&value),
		"SELECT value FROM secrets WHERE name = $1", name,
	)
	return value, err
}

// newSalt returns 32 random bytes as they are stored.
func newSalt() string {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails: it says so
	return base64.RawURLEncoding.EncodeToString(random[:])
}
