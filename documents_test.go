package ibid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestReadDocuments(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Name, Raw string
		Want      []ibid.Source
	}](t, "testdata/tables/read-documents.txt") {
		t.Run(test.Name, func(t *testing.T) {
			got, err := ibid.ReadDocuments([]byte(test.Raw))
			if err != nil {
				t.Fatal(err)
			}
			// Chunks repeat the content; Raw is the element.
			ignored := cmpopts.IgnoreFields(ibid.Source{}, "Raw", "Chunks")
			if diff := cmp.Diff(test.Want, got, ignored, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadDocumentsErrors(t *testing.T) {
	for raw, want := range map[string]string{
		``:                "documents: ",
		`{"id":"o-1"}`:    "documents: not a JSON array",
		`["a"`:            "documents: ",
		`["a", 7]`:        "documents: element 1 is neither a string nor an object",
		`nope`:            "documents: not a JSON array",
		`["a", null]`:     "documents: element 1 is neither a string nor an object",
		`["a"] and more`:  "documents: ",
		"\x00\x01\x02[[[": "documents: not a JSON array",
	} {
		docs, err := ibid.ReadDocuments([]byte(raw))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ReadDocuments(%q): %v, want %s…", raw, err, want)
		}
		if docs != nil {
			t.Errorf("ReadDocuments(%q): documents besides an error", raw)
		}
	}
}

func ExampleReadDocuments() {
	docs, err := ibid.ReadDocuments([]byte(`["Otters hold hands.", {"id": "zoo", "data": {"title": "Visit", "text": "Open daily."}}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range docs {
		fmt.Printf("%q %q %q\n", d.ID, d.Title, d.Content)
	}
	// Output:
	// "" "" "Otters hold hands."
	// "zoo" "Visit" "Open daily."
}
