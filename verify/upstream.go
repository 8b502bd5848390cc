package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid/manifest"
)

// upstream is the source whose manifest is verified.
type upstream struct {
	source *manifest.Source
	body   *Response // nil: it could not be read
}

// upstreams verifies the manifests of those sources that are agents' answers themselves: each once in a job, and only
// so deep.
func (m *checked) upstreams(ctx context.Context) error {
	for i := range m.man.Sources {
		src := &m.man.Sources[i]
		if src.UpstreamManifest == "" {
			continue
		}
		address := clean(src.UpstreamManifest)
		switch {
		case m.all.visited[address]:
			m.again(ctx, src, address)
		case m.depth >= m.limits.Upstream:
			m.upstreamFound(src, UpstreamUnverifiable, CountUnverifiable,
				fmt.Sprintf("Manifests of manifests are followed %d deep and no deeper.", max(0, m.limits.Upstream)))
		default:
			if err := m.above(ctx, src, address); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *checked) upstreamFound(src *manifest.Source, code Status, counts Counts, detail string) {
	m.report.add(Finding{Code: code, Counts: counts, Detail: detail, Manifest: m.out.URL, Source: src.URL})
}

// above verifies the manifest of a source.
func (m *checked) above(ctx context.Context, src *manifest.Source, address string) error {
	j := &job{Verifier: m.Verifier, all: m.all, limits: m.limits, depth: m.depth + 1}
	j.begin(KindManifest, address)
	up := &upstream{source: src}
	if snap, err := m.read(ctx, src.URL, src.Hash); err == nil && snap != nil {
		up.body = &Response{URL: snap.FinalURL, Status: snap.Status, Header: snap.Header, Body: snap.Octets}
	}
	j.grow("manifest", 1)
	c := &checked{job: j, announced: &announced{url: address}, upstream: up}
	c.out.URL, c.out.Level.Why = address, []string{}
	if err := c.fetched(ctx); err != nil {
		return err
	}
	if err := c.done(ctx); err != nil {
		return err
	}
	r := j.end()
	m.report.Upstream = append(m.report.Upstream, r)
	m.upstreamEnded(src, r)
	return nil
}

func (m *checked) upstreamEnded(src *manifest.Source, r *Report) {
	switch r.State {
	case Invalid:
		m.upstreamFound(
			src, UpstreamInvalid, CountFailure,
			"The source is an agent's answer, and its manifest failed: "+string(r.Failure[0].Code)+".",
		)
	case Unverifiable:
		m.upstreamFound(
			src, UpstreamUnverifiable, CountUnverifiable,
			"The source is an agent's answer, and not all of its manifest could be looked at.",
		)
	default:
		m.upstreamFound(
			src, UpstreamVerified, CountPass,
			"The source is an agent's answer, and its manifest is "+string(r.State)+".",
		)
	}
}

// readUpstream reads the source whose manifest is verified.
func (m *checked) readUpstream(ctx context.Context, src *manifest.Source) *upstream {
	up := &upstream{source: src}
	if snap, err := m.read(ctx, src.URL, src.Hash); err == nil && snap != nil {
		up.body = &Response{URL: snap.FinalURL, Status: snap.Status, Header: snap.Header, Body: snap.Octets}
	}
	return up
}

// again says what is to be said of a further source whose manifest this job has read, or is reading: it must be about
// that source, too.
func (m *checked) again(ctx context.Context, src *manifest.Source, address string) {
	c := m.all.read[address]
	if c == nil {
		m.upstreamFound(src, UpstreamUnverifiable, CountUnverifiable, "Its manifest could not be read: "+address+".")
		return
	}
	f := m.readUpstream(ctx, src).bound(c.man.Output)
	switch {
	case f.Counts == CountFailure:
		m.upstreamFound(src, UpstreamInvalid, CountFailure, f.Detail)
	case f.Counts == CountUnverifiable:
		m.upstreamFound(src, UpstreamUnverifiable, CountUnverifiable, f.Detail)
	case c.upstream == nil || c.report.State == "":
		m.upstreamFound(
			src, UpstreamUnverifiable, CountInfo, "Its manifest is one that this report has already: "+address+".",
		)
	default:
		m.upstreamEnded(src, c.report.rebound(f))
	}
}

// rebound returns the report of one upstream manifest with another finding of what it is about.
func (r *Report) rebound(f Finding) *Report {
	about := func(f Finding) bool {
		return has([]Finding{f}, r.Manifests[0].URL, OutputBound, OutputUnchecked, OutputMismatch)
	}
	other := *r
	other.Success, other.Info = slices.DeleteFunc(
		slices.Clone(r.Success), about,
	), slices.DeleteFunc(
		slices.Clone(r.Info), about,
	)
	other.Failure = slices.DeleteFunc(slices.Clone(r.Failure), about)
	f.Manifest = r.Manifests[0].URL
	other.add(f)
	other.State = other.state()
	return &other
}

// boundUpstream says whether the manifest of a source is about that source.
func (m *checked) boundUpstream() {
	f := m.upstream.bound(m.man.Output)
	m.found(f.Code, f.Counts, f.Detail)
}

// bound says whether what a manifest is about is the source: as it was read for the claim, or as it is now.
func (up *upstream) bound(out *manifest.Output) Finding {
	src := up.source
	switch {
	case out == nil:
		return Finding{
			Code:   OutputUnchecked,
			Counts: CountWarning,
			Detail: "The manifest does not say which response it is about.",
		}
	case out.Hash == src.Hash,
		out.TextHash != "" && out.TextHash == src.TextHash && !isMarkup(src.MediaType) && !isMarkup(out.MediaType),
		up.body != nil && boundBy(out, up.body) != "":
		return Finding{Code: OutputBound, Counts: CountPass, Detail: "The manifest is about the source."}
	case up.body == nil:
		return Finding{
			Code:   OutputUnchecked,
			Counts: CountUnverifiable,
			Detail: "The source could not be read, so it cannot be compared with its manifest.",
		}
	default:
		return Finding{
			Code:   OutputMismatch,
			Counts: CountFailure,
			Detail: "The manifest is about something else than the source that names it.",
		}
	}
}
