package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// The defaults of how long a verdict on a source is good for.
const (
	DefaultSourceTTL  = 24 * time.Hour
	DefaultFailureTTL = 15 * time.Minute
)

// cited is a source of a claim, by its place in the manifest.
type cited struct{ claim, source int }

// claims looks at the sources of all claims, and at whether their excerpts support them.
func (m *checked) claims(ctx context.Context) error {
	reports := make([]ClaimReport, len(m.man.Claims))
	for i := range reports {
		c := &m.man.Claims[i]
		reports[i] = ClaimReport{
			Manifest: m.out.URL,
			ID:       c.ID,
			Text:     c.Text,
			Sources:  make([]SourceReport, len(c.Sources)),
		}
		m.grow("source", len(c.Sources))
	}
	m.grow("support", 1)
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, all := range m.documents() {
		group.Go(func() error {
			var text searched
			for _, at := range all {
				cs := &m.man.Claims[at.claim].Sources[at.source]
				var err error
				if reports[at.claim].Sources[at.source], err = m.lookAt(ctx, cs, &text); err != nil {
					return err
				}
				m.did("source", cs.URL)
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
	if err := m.support(ctx, reports); err != nil {
		return err
	}
	m.did("support", m.out.URL)
	m.report.Claims = append(m.report.Claims, reports...)
	return m.upstreams(ctx)
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

// support says whether the excerpts that were found support their claims.
func (m *checked) support(ctx context.Context, reports []ClaimReport) error {
	evidence := make([]Evidence, len(reports))
	for i := range reports {
		r := &reports[i]
		evidence[i].Claim = r.Text
		for k := range r.Sources {
			s := &r.Sources[k]
			m.enter(r, s)
			if cmp.Or(m.man.Claims[i].Sources[k].Relation, manifest.RelationSupports) == manifest.RelationSupports {
				evidence[i].Results = append(evidence[i].Results, s.Result)
			}
		}
	}
	m.claimed(evidence)
	results, err := Support(ctx, evidence, m.Checker, m.Judge)
	if err != nil {
		return fmt.Errorf("checking what supports the claims: %w", err)
	}
	for i := range results {
		r := &reports[i]
		r.Status, r.Counts, r.By, r.Detail = results[i].Status, results[i].Counts, results[i].By, results[i].Note
		if r.Counts == CountFailure || r.Counts == CountWarning {
			m.report.add(Finding{Code: r.Status, Counts: r.Counts, Detail: r.Detail, Manifest: m.out.URL, Claim: r.ID})
		}
	}
	return nil
}

// enter puts what is to be known of a source beyond its claim into the report's lists.
func (m *checked) enter(c *ClaimReport, s *SourceReport) {
	f := Finding{
		Code:     s.Result.Status,
		Counts:   s.Result.Counts,
		Detail:   s.Result.Note,
		Manifest: m.out.URL,
		Claim:    c.ID,
		Source:   s.URL,
	}
	switch f.Counts {
	case CountPass, CountInfo:
	default:
		m.report.add(f)
	}
	if s.Result.Redirected {
		f.Code, f.Counts, f.Detail = Redirected, CountInfo, "The source is at "+hostOf(s.Result.FinalURL)+" now."
		m.report.add(f)
	}
}

// lookAt looks at one source of one claim. An error is also that the context has ended: what that has prevented says
// nothing of the source.
func (m *checked) lookAt(ctx context.Context, cs *manifest.ClaimSource, text *searched) (SourceReport, error) {
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
		key = m.verdictKey(cs, src)
		if kept := m.recallVerdict(ctx, key); kept != nil {
			r.Result, r.Cached, r.CheckedAt = kept.Result, true, kept.At
			return r, nil
		}
	}
	snap, err := m.read(ctx, r.URL, r.Expected.Hash)
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r.Result = m.compare(cs, src, snap, err, text)
	m.keep(r.URL, snap, r.Expected.Hash)
	if !r.Result.Counts.Passes() && snap == nil && src != nil && src.ArchiveURL != "" && !m.Offline {
		if archived, err := m.read(ctx, src.ArchiveURL, ""); err == nil {
			r.Result = m.fromArchive(r.Result, src, archived, m.compare(cs, src, archived, nil, text))
		}
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	if remembers && !own(err) && !m.Offline {
		return r, m.remember(ctx, key, &r.Result)
	}
	return r, nil
}

// remember keeps a verdict for later jobs.
func (m *checked) remember(ctx context.Context, key string, r *SourceResult) error {
	b, err := json.Marshal(&keptVerdict{m.now, *r})
	if err == nil {
		err = m.Memory.Replace(ctx, memoryVerdict, key, b)
	}
	if err != nil {
		return fmt.Errorf("remembering a verdict: %w", err)
	}
	return nil
}

// keep puts a source into the bundle, once, if it is the one that the manifest recorded: another one proves nothing.
func (m *checked) keep(address string, snap *snapshot.Snapshot, hash string) {
	if !m.KeepSources || m.served == nil || snap == nil || snap.Hash != hash {
		return
	}
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	for i := range m.served.Sources {
		if m.served.Sources[i].URL == address {
			return
		}
	}
	m.served.Sources = append(m.served.Sources, manifest.SignedSource{
		URL: address, MediaType: snap.MediaType, Hash: snap.Hash, Octets: snap.Octets,
	})
}

// own reports whether a document was not fetched for a reason of ours, which says nothing of it and may be another next
// time.
func own(err error) bool {
	f, ok := errors.AsType[*snapshot.FetchError](err)
	return ok && (f.Kind == snapshot.Blocked || f.Reason == reasonCancelled || f.Reason == reasonClosed)
}

// compare is [Compare] with what the job has ready.
func (m *checked) compare(
	cs *manifest.ClaimSource, src *manifest.Source, snap *snapshot.Snapshot, err error, text *searched,
) SourceResult {
	c := newComparison(cs, src, snap, &CompareOptions{Texts: m.Texts, TextProfile: m.man.TextProfile})
	c.ready, c.explained = text, &m.all.explained
	return c.compare(err)
}

// read reads a source as it is now. Without a network it is taken from the bundle, where it proves something only if it
// has the hash that the manifest recorded, or from a copy of our own.
func (j *job) read(ctx context.Context, address, hash string) (*snapshot.Snapshot, error) {
	if strings.HasPrefix(address, manifest.SourceURN) {
		return nil, nil //nolint:nilnil // it is nowhere: Compare says so by the URL
	}
	if _, err := snapshot.CleanURL(address); err != nil {
		return nil, err // it is none that could be fetched, and counts as no fetch
	}
	if !j.Offline {
		return j.fetch(ctx, &snapshot.FetchRequest{URL: address})
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
	return j.fetch(ctx, &snapshot.FetchRequest{URL: address})
}

// keptVerdict is a verdict as it is remembered.
type keptVerdict struct {
	At     time.Time    `json:"at"`
	Result SourceResult `json:"result"`
}

// verdictKey names what is compared.
func (m *checked) verdictKey(cs *manifest.ClaimSource, src *manifest.Source) string {
	b, err := json.Marshal([]any{cs, src, m.man.TextProfile})
	if err != nil {
		return "" // it was read from JSON
	}
	return hexSum(b)
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
	life := cmp.Or(m.FailureTTL, DefaultFailureTTL)
	if r.Result.Counts.Passes() {
		life = cmp.Or(m.SourceTTL, DefaultSourceTTL)
	}
	if age := m.now.Sub(r.At); age > life || age < -skew {
		return nil
	}
	return &r
}

// sources looks whether sources that are announced without a manifest can be read.
func (j *job) sources(ctx context.Context, list []string) error {
	reports := make([]SourceReport, len(list))
	var group errgroup.Group
	group.SetLimit(parallel)
	j.grow("source", len(list))
	for i, address := range list {
		group.Go(func() error {
			snap, err := j.read(ctx, address, "")
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r := Compare(&manifest.ClaimSource{URL: address}, nil, snap, err, &CompareOptions{Texts: j.Texts})
			if snap != nil {
				r.Status, r.Counts, r.Note = SourceRead, CountInfo, "The source can be read. What was taken from it, nobody says."
			}
			reports[i] = SourceReport{URL: address, CheckedAt: j.now, Result: r}
			j.did("source", address)
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
