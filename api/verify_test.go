package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// verify verifies what a body says, which must lead to a report.
func (n *node) verify(t *testing.T, path, body string, fields ...string) *verify.Report {
	t.Helper()
	res := n.do(t, http.MethodPost, path, body, fields...)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	var r verify.Report
	testenv.OK(t, json.Unmarshal([]byte(res.body), &r))
	return &r
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b := testenv.Must(json.Marshal(v))(t)
	return string(b)
}

func codesOf(list []verify.Finding) []verify.Status {
	var all []verify.Status
	for i := range list {
		all = append(all, list[i].Code)
	}
	return all
}

// incidentList is what the API lists of incidents.
type incidentList struct {
	Incidents  []verify.Incident
	NextCursor *string `json:"next_cursor"`
}

// A published answer is trusted. Then one word of its source changes: the report, the incidents, the answer, the list of answers
// that are wrong now and the run's events say so, once.
func TestVerify(t *testing.T) {
	p := newPress(t, 3, loopback)
	p.relay()
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	said := map[string]any{"url": p.URL + "/v1/answers/ans_1", "trust": []string{strings.TrimPrefix(p.URL, "http://")}, "require_level": 3}
	order := asJSON(t, said)
	r := p.verify(t, "/v1/verify", order)
	if r.State != verify.Trusted || r.Kind != verify.KindResponse || r.Level.Observed != 3 || r.Verifier != "the desk" {
		t.Fatalf("%s, level %+v: %v, %+v", r.State, r.Level, r.Why(), r.Failure)
	}
	var shown struct {
		Citations []struct {
			Verification *struct{ Status string }
		}
	}
	p.read(t, "/v1/answers/ans_1", &shown)
	if v := shown.Citations[0].Verification; v == nil || v.Status != string(verify.Verified) {
		t.Errorf("the citation's verification: %+v", v)
	}
	var list incidentList
	if p.read(t, "/v1/incidents", &list); list.Incidents == nil || len(list.Incidents) != 0 {
		t.Errorf("incidents: %+v", list.Incidents)
	}

	p.pages.set("/herons", strings.Replace(eggs, "four", "five", 1))
	said["max_age"] = 60
	if r = p.verify(t, "/v1/verify", asJSON(t, said)); r.State != verify.Trusted || !r.Claims[0].Sources[0].Cached {
		t.Errorf("%s: with max_age the source is read again", r.State)
	}
	for range 2 { // the second time nothing is new
		if r = p.verify(t, "/v1/verify", order); r.State != verify.Invalid || !slices.Contains(codesOf(r.Failure), verify.ExcerptAltered) {
			t.Fatalf("%s: %+v", r.State, r.Failure)
		}
	}
	p.read(t, "/v1/answers/ans_1", &shown)
	if v := shown.Citations[0].Verification; v == nil || v.Status != string(verify.ExcerptAltered) {
		t.Errorf("the citation's verification: %+v", v)
	}
	var answers struct {
		Answers []struct {
			ID string `json:"answer_id"`
		}
	}
	if p.read(t, "/v1/answers?verification=failed", &answers); len(answers.Answers) != 1 || answers.Answers[0].ID != "ans_1" {
		t.Errorf("%+v", answers)
	}
	p.read(t, "/v1/incidents", &list)
	at := slices.IndexFunc(list.Incidents, func(i verify.Incident) bool { return i.Status == verify.ExcerptAltered })
	if at < 0 {
		t.Fatalf("incidents: %+v", list.Incidents)
	}
	in := &list.Incidents[at]
	if in.SourceURL != source || in.ManifestSHA256 != r.Manifests[0].SHA256 || !strings.Contains(in.Observed.Nearest, "five") || in.Verifier != "the desk" {
		t.Errorf("%+v", in)
	}
	if _, err := p.store.CheckIncidents(t.Context(), store.DefaultTenant); err != nil {
		t.Error(err)
	}
	if chain := slices.Clone(list.Incidents); len(chain) > 0 { // as a client can check it
		slices.Reverse(chain)
		if err := verify.CheckChain(chain); err != nil {
			t.Error(err)
		}
	}
	var told []string
	for l, incidents := p.listen(t, "/v1/runs/run_1/events"), 0; incidents < len(list.Incidents); {
		event := l.next()
		for _, kind := range []string{"manifest", "verification", "incident"} {
			if strings.Contains(event, "\nevent: "+kind+"\n") {
				told = append(told, kind)
			}
		}
		if strings.Contains(event, "\nevent: incident\n") {
			incidents++
		}
	}
	want := []string{"manifest", "manifest", "verification", "verification", "incident"}
	slices.Sort(want)
	slices.Sort(told)
	testenv.Equal(t, "events", slices.Compact(want), slices.Compact(told))
}

// Incidents can be listed by what they are about, a page at a time.
func TestIncidents(t *testing.T) {
	p := newPress(t, 3, loopback)
	var sums []string
	for i := range 3 {
		id := fmt.Sprint("ans_", i+1)
		p.publish(t, call(id, cites(p.pages.set("/"+id, eggs), quote)))
		p.pages.set("/"+id, "<p>Nothing of the kind is here any more.</p>")
		r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"url": p.URL + "/v1/answers/" + id}))
		sums = append(sums, r.Manifests[0].SHA256)
	}
	for params, n := range map[string]int{
		"": 3, "manifest=" + sums[0]: 1, "manifest=sha256:" + strings.ToUpper(sums[1]): 1, "source=" + url.QueryEscape(p.pages.URL+"/ans_2"): 1,
		"answer=ans_3": 1, "answer=ans_3&manifest=" + sums[0]: 0, "status=excerpt-missing": 3, "status=gone": 0, "manifest=" + strings.Repeat("0", 64): 0,
	} {
		var list incidentList
		p.read(t, "/v1/incidents?"+params, &list)
		found := 0
		for i := range list.Incidents {
			if list.Incidents[i].Status == verify.ExcerptMissing {
				found++
			}
		}
		if found != n {
			t.Errorf("%s: %d incidents, want %d: %+v", params, found, n, list.Incidents)
		}
	}
	var all, page incidentList
	p.read(t, "/v1/incidents", &all)
	var paged []verify.Incident
	for path := "/v1/incidents?limit=2"; path != ""; {
		page = incidentList{}
		p.read(t, path, &page)
		paged = append(paged, page.Incidents...)
		if path = ""; page.NextCursor != nil {
			path = query("/v1/incidents", "limit", "2", "cursor", *page.NextCursor)
		}
	}
	if diff := cmp.Diff(all.Incidents, paged); diff != "" {
		t.Errorf("pages (-all +paged):\n%s", diff)
	}
	for _, params := range []string{"manifest=x", "manifest=" + sums[0] + "00", "cursor=x", "limit=0", "verifier=x"} {
		wantProblem(t, p.get(t, "/v1/incidents?"+params), 400)
	}
}

// Whatever can be verified can be sent: in an order, or by itself with parameters.
func TestVerifyInputs(t *testing.T) {
	p := newPress(t, 3, loopback)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	host := strings.TrimPrefix(p.URL, "http://")
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	signed.JWKS = testenv.Must(p.publisher.Keys.Directory(true))(t)
	answer := p.get(t, "/v1/answers/ans_1")
	printed := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%s: %s\r\n\r\n%s", manifest.HeaderName, answer.Header.Get(manifest.HeaderName), answer.body)
	bundle, address := asJSON(t, signed), p.URL+"/v1/answers/ans_1"
	params := "?trust=" + url.QueryEscape("other.example,"+host)
	raw := func(name, value string) string { return `{"` + name + `":` + value + `,"trust":["` + host + `"]}` }
	for name, c := range map[string]struct {
		path, body string
		kind       verify.Kind
		state      verify.State
	}{
		"url":             {"", raw("url", asJSON(t, address)), verify.KindResponse, verify.Trusted},
		"url of manifest": {"", raw("url", asJSON(t, at.URL)), verify.KindManifest, verify.Trusted},
		"manifest url":    {"", raw("manifest", asJSON(t, at.URL)), verify.KindManifest, verify.Trusted},
		"manifest":        {"", raw("manifest", string(signed.Body)), verify.KindManifest, verify.Valid},
		"bundle":          {"", raw("bundle", bundle), verify.KindBundle, verify.Trusted},
		"document":        {"", raw("document", answer.body), verify.KindDocument, verify.Valid},
		"response":        {"", asJSON(t, map[string]any{"response": printed, "url": address, "trust": []string{host}}), verify.KindResponse, verify.Trusted},
		"untrusted":       {"", asJSON(t, map[string]any{"url": address}), verify.KindResponse, verify.Valid},
		"raw manifest":    {params, string(signed.Body), verify.KindManifest, verify.Valid},
		"raw bundle":      {params, bundle, verify.KindBundle, verify.Trusted},
		"raw document":    {"", answer.body, verify.KindDocument, verify.Valid},
		"raw response":    {params + "&url=" + url.QueryEscape(address), printed, verify.KindResponse, verify.Trusted},
		"level":           {"?require_level=3", string(signed.Body), verify.KindManifest, verify.Invalid},
		"max_age":         {"?max_age=60", answer.body, verify.KindDocument, verify.Valid},
		"no judge wanted": {"?judge=false", string(signed.Body), verify.KindManifest, verify.Valid},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.verify(t, "/v1/verify"+c.path, c.body)
			if r.Kind != c.kind || r.State != c.state || r.Offline {
				t.Errorf("%s %s, want %s %s: %s %+v", r.Kind, r.State, c.kind, c.state, r.Why(), r.Failure)
			}
		})
	}
	own := p.verify(t, "/v1/verify", answer.body, "Content-Type", "application/x-www-form-urlencoded") // as curl calls everything
	if own.State != verify.Valid {
		t.Errorf("%s", own.State)
	}
}

// Offline nothing is fetched: what was read for the manifest is there as a copy. The tenant's answers are as they were.
func TestVerifyOffline(t *testing.T) {
	p := newPress(t, 3)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	p.pages.Close()
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	signed.JWKS = testenv.Must(p.publisher.Keys.Directory(true))(t)
	r := p.verify(t, "/v1/verify?offline=true", asJSON(t, signed))
	if r.Kind != verify.KindBundle || r.State != verify.Valid || !r.Offline || r.Claims[0].Sources[0].Result.Status != verify.Verified {
		t.Errorf("%s %s: %s %+v", r.Kind, r.State, r.Why(), r.Failure)
	}
	pins, err := p.store.Pins(t.Context(), store.DefaultTenant, source)
	if err != nil || len(pins) == 0 || pins[0].Status != "" {
		t.Errorf("%+v, %v", pins, err)
	}
}

// What is no manifest of ours, if it says so ever so much, changes nothing of our answers.
func TestVerifyForged(t *testing.T) {
	p := newPress(t, 3, loopback)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	forged := strings.ReplaceAll(string(signed.Body), "usually lay four", "never lay any")
	r := p.verify(t, "/v1/verify", forged)
	if r.State != verify.Invalid {
		t.Errorf("%s", r.State)
	}
	pins, err := p.store.Pins(t.Context(), store.DefaultTenant, source)
	if err != nil || len(pins) == 0 {
		t.Fatal(len(pins), err)
	}
	for i := range pins {
		if pins[i].Status != "" {
			t.Errorf("a citation was %s", pins[i].Status)
		}
	}
}

// Nobody makes ibid connect to where its operator did not allow it: not by an address, nor by what a document, a response or a
// manifest names.
func TestVerifyReachesNothing(t *testing.T) {
	p := newPress(t, 3)
	var hits atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(quote))
	}))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, address := range []string{
		inside.URL, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://127.1" + port, "http://0.0.0.0" + port,
		"http://2130706433" + port, "http://user@127.0.0.1" + port, "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gopher://127.0.0.1" + port, "nonsense",
		p.URL + "/v1/answers",
	} {
		for name, body := range map[string]string{
			"url":      asJSON(t, map[string]any{"url": address}),
			"manifest": asJSON(t, map[string]any{"manifest": address}),
			"response": asJSON(t, map[string]any{"response": "HTTP/1.1 200 OK\r\nCitation-Source: <https://a.invalid/>; manifest=\"" + address + "\"\r\n\r\nHi."}),
			"document": asJSON(t, map[string]any{"document": cites(address, quote)}),
		} {
			r := p.verify(t, "/v1/verify", body)
			if r.State == verify.Trusted || r.State == verify.Valid {
				t.Errorf("%s %s: %s", name, address, r.State)
			}
			if name != "document" {
				continue
			}
			switch got := r.Claims[0].Sources[0].Result.Status; got {
			case verify.Blocked, verify.NotDereferenceable:
			default:
				t.Errorf("%s: the source is %s", address, got)
			}
		}
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("%d requests arrived", n)
	}
	r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"url": inside.URL}))
	if diff := cmp.Diff([]verify.Status{verify.ResponseUnreadable}, codesOf(r.Info)); diff != "" || !strings.Contains(r.Info[0].Detail, "blocked") {
		t.Errorf("%s %+v", diff, r.Info)
	}
}

// What cannot be read is refused with what is wrong, and what nobody may ask for, too.
func TestVerifyBad(t *testing.T) {
	p := newPress(t, 0)
	const document = `{"version":1,"text":"x","text_sha256":"y","citations":[]}`
	for _, body := range []string{
		`{"url":"https://a.example/` + strings.Repeat("x", 5000) + `"}`,
		`{"url":"https://a.example/","trust":["` + strings.Repeat(`a","`, 65) + `b"]}`,
	} {
		wantProblem(t, p.do(t, "POST", "/v1/verify", body), 400)
	}
	wantProblem(t, p.do(t, "POST", "/v1/verify", "x", "Content-Encoding", "gzip"), 400)
	wantProblem(t, p.do(t, "POST", "/v1/verify", strings.Repeat("x", 64<<20+1)), 413)
	n := newNode(t, nil)
	res := n.do(t, "POST", "/v1/verify", document)
	if wantProblem(t, res, 404); !strings.Contains(res.body, "hint") {
		t.Error(res.body)
	}
}

// To have ibid fetch takes a scope of its own.
func TestVerifyScope(t *testing.T) {
	p := newPress(t, 0)
	read := p.token(t, store.DefaultTenant, store.ScopeRead, store.ScopeWrite, store.ScopeAdmin)
	verifies := p.token(t, store.DefaultTenant, store.ScopeVerify)
	body := asJSON(t, map[string]any{"document": cites("https://a.invalid/", quote), "offline": true})
	wantProblem(t, p.do(t, "POST", "/v1/verify", body), 401)
	wantProblem(t, p.do(t, "POST", "/v1/verify", body, bearer(read)...), 403)
	if r := p.verify(t, "/v1/verify", body, bearer(verifies)...); r.State != verify.Unverifiable {
		t.Errorf("%s", r.State)
	}
	// What fails is recorded for whoever asked, and for nobody else.
	if r := p.verify(t, "/v1/verify", `{"claims":[],"run_id":"r"}`, bearer(verifies)...); r.State != verify.Invalid {
		t.Errorf("%s", r.State)
	}
	for token, n := range map[string]int{read: 1, p.token(t, "acme", store.ScopeRead): 0} {
		var list incidentList
		if p.read(t, "/v1/incidents", &list, bearer(token)...); len(list.Incidents) != n {
			t.Errorf("%d incidents, want %d: %+v", len(list.Incidents), n, list.Incidents)
		}
	}
}

// Four verifications of a tenant are made at a time; whoever comes then is told to come again.
func TestVerifyLimit(t *testing.T) {
	p := newPress(t, 0, loopback)
	arrived, release := make(chan struct{}, 100), make(chan struct{}) // a verification may come again after it was answered
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") { // what the origin promises
			http.NotFound(w, r)
			return
		}
		arrived <- struct{}{}
		<-release
		_, _ = w.Write([]byte(quote))
	}))
	defer slow.Close()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			res := p.do(t, "POST", "/v1/verify", fmt.Sprintf(`{"url":"%s/%d"}`, slow.URL, i))
			if res.StatusCode != 200 {
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
		})
	}
	for range 4 {
		<-arrived
	}
	res := p.do(t, "POST", "/v1/verify", `{"url":"https://a.invalid/"}`)
	if wantProblem(t, res, 429); res.Header.Get("Retry-After") == "" {
		t.Errorf("%v", res.Header)
	}
	close(release)
	all.Wait()
	if r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"document": &ibid.Answer{Text: "x"}, "offline": true})); r.State != verify.Unverifiable {
		t.Errorf("%s", r.State)
	}
}

// Who has its four verifications made, by sources that do not answer, keeps nobody else from having some made.
func TestVerifyLimitOfTenant(t *testing.T) {
	p := newPress(t, 0, loopback)
	acme, other := bearer(p.token(t, "acme", store.ScopeVerify)), bearer(p.token(t, "other", store.ScopeVerify))
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer slow.Close()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { p.do(t, "POST", "/v1/verify", fmt.Sprintf(`{"url":"%s/%d"}`, slow.URL, i), acme...) })
	}
	for range 4 {
		<-arrived
	}
	own := asJSON(t, map[string]any{"document": &ibid.Answer{Text: "x"}, "offline": true})
	wantProblem(t, p.do(t, "POST", "/v1/verify", own, acme...), 429)
	if res := p.do(t, "POST", "/v1/verify", own, other...); res.StatusCode != 200 {
		t.Errorf("another tenant: %d %s", res.StatusCode, res.body)
	}
	close(release)
	all.Wait()
}

// Alerts are listed by kind and by whether somebody has seen them, and each tenant has its own.
func TestAlerts(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{})
	own := bearer(n.token(t, store.DefaultTenant, store.ScopeRead, store.ScopeWrite))
	other := bearer(n.token(t, "other", store.ScopeRead, store.ScopeWrite))
	testenv.Must(n.store.AddAlerts(t.Context(), []store.Alert{
		{Kind: store.AlertDoubtful, Tenant: store.DefaultTenant, Subject: store.AlertSubject{AnswerID: "ans_1"}, Summary: "A claim is doubtful."},
		{Kind: store.AlertKeyRevoked, Tenant: store.DefaultTenant, Subject: store.AlertSubject{Key: "k"}, Summary: "A key was revoked."},
	}))(t)
	list := func(query string, who []string) (found []store.Alert, next *string) {
		t.Helper()
		var page struct {
			Alerts []store.Alert
			Next   *string `json:"next_cursor"`
		}
		n.read(t, "/v1/alerts"+query, &page, who...)
		return page.Alerts, page.Next
	}
	all, _ := list("", own)
	if len(all) != 2 || all[0].Kind != store.AlertKeyRevoked || all[1].Link != "/ui/answers/ans_1" || all[1].SeenAt != nil {
		t.Fatalf("%+v", all)
	}
	first, next := list("?limit=1", own)
	if len(first) != 1 || next == nil || first[0].ID != all[0].ID {
		t.Errorf("the first page: %+v %v", first, next)
	}
	if rest, next := list("?limit=1&cursor="+*next, own); len(rest) != 1 || rest[0].ID != all[1].ID || next != nil {
		t.Errorf("the second page: %+v %v", rest, next)
	}
	path := "/v1/alerts/" + all[1].ID
	wantProblem(t, n.do(t, "POST", path, `{"seen": true}`, other...), 404)
	wantProblem(t, n.do(t, "POST", path, `{}`, own...), 400)
	wantProblem(t, n.get(t, "/v1/alerts?kind=x", own...), 400)
	for query, want := range map[string]int{"?seen=no": 2, "?kind=doubtful": 1, "?kind=quota": 0} {
		if found, _ := list(query, own); len(found) != want {
			t.Errorf("%s: %d, want %d", query, len(found), want)
		}
		if found, _ := list(query, other); len(found) != 0 {
			t.Errorf("%s of another tenant: %+v", query, found)
		}
	}
	for _, seen := range []bool{true, false} {
		res := n.do(t, "POST", path, fmt.Sprintf(`{"seen": %v}`, seen), own...)
		var a store.Alert
		if err := json.Unmarshal([]byte(res.body), &a); err != nil || res.StatusCode != 200 || (a.SeenAt != nil) != seen || a.ID != all[1].ID {
			t.Errorf("seen %v: %d %s, %v", seen, res.StatusCode, res.body, err)
		}
		if found, _ := list("?seen=no", own); len(found) != map[bool]int{true: 1, false: 2}[seen] {
			t.Errorf("seen %v: %d are not", seen, len(found))
		}
	}
}
