package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestReadDocuments(t *testing.T) {
	tests := testenv.Table[struct {
		Name, List string
		Want       []Source
		Err        string
	}](t, "testdata/tables/read-documents.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			got, err := ReadDocuments(scan.Value(tt.List))
			if diff := cmp.Diff(tt.Want, got, cmpopts.IgnoreFields(Source{}, "Raw")); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if message := errorText(err); message != tt.Err {
				t.Errorf("error %q, want %q", message, tt.Err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzReadDocuments(f *testing.F) {
	f.Add(`["a",{"id":"b","data":{"authors":[1,null]}},{"text":7}]`)
	f.Fuzz(func(t *testing.T, list string) {
		docs, err := ReadDocuments(scan.Value(list))
		for _, d := range docs {
			if d.Key != d.ID || d.Kind != kindDocument {
				t.Errorf("document %+v", d)
			}
		}
		if err == nil && len(docs) == 0 && len(list) > 2 && list[0] == '[' && list[1] == '"' {
			t.Error("a string was lost")
		}
	})
}
