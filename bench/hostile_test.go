package bench_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
)

// hostile is a response designed to be expensive: n of something.
type hostile struct {
	name string
	make func(n int) []byte
}

// BenchmarkLinearHostile reads 10,000 and 100,000 items that a hostile server may send, and reports the cost of one.
func BenchmarkLinearHostile(b *testing.B) {
	for _, h := range hostiles() {
		b.Run(strings.ReplaceAll(h.name, " ", "-"), func(b *testing.B) {
			few, many := h.make(10_000), h.make(100_000)
			for b.Loop() {
				short := min(timeDecode(few), timeDecode(few))
				long := timeDecode(many)
				reportLinear(b, max(short, time.Millisecond), long)
				b.ReportMetric(float64(long.Nanoseconds())/100_000, "ns/each")
			}
		})
	}
}

func timeDecode(input []byte) time.Duration {
	start := time.Now()
	d := ibid.Decoder{OnEvent: func(ibid.Event) {}}
	for at := 0; at < len(input); at += network {
		_, _ = d.Write(input[at:min(at+network, len(input))])
	}
	_ = d.Close()
	return time.Since(start)
}

func hostiles() []hostile {
	return []hostile{
		{"lost quotes", func(n int) []byte {
			return groundedBody(strings.Repeat("The ferry leaves. ", n), n, func(i int) string {
				return fmt.Sprintf(`"startIndex":%d,"endIndex":%d,"text":"the boat %d"`, 18*i, 18*i+8, i)
			})
		}},
		{"lost quotes that begin alike", func(n int) []byte {
			return groundedBody(strings.Repeat("The ferry leaves. ", n), n, func(i int) string {
				return fmt.Sprintf(`"startIndex":%d,"endIndex":%d,"text":"The ferry leaves. The ferry leaves. %d"`, 18*i, 18*i+8, i)
			})
		}},
		{"overlapping citations", func(n int) []byte {
			return groundedBody(strings.Repeat("The ferry leaves. ", n), n, func(i int) string {
				return fmt.Sprintf(`"endIndex":%d`, 18*i+17)
			})
		}},
		{"one citation again and again", func(n int) []byte {
			return groundedBody("The ferry leaves.", n, func(int) string { return `"endIndex":17,"text":"The ferry leaves."` })
		}},
		{"links to one address", func(n int) []byte {
			link := "([a](https://a.example/)) "
			return annotatedBody(strings.Repeat(link, n), n, func(i int) string {
				return fmt.Sprintf(`"start_index":%d,"end_index":%d,"url":"https://a.example/"`, len(link)*i, len(link)*i+len(link)-1)
			})
		}},
		{"links a little beside", func(n int) []byte {
			link := "([a](https://a.example/)) "
			return annotatedBody(strings.Repeat(link, n), n, func(i int) string {
				return fmt.Sprintf(`"start_index":%d,"end_index":%d,"url":"https://a.example/"`, len(link)*i+3, len(link)*i+len(link)+2)
			})
		}},
		{"sources", func(n int) []byte {
			return annotatedBody("a", n, func(i int) string {
				return fmt.Sprintf(`"start_index":0,"end_index":0,"url":"https://a.example/%d"`, i)
			})
		}},
		{"parts", func(n int) []byte { return anthropicBlocks(n, 0) }},
		{"block citations that wait", func(n int) []byte { return anthropicBlocks(1, n) }},
		{"sources of one citation", manySources},
		{"new chunks of one support", newChunks},
		{"chunks of one source", manyChunks},
		{"marks in one paragraph", func(n int) []byte { return marked(strings.Repeat("a b [1] ", n)) }},
		{"marks in a row", func(n int) []byte { return marked(strings.Repeat("[1]", n)) }},
		{"half marks", func(n int) []byte { return marked(strings.Repeat("[1", n)) }},
		{"open backquotes", func(n int) []byte { return marked(strings.Repeat("`", n)) }},
		{"backquotes of many lengths", func(n int) []byte { return marked(strings.Repeat("` ``` `` ", n/4)) }},
		{"a fence without an end", func(n int) []byte { return marked("```" + strings.Repeat(" a [1]", n)) }},
		{"lines of one fence", func(n int) []byte { return marked(strings.Repeat("```\n", n)) }},
		{"private markers without an end", func(n int) []byte { return marked(strings.Repeat("\ue200cite ", n)) }},
		{"a private marker of a megabyte", func(n int) []byte { return marked("\ue200" + strings.Repeat("turn0search ", n)) }},
		{"private markers", func(n int) []byte { return marked(strings.Repeat("a \ue200cite\ue202turn0\ue201 ", n)) }},
		{"private markers and citations", cutAndCited},
		{"corrected parts", correctedParts},
		{"parts in turn", partsInTurn},
		{"new lists of marks", newLists},
		{"unknown events", func(n int) []byte {
			return serverSentEvents(n, func(i int) string { return fmt.Sprintf(`{"type":"response.unheard_%d","delta":""}`, i) })
		}},
		{"unknown annotations", func(n int) []byte {
			return annotatedBody("a", n, func(i int) string { return fmt.Sprintf(`"type":"unheard_%d"`, i) })
		}},
		{"sources of one id", func(n int) []byte {
			return fmt.Appendf(nil, `{"text":"a","generation_id":"g","finish_reason":"COMPLETE","documents":%s}`,
				list(n, func(i int) string { return fmt.Sprintf(`{"snippet":"piece %d"}`, i) }))
		}},
		{"alternatives", func(n int) []byte {
			return fmt.Appendf(nil, `{"candidates":%s}`, list(n, func(i int) string {
				return fmt.Sprintf(`{"index":%d,"content":{"parts":[{"text":"a"}]}}`, i)
			}))
		}},
		{"deep nesting", func(n int) []byte { return []byte(`{"output":` + strings.Repeat(`[`, 10*n)) }},
		{"nested objects", func(n int) []byte { return []byte(`{"type":"message","content":` + strings.Repeat(`{"content":`, n)) }},
	}
}

// serverSentEvents returns n events.
func serverSentEvents(n int, f func(i int) string) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "data: %s\n\n", f(i))
	}
	return b.Bytes()
}

// groundedBody returns a Gemini body with n supports.
func groundedBody(text string, n int, segment func(i int) string) []byte {
	return fmt.Appendf(nil, `{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.example/","title":"a"}}],"groundingSupports":%s}}]}`,
		quoted(text), list(n, func(i int) string { return `{"segment":{` + segment(i) + `},"groundingChunkIndices":[0]}` }))
}

// annotatedBody returns a Responses API body with n annotations.
func annotatedBody(text string, n int, annotation func(i int) string) []byte {
	return fmt.Appendf(nil, `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":%s,"annotations":%s}]}]}`,
		quoted(text), list(n, func(i int) string { return `{"type":"url_citation",` + annotation(i) + `}` }))
}

// anthropicBlocks returns a stream of blocks that never end, the first one with citations.
func anthropicBlocks(blocks, citations int) []byte {
	var b bytes.Buffer
	for i := range blocks {
		fmt.Fprintf(&b, "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n", i)
		for range citations * max(0, 1-i) {
			b.WriteString("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"type\":\"web_search_result_location\",\"url\":\"https://a.example/\"}}}\n\n")
		}
		fmt.Fprintf(&b, "data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n", i)
	}
	return b.Bytes()
}

// marked returns a text with numeric source marks, in deltas of some hundred bytes.
func marked(text string) []byte {
	const size = 300
	n := (len(text) + size - 1) / size
	return serverSentEvents(n, func(i int) string {
		piece := text[i*size : min(len(text), (i+1)*size)]
		return fmt.Sprintf(`{"object":"chat.completion.chunk","model":"sonar","citations":["https://a.example/"],"choices":[{"index":0,"delta":{"content":%s}}]}`, quoted(piece))
	})
}

// manySources returns a stream that repeats one citation with every further source.
func manySources(n int) []byte {
	return serverSentEvents(n, func(i int) string {
		if i == 0 {
			return `{"index":0,"delta":{"type":"text","text":"The ferry leaves."},"event_type":"step.delta"}`
		}
		return fmt.Sprintf(`{"index":0,"delta":{"type":"text_annotation_delta","annotations":[{"type":"url_citation","end_index":17,"url":"https://a.example/%d"}]},"event_type":"step.delta"}`, i)
	})
}

// newChunks returns a stream that supports the same words with another chunk in every event.
func newChunks(n int) []byte {
	return serverSentEvents(n, func(i int) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":"aaaa "}]},"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://x%d.example/"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":4,"text":"aaaa"},"groundingChunkIndices":[0]}]}}]}`, i)
	})
}

// manyChunks returns a file search with all results in one file.
func manyChunks(n int) []byte {
	return fmt.Appendf(nil, `{"object":"response","status":"completed","output":[{"type":"file_search_call","id":"fs","results":%s}]}`,
		list(n, func(i int) string { return fmt.Sprintf(`{"file_id":"file-1","filename":"a.txt","text":"piece %d"}`, i) }))
}

// cutAndCited returns a text from which private markers are removed, with as many citations.
func cutAndCited(n int) []byte {
	piece := "ab \ue200c\ue201 "
	return annotatedBody(strings.Repeat(piece, n), n, func(i int) string {
		return fmt.Sprintf(`"start_index":%d,"end_index":%d,"url":"https://a.example/"`, 7*i, 7*i+2)
	})
}

// correctedParts returns parts whose final text always differs from the streamed one.
func correctedParts(n int) []byte {
	return serverSentEvents(2*n, func(i int) string {
		if i < n {
			return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"The ferry "}`, i)
		}
		return fmt.Sprintf(`{"type":"response.output_text.done","output_index":0,"content_index":%d,"text":"A boat"}`, i-n)
	})
}

// partsInTurn returns two parts that alternate.
func partsInTurn(n int) []byte {
	return serverSentEvents(n, func(i int) string {
		return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":0,"content_index":%d,"delta":"a"}`, i%2)
	})
}

// newLists returns a text whose marks refer to another source with every chunk.
func newLists(n int) []byte {
	return serverSentEvents(n, func(i int) string {
		return fmt.Sprintf(`{"object":"chat.completion.chunk","model":"sonar","citations":["https://a.example/%d"],"choices":[{"index":0,"delta":{"content":"a [1] "}}]}`, i)
	})
}

// BenchmarkLongDocument reads a delta of 50 MB, in Writes of the size of network reads.
func BenchmarkLongDocument(b *testing.B) {
	input := fmt.Appendf(nil, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n",
		quoted(strings.Repeat("The ferry leaves the old harbour at seven. ", 50_000_000/43)))
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		timeDecode(input)
	}
}
