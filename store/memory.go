package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/ibidhq/ibid/verify"
)

const (
	// MaxRemembered is how many bytes a value that a verifier remembers may have.
	MaxRemembered = 1 << 20
	// MaxOfKind is how many values of one kind are remembered of a tenant. What is over goes with the next
	// [Store.Prune].
	MaxOfKind = 100_000
	// rememberedFor is how long what was only remembered to save work is kept.
	rememberedFor = 30 * 24 * time.Hour
)

// remembered lists the kinds of memory that only save work. All others say what must not change or come again, and stay
// until there are more than [MaxOfKind] of a tenant's kind: the oldest goes.
const remembered = "('keys', 'verdict')"

// Memory returns what a tenant's verifiers remember. A value over [MaxRemembered] is [ErrLimit]. Of each kind the
// newest [MaxOfKind] are kept.
func (s *Store) Memory(tenant string) verify.Memory { return &tenantMemory{s, lookup(tenant)} }

type tenantMemory struct {
	store  *Store
	tenant string
}

// Recall implements [verify.Memory].
func (m *tenantMemory) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	value, err := recall(ctx, m.store.db, m.tenant, kind, key)
	return value, about(err, "recalling the %s of %.200s", kind, key)
}

func recall(ctx context.Context, q querier, tenant, kind, key string) ([]byte, error) {
	var value []byte
	err := each(ctx, q, func(rows *sql.Rows) error {
		err := rows.Scan(&value)
		if value == nil { // an empty one is one
			value = []byte{}
		}
		return err
	}, "SELECT value FROM memory WHERE tenant = $1 AND kind = $2 AND key = $3", tenant, lookup(kind), lookup(key))
	return value, err
}

// Remember implements [verify.Memory].
func (m *tenantMemory) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	there, err := m.Recall(ctx, kind, key)
	if there != nil || err != nil {
		return there, err
	}
	return m.remember(ctx, kind, key, value, "DO NOTHING")
}

// Replace implements [verify.Memory].
func (m *tenantMemory) Replace(ctx context.Context, kind, key string, value []byte) error {
	_, err := m.remember(
		ctx, kind, key, value, "(tenant, kind, key) DO UPDATE SET at = excluded.at, value = excluded.value",
	)
	return err
}

// remember stores a value, and returns what is there then. Otherwise says what becomes of one that is there.
func (m *tenantMemory) remember(
	ctx context.Context, kind, key string, value []byte, otherwise string,
) (there []byte, err error) {
	if len(value) > MaxRemembered {
		err = refuse(ErrLimit, "%d bytes are more than the %d that are remembered", len(value), MaxRemembered)
	} else {
		err = m.store.update(ctx, func(tx *transaction) error {
			row := []any{m.tenant, lookup(kind), lookup(key), micros(time.Now()), append([]byte{}, value...)}
			statement := tx.insertion("memory", "tenant, kind, key, at, value", " ON CONFLICT "+otherwise)
			if err := tx.execAll(ctx, statement, [][]any{row}); err != nil {
				return err
			}
			there, err = recall(ctx, tx, m.tenant, kind, key)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("remembering the %s of %.200s: %w", kind, key, err)
	}
	return there, nil
}
