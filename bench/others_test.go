package bench_test

import (
	"fmt"
	"strings"
)

// anthropicMessages has a block for every statement that rests on a source, with the citation before its text.
func anthropicMessages(text []piece) *stream {
	s := &stream{format: "anthropic-messages", read: byHand(func(e *anthropicEvent) string { return e.Delta.Text })}
	add := func(kind, format string, args ...any) {
		s.add(kind, `{"type":%q%s}`, kind, fmt.Sprintf(format, args...))
	}
	add("message_start", `,"message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":9}}`)
	add("content_block_start", `,"index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{}}`)
	add("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"harbour survey\"}"}`)
	add("content_block_stop", `,"index":0`)
	add("content_block_start", `,"index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":%s}`,
		list(sources, func(i int) string {
			return fmt.Sprintf(`{"type":"web_search_result","title":%q,"url":%q,"encrypted_content":%q,"page_age":"March %d, 2025"}`,
				title(i), url(i), strings.Repeat("Eo8BCioIARgCIiQ3", 100), i%28+1)
		}))
	add("content_block_stop", `,"index":1`)
	index := 1
	for i, p := range text {
		if source, begins := blockAt(text, i); begins {
			index++
			add("content_block_start", `,"index":%d,"content_block":{"type":"text","text":""%s}`, index, `,"citations":[]`)
			if source >= 0 {
				add("content_block_delta", `,"index":%d,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","cited_text":%q,"url":%q,"title":%q,"encrypted_index":%q}}`,
					index, content(source)[:150], url(source), title(source), strings.Repeat("Eo8BCioIARgCIiQ3", 8))
			}
		}
		add("content_block_delta", `,"index":%d,"delta":{"type":"text_delta","text":%s}%.*s`, index, quoted(p.text), i%15, "               ")
		if _, begins := blockAt(text, i+1); begins {
			add("content_block_stop", `,"index":%d`, index)
		}
	}
	add("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9000}`)
	add("message_stop", "")
	return s
}

// blockAt reports whether a block begins with piece i, and which source it rests on, or -1. In formats that cite by
// block, every statement that rests on a source is one.
func blockAt(text []piece, i int) (source int, begins bool) {
	const statement = citeEvery / 2
	if i == len(text) {
		return -1, true
	}
	source = text[min(i-i%statement+statement, len(text))-1].source
	return source, i == 0 || i%statement == 0 && (source >= 0 || text[i-1].source >= 0)
}

// grounding returns Gemini's metadata for a story, sent at its end.
func grounding(text []piece) string {
	cited := passages(text)
	supports := list(len(cited), func(i int) string {
		c := cited[i]
		return fmt.Sprintf(`{"segment":{"startIndex":%d,"endIndex":%d,"text":%s},"groundingChunkIndices":[%d,%d]}`,
			c.bytes[0], c.bytes[1], quoted(c.words), c.source, (c.source+1)%sources)
	})
	chunks := list(sources, func(i int) string {
		return fmt.Sprintf(`{"web":{"uri":"https://search.example/redirect/%s%d","title":"harbour.example"}}`, strings.Repeat("AUZIYQE", 20), i)
	})
	return fmt.Sprintf(`"groundingMetadata":{"searchEntryPoint":{"renderedContent":%s},"groundingChunks":%s,"groundingSupports":%s,"webSearchQueries":["harbour survey"]}`,
		quoted("<div class=\"chips\">"+strings.Repeat("<a href=\"x\">harbour</a>", 40)+"</div>"), chunks, supports)
}

func geminiGenerate(text []piece) *stream {
	s := &stream{format: "gemini-generate", read: byHand((*geminiChunk).text)}
	for i, p := range text {
		last := ""
		if i == len(text)-1 {
			last = `,"finishReason":"STOP",` + grounding(text)
		}
		s.add("", `{"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":%d,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":15}]},"modelVersion":"gemini-x","responseId":"0a1b2c3d4e5f"}`,
			quoted(p.text), last, 8*i+8, 8*i+23)
	}
	return s
}

// geminiArray is the same stream without alt=sse: one array, indented.
func geminiArray(text []piece) *stream {
	s := geminiGenerate(text)
	s.framing = array
	return s
}

func geminiInteractions(text []piece) *stream {
	s := &stream{format: "gemini-interactions", read: byHand(func(e *interactionEvent) string { return e.Delta.Text })}
	s.add("interaction.created", `{"interaction":{"id":"v1_0a1b2c3d","status":"in_progress","object":"interaction","model":"gemini-x"},"event_type":"interaction.created"}`)
	s.add("step.start", `{"index":0,"step":{"type":"model_output"},"event_type":"step.start"}`)
	cited := passages(text)
	for _, p := range text {
		s.add("step.delta", `{"index":0,"delta":{"text":%s,"type":"text"},"event_type":"step.delta"}`, quoted(p.text))
		if p.source >= 0 {
			c := cited[0]
			cited = cited[1:]
			s.add("step.delta", `{"index":0,"delta":{"annotations":[{"type":"url_citation","start_index":%d,"end_index":%d,"url":%q,"title":"harbour.example"}],"type":"text_annotation_delta"},"event_type":"step.delta"}`,
				c.bytes[0], c.bytes[1], url(c.source))
		}
	}
	s.add("step.stop", `{"index":0,"event_type":"step.stop"}`)
	s.add("interaction.completed", `{"interaction":{"id":"v1_0a1b2c3d","status":"completed","object":"interaction","model":"gemini-x","usage":{"total_tokens":9000}},"event_type":"interaction.completed"}`)
	return s
}

// vertexSearch sends pieces, then all references and citations.
func vertexSearch(text []piece) *stream {
	s := &stream{format: "vertex-search", framing: array, read: byHand(func(c *vertexChunk) string { return c.Answer.Text })}
	for _, p := range text {
		s.add("", `{"answer":{"state":"STREAMING","answerText":%s}}`, quoted(p.text))
	}
	cited := passages(text)
	s.add("", `{"answer":{"name":"projects/1/answers/2","state":"SUCCEEDED","citations":%s,"references":%s}}`,
		list(len(cited), func(i int) string {
			return fmt.Sprintf(`{"startIndex":"%d","endIndex":"%d","sources":[{"referenceId":"%d"}]}`, cited[i].bytes[0], cited[i].bytes[1], cited[i].source)
		}),
		list(sources, func(i int) string {
			return fmt.Sprintf(`{"chunkInfo":{"chunk":"projects/1/chunks/c%d","content":%q,"relevanceScore":0.9,"documentMetadata":{"document":"projects/1/documents/%d","uri":%q,"title":%q}}}`,
				i, content(i), i, url(i), title(i))
		}))
	return s
}

// cohereSource repeats the document with each citation, like Cohere.
func cohereSource(i int) string {
	return fmt.Sprintf(`{"type":"document","id":"doc:%d","document":{"id":"doc:%d","snippet":%q,"title":%q}}`, i, i, content(i), title(i))
}

func cohere2(text []piece) *stream {
	s := &stream{format: "cohere-v2", read: byHand(func(e *cohere2Event) string { return e.Delta.Message.Content.Text })}
	s.add("message-start", `{"id":"0a1b2c3d","type":"message-start","delta":{"message":{"role":"assistant"}}}`)
	s.add("content-start", `{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`)
	cited, n := passages(text), 0
	for _, p := range text {
		s.add("content-delta", `{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":%s}}}}`, quoted(p.text))
		if p.source >= 0 {
			c := cited[n]
			s.add("citation-start", `{"type":"citation-start","index":%d,"delta":{"message":{"citations":{"start":%d,"end":%d,"text":%s,"sources":[%s],"type":"TEXT_CONTENT"}}}}`,
				n, c.points[0], c.points[1], quoted(c.words), cohereSource(c.source))
			s.add("citation-end", `{"type":"citation-end","index":%d}`, n)
			n++
		}
	}
	s.add("content-end", `{"type":"content-end","index":0}`)
	s.add("message-end", `{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"output_tokens":9000}}}}`)
	return s
}

// cohere1 lists its documents before the text and repeats everything at the end.
func cohere1(text []piece) *stream {
	s := &stream{format: "cohere-v1", framing: lines, read: byHand(func(e *cohere1Event) string { return e.Text })}
	documents := list(sources, func(i int) string {
		return fmt.Sprintf(`{"id":"doc_%d","snippet":%q,"title":%q,"url":%q}`, i, content(i), title(i), url(i))
	})
	cited := passages(text)
	citation := func(c passage) string {
		return fmt.Sprintf(`{"start":%d,"end":%d,"text":%s,"document_ids":["doc_%d"]}`, c.points[0], c.points[1], quoted(c.words), c.source)
	}
	s.add("", `{"is_finished":false,"event_type":"stream-start","generation_id":"0a1b2c3d"}`)
	s.add("", `{"is_finished":false,"event_type":"search-results","documents":%s}`, documents)
	next := 0
	for _, p := range text {
		s.add("", `{"is_finished":false,"event_type":"text-generation","text":%s}`, quoted(p.text))
		if p.source >= 0 {
			s.add("", `{"is_finished":false,"event_type":"citation-generation","citations":[%s]}`, citation(cited[next]))
			next++
		}
	}
	s.add("", `{"is_finished":true,"event_type":"stream-end","response":{"response_id":"1","text":%s,"generation_id":"0a1b2c3d","documents":%s,"citations":%s},"finish_reason":"COMPLETE"}`,
		quoted(joined(text)), documents, list(len(cited), func(i int) string { return citation(cited[i]) }))
	return s
}

// bedrockConverse has a block for every statement, like Anthropic's streams.
func bedrockConverse(text []piece) *stream {
	s := &stream{format: "bedrock-converse", framing: awsEvents, read: byHand(func(e *converseEvent) string { return e.Delta.Text })}
	const pad = `"p":"abcdefghijklmnopqrstuvwxyzABCDEF"`
	s.add("messageStart", `{%s,"role":"assistant"}`, pad)
	index := -1
	for i, p := range text {
		if _, begins := blockAt(text, i); begins {
			index++
		}
		s.add("contentBlockDelta", `{"contentBlockIndex":%d,"delta":{"text":%s},"p":"%.*s"}`, index, quoted(p.text), i%32, pad[5:])
		if p.source >= 0 {
			s.add("contentBlockDelta", `{"contentBlockIndex":%d,"delta":{"citation":{"title":%q,"sourceContent":[{"text":%q}],"location":{"documentPage":{"documentIndex":%d,"start":%d,"end":%d}}}},%s}`,
				index, title(p.source), content(p.source)[:150], p.source, i+1, i+2, pad)
		}
		if _, begins := blockAt(text, i+1); begins {
			s.add("contentBlockStop", `{"contentBlockIndex":%d,%s}`, index, pad)
		}
	}
	s.add("messageStop", `{%s,"stopReason":"end_turn"}`, pad)
	s.add("metadata", `{"metrics":{"latencyMs":900},"usage":{"totalTokens":9000},%s}`, pad)
	return s
}

func bedrockRAG(text []piece) *stream {
	s := &stream{format: "bedrock-rag", framing: awsEvents, read: byHand(func(e *ragEvent) string { return e.Text })}
	cited := passages(text)
	s.add("sessionId", `{"sessionId":"0a1b2c3d"}`)
	for _, p := range text {
		s.add("output", `{"text":%s}`, quoted(p.text))
		if p.source >= 0 {
			c := cited[0]
			cited = cited[1:]
			s.add("citation", `{"citation":{"generatedResponsePart":{"textResponsePart":{"text":%s,"span":{"start":%d,"end":%d}}},"retrievedReferences":[{"content":{"text":%q,"type":"TEXT"},"location":{"type":"S3","s3Location":{"uri":"s3://harbour/survey-%d.pdf"}},"metadata":{"x-amz-bedrock-kb-source-uri":"s3://harbour/survey-%d.pdf","x-amz-bedrock-kb-document-page-number":%d}}]}}`,
				quoted(c.words), c.points[0], c.points[1]-1, content(c.source), c.source, c.source, c.source+1)
		}
	}
	return s
}
