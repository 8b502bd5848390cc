package ibid

import (
	"fmt"
	"testing"

	"github.com/ibidhq/ibid/internal/wire"
)

// An index keeps its names when it becomes a map.
func TestIndex(t *testing.T) {
	var x index
	if _, ok := x.get(""); ok {
		t.Error("an empty index has a name")
	}
	const names = 3 * fewNames
	for i := range names {
		x.set(fmt.Sprint(i), -1)
		x.set(fmt.Sprint(i), i)
		for k := range names {
			if n, ok := x.get(fmt.Sprint(k)); ok != (k <= i) || ok && n != k {
				t.Fatalf("after %d names, the number of %d is %d, %t", i+1, k, n, ok)
			}
		}
	}
}

// Of several parts with one key the first is found, however many there are; the last part is found as itself.
func TestFindPart(t *testing.T) {
	const parts = 3 * fewParts
	f := newFold(Limits{}.withDefaults(), nil)
	c := f.candidate(0)
	part := func(i int) wire.Part { return wire.Part{Message: i} }
	c.open(part(0))
	c.open(part(1))
	c.open(part(0)) // place 2
	for i := 3; i < parts; i++ {
		c.open(part(i))
		for k := range parts {
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
