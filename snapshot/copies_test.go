package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// A copy is requested again conditionally, at the address that its validators belong to.
func TestFetchConditional(t *testing.T) {
	var version atomic.Int32
	var asked atomic.Pointer[http.Header]
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
				t.Error("another address got the validators")
			}
			http.Redirect(w, r, "/page", http.StatusFound)
			return
		}
		h := r.Header.Clone()
		asked.Store(&h)
		tag := fmt.Sprintf(`"v%d"`, version.Load())
		w.Header().Set("ETag", tag)
		w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
		w.Header().Set("X-Seen", "again")
		if r.Header.Get("If-None-Match") == tag {
			w.Header().Set("Content-Type", "of/nothing")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Seen", "first")
		fmt.Fprintf(w, "version %d", version.Load())
	})
	copies := &snapshot.MemoryCopies{}
	f := fetcher(t, snapshot.FetchOptions{Limits: rude(), Copies: copies})
	fetch := func(path string, fresh bool) *snapshot.Snapshot {
		t.Helper()
		return testenv.Must(f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path, Fresh: fresh}))(t)
	}
	for _, path := range []string{"/page", "/moved"} {
		first, second := fetch(path, false), fetch(path, false)
		if first.NotModified || !second.NotModified {
			t.Errorf("%s: first %t, second %t", path, first.NotModified, second.NotModified)
		}
		if asked.Load().Get("If-Modified-Since") != "Sat, 21 Nov 2026 10:00:00 GMT" {
			t.Errorf("%s: asked with %v", path, *asked.Load())
		}
		if second.Header.Get("X-Seen") != "again" || first.Header.Get("X-Seen") != "first" || second.FetchedAt.Before(first.FetchedAt) {
			t.Errorf("%s: the sighting is %v at %v", path, second.Header, second.FetchedAt)
		}
		third := fetch(path, false) // the sighting is a copy, too
		for _, s := range []*snapshot.Snapshot{first, second, third} {
			s.Header, s.FetchedAt = nil, first.FetchedAt
		}
		first.NotModified = true
		if diff := cmp.Diff(first, second) + cmp.Diff(first, third); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if fetch(path, true).NotModified || asked.Load().Get("If-None-Match") != "" {
			t.Errorf("%s: fresh was conditional", path)
		}
	}
	version.Add(1)
	if got := fetch("/page", false); got.NotModified || string(got.Octets) != "version 1" {
		t.Errorf("the new version: %+v", got)
	}
	if kept, err := copies.Latest(t.Context(), s.URL+"/page"); err != nil || string(kept.Octets) != "version 1" {
		t.Errorf("kept: %v, %v", kept, err)
	}
}

// oddCopies returns one copy, or an error.
type oddCopies struct {
	copy *snapshot.Snapshot
	err  error
	kept int
}

func (c *oddCopies) Latest(context.Context, string) (*snapshot.Snapshot, error) { return c.copy, c.err }

func (c *oddCopies) Keep(context.Context, *snapshot.Snapshot) error { c.kept++; return c.err }

// A useless copy leads to an unconditional request, and one that cannot be kept does not fail the fetch.
func TestFetchUselessCopies(t *testing.T) {
	var asked atomic.Int32
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("If-None-Match") != "" {
			w.Header().Set("ETag", `W/"another"`)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		io.WriteString(w, "octets")
	})
	octets := []byte("old")
	for name, c := range map[string]struct {
		copies oddCopies
		asked  int32
	}{
		"none":            {oddCopies{}, 1},
		"octets gone":     {oddCopies{copy: &snapshot.Snapshot{FinalURL: s.URL + "/", ETag: `"a"`, Hash: snapshot.Hash(octets)}}, 1},
		"octets changed":  {oddCopies{copy: &snapshot.Snapshot{FinalURL: s.URL + "/", ETag: `"a"`, Octets: []byte("xxx"), Hash: snapshot.Hash(octets)}}, 1},
		"no validators":   {oddCopies{copy: &snapshot.Snapshot{FinalURL: s.URL + "/", Octets: octets, Hash: snapshot.Hash(octets)}}, 1},
		"from elsewhere":  {oddCopies{copy: &snapshot.Snapshot{FinalURL: s.URL + "/b", ETag: `"a"`, Octets: octets, Hash: snapshot.Hash(octets)}}, 1},
		"another version": {oddCopies{copy: &snapshot.Snapshot{FinalURL: s.URL + "/", ETag: `"a"`, Octets: octets, Hash: snapshot.Hash(octets)}}, 2},
		"broken store":    {oddCopies{err: errors.New("the disk is full")}, 1},
	} {
		asked.Store(0)
		var log bytes.Buffer
		f := fetcher(t, snapshot.FetchOptions{Limits: rude(), Copies: &c.copies, Log: slog.New(slog.NewTextHandler(&log, nil))})
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/"})
		if err != nil || string(got.Octets) != "octets" || got.NotModified || asked.Load() != c.asked {
			t.Errorf("%s: %v, %v after %d requests", name, got, err, asked.Load())
		}
		if said := strings.Count(log.String(), "the disk is full"); c.copies.err != nil && said != 2 || c.copies.err == nil && log.Len() > 0 {
			t.Errorf("%s: it logs %s", name, &log)
		}
		if c.copies.kept != 1 {
			t.Errorf("%s: kept %d times", name, c.copies.kept)
		}
		if _, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/gone", Fresh: true}); err == nil || c.copies.kept != 1 {
			t.Errorf("%s: an error was kept (%v)", name, err)
		}
	}
}

func TestMemoryCopies(t *testing.T) {
	c := snapshot.MemoryCopies{Limit: 10_000}
	keep := func(url string, size int) {
		testenv.OK(t, c.Keep(t.Context(), &snapshot.Snapshot{URL: url, Octets: make([]byte, size)}))
	}
	has := func() (urls string) {
		for _, url := range []string{"a", "b", "c", "d"} {
			if s, err := c.Latest(t.Context(), url); err != nil {
				t.Fatal(err)
			} else if s != nil {
				urls += fmt.Sprintf("%s%d ", url, len(s.Octets))
			}
		}
		return urls
	}
	for i, step := range []struct {
		url  string
		size int
		want string
	}{
		{"a", 2000, "a2000 "},
		{"b", 2000, "a2000 b2000 "},
		{"c", 2000, "a2000 b2000 c2000 "},
		{"a", 1000, "a1000 b2000 c2000 "}, // replaced
		{"d", 2000, "b2000 c2000 d2000 "}, // a is the least recently used: has reads all in order
		{"b", 9900, "c2000 d2000 "},       // too large: it is dropped altogether, rather than keeping an older one
		{"a", 8900, "a8900 "},
	} {
		keep(step.url, step.size)
		if got := has(); got != step.want {
			t.Errorf("step %d: there are %q, want %q", i, got, step.want)
		}
	}
	var none snapshot.MemoryCopies
	if s, err := none.Latest(t.Context(), "a"); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

func page(body, mediaType string) *snapshot.Snapshot {
	return &snapshot.Snapshot{FinalURL: "https://x.example/a", MediaType: mediaType, Octets: []byte(body), Hash: snapshot.Hash([]byte(body))}
}

func TestTexts(t *testing.T) {
	var texts snapshot.Texts
	a, hash, err := texts.Of(page("<p>a b", "text/html; charset=utf-8"))
	if err != nil || a.Content != "a b" || hash != snapshot.Hash([]byte("a b")) {
		t.Fatalf("%v, %q, %v", a, hash, err)
	}
	same := page("<p>a b", "text/html; charset=utf-8")
	same.Hash = ""
	if b, _, _ := texts.Of(same); b != a {
		t.Error("read twice")
	}
	if b, _, _ := texts.Of(page("<p>a b", "text/plain")); b == a || b.Content != "<p>a b" {
		t.Errorf("as another type: %q", b.Content)
	}
	typed := page("# a", "application/octet-stream")
	md, _, _ := texts.Of(typed)
	typed.FinalURL = "https://x.example/a.txt?x=y.md"
	if txt, _, _ := texts.Of(typed); txt == md || txt.MediaType != "text/plain" {
		t.Errorf("under another name: %s", txt.MediaType)
	}
	for range 2 {
		if b, hash, err := texts.Of(page(strings.Repeat("<div>", 600), "text/html")); b != nil || hash != "" || !errors.Is(err, snapshot.ErrTooDeep) {
			t.Errorf("%v, %q, %v", b, hash, err)
		}
	}
	var none *snapshot.Texts
	if b, hash2, err := none.Of(page("<p>a b", "text/html")); err != nil || b.Content != "a b" || hash2 != hash {
		t.Errorf("without a cache: %v, %v", b, err)
	}
}

// The most recently used texts stay, and the total is bounded.
func TestTextsLimit(t *testing.T) {
	texts := snapshot.Texts{Limit: 8 << 10}
	doc := func(i int) *snapshot.Snapshot {
		return page(fmt.Sprintf("%d %s", i, strings.Repeat("x", 1000)), "text/plain")
	}
	first, _, _ := texts.Of(doc(0))
	for i := 1; i < 20; i++ {
		if _, _, err := texts.Of(doc(i)); err != nil {
			t.Fatal(err)
		}
		if again, _, _ := texts.Of(doc(0)); again != first {
			t.Fatalf("dropped after %d, though just used", i)
		}
	}
	second, _, _ := texts.Of(doc(1))
	if third, _, _ := texts.Of(doc(1)); third != second {
		t.Error("not cached")
	}
	for i := 2; i < 20; i++ {
		texts.Of(doc(i))
	}
	if again, _, _ := texts.Of(doc(0)); again == first {
		t.Error("nothing was dropped")
	}
	small := snapshot.Texts{Limit: 1}
	a, _, _ := small.Of(doc(1))
	if b, _, _ := small.Of(doc(1)); a == b {
		t.Error("larger than the limit, but cached")
	}
}

func TestTextsConcurrently(t *testing.T) {
	texts := snapshot.Texts{Limit: 64 << 10}
	var wg sync.WaitGroup
	var seen sync.Map
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				text, hash, err := texts.Of(page(fmt.Sprintf("<p>page %d", (i+j)%8), "text/html"))
				if err != nil || hash != snapshot.Hash([]byte(text.Content)) {
					t.Errorf("%v, %v", text, err)
				}
				if other, loaded := seen.LoadOrStore(hash, text); loaded && other != text {
					t.Error("read twice")
				}
			}
		})
	}
	wg.Wait()
}

// A value beside a text is derived once, for as long as the text is cached, and has its own limit.
func TestTextsBeside(t *testing.T) {
	made := 0
	of := func(size int64) func() (any, int64) {
		return func() (any, int64) {
			made++
			return made, size
		}
	}
	texts := snapshot.Texts{Limit: 16 << 10}
	list := make([]*snapshot.Text, 8)
	for i := range list {
		list[i], _, _ = texts.Of(page(fmt.Sprintf("<p>page %d", i), "text/html"))
		for range 2 {
			if v := texts.Beside(list[i], of(1<<10)); v != i+1 {
				t.Fatalf("text %d: %v, made %d times", i, v, made)
			}
		}
	}
	if texts.Beside(list[7], of(0)); made != 8 {
		t.Error("dropped though there is room")
	}
	big, _, _ := texts.Of(page("<p>big", "text/html"))
	texts.Beside(big, of(15<<10))
	if v := texts.Beside(list[0], of(1)); v != 10 {
		t.Errorf("not dropped: %v", v)
	}
	if again, _, _ := texts.Of(page("<p>page 0", "text/html")); again != list[0] {
		t.Error("a text was dropped for values beside others")
	}
	if v := texts.Beside(big, of(1)); v != 9 {
		t.Errorf("just used, but dropped: %v", v)
	}
	for i := range 64 {
		texts.Of(page(fmt.Sprintf("other %d", i), "text/plain"))
	}
	if v := texts.Beside(big, of(1)); v != 11 {
		t.Errorf("the text is forgotten, and this is not: %v", v)
	}
	var none *snapshot.Texts
	if none.Beside(big, of(1)); made != 12 {
		t.Error("a nil Texts remembers")
	}
}
