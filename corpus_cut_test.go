package ibid_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// wholeBody is the body of a recording or vector that decodes without an error.
type wholeBody struct {
	name          string
	body, request []byte
	answer        *ibid.Answer
}

// wholeBodies returns the bodies of all recordings and vectors.
func wholeBodies(t *testing.T) []wholeBody {
	t.Helper()
	var all []wholeBody
	add := func(b wholeBody, opts *ibid.DecodeOptions) {
		if !json.Valid(b.body) { // several bodies, or one with a suffix
			return
		}
		a, err := ibid.Decode(b.body, opts)
		if err == nil && a.Format != ibid.Generic && a.Text != "" {
			b.answer = a
			all = append(all, b)
		}
	}
	for _, r := range readRecordings(t) {
		if filepath.Ext(r.path) == ".json" {
			add(wholeBody{name: r.path, body: r.body, request: r.request}, &ibid.DecodeOptions{Request: r.request})
		}
	}
	for _, file := range vectorFiles(t) {
		v := readVector(t, file)
		if o := v.options.decode; v.body != nil && o.Format == "" && o.Documents == nil && o.Mappings == nil && o.Limits == (ibid.Limits{}) {
			add(wholeBody{name: file, body: bytes.TrimSpace(v.body), request: o.Request}, &o)
		}
	}
	return all
}

// A truncated body keeps its format and its text: detection does not need members that providers send last.
func TestBodiesCutOff(t *testing.T) {
	cuts := 0
	for _, b := range wholeBodies(t) {
		for _, percent := range []int{30, 50, 70, 90, 99} {
			left := b.body[:len(b.body)*percent/100]
			if b.answer.Format == "generic-sources" {
				continue // recognised by its text and its list, both whole: before, it could be any JSON
			}
			want := strings.TrimRight(textBefore(b.body, len(left), b.answer), " \n[") // a bracket may begin a mark
			if want == "" || b.answer.Format == "gemini-generate" && bytes.Contains(left, []byte(`"thought"`)) {
				continue // a truncated part may be a thought
			}
			cuts++
			a, _ := ibid.Decode(left, &ibid.DecodeOptions{Request: b.request})
			if !strings.HasPrefix(a.Text, want) {
				t.Errorf("%s, %d %%: the text is %d bytes, …%q, want one that begins with %d bytes, …%q", b.name, percent,
					len(a.Text), last(a.Text, 30), len(want), last(want, 30))
			}
			if a.Format != b.answer.Format && !laterFlavour(a.Format, b.answer.Format) {
				t.Errorf("%s, %d %%: detected as %s, want %s", b.name, percent, a.Format, b.answer.Format)
			}
		}
	}
	if t.Logf("%d cuts", cuts); cuts < 100 {
		t.Error("too few bodies")
	}
}

// textBefore returns how much of an answer's first part is in the first n bytes of its body. It does not depend on the
// format: it finds the text as the only string in the body that equals the whole part.
func textBefore(body []byte, n int, a *ibid.Answer) string {
	part := a.Text[a.Parts[0].Start:a.Parts[0].End]
	from := 0
	for dec := json.NewDecoder(bytes.NewReader(body)); ; {
		before := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			break
		}
		if s, ok := token.(string); ok && s == part {
			if from > 0 {
				return ""
			}
			from = int(before) + bytes.IndexByte(body[before:], '"') + 1
		}
	}
	if from == 0 || from >= n {
		return ""
	}
	for end := min(n, from+len(body)); end > from && end > n-12; end-- { // not in the middle of an escape
		var s string
		if json.Unmarshal([]byte(`"`+string(body[from:end])+`"`), &s) == nil && strings.HasPrefix(part, s) {
			return s
		}
	}
	return part[:min(len(part), 1)]
}

// laterFlavour reports whether got is want without the members that distinguish it from plain Chat Completions.
func laterFlavour(got, want string) bool {
	return got == "openai-chat" && strings.HasSuffix(want, "-chat")
}

// Two consecutive bodies are two messages: neither text replaces the other, and no citation is lost or placed in the
// wrong text.
func TestBodiesInARow(t *testing.T) {
	former := map[string]wholeBody{}
	pairs := 0
	for _, b := range wholeBodies(t) {
		a, ok := former[b.answer.Format]
		former[b.answer.Format] = b
		if !ok || a.request != nil || b.request != nil || a.body[0] != '{' || b.body[0] != '{' {
			continue
		}
		if id := a.answer.ID; id == b.answer.ID && (id != "" || b.answer.Format == "gemini-generate") {
			continue // a repeated response; without ids, one of Gemini's may be the next chunk of a stream
		}
		if a.answer.Format == "gemini-generate" && a.answer.Finish == "" {
			continue // without an end, the next is a chunk
		}
		pairs++
		both, err := ibid.Decode(linesOf(t, a.body, b.body), nil)
		if err != nil {
			t.Errorf("%s and %s: %v", a.name, b.name, err)
		}
		if both.Text != a.answer.Text+b.answer.Text {
			t.Errorf("%s and %s: the text is %.80q … %.80q", a.name, b.name, both.Text, both.Text[len(both.Text)*3/4:])
			continue
		}
		checkRow(t, a, b, both)
	}
	if t.Logf("%d pairs", pairs); pairs < 20 {
		t.Error("too few pairs")
	}
}

// linesOf returns a file with one body per line.
func linesOf(t *testing.T, bodies ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, body := range bodies {
		if err := json.Compact(&b, body); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// checkRow compares the citations of two consecutive bodies, decoded together, with those of each.
func checkRow(t *testing.T, a, b wholeBody, both *ibid.Answer) {
	t.Helper()
	want := map[[2]string]int{}
	for _, one := range []*ibid.Answer{a.answer, b.answer} {
		for i := range one.Citations {
			for _, ref := range one.Citations[i].Refs {
				want[rowKey(one, &one.Citations[i], ref.Source)]++
			}
		}
	}
	for i := range both.Citations {
		for _, ref := range both.Citations[i].Refs {
			want[rowKey(both, &both.Citations[i], ref.Source)]--
		}
	}
	for key, n := range want {
		if n != 0 {
			t.Errorf("%s and %s: %d more or fewer citations of %q", a.name, b.name, n, key)
		}
	}
}

// rowKey identifies a citation by its words and its source's URL, title or content.
func rowKey(a *ibid.Answer, c *ibid.Citation, source string) [2]string {
	s := a.Source(source)
	if a.Format == "anthropic-messages" { // without the request, the bodies are taken to be turns about the same documents
		return [2]string{a.Text[c.Span.Start:c.Span.End], string(s.Kind)}
	}
	for _, name := range []string{s.URL, s.GlobalID, s.Title, s.Content, s.ID} {
		if name != "" {
			return [2]string{a.Text[c.Span.Start:c.Span.End], name}
		}
	}
	return [2]string{a.Text[c.Span.Start:c.Span.End]}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }
