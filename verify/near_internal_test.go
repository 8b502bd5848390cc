package verify

import (
	"net/http"
	"testing"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// One job explains missing excerpts up to maxExplained.
func TestMaxExplained(t *testing.T) {
	snap := &snapshot.Snapshot{Status: http.StatusOK, MediaType: "text/plain", Octets: []byte("The old bridge was finished in 1875 and is not open to cars.")}
	cs := &manifest.ClaimSource{Excerpt: &manifest.Excerpt{Exact: "The old bridge was finished in 1874 and is not open to cars."}}
	for spent, want := range map[int64]Status{0: ExcerptAltered, maxExplained: ExcerptMissing} {
		c := newComparison(cs, nil, snap, nil)
		c.explained.Store(spent)
		if got := c.compare(nil); got.Status != want || (got.Near == nil) != (want == ExcerptMissing) {
			t.Errorf("after %d: %s, %v, want %s", spent, got.Status, got.Near, want)
		}
	}
}
