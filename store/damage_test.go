package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// damages is what a bad disk does to a file.
var damages = []struct {
	name string
	do   func(b []byte, random *rand.Rand) []byte
}{
	{"a bit", func(b []byte, random *rand.Rand) []byte {
		b[random.IntN(len(b))] ^= 1 << random.IntN(8)
		return b
	}},
	{"some bytes", func(b []byte, random *rand.Rand) []byte {
		at := random.IntN(len(b))
		for i := range min(1+random.IntN(64), len(b)-at) {
			b[at+i] = byte(random.Uint32())
		}
		return b
	}},
	{"an empty page", func(b []byte, random *rand.Rand) []byte {
		clear(somePage(b, random))
		return b
	}},
	{"another page", func(b []byte, random *rand.Rand) []byte {
		copy(somePage(b, random), somePage(b, random))
		return b
	}},
	{"the end", func(b []byte, random *rand.Rand) []byte { return b[:random.IntN(len(b))] }},
}

func somePage(b []byte, random *rand.Rand) []byte {
	const size = 4096
	at := random.IntN(len(b)/size) * size
	return b[at : at+size]
}

// Wherever the file of a database is damaged, it opens or fails with an error; each answer is returned as it was stored
// or as an error; and what is put then is stored or refused.
func TestDamagedDatabase(t *testing.T) {
	const answers = 40
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := testenv.Must(store.Open(t.Context(), name, nil))(t)
	want := map[string]string{}
	var all []*store.Call
	for n := range answers {
		c := call(n, strings.Repeat(fmt.Sprintf("Herons stand in the shallows of lake %d. ", n), 20), "herons.example", "lakes.example")
		all = append(all, c)
		want[c.AnswerID] = shown(t, c)
	}
	put(t, s, all...)
	for id := range want { // as read
		want[id] = shown(t, testenv.Must(s.Call(t.Context(), store.DefaultTenant, id))(t))
	}
	testenv.OK(t, s.Close())
	whole := testenv.Must(os.ReadFile(name))(t)
	opened, right, wrong := 0, 0, 0
	for seed := range uint64(100) {
		damage := damages[seed%uint64(len(damages))]
		about := fmt.Sprintf("%s, seed %d", damage.name, seed)
		damaged := filepath.Join(t.TempDir(), "ibid.db")
		testenv.OK(t, os.WriteFile(damaged, damage.do(append([]byte{}, whole...), rand.New(rand.NewPCG(seed, 0))), 0o600))
		s, err := store.Open(t.Context(), damaged, nil)
		if err != nil {
			continue
		}
		opened++
		for id, shows := range want {
			c, err := s.Call(t.Context(), store.DefaultTenant, id)
			switch {
			case err != nil:
				wrong++
			case shown(t, c) != shows:
				t.Errorf("%s: %s is served as good:\n%s", about, id, shown(t, c))
			default:
				right++
			}
		}
		_, _ = s.Calls(t.Context(), store.DefaultTenant, &store.Query{})
		_, _ = s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "herons"})
		late := call(answers, "It is late.")
		if err := s.Put(t.Context(), []*store.Call{late}); err == nil {
			if c, err := s.Call(t.Context(), store.DefaultTenant, late.AnswerID); err != nil || c.Answer.Text != "It is late." {
				t.Errorf("%s: what was put is missing: %v", about, err)
			}
		}
		_ = s.Close()
	}
	t.Logf("%d of 100 were opened; of their answers %d were right and %d refused", opened, right, wrong)
	if opened == 0 || right == 0 || wrong == 0 {
		t.Error("the damage does not show anything")
	}
}
