package ibid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
)

func TestReadDocuments(t *testing.T) {
	for _, test := range []struct {
		name, raw string
		want      []ibid.Source
	}{
		{"none", ` [] `, nil},
		{"null", `null`, nil},
		{"strings", `["Otters hold hands.", ""]`, []ibid.Source{
			{Kind: ibid.DocumentKind, Content: "Otters hold hands."},
			{Kind: ibid.DocumentKind},
		}},
		{"flat", `[{"title":"Otters","url":"https://zoo.example/otters","text":"They hold hands.","date":"2024-05-01"}]`, []ibid.Source{{
			Kind: ibid.DocumentKind, Title: "Otters", URL: "https://zoo.example/otters", Content: "They hold hands.", PublishedAt: "2024-05-01",
		}}},
		{"flat with id", `[{"id":"o-1","snippet":"They hold hands."}]`, []ibid.Source{
			{ID: "o-1", Kind: ibid.DocumentKind, Content: "They hold hands."},
		}},
		{"id and data", `[{"id":"o-1","data":{"title":"Otters","snippet":"They hold hands."}},{"id":7,"data":"They swim."}]`, []ibid.Source{
			{ID: "o-1", Kind: ibid.DocumentKind, Title: "Otters", Content: "They hold hands."},
			{ID: "7", Kind: ibid.DocumentKind, Content: "They swim."},
		}},
		{"no words of its own", `[{"data":{"weight":"12 kg"}}]`, []ibid.Source{
			{Kind: ibid.DocumentKind, Content: `{"weight":"12 kg"}`},
		}},
		{"same words twice stay two", `["a","a"]`, []ibid.Source{
			{Kind: ibid.DocumentKind, Content: "a"},
			{Kind: ibid.DocumentKind, Content: "a"},
		}},
		{"not UTF-8", "[{\"id\":\"\xff\",\"text\":\"a\xffb\"}]", []ibid.Source{
			{ID: "\ufffd", Kind: ibid.DocumentKind, Content: "a\ufffdb"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ibid.ReadDocuments([]byte(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			// Chunks repeat the content; Raw is the element.
			ignored := cmpopts.IgnoreFields(ibid.Source{}, "Raw", "Chunks")
			if diff := cmp.Diff(test.want, got, ignored, cmpopts.EquateEmpty()); diff != "" {
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
