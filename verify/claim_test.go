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
	says := func(l support.Label) support.Checker { return always{verdict: support.Verdict{Label: l}} }
	lexical := &support.Lexical{}
	for _, test := range []struct {
		name           string
		claim          string
		results        []verify.SourceResult
		checker, judge support.Checker
		want           verify.Status
		counts         verify.Counts
		by             string
		finding        string // and its reason
	}{
		{"supported-verbatim", "The Eiffel Tower was built in 1889", one, lexical, nil, verify.SupportedVerbatim, verify.CountPass, "lexical", "supported"},
		{"supported-lexical", "Built by Gustave Eiffel in 1889, the Eiffel Tower is 330 metres tall.", one, lexical, nil, verify.SupportedLexical, verify.CountPass, "lexical", "supported"},
		{"over two excerpts together", "The Eiffel Tower was built in 1889 and is 330 metres tall.", []verify.SourceResult{passing("The Eiffel Tower was built in 1889."), passing("The Eiffel Tower is 330 metres tall.")}, lexical, nil, verify.SupportedLexical, verify.CountPass, "lexical", "supported"},
		{"another number", "The Eiffel Tower was built in 1887", one, lexical, nil, verify.SupportSuspect, verify.CountWarning, "lexical", "doubtful"},
		{"a negation", "The Eiffel Tower was not built in 1889 by Gustave Eiffel", one, lexical, nil, verify.SupportSuspect, verify.CountWarning, "lexical", "doubtful"},
		{"nothing in common", "Bananas ripen faster beside apples", one, lexical, nil, verify.UnsupportedClaim, verify.CountWarning, "lexical", "doubtful"},
		{"something in common", "The Eiffel Tower attracts seven million tourists", one, lexical, nil, verify.UnsupportedClaim, verify.CountInfo, "lexical", "not-checked unsure"},
		{"no excerpt", "x", []verify.SourceResult{hashOnly}, lexical, nil, verify.SupportUnchecked, verify.CountInfo, "", "not-checked no-excerpt"},
		{"no source was read", "x", []verify.SourceResult{gone, missing}, lexical, nil, verify.SupportUnchecked, verify.CountUnverifiable, "", "not-checked unread"},
		{"no source", "x", nil, lexical, nil, verify.SupportUnchecked, verify.CountUnverifiable, "", "not-checked no-source"},
		{"no source passes", "x", []verify.SourceResult{missing}, lexical, nil, verify.UnsupportedClaim, verify.CountFailure, "", "not-checked failed"},
		{"a failing source is no evidence", "The Eiffel Tower was built in 1889", []verify.SourceResult{{Status: verify.ExcerptAltered, Counts: verify.CountFailure, Excerpt: excerpt}, hashOnly}, lexical, nil, verify.SupportUnchecked, verify.CountInfo, "", "not-checked no-excerpt"},
		{"a checker's label alone makes nothing doubtful", "x y", one, says(support.Contradicted), nil, verify.UnsupportedClaim, verify.CountInfo, "nli", "not-checked unsure"},
		{"a judge says unsupported", "x y", one, lexical, says(support.Unsupported), verify.UnsupportedClaim, verify.CountWarning, "nli", "doubtful"},
		{"a judge contradicts", "The Eiffel Tower was built in 1887", one, lexical, says(support.Contradicted), verify.UnsupportedClaim, verify.CountWarning, "nli", "doubtful"},
		{"a judge supports, by its name", "x y", one, lexical, says(support.Supported), "supported-nli", verify.CountPass, "nli", "supported"},
		{"a judge suspects", "x y", one, lexical, says(support.Partial), verify.SupportSuspect, verify.CountWarning, "nli", "not-checked unsure"},
		{"a judge suspects what differs", "The Eiffel Tower was built in 1887", one, lexical, says(support.Partial), verify.SupportSuspect, verify.CountWarning, "nli", "doubtful"},
		{"a judge abstains", "The Eiffel Tower was built in 1887", one, lexical, says(support.Unverified), verify.SupportSuspect, verify.CountWarning, "lexical", "doubtful"},
		{"a judge overrules words", "Built by Gustave Eiffel in 1889, the Eiffel Tower is 330 metres tall.", one, lexical, says(support.Contradicted), verify.UnsupportedClaim, verify.CountWarning, "nli", "doubtful"},
		{"a judge that fails", "the Eiffel Tower has visitors", one, says(support.Unverified), always{verdict: support.Verdict{Label: support.Unverified, Err: errors.New("no")}}, verify.SupportUnchecked, verify.CountInfo, "nli", "not-checked unsure"},
		{"a checker that fails", "x y", one, always{verdict: support.Verdict{Label: support.Unverified, Err: errors.New("no")}}, nil, verify.SupportUnchecked, verify.CountInfo, "nli", "not-checked error"},
		{"a judge supports a verbatim claim", "the Eiffel Tower was built", one, says(support.Unverified), says(support.Supported), verify.SupportedVerbatim, verify.CountPass, "nli", "supported"},
		{"a judge does not overrule a verbatim claim", "The Eiffel Tower was built in 1889", one, lexical, says(support.Contradicted), verify.SupportedVerbatim, verify.CountPass, "lexical", "supported"},
	} {
		got, err := verify.CompareClaim(t.Context(), test.claim, test.results, test.checker, test.judge)
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

// A claim that only the excerpt of another claim supports has the wrong source, and the right one is named.
func TestWrongSource(t *testing.T) {
	of := func(url, excerpt string) []verify.SourceResult {
		r := passing(excerpt)
		r.FinalURL = url
		return []verify.SourceResult{r}
	}
	claims := []string{"The bridge has eight lanes.", "The towers are 89 metres high.", "The bridge has nine lanes."}
	towers := of("https://towers.example/", "The towers of the bridge are 89 metres high.")
	results := [][]verify.SourceResult{towers, towers, of("https://lanes.example/", "The bridge has eight lanes of traffic.")}
	got, err := verify.CompareClaims(t.Context(), claims, results, &support.Lexical{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &verify.Excerpted{URL: "https://lanes.example/", Excerpt: "The bridge has eight lanes of traffic."}
	if c := got[0]; c.Finding != verify.Doubtful || !cmp.Equal(c.WrongSource, want) || !strings.HasSuffix(c.Detail, want.URL) {
		t.Errorf("got %+v", c)
	}
	if got[1].Finding != verify.Supported || got[1].WrongSource != nil || got[2].WrongSource != nil {
		t.Errorf("got %+v", got[1:])
	}
}

// A claim that was compared is not reported as undecided.
func TestUnsupportedDetail(t *testing.T) {
	results := []verify.SourceResult{passing("The Eiffel Tower was built in 1889 by Gustave Eiffel and is 330 metres tall.")}
	c, err := verify.CompareClaim(t.Context(), "The Eiffel Tower attracts seven million tourists", results, &support.Lexical{}, nil)
	if err != nil || c.Status != verify.UnsupportedClaim || !strings.Contains(c.Detail, "do not support the claim") {
		t.Errorf("%v: %s: %s", err, c.Status, c.Detail)
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

// There is one call for all claims, and one more for those that are not verbatim in an excerpt.
func TestSupportCalls(t *testing.T) {
	asked, judged := 0, 0
	claims := []string{"a b c", "x", "d e f"}
	results := [][]verify.SourceResult{{passing("a b c")}, nil, {passing("g h i"), passing("g h i")}}
	checker := always{verdict: support.Verdict{Label: support.Supported}, asked: &asked}
	if _, err := verify.CompareClaims(t.Context(), claims, results, checker, always{asked: &judged}); err != nil || asked != 2 || judged != 1 {
		t.Errorf("%d asked, %d judged, %v", asked, judged, err)
	}
	if _, err := verify.CompareClaims(t.Context(), claims, results, always{err: errors.New("down")}, nil); err == nil || !strings.Contains(err.Error(), "checking 2 claims: down") {
		t.Errorf("%v", err)
	}
	if _, err := verify.CompareClaims(t.Context(), claims, results, always{short: true}, nil); err == nil {
		t.Error("missing verdicts are no error")
	}
	if got, err := verify.CompareClaims(t.Context(), nil, nil, nil, nil); err != nil || len(got) != 0 {
		t.Errorf("no claims: %v, %v", got, err)
	}
}

// Contradictions that are obvious to a reader are found; the quote of each of these claims is true.
func TestDoubtful(t *testing.T) {
	for _, test := range []struct{ name, claim, excerpt string }{
		{"another number", "The bridge has 94 arches.", "The bridge has 84 arches and is 2.5 km long."},
		{"a number more exact", "The merger cost £2.49 billion.", "The merger cost £2 billion."},
		{"half of it", "Half a million homes were damaged.", "A million homes were damaged by the storm."},
		{"half of it, in figures", "The storm damaged 0.5 million homes.", "The storm damaged a million homes."},
		{"a percentage's direction", "Unemployment rose by 3 percent.", "Unemployment fell by 3 percent in March."},
		{"won and lost", "The team lost the final.", "The team won the final in extra time."},
		{"names swapped", "South Beach had 89 closures.", "North Beach had 89 closures, South Beach 12."},
		{"another beach", "South Beach had 89 closures.", "North Beach had 89 closures."},
		{"the moon", "The moon is made of green cheese.", "The museum is open from 9 am to 5 pm every day except Monday."},
		{"bananas", "Bananas are blue.", "The library opens at nine and closes at five on weekdays."},
	} {
		got, err := verify.CompareClaim(t.Context(), test.claim, []verify.SourceResult{passing(test.excerpt)}, &support.Lexical{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Finding != verify.Doubtful {
			t.Errorf("%s: %s (%s, score %.2f, %v), want doubtful", test.name, got.Finding, got.Status, *got.Score, got.Differs)
		}
	}
}

// An excerpt can be cut out of a sentence that denies it.
func TestExcerptCutFromItsSentence(t *testing.T) {
	for _, test := range []struct {
		page, excerpt, claim string
		want                 verify.ClaimFinding
	}{
		{"The trial ended. The mayor denied in court that he took the money. He was fined.", "he took the money", "He took the money.", verify.Doubtful},
		{"It is a myth that the vaccine causes autism.", "the vaccine causes autism", "The vaccine causes autism.", verify.Doubtful},
		{"If the money is found, the tunnel will open to traffic in May.", "the tunnel will open to traffic in May.", "The tunnel will open to traffic in May.", verify.Doubtful},
		{"The minister said on Monday that the tunnel opened in May.", "the tunnel opened in May", "The tunnel opened in May.", verify.Supported},
		{"Nobody was hurt. The tunnel opened in May.", "The tunnel opened in May.", "The tunnel opened in May.", verify.Supported},
		{"The mayor denied that he took the money.", "The mayor denied that he took the money.", "The mayor denied that he took the money.", verify.Supported},
	} {
		page := read(test.page, "text/plain")
		cs, src := recorded(t, page, test.excerpt)
		result := verify.Compare(cs, src, page, nil, &verify.CompareOptions{TextProfile: manifest.TextProfile})
		got, err := verify.CompareClaim(t.Context(), test.claim, []verify.SourceResult{result}, &support.Lexical{}, nil)
		if err != nil || got.Finding != test.want || (got.Finding == verify.Doubtful) != (len(got.Differs) == 1) {
			t.Errorf("%q in %q: %s (%s), %v, %v; want %s", test.excerpt, test.page, got.Finding, got.Detail, got.Differs, err, test.want)
		}
	}
}
