package ibid

import (
	"testing"

	"github.com/ibidhq/ibid/internal/wire"
)

// Of several parts with one key the first is found; the last part is found as itself.
func TestFindPart(t *testing.T) {
	c := candidate{fold: &fold{limits: Limits{}.withDefaults()}}
	part := func(i int) wire.Part { return wire.Part{Message: i} }
	c.open(part(0))
	c.open(part(1))
	c.open(part(0)) // place 2
	for i := 3; i < 9; i++ {
		c.open(part(i))
		for k := range 9 {
			want := k
			if k == 2 || k > i {
				want = -1
			}
			if got := c.find(part(k)); got != want {
				t.Fatalf("with %d parts, part %d is at %d, want %d", i+1, k, got, want)
			}
		}
	}
}
