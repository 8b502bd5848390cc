package trail_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

var update = flag.Bool("update", false, "rewrite the expectations of the vectors")

// Each vector is prose, a run, and the summary as JSON, with its issues, or the error.
func TestVectors(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar := testenv.Must(txtar.ParseFile(name))(t)
			if len(bytes.TrimSpace(ar.Comment)) == 0 {
				t.Error("no prose")
			}
			in, options := file(t, ar, "run"), &trail.SummaryOptions{}
			if raw := file(t, ar, "options"); raw != nil {
				testenv.OK(t, json.Unmarshal(raw, options))
			}
			got := outcome(t, in, options)
			if *update {
				setFile(ar, got)
				testenv.OK(t, os.WriteFile(name, txtar.Format(ar), 0o666))
				return
			}
			want := file(t, ar, got.Name)
			testenv.Equal(t, fmt.Sprintf("%s differs", got.Name), string(want), string(got.Data))
		})
	}
}

// outcome reads a run and sums it up.
func outcome(t *testing.T, in []byte, o *trail.SummaryOptions) txtar.File {
	t.Helper()
	run, err := trail.Read(in)
	if err != nil {
		return txtar.File{Name: "error", Data: []byte(err.Error() + "\n")}
	}
	stable(t, run)
	s := run.Summary(o)
	if s.Links, err = run.Link(t.Context(), nil, &trail.LinkOptions{NoInference: true}); err != nil {
		t.Fatal(err)
	}
	data := testenv.Must(s.MarshalJSON())(t)
	var b bytes.Buffer
	layOut(t, &b, data, 0)
	again, err := trail.Read(data)
	if err != nil {
		t.Fatalf("the summary cannot be read as a run: %v", err)
	}
	if !o.NoExcerpts {
		s := again.Summary(o)
		if s.Links, err = again.Link(t.Context(), nil, &trail.LinkOptions{NoInference: true}); err != nil {
			t.Fatal(err)
		}
		twice := testenv.Must(s.MarshalJSON())(t)
		testenv.Equal(t, "the summary, read as a run, has a different summary", string(data), string(twice))
	}
	b.WriteByte('\n')
	return txtar.File{Name: "summary", Data: b.Bytes()}
}

// layOut indents JSON for readers of the vectors: what fits on a line is on one.
func layOut(t *testing.T, b *bytes.Buffer, raw json.RawMessage, depth int) {
	t.Helper()
	indent := "\n" + strings.Repeat(" ", depth+1)
	if len(raw)+depth <= 140 || raw[0] != '{' && raw[0] != '[' {
		b.Write(raw)
		return
	}
	b.WriteByte(raw[0])
	d := json.NewDecoder(bytes.NewReader(raw))
	testenv.Must(d.Token())(t)
	for n := 0; d.More(); n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(indent)
		if raw[0] == '{' {
			name := testenv.Must(d.Token())(t)
			fmt.Fprintf(b, "%q: ", name)
		}
		var value json.RawMessage
		testenv.OK(t, d.Decode(&value))
		layOut(t, b, value, depth+1)
	}
	b.WriteString(indent[:len(indent)-1])
	b.WriteByte(raw[0] + 2) // the closing bracket
}

// stable checks that a run that is written reads back the same.
func stable(t *testing.T, run *trail.Trail) {
	t.Helper()
	first := testenv.Must(run.MarshalJSON())(t)
	again, err := trail.Read(first)
	if err != nil {
		t.Fatalf("reading what was written: %v\n%s", err, first)
	}
	second := testenv.Must(again.MarshalJSON())(t)
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Fatalf("written again it differs (-first +second):\n%s", diff)
	}
}

func file(t *testing.T, ar *txtar.Archive, name string) []byte {
	t.Helper()
	for _, f := range ar.Files {
		if f.Name == name {
			return f.Data
		}
	}
	if name == "run" {
		t.Fatal("the vector has no run")
	}
	return nil
}

func setFile(ar *txtar.Archive, f txtar.File) {
	kept := ar.Files[:0]
	for _, old := range ar.Files {
		if old.Name == "run" || old.Name == "options" {
			kept = append(kept, old)
		}
	}
	ar.Files = append(kept, f)
}

// Every issue has its line in the documentation.
func TestDocsIssues(t *testing.T) {
	page := testenv.Must(os.ReadFile(filepath.Join(testenv.Root(t), "docs", "trail.md")))(t)
	sources := testenv.Must(filepath.Glob("*.go"))(t)
	found := 0
	for _, name := range sources {
		code := testenv.Must(os.ReadFile(name))(t)
		for _, m := range regexp.MustCompile(`(?m)^\s+issue\w+ += "([a-z-]+)"`).FindAllSubmatch(code, -1) {
			row := regexp.MustCompile("(?m)^\\| [^|]*`" + string(m[1]) + "`") // in the first column
			if found++; !row.Match(page) {
				t.Errorf("docs/trail.md does not have the issue %s of %s", m[1], name)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d issues were found", found)
	}
}

// Exceeding a limit is reported, and takes little time.
func TestLimits(t *testing.T) {
	step := `{"step_number":%d,"source_attributions":[{"document_id":"d%d","relevance_score":0.5}]}` + "\n"
	var b bytes.Buffer
	for i := range trail.MaxSteps + 1 {
		if i < 10_000 {
			fmt.Fprintf(&b, step, i, i%7)
		} else {
			b.WriteString("{\"step_number\":1}\n")
		}
		if i == 9999 {
			run := testenv.Must(trail.Read(b.Bytes()))(t)
			s := run.Summary(nil)
			if len(s.Steps) != 10000 || len(s.Sources) != 7 {
				t.Errorf("%d steps and %d sources, want 10000 and 7", len(s.Steps), len(s.Sources))
			}
		}
	}
	_, err := trail.Read(b.Bytes())
	if want := "read run: over the limit: more than 100000 steps"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	deep := strings.Repeat(`{"reasoning_steps":[{"nested_run":`, trail.MaxNested+2) + `{}` + strings.Repeat(`}]}`, trail.MaxNested+2)
	if _, err = trail.Read([]byte(deep)); err == nil || !strings.Contains(err.Error(), "runs nested deeper than 16") {
		t.Errorf("error %v", err)
	}
	deep = `{"reasoning_steps":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "}"
	if _, err = trail.Read([]byte(deep)); err == nil || !strings.Contains(err.Error(), "exceeded max depth") {
		t.Errorf("error %v", err)
	}
}

// A relevance near the largest number is shown as it is, since rounding it would make it infinite.
func TestSummaryOfHugeRelevance(t *testing.T) {
	read := testenv.Must(trail.Read([]byte(`{"reasoning_steps": [{"step_number": 1, "confidence_score": 1e308,
		"source_attributions": [{"document_id": "a", "relevance_score": 1e308}]}]}`)))(t)
	for _, adjust := range []bool{false, true} {
		testenv.Must(json.Marshal(read.Summary(&trail.SummaryOptions{Adjust: adjust})))(t)
	}
}

// What could not be read is kept, but as UTF-8, so that the output is readable.
func TestInvalidUTF8Kept(t *testing.T) {
	run := testenv.Must(trail.Read([]byte("{\"run_id\":\"r\",\"answer\":{\"versio\x8f\":1},\"x\":\"\xff\xff\"}")))(t)
	written, err := run.MarshalJSON()
	if err != nil || !utf8.Valid(written) {
		t.Fatalf("%v: %q", err, written)
	}
	stable(t, run)
}
