package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// checked is a manifest that is being verified.
type checked struct {
	*job
	*announced

	response *Response // nil: it is verified by itself
	upstream *upstream // not nil: it is that of a source

	served    *manifest.Signed // as it was fetched or stored; nil: it could not be read
	header    http.Header      // all fields of the response that it came with
	stored    bool             // it was not fetched from its URL now
	bare      bool             // a file: it never had a header
	man       *manifest.Manifest
	problems  []manifest.Problem // of man
	lookup    *index             // of man; nil: not asked for yet
	known     *directory         // of its origin; nil: not asked yet
	seen      bool               // its keys come from its origin, and not only from a bundle
	asked     bool               // the log was: see logged
	unasked   bool               // and could not be read
	signature Counts             // of what was found about it; empty: it is good, or there is none
	over      bool               // nothing more can be looked at
	out       ManifestReport
}

// found enters a finding about the manifest.
func (m *checked) found(code Status, counts Counts, detail string) {
	m.report.add(Finding{Code: code, Counts: counts, Detail: detail, Manifest: m.out.URL})
}

// fail enters a failure.
func (m *checked) fail(code Status, detail string, args ...any) {
	m.found(code, CountFailure, fmt.Sprintf(detail, args...))
}

// fetched gets the manifest.
func (m *checked) fetched(ctx context.Context) error {
	m.all.visited[m.url] = true
	snap, err := m.trusted(ctx, m.url, MaxManifest)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.did("manifest", m.url)
	if err != nil {
		m.over = true
		m.unfetched(err)
		return nil
	}
	switch {
	case snap.Status == http.StatusAccepted:
		m.over = true
		m.found(ManifestPending, CountUnverifiable, "The manifest is not built yet (202). Try again later.")
	case snap.Status != http.StatusOK:
		m.over = true
		m.found(
			ManifestUnreachable, CountUnverifiable,
			fmt.Sprintf("The manifest's URL answers %d and not 200.", snap.Status),
		)
	default:
		m.header = snap.Header
		m.served = &manifest.Signed{
			TargetURI: m.url, Status: snap.Status, ContentType: snap.Header.Get("Content-Type"),
			ContentDigest:  strings.Join(snap.Header.Values("Content-Digest"), ", "),
			SignatureInput: strings.Join(snap.Header.Values("Signature-Input"), ", "),
			Signature:      strings.Join(snap.Header.Values("Signature"), ", "), Body: snap.Octets,
		}
	}
	return nil
}

func (m *checked) unfetched(err error) {
	var f *snapshot.FetchError
	if !errors.As(err, &f) {
		m.found(ManifestUnreachable, CountUnverifiable, sentence("The manifest could not be fetched", err))
		return
	}
	switch f.Kind {
	case snapshot.Blocked:
		m.found(ManifestBlocked, CountUnverifiable, sentence("The manifest's URL is not fetched", err))
	case snapshot.TooLarge:
		m.found(ManifestTooLarge, CountFailure, sentence("The manifest is over 1 MiB", err))
	case snapshot.UnsupportedMedia:
		m.found(ManifestTooLarge, CountFailure, sentence("The manifest was sent with a content coding", err))
	default:
		m.found(ManifestUnreachable, CountUnverifiable, sentence("The manifest could not be fetched", err))
	}
}

// done looks at a manifest that was read, in the order of the specification, and at its sources.
func (m *checked) done(ctx context.Context) error {
	steps := []func(context.Context) error{
		m.mutated, m.parsed, m.matches, m.bound, m.signed, m.authority, m.expired, m.remembered, m.logged, m.leveled,
	}
	for _, step := range steps {
		if m.over {
			break
		}
		if err := step(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	m.out.Bundle, m.out.Manifest = m.served, m.man
	if m.served != nil {
		m.out.SHA256 = hexSum(m.served.Body)
	}
	m.report.Manifests = append(m.report.Manifests, m.out)
	if m.over {
		return nil
	}
	return m.claims(ctx)
}

// mutated compares the bytes with those that were announced, and with those that were there before.
func (m *checked) mutated(ctx context.Context) error {
	sum := m.served.Digest()
	if m.digest != nil && !bytes.Equal(m.digest, sum[:]) {
		m.over = true
		m.fail(ManifestMutated, "The manifest's body has the SHA-256 %x, the response announces %x.", sum, m.digest)
		return nil
	}
	if m.bare {
		return nil // its octets may be laid out in another way
	}
	before, err := m.Memory.Recall(ctx, memoryManifest, m.url)
	if err != nil {
		return fmt.Errorf("looking up what a manifest was: %w", err)
	}
	m.unchanged(before, sum)
	return nil
}

// unchanged compares the manifest with what its URL had before; nil: nothing that is known of.
func (m *checked) unchanged(before []byte, sum [sha256.Size]byte) {
	if before != nil && !bytes.Equal(before, sum[:]) {
		m.over = true
		m.fail(
			ManifestMutated,
			"The manifest's body has the SHA-256 %x; before, this URL had %x. A manifest never changes.", sum, before,
		)
	}
}

// parsed reads the manifest, and says in what it contradicts itself or the header.
func (m *checked) parsed(context.Context) error {
	man, err := manifest.Parse(m.served.Body)
	if err != nil {
		m.over = true
		code, path := ManifestMalformed, ""
		if e, ok := errors.AsType[*manifest.Error](err); ok {
			code, path = Status(e.Status), e.Path
		}
		m.report.add(Finding{
			Code:     code,
			Counts:   CountFailure,
			Manifest: m.out.URL,
			Path:     path,
			Detail:   sentence("The manifest cannot be read", err),
		})
		return nil
	}
	m.man, m.problems = man, man.Problems()
	if m.url != "" {
		m.all.read[m.url] = m
	}
	m.out.RunID, m.out.AgentID, m.out.EmittedAt = man.RunID, man.AgentID, string(man.EmittedAt)
	m.found(ManifestRead, CountPass, "The manifest has "+number(len(man.Claims), "claim")+".")
	for _, p := range m.problems {
		code := Status(p.Status)
		if code == ChainInvalid || code == ChainGap {
			continue // said in its turn
		}
		m.report.add(
			Finding{Code: code, Counts: problemCounts(code), Manifest: m.out.URL, Path: p.Path, Detail: p.Detail},
		)
	}
	for i := range m.listed {
		if a := &m.listed[i]; !m.lists(a) {
			m.fail(
				ManifestInconsistent, "The response announces the source %s, which the manifest does not have.",
				shownURL(a.URL),
			)
		}
	}
	return nil
}

func problemCounts(code Status) Counts {
	switch code {
	case ExcerptTooShort:
		return CountWarning
	case AlgorithmUnsupported:
		return CountUnverifiable
	default:
		return CountFailure
	}
}

// lists reports whether the manifest has an announced source.
func (m *checked) lists(a *manifest.Announcement) bool {
	if a.URL == "" {
		return false
	}
	x, address := m.index(), clean(a.URL)
	if len(m.man.Sources) == 0 {
		return x.cited[address]
	}
	if a.ID == "" {
		return x.byURL[address] != nil
	}
	s := x.byID[a.ID] // several may have the URL
	return s != nil && (clean(s.URL) == address || clean(s.OriginalURL) == address)
}

// index is where the sources of a manifest are found. URLs are clean. Of several sources with one, it is the first.
type index struct {
	byID, byURL map[string]*manifest.Source
	cited       map[string]bool // URLs in claims, where the manifest has no sources
}

// index returns the manifest's, which it makes when it is asked for first: by one goroutine.
func (m *checked) index() *index {
	if m.lookup != nil {
		return m.lookup
	}
	x := &index{byID: map[string]*manifest.Source{}, byURL: map[string]*manifest.Source{}, cited: map[string]bool{}}
	for i := range m.man.Sources {
		s := &m.man.Sources[i]
		if x.byID[s.ID] == nil {
			x.byID[s.ID] = s
		}
		for _, address := range []string{s.URL, s.OriginalURL} {
			if address = clean(address); x.byURL[address] == nil {
				x.byURL[address] = s
			}
		}
	}
	for i := range m.man.Claims {
		for k := range m.man.Claims[i].Sources {
			if s := &m.man.Claims[i].Sources[k]; len(m.man.Sources) == 0 {
				x.cited[clean(s.URL)], x.cited[clean(s.OriginalURL)] = true, true
			}
		}
	}
	m.lookup = x
	return x
}

// source returns the source that a claim names; nil: the manifest does not have it.
func (m *checked) source(cs *manifest.ClaimSource) *manifest.Source {
	switch {
	case cs.Source != "":
		return m.index().byID[cs.Source]
	case cs.URL != "":
		return m.index().byURL[clean(cs.URL)]
	default:
		return nil
	}
}

// matches compares the manifest with where it is from and with the other manifests of the response.
func (m *checked) matches(ctx context.Context) error {
	if m.man.Self != "" && m.url != "" && m.man.Self != m.url && clean(m.man.Self) != m.url {
		m.fail(ManifestMismatch, "The manifest says that it is %s, but it was fetched from %s.", m.man.Self, m.url)
		return nil
	}
	for i := range m.report.Manifests {
		if other := &m.report.Manifests[i]; other.Manifest != nil && other.RunID != m.man.RunID {
			m.fail(
				ManifestMismatch, "The manifest is about run %s, another one of the same response about run %s.",
				m.man.RunID, other.RunID,
			)
			return nil
		}
	}
	return nil
}

// remembered keeps what a URL has, if it is sure that its publisher put it there: what anybody could have written is
// not to stand in the way of the real one.
func (m *checked) remembered(ctx context.Context) error {
	if m.stored || m.url == "" || m.signature != "" ||
		has(m.report.Failure, m.out.URL, AuthorityMismatch, ManifestMismatch) ||
		!m.out.Verified && !unforgeable(m.url) {
		return nil
	}
	sum := m.served.Digest()
	there, err := m.Memory.Remember(ctx, memoryManifest, m.url, sum[:])
	if err != nil {
		return fmt.Errorf("remembering a manifest: %w", err)
	}
	m.unchanged(there, sum) // somebody may have seen another one while this one was read
	return nil
}
