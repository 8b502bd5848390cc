package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

// MaxPin is how many bytes the record of a pin may have as JSON.
const MaxPin = 256 << 10

// Pin is a citation: one source of one claim as it was read, so that it can be compared with the source of today.
type Pin struct {
	ID       int64                // set by the store
	URL      string               // of the source, as snapshot.CleanURL returns it; pins are looked up by it
	AnswerID string               // the citing answer; empty for what was recorded of the run itself
	Run      string               // empty if the answer is in none
	Citation string               // ibid.Citation.ID; for a passage of a step, "step:" and the key of the step's record
	ClaimID  string               // manifest.Claim.ID
	SourceID string               // manifest.Source.ID
	Claim    manifest.ClaimSource // the excerpt
	Source   manifest.Source      // the document
	Path     string               // of the manifest that contains it; empty if none does
	Digest   string               // of that manifest's body, hexadecimal; empty if there is none
	// Words is the text of the answer that the source is cited for. It is set only on pins made from a recorded run,
	// where nothing was quoted.
	Words string
	// The result of the last check. AddPins ignores these fields.
	Status    verify.Status   // empty if unchecked
	CheckedAt time.Time       // zero if unchecked
	Detail    json.RawMessage // nil if there is none
}

// pinRecord holds what a pin's columns do not.
type pinRecord struct {
	URL    string               `json:"url"`
	Claim  manifest.ClaimSource `json:"claim"`
	Source manifest.Source      `json:"source"`
	Digest string               `json:"digest,omitempty"`
	Words  string               `json:"words,omitempty"`
}

func (p *Pin) record() pinRecord { return pinRecord{p.URL, p.Claim, p.Source, p.Digest, p.Words} }

// PinStatus is the result of comparing a pin with its source.
type PinStatus struct {
	ID        int64 // Pin.ID
	Status    verify.Status
	Counts    verify.Counts // how the status counts
	CheckedAt time.Time
	Detail    json.RawMessage // an explanation; nil if there is none
}

// severity ranks how statuses count: the highest rank of several applies. 0 is the rank of what was not checked.
func severity(c verify.Counts) int64 {
	switch c {
	case verify.CountPass:
		return rankPassed
	case verify.CountInfo:
		return rankPassed + 1
	case verify.CountWarning:
		return rankPassed + 2
	case verify.CountFailure:
		return rankFailed
	default: // an unknown status passes for nothing
		return rankUnverifiable
	}
}

// The ranks of pins. Those from rankPassed to below rankUnverifiable have passed.
const (
	rankPassed       = 1
	rankUnverifiable = 4
	rankFailed       = 5
)

// AddPins records the citations of answers whose manifests are not published. Existing pins stay as they are, and pins
// of answers that do not, or no longer, exist are left out.
func (s *Store) AddPins(ctx context.Context, tenant string, pins []Pin) error {
	err := s.update(ctx, func(tx *transaction) error {
		existing, err := tx.pinsOfCalls(ctx, lookup(tenant), pins)
		if err != nil {
			return err
		}
		return tx.putPins(ctx, lookup(tenant), &published{}, existing)
	})
	return wrap(err, "recording citations")
}

// pinsOfCalls returns the pins whose answers exist, and keeps those from being deleted.
func (tx *transaction) pinsOfCalls(ctx context.Context, tenant string, pins []Pin) ([]Pin, error) {
	existing := map[string]bool{}
	ids := make([][]any, 0, len(pins))
	for i := range pins {
		if id := lookup(pins[i].AnswerID); !existing[id] {
			existing[id] = true
			ids = append(ids, []any{tenant, id})
		}
	}
	clear(existing)
	t := &tuples{
		before: "SELECT answer_id FROM calls WHERE (tenant, answer_id) IN (VALUES ",
		row:    "($, $)",
		after:  ") ORDER BY n" + tx.ifPostgres(" FOR KEY SHARE"),
	}
	err := tx.list(ctx, t, ids, func(rows *sql.Rows) error {
		id := ""
		err := rows.Scan(&id)
		existing[id] = true
		return err
	})
	return slices.DeleteFunc(slices.Clone(pins), func(p Pin) bool { return !existing[lookup(p.AnswerID)] }), err
}

// putPins stores the pins of a manifest, which replace those of the manifest that it supersedes and those in no
// manifest.
func (tx *transaction) putPins(ctx context.Context, tenant string, of *published, pins []Pin) error {
	answers, err := tx.insertPins(ctx, tenant, of.path, pins)
	if err != nil || of.path == "" {
		return err
	}
	if of.answer != "" {
		answers[of.answer] = true
	}
	return tx.replacePins(ctx, tenant, of.path, of.supersedes, answers)
}

// insertPins stores new pins and returns the answers they belong to.
func (tx *transaction) insertPins(ctx context.Context, tenant, path string, pins []Pin) (map[string]bool, error) {
	answers := map[string]bool{}
	if len(pins) == 0 {
		return answers, nil
	}
	next, err := tx.nextNumbers(ctx, "calls_n", len(pins))
	if err != nil {
		return nil, err
	}
	values := make([][]any, 0, len(pins))
	for i := range pins {
		p := &pins[i]
		text, err := json.Marshal(p.record())
		if err != nil {
			return nil, err
		}
		if len(text) > MaxPin {
			return nil, refuse(
				ErrLimit, "%d bytes of a citation of %.100s are more than the %d that are kept", len(text), p.URL,
				MaxPin,
			)
		}
		if p.AnswerID != "" {
			answers[lookup(p.AnswerID)] = true
		}
		values = append(values, []any{
			next[i], tenant, lookup(p.URL), p.owner(), lookup(p.Run), lookup(p.Citation), lookup(p.ClaimID),
			lookup(p.SourceID), path, 0, "", 0, "",
			plain(string(text)),
		})
	}
	return answers, tx.execAll(ctx, tx.insertion(
		"pins", "n, tenant, url, answer_id, run, citation, claim, source, path, rank, status, checked, detail, pin",
		" ON CONFLICT (tenant, answer_id, path, citation, claim, source) DO NOTHING",
	), values)
}

// replacePins removes the pins that those of path replace: of the manifest that it supersedes, and of answers in no
// manifest. Equal pins keep the result of the last check.
func (tx *transaction) replacePins(
	ctx context.Context, tenant, path, supersedes string, answers map[string]bool,
) error {
	const same = "FROM pins o WHERE o.tenant = pins.tenant AND o.answer_id = pins.answer_id AND o.path IN ('', " +
		"$1) AND o.citation = pins.citation AND o.claim = pins.claim AND o.source = pins.source AND o.rank > 0"
	err := tx.exec(
		ctx,
		"UPDATE pins SET (rank, status, checked, detail) = (SELECT o.rank, o.status, o.checked, o.detail "+same+
			" ORDER BY o.checked DESC LIMIT 1) WHERE tenant = $2 AND path = $3 AND rank = 0 AND EXISTS "+
			"(SELECT 1 "+same+")",
		supersedes, tenant, path,
	)
	if err != nil {
		return err
	}
	if supersedes != "" {
		if err := tx.exec(ctx, "DELETE FROM pins WHERE tenant = $1 AND path = $2", tenant, supersedes); err != nil {
			return err
		}
	}
	for answer := range answers {
		if err := tx.exec(
			ctx, "DELETE FROM pins WHERE tenant = $1 AND answer_id = $2 AND path = ''", tenant, answer,
		); err != nil {
			return err
		}
	}
	return nil
}

// Pins returns the citations of a source, by its address as in [Pin].URL, oldest first.
func (s *Store) Pins(ctx context.Context, tenant, url string) ([]Pin, error) {
	list, err := scanPins(ctx, s.db, "tenant = $1 AND url = $2 ORDER BY n", lookup(tenant), lookup(url))
	return list, wrap(err, "reading citations of %.200s", url)
}

// AnswerPins returns the recorded citations of an answer, each with the result of its last check, oldest first.
func (s *Store) AnswerPins(ctx context.Context, tenant, answerID string) ([]Pin, error) {
	list, err := scanPins(ctx, s.db, "tenant = $1 AND answer_id = $2 ORDER BY n", lookup(tenant), lookup(answerID))
	return list, wrap(err, "reading citations of answer %.200s", answerID)
}

func scanPins(ctx context.Context, q querier, where string, args ...any) ([]Pin, error) {
	return collect(ctx, q, func(rows *sql.Rows, p *Pin) error {
		var checked int64
		var detail, text []byte
		err := rows.Scan(
			&p.ID, &p.AnswerID, &p.Run, &p.Citation, &p.ClaimID, &p.SourceID, &p.Path, &p.Status, &checked, &detail,
			&text,
		)
		if err != nil {
			return err
		}
		var record pinRecord
		if err := decode(text, &record, "what was cited"); err != nil {
			return err
		}
		if strings.HasPrefix(p.AnswerID, ownRun) {
			p.AnswerID = ""
		}
		p.URL, p.Claim, p.Source, p.Digest = record.URL, record.Claim, record.Source, record.Digest
		p.Words = record.Words
		p.CheckedAt = instant(checked)
		if len(detail) > 0 {
			p.Detail = detail
		}
		return nil
	}, "SELECT n, answer_id, run, citation, claim, source, path, status, checked, detail, pin FROM pins WHERE "+where,
		args...)
}

// EventVerification is the kind of event for a change of the status that readers see of a citation. Its data is an
// object with answer_id and citation (both null for passages recorded by a step of the run), source_url and claim_id
// (of the source that determines the status), status, previous (null if unchecked before), checked_at and detail.
const EventVerification = "verification"

// verificationEvent is the data of an [EventVerification].
type verificationEvent struct {
	AnswerID  *string         `json:"answer_id"`
	Citation  *string         `json:"citation"`
	SourceURL string          `json:"source_url"`
	ClaimID   string          `json:"claim_id"`
	Status    verify.Status   `json:"status"`
	Previous  *string         `json:"previous"`
	CheckedAt time.Time       `json:"checked_at"`
	Detail    json.RawMessage `json:"detail"`
}

// SetStatuses stores the results of checks, all or none, and writes events for the citations whose visible status
// changes: see [ibid.Citation.Verification]. Pins that no longer exist are left out.
func (s *Store) SetStatuses(ctx context.Context, tenant string, list []PinStatus) error {
	if len(list) == 0 {
		return nil
	}
	err := s.update(ctx, func(tx *transaction) error { return tx.setStatuses(ctx, lookup(tenant), list) })
	return wrap(err, "storing check results")
}

func (tx *transaction) setStatuses(ctx context.Context, tenant string, list []PinStatus) error {
	cited, err := tx.citations(ctx, tenant, list)
	if err != nil {
		return err
	}
	failed := map[int64]bool{}
	for i := range list {
		status := &list[i]
		failed[status.ID] = status.Counts == verify.CountFailure
		if err := tx.exec(
			ctx, "UPDATE pins SET rank = $1, status = $2, checked = $3, detail = $4 WHERE tenant = $5 AND n = $6",
			severity(status.Counts), lookup(string(status.Status)), knownMicros(status.CheckedAt),
			plain(string(status.Detail)), tenant, status.ID,
		); err != nil {
			return err
		}
	}
	var events []Event
	var alerts []Alert
	for i := range cited {
		before := &cited[i]
		p, err := tx.seen(ctx, tenant, before)
		if err != nil {
			return err
		}
		if p == nil || p.Status == before.Status {
			continue
		}
		citation := nullable(p.Citation)
		if p.AnswerID == "" && strings.HasPrefix(p.Citation, ofStep) {
			citation = nil
		}
		event, err := newEvent(tenant, p.Run, EventVerification, &verificationEvent{
			nullable(p.AnswerID), citation, p.URL, p.ClaimID, p.Status, nullable(string(before.Status)),
			p.CheckedAt.UTC(), p.Detail,
		})
		if err != nil {
			return err
		}
		events = append(events, event)
		if failed[p.ID] {
			alerts = append(alerts, failedAlert(tenant, p))
		}
	}
	if _, err := tx.addAlerts(ctx, alerts); err != nil {
		return err
	}
	return tx.addRunEvents(ctx, events)
}

// citations returns the citations of pins, each once, with the status that readers see, and locks their runs: all
// transactions lock runs before what belongs to them.
func (tx *transaction) citations(ctx context.Context, tenant string, list []PinStatus) ([]Pin, error) {
	var cited []Pin
	known, runs := map[[2]string]bool{}, map[tenantID]bool{}
	for i := range list {
		pins, err := scanPins(ctx, tx, "tenant = $1 AND n = $2", tenant, list[i].ID)
		if err != nil {
			return nil, err
		}
		for _, p := range pins {
			if of := [2]string{p.owner(), p.Citation}; !known[of] {
				known[of] = true
				cited = append(cited, Pin{AnswerID: p.AnswerID, Run: p.Run, Citation: p.Citation})
			}
			runs[tenantID{tenant, p.Run}] = true
		}
	}
	for _, run := range slices.SortedFunc(maps.Keys(runs), tenantID.compare) {
		if _, err := tx.hasRun(ctx, run); err != nil {
			return nil, err
		}
	}
	for i := range cited {
		p, err := tx.seen(ctx, tenant, &cited[i])
		if err != nil {
			return nil, err
		}
		if p != nil {
			cited[i].Status = p.Status
		}
	}
	return cited, nil
}

// seen returns the pin that determines the status readers see of the citation of another pin, as in fillVerification;
// nil if none was checked.
func (tx *transaction) seen(ctx context.Context, tenant string, of *Pin) (*Pin, error) {
	pins, err := scanPins(ctx, tx, "tenant = $1 AND answer_id = $2 AND citation = $3 AND rank > 0 "+
		"ORDER BY rank + 0 DESC, checked DESC, n DESC LIMIT 1", tenant, of.owner(), of.Citation)
	if err != nil || len(pins) == 0 {
		return nil, err
	}
	return &pins[0], nil
}

// check is the result of checking a pin. Its names are in the form of lookup.
type check struct {
	answer, citation, claim, source, url string
	ibid.Verification
}

// checks calls visit with the results for the pins of owners, which are answers or runs in the form of [Pin.owner],
// from the best to the worst, and the latest last among equals.
func (s *Store) checks(ctx context.Context, tenant string, owners []string, visit func(*check)) error {
	for part := range slices.Chunk(owners, MaxLimit) {
		c := conditions{args: []any{lookup(tenant)}}
		in(&c, "answer_id", part)
		// Not sorted by rank itself: SQLite would use the index on it and read all of the tenant's pins.
		err := each(ctx, s.db, func(rows *sql.Rows) error {
			var one check
			var checked int64
			err := rows.Scan(&one.answer, &one.citation, &one.claim, &one.source, &one.url, &one.Status, &checked)
			one.CheckedAt = instant(checked)
			visit(&one)
			return err
		}, "SELECT answer_id, citation, claim, source, url, status, checked FROM pins WHERE tenant = $1 AND rank > 0 "+
			"AND "+c.text()+" ORDER BY rank + 0, checked, n", c.args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// fillVerification sets the verification of the citations of one tenant's calls: the worst result among the sources of
// each citation.
func (s *Store) fillVerification(ctx context.Context, tenant string, calls []*Call) error {
	ids, by := citing(calls)
	return s.checks(ctx, tenant, ids, func(c *check) { c.fill(by[c.answer]) })
}

// citing returns the answers of calls that have citations, by lookup key.
func citing(calls []*Call) (ids []string, by map[string]*ibid.Answer) {
	by = make(map[string]*ibid.Answer, len(calls))
	for _, call := range calls {
		if id := lookup(call.AnswerID); len(call.Answer.Citations) > 0 {
			ids = append(ids, id)
			by[id] = call.Answer
		}
	}
	return ids, by
}

// fill sets the result on the citation of a that it belongs to, if there is one.
func (c *check) fill(a *ibid.Answer) {
	for i := range a.Citations {
		if lookup(a.Citations[i].ID) == c.citation {
			a.Citations[i].Verification = &ibid.Verification{Status: c.Status, CheckedAt: c.CheckedAt}
		}
	}
}

// Values of [Query].Verification besides a status.
const (
	VerifiedFailed       = "failed"       // a check failed
	VerifiedUnverifiable = "unverifiable" // a source could not be checked, and none failed
	VerifiedPassed       = "passed"       // all checks passed
	VerifiedUnchecked    = "unchecked"    // nothing was checked
)

// verification adds the conditions of [Query].Verification on calls. A value that few answers have is looked up once;
// one that most have is tested answer by answer until the page is full.
func (c *conditions) verification(what string) {
	const (
		some = "answer_id IN (SELECT answer_id FROM pins WHERE tenant = $1 AND rank > 0"
		its  = "EXISTS (SELECT 1 FROM pins WHERE pins.tenant = calls.tenant AND pins.answer_id = " +
			"calls.answer_id AND rank > 0"
	)
	switch what {
	case "":
	case VerifiedUnchecked:
		c.where = append(c.where, "NOT "+its+")")
	case VerifiedFailed:
		c.and(some+" AND rank = $)", rankFailed)
	case VerifiedUnverifiable:
		c.and(some+" AND rank = $)", rankUnverifiable)
		c.and("NOT "+its+" AND rank > $)", rankUnverifiable)
	case VerifiedPassed:
		c.and(its+" AND rank < $)", rankUnverifiable)
		c.and("NOT "+its+" AND rank >= $)", rankUnverifiable)
	default:
		c.and(some+" AND status = $)", lookup(what))
	}
}

const (
	// maxAddress is how many bytes an address to be read again may have. Longer ones are not addresses of documents.
	maxAddress = 8 << 10
	// trackBatch is how many answers, or records of runs, TrackStored processes in one transaction.
	trackBatch = 256
	// trackMark records the progress of TrackStored through answers, trackRecordsMark through records of runs.
	trackMark        = "tracked"
	trackRecordsMark = "tracked records"
)

// Recheck is a source to be read again: see [Store.DueRechecks].
type Recheck struct {
	Tenant   string
	URL      string    // as snapshot.CleanURL returns it
	Checked  time.Time // when it was last read; zero if never
	Failures int       // failed attempts since then

	checked int64
	lease
}

// CitedAddresses returns the addresses of the web sources that an answer cites, as [Pin].URL has them, sorted.
func CitedAddresses(a *ibid.Answer) []string {
	cited := map[string]bool{}
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			cited[ref.Source] = true
		}
	}
	var list []string
	for i := range a.Sources {
		if s := &a.Sources[i]; cited[s.ID] {
			if address := recheckAddress(s.URL); address != "" {
				list = append(list, address)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// trackRows tracks the addresses that rows cite.
func (tx *transaction) trackRows(ctx context.Context, rows []*row) error {
	var list []tenantID
	for _, r := range rows {
		for _, address := range r.cited {
			list = append(list, tenantID{lookup(r.Tenant), address})
		}
	}
	return tx.track(ctx, list, " DO NOTHING")
}

// againAfter is how long after its last reading a source is read again because a run recorded more of it.
const againAfter = 15 * time.Minute

// trackAgain ends a statement for addresses recorded by runs. Whoever is reading one of them now may have missed what
// is being recorded, so it becomes due again.
func trackAgain() string {
	early := "rechecks.checked + " + strconv.FormatInt(againAfter.Microseconds(), 10)
	return " DO UPDATE SET due = CASE WHEN rechecks.due <= excluded.due OR rechecks.due <= " + early +
		" THEN rechecks.due WHEN " + early + " > excluded.due THEN " + early + " ELSE excluded.due END"
}

// track stores addresses of tenants to be read again. after is the conflict action for those already stored.
func (tx *transaction) track(ctx context.Context, list []tenantID, after string) error {
	due := micros(tx.now())
	slices.SortFunc(list, tenantID.compare) // the order in which all transactions lock them
	list = slices.Compact(list)
	values := rowsOf(list, func(l tenantID) []any { return []any{l.tenant, lookup(l.id), plain(l.id), due, 0, 0} })
	return tx.execAll(ctx, tx.insertion(
		"rechecks", "tenant, url, address, due, checked, failures", " ON CONFLICT (tenant, url)"+after,
	), values)
}

// TrackStored tracks the web addresses cited by answers and recorded by runs that were stored while [Options.Track] was
// off, and returns how many answers and records it processed. It resumes where it ended the last time, in small
// transactions.
func (s *Store) TrackStored(ctx context.Context) (int, error) {
	sum := 0
	for _, part := range []struct {
		mark  string
		track func(*transaction, context.Context, int64) (int, int64, error)
	}{{trackMark, (*transaction).trackStored}, {trackRecordsMark, (*transaction).trackRecords}} {
		for n := 1; n > 0; sum += n {
			err := s.update(ctx, func(tx *transaction) (err error) {
				var mark int64
				if err := each(ctx, tx, into(&mark), "SELECT value FROM marks WHERE name = $1", part.mark); err != nil {
					return err
				}
				if n, mark, err = part.track(tx, ctx, mark); err != nil || n == 0 {
					return err
				}
				return tx.execAll(ctx, tx.insertion(
					"marks", "name, value", " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
				), [][]any{{part.mark, mark}})
			})
			if err != nil {
				return sum, wrap(err, "tracking stored sources")
			}
		}
	}
	return sum, nil
}

// trackStored tracks the citations of a batch of answers, and returns their count and the number of the last.
func (tx *transaction) trackStored(ctx context.Context, mark int64) (int, int64, error) {
	n := 0
	var list []*row
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var c numberedCall
		err := scanCall(rows, &c)
		mark = max(mark, c.n)
		n++
		if errors.Is(err, errDamaged) { // reported to whoever reads it
			return nil
		}
		if err == nil {
			list = append(list, &row{Call: c.Call, cited: CitedAddresses(c.Answer)})
		}
		return err
	}, callColumns+"WHERE n > $1 ORDER BY n LIMIT $2", mark, trackBatch)
	if err == nil {
		err = tx.trackRows(ctx, list)
	}
	return n, mark, err
}

// DueRechecks returns up to limit sources that are due to be read again, longest overdue first, and leases each: for
// that long, no other caller on any node gets it. Each is ended by [Store.SetRecheck]. One during which [MaxDeaths]
// processes ended is set aside: only [Store.RecheckNow] makes it due again.
func (s *Store) DueRechecks(ctx context.Context, limit int, lease time.Duration) ([]Recheck, error) {
	list, err := claimPending(ctx, s, limit, lease, &pendingRechecks)
	return list, wrap(err, "looking for sources to read again")
}

var pendingRechecks = pending[Recheck]{
	table:   "rechecks",
	columns: "tenant, address, checked, failures",
	order:   "due",
	scan:    func(r *Recheck) []any { return []any{&r.Tenant, &r.URL, &r.checked, &r.Failures} },
	ready:   func(r *Recheck) error { r.Checked = instant(r.checked); return nil },
	lease:   func(r *Recheck) *lease { return &r.lease },
	key: func(r *Recheck) (string, []any) {
		return "tenant = $4 AND url = $5", []any{lookup(r.Tenant), lookup(r.URL)}
	},
	alert: func(r *Recheck) *Alert {
		return &Alert{
			Tenant: r.Tenant, Subject: AlertSubject{Source: r.URL},
			Summary: "Reading a source at " + hostOf(r.URL) + " again",
		}
	},
}

// RecheckNow makes the sources that an answer cites due at once, unless they are not tracked or were read within the
// given time, and returns how many are. They are read by whoever claims them next: see [Store.DueRechecks]. What was
// set aside of it, sources and manifests, is tried again.
func (s *Store) RecheckNow(ctx context.Context, c *Call, within time.Duration) (int, error) {
	now, tenant := s.now(), lookup(c.Tenant)
	due := 0
	err := s.update(ctx, func(tx *transaction) error {
		due = 0
		for _, url := range CitedAddresses(c.Answer) {
			n, err := tx.changed(
				ctx,
				"UPDATE rechecks SET due = $1, deaths = CASE WHEN deaths < $2 THEN deaths ELSE 0 END "+
					"WHERE tenant = $3 AND url = $4 AND checked < $5",
				micros(now), MaxDeaths, tenant, lookup(url), micros(now.Add(-within)),
			)
			if err != nil {
				return err
			}
			due += n
		}
		return tx.exec(
			ctx,
			"UPDATE publications SET state = '"+statePending+"', due = $1, attempts = 0, error = ''"+released+
				" WHERE tenant = $2 AND (answer_id = $3 OR answer_id = '' AND run = $4 AND run <> '') "+
				"AND state = '"+stateFailed+"' AND deaths >= $5",
			micros(now), tenant, lookup(c.AnswerID), lookup(c.Run), MaxDeaths,
		)
	})
	return due, wrap(err, "rescheduling sources")
}

// SetRecheck sets when a source is read next, and whether reading it has failed. If next is zero, it is not read again
// until another answer cites it. If the lease has ended and another caller holds it, nothing changes.
func (s *Store) SetRecheck(ctx context.Context, r *Recheck, next time.Time, failed bool) error {
	args := []any{lookup(r.Tenant), lookup(r.URL), r.claim}
	query := "DELETE FROM rechecks"
	switch {
	case next.IsZero():
	case failed:
		query = "UPDATE rechecks SET due = $4, failures = failures + 1" + released
		args = append(args, micros(next))
	default:
		query = "UPDATE rechecks SET due = $4, failures = 0, checked = $5" + released
		args = append(args, micros(next), micros(s.now()))
	}
	_, err := s.change(ctx, query+" WHERE tenant = $1 AND url = $2 AND due = $3", args...)
	return wrap(err, "rescheduling %.200s", r.URL)
}
