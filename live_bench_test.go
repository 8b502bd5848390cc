package ibid

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// benchEvents returns the events of an answer of paragraphs and lists, with a citation after every second sentence.
func benchEvents(size, delta int, paragraph string) []Event {
	events := []Event{{Kind: EventPart, Part: &Part{}}}
	sources := make([]Source, 8)
	for i := range sources {
		sources[i] = Source{ID: fmt.Sprint(i), Kind: Web, Title: "T", URL: fmt.Sprintf("https://s%d.example/p", i)}
		events = append(events, Event{Kind: EventSource, Source: &sources[i]})
	}
	text := strings.Repeat(paragraph, size/len(paragraph)+1)[:size]
	a := &Answer{Text: text, Sources: sources, Complete: true}
	cited := 0
	for at := 0; at < len(text); {
		end := min(len(text), at+delta)
		events = append(events, Event{Kind: EventText, Text: text[at:end], At: at})
		if stop := strings.LastIndexByte(text[at:end], '.') + at; stop > max(cited+100, at-1) {
			n := len(a.Citations)
			cite := Citation{
				Span: Span{max(0, stop-40), stop}, Claim: Span{max(0, stop-40), stop}, Covers: CoversClaim, Anchor: AnchorExact,
				Refs: []Ref{{Source: fmt.Sprint(n % len(sources))}},
			}
			a.Citations = append(a.Citations, cite)
			events = append(events, Event{Kind: EventCitation, Key: fmt.Sprint(n), Citation: &cite})
			cited = stop
		}
		at = end
	}
	return append(events, Event{Kind: EventAnswer, Answer: a})
}

const benchParagraph = "Harbours silt up where the current slows down behind the breakwater. Dredging moves the sand to where it does less harm, " +
	"but **every storm** brings some of it back, as `gauge 7` shows.\n\n- One ship in three waits for the tide.\n- The pilots ask for a deeper channel.\n\n"

func BenchmarkLive(b *testing.B) {
	for _, bench := range []struct {
		name      string
		paragraph string
	}{
		{"paragraphs", benchParagraph},
		{"one paragraph", strings.ReplaceAll(strings.ReplaceAll(benchParagraph, "\n- ", " "), "\n", " ")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			events := benchEvents(20_000, 10, bench.paragraph) // 2,000 deltas
			b.SetBytes(20_000)
			b.ReportAllocs()
			for b.Loop() {
				live := Live{W: io.Discard, List: true}
				for _, e := range events {
					live.Event(e)
				}
				if err := live.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
