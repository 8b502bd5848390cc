package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/ibidhq/ibid"
)

// Put stores calls in one transaction: all of them or, on error, none. A call whose AnswerID its tenant has already is
// skipped, so that what was put before a crash can be put again: nothing changes and no second event is written.
//
// The sources of a conversation are numbered, and the steps of a run counted, in the order of calls. In a batch of 32
// or more each costs far less than alone. See [IsTemporary] for how to handle an error.
func (s *Store) Put(ctx context.Context, calls []*Call) error {
	if len(calls) == 0 {
		return nil
	}
	rows := make([]*row, 0, len(calls))
	pace := pacer{time.Now()}
	for _, c := range calls {
		pace.pause()
		r, err := newRow(c, s.postgres)
		if err != nil {
			return fmt.Errorf("storing answer %q: %w", c.AnswerID, err)
		}
		if s.track {
			r.cited = CitedAddresses(c.Answer)
		}
		if c.Publish && !c.isLater() {
			if r.pub, err = s.Pub(ctx, c.Tenant, cmp.Or(c.Run, c.AnswerID)); err != nil {
				return fmt.Errorf("storing %d answers: %w", len(calls), err)
			}
		}
		rows = append(rows, r)
	}
	s.partition(ctx)
	err := s.update(ctx, func(tx *transaction) error { return tx.putRows(ctx, rows) })
	return wrap(err, "storing %d answers", len(calls))
}

// putRows stores rows. A later state may belong to an answer earlier in the same batch.
func (tx *transaction) putRows(ctx context.Context, rows []*row) error {
	known, err := tx.known(ctx, rows)
	if err != nil {
		return err
	}
	fresh, grown := make([]*row, 0, len(rows)), map[string]int64{}
	for _, r := range rows {
		if r.isLater() {
			if err := tx.insertRows(ctx, fresh); err != nil { // the answer must be found
				return err
			}
			fresh = fresh[:0]
			more, err := tx.refetch(ctx, r)
			if err != nil {
				return err
			}
			grown[lookup(r.Tenant)] += more
			continue
		}
		if id := (tenantID{lookup(r.Tenant), lookup(r.AnswerID)}); !known[id] {
			known[id] = true
			fresh = append(fresh, r)
			grown[id.tenant] += int64(len(r.encoded))
		}
	}
	if err := tx.insertRows(ctx, fresh); err != nil {
		return err
	}
	return tx.addUsage(ctx, grown)
}

// known returns which of the answers are already stored.
func (tx *transaction) known(ctx context.Context, rows []*row) (map[tenantID]bool, error) {
	ids := rowsOf(rows, func(r *row) []any { return []any{lookup(r.Tenant), lookup(r.AnswerID)} })
	known := make(map[tenantID]bool, len(rows))
	err := tx.list(ctx, &tuples{
		before: "SELECT tenant, answer_id FROM (VALUES ",
		row:    "($, $)",
		after:  ") AS v JOIN calls ON tenant = column1 AND answer_id = column2",
	}, ids, func(found *sql.Rows) error {
		var id tenantID
		err := found.Scan(&id.tenant, &id.id)
		known[id] = true
		return err
	})
	return known, err
}

// insertRows stores new rows.
func (tx *transaction) insertRows(ctx context.Context, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	next, err := tx.nextNumbers(ctx, "calls_n", len(rows))
	if err != nil {
		return err
	}
	for i, r := range rows {
		r.n, r.step, r.seq, r.kind = next[i], r.Step.Number, 0, EventAnswer
	}
	for _, do := range []func(context.Context, []*row) error{
		tx.putConversations, tx.putRuns, tx.putCalls, tx.putEvents, tx.index, tx.putPublications, tx.trackRows,
	} {
		if err := do(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// insertNumbered adds a row whose first column is the next number of the counter calls_n.
func (tx *transaction) insertNumbered(ctx context.Context, table, columns string, values ...any) error {
	n, err := tx.nextNumbers(ctx, "calls_n", 1)
	if err != nil {
		return err
	}
	return tx.insert(ctx, table, "n, "+columns, append([]any{n[0]}, values...)...)
}

// nextNumbers takes the next n numbers of a counter.
func (tx *transaction) nextNumbers(ctx context.Context, counter string, n int) ([]int64, error) {
	if tx.postgres {
		const query = "SELECT nextval($1::regclass) FROM generate_series(1, $2)"
		return collect(ctx, tx, scanNumber, query, counter, n)
	}
	var last int64
	err := each(ctx, tx, into(&last), "INSERT INTO counters (name, value) VALUES ($1, $2) "+
		"ON CONFLICT (name) DO UPDATE SET value = value + excluded.value RETURNING value", counter, n)
	next := make([]int64, n)
	for i := range next {
		next[i] = last - int64(n-1-i)
	}
	return next, err
}

func (tx *transaction) putCalls(ctx context.Context, rows []*row) error {
	columns := "n, tenant, answer_id, provider, conversation, run, step, counted, started, refetched, call" +
		tx.ifPostgres(", document, terms")
	values := rowsOf(rows, func(r *row) []any {
		v := []any{
			r.n, lookup(r.Tenant), lookup(r.AnswerID), r.provider(), orNull(r.Conversation), orNull(r.Run), r.step,
			oneIf(r.counted), micros(r.Started), r.refetched, tx.text(r.encoded),
		}
		if tx.postgres {
			v = append(v, r.document, r.terms) // a nil document is NULL
		}
		return v
	})
	return tx.execAll(ctx, tx.insertion("calls", columns, ""), values)
}

// text returns b, which must not change any more, for a column of type TEXT. Neither engine checks or changes it,
// except that PostgreSQL accepts only UTF-8. In JSON, NUL is always escaped.
func (tx *transaction) text(b []byte) string {
	// a copy would be half of all that storing an answer allocates
	s := unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // b does not change
	if tx.postgres {
		return plain(s)
	}
	return s
}

func (tx *transaction) putEvents(ctx context.Context, rows []*row) error {
	events := make([]Event, 0, len(rows))
	for _, r := range rows {
		if r.seq == 0 { // in no run
			continue
		}
		data, err := r.event()
		if err != nil {
			return err
		}
		events = append(
			events, Event{Tenant: lookup(r.Tenant), Run: lookup(r.Run), Seq: r.seq, Kind: r.kind, At: r.at, Data: data},
		)
	}
	return tx.addEvents(ctx, events)
}

// addEvents assigns ids to events and stores them.
func (tx *transaction) addEvents(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	// Counted while their runs are locked, so that the events of a run are in order by id too.
	ids, err := tx.nextNumbers(ctx, "events_id", len(events))
	if err != nil {
		return err
	}
	values := make([][]any, 0, len(events))
	for i := range events {
		e := &events[i]
		e.ID, e.At = ids[i], instant(micros(e.At))
		values = append(values, []any{
			e.ID, e.Tenant, e.Run, e.Seq, e.Kind, micros(e.At), oneIf(tx.committed != nil), tx.text(e.Data),
		})
	}
	tx.events = append(tx.events, events...)
	return tx.execAll(ctx, tx.insertion("events", "id, tenant, run, seq, kind, at, relayed, data", ""), values)
}

// maxLookup is how many bytes a lookup key may have. PostgreSQL limits all columns of an index entry to 2,704.
const maxLookup = 384

// hashMark precedes the hash in a shortened lookup key.
const hashMark = "…sha256:"

// lookup returns s as a lookup key: itself, or a short form with its hash if s is too long or contains what a
// database's text cannot.
func lookup(s string) string {
	if len(s) <= maxLookup && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return plain(s[:min(len(s), maxLookup-80)]) + hashMark + hash(s)
}

// plain returns s as text that every database accepts.
func plain(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// row is a call to be stored.
type row struct {
	*Call
	encoded  []byte
	document *string // for PostgreSQL; nil if it can read the one in encoded
	terms    string  // the search terms

	n         int64
	step      int
	counted   bool // the step was counted, not given
	refetched string
	pub       string   // the public id of its run; empty if it is not to be published
	cited     []string // the addresses to be read again
	// For its event.
	seq   int64
	kind  string
	at    time.Time
	again bool // the answer is a later state
}

// newRow prepares what it can of a call before its transaction begins.
func newRow(c *Call, postgres bool) (*row, error) {
	if c.AnswerID == "" || c.Tenant == "" {
		return nil, fmt.Errorf("%w: it has no answer id or no tenant", errCall)
	}
	encoded, err := c.Encode()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCall, err)
	}
	r := &row{Call: c, encoded: encoded, terms: termText(c, postgres), at: c.Ended()}
	if postgres && !isPlainJSON(encoded) {
		if r.document, err = postgresDocument(c); err != nil {
			return nil, fmt.Errorf("%w: %w", errCall, err)
		}
	}
	return r, nil
}

// numberedKeys returns the keys of the sources of c, in the order of a numbering.
func numberedKeys(c *Call) []string {
	if c.keys == nil { // it was decoded
		var fresh ibid.Numbering
		c.Answer.Document(&ibid.DocumentOptions{Bare: true, Numbering: &fresh})
		c.keys = inOrder(fresh)
	}
	return c.keys
}

// postgresDocument returns the document for queries by JSONB, which cannot contain NUL. It omits the provider's
// metadata, whose numbers and depth JSONB may not accept.
func postgresDocument(c *Call) (*string, error) {
	document := c.Answer.Document(&ibid.DocumentOptions{Bare: true, AnswerID: c.AnswerID})
	unverified(document)
	b, err := document.JSON()
	if err != nil {
		return nil, err
	}
	text := string(withoutNUL(bytes.ToValidUTF8(b, []byte("\uFFFD"))))
	return &text, nil
}

// maxDepth is how deeply JSON may be nested for PostgreSQL to read it in the views. It recurses, and its stack size is
// a setting of the server.
const maxDepth = 64

// isPlainJSON reports whether PostgreSQL's type json can hold and process JSON: without NUL, escaped surrogates, which
// may be half of a pair, or deep nesting.
func isPlainJSON(b []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			i++
			rest := b[i:]
			if bytes.HasPrefix(rest, []byte("u0000")) || len(rest) > 1 && rest[0] == 'u' && rest[1]|0x20 == 'd' {
				return false
			}
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return true
}

// withoutNUL replaces the escape of NUL by that of U+FFFD.
func withoutNUL(b []byte) []byte {
	const escape = `\u0000`
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(escape))
		if i < 0 {
			return b
		}
		at += i
		before := at
		for before > 0 && b[before-1] == '\\' {
			before--
		}
		if (at-before)%2 == 0 { // the backslash is not escaped itself
			copy(b[at:], `\uFFFD`)
		}
		at += len(escape)
	}
}

// answerEvent is the data of an [EventAnswer].
type answerEvent struct {
	AnswerID     string              `json:"answer_id"`
	Step         int                 `json:"step"`
	Tool         *string             `json:"tool"`
	Conversation *string             `json:"conversation"`
	Agent        *string             `json:"agent"`
	Upstream     string              `json:"upstream"`
	Provider     *string             `json:"provider"`
	Model        *string             `json:"model"`
	Complete     bool                `json:"complete"`
	Finish       *string             `json:"finish"`
	Citations    int                 `json:"citations"`
	Sources      int                 `json:"sources"`
	Error        *ibid.ProviderError `json:"error"`
	Refetch      bool                `json:"refetch"`
}

func (r *row) event() ([]byte, error) {
	a := r.Answer
	return json.Marshal(&answerEvent{
		r.AnswerID, r.step, nullable(r.Step.Tool), nullable(r.Conversation), nullable(r.Agent), r.Upstream,
		nullable(a.Provider), nullable(a.Model), a.Complete,
		nullable(string(a.Finish)),
		len(a.Citations), len(a.Sources), a.Error, r.again,
	})
}

// provider returns the key of the answer's retention.
func (r *row) provider() string { return lookup(cmp.Or(r.Answer.Provider, r.Upstream)) }

// nullable returns a pointer to v, or nil, which is null in JSON, for the zero value.
func nullable[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// oneIf returns a flag as an integer column.
func oneIf(flag bool) int {
	if flag {
		return 1
	}
	return 0
}

// orNull returns the lookup key of s, or NULL if s is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return lookup(s)
}

func micros(t time.Time) int64 { return t.UnixMicro() }
func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// refetch replaces the answer of which r is a later state, if there is one and r is no step back. The row gets a new
// number, as the index entries of the old one no longer apply. If the earlier answer is damaged, r is dropped: all that
// can be done is to log it.
func (tx *transaction) refetch(ctx context.Context, r *row) (grown int64, err error) {
	old, err := tx.earlier(ctx, r)
	if errors.Is(err, errDamaged) {
		tx.logger.LogAttrs(
			ctx, slog.LevelError, "a later state of an answer is dropped: the earlier one cannot be read",
			slog.String("answer", r.AnswerID), slog.String("tenant", r.Tenant), slog.Any("error", err),
		)
		return 0, nil
	}
	if old == nil || err != nil {
		return 0, err
	}
	c := old.WithAnswer(r.Answer)
	fresh, err := newRow(c, tx.postgres)
	if err != nil {
		return 0, err
	}
	next, err := tx.nextNumbers(ctx, "calls_n", 1)
	if err != nil {
		return 0, err
	}
	fresh.n, fresh.step, fresh.refetched, fresh.at, fresh.again = next[0], old.step, lookup(r.AnswerID), r.at, true
	if fresh.kind = EventAnswer; r.Of != "" {
		fresh.kind = EventBackfill
	}
	if grown, err = tx.replaceCall(ctx, old.n, fresh); err != nil {
		return 0, err
	}
	rows := []*row{fresh}
	list, err := tx.groups(ctx, conversationTable(), rows)
	if err == nil {
		err = tx.number(ctx, conversationTable(), list)
	}
	if err == nil {
		fresh.seq, err = tx.addSeq(ctx, tenantID{lookup(fresh.Tenant), lookup(fresh.Run)}, 1)
	}
	if err == nil {
		err = tx.putEvents(ctx, rows)
	}
	if err == nil {
		err = tx.index(ctx, rows)
	}
	if err == nil {
		err = tx.trackRows(ctx, []*row{r})
	}
	if err != nil {
		return 0, err
	}
	return grown, tx.publishAgain(ctx, c)
}

// replaceCall replaces the call with the number old by r. If another transaction has changed or deleted it, it returns
// errChanged, so that this one starts over with the current state.
func (tx *transaction) replaceCall(ctx context.Context, old int64, r *row) (grown int64, err error) {
	var before int64
	if err := each(ctx, tx, into(&before), "SELECT octet_length(call) FROM calls WHERE n = $1 AND answer_id = $2",
		old, lookup(r.AnswerID)); err != nil {
		return 0, err
	}
	set := "UPDATE calls SET n = $3, provider = $4, refetched = $5, call = $6"
	args := []any{old, lookup(r.AnswerID), r.n, r.provider(), r.refetched, tx.text(r.encoded)}
	if tx.postgres {
		set += ", document = $7, terms = $8"
		args = append(args, r.document, r.terms)
	}
	switch n, err := tx.changed(ctx, set+" WHERE n = $1 AND answer_id = $2", args...); {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errChanged
	}
	return int64(len(r.encoded)) - before, tx.unindex(ctx, []int64{old})
}

// isLater reports whether the call is a later state of another's answer.
func (c *Call) isLater() bool { return c.Refetch || c.Of != "" }

// earlier returns the row of which r is a later state; nil if there is none, or if it has that state or a better one.
func (tx *transaction) earlier(ctx context.Context, r *row) (*row, error) {
	var found []numberedCall
	var err error
	switch {
	case r.Of != "":
		found, err = scanCalls(
			ctx, tx, callColumns+"WHERE tenant = $1 AND answer_id = $2", lookup(r.Tenant), lookup(r.Of),
		)
	case r.Answer.ID != "":
		found, err = list(ctx, tx, tx.engine, &filter{
			tenant: r.Tenant, before: math.MaxInt64, limit: 1,
			terms: termQuery{{{text: hashed(providerTerm, r.Upstream, r.Answer.ID)}}},
		})
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	old := &row{Call: found[0].Call, n: found[0].n, step: found[0].Step.Number, refetched: found[0].refetched}
	// Answer ids increase, so one that is put again does not exceed the last.
	if lookup(r.AnswerID) <= old.refetched || isStepBack(old.Answer, r.Answer) {
		return nil, nil
	}
	return old, nil
}

// isStepBack reports whether an answer would lose something by its later state: its end, or the citations that were
// found for the same text where the provider has none.
func isStepBack(old, later *ibid.Answer) bool {
	if !old.Complete {
		return false
	}
	return !later.Complete || later.Text == old.Text && len(later.Citations) == 0 && len(old.Citations) > 0
}
