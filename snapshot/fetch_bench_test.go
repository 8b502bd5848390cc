package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// What fetching safely costs, beside a plain client that makes the same hash: pages of 20 KB from this machine.
func BenchmarkFetch(b *testing.B) {
	page := []byte(strings.Repeat("<p>Herons nest in the old mill.</p>", 20_000/35))
	s := site(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	want := snapshot.Hash(page)
	limits := rude()
	f := fetcher(b, snapshot.FetchOptions{Limits: limits})
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer plain.CloseIdleConnections()
	rivals := map[string]func() string{
		"ibid": func() string {
			got := testenv.Must(f.Fetch(b.Context(), &snapshot.FetchRequest{URL: s.URL + "/page"}))(b)
			return got.Hash
		},
		"plain": func() string {
			resp := testenv.Must(plain.Get(s.URL + "/page"))(b)
			defer resp.Body.Close()
			octets := testenv.Must(io.ReadAll(resp.Body))(b)
			sum := sha256.Sum256(octets)
			return "sha256:" + hex.EncodeToString(sum[:])
		},
	}
	for _, by := range []string{"plain", "ibid"} {
		b.Run("20KB/by="+by, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				if got := rivals[by](); got != want {
					b.Fatal(got)
				}
			}
		})
	}
}
