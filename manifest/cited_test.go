package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
)

// Citations are found in the manifest that was built from them, even if the same words occur twice with different
// sources.
func TestCited(t *testing.T) {
	const words = "Herons nest in trees"
	a := &ibid.Answer{Text: "\u00a0 " + words + ".  " + words + ".", Complete: true, Sources: []ibid.Source{
		{ID: "a", Kind: ibid.Web, URL: "https://herons.example/a#nests"},
		{ID: "b", Kind: ibid.Web, URL: "https://herons.example/b"},
		{ID: "c", Kind: ibid.DocumentKind, Content: "A note says that herons nest in trees."},
	}}
	first := ibid.Span{Start: 3, End: 3 + len(words)}
	second := ibid.Span{Start: first.End + 3, End: first.End + 3 + len(words)}
	for _, c := range []struct {
		span ibid.Span
		refs []ibid.Ref
	}{
		{first, []ibid.Ref{{Source: "a", Quote: "herons nest in tall trees"}, {Source: "c"}}},
		{second, []ibid.Ref{{Source: "b"}}},
		{second, []ibid.Ref{{Source: "a", Quote: "trees are where herons nest"}}},
		{ibid.Span{}, []ibid.Ref{{Source: "b"}}}, // without a place
	} {
		if err := a.Cite(c.span, c.refs...); err != nil {
			t.Fatal(err)
		}
	}
	m, err := (&manifest.Builder{Self: origin + path, RunID: "r1", AgentID: "agent.example/v1"}).Build(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	spans := map[string]ibid.Span{}
	for i := range a.Citations {
		spans[a.Citations[i].ID] = a.Citations[i].Span
	}
	id := manifest.ClaimID(words)
	type row struct {
		span       ibid.Span
		claim, url string
	}
	var got []row
	for _, c := range m.Cited(a) {
		if c.Document == nil || c.Document.URL != c.Source.URL {
			t.Errorf("%s: the document is %+v", c.Source.URL, c.Document)
		}
		got = append(got, row{spans[c.Citation], c.Claim.ID, c.Source.URL})
	}
	want := []row{
		{first, id, "https://herons.example/a"},
		{first, id, "urn:ibid:src:c"},
		{second, id + "-2", "https://herons.example/b"},
		{second, id + "-2", "https://herons.example/a"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Error(diff)
	}
	if list := m.Cited(&ibid.Answer{}); list != nil {
		t.Errorf("%+v", list)
	}
}
