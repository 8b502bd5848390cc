package ibid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// checkJSON compares the JSON of d with that of encoding/json, which it must equal to the byte. There are two
// differences: invalid UTF-8 becomes U+FFFD itself instead of its escape, and U+2028 in metadata is escaped.
func checkJSON(t *testing.T, d *Document) {
	t.Helper()
	var buf bytes.Buffer
	plain := json.NewEncoder(&buf)
	plain.SetEscapeHTML(false)
	wantErr := plain.Encode(d)
	got, err := d.AppendJSON([]byte("before"))
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("error %v, encoding/json says %v", err, wantErr)
	}
	want := "before"
	if err == nil {
		want += strings.ReplaceAll(strings.TrimSuffix(buf.String(), "\n"), `\ufffd`, "\ufffd")
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(string(got), `\ufffd`, "\ufffd")); diff != "" {
		t.Errorf("(-encoding/json +got):\n%s", diff)
	}
}

func TestDocumentJSON(t *testing.T) {
	full := func() *Document {
		a := fullAnswer()
		a.Metadata = map[string]json.RawMessage{
			"z": json.RawMessage(" { \"a\" : [ 1 , \"<\\u0000\" ] } "), "a\u2029\"": json.RawMessage("null"), "": nil, "\xff": json.RawMessage("1e400"),
		}
		return a.Document(&DocumentOptions{Unit: UTF16, Raw: true, Input: "x<y>.json", AnswerID: "ans_1"})
	}
	score := 1e-9
	berlin := time.FixedZone("", 3600)
	loop := full()
	loop.Alternatives = []*Document{loop}
	deep := full()
	for range 200 {
		deep = &Document{Alternatives: []*Document{deep}}
	}
	with := func(change func(*Document)) *Document {
		d := full()
		change(d)
		return d
	}
	for name, d := range map[string]*Document{
		"nil":           nil,
		"zero":          {},
		"full":          full(),
		"bare":          fullAnswer().Document(&DocumentOptions{Bare: true}),
		"nested deeply": deep,
		"in itself":     loop,
		"locators": with(func(d *Document) {
			d.Citations[0].Locator = &Locator{BlockEnd: new(int)}
			d.Citations[1].Locator = &Locator{}
		}),
		"time zone":  with(func(d *Document) { now := time.Date(2026, 1, 2, 3, 4, 5, 600, berlin); d.CreatedAt = &now }),
		"year 10000": with(func(d *Document) { late := time.Date(10000, 1, 2, 3, 4, 5, 6, berlin); d.CreatedAt = &late }),
		"zone of a day": with(func(d *Document) {
			odd := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 90_000))
			d.CreatedAt = &odd
		}),
		"no number":       with(func(d *Document) { nan := math.NaN(); d.Citations[1].Support.Score = &nan }),
		"infinite":        with(func(d *Document) { inf := math.Inf(-1); d.Sources[0].Chunks = []DocumentChunk{{Score: &inf}} }),
		"small number":    with(func(d *Document) { d.Sources[0].Score = &score }),
		"no metadata":     with(func(d *Document) { d.Metadata = map[string]json.RawMessage{} }),
		"broken metadata": with(func(d *Document) { d.Metadata["b"] = json.RawMessage(`{"a":`) }),
		"empty metadata":  with(func(d *Document) { d.Metadata["b"] = json.RawMessage{} }),
		"global id":       with(func(d *Document) { d.Sources[0].GlobalID = "file-1" }),
		"nil alternative": with(func(d *Document) { d.Alternatives = append(d.Alternatives, nil) }),
	} {
		t.Run(name, func(t *testing.T) { checkJSON(t, d) })
	}
}

// A document that only a lenient parser accepts is read with an issue.
func TestAnswerUnmarshalLoose(t *testing.T) {
	const document = `{"version":1,"text":"a","sources":[],"citations":[]%s}`
	for extra, want := range map[string]string{
		``:                         "",
		`,"unknown":{"x":1}`:       "",
		`,"Model":"M"`:             "",
		`,"model":"A","model":1e2`: "error",
		`,"model":"A","model":"M"`: "jsontext: duplicate object member name",
		`,"model":"M\xff"`:         "jsontext: invalid UTF-8",
		`,"model":"\ud800"`:        "jsontext: invalid surrogate pair",
		`,"input":"\ud800"`:        "jsontext: invalid surrogate pair",
		// as the provider sent it
		`,"provider_metadata":{"unknown":[{"x":"\ud800","y":1,"y":2}]}`:                     "",
		`,"activities":[{"kind":"tool","text_start":0,"text":null,"input":{"x":"\ud800"}}]`: "",
		`,"activities":[{"kind":"tool","text_start":0,"text":null,"name":"\ud800"}]`:        "jsontext: invalid surrogate pair",
	} {
		var a Answer
		err := json.Unmarshal(fmt.Appendf(nil, strings.ReplaceAll(document, "%s", "%[1]s"), strings.ReplaceAll(extra, `\xff`, "\xff")), &a)
		switch {
		case want == "error":
			if err == nil {
				t.Errorf("%s: no error", extra)
			}
		case err != nil, a.Text != "a", want == "" && len(a.Issues) > 0:
			t.Errorf("%s: %v, %+v", extra, err, a)
		case want != "" && (len(a.Issues) != 1 || a.Issues[0].Code != "loose-json" || !strings.HasPrefix(a.Issues[0].Detail, want)):
			t.Errorf("%s: issues %v, want %s", extra, a.Issues, want)
		}
	}
}

// FuzzDocumentJSON expects any document, valid or not, to be written as by encoding/json.
func FuzzDocumentJSON(f *testing.F) {
	full, err := fullAnswer().MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full, "a\xffb\u2028", 1e-7)
	f.Add([]byte(`{}`), "\x00", math.Inf(1))
	f.Fuzz(func(t *testing.T, data []byte, s string, number float64) {
		var d Document
		if json.Unmarshal(data, &d) != nil {
			t.Skip()
		}
		checkJSON(t, &d)
		d.Model, d.CitedText, d.Input = &s, s, s
		d.Sources = append(d.Sources, DocumentSource{Title: &s, Score: &number, GlobalID: s, Authors: []string{s}})
		d.Metadata = map[string]json.RawMessage{s: json.RawMessage(data), "raw": json.RawMessage(s)}
		checkJSON(t, &d)
	})
}

// kept returns a after writing it as a bare document and reading it again.
func kept(tb testing.TB, a *Answer) *Answer {
	tb.Helper()
	data, err := a.Document(&DocumentOptions{Bare: true, Raw: true}).JSON()
	if err != nil {
		tb.Fatal(err)
	}
	read := new(Answer)
	if err := json.Unmarshal(data, read); err != nil {
		tb.Fatal(err)
	}
	return read
}

func TestDocumentBare(t *testing.T) {
	a := fullAnswer()
	bare := a.Document(&DocumentOptions{Bare: true})
	if bare.CitedText != "" || bare.Alternatives[0].CitedText != "" {
		t.Errorf("cited_text = %q, %q", bare.CitedText, bare.Alternatives[0].CitedText)
	}
	whole := a.Document(nil)
	bare.CitedText, bare.Alternatives[0].CitedText = whole.CitedText, whole.Alternatives[0].CitedText
	if diff := cmp.Diff(whole, bare); diff != "" {
		t.Errorf("more than cited_text differs:\n%s", diff)
	}
	a.Sources[0].GlobalID = "g-1" // in addition to a URL
	if diff := cmp.Diff(a, kept(t, a)); diff != "" {
		t.Errorf("(-want +kept):\n%s", diff)
	}
}

// keptAnswer returns an answer of about size bytes, such as a gateway stores for every call.
func keptAnswer(size, citations int) *Answer {
	const sentence = "The committee published its findings in March; “most” rivers rise earlier than they did. "
	text := strings.Repeat(sentence, size/len(sentence)+1)
	a := &Answer{
		ID: "resp_0123456789", Provider: "openai", Format: "openai-responses", Model: "model-1", Created: time.Unix(1_760_000_000, 0).UTC(),
		Text: text, Parts: []Part{{Span: Span{0, len(text)}, Kind: AnswerPart}}, Complete: true, Finish: FinishStop,
	}
	for i := range (citations + 1) / 2 {
		a.Sources = append(a.Sources, Source{ID: fmt.Sprint("s", i), Kind: Web, Title: "Findings of the committee", URL: fmt.Sprint("https://rivers.example/findings/", i)})
	}
	for i := range citations {
		c := Citation{Span: Span{i * len(sentence), (i+1)*len(sentence) - 1}, Covers: CoversClaim, Anchor: AnchorExact, Origin: OriginProvider}
		c.Claim, c.Refs = c.Span, []Ref{{Source: a.Sources[i/2].ID, Quote: "The rivers rise earlier."}}
		a.Citations = append(a.Citations, c)
	}
	order(a)
	assignIDs(a, (*Source).Key)
	return a
}

// BenchmarkKeep measures storing an answer, which the gateway does for every call before it forwards the end.
func BenchmarkKeep(b *testing.B) {
	for _, size := range []struct{ bytes, citations int }{{1 << 10, 0}, {4 << 10, 10}} {
		a := keptAnswer(size.bytes, size.citations)
		if err := a.Check(); err != nil {
			b.Fatal(err)
		}
		opts := &DocumentOptions{Bare: true, Raw: true}
		document := a.Document(opts)
		data, err := document.JSON()
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("%dKB-%d/", size.bytes>>10, size.citations)
		b.Run(name+"all", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Document(opts).JSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"make", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Document(opts)
			}
		})
		b.Run(name+"write", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := document.JSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"read", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := new(Answer).UnmarshalJSON(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A compact document is read as the same document, and has no empty members.
func TestDocumentCompact(t *testing.T) {
	for _, a := range []*Answer{fullAnswer(), {}, {Text: "Only text.", Alternatives: []*Answer{{Text: "Another."}}}} {
		want, err := a.Document(&DocumentOptions{Raw: true}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		compact, err := a.Document(&DocumentOptions{Raw: true}).AppendCompact(nil)
		if err != nil {
			t.Fatal(err)
		}
		var again Answer
		if err := json.Unmarshal(compact, &again); err != nil {
			t.Fatalf("%s: %v", compact, err)
		}
		got, err := again.Document(&DocumentOptions{Raw: true}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		for _, no := range []string{"null", `:""`, ":false", `"queries":[]`, `"chunks":[]`} {
			if bytes.Contains(compact, []byte(no)) && len(a.Sources) == 0 {
				t.Errorf("%s is in %s", no, compact)
			}
		}
	}
}
