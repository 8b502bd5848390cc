package page

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// newViews returns a page without a store or anything else behind it, to render what it is given.
func newViews(tb testing.TB) *Page {
	tb.Helper()
	p := &Page{closing: tb.Context()}
	p.assets = testenv.Must(readAssets())(tb)
	p.views = testenv.Must(readViews(p.assets))(tb)
	return p
}

// write renders the page of an answer.
func (p *Page) write(tb testing.TB, b *bytes.Buffer, call *store.Call) {
	tb.Helper()
	body := p.answerView(tb.Context(), call, nil)
	v := &view{Title: body.Heading, Section: "answers", Body: body, Reader: true}
	if err := p.views["answer"].ExecuteTemplate(b, "layout", v); err != nil {
		tb.Fatal(err)
	}
}

// citedCall is an answer with n citations of n/2 sources, in about 200 bytes of text for each.
func citedCall(n int) *store.Call {
	a := &ibid.Answer{Provider: "openai", Model: "gpt-5", Complete: true, Finish: ibid.FinishStop}
	for i := range max(n/2, 1) {
		a.Sources = append(a.Sources, ibid.Source{
			ID: fmt.Sprint("s", i), Kind: ibid.Web, Title: fmt.Sprintf("When the snow of the high valleys melts, part %d", i),
			URL: fmt.Sprintf("https://www.s%d.example/rivers/%d.html", i%17, i), PublishedAt: "2025-03-01",
		})
	}
	var b strings.Builder
	for i := range n {
		switch i % 10 {
		case 0:
			fmt.Fprintf(&b, "## Heading number %d\n\n", i)
		case 3:
			b.WriteString("- a list item with **bold words** and `code` in it\n- another [link](https://x.example/a)\n\n")
		}
		s := ibid.Span{Start: b.Len()}
		fmt.Fprintf(&b, "The river %d rises in early spring when the snow of the high valleys melts, and it falls again in late summer.", i)
		s.End = b.Len()
		a.Citations = append(a.Citations, ibid.Citation{
			ID: fmt.Sprintf("c-%012x", i*7919), Span: s, Claim: s, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Origin: ibid.OriginProvider,
			Refs: []ibid.Ref{{
				Source: a.Sources[i%len(a.Sources)].ID,
				Quote:  fmt.Sprintf("In early spring the snow melts in the high valleys, and river %d rises by up to two metres. In late summer it falls.", i),
			}},
		})
		b.WriteString(" It is not known for how long this was so before, nor whether it will be so again.\n\n")
	}
	a.Text = b.String()
	return &store.Call{
		AnswerID: "ans_bench", Run: "run_bench", Conversation: "conv_bench", Started: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		Prompt: []store.Message{{Role: "user", Text: "When do rivers rise?"}}, Answer: a,
	}
}

// The goal: an answer of 20 KB with a hundred citations takes at most two milliseconds.
func BenchmarkAnswerPage(b *testing.B) {
	for _, size := range []int{120, 800} {
		b.Run(fmt.Sprint("quote=", size), func(b *testing.B) {
			p, call := newViews(b), citedCall(100)
			for i := range call.Answer.Citations {
				quote := &call.Answer.Citations[i].Refs[0].Quote
				*quote = strings.Repeat(*quote+" ", size/len(*quote)+1)[:size]
			}
			var out bytes.Buffer
			b.ReportAllocs()
			b.SetBytes(int64(len(call.Answer.Text)))
			for b.Loop() {
				out.Reset()
				p.write(b, &out, call)
			}
			b.ReportMetric(float64(out.Len()), "page-bytes")
		})
	}
}

// The goal: a page with a thousand citations takes at most forty milliseconds.
func BenchmarkAnswerPage1000(b *testing.B) {
	p, call := newViews(b), citedCall(1000)
	var out bytes.Buffer
	p.write(b, &out, call) // its citations are compared with their quotes once
	b.ReportAllocs()
	b.SetBytes(int64(len(call.Answer.Text)))
	began := UsedCPU(b)
	for b.Loop() {
		out.Reset()
		p.write(b, &out, call)
	}
	b.ReportMetric(float64((UsedCPU(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(out.Len()), "page-bytes")
}

// UsedCPU returns the CPU time that this process took so far.
func UsedCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	testenv.OK(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkAnswerView(b *testing.B) {
	p, call := newViews(b), citedCall(100)
	b.ReportAllocs()
	for b.Loop() {
		p.answerView(b.Context(), call, nil)
	}
}

// A page with fifty citations is light, with everything that it loads.
func TestAnswerPageWeight(t *testing.T) {
	p := newViews(t)
	var out bytes.Buffer
	p.write(t, &out, citedCall(50))
	const most = 60 << 10
	for _, coding := range codings {
		page := len(pack(coding, out.Bytes(), 1))
		total := page
		for _, name := range []string{"page.css", "page.js", "ibid.js", "icon.svg"} {
			total += len(p.assets[name].packed[coding])
		}
		t.Logf("%d bytes in %s, of which %d for the page", total, coding, page)
		if total > most {
			t.Errorf("the page and what it loads have %d bytes in %s; they may have %d", total, coding, most)
		}
	}
}

// What compressing a page costs.
func BenchmarkPack(b *testing.B) {
	p := newViews(b)
	var out bytes.Buffer
	p.write(b, &out, citedCall(1000))
	for _, coding := range codings {
		b.Run("by="+coding, func(b *testing.B) {
			b.SetBytes(int64(out.Len()))
			for b.Loop() {
				pack(coding, out.Bytes(), 1)
			}
			b.ReportMetric(float64(len(pack(coding, out.Bytes(), 1))), "bytes")
		})
	}
}
