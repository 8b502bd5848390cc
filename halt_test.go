package ibid

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A context that ends while an answer is rendered ends that, whatever the text.
func TestContextEnds(t *testing.T) {
	for _, name := range []string{"marks", "open brackets", "wide table", "code in cells"} {
		a, _ := boundsAnswer(shapes[name](300_000), "T", "https://s.example/p")
		for _, style := range []Style{StyleHTML, StyleLaTeX, StyleFootnotes} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if out := a.Render(&RenderOptions{Style: style, List: true, Context: ctx}); out != "" {
				t.Errorf("%s as %s: rendered in a millisecond", name, style)
			}
			cancel()
		}
	}
}

// A context that has not ended changes nothing, and one that has leaves nothing half done.
func TestContextLeavesResults(t *testing.T) {
	a, _ := boundsAnswer(strings.Repeat("Some *words* [1]. ", 100), "T", "https://s.example/p")
	for _, style := range Styles() {
		if a.Render(&RenderOptions{Style: style}) != a.Render(&RenderOptions{Style: style, Context: t.Context()}) {
			t.Errorf("%s: a context changes the text", style)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := a.Render(&RenderOptions{Context: ended}); got != "" {
		t.Errorf("Render: got %q", got)
	}
	if got := a.Document(&DocumentOptions{Context: ended}); got.Text != "" || got.Version != 0 {
		t.Errorf("Document: got %+v", got)
	}
	if got, err := Decode([]byte("text"), &DecodeOptions{Context: ended}); got.Text != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("Decode: got %q, %v", got.Text, err)
	}
}
