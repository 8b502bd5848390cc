package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

// What a document says of itself reaches the model, whatever it is called.
func TestBuildRequestDocumentRest(t *testing.T) {
	const list = `[{"id":"d1","data":{"title":"T","url":"https://t.example/","text":"Herons","snippet":"s","author":"Ann","date":"2024","rating":5,"meta":{"page":[1,2]},"none":null}},` +
		`{"id":"d2","title":7,"content":"flat","source":"desk\none"},"words",{"rows":1}]`
	docs, err := ReadDocuments(scan.Value(list))
	if err != nil {
		t.Fatal(err)
	}
	docs[3].Raw = []byte(`{"text":"x","broken`) // what is no JSON must not get into any
	for _, test := range []struct {
		provider string
		want     []string
	}{
		{"cohere", []string{
			`{"id":"d1","data":{"title":"T","url":"https://t.example/","authors":["Ann"],"published_at":"2024","text":"Herons","snippet":"s","rating":5,"meta":{"page":[1,2]}}}`,
			`{"id":"d2","data":{"text":"flat","title":7,"source":"desk\none"}},{"data":{"text":"words"}},{"data":{"text":"{\"rows\":1}"}}]`,
		}},
		{"anthropic", []string{`"context":"https://t.example/\nauthors: Ann\npublished_at: 2024\nsnippet: s\nrating: 5\nmeta: {\"page\":[1,2]}"`, `"context":"title: 7\nsource: desk one"`}},
		{"mistral", []string{`\"snippets\":[\"Herons\"],\"date\":\"2024\",\"authors\":[\"Ann\"],\"snippet\":\"s\",\"rating\":5,\"meta\":{\"page\":[1,2]}}`}},
	} {
		b, err := BuildRequest(test.provider, &Chat{Model: "m", Messages: []Message{{RoleUser, "U"}}, Documents: docs})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if !strings.Contains(string(b.Body), want) {
				t.Errorf("%s: no %s in\n%s", test.provider, want, b.Body)
			}
		}
	}
	if diff := cmp.Diff([]string{"title: 7", "source: desk one"}, docs[1].About()); diff != "" {
		t.Error(diff)
	}
}
