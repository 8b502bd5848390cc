package support_test

import (
	"testing"

	"github.com/ibidhq/ibid/support"
)

// Bounds that leave no number in common differ; those that may be of one number are not judged.
func TestBoundsDiffer(t *testing.T) {
	for _, test := range []struct {
		claim, passage string
		want           support.Label
	}{
		{"Every page has at most one canonical question.", "Every page has at least seven canonical questions.", support.Differs},
		{"Each ferry carries at most 40 cars.", "Each ferry carries at least 60 cars.", support.Differs},
		{"Each ferry carries at least 60 cars.", "Each ferry carries at most 40 cars.", support.Differs},
		{"The vault holds more than 300 seeds.", "The vault holds fewer than 200 seeds.", support.Differs},
		{"The vault holds at least 200 seeds.", "The vault holds at most 300 seeds.", support.Unjudged},
		{"The vault holds at least 200 seeds.", "The vault holds 300 seeds.", support.Unjudged},
		{"At least one reader was fined.", "At most seven readers were fined.", support.Unjudged},
		{"Each ferry carries at most 40 cars.", "Each ferry carries at most 60 cars.", support.Differs},
	} {
		r, err := new(support.Lexical).Check(t.Context(), []support.Pair{{Claim: test.claim, Passages: []support.Passage{{Text: test.passage}}}})
		if err != nil || len(r) != 1 || r[0].Label != test.want {
			t.Errorf("%q, %q: %v, %v, want %s", test.claim, test.passage, r, err, test.want)
		}
	}
}
