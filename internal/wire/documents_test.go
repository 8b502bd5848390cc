package wire

import (
	"slices"
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

// Documents that the caller gave get keys and ids, and citations name them by index.
func TestGivenDocuments(t *testing.T) {
	for format, c := range map[string]struct {
		given []Source
		doc   string
		want  []string
	}{
		"anthropic-messages": {
			[]Source{{Title: "A"}, {Key: "own", ID: "own", Kind: kindFile}},
			`{"type":"message","content":[{"type":"text","text":"a","citations":[{"type":"char_location","document_index":1}]}]}`,
			[]string{
				`source doc:0 document id="doc:0" title="A"`,
				`source own file id="own"`,
				`begin 0/0/0`,
				`cite 0/0/1 0/0/0 block-span block -> own`,
				`text 0/0/0 "a"`,
				`end-part 0/0/0`,
			},
		},
		"cohere-v2": {
			[]Source{{Title: "A", Content: "x"}, {Key: "own", ID: "own"}},
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}`,
			[]string{
				`source doc:0 document id="doc:0" title="A" content="x"`,
				`source own document id="own"`,
				`text 0/0/0 "a"`,
			},
		},
	} {
		if diff := cmp.Diff(c.want, recordWith(t, format, &Config{Documents: c.given}, c.doc)); diff != "" {
			t.Errorf("%s: operations (-want +got):\n%s", format, diff)
		}
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

// The authors of a document are kept, as a name or as a list, under both names; they used to be lost where author was a
// list and authors a name.
func TestDocumentAuthors(t *testing.T) {
	for document, want := range map[string][]string{
		`{"author": "Ann"}`: {"Ann"}, `{"author": ["Ann", "Bob"]}`: {"Ann", "Bob"}, `{"authors": "Ann"}`: {"Ann"},
		`{"authors": ["Ann", "Bob"]}`: {"Ann", "Bob"}, `{"author": "", "authors": null}`: nil,
	} {
		docs, err := ReadDocuments(scan.Value("[" + document + "]"))
		if err != nil || len(docs) != 1 || !slices.Equal(docs[0].Authors, want) {
			t.Errorf("%s: %v %+v", document, err, docs)
		}
	}
}
