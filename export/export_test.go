package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/testenv"
)

var update = flag.Bool("update", false, "write what the tests expect anew")

// tides is an answer with every kind of citation and source.
func tides(t *testing.T) *ibid.Answer {
	t.Helper()
	score := 0.5
	a := &ibid.Answer{
		ID: "r1", Model: "m-1", Created: time.Unix(1700000000, 0), Finish: ibid.FinishStop, Complete: true,
		Text: "Die Flut 🌊 kommt & geht. Ebbe folgt. Niemand weiß es.",
		Sources: []ibid.Source{
			{
				ID: "a", Kind: ibid.Web, Title: "Tides", URL: "https://a.example/?x=1&y=2", Site: "a.example", Authors: []string{"Ada", "Bo"},
				Score: &score, ScoreOrigin: ibid.ScoreProvider,
			},
			{
				ID: "b", Kind: ibid.File, GlobalID: "file-1", Filename: "b.pdf", PublishedAt: "2024-05-01",
				Content: "Ebbe.", Chunks: []ibid.Chunk{{Content: "Ebbe."}, {Content: "Und Flut."}},
			},
			{ID: "doc:0", Kind: ibid.DocumentKind, GlobalID: "sha256:00", Title: "Logbuch"},
			{ID: "u", Kind: ibid.Web, URL: "https://u.example/", Content: "Nobody."},
		},
	}
	cite := func(words string, refs ...ibid.Ref) {
		t.Helper()
		at := strings.Index(a.Text, words)
		testenv.OK(t, a.Cite(ibid.Span{Start: at, End: at + len(words)}, refs...))
	}
	cite("Die Flut 🌊 kommt & geht.", ibid.Ref{Source: "a", Quote: "The tide comes."}, ibid.Ref{Source: "b", Locator: &ibid.Locator{Page: 3}})
	cite("Ebbe folgt.", ibid.Ref{Source: "b", Quote: "Ebbe."})
	a.Citations = append(a.Citations, ibid.Citation{
		ID: "c-n", Anchor: ibid.AnchorNone, Covers: ibid.CoversPoint, Origin: ibid.OriginProvider, Refs: []ibid.Ref{{Source: "doc:0", Quote: "Um 4 Uhr."}},
	})
	return a
}

func write(t *testing.T, f export.Format, a *ibid.Answer, o *export.Options) string {
	t.Helper()
	var b bytes.Buffer
	testenv.OK(t, export.Write(&b, f, a, o))
	return b.String()
}

// docs/export.md describes the files in testdata. They are written by go test ./export -update.
func TestFormats(t *testing.T) {
	for _, f := range export.Formats() {
		line := write(t, f, tides(t), nil)
		if n := strings.Count(line, "\n"); n != 1 || !strings.HasSuffix(line, "\n") {
			t.Errorf("%s: %d line breaks", f, n)
		}
		var indented bytes.Buffer
		testenv.OK(t, json.Indent(&indented, []byte(line), "", " "))
		name := filepath.Join("testdata", string(f)+".json")
		if *update {
			testenv.OK(t, os.WriteFile(name, indented.Bytes(), 0o644))
		}
		want := testenv.Must(os.ReadFile(name))(t)
		testenv.Equal(t, f, string(want), indented.String())
	}
}

// Our own decoder reads the same from OpenAI's format: text, spans and sources.
func TestOpenAIIsRead(t *testing.T) {
	a := tides(t)
	got := testenv.Must(ibid.Decode([]byte(write(t, export.OpenAI, a, nil)), nil))(t)
	type said struct {
		Words, URL, File string
		Placed           bool
	}
	read := func(a *ibid.Answer) []said {
		var all []said
		for i := range a.Citations {
			c := &a.Citations[i]
			for _, ref := range c.Refs {
				s := a.Source(ref.Source)
				file := ""
				if s.URL == "" {
					file = s.ID
					if s.Kind == ibid.File {
						file = s.GlobalID
					}
				}
				all = append(all, said{a.Text[c.Span.Start:c.Span.End], s.URL, file, c.Placed()})
			}
		}
		return all
	}
	if got.Format != "openai-chat" || got.Text != a.Text || got.ID != a.ID || got.Model != a.Model || !got.Created.Equal(a.Created) || got.Finish != a.Finish || !got.Complete {
		t.Errorf("read %+v", got)
	}
	if diff := cmp.Diff(read(a), read(got)); diff != "" {
		t.Errorf("citations (-written +read):\n%s", diff)
	}
}

// In any unit the offsets select the same words.
func TestUnits(t *testing.T) {
	a := tides(t)
	const words = "Die Flut 🌊 kommt & geht."
	for unit, want := range map[ibid.Unit]int{"": 24, ibid.CodePoint: 24, ibid.UTF16: 25, ibid.UTF8: 27} {
		var blocks []struct {
			Annotations []struct {
				Start *int `json:"start_index"`
				End   *int `json:"end_index"`
			}
		}
		testenv.OK(t, json.Unmarshal([]byte(write(t, export.LangChain, a, &export.Options{Unit: unit})), &blocks))
		notes := blocks[0].Annotations
		if *notes[0].Start != 0 || *notes[0].End != want || notes[len(notes)-1].End != nil {
			t.Errorf("%q: %d to %d, want 0 to %d: %s", unit, *notes[0].Start, *notes[0].End, want, words)
		}
		c := export.Completion(a, &export.Options{Unit: unit, ID: "x"})
		if n := c.Annotations[0]; c.ID != "x" || n.End != want {
			t.Errorf("%q: %+v", unit, n)
		}
	}
}

// [n] in the text is the nth node, or with a conversation's numbering the node of that number.
func TestLlamaIndexNumbers(t *testing.T) {
	numbering := &ibid.Numbering{}
	numbering.Number("before")
	for _, o := range []*export.Options{nil, {Numbering: numbering}} {
		var r struct {
			Response string
			Nodes    []struct {
				Node struct {
					ID       string `json:"id_"`
					Metadata struct {
						Number int `json:"citation_number"`
					}
				}
				Score *float64
			} `json:"source_nodes"`
		}
		testenv.OK(t, json.Unmarshal([]byte(write(t, export.LlamaIndex, tides(t), o)), &r))
		first := 1
		want := "Die Flut 🌊 kommt & geht.[1][2] Ebbe folgt.[2] Niemand weiß es."
		if o != nil {
			first = 2
			want = "Die Flut 🌊 kommt & geht.[2][3] Ebbe folgt.[3] Niemand weiß es."
		}
		testenv.Equal(t, "", want, r.Response)
		for i, id := range []string{"a", "b", "doc:0", "u"} {
			n := r.Nodes[i]
			if n.Node.ID != id || n.Node.Metadata.Number != first+i || (n.Score != nil) != (id == "a") {
				t.Errorf("node %d: %+v", i, n)
			}
		}
	}
}

// The exports of any answer are valid JSON.
func TestOddAnswers(t *testing.T) {
	cites := func(id string, s ibid.Span) *ibid.Answer {
		return &ibid.Answer{Text: "x", Sources: []ibid.Source{{ID: "a"}, {ID: "a"}}, Citations: []ibid.Citation{{Span: s, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: id}}}}}
	}
	for _, a := range []*ibid.Answer{{}, cites("a", ibid.Span{Start: 0, End: 9}), cites("nobody", ibid.Span{Start: 0, End: 1}), {Text: "\xff\x00", Sources: []ibid.Source{{Title: "\xff"}}}} {
		for _, f := range export.Formats() {
			if line := write(t, f, a, nil); !json.Valid([]byte(line)) || strings.Contains(line, ":null,\"metadata") {
				t.Errorf("%s: %s", f, line)
			}
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

func TestErrors(t *testing.T) {
	if err := export.Write(&bytes.Buffer{}, "word", &ibid.Answer{}, nil); err == nil || err.Error() != `exporting an answer: there is no format "word"` {
		t.Errorf("error %v", err)
	}
	if err := export.Write(failing{}, export.OpenAI, &ibid.Answer{}, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// A model's words before and after a tool call are separated by a blank line, or are in two blocks, and every span
// selects its words in any unit.
func TestMessagesAreParted(t *testing.T) {
	for breaks, missing := range map[string]string{"": "\n\n", " \n": "\n", "\n\n": ""} {
		first, second := "Ich sehe nach 🔎 für dich."+breaks, "Es schneit ❄️ heute."
		a := &ibid.Answer{
			Text: first + second, Sources: []ibid.Source{{ID: "a", Kind: ibid.Web, URL: "https://a.example/"}},
			Parts: []ibid.Part{
				{Span: ibid.Span{End: len(first)}, Kind: ibid.AnswerPart},
				{Span: ibid.Span{Start: len(first), End: len(first + second)}, Kind: ibid.AnswerPart, Message: 1},
			},
		}
		spans := []ibid.Span{{Start: 4, End: 8}, {Start: len(first), End: len(first)}, {Start: len(first), End: len(a.Text)}}
		for _, s := range spans {
			testenv.OK(t, a.Cite(s, ibid.Ref{Source: "a"}))
		}
		a.Citations = append(a.Citations, ibid.Citation{
			ID: "c-n", Anchor: ibid.AnchorNone, Covers: ibid.CoversPoint, Origin: ibid.OriginProvider, Refs: []ibid.Ref{{Source: "a"}},
		})
		want := []string{"sehe", "", second, ""}
		parted := export.Parted(a)
		testenv.OK(t, parted.Check())
		if whole := first + missing + second; parted.Text != whole || export.Parted(parted) != parted ||
			parted.Parts[0].End != len(first+missing) || whole[parted.Parts[1].Start:] != second || a.Text != first+second {
			t.Fatalf("%q: %q %v", breaks, parted.Text, parted.Parts)
		}
		for _, unit := range []ibid.Unit{ibid.CodePoint, ibid.UTF16, ibid.UTF8} {
			cut := func(text string, start, end int) string {
				t.Helper()
				s, ok := ibid.NewOffsets(text).Span(unit, start, end)
				if !ok {
					t.Fatalf("%s: %q has no %d to %d", unit, text, start, end)
				}
				return text[s.Start:s.End]
			}
			c := export.Completion(a, &export.Options{Unit: unit})
			for i, note := range c.Annotations {
				testenv.Equal(t, "openai "+string(unit), want[i], cut(c.Text, note.Start, note.End))
			}
			var blocks []struct {
				Text        string
				Annotations []struct {
					Start  *int `json:"start_index"`
					End    *int `json:"end_index"`
					Extras struct{ Claim []int }
				}
			}
			testenv.OK(t, json.Unmarshal([]byte(write(t, export.LangChain, a, &export.Options{Unit: unit})), &blocks))
			if len(blocks) != 2 || blocks[0].Text != first+missing || blocks[1].Text != second ||
				len(blocks[0].Annotations) != 2 || len(blocks[1].Annotations) != 2 {
				t.Fatalf("%q: %+v", breaks, blocks)
			}
			first, last := blocks[0].Annotations[0], blocks[1].Annotations[0]
			testenv.Equal(t, "langchain "+string(unit), "sehe", cut(blocks[0].Text, *first.Start, *first.End))
			testenv.Equal(t, "langchain "+string(unit), second, cut(blocks[1].Text, *last.Start, *last.End))
			testenv.Equal(t, "claim", second, cut(blocks[1].Text, last.Extras.Claim[0], last.Extras.Claim[1]))
			if none := blocks[1].Annotations[1]; none.Start != nil || none.End != nil {
				t.Errorf("a citation without a place has one: %+v", none)
			}
		}
	}
}
