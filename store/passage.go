package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/trail"
)

// A recorded run cites sources, too: the passages that its steps used, and the citations of its final answer. They are
// pins like those of captured answers, with the run in place of the answer. They exist as soon as they are recorded,
// first as a [Pin] that is Noted, and are completed when the source is read.

// MaxPassages is how many recorded passages and citations of a run are compared with their sources, in the order in
// which they came.
const MaxPassages = 1_000

const (
	// ownRun begins the value of answer_id in pins of the recorded run itself.
	ownRun = "run:"
	// ofStep begins the citation id of a passage that a step recorded.
	ofStep = "step:"
)

// runOwner returns the owner of the pins of a recorded run.
func runOwner(run string) string { return lookup(ownRun + lookup(run)) }

// owner returns the lookup key shared by all pins of the same answer, or of the same recorded run.
func (p *Pin) owner() string {
	if p.AnswerID == "" {
		return runOwner(p.Run)
	}
	return lookup(p.AnswerID)
}

// Noted reports whether the pin has only what a run recorded: its source was not read yet. See [Store.SetPins].
func (p *Pin) Noted() bool { return p.AnswerID == "" && p.Path == "" && p.Source.URL == "" }

// SetPins stores the Claim and Source of pins whose source has now been read. Pins that are no longer [Pin.Noted], or
// no longer exist, are left out.
func (s *Store) SetPins(ctx context.Context, tenant string, pins []Pin) error {
	err := s.update(ctx, func(tx *transaction) error {
		for i := range pins {
			text, err := json.Marshal(pins[i].record())
			if err != nil {
				return err
			}
			if err := tx.exec(
				ctx, "UPDATE pins SET pin = $1 WHERE tenant = $2 AND n = $3 AND path = '' AND rank = 0",
				plain(string(text)), lookup(tenant), pins[i].ID,
			); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "completing recorded citations")
}

// recheckAddress returns the address from which a document can be read again; empty if it has none.
func recheckAddress(url string) string {
	if !strings.HasPrefix(url, "http") {
		return ""
	}
	clean, err := snapshot.CleanURL(url)
	if err != nil || len(clean) > maxAddress {
		return ""
	}
	return clean
}

// passage returns the lookup keys and the text of a recorded passage; false if it has no address or is too short.
func passage(f *trail.Source) (address, claim, words string, ok bool) {
	address = recheckAddress(f.URL)
	words = snapshot.Normalize(f.Quote())
	if address == "" || snapshot.ShortExcerpt(words) {
		return "", "", "", false
	}
	return address, manifest.ClaimID(words), words, true
}

// quoted returns a pin for a quotation from the source at an address that is still to be read.
func quoted(address, run, citation, words, origin string) Pin {
	return Pin{URL: address, Run: run, Citation: citation, Claim: manifest.ClaimSource{
		URL: address, Excerpt: &manifest.Excerpt{Exact: words}, ExcerptOrigin: origin,
	}}
}

// eachSource visits the sources of a step and of the runs nested in it, each with its step.
func eachSource(s *trail.Step, depth int, visit func(*trail.Step, *trail.Source)) {
	for i := range s.Sources {
		visit(s, &s.Sources[i])
	}
	if s.Nested == nil || depth == trail.MaxNested {
		return
	}
	for i := range s.Nested.Steps {
		eachSource(&s.Nested.Steps[i], depth+1, visit)
	}
}

// counts reports whether a step draws on a source. If a step marks none of its sources as used, as spans do, all count,
// unless it states that it used none.
func counts(s *trail.Step, f *trail.Source) bool {
	used := func(f trail.Source) bool { return f.Used || f.Cited }
	return used(*f) || !s.NoSources && !slices.ContainsFunc(s.Sources, used)
}

// passagesOf returns the pins of the passages in a step's record, each once.
func passagesOf(run, record string, s *trail.Step) []Pin {
	var pins []Pin
	seen := map[[2]string]bool{}
	eachSource(s, 0, func(s *trail.Step, f *trail.Source) {
		address, claim, words, ok := passage(f)
		if key := [2]string{address, claim}; ok && counts(s, f) && !seen[key] {
			seen[key] = true
			p := quoted(address, run, ofStep+record, words, manifest.OriginPublisher)
			p.ClaimID, p.SourceID = claim, address
			pins = append(pins, p)
		}
	})
	return pins
}

// citationsOf returns the pins of the citations of a run's recorded final answer.
func citationsOf(run string, a *ibid.Answer) []Pin {
	if a == nil {
		return nil
	}
	var pins []Pin
	by := manifest.OriginProvider
	if a.Provider == "" { // the agent wrote it
		by = manifest.OriginPublisher
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		claim := c.Claim
		if claim.Len() == 0 {
			claim = c.Span
		}
		claimText := a.Text[claim.Start:claim.End]
		for k := range c.Refs {
			s := a.Source(c.Refs[k].Source)
			if s == nil || recheckAddress(s.URL) == "" {
				continue
			}
			words := snapshot.Normalize(text.Runes(c.Refs[k].Quote, trail.MaxQuote))
			p := quoted(recheckAddress(s.URL), run, c.ID, words, by)
			if snapshot.ShortExcerpt(words) {
				if claimText == "" {
					continue
				}
				p.Claim.Excerpt, p.Claim.ExcerptOrigin, p.Words = nil, "", text.Runes(claimText, trail.MaxQuote)
			}
			p.ClaimID, p.SourceID = manifest.ClaimID(claimText), s.ID
			pins = append(pins, p)
		}
	}
	return pins
}

// pinKey identifies a pin of a run that is in no manifest.
type pinKey struct{ citation, claim, source string }

// putPassages stores the pins of a run's records, replacing those that the same records had before, and tracks their
// addresses.
func (tx *transaction) putPassages(ctx context.Context, run tenantID, records []*record) error {
	owns := make(map[string]bool, len(records)) // by the citations of their pins; empty for the run itself
	fresh := map[pinKey]*Pin{}
	for _, r := range records {
		if r.id == headID {
			owns[""] = true
		} else {
			owns[lookup(ofStep+r.id)] = true
		}
		for i := range r.pins {
			p := &r.pins[i]
			fresh[pinKey{lookup(p.Citation), lookup(p.ClaimID), lookup(p.SourceID)}] = p
		}
	}
	kept := 0
	var stale []int64
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var n int64
		var k pinKey
		if err := rows.Scan(&n, &k.citation, &k.claim, &k.source); err != nil {
			return err
		}
		of := k.citation
		if !strings.HasPrefix(of, ofStep) {
			of = ""
		}
		if _, again := fresh[k]; !again && owns[of] {
			stale = append(stale, n)
			return nil
		}
		kept++
		delete(fresh, k)
		return nil
	}, "SELECT n, citation, claim, source FROM pins WHERE tenant = $1 AND answer_id = $2 AND path = ''",
		run.tenant, runOwner(run.id))
	if err != nil {
		return err
	}
	for _, n := range stale {
		if err := tx.exec(ctx, "DELETE FROM pins WHERE tenant = $1 AND n = $2", run.tenant, n); err != nil {
			return err
		}
	}
	var pins []Pin
	var addresses []tenantID
	for _, r := range records { // in their order
		for i := range r.pins {
			p := &r.pins[i]
			k := pinKey{lookup(p.Citation), lookup(p.ClaimID), lookup(p.SourceID)}
			if fresh[k] != p || kept+len(pins) == MaxPassages {
				continue
			}
			pins, addresses = append(pins, *p), append(addresses, tenantID{run.tenant, p.URL})
		}
	}
	if _, err := tx.insertPins(ctx, run.tenant, "", pins); err != nil {
		return err
	}
	return tx.track(ctx, addresses, trackAgain())
}

// trackRecords tracks the citations of a batch of records of runs, and returns their count and the number of the last.
func (tx *transaction) trackRecords(ctx context.Context, mark int64) (int, int64, error) {
	n := 0
	by := map[tenantID][]*record{}
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var run tenantID
		r := &record{}
		if err := rows.Scan(&r.n, &r.id, &r.text, &run.tenant, &run.id); err != nil {
			return err
		}
		mark = max(mark, r.n)
		n++
		if r.id == headID {
			if h, err := decodeHead(r.text); err == nil { // errors are reported to whoever reads it
				r.pins = citationsOf(run.id, h.Final)
			}
		} else if s, err := decodeStep(r.text); err == nil {
			r.pins = passagesOf(run.id, r.id, s)
		}
		if len(r.pins) > 0 {
			by[run] = append(by[run], r)
		}
		return nil
	}, "SELECT n, id, record, tenant, run FROM records WHERE n > $1 ORDER BY n LIMIT $2"+tx.ifPostgres(" FOR SHARE"),
		mark, trackBatch)
	for _, run := range slices.SortedFunc(maps.Keys(by), tenantID.compare) {
		if err == nil {
			err = tx.putPassages(ctx, run, by[run])
		}
	}
	return n, mark, err
}

// withoutChecks removes results of checks that an agent reports from a step to be stored: only the store's own count.
// It does not modify data shared with others.
func withoutChecks(s *trail.Step, depth int) {
	s.Sources, s.Answers = slices.Clone(s.Sources), slices.Clone(s.Answers)
	for i := range s.Sources {
		s.Sources[i].Verification = nil
	}
	for i := range s.Answers {
		s.Answers[i].Answer = uncheckedAnswer(s.Answers[i].Answer)
	}
	if s.Nested == nil || depth == trail.MaxNested {
		return
	}
	nested := *s.Nested
	nested.Final, nested.Steps = uncheckedAnswer(nested.Final), slices.Clone(nested.Steps)
	for i := range nested.Steps {
		withoutChecks(&nested.Steps[i], depth+1)
	}
	s.Nested = &nested
}

// uncheckedAnswer returns an answer without the results of checks of its citations.
func uncheckedAnswer(a *ibid.Answer) *ibid.Answer {
	if a == nil || !slices.ContainsFunc(a.Citations, func(c ibid.Citation) bool { return c.Verification != nil }) {
		return a
	}
	copied := *a
	copied.Citations = slices.Clone(a.Citations)
	for i := range copied.Citations {
		copied.Citations[i].Verification = nil
	}
	return &copied
}

// addChecks fills in the results of checking the citations of the run's answers and the passages of its steps: the
// worst for each.
func (b *trailBuilder) addChecks(ctx context.Context, s *Store, tenant string) error {
	owners, by := citing(b.calls)
	own := runOwner(b.out.ID)
	passages := map[pinKey]*ibid.Verification{}
	cited := map[pinKey]checkedCitation{} // by the answer, its citation and the address
	place := 0
	err := s.checks(ctx, tenant, append(owners, own), func(c *check) {
		v := c.Verification
		place++
		switch {
		case c.answer != own:
			c.fill(by[c.answer])
			cited[pinKey{c.answer, c.citation, c.url}] = checkedCitation{&v, place}
		case strings.HasPrefix(c.citation, ofStep):
			passages[pinKey{claim: c.claim, source: c.source}] = &v
		case b.head.Final != nil:
			c.fill(b.head.Final)
		}
	})
	if err != nil || len(passages)+len(cited) == 0 {
		return err
	}
	for i := range b.out.Steps {
		eachSource(&b.out.Steps[i], 0, func(s *trail.Step, f *trail.Source) {
			if address, claim, _, ok := passage(f); ok && f.Verification == nil {
				f.Verification = passages[pinKey{claim: claim, source: lookup(address)}]
			}
		})
		for k := range b.out.Steps[i].Answers {
			addCited(&b.out.Steps[i], &b.out.Steps[i].Answers[k], cited)
		}
	}
	return nil
}

// checkedCitation is the result of checking one source of a citation. Of two, the one with the greater place is worse.
type checkedCitation struct {
	*ibid.Verification

	place int
}

// addCited fills in the results of a captured answer's checks for the passages of its step that it cites. A citation
// without a quote counts only if the step has a single passage of the document.
func addCited(s *trail.Step, one *trail.StepAnswer, cited map[pinKey]checkedCitation) {
	if one.ID == "" || one.Answer == nil {
		return
	}
	rows := map[string][]*trail.Source{} // by address
	for i := range s.Sources {
		if f := &s.Sources[i]; f.URL != "" {
			address := lookup(recheckAddress(f.URL))
			rows[address] = append(rows[address], f)
		}
	}
	worst := map[*trail.Source]int{}
	for i := range one.Answer.Citations {
		c := &one.Answer.Citations[i]
		for _, ref := range c.Refs {
			source := one.Answer.Source(ref.Source)
			if source == nil {
				continue
			}
			address := lookup(recheckAddress(source.URL))
			found := cited[pinKey{lookup(one.ID), lookup(c.ID), address}]
			for _, f := range rows[address] {
				if found.place > worst[f] &&
					(len(rows[address]) == 1 || ref.Quote != "" && strings.Contains(f.Content, ref.Quote)) {
					f.Verification, worst[f] = found.Verification, found.place
				}
			}
		}
	}
}
