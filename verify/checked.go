package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// announced is a manifest that a response announces.
type announced struct {
	url    string
	digest []byte // nil: not said
	listed []manifest.Announcement
}

// checked is a manifest that is being verified.
type checked struct {
	*job
	announced

	response *Response // nil: it is verified by itself
	upstream *upstream // not nil: it is that of a source

	served    *manifest.Signed // as it was fetched or stored; nil: it could not be read
	header    http.Header      // all fields that are known of the response that it came with
	stored    bool             // it was not fetched from its URL now
	bare      bool             // a file: it never had a header
	man       *manifest.Manifest
	problems  []manifest.Problem // of man
	lookup    *index             // of man; nil: not asked for yet
	seen      bool               // its keys come from its origin, and not only from a bundle
	asked     bool               // the log was: see checkLog
	unasked   bool               // and could not be read
	signature Counts             // of what was found about it; empty: it is good, or there is none
	over      bool               // nothing more can be looked at
	out       ManifestReport
}

func (j *job) newChecked(address string) *checked {
	m := &checked{job: j, announced: announced{url: address}}
	m.out.URL, m.out.Level.Why = address, []string{}
	return m
}

// found enters a finding about the manifest, which counts as its status does.
func (m *checked) found(code Status, format string, args ...any) {
	m.foundAs(code, code.counts(), format, args...)
}

// foundAs enters a finding that counts as something else than its status does usually.
func (m *checked) foundAs(code Status, counts Counts, format string, args ...any) {
	m.report.add(Finding{Code: code, Counts: counts, Detail: fmt.Sprintf(format, args...), Manifest: m.out.URL})
}

// foundAt enters a finding about one place of the manifest; its detail becomes a sentence.
func (m *checked) foundAt(code Status, path, detail string) {
	first, size := utf8.DecodeRuneInString(detail)
	detail = strings.TrimRight(string(unicode.ToUpper(first))+detail[size:], ".") + "."
	m.report.add(Finding{Code: code, Counts: code.counts(), Manifest: m.out.URL, Path: path, Detail: detail})
}

// verify fetches a manifest and verifies it.
func (m *checked) verify(ctx context.Context) error {
	m.all.visited[m.url] = true
	snap, err := m.fetchTrusted(ctx, m.url, maxManifest)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.setDone("manifest", m.url)
	m.over = err != nil || snap.Status != http.StatusOK
	switch {
	case err != nil:
		m.foundUnfetched(err)
	case snap.Status == http.StatusAccepted:
		m.found(ManifestPending, "The manifest is not built yet (202). Try again later.")
	case snap.Status != http.StatusOK:
		m.found(ManifestUnreachable, "The manifest's URL answers %d and not 200.", snap.Status)
	default:
		m.header = snap.Header
		m.served = newSigned(m.url, snap.Status, snap.Header, snap.Octets)
	}
	return m.check(ctx)
}

// newSigned returns a manifest as a response served it.
func newSigned(address string, status int, header http.Header, body []byte) *manifest.Signed {
	field := func(name string) string { return strings.Join(header.Values(name), ", ") }
	return &manifest.Signed{
		TargetURI: address, Status: status, ContentType: header.Get("Content-Type"), Body: body,
		ContentDigest: field("Content-Digest"), SignatureInput: field("Signature-Input"), Signature: field("Signature"),
	}
}

func (m *checked) foundUnfetched(err error) {
	code, what := ManifestUnreachable, "The manifest could not be fetched"
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		switch f.Kind {
		case snapshot.Blocked:
			code, what = ManifestBlocked, "The manifest's URL is not fetched"
		case snapshot.TooLarge:
			code, what = ManifestTooLarge, "The manifest is over 1 MiB"
		case snapshot.UnsupportedMedia:
			code, what = ManifestTooLarge, "The manifest was sent with a content coding"
		default:
		}
	}
	m.found(code, "%s", sentence(what, err))
}

// check looks at a manifest that was read, in the order of the specification, and at its sources.
func (m *checked) check(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		m.parse, m.checkOutput, m.checkSignature, m.checkAuthority, m.checkExpiry,
		m.remember, m.checkLog, m.checkLevel,
	} {
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
	return m.checkClaims(ctx)
}

// compareWith compares the manifest with what its URL had before; nil: nothing that is known of.
func (m *checked) compareWith(before []byte, sum [sha256.Size]byte) {
	if before != nil && !bytes.Equal(before, sum[:]) {
		m.over = true
		m.found(ManifestMutated,
			"The manifest's body has the SHA-256 %x; before, this URL had %x. A manifest never changes.", sum, before)
	}
}

// parse compares the bytes with those that were announced, and with those that were there before. It reads the
// manifest, and says in what it contradicts itself, the header, where it is from, or the response's other manifests.
func (m *checked) parse(ctx context.Context) error {
	sum := m.served.Digest()
	if m.digest != nil && !bytes.Equal(m.digest, sum[:]) {
		m.over = true
		m.found(ManifestMutated, "The manifest's body has the SHA-256 %x, the response announces %x.", sum, m.digest)
		return nil
	}
	if !m.bare { // the octets of a file may be laid out in another way
		before, err := m.Memory.Recall(ctx, memoryManifest, m.url)
		if err != nil {
			return fmt.Errorf("looking up what a manifest was: %w", err)
		}
		if m.compareWith(before, sum); m.over || ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	man, err := manifest.Parse(m.served.Body)
	if err != nil {
		m.over = true
		code, path := ManifestMalformed, ""
		if e, ok := errors.AsType[*manifest.Error](err); ok {
			code, path = Status(e.Status), e.Path
		}
		m.foundAt(code, path, sentence("The manifest cannot be read", err))
		return nil
	}
	m.man, m.problems = man, man.Problems()
	if m.url != "" {
		m.all.read[m.url] = m
	}
	m.out.RunID, m.out.AgentID, m.out.EmittedAt = man.RunID, man.AgentID, string(man.EmittedAt)
	m.found(ManifestRead, "The manifest has %s.", number(len(man.Claims), "claim"))
	for _, p := range m.problems {
		if code := Status(p.Status); code != ChainInvalid && code != ChainGap { // which checkLevel says
			m.foundAt(code, p.Path, p.Detail)
		}
	}
	for i := range m.listed {
		if a := &m.listed[i]; !m.lists(a) {
			m.found(ManifestInconsistent, "The response announces the source %s, which the manifest does not have.",
				shownURL(a.URL))
		}
	}
	if man.Self != "" && m.url != "" && man.Self != m.url && clean(man.Self) != m.url {
		m.found(ManifestMismatch, "The manifest says that it is %s, but it was fetched from %s.", man.Self, m.url)
		return nil
	}
	for i := range m.report.Manifests {
		if other := &m.report.Manifests[i]; other.Manifest != nil && other.RunID != man.RunID {
			m.found(ManifestMismatch, "The manifest is about run %s, another one of the same response about run %s.",
				man.RunID, other.RunID)
			return nil
		}
	}
	return nil
}

// lists reports whether the manifest has an announced source.
func (m *checked) lists(a *manifest.Announcement) bool {
	x, address := m.index(), clean(a.URL)
	switch {
	case a.URL == "":
		return false
	case len(m.man.Sources) == 0:
		return x.cited[address]
	case a.ID == "":
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
			if address == "" {
				continue
			}
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
	}
	return nil
}

// checkExpiry says whether the manifest has expired.
func (m *checked) checkExpiry(context.Context) error {
	if at := m.man.ExpiresAt; at != "" && m.now.After(at.Time()) {
		m.found(Expired, "The manifest expired at %s.", at)
	}
	return nil
}

// remember keeps what a URL has, if it is sure that its publisher put it there: what anybody could have written is not
// to stand in the way of the real one.
func (m *checked) remember(ctx context.Context) error {
	ofAnother := slices.ContainsFunc(m.report.Failure, func(f Finding) bool {
		return f.Manifest == m.out.URL && (f.Code == AuthorityMismatch || f.Code == ManifestMismatch)
	})
	if m.stored || m.url == "" || m.signature != "" || ofAnother || !m.out.Verified && !unforgeable(m.url) {
		return nil
	}
	sum := m.served.Digest()
	there, err := m.Memory.Remember(ctx, memoryManifest, m.url, sum[:])
	if err != nil {
		return fmt.Errorf("remembering a manifest: %w", err)
	}
	m.compareWith(there, sum) // somebody may have seen another one while this one was read
	return nil
}

// checkLevel says whether the chain is sound, and whether the manifest is what its publisher promises.
func (m *checked) checkLevel(ctx context.Context) error {
	sound := len(m.man.Chain) > 0
	for _, p := range m.problems {
		if code := Status(p.Status); code == ChainInvalid || code == ChainGap {
			sound = false
			m.foundAt(code, p.Path, p.Detail)
		}
	}
	if sound {
		m.found(ChainValid, "The chain of %d steps is sound.", len(m.man.Chain))
	}
	level, why := m.man.Level(m.out.Verified)
	promised := 0
	if m.url != "" {
		d := m.directory(ctx, origin(m.url), false)
		promised = d.promised()
		if d.Discovery != nil && d.Discovery.IncidentEndpoint != nil &&
			origin(*d.Discovery.IncidentEndpoint) == origin(m.url) {
			m.out.Incidents = *d.Discovery.IncidentEndpoint
		}
	}
	m.out.Level = Levels{Promised: promised, Observed: level, Why: append([]string{}, why...)}
	all := &m.report.Level
	if len(m.report.Manifests) == 0 || level < all.Observed {
		all.Observed, all.Why = level, m.out.Level.Why
	}
	all.Promised = max(all.Promised, promised)
	missing := "."
	if len(why) > 0 {
		missing = ": " + strings.Join(why, "; ") + "."
	}
	switch {
	case level < m.RequireLevel && m.signature == CountUnverifiable:
		m.foundAs(LevelNotMet, CountUnverifiable,
			"Whether the manifest is of level %d, which is required, cannot be known.", m.RequireLevel)
	case level < m.RequireLevel:
		m.found(LevelNotMet, "The manifest is of level %d, and level %d is required%s", level, m.RequireLevel, missing)
	case level < promised && m.bare:
		m.foundAs(LevelNotMet, CountInfo,
			"A file has no signature, so it shows level %d of the %d that its publisher promises.", level, promised)
	case level < promised:
		m.foundAs(LevelNotMet, m.shortfall(promised),
			"The publisher promises level %d, and the manifest is of level %d%s", promised, level, missing)
	default:
		m.found(LevelMet, "The manifest is of level %d.", level)
	}
	return nil
}

// shortfall says what it counts as that a promise is not kept: a failure, unless that was said already, or all that is
// missing are sources of which the manifest itself says why nobody could read them.
func (m *checked) shortfall(promised int) Counts {
	switch {
	case m.signature == CountFailure:
		return CountInfo
	case m.signature == CountUnverifiable:
		return CountUnverifiable
	case promised >= 3 && (!m.out.Verified || len(m.man.Chain) == 0):
		return CountFailure
	}
	for i := range m.man.Claims {
		for k := range m.man.Claims[i].Sources {
			s := &m.man.Claims[i].Sources[k]
			src := m.source(s)
			said := s.Unavailable != "" || src != nil && src.Unavailable != ""
			if !said && (s.Hash == "" && (src == nil || src.Hash == "") || s.ExcerptOffset == nil) {
				return CountFailure
			}
		}
	}
	return CountWarning
}
