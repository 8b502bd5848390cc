package verify_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// What a PDF says is advisory: programs make different texts of one.
func TestComparePDF(t *testing.T) {
	body, err := os.ReadFile("../snapshot/testdata/chromium.pdf")
	if err != nil {
		t.Fatal(err)
	}
	pdf := read(string(body), "application/pdf")
	text, err := pdf.Text()
	if err != nil {
		t.Fatal(err)
	}
	runes := []rune(text.Content)
	exact := strings.TrimSpace(string(runes[12:80]))
	changed := read(string(body)+"\n%changed", "application/pdf")
	other := say("This was certainly never printed in that document by anybody.")
	for _, test := range []struct {
		name string
		edit func(*manifest.ClaimSource, *manifest.Source)
		now  *snapshot.Snapshot
		want verify.Status
	}{
		{"unchanged, found", nil, pdf, verify.Verified},
		{"unchanged, in another place", moveBy(3), pdf, verify.Verified},
		{"unchanged, not found", other, pdf, verify.VerifiedHashOnly},
		{"unchanged, private, not found", both(other, private), pdf, verify.VerifiedHashOnly},
		{"changed, found", noTextHash, changed, verify.DriftedExcerptIntact},
		{"changed, not found", other, changed, verify.HashMismatch},
		{"no hash, not found", both(other, noHash), pdf, verify.UnsupportedMedia},
	} {
		cs, src := recorded(t, pdf, exact)
		if test.edit != nil {
			test.edit(cs, src)
		}
		r := verify.Compare(cs, src, test.now, nil, &verify.CompareOptions{TextProfile: manifest.TextProfile})
		if r.Status != test.want || r.Counts == verify.CountFailure {
			t.Errorf("%s: %s counts %s, want %s", test.name, r.Status, r.Counts, test.want)
		}
	}
}

// always is a model that says one thing of everything.
type always struct {
	verdict support.Verdict
	err     error
	asked   *int
	short   bool
}

func (f always) Check(_ context.Context, in []support.Pair) ([]support.Verdict, error) {
	if f.asked != nil {
		*f.asked += len(in)
	}
	if f.short {
		return nil, nil
	}
	list := make([]support.Verdict, len(in))
	for i := range list {
		list[i] = f.verdict
		list[i].By = f.Info().By()
	}
	return list, f.err
}

func (f always) Info() support.Info { return support.Info{ID: "nli", Version: "7"} }

func passing(excerpt string) verify.SourceResult {
	return verify.SourceResult{Status: verify.Verified, Counts: verify.CountPass, Excerpt: excerpt}
}

// The specification's §6 C.
func TestSupport(t *testing.T) {
	missing := verify.SourceResult{Status: verify.ExcerptMissing, Counts: verify.CountFailure}
	gone := verify.SourceResult{Status: verify.Gone, Counts: verify.CountUnverifiable}
	hashOnly := verify.SourceResult{Status: verify.VerifiedHashOnly, Counts: verify.CountInfo}
	const excerpt = "The Eiffel Tower was built in 1889 by Gustave Eiffel and is 330 metres tall."
	one := []verify.SourceResult{passing(excerpt)}
	says := func(l support.Label) support.Checker { return always{verdict: support.Verdict{Label: l}} }
	for _, test := range []struct {
		name           string
		claim          string
		results        []verify.SourceResult
		checker, judge support.Checker
		want           verify.Status
		counts         verify.Counts
		by             string
	}{
		{"supported-verbatim", "The Eiffel Tower was built in 1889", one, nil, nil, verify.SupportedVerbatim, verify.CountPass, "lexical"},
		{"supported-lexical", "Built by Gustave Eiffel in 1889, the Eiffel Tower is 330 metres tall.", one, nil, nil, verify.SupportedLexical, verify.CountPass, "lexical"},
		{"over two excerpts together", "The Eiffel Tower was built in 1889 and is 330 metres tall.", []verify.SourceResult{passing("The Eiffel Tower was built in 1889."), passing("The Eiffel Tower is 330 metres tall.")}, nil, nil, verify.SupportedLexical, verify.CountPass, "lexical"},
		{"support-suspect, another number", "The Eiffel Tower was built in 1887", one, nil, nil, verify.SupportSuspect, verify.CountWarning, "lexical"},
		{"support-suspect, a negation", "The Eiffel Tower was not built in 1889 by Gustave Eiffel", one, nil, nil, verify.SupportSuspect, verify.CountWarning, "lexical"},
		{"support-unchecked", "Bananas ripen faster beside apples", one, nil, nil, verify.SupportUnchecked, verify.CountInfo, "lexical"},
		{"support-unchecked, no excerpt", "x", []verify.SourceResult{hashOnly}, nil, nil, verify.SupportUnchecked, verify.CountInfo, ""},
		{"support-unchecked, no source was read", "x", []verify.SourceResult{gone, missing}, nil, nil, verify.SupportUnchecked, verify.CountUnverifiable, ""},
		{"support-unchecked, no source", "x", nil, nil, nil, verify.SupportUnchecked, verify.CountUnverifiable, ""},
		{"unsupported-claim, no source passes", "x", []verify.SourceResult{missing}, nil, nil, verify.UnsupportedClaim, verify.CountFailure, ""},
		{"a failing source is no evidence", "The Eiffel Tower was built in 1889", []verify.SourceResult{{Status: verify.ExcerptAltered, Counts: verify.CountFailure, Excerpt: excerpt}, hashOnly}, nil, nil, verify.SupportUnchecked, verify.CountInfo, ""},
		{"a checker may not say unsupported-claim", "x y", one, says(support.Contradicted), nil, verify.SupportUnchecked, verify.CountInfo, "nli"},
		{"unsupported-claim, says a judge", "x y", one, nil, says(support.Unsupported), verify.UnsupportedClaim, verify.CountFailure, "nli"},
		{"a judge contradicts", "The Eiffel Tower was built in 1887", one, nil, says(support.Contradicted), verify.UnsupportedClaim, verify.CountFailure, "nli"},
		{"a judge supports, by its name", "x y", one, nil, says(support.Supported), "supported-nli", verify.CountPass, "nli"},
		{"a judge suspects", "x y", one, nil, says(support.Partial), verify.SupportSuspect, verify.CountWarning, "nli"},
		{"a judge abstains", "The Eiffel Tower was built in 1887", one, nil, says(support.Unverified), verify.SupportSuspect, verify.CountWarning, "lexical"},
		{"a judge overrules words", "Built by Gustave Eiffel in 1889, the Eiffel Tower is 330 metres tall.", one, nil, says(support.Contradicted), verify.UnsupportedClaim, verify.CountFailure, "nli"},
		{"a judge that cannot", "x y", one, nil, always{verdict: support.Verdict{Label: support.Unverified, Err: errors.New("no")}}, verify.SupportUnchecked, verify.CountInfo, "lexical"},
		{"a judge supports what stands there", "the Eiffel Tower was built", one, says(support.Unverified), says(support.Supported), verify.SupportedVerbatim, verify.CountPass, "nli"},
		{"a judge does not overrule a word in place", "The Eiffel Tower was built in 1889", one, nil, says(support.Contradicted), verify.SupportedVerbatim, verify.CountPass, "lexical"},
	} {
		got, err := verify.Support(t.Context(), []verify.Evidence{{Claim: test.claim, Results: test.results}}, test.checker, test.judge)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		by, _, _ := strings.Cut(got[0].By, "@")
		if got[0].Status != test.want || got[0].Counts != test.counts || by != test.by {
			t.Errorf("%s: %s counts %s by %s, want %s counts %s by %s", test.name, got[0].Status, got[0].Counts, by, test.want, test.counts, test.by)
		}
	}
}

// One call for all claims, and one more for those that do not stand in an excerpt.
func TestSupportCalls(t *testing.T) {
	asked, judged := 0, 0
	claims := []verify.Evidence{{Claim: "a b c", Results: []verify.SourceResult{passing("a b c")}}, {Claim: "x"}, {Claim: "d e f", Results: []verify.SourceResult{passing("g h i"), passing("g h i")}}}
	checker := always{verdict: support.Verdict{Label: support.Supported}, asked: &asked}
	if _, err := verify.Support(t.Context(), claims, checker, always{asked: &judged}); err != nil || asked != 2 || judged != 1 {
		t.Errorf("%d asked, %d judged, %v", asked, judged, err)
	}
	if _, err := verify.Support(t.Context(), claims, always{err: errors.New("down")}, nil); err == nil || !strings.Contains(err.Error(), "checking 2 claims: down") {
		t.Errorf("%v", err)
	}
	if _, err := verify.Support(t.Context(), claims, always{short: true}, nil); err == nil {
		t.Error("verdicts are missing, and nobody noticed")
	}
	if got, err := verify.Support(t.Context(), nil, nil, nil); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}
