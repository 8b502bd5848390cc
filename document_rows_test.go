package ibid_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
)

// The rows of one citation are those of the document, except for the fields that depend on the whole answer.
func TestCitationRows(t *testing.T) {
	some, none := 0.5, math.NaN()
	a := &ibid.Answer{
		Text: "Herons breed in March.",
		Sources: []ibid.Source{
			{ID: "a", Kind: ibid.Web, Title: "A", URL: "https://example.com/a"}, {ID: "b", Kind: ibid.Web, URL: "https://example.com/b"},
		},
		Citations: []ibid.Citation{
			{Span: ibid.Span{End: 6}, Refs: []ibid.Ref{{Source: "b", Confidence: &none}, {Source: "a", Quote: "Herons", Confidence: &some}}},
			{Span: ibid.Span{Start: 7, End: 12}, Claim: ibid.Span{End: 12}, ClaimInferred: true, Refs: []ibid.Ref{{Source: "nobody"}}},
			{Span: ibid.Span{Start: 7, End: 99}, Refs: []ibid.Ref{{Source: "a"}}},
		},
	}
	byGroup := map[int][]ibid.DocumentCitation{}
	for _, row := range a.Document(nil).Citations {
		byGroup[row.Group] = append(byGroup[row.Group], row)
	}
	sorted := cmpopts.SortSlices(func(x, y ibid.DocumentCitation) bool { return x.SourceID < y.SourceID }) // a document sorts them by number
	for i := range a.Citations {
		got := a.CitationRows(&a.Citations[i])
		if diff := cmp.Diff(byGroup[i+1], got, sorted, cmpopts.IgnoreFields(ibid.DocumentCitation{}, "ID", "Group", "Index")); diff != "" {
			t.Errorf("citation %d (-document +rows):\n%s", i, diff)
		}
	}
}
