package ibid_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// script builds an answer as it arrives: text and other events. Places are given by their words, so that no test
// contains offsets.
type script struct {
	text    string
	message int
	events  []ibid.Event
	answer  ibid.Answer
	cites   map[string]*ibid.Citation
	order   []string
}

// newScript returns a script with three sources: a and b have a URL, c does not.
func newScript() *script {
	s := &script{cites: map[string]*ibid.Citation{}}
	for _, id := range []string{"a", "b", "c"} {
		src := ibid.Source{ID: id, Kind: ibid.Web, Title: "Title " + id, URL: "https://" + id + ".example/"}
		if id == "c" {
			src = ibid.Source{ID: id, Kind: ibid.DocumentKind, Title: "Paper c"}
		}
		s.answer.Sources = append(s.answer.Sources, src)
		s.add(ibid.Event{Kind: ibid.EventSource, Source: &src})
	}
	return s.part(0)
}

func (s *script) add(e ibid.Event) *script {
	s.events = append(s.events, e)
	return s
}

// part begins a part of a message.
func (s *script) part(message int) *script {
	p := ibid.Part{Span: ibid.Span{Start: len(s.text), End: len(s.text)}, Kind: ibid.AnswerPart, Message: message}
	s.message = message
	return s.add(ibid.Event{Kind: ibid.EventPart, Part: &p})
}

// says adds text, with an event for each delta.
func (s *script) says(deltas ...string) *script {
	for _, d := range deltas {
		s.add(ibid.Event{Kind: ibid.EventText, Text: d, At: len(s.text)})
		p := ibid.Part{Span: ibid.Span{Start: len(s.text), End: len(s.text) + len(d)}, Kind: ibid.AnswerPart, Message: s.message}
		if n := len(s.answer.Parts); n > 0 && s.answer.Parts[n-1].Message == s.message {
			s.answer.Parts[n-1].End = p.End
		} else {
			s.answer.Parts = append(s.answer.Parts, p)
		}
		s.text += d
	}
	return s
}

// cite cites the sources for the last occurrence of the words or, with ibid.CoversPoint, for the place after them.
func (s *script) cite(key, words string, covers ibid.Covers, sources ...string) *script {
	at := strings.LastIndex(s.text, words)
	if at < 0 {
		panic("words not found: " + words)
	}
	c := &ibid.Citation{Span: ibid.Span{Start: at, End: at + len(words)}, Covers: covers, Anchor: ibid.AnchorExact}
	c.Claim = c.Span
	if covers == ibid.CoversPoint {
		c.Span.Start = c.Span.End
	}
	for _, id := range sources {
		c.Refs = append(c.Refs, ibid.Ref{Source: id})
	}
	if s.cites[key] == nil {
		s.order = append(s.order, key)
	}
	s.cites[key] = c
	return s.add(ibid.Event{Kind: ibid.EventCitation, Key: key, Citation: c})
}

// claim is cite for a claim.
func (s *script) claim(words string, sources ...string) *script {
	return s.cite(fmt.Sprint(len(s.order)), words, ibid.CoversClaim, sources...)
}

// link is cite for a visible link or mark.
func (s *script) link(words string, sources ...string) *script {
	return s.cite(fmt.Sprint(len(s.order)), words, ibid.CoversLink, sources...)
}

// withdraw withdraws a citation.
func (s *script) withdraw(key string) *script {
	delete(s.cites, key)
	return s.add(ibid.Event{Kind: ibid.EventCitation, Key: key, Withdrawn: true})
}

// end returns all events, that of the answer last.
func (s *script) end() []ibid.Event {
	a := s.answer
	a.Text = s.text
	for _, key := range s.order {
		if c := s.cites[key]; c != nil {
			a.Citations = append(a.Citations, *c)
		}
	}
	slices.SortStableFunc(a.Citations, func(x, y ibid.Citation) int { return cmp.Compare(x.Span.End, y.Span.End) })
	return append(s.events, ibid.Event{Kind: ibid.EventAnswer, Answer: &a})
}

func TestLive(t *testing.T) {
	for _, test := range []struct {
		about  string
		live   ibid.Live
		events []ibid.Event
		want   string
	}{
		{
			about:  "no citations",
			events: newScript().says("Owls hunt", " at night.").end(),
			want:   "Owls hunt at night.\n",
		},
		{
			about:  "no citations, with the list",
			live:   ibid.Live{List: true},
			events: newScript().says("Owls hunt at night.").end(),
			want:   "Owls hunt at night.\n\nNo sources cited.\n",
		},
		{
			about:  "no text",
			events: newScript().end(),
			want:   "",
		},
		{
			about: "after the words, with following words in the same delta",
			events: newScript().says("Owls", " hunt voles and").claim("hunt voles", "a").
				says(" mice.").claim("mice", "c").end(),
			want: "Owls hunt voles[1](https://a.example/) and mice.[2]\n",
		},
		{
			about: "numbers by appearance, groups sorted, each source once",
			live:  ibid.Live{Style: ibid.StylePlain, List: true},
			events: newScript().says("One", " two").claim("One", "c").says(" three.").claim("two three", "b", "c").claim("three", "b", "a").
				end(),
			want: "One[1] two three.[1][2][3]\n\nSources:\n\n[1] Paper c\n[2] Title b — b.example — https://b.example/\n[3] Title a — a.example — https://a.example/\n",
		},
		{
			about: "a word, a number and punctuation that go on",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("The owl").claim("owl", "a").says("et weighs 3").claim("3", "b").says(".5 kg", "”").claim("kg", "c").
				says(", they say.").end(),
			want: "The owlet[1] weighs 3.5[2] kg”,[3] they say.\n",
		},
		{
			about: "never in open code, links, math and emphasis",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("Run `owl", " --hoot").claim("owl", "a").says(" now` or [see ", "the").claim("see", "b").
				says(" page](https://x.example/y), so $a", " + b").claim("a", "c").says("$ is **very", " big").claim("very", "a").
				says(" indeed** now.").end(),
			want: "Run `owl --hoot now`[1] or [see the page](https://x.example/y),[2] so $a + b$[3] is **very big indeed**[1] now.\n",
		},
		{
			about: "in emphasis if a sentence ends in it",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("**Owls hunt.", " They").claim("Owls hunt.", "a").says(" sleep.** So").claim("sleep", "b").
				says(" it is.").end(),
			want: "**Owls hunt.[1] They sleep.**[2] So it is.\n",
		},
		{
			about: "constructs that never close",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("It costs $5").claim("$5", "a").says(" and", " *more").claim("more", "b").says(" than `that,").
				claim("than `that", "c").says(" or", " [this.\n\nNext", " one.").end(),
			want: "It costs $5[1] and *more[2] than `that,[3] or [this.\n\nNext one.\n",
		},
		{
			about: "list items, headings and cells",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("# Owls\n\n- one\n").claim("one\n", "a").says("- two\n\n").claim("two\n\n", "b").says("| x | y |\n|", "---|---|\n| p").
				claim("p", "c").says(" | q |\n").claim("q |\n", "a").claim("Owls", "b").says("| r | s |\n").claim("s", "b").end(),
			want: "# Owls\n\n- one[1]\n- two[2]\n\n| x | y |\n|---|---|\n| p[3] | q[1] |\n| r | s[2] |\n\nAlso cited:\n\n“Owls” [2]\n",
		},
		{
			about:  "after a code block, as a paragraph",
			live:   ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("So:\n\n```\nhoot()\n").claim("hoot()", "a").says("\nhoot()\n", "```\n", "\nDone", ".\n").end(),
			want:   "So:\n\n```\nhoot()\n\nhoot()\n```\n\n[1]\n\nDone.\n",
		},
		{
			about: "a visible link is replaced by its marker",
			events: newScript().says("Owls hunt ", "([a.example](https://a.example/?x=1))").link("([a.example](https://a.example/?x=1))", "a").
				says(". They sleep ([b.example](https://b.example/)). By").link("([b.example](https://b.example/))", "b").says(" day.").end(),
			want: "Owls hunt.[1](https://a.example/) They sleep.[2](https://b.example/) By day.\n",
		},
		{
			about: "marks in the text are replaced one by one if they are cited",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("Owls hunt", "[2]", "[1].").link("[2]", "b").says(" They", " sleep [7]").link("[1]", "a").
				says(" by day.").end(),
			want: "Owls hunt.[1][2] They sleep [7] by day.\n",
		},
		{
			about: "links without citations are held back, but not for long",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("See [x](https://x.example/)", " first.\nThen", " [y](https://y.example/)", " and").
				link("[y](https://y.example/)", "a").says(" rest.").link("[x](https://x.example/)", "b").end(),
			want: "See [x](https://x.example/) first.\nThen [y](https://y.example/)[1] and rest.\n\nAlso cited:\n\n“[x](https://x.example/)” [2]\n",
		},
		{
			about: "too late: the end of the sentence, if that is still to come",
			live:  ibid.Live{Style: ibid.StylePlain, List: true},
			events: newScript().says("Owls hunt voles in the dark, ", "Dr. Who says so. ", "They sleep ").claim("voles", "c").says("by day ", "in trees.").
				claim("They", "a").says(" Really.").end(),
			want: "Owls hunt voles in the dark, Dr. Who says so. They sleep by day in trees.[1] Really.\n\nAlso cited:\n\n“voles” [2]\n\n" +
				"Sources:\n\n[1] Title a — a.example — https://a.example/\n[2] Paper c\n",
		},
		{
			about: "too late: all at the end",
			events: newScript().says("Owls hunt *voles*. ", "They sleep by day.\n\n", "Bats do not.").claim("Owls hunt *voles*.", "a").
				claim("Owls hunt *voles*.", "b", "a").claim("They sleep by day.", "c").claim("Bats do not.", "b").end(),
			want: "Owls hunt *voles*. They sleep by day.\n\nBats do not.[1](https://b.example/)\n\nAlso cited:\n\n" +
				"- “Owls hunt \\*voles\\*.” [1](https://b.example/) [2](https://a.example/)\n- “They sleep by day.” \\[3\\]\n",
		},
		{
			about: "withdrawn before it was written, and after",
			live:  ibid.Live{Style: ibid.StylePlain, List: true},
			events: newScript().says("Owls", " hunt").cite("x", "hunt", ibid.CoversClaim, "a").withdraw("x").says(" voles").
				cite("y", "hunt voles", ibid.CoversClaim, "b").says(" at night,", " and").withdraw("y").says(" mice.").claim("mice", "c").end(),
			want: "Owls hunt voles[1] at night, and mice.[2]\n\nNo longer cited:\n\n“hunt voles” [1]\n\n" +
				"Sources:\n\n[1] Title b — b.example — https://b.example/\n[2] Paper c\n",
		},
		{
			about: "more and fewer sources for what is already written",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("Owls hunt").cite("x", "hunt", ibid.CoversClaim, "a").says(" at").cite("x", "hunt", ibid.CoversClaim, "a", "b").
				says(" night. Bats").cite("x", "hunt", ibid.CoversClaim, "b", "c").says(" too.").end(),
			want: "Owls hunt[1][2] at night.[3] Bats too.\n\nNo longer cited:\n\n“hunt” [1]\n",
		},
		{
			about: "messages",
			live:  ibid.Live{Style: ibid.StylePlain},
			events: newScript().says("I will look.").part(1).says("Owls hunt.\n").claim("Owls hunt.", "a").part(1).says("\nThey sleep.").
				claim("sleep", "b").part(2).says("\nBye").end(),
			want: "I will look.\n\nOwls hunt.[1]\n\nThey sleep.[2]\n\nBye\n",
		},
		{
			about: "other candidates",
			events: newScript().says("Owls hunt").add(ibid.Event{Kind: ibid.EventText, Candidate: 1, Text: "Bats"}).
				add(ibid.Event{Kind: ibid.EventCitation, Candidate: 1, Key: "z", Citation: &ibid.Citation{Refs: []ibid.Ref{{Source: "a"}}}}).
				says(" voles.").end(),
			want: "Owls hunt voles.\n",
		},
		{
			about: "citations without a place",
			live:  ibid.Live{Style: ibid.StylePlain, List: true},
			events: newScript().says("Owls hunt.").cite("x", "hunt", ibid.CoversClaim, "c").
				add(ibid.Event{Kind: ibid.EventCitation, Key: "x", Citation: &ibid.Citation{Anchor: ibid.AnchorNone, Refs: []ibid.Ref{{Source: "c"}}}}).
				end(),
			want: "Owls hunt.\n\nSources:\n\n[1] Paper c\n",
		},
		{
			about:  "ids",
			live:   ibid.Live{ByID: true, List: true},
			events: newScript().says("Owls hunt", " voles.").claim("hunt", "c").claim("voles", "a").end(),
			want:   "Owls hunt[c] voles.[a](https://a.example/)\n\nSources:\n\n1. Paper c\n2. [Title a](https://a.example/) — a.example\n",
		},
		{
			about:  "footnotes",
			live:   ibid.Live{Style: ibid.StyleFootnotes},
			events: newScript().says("Owls hunt", " voles.").claim("hunt", "c").claim("voles", "a").end(),
			want:   "Owls hunt[^1] voles.[^2]\n\n[^1]: Paper c\n[^2]: Title a — a.example <https://a.example/>\n",
		},
		{
			about:  "HTML in one piece",
			live:   ibid.Live{Style: ibid.StyleHTML},
			events: newScript().says("Owls", " *hunt*.").end(),
			want:   "<p>Owls <em>hunt</em>.</p>\n",
		},
		{
			about:  "text that ends in code, which the lists close",
			live:   ibid.Live{Style: ibid.StylePlain, List: true},
			events: newScript().says("Owls.").claim("Owls", "c").says(" So:\n\n```\nhoot()").end(),
			want:   "Owls.[1] So:\n\n```\nhoot()\n```\n\nSources:\n\n[1] Paper c\n",
		},
		{
			about: "held back no longer than Hold",
			live:  ibid.Live{Style: ibid.StylePlain, Hold: 16},
			events: newScript().says("Owls `hunt", " in").claim("hunt", "a").says(" the dark of the night when all are").says(" asleep` they say.").
				end(),
			want: "Owls `hunt in the dark of the night when all are asleep`[1] they say.\n",
		},
	} {
		t.Run(test.about, func(t *testing.T) {
			var out bytes.Buffer
			live := test.live
			live.W = &out
			for _, e := range test.events {
				live.Event(e)
			}
			if err := live.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if diff := gocmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

// Text already written stays when the provider corrects it; later citations of it are in the list, with the new words.
func TestLiveCorrection(t *testing.T) {
	var out strings.Builder
	live := ibid.Live{W: &out, Style: ibid.StylePlain}
	s := newScript().says("Owls hunt moles. ", "So they say. ").part(0)
	s.says("Bats", " too.")
	const before, after = "Owls hunt moles. So they say. ", "Owls hunt voles and mice. So they say. "
	s.text = after + s.text[len(before):]
	s.add(ibid.Event{Kind: ibid.EventPart, Corrected: true, Part: &ibid.Part{Span: ibid.Span{Start: 0, End: len(after)}}, Text: after})
	s.claim("voles and mice", "a").claim("Bats too", "b").says(" And cats.").claim("cats", "c")
	for _, e := range s.end() {
		live.Event(e)
	}
	const want = "Owls hunt moles. So they say. Bats too.[1] And cats.[2]\n\nAlso cited:\n\n“voles and mice” [3]\n"
	if diff := gocmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// A truncated response is closed without an answer.
func TestLiveClose(t *testing.T) {
	var out strings.Builder
	live := ibid.Live{W: &out, Style: ibid.StylePlain, List: true}
	for _, e := range newScript().says("Owls", " hunt", " vo").claim("hunt", "b").events {
		live.Event(e)
	}
	for range 2 {
		if err := live.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	live.Event(ibid.Event{Kind: ibid.EventText, Text: "late"})
	const want = "Owls hunt[1] vo\n\nSources:\n\n[1] Title b — b.example — https://b.example/\n"
	if diff := gocmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// Numbers continue across the answers of a conversation.
func TestLiveNumbering(t *testing.T) {
	var out strings.Builder
	numbering := ibid.Numbering{}
	for _, events := range [][]ibid.Event{
		newScript().says("Owls.").claim("Owls", "b").end(),
		newScript().says("Bats, owls.").claim("Bats", "a").claim("owls", "b").end(),
	} {
		live := ibid.Live{W: &out, Style: ibid.StylePlain, Numbering: &numbering}
		for _, e := range events {
			live.Event(e)
		}
	}
	if got, want := out.String(), "Owls.[1]\nBats,[2] owls.[1]\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	a := ibid.Source{Kind: ibid.Web, URL: "https://a.example/"}
	if got := numbering.Number(a.Key()); got != 2 {
		t.Errorf("the number of a is %d, want 2", got)
	}
}

// failingWriter accepts left bytes.
type failingWriter struct {
	left int
	got  strings.Builder
}

var errFull = errors.New("full")

func (f *failingWriter) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	f.left -= n
	f.got.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestLiveWriteError(t *testing.T) {
	w := failingWriter{left: 6}
	live := ibid.Live{W: &w, List: true}
	for _, e := range newScript().says("Owls hunt", " voles at night", " and sleep", " by day.").claim("night", "a").end() {
		live.Event(e)
	}
	if err := live.Err(); !errors.Is(err, errFull) {
		t.Errorf("Err: %v", err)
	}
	if err := live.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
	if got := w.got.String(); got != "Owls h" && got != "Owls" {
		t.Errorf("wrote %q", got)
	}
}

// Words are written as soon as they are certain, not at the end.
func TestLiveIsLive(t *testing.T) {
	var out strings.Builder
	live := ibid.Live{W: &out, Style: ibid.StylePlain}
	s := newScript()
	for _, step := range []struct {
		events []ibid.Event
		want   string
	}{
		{newScript().says("Owls hunt").events, "Owls"},
		{newScript().says(" voles").events, " hunt"},
		{newScript().says(". And").events, " voles."},
		{s.says("Owls hunt voles. And").claim("voles.", "a").events[len(s.events)-1:], ""},
		{newScript().says(" sleep.").events, "[1] And"},
		{newScript().says(" `code").events, " sleep."},
		{newScript().says(" and on").events, " `code and"},
	} {
		out.Reset()
		for _, e := range step.events {
			live.Event(e)
		}
		if got := out.String(); got != step.want {
			t.Errorf("after %q: wrote %q, want %q", step.events[len(step.events)-1].Text, got, step.want)
		}
	}
}

// A link waits for its citation until none is expected any more.
func TestLiveHoldsLinks(t *testing.T) {
	var out strings.Builder
	live := ibid.Live{W: &out, Style: ibid.StylePlain}
	for _, step := range []struct{ delta, want string }{
		{"See ([mo", "See"},
		{"re](https://x", ""},
		{".example)) there", ""},
		{".\n", ""},
		{"Bye bye", " ([more](https://x.example)) there.\nBye"},
		{" [link](u), later", " bye [link](u),"},
	} {
		out.Reset()
		live.Event(ibid.Event{Kind: ibid.EventText, Text: step.delta})
		if got := out.String(); got != step.want {
			t.Errorf("after %q: wrote %q, want %q", step.delta, got, step.want)
		}
	}
}

// cohereFast is a stream of Cohere's fast mode: each citation follows its words.
const cohereFast = `data: {"id":"r","type":"message-start","delta":{"message":{"role":"assistant","content":[],"citations":[]}}}

data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"The barn"}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" owl"}}}}

data: {"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":4,"end":12,"text":"barn owl","sources":[{"type":"document","id":"100","document":{"id":"100","title":"Owls of the north"}}],"type":"TEXT_CONTENT"}}}}

data: {"type":"citation-end","index":0}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" hunts by"}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" ear"}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"text":" alone."}}}}

data: {"type":"citation-start","index":1,"delta":{"message":{"citations":{"start":22,"end":32,"text":"ear alone.","sources":[{"type":"document","id":"101","document":{"id":"101","title":"Hearing"}}],"type":"TEXT_CONTENT"}}}}

data: {"type":"citation-end","index":1}

data: {"type":"content-end","index":0}

data: {"type":"message-end","delta":{"finish_reason":"COMPLETE"}}

`

// A stream of Cohere's fast mode, as in its documentation.
func ExampleLive() {
	live := ibid.Live{W: os.Stdout, Style: ibid.StylePlain, ByID: true}
	decoder := ibid.Decoder{OnEvent: live.Event}
	_, _ = decoder.Write([]byte(cohereFast)) // as the bytes arrive
	_ = decoder.Close()
	if err := live.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: The barn owl [100] hunts by ear alone. [101]
}
