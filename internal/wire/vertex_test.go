package wire

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestVertexSearch(t *testing.T) {
	for _, tc := range []struct {
		name string
		docs []string
		want []string
	}{
		{
			name: "an answer: offsets as strings, the three arms of a reference",
			docs: []string{`{"answer":{"name":"projects/p/answers/a","state":"SUCCEEDED","answerText":"Tee für 2 €. Kaffee.",
				"citations":[
					{"endIndex":"15","sources":[{"referenceId":"0"},{"referenceId":"1"}]},
					{"startIndex":"16","endIndex":"23","sources":[{"referenceId":"2"},{"referenceId":"3"},{"referenceId":"9"}]},
					{"startIndex":"16","endIndex":"23","sources":[{}]},
					{"startIndex":"x","endIndex":"23","sources":[{"referenceId":"1"}]},
					{"startIndex":"1","endIndex":"2"}],
				"references":[
					{"chunkInfo":{"chunk":"c1","content":"Tee kostet zwei Euro.","relevanceScore":0.5,"documentMetadata":{"document":"projects/p/documents/t","uri":"https://t.example/","title":"Tee","pageIdentifier":"4"}}},
					{"unstructuredDocumentInfo":{"document":"projects/p/documents/k","uri":"gs://b/karte.pdf","title":"Karte","chunkContents":[{"content":"eins","pageIdentifier":"1"},{"content":"zwei","pageIdentifier":"2","relevanceScore":0.25}]}},
					{"unstructuredDocumentInfo":{"uri":"https://e.example","chunkContents":[{"content":"nur dies"}]}},
					{"structuredDocumentInfo":{"document":"projects/p/documents/s","structData":{"preis":2}}}],
				"steps":[{"state":"SUCCEEDED","actions":[{"searchAction":{"query":"tee preis"},"observation":{"searchResults":[{"uri":"u"}]}}]}],
				"relatedQuestions":["Und Kakao?"],"createTime":"2026-01-01T00:00:00Z"},"answerQueryToken":"x"}`},
			want: []string{
				"head id=projects/p/answers/a",
				"head created=2026-01-01T00:00:00Z",
				`meta relatedQuestions ["Und Kakao?"]`,
				`query "tee preis"`,
				`source ref:0 web global="projects/p/documents/t" title="Tee" url="https://t.example/" content="Tee kostet zwei Euro." chunk="c1" score=0.5 page=4 at-chunk="c1"`,
				`source ref:1 file global="projects/p/documents/k" title="Karte" url="gs://b/karte.pdf" filename="karte.pdf" content="eins" page=1`,
				`source ref:1 file global="projects/p/documents/k" title="Karte" url="gs://b/karte.pdf" filename="karte.pdf" content="zwei" score=0.25 page=2`,
				`source ref:2 web url="https://e.example" content="nur dies"`,
				`source ref:3 document global="projects/p/documents/s" content="{\"preis\":2}"`,
				`text 0/0/0 "Tee für 2 €. Kaffee."`,
				"issue chunk-index-out-of-range citation 1 names reference 9 of 4",
				`issue bad-number startIndex "x"`,
				"issue citation-without-source citation 4",
				`cite 0/0/0-15 0/0/0 claim 0-15 bytes of answer -> ref:0 "Tee kostet zwei Euro." page=4 at-chunk="c1" -> ref:1`,
				`cite 0/0/16-23 0/0/0 claim 16-23 bytes of answer -> ref:2 "nur dies" -> ref:3 -> ref:0 "Tee kostet zwei Euro." page=4 at-chunk="c1"`,
				"cite 0/0/ref:1 0/0/0 claim nowhere -> ref:1",
				"finish 0 stop", "end",
			},
		},
		{
			name: "a stream whose documents hold the next piece, and a last one that holds the citations",
			docs: []string{
				`{"answer":{"state":"STREAMING","answerText":"Ein Satz. ","references":[{"chunkInfo":{"content":"c0","documentMetadata":{"uri":"https://0.example"}}}]}}`,
				`{"answer":{"state":"STREAMING","answerText":"Noch 界 einer."}}`,
				`{"answer":{"state":"SUCCEEDED","references":[{"chunkInfo":{"content":"c0","documentMetadata":{"uri":"https://0.example"}}},{"chunkInfo":{"content":"c1"}}],"citations":[{"endIndex":"9","sources":[{"referenceId":"0"}]},{"startIndex":"10","endIndex":"25","sources":[{"referenceId":"1"}]}]}}`,
			},
			want: []string{
				`source ref:0 web url="https://0.example" content="c0"`,
				`text 0/0/0 "Ein Satz. "`, `text 0/0/0 "Noch 界 einer."`,
				`source ref:1 document content="c1"`,
				`cite 0/0/0-9 0/0/0 claim 0-9 bytes of answer -> ref:0 "c0"`,
				`cite 0/0/10-25 0/0/0 claim 10-25 bytes of answer -> ref:1 "c1"`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "a stream whose documents hold everything so far, in an array; a citation is taken back, a list of references replaced",
			docs: []string{`[
				{"answer":{"state":"STREAMING","answerText":"Ein Satz.","references":[{"chunkInfo":{"content":"c0"}}],"citations":[{"endIndex":"3","sources":[{"referenceId":"0"}]}]}},
				{"answer":{"state":"STREAMING","answerText":"Ein Satz. Zwei."}},
				{"answer":{"state":"SUCCEEDED","answerText":"Ein Satz. Zwei!","references":[{"chunkInfo":{"content":"c9"}}],"citations":[{"endIndex":"9","sources":[{"referenceId":"0"}]}]}}]`},
			want: []string{
				"source ref:0 document content=\"c0\"",
				`text 0/0/0 "Ein Satz."`,
				`cite 0/0/0-3 0/0/0 claim 0-3 bytes of answer -> ref:0 "c0"`,
				`text 0/0/0 " Zwei."`,
				`source ref:1:0 document content="c9"`,
				`final 0/0/0 "Ein Satz. Zwei!"`,
				`cite 0/0/0-9 0/0/0 claim 0-9 bytes of answer -> ref:1:0 "c9"`,
				"withdraw 0/0/0-3",
				"finish 0 stop", "end",
			},
		},
		{
			name: "checked claims where there are no citations",
			docs: []string{`{"answer":{"state":"SUCCEEDED","answerText":"abc","groundingScore":0.8,"groundingSupports":[{"endIndex":"2","groundingScore":0.75,"groundingCheckRequired":true,"sources":[{"referenceId":"0"}]},{"startIndex":"2","endIndex":"3","groundingCheckRequired":false}],"references":[{"chunkInfo":{"content":"c0"}}]}}`},
			want: []string{
				"meta groundingScore 0.8",
				`source ref:0 document content="c0"`, `text 0/0/0 "abc"`,
				`cite 0/0/0-2 0/0/0 claim 0-2 bytes of answer -> ref:0 "c0" confidence=0.75`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "no answer was written, or it failed",
			docs: []string{
				`{"answer":{"state":"SUCCEEDED","answerText":"Dazu nichts.","answerSkippedReasons":["POTENTIAL_POLICY_VIOLATION"]}}`,
				`{"answer":{"state":"FAILED"}}`,
				`{"error":{"code":429,"message":"langsamer"}}`,
			},
			want: []string{
				`text 0/0/0 "Dazu nichts."`,
				`meta answerSkippedReasons ["POTENTIAL_POLICY_VIOLATION"]`,
				"finish 0 filter", "end", "finish 0 error",
				`error 429 "langsamer"`, "finish 0 error",
			},
		},
		{
			name: "a search summary with metadata",
			docs: []string{`{"results":[{"id":"1","document":{"name":"projects/p/documents/1","derivedStructData":{"title":"Eins","link":"https://1.example","snippets":[{"snippet":"…"}],"extractive_answers":[{"content":"genau","pageNumber":"2"}]}}}],
				"summary":{"summaryText":"Eins [1].","summaryWithMetadata":{"summary":"Eins.","citationMetadata":{"citations":[{"endIndex":"4","sources":[{"referenceIndex":"0"}]}]},"references":[{"title":"Eins","document":"projects/p/documents/1","uri":"https://1.example","chunkContents":[{"content":"stück"}]}]}},"totalSize":1}`},
			want: []string{
				`source result:0 web global="projects/p/documents/1" title="Eins" url="https://1.example" content="genau"`,
				`source ref:0 web global="projects/p/documents/1" title="Eins" url="https://1.example" content="stück"`,
				`text 0/0/0 "Eins."`,
				`cite 0/0/0-4 0/0/0 claim 0-4 bytes of answer -> ref:0 "stück"`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "a reply with numbers in its text, in snake_case",
			docs: []string{`{"reply":{"summary":{"summary_text":"Eins [1], zwei [2]."}},"conversation":{"state":"IN_PROGRESS"},"search_results":[{"document":{"name":"d1","struct_data":{"title":"Eins"}}},{"document":{"derived_struct_data":{"link":"gs://b/zwei.html"}}}]}`},
			want: []string{
				`source result:0 document global="d1" title="Eins"`,
				`source result:1 file url="gs://b/zwei.html" filename="zwei.html"`,
				"markers 0 result:0,result:1 style=0",
				`text 0/0/0 "Eins [1], zwei [2]."`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "values of the wrong type",
			docs: []string{
				`{"answer":7}`,
				`{"answer":{"state":3,"answerText":5,"citations":{},"references":[3,{},null]}}`,
				`{"answerText":"allein","state":"SUCCEEDED","citations":[7,{"endIndex":"2","sources":[{"referenceId":"2"}]}]}`,
				`{"other":1}`,
			},
			want: []string{
				"issue unknown-type reference ref:0", "source ref:0 document",
				"issue unknown-type reference ref:1", "source ref:1 document",
				"issue unknown-type reference ref:2", "source ref:2 document",
				"issue wrong-type answerText",
				`text 0/0/0 "allein"`,
				"issue citation-without-source citation 0",
				"cite 0/0/0-2 0/0/0 claim 0-2 bytes of answer -> ref:2",
				"finish 0 stop", "end",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, record(t, "vertex-search", "", tc.docs...)); diff != "" {
				t.Errorf("what was said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVertexSearchDetect(t *testing.T) {
	for doc, want := range map[string]bool{
		`{"answer":{"state":"STREAMING"}}`:                           true,
		`{"answer":{"answerText":"x"},"session":{}}`:                 true,
		`{"answer":{"answer_text":"x"}}`:                             true,
		`{"summary":{"summaryText":"x"},"results":[]}`:               true,
		`{"reply":{"summary":{"summarySkippedReasons":["X"]}}}`:      true,
		`{"name":"projects/p","answerText":"x","state":"SUCCEEDED"}`: true,
		`{"answer":{"state":"open"}}`:                                false,
		`{"answer":"x"}`:                                             false,
		`{"summary":{"text":"x"}}`:                                   false,
		`{"reply":"x"}`:                                              false,
	} {
		if got := looksVertexSearch(look(nil, scan.Value(doc))); got != want {
			t.Errorf("looksVertexSearch(%s) = %v, want %v", doc, got, want)
		}
	}
}

func FuzzVertexSearch(f *testing.F) {
	f.Add([]byte(`{"answer":{"state":"SUCCEEDED","answerText":"ab","citations":[{"endIndex":"2","sources":[{"referenceId":"0"}]}],"references":[{"chunkInfo":{"content":"c","documentMetadata":{"uri":"gs://b/x"}}},{"unstructuredDocumentInfo":{"chunkContents":[{"content":"x"}]}}]}}`))
	f.Add([]byte(`{"summary":{"summaryText":"a [1]","summaryWithMetadata":{"summary":"a","citationMetadata":{"citations":[{"sources":[{}]}]},"references":[{"uri":"u"}]}},"results":[{"document":{"derivedStructData":{"link":"u","snippets":[{}]}}}]}`))
	fuzzGoogle(f, "vertex-search")
}

func BenchmarkVertexSearch(b *testing.B) {
	var refs, cites []string
	for i := range 10 {
		n := strconv.Itoa(i)
		refs = append(refs, `{"chunkInfo":{"chunk":"projects/p/chunks/`+n+`","content":"`+strings.Repeat("Der Berg steht im Frühling. ", 40)+`","relevanceScore":0.5,"documentMetadata":{"document":"projects/p/documents/`+n+`","uri":"https://berge.example/`+n+`","title":"Berge"}}}`)
		cites = append(cites, `{"startIndex":"`+strconv.Itoa(i*29)+`","endIndex":"`+strconv.Itoa(i*29+28)+`","sources":[{"referenceId":"`+n+`"}]}`)
	}
	text := strings.Repeat("Der Berg steht im Frühling. ", 12)
	docs := [][]byte{[]byte(`{"answer":{"state":"STREAMING","references":[` + strings.Join(refs, ",") + `]}}`)}
	for i := range 12 {
		docs = append(docs, []byte(`{"answer":{"state":"STREAMING","answerText":"`+text[i*29:i*29+29]+`"}}`))
	}
	docs = append(docs, []byte(`{"answer":{"state":"SUCCEEDED","answerText":"`+text+`","citations":[`+strings.Join(cites, ",")+`],"references":[`+strings.Join(refs, ",")+`]}}`))
	benchmarkGoogle(b, "vertex-search", func(_, _ string) bool { return false }, docs)
}
