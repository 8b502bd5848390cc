package support

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// heronPage returns a page of several passages: years, a heading, two paragraphs.
func heronPage(tb testing.TB, texts *snapshot.Texts) *snapshot.Text {
	tb.Helper()
	var b strings.Builder
	b.WriteString("<!doctype html><title>Herons</title>")
	for i := range 60 {
		fmt.Fprintf(&b, "<p>In the year %d the heronry had %d nests, which keepers counted twice.</p>", 1800+i, 17*i+3)
	}
	b.WriteString("<h2>Size</h2><p>A grey heron stands up to 98 cm tall. It weighs two kilograms at most.</p><p>Straße — naïve: “é”.</p>")
	s := &snapshot.Snapshot{Octets: []byte(b.String()), MediaType: "text/html"}
	text, _, err := texts.Of(s)
	testenv.OK(tb, err)
	return text
}

func TestFinder(t *testing.T) {
	texts := &snapshot.Texts{}
	text := heronPage(t, texts)
	list := []Sought{
		{Claim: "A grey heron is up to 98 cm tall.", Text: text},
		{Claim: "The heronry had 343 nests in 1820.", Text: text},
		{Claim: "Zebras quarrel xylophonically.", Text: text},
		{Claim: "A grey heron is up to 98 cm tall."},
	}
	want := []string{
		"A grey heron stands up to 98 cm tall.", "In the year 1820 the heronry had 343 nests, which keepers counted twice.", "", "",
	}
	for _, f := range []Finder{{}, {Texts: texts}, {Texts: texts}, {Checker: &Lexical{}, Texts: texts}} {
		found := testenv.Must(f.Find(t.Context(), list))(t)
		for i := range found {
			if got := text.Content[found[i].Evidence.Start:found[i].Evidence.End]; got != want[i] {
				t.Errorf("%q: evidence %q", list[i].Claim, got)
			}
			if v := &found[i].Verdict; v.IsClose() != (want[i] != "") {
				t.Errorf("%q is %s", list[i].Claim, v.Label)
			}
		}
	}
}

// spans is a checker that returns given evidence.
type spans []Span

func (s spans) Check(_ context.Context, in []Pair) ([]Verdict, error) {
	if s == nil {
		return nil, nil
	}
	verdicts := make([]Verdict, len(in))
	for i := range verdicts {
		verdicts[i] = Verdict{Label: Supported, Evidence: s}
		for k := range s {
			if s[k].End < 0 { // the end of the passage
				verdicts[i].Evidence[k].End = len(in[i].Passages[s[k].Passage].Text)
			}
		}
	}
	return verdicts, nil
}

func (spans) Info() Info { return Info{ID: "spans", Version: "1"} }

func TestFinderOfAnyChecker(t *testing.T) {
	text := heronPage(t, nil)
	list := []Sought{{Claim: "the heronry had nests in the year", Text: text}}
	at := func(passage, start, end int) Span {
		return Span{Passage: passage, Span: ibid.Span{Start: start, End: end}}
	}
	for _, tc := range []struct {
		name string
		says spans
		want string // how the evidence begins
		more string // how it ends
	}{
		{"a piece of the first passage", spans{at(0, 3, 11)}, "the year", "the year"},
		{"two pieces", spans{at(0, 3, 11), at(0, 20, 30)}, "the year", "the year"},
		{"a window over two passages", spans{at(0, 3, -1), at(1, 0, 11)}, "the year", "In the year"},
		{"nothing", spans{}, "", ""},
		{"no passage", spans{at(7, 0, 3)}, "", ""},
		{"before the passage", spans{at(0, -1, 3)}, "", ""},
		{"after it", spans{at(0, 0, 99_999)}, "", ""},
		{"the wrong way round", spans{at(0, 5, 3)}, "", ""},
	} {
		found := testenv.Must((&Finder{Checker: tc.says}).Find(t.Context(), list))(t)
		got := text.Content[found[0].Evidence.Start:found[0].Evidence.End]
		if !strings.HasPrefix(got, tc.want) || !strings.HasSuffix(got, tc.more) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q", tc.name, got)
		}
		if d := cmp.Diff([]Span(nil), found[0].Verdict.Evidence); d != "" {
			t.Errorf("%s: evidence in the passages of the pair: %s", tc.name, d)
		}
	}
	if _, err := (&Finder{Checker: spans(nil)}).Find(t.Context(), list); err == nil {
		t.Error("no error for a checker without verdicts")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(Finder).Find(ctx, list); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// With Texts, the reading of a text is cached.
func BenchmarkFinder(b *testing.B) {
	texts := &snapshot.Texts{}
	text := heronPage(b, texts)
	list := []Sought{{Claim: "A grey heron is up to 98 cm tall.", Text: text}}
	for name, f := range map[string]*Finder{"cold": {}, "warm": {Texts: texts}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				testenv.Must(f.Find(b.Context(), list))(b)
			}
		})
	}
}
