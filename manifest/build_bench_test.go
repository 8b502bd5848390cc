package manifest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// corpus returns an answer of 50 claims, each citing one of ten pages of 20 KB, and the pages.
func corpus(tb testing.TB, quoted bool) (*ibid.Answer, map[string]*snapshot.Snapshot) {
	tb.Helper()
	a, pages := &ibid.Answer{}, map[string]*snapshot.Snapshot{}
	for i := range 10 {
		var b strings.Builder
		fmt.Fprintf(&b, "<!doctype html><title>Page %d</title><body>", i)
		for k := range 200 {
			fmt.Fprintf(&b, "<p>In the year %d the heronry of district %d had %d nests, which keepers counted twice.</p>\n", 1800+k, i, 17*k+i)
		}
		url := fmt.Sprint("https://src.example/", i)
		pages[url] = snap(url, b.String())
		a.Sources = append(a.Sources, ibid.Source{ID: fmt.Sprint(i), Kind: ibid.Web, URL: url})
	}
	for i := range 50 {
		claim := fmt.Sprintf("District %d had %d nests in %d.", i%10, 17*(4*i)+i%10, 1800+4*i)
		ref := ibid.Ref{Source: fmt.Sprint(i % 10)}
		if quoted {
			ref.Quote = fmt.Sprintf("In the year %d the heronry of district %d had %d nests", 1800+4*i, i%10, 17*(4*i)+i%10)
		}
		start := len(a.Text)
		a.Text += claim + " "
		if err := a.Cite(ibid.Span{Start: start, End: start + len(claim)}, ref); err != nil {
			tb.Fatal(err)
		}
	}
	return a, pages
}

// BenchmarkBuild measures the way from stored snapshots, whose texts are cached, to signed bytes.
func BenchmarkBuild(b *testing.B) {
	keys := keyring.Memory(nil)
	if _, err := keys.New(nil); err != nil {
		b.Fatal(err)
	}
	key, signer, err := keys.Signer(keyring.Manifest)
	if err != nil {
		b.Fatal(err)
	}
	for _, quoted := range []bool{true, false} {
		a, pages := corpus(b, quoted)
		build := &manifest.Builder{
			Self: origin + path, RunID: "r1", AgentID: "agent.example/v1", Now: noon, Texts: &snapshot.Texts{},
			Read: func(_ context.Context, url string) (*snapshot.Snapshot, error) { return pages[url], nil },
		}
		name := "claims=50/excerpts=inferred"
		if quoted {
			name = "claims=50/excerpts=quoted"
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m, err := build.Build(b.Context(), a, nil)
				if err != nil {
					b.Fatal(err)
				}
				lost := func(c manifest.Claim) bool { return c.Sources[0].ExcerptOffset == nil }
				if len(m.Claims) != 50 || quoted && slices.ContainsFunc(m.Claims, lost) {
					b.Fatalf("%d claims, not all of them in place", len(m.Claims))
				}
				s, err := manifest.Sign(m, key, signer, noon())
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(s.Body)))
			}
		})
	}
}
