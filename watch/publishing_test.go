package watch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

// An answer gets its manifest: nobody has it before, and everybody can verify it afterwards.
func TestPublishing(t *testing.T) {
	for level, want := range map[int]verify.State{2: verify.Valid, 3: verify.Trusted} {
		web := site(t, map[string]string{"/tides": tidePage})
		s := newStore(t)
		h := publishes(t, s, level)
		call := published(cites(t, "ans_1", "work", web.URL+"/tides"))[0]
		body := `{"output":"…"}`
		call.Body = &store.CallBody{Hash: snapshot.Hash([]byte(body)), MediaType: "application/json"}
		put(t, s, call)
		path := h.path(t, "work", "ans_1")
		if code, body := h.get(t, path); code != http.StatusAccepted {
			t.Errorf("level %d: before it was built: %d %s", level, code, body)
		}
		stop := start(t, h.publishing(t, nil).Run)
		m := h.served(t, path)
		stop()
		if len(m.Claims) != 1 || len(m.Claims[0].Sources) != 1 || m.Claims[0].Text != highTide || m.Output.Hash != call.Body.Hash || m.Output.MediaType != "application/json" {
			t.Fatalf("level %d: %+v", level, m)
		}
		cs := m.Claims[0].Sources[0]
		if cs.Excerpt.Exact != highTide || cs.ExcerptOffset == nil || cs.Hash != snapshot.Hash([]byte(tidePage)) || m.Sources[0].RetrievedBy != manifest.ByObserver {
			t.Errorf("level %d: %+v", level, cs)
		}
		if r := h.report(t, path); r.State != want {
			t.Errorf("level %d: %s: %s", level, r.State, r.Why())
		}
		checkKept(t, h, call, path, web.URL+"/tides")
	}
}

// checkKept checks what the store has of a manifest of the run "work".
func checkKept(t *testing.T, h *house, call *store.Call, path, url string) {
	t.Helper()
	ctx := t.Context()
	signed := testenv.Must(h.store.Manifest(ctx, path))(t)
	if h.Level == 3 {
		if _, err := tlog.VerifyProof(signed.Proof, signed.Digest(), h.Log.VerifierKey()); err != nil {
			t.Error(err)
		}
	} else if signed.Signature != "" || signed.Proof != nil {
		t.Error("it is signed")
	}
	pins, err := h.store.Pins(ctx, store.DefaultTenant, url)
	if err != nil || len(pins) != 1 {
		t.Fatalf("%d pins, %v", len(pins), err)
	}
	got := []string{pins[0].AnswerID, pins[0].Run, pins[0].Citation, pins[0].ClaimID, pins[0].Path, pins[0].Claim.Excerpt.Exact, pins[0].Source.URL}
	if diff := cmp.Diff([]string{"ans_1", "work", call.Answer.Citations[0].ID, manifest.ClaimID(highTide), path, highTide, url}, got); diff != "" {
		t.Error(diff)
	}
	events := told(t, h.store, "work", store.EventManifest)
	if len(events) != 1 || events[0]["path"] != path || events[0]["answer_id"] != "ans_1" {
		t.Errorf("told: %v", events)
	}
	for tenant, want := range map[string]int{store.DefaultTenant: 1, "other": 0} {
		if v, err := h.store.Versions(ctx, tenant, url, nil); err != nil || len(v.Items) != want {
			t.Errorf("%s has %d versions, %v", tenant, len(v.Items), err)
		}
	}
}

// The run's manifest has its whole chain, and each change of an answer makes a new revision of both.
func TestPublishingRuns(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage, "/more": tidePage})
	s := newStore(t)
	h := publishes(t, s, 3)
	first, second := cites(t, "ans_1", "work", web.URL+"/tides"), cites(t, "ans_2", "work", web.URL+"/tides")
	first.Answer.Text += " So it is said."
	second.Started = second.Started.Add(time.Second)
	put(t, s, published(first, second)...)
	start(t, h.publishing(t, nil).Run)
	if m := h.served(t, h.path(t, "work", "ans_1")); len(m.Chain) != 1 {
		t.Errorf("the first answer rests on %d steps", len(m.Chain))
	}
	h.served(t, h.path(t, "work", "ans_2"))
	final := h.path(t, "work", "")
	if code, _ := h.get(t, final); code != http.StatusAccepted {
		t.Errorf("while the run goes on: %d", code)
	}
	testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "work", Trail: &trail.Trail{Agent: "desk"}, Finish: true}))(t)
	m := h.served(t, final)
	if len(m.Chain) != 2 || len(m.Claims) != 1 || m.Supersedes != "" || len(m.Chain[1].InputsRef) != 1 {
		t.Errorf("%+v", m)
	}
	if r := h.report(t, final); r.State != verify.Trusted {
		t.Errorf("%s: %s", r.State, r.Why())
	}
	if n := web.count("/tides"); n != 2 { // the publisher, then the verifier: three manifests cite one fetched version
		t.Errorf("the page was read %d times", n)
	}
	later := cites(t, "ans_later", "work", web.URL+"/tides", web.URL+"/more")
	later.Of = "ans_2"
	put(t, s, later)
	for _, id := range []string{"ans_2", ""} {
		path := h.path(t, "work", id)
		m := h.served(t, path+".2")
		if m.Supersedes != h.Origin+path || len(m.Claims[0].Sources) != 2 || m.Self != h.Origin+path+".2" {
			t.Errorf("%s: supersedes %q, %+v", m.Self, m.Supersedes, m.Claims[0].Sources)
		}
	}
	if n := len(told(t, s, "work", store.EventManifest)); n != 5 {
		t.Errorf("told of %d manifests", n)
	}
}

// A text that the agent wrote cites what its sentences rest on, quoting only what is found in the sources.
func TestPublishingFinal(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage, "/empty": "<p>Nothing of that is here any more, sorry.</p>"})
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "work", web.URL+"/tides"))...)
	const gone, noted = "The ferry to Dover leaves at seven in the evening.", "The lighthouse keeper of Ostend owns seven cats."
	recorded := &trail.Trail{
		Answer: highTide + ". " + gone + " " + noted + " All of this is made up anyway.",
		Steps: []trail.Step{{Number: 2, Tool: "search", Sources: []trail.Source{
			{DocumentID: "tides", URL: web.URL + "/tides", Content: highTide + ".", Retrieved: true},
			{DocumentID: "ferry", URL: web.URL + "/empty", Content: gone, Retrieved: true},
			{DocumentID: "note", Title: "A note", Content: noted, Retrieved: true},
		}}},
	}
	testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{Run: "work", Trail: recorded, Finish: true}))(t)
	start(t, h.publishing(t, nil).Run)
	path := h.path(t, "work", "")
	m := h.served(t, path)
	type row struct{ text, url, by, origin, unavailable string }
	var got []row
	for _, c := range m.Claims {
		cs := c.Sources[0]
		at := slices.IndexFunc(m.Sources, func(s manifest.Source) bool { return s.ID == cs.Source })
		got = append(got, row{c.Text, cs.URL, m.Sources[at].RetrievedBy, cs.ExcerptOrigin, cs.Unavailable})
	}
	want := []row{
		{highTide + ".", web.URL + "/tides", manifest.ByObserver, manifest.OriginPublisher, ""}, // its passage, which is on the page
		{gone, web.URL + "/empty", manifest.ByObserver, "", manifest.NoEvidence},                // the agent's recording is not on the page
		{noted, "urn:ibid:src:note", manifest.ByPublisher, manifest.OriginInferred, ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
	if r := h.report(t, path); r.State == verify.Invalid {
		t.Errorf("%s: %s", r.State, r.Why())
	}
}

// Sources that cannot be read are declared so, without delaying the others.
func TestPublishingUnread(t *testing.T) {
	web := site(t, map[string]string{})
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/private":
			w.WriteHeader(http.StatusForbidden)
		case "/broken":
			web.mu.Lock()
			web.asked["/broken"]++
			web.mu.Unlock()
			w.WriteHeader(http.StatusBadGateway)
		case "/slow":
			<-r.Context().Done()
		case "/picture":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n"))
		default:
			w.WriteHeader(http.StatusGone)
		}
	})
	s := newStore(t)
	h := publishes(t, s, 2)
	want := map[string]string{
		"/private": "access-denied", "/broken": "unreachable", "/slow": "unreachable", "/gone": "gone", "/picture": "",
	}
	var urls []string
	for path := range want {
		urls = append(urls, web.URL+path)
	}
	put(t, s, published(cites(t, "ans_1", "work", append(urls, "http://10.1.2.3/x")...))...)
	impatient := fetcher(t, snapshot.FetchOptions{Limits: snapshot.FetchLimits{Header: 300 * time.Millisecond}})
	start(t, h.publishing(t, func(o *watch.PublishingOptions) { o.Fetcher = impatient }).Run)
	m := h.served(t, h.path(t, "work", "ans_1"))
	want["http://10.1.2.3/x"] = "blocked"
	got := map[string]string{}
	for i := range m.Sources {
		got[strings.TrimPrefix(m.Sources[i].URL, web.URL)] = m.Sources[i].Unavailable
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := web.count("/broken"); n != 2 {
		t.Errorf("a broken server was asked %d times", n)
	}
	if list := m.Problems(); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

// An interrupted manifest is built by the next node, and a panic is retried.
func TestPublishingInterrupted(t *testing.T) {
	reading := make(chan struct{}, 10)
	web := site(t, map[string]string{"/tides": tidePage})
	open := make(chan struct{})
	plain := web.Config.Handler
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case reading <- struct{}{}:
		default:
		}
		select {
		case <-open:
			plain.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "work", web.URL+"/tides"))...)
	stop := start(t, h.publishing(t, nil).Run)
	<-reading
	stop()
	path := h.path(t, "work", "ans_1")
	if code, _ := h.get(t, path); code != http.StatusAccepted {
		t.Errorf("interrupted: %d", code)
	}
	close(open)
	start(t, h.publishing(t, nil).Run)
	if r := h.served(t, path); len(r.Claims) != 1 {
		t.Errorf("%+v", r)
	}
}

// A manifest taken over by another node, because part of its subject was deleted, is not logged as a failure.
func TestPublishingLost(t *testing.T) {
	reading, open := make(chan struct{}, 10), make(chan struct{})
	web := site(t, map[string]string{"/tides": tidePage})
	plain := web.Config.Handler
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reading <- struct{}{}
		select {
		case <-open:
			plain.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, append(published(cites(t, "ans_1", "work", web.URL+"/tides")), cites(t, "ans_2", "work"))...)
	start(t, h.publishing(t, nil).Run)
	<-reading
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_2"))
	close(open)
	if m := h.served(t, h.path(t, "work", "ans_1")); len(m.Claims) != 1 {
		t.Errorf("%+v", m)
	}
	if strings.Contains(h.log.String(), "was not built") {
		t.Errorf("%s", h.log)
	}
}

// Without a key nothing is published and nothing given up: manifests are built once there is one, except those deleted
// in the meantime.
func TestPublishingWithoutKey(t *testing.T) {
	web := site(t, map[string]string{"/tides": tidePage})
	s := newStore(t)
	h := publishes(t, s, 3)
	key, _, err := h.Keys.Signer(keyring.Manifest)
	testenv.OK(t, err)
	testenv.OK(t, h.Keys.Revoke(key.ID, time.Now(), "lost"))
	put(t, s, published(cites(t, "ans_1", "work", web.URL+"/tides"), cites(t, "ans_2", "work", web.URL+"/tides"))...)
	start(t, h.publishing(t, nil).Run)
	testenv.Until(t, "it says so", func() bool { return strings.Count(h.log.String(), "was not built") == 2 })
	if strings.Contains(h.log.String(), highTide) {
		t.Error("the log has words of an answer")
	}
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_2"))
	testenv.Must(h.Keys.New(&keyring.NewOptions{Use: keyring.Manifest}))(t)
	h.served(t, h.path(t, "work", "ans_1"))
	if code, _ := h.get(t, h.path(t, "work", "ans_2")); code != http.StatusNotFound {
		t.Errorf("deleted: %d", code)
	}
}

// Two nodes share the work, and continue after an outage of their database.
func TestPublishingTogether(t *testing.T) {
	server := testenv.Postgres(t)
	web := site(t, map[string]string{"/tides": tidePage})
	s := openStore(t, server.DSN)
	h := publishes(t, s, 3)
	var calls []*store.Call
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c"} {
		calls = append(calls, published(cites(t, "ans_"+id, "run_"+id, web.URL+"/tides"))...)
	}
	put(t, s, calls[:10]...)
	for _, other := range []*store.Store{s, openStore(t, server.DSN)} {
		start(t, h.publishing(t, func(o *watch.PublishingOptions) { o.Store = other }).Run)
	}
	built := func(n int) {
		t.Helper()
		for _, c := range calls[:n] {
			h.served(t, h.path(t, c.Run, c.AnswerID))
			h.served(t, h.path(t, c.Run, ""))
			if events := told(t, s, c.Run, store.EventManifest); len(events) != 2 {
				t.Errorf("%s: told of %d manifests", c.AnswerID, len(events))
			}
		}
	}
	built(10)
	if err := h.Log.Check(t.Context()); err != nil {
		t.Error(err)
	}
	server.Stop(t)
	testenv.Until(t, "it says that the store is away", func() bool { return strings.Contains(h.log.String(), "the store cannot be asked for due work") })
	server.Start(t)
	testenv.Until(t, "the store is back", func() bool { return s.Put(t.Context(), calls[10:]) == nil })
	built(12)
}

func TestNewPublishing(t *testing.T) {
	s := newStore(t)
	h := publishes(t, s, 2)
	f := fetcher(t, snapshot.FetchOptions{})
	for name, o := range map[string]*watch.PublishingOptions{
		"nothing":    nil,
		"no fetcher": {Store: s, Publisher: h.Publisher},
		"level 1":    {Store: s, Publisher: &manifest.Publisher{Origin: h.Origin, Level: 1}, Fetcher: f},
		"no keys":    {Store: s, Publisher: &manifest.Publisher{Origin: h.Origin, Level: 3}, Fetcher: f},
	} {
		if _, err := watch.NewPublishing(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// redirecting is the prefix of the URLs in Google's grounding answers.
const redirecting = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"

// everywhere resolves all names to one address of this machine, 127.0.0.77.
func everywhere(t *testing.T) *net.Resolver {
	t.Helper()
	conn := testenv.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Header, m.Additionals = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, nil
			if q.Type == dnsmessage.TypeA {
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 77}}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// grounding is the whole web: redirects, and the page they lead to. It counts the requests for redirects.
func grounding(t *testing.T) (*snapshot.Fetcher, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.77:443")
	if err != nil {
		t.Skipf("this machine does not let tests listen on port 443: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/grounding-api-redirect/good"):
			asked.Add(1)
			http.Redirect(w, r, "https://harbour.example/tides", http.StatusFound)
		case r.Host == "harbour.example":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, tidePage)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return fetcher(t, snapshot.FetchOptions{Resolver: everywhere(t), TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}}), &asked
}

// A redirecting URL is resolved once, if enabled; the answer and its manifests have both URLs. One that cannot be
// resolved is kept, and failures do not delay others.
func TestPublishingRedirects(t *testing.T) {
	f, asked := grounding(t)
	s := newStore(t)
	h := publishes(t, s, 3)
	odd := cites(t, "ans_odd", "odd", redirecting+"good")
	put(t, s, published(cites(t, "ans_1", "run_1", redirecting+"good", redirecting+"lost"), odd)...)
	var kept atomic.Int32
	start(t, h.publishing(t, func(o *watch.PublishingOptions) {
		o.Fetcher = f
		o.Resolve = func(ctx context.Context, c *store.Call) error {
			if c.AnswerID == "ans_odd" {
				panic("a mistake")
			}
			kept.Add(1)
			c.Of, c.AnswerID = c.AnswerID, "ans_later"
			return s.Put(ctx, []*store.Call{c})
		}
	}).Run)
	for _, id := range []string{"ans_1", ""} {
		m := h.served(t, h.path(t, "run_1", id))
		if len(m.Sources) != 2 || m.Supersedes != "" {
			t.Fatalf("%+v", m)
		}
		got := []string{m.Sources[0].URL, m.Sources[0].OriginalURL, m.Sources[0].Unavailable, m.Sources[1].URL, m.Sources[1].Unavailable}
		want := []string{"https://harbour.example/tides", redirecting + "good", "", redirecting + "lost", "gone"}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	call := testenv.Must(s.Call(t.Context(), store.DefaultTenant, "ans_1"))(t)
	if got := call.Answer.Sources[0]; got.URL != "https://harbour.example/tides" || got.OriginalURL != redirecting+"good" {
		t.Errorf("stored: %+v", got)
	}
	testenv.Until(t, "the panic is caught", func() bool { return strings.Contains(h.log.String(), "a panic was caught") })
	if kept.Load() != 1 || len(told(t, s, "run_1", store.EventBackfill)) != 1 {
		t.Errorf("kept %d times", kept.Load())
	}
	if n := asked.Load(); n > 4 { // the odd one's are requested on each attempt
		t.Errorf("the redirect was asked %d times", n)
	}
	if pins, err := s.Pins(t.Context(), store.DefaultTenant, "https://harbour.example/tides"); err != nil || len(pins) != 2 {
		t.Errorf("%d pins, %v", len(pins), err)
	}
}

// If this is disabled, a URL is published unchanged, with its target.
func TestPublishingRedirectsUnresolved(t *testing.T) {
	f, _ := grounding(t)
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "run_1", redirecting+"good"))...)
	start(t, h.publishing(t, func(o *watch.PublishingOptions) { o.Fetcher = f }).Run)
	m := h.served(t, h.path(t, "run_1", "ans_1"))
	if got := m.Sources[0]; got.URL != redirecting+"good" || got.FinalURL != "https://harbour.example/tides" || got.OriginalURL != "" {
		t.Errorf("%+v", got)
	}
}
