package ibid_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
)

// FuzzDecode decodes any input in any format: it must not panic, every answer must be valid, and neither the answer nor
// the contents of the events may depend on how the input is split.
func FuzzDecode(f *testing.F) {
	formats := ibid.Formats()
	add := func(data []byte, format string) {
		f.Add(data, uint8(0), uint64(1))
		f.Add(data, uint8(1+slices.Index(formats, format)), uint64(2))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range archive.Files {
			if slices.Contains(inputSections, section.Name) {
				add(section.Data, filepath.Base(filepath.Dir(file)))
			}
		}
	}
	add([]byte("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\\ud83c\"}}\n\ndata: [DONE]\n\n"), "anthropic-messages")
	add([]byte("[1] is no [list], \xff and \ue200cite\ue202"), ibid.Generic)
	f.Fuzz(func(t *testing.T, data []byte, format uint8, seed uint64) {
		opts := &ibid.DecodeOptions{Limits: ibid.Limits{Parts: 50, Sources: 50, Citations: 50, Issues: 50, Document: 1 << 20}}
		if format > 0 {
			opts.Format = formats[int(format-1)%len(formats)]
		}
		fuzzReading(t, opts, data, seed)
	})
}

// fuzzReading decodes an input whole and in pieces, expects the same answer, and returns it.
func fuzzReading(t *testing.T, opts *ibid.DecodeOptions, data []byte, seed uint64) *ibid.Answer {
	t.Helper()
	whole := decodeIn(opts, data, wholeInput)
	if err := whole.answer.Check(); err != nil {
		t.Error(err)
	}
	checkEvents(t, "whole", whole)
	checkDocument(t, "whole", whole)
	checkSnapshots(t, "in fifty pieces", opts, data, whole.answer)
	r := rand.New(rand.NewPCG(seed, 1))
	for name, cut := range map[string]inputCut{
		"byte by byte": func(int) int { return 1 },
		"in pieces":    func(left int) int { return min(left, 1+r.IntN(60)) },
	} {
		cutUp := decodeIn(opts, data, cut)
		checkEvents(t, name, cutUp)
		if !reflect.DeepEqual(whole.answer, cutUp.answer) {
			t.Errorf("decoding %s gives a different answer (-whole +%[1]s):\n%[2]s", name, cmp.Diff(whole.answer, cutUp.answer))
		}
		if a, b := fmt.Sprint(whole.err), fmt.Sprint(cutUp.err); a != b {
			t.Errorf("decoding %s gives the error %s, not %s", name, b, a)
		}
	}
	return whole.answer
}

// FuzzFold generates responses with a text and a citation with any offsets and words, and checks the place of the
// citation against the words.
func FuzzFold(f *testing.F) {
	f.Add("Die Möwe 🕊️ fliegt. 渡り鳥も。", "渡り鳥", "https://a.example/", int16(20), int16(23), uint64(1))
	f.Add("e\u0301a e\u0301a", "e\u0301a", "", int16(3), int16(5), uint64(2))
	f.Add("So ([a.example](https://a.example/)).", "", "https://a.example/", int16(4), int16(35), uint64(3))
	f.Add("\n- one 👩‍👩‍👧\n- two", "👩‍👩‍👧", "u", int16(6), int16(14), uint64(4))
	f.Add("twice twice", "twice", "", int16(0), int16(4), uint64(5))
	f.Fuzz(func(t *testing.T, text, quote, url string, start, end int16, seed uint64) {
		text, quote, url = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(quote, "?"), strings.ToValidUTF8(url, "?")
		if len(text) > 2000 || strings.ContainsFunc(text+quote, func(r rune) bool { return r >= 0xE200 && r < 0xE210 }) {
			t.Skip("private markers are not part of the text")
		}
		c := foldCase{text, quote, url, int(start), int(end), rand.New(rand.NewPCG(seed, 1))}
		r := []func() response{c.gemini, c.openAI, c.cohere}[seed%3]()
		body := fuzzReading(t, &ibid.DecodeOptions{}, []byte(r.body), seed)
		stream := fuzzReading(t, &ibid.DecodeOptions{}, []byte(r.stream), seed)
		if body.Text != text || stream.Text != text {
			t.Fatalf("%s: the text is %q and %q, want %q", r.name, body.Text, stream.Text, text)
		}
		if diff := cmp.Diff(body.Citations, stream.Citations); diff != "" {
			t.Errorf("%s: the stream's citations differ (-body +stream):\n%s", r.name, diff)
		}
		for i := range body.Citations {
			c.check(t, &r, &body.Citations[i])
		}
	})
}

// foldCase is a text and one citation of it.
type foldCase struct {
	text, quote, url string
	start, end       int
	random           *rand.Rand
}

// response is one answer as a body and as a stream.
type response struct {
	name, body, stream string
	quoted             bool // the format repeats the cited words
	unit               ibid.Unit
}

// pieces splits the text at random rune boundaries.
func (c *foldCase) pieces() []string {
	var out []string
	for rest := c.text; rest != ""; {
		n := min(len(rest), 1+c.random.IntN(12))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		out = append(out, rest[:n])
		rest = rest[n:]
	}
	return out
}

func asJSON(s string) string {
	b, _ := json.Marshal(s) // cannot fail for a string
	return string(b)
}

func (c *foldCase) gemini() response {
	segment := fmt.Sprintf(`"startIndex":%d,"endIndex":%d`, c.start, c.end)
	if c.quote != "" {
		segment += `,"text":` + asJSON(c.quote)
	}
	grounding := fmt.Sprintf(`"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":%s,"title":"a"}}],"groundingSupports":[{"segment":{%s},"groundingChunkIndices":[0]}]}`,
		asJSON(c.url), segment)
	chunk := func(text, more string) string {
		return fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"}%s}]}`, asJSON(text), more)
	}
	var stream strings.Builder
	for _, p := range c.pieces() {
		fmt.Fprintf(&stream, "data: %s\r\n\r\n", chunk(p, ""))
	}
	fmt.Fprintf(&stream, "data: %s\r\n\r\n", `{"candidates":[{`+grounding+`}]}`)
	return response{"gemini", chunk(c.text, ","+grounding), stream.String(), true, ibid.UTF8}
}

func (c *foldCase) openAI() response {
	note := fmt.Sprintf(`{"type":"url_citation","start_index":%d,"end_index":%d,"title":"a","url":%s}`, c.start, c.end, asJSON(c.url))
	part := fmt.Sprintf(`{"type":"output_text","text":%s,"annotations":[%s]}`, asJSON(c.text), note)
	message := fmt.Sprintf(`{"type":"message","id":"m","content":[%s]}`, part)
	var stream strings.Builder
	event := func(kind, rest string) {
		fmt.Fprintf(&stream, "event: %s\ndata: {\"type\":%q,\"output_index\":0,\"content_index\":0,%s}\n\n", kind, kind, rest)
	}
	pieces := c.pieces()
	when := c.random.IntN(len(pieces) + 1)
	for i, p := range pieces {
		if i == when {
			event("response.output_text.annotation.added", `"annotation_index":0,"annotation":`+note)
		}
		event("response.output_text.delta", `"delta":`+asJSON(p))
	}
	event("response.content_part.done", `"part":`+part)
	event("response.completed", fmt.Sprintf(`"response":{"status":"completed","output":[%s]}`, message))
	body := fmt.Sprintf(`{"object":"response","status":"completed","output":[%s]}`, message)
	return response{"openai", body, stream.String(), false, ibid.CodePoint}
}

func (c *foldCase) cohere() response {
	cite := fmt.Sprintf(`{"start":%d,"end":%d,"text":%s,"sources":[{"type":"document","id":"d","document":{"id":"d","title":%s}}]}`,
		c.start, c.end, asJSON(c.quote), asJSON(c.url))
	var stream strings.Builder
	event := func(kind, rest string) {
		fmt.Fprintf(&stream, "event: %s\ndata: {\"type\":%q,\"index\":0,\"delta\":{%s}}\n\n", kind, kind, rest)
	}
	event("content-start", `"message":{"content":{"type":"text","text":""}}`)
	pieces := c.pieces()
	when := c.random.IntN(len(pieces) + 1)
	for i, p := range append(pieces, "") {
		if i == when {
			event("citation-start", `"message":{"citations":`+cite+`}`)
		}
		event("content-delta", `"message":{"content":{"text":`+asJSON(p)+`}}`)
	}
	event("content-end", "")
	event("message-end", `"finish_reason":"COMPLETE"`)
	body := fmt.Sprintf(`{"id":"0","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":%s}],"citations":[%s]}}`,
		asJSON(c.text), cite)
	return response{"cohere", body, stream.String(), true, ibid.CodePoint}
}

// check checks a citation against what the provider sent.
func (c *foldCase) check(t *testing.T, r *response, cite *ibid.Citation) {
	t.Helper()
	words := func() string { return c.text[cite.Span.Start:cite.Span.End] }
	said, inText := c.slice(r.unit)
	switch {
	case r.quoted && c.quote != "" && cite.Placed() && words() != c.quote:
		t.Errorf("%s: the citation is at %q, but its words are %q", r.name, words(), c.quote)
	case r.quoted && c.quote != "" && inText && said == c.quote && c.end > 0 && cite.Anchor != ibid.AnchorExact:
		t.Errorf("%s: the words %q are where the provider said, but the anchor is %s", r.name, said, cite.Anchor)
	case r.quoted && c.quote != "" && strings.Count(c.text, c.quote) == 1 && !cite.Placed():
		t.Errorf("%s: the words %q occur once in the text, but the citation has no place", r.name, c.quote)
	case !r.quoted && cite.Anchor != ibid.AnchorNone && cite.Anchor != ibid.AnchorUnverified && cite.Span.Len() > 0 && !strings.Contains(words(), c.url):
		t.Errorf("%s: the citation is at %q, which lacks its URL %q", r.name, words(), c.url)
	}
}

// slice returns the text between the offsets, counted in a unit.
func (c *foldCase) slice(unit ibid.Unit) (string, bool) {
	if c.start < 0 || c.end < c.start {
		return "", false
	}
	switch unit {
	case ibid.CodePoint:
		runes := []rune(c.text)
		if c.end > len(runes) {
			return "", false
		}
		return string(runes[c.start:c.end]), true
	case ibid.UTF16:
		units := utf16.Encode([]rune(c.text))
		if c.end > len(units) {
			return "", false
		}
		return string(utf16.Decode(units[c.start:c.end])), true
	default:
		if c.end > len(c.text) {
			return "", false
		}
		return c.text[c.start:c.end], true
	}
}

// markLike matches what looks like a mark.
var markLike = regexp.MustCompile(`^\[\s*(doc)?[0-9]+[^\[\]\n]*\]$`)

// FuzzMarks reads marks in a text at once and in pieces: the citations must be the same, and each must be a mark.
func FuzzMarks(f *testing.F) {
	f.Add("One [1], two [1][2], three [1, 3]. `[1]` [1](u) ![1](i) \\[1] [[1]]", uint64(1))
	f.Add("```\n[1]\n```\n[2] ~~~\n[3]\n~~~ [1]\n", uint64(2))
	f.Add("[1]: https://a.example/\n> [2]\n`` a ` [1] `` [3]", uint64(3))
	f.Add("[doc1] and [doc2, doc3][doc9] [2–3] [1-99]", uint64(4))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		text = strings.ToValidUTF8(text, "?")
		if len(text) > 2000 {
			t.Skip()
		}
		c := foldCase{text: text, random: rand.New(rand.NewPCG(seed, 1))}
		evidence := []string{
			`"object":"chat.completion%s","model":"sonar","citations":["https://a.example/","https://b.example/","https://c.example/"],"choices":[{"index":0,"finish_reason":%s,%q:{"role":"assistant","content":%s}}]`,
			`"object":"extensions.chat.completion%s","choices":[{"index":0,"finish_reason":%s,%q:{"context":{"citations":[{"title":"a"},{"title":"b"},{"title":"c"}]},"role":"assistant","content":%s}}]`,
		}[seed%2]
		body := fuzzReading(t, &ibid.DecodeOptions{}, fmt.Appendf(nil, "{"+evidence+"}", "", `"stop"`, "message", asJSON(text)), seed)
		var stream strings.Builder
		for _, p := range append(c.pieces(), "") {
			fmt.Fprintf(&stream, "data: {"+evidence+"}\n\n", ".chunk", "null", "delta", asJSON(p))
		}
		streamed := fuzzReading(t, &ibid.DecodeOptions{}, []byte(stream.String()), seed)
		if diff := cmp.Diff(body.Citations, streamed.Citations); diff != "" {
			t.Errorf("the stream's citations differ (-body +stream):\n%s", diff)
		}
		for _, cite := range body.Citations {
			if words := body.Text[cite.Span.Start:cite.Span.End]; !markLike.MatchString(words) || cite.Covers != ibid.CoversLink {
				t.Errorf("%q was treated as a mark", words)
			}
		}
	})
}
