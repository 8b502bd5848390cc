package api_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// kept stores a version of a source fetched so many hours after the first.
func (n *node) kept(tb testing.TB, tenant, url, text string, hours int) string {
	tb.Helper()
	s := &snapshot.Snapshot{
		URL: url, FinalURL: url, Status: 200, MediaType: "text/html", ETag: `"1"`, FetchedAt: started.Add(time.Duration(hours) * time.Hour),
		Header: http.Header{"Content-Type": {"text/html"}}, Octets: []byte(text), Hash: snapshot.Hash([]byte(text)),
	}
	testenv.OK(tb, n.store.Copies(tenant).Keep(tb.Context(), s))
	return s.Hash
}

// A copy is also available as an archive. Only its exact hash leads to it.
func TestCopyArchive(t *testing.T) {
	n := newNode(t, nil)
	const text = "<script>alert(1)</script>"
	hash := n.kept(t, "default", "https://heron.example/", text, 0)
	warc := n.get(t, "/v1/copies/"+hash+"?as=warc")
	zip, err := gzip.NewReader(strings.NewReader(warc.body))
	if err != nil || warc.Header.Get("Content-Type") != "application/gzip" || !strings.HasSuffix(warc.Header.Get("Content-Disposition"), `.warc.gz"`) {
		t.Fatalf("%v %v", err, warc.Header)
	}
	all := string(testenv.Must(io.ReadAll(zip))(t))
	for _, part := range []string{text, "WARC-Target-URI: https://heron.example/\r\n", "ibid v1.2.3"} {
		if !strings.Contains(all, part) {
			t.Errorf("it lacks %s: %s", part, all)
		}
	}
	digits := strings.TrimPrefix(hash, "sha256:")
	for _, id := range []string{digits, strings.ToUpper(hash), "sha256:" + strings.ToUpper(digits)} {
		wantProblem(t, n.get(t, "/v1/copies/"+id), 404)
	}
}
