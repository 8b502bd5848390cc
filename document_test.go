package ibid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

func ExampleAnswer_Document() {
	a := &Answer{Text: "Der Fluss ist 12 m tief 🌊.", Sources: []Source{{ID: "map", Kind: Map, Title: "Pegel"}}}
	if err := a.Cite(Span{14, 18}, Ref{Source: "map"}); err != nil {
		fmt.Println(err)
	}
	if err := a.Cite(Span{0, 28}, Ref{Source: "map", Quote: "Tiefe: 12 m"}); err != nil {
		fmt.Println(err)
	}
	doc := a.Document(&DocumentOptions{Unit: UTF16})
	for _, row := range doc.Citations {
		fmt.Println(row.Index, *row.TextStart, *row.TextEnd, *row.CitedText)
	}
	// Output:
	// 1 14 18 12 m
	// 1 0 26 Der Fluss ist 12 m tief 🌊
}

func ExampleAnswer_MarshalJSON() {
	a := &Answer{Text: "Water boils at 100 °C.", Sources: []Source{{ID: "w", Kind: Web, URL: "https://a.example/?a=1&b=2"}}}
	if err := a.Cite(Span{15, 22}, Ref{Source: "w"}); err != nil {
		fmt.Println(err)
	}
	data, err := json.Marshal(a)
	if err != nil {
		fmt.Println(err)
	}
	var read Answer
	if err := json.Unmarshal(data, &read); err != nil {
		fmt.Println(err)
	}
	c := read.Citations[0]
	fmt.Println(read.Text[c.Span.Start:c.Span.End], read.Source(c.Refs[0].Source).URL)
	// Output: 100 °C https://a.example/?a=1&b=2
}

func TestDocumentRoundTrip(t *testing.T) {
	for _, unit := range []Unit{"", UTF8, CodePoint, UTF16} {
		t.Run(string(unit), func(t *testing.T) {
			a := fullAnswer()
			if err := a.Check(); err != nil {
				t.Fatal(err)
			}
			opts := &DocumentOptions{Unit: unit, Raw: true, Input: "x.json", AnswerID: "ans_1"}
			a.Metadata = map[string]json.RawMessage{"scores": json.RawMessage(`[1,{"a":"<b>"}]`)}
			first := mustJSON(t, a.Document(opts))
			var read Answer
			if err := json.Unmarshal(first, &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a, &read); diff != "" {
				t.Errorf("Answer → JSON → Answer (-want +got):\n%s", diff)
			}
			for i := range a.Sources {
				if got, want := read.Sources[i].Key(), a.Sources[i].Key(); got != want {
					t.Errorf("source %d: key %s became %s", i, want, got)
				}
			}
			if second := mustJSON(t, read.Document(opts)); !bytes.Equal(first, second) {
				t.Errorf("JSON → Answer → JSON:\n%s", cmp.Diff(string(first), string(second)))
			}
		})
	}
}

func mustJSON(t *testing.T, d *Document) []byte {
	t.Helper()
	data, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(data, "\n\r") {
		t.Errorf("more than one line: %q", data)
	}
	return data
}

func TestDocumentUnits(t *testing.T) {
	type row struct {
		Group, Index, Start, End int
		Text                     string
	}
	want := map[Unit][]row{
		UTF8: {
			{1, 1, 7, 11, "🎉"},
			{2, 1, 12, 21, "東京は"},
			{3, 1, 12, 21, "東京は"},
			{2, 2, 12, 21, "東京は"},
			{2, 2, 12, 21, "東京は"},
			{4, 2, 26, 26, ""},
			{5, 2, 27, 35, "שלום"},
			{6, 1, -1, -1, "-"},
		},
		CodePoint: {
			{1, 1, 6, 7, "🎉"},
			{2, 1, 8, 11, "東京は"},
			{3, 1, 8, 11, "東京は"},
			{2, 2, 8, 11, "東京は"},
			{2, 2, 8, 11, "東京は"},
			{4, 2, 15, 15, ""},
			{5, 2, 16, 20, "שלום"},
			{6, 1, -1, -1, "-"},
		},
		UTF16: {
			{1, 1, 6, 8, "🎉"},
			{2, 1, 9, 12, "東京は"},
			{3, 1, 9, 12, "東京は"},
			{2, 2, 9, 12, "東京は"},
			{2, 2, 9, 12, "東京は"},
			{4, 2, 16, 16, ""},
			{5, 2, 17, 21, "שלום"},
			{6, 1, -1, -1, "-"},
		},
	}
	for unit, want := range want {
		doc := fullAnswer().Document(&DocumentOptions{Unit: unit})
		var got []row
		for _, c := range doc.Citations {
			r := row{c.Group, c.Index, -1, -1, "-"}
			if c.TextStart != nil {
				r.Start, r.End, r.Text = *c.TextStart, *c.TextEnd, *c.CitedText
			}
			got = append(got, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", unit, diff)
		}
		if doc.Unit != unit {
			t.Errorf("unit = %s, want %s", doc.Unit, unit)
		}
	}
}

func TestDocumentEmpty(t *testing.T) {
	data, err := (&Answer{}).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"answer_id":null,"id":null,"provider":null,"format":null,"model":null,"created_at":null,"complete":false,` +
		`"finish":null,"error":null,"text":"","text_sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",` +
		`"unit":"utf-8","parts":[],"cited_text":"","has_citations":false,"sources":[],"citations":[],"queries":[],"tool_calls":[],` +
		`"display_requirements":[],"alternatives":[],"issues":[]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	var read Answer
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Answer{}, read); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestDocumentNulls(t *testing.T) {
	a := &Answer{Text: "Tides.", Sources: []Source{{ID: "doc:0", Kind: DocumentKind, Chunks: []Chunk{{}}}}}
	a.Citations = []Citation{{ID: "c-1", Covers: CoversClaim, Anchor: AnchorNone, Origin: OriginProvider, Refs: []Ref{{Source: "doc:0"}}}}
	doc := a.Document(nil)
	sources, err := json.Marshal(doc.Sources)
	if err != nil {
		t.Fatal(err)
	}
	const wantSources = `[{"index":1,"id":"doc:0","key":"sha256:6e340b9cffb37a989ca544e6bb780a2c","kind":"document","title":null,"url":null,` +
		`"original_url":null,"filename":null,"site":null,"authors":null,"published_at":null,"retrieved_at":null,"license":null,"content":null,` +
		`"chunks":[{"id":null,"content":null,"score":null,"locator":null}],"score":null,"score_origin":null,"cited":true}]`
	if diff := cmp.Diff(wantSources, string(sources)); diff != "" {
		t.Error(diff)
	}
	citations, err := json.Marshal(doc.Citations)
	if err != nil {
		t.Fatal(err)
	}
	const wantCitations = `[{"id":"c-1","group":1,"index":1,"source_id":"doc:0","source_title":null,"source_url":null,"text_start":null,` +
		`"text_end":null,"cited_text":null,"claim_start":null,"claim_end":null,"claim_inferred":false,"quote":null,"locator":null,` +
		`"confidence":null,"covers":"claim","anchor":"none","origin":"provider","support":null,"verification":null}]`
	if diff := cmp.Diff(wantCitations, string(citations)); diff != "" {
		t.Error(diff)
	}
}

func TestDocumentIndex(t *testing.T) {
	a := &Answer{Text: "One. Two."}
	for _, id := range []string{"a", "b", "c", "d"} {
		a.Sources = append(a.Sources, Source{ID: id, Kind: Web, URL: "https://" + id + ".example/"})
	}
	for _, cite := range []struct {
		span Span
		id   string
	}{{Span{5, 9}, "b"}, {Span{0, 4}, "d"}} {
		if err := a.Cite(cite.span, Ref{Source: cite.id}); err != nil {
			t.Fatal(err)
		}
	}
	numbering := Numbering{"web:https://b.example/": 1}
	for _, test := range []struct {
		name      string
		numbering *Numbering
		want      string
	}{
		{"by first use, the uncited after them", nil, "a3 b2* c4 d1*"},
		{"going on from a conversation", &numbering, "a3 b1* c4 d2*"},
		{"again", &numbering, "a3 b1* c4 d2*"},
	} {
		var got []string
		for _, s := range a.Document(&DocumentOptions{Numbering: test.numbering}).Sources {
			cited := ""
			if s.Cited {
				cited = "*"
			}
			got = append(got, fmt.Sprint(s.ID, s.Index, cited))
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestDocumentNumbersUnknownSourcesApart(t *testing.T) {
	a := &Answer{Text: "x", Sources: []Source{{ID: "doc:0", Kind: DocumentKind}, {ID: "doc:1", Kind: DocumentKind}, {ID: "doc:2", Kind: Tool}}}
	if err := a.Cite(Span{0, 1}, Ref{Source: "doc:1"}); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, s := range a.Document(nil).Sources {
		got = append(got, s.Index)
	}
	if diff := cmp.Diff([]int{2, 1, 3}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDocumentUnspeakable(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	a := fullAnswer()
	a.Created = time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)
	a.Sources[1].Score, a.Sources[1].Chunks[0].Score = &nan, &inf
	a.Citations[1].Refs[0].Confidence, a.Citations[1].Support.Score = &inf, &nan
	a.Citations[1].Verification.CheckedAt = a.Created
	a.Citations[0].Span = Span{8, 9}        // in the middle of the emoji
	a.Citations[4].Span = Span{30, 1 << 40} // beyond the text
	a.Citations[5].Refs[0].Source = "nobody"
	a.Alternatives = append(a.Alternatives, nil)
	if _, err := a.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	doc := a.Document(nil)
	if s := doc.Sources[1]; s.Score != nil || s.ScoreOrigin != nil || s.Chunks[0].Score != nil || doc.CreatedAt != nil {
		t.Errorf("scores %v %v %v, created %v; want nothing", s.Score, s.ScoreOrigin, s.Chunks[0].Score, doc.CreatedAt)
	}
	for _, row := range doc.Citations {
		if (row.ID == "c-1" || row.ID == "c-5") && row.TextStart != nil {
			t.Errorf("%s: text_start = %d, want null", row.ID, *row.TextStart)
		}
		if row.ID == "c-6" && row.Index != 0 {
			t.Errorf("%s: index %d of a missing source", row.ID, row.Index)
		}
	}
}

func TestDocumentDoesNotEscapeHTML(t *testing.T) {
	data, err := fullAnswer().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte(`\u003c`)) || !bytes.Contains(data, []byte(`<div>&amp;</div>`)) {
		t.Errorf("escaped: %s", data)
	}
}

func TestDocumentRead(t *testing.T) {
	tests := testenv.Table[struct {
		Name, Doc string
		Want      string // the error; if "",
		Span      Span   // that of the first citation
	}](t, "testdata/tables/document-read.txt")
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			var a Answer
			err := json.Unmarshal([]byte(test.Doc), &a)
			if test.Want != "" {
				if err == nil || !strings.Contains(err.Error(), test.Want) {
					t.Fatalf("error = %v, want one with %q", err, test.Want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Check(); err != nil {
				t.Error(err)
			}
			if len(a.Citations) > 0 && a.Citations[0].Span != test.Span {
				t.Errorf("span = %v, want %v", a.Citations[0].Span, test.Span)
			}
		})
	}
}

// Rows of other software may be in any order, and without groups, ids, anchors and covers.
func TestDocumentReadForeign(t *testing.T) {
	const doc = `{"version":1,"text":"One. Two.","sources":[{"id":"s","kind":"web"},{"id":"t","kind":"web","title":"T"}],"citations":[
		{"source_id":"s"},
		{"source_id":"t","text_start":5,"text_end":9,"group":7},
		{"source_id":"t","text_start":4,"text_end":4},
		{"source_id":"s","text_start":5,"text_end":9,"group":7}]}`
	var a Answer
	if err := json.Unmarshal([]byte(doc), &a); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	var got []string
	for _, c := range a.Citations {
		s := fmt.Sprintf("%v %s %s %s", c.Span, c.Covers, c.Anchor, c.Origin)
		for _, ref := range c.Refs {
			s += " " + ref.Source
		}
		got = append(got, s)
	}
	want := []string{
		"{4 4} point unverified provider t",
		"{5 9} claim unverified provider s t",
		"{0 0} claim none provider s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDocumentRoundTrip(f *testing.F) {
	f.Add("Ça va 🎉 東京は e\u0301t שלום.", uint64(1))
	f.Add("", uint64(2))
	f.Add("<a> & \u2028 \x00", uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if !utf8.ValidString(text) {
			t.Skip()
		}
		next := rand.New(rand.NewPCG(seed, 5))
		a := randomAnswer(text, next)
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		for _, unit := range []Unit{UTF8, CodePoint, UTF16} {
			numbering := Numbering{}
			for _, i := range next.Perm(len(a.Sources)) { // numbers assigned earlier in a conversation
				numbering.Number(a.Sources[i].Key())
			}
			opts := &DocumentOptions{Unit: unit, Numbering: &numbering}
			first := mustJSON(t, a.Document(opts))
			var read Answer
			if err := json.Unmarshal(first, &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a, &read); diff != "" {
				t.Fatalf("Answer → JSON → Answer (-want +got):\n%s", diff)
			}
			if second := mustJSON(t, read.Document(opts)); !bytes.Equal(first, second) {
				t.Fatalf("JSON → Answer → JSON:\n%s\n%s", first, second)
			}
		}
	})
}

// FuzzDocumentRead expects whatever is read without an error to survive a round trip.
func FuzzDocumentRead(f *testing.F) {
	full, err := fullAnswer().MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"version":1,"unit":"utf-16","text":"🎉x","sources":[{"id":""}],"citations":[{"source_id":"","text_start":2,"text_end":3}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b Answer
		if json.Unmarshal(data, &a) != nil {
			t.Skip()
		}
		_ = a.Check()
		first := mustJSON(t, a.Document(nil))
		if err := json.Unmarshal(first, &b); err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if second := mustJSON(t, b.Document(nil)); !bytes.Equal(first, second) {
			t.Fatalf("written twice:\n%s\n%s", first, second)
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	for _, size := range []struct{ bytes, citations int }{{20 << 10, 100}, {1 << 20, 10_000}} {
		text := strings.Repeat("Le comité a publié ses résultats 🎉 en mars. ", size.bytes/48)
		a := &Answer{Text: text}
		for i := range size.citations / 10 {
			a.Sources = append(a.Sources, Source{ID: fmt.Sprint(i), Kind: Web, Title: "A title", URL: fmt.Sprint("https://a.example/page?n=", i)})
		}
		for i := range size.citations {
			at := len(text) / size.citations * i
			for !isBoundary(text, at) {
				at++
			}
			c := Citation{Span: Span{at, at + strings.IndexByte(text[at:], ' ')}, Covers: CoversClaim, Anchor: AnchorExact, Origin: OriginProvider}
			c.Claim, c.Refs = c.Span, []Ref{{Source: a.Sources[i*7%len(a.Sources)].ID}}
			a.Citations = append(a.Citations, c)
		}
		order(a)
		assignIDs(a, (*Source).Key)
		name := fmt.Sprintf("%dKB-%d", size.bytes>>10, size.citations)
		data := make([]byte, 0)
		b.Run(name+"/make", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				a.Document(&DocumentOptions{Unit: UTF16})
			}
		})
		b.Run(name+"/write", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var err error
				if data, err = a.Document(&DocumentOptions{Unit: UTF16}).JSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/read", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := new(Answer).UnmarshalJSON(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
