package verify_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/verify/verifytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryMap(t *testing.T) {
	verifytest.Memory(t, func(*testing.T) verify.Memory { return &verify.MemoryMap{} })
}

// An answer whose manifest is signed, logged and true is trusted if its publisher is, and every passed check is
// reported.
func TestTrusted(t *testing.T) {
	w := published(t)
	r := w.report(w.verifier())
	wants(t, r, verify.Trusted, "")
	for _, code := range []verify.Status{
		verify.HeaderRead, verify.ManifestRead, verify.OutputBound, verify.SignatureValid, verify.AuthorityVerified, verify.Logged,
		verify.ChainValid, verify.LevelMet,
	} {
		if has(r, code) == nil {
			t.Errorf("%s was not found:\n%s", code, text(r))
		}
	}
	if r.Level.Observed != 3 || r.Level.Promised != 3 {
		t.Errorf("level %+v, want 3 of 3", r.Level)
	}
	if got := r.Claims[0].Sources[0].Result.Status; got != verify.Verified {
		t.Errorf("the source is %s, want verified", got)
	}
	t.Log("\n" + text(r))
}

// A URL is that of an answer or a manifest; its content decides which.
func TestURL(t *testing.T) {
	w := published(t)
	var steps []verify.Progress
	v := w.verifier()
	v.Progress = func(p verify.Progress) { steps = append(steps, p) }
	for _, test := range []struct {
		name, path string
		kind       verify.Kind
		state      verify.State
		code       verify.Status
		make       func()
	}{
		{"answer", anAnswer, verify.KindResponse, verify.Trusted, verify.OutputBound, nil},
		{"manifest", cite, verify.KindManifest, verify.Trusted, verify.OutputUnchecked, nil},
		{"manifest to be", cite, verify.KindManifest, verify.Pending, verify.ManifestPending, func() { w.status(cite, http.StatusAccepted) }},
		{"nothing", "/nothing", verify.KindResponse, verify.Unverifiable, verify.ResponseUnreadable, nil},
		{"page", "/source", verify.KindResponse, verify.Unverifiable, verify.HeaderMissing, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.make != nil {
				test.make()
			}
			r := must(t)(v.URL(t.Context(), w.origin+test.path))
			wants(t, r, test.state, test.code)
			if r.Kind != test.kind {
				t.Errorf("it is a %s, want a %s", r.Kind, test.kind)
			}
		})
	}
	at, manifest := w.origin+"/source", w.origin+cite
	once := []verify.Progress{
		{Stage: "manifest", URL: manifest, Done: 1, Total: 1}, {Stage: "source", URL: at, Done: 1, Total: 1, Status: verify.Verified}, {Stage: "support", URL: manifest, Done: 1, Total: 1},
	}
	if diff := cmp.Diff(slices.Concat(once, once, once[:1]), steps); diff != "" {
		t.Errorf("the progress differs: %s", diff)
	}
	if _, err := v.URL(t.Context(), "file:///etc/passwd"); err != nil {
		t.Errorf("an address that is never fetched is an error, want a report: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := v.URL(ctx, w.origin+anAnswer); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v, %v", r, err)
	}
}

// The zero Verifier works, trusts nobody and reaches nothing private.
func TestZeroVerifier(t *testing.T) {
	w := published(t)
	var v verify.Verifier
	r := must(t)(v.URL(t.Context(), w.origin+anAnswer))
	wants(t, r, verify.Unverifiable, verify.ResponseUnreadable)
	if w.asked(anAnswer) != 0 {
		t.Error("a loopback address was asked")
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// A memory that fails is an error.
func TestMemoryFails(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.Memory = forgetful{}
	if r, err := v.URL(t.Context(), w.origin+anAnswer); !errors.Is(err, errForgot) {
		t.Errorf("%v, %v, want the memory's error", r, err)
	}
}

// Values in a memory that cannot be read are ignored.
func TestMemoryGarbage(t *testing.T) {
	w := published(t)
	v := w.verifier()
	v.Memory, v.SourceTTL = &garbled{}, 0
	wants(t, w.report(v), verify.Trusted, "")
}

var errForgot = errors.New("forgot")

type forgetful struct{}

func (forgetful) Recall(context.Context, string, string) ([]byte, error) { return nil, errForgot }

func (forgetful) Remember(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errForgot
}

func (forgetful) Replace(context.Context, string, string, []byte) error { return errForgot }

// garbled returns nonsense for what this package keeps as JSON.
type garbled struct{ verify.MemoryMap }

func (g *garbled) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	if kind == "keys" || kind == "verdict" {
		return []byte("{]"), nil
	}
	return g.MemoryMap.Recall(ctx, kind, key)
}
