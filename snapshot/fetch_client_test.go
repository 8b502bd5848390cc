package snapshot_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// A fetcher's client reaches what the fetcher reaches, and nothing else.
func TestClient(t *testing.T) {
	var asked atomic.Int32
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/long":
			w.Write(make([]byte, 2000))
		default:
			b, _ := io.ReadAll(r.Body)
			w.Write([]byte(r.Method + " " + string(b) + " " + r.UserAgent()))
		}
	})
	nowhere := snapshot.NewFetcher(&snapshot.FetchOptions{Allow: []netip.Prefix{netip.MustParsePrefix("10.9.8.0/24")}})
	defer nowhere.Close()
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	for _, url := range []string{s.URL, "http://localhost" + port, "http://[::1]" + port, "http://u:p@example.com/", "file:///etc/passwd", "http://169.254.169.254/"} {
		resp, err := nowhere.Client().Post(url, "text/plain", strings.NewReader("x"))
		if err == nil {
			resp.Body.Close()
		}
		if ferr, ok := errors.AsType[*snapshot.FetchError](err); !ok || ferr.Kind != snapshot.Blocked {
			t.Errorf("%s: %v, want it blocked", url, err)
		}
	}
	if asked.Load() != 0 {
		t.Fatal("a server on this machine was reached")
	}
	f := fetcher(t, snapshot.FetchOptions{UserAgent: "us/1", Limits: snapshot.FetchLimits{Bytes: 1000}})
	c := f.Client()
	for path, want := range map[string]string{"/": "POST x us/1", "/moved": "", "/long": "error"} {
		resp, err := c.Post(s.URL+path, "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		got := string(b)
		if err != nil {
			got = "error"
		}
		if got != want || path == "/moved" && resp.StatusCode != http.StatusFound {
			t.Errorf("%s: %d, %q, %v", path, resp.StatusCode, got, err)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
	r.Host = "internal.example"
	if resp, err := c.Do(r); err == nil {
		resp.Body.Close()
		t.Error("a request with another Host was sent")
	}
	f.Close()
	_, err := c.Get(s.URL) //nolint:bodyclose // there is none
	wantError(t, err, snapshot.Unreachable, "closed")
}

// An error has the addresses of redirects, and NoCopy makes an unconditional request and keeps no copy.
func TestFetchHopsAndNoCopy(t *testing.T) {
	conditional := false
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b", http.StatusFound)
		case "/b":
			http.Redirect(w, r, "/c", http.StatusFound)
		case "/circle":
			http.Redirect(w, r, "/circle?1", http.StatusFound)
		case "/page":
			conditional = r.Header.Get("If-None-Match") != ""
			w.Header().Set("ETag", `"1"`)
			w.Write([]byte("x"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	copies := &snapshot.MemoryCopies{}
	f := fetcher(t, snapshot.FetchOptions{Limits: rude(), Copies: copies})
	for path, want := range map[string][]string{"/a": {s.URL + "/b", s.URL + "/c"}, "/circle": {s.URL + "/circle?1"}, "/nowhere": nil} {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path})
		ferr, ok := errors.AsType[*snapshot.FetchError](err)
		if !ok {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ferr.Hops); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	for _, noCopy := range []bool{true, false, true} {
		r := &snapshot.FetchRequest{URL: s.URL + "/page", NoCopy: noCopy}
		testenv.Must(f.Fetch(t.Context(), r))(t)
		if got, _ := copies.Latest(t.Context(), r.URL); noCopy && conditional || got != nil && noCopy && copies.Limit == 0 {
			t.Errorf("no copy %t: conditional %t, kept %v", noCopy, conditional, got)
		}
		copies.Limit = 1 << 20 // from now on there is one
	}
}

// A searcher finds what Find finds, and a match has lower-case names in JSON.
func TestSearcher(t *testing.T) {
	text := snapshot.Normalize("The old bridge, finished in 1874, is closed. The new bridge, finished in 1974, is open.")
	s := snapshot.NewSearcher(text)
	for _, q := range []snapshot.Quote{
		{Exact: "bridge, finished in 1974"}, {Exact: "bridge finished in 1974"}, {Exact: "bridge", Prefix: "The new"}, {Exact: "no such thing"}, {},
	} {
		want, ok := snapshot.Find(text, &q)
		got, found := s.Find(&q)
		if got != want || found != ok {
			t.Errorf("%q: %v, %t; Find: %v, %t", q.Exact, got, found, want, ok)
		}
	}
	m, _ := s.Find(&snapshot.Quote{Exact: "open"})
	if b, err := json.Marshal(m); err != nil || string(b) != `{"start":82,"end":86,"how":"elsewhere","count":1}` {
		t.Errorf("%s, %v", b, err)
	}
}

func TestCleanURL(t *testing.T) {
	for _, test := range testenv.Cases(t, "testdata/clean_urls.txt", 2) {
		in, want := test[0], test[1]
		got, err := snapshot.CleanURL(in)
		if err != nil {
			t.Errorf("CleanURL(%q): %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("CleanURL(%q): %s", in, diff)
		}
		if again, err := snapshot.CleanURL(got); err != nil || again != got {
			t.Errorf("CleanURL(%q) = %q, %v: it is not clean", got, again, err)
		}
	}
}

// hostileURLs are refused before anything is resolved, with the reason.
func hostileURLs(tb testing.TB) map[string]string {
	tb.Helper()
	urls := map[string]string{
		"http://" + strings.Repeat("a", 64) + ".example/":              "host",
		"http://" + strings.Repeat("a.", 127) + "example/":             "host",
		"http://example.com/" + strings.Repeat("ü", snapshot.MaxURL/3): "url",
		"http://example.com/" + strings.Repeat("a", snapshot.MaxURL):   "url",
	}
	for _, row := range testenv.Cases(tb, "testdata/hostile_urls.txt", 2) {
		urls[row[0]] = row[1]
	}
	return urls
}

func TestCheckURLRefuses(t *testing.T) {
	for in, reasons := range hostileURLs(t) {
		err := snapshot.CheckURL(in, nil)
		ferr, ok := errors.AsType[*snapshot.FetchError](err)
		if !ok {
			t.Errorf("CheckURL(%.60q): %v, want a FetchError", in, err)
			continue
		}
		if ferr.Kind != snapshot.Blocked || !slices.Contains(strings.Split(reasons, "|"), ferr.Reason) {
			t.Errorf("CheckURL(%.60q): %s (%s), want blocked (%s)", in, ferr.Kind, ferr.Reason, reasons)
		}
		if strings.Contains(err.Error(), "secret") || len(err.Error()) > 2000 {
			t.Errorf("CheckURL(%.60q) says %q", in, err)
		}
	}
}

func TestCheckURLAllows(t *testing.T) {
	private := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for in, allow := range map[string][]netip.Prefix{
		"https://example.com/":           nil,
		"http://example.com:443/":        nil,
		"https://[2606:2800:21f::1]/":    nil,
		"http://93.184.215.14/":          nil,
		"https://xn--bcher-kva.example/": nil,
		"http://localhost/":              nil, // depends on what it resolves to
		"http://10.1.2.3:8080/":          private,
		"http://[::ffff:10.1.2.3]:8080/": private,
		"http://[fd12::1]:9/":            private,
		"http://intranet.example:8080/":  private,
	} {
		if err := snapshot.CheckURL(in, allow); err != nil {
			t.Errorf("CheckURL(%q): %v", in, err)
		}
	}
	for _, in := range []string{
		"http://10.2.0.1/", "http://127.0.0.1/", "http://93.184.215.14:8080/", "http://[fe80::1]/", "http://u@10.1.2.3/", "ftp://10.1.2.3/",
	} {
		if err := snapshot.CheckURL(in, private); err == nil {
			t.Errorf("CheckURL(%q) with %v: no error", in, private)
		}
	}
}

func FuzzCleanURL(f *testing.F) {
	for in := range hostileURLs(f) {
		f.Add(in)
	}
	f.Add("https://bücher.example:443/a/../b c?q=ü#x")
	f.Fuzz(func(t *testing.T, in string) {
		checked := snapshot.CheckURL(in, nil)
		got, err := snapshot.CleanURL(in)
		if err != nil {
			if ferr, ok := errors.AsType[*snapshot.FetchError](err); !ok || ferr.Kind != snapshot.Blocked {
				t.Fatalf("%q: %v", in, err)
			}
			if checked == nil {
				t.Fatalf("%q is checked, but not clean: %v", in, err)
			}
			return
		}
		if again, err := snapshot.CleanURL(got); err != nil || again != got {
			t.Fatalf("%q: %q, then %q, %v", in, got, again, err)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '#' }) {
			t.Fatalf("%q: %q", in, got)
		}
		// A clean address leads to the same place, except that it has no user.
		if checked == nil && snapshot.CheckURL(got, nil) != nil {
			t.Fatalf("%q is checked, %q is not", in, got)
		}
	})
}
