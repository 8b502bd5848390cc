package support_test

import (
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
)

// A fragment is compared with the sentence of the passage that its own sentence says, also if an earlier one has its
// words, too.
func TestFragmentOfALaterSentence(t *testing.T) {
	const passage = "The old mill at Dorn was sold for nine pounds in 1822, and the weir with it. " +
		"Herons came back to the valley much later. The bell of the chapel was sold for nine pounds to a farmer from Hesk."
	for _, test := range []struct {
		claim, context string
		want           support.Label
	}{
		{"sold for nine pounds", "The bell of the chapel was sold for nine pounds to a farmer from Hesk.", support.Supported},
		{"sold for nine pounds", "The old mill at Dorn was sold for nine pounds in 1822.", support.Supported},
		{"sold for nine pounds", "The bell of the chapel was sold for nine pounds in 1822.", support.Unjudged},
		{"sold for six pounds", "The bell of the chapel was sold for six pounds to a farmer from Hesk.", support.Differs},
		{"sold for nine pounds", "The roof of the school was sold for nine pounds to a farmer from Hesk.", support.Unjudged},
	} {
		pair := support.Pair{Claim: test.claim, Context: test.context, Passages: []support.Passage{{Text: passage}}}
		v := testenv.Must((&support.Lexical{}).Check(t.Context(), []support.Pair{pair}))(t)[0]
		if v.Label != test.want {
			t.Errorf("%q: %s, not %s", test.context, v.Label, test.want)
		}
	}
}
