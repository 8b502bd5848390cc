package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// words returns n bytes of English.
func words(tb testing.TB, n int) string {
	tb.Helper()
	var b strings.Builder
	for _, name := range testenv.Must(filepath.Glob(filepath.Join(testenv.Root(tb), "docs", "*.md")))(tb) {
		b.Write(testenv.Must(os.ReadFile(name))(tb))
	}
	// The examples in them would be passages to answer from: the decoder keeps a request that has some, as it is.
	prose := strings.Map(func(r rune) rune {
		if strings.ContainsRune("[]<>{}#:|", r) || r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, b.String())
	return strings.ToValidUTF8(prose[:n], "")
}

// noise returns n printable bytes that do not compress.
func noise(n int) string {
	b, r := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = "#$%&'()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"[r.IntN(89)]
	}
	return string(b)
}

// A large request is stored unchanged, whether or not it was compressed while its stream was open.
func TestPackedRequest(t *testing.T) {
	last := words(t, 100<<10) + " Ibid? 🪿"
	messages := []store.Message{
		{Role: "system", Text: "Be brief."},
		{Role: "user", Text: noise(20 << 10)},
		{Role: "assistant", Text: "é"},
		{Role: "user", Text: last},
	}
	var said []map[string]string
	for _, m := range messages {
		said = append(said, map[string]string{"role": m.Role, "content": m.Text})
	}
	request := testenv.Must(json.Marshal(map[string]any{"model": "gpt-test", "stream": true, "messages": said}))(t)
	for keep, want := range map[gateway.Prompts][]store.Message{
		gateway.PromptsNone: nil, gateway.PromptsLast: messages[3:], gateway.PromptsAll: messages,
	} {
		t.Run(string(keep), func(t *testing.T) {
			w := newWorld(t, answerParts(chatParts("So ", "it ", "is.")...), &setup{options: gateway.Options{Prompts: keep}})
			r := w.request(t, http.MethodPost, chat, strings.NewReader(string(request)))
			res, _ := w.do(t, r)
			testenv.Equal(t, "prompt", want, w.stored(t, res.Header.Get("Ibid-Answer")).Prompt, cmpopts.EquateEmpty())
		})
	}
}

// An open stream keeps its request once, and compressed: an incompressible one shows the difference.
func TestOpenStreamMemory(t *testing.T) {
	const streams, size = 64, 100 << 10
	goOn, parts := make(chan struct{}), chatParts("So ", "it ", "is.")
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", chatDocument)
		fmt.Fprint(w, parts[0])
		flush(w)
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		fmt.Fprint(w, strings.Join(parts[1:], ""))
	}, &setup{idle: true}) // the indexer's use of memory varies
	held := func(question string) int {
		request := fmt.Sprintf(`{"model":"gpt-test","stream":true,"messages":[{"role":"user","content":%q}]}`, question)
		before, responses := liveHeap(), make([]*http.Response, streams)
		for i := range responses {
			responses[i] = testenv.Must(w.client.Do(w.request(t, http.MethodPost, chat, strings.NewReader(request))))(t) //nolint:bodyclose // readReply
			testenv.Must(io.ReadFull(responses[i].Body, make([]byte, len(parts[0]))))(t)
		}
		after := liveHeap()
		for range responses {
			goOn <- struct{}{}
		}
		for _, res := range responses {
			readReply(t, res)
		}
		return (after - before) / streams
	}
	held(words(t, size)) // connections and tables exist from now on
	small, packed, plain := held("How?"), held(words(t, size)), held(noise(size))
	t.Logf("bytes an open stream: %d with a small request, %d with one of 100 KB, %d where it does not compress", small, packed, plain)
	if packed-small > size*6/10 || plain-small < size*9/10 || plain-small > size*3/2 {
		t.Errorf("a request of 100 KB takes %d more bytes, and %d where it does not compress", packed-small, plain-small)
	}
}

// liveHeap returns how many bytes are in use.
func liveHeap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools are emptied by the second one
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
