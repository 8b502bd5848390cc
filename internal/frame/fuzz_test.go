package frame_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/frame"
)

// FuzzSplit searches for inputs whose frames depend on the chunking, and for panics.
func FuzzSplit(f *testing.F) {
	for _, tt := range slices.Concat(recogniseTests(), jsonTests(), sseTests(), awsTests()) {
		f.Add([]byte(tt.in), uint16(tt.limit), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, limit uint16, seed uint64) {
		want, kind := split(t, in, int(limit), whole)
		for name, cut := range map[string]cutter{"byte by byte": single, "short cuts": random(seed, 6), "longer cuts": random(seed, 40)} {
			got, k := split(t, in, int(limit), cut)
			if k != kind {
				t.Errorf("%s: Kind = %v, in one Write %v", name, k, kind)
			}
			if diff := cmp.Diff(want, got, sameError()); diff != "" {
				t.Errorf("%s: frames differ from those of one Write (-one +cut):\n%s", name, diff)
			}
		}
		for _, r := range want {
			if limit > 0 && kind != frame.Other && len(r.Data) > max(int(limit), 12) { // an AWS prelude is always held
				t.Errorf("document of %d bytes, limit %d", len(r.Data), limit)
			}
		}
	})
}
