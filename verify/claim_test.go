package verify_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// The text of a PDF is advisory: programs extract different texts from it.
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

// always is a model that gives the same verdict for everything.
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
	says := func(l support.Label) support.Checker {
		return support.WithJudge(always{verdict: support.Verdict{Label: l}})
	}
	lexical := &support.Lexical{}
	for _, test := range []struct {
		name    string
		claim   string
		results []verify.SourceResult
		checker support.Checker
		want    verify.Status
		counts  verify.Counts
		by      string
		finding string // and its reason
	}{
		{"supported-verbatim", "The Eiffel Tower was built in 1889", one, lexical, verify.SupportedVerbatim, verify.CountPass, "lexical", "supported"},
		{"another number", "The Eiffel Tower was built in 1887 by Gustave Eiffel", one, lexical, verify.ClaimDiffers, verify.CountWarning, "lexical", "differs"},
		{"a negation", "The Eiffel Tower was not built in 1889 by Gustave Eiffel", one, lexical, verify.ClaimDiffers, verify.CountWarning, "lexical", "differs"},
		{"nothing in common", "Bananas ripen faster beside apples", one, lexical, verify.ClaimUnjudged, verify.CountInfo, "lexical", "unjudged"},
		{"something in common", "The Eiffel Tower attracts seven million tourists", one, lexical, verify.ClaimUnjudged, verify.CountInfo, "lexical", "unjudged"},
		{"no excerpt", "x", []verify.SourceResult{hashOnly}, lexical, verify.ClaimUnchecked, verify.CountInfo, "", "unchecked no-excerpt"},
		{"no source was read", "x", []verify.SourceResult{gone, missing}, lexical, verify.ClaimUnchecked, verify.CountUnverifiable, "", "unchecked unread"},
		{"no source", "x", nil, lexical, verify.ClaimUnchecked, verify.CountUnverifiable, "", "unchecked no-source"},
		{"no source passes", "x", []verify.SourceResult{missing}, lexical, verify.ClaimUnchecked, verify.CountInfo, "", "unchecked failed"},
		{"a failing source is no evidence", "The Eiffel Tower was built in 1889", []verify.SourceResult{{Status: verify.ExcerptAltered, Counts: verify.CountFailure, Excerpt: excerpt}, hashOnly}, lexical, verify.ClaimUnchecked, verify.CountInfo, "", "unchecked no-excerpt"},
		{"a judge says unsupported", "The tower x y", one, says(support.Unsupported), "unsupported-nli", verify.CountWarning, "nli", "unsupported"},
		{"a judge contradicts", "The Eiffel Tower was built in 1887", one, says(support.Contradicted), "contradicted-nli", verify.CountWarning, "nli", "contradicted"},
		{"a judge supports, by its name", "The tower x y", one, says(support.Supported), "supported-nli", verify.CountPass, "nli", "supported"},
		{"a judge abstains", "The Eiffel Tower was built in 1887 by Gustave Eiffel", one, says(support.Unjudged), verify.ClaimDiffers, verify.CountWarning, "lexical", "differs"},
		{"a judge overrules words", "The Eiffel Tower was built in 1887 by Gustave Eiffel", one, says(support.Supported), "supported-nli", verify.CountPass, "nli", "supported"},
		{"a judge that fails", "the Eiffel Tower has visitors", one, support.WithJudge(always{verdict: support.Verdict{Label: support.Unjudged, Err: errors.New("no")}}), verify.ClaimUnjudged, verify.CountInfo, "lexical", "unjudged judge-failed"},
		{"a checker that fails", "x y", one, always{verdict: support.Verdict{Label: support.Unjudged, Err: errors.New("no")}}, verify.ClaimUnjudged, verify.CountInfo, "nli", "unjudged error"},
		{"a judge does not overrule a verbatim claim", "The Eiffel Tower was built in 1889", one, says(support.Contradicted), verify.SupportedVerbatim, verify.CountPass, "lexical", "supported"},
	} {
		got, err := verify.CompareClaim(t.Context(), test.claim, test.results, test.checker)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		by, _, _ := strings.Cut(got.By, "@")
		finding := strings.TrimSpace(string(got.Finding) + " " + got.Reason)
		if got.Status != test.want || got.Counts != test.counts || by != test.by || finding != test.finding {
			t.Errorf("%s: %s counts %s by %s, %s, want %s counts %s by %s, %s", test.name,
				got.Status, got.Counts, by, finding, test.want, test.counts, test.by, test.finding)
		}
	}
}

// For a claim that only the excerpt of another claim supports, that one is named.
func TestWrongSource(t *testing.T) {
	of := func(url, excerpt string) []verify.SourceResult {
		r := passing(excerpt)
		r.FinalURL = url
		return []verify.SourceResult{r}
	}
	claims := []string{"The bridge has eight lanes.", "The towers of the bridge are 89 metres high.", "The bridge has nine lanes."}
	towers := of("https://towers.example/", "The towers of the bridge are 89 metres high.")
	results := [][]verify.SourceResult{towers, towers, of("https://lanes.example/", "It is said that the bridge has eight lanes.")}
	got, err := verify.CompareClaims(t.Context(), claims, results, &support.Lexical{})
	if err != nil {
		t.Fatal(err)
	}
	want := &verify.Excerpted{URL: "https://lanes.example/", Excerpt: "It is said that the bridge has eight lanes."}
	if c := got[0]; c.Finding != support.Unjudged || !cmp.Equal(c.WrongSource, want) || !strings.HasSuffix(c.Detail, want.URL) {
		t.Errorf("got %+v", c)
	}
	if got[1].Finding != support.Supported || got[1].WrongSource != nil || got[2].WrongSource != nil {
		t.Errorf("got %+v", got[1:])
	}
}

// A problem of a manifest is reported as a sentence.
func TestProblemSentence(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	m.Claims[0].Span[1]--
	body, err := m.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	f := has(w.bytes(string(body), nil), verify.ManifestInconsistent)
	if f == nil || !strings.HasPrefix(f.Detail, "It has ") || !strings.HasSuffix(f.Detail, ".") {
		t.Errorf("got %+v", f)
	}
}

// There is one call for all claims.
func TestSupportCalls(t *testing.T) {
	asked := 0
	claims := []string{"a b c", "x", "d e f"}
	results := [][]verify.SourceResult{{passing("a b c")}, nil, {passing("g h i"), passing("g h i")}}
	checker := always{verdict: support.Verdict{Label: support.Supported}, asked: &asked}
	if _, err := verify.CompareClaims(t.Context(), claims, results, checker); err != nil || asked != 2 {
		t.Errorf("%d asked, %v", asked, err)
	}
	if _, err := verify.CompareClaims(t.Context(), claims, results, always{err: errors.New("down")}); err == nil || !strings.Contains(err.Error(), "checking 2 claims: down") {
		t.Errorf("%v", err)
	}
	if _, err := verify.CompareClaims(t.Context(), claims, results, always{short: true}); err == nil {
		t.Error("missing verdicts are no error")
	}
	if got, err := verify.CompareClaims(t.Context(), nil, nil, nil); err != nil || len(got) != 0 {
		t.Errorf("no claims: %v, %v", got, err)
	}
}

// Differences that are obvious to a reader are found, with the words of both; what is merely about something else is
// nobody's fault.
func TestDiffers(t *testing.T) {
	for _, test := range []struct {
		name, claim, excerpt string
		want                 support.Label
	}{
		{"another number", "The bridge has 94 arches.", "The bridge has 84 arches and is 2.5 km long.", support.Differs},
		{"a number more exact", "The merger cost £2.49 billion.", "The merger cost £2 billion.", support.Differs},
		{"a percentage's direction", "Unemployment rose by 3 percent.", "Unemployment fell by 3 percent in March.", support.Differs},
		{"the moon", "The moon is made of green cheese.", "The museum is open from 9 am to 5 pm every day except Monday.", support.Unjudged},
		{"bananas", "Bananas are blue.", "The library opens at nine and closes at five on weekdays.", support.Unjudged},
	} {
		got, err := verify.CompareClaim(t.Context(), test.claim, []verify.SourceResult{passing(test.excerpt)}, &support.Lexical{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Finding != test.want || (test.want == support.Differs) != (len(got.Differs) > 0) {
			t.Errorf("%s: %s (%s, closeness %.2f, %v)", test.name, got.Finding, got.Status, *got.Closeness, got.Differs)
		}
	}
}

// An excerpt can be cut out of a sentence that denies or doubts it, or of one that was corrected.
func TestExcerptCutFromItsSentence(t *testing.T) {
	for _, test := range []struct {
		page, excerpt, claim string
		want                 support.Label
	}{
		{"The trial ended. The mayor denied in court that he took the money. He was fined.", "he took the money", "He took the money.", support.Differs},
		{"The trial ended. The mayor may have taken the money. He was fined.", "taken the money", "Taken the money.", support.Unjudged},
		{"The mayor did not deny that he took the money.", "he took the money", "He took the money.", support.Unjudged},
		{"An earlier version of this story said: “He took the money.” He did not.", "He took the money.", "He took the money.", support.Differs},
		{"We wrote: “He took the money.” This was wrong.", "He took the money.", "He took the money.", support.Differs},
		{"He took the money.\n\nCorrection: he never took the money, as we said.", "He took the money.", "He took the money.", support.Differs},
		{"He took the money.\n\nCorrection: He has not taken the boat.", "He took the money.", "He took the money.", support.Supported},
		{"The pilot was asleep at noon.\n\nCorrection: The pilot was not asleep at noon.", "The pilot was asleep at noon.", "The pilot was asleep at noon.", support.Differs},
		{"It is a myth that the vaccine causes autism.", "the vaccine causes autism", "The vaccine causes autism.", support.Differs},
		{"The minister said on Monday that the tunnel opened in May.", "the tunnel opened in May", "The tunnel opened in May.", support.Supported},
		{"Nobody was hurt. The tunnel opened in May.", "The tunnel opened in May.", "The tunnel opened in May.", support.Supported},
		{"The mayor denied that he took the money.", "The mayor denied that he took the money.", "The mayor denied that he took the money.", support.Supported},
	} {
		page := read(test.page, "text/plain")
		cs, src := recorded(t, page, test.excerpt)
		result := verify.Compare(cs, src, page, nil, &verify.CompareOptions{TextProfile: manifest.TextProfile})
		got, err := verify.CompareClaim(t.Context(), test.claim, []verify.SourceResult{result}, &support.Lexical{})
		if err != nil || got.Finding != test.want || (got.Finding == support.Differs) != (len(got.Differs) > 0) || (got.Finding == support.Supported) != (got.Detail == "") {
			t.Errorf("%q in %q: %s (%s), %v, %v; want %s", test.excerpt, test.page, got.Finding, got.Detail, got.Differs, err, test.want)
		}
	}
}
