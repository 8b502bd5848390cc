package ibid_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
)

var update = flag.Bool("update", false, "write the results into the expected sections of the vectors")

// The sections of a vector. If there are several streams, the section events is that of the first.
var (
	inputSections    = []string{"body.json", "body.txt", "stream.sse", "stream.ndjson", "stream.array.json", "stream.aws.jsonl"}
	contextSections  = []string{"request.json", "documents.json", "options", "differs"}
	expectedSections = []string{"answer.json", "stream.json", "error", "events", "markdown", "plain"}
)

// TestVectors runs every case of testdata/<format>/<case>.txtar:
//
//	prose                  what the case shows
//	-- body.json --        a whole response; body.txt: one that is not JSON
//	-- stream.sse --       the same answer as a stream; also stream.ndjson, stream.array.json, and stream.aws.jsonl:
//	                       see encodeAWS
//	-- request.json --     the request
//	-- documents.json --   the documents given, as [{"id": …, "data": {…}}] or in another form of ReadDocuments
//	-- options --          see vectorOptions
//	-- differs --          members in which the stream may differ from the body, one per line, with the reason
//	                       after a #; sources.content is the content of every source
//	-- answer.json --      the document of the body, or of the stream if there is no body
//	-- stream.json --      the members in which the stream differs
//	-- error --            the error of Decode, if any
//	-- events --           what becomes known while the stream is read
//	-- markdown --         the rendered answer with its list of sources; plain: in that style
//
// go test -run TestVectors -update writes the sections from answer.json on; review what it writes.
func TestVectors(t *testing.T) {
	for _, file := range vectorFiles(t) {
		t.Run(strings.TrimSuffix(filepath.ToSlash(strings.TrimPrefix(file, "testdata"+string(filepath.Separator))), ".txtar"), func(t *testing.T) {
			t.Parallel()
			v := readVector(t, file)
			v.run(t)
			if *update {
				v.write(t)
			} else {
				v.compare(t)
			}
		})
	}
}

func vectorFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	return files
}

// vector is one case.
type vector struct {
	file    string
	archive *txtar.Archive
	options vectorOptions
	body    []byte
	streams [][]byte
	differs []string
	got     map[string][]byte // the actual contents of the expected sections
}

func readVector(t *testing.T, file string) *vector {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &vector{file: file, archive: archive, got: map[string][]byte{}}
	if len(bytes.Fields(archive.Comment)) < 5 {
		t.Error("no prose that describes the case")
	}
	known := slices.Concat(inputSections, contextSections, expectedSections)
	seen := map[string]bool{}
	for _, f := range archive.Files {
		if !slices.Contains(known, f.Name) || seen[f.Name] {
			t.Fatalf("section %q is unknown or a duplicate; known are %q", f.Name, known)
		}
		seen[f.Name] = true
	}
	v.options = readVectorOptions(t, v)
	v.differs = readDiffers(t, v.section("differs"))
	for _, name := range inputSections {
		data := v.section(name)
		if data == nil {
			continue
		}
		data = v.options.input(t, name, data)
		if strings.HasPrefix(name, "body.") {
			v.body = data
		} else {
			v.streams = append(v.streams, data)
		}
	}
	if v.body == nil && v.streams == nil {
		t.Fatal("neither a body nor a stream")
	}
	return v
}

// section returns the content of a section, or nil if there is none.
func (v *vector) section(name string) []byte {
	for _, f := range v.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// run decodes the vector's inputs in every way, compares the results, checks the answers, and stores the actual
// sections.
func (v *vector) run(t *testing.T) {
	t.Helper()
	var first, stream *reading
	if v.body != nil {
		first = v.read(t, "body", v.body)
	}
	for i, data := range v.streams {
		r := v.read(t, fmt.Sprintf("stream %d", i), data)
		if i == 0 {
			v.got["events"] = []byte(eventLines(r.events))
			if first != nil {
				v.got["stream.json"] = v.difference(t, first, r)
			}
		}
		if first == nil {
			first = r
		}
		if stream == nil {
			stream = r
		}
		diffDocuments(t, fmt.Sprintf("streams 0 and %d", i), stream.document, r.document)
	}
	if v.streams == nil {
		v.got["events"] = []byte(eventLines(first.events))
	}
	v.got["answer.json"] = first.document
	if first.err != nil {
		v.got["error"] = []byte(first.err.Error())
	}
	v.got["markdown"] = []byte(first.answer.Render(&ibid.RenderOptions{Style: ibid.StyleMarkdown, List: true}))
	v.got["plain"] = []byte(first.answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true}))
}

// reading is the result of decoding an input.
type reading struct {
	answer   *ibid.Answer
	err      error
	events   []ibid.Event
	document []byte
}

// read decodes an input whole, byte by byte and in random pieces, which must all give the same result.
func (v *vector) read(t *testing.T, what string, data []byte) *reading {
	t.Helper()
	r := decodeIn(&v.options.decode, data, wholeInput)
	if err := r.answer.Check(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	checkEvents(t, what, r)
	checkDocument(t, what, r)
	if a, err := ibid.Decode(data, &v.options.decode); fmt.Sprint(err) != fmt.Sprint(r.err) || !cmp.Equal(r.answer, a) {
		t.Errorf("%s: Decode, without events, gives a different answer (%v, %v):\n%s", what, r.err, err, cmp.Diff(r.answer, a))
	}
	checkSnapshots(t, what, &v.options.decode, data, r.answer)
	for name, cut := range inputCuts() {
		s := decodeIn(&v.options.decode, data, cut)
		if diff := cmp.Diff(r.answer, s.answer); diff != "" {
			t.Errorf("%s: decoding %s gives a different answer (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
		if a, b := fmt.Sprint(r.err), fmt.Sprint(s.err); a != b {
			t.Errorf("%s: decoding %s gives the error %s, not %s", what, name, b, a)
		}
		if diff := cmp.Diff(string(r.document), string(s.document)); diff != "" {
			t.Errorf("%s: decoding %s gives a different document (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
		checkEvents(t, what+" "+name, s)
		if r.answer.Format == ibid.Generic { // events follow the input
			continue
		}
		if diff := cmp.Diff(eventLines(r.events), eventLines(s.events)); diff != "" {
			t.Errorf("%s: decoding %s gives different events (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
	}
	return r
}

// inputCut returns the length of the next Write, given the bytes left.
type inputCut func(left int) int

func wholeInput(left int) int { return left }

// inputCuts returns ways to split an input, new ones for each call, as the random ones have state.
func inputCuts() map[string]inputCut {
	random := func(seed uint64, most int) inputCut {
		r := rand.New(rand.NewPCG(seed, 7))
		return func(left int) int { return min(left, 1+r.IntN(most)) }
	}
	return map[string]inputCut{
		"byte by byte":     func(int) int { return 1 },
		"in short pieces":  random(1, 6),
		"in middle pieces": random(2, 80),
		"in long pieces":   random(3, 1400),
	}
}

// decodeIn decodes an input in pieces. It overwrites their buffer after each Write, to detect bytes retained without a
// copy.
func decodeIn(opts *ibid.DecodeOptions, data []byte, cut inputCut) *reading {
	r := &reading{}
	d := ibid.Decoder{Options: *opts, OnEvent: func(e ibid.Event) { r.events = append(r.events, e) }}
	var piece []byte
	for len(data) > 0 {
		n := cut(len(data))
		piece = append(piece[:0], data[:n]...)
		_, _ = d.Write(piece)
		for i := range piece {
			piece[i] = 0xAA
		}
		data = data[n:]
	}
	_ = d.Close()
	r.answer, r.err = d.Answer()
	r.document = documentJSON(r.answer, ibid.UTF8)
	return r
}

// checkSnapshots decodes an input in about fifty pieces without events. The snapshot after each piece must be valid,
// and the final answer must be the same as without snapshots.
func checkSnapshots(t *testing.T, what string, opts *ibid.DecodeOptions, data []byte, whole *ibid.Answer) {
	t.Helper()
	d := ibid.Decoder{Options: *opts}
	for piece := range slices.Chunk(data, 1+len(data)/50) {
		_, _ = d.Write(piece)
		if a, _ := d.Answer(); a.Check() != nil {
			t.Errorf("%s: a snapshot: %v", what, a.Check())
		}
	}
	_ = d.Close()
	if a, _ := d.Answer(); !cmp.Equal(whole, a) {
		t.Errorf("%s: the answer with snapshots differs:\n%s", what, cmp.Diff(whole, a))
	}
}

// documentJSON returns an answer as an indented document, including metadata.
func documentJSON(a *ibid.Answer, unit ibid.Unit) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(a.Document(&ibid.DocumentOptions{Unit: unit, Raw: true})); err != nil {
		return []byte(err.Error())
	}
	return b.Bytes()
}

// checkDocument reads the answer's document back in every unit, and expects the same answer.
func checkDocument(t *testing.T, what string, r *reading) {
	t.Helper()
	for _, unit := range []ibid.Unit{ibid.UTF8, ibid.CodePoint, ibid.UTF16} {
		var again ibid.Answer
		if err := json.Unmarshal(documentJSON(r.answer, unit), &again); err != nil {
			t.Errorf("%s: reading the document in %s: %v", what, unit, err)
			continue
		}
		if diff := cmp.Diff(string(r.document), string(documentJSON(&again, ibid.UTF8))); diff != "" {
			t.Errorf("%s: the document in %s, read back, differs (-before +after):\n%s", what, unit, diff)
		}
	}
}

// difference returns the stream's values of the members that may differ from the body's document, and reports other
// differences.
func (v *vector) difference(t *testing.T, body, stream *reading) []byte {
	t.Helper()
	want, got := parseDocument(t, body.document), parseDocument(t, stream.document)
	kept := map[string]any{}
	for _, path := range v.differs {
		a, b := takeMember(want, path), takeMember(got, path)
		if cmp.Equal(a, b) {
			t.Errorf("section differs: %s does not differ", path)
		}
		kept[path] = b
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the stream's document differs from the body's (-body +stream):\n%s", diff)
	}
	if len(kept) == 0 {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(kept); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func diffDocuments(t *testing.T, what string, a, b []byte) {
	t.Helper()
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("%s differ:\n%s", what, diff)
	}
}

func parseDocument(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// takeMember removes a member from a document and returns it; if the path leads through a list, that of every element.
func takeMember(v any, path string) any {
	name, rest, deep := strings.Cut(path, ".")
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = takeMember(v[i], path)
		}
		return out
	case map[string]any:
		if deep {
			return takeMember(v[name], rest)
		}
		out := v[name]
		delete(v, name)
		return out
	}
	return nil
}

func readDiffers(t *testing.T, section []byte) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(string(section)) {
		path, reason, ok := strings.Cut(line, "#")
		if path = strings.TrimSpace(path); !ok || path == "" || strings.TrimSpace(reason) == "" {
			t.Fatalf("section differs: %q is not a member, # and the reason", line)
		}
		out = append(out, path)
	}
	return out
}

// compare compares the actual sections with the expected ones.
func (v *vector) compare(t *testing.T) {
	t.Helper()
	for _, name := range expectedSections {
		want, got := v.section(name), v.got[name]
		if diff := cmp.Diff(sectionText(want), sectionText(got)); diff != "" {
			t.Errorf("section %s (-want +got):\n%s", name, diff)
		}
	}
}

// write replaces the expected sections and leaves everything else unchanged.
func (v *vector) write(t *testing.T) {
	t.Helper()
	out := &txtar.Archive{Comment: v.archive.Comment}
	for _, f := range v.archive.Files {
		if !slices.Contains(expectedSections, f.Name) {
			out.Files = append(out.Files, f)
		}
	}
	for _, name := range expectedSections {
		if data := v.got[name]; len(data) > 0 {
			out.Files = append(out.Files, txtar.File{Name: name, Data: []byte(sectionText(data))})
		}
	}
	data := txtar.Format(out)
	if bytes.Equal(data, txtar.Format(v.archive)) {
		return
	}
	if err := os.WriteFile(v.file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// sectionText returns the content of a section, terminated by a newline as in a file.
func sectionText(data []byte) string {
	s := string(data)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
