package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestInteractions(t *testing.T) {
	for _, tc := range []struct {
		name string
		docs []string
		want []string
	}{
		{
			name: "a body: the question is a step, too; two sources of one span are one citation",
			docs: []string{`{"id":"v1_a","status":"completed","created":"2026-05-01T00:00:00Z","usage":{"total_tokens":3},"steps":[
				{"type":"user_input","content":[{"type":"text","text":"Frage?"}]},
				{"type":"thought","signature":"QQ=="},
				{"type":"model_output","content":[{"type":"text","text":"Der Käse 🧀 ist gelb.","annotations":[
					{"start_index":4,"end_index":14,"url":"https://k.example/1","title":"kaese.example","type":"url_citation"},
					{"start_index":4,"end_index":14,"url":"https://k.example/2","title":"Über Käse","type":"url_citation"},
					{"end_index":14,"url":"https://k.example/1","title":"kaese.example","type":"url_citation"}]},
					{"type":"image","data":"QQ=="},{"type":"text","text":" Ende"}]},
				{"type":"google_search_call","id":"s","arguments":{"queries":["käse","käse farbe"]}},
				{"type":"google_search_result","call_id":"s","result":[{"search_suggestions":"<p>"}]},
				{"type":"function_call","id":"f","name":"melk","arguments":{}}],"object":"interaction","model":"gemini-x"}`},
			want: []string{
				"head id=v1_a", "head model=gemini-x", "head created=2026-05-01T00:00:00Z", `meta usage {"total_tokens":3}`,
				`text 0/2/0 "Der Käse 🧀 ist gelb."`,
				`source url:https://k.example/1 web title="kaese.example" url="https://k.example/1" site="kaese.example"`,
				`source url:https://k.example/2 web title="Über Käse" url="https://k.example/2"`,
				"cite 2/0/4-14 0/2/0 claim 4-14 bytes of part -> url:https://k.example/1 -> url:https://k.example/2",
				"cite 2/0/0-14 0/2/0 claim 0-14 bytes of part -> url:https://k.example/1",
				`text 0/2/2 " Ende"`,
				`query "käse"`, `query "käse farbe"`,
				`display google-search-suggestions "<p>"`,
				`tool "f" melk`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "a stream: ids for resuming, annotations in two events, everything again at the end",
			docs: []string{
				`interaction.created {"interaction":{"id":"i","status":"in_progress","object":"interaction","model":"m"},"event_type":"interaction.created"}`,
				`interaction.status_update {"interaction_id":"i","status":"in_progress","event_type":"interaction.status_update"}`,
				`step.start {"index":0,"step":{"type":"thought"},"event_type":"step.start"}`,
				`step.delta {"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"hm"}},"event_type":"step.delta"}`,
				`step.delta {"index":0,"delta":{"type":"text","text":"not for the reader"},"event_type":"step.delta"}`,
				`step.stop {"index":0,"event_type":"step.stop"}`,
				`step.start {"index":1,"step":{"type":"model_output"},"event_type":"step.start"}`,
				`step.delta {"index":1,"delta":{"text":"سلام ","type":"text"},"event_type":"step.delta","event_id":"e1"}`,
				`step.delta {"index":1,"delta":{"text":"🌍\n","type":"text"},"event_type":"step.delta","event_id":"e22"}`,
				`step.delta {"index":1,"delta":{"annotations":[{"start_index":0,"end_index":8,"url":"https://a.example","title":"A","type":"url_citation"}],"type":"text_annotation_delta"},"event_type":"step.delta"}`,
				`step.delta {"index":1,"delta":{"annotations":[{"start_index":0,"end_index":8,"url":"https://b.example","title":"B","type":"url_citation"},{"start_index":0,"end_index":8,"url":"https://a.example","title":"A","type":"url_citation"}],"type":"text_annotation"},"event_type":"step.delta"}`,
				`step.stop {"index":1,"event_type":"step.stop"}`,
				`step.start {"index":2,"step":{"id":"s","type":"google_search_call"},"event_type":"step.start"}`,
				`step.delta {"index":2,"delta":{"type":"google_search_call","arguments":{"queries":["q"]}},"event_type":"step.delta"}`,
				`interaction.completed {"interaction":{"id":"i","status":"completed","steps":[{"type":"thought"},{"type":"model_output","content":[{"type":"text","text":"سلام 🌍\n","annotations":[{"start_index":0,"end_index":8,"url":"https://a.example","title":"A","type":"url_citation"}]}]},{"id":"s","type":"google_search_call","arguments":{"queries":["q"]}}]},"event_type":"interaction.completed"}`,
			},
			want: []string{
				"head id=i", "head model=m",
				`text 0/1/0 "سلام "`, `text 0/1/0 "🌍\n"`,
				`source url:https://a.example web title="A" url="https://a.example"`,
				"cite 1/0/0-8 0/1/0 claim 0-8 bytes of part -> url:https://a.example",
				`source url:https://b.example web title="B" url="https://b.example"`,
				"cite 1/0/0-8 0/1/0 claim 0-8 bytes of part -> url:https://a.example -> url:https://b.example",
				"end-part 0/1/0",
				`query "q"`,
				"head id=i",
				`final 0/1/0 "سلام 🌍\n"`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "files and places, without a place in the text, with bad ones, of nothing",
			docs: []string{`{"object":"interaction","status":"incomplete","steps":[{"type":"model_output","content":[{"type":"text","text":"x","annotations":[
				{"type":"file_citation","file_name":"a.pdf","document_uri":"fileSearchStores/s/documents/d","page_number":3,"start_index":0,"end_index":1},
				{"type":"file_citation","file_name":"a.pdf","document_uri":"fileSearchStores/s/documents/d","page_number":4,"start_index":0,"end_index":1},
				{"type":"file_citation","file_name":"b.pdf","document_uri":"gs://b/b.pdf","media_id":"m/1","custom_metadata":{"source_url":"https://ignored.example"}},
				{"type":"file_citation","source":"https://c.example/c","start_index":-1,"end_index":1},
				{"type":"place_citation","name":"Café","url":"https://maps.example/1","place_id":"places/p","end_index":1},
				{"type":"url_citation","start_index":0,"end_index":1},
				{"type":"hologram_citation","end_index":1},
				5]}]}]}`},
			want: []string{
				`text 0/0/0 "x"`,
				`source file:fileSearchStores/s/documents/d file global="fileSearchStores/s/documents/d" title="a.pdf" filename="a.pdf" page=3`,
				`source file:fileSearchStores/s/documents/d file global="fileSearchStores/s/documents/d" title="a.pdf" filename="a.pdf" page=4`,
				`source file:gs://b/b.pdf file global="m/1" title="b.pdf" url="gs://b/b.pdf" filename="b.pdf"`,
				`source web:https://c.example/c file url="https://c.example/c"`,
				"issue bad-number startIndex -1",
				`source map:places/p map global="places/p" title="Café" url="https://maps.example/1"`,
				"issue citation-without-source annotation url_citation",
				"issue unknown-type annotation hologram_citation",
				"issue citation-without-source annotation ",
				"cite 0/0/0-1 0/0/0 claim 0-1 bytes of part -> file:fileSearchStores/s/documents/d page=3 -> file:fileSearchStores/s/documents/d page=4 -> map:places/p",
				"cite 0/0/file:gs://b/b.pdf 0/0/0 claim nowhere -> file:gs://b/b.pdf",
				"cite 0/0/web:https://c.example/c 0/0/0 claim nowhere -> web:https://c.example/c",
				"finish 0 length", "end",
			},
		},
		{
			name: "the first version of the API: outputs instead of steps, sources as bare strings",
			docs: []string{
				`{"event_type":"interaction.start","interaction":{"id":"o","status":"in_progress"}}`,
				`{"event_type":"content.start","index":0,"content":{"type":"thought"}}`,
				`{"event_type":"content.start","index":1,"content":{"type":"text"}}`,
				`{"event_type":"content.delta","index":1,"delta":{"type":"text","text":"a"}}`,
				`{"event_type":"content.delta","index":1,"delta":{"type":"text","text":"b","annotations":[{"start_index":0,"end_index":2,"source":"https://s.example"},{"start_index":0,"end_index":1,"source":"Ein Buch"}]}}`,
				`{"event_type":"content.stop","index":1}`,
				`{"event_type":"interaction.complete","interaction":{"status":"requires_action","outputs":[{"type":"thought"},{"type":"text","text":"ab"},{"type":"function_call","id":"f","name":"go"}]}}`,
			},
			want: []string{
				"head id=o",
				`text 0/0/1 "a"`, `text 0/0/1 "b"`,
				`source web:https://s.example web url="https://s.example"`,
				`source document:Ein Buch document title="Ein Buch"`,
				"cite 0/1/0-2 0/0/1 claim 0-2 bytes of part -> web:https://s.example",
				"cite 0/1/0-1 0/0/1 claim 0-1 bytes of part -> document:Ein Buch",
				"end-part 0/0/1",
				`final 0/0/1 "ab"`, `tool "f" go`,
				"finish 0 tool", "end",
			},
		},
		{
			name: "a picture between two texts makes them two parts; pages that could not be fetched",
			docs: []string{
				`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"a"}}`,
				`{"event_type":"step.delta","index":0,"delta":{"type":"image","data":"QQ=="}}`,
				`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"b"}}`,
				`{"event_type":"step.stop","index":0}`,
				`{"event_type":"step.delta","index":1,"delta":{"type":"url_context_result","result":[{"url":"https://u.example","status":"success"},{"url":"https://v.example","status":"error"}]}}`,
			},
			want: []string{
				`text 0/0/0 "a"`, `text 0/0/1 "b"`, "end-part 0/0/1",
				`source url:https://u.example web url="https://u.example"`,
				`source url:https://v.example web url="https://v.example"`,
				"issue source-not-retrieved ERROR https://v.example",
			},
		},
		{
			name: "errors, unknown events and values of the wrong type",
			docs: []string{
				`{"event_type":"interaction.dreamt","x":1}`,
				`{"event_type":"step.delta","index":"a","delta":{"type":"smell"}}`,
				`{"event_type":"step.delta","index":0,"delta":7}`,
				`{"event_type":"step.start","index":0}`,
				`{"object":"interaction","steps":[{"type":"model_output","content":[{"type":"text","text":5,"annotations":{}}]},3,null,{"type":"telepathy"}]}`,
				`{"event_type":"error","error":{"code":"gone","message":"fort"}}`,
				`done [DONE]`,
			},
			want: []string{
				"issue unknown-type event interaction.dreamt",
				`issue bad-number index "a"`,
				"issue unknown-type step smell",
				"issue wrong-type text",
				"issue wrong-type annotations",
				"issue unknown-type step telepathy",
				`error gone "fort"`, "finish 0 error",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, record(t, "gemini-interactions", "", tc.docs...)); diff != "" {
				t.Errorf("what was said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInteractionsTemplate(t *testing.T) {
	const learned = `{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta","event_id":"e1","metadata":{}}`
	for _, tc := range []struct {
		doc string
		hot bool
	}{
		{strings.Replace(learned, `"a"`, `"\"b\" €"`, 1), true},
		{strings.Replace(learned, `"e1"`, `"quite \"another\""`, 1), true},
		{strings.Replace(learned, `"index":1`, `"index":2`, 1), false},
		{strings.Replace(learned, `"text"}`, `"text","annotations":[]}`, 1), false},
		{strings.Replace(learned, `{}}`, `{"x":1}}`, 1), false},
		{strings.Replace(learned, `"e1"`, `"e1`, 1), false},
		{learned[:40], false},
	} {
		p := newInteractions(&Config{Emit: func(*Op) {}}).(*interactions)
		p.Parse(nil, scan.Value(learned))
		if _, _, hot := p.deltas.match([]byte(tc.doc)); hot != tc.hot {
			t.Errorf("match = %v, want %v: %s", hot, tc.hot, tc.doc)
		}
	}
}

// The manifest counts annotations. Those of one span are one citation here, with a reference for each.
func TestInteractionsRecordings(t *testing.T) {
	for _, r := range recordings(t, isInteractions) {
		t.Run(r.path, func(t *testing.T) {
			lines := record(t, "gemini-interactions", r.request, r.docs...)
			got := 0
			for _, l := range lines {
				if strings.HasPrefix(l, "cite ") {
					got += strings.Count(l, " -> ")
				}
			}
			if fmt.Sprint(got) != r.cites {
				t.Errorf("%d references, the manifest says %s", got, r.cites)
			}
			if countPrefix(lines, "end") < 1 || countPrefix(lines, "issue ") > 0 || countPrefix(lines, "display ") != 1 {
				t.Errorf("no end, no search suggestions, or issues, in\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

func isInteractions(_, api string) bool { return strings.HasPrefix(api, "gemini-interactions") }

func FuzzInteractions(f *testing.F) {
	f.Add([]byte(`{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta","event_id":"e"}`))
	f.Add([]byte(`{"object":"interaction","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"x","annotations":[{"type":"file_citation","file_name":"a","end_index":1},{"type":"url_citation","url":"u","start_index":1,"end_index":"2"}]}]},{"type":"google_search_result","result":[{"search_suggestions":"<"}]}]}`))
	f.Add([]byte(`{"outputs":[{"type":"text","text":"x"}],"error":{}}`))
	fuzzGoogle(f, "gemini-interactions")
}

func BenchmarkInteractions(b *testing.B) {
	docs := [][]byte{[]byte(`{"index":1,"step":{"type":"model_output"},"event_type":"step.start"}`)}
	for range 300 {
		docs = append(docs, []byte(`{"index":1,"delta":{"text":"Mörike wrote of the mountain in spring, the notes of a later hand add, and ","type":"text"},"event_type":"step.delta"}`))
	}
	var list []string
	for i := range 20 {
		list = append(list, `{"start_index":`+strconv.Itoa(i*80)+`,"end_index":`+strconv.Itoa(i*80+40)+`,"url":"https://redirect.example/`+strings.Repeat("Ab3_", 40)+`","title":"berge.example","type":"url_citation"}`)
	}
	docs = append(docs, []byte(`{"index":1,"delta":{"annotations":[`+strings.Join(list, ",")+`],"type":"text_annotation_delta"},"event_type":"step.delta"}`))
	benchmarkGoogle(b, "gemini-interactions", isInteractions, docs)
}
