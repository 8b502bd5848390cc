package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// benchStream has the documents of one response, to be parsed repeatedly.
type benchStream struct {
	name, format string
	docs         [][]byte
}

// responsesStream returns a stream of the Responses API with n deltas and a link in every 40th.
func responsesStream(n int) benchStream {
	s := benchStream{name: "synthetic", format: "openai-responses"}
	add := func(format string, args ...any) { s.docs = append(s.docs, fmt.Appendf(nil, format, args...)) }
	add(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_0a","object":"response","created_at":1700000000,"status":"in_progress","model":"gpt-x","output":[]}}`)
	add(`{"type":"response.output_item.added","sequence_number":1,"output_index":1,"item":{"id":"msg_0123456789abcdef0123456789","type":"message","content":[]}}`)
	var text strings.Builder
	var notes []string
	for i := range n {
		word := " satama"
		if i%40 == 39 {
			word = " ([tide.example](https://tide.example/" + fmt.Sprint(i) + "))"
			start := text.Len() + 1
			notes = append(notes, fmt.Sprintf(`{"type":"url_citation","end_index":%d,"start_index":%d,"title":"Tide %d","url":"https://tide.example/%d"}`, start+len(word)-1, start, i, i))
		}
		text.WriteString(word)
		add(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_0123456789abcdef0123456789","output_index":1,"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"%.*s"}`, 2*i+2, word, i%16, "0123456789abcdef")
		if i%40 == 39 {
			add(`{"type":"response.output_text.annotation.added","sequence_number":%d,"item_id":"msg_0123456789abcdef0123456789","output_index":1,"content_index":0,"annotation_index":%d,"annotation":%s}`, 2*i+3, len(notes)-1, notes[len(notes)-1])
		}
	}
	part := fmt.Sprintf(`{"type":"output_text","annotations":[%s],"logprobs":[],"text":"%s"}`, strings.Join(notes, ","), text.String())
	item := `{"id":"msg_0123456789abcdef0123456789","type":"message","status":"completed","content":[` + part + `],"role":"assistant"}`
	add(`{"type":"response.output_text.done","sequence_number":%d,"output_index":1,"content_index":0,"text":"%s","logprobs":[]}`, 2*n, text.String())
	add(`{"type":"response.content_part.done","sequence_number":%d,"output_index":1,"content_index":0,"part":%s}`, 2*n+1, part)
	add(`{"type":"response.output_item.done","sequence_number":%d,"output_index":1,"item":%s}`, 2*n+2, item)
	add(`{"type":"response.completed","sequence_number":%d,"response":{"id":"resp_0a","object":"response","created_at":1700000000,"status":"completed","model":"gpt-x","output":[{"id":"rs_1","type":"reasoning","summary":[]},%s],"usage":{"total_tokens":1}}}`, 2*n+3, item)
	return s
}

// chatStream returns a stream of OpenAI's Chat Completions.
func chatStream(n int) benchStream {
	s := benchStream{name: "synthetic", format: "openai-chat"}
	for i := range n {
		s.docs = append(s.docs, fmt.Appendf(nil, `{"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_01","choices":[{"index":0,"delta":{"content":" satama"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"%.*s"}`, i%16, "0123456789abcdef"))
	}
	return s
}

// perplexityStream returns a stream that repeats its text and its sources in every chunk.
func perplexityStream(n int) benchStream {
	s := benchStream{name: "synthetic", format: "perplexity-chat"}
	var urls, results []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf(`"https://tide.example/%d"`, i))
		results = append(results, fmt.Sprintf(`{"title":"Tide %d","url":"https://tide.example/%d","date":"2024-01-02","last_updated":"2024-02-03","snippet":%q,"source":"web"}`, i, i, strings.Repeat("The tide comes in. ", 10)))
	}
	lists := `"citations":[` + strings.Join(urls, ",") + `],"search_results":[` + strings.Join(results, ",") + `]`
	var text strings.Builder
	for i := range n {
		text.WriteString(" satama")
		s.docs = append(s.docs, fmt.Appendf(nil, `{"id":"0123","model":"sonar","created":1700000000,"usage":{"completion_tokens":%d},%s,"object":"chat.completion.chunk","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"delta":{"role":"assistant","content":" satama"}}]}`, i, lists, text.String()))
	}
	return s
}

func BenchmarkResponses(b *testing.B)  { benchStreams(b, responsesStream(800)) }
func BenchmarkChat(b *testing.B)       { benchStreams(b, chatStream(800)) }
func BenchmarkPerplexity(b *testing.B) { benchStreams(b, perplexityStream(400)) }

// benchStreams measures a stream against json.Valid.
func benchStreams(b *testing.B, s benchStream) {
	b.Helper()
	size := 0
	for _, doc := range s.docs {
		size += len(doc)
	}
	b.Run(s.name+"/parse", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			p, err := New(s.format, quiet())
			if err != nil {
				b.Fatal(err)
			}
			for _, doc := range s.docs {
				p.Parse(nil, doc)
			}
			p.Close()
		}
	})
	b.Run(s.name+"/valid", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, doc := range s.docs {
				json.Valid(doc)
			}
		}
	})
}

func BenchmarkResponsesDelta(b *testing.B) {
	p := newResponses(quiet()).(*responses)
	docs := responsesStream(50).docs[2:41]
	for _, doc := range docs {
		p.Parse(nil, doc)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(docs[0])))
	for i := 0; b.Loop(); i++ {
		if i%len(docs) == 0 {
			clear(p.repeats.seen) // the same events are new again
		}
		p.Parse(nil, docs[i%len(docs)])
	}
}

func BenchmarkChatDelta(b *testing.B) {
	p := newChat(quiet())
	docs := chatStream(40).docs
	b.ReportAllocs()
	b.SetBytes(int64(len(docs[0])))
	for i := 0; b.Loop(); i++ {
		p.Parse(nil, docs[i%len(docs)])
	}
}
