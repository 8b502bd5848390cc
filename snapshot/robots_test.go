package snapshot_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ibidhq/ibid/snapshot"
)

// robotsSite serves pages that contain their path, and a robots.txt.
func robotsSite(t *testing.T, robots http.HandlerFunc) (base string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			asked.Add(1)
			robots(w, r)
			return
		}
		if to, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
			http.Redirect(w, r, "/"+to, http.StatusFound)
			return
		}
		io.WriteString(w, r.URL.Path)
	})
	return s.URL, asked
}

func TestFetchRobots(t *testing.T) {
	base, asked := robotsSite(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /\n\nUser-agent: Ibid\nDisallow: /private\nAllow: /private/but\nDisallow: /*.pdf$\n")
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for path, ok := range map[string]bool{
		"/": true, "/page": true, "/private": false, "/private/x": false, "/private/but/this": true, "/a.pdf": false, "/a.pdf?x": true,
		"/to/page": true, "/to/private": false, "/x/../private": false, "/robots.txt": true,
	} {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: base + path, Scheduled: true})
		if ok && err != nil {
			t.Errorf("%s: %v", path, err)
		} else if !ok {
			wantError(t, err, snapshot.RobotsDisallowed, "rule")
		}
		if _, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: base + path}); err != nil {
			t.Errorf("%s, requested: %v", path, err)
		}
	}
	if n := asked.Load(); n != 1+2 { // and the two of its own address
		t.Errorf("robots.txt was read %d times", n)
	}
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: base + "/" + strings.Repeat("a", 3000), Scheduled: true})
	wantError(t, err, snapshot.RobotsDisallowed, "rule")
}

func TestFetchRobotsAnswers(t *testing.T) {
	disallow := "User-agent: *\nDisallow: /\n"
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		reason string // empty if the page may be fetched
	}{
		"none":      {http.NotFound, ""},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, ""},
		"teapot":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }, ""},
		"empty":     {func(http.ResponseWriter, *http.Request) {}, ""},
		"garbage":   {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\x00\xff<html>: \xc3(\n:\n") }, ""},
		"broken":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "unreachable"},
		"too many":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "unreachable"},
		"internal": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2/robots.txt", http.StatusFound)
		}, "unreachable"},
		"circle": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/robots.txt?", http.StatusFound) }, "unreachable"},
		"all":    {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, disallow) }, "rule"},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed(disallow))
		}, "rule"},
		"within 500K": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("#\n", 200<<10)+disallow)
		}, "rule"},
		"after 500K": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("#\n", 251<<10)+disallow)
		}, ""},
		"begins, huge": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, disallow+strings.Repeat("#\n", 6<<20)) }, "rule"},
	} {
		t.Run(name, func(t *testing.T) {
			base, asked := robotsSite(t, c.serve)
			limits := rude()
			limits.Retries = -1
			f := fetcher(t, snapshot.FetchOptions{Limits: limits})
			for range 2 {
				_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: base + "/page", Scheduled: true})
				if c.reason == "" && err != nil {
					t.Error(err)
				} else if c.reason != "" {
					wantError(t, err, snapshot.RobotsDisallowed, c.reason)
				}
			}
			if n := asked.Load(); n > 2 || name != "circle" && n != 1 {
				t.Errorf("robots.txt was read %d times", n)
			}
		})
	}
}

// A site's robots.txt is read once, however many pages wait for it.
func TestFetchRobotsShared(t *testing.T) {
	base, asked := robotsSite(t, http.NotFound)
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	var group sync.WaitGroup
	for i := range 30 {
		group.Go(func() {
			url := fmt.Sprintf("%s/%d", base, i)
			if got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: url, Scheduled: true}); err != nil || string(got.Octets) != fmt.Sprintf("/%d", i) {
				t.Errorf("%s: %v, %v", url, got, err)
			}
		})
	}
	group.Wait()
	if n := asked.Load(); n > 30/2 || n < 1 { // the first few may be sequential
		t.Errorf("robots.txt was read %d times", n)
	}
}
