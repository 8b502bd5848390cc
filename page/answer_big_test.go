package page

import (
	"bytes"
	"testing"
)

func BenchmarkAnswerPage5000(b *testing.B) {
	p, call := newViews(b), citedCall(5000)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		p.write(b, &out, call)
	}
	b.ReportMetric(float64(out.Len()), "page-bytes")
}
