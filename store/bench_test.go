package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// processCPU returns the CPU time of the process so far, in user and system mode on all processors.
func processCPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	testenv.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// prose generates text with the word frequencies of a natural language: few words are common, many rare.
type prose struct {
	words []string
	zipf  *rand.Zipf
}

func newProse() *prose {
	random := rand.New(rand.NewPCG(1, 2))
	p := &prose{zipf: rand.NewZipf(random, 1.1, 8, 39_999)}
	for i := range 40_000 {
		word := ""
		for n := i; n > 0 || word == ""; n /= 20 {
			word += string("bcdfghklmnprstvwzjyq"[n%20]) + string("aeiou"[(n/3)%5])
		}
		p.words = append(p.words, word)
	}
	return p
}

func (p *prose) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(p.words[p.zipf.Uint64()])
		if b.Len()%13 == 0 {
			b.WriteByte('.')
		}
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

// call has an answer as a model with web search gives it: n bytes of text, five sources, eight citations.
func (p *prose) call(i, n int) *store.Call {
	a := &ibid.Answer{
		ID: fmt.Sprintf("resp_%08d", i), Provider: "openai", Format: "openai-responses", Model: "gpt-5", Text: p.text(n), Complete: true,
		Finish: ibid.FinishStop, Parts: []ibid.Part{{Span: ibid.Span{End: n}, Kind: ibid.AnswerPart}},
	}
	for k := range 5 {
		a.Sources = append(a.Sources, ibid.Source{
			ID: fmt.Sprintf("web:%d", k), Kind: ibid.Web, Title: p.text(40), URL: fmt.Sprintf("https://www.site%d.example/2026/11/%s", k, strings.ReplaceAll(p.text(30), " ", "-")),
		})
	}
	for k := range 8 {
		at := k * n / 9
		if err := a.Cite(ibid.Span{Start: at, End: at + n/12}, ibid.Ref{Source: fmt.Sprintf("web:%d", k%5)}); err != nil {
			panic(err)
		}
	}
	return &store.Call{
		AnswerID: fmt.Sprintf("ans_019a%028d", i), Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses",
		Run: fmt.Sprintf("run_019a%028d", i), Conversation: fmt.Sprintf("conversation-%d", i/8), Agent: "bench", Status: 200,
		Prompt:  []store.Message{{Role: "user", Text: p.text(120)}},
		Started: noon().Add(time.Duration(i) * time.Millisecond), Duration: time.Second, Bytes: int64(n), Answer: a,
	}
}

// BenchmarkPut stores answers in batches, as the indexer does: already encoded, in conversations of eight.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{2048, 4096} {
		for _, batch := range []int{1, 32, 128} {
			b.Run(fmt.Sprintf("text=%d/batch=%d", size, batch), func(b *testing.B) { benchmarkPut(b, size, batch, false, nil) })
		}
	}
}

// BenchmarkPutAnd stores answers that are to be published, or whose sources are to be read again.
func BenchmarkPutAnd(b *testing.B) {
	for _, and := range []struct {
		name    string
		publish bool
		o       *store.Options
	}{{"nothing", false, nil}, {"publish", true, nil}, {"track", false, &store.Options{Track: true}}, {"both", true, &store.Options{Track: true}}} {
		b.Run("and="+and.name, func(b *testing.B) { benchmarkPut(b, 2048, 32, and.publish, and.o) })
	}
}

func benchmarkPut(b *testing.B, size, batch int, publish bool, o *store.Options) {
	b.Helper()
	dir := b.TempDir()
	s := testenv.Must(store.Open(b.Context(), filepath.Join(dir, "ibid.db"), o))(b)
	b.Cleanup(func() { _ = s.Close() })
	p := newProse()
	n, encoded := 0, 0
	var used time.Duration
	var each []time.Duration
	for b.Loop() {
		b.StopTimer()
		var calls []*store.Call
		for range batch {
			n++
			c := p.call(n, size)
			c.Publish = publish
			record := testenv.Must(c.Encode())(b)
			encoded += len(record)
			calls = append(calls, c)
		}
		runtime.GC() // collect the garbage of the preparation
		b.StartTimer()
		before := processCPU(b)
		testenv.OK(b, s.Put(b.Context(), calls))
		each = append(each, processCPU(b)-before)
		used += each[len(each)-1]
	}
	b.ReportMetric(float64(used.Microseconds())/float64(n), "cpu-µs/answer")
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/10].Microseconds())/float64(batch), "cpu-µs/answer-p10")
	b.ReportMetric(float64(encoded)/float64(n), "record-B/answer")
	if info, err := os.Stat(filepath.Join(dir, "ibid.db")); err == nil {
		b.ReportMetric(float64(info.Size())/float64(n), "disk-B/answer")
	}
}

func BenchmarkEncode(b *testing.B) {
	p := newProse()
	c := p.call(1, 4096)
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			fresh := *c
			testenv.Must(fresh.Encode())(b)
		}
	})
	b.Run("document", func(b *testing.B) {
		for b.Loop() {
			testenv.Must(c.Answer.Document(&ibid.DocumentOptions{Bare: true, Raw: true, AnswerID: c.AnswerID}).JSON())(b)
		}
	})
	b.Run("decode", func(b *testing.B) {
		record := testenv.Must(c.Encode())(b)
		for b.Loop() {
			testenv.Must(store.DecodeCall(record))(b)
		}
	})
}

// BenchmarkSearch searches 20,000 answers.
func BenchmarkSearch(b *testing.B) {
	const answers = 20_000
	s := open(b, filepath.Join(b.TempDir(), "ibid.db"))
	p := newProse()
	for n := 0; n < answers; {
		var calls []*store.Call
		for range 200 {
			calls = append(calls, p.call(n, 2048))
			n++
		}
		put(b, s, calls...)
	}
	for _, q := range []struct {
		name string
		q    store.Query
	}{
		{"newest", store.Query{}},
		{"common-word", store.Query{Text: p.words[1] + " "}},
		{"two-words", store.Query{Text: p.words[1] + " " + p.words[900] + " "}},
		{"seldom-word", store.Query{Text: p.words[39_000] + " "}},
		{"beginning", store.Query{Text: "cec"}},
		{"no-such-word", store.Query{Text: "xxxx "}},
		{"source", store.Query{Source: "https://www.site1.example/2026/11/none"}},
		{"conversation", store.Query{Conversation: "conversation-7"}},
	} {
		b.Run(q.name, func(b *testing.B) {
			found := 0
			for b.Loop() {
				page := testenv.Must(s.Calls(b.Context(), store.DefaultTenant, &q.q))(b)
				found = len(page.Items)
			}
			b.ReportMetric(float64(found), "found")
		})
	}
}

// BenchmarkKeep stores copies of sources of 20 KB: new ones and known ones.
func BenchmarkKeep(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "ibid.db"))
	copies := s.Copies(store.DefaultTenant)
	p := newProse()
	n := 0
	read := func() *snapshot.Snapshot {
		n++
		octets := []byte(p.text(20_000))
		return &snapshot.Snapshot{URL: fmt.Sprintf("https://a.example/%d", n), Status: 200, FetchedAt: noon(), Octets: octets, Hash: snapshot.Hash(octets)}
	}
	keep := func(b *testing.B, next func() *snapshot.Snapshot) {
		b.Helper()
		for b.Loop() {
			b.StopTimer()
			doc := next()
			b.StartTimer()
			testenv.OK(b, copies.Keep(b.Context(), doc))
		}
	}
	b.Run("new", func(b *testing.B) { keep(b, read) })
	same := read()
	b.Run("seen", func(b *testing.B) { keep(b, func() *snapshot.Snapshot { return same }) })
	b.Run("latest", func(b *testing.B) {
		for b.Loop() {
			testenv.Must(copies.Latest(b.Context(), same.URL))(b)
		}
	})
}

// BenchmarkVerification reads answers without any checked citation, or with all checked: a page, a conversation, and by
// the result of checks.
func BenchmarkVerification(b *testing.B) {
	const answers = 4_000
	for _, checked := range []bool{false, true} {
		s := open(b, filepath.Join(b.TempDir(), "ibid.db"))
		p := newProse()
		for n := 0; n < answers; {
			var calls []*store.Call
			var pins []store.Pin
			for range 200 {
				c := p.call(n, 2048)
				calls, pins = append(calls, c), append(pins, pinsOf(c)...)
				n++
			}
			put(b, s, calls...)
			if !checked {
				continue
			}
			testenv.OK(b, s.AddPins(b.Context(), store.DefaultTenant, pins))
			for i := range pins {
				list := testenv.Must(s.Pins(b.Context(), store.DefaultTenant, pins[i].URL))(b)
				var statuses []store.PinStatus
				for _, pin := range list {
					if pin.Status == "" {
						statuses = append(statuses, store.PinStatus{ID: pin.ID, Status: verify.Verified, Counts: verify.CountPass, CheckedAt: noon()})
					}
				}
				testenv.OK(b, s.SetStatuses(b.Context(), store.DefaultTenant, statuses))
			}
		}
		for _, what := range []string{"", store.VerifiedPassed, store.VerifiedUnverifiable, store.VerifiedFailed, store.VerifiedUnchecked, "verified"} {
			b.Run(fmt.Sprintf("checked=%t/page=%s", checked, what), func(b *testing.B) {
				for b.Loop() {
					testenv.Must(s.Calls(b.Context(), store.DefaultTenant, &store.Query{Verification: what}))(b)
				}
			})
		}
		b.Run(fmt.Sprintf("checked=%t/conversation", checked), func(b *testing.B) {
			for b.Loop() {
				testenv.Must(s.Conversation(b.Context(), store.DefaultTenant, "conversation-7", nil))(b)
			}
		})
	}
}
