package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// The defaults of how long a verdict on a source is good for.
const (
	defaultSourceTTL  = 24 * time.Hour
	defaultFailureTTL = 15 * time.Minute
)

// cited is a source of a claim, by its place in the manifest.
type cited struct{ claim, source int }

// checkClaims looks at the sources of all claims, at whether their excerpts support them, and at the manifests of the
// sources.
func (m *checked) checkClaims(ctx context.Context) error {
	reports := make([]ClaimReport, len(m.man.Claims))
	for i := range reports {
		c := &m.man.Claims[i]
		reports[i] = ClaimReport{
			Manifest: m.out.URL, ID: c.ID, Text: c.Text, Sources: make([]SourceReport, len(c.Sources)),
		}
		m.addToDo("source", len(c.Sources))
	}
	m.addToDo("support", 1)
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, all := range m.documents() {
		group.Go(func() error {
			var text searched
			for _, at := range all {
				cs := &m.man.Claims[at.claim].Sources[at.source]
				var err error
				if reports[at.claim].Sources[at.source], err = m.checkSource(ctx, cs, reports[at.claim].Text, &text); err != nil {
					return err
				}
				m.setDone("source", cs.URL)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.checkSupport(ctx, reports); err != nil {
		return err
	}
	m.setDone("support", m.out.URL)
	m.report.Claims = append(m.report.Claims, reports...)
	return m.checkUpstreams(ctx)
}

// documents returns the sources of all claims, those of one document together, in the order of the manifest: they are
// looked at one after the other, so that its text is made ready once.
func (m *checked) documents() [][]cited {
	var list [][]cited
	places := map[string]int{}
	for i := range m.man.Claims {
		for k := range m.man.Claims[i].Sources {
			cs := &m.man.Claims[i].Sources[k]
			address := cs.URL
			if src := m.source(cs); src != nil {
				address = cmp.Or(address, src.URL)
			}
			address = clean(address)
			at, there := places[address]
			if !there {
				at = len(list)
				places[address], list = at, append(list, nil)
			}
			list[at] = append(list[at], cited{i, k})
		}
	}
	return list
}

// checkSupport says whether the excerpts that were found support their claims, and enters what is to be known of the
// sources into the report's lists.
func (m *checked) checkSupport(ctx context.Context, reports []ClaimReport) error {
	if len(reports) == 0 {
		m.found(NothingClaimed, "The manifest has no claims: there is nothing to verify.")
	}
	all := make([]evidence, len(reports))
	for i := range reports {
		r := &reports[i]
		all[i].ClaimReport = r
		for k := range r.Sources {
			s := &r.Sources[k]
			if counts := s.Result.Counts; counts != CountPass && counts != CountInfo {
				m.foundOf(s.Result.Status, counts, r.ID, s.URL, s.Result.Note)
			}
			if s.Result.Redirected {
				m.foundOf(Redirected, Redirected.counts(), r.ID, s.URL,
					"The source is at "+hostOf(s.Result.FinalURL)+" now.")
			}
			if cmp.Or(m.man.Claims[i].Sources[k].Relation, manifest.RelationSupports) == manifest.RelationSupports {
				all[i].results = append(all[i].results, s.Result)
				all[i].sliced = all[i].sliced || isSlice(&m.man.Claims[i].Sources[k])
			}
		}
		if len(all[i].results) == 0 { // a report must not be trusted for what nobody has said
			m.foundOf(NothingClaimed, NothingClaimed.counts(), r.ID, "", "The claim has no source that is to support it.")
		}
	}
	if err := compareClaims(ctx, all, m.Checker, m.Judge); err != nil {
		return fmt.Errorf("checking what supports the claims: %w", err)
	}
	for i := range reports {
		switch r := &reports[i]; {
		case r.Finding == Doubtful:
			m.foundOf(ClaimDoubtful, ClaimDoubtful.counts(), r.ID, "", r.Detail)
		case r.Counts == CountFailure || r.Counts == CountWarning:
			m.foundOf(r.Status, r.Counts, r.ID, "", r.Detail)
		}
	}
	return nil
}

// foundOf enters a finding about a claim, a source or a source of a claim: what it is not about is empty.
func (m *checked) foundOf(code Status, counts Counts, claim, source, detail string) {
	m.report.add(Finding{
		Code: code, Counts: counts, Detail: detail, Manifest: m.out.URL, Claim: claim, Source: source,
	})
}

// checkSource looks at one source of one claim. An error is also that the context has ended: what that has prevented
// says nothing of the source.
func (m *checked) checkSource(
	ctx context.Context, cs *manifest.ClaimSource, claim string, text *searched,
) (SourceReport, error) {
	if ctx.Err() != nil {
		return SourceReport{}, context.Cause(ctx)
	}
	src := m.source(cs)
	r := SourceReport{URL: cs.URL, CheckedAt: m.now, Expected: Expected{Hash: cs.Hash, ExcerptHash: cs.ExcerptHash}}
	if src != nil {
		r.URL, r.Title = cmp.Or(cs.URL, src.URL), src.Title
		r.Expected.Hash, r.Expected.TextHash = cmp.Or(cs.Hash, src.Hash), src.TextHash
	}
	if cs.Excerpt != nil {
		r.Excerpt = cs.Excerpt.Exact
	}
	remembers, key := m.SourceTTL >= 0 || m.FailureTTL >= 0, ""
	if remembers {
		about := []any{cs, src, m.man.TextProfile}
		if isSlice(cs) {
			about = append(about, claim)
		}
		if b, err := json.Marshal(about); err == nil { // it was read from JSON
			key = hexSum(b)
		}
		if kept := m.recallVerdict(ctx, key); kept != nil {
			r.Result, r.Cached, r.CheckedAt = kept.Result, true, kept.At
			return r, nil
		}
	}
	compare := func(snap *snapshot.Snapshot, err error) SourceResult {
		c := newComparison(cs, src, snap, &CompareOptions{Texts: m.Texts, TextProfile: m.man.TextProfile})
		c.ready, c.explained, c.claim = text, &m.all.explained, claim
		return c.compare(err)
	}
	snap, err := m.readSource(ctx, r.URL, r.Expected.Hash)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.Result = compare(snap, err)
	m.keepSource(r.URL, snap, r.Expected.Hash)
	if !r.Result.Counts.Passes() && snap == nil && src != nil && src.ArchiveURL != "" && !m.Offline {
		if archived, err := m.readSource(ctx, src.ArchiveURL, ""); err == nil {
			r.Result = m.fromArchive(r.Result, src, archived, compare(archived, nil))
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	if !remembers || m.Offline || isOurs(err) {
		return r, nil
	}
	b, err := json.Marshal(&keptVerdict{m.now, r.Result})
	if err == nil {
		err = m.Memory.Replace(ctx, memoryVerdict, key, b)
	}
	if err != nil {
		return r, fmt.Errorf("remembering a verdict: %w", err)
	}
	return r, nil
}

// keptVerdict is a verdict as it is remembered.
type keptVerdict struct {
	At     time.Time    `json:"at"`
	Result SourceResult `json:"result"`
}

// recallVerdict returns an earlier verdict that is still good; nil: there is none, or the source itself is wanted.
func (m *checked) recallVerdict(ctx context.Context, key string) *keptVerdict {
	if m.KeepSources {
		return nil
	}
	b, err := m.Memory.Recall(ctx, memoryVerdict, key)
	if err != nil || b == nil {
		return nil
	}
	var r keptVerdict
	if json.Unmarshal(b, &r) != nil {
		return nil
	}
	life := cmp.Or(m.FailureTTL, defaultFailureTTL)
	if r.Result.Counts.Passes() {
		life = cmp.Or(m.SourceTTL, defaultSourceTTL)
	}
	if age := m.now.Sub(r.At); age > life || age < -skew {
		return nil
	}
	return &r
}

// keepSource puts a source into the bundle, once, if it is the one that the manifest recorded: another one proves
// nothing.
func (m *checked) keepSource(address string, snap *snapshot.Snapshot, hash string) {
	if !m.KeepSources || m.served == nil || snap == nil || snap.Hash != hash {
		return
	}
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if slices.ContainsFunc(m.served.Sources, func(s manifest.SignedSource) bool { return s.URL == address }) {
		return
	}
	m.served.Sources = append(m.served.Sources, manifest.SignedSource{
		URL: address, MediaType: snap.MediaType, Hash: snap.Hash, Octets: snap.Octets,
	})
}

// isOurs reports whether a document was not fetched for a reason of ours, which says nothing of it and may be another
// next time.
func isOurs(err error) bool {
	f, ok := errors.AsType[*snapshot.FetchError](err)
	return ok && (f.Kind == snapshot.Blocked || f.Reason == "cancelled" || f.Reason == "closed")
}

// readSource reads a source as it is now. Without a network it is taken from the bundle, where it proves something only
// if it has the hash that the manifest recorded, or from a copy of our own.
func (j *job) readSource(ctx context.Context, address, hash string) (*snapshot.Snapshot, error) {
	if strings.HasPrefix(address, manifest.SourceURN) {
		return nil, nil //nolint:nilnil // it is nowhere: Compare says so by the URL
	}
	if _, err := snapshot.CleanURL(address); err != nil {
		return nil, err // it is none that could be fetched, and counts as no fetch
	}
	if !j.Offline {
		return j.fetchDocument(ctx, &snapshot.FetchRequest{URL: address})
	}
	if snap := j.all.given[clean(address)]; snap != nil && snap.Hash == hash {
		return snap, nil
	}
	if j.Copies != nil {
		snap, err := j.Copies.Latest(ctx, clean(address))
		if err == nil && snap != nil && snapshot.Hash(snap.Octets) == snap.Hash { // one without its octets is no copy
			return snap, nil
		}
	}
	return j.fetchDocument(ctx, &snapshot.FetchRequest{URL: address})
}

// checkSources looks whether sources that are announced without a manifest can be read.
func (j *job) checkSources(ctx context.Context, list []string) error {
	reports := make([]SourceReport, len(list))
	var group errgroup.Group
	group.SetLimit(parallel)
	j.addToDo("source", len(list))
	for i, address := range list {
		group.Go(func() error {
			snap, err := j.readSource(ctx, address, "")
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r := Compare(&manifest.ClaimSource{URL: address}, nil, snap, err, &CompareOptions{Texts: j.Texts})
			if snap != nil {
				r.Status, r.Counts = SourceRead, SourceRead.counts()
				r.Note = "The source can be read. What was taken from it, nobody says."
			}
			reports[i] = SourceReport{URL: address, CheckedAt: j.now, Result: r}
			j.setDone("source", address)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range reports {
		r := &reports[i].Result
		j.report.add(Finding{Code: r.Status, Counts: r.Counts, Detail: r.Note, Source: reports[i].URL})
	}
	j.report.Sources = append(j.report.Sources, reports...)
	return nil
}

// archives are the host names of archives that keep pages of others as they were.
var archives = []string{
	"web.archive.org", "archive.org", "archive.today", "archive.ph", "archive.is", "archive.li", "archive.vn",
	"archive.fo", "archive.md", "perma.cc", "webcitation.org",
}

// fromArchive is [FromArchive] for a copy that is one: it has the hash that was recorded, or comes from an archive that
// the verifier believes; and it is not the agent's own, who may write there what he likes.
func (m *checked) fromArchive(
	live SourceResult, src *manifest.Source, copied *snapshot.Snapshot, archived SourceResult,
) SourceResult {
	agent, _, _ := strings.Cut(m.man.AgentID, "/")
	mine := func(address string) bool {
		name, _ := hostAndPort(address)
		return hostOf(address) == hostOf(m.url) || hostOf(address) == agent || name == agent
	}
	host := ascii(hostOf(copied.FinalURL))
	same := archived.Hash != "" && archived.Hash == src.Hash
	switch {
	case !archived.Counts.Passes():
		return live
	case mine(src.ArchiveURL) || mine(copied.FinalURL):
		live.Note = "The source could not be read; its copy at " + host + " is the agent's own, and proves nothing."
	case !same && (!m.isArchive(src.ArchiveURL, src.URL) || !m.isArchive(copied.FinalURL, src.URL)):
		live.Note = "The source could not be read; its copy at " + host +
			" is not the one that was recorded, and that is no archive that is believed."
	default:
		return FromArchive(live, archived)
	}
	return live
}

// isArchive reports whether an address is one of an archive that is believed. Those of the Wayback Machine say of which
// page.
func (v *Verifier) isArchive(address, of string) bool {
	list := v.Archives
	if list == nil {
		list = archives
	}
	host := strings.TrimPrefix(hostOf(address), "www.")
	if !unforgeable(address) || !slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, host) }) {
		return false
	}
	return host != "web.archive.org" || strings.Contains(address, hostOf(of))
}

// evidence is a claim with what was found about the sources that are to support it, and not about those that contradict
// it or give context.
type evidence struct {
	*ClaimReport

	results []SourceResult
	sliced  bool // an excerpt is what stands in its place: see isSlice
}

// isSlice reports whether a manifest says where the excerpt stands, and not what it is, as in the first form.
func isSlice(cs *manifest.ClaimSource) bool {
	return cs.Excerpt == nil && cs.ExcerptHash == "" && cs.ExcerptOffset != nil
}

// excerpts returns what the sources that passed say.
func (e *evidence) excerpts() []support.Passage {
	var list []support.Passage
	for i := range e.results {
		r := &e.results[i]
		known := func(p support.Passage) bool { return p.Text == r.Excerpt }
		if r.Counts.Passes() && !r.cut() && r.Excerpt != "" && !slices.ContainsFunc(list, known) {
			list = append(list, support.Passage{ID: r.FinalURL, Text: r.Excerpt})
		}
	}
	return list
}

// compareClaims says of claims whether the excerpts of their sources that passed support them, together. An error means
// that nothing is known of any: the context has ended, or the checker could say nothing at all.
//
// A judge, if there is one, is asked about all claims that do not stand in an excerpt as they are, and its word counts.
func compareClaims(ctx context.Context, claims []evidence, checker, judge support.Checker) error {
	var asked []int
	var pairs []support.Pair
	for i := range claims {
		claims[i].setUncompared()
		if passages := claims[i].excerpts(); len(passages) > 0 {
			asked = append(asked, i)
			pairs = append(pairs, support.Pair{Claim: claims[i].Text, Passages: passages})
		}
	}
	verdicts, err := check(ctx, checker, pairs)
	if err != nil {
		return fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	var open []int // indexes in asked
	var left []support.Pair
	for n, i := range asked {
		claims[i].setVerdict(&pairs[n], &verdicts[n], false)
		if judge != nil && claims[i].Status != SupportedVerbatim {
			open, left = append(open, asked[n]), append(left, pairs[n])
		}
	}
	if verdicts, err = check(ctx, judge, left); err != nil {
		return fmt.Errorf("judging %d claims: %w", len(left), err)
	}
	for k, i := range open {
		if v := &verdicts[k]; v.Err == nil && v.Label != support.Unverified && v.Label != "" {
			claims[i].setVerdict(&left[k], v, true)
		}
	}
	return nil
}

// check asks a checker, which may be anybody's, and looks whether it answered.
func check(ctx context.Context, c support.Checker, pairs []support.Pair) ([]support.Verdict, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	verdicts, err := c.Check(ctx, pairs)
	if err != nil {
		return nil, err
	}
	if len(verdicts) != len(pairs) {
		return nil, fmt.Errorf("%s gave %d verdicts for %d pairs", c.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, nil
}

// cut reports whether what was found is a part of a number or word, which supports nothing.
func (r *SourceResult) cut() bool { return r.Match != nil && r.Match.Cut }

// Why a claim was not checked.
const (
	reasonUnsure    = "unsure"     // its score is too low to call it supported, and too high to call it doubtful
	reasonNoExcerpt = "no-excerpt" // no excerpt was recorded that it could be compared with
	reasonCut       = "cut"        // its excerpts are parts of numbers or words
	reasonUnread    = "unread"     // no source could be read
	reasonFailed    = "failed"     // no source says what is quoted from it: those are failures of their own
	reasonError     = "error"      // the checker could not
)

// setUncompared says of a claim what can be said without its excerpts.
func (e *evidence) setUncompared() {
	passed, cut, unread := 0, 0, 0
	for i := range e.results {
		switch r := &e.results[i]; {
		case r.Counts.Passes() && r.cut():
			cut++
		case r.Counts.Passes():
			passed++
		case r.Counts == CountUnverifiable:
			unread++
		}
	}
	e.Finding = NotChecked
	switch {
	case cut > 0:
		e.Status, e.Reason = SupportSuspect, reasonCut
		e.Detail = "The claim rests on a part of a number or word of its source."
	case passed > 0:
		e.Status, e.Reason = SupportUnchecked, reasonNoExcerpt
		e.Detail = "No excerpt was recorded that the claim could be compared with."
	case unread > 0 || len(e.results) == 0:
		e.Status, e.Reason, e.Counts = SupportUnchecked, reasonUnread, CountUnverifiable
		e.Detail = "No source of the claim could be verified."
	default:
		e.Status, e.Reason = UnsupportedClaim, reasonFailed
		e.Detail = "No source of the claim says what is quoted from it."
	}
	e.Counts = cmp.Or(e.Counts, e.Status.counts())
}

// What makes a claim doubtful. The numbers are chosen by TestEvalDoubtful, so that at most 1.4 of 100 claims that people
// call supported are doubtful: then three of four honest answers of 20 claims have none. `make eval` prints them.
const (
	// doubtfulScore is the score below which a claim is doubtful, if its excerpts have at most doubtfulShare of its
	// words.
	doubtfulScore = 0.2
	doubtfulShare = 0.1
	// slicedScore and slicedShare are the same where the excerpt is what stands in its place, with nothing to say that
	// the place is right: they were not measured.
	slicedScore = 0.4
	slicedShare = 0.35
	// shownShare is how much of the claim's sentence, beside the words that differ, the sentence of the excerpt has at
	// least, for a difference to be shown: elsewhere both may speak of different things.
	shownShare = 0.9
)

// setVerdict says what a checker found out. The word of a judge counts: of what it calls supported nothing is doubtful,
// and what it calls unsupported or contradicted is.
func (e *evidence) setVerdict(p *support.Pair, v *support.Verdict, judge bool) {
	c := e.ClaimReport
	c.Status, c.By, c.Finding, c.Reason, c.Detail = Status(v.Word()), v.By, NotChecked, reasonUnsure, ""
	c.Label, c.Score, c.Differs = v.Label, v.Score, nil
	switch {
	case v.Err != nil:
		c.Reason, c.Detail = reasonError, "The claim could not be checked."
	case strings.HasPrefix(string(c.Status), "supported-"):
		c.Finding, c.Reason = Supported, ""
		if slices.ContainsFunc(p.Passages, func(x support.Passage) bool { return support.Verbatim(p.Claim, x.Text) }) {
			c.Status = SupportedVerbatim
		}
	case judge && (v.Label == support.Unsupported || v.Label == support.Contradicted):
		c.Finding, c.Reason = Doubtful, ""
		c.Detail = "The excerpts are there and do not support the claim, says " + v.By + "."
	default:
		score, share := doubtfulScore, doubtfulShare
		if e.sliced {
			score, share = slicedScore, slicedShare
		}
		c.Differs = differences(p, v, shownShare)
		c.Detail = "Whether the excerpts support the claim was not found out."
		switch {
		case len(c.Differs) > 0:
			c.Finding, c.Reason, c.Detail = Doubtful, "", c.Differs[0].sentence()
		case saysNothing(p, v, score, share):
			c.Finding, c.Reason = Doubtful, ""
			c.Detail = "The excerpts say next to nothing of what the claim says."
		case v.Label == support.Partial:
			c.Detail = "A part of the claim is not in the excerpts, or differs from them."
		}
	}
	switch c.Finding {
	case Supported:
		c.Counts = CountPass
	case Doubtful:
		c.Counts = CountWarning
	default:
		if c.Counts = c.Status.counts(); c.Counts == CountFailure {
			c.Counts = CountInfo // a checker says that it is unsupported, and no source failed
		}
	}
}

// differences returns what the claim says otherwise than its excerpts, where these have at least that share of the words
// around it. A checker that does not compare values, as a judge, has that done for it.
func differences(p *support.Pair, v *support.Verdict, least float64) []Difference {
	conflicts := v.Conflicts
	if len(conflicts) == 0 && v.Threshold == 0 {
		for i := range p.Passages {
			conflicts = append(conflicts, support.Changed(p.Claim, p.Passages[i].Text)...)
		}
	}
	var list []Difference
	for i := range conflicts {
		if c := &conflicts[i]; sharedWords(withoutValue(&c.A), c.B.Text) >= least {
			list = append(list, Difference{c.Kind, c.A.ValueText(), c.B.ValueText(), c.B.Text})
		}
	}
	return list
}

// saysNothing reports whether the score is below that, and the excerpts have at most that share of the claim's words. In
// languages in which nobody measured scores, it is not known.
func saysNothing(p *support.Pair, v *support.Verdict, below, share float64) bool {
	if v.Score == nil || *v.Score >= below ||
		slices.ContainsFunc(v.Issues, func(i ibid.Issue) bool { return i.Code == "language-unmeasured" }) {
		return false
	}
	var all strings.Builder
	for i := range p.Passages {
		all.WriteString(p.Passages[i].Text + "\n")
	}
	return sharedWords(p.Claim, all.String()) <= share
}

// withoutValue returns a sentence without the words that differ.
func withoutValue(e *support.Excerpt) string {
	from, to := e.Value.Start-e.Span.Start, e.Value.End-e.Span.Start
	if from < 0 || to < from || to > len(e.Text) {
		return e.Text
	}
	return e.Text[:from] + " " + e.Text[to:]
}

// sharedWords returns the share of a text's words of four letters or more that other has, by their first five letters:
// 1 if there are none.
func sharedWords(text, other string) float64 {
	stems := func(s string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for word := range strings.FieldsFuncSeq(strings.ToLower(s), isNoLetter) {
				if runes := []rune(word); len(runes) >= 4 && !yield(string(runes[:min(len(runes), 5)])) {
					return
				}
			}
		}
	}
	there := map[string]bool{}
	for stem := range stems(other) {
		there[stem] = true
	}
	all, hits := 0, 0
	for stem := range stems(text) {
		if all++; there[stem] {
			hits++
		}
	}
	if all == 0 {
		return 1
	}
	return float64(hits) / float64(all)
}

func isNoLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}
