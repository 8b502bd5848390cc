package verify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// announced is a manifest that a response announces.
type announced struct {
	url    string
	digest []byte // nil if none is given
	listed []manifest.Announcement
}

// checked is the verification of one manifest.
type checked struct {
	*job
	announced

	response *Response // nil if the manifest is verified by itself
	upstream *upstream // set if the manifest is that of a source

	served     *manifest.Signed // as it was fetched or stored; nil if it could not be read
	header     http.Header      // all known fields of the response that carried it
	stored     bool             // not fetched from its URL by this job
	bare       bool             // from a file without a header
	man        *manifest.Manifest
	words      []citedWords       // for each claim of an answer document; nil for a manifest
	problems   []manifest.Problem // of man
	lookup     *index             // of man; nil until it is first used
	keysSeen   bool               // its keys come from its origin, not only from a bundle
	logChecked bool               // checkLog has run
	logUnread  bool               // the log could not be read
	signature  Counts             // of the finding about it; empty if it is good or missing
	done       bool               // nothing more can be checked
	out        ManifestReport
}

func (j *job) newChecked(address string) *checked {
	m := &checked{job: j, announced: announced{url: address}}
	m.out.URL, m.out.Level.Why = address, []string{}
	return m
}

// found adds a finding about the manifest, which counts as its status does.
func (m *checked) found(code Status, format string, args ...any) {
	m.foundAs(code, code.counts(), format, args...)
}

// foundAs adds a finding that does not count as its status usually does.
func (m *checked) foundAs(code Status, counts Counts, format string, args ...any) {
	m.report.add(Finding{Code: code, Counts: counts, Detail: fmt.Sprintf(format, args...), Manifest: m.out.URL})
}

// foundAt adds a finding about one place in the manifest; its detail becomes a sentence.
func (m *checked) foundAt(code Status, path, detail string) {
	first, size := utf8.DecodeRuneInString(detail)
	detail = strings.TrimRight(string(unicode.ToUpper(first))+detail[size:], ".") + "."
	m.report.add(Finding{Code: code, Counts: code.counts(), Manifest: m.out.URL, Path: path, Detail: detail})
}

// verify fetches a manifest and verifies it.
func (m *checked) verify(ctx context.Context) error {
	m.all.visited[m.url] = true
	snap, err := m.fetchTrusted(ctx, m.url, maxManifest)
	for last := time.Now().Add(m.Wait); err == nil && snap.Status == http.StatusAccepted; {
		pause := retryAfter(snap.Header)
		if time.Now().Add(pause).After(last) {
			break
		}
		select {
		case <-time.After(pause):
			snap, err = m.fetchAgain(ctx, m.url, maxManifest)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.setDone("manifest", m.url, "")
	m.done = err != nil || snap.Status != http.StatusOK
	switch {
	case err != nil:
		m.foundUnfetched(err)
	case snap.Status == http.StatusAccepted:
		m.found(ManifestPending, "The manifest is not built yet (202). Try again later.")
	case snap.Status != http.StatusOK:
		m.found(ManifestUnreachable, "The manifest's URL answers %d, not 200.", snap.Status)
	default:
		m.header = snap.Header
		m.served = newSigned(m.url, snap.Status, snap.Header, snap.Octets)
	}
	return m.check(ctx)
}

// The pauses before a manifest that is not built yet is fetched again: without Retry-After, and the shortest.
const (
	usualPause = 2 * time.Second
	leastPause = time.Second
)

// retryAfter returns how long a response asks to wait, in seconds; a date, which clocks disagree about, is not read.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 0 || n > 1<<20 {
		return usualPause
	}
	return max(leastPause, time.Duration(n)*time.Second)
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
			code, what = ManifestBlocked, "The manifest's URL may not be fetched"
		case snapshot.TooLarge:
			code, what = ManifestTooLarge, "The manifest is over 1 MiB"
		case snapshot.UnsupportedMedia:
			code, what = ManifestTooLarge, "The manifest was sent with a content coding"
		default:
		}
	}
	m.found(code, "%s", sentence(what, err))
}

// check makes the checks of a manifest that was read, in the order of the specification, and then those of its sources.
func (m *checked) check(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		m.parse, m.checkOutput, m.checkSignature, m.checkAuthority, m.checkExpiry,
		m.remember, m.checkLog, m.checkLevel,
	} {
		if m.done {
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
	if m.done {
		return nil
	}
	return m.checkClaims(ctx)
}

// compareWith compares the manifest's digest with the one that its URL had before, if before is not nil.
func (m *checked) compareWith(before []byte, sum [sha256.Size]byte) {
	if before != nil && !bytes.Equal(before, sum[:]) {
		m.done = true
		m.found(ManifestMutated,
			"The manifest's body has the SHA-256 %x; earlier, this URL had %x. Manifests must not change.", sum, before)
	}
}

// parse compares the bytes with the announced and the earlier digest. It reads the manifest, and reports where it
// contradicts itself, the header, the URL it was fetched from, or other manifests of the same response.
func (m *checked) parse(ctx context.Context) error {
	sum := m.served.Digest()
	if m.digest != nil && !bytes.Equal(m.digest, sum[:]) {
		m.done = true
		m.found(ManifestMutated, "The manifest's body has the SHA-256 %x, the response announces %x.", sum, m.digest)
		return nil
	}
	if !m.bare { // the JSON in a file may be formatted differently
		before, err := m.Memory.Recall(ctx, memoryManifest, m.url)
		if err != nil {
			return fmt.Errorf("looking up an earlier manifest: %w", err)
		}
		if m.compareWith(before, sum); m.done || ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	man, err := manifest.Parse(m.served.Body)
	if err != nil {
		m.done = true
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
		if code := Status(p.Status); code != ChainInvalid && code != ChainGap { // which checkLevel reports
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
		m.found(ManifestMismatch, "The manifest gives its URL as %s, but it was fetched from %s.", man.Self, m.url)
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
	s := x.byID[a.ID] // several may have the same URL
	return s != nil && (clean(s.URL) == address || clean(s.OriginalURL) == address)
}

// index finds the sources of a manifest. URLs are clean. If several sources have the same id or URL, it has the first.
type index struct {
	byID, byURL map[string]*manifest.Source
	cited       map[string]bool // URLs in claims, where the manifest has no sources
}

// index returns the manifest's index, made on first use. Only one goroutine may call it first.
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

// source returns the source that a claim names, or nil if the manifest does not have it.
func (m *checked) source(cs *manifest.ClaimSource) *manifest.Source {
	switch {
	case cs.Source != "":
		return m.index().byID[cs.Source]
	case cs.URL != "":
		return m.index().byURL[clean(cs.URL)]
	}
	return nil
}

// checkExpiry checks whether the manifest has expired.
func (m *checked) checkExpiry(context.Context) error {
	if at := m.man.ExpiresAt; at != "" && m.now.After(at.Time()) {
		m.found(Expired, "The manifest expired at %s.", at)
	}
	return nil
}

// remember stores the manifest's digest for its URL, if it certainly comes from its publisher: otherwise a forgery
// could block the real manifest.
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
	m.compareWith(there, sum) // a concurrent job may have stored another one
	return nil
}

// checkLevel checks whether the chain is sound, and compares the manifest's level with the required and the promised
// one.
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
		promised = d.promised(m.man.EmittedAt.Time())
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
			"Whether the manifest has the required level %d cannot be determined.", m.RequireLevel)
	case level < m.RequireLevel:
		m.found(LevelNotMet, "The manifest has level %d, and level %d is required%s", level, m.RequireLevel, missing)
	case level < promised && m.bare:
		m.foundAs(LevelNotMet, CountInfo,
			"A file has no signature, so it has level %d, and its publisher promises level %d.", level, promised)
	case level < promised:
		m.foundAs(LevelNotMet, m.shortfall(promised),
			"The publisher promises level %d, and the manifest has level %d%s", promised, level, missing)
	default:
		m.found(LevelMet, "The manifest has level %d.", level)
	}
	return nil
}

// shortfall returns what a broken promise counts as: a failure, unless one was already reported, or all that is missing
// are sources that the manifest itself says could not be read, and why.
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
