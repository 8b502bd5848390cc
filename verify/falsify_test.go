package verify_test

import (
	"bytes"
	"crypto"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// story is a page, an answer that cites it, and the answer's manifest, all generated from one number.
type story struct {
	path, page, answer string
	facts              []string // two sentences of the page that the answer cites
	m                  *manifest.Manifest
}

func newStory(w *world, n int) *story {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	fact := func() string {
		return fmt.Sprintf("The %s of %s %s %s %d %s in %d.",
			pick("harbour", "library", "railway", "museum", "brewery", "theatre"),
			pick("Aarhus", "Brno", "Cádiz", "Dundee", "Évora", "Graz", "Malmö", "Łódź"), pick("is said to have", "has", "did not have", "once had"),
			pick("about", "some", "exactly"), 100+r.IntN(9000), pick("visitors", "workers", "books", "boats", "windows"), 1700+r.IntN(320))
	}
	s := &story{path: fmt.Sprintf("/page/%d", n), facts: []string{fact(), fact()}}
	s.page = fmt.Sprintf("<!doctype html><title>No. %d</title><nav>Home</nav><h1>Places, part %d</h1><p>%s %s</p><p>%s <b>%s</b></p><footer>Printed %d</footer>",
		n, n, fact(), s.facts[0], fact(), s.facts[1], n)
	s.answer = s.facts[0] + " [1] " + s.facts[1] + " [1]"
	s.m = s.manifest(w, n)
	return s
}

func (s *story) manifest(w *world, n int) *manifest.Manifest {
	m := w.manifestAt(fmt.Sprintf("/runs/f%d/cite/a", n))
	length, answered := 0, utf8.RuneCountInString(s.answer)
	text, err := snapshot.Extract([]byte(s.page), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"})
	if err != nil {
		w.t.Fatal(err)
	}
	length = utf8.RuneCountInString(text.Content)
	src := &m.Sources[0]
	src.URL, src.FinalURL = w.origin+s.path, w.origin+s.path
	src.Hash, src.TextHash, src.TextLength = snapshot.Hash([]byte(s.page)), snapshot.Hash([]byte(text.Content)), &length
	m.RunID = fmt.Sprintf("f%d", n)
	m.Output.Hash, m.Output.TextHash, m.Output.TextLength = snapshot.Hash([]byte(s.answer)), snapshot.Hash([]byte(s.answer)), &answered
	for i := range m.Chain {
		m.Chain[i].Sources = []string{"s1"}
	}
	m.Claims = nil
	for i, fact := range s.facts {
		at := utf8.RuneCountInString(s.answer[:strings.Index(s.answer, fact)])
		c := manifest.Claim{ID: fmt.Sprintf("c%d", i), Text: fact, Span: &manifest.Range{at, at + utf8.RuneCountInString(fact)}, Steps: []int{2}}
		found, ok := snapshot.Find(text.Content, &snapshot.Quote{Exact: fact})
		if !ok {
			w.t.Fatalf("the page lacks %q", fact)
		}
		c.Sources = []manifest.ClaimSource{{
			Source: "s1", URL: src.URL, RetrievedAt: src.RetrievedAt, Hash: src.Hash,
			ExcerptOffset: &manifest.Range{found.Start, found.End}, ExcerptHash: snapshot.Hash([]byte(fact)),
			Excerpt: &manifest.Excerpt{Exact: fact}, ExcerptOrigin: manifest.OriginPublisher,
		}}
		m.Claims = append(m.Claims, c)
	}
	return m
}

// quote makes the manifest quote other words than the page has.
func (s *story) quote(words string) {
	cs := &s.m.Claims[0].Sources[0]
	cs.Excerpt = &manifest.Excerpt{Exact: words}
	cs.ExcerptHash = snapshot.Hash([]byte(words))
	cs.ExcerptOffset[1] = cs.ExcerptOffset[0] + utf8.RuneCountInString(words)
}

// replaced replaces, in s, the first of the words in pairs that it contains with the word that follows in pairs, and
// returns otherwise if it contains none.
func replaced(s, otherwise string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if strings.Contains(s, pairs[i]) {
			return strings.Replace(s, pairs[i], pairs[i+1], 1)
		}
	}
	return otherwise
}

// negate negates a sentence.
func negate(s string) string {
	return replaced(s, "Not so: "+s, "did not have", "had", "is said", "is not said", "once had", "never had", "has", "has not")
}

func word(s string) string {
	return replaced(s, s+" Or so.", "visitors", "prisoners", "workers", "widows", "books", "bombs", "boats", "goats", "windows", "doors")
}

// digit changes one digit of a sentence.
func digit(s string) string {
	i := strings.IndexAny(s, "0123456789")
	return s[:i] + string('0'+(s[i]-'0'+1)%10) + s[i+1:]
}

// flipped changes one hexadecimal digit of a hash.
func flipped(hash string) string {
	last := hash[len(hash)-1]
	if last == '0' {
		return hash[:len(hash)-1] + "1"
	}
	return hash[:len(hash)-1] + "0"
}

// falsehood is one change, and the result that it must have.
type falsehood struct {
	name  string
	want  verify.Status
	state verify.State
	claim bool // want is the status of the first claim, not of a source or the manifest

	story func(*story)                          // before it is signed
	sign  func(*world, *story) *manifest.Signed // nil to sign correctly
	body  func(*story) string                   // of the response; nil for the answer
	list  func([]manifest.Announcement) []manifest.Announcement
}

func falsehoods(stranger *keyring.Ring) []falsehood {
	inPage := func(change func(string) string) func(*story) {
		return func(s *story) { s.page = strings.Replace(s.page, s.facts[0], change(s.facts[0]), 1) }
	}
	inQuote := func(change func(string) string) func(*story) { return func(s *story) { s.quote(change(s.facts[0])) } }
	inClaim := func(change func(string) string) func(*story) {
		return func(s *story) { s.m.Claims[0].Text, s.m.Claims[0].Rewritten = change(s.facts[0]), true }
	}
	inBytes := func(w *world, s *story) *manifest.Signed {
		signed := w.sign(s.m, w.now)
		signed.Body = bytes.Replace(signed.Body, []byte(`"tool":"search"`), []byte(`"tool":"recall"`), 1)
		signed.ContentDigest = httpsig.ContentDigest(signed.Body)
		return signed
	}
	return []falsehood{
		{name: "nothing", want: verify.Verified, state: verify.Trusted},
		{name: "page elsewhere", want: verify.DriftedExcerptIntact, state: verify.Trusted, story: func(s *story) {
			s.page = strings.Replace(s.page, "<footer>Printed", "<aside>News!</aside><footer>Reprinted", 1)
		}},
		{name: "page's markup only", want: verify.DriftedTextIntact, state: verify.Trusted, story: func(s *story) {
			s.page = strings.Replace(s.page, "<b>", "<b class=x>", 1)
		}},
		{name: "digit in the page", want: verify.ExcerptAltered, state: verify.Invalid, story: inPage(digit)},
		{name: "word in the page", want: verify.ExcerptAltered, state: verify.Invalid, story: inPage(word)},
		{name: "negation in the page", want: verify.ExcerptAltered, state: verify.Invalid, story: inPage(negate)},
		{name: "sentence gone", want: verify.ExcerptMissing, state: verify.Invalid, story: func(s *story) {
			s.page = "<p>This page has moved to another place, and will not come back.</p>"
		}},
		{name: "digit in the quote", want: verify.ExcerptMismatch, state: verify.Invalid, story: inQuote(digit)},
		{name: "word in the quote", want: verify.ExcerptMismatch, state: verify.Invalid, story: inQuote(word)},
		{name: "negation in the quote", want: verify.ExcerptMismatch, state: verify.Invalid, story: inQuote(negate)},
		{name: "digit in the claim", want: verify.ClaimDiffers, claim: true, state: verify.Trusted, story: inClaim(digit)},
		{name: "negation in the claim", want: verify.ClaimDiffers, claim: true, state: verify.Trusted, story: inClaim(negate)},
		{name: "digit in the claim, not rewritten", want: verify.ManifestInconsistent, state: verify.Invalid, story: func(s *story) {
			s.m.Claims[0].Text = digit(s.facts[0])
		}},
		{name: "hash of the source", want: verify.DriftedTextIntact, state: verify.Trusted, story: func(s *story) {
			s.m.Sources[0].Hash = flipped(s.m.Sources[0].Hash)
			for i := range s.m.Claims {
				s.m.Claims[i].Sources[0].Hash = s.m.Sources[0].Hash
			}
		}},
		{name: "hash in the claim", want: verify.ManifestInconsistent, state: verify.Invalid, story: func(s *story) {
			s.m.Claims[0].Sources[0].Hash = flipped(s.m.Claims[0].Sources[0].Hash)
		}},
		{name: "hash of the excerpt", want: verify.ManifestInconsistent, state: verify.Invalid, story: func(s *story) {
			s.m.Claims[0].Sources[0].ExcerptHash = flipped(s.m.Claims[0].Sources[0].ExcerptHash)
		}},
		{name: "offset", want: verify.OffsetWrong, state: verify.Trusted, story: func(s *story) {
			at := s.m.Claims[0].Sources[0].ExcerptOffset
			at[0], at[1] = at[0]+1, at[1]+1
		}},
		{name: "step refers to nothing", want: verify.ChainInvalid, state: verify.Invalid, story: func(s *story) { s.m.Chain[1].InputsRef = []string{"r1/9"} }},
		{name: "step without the source", want: verify.ChainGap, state: verify.Invalid, story: func(s *story) {
			s.m.Chain[0].Sources, s.m.Chain[1].Sources = nil, nil
		}},
		{name: "step in the bytes", want: verify.SignatureInvalid, state: verify.Invalid, sign: inBytes, list: undigested},
		{name: "step in the bytes, announced", want: verify.ManifestMutated, state: verify.Invalid, sign: inBytes, list: func(list []manifest.Announcement) []manifest.Announcement {
			list[0].Digest = bytes.Repeat([]byte{7}, 32)
			return list
		}},
		{name: "key", want: verify.KeyUnknown, state: verify.Invalid, sign: func(w *world, s *story) *manifest.Signed {
			k, private := signer(w.t, stranger)
			return signedWith(w, s.m, k, private)
		}},
		{name: "key under our name", want: verify.SignatureInvalid, state: verify.Invalid, sign: func(w *world, s *story) *manifest.Signed {
			good := w.sign(s.m, w.now)
			ours, _ := signer(w.t, w.ring)
			_, private := signer(w.t, stranger)
			bad := signedWith(w, s.m, ours, private)
			if bad.Signature == good.Signature {
				w.t.Fatal("a stranger signed as we do")
			}
			return bad
		}},
		{name: "URL of the manifest", want: verify.ManifestMismatch, state: verify.Invalid, sign: func(w *world, s *story) *manifest.Signed {
			signed := w.sign(s.m, w.now)
			signed.TargetURI += "x"
			return signed
		}},
		{name: "URL of the source", want: verify.ManifestInconsistent, state: verify.Invalid, story: func(s *story) {
			s.m.Claims[0].Sources[0].URL += "x"
		}},
		{name: "URL in the header", want: verify.ManifestInconsistent, state: verify.Invalid, list: func(list []manifest.Announcement) []manifest.Announcement {
			list[0].URL += "x"
			return list
		}},
		{name: "digit in the output", want: verify.OutputMismatch, state: verify.Invalid, body: func(s *story) string { return digit(s.answer) }},
		{name: "negation in the output", want: verify.OutputMismatch, state: verify.Invalid, body: func(s *story) string { return negate(s.answer) }},
		{name: "hash of the output", want: verify.OutputMismatch, state: verify.Invalid, story: func(s *story) {
			s.m.Output.Hash, s.m.Output.TextHash = flipped(s.m.Output.Hash), flipped(s.m.Output.TextHash)
		}},
	}
}

func signedWith(w *world, m *manifest.Manifest, k *keyring.Key, private crypto.Signer) *manifest.Signed {
	w.t.Helper()
	signed, err := manifest.Sign(m, k, private, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

func undigested(list []manifest.Announcement) []manifest.Announcement {
	list[0].Digest = nil
	return list
}

// Each of a thousand manifests is verified as it is, and with some of the changes above in turn. Each change is found
// and has its status, and nothing is found where nothing is wrong. A changed claim may also be unjudged, never supported.
func TestFalsify(t *testing.T) {
	w := newWorld(t)
	stranger := keyring.Memory(&keyring.Options{Now: w.clock})
	key(t, stranger, &keyring.NewOptions{At: w.now.AddDate(-1, 0, 0)})
	w.pub.Log = nil // tested elsewhere, and it costs a request each time
	all := falsehoods(stranger)
	stories, each := 1000, 3
	if testing.Short() {
		stories = 100
	}
	v := w.verifier()
	var mu sync.Mutex
	tried, found := map[string]int{}, map[string]int{}
	one := func(n, which int) {
		f := &all[which]
		r := falsify(t, w, v, n, f)
		mu.Lock()
		defer mu.Unlock()
		tried[f.name]++
		if r.State == f.state && says(r, f) {
			found[f.name]++
		} else if unjudged := f.claim && len(r.Claims) > 0 && r.Findings.Claims.Unjudged > 0; !unjudged && tried[f.name]-found[f.name] < 3 {
			t.Errorf("%s (%d): want %s and %s:\n%s", f.name, n, f.state, f.want, text(r))
		}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range next {
				one(n*10, 0)
				for k := range each {
					one(n*10+k+1, 1+(n*each+k)%(len(all)-1))
				}
			}
		})
	}
	for n := range stories {
		next <- n
	}
	close(next)
	wg.Wait()
	total, hit := 0, 0
	for _, f := range all {
		t.Logf("%-36s %-32s %4d of %4d", f.name, f.want, found[f.name], tried[f.name])
		total, hit = total+tried[f.name], hit+found[f.name]
	}
	t.Logf("%d of %d verifications had the right result", hit, total)
}

// falsify verifies a story with one thing changed.
func falsify(t *testing.T, w *world, v *verify.Verifier, n int, f *falsehood) *verify.Report {
	t.Helper()
	s := newStory(w, n)
	if f.story != nil {
		f.story(s)
	}
	var signed *manifest.Signed
	if f.sign != nil {
		signed = f.sign(w, s)
	} else {
		signed = w.sign(s.m, w.now)
	}
	w.page(s.path, "text/html; charset=utf-8", s.page)
	w.serveSigned(signed, strings.TrimPrefix(signed.TargetURI, w.origin))
	sum := signed.Digest()
	list := []manifest.Announcement{{URL: s.m.Sources[0].URL, Manifest: signed.TargetURI, Digest: sum[:]}}
	if f.list != nil {
		list = f.list(list)
	}
	body := s.answer
	if f.body != nil {
		body = f.body(s)
	}
	h := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	manifest.SetHeader(h, manifest.Link, list...)
	r, err := v.Response(t.Context(), &verify.Response{URL: w.origin + "/x", Status: 200, Header: h, Body: []byte(body)})
	if err != nil {
		t.Error(err)
		return &verify.Report{}
	}
	return r
}

// says reports whether a report has the status for a change, in its place.
func says(r *verify.Report, f *falsehood) bool {
	switch {
	case f.claim:
		return r.Claims[0].Status == f.want
	case f.state == verify.Invalid:
		return r.Failure[0].Code == f.want
	default:
		return len(r.Claims) == 2 && r.Claims[0].Sources[0].Result.Status == f.want
	}
}
