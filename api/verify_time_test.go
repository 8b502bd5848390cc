package api

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// stuck is a checker that hangs until its context ends.
type stuck struct{}

func (stuck) Check(ctx context.Context, _ []support.Pair) ([]support.Verdict, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (stuck) Info() support.Info { return support.Info{ID: "stuck", Version: "1"} }

// A verification that takes too long is ended, and its caller told to retry; it also ends when its client leaves.
func TestVerifyTime(t *testing.T) {
	const address, words = "https://heron.example/", "Grey herons usually lay four eggs in spring"
	copies := &snapshot.MemoryCopies{}
	page := &snapshot.Snapshot{URL: address, FinalURL: address, Status: 200, MediaType: "text/plain", Octets: []byte(words), Hash: snapshot.Hash([]byte(words))}
	testenv.OK(t, copies.Keep(t.Context(), page))
	answer := &ibid.Answer{Text: "Herons lay eggs.", Sources: []ibid.Source{{ID: "s1", Kind: ibid.Web, URL: address}}}
	testenv.OK(t, answer.Cite(ibid.Span{End: len(answer.Text)}, ibid.Ref{Source: "s1", Quote: words}))
	document := testenv.Must(json.Marshal(answer))(t)
	for name, leaves := range map[string]time.Duration{"ends": 0, "leaves": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leaves > 0 {
					defer time.AfterFunc(leaves, cancel).Stop()
				}
				begun := time.Now()
				_, err := Report(ctx, &verify.Verifier{Offline: true, Copies: copies, Checker: stuck{}}, &Verification{Text: document})
				took, want := time.Since(begun), verifyFor
				if leaves > 0 {
					want = leaves
				}
				p := gateway.ProblemOf(err)
				if took != want || p.Code != gateway.CodeUnavailable || leaves == 0 && p.Header.Get("Retry-After") == "" {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}
