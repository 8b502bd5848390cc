package ibid_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// The maximum memory for decoding an input of n bytes: what is kept, and all that is allocated, most of which is
// garbage at once.
func maxKept(n int) int      { return 8*n + 1<<20 }
func maxAllocated(n int) int { return 512*n + 16<<20 }

// flood is the approximate size in bytes of the lists that TestMemory generates.
const flood = 256 << 10

// TestMemory makes every list, object and event in the vectors very long, one at a time, as an attacker would, and
// measures what the decoder keeps. It measures one in eight of the inputs, or all with IBID_MEMORY=all.
func TestMemory(t *testing.T) {
	all, done := os.Getenv("IBID_MEMORY") == "all", map[string]bool{}
	for _, file := range vectorFiles(t) {
		format := filepath.Base(filepath.Dir(file))
		v := readVector(t, file)
		for _, input := range append([][]byte{v.body}, v.streams...) {
			for name, flooded := range floods(input) {
				key := format + " " + name
				sum := fnv.New32a()
				_, _ = sum.Write([]byte(key))
				if !done[key] && (all || sum.Sum32()%8 == 0) {
					done[key] = true
					measure(t, format+" "+name, flooded(), &ibid.DecodeOptions{Request: v.section("request.json")})
				}
			}
		}
	}
	if len(done) < 200 {
		t.Errorf("only %d inputs were generated from the vectors", len(done))
	}
}

// TestMemoryOfEmptyCitations decodes an input that once took 42 seconds and 5.8 GB.
func TestMemoryOfEmptyCitations(t *testing.T) {
	body := `{"object":"chat.completion","model":"sonar","choices":[{"message":{"content":"Yes.[1]"}}],"citations":[` +
		strings.Repeat(`"",`, 10_000_000) + `""]}`
	a := measure(t, "citations", []byte(body), &ibid.DecodeOptions{})
	if a.Text != "Yes.[1]" {
		t.Errorf("the text is %q", a.Text)
	}
	if !slices.ContainsFunc(a.Issues, func(i ibid.Issue) bool { return i.Code == "limit-reached" }) {
		t.Errorf("no issue reports that something was left out: %v", a.Issues)
	}
}

// TestMemoryOfNewChunks supports the same words with another chunk in every event: each event used to copy all earlier
// chunks.
func TestMemoryOfNewChunks(t *testing.T) {
	const n = 5000
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"aaaa \"}]},\"groundingMetadata\":{\"groundingChunks\":[{\"web\":{\"uri\":\"https://x%d.example/\"}}],\"groundingSupports\":[{\"segment\":{\"endIndex\":4,\"text\":\"aaaa\"},\"groundingChunkIndices\":[0]}]}}]}\n\n", i)
	}
	a := measure(t, "chunks", b.Bytes(), &ibid.DecodeOptions{})
	if len(a.Citations) != 1 || len(a.Citations[0].Refs) != 100 {
		t.Fatalf("citations %v, want one with 100 refs", a.Citations)
	}
	if !slices.ContainsFunc(a.Issues, func(i ibid.Issue) bool { return i.Code == "limit-reached" }) {
		t.Errorf("no issue reports that something was left out: %v", a.Issues)
	}
}

// A legitimate answer may be this dense: one citation for every 60 bytes of text.
func TestMemoryOfManyMarks(t *testing.T) {
	const n = 5000
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "Pond %d froze %d days later than the one before it.[%d] ", i+1, i%17+1, i%60+1)
	}
	var urls []string
	for i := range 60 {
		urls = append(urls, fmt.Sprintf("https://ponds%d.example/survey/%d", i+1, i+1))
	}
	body := encode(map[string]any{
		"object": "chat.completion", "model": "sonar", "citations": urls, "choices": []any{map[string]any{
			"finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text.String()},
		}},
	})
	a := measure(t, "marks", body, &ibid.DecodeOptions{})
	if len(a.Citations) != n || len(a.Issues) > 0 {
		t.Errorf("%d citations of %d, issues %v", len(a.Citations), n, a.Issues)
	}
}

// measure decodes an input and returns its answer.
func measure(t *testing.T, name string, input []byte, opts *ibid.DecodeOptions) *ibid.Answer {
	t.Helper()
	before := memory()
	d := &ibid.Decoder{Options: *opts}
	_, _ = d.Write(input)
	_ = d.Close()
	a, _ := d.Answer()
	after := memory()
	runtime.KeepAlive(d)
	n := len(input) + len(opts.Request)
	for _, m := range []struct {
		what     string
		is, most int
	}{
		{"kept", int(after.HeapAlloc) - int(before.HeapAlloc), maxKept(n)},
		{"allocated", int(after.TotalAlloc - before.TotalAlloc), maxAllocated(n)},
	} {
		if m.is > m.most {
			t.Errorf("%s: %s: %d bytes, %.1f times the input's %d; at most %d: %.300s",
				name, m.what, m.is, float64(m.is)/float64(n), n, m.most, input)
		}
	}
	runtime.KeepAlive(input)
	return a
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// floods returns the inputs generated from one, by name.
func floods(input []byte) map[string]func() []byte {
	all := map[string]func() []byte{}
	var body any
	if json.Unmarshal(input, &body) == nil {
		for name, flooded := range floodsOf(body, "") {
			all["body"+name] = func() []byte { return encode(flooded()) }
		}
		return all
	}
	lines := bytes.Split(input, []byte("\n"))
	for i, line := range lines {
		before, data := []byte(nil), line
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			before, data = []byte("data: "), rest
		}
		var doc any
		if json.Unmarshal(data, &doc) != nil {
			continue
		}
		kind := ""
		if o, ok := doc.(map[string]any); ok {
			kind = fmt.Sprint(o["type"], o["event_type"])
		}
		with := func(docs ...[]byte) []byte {
			var b bytes.Buffer
			for _, l := range lines[:i] {
				b.Write(append(l, '\n'))
			}
			for _, d := range docs {
				b.Write(slices.Concat(before, d, []byte("\n\n")))
			}
			for _, l := range lines[i+1:] {
				b.Write(append(l, '\n'))
			}
			return b.Bytes()
		}
		for name, flooded := range floodsOf(doc, "") {
			all["event "+kind+name] = func() []byte { return with(encode(flooded())) }
		}
		all["event "+kind+" again"] = func() []byte {
			var docs [][]byte
			for k, size := 0, 0; size < flood; k++ {
				docs = append(docs, encode(vary(doc, k)))
				size += len(docs[k])
			}
			return with(docs...)
		}
	}
	return all
}

// floodsOf returns variants of a value in which one list or object is long, by its path.
func floodsOf(v any, path string) map[string]func() any {
	all := map[string]func() any{}
	switch v := v.(type) {
	case map[string]any:
		all[path+" members"] = func() any {
			o := maps.Clone(v)
			for k := range flood / 16 {
				o["member"+strconv.Itoa(k)] = []any{k}
			}
			return o
		}
		for name, member := range v {
			for sub, flooded := range floodsOf(member, path+"."+name) {
				all[sub] = func() any {
					o := maps.Clone(v)
					o[name] = flooded()
					return o
				}
			}
		}
	case []any:
		list := func(name string, element func(k int) any, size int) {
			all[path+"[] "+name] = func() any {
				out := slices.Clone(v)
				for k := range flood / size {
					out = append(out, element(k))
				}
				return out
			}
		}
		list("strings", func(int) any { return "" }, 3)
		list("objects", func(int) any { return map[string]any{} }, 3)
		list("numbers", func(int) any { return 0 }, 2)
		list("counting", func(k int) any { return k }, 6)
		list("words", func(k int) any { return "w" + strconv.Itoa(k) }, 9)
		for i, element := range v {
			size := len(encode(element))
			list("same", func(int) any { return element }, size)
			list("alike", func(k int) any { return vary(element, k) }, size)
			if o, ok := element.(map[string]any); ok {
				for name, member := range o {
					one := map[string]any{name: member}
					list(name, func(k int) any { return vary(one, k) }, len(encode(one)))
				}
			}
			for sub, flooded := range floodsOf(element, path+"[]") {
				all[sub] = func() any {
					out := slices.Clone(v)
					out[i] = flooded()
					return out
				}
			}
		}
	}
	return all
}

// vary returns a value in which all numbers, and all strings except types, are replaced.
func vary(v any, k int) any {
	switch v := v.(type) {
	case map[string]any:
		o := make(map[string]any, len(v))
		for name, member := range v {
			if s, ok := member.(string); ok && (name == "type" || name == "event_type" || name == "object") {
				o[name] = s
				continue
			}
			o[name] = vary(member, k)
		}
		return o
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = vary(v[i], k)
		}
		return out
	case string:
		return strconv.Itoa(k)
	case float64:
		return k
	}
	return v
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
