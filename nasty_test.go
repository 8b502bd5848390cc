package ibid_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// nastyFile is a file of testdata/nasty: streams that combine several difficulties, each with the answer that a careful
// reader expects. A file begins with
//
//	unit bytes               what spans count; also code-points and utf-16
//	span JSON                replaces ⟪"words"⟫ in an event, ⟪"words"#2⟫ for the second occurrence: $s and $e are where
//	                         they begin and end in the texts (of events whose name begins with text), $w the words,
//	                         $i their last unit;
//	                         ⟨"words"⟩ is only their end
//	wire LIST                the default of ": LIST", see encodeNasty
//	def NAME JSON            an event, or a part of one, with its arguments as $1, $2, …
//
// followed by, for each stream,
//
//	## NAME                  and what is difficult about it
//	: LIST                   how its events are encoded
//	> NAME JSON ¦ JSON…      an event; its arguments may have parts, NAME("string";JSON;…). Also JSON or [DONE].
//	> base                   the texts start again
//	= TEXT                   a line of the answer as markdown with footnotes; & TEXT: one of the next candidate
//	~ "words" 1 2            a citation and its sources' numbers; of a link or point link or point and its claim; nowhere
//	! CODE                   an issue
//	% stop                   the finish, if not stop; with broken: not complete; with request JSON: the request
//	| TEXT                   a line of Live's plain text, if it differs from Render's. late: citations arrive too late
//	? TEXT                   why an unexpected result is right; live: why Live's output must differ from Render's
//
// ⟦202E⟧ stands for the code point.
type nastyFile struct {
	unit, span, wire string
	defs             map[string]string
	records          []*nastyRecord
}

type nastyRecord struct {
	name    string
	file    *nastyFile
	wire    string
	lines   []string // of events
	events  [][]byte
	want    map[byte][]string
	finish  string
	broken  bool
	request []byte
}

var hexRune = regexp.MustCompile(`⟦[0-9A-F]+⟧`)

func readNasty(t *testing.T, path string) *nastyFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &nastyFile{defs: map[string]string{}}
	var r *nastyRecord
	for line := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		line = hexRune.ReplaceAllStringFunc(line, func(s string) string {
			n, _ := strconv.ParseUint(strings.Trim(s, "⟦⟧"), 16, 32)
			return string(rune(n))
		})
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "##":
			r = &nastyRecord{name: rest, file: f, wire: f.wire, want: map[byte][]string{}, finish: "stop"}
			f.records = append(f.records, r)
		case r == nil && word == "unit":
			f.unit = rest
		case r == nil && word == "span":
			f.span = rest
		case r == nil && word == "wire":
			f.wire = rest
		case r == nil && word == "def":
			name, event, _ := strings.Cut(rest, " ")
			f.defs[name] = event
		case r == nil || word == "":
		case word == ":":
			r.wire = rest
		case word == ">":
			r.lines = append(r.lines, rest)
		case word == "%" && strings.HasPrefix(rest, "request "):
			r.request = []byte(strings.TrimPrefix(rest, "request "))
		case word == "%":
			rest, r.broken = strings.CutPrefix(rest, "broken")
			r.finish = strings.TrimSpace(rest)
		case strings.Contains("=&~!|?", word):
			r.want[word[0]] = append(r.want[word[0]], rest)
		}
	}
	for _, r := range f.records {
		r.expand(t)
	}
	return f
}

var (
	nastyCall  = regexp.MustCompile(`\b([a-z]+)\(("(?:[^"\\]|\\.)*"(?:#\d)?);([^)]*)\)`)
	nastyWords = regexp.MustCompile(`[⟪⟨]("(?:[^"\\]|\\.)*")(?:#(\d))?[⟫⟩]`)
)

// expand expands the lines to events.
func (r *nastyRecord) expand(t *testing.T) {
	t.Helper()
	for lines := r.lines; len(lines) > 0; {
		n := slices.Index(lines, "base")
		if n < 0 {
			n = len(lines)
		}
		var text strings.Builder
		for _, line := range lines[:n] {
			if name, arg, _ := strings.Cut(line, " "); strings.HasPrefix(name, "text") {
				arg, _, _ = strings.Cut(arg, " ¦ ")
				text.WriteString(unquoteNasty(t, arg))
			}
		}
		for _, line := range lines[:n] {
			r.events = append(r.events, []byte(r.file.expand(t, line, text.String())))
		}
		lines = lines[min(n+1, len(lines)):]
	}
}

// expand expands a line to an event.
func (f *nastyFile) expand(t *testing.T, line, text string) string {
	t.Helper()
	fill := func(event string, args []string) string {
		for i, arg := range args {
			event = strings.ReplaceAll(event, "$"+strconv.Itoa(i+1), arg)
		}
		return event
	}
	name, args, _ := strings.Cut(line, " ")
	if event, ok := f.defs[name]; ok {
		line = fill(event, strings.Split(args, " ¦ "))
	}
	line = nastyCall.ReplaceAllStringFunc(line, func(call string) string {
		m := nastyCall.FindStringSubmatch(call)
		if f.defs[m[1]] == "" {
			return call
		}
		return fill(f.defs[m[1]], append([]string{m[2]}, strings.Split(m[3], ";")...))
	})
	line = nastyWords.ReplaceAllStringFunc(line, func(span string) string {
		m := nastyWords.FindStringSubmatch(span)
		nth, _ := strconv.Atoi(m[2])
		words, at := unquoteNasty(t, m[1]), 0
		for nth = max(nth, 1); ; nth-- {
			k := strings.Index(text[at:], words)
			if k < 0 {
				t.Fatalf("%q not found in %q", words, text)
			}
			if at += k; nth == 1 {
				break
			}
			at += len(words)
		}
		count := map[string]func(string) int{
			"bytes": func(s string) int { return len(s) }, "code-points": utf8.RuneCountInString,
			"utf-16": func(s string) int { return len(utf16.Encode([]rune(s))) },
		}[f.unit]
		end := strconv.Itoa(count(text[:at+len(words)]))
		if strings.HasPrefix(span, "⟨") {
			return end
		}
		return strings.NewReplacer("$s", strconv.Itoa(count(text[:at])), "$e", end, "$w", m[1],
			"$i", strconv.Itoa(count(text[:at+len(words)])-1)).Replace(f.span)
	})
	if line != "[DONE]" && line[0] != '"' && !json.Valid([]byte(line[max(0, strings.IndexByte(line, '{')):])) {
		t.Fatalf("%s is not an event", line)
	}
	return line
}

func unquoteNasty(t *testing.T, quoted string) string {
	t.Helper()
	var s string
	if err := json.Unmarshal([]byte(quoted), &s); err != nil {
		t.Fatalf("%s: %v", quoted, err)
	}
	return s
}

var nastyType = regexp.MustCompile(`"(?:event_)?type": ?"([^"]+)"`)

// encodeNasty encodes events as wire specifies: sse, raw (each is a string, a piece of text), array, lines or aws; for
// sse and raw also crlf, cr and bom; and for sse named (event lines), comments (also empty data, ids and retries),
// nospace (after data:) and folded (an event on two data lines).
func encodeNasty(t *testing.T, wire string, events [][]byte, end bool) []byte {
	t.Helper()
	has := func(option string) bool { return slices.Contains(strings.Fields(wire), option) }
	switch closing := ""; {
	case has("aws"):
		return encodeAWS(t, bytes.Join(events, []byte("\n")))
	case has("lines"):
		return append(bytes.Join(events, []byte("\n")), '\n')
	case has("array"):
		if end {
			closing = "\n]"
		}
		return fmt.Appendf(nil, "[%s%s", bytes.Join(events, []byte("\n,\r\n")), closing)
	}
	var b strings.Builder
	for i, event := range events {
		data := string(event)
		if has("raw") {
			b.WriteString(unquoteNasty(t, data))
			continue
		}
		if has("comments") {
			fmt.Fprintf(&b, ": ping 🏓 %d\n\ndata:\n\ndata: \n\nid: %d\nretry: 100\nnobody: knows\n", i, i)
		}
		if m := nastyType.FindStringSubmatch(data); has("named") && m != nil {
			b.WriteString("event: " + m[1] + "\n")
		}
		if has("folded") && strings.HasPrefix(data, "{") {
			data = "{\ndata: " + data[1:]
		}
		b.WriteString("data: " + data + "\n\n")
	}
	out := b.String()
	if has("nospace") {
		out = strings.ReplaceAll(out, "data: ", "data:")
	}
	if has("crlf") {
		out = strings.ReplaceAll(out, "\n", "\r\n")
	} else if has("cr") {
		out = strings.ReplaceAll(out, "\n", "\r")
	}
	if has("bom") {
		out = "\ufeff" + out
	}
	return []byte(out)
}

// TestNasty decodes every stream whole, byte by byte and in random pieces, and compares the result with its record; see
// [nastyFile].
func TestNasty(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "nasty", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	streams := 0
	for _, path := range files {
		f := readNasty(t, path)
		streams += len(f.records)
		for _, r := range f.records {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt")+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				v := &vector{options: vectorOptions{decode: ibid.DecodeOptions{Request: r.request}}}
				whole := v.read(t, "stream", encodeNasty(t, r.wire, r.events, true))
				r.compare(t, whole)
				r.checkCuts(t, whole)
				r.checkLive(t, whole)
			})
		}
	}
	t.Logf("%d streams", streams)
}

// compare compares an answer with the record.
func (r *nastyRecord) compare(t *testing.T, whole *reading) {
	t.Helper()
	a := whole.answer
	check := func(what string, want []string, got string) {
		t.Helper()
		if diff := gocmp.Diff(strings.Join(want, "\n"), strings.TrimRight(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", what, diff, got)
		}
	}
	check("markdown", r.want['='], a.Render(&ibid.RenderOptions{Style: ibid.StyleFootnotes}))
	var others, cites, issues []string
	for _, other := range a.Alternatives {
		others = append(others, other.Render(&ibid.RenderOptions{Style: ibid.StyleFootnotes}))
	}
	check("alternatives", r.want['&'], strings.Join(others, "\n"))
	document := a.Document(nil)
	for i := range document.Citations {
		c := &document.Citations[i]
		if n := len(cites); n > 0 && c.Group == document.Citations[i-1].Group {
			cites[n-1] += " " + strconv.Itoa(c.Index)
			continue
		}
		line := "nowhere"
		if c.TextStart != nil {
			line = strconv.Quote(a.Text[*c.TextStart:*c.TextEnd])
			if c.Covers == ibid.CoversLink || c.Covers == ibid.CoversPoint {
				line = string(c.Covers) + " " + strconv.Quote(a.Text[*c.ClaimStart:*c.ClaimEnd])
			}
		}
		cites = append(cites, line+" "+strconv.Itoa(c.Index))
	}
	want := slices.Clone(r.want['~'])
	for i := range want { // with the characters themselves, or escaped as in Go
		head, rest, _ := strings.Cut(want[i], `"`)
		if quoted, tail, ok := cutLast(rest, `"`); ok {
			words, err := strconv.Unquote(`"` + quoted + `"`)
			if err != nil {
				t.Fatalf("%s: %v", want[i], err)
			}
			want[i] = head + strconv.Quote(words) + tail
		}
	}
	check("citations", want, strings.Join(cites, "\n"))
	for _, is := range a.Issues {
		issues = append(issues, is.Code)
	}
	check("issues", r.want['!'], strings.Join(issues, "\n"))
	if string(a.Finish) != r.finish || a.Complete == r.broken {
		t.Errorf("finish %q, complete %v, want %q, %v", a.Finish, a.Complete, r.finish, !r.broken)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// checkCuts truncates the stream after every event: only the whole answer is complete (except in bedrock-rag, which has
// no end mark), the text is a prefix, and every citation that had a place by then keeps it, also in the whole answer.
func (r *nastyRecord) checkCuts(t *testing.T, whole *reading) {
	t.Helper()
	corrected := slices.ContainsFunc(whole.answer.Issues, func(is ibid.Issue) bool { return is.Code == "text-corrected" })
	for n := range r.events {
		input := encodeNasty(t, r.wire, r.events[:n], false)
		before, closing := map[string]string{}, false
		d := ibid.Decoder{Options: ibid.DecodeOptions{Request: r.request}, OnEvent: func(e ibid.Event) {
			if e.Kind == ibid.EventCitation && e.Candidate == 0 && !closing {
				if delete(before, e.Key); !e.Withdrawn && e.Citation.Placed() {
					before[e.Key] = placeLine(e.Citation)
				}
			}
		}}
		_, _ = d.Write(input)
		closing = true
		_ = d.Close()
		cut, _ := d.Answer()
		if cut.Format == ibid.Generic || corrected {
			continue // format not yet known, or text replaced
		}
		if cut.Complete && cut.Format != "bedrock-rag" && cut.Text != whole.answer.Text {
			t.Errorf("after event %d: complete, with the text %q", n, cut.Text)
		}
		if !beginsAnswer(whole.answer, cut.Text) {
			t.Errorf("after event %d: text %q", n, cut.Text)
		}
		kept := func(what string, a *ibid.Answer) {
			for key, place := range before {
				if !slices.ContainsFunc(a.Citations, func(c ibid.Citation) bool { return placeLine(&c) == place }) {
					t.Errorf("after event %d: citation %s at %s is not in %s", n, key, place, what)
				}
			}
		}
		kept("the answer so far", cut)
		kept("the whole answer", whole.answer)
	}
}

// placeLine returns the place and the sources of a citation.
func placeLine(c *ibid.Citation) string {
	bare := ibid.Citation{Span: c.Span, Refs: c.Refs, Anchor: c.Anchor}
	bare.Claim = bare.Span
	return sortedCitationLine(&bare)
}

// checkLive writes the stream while it is decoded: the output must equal Render's, or that of the record. If every
// citation arrives with its words, it must equal Render's in each style.
func (r *nastyRecord) checkLive(t *testing.T, whole *reading) {
	t.Helper()
	a := whole.answer
	plain := strings.TrimRight(a.Render(&ibid.RenderOptions{Style: ibid.StylePlain}), "\n")
	var out bytes.Buffer
	live := ibid.Live{W: &out, Style: ibid.StylePlain}
	for _, e := range whole.events {
		live.Event(e)
	}
	got := strings.TrimRight(out.String(), "\n")
	switch want := strings.Join(r.want['|'], "\n"); {
	case want == "late":
		bare := *a
		bare.Citations = nil
		shown, _, _ := strings.Cut(got, "Also cited:\n\n")
		words := func(s string) string {
			return strings.Join(strings.Fields(regexp.MustCompile(` ?\[\d+\]`).ReplaceAllString(s, "")), " ")
		}
		if diff := gocmp.Diff(words(bare.Render(&ibid.RenderOptions{Style: ibid.StylePlain})), words(shown)); diff != "" {
			t.Errorf("live, without marks (-want +got):\n%s", diff)
		}
	case want != "" && got != want, want == "" && got != plain:
		t.Errorf("live (-want +got):\n%s", gocmp.Diff(cmp.Or(want, plain), got))
	}
	early := slices.ContainsFunc(r.want['?'], func(s string) bool { return strings.HasPrefix(s, "live: ") })
	a.Render(&ibid.RenderOptions{Marker: func(m ibid.Marker) string {
		for _, item := range m.Items {
			early = early || slices.ContainsFunc(item.Citations, func(i int) bool { return m.At < a.Citations[i].Span.Start })
		}
		return ""
	}})
	if early { // a marker before its words, which were written when the citation arrived
		return
	}
	for _, style := range []ibid.Style{ibid.StyleMarkdown, ibid.StylePlain, ibid.StyleFootnotes, ibid.StyleHTML, ibid.StyleLaTeX} {
		out.Reset()
		playPrompt(&ibid.Live{W: &out, Style: style, Hold: 1 << 20}, a)
		want := a.Render(&ibid.RenderOptions{Style: style})
		if diff := gocmp.Diff(strings.TrimRight(want, "\n"), strings.TrimRight(out.String(), "\n")); diff != "" {
			t.Errorf("live, %s, each citation at once (-want +got):\n%s", style, diff)
		}
	}
}

// playPrompt sends the events of an answer to live, each citation as soon as its words are there.
func playPrompt(live *ibid.Live, a *ibid.Answer) {
	for i := range a.Sources {
		live.Event(ibid.Event{Kind: ibid.EventSource, Source: &a.Sources[i]})
	}
	told := 0
	tell := func(at int) {
		for ; told < len(a.Citations) && a.Citations[told].Placed() && a.Citations[told].Span.End <= at; told++ {
			live.Event(ibid.Event{Kind: ibid.EventCitation, Key: strconv.Itoa(told), Citation: &a.Citations[told]})
		}
	}
	tell(0)
	for _, p := range a.Parts {
		begun := p
		begun.End = p.Start
		live.Event(ibid.Event{Kind: ibid.EventPart, Part: &begun})
		for at := p.Start; at < p.End; tell(at) {
			end := p.End
			if told < len(a.Citations) && a.Citations[told].Placed() {
				end = min(end, max(at+1, a.Citations[told].Span.End))
			}
			live.Event(ibid.Event{Kind: ibid.EventText, Text: a.Text[at:end], At: at})
			at = end
		}
	}
	live.Event(ibid.Event{Kind: ibid.EventAnswer, Answer: a})
}
