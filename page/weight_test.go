package page_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/store"
)

// heavy is an answer of hundreds of long quotes.
func heavy(t *testing.T, n int) *store.Call {
	t.Helper()
	c := talked(fmt.Sprintf("ans_%02d", n), "q", "It is. So.", "https://a.example/")
	c.Started = c.Started.Add(time.Duration(n) * time.Minute)
	for i := range 300 {
		quote := fmt.Sprintf("%d. ", i) + strings.Repeat("herons nest in trees ", 900)
		testenv.OK(t, c.Answer.Cite(ibid.Span{End: 6}, ibid.Ref{Source: "web:0", Quote: quote}))
	}
	return c
}

// Endless quotes do not make endless pages and files: a page has fewer such answers, and only the beginnings of their
// quotes.
func TestHeavyConversation(t *testing.T) {
	w := newWorld(t, nil)
	const many = 8
	for n := range many {
		w.put(t, heavy(t, n))
	}
	const path = "/ui/conversations/c%201%2F2"
	got := w.get(t, path)
	if n := strings.Count(got.body, `<article class="answer"`); got.StatusCode != 200 || n != 2 || len(got.body) > 6<<20 {
		t.Errorf("%d answers, %d bytes", n, len(got.body))
	}
	if !strings.Contains(got.body, path+"?cursor=") {
		t.Error("no way to the earlier ones")
	}
	if got := w.get(t, path+"/export?as=json"); got.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("export: %d, %d bytes", got.StatusCode, len(got.body))
	}
	if got := w.get(t, "/ui/answers/ans_00"); len(got.body) > 512<<10 || strings.Count(got.body, `class="use"`) != 50 {
		t.Errorf("one answer: %d bytes, %d uses", len(got.body), strings.Count(got.body, `class="use"`))
	}
}

// The direction of a text is set explicitly, as a browser would otherwise determine it for each of its elements.
func TestTextDirection(t *testing.T) {
	w := newWorld(t, nil)
	w.put(t, talked("ans_1", "q", "**אנפה** היא. So.", "https://a.example/"))
	if body := w.get(t, "/ui/answers/ans_1").body; !strings.Contains(body, `<div class="prose" dir="rtl"`) {
		t.Error(body)
	}
}

// HTTP semantics: methods, conditional requests and content codings.
func TestHTTP(t *testing.T) {
	w := newWorld(t, nil)
	w.put(t, talked("ans_1", "q", "It is. So.", "https://a.example/"))
	const coding = "Accept-Encoding"
	plain, packed := w.get(t, "/ibid.js", coding, "identity").Header.Get("ETag"), w.get(t, "/ibid.js", coding, "gzip").Header.Get("ETag")
	if plain == "" || plain == packed {
		t.Errorf("the tags are %s and %s", plain, packed)
	}
	for _, test := range []struct {
		method, path string
		fields       []string
		want         int
		header       [2]string
	}{
		{"POST", "/ui/runs", []string{"Origin", w.URL}, 405, [2]string{"Allow", "GET, HEAD"}},
		{"DELETE", "/ui/feedback", []string{"Origin", w.URL}, 405, [2]string{"Allow", "GET, POST, HEAD"}},
		{"GET", "/ui/logout", nil, 405, [2]string{"Allow", "POST"}},
		{"GET", "/ui/nothing", nil, 404, [2]string{"Cache-Control", "no-store"}},
		{"GET", "/ui/answers/ans_1", nil, 200, [2]string{"Cache-Control", "no-store"}},
		{"GET", "/ui/answers/ans_1/sources/1", nil, 200, [2]string{"X-Dns-Prefetch-Control", "off"}},
		{"GET", "/ui/answers/ans_1/sources/+1", nil, 404, [2]string{}},
		{"GET", "/ui/answers/ans_1/sources/01", nil, 404, [2]string{}},
		{"GET", "/ibid.js", []string{coding, "identity", "If-None-Match", plain}, 304, [2]string{"Vary", coding}},
		{"GET", "/ibid.js", []string{coding, "gzip", "If-None-Match", "W/" + packed}, 304, [2]string{"ETag", packed}},
		{"GET", "/ibid.js", []string{coding, "identity", "If-None-Match", packed}, 200, [2]string{"ETag", plain}},
		{"GET", "/ibid.js", []string{coding, "gzip", "If-None-Match", "*"}, 304, [2]string{}},
		{"GET", "/ibid.js", []string{coding, "br, gzip;q=0.0"}, 200, [2]string{"Content-Encoding", ""}},
		{"GET", "/ibid.js", []string{coding, "gzip ; q = 0.5"}, 200, [2]string{"Content-Encoding", "gzip"}},
		{"GET", "/ibid.js", []string{coding, "gzip, deflate, br, zstd"}, 200, [2]string{"Content-Encoding", "zstd"}},
		{"GET", "/ibid.js", []string{coding, "gzip, zstd;q=0.9"}, 200, [2]string{"Content-Encoding", "gzip"}},
		{"GET", "/ibid.js", []string{coding, "zstd;q=0, gzip;q=0.1"}, 200, [2]string{"Content-Encoding", "gzip"}},
		{"GET", "/ibid.js", []string{coding, "zstd;q=x"}, 200, [2]string{"Content-Encoding", ""}},
		{"GET", "/ibid.js", []string{coding, "zstd", "If-None-Match", packed}, 200, [2]string{"Content-Encoding", "zstd"}},
	} {
		got := w.do(t, test.method, test.path, "", test.fields...)
		if got.StatusCode != test.want || test.header[0] != "" && got.Header.Get(test.header[0]) != test.header[1] {
			t.Errorf("%s %s %q: %d, %s: %q", test.method, test.path, test.fields, got.StatusCode, test.header[0], got.Header.Get(test.header[0]))
		}
	}
}

// A page is the same in every coding, and its tag is not.
func TestCodings(t *testing.T) {
	w := newWorld(t, nil)
	w.put(t, talked("ans_1", "q", strings.Repeat("It is. So. ", 500), "https://a.example/"))
	for _, path := range []string{"/ui/answers/ans_1", "/ibid.js", "/ui/answers/ans_1/export?style=markdown"} {
		plain := w.get(t, path, "Accept-Encoding", "identity")
		tags := map[string]bool{plain.Header.Get("ETag"): true}
		for _, coding := range []string{"zstd", "gzip"} {
			got := w.get(t, path, "Accept-Encoding", coding)
			named, _ := unpack.Find(got.Header.Get("Content-Encoding"))
			r := testenv.Must(named.Reader(strings.NewReader(got.body), 8<<20))(t)
			body := testenv.Must(io.ReadAll(r))(t)
			if string(body) != plain.body || got.Header.Get("Content-Encoding") != coding || len(got.body) > len(plain.body)/2 {
				t.Errorf("%s in %s: %d bytes for %d, not the same: %v", path, coding, len(got.body), len(plain.body), got.Header)
			}
			if tag := got.Header.Get("ETag"); tag != "" && tags[tag] {
				t.Errorf("%s in %s has the tag of another coding", path, coding)
			}
			tags[got.Header.Get("ETag")] = true
		}
	}
}

// What a provider requires to be shown opens no connection: no policy prevents a browser from following a preconnect
// link.
func TestDisplayCallsNobody(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	c.Answer.Display = []ibid.Display{{HTML: `<LINK rel=preconnect href="//a.example"><p title="<link>">a < b</p><meta http-equiv=refresh content="0"><i>x</i><`}}
	w.put(t, c)
	_, got, _ := strings.Cut(w.get(t, "/ui/answers/ans_1/display/1").body, `target="_blank">`)
	want := `<wbr rel=preconnect href="//a.example"><p title="<wbr>">a < b</p><wbr http-equiv=refresh content="0"><i>x</i><`
	testenv.Equal(t, "", want, got)
}

// A source with an endless address has a panel of limited size.
func TestLongAddressInPanel(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/"+strings.Repeat("x", 100<<10))
	w.put(t, c)
	got := w.get(t, "/ui/answers/ans_1/sources/1")
	if n := strings.Count(got.body, strings.Repeat("x", 3<<10)); got.StatusCode != 200 || n > 0 || len(got.body) > 20<<10 {
		t.Errorf("%d, %d bytes", got.StatusCode, len(got.body))
	}
	if strings.Contains(got.body, "/ui/sources?key=") {
		t.Error("it links what cannot be asked for")
	}
}

// All who watch an answer end are sent the same article.
func TestManyWatchTheEnd(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	w.put(t, c)
	const many = 60
	articles := make(chan string, many)
	for range many {
		go func() {
			article := ""
			w.watch(t, "/ui/answers/ans_1/live?run=run_ans_1&prefix=m1-", func(e sent) bool {
				if e.name == "answer" {
					article = e.data
				}
				return e.name == "end"
			})
			articles <- article
		}()
	}
	first := <-articles
	if !strings.Contains(first, "a-ans_1") || !strings.Contains(first, "talk-facts") {
		t.Errorf("the article: %s", first)
	}
	for range many - 1 {
		if diff := cmp.Diff(first, <-articles); diff != "" {
			t.Fatal(diff)
		}
	}
}
