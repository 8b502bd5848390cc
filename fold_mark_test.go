package ibid_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// TestFarMarks checks the maximum number of points whose offsets refer to the text without its file-search marks.
func TestFarMarks(t *testing.T) {
	const limit = 64
	for n, want := range map[int]int{limit: limit, limit + 1: 0} {
		text := "Herons rest. " + strings.Repeat("Herons fish【4:0†c.pdf】. ", n)
		annotation := `,{"type":"file_citation","index":3,"file_id":"file-1","filename":"c.pdf"}`
		body := `{"id":"r","object":"response","created_at":1764000000,"status":"completed","model":"gpt-5","output":[{"type":"message",` +
			`"id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + text +
			`","annotations":[` + strings.Repeat(annotation, n)[1:] + `]}]}]}`
		a, err := ibid.Decode([]byte(body), nil)
		if err != nil {
			t.Fatal(err)
		}
		marked := 0
		for _, c := range a.Citations {
			if c.Covers == ibid.CoversLink {
				marked++
			}
		}
		if marked != want {
			t.Errorf("%d of %d citations have a mark, want %d", marked, n, want)
		}
	}
}
