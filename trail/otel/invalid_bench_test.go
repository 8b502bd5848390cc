package otel_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail/otel"
)

// BenchmarkInvalid measures a request of 8 MB, 34 KB compressed, whose spans all have invalid ids.
func BenchmarkInvalid(b *testing.B) {
	one := `{"traceId":"00","spanId":"00","name":"n","attributes":[` + strings.Repeat(`{"key":"a","value":{"intValue":"1"}},`, 100) +
		`{"key":"a","value":{"intValue":"1"}}]}`
	body := fmt.Appendf(nil, `{"resourceSpans":[{"scopeSpans":[{"spans":[%s%s]}]}]}`, strings.Repeat(one+",", 8<<20/len(one)), one)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if set := testenv.Must(otel.ReadSpans(otel.JSON, body, nil))(b); set.Rejected == 0 {
			b.Fatal("nothing is rejected")
		}
	}
}
