package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/verify"
)

// AuditAction is an administrative action.
type AuditAction string

// The actions that are recorded.
const (
	AuditTokenMade       AuditAction = "token.made"
	AuditTokenRevoked    AuditAction = "token.revoked"
	AuditAnswerDeleted   AuditAction = "answer.deleted"
	AuditPruned          AuditAction = "pruned" // old answers and copies were removed, by a command or by the retention
	AuditIndexRebuilt    AuditAction = "index.rebuilt"
	AuditAlertSeen       AuditAction = "alert.seen"
	AuditAlertUnseen     AuditAction = "alert.unseen"
	AuditKeyMade         AuditAction = "key.made"
	AuditKeyRetired      AuditAction = "key.retired"
	AuditKeyRevoked      AuditAction = "key.revoked"
	AuditKeyForgotten    AuditAction = "key.forgotten"
	AuditSettingsChanged AuditAction = "settings.changed" // a server started with settings other than the last one's
	AuditLoginFailed     AuditAction = "login.failed"     // an access token was not valid; some are not logged
)

// Actors besides the ids of tokens and "cli:" followed by a user of the machine.
const (
	ActorServer = "server" // ibid serve on its own behalf
	ActorNobody = "nobody" // a client without a token
)

// maxAuditText is how many bytes each text of an entry may have; a longer one is cut.
const maxAuditText = 500

// auditBatch is how many entries are checked at a time.
const auditBatch = 500

// AuditEntry is one administrative act. It contains no secrets.
type AuditEntry struct {
	ID     string      `json:"id"` // sha256:… of the canonical JSON of all other members
	Tenant string      `json:"tenant"`
	Seq    int64       `json:"seq"` // from 1
	At     time.Time   `json:"at"`
	Actor  string      `json:"actor"`  // the id of a token, cli:USER, server, bootstrap or nobody
	Action AuditAction `json:"action"` // what was done
	Object string      `json:"object"` // the id of the object acted on; empty if it has none
	Detail string      `json:"detail"` // a short explanation; may be empty
	Prev   string      `json:"prev"`   // ID of the entry before; empty for the first
}

type actorKey struct{}

// WithActor returns a context for acts of actor: the id of a token, or a value that [AuditEntry] lists. Without one,
// the server acts.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// Audit appends an entry to a tenant's audit log, for an act outside the store: the store's methods write their entries
// in their own transactions. The entry needs Action; the actor is that of ctx.
func (s *Store) Audit(ctx context.Context, tenant string, e AuditEntry) error {
	err := s.update(ctx, func(tx *transaction) error { return tx.audit(ctx, tenant, e) })
	return wrap(err, "writing to the audit log")
}

// audit appends an entry to a tenant's audit log and logs it.
func (tx *transaction) audit(ctx context.Context, tenant string, e AuditEntry) error {
	tenant = lookup(tenant)
	if err := tx.serialize(ctx, "audit", tenant); err != nil {
		return err
	}
	last, err := scanAudit(ctx, tx, "tenant = $1 ORDER BY seq DESC LIMIT 1", tenant)
	if err != nil {
		return err
	}
	e.Prev, e.Seq = "", 1
	if len(last) > 0 {
		e.Prev, e.Seq = last[0].ID, last[0].Seq+1
	}
	actor, _ := ctx.Value(actorKey{}).(string)
	e.Tenant, e.At, e.Actor = tenant, instant(micros(tx.now())), cmp.Or(actor, ActorServer)
	for _, words := range []*string{&e.Actor, &e.Object, &e.Detail} {
		*words = plain(text.Head(*words, maxAuditText))
	}
	if e.ID, err = e.sum(); err != nil {
		return err
	}
	encoded, err := json.Marshal(&e)
	if err != nil {
		return err
	}
	tx.logger.LogAttrs(
		ctx, slog.LevelInfo, "recorded in the audit log", slog.String("action", string(e.Action)),
		slog.String("detail", e.Detail), slog.String("actor", e.Actor), slog.String("tenant", e.Tenant),
		slog.String("object", e.Object),
	)
	return tx.insert(
		ctx, "audit", "tenant, seq, action, object, entry", tenant, e.Seq, string(e.Action), e.Object, tx.text(encoded),
	)
}

// sum returns the hash of the entry without its id.
func (e *AuditEntry) sum() (string, error) { return verify.HashRecord(e, "id") }

// AuditLog returns a page of a tenant's audit log, newest first. Cursor is Page.Next of the page before, or empty for
// the first; a limit of 0 means [DefaultLimit].
func (s *Store) AuditLog(ctx context.Context, tenant, cursor string, limit int) (*Page[AuditEntry], error) {
	entries := numberedList[AuditEntry, AuditEntry]{
		letter: "l", query: auditQuery, column: "seq", scan: scanAuditRow,
		item: func(e *AuditEntry) (AuditEntry, int64) { return *e, e.Seq },
	}
	page, err := entries.page(ctx, s.db, conditionsOf(tenant), cursor, limit)
	return page, wrap(err, "listing the audit log")
}

// LastAudited returns the object of the last entry with an action in a tenant's audit log; empty if there is none.
func (s *Store) LastAudited(ctx context.Context, tenant string, action AuditAction) (string, error) {
	var object string
	err := each(
		ctx, s.db, into(&object),
		"SELECT object FROM audit WHERE tenant = $1 AND action = $2 ORDER BY seq DESC LIMIT 1",
		lookup(tenant), string(action),
	)
	return object, wrap(err, "reading the audit log")
}

const auditQuery = "SELECT seq, action, object, entry FROM audit"

// scanAuditRow reads a row of auditQuery. A row whose columns differ from its entry is damaged.
func scanAuditRow(rows *sql.Rows, e *AuditEntry) error {
	var seq int64
	var action, object string
	var encoded []byte
	if err := rows.Scan(&seq, &action, &object, &encoded); err != nil {
		return err
	}
	what := "audit entry " + strconv.FormatInt(seq, 10)
	if err := decode(encoded, e, what); err != nil {
		return err
	}
	if e.Seq != seq || string(e.Action) != action || e.Object != object {
		return fmt.Errorf("%w: %s differs from its columns", errDamaged, what)
	}
	return nil
}

func scanAudit(ctx context.Context, q querier, where string, args ...any) ([]AuditEntry, error) {
	return collect(ctx, q, scanAuditRow, auditQuery+" WHERE "+where, args...)
}

// CheckAudit verifies a tenant's whole audit log: no entry was changed, left out or inserted. It returns how many
// entries are in order from the first on; the error describes the next. Truncation at the end can be detected only by
// comparing with an id kept elsewhere.
func (s *Store) CheckAudit(ctx context.Context, tenant string) (n int, err error) {
	defer wrapResult(&err, "checking the audit log")
	tenant = lookup(tenant)
	prev := ""
	for {
		found, err := scanAudit(ctx, s.db, "tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3", tenant, n, auditBatch)
		if err != nil {
			return n, err
		}
		for i := range found {
			e := &found[i]
			id, err := e.sum()
			switch {
			case err != nil:
				return n, err
			case e.Seq != int64(n+1):
				return n, fmt.Errorf("%w: number %d is missing", errDamaged, n+1)
			case e.Tenant != tenant:
				return n, fmt.Errorf("%w: number %d belongs to tenant %q", errDamaged, n+1, e.Tenant)
			case e.ID != id:
				return n, fmt.Errorf("%w: number %d has the hash %s but the id %q", errDamaged, n+1, id, e.ID)
			case e.Prev != prev:
				return n, fmt.Errorf("%w: number %d follows %q but names %q", errDamaged, n+1, prev, e.Prev)
			}
			prev = e.ID
			n++
		}
		if len(found) < auditBatch {
			return n, nil
		}
	}
}
