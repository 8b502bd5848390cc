package verify_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

const (
	sourceURL = "https://tower.example/facts"
	towerPage = `<!doctype html><title>Tower</title><nav>Home</nav><h1>Facts 🧭</h1><p>The tower was built in <b>1889</b> and is not 330 metres tall.</p><p>It is closed.</p>`
	quoted    = "The tower was built in 1889 and is not 330 metres tall."
	// with a change outside the excerpt, and in it
	pageElsewhere = `<!doctype html><title>Tower</title><nav>Home 2</nav><h1>Facts 🧭</h1><p>The tower was built in <b>1889</b> and is not 330 metres tall.</p><p>It is open.</p>`
	pageAltered   = `<!doctype html><title>Tower</title><nav>Home</nav><h1>Facts 🧭</h1><p>The tower was built in <b>1887</b> and is not 330 metres tall.</p><p>It is closed.</p>`
)

// read returns a document that was just fetched.
func read(body, mediaType string) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		URL: sourceURL, FinalURL: sourceURL, Status: 200, MediaType: mediaType, Octets: []byte(body), Hash: snapshot.Hash([]byte(body)),
		FetchedAt: time.Date(2026, 4, 28, 10, 0, 0, 0, time.UTC),
	}
}

func html(body string) *snapshot.Snapshot { return read(body, "text/html; charset=utf-8") }

// recorded returns what a manifest records of a source that was read as s, quoting exact.
func recorded(t *testing.T, s *snapshot.Snapshot, exact string) (*manifest.ClaimSource, *manifest.Source) {
	t.Helper()
	cs := &manifest.ClaimSource{Source: "s1", URL: sourceURL, Hash: s.Hash, ExcerptOrigin: manifest.OriginProvider}
	src := &manifest.Source{ID: "s1", URL: sourceURL, FinalURL: sourceURL, Hash: s.Hash, MediaType: s.MediaType}
	text, err := s.Text()
	if err != nil {
		return cs, src
	}
	src.TextHash = snapshot.Hash([]byte(text.Content))
	if exact == "" {
		return cs, src
	}
	m, ok := snapshot.Find(text.Content, &snapshot.Quote{Exact: exact})
	if !ok {
		t.Fatalf("%q is not in %q", exact, text.Content)
	}
	q := quoteAt(text.Content, m.Start, m.End)
	cs.ExcerptOffset = &manifest.Range{m.Start, m.End}
	cs.Excerpt = &manifest.Excerpt{Exact: q.Exact, Prefix: q.Prefix, Suffix: q.Suffix}
	cs.ExcerptHash = snapshot.Hash([]byte(q.Exact))
	return cs, src
}

type sourceCase struct {
	name   string
	first  *snapshot.Snapshot // when the manifest was made; nil means html(towerPage)
	edit   func(cs *manifest.ClaimSource, src *manifest.Source)
	now    *snapshot.Snapshot // nil means same as first
	err    error
	want   verify.Status // empty means the first word of the name
	counts verify.Counts
	check  func(t *testing.T, r *verify.SourceResult)
}

func fetchError(kind snapshot.FetchErrorKind, reason string, status int) error {
	return fmt.Errorf("reading: %w", &snapshot.FetchError{URL: sourceURL, Kind: kind, Reason: reason, Status: status, FinalURL: sourceURL})
}

func moveBy(n int) func(*manifest.ClaimSource, *manifest.Source) {
	return func(cs *manifest.ClaimSource, _ *manifest.Source) {
		at := manifest.Range{cs.ExcerptOffset[0] + n, cs.ExcerptOffset[1] + n}
		cs.ExcerptOffset = &at
	}
}

func say(exact string) func(*manifest.ClaimSource, *manifest.Source) {
	return func(cs *manifest.ClaimSource, _ *manifest.Source) {
		cs.Excerpt = &manifest.Excerpt{Exact: exact}
		cs.ExcerptHash = snapshot.Hash([]byte(exact))
	}
}

func both(all ...func(*manifest.ClaimSource, *manifest.Source)) func(*manifest.ClaimSource, *manifest.Source) {
	return func(cs *manifest.ClaimSource, src *manifest.Source) {
		for _, f := range all {
			f(cs, src)
		}
	}
}

func noHash(cs *manifest.ClaimSource, src *manifest.Source) {
	cs.Hash, src.Hash, src.TextHash, cs.Unavailable = "", "", "", "unreachable"
}

func private(cs *manifest.ClaimSource, _ *manifest.Source) { cs.Excerpt = nil }

func noExcerpt(cs *manifest.ClaimSource, _ *manifest.Source) {
	cs.Excerpt, cs.ExcerptHash, cs.ExcerptOffset = nil, "", nil
}

func noTextHash(_ *manifest.ClaimSource, src *manifest.Source) { src.TextHash = "" }

func inferred(cs *manifest.ClaimSource, _ *manifest.Source) {
	cs.ExcerptOrigin = manifest.OriginInferred
}

func noOffset(cs *manifest.ClaimSource, _ *manifest.Source) { cs.ExcerptOffset = nil }

// sourceCases are the rows of the specification's §6 B in their order, and cases that the rows leave open.
func sourceCases() []sourceCase {
	const pass, info, warning, unverifiable, failure = verify.CountPass, verify.CountInfo, verify.CountWarning, verify.CountUnverifiable, verify.CountFailure
	reformatted := strings.ReplaceAll(pageElsewhere, " and is", " — and, is")
	at := func(start int) func(*testing.T, *verify.SourceResult) {
		return func(t *testing.T, r *verify.SourceResult) {
			t.Helper()
			if r.Match == nil || r.Match.Start != start || r.Excerpt == "" {
				t.Errorf("%+v, want a match at %d", r.Match, start)
			}
		}
	}
	near := func(t *testing.T, r *verify.SourceResult) {
		t.Helper()
		if r.Near == nil || r.Near.Edits != 1 {
			t.Errorf("nearest: %+v", r.Near)
		}
	}
	return []sourceCase{
		{name: "blocked", err: fetchError(snapshot.Blocked, "network", 0), counts: unverifiable},
		{name: "robots-disallowed", err: fetchError(snapshot.RobotsDisallowed, "rule", 0), counts: unverifiable},
		{name: "not-dereferenceable", edit: func(cs *manifest.ClaimSource, _ *manifest.Source) { cs.URL = "urn:ibid:src:7" }, counts: unverifiable},
		{name: "unreachable", err: fetchError(snapshot.Unreachable, "dns", 0), counts: unverifiable, check: func(t *testing.T, r *verify.SourceResult) {
			t.Helper()
			if r.Reason != "dns" {
				t.Errorf("reason %q", r.Reason)
			}
		}},
		{name: "unreachable, without saying why", err: errors.New("no"), counts: unverifiable},
		{name: "gone", err: fetchError(snapshot.Gone, "", 410), counts: unverifiable},
		{name: "access-denied", err: fetchError(snapshot.AccessDenied, "", 403), counts: unverifiable},
		{name: "too-large", err: fetchError(snapshot.TooLarge, "decoded", 200), counts: unverifiable},
		{name: "unsupported-media", err: fetchError(snapshot.UnsupportedMedia, "coding", 200), counts: unverifiable},
		{name: "unsupported-media, no text any more", now: read("\x89PNG\r\n\x1a\n\x00", "image/png"), counts: unverifiable},
		{name: "unsupported-media, nested too deeply", now: html(strings.Repeat("<div>", 600) + page), counts: unverifiable},
		{name: "unsupported-media, nested too deeply from the first", first: html(strings.Repeat("<div>", 600)), edit: say("anything that it says there"), counts: unverifiable},
		{name: "algorithm-unsupported", edit: func(cs *manifest.ClaimSource, src *manifest.Source) {
			cs.Hash, src.Hash = "sha512:00", "sha512:00"
		}, counts: unverifiable},

		{name: "verified", counts: pass, check: at(13)},
		{name: "verified by excerpt_hash", edit: private, counts: pass, check: at(13)},
		{name: "verified without offset", edit: noOffset, counts: pass, check: at(13)},
		{name: "verified-hash-only, no excerpt recorded", edit: noExcerpt, counts: info},
		{name: "verified-hash-only, no text profile", first: read("\x89PNG\r\n\x1a\n\x00", "image/png"), edit: say("seven towers in a row"), counts: info},
		{name: "offset-wrong", edit: moveBy(1), counts: warning, check: at(13)},
		{name: "offset-wrong, behind the end", edit: moveBy(5000), counts: warning, check: at(13)},
		{name: "excerpt-mismatch", edit: say("The tower was built in 1887 and is not 330 metres tall."), counts: failure, check: near},
		{name: "excerpt-mismatch, without the negation", edit: say("The tower was built in 1889 and is 330 metres tall."), counts: failure},
		{name: "excerpt-mismatch, nothing similar", edit: say("Nobody ever said this of any tower."), counts: failure},
		{name: "excerpt-mismatch, never if inferred", edit: both(say("Nobody ever said this of any tower."), inferred), want: verify.VerifiedHashOnly, counts: info},
		{name: "excerpt-mismatch by excerpt_hash", edit: both(say("something that it does not say"), private), counts: failure},
		{name: "excerpt-reformatted in an unchanged source", edit: say("The tower was built in 1889, and is not 330 metres tall"), counts: info},
		{name: "source-drifted-text-intact", now: html(strings.Replace(towerPage, "<nav>", "<nav class=x>", 1)), counts: pass, check: at(13)},
		{name: "source-drifted-text-intact by excerpt_hash", edit: private, now: html(strings.Replace(towerPage, "<nav>", "<nav class=x>", 1)), counts: pass},
		{name: "source-drifted-text-intact without excerpt", edit: noExcerpt, now: html(towerPage + "<!-- -->"), counts: pass},
		{name: "source-drifted-excerpt-intact", now: html(pageElsewhere), counts: info, check: at(15)},
		{name: "source-drifted-excerpt-intact, in place", edit: noTextHash, now: html(towerPage + "<p>more"), counts: info, check: at(13)},
		{name: "source-drifted-excerpt-intact by excerpt_hash", edit: private, now: html(towerPage + "<p>more"), counts: info},
		{name: "source-drifted-excerpt-intact, wrong offset in the same text", edit: moveBy(2), now: html(towerPage + " "), counts: info},
		{name: "excerpt-reformatted", now: html(reformatted), counts: info},
		{name: "excerpt-altered", now: html(pageAltered), counts: failure, check: near},
		{name: "excerpt-altered, inferred", edit: inferred, now: html(pageAltered), counts: failure},
		{name: "excerpt-missing", now: html("<p>Another page about something else."), counts: failure},
		{name: "not-comparable, the page is empty", now: html(" "), counts: unverifiable},
		{name: "excerpt-missing, too short to be altered", edit: func(cs *manifest.ClaimSource, _ *manifest.Source) {
			cs.Excerpt = &manifest.Excerpt{Exact: "and is not 330 metres"}
		}, now: html(strings.Replace(towerPage, "330", "331", 1)), counts: failure},
		{name: "hash-mismatch", edit: both(noExcerpt, noTextHash), now: html(pageElsewhere), counts: unverifiable},
		{name: "hash-mismatch, the text changed, too", edit: noExcerpt, now: html(pageElsewhere), counts: unverifiable},
		{name: "hash-mismatch, a private excerpt slid", edit: private, now: html(pageElsewhere), counts: unverifiable},

		{name: "excerpt-found", edit: noHash, counts: info, check: at(13)},
		{name: "excerpt-found, without offset", edit: both(noHash, noOffset), counts: info, check: at(13)},
		{name: "excerpt-found, private", edit: both(noHash, private), counts: info},
		{name: "no hash, reformatted", edit: noHash, now: html(reformatted), want: verify.ExcerptReformatted, counts: info},
		{name: "no hash, altered", edit: noHash, now: html(pageAltered), want: verify.ExcerptAltered, counts: failure, check: near},
		{name: "no hash, missing", edit: noHash, now: html("<p>Another page."), want: verify.ExcerptMissing, counts: failure},
		{name: "no hash, missing, publisher's quote", edit: both(noHash, func(cs *manifest.ClaimSource, _ *manifest.Source) { cs.ExcerptOrigin = "" }), now: html("<p>Another page."), want: verify.ExcerptMissing, counts: failure},
		{name: "no hash, missing, inferred", edit: both(noHash, inferred), now: html("<p>Another page."), want: verify.ExcerptMissing, counts: unverifiable},
		{name: "nothing recorded", edit: both(noHash, noExcerpt), want: verify.NothingRecorded, counts: unverifiable},

		{name: "plain text", first: read("It is written:\n\n  The tower was built in 1889 and is not 330 metres tall.", "text/plain"), want: verify.Verified, counts: pass},
		{name: "JSON", first: read(`{"facts": ["The tower was built in 1889 and is not 330 metres tall."]}`, "application/json"), want: verify.Verified, counts: pass},
		{name: "JSON, another value", first: read(`{"facts": ["The tower was built in 1889 and is not 330 metres tall."]}`, "application/json"), now: read(`{"facts": ["The tower was built in 1888 and is not 330 metres tall."]}`, "application/json"), want: verify.ExcerptAltered, counts: failure},
	}
}

func TestCompare(t *testing.T) {
	for _, test := range sourceCases() {
		t.Run(test.name, func(t *testing.T) {
			first := test.first
			if first == nil {
				first = html(towerPage)
			}
			exact := ""
			if text, err := first.Text(); err == nil && strings.Contains(text.Content, quoted) {
				exact = quoted
			}
			cs, src := recorded(t, first, exact)
			if test.edit != nil {
				test.edit(cs, src)
			}
			now := test.now
			if now == nil && test.err == nil {
				now = first
			}
			want := cmp.Or(test.want, verify.Status(strings.TrimRight(strings.Fields(test.name)[0], ",")))
			for _, texts := range []*snapshot.Texts{nil, {}} {
				r := verify.Compare(cs, src, now, test.err, &verify.CompareOptions{Texts: texts, TextProfile: manifest.TextProfile})
				if r.Status != want || r.Counts != test.counts {
					t.Fatalf("%s counts %s, want %s counts %s: %+v", r.Status, r.Counts, want, test.counts, r)
				}
				if test.check != nil {
					test.check(t, &r)
				}
			}
		})
	}
}

// Row 10 of the specification: offsets of manifests that do not give a unit.
func TestCompareUnits(t *testing.T) {
	s := html(towerPage)
	text, err := s.Text()
	if err != nil {
		t.Fatal(err)
	}
	octets := strings.ReplaceAll(towerPage, "<b>1889</b>", "1889")
	plain := html(octets)
	for _, test := range []struct {
		name    string
		snap    *snapshot.Snapshot
		at      manifest.Range
		profile string
		want    verify.Status
		unit    verify.Unit
	}{
		{"code points of the text", s, manifest.Range{13, 13 + len(quoted)}, "", verify.Verified, verify.UnitText},
		{"octets", plain, manifest.Range{strings.Index(octets, quoted), strings.Index(octets, quoted) + len(quoted)}, "", verify.Verified, verify.UnitOctet},
		{"UTF-16", s, manifest.Range{len(utf16.Encode([]rune(text.Content[:strings.Index(text.Content, quoted)]))), len(utf16.Encode([]rune(text.Content[:strings.Index(text.Content, quoted)+len(quoted)])))}, "", verify.Verified, verify.UnitUTF16},
		{"none of them", s, manifest.Range{3, 9}, "", verify.OffsetWrong, ""},
		{"octets are not tried if the profile is known", plain, manifest.Range{strings.Index(octets, quoted), strings.Index(octets, quoted) + len(quoted)}, manifest.TextProfile, verify.OffsetWrong, ""},
		{"negative", s, manifest.Range{-3, 9}, "", verify.OffsetWrong, ""},
		{"backwards", s, manifest.Range{9, 3}, "", verify.OffsetWrong, ""},
	} {
		for _, hashed := range []bool{false, true} {
			cs := &manifest.ClaimSource{URL: sourceURL, Hash: test.snap.Hash, ExcerptOffset: &test.at}
			cs.Excerpt, cs.ExcerptHash = &manifest.Excerpt{Exact: quoted}, snapshot.Hash([]byte(quoted))
			if hashed {
				cs.Excerpt = nil
			}
			r := verify.Compare(cs, nil, test.snap, nil, &verify.CompareOptions{TextProfile: test.profile})
			want := test.want
			if hashed && want == verify.OffsetWrong {
				want = verify.ExcerptMismatch
			}
			if r.Status != want || r.Unit != test.unit {
				t.Errorf("%s, private %v: %s in %q, want %s in %q", test.name, hashed, r.Status, r.Unit, want, test.unit)
			}
		}
	}
	// A place in the markup is not a place in the text.
	cs := &manifest.ClaimSource{URL: sourceURL, Hash: s.Hash, ExcerptOffset: &manifest.Range{0, 15}, Excerpt: &manifest.Excerpt{Exact: towerPage[:15]}}
	if r := verify.Compare(cs, nil, s, nil, nil); r.Status != verify.ExcerptMismatch {
		t.Errorf("markup quoted: %s", r.Status)
	}
}

func TestCompareRedirected(t *testing.T) {
	for final, want := range map[string]bool{
		sourceURL: false, "https://www.tower.example/facts": false, "https://tower.example:8443/x": false,
		"https://tower.example.org/facts": true, "http://192.0.2.1/": true, "": false,
	} {
		cs, src := recorded(t, html(towerPage), quoted)
		s := html(towerPage)
		s.FinalURL = final
		if got := verify.Compare(cs, src, s, nil, nil); got.Redirected != want || got.Status != verify.Verified {
			t.Errorf("to %q: %v, %s", final, got.Redirected, got.Status)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	s := html(towerPage + strings.Repeat("<p>The tower was painted every seven years, in one of its three colours.", 250))
	text, err := s.Text()
	if err != nil {
		b.Fatal(err)
	}
	start := utf8.RuneCountInString(text.Content[:strings.Index(text.Content, quoted)])
	cs := &manifest.ClaimSource{URL: sourceURL, Hash: s.Hash, ExcerptOffset: &manifest.Range{start, start + len(quoted)}, Excerpt: &manifest.Excerpt{Exact: quoted}}
	o := &verify.CompareOptions{Texts: &snapshot.Texts{}, TextProfile: manifest.TextProfile}
	b.SetBytes(int64(len(s.Octets)))
	for b.Loop() {
		if r := verify.Compare(cs, nil, s, nil, o); r.Status != verify.Verified {
			b.Fatal(r.Status)
		}
	}
}
