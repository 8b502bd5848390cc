package page_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// hostile is added to titles, quotes and answers, as an attacker might.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

// proofWorld is a page over a store, and a site whose pages it may read.
type proofWorld struct {
	*httptest.Server

	options page.Options
	page    *page.Page
	dsn     string
	store   *store.Store
	site    *httptest.Server
	token   string // of the tenant one; empty if no tokens are needed
}

// start starts the page with the options.
func (w *proofWorld) start(tb testing.TB) {
	tb.Helper()
	w.page = testenv.Must(page.New(&w.options))(tb)
	w.Server = httptest.NewServer(w.page)
	tb.Cleanup(w.Close)
	tb.Cleanup(w.page.Close)
}

// newProofWorld starts a world. If waits is not nil, the site receives from it before it answers.
func newProofWorld(tb testing.TB, waits chan struct{}) *proofWorld {
	tb.Helper()
	w := &proofWorld{}
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if waits != nil {
			<-waits
		}
		if r.URL.Path != "/mill" {
			rw.WriteHeader(http.StatusGone)
			return
		}
		_, _ = io.WriteString(rw, "<p>The old mill, which had ground flour since 1780, closed its gates in the autumn of 1989, after two centuries of work.")
	}))
	tb.Cleanup(w.site.Close)
	w.dsn = tb.TempDir() + "/ibid.db"
	b := testenv.Must(bus.Open(tb.Context(), "", nil))(tb)
	tb.Cleanup(func() { _ = b.Close() })
	w.store = testenv.Must(store.Open(tb.Context(), w.dsn, &store.Options{Committed: b.Committed()}))(tb)
	tb.Cleanup(func() { _ = w.store.Close() })
	fetcher := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	tb.Cleanup(func() { _ = fetcher.Close() })
	checker := support.Remember(&support.Lexical{}, 20_000) // as the server's
	verifier := func(tenant string) *verify.Verifier {
		return &verify.Verifier{Fetcher: fetcher, Memory: w.store.Memory(tenant), Checker: checker}
	}
	guard := gateway.NewGuard(&gateway.GuardOptions{Store: w.store})
	strategies := append(experiment.Builtin(), experiment.Strategy{Name: "judged", Version: 1, PostHoc: true, Threshold: 0.5, Scorer: "bm25", Checker: "judge"})
	a := testenv.Must(api.New(&api.Options{Store: w.store, Guard: guard, Bus: b, Verifier: verifier, Strategies: strategies}))(tb)
	w.options = page.Options{
		Store: w.store, Guard: guard, API: a, Bus: b, Verifies: true, Strategies: strategies,
		Upstreams: []page.Upstream{{Name: "openai", Provider: "openai"}},
	}
	w.start(tb)
	return w
}

// millCall is the n-th answer of a tenant. It rests on the mill's page and on a file.
func millCall(n int, tenant string) *store.Call {
	text := fmt.Sprintf("The mill closed in 1987. Answer %d says %s here. Nothing supports this sentence of the answer.", n, hostile)
	a := &ibid.Answer{
		Provider: "openai", Format: "openai-responses", Model: "m", Text: text, Complete: true, Finish: ibid.FinishStop,
		Parts: []ibid.Part{{Span: ibid.Span{End: len(text)}, Kind: ibid.AnswerPart}},
		Sources: []ibid.Source{
			{ID: "web:0", Kind: ibid.Web, Title: "The mill of " + tenant + hostile, URL: "https://mill.example/" + tenant},
			{ID: "file:1", Kind: ibid.File, Filename: "mill.pdf", GlobalID: "file-" + tenant},
		},
	}
	for i, end := range []int{len("The mill closed in 1987."), len(text) / 2} {
		if err := a.Cite(ibid.Span{Start: end - 10, End: end}, ibid.Ref{Source: a.Sources[i].ID, Quote: "closed in 1987 " + hostile}); err != nil {
			panic(err)
		}
	}
	return &store.Call{
		AnswerID: fmt.Sprintf("ans_%s_%03d", tenant, n), Tenant: tenant, Upstream: "openai", Route: "POST /v1/responses", Run: fmt.Sprintf("run_%s_%d", tenant, n),
		Conversation: "talk_" + tenant, Status: 200, Started: time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * 30 * time.Hour),
		Duration: time.Second, Answer: a, Prompt: []store.Message{{Role: store.RoleUser, Text: "When did the mill of " + tenant + " close? " + hostile}},
	}
}

// fill stores answers of a tenant, the first of them checked, and a version, incidents and feedback.
func (w *proofWorld) fill(tb testing.TB, tenant string, answers int) {
	tb.Helper()
	ctx := tb.Context()
	statuses := []store.PinStatus{
		{Status: verify.Verified, Counts: verify.CountPass},
		{Status: verify.ExcerptAltered, Counts: verify.CountFailure},
		{Status: verify.Gone, Counts: verify.CountUnverifiable},
	}
	for n := range answers {
		c := millCall(n, tenant)
		must(tb, w.store.Put(ctx, []*store.Call{c}))
		at := c.Answer.Sources[0].URL
		must(tb, w.store.AddPins(ctx, tenant, []store.Pin{{
			URL: at, AnswerID: c.AnswerID, Run: c.Run, Citation: c.Answer.Citations[0].ID, ClaimID: "c0", SourceID: "s1",
			Claim: manifest.ClaimSource{URL: at, Excerpt: &manifest.Excerpt{Exact: "closed in 1987"}}, Source: manifest.Source{ID: "s1", URL: at, Title: "The mill"},
		}}))
		if n%4 == 3 {
			continue
		}
		pins, err := w.store.Pins(ctx, tenant, at)
		must(tb, err)
		status := statuses[n%4]
		status.ID, status.CheckedAt = pins[len(pins)-1].ID, c.Started
		must(tb, w.store.SetStatuses(ctx, tenant, []store.PinStatus{status}))
	}
	first := millCall(0, tenant)
	must(tb, w.store.Copies(tenant).Keep(ctx, &snapshot.Snapshot{
		URL: first.Answer.Sources[0].URL, FinalURL: first.Answer.Sources[0].URL, Status: 200, MediaType: "text/html", FetchedAt: first.Started,
		Octets: []byte(tenant), Hash: snapshot.Hash([]byte(tenant)),
	}))
	_, err := w.store.AddIncidents(ctx, tenant, []verify.Incident{{
		ObservedAt: first.Started, Verifier: "v", ManifestURL: "https://agent.example/m", ManifestSHA256: strings.Repeat("ab", 32), ClaimID: "c0",
		SourceURL: first.Answer.Sources[0].URL, Status: verify.ExcerptAltered, Detail: "Incident of " + tenant + hostile,
		Observed: verify.IncidentObserved{Nearest: "closed in 1989 " + hostile, Edits: 1},
	}, {ObservedAt: first.Started, ManifestURL: "https://agent.example/n", Status: verify.SignatureInvalid, Detail: "The second of " + tenant}})
	must(tb, err)
	_, err = w.store.AddAlerts(ctx, []store.Alert{
		{Kind: store.AlertDiffers, Tenant: tenant, Subject: store.AlertSubject{AnswerID: first.AnswerID}, Summary: "Alert of mill of " + tenant + hostile},
		{Kind: store.AlertKeyRevoked, Tenant: tenant, Subject: store.AlertSubject{Key: hostile, Upstream: hostile, Source: hostile}},
	})
	must(tb, err)
	must(tb, w.store.AddFeedback(ctx, tenant, &store.Feedback{AnswerID: first.AnswerID, Citation: first.Answer.Citations[0].ID, Verdict: store.VerdictRight}))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// get returns a page.
func (w *proofWorld) get(tb testing.TB, method, path string) *shownPage {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, w.URL+path, nil)
	must(tb, err)
	return w.send(tb, r)
}

func (w *proofWorld) send(tb testing.TB, r *http.Request) *shownPage {
	tb.Helper()
	if w.token != "" {
		r.AddCookie(gateway.SessionOf(w.token, false))
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	must(tb, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	must(tb, err)
	return &shownPage{res, string(body)}
}

// proofPaths are pages with much content.
func proofPaths(tenant string) []string {
	source := url.QueryEscape("https://mill.example/" + tenant)
	return []string{
		"/", "/ui/overview", "/ui/search", "/ui/search?q=" + url.QueryEscape(hostile), "/ui/search?q=mill+clo&source=" + source + "&badge=failed", "/ui/search?badge=excerpt-altered",
		"/ui/search?q=nothinghasthis", "/ui/sources", "/ui/sources?url=" + source, "/ui/sources?key=" + url.QueryEscape("file-"+tenant),
		"/ui/sources?url=" + url.QueryEscape("https://nobody.example/"+hostile), "/ui/alerts", "/ui/alerts?seen=no&kind=" + url.QueryEscape(hostile), "/ui/incidents", "/ui/incidents?check=chain&status=excerpt-altered&source=" + source,
		"/ui/incidents?status=" + url.QueryEscape(hostile), "/ui/verify", "/ui/verify?url=" + url.QueryEscape("https://a.example/"+hostile),
		"/ui/experiments", "/ui/experiments?a=provider%401&b=balanced%402", "/ui/experiments?a=provider%401&b=strict%402&live=yes&runs=10",
	}
}

// checkHTML fails if a page has anything that could run, load something or break the layout, or that screen readers
// cannot use.
func checkHTML(tb testing.TB, body string) {
	tb.Helper()
	root, err := html.Parse(strings.NewReader(body))
	must(tb, err)
	ids, scripts := map[string]bool{}, 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" {
			scripts++
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "style", strings.HasPrefix(a.Key, "on"):
				tb.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			case (a.Key == "src" || n.Data == "link" && a.Key == "href" || a.Key == "action") && !strings.HasPrefix(a.Val, "/"):
				tb.Errorf("<%s %s=%q> is elsewhere", n.Data, a.Key, a.Val)
			case a.Key == "href" && !regexp.MustCompile(`^(/|#|https?://)`).MatchString(a.Val):
				tb.Errorf("<%s href=%q>", n.Data, a.Val)
			case a.Key == "href" && strings.HasPrefix(a.Val, "http") && !slices.Contains(n.Attr, html.Attribute{Key: "rel", Val: "noopener noreferrer nofollow"}):
				tb.Errorf("<%s href=%q> without rel", n.Data, a.Val)
			case a.Key == "id" && ids[a.Val]:
				tb.Errorf("the id %q is there twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
	}
	if scripts != 2 { // those of the layout
		tb.Errorf("%d scripts", scripts)
	}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "for" || a.Key == "aria-labelledby" || a.Key == "aria-describedby" {
				for id := range strings.FieldsSeq(a.Val) {
					if !ids[id] {
						tb.Errorf("<%s %s=%q>: there is no such id", n.Data, a.Key, a.Val)
					}
				}
			}
		}
	}
	if strings.Count(body, "<h1") != 1 {
		tb.Errorf("%d headings of the page", strings.Count(body, "<h1"))
	}
}

// All pages are sound, whatever is in titles, quotes and answers; and HEAD is GET without a body.
func TestProofPagesAreSound(t *testing.T) {
	w := newProofWorld(t, nil)
	paths := proofPaths(store.DefaultTenant)
	for range 2 { // once empty, once filled
		for _, path := range paths {
			t.Run(path, func(t *testing.T) {
				got := w.get(t, "GET", path)
				if got.StatusCode != http.StatusOK {
					if !strings.Contains(path, "key=") || got.StatusCode != http.StatusNotFound {
						t.Fatalf("%d %s", got.StatusCode, got.body)
					}
					return
				}
				checkHTML(t, got.body)
				head := w.get(t, "HEAD", path)
				if head.StatusCode != got.StatusCode || head.body != "" || head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
					t.Errorf("HEAD: %d %v %q", head.StatusCode, head.Header, head.body)
				}
			})
		}
		w.fill(t, store.DefaultTenant, 24)
	}
}

// No page shows a tenant anything of another.
func TestProofTenants(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, "one", 3)
	w.fill(t, "two", 3)
	var incident string
	for _, tenant := range []string{"one", "two"} {
		secret, err := w.store.NewToken(t.Context(), &store.Token{Tenant: tenant, Name: tenant, Scopes: []string{store.ScopeRead}})
		must(t, err)
		w.token = secret
		other := map[string]string{"one": "two", "two": "one"}[tenant]
		for _, path := range slices.Concat(proofPaths(tenant), proofPaths(other)) {
			got := w.get(t, "GET", path)
			for _, secret := range []string{"mill of " + other, "ans_" + other, "Incident of " + other, "run_" + other} {
				if strings.Contains(got.body, secret) {
					t.Errorf("%s of %s has %q", path, tenant, secret)
				}
			}
		}
		own := regexp.MustCompile(`/ui/incidents/[0-9a-f]{64}`).FindString(w.get(t, "GET", "/ui/incidents?status=excerpt-altered").body)
		if got := w.get(t, "GET", own); got.StatusCode != http.StatusOK || !strings.Contains(got.body, "Incident of "+tenant) {
			t.Errorf("%s of %s: %d", own, tenant, got.StatusCode)
		}
		incident = own
	}
	secret, err := w.store.NewToken(t.Context(), &store.Token{Tenant: "three", Name: "three", Scopes: []string{store.ScopeRead}})
	must(t, err)
	w.token = secret
	if got := w.get(t, "GET", incident); got.StatusCode != http.StatusNotFound {
		t.Errorf("%s of another tenant: %d", incident, got.StatusCode)
	}
	w.token = ""
	for _, path := range proofPaths("one") {
		if got := w.get(t, "GET", path); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/ui/login") {
			t.Errorf("%s without a token: %d", path, got.StatusCode)
		}
	}
}

// The overview shows totals and shares.
func TestOverview(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 24)
	body := w.get(t, "GET", "/ui/overview").body
	for _, want := range []string{
		`<strong class="num">24</strong> answers`, `<strong class="num">1</strong> conversation<`, `<strong class="num">0</strong> runs`, `<strong class="num">2</strong> incidents`,
		"24 answers, 0 of them without any", `<th scope="row">31 August 2026</th>`, "0 of 24 answers have no source at all",
		"6 answers rest on it", "24 citations in 24 answers",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the overview has no %q", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// A search finds answers by words, source and badge, marks the words, and has pages.
func TestSearchPage(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 45)
	body := w.get(t, "GET", "/ui/search?q=mill+clo").body
	for _, want := range []string{"<mark>mill</mark> <mark>closed</mark>", "2 citations", "mill.example", "1 changed", "that have the words “mill clo”"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	found := map[string]bool{}
	next := "/ui/search?q=mill&badge=failed"
	for pages := 0; next != ""; pages++ {
		if pages > 5 {
			t.Fatal("it does not end")
		}
		body := w.get(t, "GET", next).body
		for _, m := range regexp.MustCompile(`/ui/answers/(ans_default_\d+)`).FindAllStringSubmatch(body, -1) {
			if found[m[1]] {
				t.Errorf("%s twice", m[1])
			}
			found[m[1]] = true
		}
		m := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(body)
		if next = ""; m != nil {
			next = html.UnescapeString(m[1])
		}
	}
	if len(found) != 11 {
		t.Errorf("found %d answers of which a check failed: %v", len(found), found)
	}
	if got := w.get(t, "GET", "/ui/search?cursor=nonsense"); got.StatusCode != http.StatusBadRequest {
		t.Errorf("a cursor that is none: %d", got.StatusCode)
	}
	if got := w.get(t, "GET", "/ui/search?q=nothinghasthis").body; !strings.Contains(got, "No answer matches") {
		t.Error(got)
	}
}

// A source is shown with the answers that cite it, its versions and its incidents.
func TestSourcePage(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 3)
	body := w.get(t, "GET", "/ui/sources?url="+url.QueryEscape("https://mill.example/default#part")).body
	hash := snapshot.Hash([]byte(store.DefaultTenant))
	for _, want := range []string{
		"The mill of default&#34;&gt;&lt;script", "ans_default_002", "<mark>1987</mark>", "quote found", "changed", "not reachable", hash, "A source changed: it has similar words",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	secret, err := w.store.NewToken(t.Context(), &store.Token{Tenant: store.DefaultTenant, Name: "reader", Scopes: []string{store.ScopeRead}})
	must(t, err)
	w.token = secret // the page's links are for readers who are signed in
	link := regexp.MustCompile(`href="([^"]+)" download`).FindStringSubmatch(body)
	if link == nil {
		t.Fatal("there is no link to the octets")
	}
	if got := w.get(t, "GET", html.UnescapeString(link[1])); got.StatusCode != http.StatusOK || got.body != store.DefaultTenant {
		t.Errorf("%s: %d %q", link[1], got.StatusCode, got.body)
	}
	body = w.get(t, "GET", "/ui/sources?key=file-default").body
	if !strings.Contains(body, "mill.pdf") || !strings.Contains(body, "it cannot be opened") || !strings.Contains(body, "never read here") {
		t.Errorf("a file: %s", body)
	}
}

// An incident shows what was expected and observed, and the chain can be checked.
func TestIncidentPages(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 2)
	body := w.get(t, "GET", "/ui/incidents?check=chain").body
	if !strings.Contains(body, "All 2 incidents are in order") || !strings.Contains(body, "signature not valid") {
		t.Error(body)
	}
	for filter, want := range map[string]int{"status=signature-invalid": 1, "source=https://mill.example/default": 1, "status=gone": 0} {
		body := w.get(t, "GET", "/ui/incidents?"+filter).body
		if n := len(regexp.MustCompile(`/ui/incidents/[0-9a-f]{64}`).FindAllString(body, -1)); n != want {
			t.Errorf("%s: %d incidents, want %d", filter, n, want)
		}
	}
	one := regexp.MustCompile(`/ui/incidents/[0-9a-f]{64}`).FindString(w.get(t, "GET", "/ui/incidents?status=excerpt-altered").body)
	got := w.get(t, "GET", one)
	checkHTML(t, got.body)
	for _, want := range []string{"closed in 1989 &#34;&gt;&lt;script", "1 character differs", "https://agent.example/m", strings.Repeat("ab", 32)} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %q in %s", want, got.body)
		}
	}
	// What an answer and its run both publish fails in both, but is listed once.
	twice := verify.Incident{Status: verify.ExcerptMissing, ClaimID: "c9", SourceURL: "https://mill.example/other", Detail: "It is gone."}
	of := []verify.Incident{twice, twice}
	of[0].ManifestURL, of[1].ManifestURL = "https://agent.example/runs/r/cite/ans_1", "https://agent.example/runs/r/cite"
	_, err := w.store.AddIncidents(t.Context(), store.DefaultTenant, of)
	must(t, err)
	body = w.get(t, "GET", "/ui/incidents?status=excerpt-missing").body
	for _, want := range []string{"A source does not have the words that the answer quotes.", "published with the answer and its run", "found 1 more time"} {
		if strings.Count(body, want) != 1 {
			t.Errorf("%q is not there once in %s", want, body)
		}
	}
	// So is a change of a source, whatever was quoted from it, with the claim that rests on it.
	change := verify.Incident{
		Status: verify.ExcerptAltered, ClaimID: "c1", SourceURL: "https://mill.example/changed", ManifestSHA256: strings.Repeat("cd", 32),
		Observed: verify.IncidentObserved{Hash: "sha256:1", Nearest: "The mill closed in 1989."},
	}
	of = []verify.Incident{change, change, change, change}
	of[1].ClaimID, of[1].Status, of[1].Observed.Nearest = "c2", verify.ExcerptMissing, ""
	of[2].ClaimID = "c4"
	of[3].ClaimID, of[3].Observed.Hash = "c3", "sha256:2" // it changed again
	_, err = w.store.AddIncidents(t.Context(), store.DefaultTenant, of)
	must(t, err)
	body = w.get(t, "GET", "/ui/incidents").body
	for want, n := range map[string]int{"found 2 more times": 1, "https%3A%2F%2Fmill.example%2Fchanged": 2, "badge bad": 5} {
		if got := strings.Count(body, want); got != n {
			t.Errorf("%d times %q, want %d, in %s", got, want, n, body)
		}
	}
	if got := w.get(t, "GET", "/ui/incidents/"+strings.Repeat("0", 64)); got.StatusCode != http.StatusNotFound {
		t.Errorf("one that is not there: %d", got.StatusCode)
	}
}

// verifyForm sends the form as our own page does.
func (w *proofWorld) verifyForm(tb testing.TB, fields map[string]string, file []byte) *shownPage {
	tb.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range fields {
		must(tb, form.WriteField(name, value))
	}
	part, err := form.CreateFormFile("file", "x.json")
	must(tb, err)
	_, err = part.Write(file)
	must(tb, err)
	must(tb, form.Close())
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, w.URL+"/ui/verify", &b)
	must(tb, err)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Origin", w.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return w.send(tb, r)
}

// document returns an answer document that quotes from these addresses.
func document(tb testing.TB, addresses ...string) []byte {
	tb.Helper()
	text := "The mill closed in 1987."
	a := &ibid.Answer{Text: text, Complete: true, Parts: []ibid.Part{{Span: ibid.Span{End: len(text)}, Kind: ibid.AnswerPart}}}
	for i, address := range addresses {
		id := fmt.Sprint("web:", i)
		a.Sources = append(a.Sources, ibid.Source{ID: id, Kind: ibid.Web, Title: "Mill " + hostile, URL: address})
		must(tb, a.Cite(ibid.Span{End: len(text)}, ibid.Ref{Source: id, Quote: "which had ground flour since 1780, closed its doors in the autumn of 1987, after two centuries"}))
	}
	b, err := a.Document(nil).JSON()
	must(tb, err)
	return b
}

// Pasted and uploaded answers are verified, and the report says what failed, what was not checked and why.
func TestVerifyPage(t *testing.T) {
	w := newProofWorld(t, nil)
	doc := document(t, w.site.URL+"/mill", w.site.URL+"/gone", "http://10.0.0.1/private", "https://me:word@mill.example/user")
	pasted := w.verifyForm(t, map[string]string{"text": strings.ReplaceAll(string(doc), "\n", "\r\n")}, nil)
	sent := w.verifyForm(t, map[string]string{"trust": "agent.example, other.example"}, doc)
	for name, got := range map[string]*shownPage{"pasted": pasted, "sent": sent} {
		if got.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", name, got.StatusCode, got.body)
		}
		checkHTML(t, got.body)
		for _, want := range []string{
			"1 of 4 quotes has changed", "not signed", "closed its <mark>doors</mark> in the autumn of <mark>1987</mark>", "closed its <mark>gates</mark> in the autumn of <mark>1989</mark>",
			"The source no longer exists.", ">1 changed</span>, ", ">1 not reachable</span>, ", ">2 not fetched</span>", "lies in a private network", "has a user name or a password", "not fetched",
		} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s: no %q in %s", name, want, got.body)
			}
		}
	}
	if !strings.Contains(w.get(t, "GET", "/ui/incidents").body, "changed") {
		t.Error("the failure is not an incident")
	}
	offline := w.verifyForm(t, map[string]string{"offline": "yes"}, document(t, w.site.URL+"/mill"))
	if !strings.Contains(offline.body, "The quote could not be checked") || !strings.Contains(offline.body, "you asked to stay offline") {
		t.Error(offline.body)
	}
}

// An answer of this server has its report on a page of its own, even if it is not published, and the results are used
// until its sources are read again. A reader who may not verify is told so.
func TestVerificationOfAnswer(t *testing.T) {
	reads := make(chan struct{}, 100)
	w := newProofWorld(t, nil)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		reads <- struct{}{}
		_, _ = io.WriteString(rw, "<p>The old mill closed its gates in the autumn of 1989, after two centuries of work.")
	}))
	t.Cleanup(site.Close)
	call := millCall(0, store.DefaultTenant)
	call.Answer.Sources[0].URL = site.URL + "/mill"
	call.Answer.Citations[0].Refs[0].Quote = "The old mill closed its doors in the autumn of 1989, after"
	token := func(scopes ...string) string {
		return testenv.Must(w.store.NewToken(t.Context(), &store.Token{Tenant: store.DefaultTenant, Name: "t", Scopes: scopes}))(t)
	}
	reader := token(store.ScopeRead)
	w.token = token(store.ScopeRead, store.ScopeVerify)
	must(t, w.store.Put(t.Context(), []*store.Call{call}))
	path := "/ui/answers/" + call.AnswerID + "/verification"
	got := w.get(t, "GET", path)
	checkHTML(t, got.body)
	for _, want := range []string{
		`<a href="/ui/answers/` + call.AnswerID + `" rel="noopener noreferrer nofollow">When did the mill`, `aria-current="page">Verification`, "1 of 2 quotes has changed",
		"not published, so not signed", "<mark>gates</mark>", `<button name="url" value="` + w.URL + `/v1/answers/` + call.AnswerID + `">Check again`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %q in %s", want, got.body)
		}
	}
	once := len(reads)
	if w.get(t, "GET", path); len(reads) != once || once == 0 {
		t.Errorf("the source was read %d times, and %d for the same report", once, len(reads)-once)
	}
	again := w.verifyForm(t, map[string]string{"url": w.URL + "/v1/answers/" + call.AnswerID}, nil)
	if again.StatusCode != http.StatusSeeOther || again.Header.Get("Location") != path || len(reads) == once {
		t.Errorf("%d %v, read %d times", again.StatusCode, again.Header, len(reads))
	}
	if got := w.get(t, "GET", "/ui/answers/ans_none/verification"); got.StatusCode != http.StatusNotFound {
		t.Errorf("of no answer: %d", got.StatusCode)
	}
	w.token, once = reader, len(reads)
	if got := w.get(t, "GET", path); !strings.Contains(got.body, "needs the scope verify") || strings.Contains(got.body, "Check again") || len(reads) != once {
		t.Errorf("a reader who may only read: %d %s", got.StatusCode, got.body)
	}
}

// The form says what cannot be verified, and keeps what was entered.
func TestVerifyPageRefuses(t *testing.T) {
	w := newProofWorld(t, nil)
	for name, test := range map[string]struct {
		fields map[string]string
		status int
		want   string
	}{
		"nothing":        {nil, 422, "There is nothing to verify."},
		"no thing":       {map[string]string{"text": "nonsense " + hostile}, 422, "It is not a manifest"},
		"a bad trust":    {map[string]string{"text": "{}", "trust": strings.Repeat("x", 300)}, 422, "is neither a host nor a key id"},
		"too much of it": {map[string]string{"text": strings.Repeat("x", 9<<20)}, 400, "too long"},
		"a bad address":  {map[string]string{"url": "ftp://" + hostile}, 422, "It was not fetched: only http and https are."},
		"no answer":      {map[string]string{"url": w.site.URL + "/none"}, 422, "There is no answer at this address (410)."},
		"nothing cited":  {map[string]string{"url": w.site.URL + "/mill"}, 422, "The response names no sources to verify"},
	} {
		got := w.verifyForm(t, test.fields, nil)
		if got.StatusCode != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
			continue
		}
		checkHTML(t, got.body)
		if text := test.fields["text"]; test.status == 422 && !strings.Contains(got.body, html.EscapeString(text)) {
			t.Errorf("%s: what was entered is lost", name)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/ui/verify", strings.NewReader("url=https://a.example"))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := w.send(t, r); got.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %d", got.StatusCode)
	}
}

// The number of concurrent verifications is limited; further ones are told to try again.
func TestVerifyPageIsBounded(t *testing.T) {
	waits := make(chan struct{})
	w := newProofWorld(t, waits)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan int)
	doc := document(t, w.site.URL+"/mill")
	for range 3 {
		go func() { results <- w.verifyForm(t, nil, doc).StatusCode }()
	}
	got := []int{<-results} // the refused one comes first, as the others wait for the site
	go func() {
		for {
			select {
			case waits <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	got = append(got, <-results, <-results)
	testenv.Equal(t, "", []int{429, 200, 200}, got)
}

// Two strategies are compared on stored runs.
func TestExperimentsPage(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 6)
	for path, want := range map[string]struct {
		status int
		words  []string
	}{
		"/ui/experiments": {200, []string{"provider@1", "strict@2", "compares it"}},
		"/ui/experiments?a=provider%401&b=balanced%402":        {200, []string{"6 runs, the same for both", "Coverage", "of 18", "not measured"}},
		"/ui/experiments?a=provider%401&b=strict%402&runs=2":   {200, []string{"2 runs, the same for both"}},
		"/ui/experiments?a=provider%401&b=strict%402&live=yes": {200, []string{"was attributed by one of these strategies"}},
		"/ui/experiments?a=provider%401&b=provider%401":        {422, []string{"Both strategies are provider@1"}},
		"/ui/experiments?a=provider%401":                       {422, []string{"Choose two"}},
		"/ui/experiments?a=provider%401&b=judged%401":          {422, []string{"may ask a model"}},
		"/ui/experiments?a=%3Cscript%3E&b=provider%401":        {422, []string{"Choose two"}},
	} {
		got := w.get(t, "GET", path)
		if got.StatusCode != want.status {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
		checkHTML(t, got.body)
		for _, word := range want.words {
			if !strings.Contains(got.body, word) {
				t.Errorf("%s: no %q in %s", path, word, got.body)
			}
		}
	}
}

// Readers can mark one alert or all as seen; those of another tenant are not affected.
func TestAlertsAreSeen(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, "one", 3)
	w.fill(t, "two", 3)
	post := func(form url.Values) *shownPage {
		r, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/ui/alerts", strings.NewReader(form.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", w.URL)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return w.send(t, r)
	}
	unseen := func(tenant string) int {
		n, err := w.store.UnseenAlerts(t.Context(), tenant)
		must(t, err)
		return n
	}
	id := regexp.MustCompile(`name="id" value="(alert_[0-9a-f]{32})"`)
	var ids []string
	for _, tenant := range []string{"two", "one"} {
		secret, err := w.store.NewToken(t.Context(), &store.Token{Tenant: tenant, Name: tenant, Scopes: []string{store.ScopeRead, store.ScopeWrite}})
		must(t, err)
		w.token = secret
		body := w.get(t, "GET", "/ui/alerts").body
		if !strings.Contains(body, "Mark all 3 as seen") || strings.Count(body, "Mark as seen") != 3 {
			t.Errorf("the alerts of %s: %s", tenant, body)
		}
		ids = append(ids, id.FindStringSubmatch(body)[1])
	}
	if got := post(url.Values{"id": {ids[0]}}); got.StatusCode != http.StatusNotFound || unseen("two") != 3 {
		t.Errorf("another tenant's: %d", got.StatusCode)
	}
	got := post(url.Values{"id": {ids[1]}, "next": {"/ui/alerts?seen=no"}})
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/ui/alerts?seen=no" || unseen("one") != 2 {
		t.Errorf("one: %d %v", got.StatusCode, got.Header)
	}
	if got := post(nil); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/ui/alerts" || unseen("one") != 0 || unseen("two") != 3 {
		t.Errorf("all: %d %v", got.StatusCode, got.Header)
	}
	if body := w.get(t, "GET", "/ui/alerts").body; strings.Contains(body, "as seen") || !strings.Contains(body, "source changed") {
		t.Errorf("all seen: %s", body)
	}
}
