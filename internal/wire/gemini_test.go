package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestGenerate(t *testing.T) {
	for _, tc := range []struct {
		name string
		docs []string
		want []string
	}{
		{
			name: "a body with thoughts, tools and two supports, the first beginning at 0, which is left out",
			docs: []string{`{"candidates":[{"content":{"role":"model","parts":[
				{"text":"hm","thought":true},
				{"toolCall":{"id":"x","toolType":"GOOGLE_SEARCH_WEB"},"thoughtSignature":"QQ=="},
				{"inlineData":{"mimeType":"image/png","data":"QQ=="}},
				{"text":"Süße €3 🍰. Ende."}]},
				"finishReason":"STOP","groundingMetadata":{
				"webSearchQueries":["kuchen","","kuchen"],"retrievalQueries":["torte"],
				"searchEntryPoint":{"renderedContent":"<b>\u003e</b>"},
				"groundingChunks":[{"web":{"uri":"https://r.example/1","title":"backen.example","domain":""}},{"web":{"uri":"https://r.example/2","title":"Über Kuchen","domain":"kuchen.example"}}],
				"groundingSupports":[
					{"segment":{"endIndex":18,"text":"Süße €3 🍰."},"groundingChunkIndices":[1,0],"confidenceScores":[0.5]},
					{"segment":{"startIndex":19,"endIndex":24,"text":"Ende."},"groundingChunkIndices":[0]}],
				"retrievalMetadata":{"googleSearchDynamicRetrievalScore":0.25}}}],
				"usageMetadata":{"totalTokenCount":9},"modelVersion":"gemini-x","responseId":"r1","createTime":"2026-01-02T03:04:05Z"}`},
			want: []string{
				"head id=r1", "head model=gemini-x", "head created=2026-01-02T03:04:05Z",
				`text 0/0/0 "Süße €3 🍰. Ende."`,
				`meta retrievalMetadata {"googleSearchDynamicRetrievalScore":0.25}`,
				`query "kuchen"`, `query "torte"`,
				`display google-search-suggestions "<b>></b>"`,
				`source chunk:0 web title="backen.example" url="https://r.example/1" site="backen.example"`,
				`source chunk:1 web title="Über Kuchen" url="https://r.example/2" site="kuchen.example"`,
				`cite support:0 0/0/0 claim 0-18 bytes of answer shifts=[0 -2] quote="Süße €3 🍰." -> chunk:1 confidence=0.5 -> chunk:0`,
				`cite support:1 0/0/0 claim 19-24 bytes of answer shifts=[0 -2] quote="Ende." -> chunk:0`,
				"finish 0 stop", `meta usageMetadata {"totalTokenCount":9}`, "end",
			},
		},
		{
			name: "a stream: empty metadata changes nothing, pages come first and once, the last chunk has an empty text",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"text":"אב"}],"role":"model"},"index":0,"groundingMetadata":{},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://p.example/","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_SUCCESS"},{"retrievedUrl":"https://q.example/","urlRetrievalStatus":"URL_RETRIEVAL_STATUS_PAYWALL"},{"urlRetrievalStatus":"URL_RETRIEVAL_STATUS_ERROR"}]}}],"usageMetadata":{"totalTokenCount":9},"responseId":"r"}`,
				`{"candidates":[{"content":{"parts":[{"text":"גד"}],"role":"model"},"index":0,"groundingMetadata":{}}],"usageMetadata":{"totalTokenCount":10},"responseId":"r"}`,
				`{"candidates":[{"content":{"parts":[{"text":"\n"}],"role":"model"},"index":0,"groundingMetadata":{}}],"usageMetadata":{"totalTokenCount":101},"responseId":"r"}`,
				`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"QQ=="}]},"index":0,"finishReason":"MAX_TOKENS","groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://p.example/"}}],"groundingSupports":[{"segment":{"startIndex":2,"endIndex":6,"text":"בג"},"groundingChunkIndices":[0]}]}}]}`,
			},
			want: []string{
				"head id=r", `text 0/0/0 "אב"`, `text 0/0/0 "גד"`, `text 0/0/0 "\n"`, `text 0/0/0 ""`,
				`source chunk:0 web url="https://p.example/"`,
				`source url:https://p.example/ web url="https://p.example/"`,
				`source url:https://q.example/ web url="https://q.example/"`,
				"issue source-not-retrieved PAYWALL https://q.example/",
				"issue source-not-retrieved ERROR",
				`cite support:0 0/0/0 claim 2-6 bytes of answer quote="בג" -> chunk:0`,
				"finish 0 length", "end",
			},
		},
		{
			name: "a broken stream says what it has, the metadata of an early chunk too",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"text":"a"}]},"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example"}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"b"}]},"groundingMetadata":{"groundingChunks":[],"groundingSupports":[{"segment":{"endIndex":2},"groundingChunkIndices":[0]}]}}]}`,
			},
			want: []string{
				`text 0/0/0 "a"`, `text 0/0/0 "b"`,
				`source chunk:0 web url="https://a.example"`,
				"cite support:0 0/0/0 claim 0-2 bytes of answer -> chunk:0",
			},
		},
		{
			name: "a part index and several parts: where else the offsets may count from",
			docs: []string{`{"candidates":[{"content":{"parts":[{"text":"eins "},{"executableCode":{"code":"1"}},{"text":"zwei "},{"text":"drei"}]},"finishReason":"STOP",
				"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[
				{"segment":{"partIndex":3,"endIndex":4,"text":"drei"},"groundingChunkIndices":[0]},
				{"segment":{"startIndex":5,"endIndex":9,"text":"zwei"},"groundingChunkIndices":[0]}]}}]}`},
			want: []string{
				`text 0/0/0 "eins "`, `text 0/0/0 "zwei "`, `text 0/0/0 "drei"`,
				`source chunk:0 web url="u"`,
				`cite support:0 0/0/0 claim 0-4 bytes of answer shifts=[10 0 5] quote="drei" -> chunk:0`,
				`cite support:1 0/0/0 claim 5-9 bytes of answer shifts=[0 5 10] quote="zwei" -> chunk:0`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "thoughts before the text and in it: the offsets may count them",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"text":"hm é","thought":true}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"eins "},{"text":"\n\u00e9h","thought":true},{"text":"zwei"}]},"finishReason":"STOP",
				"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[
				{"segment":{"startIndex":14,"endIndex":18,"text":"zwei"},"groundingChunkIndices":[0]}]}}]}`,
			},
			want: []string{
				`text 0/0/0 "eins "`, `text 0/0/0 "zwei"`,
				`source chunk:0 web url="u"`,
				`cite support:0 0/0/0 claim 14-18 bytes of answer shifts=[0 5 -5 -9] quote="zwei" -> chunk:0`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "a file's name in the place of an address",
			docs: []string{`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[
				{"retrievedContext":{"uri":"fileSearchStores/s/documents/d","title":"d","text":"t"}},
				{"retrievedContext":{"uri":"fileSearchStores/s/documents/e","mediaId":"m","customMetadata":{"source_url":"https://e.example/"}}}],
				"groundingSupports":[{"segment":{"endIndex":3},"groundingChunkIndices":[0]}]}}]}`},
			want: []string{
				`source chunk:0 file global="fileSearchStores/s/documents/d" title="d" content="t"`,
				`source chunk:1 file global="m" url="https://e.example/"`,
				`cite support:0 0/0/0 claim 0-3 bytes of answer -> chunk:0 "t"`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "chunks of files, records, places and pictures",
			docs: []string{`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[
				{"retrievedContext":{"uri":"gs://b/a.pdf","title":"a.pdf","text":"whole","ragChunk":{"text":"piece","pageSpan":{"firstPage":2,"lastPage":4},"chunkId":"c9","fileId":"f1"}}},
				{"retrievedContext":{"text":"t","fileSearchStore":"fileSearchStores/s","pageNumber":3,"mediaId":"fileSearchStores/s/media/m","customMetadata":[{"key":"k","numericValue":1},{"key":"source_url","stringValue":"https://doc.example/x"}]}},
				{"retrievedContext":{"uri":"https://kb.example/1","title":"One"}},
				{"maps":{"uri":"https://maps.example/1","title":"Café","text":"★","placeId":"places/p"}},
				{"image":{"sourceUri":"https://page.example","imageUri":"https://page.example/i.png","title":"I","domain":"page.example"}},
				{},
				{"newArm":{"uri":"https://new.example","title":"N"}},
				{"web":null,"retrieved_context":{"document_name":"projects/p/documents/d","rag_chunk":{"text":"q","page_span":{"first_page":7,"last_page":7}}},"maps":null}],
				"groundingSupports":[{"segment":{"endIndex":3},"groundingChunkIndices":[0,5]}]}}]}`},
			want: []string{
				`source chunk:0 file global="f1" title="a.pdf" url="gs://b/a.pdf" filename="a.pdf" content="piece" chunk="c9" page=2 last-page=4 at-chunk="c9"`,
				`source chunk:1 file global="fileSearchStores/s/media/m" url="https://doc.example/x" content="t" page=3`,
				`source chunk:2 document title="One" url="https://kb.example/1"`,
				`source chunk:3 map global="places/p" title="Café" url="https://maps.example/1" content="★"`,
				`source chunk:4 image title="I" url="https://page.example" site="page.example"`,
				"issue unknown-type grounding chunk 5",
				"source chunk:5 document",
				"issue unknown-type grounding chunk 6",
				`source chunk:6 document title="N" url="https://new.example"`,
				`source chunk:7 file global="projects/p/documents/d" content="q" page=7`,
				`cite support:0 0/0/0 claim 0-3 bytes of answer -> chunk:0 "piece" page=2 last-page=4 at-chunk="c9" -> chunk:5`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "supports that cannot be placed or point nowhere",
			docs: []string{`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[
				{"segment":{"startIndex":4,"text":"nur Worte"},"groundingChunkIndices":[0]},
				{"segment":{"startIndex":-4,"endIndex":9,"text":"w"},"groundingChunkIndices":[0,1]},
				{"segment":{"endIndex":1.5},"groundingChunkIndices":["0"]},
				{"segment":{"endIndex":3},"groundingChunkIndices":[7,-1,"x"]},
				{"segment":{"endIndex":3}},
				{"groundingChunkIndices":[0]},
				7,
				{"segment_text":"alt","segment":{"startIndex":1,"endIndex":4},"supportChunkIndices":[0],"confidenceScore":[0.75]}]}}]}`},
			want: []string{
				`source chunk:0 web url="u"`,
				`cite support:0 0/0/0 claim nowhere quote="nur Worte" -> chunk:0`,
				"issue bad-number startIndex -4",
				"issue chunk-index-out-of-range support:1 names chunk 1 of 1",
				`cite support:1 0/0/0 claim nowhere quote="w" -> chunk:0`,
				"issue bad-number endIndex 1.5",
				"cite support:2 0/0/0 claim nowhere -> chunk:0",
				"issue chunk-index-out-of-range support:3 names chunk 7 of 1",
				"issue bad-number groundingChunkIndices -1",
				`issue bad-number groundingChunkIndices "x"`,
				"issue citation-without-source support:3",
				"issue citation-without-source support:4",
				"cite support:5 0/0/0 claim nowhere -> chunk:0",
				"issue citation-without-source support:6",
				`cite support:7 0/0/0 claim 1-4 bytes of answer quote="alt" -> chunk:0 confidence=0.75`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "recitations: bare ones, dated ones, licences; a later chunk brings further ones and may repeat",
			docs: []string{
				`{"candidates":[{"finishReason":"STOP","citationMetadata":{"citationSources":[{"startIndex":2,"endIndex":9,"uri":"https://c.example","license":"mit"},{},{"uri":"https://c.example"},{"uri":"https://c.example"}]}}]}`,
				`{"candidates":[{"finishReason":"STOP","citationMetadata":{"citations":[{},{"uri":"https://c.example"},{"endIndex":3,"title":"T","publicationDate":{"year":2019,"month":5}},{"startIndex":4,"endIndex":5}]}}]}`,
			},
			want: []string{
				`source recited:https://c.example web url="https://c.example" license="mit"`,
				"cite citation:0 0/0/0 claim 2-9 bytes of answer -> recited:https://c.example",
				"issue citation-without-source citation:1",
				`source recited:https://c.example web url="https://c.example"`,
				"cite citation:2 0/0/0 claim nowhere -> recited:https://c.example",
				"cite citation:3 0/0/0 claim nowhere -> recited:https://c.example",
				"finish 0 stop", "end",
				`source citation:4 document title="T" published="2019-05"`,
				"cite citation:4 0/0/0 claim 0-3 bytes of answer -> citation:4",
				"issue citation-without-source citation:5",
				"finish 0 stop", "end",
			},
		},
		{
			name: "metadata that changes after it was said: other keys, and the citation that is gone is taken back",
			docs: []string{
				`{"candidates":[{"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"a"}},{"web":{"uri":"b"}}],"groundingSupports":[{"segment":{"endIndex":1},"groundingChunkIndices":[0]},{"segment":{"endIndex":2},"groundingChunkIndices":[1]}]}}]}`,
				`{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"a"}},{"web":{"uri":"c"}}],"groundingSupports":[{"segment":{"endIndex":1},"groundingChunkIndices":[1]}]}}]}`,
			},
			want: []string{
				`source chunk:0 web url="a"`, `source chunk:1 web url="b"`,
				"cite support:0 0/0/0 claim 0-1 bytes of answer -> chunk:0",
				"cite support:1 0/0/0 claim 0-2 bytes of answer -> chunk:1",
				"finish 0 stop", "end",
				`source chunk:1~1 web url="c"`,
				"cite support:0 0/0/0 claim 0-1 bytes of answer -> chunk:1~1",
				"withdraw support:1",
			},
		},
		{
			name: "several candidates keep their sources and ends apart",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"text":"eins"}]}},{"index":1,"content":{"parts":[{"text":"zwei"}]},"finishReason":"SAFETY","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"endIndex":4},"groundingChunkIndices":[0]}],"retrievalMetadata":{"x":1}}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}]}`,
			},
			want: []string{
				`text 0/0/0 "eins"`, `text 1/0/0 "zwei"`,
				`meta candidate:1/retrievalMetadata {"x":1}`,
				`source candidate:1/chunk:0 web url="u"`,
				"cite candidate:1/support:0 1/0/0 claim 0-4 bytes of answer -> candidate:1/chunk:0",
				"finish 1 filter",
				`text 0/0/0 "!"`, "finish 0 stop", "end",
			},
		},
		{
			name: "snake_case as some SDKs write it down, with nulls and an enum's long name",
			docs: []string{`{"candidates":[{"content":{"parts":[{"text":"x","thought":null,"inline_data":null}]},"finish_reason":"FinishReason.STOP","index":null,"citation_metadata":null,"url_context_metadata":null,
				"grounding_metadata":{"grounding_chunks":[{"web":{"uri":"u","title":null,"domain":null},"maps":null}],"grounding_supports":[{"segment":{"start_index":null,"end_index":1,"part_index":null,"text":"x"},"grounding_chunk_indices":[0],"confidence_scores":null}],"web_search_queries":["q"],"search_entry_point":{"rendered_content":"<i>","sdk_blob":null},"retrieval_metadata":null}}],
				"model_version":"m","response_id":"r","usage_metadata":null}`},
			want: []string{
				"head id=r", "head model=m", `text 0/0/0 "x"`, `query "q"`, `display google-search-suggestions "<i>"`,
				`source chunk:0 web url="u"`,
				`cite support:0 0/0/0 claim 0-1 bytes of answer quote="x" -> chunk:0`,
				"finish 0 stop", "end",
			},
		},
		{
			name: "a function call, the pieces of its arguments, and why it ended",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"functionCall":{"id":"f1","name":"look","partialArgs":[{}],"willContinue":true}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{}]}},{"functionCall":{"name":"go","args":{}}}]},"finishReason":"STOP"}]}`,
			},
			want: []string{`tool "f1" look`, `tool "" go`, "finish 0 tool", "end"},
		},
		{
			name: "a refused prompt has no candidates",
			docs: []string{`{"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"m"}`},
			want: []string{"head model=m", `meta promptFeedback {"blockReason":"SAFETY"}`, "finish 0 filter", "end"},
		},
		{
			name: "a batch wraps the response, an array of chunks is a stream",
			docs: []string{`[{"response":{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}},{"candidates":[{"finishReason":"STOP"}]}]`},
			want: []string{`text 0/0/0 "a"`, "finish 0 stop", "end"},
		},
		{
			name: "an error in the middle of a stream",
			docs: []string{
				`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`,
				`{"error":{"code":503,"message":"überlastet","status":"UNAVAILABLE"}}`,
			},
			want: []string{`text 0/0/0 "a"`, `error 503 "überlastet"`, "finish 0 error"},
		},
		{
			name: "values of the wrong type, and reasons nobody knows",
			docs: []string{
				`{"candidates":{"content":1}}`,
				`{"candidates":[{"index":-1,"content":{"parts":{"text":"x"}}},null,7]}`,
				`{"candidates":[{"content":{"parts":[{"text":5},{"text":null},"x",{"text":"ok"}]},"finishReason":"NEWS","groundingMetadata":[],"citationMetadata":{"citations":{}}}]}`,
			},
			want: []string{
				"issue wrong-type candidates",
				"issue bad-number candidates.index -1",
				"issue wrong-type content.parts",
				"issue wrong-type parts.text",
				`text 0/0/0 "ok"`,
				"issue unknown-type finishReason NEWS",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, record(t, "gemini-generate", "", tc.docs...)); diff != "" {
				t.Errorf("what was said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGenerateFinish(t *testing.T) {
	for reason, want := range map[string]string{
		`"STOP"`:                      FinishStop,
		`"stop"`:                      FinishStop,
		`1`:                           FinishStop,
		`"MAX_TOKENS"`:                FinishLength,
		`"RECITATION"`:                FinishFilter,
		`"BLOCKLIST"`:                 FinishFilter,
		`"PROHIBITED_CONTENT"`:        FinishFilter,
		`"SPII"`:                      FinishFilter,
		`"LANGUAGE"`:                  FinishFilter,
		`"IMAGE_SAFETY"`:              FinishFilter,
		`"MALFORMED_FUNCTION_CALL"`:   FinishError,
		`"UNEXPECTED_TOOL_CALL"`:      FinishError,
		`"OTHER"`:                     "",
		`"FINISH_REASON_UNSPECIFIED"`: "none",
		`null`:                        "none",
	} {
		got := record(t, "gemini-generate", "", `{"candidates":[{"finishReason":`+reason+`}]}`)
		expected := []string{"finish 0 " + want, "end"}
		switch want {
		case "":
			expected = []string{"end"} // over, and that is all that is known
		case "none":
			expected = nil
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// Of two texts that differ in the usage alone the second is read without a walk, and of all others none.
func TestGenerateTemplate(t *testing.T) {
	const learned = `{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"x":[{"tokenCount":99}]},"modelVersion":"m"}`
	for _, tc := range []struct {
		doc string
		hot bool
	}{
		{strings.Replace(learned, `"a"`, `"longer \"text\" \u00e9"`, 1), true},
		{strings.Replace(learned, `:9,`, `:10,`, 1), true},
		{strings.Replace(learned, `:99}`, `:100}`, 1), true},
		{strings.Replace(learned, `:99}`, `:1}`, 1), true},
		{strings.Replace(learned, `:99}`, `:}`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":1`, 1), false},
		{strings.Replace(learned, `"role"`, `"thought":true,"role"`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":0,"finishReason":"STOP"`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":0,"groundingMetadata":{"webSearchQueries":["q"]}`, 1), false},
		{strings.Replace(learned, `"m"}`, `"m","error":{}}`, 1), false},
		{strings.TrimSuffix(learned, "}"), false},
		{learned[:60], false},
	} {
		g := newGenerate(&Config{Emit: func(*Op) {}}).(*generate)
		g.Parse(nil, scan.Value(learned))
		if _, _, hot := g.chunks.match([]byte(tc.doc)); hot != tc.hot {
			t.Errorf("match = %v, want %v: %s", hot, tc.hot, tc.doc)
		}
	}
}

// Whatever a stream is cut into, the same is said as about one body, the text's pieces aside.
func TestGenerateStreamIsBody(t *testing.T) {
	const meta = `"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"startIndex":3,"endIndex":7,"text":"界🍰"},"groundingChunkIndices":[0]}]}`
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	body := record(t, "gemini-generate", "", `{"candidates":[{"content":{"parts":[{"text":`+quote("世界🍰e\u0301")+`}]},`+meta+`}]}`)
	var docs []string
	for _, r := range "世界🍰e\u0301" {
		docs = append(docs, `{"candidates":[{"content":{"parts":[{"text":`+quote(string(r))+`}]}}]}`)
	}
	docs = append(docs, `{"candidates":[{"content":{"parts":[{"text":""}]},`+meta+`}]}`)
	if diff := cmp.Diff(butText(body), butText(record(t, "gemini-generate", "", docs...))); diff != "" {
		t.Errorf("body and stream differ (-body +stream):\n%s", diff)
	}
}

func butText(lines []string) []string {
	var kept []string
	for _, l := range lines {
		if !strings.HasPrefix(l, "text ") {
			kept = append(kept, l)
		}
	}
	return kept
}

func TestSiteOf(t *testing.T) {
	for title, want := range map[string]string{
		"wetter.example": "wetter.example", "sub.müller.example": "sub.müller.example", "example.com": "example.com",
		"": "", "Wetter": "", "Das Wetter. Heute": "", "report.pdf": "", "v1.2": "", "a..b": "", ".com": "", "x.": "", "https://a.example": "",
	} {
		if got := siteOf(title); got != want {
			t.Errorf("siteOf(%q) = %q, want %q", title, got, want)
		}
	}
}

// The manifest counts every support and every recitation. Those that name no source at all are no citations here but issues.
func TestGenerateRecordings(t *testing.T) {
	for _, r := range recordings(t, isGenerate) {
		t.Run(r.path, func(t *testing.T) {
			lines := record(t, "gemini-generate", r.request, r.docs...)
			got := countPrefix(lines, "cite ") + countPrefix(lines, "issue "+IssueSourceless)
			if fmt.Sprint(got) != r.cites {
				t.Errorf("%d citations, the manifest says %s", got, r.cites)
			}
			if countPrefix(lines, "end") == 0 || countPrefix(lines, "head model") == 0 && strings.Contains(r.docs[0], "modelVersion") {
				t.Errorf("no end or no model in\n%s", strings.Join(lines, "\n"))
			}
			if wrong := countPrefix(lines, "issue "+IssueWrongType) + countPrefix(lines, "issue "+IssueBadNumber); wrong > 0 {
				t.Errorf("%d values are called wrong", wrong)
			}
		})
	}
}

func isGenerate(provider, api string) bool {
	return provider == "gemini" && !strings.HasPrefix(api, "gemini-interactions")
}

// Each of the formats here recognises its own recordings from the first document and nobody else's.
func TestGoogleDetect(t *testing.T) {
	for _, r := range recordings(t, func(_, _ string) bool { return true }) {
		want := ""
		switch {
		case isGenerate(strings.Split(r.path, "/")[0], r.api):
			want = "gemini-generate"
		case strings.HasPrefix(r.api, "gemini-interactions"):
			want = "gemini-interactions"
		}
		for i, doc := range r.data {
			got := Detect(r.events[i], doc)
			if got != "gemini-generate" && got != "gemini-interactions" && got != "vertex-search" {
				got = ""
			}
			if got != want {
				t.Errorf("%s: document %d is taken for %q, want %q", r.path, i, got, want)
			}
		}
	}
	for _, doc := range []string{`{}`, `[]`, `null`, `{"type":"ping"}`, `{"error":{"code":400,"message":"x"}}`, `{"candidates":3}`, `{"answer":"text"}`, `{"response":{"id":"r"},"type":"response.created"}`, `{"summary":"s"}`} {
		s := look(nil, scan.Value(doc))
		if looksGenerate(s) || looksInteractions(s) || looksVertexSearch(s) {
			t.Errorf("%s is claimed", doc)
		}
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"usageMetadata":{"a":1}}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u","title":"t"}},{"retrievedContext":{"ragChunk":{"pageSpan":{}}}}],"groundingSupports":[{"segment":{"startIndex":1,"endIndex":2,"partIndex":1,"text":"b"},"groundingChunkIndices":[0,1],"confidenceScores":[1]}]}}]}`))
	f.Add([]byte(`[{"response":{"candidates":[{"citationMetadata":{"citations":[{},{"uri":"u","publicationDate":{"year":1}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"x"}]}}]}}]`))
	fuzzGoogle(f, "gemini-generate")
}

// fuzzGoogle lets a parser read any bytes, twice, and looks at what the operations point to.
func fuzzGoogle(f *testing.F, format string) {
	f.Helper()
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := New(format, &Config{Emit: func(op *Op) { _ = line(op) }})
		if err != nil {
			t.Fatal(err)
		}
		Detect(nil, doc)
		p.Parse(nil, doc)
		p.Parse([]byte("step.delta"), doc)
		p.Parse(nil, doc[:len(doc)/2])
		p.Close()
	})
}

// generateStream returns the chunks of an answer of about n bytes of text.
func generateStream(n int) [][]byte {
	var docs [][]byte
	text := `Mörike wrote of the mountain in spring, the notes of a later hand add, and `
	for size, tokens := 0, 7; size < n; size += len(text) {
		tokens += 15
		docs = append(docs, []byte(`{"candidates": [{"content": {"parts": [{"text": `+strconv.Quote(text)+`}],"role": "model"},"index": 0,"groundingMetadata": {}}],"usageMetadata": {"promptTokenCount": 22,"candidatesTokenCount": `+strconv.Itoa(tokens)+`,"totalTokenCount": `+strconv.Itoa(tokens+90)+`,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 22}],"thoughtsTokenCount": 68},"modelVersion": "gemini-x","responseId": "M1GDaNrGOJ7NkdUPqvinwAs"}`))
	}
	var chunks, supports []string
	for i := range 20 {
		chunks = append(chunks, `{"web": {"uri": "https://redirect.example/`+strings.Repeat("Ab3_", 40)+strconv.Itoa(i)+`","title": "berge.example"}}`)
		supports = append(supports, fmt.Sprintf(`{"segment": {"startIndex": %d,"endIndex": %d,"text": %q},"groundingChunkIndices": [%d]}`, i*len(text), i*len(text)+20, text[:20], i))
	}
	docs = append(docs, []byte(`{"candidates": [{"content": {"parts": [{"text": "."}],"role": "model"},"finishReason": "STOP","index": 0,"groundingMetadata": {"groundingChunks": [`+strings.Join(chunks, ",")+`],"groundingSupports": [`+strings.Join(supports, ",")+`],"searchEntryPoint": {"renderedContent": "`+strings.Repeat(`<style>\n.x{}\n`, 200)+`"}}}]}`))
	return docs
}

func BenchmarkGenerate(b *testing.B) {
	benchmarkGoogle(b, "gemini-generate", isGenerate, generateStream(20_000))
}

// benchmarkGoogle measures a parser against a bare check of the JSON, on a made-up stream and on recordings.
func benchmarkGoogle(b *testing.B, format string, want func(provider, api string) bool, stream [][]byte) {
	b.Helper()
	run := func(name string, responses []recording) {
		size := 0
		for _, r := range responses {
			for _, doc := range r.data {
				size += len(doc)
			}
		}
		b.Run(name+"/json.Valid", func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				for _, r := range responses {
					for _, doc := range r.data {
						json.Valid(doc)
					}
				}
			}
		})
		b.Run(name+"/parse", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range responses {
					parseRecording(b, format, &r)
				}
			}
		})
	}
	run("stream", []recording{{data: stream, events: make([][]byte, len(stream))}})
	if all := recordings(b, want); len(all) > 0 {
		run("recordings", all)
	}
}

func parseRecording(b *testing.B, format string, r *recording) {
	b.Helper()
	p, err := New(format, &Config{Emit: func(*Op) {}})
	if err != nil {
		b.Fatal(err)
	}
	for i, doc := range r.data {
		p.Parse(r.events[i], doc)
	}
	p.Close()
}

// The deltas of a stream cost no allocation.
func TestGoogleDeltaAllocs(t *testing.T) {
	for format, docs := range map[string][2]string{
		"gemini-generate": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"totalTokenCount":9},"modelVersion":"m"}`,
			`{"candidates":[{"content":{"parts":[{"text":"b\n\u00e9"}],"role":"model"},"index":0}],"usageMetadata":{"totalTokenCount":10},"modelVersion":"m"}`,
		},
		"gemini-interactions": {
			`{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta"}`,
			`{"index":1,"delta":{"text":"b\n\u00e9","type":"text"},"event_type":"step.delta"}`,
		},
	} {
		p, err := New(format, &Config{Emit: func(*Op) {}})
		if err != nil {
			t.Fatal(err)
		}
		p.Parse(nil, []byte(docs[0]))
		next := []byte(docs[1])
		p.Parse(nil, next)
		if n := testing.AllocsPerRun(100, func() { p.Parse(nil, next) }); n != 0 {
			t.Errorf("%s: %v allocations for a delta", format, n)
		}
	}
}

func BenchmarkGoogleDelta(b *testing.B) {
	for format, doc := range map[string]string{
		"gemini-generate":     `{"candidates": [{"content": {"parts": [{"text": "the mountain in spring"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 22,"candidatesTokenCount": 15,"totalTokenCount": 90},"modelVersion": "gemini-x","responseId": "r"}`,
		"gemini-interactions": `{"index":1,"delta":{"text":"the mountain in spring","type":"text"},"event_type":"step.delta"}`,
	} {
		b.Run(format, func(b *testing.B) {
			p, err := New(format, &Config{Emit: func(*Op) {}})
			if err != nil {
				b.Fatal(err)
			}
			data := []byte(doc)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p.Parse(nil, data)
			}
		})
	}
}
