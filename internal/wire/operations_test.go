package wire

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid/internal/scan"
)

var update = flag.Bool("update", false, "rewrite the operations of testdata/operations")

// TestOperations checks the operations for the documents of one response, one case per file, and its recognised format.
// The cases are those where operations show what a vector's answer does not, or many cases at once: odd values, missing
// members, unspecified orders.
func TestOperations(t *testing.T) {
	files, err := filepath.Glob("testdata/operations/*/*.txtar")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/operations/"), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var request, detected string
			var docs []string
			var operations *txtar.File
			for i := range archive.Files {
				f := &archive.Files[i]
				switch data := strings.TrimSuffix(string(f.Data), "\n"); f.Name {
				case "request":
					request = data
				case "document":
					docs = append(docs, data)
				case "detected":
					detected = data
				case "operations":
					operations = f
				}
			}
			got := strings.Join(record(t, filepath.Base(filepath.Dir(file)), request, docs...), "\n") + "\n"
			if *update {
				operations.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(operations.Data), got); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			event, data := splitEvent(docs[0])
			if format := Detect(event, scan.Value(data)); format != detected {
				t.Errorf("recognised as %q, want %q", format, detected)
			}
		})
	}
}
