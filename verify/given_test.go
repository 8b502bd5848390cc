package verify_test

import (
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// The claims of an answer that cites the passages of its prompt as [1], without an address or a quote, are compared with
// these passages. That says nothing of the sources.
func TestGiven(t *testing.T) {
	request := []byte(`{"model": "m", "messages": [{"role": "user", "content": "Context:\n[1] The old bridge\nThe bridge was ` +
		`opened in 1907.\n\n[2] Lengths\nIts length is 340 metres, and it has six arches.\n\nQuestion: When was it opened?"}]}`)
	a := testenv.Must(ibid.Decode(
		[]byte("The bridge was opened in 1931 [1]. Its length is 340 metres [2]. It is loved by all [1][2]."),
		&ibid.DecodeOptions{Request: request},
	))(t)
	r := testenv.Must((&verify.Verifier{Offline: true}).Answer(t.Context(), a))(t)
	var found []support.Label
	for i := range r.Claims {
		found = append(found, r.Claims[i].Finding)
		for k := range r.Claims[i].Sources {
			if got := r.Claims[i].Sources[k].Result.Status; got != verify.NotDereferenceable {
				t.Errorf("claim %d: source %d is %s", i, k, got)
			}
		}
	}
	testenv.Equal(t, "claims", []support.Label{support.Differs, support.Supported, support.Unjudged}, found)
	if r.State != verify.Unverifiable {
		t.Errorf("the sources are %s", r.State)
	}
}
