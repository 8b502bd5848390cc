package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// cuts reads at most size random bytes at a time.
type cuts struct {
	r      io.Reader
	size   int
	random *rand.Rand
}

func (c *cuts) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), 1+c.random.IntN(c.size))]) }

// However a stream is cut as it arrives, it has the same text: in a file the one that the file of the stream has, and as
// a live output the one of every other cut.
func TestCiteCuts(t *testing.T) {
	dir, inputs := t.TempDir(), map[string][]byte{}
	corpus := filepath.Join(testenv.Shared(t), "corpus")
	testenv.OK(t, filepath.WalkDir(corpus, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) == ".json" || filepath.Dir(name) == corpus {
			return err
		}
		b, err := os.ReadFile(name)
		if len(b) < 32<<10 { // the others cost much and are no different
			inputs[name] = b
		}
		return err
	}))
	for words, n := range map[string]int{"word [1] ": 1000, "[1] [2] ": 150, "wörd — **bold [2]** ": 150, "`[1]` word[1][2], ": 150} {
		var b bytes.Buffer // one long paragraph
		for range n {
			fmt.Fprintf(&b, `data: {"object":"chat.completion.chunk","citations":["https://a.example/1","https://b.example/2"],`+
				`"choices":[{"index":0,"delta":{"content":%q}}]}`+"\n\n", words)
		}
		b.WriteString("data: [DONE]\n\n")
		name := filepath.Join(dir, fmt.Sprintf("%x.sse", words))
		testenv.OK(t, os.WriteFile(name, b.Bytes(), 0o600))
		inputs[name] = b.Bytes()
	}
	cite := func(name string, stdin io.Reader, out io.Writer) int {
		return run(t.Context(), []string{"cite", name}, world{stdin, out, io.Discard, func(string) (string, bool) { return "", false }})
	}
	saved := func(name string, stdin io.Reader) (string, int) {
		out := testenv.Must(os.Create(filepath.Join(dir, "out")))(t)
		defer out.Close()
		code := cite(name, stdin, out)
		return string(testenv.Must(os.ReadFile(out.Name()))(t)), code
	}
	random := rand.New(rand.NewPCG(1, 2))
	for name, input := range inputs {
		short := strings.TrimPrefix(name, corpus)
		want, wantCode := saved(name, nil)
		var live []string
		for _, size := range []int{1 << 20, 40} {
			got, code := saved(stdinName, &cuts{bytes.NewReader(input), size, random})
			if got != want || code != wantCode {
				t.Errorf("%s in pieces of up to %d: %d bytes (exit code %d), %d of the file (%d)", short, size, len(got), code, len(want), wantCode)
			}
			var out bytes.Buffer
			if code := cite(stdinName, &cuts{bytes.NewReader(input), size, random}, &out); code != wantCode {
				t.Errorf("%s live: exit code %d, %d of the file", short, code, wantCode)
			}
			live = append(live, out.String())
		}
		if live[0] != live[1] {
			t.Errorf("%s live: %d and %d bytes", short, len(live[0]), len(live[1]))
		}
	}
}
