package wire

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestReadDocuments(t *testing.T) {
	tests := []struct {
		name, list string
		want       []Source
		err        string
	}{
		{name: "none", list: ``},
		{name: "null", list: `null`},
		{name: "empty", list: `[]`},
		{name: "nearly null", list: `nul`, err: "not a JSON array"},
		{name: "garbage that begins like null", list: `nope, not JSON`, err: "not a JSON array"},
		{name: "no array", list: `{"id":"a"}`, err: "not a JSON array"},
		{name: "cut off", list: `["a`, err: "not JSON"},
		{
			name: "strings", list: `["Brot","ist \u00e4lter"]`,
			want: []Source{{Kind: kindDocument, Content: "Brot"}, {Kind: kindDocument, Content: "ist älter"}},
		},
		{
			name: "flat objects", list: `[{"id":"a","title":"T","url":"https://t.example/","text":"x","snippet":"y","author":"A","date":"2024"},{"id":7,"snippet":"y","content":"z","authors":["A","B",3],"filename":"f.txt"},{"content":"z"},{ "rows" : [ 1, {"id": 2} ], "id": "r", "a\u0022b":null},{"id":"only"}]`,
			want: []Source{
				{Key: "a", ID: "a", Kind: kindDocument, Title: "T", URL: "https://t.example/", Content: "x", Authors: []string{"A"}, PublishedAt: "2024"},
				{Key: "7", ID: "7", Kind: kindDocument, Content: "y", Authors: []string{"A", "B", "3"}, Filename: "f.txt"},
				{Kind: kindDocument, Content: "z"},
				{Key: "r", ID: "r", Kind: kindDocument, Content: `{"rows":[1,{"id":2}],"a\"b":null}`},
				{Key: "only", ID: "only", Kind: kindDocument},
			},
		},
		{
			name: "id and data", list: `[{"id":"a","data":{"title":"T","text":"x"}},{"id":"b","data":"x"},{"id":"c","data":null},{"data":[ 1 ]}]`,
			want: []Source{
				{Key: "a", ID: "a", Kind: kindDocument, Title: "T", Content: "x"},
				{Key: "b", ID: "b", Kind: kindDocument, Content: "x"},
				{Key: "c", ID: "c", Kind: kindDocument, Content: `{"data":null}`},
				{Kind: kindDocument, Content: "[1]"},
			},
		},
		{
			name: "neither", list: `["a",7]`, err: "element 1 is neither a string nor an object",
			want: []Source{{Kind: kindDocument, Content: "a"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadDocuments(scan.Value(tt.list))
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Source{}, "Raw")); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
			if message := errorText(err); message != tt.err {
				t.Errorf("error %q, want %q", message, tt.err)
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
