package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/testenv"
)

// LangChain and LlamaIndex read what package export writes for them, and the types of examples/python/answer.py read
// the answer document, for every vector, whole and streamed.
func TestPythonReaders(t *testing.T) {
	python := testenv.Python(t)
	var cases bytes.Buffer
	n := 0
	for name, a := range vectorAnswers(t) {
		c := map[string]any{"name": name, "document": a.Document(&ibid.DocumentOptions{Unit: ibid.CodePoint})}
		for _, f := range []export.Format{export.LangChain, export.LlamaIndex} {
			var line bytes.Buffer
			if err := export.Write(&line, f, a, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c[string(f)] = json.RawMessage(line.Bytes())
		}
		if err := json.NewEncoder(&cases).Encode(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n++
	}
	cmd := exec.CommandContext(t.Context(), python, "python/export.py")
	cmd.Stdin = &cases
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("export.py: %v\n%s", err, &log)
	}
	want := []string{fmt.Sprint(n, " answers")}
	testenv.Equal(t, "", want, strings.Split(strings.TrimSpace(string(out)), "\n"))
}

// vectorAnswers returns the decoded answers of the vectors, by file and section.
func vectorAnswers(t *testing.T) map[string]*ibid.Answer {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "*", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	answers := map[string]*ibid.Answer{}
	for _, file := range files {
		data := testenv.Must(os.ReadFile(file))(t)
		for _, f := range txtar.Parse(data).Files {
			switch f.Name {
			case "body.json", "stream.sse", "stream.ndjson", "stream.array.json":
				if a, _ := ibid.Decode(f.Data, nil); a != nil { // some are truncated, and some need an explicit format
					answers[filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)+"/"+f.Name] = a
				}
			}
		}
	}
	if len(answers) < 200 {
		t.Fatalf("only %d of the vectors are answers", len(answers))
	}
	return answers
}
