package store_test

import (
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A call that is repeated replaces the turns after the answer that it names, even if that is before the page.
func TestKeptBehind(t *testing.T) {
	call := func(id string) *store.Call { return &store.Call{AnswerID: id} }
	before, turns := call("ans_0"), []store.Turn{{Call: call("ans_1")}, {Call: call("ans_2")}}
	for _, test := range []struct {
		follows *string
		kept    int
		last    string // empty if there is none
		ok      bool
	}{
		{nil, 2, "", false},
		{new("ans_1"), 1, "ans_1", true},
		{new("ans_2"), 2, "ans_2", true},
		{new(""), 0, "", true},
		{new("ans_0"), 0, "ans_0", true},
		{new("ans_9"), 2, "", false},
	} {
		kept, last, ok := store.KeptBehind(turns, before, test.follows)
		id := ""
		if last != nil {
			id = last.AnswerID
		}
		if len(kept) != test.kept || id != test.last || ok != test.ok {
			t.Errorf("%v: %d, %q, %v", test.follows, len(kept), id, ok)
		}
	}
	testenv.Equal(t, "turns that nothing follows", 2, len(store.Shown(turns, before)))
}
