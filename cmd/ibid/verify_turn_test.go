package main

import (
	"context"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/verify/verifytest"
)

func TestDraft(t *testing.T) {
	verifytest.Memory(t, func(*testing.T) verify.Memory { return newTurns(&verify.MemoryMap{}).draft() })
}

// Only an input that has read a value that an earlier one has changed since is outdated.
func TestTurns(t *testing.T) {
	ctx := context.Background()
	recall := func(t *testing.T, m verify.Memory, key string) string {
		t.Helper()
		value := testenv.Must(m.Recall(ctx, "output", key))(t)
		return string(value)
	}
	turns := newTurns(&verify.MemoryMap{})
	first, reads, writes, other := turns.draft(), turns.draft(), turns.draft(), turns.draft()
	for _, d := range []*draft{first, writes} {
		testenv.OK(t, d.Replace(ctx, "output", "manifest", []byte("response")))
	}
	recall(t, other, "another manifest")
	if got := recall(t, reads, "manifest"); got != "" {
		t.Errorf("a draft that was not kept shows: %q", got)
	}
	testenv.OK(t, turns.keep(ctx, first))
	for _, tt := range []struct {
		name string
		d    *draft
		want bool
	}{{"has read it", reads, true}, {"has only written it", writes, false}, {"has read another one", other, false}} {
		if got := tt.d.isOutdated(); got != tt.want {
			t.Errorf("%s: outdated %v", tt.name, got)
		}
	}
	again := turns.draft()
	if got := recall(t, again, "manifest"); got != "response" || again.isOutdated() {
		t.Errorf("the next draft sees %q, and is outdated: %v", got, again.isOutdated())
	}
	if there, err := again.Remember(ctx, "output", "manifest", []byte("late")); err != nil || string(there) != "response" {
		t.Errorf("remembered %q, %v", there, err)
	}
}
