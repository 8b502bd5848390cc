package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/testenv"
)

// An exported answer states when its sources were read, and any problems with them.
func TestExportWarns(t *testing.T) {
	text := "It began in 1968."
	span := ibid.Span{End: len(text)}
	read, checked := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), time.Date(2026, 3, 5, 9, 0, 0, 0, time.UTC)
	a := &ibid.Answer{
		Text: text, Complete: true,
		Sources: []ibid.Source{{ID: "a", Kind: ibid.Web, Title: "The lake", URL: "https://lake.example/", RetrievedAt: read}, {ID: "b", Kind: ibid.Web, Title: "The mill", URL: "https://mill.example/"}},
		Citations: []ibid.Citation{
			{ID: "1", Span: span, Claim: span, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "a"}}, Verification: &ibid.Verification{Status: "excerpt-altered", CheckedAt: checked}},
			{ID: "2", Span: span, Claim: span, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: "b"}}, Verification: &ibid.Verification{Status: "gone", CheckedAt: checked}},
		},
	}
	const changed, gone = "read 5 March 2026, WARNING: changed: it has something similar, and not the quoted words", "WARNING: not reachable when it was to be read again"
	for form, want := range map[string][]string{
		"markdown": {changed, gone}, "plain": {changed, gone}, "html": {changed, gone}, "latex": {changed, gone}, "footnotes": {changed, gone},
		"bibtex": {"urldate = {2026-03-05}"}, string(biblio.CSLJSON): {`"accessed":`},
	} {
		got := string(testenv.Must(api.RenderAnswer(a, form, nil, nil))(t))
		for _, part := range want {
			if !strings.Contains(strings.ReplaceAll(got, " ", ""), strings.ReplaceAll(part, " ", "")) {
				t.Errorf("%s has no %q: %s", form, part, got)
			}
		}
	}
	a.Citations[0].Verification.Status = "verified"
	if got := string(testenv.Must(api.RenderAnswer(a, "plain", nil, nil))(t)); !strings.Contains(got, "read 5 March 2026") || strings.Count(got, "WARNING") != 1 {
		t.Errorf("without a problem: %s", got)
	}
	a.Citations[0].Support = &ibid.Support{Label: "unsupported", By: "lexical@1"}
	if got := string(testenv.Must(api.RenderAnswer(a, "plain", nil, nil))(t)); !strings.Contains(got, "WARNING: not supported: the cited passage does not") {
		t.Errorf("unsupported: %s", got)
	}
}
