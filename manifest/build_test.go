package manifest_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

const (
	page      = "https://src.example/heron"
	pageTitle = "Herons"
	pageHTML  = `<!doctype html><html><head><title>Herons</title></head><body><h1>Herons</h1>
<p>The grey heron (<i>Ardea cinerea</i>) stands up to 98 cm tall 🪶 and weighs up to 2.1 kg.</p>
<p>It breeds in colonies, which are called heronries. Most clutches have three to five eggs.</p></body></html>`
)

// herony is the page that the answer draws on.
var herony = map[string]string{page: pageHTML}

func noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

// read returns a reader of pages.
func read(pages map[string]string) func(context.Context, string) (*snapshot.Snapshot, error) {
	return func(_ context.Context, url string) (*snapshot.Snapshot, error) {
		body, ok := pages[url]
		if !ok {
			return nil, &snapshot.FetchError{URL: url, Kind: snapshot.Gone, Status: 404}
		}
		return snap(url, body), nil
	}
}

func snap(url, body string) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		URL: url, FinalURL: url, Status: 200, MediaType: "text/html; charset=utf-8", FetchedAt: noon().Add(-time.Minute),
		Octets: []byte(body), Hash: snapshot.Hash([]byte(body)),
	}
}

// cite adds a citation of words, which must be in the answer's text, with sources and their quotes.
func cite(tb testing.TB, a *ibid.Answer, words string, refs ...ibid.Ref) {
	tb.Helper()
	at := strings.Index(a.Text, words)
	if at < 0 {
		tb.Fatalf("%q is not in the text", words)
	}
	if err := a.Cite(ibid.Span{Start: at, End: at + len(words)}, refs...); err != nil {
		tb.Fatal(err)
	}
}

func builder(pages map[string]string) *manifest.Builder {
	return &manifest.Builder{
		Self: "https://agent.example/runs/r1/cite", RunID: "r1", AgentID: "agent.example/v1", Now: noon, Read: read(pages),
	}
}

// build builds a manifest and checks that it is consistent.
func build(tb testing.TB, b *manifest.Builder, a *ibid.Answer, t *trail.Trail) *manifest.Manifest {
	tb.Helper()
	m, err := b.Build(tb.Context(), a, t)
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range m.Problems() {
		tb.Errorf("%s at %s: %s", p.Status, p.Path, p.Detail)
	}
	if _, err := m.Canonical(); err != nil {
		tb.Error(err)
	}
	return m
}

func herons() *ibid.Answer {
	return &ibid.Answer{
		Text:    "A heron is up to 98 cm tall.  It lays three to five eggs.",
		Sources: []ibid.Source{{ID: "w1", Kind: ibid.Web, URL: page + "#top", Title: pageTitle}},
	}
}

// same compares got with want.
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// quoted returns the answer with its first sentence cited.
func quoted(tb testing.TB) *ibid.Answer {
	tb.Helper()
	a := herons()
	cite(tb, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1", Quote: "stands up to 98 cm tall"})
	return a
}

func TestBuildPutsAQuoteInItsPlace(t *testing.T) {
	a := herons()
	cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1", Quote: "stands  up to 98 cm tall 🪶", Confidence: new(0.9)})
	m := build(t, builder(herony), a, nil)

	s := m.Sources[0]
	text, hash, err := new(snapshot.Texts).Of(snap(page, pageHTML))
	if err != nil {
		t.Fatal(err)
	}
	length := utf8.RuneCountInString(text.Content)
	want := manifest.Source{
		ID: "s1", URL: page, FinalURL: page, RetrievedAt: "2026-05-04T11:59:00Z", RetrievedBy: manifest.ByObserver, Status: 200,
		MediaType: "text/html; charset=utf-8", Hash: snapshot.Hash([]byte(pageHTML)), TextHash: hash, TextLength: &length,
		Cited: new(true), Title: pageTitle,
	}
	same(t, "source", want, s)
	const exact = "stands up to 98 cm tall 🪶"
	start := utf8.RuneCountInString(text.Content[:strings.Index(text.Content, exact)])
	wantClaim := manifest.Claim{
		ID: manifest.ClaimID("A heron is up to 98 cm tall."), Text: "A heron is up to 98 cm tall.", Span: &manifest.Range{0, 28},
		Confidence: manifest.ConfidenceHigh, ConfidenceOrigin: manifest.OriginProvider, ConfidenceScore: new(0.9),
		Steps: []int{1},
		Sources: []manifest.ClaimSource{{
			Source: "s1", URL: page, RetrievedAt: "2026-05-04T11:59:00Z", Hash: s.Hash,
			ExcerptOffset: &manifest.Range{start, start + utf8.RuneCountInString(exact)}, ExcerptHash: snapshot.Hash([]byte(exact)),
			Excerpt:       &manifest.Excerpt{Exact: exact, Prefix: "he grey heron (Ardea cinerea) ", Suffix: " and weighs up to 2.1 kg. It bre"},
			ExcerptOrigin: manifest.OriginProvider, Relation: manifest.RelationSupports,
		}},
	}
	wantClaim.Sources[0].Excerpt.Prefix = text.Content[:strings.Index(text.Content, exact)]
	if n := utf8.RuneCountInString(wantClaim.Sources[0].Excerpt.Prefix); n > 32 {
		wantClaim.Sources[0].Excerpt.Prefix = string([]rune(wantClaim.Sources[0].Excerpt.Prefix)[n-32:])
	}
	same(t, "claims", []manifest.Claim{wantClaim}, m.Claims)
	normal := snapshot.Normalize(a.Text)
	wantOutput := &manifest.Output{
		MediaType: "text/plain; charset=utf-8", Hash: snapshot.Hash([]byte(a.Text)), TextHash: snapshot.Hash([]byte(normal)),
		TextLength: new(len(normal)),
	}
	same(t, "output", wantOutput, m.Output)
	wantChain := []manifest.Step{{
		Step: 1, Tool: "model", OutputsRef: "runs/r1/step/1", OutputsHash: snapshot.Hash([]byte(a.Text)), Sources: []string{page},
	}}
	same(t, "chain", wantChain, m.Chain)
	if level, why := m.Level(true); level != 3 {
		t.Errorf("level %d: %s", level, why)
	}
}

// A quote that is not in the source must be visible to a verifier; the checker's evidence must not hide it.
func TestBuildShowsAMisquote(t *testing.T) {
	a := herons()
	cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1", Quote: "stands up to 89 cm tall"})
	m := build(t, builder(herony), a, nil)
	got := m.Claims[0].Sources[0]
	if got.Excerpt == nil || got.Excerpt.Exact != "stands up to 89 cm tall" || got.ExcerptOffset != nil ||
		got.ExcerptHash != snapshot.Hash([]byte("stands up to 89 cm tall")) || got.Unavailable != manifest.ExcerptNotFound ||
		got.ExcerptOrigin != manifest.OriginProvider || got.Hash == "" {
		t.Errorf("got %+v", got)
	}
	if level, _ := m.Level(true); level >= 2 {
		t.Errorf("level %d", level)
	}
}

func TestBuildInfersMissingQuotes(t *testing.T) {
	a := herons()
	cite(t, a, "It lays three to five eggs.", ibid.Ref{Source: "w1"})
	a.Text += " The Eiffel Tower was finished in 1889."
	cite(t, a, "The Eiffel Tower was finished in 1889.", ibid.Ref{Source: "w1", Quote: "98 cm"}) // too short, and no evidence
	m := build(t, builder(herony), a, nil)
	got := m.Claims[0].Sources[0]
	if got.ExcerptOrigin != manifest.OriginInferred || got.Excerpt == nil || !strings.Contains(got.Excerpt.Exact, "three to five eggs") || got.ExcerptOffset == nil {
		t.Errorf("with evidence: %+v", got)
	}
	got = m.Claims[1].Sources[0]
	if got.Excerpt != nil || got.ExcerptOffset != nil || got.ExcerptHash != "" || got.Unavailable != manifest.NoEvidence {
		t.Errorf("without evidence: %+v", got)
	}
}

func TestBuildSaysWhyASourceWasNotRead(t *testing.T) {
	a := &ibid.Answer{Text: "One two three. Four five six.", Sources: []ibid.Source{
		{ID: "gone", Kind: ibid.Web, URL: "https://src.example/gone"},
		{ID: "file 1", Kind: ibid.File, GlobalID: "file-1", Title: "a.pdf"},
		{ID: "unused", Kind: ibid.Web, URL: page},
		{ID: "odd", Kind: ibid.Web, URL: "javascript:alert(1)"},
		{ID: "broken", Kind: ibid.Web, URL: "https://src.example/broken"},
	}}
	cite(t, a, "One two three.", ibid.Ref{Source: "gone", Quote: "one and two and three"}, ibid.Ref{Source: "file 1"}, ibid.Ref{Source: "odd"}, ibid.Ref{Source: "broken"})
	b := builder(nil)
	gone := b.Read
	b.Read = func(ctx context.Context, url string) (*snapshot.Snapshot, error) {
		if strings.HasSuffix(url, "broken") {
			return nil, errors.New("a disk, say")
		}
		return gone(ctx, url)
	}
	m := build(t, b, a, nil)
	type row struct{ URL, Unavailable, Hash, By string }
	var got []row
	for _, s := range m.Sources {
		got = append(got, row{s.URL, s.Unavailable, s.Hash, s.RetrievedBy})
	}
	want := []row{
		{"https://src.example/gone", "gone", "", ""},
		{"urn:ibid:src:file-1", manifest.NoContent, "", ""},
		{page, manifest.NotRead, "", ""},
		{"urn:ibid:src:odd", manifest.NoContent, "", ""},
		{"https://src.example/broken", "unreachable", "", ""},
	}
	same(t, "it", want, got)
	s := m.Claims[0].Sources[0]
	if s.Unavailable != "gone" || s.Excerpt == nil || s.Excerpt.Exact != "one and two and three" || s.ExcerptOffset != nil {
		t.Errorf("the quote of a source that is gone: %+v", s)
	}
}

func TestBuildHashesWhatTheProviderSent(t *testing.T) {
	a := &ibid.Answer{Text: "Cats sleep for up to sixteen hours.", Sources: []ibid.Source{{
		ID: "doc:0", Kind: ibid.DocumentKind, Content: "Cats sleep twelve to  sixteen hours a day.",
		Chunks: []ibid.Chunk{{Content: "Cats sleep twelve to  sixteen hours a day."}, {Content: "Kittens sleep more."}},
	}}}
	cite(t, a, a.Text, ibid.Ref{Source: "doc:0", Quote: "twelve to sixteen hours"})
	m := build(t, builder(nil), a, nil)
	content := "Cats sleep twelve to  sixteen hours a day.\n\nKittens sleep more."
	s := m.Sources[0]
	if s.URL != "urn:ibid:src:doc%3A0" || s.Hash != snapshot.Hash([]byte(content)) || s.RetrievedBy != manifest.ByPublisher ||
		s.TextHash != snapshot.Hash([]byte(snapshot.Normalize(content))) {
		t.Errorf("source %+v", s)
	}
	if c := m.Claims[0].Sources[0]; c.ExcerptOffset == nil || *c.ExcerptOffset != (manifest.Range{11, 34}) {
		t.Errorf("claim source %+v", c)
	}
}

func TestBuildExcerptsNone(t *testing.T) {
	a := quoted(t)
	cite(t, a, "It lays three to five eggs.", ibid.Ref{Source: "w1", Quote: "the secret number of eggs"})
	b := builder(herony)
	b.Excerpts = manifest.ExcerptsNone
	m := build(t, b, a, nil)
	for _, c := range m.Claims {
		if s := c.Sources[0]; s.Excerpt != nil || s.ExcerptHash == "" {
			t.Errorf("got %+v", s)
		}
	}
	if c := m.Claims[0].Sources[0]; c.ExcerptOffset == nil {
		t.Error("no offset")
	}
	body, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"stands", "secret number", pageTitle} {
		if bytes.Contains(body, []byte(secret)) {
			t.Errorf("%q is published", secret)
		}
	}
}

// Only the hash of a source without a web address is published, unless Excerpts says otherwise.
func TestBuildHidesSourcesWithoutAddress(t *testing.T) {
	const memo = "Internal memo: the merger is called off in March."
	for excerpts, published := range map[manifest.Excerpts]bool{"": false, manifest.ExcerptsPublic: false, manifest.ExcerptsNone: false, manifest.ExcerptsAll: true} {
		a := &ibid.Answer{
			Text:    "The merger is called off.",
			Sources: []ibid.Source{{ID: "memo-7", Kind: ibid.File, Title: "Memo of the board", Content: memo}},
		}
		cite(t, a, a.Text, ibid.Ref{Source: "memo-7", Quote: memo})
		b := builder(herony)
		b.Excerpts = excerpts
		body, err := build(t, b, a, nil).Canonical()
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range []string{"Internal memo", "Memo of the board"} {
			if bytes.Contains(body, []byte(words)) != published {
				t.Errorf("%q: %q is published: %v", excerpts, words, !published)
			}
		}
		if !bytes.Contains(body, []byte(snapshot.Hash([]byte(memo)))) {
			t.Errorf("%q: the hash is missing", excerpts)
		}
	}
}

// A signed URL grants access to whoever has it: its signature is used for reading but not published, and the words of
// the source stay private.
func TestBuildHidesSignatures(t *testing.T) {
	const words = "The salaries of the board rise by nine percent."
	for address, want := range map[string]string{
		"https://b.s3.example/hr.html?versionId=3&X-Amz-Signature=5ec2e7&X-Amz-Expires=900": "https://b.s3.example/hr.html?versionId=3&X-Amz-Expires=900",
		"https://a.blob.example/hr?sv=2024&sig=5ec2e7":                                      "https://a.blob.example/hr?sv=2024",
		"https://drive.example/hr?%74oken=5ec2e7":                                           "https://drive.example/hr",
		"https://src.example/hr?id=7":                                                       "https://src.example/hr?id=7",
	} {
		a := &ibid.Answer{Text: "The salaries rise.", Sources: []ibid.Source{{ID: "w1", Kind: ibid.Web, URL: address}}}
		cite(t, a, a.Text, ibid.Ref{Source: "w1", Quote: words})
		b := builder(nil)
		b.Read = func(_ context.Context, url string) (*snapshot.Snapshot, error) {
			if signed := strings.Contains(address, "5ec2e7"); signed != strings.Contains(url, "5ec2e7") {
				t.Errorf("%s is read at %s", address, url)
			}
			return snap(url, "<p>"+words+"</p>"), nil
		}
		m := build(t, b, a, nil)
		body, err := m.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(body, []byte("5ec2e7")) {
			t.Errorf("%s: its signature is published", address)
		}
		if got := m.Sources[0].URL; got != want {
			t.Errorf("%s is published as %s, want %s", address, got, want)
		}
		if signed := want != address; bytes.Contains(body, []byte("salaries of the board")) == signed {
			t.Errorf("%s: its words are published: %v", address, signed)
		}
	}
}

// Words of a page in a private network, or that was read with a password, are not published either.
func TestBuildHidesPrivateNetworks(t *testing.T) {
	const words, public = "The salaries of the board rise by nine percent.", "https://src.example/redirected"
	for _, address := range []string{
		"http://10.0.0.5/hr", "http://localhost:3000/wiki", "http://intranet/wiki", "https://wiki.corp.internal/hr",
		"http://[fd00::1]/hr", "http://[::ffff:10.0.0.1]/hr", "http://169.254.1.1/hr", "http://nas.local/hr",
		"http://nas.lan/hr", "http://nas.home.arpa./hr", "http://a.LOCALHOST/hr", "https://bob:pa55w0rd@src.example/hr",
		public,
	} {
		for excerpts, published := range map[manifest.Excerpts]bool{"": false, manifest.ExcerptsAll: true} {
			a := &ibid.Answer{
				Text:    "The salaries rise.",
				Sources: []ibid.Source{{ID: "w1", Kind: ibid.Web, URL: address, Title: "Board only"}},
			}
			cite(t, a, a.Text, ibid.Ref{Source: "w1", Quote: words})
			b := builder(nil)
			b.Excerpts = excerpts
			b.Read = func(_ context.Context, url string) (*snapshot.Snapshot, error) {
				read := snap(url, "<p>"+words+"</p>")
				if url == public {
					read.FinalURL = "https://wiki.internal/hr"
				}
				return read, nil
			}
			m := build(t, b, a, nil)
			body, err := m.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"salaries of the board", "Board only"} {
				if bytes.Contains(body, []byte(secret)) != published {
					t.Errorf("%q, %s: %q is published: %v", excerpts, address, secret, !published)
				}
			}
			if c := m.Claims[0].Sources[0]; c.ExcerptHash != snapshot.Hash([]byte(words)) || c.ExcerptOffset == nil {
				t.Errorf("%q, %s: nothing to check the words with: %+v", excerpts, address, c)
			}
		}
	}
	for address, published := range map[string]bool{"http://intranet/wiki": true, "http://bob:pa55w0rd@intranet/wiki": false} {
		a := &ibid.Answer{Text: "The salaries rise.", Sources: []ibid.Source{{ID: "w1", Kind: ibid.Web, URL: address}}}
		cite(t, a, a.Text, ibid.Ref{Source: "w1", Quote: words})
		b := builder(nil)
		b.Self = "http://agent.internal/runs/r1/cite"
		if c := build(t, b, a, nil).Claims[0].Sources[0]; (c.Excerpt != nil) != published {
			t.Errorf("of an agent in a private network, %s is published: %v", address, !published)
		}
	}
	for _, address := range []string{page, "http://8.8.8.8/", "https://[2606:4700::1111]/", "https://internal.example/"} {
		if !snapshot.IsPublicURL(address) {
			t.Errorf("%s is public", address)
		}
	}
}

func TestBuildMergesCitationsOfASpan(t *testing.T) {
	a := herons()
	a.Sources = append(a.Sources, ibid.Source{ID: "w2", Kind: ibid.Web, URL: "https://src.example/b"})
	a.Text = "Yes. Herons are tall. Yes. Cafe\u0301s are not."
	first := ibid.Span{Start: 0, End: 4}
	second := ibid.Span{Start: 22, End: 26}
	for _, s := range []ibid.Span{first, second, {Start: 5, End: 21}, {Start: 4, End: 21}} {
		if err := a.Cite(s, ibid.Ref{Source: "w1"}); err != nil {
			t.Fatal(err)
		}
	}
	cite(t, a, "Herons are tall.", ibid.Ref{Source: "w2"}, ibid.Ref{Source: "w1", Quote: "stands up to 98 cm tall"})
	cite(t, a, "\u0301s are not.", ibid.Ref{Source: "w2"})
	a.Citations = append(a.Citations, ibid.Citation{Anchor: ibid.AnchorNone, Refs: []ibid.Ref{{Source: "w1"}}})
	m := build(t, builder(herony), a, nil)
	type row struct {
		ID, Text, Span string
		Rewritten      bool
		Sources        int
	}
	var got []row
	for _, c := range m.Claims {
		r := row{ID: c.ID, Text: c.Text, Rewritten: c.Rewritten, Sources: len(c.Sources)}
		if c.Span != nil {
			r.Span = fmt.Sprint(*c.Span)
		}
		got = append(got, r)
	}
	yes := manifest.ClaimID("Yes.")
	want := []row{
		{yes, "Yes.", "[0 4]", false, 1},
		{manifest.ClaimID("Herons are tall."), "Herons are tall.", "[5 21]", false, 2},
		{yes + "-2", "Yes.", "[22 26]", false, 1},
		{manifest.ClaimID("\u0301s are not."), "\u0301s are not.", "", true, 1}, // its first letter combines with the one before
	}
	same(t, "it", want, got)
	same(t, "left out", map[string]int{"claims": 1}, leftOut(t, m))
}

func leftOut(tb testing.TB, m *manifest.Manifest) map[string]int {
	tb.Helper()
	out := map[string]int{}
	if raw, ok := m.Extra[manifest.MemberLeftOut]; ok {
		if err := json.Unmarshal(raw, &out); err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// Every claim's span has its words in the normal form, whatever is between claims.
func FuzzBuildSpans(f *testing.F) {
	f.Add("A  b. C\u00add e\u0301 f.\n\nG 🪶 h. e", "\u0301x y\u200d z. ", 3, 17)
	f.Add(" \u200b ", "\ufffd", 0, 2)
	f.Fuzz(func(t *testing.T, left, right string, i, k int) {
		text := strings.ToValidUTF8(left+right, "")
		a := &ibid.Answer{Text: text, Sources: []ibid.Source{{ID: "1", URL: page}}}
		for _, s := range []ibid.Span{{Start: 0, End: len(left)}, {Start: len(left), End: len(text)}, {Start: i, End: k}, {Start: k, End: i}, {Start: 0, End: len(text)}} {
			_ = a.Cite(s, ibid.Ref{Source: "1"}) // not all of them are spans
		}
		m, err := builder(nil).Build(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Problems() {
			t.Errorf("%s at %s: %s", p.Status, p.Path, p.Detail)
		}
		normal := snapshot.Normalize(text)
		for _, c := range m.Claims {
			if c.Rewritten {
				continue
			}
			if got, ok := snapshot.Slice(normal, c.Span[0], c.Span[1]); !ok || got != snapshot.Normalize(c.Text) {
				t.Errorf("%q is %q", c.Text, got)
			}
		}
	})
}

func TestBuildChain(t *testing.T) {
	a := quoted(t)
	salt := bytes.Repeat([]byte{7}, manifest.SaltSize)
	run := &trail.Trail{ID: "the client's own name", Answer: a.Text, Steps: []trail.Step{
		{
			Number: 1, Tool: "search", Inputs: json.RawMessage(`{"q": "herons", "n": 1.0}`), Outputs: json.RawMessage(`[ 1 ]`), Started: noon().Add(-time.Hour), Duration: time.Minute,
			Sources: []trail.Source{{DocumentID: "d1", URL: "https://src.example/other", Retrieved: true}, {DocumentID: "d2", Content: "a note", Title: "Note"}},
		},
		{Number: 2, After: []int{}, Question: "What is a heron?", Answer: "A bird.", Nested: &trail.Trail{Steps: []trail.Step{
			{Number: 1, Sources: []trail.Source{{DocumentID: "d3", URL: page}}},
		}}},
		{Number: 4, After: []int{1, 2}, Answers: []trail.StepAnswer{{Answer: a}}, Answer: a.Text},
	}}
	b := builder(herony)
	b.Salt = salt
	m := build(t, b, a, run)
	mac := func(s string) string {
		h := hmac.New(sha256.New, salt)
		h.Write([]byte(s))
		return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
	}
	want := []manifest.Step{
		{
			Step: 1, Tool: "search", InputsHash: mac(`{"n":1,"q":"herons"}`), OutputsRef: "runs/r1/step/1", OutputsHash: mac("[1]"),
			Sources: []string{"https://src.example/other", "urn:ibid:src:d2"}, StartedAt: "2026-05-04T11:00:00Z", EndedAt: "2026-05-04T11:01:00Z",
		},
		{
			Step: 2, Tool: "model", InputsHash: mac(`{"question":"What is a heron?"}`), OutputsRef: "runs/r1/step/2", OutputsHash: mac("A bird."),
			Sources: []string{page},
		},
		{
			Step: 4, Tool: "model", InputsRef: []string{"runs/r1/step/1", "runs/r1/step/2"}, OutputsRef: "runs/r1/step/4",
			OutputsHash: snapshot.Hash([]byte(a.Text)), Sources: []string{page},
		},
	}
	same(t, "private", want, m.Chain)
	same(t, "steps of the claim", []int{4}, m.Claims[0].Steps)
	if body, _ := m.Canonical(); bytes.Contains(body, []byte("client's own name")) || bytes.Contains(body, []byte("What is a heron")) {
		t.Error("something private is published")
	}
	b.Public, b.Salt = true, nil
	m = build(t, b, a, run)
	if got := string(m.Chain[0].Inputs); got != `{"n":1,"q":"herons"}` || m.Chain[0].InputsHash != "" {
		t.Errorf("public inputs %s", got)
	}
	if got := m.Chain[0].OutputsHash; got != snapshot.Hash([]byte("[1]")) {
		t.Errorf("public outputs %s", got)
	}
	if again := build(t, b, a, run); !bytes.Equal(canonical(t, m), canonical(t, again)) {
		t.Error("equal input makes different bytes")
	}
}

func canonical(tb testing.TB, m *manifest.Manifest) []byte {
	tb.Helper()
	b, err := m.Canonical()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestBuildChainOfAnOddRun(t *testing.T) {
	ask := func(number int, after ...int) trail.Step {
		return trail.Step{Number: number, After: append([]int{}, after...), Answer: fmt.Sprint("step ", number)}
	}
	for name, c := range map[string]struct {
		steps   []trail.Step
		want    string // steps, each with those before it; steps of the claim
		leftOut map[string]int
	}{
		"numbers against the edges": {[]trail.Step{ask(1, 2), ask(2)}, "1: 2:1 claim [2]", nil},
		"a number twice":            {[]trail.Step{ask(1), ask(1), ask(3, 1)}, "1: 2: 3:2 claim [1 3]", nil},
		"no number":                 {[]trail.Step{ask(0), ask(-3)}, "1: 2: claim [1 2]", nil},
		"a cycle":                   {[]trail.Step{ask(1), ask(2, 1, 3), ask(3, 2)}, "1: 2:1 3:2 claim [3]", map[string]int{"edges": 1}},
		"only a cycle":              {[]trail.Step{ask(5, 6), ask(6, 5)}, "1: 2:1 claim [2]", map[string]int{"edges": 1}},
		"unknown steps":             {[]trail.Step{ask(7, 9, 7)}, "7: claim [7]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := herons()
			cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1"})
			m := build(t, builder(nil), a, &trail.Trail{Steps: c.steps})
			var got []string
			for _, s := range m.Chain {
				var before []string
				for _, ref := range s.InputsRef {
					before = append(before, strings.TrimPrefix(ref, "runs/r1/step/"))
				}
				got = append(got, fmt.Sprint(s.Step)+":"+strings.Join(before, ","))
			}
			same(t, "it", c.want, strings.Join(got, " ")+" claim "+fmt.Sprint(m.Claims[0].Steps))
			if c.leftOut == nil {
				c.leftOut = map[string]int{}
			}
			same(t, "left out", c.leftOut, leftOut(t, m))
		})
	}
}

// The manifest of an answer in the middle of a run has the steps that led to it and no later ones.
func TestBuildOfAnAnswerInTheMiddle(t *testing.T) {
	a := herons()
	cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1"})
	run := &trail.Trail{Answer: "The end.", Steps: []trail.Step{
		{Number: 1, Tool: "search"},
		{Number: 2, After: []int{}, Tool: "calendar", Sources: []trail.Source{{DocumentID: "x", URL: "https://src.example/x"}}},
		{Number: 3, After: []int{1}, Answers: []trail.StepAnswer{{Answer: a}}},
		{Number: 4, After: []int{2, 3}, Answer: "The end."},
	}}
	m := build(t, builder(nil), a, run)
	if len(m.Chain) != 2 || m.Chain[0].Step != 1 || m.Chain[1].Step != 3 || len(m.Sources) != 1 {
		t.Errorf("chain %+v, sources %+v", m.Chain, m.Sources)
	}
	if got := manifest.Consulted(a, run); len(got) != 1 || got[0].URL != page || got[0].ID != "s1" {
		t.Errorf("consulted %+v", got)
	}
}

func TestBuildLimits(t *testing.T) {
	a := &ibid.Answer{}
	var text strings.Builder
	for i := range manifest.MaxClaims + 10 {
		fmt.Fprintf(&text, "Claim number %d. ", i)
	}
	a.Text = text.String()
	refs := []ibid.Ref{}
	for i := range manifest.MaxClaimSources + 6 {
		id := fmt.Sprint("d", i)
		a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.DocumentKind, Content: fmt.Sprint("Number ", i, " is a number, too.")})
		refs = append(refs, ibid.Ref{Source: id})
	}
	for i := range manifest.MaxClaims + 10 {
		some := refs[:1]
		if i == 0 {
			some = refs
		}
		cite(t, a, fmt.Sprintf("Claim number %d.", i), some...)
	}
	m := build(t, builder(nil), a, nil)
	if len(m.Claims) != manifest.MaxClaims || len(m.Claims[0].Sources) != manifest.MaxClaimSources {
		t.Errorf("%d claims, %d sources", len(m.Claims), len(m.Claims[0].Sources))
	}
	same(t, "left out", map[string]int{"claims": 10, "claim_sources": 6}, leftOut(t, m))
}

func TestBuildFitsIntoItsSize(t *testing.T) {
	a := &ibid.Answer{}
	for i := range 600 {
		a.Text += fmt.Sprintf("%d: %s. ", i, strings.Repeat("word ", 800))
	}
	a.Sources = []ibid.Source{{ID: "1", URL: page}, {ID: "2", URL: "https://src.example/unused"}}
	from := 0
	for i := range 600 {
		at := strings.Index(a.Text[from:], ". ") + from + 1
		if err := a.Cite(ibid.Span{Start: from, End: at}, ibid.Ref{Source: "1"}); err != nil {
			t.Fatal(i, err)
		}
		from = at + 1
	}
	m := build(t, builder(nil), a, nil)
	if n := len(canonical(t, m)); n > manifest.MaxBytes || n < manifest.MaxBytes*9/10 {
		t.Errorf("%d bytes", n)
	}
	out := leftOut(t, m)
	if out["claims"] != 600-len(m.Claims) || out["sources"] != 1 {
		t.Errorf("left out %v of %d claims", out, len(m.Claims))
	}
}

func TestBuildCutsLongExcerptsAndClaims(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("ünd so weiter ", 1000))
	a := &ibid.Answer{Text: long, Sources: []ibid.Source{{ID: "1", Content: long}}}
	cite(t, a, long, ibid.Ref{Source: "1", Quote: long}, ibid.Ref{Source: "1", Quote: long + " nicht"})
	m := build(t, builder(nil), a, nil)
	c := m.Claims[0]
	if c.Span == nil || *c.Span != (manifest.Range{0, manifest.MaxText}) {
		t.Errorf("span %v", c.Span)
	}
	if got := *c.Sources[0].ExcerptOffset; got != (manifest.Range{0, manifest.MaxExact}) {
		t.Errorf("excerpt %v", got)
	}
	if s := c.Sources[1]; s.Excerpt != nil || s.Unavailable != manifest.ExcerptTooLong || s.ExcerptHash == "" {
		t.Errorf("a long misquote: %+v", s)
	}
}

// The confidence of a claim is a provider's score, or what a checker said of it, and says whose it is.
func TestBuildConfidence(t *testing.T) {
	score := 0.6
	for _, test := range []struct {
		score  *float64
		label  support.Label
		want   string
		origin string
	}{
		{nil, "", manifest.ConfidenceUnknown, ""},
		{nil, support.Unjudged, manifest.ConfidenceUnknown, ""},
		{nil, support.Supported, manifest.ConfidenceHigh, "judge@1"},
		{nil, support.Unsupported, manifest.ConfidenceLow, "judge@1"},
		{&score, "", manifest.ConfidenceMedium, "provider"},
		{&score, support.Supported, manifest.ConfidenceMedium, "provider"},
		{&score, support.Contradicted, manifest.ConfidenceLow, "judge@1"},
	} {
		a := herons()
		cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1", Confidence: test.score})
		if test.label != "" {
			a.Citations[0].Support = &ibid.Support{Label: string(test.label), By: "judge@1"}
		}
		c := build(t, builder(nil), a, nil).Claims[0]
		if c.Confidence != test.want || c.ConfidenceOrigin != test.origin || (c.ConfidenceScore != nil) != (test.origin == "provider") {
			t.Errorf("%s: %s by %q, %v", test.label, c.Confidence, c.ConfidenceOrigin, c.ConfidenceScore)
		}
	}
}

// A quote that its provider cut inside a word or number is published up to the word before.
func TestBuildEndsWithWholeWords(t *testing.T) {
	const text = "The weir at Ketley was rebuilt in 1987 (2,400 crowns) for the boats of fourteen fishers."
	a := &ibid.Answer{Text: "The weir was rebuilt.", Sources: []ibid.Source{{ID: "1", Content: text}}}
	quotes := []string{"The weir at Ketley was rebuilt in 19...", "The weir at Ketley was rebu…", "…400 crowns) for the boats of fourteen fish…"}
	var refs []ibid.Ref
	for _, quote := range quotes {
		refs = append(refs, ibid.Ref{Source: "1", Quote: quote})
	}
	cite(t, a, a.Text, refs...)
	b := builder(nil)
	b.Excerpts = manifest.ExcerptsAll
	for i, want := range []string{"The weir at Ketley was rebuilt in", "The weir at Ketley was", "crowns) for the boats of fourteen"} {
		if s := build(t, b, a, nil).Claims[0].Sources[i]; s.Excerpt == nil || s.Excerpt.Exact != want {
			t.Errorf("%q: %+v", quotes[i], s.Excerpt)
		}
	}
}

// An excerpt that is cut, and the text around one, have whole graphemes only: 4096 and 32 code points would end inside
// a flag or a hand with its tone.
func TestBuildKeepsGraphemesWhole(t *testing.T) {
	flags := "a " + strings.Repeat("und weiter 🇩🇪👍🏽 ", 900)
	quote := strings.TrimSpace(flags)
	const said = "said the ferry crew on deck"
	a := &ibid.Answer{Text: "One. Two.", Sources: []ibid.Source{
		{ID: "1", Content: quote}, {ID: "w1", URL: page},
	}}
	crew := map[string]string{page: "<p>x" + strings.Repeat("🇩🇪", 40) + " " + said + " " + strings.Repeat("👍🏽", 40)}
	cite(t, a, "One.", ibid.Ref{Source: "1", Quote: quote})
	cite(t, a, "Two.", ibid.Ref{Source: "w1", Quote: said})
	m := build(t, builder(crew), a, nil)
	long, short := m.Claims[0].Sources[0], m.Claims[1].Sources[0]
	if got := *long.ExcerptOffset; got != (manifest.Range{0, manifest.MaxExact - 1}) {
		t.Errorf("excerpt %v", got)
	}
	if e := short.Excerpt; e.Prefix != strings.Repeat("🇩🇪", 15)+" " || e.Suffix != " "+strings.Repeat("👍🏽", 15) {
		t.Errorf("around it: %q, %q", e.Prefix, e.Suffix)
	}
}

func TestBuildOwn(t *testing.T) {
	a := quoted(t)
	b := builder(nil)
	b.Own = []*snapshot.Snapshot{{URL: page, Octets: []byte(pageHTML), MediaType: "text/html"}, snap("https://src.example/b", "<p>b")}
	b.Own = append(b.Own, nil, &snapshot.Snapshot{Octets: []byte("of no address")})
	b.Own[0].URL = "HTTPS://SRC.example/heron#top"
	m := build(t, b, a, nil)
	if len(m.Sources) != 2 {
		t.Errorf("%d sources", len(m.Sources))
	}
	if s := m.Sources[0]; s.RetrievedBy != manifest.ByPublisher || s.Hash == "" || s.RetrievedAt != "2026-05-04T12:00:00Z" || !*s.Cited {
		t.Errorf("cited: %+v", s)
	}
	if s := m.Sources[1]; s.RetrievedBy != manifest.ByPublisher || s.Hash == "" || *s.Cited {
		t.Errorf("not cited: %+v", s)
	}
}

func TestBuildRefuses(t *testing.T) {
	b := builder(nil)
	b.Salt = []byte("short")
	if _, err := b.Build(t.Context(), herons(), nil); err == nil {
		t.Error("a short salt is accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := builder(nil).Build(ctx, herons(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	a := herons()
	cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1"})
	b = builder(herony)
	b.Checker = silent{}
	if _, err := b.Build(t.Context(), a, nil); err == nil {
		t.Error("a checker without verdicts is accepted")
	}
}

type silent struct{}

func (silent) Check(context.Context, []support.Pair) ([]support.Verdict, error) { return nil, nil }
func (silent) Info() support.Info                                               { return support.Info{ID: "silent", Version: "1"} }

// Programs extract a PDF's text differently, so the manifest has nothing that only one program could check. A source
// without text has a hash.
func TestBuildOfOtherMedia(t *testing.T) {
	pdf, err := os.ReadFile("../snapshot/testdata/chromium.pdf")
	if err != nil {
		t.Fatal(err)
	}
	text, err := snapshot.Extract(pdf, nil)
	if err != nil {
		t.Fatal(err)
	}
	quote := strings.Join(strings.Fields(text.Content)[:8], " ")
	a := herons()
	a.Sources = append(a.Sources, ibid.Source{ID: "w2", Kind: ibid.Image, URL: "https://src.example/heron.png"})
	cite(t, a, "A heron is up to 98 cm tall.", ibid.Ref{Source: "w1", Quote: quote}, ibid.Ref{Source: "w2"})
	b := builder(nil)
	b.Read = func(_ context.Context, url string) (*snapshot.Snapshot, error) {
		if url == page {
			return &snapshot.Snapshot{URL: url, MediaType: "application/pdf", Octets: pdf}, nil
		}
		return &snapshot.Snapshot{URL: url, MediaType: "image/png", Octets: []byte("\x89PNG\r\n\x1a\n")}, nil
	}
	m := build(t, b, a, nil)
	if s := m.Sources[0]; s.Hash != sum(pdf) || s.TextHash != "" || s.TextLength != nil {
		t.Errorf("PDF: %+v", s)
	}
	s := m.Claims[0].Sources[0]
	if s.Excerpt == nil || s.Excerpt.Exact != snapshot.Normalize(quote) || s.ExcerptOffset != nil || s.Unavailable != manifest.AdvisoryText {
		t.Errorf("PDF: %+v", s)
	}
	if s := m.Sources[1]; s.Hash == "" || s.TextHash != "" {
		t.Errorf("image: %+v", s)
	}
	if s := m.Claims[0].Sources[1]; s.Unavailable != manifest.NoText || s.ExcerptHash != "" {
		t.Errorf("image: %+v", s)
	}
}

// Whatever the data of providers and programs, the manifest can be published.
func TestBuildOfOddData(t *testing.T) {
	odd := "e\xff\u0301 \x00 \u202e" + strings.Repeat("long ", 2000)
	a := &ibid.Answer{
		Text: "e\u200d\u0301a \xffb c. d", ID: odd,
		Sources: []ibid.Source{
			{ID: odd, Title: odd, GlobalID: odd, Content: odd, RetrievedAt: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
			{ID: odd, URL: "https://me:secret@src.example/" + strings.Repeat("a", manifest.MaxURL)},
			{ID: "", URL: "https://me:secret@src.example/b", OriginalURL: "https://me:secret@src.example/c", RetrievedAt: noon().AddDate(9, 0, 0)},
			{ID: ""},
		},
	}
	for _, s := range []ibid.Span{{Start: 0, End: 4}, {Start: -1, End: 3}, {Start: 5, End: 2}, {Start: 0, End: 99}, {Start: 7, End: 9}, {Start: 2, End: 13}} {
		nan := math.NaN()
		a.Citations = append(a.Citations, ibid.Citation{Claim: s, Span: s, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{
			{Source: odd, Quote: odd, Confidence: &nan}, {Source: "nobody"}, {Source: "", Confidence: new(-1.0)},
		}})
	}
	nest := &trail.Trail{}
	nest.Steps = []trail.Step{{Nested: nest}} // it contains itself
	run := &trail.Trail{Steps: []trail.Step{
		{
			Number: math.MaxInt, Tool: odd, Inputs: json.RawMessage(odd), Outputs: json.RawMessage("{"), InputsDigest: odd, OutputsDigest: odd, Nested: nest,
			Started: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), Duration: -time.Hour, Fed: []ibid.Span{{Start: -4, End: 900}},
			Sources: []trail.Source{{}, {DocumentID: odd, URL: odd, Key: odd}}, Answers: []trail.StepAnswer{{}},
		},
		{Inputs: json.RawMessage(strings.Repeat("[", 40) + strings.Repeat("]", 40)), Started: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Inputs: json.RawMessage(`{"a":1,"a":2}`), Outputs: json.RawMessage(`1e400`)},
		{Inputs: json.RawMessage(`{"big":1e300}`)},
	}}
	b := builder(nil)
	for _, b.Public = range []bool{false, true} {
		b.Salt = bytes.Repeat([]byte{1}, manifest.SaltSize)
		m := build(t, b, a, run)
		if bytes.Contains(canonical(t, m), []byte("secret")) {
			t.Error("a password is published")
		}
	}
}

func TestBuildEmpty(t *testing.T) {
	m := build(t, builder(nil), nil, nil)
	if m.Output != nil || len(m.Claims) != 0 || len(m.Chain) != 1 {
		t.Errorf("got %+v", m)
	}
}

func TestPinAgreesWithBuild(t *testing.T) {
	a := quoted(t)
	cite(t, a, "It lays three to five eggs.", ibid.Ref{Source: "w1"})
	m := build(t, builder(herony), a, nil)
	var p manifest.Pinner
	for i := range a.Citations {
		got, err := p.Pin(t.Context(), a, &a.Citations[i], &a.Citations[i].Refs[0], snap(page, pageHTML))
		if err != nil {
			t.Fatal(err)
		}
		want := m.Claims[i].Sources[0]
		want.Source = ""
		same(t, "it", want, got)
	}
	got, err := p.Pin(t.Context(), a, &a.Citations[0], &a.Citations[0].Refs[0], nil)
	if err != nil || got.Unavailable != manifest.NotRead || got.Excerpt == nil {
		t.Errorf("nothing read: %+v, %v", got, err)
	}
	got, err = p.Pin(t.Context(), a, &ibid.Citation{Anchor: ibid.AnchorNone}, &ibid.Ref{Source: "other"}, snap(page, pageHTML))
	if err != nil || got.Unavailable != manifest.NoEvidence {
		t.Errorf("no place, no source: %+v, %v", got, err)
	}
}

// A source that announces its own manifest is an agent's answer, which verifiers are to follow.
func TestBuildUpstream(t *testing.T) {
	const up = "https://other.example/runs/1/cite/a"
	for _, test := range []struct {
		name   string
		header []string
		want   string
	}{
		{"an answer", []string{`<https://birds.example/heron>; manifest="` + up + `", <https://birds.example/mill>; manifest="` + up + `"`}, up},
		{"a stream", []string{`<urn:ibid:more>; manifest="` + up + `"`}, up},
		{"several answers", []string{`<https://birds.example/heron>; manifest="` + up + `", <https://birds.example/mill>; manifest="` + up + `b"`}, ""},
		{"only sources", []string{`<https://birds.example/heron>`}, ""},
		{"malformed", []string{`<<<`}, ""},
		{"a page", nil, ""},
	} {
		b := builder(nil)
		b.Read = func(_ context.Context, url string) (*snapshot.Snapshot, error) {
			read := snap(url, pageHTML)
			read.Header = http.Header{manifest.HeaderName: test.header}
			return read, nil
		}
		a := quoted(t)
		m := build(t, b, a, nil)
		if got := m.Sources[0].UpstreamManifest; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
