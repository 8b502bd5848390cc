package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/snapshot"
)

// kept keeps a source as it was read so many hours after the first time.
func (n *node) kept(t *testing.T, tenant, url, text string, hours int) string {
	t.Helper()
	s := &snapshot.Snapshot{
		URL: url, FinalURL: url, Status: 200, MediaType: "text/html", ETag: `"1"`, FetchedAt: started.Add(time.Duration(hours) * time.Hour),
		Header: http.Header{"Content-Type": {"text/html"}}, Octets: []byte(text), Hash: snapshot.Hash([]byte(text)),
	}
	if err := n.store.Copies(tenant).Keep(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s.Hash
}

// A source's versions are there with when they were seen, the last first, under its address in any form.
func TestVersions(t *testing.T) {
	n := newNode(t, nil)
	const url = "https://heron.example/a%20b"
	first := n.kept(t, "default", url, "<script>four eggs</script>", 0)
	n.kept(t, "default", url, "<script>four eggs</script>", 1)
	second := n.kept(t, "default", url, "<p>five eggs</p>", 2)
	n.kept(t, "acme", url, "<p>six eggs</p>", 3)
	goldenJSON(t, "versions.json", n.get(t, query("/v1/sources/versions", "url", "HTTPS://heron.example:443/a b#top")).body)
	var page struct {
		Versions   []struct{ Hash string }
		NextCursor *string `json:"next_cursor"`
	}
	n.read(t, query("/v1/sources/versions", "url", url, "limit", "1"), &page)
	if len(page.Versions) != 1 || page.Versions[0].Hash != second || page.NextCursor == nil {
		t.Fatalf("%+v", page)
	}
	n.read(t, query("/v1/sources/versions", "url", url, "limit", "1", "cursor", *page.NextCursor), &page)
	if len(page.Versions) != 1 || page.Versions[0].Hash != first || page.NextCursor != nil {
		t.Errorf("%+v", page)
	}
	if res := n.get(t, query("/v1/sources/versions", "url", "https://other.example/")); res.body != `{"versions":[],"next_cursor":null}`+"\n" {
		t.Errorf("%s", res.body)
	}
	for _, path := range []string{
		"/v1/sources/versions", "/v1/sources/versions?url=", "/v1/sources/versions?url=herons", "/v1/sources/versions?url=file:///etc/passwd",
		query("/v1/sources/versions", "url", url, "cursor", "x"), query("/v1/sources/versions", "url", url, "limit", "0"),
	} {
		wantProblem(t, n.get(t, path), 400)
	}
}

// A copy comes as it was read, to its tenant, as a file that no browser runs; or as an archive.
func TestCopies(t *testing.T) {
	n := newNode(t, nil)
	const text = "<script>alert(1)</script>"
	hash := n.kept(t, "default", "https://heron.example/", text, 0)
	res := n.get(t, "/v1/copies/"+hash)
	if res.StatusCode != 200 || res.body != text {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	for name, want := range map[string]string{
		"Content-Type":            "application/octet-stream",
		"Content-Disposition":     `attachment; filename="` + strings.TrimPrefix(hash, "sha256:") + `.bin"`,
		"X-Content-Type-Options":  "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
		"Cache-Control":           "private, no-cache",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if again := n.get(t, "/v1/copies/"+hash, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("again: %d", again.StatusCode)
	}
	warc := n.get(t, "/v1/copies/"+hash+"?as=warc")
	zip, err := gzip.NewReader(bytes.NewReader([]byte(warc.body)))
	if err != nil || warc.Header.Get("Content-Type") != "application/gzip" || !strings.HasSuffix(warc.Header.Get("Content-Disposition"), `.warc.gz"`) {
		t.Fatalf("%v %v", err, warc.Header)
	}
	all, err := io.ReadAll(zip)
	if err != nil || !bytes.Contains(all, []byte(text)) || !bytes.Contains(all, []byte("WARC-Target-URI: https://heron.example/\r\n")) || !bytes.Contains(all, []byte("ibid v1.2.3")) {
		t.Errorf("%v %s", err, all)
	}
	empty := n.kept(t, "default", "https://heron.example/empty", "", 0)
	if res := n.get(t, "/v1/copies/"+empty); res.StatusCode != 200 || res.body != "" {
		t.Errorf("%d %q", res.StatusCode, res.body)
	}
	theirs := n.kept(t, "acme", "https://heron.example/theirs", "theirs", 0)
	digits := strings.TrimPrefix(hash, "sha256:")
	for _, id := range []string{theirs, digits, strings.ToUpper(hash), "sha256:" + strings.ToUpper(digits), hash + "0", "sha256:", "x", "%00", "sha256:" + strings.Repeat("0", 64)} {
		wantProblem(t, n.get(t, "/v1/copies/"+id), 404)
	}
	wantProblem(t, n.get(t, "/v1/copies/"+hash+"?as=html"), 400)
}
