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
)

// The defaults of how long results for sources are reused.
const (
	defaultSourceTTL  = 24 * time.Hour
	defaultFailureTTL = 15 * time.Minute
)

// cited is the index of a claim and of one of its sources.
type cited struct{ claim, source int }

// checkClaims checks the sources of all claims, whether their excerpts support them, and the manifests of the sources.
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
	// Sources with the same document are checked in sequence, so that its text is prepared once.
	var documents [][]cited
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
				at = len(documents)
				places[address], documents = at, append(documents, nil)
			}
			documents[at] = append(documents[at], cited{i, k})
		}
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, all := range documents {
		group.Go(func() error {
			var text cachedSearcher
			for _, at := range all {
				cs, r := &m.man.Claims[at.claim].Sources[at.source], &reports[at.claim]
				var err error
				if r.Sources[at.source], err = m.checkSource(ctx, cs, r.Text, &text); err != nil {
					return err
				}
				m.setDone("source", cs.URL, r.Sources[at.source].Result.Status)
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
	m.setDone("support", m.out.URL, "")
	m.report.Claims = append(m.report.Claims, reports...)
	return m.checkUpstreams(ctx)
}

// checkSupport checks whether the excerpts that were found support their claims, and adds findings about the sources.
func (m *checked) checkSupport(ctx context.Context, reports []ClaimReport) error {
	if len(reports) == 0 {
		m.found(NothingClaimed, "The manifest has no claims, so there is nothing to verify.")
	}
	all := make([]evidence, len(reports))
	for i := range reports {
		r := &reports[i]
		all[i].ClaimReport = r
		if len(m.words) > 0 {
			all[i].context, all[i].given = m.words[i].context, m.words[i].given
		}
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
			}
		}
		if len(all[i].results) == 0 { // a report must not be trusted for lack of anything to check
			m.foundOf(
				NothingClaimed, NothingClaimed.counts(), r.ID, "", "The claim has no supporting source.",
			)
		}
	}
	checker := m.Checker
	if m.Judge != nil {
		checker = m.Judge
	}
	if err := compareClaims(ctx, all, checker); err != nil {
		return fmt.Errorf("checking what supports the claims: %w", err)
	}
	for i := range reports {
		if r := &reports[i]; r.Status.DeniesClaim() {
			m.foundOf(r.Status, r.Counts, r.ID, "", r.Detail)
		}
	}
	return nil
}

// foundOf adds a finding about a claim, a source or a claim's source. The one that it is not about is empty.
func (m *checked) foundOf(code Status, counts Counts, claim, source, detail string) {
	m.report.add(Finding{
		Code: code, Counts: counts, Detail: detail, Manifest: m.out.URL, Claim: claim, Source: source,
	})
}

// checkSource checks one source of one claim. It also returns an error if the context has ended, as a fetch that was
// cancelled says nothing about the source.
func (m *checked) checkSource(
	ctx context.Context, cs *manifest.ClaimSource, claim string, text *cachedSearcher,
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
		if isSlice(cs) || m.isUnquoted(cs) {
			about = append(about, claim)
		}
		if b, err := json.Marshal(about); err == nil { // it was read from JSON
			key = hexSum(b)
		}
		if stored, ok := m.recall(ctx, key); ok {
			r.Result, r.Cached, r.CheckedAt = stored.Result, true, stored.At
			return r, nil
		}
	}
	compare := func(snap *snapshot.Snapshot, err error) SourceResult {
		c := newComparison(cs, src, snap, &CompareOptions{Texts: m.Texts, TextProfile: m.man.TextProfile})
		c.searcher, c.explained, c.claim = text, &m.all.explained, claim
		result := c.compare(err)
		if result.Status == NothingRecorded && m.isUnquoted(cs) {
			return c.unquoted(ctx)
		}
		return result
	}
	snap, err := m.readSource(ctx, r.URL, r.Expected.Hash)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.Result = compare(snap, err)
	if m.KeepSources && m.served != nil && snap != nil && snap.Hash == r.Expected.Hash { // a changed one proves nothing
		m.keepSource(r.URL, snap)
	}
	if !r.Result.Counts.Passes() && snap == nil && src != nil && src.ArchiveURL != "" && !m.Offline {
		if archived, err := m.readSource(ctx, src.ArchiveURL, ""); err == nil {
			r.Result = m.fromArchive(r.Result, src, archived, compare(archived, nil))
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	f, _ := errors.AsType[*snapshot.FetchError](err)
	// A fetch that this side blocked or cancelled says nothing about the source, and may succeed next time.
	ours := f != nil && (f.Kind == snapshot.Blocked || f.Reason == "cancelled" || f.Reason == "closed")
	if !remembers || m.Offline || ours {
		return r, nil
	}
	b, err := json.Marshal(&storedResult{m.now, r.Result})
	if err == nil {
		err = m.Memory.Replace(ctx, memoryResult, key, b)
	}
	if err != nil {
		return r, fmt.Errorf("remembering a result: %w", err)
	}
	return r, nil
}

// isUnquoted reports whether an answer document names a source without quoting it.
func (m *checked) isUnquoted(cs *manifest.ClaimSource) bool {
	return m.words != nil && cs.Excerpt == nil
}

// keepSource adds a source to the bundle, once.
func (m *checked) keepSource(address string, snap *snapshot.Snapshot) {
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if !slices.ContainsFunc(m.served.Sources, func(s manifest.SignedSource) bool { return s.URL == address }) {
		m.served.Sources = append(m.served.Sources, manifest.SignedSource{
			URL: address, MediaType: snap.MediaType, Hash: snap.Hash, Octets: snap.Octets,
		})
	}
}

// storedResult is a result as it is stored in Memory.
type storedResult struct {
	At     time.Time    `json:"at"`
	Result SourceResult `json:"result"`
}

// recall returns the result that Memory has for a key, and whether there is one that is recent enough to be used again.
func (m *checked) recall(ctx context.Context, key string) (stored storedResult, ok bool) {
	b, err := m.Memory.Recall(ctx, memoryResult, key)
	if err != nil || m.KeepSources || json.Unmarshal(b, &stored) != nil {
		return stored, false
	}
	ttl := cmp.Or(m.FailureTTL, defaultFailureTTL)
	if stored.Result.Counts.Passes() {
		ttl = cmp.Or(m.SourceTTL, defaultSourceTTL)
	}
	age := m.now.Sub(stored.At)
	return stored, age >= -skew && age <= ttl
}

// readSource reads a source as it is now. Offline it is taken from the bundle, where it proves something only if it has
// the hash that the manifest recorded, or from our own copies.
func (j *job) readSource(ctx context.Context, address, hash string) (*snapshot.Snapshot, error) {
	if strings.HasPrefix(address, manifest.SourceURN) {
		return nil, nil //nolint:nilnil // it has no address, which Compare reports
	}
	if _, err := snapshot.CleanURL(address); err != nil {
		return nil, err // it cannot be fetched, and does not count as a fetch
	}
	if !j.Offline {
		return j.fetchDocument(ctx, &snapshot.FetchRequest{URL: address})
	}
	if snap := j.all.given[clean(address)]; snap != nil && snap.Hash == hash {
		return snap, nil
	}
	if j.Copies != nil {
		snap, err := j.Copies.Latest(ctx, clean(address))
		if err == nil && snap != nil && snapshot.Hash(snap.Octets) == snap.Hash { // ignore one without its octets
			return snap, nil
		}
	}
	return j.fetchDocument(ctx, &snapshot.FetchRequest{URL: address})
}

// checkSources checks whether sources that are announced without a manifest can be read.
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
				r.Note = "The source can be read, but nothing states what was taken from it."
			}
			reports[i] = SourceReport{URL: address, CheckedAt: j.now, Result: r}
			j.setDone("source", address, r.Status)
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

// archives are the host names of well-known web archives.
var archives = []string{
	"web.archive.org", "archive.org", "archive.today", "archive.ph", "archive.is", "archive.li", "archive.vn",
	"archive.fo", "archive.md", "perma.cc", "webcitation.org",
}

// fromArchive returns the result for a source that could not be read (live) and has an archived copy. That is the
// copy's result if it passes and the copy is credible: it has the recorded hash or comes from an archive that the
// verifier accepts, and is not on the agent's own host, where the agent could have written anything.
func (m *checked) fromArchive(
	live SourceResult, src *manifest.Source, copied *snapshot.Snapshot, archived SourceResult,
) SourceResult {
	agent, _, _ := strings.Cut(m.man.AgentID, "/")
	isAgents := func(address string) bool { return hostOf(address) == hostOf(m.url) || isAt(address, agent) }
	host := ascii(hostOf(copied.FinalURL))
	same := archived.Hash != "" && archived.Hash == src.Hash
	switch {
	case live.Counts != CountUnverifiable || !archived.Counts.Passes():
		return live
	case isAgents(src.ArchiveURL) || isAgents(copied.FinalURL):
		live.Note = "The source could not be read; its copy at " + host + " is the agent's own, and proves nothing."
		return live
	case !same && (!m.isArchive(src.ArchiveURL, src.URL) || !m.isArchive(copied.FinalURL, src.URL)):
		live.Note = "The source could not be read; its copy at " + host +
			" is not the one that was recorded, and that host is not an accepted archive."
		return live
	}
	archived.Note = fmt.Sprintf(
		"The source could not be read; its copy at %s was compared (%s).", host, archived.Status)
	archived.Status, archived.Reason = VerifiedFromArchive, string(live.Status)
	if archived.Counts == CountPass {
		archived.Counts = CountInfo
	}
	return archived
}

// isArchive reports whether an address is in an accepted archive. An address of the Wayback Machine must contain the
// host of the page.
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
