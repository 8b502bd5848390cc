package ibid_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// recording is a line of the manifest of recordings.
type recording struct {
	path, provider, api string
	nature              string // "recorded" if exactly as the provider sent it; others were modified
	body, request       []byte
}

// format returns the format that must be detected.
func (r *recording) format() string {
	switch api := strings.TrimSuffix(r.api, "-stream"); api {
	case "gemini":
		return "gemini-generate"
	case "openai-chat":
		switch r.provider {
		case "perplexity", "openrouter", "mistral", "xai", "azure":
			return r.provider + "-chat"
		}
		return api
	case "openai-responses":
		if r.provider == "xai" {
			return "xai-responses"
		}
		return api
	default:
		return api
	}
}

// readRecordings returns all recordings.
func readRecordings(t *testing.T) []*recording {
	t.Helper()
	dir := filepath.Join(testenv.Shared(t), "corpus")
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*recording
	for line := range strings.Lines(string(manifest)) {
		fields := strings.Split(line, "\t")
		if fields[0] == "path" {
			continue
		}
		r := &recording{path: fields[0], provider: fields[1], api: fields[2], nature: fields[4]}
		if r.body, err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.path))); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(r.path, ".jsonl") { // decoded binary messages
			r.body = encodeAWS(t, r.body)
		}
		name := strings.TrimSuffix(r.path, filepath.Ext(r.path)) + ".request.json"
		if request, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			r.request = request
		}
		all = append(all, r)
	}
	return all
}

// Every recording is detected and decoded, with the same answer in one piece and in many, and no citation that the
// provider sent is lost, misplaced or assigned to another source.
func TestCorpus(t *testing.T) {
	recordings := readRecordings(t)
	results := make([]corpusResult, len(recordings))
	t.Run("recordings", func(t *testing.T) {
		for i, r := range recordings {
			t.Run(r.path, func(t *testing.T) {
				t.Parallel()
				results[i] = r.check(t)
			})
		}
	})
	table := corpusTable(results)
	t.Log("\n" + table)
	if !t.Failed() {
		checkMeasured(t, "corpus", table)
	}
}

// corpusResult is the result of a recording for the summary.
type corpusResult struct {
	format, nature string
	sent           int // citations that the provider sent, as pairs of a span and a source
	got            int // those in the answer
	anchors        map[ibid.Anchor]int
	quotes, equal  int // spans whose words the provider repeats, and those that match
}

func (r *recording) check(t *testing.T) corpusResult {
	t.Helper()
	opts := &ibid.DecodeOptions{Request: r.request}
	whole := decodeIn(opts, r.body, wholeInput)
	a := whole.answer
	if whole.err != nil {
		t.Errorf("decoding: %v", whole.err)
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	if a.Format != r.format() || a.Provider != r.provider {
		t.Errorf("detected as %s of %s, want %s of %s", a.Format, a.Provider, r.format(), r.provider)
	}
	checkEvents(t, "whole", whole)
	checkDocument(t, "whole", whole)
	checkSnapshots(t, "in fifty pieces", opts, r.body, a)
	for name, cut := range inputCuts() {
		if name == "in middle pieces" && len(r.body) > 200_000 {
			continue // the other cuts are enough
		}
		cutUp := decodeIn(opts, r.body, cut)
		if diff := gocmp.Diff(a, cutUp.answer); diff != "" {
			t.Errorf("decoding %s gives a different answer (-whole +%[1]s):\n%[2]s", name, diff)
		}
	}
	return r.checkCitations(t, a)
}

// checkCitations compares the answer with [sentCitations].
func (r *recording) checkCitations(t *testing.T, a *ibid.Answer) corpusResult {
	t.Helper()
	sent := sentCitations(t, r)
	result := corpusResult{format: a.Format, nature: r.nature, sent: len(sent), anchors: map[ibid.Anchor]int{}}
	var got []gotCitation
	for i := range a.Citations {
		c := &a.Citations[i]
		result.anchors[c.Anchor] += len(c.Refs)
		for _, ref := range c.Refs {
			got = append(got, gotCitation{citation: c, source: a.Source(ref.Source), words: a.Text[c.Span.Start:c.Span.End]})
		}
	}
	result.got = len(got)
	exact := r.nature == "recorded"
	for _, s := range sent {
		i := slices.IndexFunc(got, func(g gotCitation) bool { return s.is(g, exact) })
		if i < 0 {
			t.Errorf("lost or changed: %+v", s)
			continue
		}
		g := got[i]
		got = slices.Delete(got, i, i+1)
		if s.words == "" {
			continue
		}
		result.quotes++
		if g.words == s.words && g.citation.Placed() {
			result.equal++
		}
	}
	if len(got) > 0 {
		t.Errorf("%d citations that the provider did not send, the first %+v", len(got), got[0].citation)
	}
	if exact && result.equal != result.quotes {
		t.Errorf("%d of %d spans are the words that the provider repeats", result.equal, result.quotes)
	}
	return result
}

// gotCitation is a pair of a span and a source in an answer.
type gotCitation struct {
	citation *ibid.Citation
	source   *ibid.Source
	words    string
}

// sentCitation is a pair of a span and a source as a provider sent it.
type sentCitation struct {
	source string // URL, id, title or text, whichever the provider uses
	words  string // the words of the span, if the provider repeats them
	there  string // the words at its offsets, if it does not
	link   bool   // the span is a visible link to source
	point  bool   // the span is a point
}

// is reports whether g is the citation s. If exact is set, it must have the same place.
func (s sentCitation) is(g gotCitation, exact bool) bool {
	names := []string{g.source.ID, g.source.URL, g.source.OriginalURL, g.source.GlobalID, g.source.Title, g.source.Content}
	for _, c := range g.source.Chunks {
		names = append(names, c.Content)
	}
	if s.source != "" && !slices.Contains(names, s.source) && g.source.URL != strings.TrimSuffix(s.source, "?utm_source=openai") {
		return false
	}
	switch c := g.citation; {
	case !exact:
		return true
	case s.words != "":
		return c.Placed() && g.words == s.words && (c.Anchor == ibid.AnchorExact || c.Anchor == ibid.AnchorUnitFixed)
	case s.there != "":
		return c.Placed() && g.words == s.there
	case s.link:
		return c.Covers == ibid.CoversLink && c.Anchor == ibid.AnchorExact && strings.Contains(g.words, s.source)
	case s.point:
		return c.Covers == ibid.CoversPoint && c.Placed() && g.words == ""
	default:
		return !c.Placed()
	}
}

// corpusTable returns the results as a table with a row per format.
func corpusTable(results []corpusResult) string {
	sums := map[string]*corpusSum{}
	total := &corpusSum{anchors: map[ibid.Anchor]int{}}
	for _, r := range results {
		if sums[r.format] == nil {
			sums[r.format] = &corpusSum{anchors: map[ibid.Anchor]int{}}
		}
		sums[r.format].add(&r)
		total.add(&r)
	}
	anchors := []ibid.Anchor{ibid.AnchorExact, ibid.AnchorUnitFixed, ibid.AnchorMoved, ibid.AnchorUnverified, ibid.AnchorNone}
	var b strings.Builder
	b.WriteString("| format | recordings | as sent | citations sent | kept | words repeated | equal | exact | unit-fixed | moved | unverified | none |\n")
	b.WriteString("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	line := func(name string, s *corpusSum) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |", name, s.recordings, s.verbatim, s.sent, s.got, s.quotes, s.equal)
		for _, anchor := range anchors {
			fmt.Fprintf(&b, " %d |", s.anchors[anchor])
		}
		b.WriteString("\n")
	}
	formats := []string{}
	for format := range sums {
		formats = append(formats, format)
	}
	slices.SortFunc(formats, cmp.Compare)
	for _, format := range formats {
		line("`"+format+"`", sums[format])
	}
	line("all", total)
	return b.String()
}

// corpusSum adds up results.
type corpusSum struct {
	recordings, verbatim, sent, got, quotes, equal int
	anchors                                        map[ibid.Anchor]int
}

func (s *corpusSum) add(r *corpusResult) {
	s.recordings++
	if r.nature == "recorded" {
		s.verbatim++
	}
	s.sent += r.sent
	s.got += r.got
	s.quotes += r.quotes
	s.equal += r.equal
	for anchor, n := range r.anchors {
		s.anchors[anchor] += n
	}
}

// checkMeasured compares a table in docs/measurements.md, between the comments with its name, with the current one.
// With -update it writes the table there.
func checkMeasured(t *testing.T, name, table string) {
	t.Helper()
	file := filepath.Join("docs", "measurements.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok1 := bytes.Cut(page, []byte(begin))
	old, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok1 || !ok2 {
		t.Fatalf("%s has no comments for the table %s", file, name)
	}
	if string(old) == table {
		return
	}
	if !*update {
		t.Errorf("%s, table %s (-page +now):\n%s", file, name, gocmp.Diff(string(old), table))
		return
	}
	page = slices.Concat(before, []byte(begin+table+end), after)
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
}

// documents returns the JSON documents of a recording, read without ibid.
func (r *recording) documents(t *testing.T) []map[string]any {
	t.Helper()
	var texts [][]byte
	switch filepath.Ext(r.path) {
	case ".sse":
		for line := range bytes.Lines(r.body) {
			if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
				texts = append(texts, bytes.TrimSpace(data))
			}
		}
	case ".jsonl":
		original, err := os.ReadFile(filepath.Join(testenv.Shared(t), "corpus", filepath.FromSlash(r.path)))
		if err != nil {
			t.Fatal(err)
		}
		texts = bytes.Split(original, []byte("\n"))
	case ".ndjson":
		texts = bytes.Split(r.body, []byte("\n"))
	default:
		texts = [][]byte{r.body}
	}
	var out []map[string]any
	for _, text := range texts {
		var m map[string]any
		if json.Unmarshal(text, &m) == nil {
			out = append(out, m)
			continue
		}
		var list []map[string]any
		if json.Unmarshal(text, &list) == nil {
			out = append(out, list...)
		}
	}
	return out
}
