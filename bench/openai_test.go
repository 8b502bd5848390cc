package bench_test

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// padding is OpenAI's padding of events, which hides the length of the text.
func padding(i int) string { return "Qw8rTz1xKp3mNv7b"[:i%17] }

// openAIResponses returns a stream of the Responses API, with links in the text and everything repeated at the end.
func openAIResponses(text []piece) *stream {
	s := &stream{format: "openai-responses", read: byHand(func(e *responsesEvent) string { return e.Delta })}
	sequence := 0
	add := func(kind, format string, args ...any) {
		head := fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, kind, sequence)
		sequence++
		s.add(kind, "%s%s}", head, fmt.Sprintf(format, args...))
	}
	const message = "msg_0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071"
	response := func(status, output string) string {
		return fmt.Sprintf(`{"id":"resp_0a1b2c3d","object":"response","created_at":1760000000,"status":%q,"error":null,"model":"gpt-x","output":%s,"temperature":1.0,"tools":[{"type":"web_search"}],"usage":null}`, status, output)
	}
	add("response.created", `"response":%s`, response("in_progress", "[]"))
	search := fmt.Sprintf(`{"id":"ws_01","type":"web_search_call","status":"completed","action":{"type":"search","query":"harbour survey","sources":%s}}`,
		list(sources, func(i int) string { return fmt.Sprintf(`{"type":"url","url":%q}`, url(i)) }))
	add("response.output_item.done", `"output_index":0,"item":%s`, search)
	add("response.output_item.added", `"output_index":1,"item":{"id":%q,"type":"message","status":"in_progress","content":[],"role":"assistant"}`, message)
	place := fmt.Sprintf(`"item_id":%q,"output_index":1,"content_index":0`, message)
	add("response.content_part.added", `%s,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`, place)
	var whole strings.Builder
	var notes []string
	at := 0
	say := func(i int, words string) {
		add("response.output_text.delta", `%s,"delta":%s,"logprobs":[],"obfuscation":%q`, place, quoted(words), padding(i))
		whole.WriteString(words)
		at += utf8.RuneCountInString(words)
	}
	for i, p := range text {
		say(i, p.text)
		if p.source < 0 {
			continue
		}
		link := fmt.Sprintf("([harbour.example](%s?utm_source=openai))", url(p.source))
		notes = append(notes, fmt.Sprintf(`{"type":"url_citation","end_index":%d,"start_index":%d,"title":%q,"url":"%s?utm_source=openai"}`,
			at+1+len(link), at+1, title(p.source), url(p.source)))
		say(i, " "+link)
		add("response.output_text.annotation.added", `%s,"annotation_index":%d,"annotation":%s`, place, len(notes)-1, notes[len(notes)-1])
	}
	part := fmt.Sprintf(`{"type":"output_text","annotations":[%s],"logprobs":[],"text":%s}`, strings.Join(notes, ","), quoted(whole.String()))
	item := fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","content":[%s],"role":"assistant"}`, message, part)
	add("response.output_text.done", `%s,"text":%s,"logprobs":[]`, place, quoted(whole.String()))
	add("response.content_part.done", `%s,"part":%s`, place, part)
	add("response.output_item.done", `"output_index":1,"item":%s`, item)
	add("response.completed", `"response":%s`, response("completed", "["+search+","+item+"]"))
	return s
}

// chatStream returns a stream of Chat Completions: head precedes the choices, and delta returns the n-th piece's.
func chatStream(format string, text []piece, head string, delta func(i int, p piece) string) *stream {
	s := &stream{format: format, read: byHand((*chatChunk).text)}
	for i, p := range text {
		s.add("", `{%s,"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, head, delta(i, p))
	}
	s.add("", `{%s,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, head)
	s.add("", `{%s,"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":9000}}`, head)
	return s
}

// done is the end mark of Chat Completions, which is not JSON.
const done = "data: [DONE]\n\n"

func openAIChat(text []piece) *stream {
	const head = `"id":"chatcmpl-0a1b2c3d4e5f","object":"chat.completion.chunk","created":1760000000,"model":"gpt-x","service_tier":"default","system_fingerprint":"fp_0a1b"`
	at := 0
	return ended(chatStream("openai-chat", text, head, func(_ int, p piece) string {
		words, notes := p.text, ""
		if p.source >= 0 {
			words += fmt.Sprintf(" ([harbour.example](%s))", url(p.source))
			end := at + utf8.RuneCountInString(words)
			start := at + utf8.RuneCountInString(p.text) + 1
			notes = fmt.Sprintf(`,"annotations":[{"type":"url_citation","url_citation":{"end_index":%d,"start_index":%d,"title":%q,"url":%q}}]`,
				end, start, title(p.source), url(p.source))
		}
		at += utf8.RuneCountInString(words)
		return fmt.Sprintf(`{"content":%s%s}`, quoted(words), notes)
	}))
}

// ended adds the end mark to a stream.
func ended(s *stream) *stream {
	s.tail = done
	return s
}

func searchResults() string {
	return list(10, func(i int) string {
		return fmt.Sprintf(`{"title":%q,"url":%q,"date":"2024-03-0%d","last_updated":"2025-01-02","snippet":%q,"source":"web"}`, title(i), url(i), i%9+1, content(i))
	})
}

func urls(n int) string { return list(n, func(i int) string { return quoted(url(i)) }) }

// perplexityChat repeats its sources with every chunk, like Perplexity.
func perplexityChat(text []piece) *stream {
	head := fmt.Sprintf(`"id":"0a1b2c3d-4e5f","model":"sonar","created":1760000000,"usage":{"prompt_tokens":12,"completion_tokens":900},"citations":%s,"search_results":%s,"object":"chat.completion.chunk"`,
		urls(10), searchResults())
	return ended(chatStream("perplexity-chat", text, head, func(_ int, p piece) string {
		words := p.text
		if p.source >= 0 {
			words += fmt.Sprintf("[%d]", p.source%10+1)
		}
		return fmt.Sprintf(`{"role":"assistant","content":%s}`, quoted(words))
	}))
}

func openRouterChat(text []piece) *stream {
	const head = `"id":"gen-1760000000-0a1b2c3d","provider":"OpenAI","model":"openai/gpt-x","object":"chat.completion.chunk","created":1760000000`
	return ended(chatStream("openrouter-chat", text, head, func(_ int, p piece) string {
		notes := ""
		if p.source >= 0 {
			notes = fmt.Sprintf(`,"annotations":[{"type":"url_citation","url_citation":{"url":%q,"title":%q,"content":%q,"start_index":0,"end_index":0}}]`,
				url(p.source), title(p.source), content(p.source))
		}
		return fmt.Sprintf(`{"role":"assistant","content":%s%s}`, quoted(p.text), notes)
	}))
}

func xaiChat(text []piece) *stream {
	const head = `"id":"0a1b2c3d-4e5f","object":"chat.completion.chunk","created":1760000000,"model":"grok-x","system_fingerprint":"fp_0a1b"`
	s := chatStream("xai-chat", text, head, func(_ int, p piece) string {
		return fmt.Sprintf(`{"role":"assistant","content":%s}`, quoted(p.text))
	})
	s.add("", `{%s,"choices":[],"citations":%s}`, head, urls(sources))
	return ended(s)
}

// azureChat starts with its sources and marks them in the text.
func azureChat(text []piece) *stream {
	const head = `"id":"0a1b2c3d-4e5f","object":"extensions.chat.completion.chunk","created":1760000000,"model":"gpt-x"`
	s := &stream{format: "azure-chat", read: byHand((*chatChunk).text)}
	s.add("", `{%s,"choices":[{"index":0,"delta":{"role":"assistant","context":{"citations":%s,"intent":"[\"harbour\"]"}},"end_turn":false,"finish_reason":null}]}`,
		head, list(sources, func(i int) string {
			return fmt.Sprintf(`{"content":%q,"title":%q,"url":%q,"filepath":"survey-%d.pdf","chunk_id":"%d"}`, content(i), title(i), url(i), i, i)
		}))
	for _, p := range text {
		words := p.text
		if p.source >= 0 {
			words += fmt.Sprintf(" [doc%d]", p.source+1)
		}
		s.add("", `{%s,"choices":[{"index":0,"delta":{"content":%s},"end_turn":false,"finish_reason":null}]}`, head, quoted(words))
	}
	s.add("", `{%s,"choices":[{"index":0,"delta":{},"end_turn":true,"finish_reason":"stop"}]}`, head)
	return ended(s)
}

// mistralChat puts its references between pieces of text.
func mistralChat(text []piece) *stream {
	s := &stream{format: "mistral-chat", read: byHand(func(c *mistralChunk) string {
		return c.Choices[0].Delta.Content.text
	})}
	const head = `"id":"0a1b2c3d4e5f","object":"chat.completion.chunk","created":1760000000,"model":"mistral-x-latest"`
	for _, p := range text {
		s.add("", `{%s,"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, head, quoted(p.text))
		if p.source >= 0 {
			s.add("", `{%s,"choices":[{"index":0,"delta":{"content":[{"type":"reference","reference_ids":["%d"]}]},"finish_reason":null}]}`, head, p.source)
		}
	}
	s.add("", `{%s,"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"total_tokens":9000}}`, head)
	return ended(s)
}

func mistralConversations(text []piece) *stream {
	s := &stream{format: "mistral-conversations", read: byHand(func(e *conversationEvent) string { return e.Content.text })}
	s.add("conversation.response.started", `{"type":"conversation.response.started","created_at":"2025-10-09T08:53:20Z","conversation_id":"conv_0a1b2c3d"}`)
	const head = `"type":"message.output.delta","created_at":"2025-10-09T08:53:21.000000Z","output_index":0,"id":"msg_0a1b2c3d","content_index":0,"model":"mistral-x-latest","agent_id":"ag_0a1b2c3d","role":"assistant"`
	for _, p := range text {
		s.add("message.output.delta", `{%s,"content":%s}`, head, quoted(p.text))
		if p.source >= 0 {
			s.add("message.output.delta", `{%s,"content":{"type":"tool_reference","tool":"web_search","title":%q,"url":%q}}`, head, title(p.source), url(p.source))
		}
	}
	s.add("conversation.response.done", `{"type":"conversation.response.done","usage":{"total_tokens":9000}}`)
	return s
}
