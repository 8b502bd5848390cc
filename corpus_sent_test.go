package ibid_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// sentCitations reads the citations in a recording independently of ibid. It is meant to be obvious, not complete: it
// only handles what the recordings contain.
func sentCitations(t *testing.T, r *recording) []sentCitation {
	t.Helper()
	docs := r.documents(t)
	if len(docs) == 0 {
		t.Fatal("no documents")
	}
	switch r.format() {
	case "anthropic-messages":
		return sentAnthropic(docs)
	case "bedrock-converse":
		return sentConverse(docs)
	case "cohere-v1":
		return sentCohere1(docs)
	case "cohere-v2":
		return sentCohere2(docs)
	case "gemini-generate":
		return sentGemini(docs)
	case "gemini-interactions":
		return sentInteractions(docs)
	case "openai-responses", "xai-responses":
		return sentResponses(docs)
	case "perplexity-chat":
		return sentPerplexity(docs)
	default:
		return sentChat(docs)
	}
}

// valueAt returns the value at a path of members and indexes, or nil.
func valueAt(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func listAt(v any, path ...any) []any {
	l, _ := valueAt(v, path...).([]any)
	return l
}

func textAt(v any, path ...any) string {
	s, _ := valueAt(v, path...).(string)
	return s
}

func numberAt(v any, path ...any) int {
	n, _ := valueAt(v, path...).(float64)
	return int(n)
}

// sentAnthropic reads cited text blocks: the block is the span.
func sentAnthropic(docs []map[string]any) []sentCitation {
	type block struct {
		text      string
		citations []any
	}
	var blocks []*block
	byIndex := map[int]*block{}
	for _, doc := range docs {
		for _, b := range listAt(doc, "content") {
			blocks = append(blocks, &block{textAt(b, "text"), listAt(b, "citations")})
		}
		index := numberAt(doc, "index")
		switch textAt(doc, "type") {
		case "content_block_start":
			byIndex[index] = &block{text: textAt(doc, "content_block", "text")}
			blocks = append(blocks, byIndex[index])
		case "content_block_delta":
			byIndex[index].text += textAt(doc, "delta", "text")
			if c := valueAt(doc, "delta", "citation"); c != nil {
				byIndex[index].citations = append(byIndex[index].citations, c)
			}
		}
	}
	var sent []sentCitation
	for _, b := range blocks {
		for _, c := range b.citations {
			source := cmp.Or(textAt(c, "url"), textAt(c, "source"), textAt(c, "document_title"))
			if source == "" {
				source = fmt.Sprintf("doc:%d", numberAt(c, "document_index"))
			}
			sent = append(sent, sentCitation{source: source, words: b.text})
		}
	}
	return sent
}

// sentConverse reads blocks with citations; a block without text is a point.
func sentConverse(docs []map[string]any) []sentCitation {
	texts, citations := map[int]string{}, map[int][]any{}
	for _, doc := range docs {
		for i, b := range listAt(doc, "output", "message", "content") {
			for _, c := range listAt(b, "citationsContent", "content") {
				texts[i] += textAt(c, "text")
			}
			citations[i] = listAt(b, "citationsContent", "citations")
		}
		if d := valueAt(doc, "contentBlockDelta"); d != nil {
			i := numberAt(d, "contentBlockIndex")
			texts[i] += textAt(d, "delta", "text")
			if c := valueAt(d, "delta", "citation"); c != nil {
				citations[i] = append(citations[i], c)
			}
		}
	}
	var sent []sentCitation
	for i, all := range citations {
		for _, c := range all {
			source := cmp.Or(textAt(c, "location", "web", "url"), textAt(c, "title"))
			sent = append(sent, sentCitation{source: source, words: texts[i], point: texts[i] == ""})
		}
	}
	return sent
}

func sentCohere1(docs []map[string]any) []sentCitation {
	var sent []sentCitation
	for _, doc := range docs {
		for _, c := range listAt(doc, "citations") { // in the body or an event; the last event repeats them in its response
			seen := map[any]bool{} // documents are named repeatedly
			for _, id := range listAt(c, "document_ids") {
				if !seen[id] {
					sent = append(sent, sentCitation{source: textAt(id), words: textAt(c, "text")})
				}
				seen[id] = true
			}
		}
	}
	return sent
}

func sentCohere2(docs []map[string]any) []sentCitation {
	var sent []sentCitation
	for _, doc := range docs {
		all := listAt(doc, "message", "citations")
		if c := valueAt(doc, "delta", "message", "citations"); c != nil && textAt(doc, "type") == "citation-start" {
			all = append(all, c)
		}
		for _, c := range all {
			for _, s := range listAt(c, "sources") {
				sent = append(sent, sentCitation{source: textAt(s, "id"), words: textAt(c, "text")})
			}
		}
	}
	return sent
}

// sentGemini reads the last grounding metadata of each kind, and the URLs of recitations.
func sentGemini(docs []map[string]any) []sentCitation {
	var chunks, supports, recited []any
	last := func(old, next []any) []any {
		if len(next) > 0 {
			return next
		}
		return old
	}
	for _, doc := range docs {
		c := valueAt(doc, "candidates", 0)
		chunks = last(chunks, listAt(c, "groundingMetadata", "groundingChunks"))
		supports = last(supports, listAt(c, "groundingMetadata", "groundingSupports"))
		recited = append(recited, listAt(c, "citationMetadata", "citationSources")...)
		recited = append(recited, listAt(c, "citationMetadata", "citations")...)
	}
	var sent []sentCitation
	for _, s := range supports {
		for _, n := range listAt(s, "groundingChunkIndices") {
			i, _ := n.(float64)
			chunk := valueAt(chunks, int(i))
			if chunk == nil { // beyond the list
				continue
			}
			source := cmp.Or(textAt(chunk, "web", "uri"), textAt(chunk, "maps", "uri"), textAt(chunk, "retrievedContext", "uri"),
				textAt(chunk, "retrievedContext", "text"), textAt(chunk, "retrievedContext", "title"))
			sent = append(sent, sentCitation{source: source, words: textAt(s, "segment", "text")})
		}
	}
	seen := map[string]bool{}
	for _, c := range recited {
		key := fmt.Sprint(c)
		if source := cmp.Or(textAt(c, "uri"), textAt(c, "title")); source != "" && !seen[key] {
			seen[key] = len(docs) > 1 // a stream repeats them
			sent = append(sent, sentCitation{source: source})
		}
	}
	return sent
}

// sentInteractions reads annotations, whose offsets count the bytes of their block's text.
func sentInteractions(docs []map[string]any) []sentCitation {
	var sent []sentCitation
	add := func(block string, annotations []any) {
		for _, a := range annotations {
			words := block[numberAt(a, "start_index"):numberAt(a, "end_index")]
			sent = append(sent, sentCitation{source: cmp.Or(textAt(a, "url"), textAt(a, "file_name")), there: words})
		}
	}
	blocks := map[int]string{}
	for _, doc := range docs {
		for _, step := range listAt(doc, "steps") {
			for _, c := range listAt(step, "content") {
				add(textAt(c, "text"), listAt(c, "annotations"))
			}
		}
		i := numberAt(doc, "index")
		blocks[i] += textAt(doc, "delta", "text")
		add(blocks[i], listAt(doc, "delta", "annotations"))
	}
	return sent
}

// sentResponses reads the annotations of the whole response, which a stream has in its last event.
func sentResponses(docs []map[string]any) []sentCitation {
	response := any(docs[len(docs)-1])
	if r := valueAt(response, "response"); r != nil {
		response = r
	}
	var sent []sentCitation
	for _, item := range listAt(response, "output") {
		for _, part := range listAt(item, "content") {
			for _, a := range listAt(part, "annotations") {
				sent = append(sent, sentNote(a))
			}
		}
	}
	return sent
}

// sentNote reads an annotation. One with a URL and a range covers a link to the URL.
func sentNote(a any) sentCitation {
	if nested := valueAt(a, "url_citation"); nested != nil {
		a = nested
	}
	s := sentCitation{source: cmp.Or(textAt(a, "url"), textAt(a, "file_id"))}
	if textAt(a, "type") == "container_file_citation" && numberAt(a, "end_index") > 0 {
		s.there = "sandbox:/mnt/data/" + textAt(a, "filename")
	}
	s.link = textAt(a, "url") != "" && numberAt(a, "end_index") > 0
	s.point = textAt(a, "type") == "file_citation"
	return s
}

// sentChat reads annotations and, if they come from Perplexity, the marks in the text that refer to them.
func sentChat(docs []map[string]any) []sentCitation {
	var sent []sentCitation
	var urls []any
	content := ""
	for _, doc := range docs {
		for _, member := range []string{"message", "delta"} {
			content += textAt(doc, "choices", 0, member, "content")
			for _, a := range listAt(doc, "choices", 0, member, "annotations") {
				sent = append(sent, sentNote(a))
				urls = append(urls, valueAt(a, "url_citation", "url"))
			}
		}
	}
	if strings.HasPrefix(textAt(docs[0], "model"), "perplexity/") {
		sent = append(sentMarks(content, urls), sent...)
	}
	return sent
}

// sentPerplexity reads the marks in the text.
func sentPerplexity(docs []map[string]any) []sentCitation {
	content := ""
	for _, doc := range docs {
		content += textAt(doc, "choices", 0, "delta", "content")
	}
	if len(docs) == 1 {
		content = textAt(docs[0], "choices", 0, "message", "content")
	}
	return sentMarks(content, listAt(docs[len(docs)-1], "citations"))
}

var bracketed = regexp.MustCompile(`\[(\d+)\]`)

// sentMarks reads the marks in a text that have a URL.
func sentMarks(content string, urls []any) []sentCitation {
	var sent []sentCitation
	for _, m := range bracketed.FindAllStringSubmatch(content, -1) {
		n, _ := strconv.Atoi(m[1])
		if n >= 1 && n <= len(urls) && !strings.Contains(content, m[0]+"(") {
			sent = append(sent, sentCitation{source: textAt(urls[n-1]), words: m[0]})
		}
	}
	return sent
}
