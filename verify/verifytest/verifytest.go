package verifytest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/verify"
)

// Memory tests an implementation of [verify.Memory]. It calls open, which must return an empty one, for each subtest.
func Memory(t *testing.T, open func(t *testing.T) verify.Memory) {
	t.Helper()
	t.Run("no value is nil", func(t *testing.T) {
		if got, err := open(t).Recall(t.Context(), "manifest", "https://a.example/"); got != nil || err != nil {
			t.Errorf("Recall of nothing = %q, %v, want nil, nil", got, err)
		}
	})
	t.Run("first value stays", func(t *testing.T) { first(t, open(t)) })
	t.Run("replace", func(t *testing.T) { replace(t, open(t)) })
	t.Run("any key and value", func(t *testing.T) { anything(t, open(t)) })
	t.Run("one concurrent call wins", func(t *testing.T) { race(t, open(t)) })
}

func first(t *testing.T, m verify.Memory) {
	t.Helper()
	remember(t, m, "a", "1", "one")
	if got := remember(t, m, "a", "1", "two"); got != "one" {
		t.Errorf("Remember over another value = %q, want the first one", got)
	}
	if got := remember(t, m, "b", "1", "three"); got != "three" {
		t.Errorf("Remember of another kind = %q, want its own value", got)
	}
	recalls(t, m, "a", "1", "one")
}

func replace(t *testing.T, m verify.Memory) {
	t.Helper()
	for _, value := range []string{"one", "two"} { // without and with an earlier value
		if err := m.Replace(t.Context(), "a", "1", []byte(value)); err != nil {
			t.Fatal(err)
		}
		recalls(t, m, "a", "1", value)
	}
	if got := remember(t, m, "a", "1", "three"); got != "two" {
		t.Errorf("Remember after Replace = %q, want two", got)
	}
}

func anything(t *testing.T, m verify.Memory) {
	t.Helper()
	key := "https://a.example/?q=%00 'x' \"y\" é\u202e" + string(bytes.Repeat([]byte("k"), 4096))
	value := append([]byte{0, 0xff, '\n'}, bytes.Repeat([]byte{0xfe}, 1<<16)...)
	remember(t, m, "verdict", key, string(value))
	recalls(t, m, "verdict", key, string(value))
	value[0] = 'x' // the memory must have its own copy
	got, err := m.Recall(t.Context(), "verdict", key)
	if err != nil || len(got) == 0 || got[0] != 0 {
		t.Errorf("the value changed with the caller's bytes (%v)", err)
	}
}

func race(t *testing.T, m verify.Memory) {
	t.Helper()
	var wg sync.WaitGroup
	got := make([]string, 16)
	for i := range got {
		wg.Go(func() {
			b, err := m.Remember(t.Context(), "a", "1", []byte{byte(i)})
			if err != nil {
				t.Error(err)
			}
			got[i] = string(b)
		})
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Fatalf("concurrent calls of Remember returned %q and %q, want one value", got[0], got[i])
		}
	}
}

func remember(t *testing.T, m verify.Memory, kind, key, value string) string {
	t.Helper()
	got, err := m.Remember(t.Context(), kind, key, []byte(value))
	if err != nil {
		t.Fatalf("Remember: %v", err)
	}
	return string(got)
}

func recalls(t *testing.T, m verify.Memory, kind, key, want string) {
	t.Helper()
	got, err := m.Recall(t.Context(), kind, key)
	if err != nil || string(got) != want {
		t.Errorf("Recall = %q, %v, want %q", got, err, want)
	}
}
