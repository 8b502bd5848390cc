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

// What was recorded of a run cites sources, too: the passages that its steps used, and the citations of its final
// answer. They are pins like those of captured answers, with the run in the place of the answer, and are there from
// when they are recorded: first as a [Pin] that is Noted, and completed when the source is read.

// MaxPassages is how many passages and citations of what was recorded of a run are compared with their sources: the
// first that came.
const MaxPassages = 1_000

const (
	// ownRun begins what stands in the place of an answer's id for what was recorded of a run itself.
	ownRun = "run:"
	// ofStep begins what stands in the place of a citation's id for a passage that a step recorded.
	ofStep = "step:"
)

// runOwner is what pins are looked up by that are of what was recorded of a run itself.
func runOwner(run string) string { return lookup(ownRun + lookup(run)) }

// owner is what the pins of the same answer, or of the same run itself, are looked up by.
func (p *Pin) owner() string {
	if p.AnswerID == "" {
		return runOwner(p.Run)
	}
	return lookup(p.AnswerID)
}

// Noted reports whether the pin says only what a run recorded: its source was not read yet. See [Store.SetPins].
func (p *Pin) Noted() bool { return p.AnswerID == "" && p.Path == "" && p.Source.URL == "" }

// SetPins stores what pins say now that their source was read: Claim and Source. One that was not [Pin.Noted] any more,
// or is not there any more, is left out.
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
	return about(err, "completing what a run recorded of a source")
}

// withAddress returns the address of a document that can be read again; empty: it has none.
func withAddress(url string) string {
	if !strings.HasPrefix(url, "http") {
		return ""
	}
	clean, err := snapshot.CleanURL(url)
	if err != nil || len(clean) > maxAddress {
		return ""
	}
	return clean
}

// passage returns what a recorded passage is looked up by, and its words; false: it has no address, or says too little.
func passage(f *trail.Source) (address, claim, words string, ok bool) {
	address = withAddress(f.URL)
	words = snapshot.Normalize(f.Quote())
	if address == "" || snapshot.ShortExcerpt(words) {
		return "", "", "", false
	}
	return address, manifest.ClaimID(words), words, true
}

// quoted returns a pin of words that were quoted of the source at an address; nobody has read it yet.
func quoted(address, run, citation, words, origin string) Pin {
	return Pin{URL: address, Run: run, Citation: citation, Claim: manifest.ClaimSource{
		URL: address, Excerpt: &manifest.Excerpt{Exact: words}, ExcerptOrigin: origin,
	}}
}

// eachSource visits the sources of a step, and of the runs nested in it, with the steps that have them.
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

// counts reports whether a step draws on a source. Of one that says of none of its sources that it used them, as spans
// do, all count, unless it says that it used none.
func counts(s *trail.Step, f *trail.Source) bool {
	used := func(f trail.Source) bool { return f.Used || f.Cited }
	return used(*f) || !s.NoSources && !slices.ContainsFunc(s.Sources, used)
}

// passagesOf returns the pins of the passages that a record of a step has, each once.
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

// citationsOf returns the pins of the citations of the final answer that was recorded of a run.
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
		said := a.Text[claim.Start:claim.End]
		for k := range c.Refs {
			s := a.Source(c.Refs[k].Source)
			if s == nil || withAddress(s.URL) == "" {
				continue
			}
			words := snapshot.Normalize(text.Runes(c.Refs[k].Quote, trail.MaxQuote))
			p := quoted(withAddress(s.URL), run, c.ID, words, by)
			if snapshot.ShortExcerpt(words) {
				if said == "" {
					continue
				}
				p.Claim.Excerpt, p.Claim.ExcerptOrigin, p.Words = nil, "", text.Runes(said, trail.MaxQuote)
			}
			p.ClaimID, p.SourceID = manifest.ClaimID(said), s.ID
			pins = append(pins, p)
		}
	}
	return pins
}

// pinKey tells the pins of a run apart that are in no manifest.
type pinKey struct{ citation, claim, source string }

// putPassages stores the pins of records of a run, in the place of those that the same records had before, and notes
// their addresses.
func (tx *transaction) putPassages(ctx context.Context, run tenantID, records []*record) error {
	owns := make(map[string]bool, len(records)) // by the citations of their pins; empty: of the run itself
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
	there := 0
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
		there++
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
			if fresh[k] != p || there+len(pins) == MaxPassages {
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

// trackRecords notes what a batch of records of runs cite, and returns how many these are and the number of the last.
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
			if h, err := decodeHead(r.text); err == nil { // else whoever reads it is told
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

// withoutChecks takes what an agent says of checks out of a step that is to be stored: only the store knows. It changes
// nothing that others have.
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

// uncheckedAnswer returns an answer without what is said of checks of its citations.
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

// addChecks fills in what came of checking the citations of the run's answers and the passages of its steps: of each
// the worst.
func (b *trailBuilder) addChecks(ctx context.Context, s *Store, tenant string) error {
	owners, by := citing(b.calls)
	own := runOwner(b.out.ID)
	passages := map[pinKey]*ibid.Verification{}
	cited := map[pinKey]checkedCitation{} // by the answer and its citation, and the address
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

// checkedCitation is what came of checking one source of a citation. Of two, the one with the greater place is worse.
type checkedCitation struct {
	*ibid.Verification

	place int
}

// addCited fills in what came of checking a captured answer for the passages of its step that it cites. A citation
// without a quote is of the only passage that the step has of the document.
func addCited(s *trail.Step, one *trail.StepAnswer, cited map[pinKey]checkedCitation) {
	if one.ID == "" || one.Answer == nil {
		return
	}
	rows := map[string][]*trail.Source{} // by address
	for i := range s.Sources {
		if f := &s.Sources[i]; f.URL != "" {
			address := lookup(withAddress(f.URL))
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
			address := lookup(withAddress(source.URL))
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
