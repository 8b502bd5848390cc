package ibid

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"

	"github.com/ibidhq/ibid/internal/markdown"
)

// FuzzLive writes any text in any deltas, with citations that arrive at any time, and checks the output: see checkLive.
func FuzzLive(f *testing.F) {
	for _, s := range liveSeeds {
		for _, spans := range []string{"\x00\xff\x00\x00", "\x00\x10\x00\x00\x10\x80\x01\x02\x40\x60\x05\x20\x90\xf0\x02\xff", "\x20\x30\x04\x01\x50\x70\x08\x00\x80\x90\x0c\x00\xa0\xff\x01\x00"} {
			f.Add(s, []byte(spans), []byte("\x03\x01\x09\x20"), uint8(0))
			f.Add(s, []byte(spans), []byte("\x01"), uint8(16))
		}
	}
	f.Fuzz(func(t *testing.T, text string, spans, cuts []byte, hold uint8) {
		if len(text) > 2000 || len(spans) > 60 || len(cuts) > 200 || !utf8.ValidString(text) ||
			strings.ContainsAny(text, "\x00\v\f\u0085§\u2028\u2029") {
			t.Skip()
		}
		checkLive(t, liveCase{text, spans, cuts, int(hold)})
	})
}

var liveSeeds = []string{
	"Rivers rise in spring. They fall in **late summer**, see `flow()` and [the gauge](https://gauge.example/a).",
	"# Head #\n\n- one *two*\n- three\n  - four `x`\n\n1. a\n2. b\n\n> quote\n> more\n",
	"| a | b |\n|---|:-:|\n| c *d* | `e\\|f` |\n\nafter",
	"```go\nx := a[0]\n\ny\n```\n\ntext\n\n    indented\n",
	"Inline $a_b$ and $$c$$ and \\(d\\) and \\[e\\].\n\n$$\nf\n- g\n$$\n",
	"<div>\nraw\n\n</div>\n\nsome <b>bold</b> <code>x y</code> &amp; \\* end\\\nnext  \nlast",
	"他赢了。真的！好 สวัสดี e\u0301e\u0301 👩‍👩‍👧 U.S. Dr. Who",
	"Wow! See https://x.example/a. Or www.y.example, me@z.example!",
	"See [the gauge][g], [x][] and a[0][i] or [1][2].",
	"Il dit «\u00a0oui\u00a0» et ‹\u202fnon\u202f›, «\u00a0peut-être.\u00a0» C’est 3\u00a0€\u202f!",
	"fact ([a](https://s0.example/p)). Fact [1][2]. [T](https://s1.example/p) says so",
	"***a** b* ~~c~~ __d__ _e_f *g\n* h* i",
	"- [ ] task\n- [ ] done\n\n---\n\nTitle\n===\n\n<!-- open\n\nend -->\n\nmore\r\n\r\nlast",
	"It costs $5 or ~6 *7, `open code. And [open link. And <open tag. Next one.\nNew line goes on.\n\nNew block.",
}

// liveCase is an answer and the way it arrives.
type liveCase struct {
	text  string
	spans []byte // four bytes each: start and end as shares of the text, kind, and lateness
	cuts  []byte // lengths of the deltas, used cyclically
	hold  int
}

// answer returns the answer. The ids of its sources occur in no text.
func (c liveCase) answer(links bool) *Answer {
	a := spanAnswer(c.text, c.spans, 4, "§%d§", links)
	a.Complete = true
	for i := range a.Citations {
		a.Citations[i].Claim = a.Citations[i].Span
	}
	return a
}

// play sends the events of the answer to live. A citation arrives its lateness in bytes of text after its end, or at
// once if prompt.
func (c liveCase) play(live *Live, a *Answer, prompt bool) {
	told := make([]bool, len(a.Citations))
	tell := func(at int) {
		for i := range a.Citations {
			due := a.Citations[i].Span.End
			if !prompt {
				due += int(c.spans[4*i+3])
			}
			if !told[i] && due <= at {
				told[i] = true
				live.Event(Event{Kind: EventCitation, Key: fmt.Sprint(i), Citation: &a.Citations[i]})
			}
		}
	}
	for i := range a.Sources {
		live.Event(Event{Kind: EventSource, Source: &a.Sources[i]})
	}
	live.Event(Event{Kind: EventPart, Part: &Part{}})
	tell(0)
	for at, k := 0, 0; at < len(c.text); k++ {
		end := len(c.text)
		if len(c.cuts) > 0 {
			end = min(end, at+1+int(c.cuts[k%len(c.cuts)]))
		}
		if prompt {
			for i := range a.Citations {
				if e := a.Citations[i].Span.End; e > at {
					end = min(end, e)
				}
			}
		}
		for end < len(c.text) && !utf8.RuneStart(c.text[end]) {
			end++
		}
		live.Event(Event{Kind: EventText, Text: c.text[at:end], At: at})
		at = end
		tell(at)
	}
	tell(1 << 20)
	live.Event(Event{Kind: EventAnswer, Answer: a})
}

// checkLive checks the output in every style.
func checkLive(t *testing.T, c liveCase) {
	t.Helper()
	for _, style := range []Style{StyleMarkdown, StylePlain, StyleFootnotes, StyleHTML} {
		for _, links := range []bool{false, true} {
			a := c.answer(links)
			var out bytes.Buffer
			live := Live{W: &out, Style: style, ByID: style == StylePlain, List: true, Hold: c.hold}
			c.play(&live, a, false)
			if err := live.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			if style == StylePlain && !links {
				checkLiveText(t, a, out.String())
			}
			if style == StylePlain {
				checkLiveSources(t, a, out.String())
			}
		}
	}
}

// checkLiveText checks that the output has the text byte for byte, except for white space next to markers, and that the
// markers are in valid places.
func checkLiveText(t *testing.T, a *Answer, out string) {
	t.Helper()
	const space = " \t\r\n"
	places := places{markdown.Parse(a.Text)}
	text, here := a.Text, map[string]bool{} // the sources marked at this place
	own := false                            // the marker is a paragraph
	for i := 0; text != ""; {
		if i >= len(out) {
			t.Fatalf("text %q is incomplete: %q", a.Text, out)
		}
		gap := len(out[i:]) - len(strings.TrimLeft(out[i:], space))
		if rest := out[i+gap:]; strings.HasPrefix(rest, "[§") {
			id := rest[1:strings.IndexByte(rest, ']')]
			if strings.Contains(out[i:i+gap], "\n\n") {
				clear(here)
			}
			if here[id] {
				t.Errorf("%s twice at %d: %q", id, len(a.Text)-len(text), out)
			}
			here[id] = true
			if own = strings.Contains(out[i:i+gap], "\n") || own && len(here) > 1; !own && text != a.Text {
				checkLivePlace(t, places, len(a.Text)-len(text), out)
			}
			i += gap + len(id) + 2
			continue
		}
		if len(here) > 0 {
			clear(here)
			i += gap
			text = strings.TrimLeft(text, space)
			continue
		}
		if out[i] != text[0] && strings.Trim(text[:1], space) == "" && strings.Contains(space, out[i:i+1]) {
			i++ // of a blank line before a marker
			continue
		}
		at := len(a.Text) - len(text)
		if out[i] == '\n' && text[0] != '\n' && slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Start == at && at > 0 }) {
			i++ // between messages
			continue
		}
		if out[i] != text[0] {
			t.Fatalf("byte %d of %q is not in the text %q", i, out, a.Text)
		}
		i++
		text = text[1:]
	}
}

// checkLivePlace checks that at is a valid place for a marker.
func checkLivePlace(t *testing.T, p places, at int, out string) {
	t.Helper()
	if s, ok := p.SolidAround(at); ok {
		t.Errorf("marker at %d is in %q of %q: %q", at, p.Text[s.Start:s.End], p.Text, out)
	}
	line, ok := p.LineAt(at)
	if !ok {
		t.Errorf("marker at %d is in no line of %q: %q", at, p.Text, out)
		return
	}
	if end := prose.WordEnd(p.Text[:line.End], at); end != at {
		t.Errorf("marker at %d is in a word of %q: %q", at, p.Text, out)
	}
}

// checkLiveSources checks that every cited source is shown and listed.
func checkLiveSources(t *testing.T, a *Answer, out string) {
	t.Helper()
	_, list, _ := strings.Cut(out, "Sources:\n\n")
	body := strings.TrimSuffix(out, "Sources:\n\n"+list)
	for i := range a.Citations {
		id := a.Citations[i].Refs[0].Source
		if !strings.Contains(body, "["+id+"]") && !slices.ContainsFunc(a.Citations, func(c Citation) bool { return c.Refs[0].Source == id && c.Span.Len() == 0 }) {
			t.Errorf("%s is not shown: %q", id, out)
		}
		if !strings.Contains(list, "["+id+"]") {
			t.Errorf("%s is not listed: %q", id, out)
		}
	}
}

// TestLivePrompt checks that the output equals Render's if each citation arrives at once and nothing is given up,
// however the text is split.
func TestLivePrompt(t *testing.T) {
	for _, text := range liveSeeds {
		for start := range len(text) {
			for _, size := range []int{0, 7, 30} {
				end := min(len(text), start+size)
				if !utf8.RuneStart(text[start]) || end < len(text) && !utf8.RuneStart(text[end]) {
					continue
				}
				cite := Citation{Span: Span{start, end}, Covers: CoversClaim, Anchor: AnchorExact, Refs: []Ref{{Source: "§0§"}}}
				a := &Answer{Text: text, Sources: []Source{{ID: "§0§", URL: "https://s.example"}}, Citations: []Citation{cite}}
				want := a.Render(nil)
				for _, cut := range []byte{0, 2, 50} {
					var out strings.Builder
					live := Live{W: &out, Hold: 1 << 20}
					liveCase{text: text, cuts: []byte{cut}}.play(&live, a, true)
					if got := strings.TrimSuffix(out.String(), "\n"); got != strings.TrimSuffix(want, "\n") {
						t.Errorf("%d–%d in deltas of %d:\n got %q\nwant %q", start, end, cut+1, got, want)
					}
				}
			}
		}
	}
}
