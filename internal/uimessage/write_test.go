package uimessage_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/uimessage"
)

var update = flag.Bool("update", false, "write what the code does into testdata")

// stream decodes a response piece by piece, and returns the output of a Writer, and the answer.
func stream(t *testing.T, body []byte, piece int, o *ibid.DecodeOptions) ([]byte, *ibid.Answer) {
	t.Helper()
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1"}
	d := ibid.Decoder{OnEvent: w.Event}
	if o != nil {
		d.Options = *o
	}
	flush := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	flush(w.Start())
	for part := range slices.Chunk(body, piece) {
		_, _ = d.Write(part)
		flush(w.Flush())
	}
	_ = d.Close()
	a, _ := d.Answer()
	flush(w.Answer(a, uimessage.StatusOf(a)))
	if a.Error != nil {
		flush(w.Fail(a.Error.Error()))
	}
	flush(w.Close())
	return b.Bytes(), a
}

// checkPlaces checks that every citation of a client is at its words.
func checkPlaces(t *testing.T, c *client) {
	t.Helper()
	var text string
	known := map[string]bool{}
	for i := range c.message.Parts {
		p := &c.message.Parts[i]
		if p.Type == "text" {
			text += p.Text
		}
		known[p.SourceID] = true
	}
	units := utf16.Encode([]rune(text))
	for i := range c.data {
		data, err := readCitations(&c.data[i])
		if err != nil || data.Unit != ibid.UTF16 {
			t.Fatalf("%v: %s", err, c.data[i].Data)
		}
		for _, row := range data.Citations {
			if i == len(c.data)-1 && !known[row.SourceID] {
				t.Errorf("citation %s of source %q, which was not sent", row.ID, row.SourceID)
			}
			if row.TextStart == nil {
				continue
			}
			if got := string(utf16.Decode(units[*row.TextStart:*row.TextEnd])); got != *row.CitedText {
				t.Errorf("%d to %d is %q, not %q", *row.TextStart, *row.TextEnd, got, *row.CitedText)
			}
		}
	}
}

// Whatever a provider sends, and however it is split, even the strictest client ends up with the parts of the answer's
// stored message.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d vectors: %v", len(files), err)
	}
	corrected := 0
	for _, file := range files {
		archive := testenv.Must(txtar.ParseFile(file))(t)
		for _, f := range archive.Files {
			if f.Name != "body.json" && f.Name != "stream.sse" && f.Name != "stream.ndjson" {
				continue
			}
			for _, piece := range []int{len(f.Data) + 1, 61} {
				written, a := stream(t, f.Data, piece, nil)
				var c client
				if err := c.read(written); err != nil {
					t.Fatalf("%s: %s: %v", file, f.Name, err)
				}
				checkPlaces(t, &c)
				if !c.ended {
					t.Errorf("%s: %s: no end", file, f.Name)
				}
				if slices.ContainsFunc(a.Issues, func(i ibid.Issue) bool { return i.Code == "text-corrected" }) {
					corrected++
					continue
				}
				if diff := cmp.Diff(uimessage.MessageOf("ans_1", a, nil), c.message); diff != "" {
					t.Errorf("%s: %s in pieces of %d (-stored +streamed):\n%s", file, f.Name, piece, diff)
				}
			}
		}
	}
	t.Logf("%d streams with corrections", corrected)
}

// TestVectors reads testdata/*.txtar: a comment, then in input a file of ../../testdata and its section, and in ui the
// stream.
func TestVectors(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no vectors")
	}
	for _, file := range files {
		archive := testenv.Must(txtar.ParseFile(file))(t)
		from := strings.Fields(string(archive.Files[0].Data))
		source := testenv.Must(txtar.ParseFile(filepath.Join("../../testdata", from[0])))(t)
		at := slices.IndexFunc(source.Files, func(f txtar.File) bool { return f.Name == from[1] })
		if at < 0 {
			t.Fatalf("%s: no section %s", file, from[1])
		}
		got, _ := stream(t, source.Files[at].Data, len(source.Files[at].Data), nil)
		if *update {
			archive.Files = append(archive.Files[:1], txtar.File{Name: "ui", Data: got})
			testenv.OK(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			continue
		}
		testenv.Equal(t, file, string(archive.Files[1].Data), string(got))
	}
}

// herons is an answer in two messages, with characters of one and of two UTF-16 units.
func herons() *ibid.Answer {
	a := &ibid.Answer{
		Text: "サギ🪿は巣を作る。Herons build.", Complete: true, Finish: ibid.FinishStop,
		Sources: []ibid.Source{
			{ID: "a", Kind: ibid.Web, URL: "https://a.example/", Title: "A"},
			{ID: "b", Kind: ibid.Web, URL: "javascript:alert(1)", Title: ""},
			{ID: "c", Kind: ibid.File, Filename: "report.PDF"},
		},
	}
	n := len("サギ🪿は巣を作る。")
	a.Parts = []ibid.Part{{Span: ibid.Span{End: n}, Kind: ibid.AnswerPart}, {Span: ibid.Span{Start: n, End: len(a.Text)}, Kind: ibid.AnswerPart, Message: 1}}
	cite := func(words, source string) {
		at := strings.Index(a.Text, words)
		if err := a.Cite(ibid.Span{Start: at, End: at + len(words)}, ibid.Ref{Source: source}); err != nil {
			panic(err)
		}
	}
	cite("は巣を作る", "a")
	cite("Herons build", "c")
	return a
}

func TestLate(t *testing.T) {
	first := herons()
	first.Citations, first.Sources = nil, first.Sources[:1]
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1", Numbering: &ibid.Numbering{"web:https://a.example/": 7}}
	later := herons()
	later.Citations[0].Verification = &ibid.Verification{Status: "exact"}
	for _, err := range []error{
		w.Answer(first, uimessage.Pending), w.Ping(), w.Late(later, uimessage.Final), w.Late(later, uimessage.StatusOf(later)), w.Close(), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var c client
	testenv.OK(t, c.read(b.Bytes()))
	checkPlaces(t, &c)
	numbers := ibid.Numbering{"web:https://a.example/": 7}
	want := uimessage.MessageOf("ans_1", later, &uimessage.Options{Numbering: &numbers})
	if diff := cmp.Diff(want, c.message); diff != "" {
		t.Errorf("-stored +streamed:\n%s", diff)
	}
	var statuses []uimessage.Status
	for i := range c.data {
		data, _ := readCitations(&c.data[i])
		statuses = append(statuses, data.Status)
	}
	testenv.Equal(t, "", []uimessage.Status{uimessage.Pending, uimessage.Pending, uimessage.Final, uimessage.Verified}, statuses)
	last, _ := readCitations(&c.data[3])
	if len(last.Citations) != 2 || last.Citations[0].Index != 7 || *last.Citations[0].TextStart != 4 || *last.Citations[1].TextStart != 10 {
		t.Errorf("%+v", last.Citations)
	}
	var sources []string
	for _, p := range c.message.Parts {
		if p.SourceID != "" {
			sources = append(sources, p.Type+" "+p.URL+" "+p.Title+" "+p.MediaType)
		}
	}
	testenv.Equal(t, "", []string{
		"source-url https://a.example/ A ", "source-document  javascript:alert(1) application/octet-stream",
		"source-document  report.PDF application/pdf",
	}, sources)
}

// A client's text stays when the provider corrects it. Citations are placed at their words in it.
func TestCorrected(t *testing.T) {
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1"}
	w.Event(ibid.Event{Kind: ibid.EventPart, Part: &ibid.Part{Kind: ibid.AnswerPart}})
	w.Event(ibid.Event{Kind: ibid.EventText, Text: "🪿 nest here. They fly too."})
	w.Event(ibid.Event{Kind: ibid.EventPart, Corrected: true, Part: &ibid.Part{Kind: ibid.AnswerPart, Span: ibid.Span{End: 30}}, Text: "🪿 nest in trees, here. They fly too."})
	testenv.OK(t, w.Flush())
	a := &ibid.Answer{Text: "🪿 nest in trees, here. They fly too.", Complete: true, Sources: []ibid.Source{{ID: "a", Kind: ibid.DocumentKind, Content: "x"}}}
	for _, words := range []string{"🪿 nest", "nest in trees", "They fly too"} {
		at := strings.Index(a.Text, words)
		testenv.OK(t, a.Cite(ibid.Span{Start: at, End: at + len(words)}, ibid.Ref{Source: "a"}))
	}
	testenv.OK(t, errors.Join(w.Answer(a, uimessage.Final), w.Close()))
	var c client
	testenv.OK(t, c.read(b.Bytes()))
	checkPlaces(t, &c)
	data, _ := readCitations(&c.data[len(c.data)-1])
	var got []string
	for _, row := range data.Citations {
		if row.CitedText == nil {
			got = append(got, "nowhere")
			continue
		}
		got = append(got, *row.CitedText)
	}
	testenv.Equal(t, "", []string{"🪿 nest", "They fly too", "nowhere"}, got)
	if a.Citations[1].Span == (ibid.Span{}) {
		t.Error("the answer itself was changed")
	}
}

// Sources have the numbers of the stored answer, in whatever order they are cited in a client's text.
func TestCorrectedNumbers(t *testing.T) {
	a := &ibid.Answer{Text: "New one. Old two.", Complete: true, Sources: []ibid.Source{
		{ID: "a", Kind: ibid.Web, URL: "https://a.example/"}, {ID: "b", Kind: ibid.Web, URL: "https://b.example/"},
	}}
	for words, source := range map[string]string{"New one": "a", "Old two": "b"} {
		at := strings.Index(a.Text, words)
		testenv.OK(t, a.Cite(ibid.Span{Start: at, End: at + len(words)}, ibid.Ref{Source: source}))
	}
	uimessage.SortCitations(a.Citations)
	want := map[string]int{}
	for _, s := range a.Document(nil).Sources {
		want[s.ID] = s.Index
	}
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1"}
	w.Event(ibid.Event{Kind: ibid.EventText, Text: "Odd. Old two."})
	testenv.OK(t, errors.Join(w.Answer(a, uimessage.Pending), w.Late(a, uimessage.Final), w.Close()))
	var c client
	testenv.OK(t, c.read(b.Bytes()))
	for i := range c.data {
		data, _ := readCitations(&c.data[i])
		for _, row := range data.Citations {
			if row.Index != want[row.SourceID] {
				t.Errorf("%s has number %d, stored %d", row.SourceID, row.Index, want[row.SourceID])
			}
		}
	}
}

// Citations that arrive one by one cost a small multiple of their final size.
func TestPendingCost(t *testing.T) {
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1"}
	a := &ibid.Answer{Complete: true, Sources: []ibid.Source{{ID: "a", Kind: ibid.Web, URL: "https://a.example/"}}}
	w.Event(ibid.Event{Kind: ibid.EventSource, Source: &a.Sources[0]})
	for i := range 1000 {
		text := "Herons nest here. "
		w.Event(ibid.Event{Kind: ibid.EventText, Text: text, At: len(a.Text)})
		a.Text += text
		testenv.OK(t, a.Cite(ibid.Span{Start: len(a.Text) - len(text), End: len(a.Text) - 2}, ibid.Ref{Source: "a"}))
		w.Event(ibid.Event{Kind: ibid.EventCitation, Key: string(rune('a' + i)), Citation: &a.Citations[i]})
		testenv.OK(t, w.Flush())
	}
	before := b.Len()
	testenv.OK(t, w.Answer(a, uimessage.Final))
	final := b.Len() - before // the text's end and the data: everything twice
	if before > 4*final {
		t.Errorf("%d bytes on the way to %d", before, final)
	}
}

func TestFailures(t *testing.T) {
	var b bytes.Buffer
	w := uimessage.Writer{W: &b, MessageID: "ans_1"}
	w.Event(ibid.Event{Kind: ibid.EventText, Text: "Herons"})
	testenv.OK(t, errors.Join(w.Fail(""), w.Close()))
	var c client
	if err := c.read(b.Bytes()); err != nil || c.failed == "" || c.message.Parts[2].Text != "Herons" {
		t.Errorf("%v: %+v", err, c)
	}
	b.Reset()
	w = uimessage.Writer{W: &b}
	if err := errors.Join(w.Abort(), w.Close()); err != nil || !strings.Contains(b.String(), `{"type":"abort"}`) {
		t.Errorf("%v: %s", err, &b)
	}
	broken := uimessage.Writer{W: brokenWriter{}}
	if err := broken.Start(); err == nil {
		t.Error("a client that is gone is not an error")
	}
	if err := broken.Close(); err == nil {
		t.Error("the first error is forgotten")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

// A message never has members that clients reject.
func TestMessageOf(t *testing.T) {
	testenv.Equal(t, "", `{"id":"u1","role":"user","parts":[{"type":"text","text":"<b>?"}]}`, marshal(t, uimessage.UserMessage("u1", "<b>?")))
	empty := uimessage.MessageOf("ans_1", &ibid.Answer{}, nil)
	if len(empty.Parts) != 2 || empty.Parts[0].Type != "step-start" || empty.Parts[1].ID != "cit_ans_1" {
		t.Errorf("%+v", empty)
	}
	m := uimessage.MessageOf("ans_1", herons(), nil)
	var texts []string
	for _, p := range m.Parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	testenv.Equal(t, "", []string{"サギ🪿は巣を作る。", "Herons build."}, texts)
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	testenv.OK(t, e.Encode(v))
	return strings.TrimSpace(b.String())
}
