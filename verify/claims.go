package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

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
				if reports[at.claim].Sources[at.source], err = m.checkSource(ctx, cs, &text); err != nil {
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
	evidence := make([]Evidence, len(reports))
	var unsourced []string
	for i := range reports {
		r := &reports[i]
		evidence[i].Claim = r.Text
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
				evidence[i].Results = append(evidence[i].Results, s.Result)
			}
		}
		if len(evidence[i].Results) == 0 { // a report must not be trusted for what nobody has said
			unsourced = append(unsourced, r.ID)
		}
	}
	for _, id := range unsourced {
		m.foundOf(NothingClaimed, NothingClaimed.counts(), id, "", "The claim has no source that is to support it.")
	}
	results, err := Support(ctx, evidence, m.Checker, m.Judge)
	if err != nil {
		return fmt.Errorf("checking what supports the claims: %w", err)
	}
	for i := range results {
		r := &reports[i]
		r.Status, r.Counts, r.By, r.Detail = results[i].Status, results[i].Counts, results[i].By, results[i].Note
		if r.Counts == CountFailure || r.Counts == CountWarning {
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
func (m *checked) checkSource(ctx context.Context, cs *manifest.ClaimSource, text *searched) (SourceReport, error) {
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
		if b, err := json.Marshal([]any{cs, src, m.man.TextProfile}); err == nil { // it was read from JSON
			key = hexSum(b)
		}
		if kept := m.recallVerdict(ctx, key); kept != nil {
			r.Result, r.Cached, r.CheckedAt = kept.Result, true, kept.At
			return r, nil
		}
	}
	compare := func(snap *snapshot.Snapshot, err error) SourceResult {
		c := newComparison(cs, src, snap, &CompareOptions{Texts: m.Texts, TextProfile: m.man.TextProfile})
		c.ready, c.explained = text, &m.all.explained
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

// ClaimResult is what was found about one claim.
type ClaimResult struct {
	Status  Status           `json:"status"`
	Counts  Counts           `json:"counts"`
	By      string           `json:"by,omitempty"` // the checker that said it, as ID@Version; empty: none was asked
	Note    string           `json:"note,omitempty"`
	Verdict *support.Verdict `json:"-"` // nil: none was asked
}

// Evidence is a claim with what was found about its sources.
type Evidence struct {
	Claim   string
	Context string         // what stands before it in the answer, which it may refer to; never evidence
	Results []SourceResult // of the sources that are to support it, not of those that contradict it or give context
}

// excerpts returns what the sources that passed say.
func (e *Evidence) excerpts() []support.Passage {
	var list []support.Passage
	for i := range e.Results {
		r := &e.Results[i]
		known := func(p support.Passage) bool { return p.Text == r.Excerpt }
		if r.Counts.Passes() && !r.cut() && r.Excerpt != "" && !slices.ContainsFunc(list, known) {
			list = append(list, support.Passage{ID: r.FinalURL, Text: r.Excerpt})
		}
	}
	return list
}

// Support says of claims whether the excerpts of their sources that passed support them, together: one result per
// claim, in order, as the attribution specification has it in §6 C. An error means that there are none: the context has
// ended, or the checker could say nothing at all.
//
// The checker, nil for [support.Lexical], says supported-verbatim, supported-lexical (supported-NAME, if it is
// another), support-suspect or support-unchecked: it knows words only, so it may not say that an excerpt does not
// support a claim. A judge may, if there is one: it is asked about all claims that do not stand in an excerpt as they
// are, and its word counts. A claim whose sources all were read and none of which passed is unsupported, too.
func Support(ctx context.Context, claims []Evidence, checker, judge support.Checker) ([]ClaimResult, error) {
	if checker == nil {
		checker = &support.Lexical{}
	}
	results := make([]ClaimResult, len(claims))
	var asked []int
	var pairs []support.Pair
	for i := range claims {
		results[i] = unasked(&claims[i])
		if passages := claims[i].excerpts(); len(passages) > 0 {
			asked = append(asked, i)
			pairs = append(pairs, support.Pair{Claim: claims[i].Claim, Context: claims[i].Context, Passages: passages})
		}
	}
	verdicts, err := check(ctx, checker, pairs)
	if err != nil {
		return nil, fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	var open []int // indexes in asked
	for n, i := range asked {
		results[i] = resultOf(&claims[i], &verdicts[n], false)
		if judge != nil && results[i].Status != SupportedVerbatim {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return results, nil
	}
	left := make([]support.Pair, len(open))
	for k, n := range open {
		left[k] = pairs[n]
	}
	if verdicts, err = check(ctx, judge, left); err != nil {
		return nil, fmt.Errorf("judging %d claims: %w", len(left), err)
	}
	for k, n := range open {
		if v := &verdicts[k]; v.Err == nil && v.Label != support.Unverified && v.Label != "" {
			results[asked[n]] = resultOf(&claims[asked[n]], v, true)
		}
	}
	return results, nil
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

// unasked says of a claim what can be said without its excerpts.
func unasked(e *Evidence) ClaimResult {
	passed, cut, unread := 0, 0, 0
	for i := range e.Results {
		switch r := &e.Results[i]; {
		case r.Counts.Passes() && r.cut():
			cut++
		case r.Counts.Passes():
			passed++
		case r.Counts == CountUnverifiable:
			unread++
		}
	}
	r := ClaimResult{Status: UnsupportedClaim, Note: "No source of the claim says what is quoted from it."}
	switch {
	case cut > 0:
		r = ClaimResult{Status: SupportSuspect, Note: "The claim rests on a part of a number or word of its source."}
	case passed > 0:
		r = ClaimResult{
			Status: SupportUnchecked, Note: "No excerpt was recorded that the claim could be compared with.",
		}
	case unread > 0 || len(e.Results) == 0:
		return ClaimResult{
			Status: SupportUnchecked, Counts: CountUnverifiable, Note: "No source of the claim could be verified.",
		}
	}
	r.Counts = r.Status.counts()
	return r
}

// resultOf turns a verdict into a status. Only a judge may say that what is there does not support the claim.
func resultOf(e *Evidence, v *support.Verdict, judge bool) ClaimResult {
	r := ClaimResult{Status: Status(v.Word()), By: v.By, Verdict: v}
	switch {
	case v.Err != nil:
		r.Status, r.Note = SupportUnchecked, "The claim could not be checked."
	case r.Status == SupportSuspect:
		r.Note = different(v)
	case r.Status == UnsupportedClaim && judge:
		r.Note = "The excerpts are there and do not support the claim, says " + v.By + "."
	case r.Status == SupportUnchecked, r.Status == UnsupportedClaim:
		r.Status = SupportUnchecked
		r.Note = "The excerpts are there; whether they support the claim was not found out."
	case slices.ContainsFunc(e.excerpts(), func(p support.Passage) bool { return support.Verbatim(e.Claim, p.Text) }):
		r.Status, r.Counts = SupportedVerbatim, CountPass
	default:
		r.Counts = CountPass // also supported-NAME, of another checker
	}
	r.Counts = cmp.Or(r.Counts, r.Status.counts())
	return r
}

// different says what the claim says and the excerpts do not.
func different(v *support.Verdict) string {
	var list []string
	for _, t := range v.Missing {
		if t.Kind != support.TermWord {
			list = append(list, t.Text)
		}
	}
	if len(list) == 0 {
		return "A part of the claim is not in the excerpts, or differs from them."
	}
	return "The excerpts do not say: " + strings.Join(list[:min(len(list), 8)], ", ") + "."
}
