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

var update = flag.Bool("update", false, "write what the code does into the expected sections of the vectors")

// The sections of a vector. Inputs are those of inputSections; of several streams the first is the one whose events are
// written down.
var (
	inputSections    = []string{"body.json", "body.txt", "stream.sse", "stream.ndjson", "stream.array.json", "stream.aws.jsonl"}
	contextSections  = []string{"request.json", "documents.json", "options", "differs"}
	expectedSections = []string{"answer.json", "stream.json", "error", "events", "markdown", "plain"}
)

// TestVectors runs every case of testdata/<format>/<case>.txtar:
//
//	prose                  what the case shows
//	-- body.json --        a whole response; body.txt: one that is no JSON
//	-- stream.sse --       the same answer as a stream; also stream.ndjson, stream.array.json, and stream.aws.jsonl, for which
//	                       see encodeAWS
//	-- request.json --     the request
//	-- documents.json --   the documents given, as [{"id": …, "data": {…}}] and what else the formats take
//	-- options --          see vectorOptions
//	-- differs --          members of the document in which the stream may differ from the body, one a line, with the reason
//	                       after a #; sources.content is content of every source
//	-- answer.json --      the document of the body, or of the stream where there is no body
//	-- stream.json --      those members of it in which the stream differs
//	-- error --            the error of Decode, if there is one
//	-- events --           what becomes known while the stream is read
//	-- markdown --         the answer rendered, with its list of sources; plain: in that style
//
// The sections from answer.json on are written by go test -run TestVectors -update; what it writes has to be read before
// it is believed.
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
	got     map[string][]byte // the expected sections as the code makes them
}

func readVector(t *testing.T, file string) *vector {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &vector{file: file, archive: archive, got: map[string][]byte{}}
	if len(bytes.Fields(archive.Comment)) < 5 {
		t.Error("no prose that says what the case shows")
	}
	known := slices.Concat(inputSections, contextSections, expectedSections)
	seen := map[string]bool{}
	for _, f := range archive.Files {
		if !slices.Contains(known, f.Name) || seen[f.Name] {
			t.Fatalf("section %q is unknown or there twice; known are %q", f.Name, known)
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

// section returns the content of a section, nil where there is none.
func (v *vector) section(name string) []byte {
	for _, f := range v.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// run decodes the vector's inputs in every way, holds them against one another and against what every answer promises,
// and keeps what came of it.
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

// reading is what came of one input.
type reading struct {
	answer   *ibid.Answer
	err      error
	events   []ibid.Event
	document []byte
}

// read decodes an input whole, byte by byte and in random pieces, which must all give the same.
func (v *vector) read(t *testing.T, what string, data []byte) *reading {
	t.Helper()
	r := decodeIn(&v.options.decode, data, wholeInput)
	if err := r.answer.Check(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	checkEvents(t, what, r)
	checkDocument(t, what, r)
	if a, err := ibid.Decode(data, &v.options.decode); fmt.Sprint(err) != fmt.Sprint(r.err) || !cmp.Equal(r.answer, a) {
		t.Errorf("%s: Decode, without events, gives another answer (%v, %v):\n%s", what, r.err, err, cmp.Diff(r.answer, a))
	}
	checkSnapshots(t, what, &v.options.decode, data, r.answer)
	for name, cut := range inputCuts() {
		s := decodeIn(&v.options.decode, data, cut)
		if diff := cmp.Diff(r.answer, s.answer); diff != "" {
			t.Errorf("%s: decoding %s gives another answer (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
		if a, b := fmt.Sprint(r.err), fmt.Sprint(s.err); a != b {
			t.Errorf("%s: decoding %s gives the error %s, not %s", what, name, b, a)
		}
		if diff := cmp.Diff(string(r.document), string(s.document)); diff != "" {
			t.Errorf("%s: decoding %s gives another document (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
		checkEvents(t, what+" "+name, s)
		if r.answer.Format == ibid.Generic { // raw text is told as it comes
			continue
		}
		if diff := cmp.Diff(eventLines(r.events), eventLines(s.events)); diff != "" {
			t.Errorf("%s: decoding %s tells other events (-whole +%[2]s):\n%[3]s", what, name, diff)
		}
	}
	return r
}

// inputCut says how long the next Write is, given what is left.
type inputCut func(left int) int

func wholeInput(left int) int { return left }

// inputCuts returns ways to cut an input, new ones each time: the random ones go on where they were.
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

// decodeIn decodes an input in pieces. They come in a buffer that is written over after each Write, so that bytes kept
// without being copied show.
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

// checkSnapshots decodes an input in some fifty pieces without events. The answer so far must be in order after each,
// and the last as it is without asking.
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
		t.Errorf("%s: with snapshots it is another answer:\n%s", what, cmp.Diff(whole, a))
	}
}

// documentJSON returns an answer as an indented document with everything in it.
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

// checkDocument reads a document again, in every unit, and expects the same answer.
func checkDocument(t *testing.T, what string, r *reading) {
	t.Helper()
	for _, unit := range []ibid.Unit{ibid.UTF8, ibid.CodePoint, ibid.UTF16} {
		var again ibid.Answer
		if err := json.Unmarshal(documentJSON(r.answer, unit), &again); err != nil {
			t.Errorf("%s: reading the document in %s: %v", what, unit, err)
			continue
		}
		if diff := cmp.Diff(string(r.document), string(documentJSON(&again, ibid.UTF8))); diff != "" {
			t.Errorf("%s: the document in %s, read again, is another (-before +after):\n%s", what, unit, diff)
		}
	}
}

// difference returns the members in which a stream's document differs from the body's, as the stream has them, and reports
// those that must not differ.
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

// takeMember takes a member out of a document and returns it; where the path leads through a list, that of every element.
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

// compare holds what the code makes against the expected sections.
func (v *vector) compare(t *testing.T) {
	t.Helper()
	for _, name := range expectedSections {
		want, got := v.section(name), v.got[name]
		if diff := cmp.Diff(sectionText(want), sectionText(got)); diff != "" {
			t.Errorf("section %s (-want +got):\n%s", name, diff)
		}
	}
}

// write replaces the expected sections, and leaves everything else as it stands.
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

// sectionText returns the content of a section as a file has it: it ends with a newline.
func sectionText(data []byte) string {
	s := string(data)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}
