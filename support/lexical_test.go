package support

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func check(t *testing.T, pairs ...Pair) []Verdict {
	t.Helper()
	verdicts := testenv.Must(new(Lexical).Check(t.Context(), pairs))(t)
	if len(verdicts) != len(pairs) {
		t.Fatalf("%d verdicts for %d pairs", len(verdicts), len(pairs))
	}
	for i := range verdicts {
		checkVerdict(t, &pairs[i], &verdicts[i])
	}
	return verdicts
}

// checkVerdict checks the invariants of the default checker's verdicts.
func checkVerdict(t *testing.T, p *Pair, v *Verdict) {
	t.Helper()
	if v.Closeness != nil && !(*v.Closeness >= 0 && *v.Closeness <= 1) {
		t.Errorf("score %g", *v.Closeness)
	}
	if v.Label == Contradicted || v.Label == "" || v.Escalated || v.Err != nil || v.By != "lexical@2" {
		t.Errorf("label %q, escalated %t, error %v, by %q", v.Label, v.Escalated, v.Err, v.By)
	}
	if v.Label == Unsupported || v.Label == Supported && (v.Closeness == nil || len(v.Evidence) == 0) ||
		(v.Label == Differs) != (len(v.Differences) > 0) {
		t.Errorf("%s, closeness %v, differences %v, %d pieces of evidence", v.Label, v.Closeness, v.Differences, len(v.Evidence))
	}
	if len(v.Evidence) > maxEvidence+windowLength || len(v.Missing) > maxMissing {
		t.Errorf("%d pieces of evidence, %d missing terms", len(v.Evidence), len(v.Missing))
	}
	for _, e := range v.Evidence {
		if e.Passage < 0 || e.Passage >= len(p.Passages) {
			t.Fatalf("evidence in passage %d of %d", e.Passage, len(p.Passages))
		}
		checkSpan(t, p.Passages[e.Passage].Text, e.Span)
	}
	for _, m := range v.Missing {
		checkSpan(t, p.Claim, m.Span)
		if got := p.Claim[m.Span.Start:m.Span.End]; got != m.Text {
			t.Errorf("missing %q, but its span has %q", m.Text, got)
		}
	}
	for _, c := range v.Differences {
		checkSpan(t, p.Claim, c.A.Span)
		if c.A.Passage != -1 || c.B.Passage < 0 || c.B.Passage >= len(p.Passages) {
			t.Fatalf("conflict between passages %d and %d", c.A.Passage, c.B.Passage)
		}
		text := p.Passages[c.B.Passage].Text
		checkSpan(t, text, c.B.Span)
		checkSpan(t, text, c.B.Value)
		if got := text[c.B.Span.Start:c.B.Span.End]; got != c.B.Text {
			t.Errorf("conflict with %q, but its span has %q", c.B.Text, got)
		}
	}
	for name, x := range v.Signals {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("signal %s is %g", name, x)
		}
	}
}

func checkSpan(t *testing.T, text string, s ibid.Span) {
	t.Helper()
	if s.Start < 0 || s.End > len(text) || s.Start >= s.End {
		t.Fatalf("span %v of %d bytes", s, len(text))
	}
	if utf8.ValidString(text) && (!utf8.RuneStart(text[s.Start]) || s.End < len(text) && !utf8.RuneStart(text[s.End])) {
		t.Errorf("span %v cuts a rune of %q", s, text)
	}
}

func passages(texts ...string) []Passage {
	list := make([]Passage, len(texts))
	for i := range texts {
		list[i].Text = texts[i]
	}
	return list
}

func TestLexical(t *testing.T) {
	for _, test := range []struct {
		name, claim string
		passages    []string
		want        Label
		evidence    []string
		missing     []string
	}{
		{
			"verbatim sentences", "The tower was finished in 1874 and is 41 metres high.",
			[]string{benchPassage},
			Unjudged, // two sentences
			[]string{"The tower was finished in 1874. It is 41 metres high, and its walls are almost three metres thick at the base."},
			nil,
		},
		{"other words", "Anna Petersen, an engineer, was hired by the board to build the light.", []string{benchPassage}, Unjudged, nil, nil},
		{"another topic", "Penguins breed in colonies on the ice of Antarctica.", []string{benchPassage}, Unjudged, nil, nil},
		{
			"an absent name", "The lighthouse was designed by Miguel Santos of Lisbon.",
			[]string{benchPassage},
			Unjudged, nil,
			[]string{"Lisbon", "Miguel Santos", "designed"},
		},
		{"two passages", "The tower is 41 metres high, and its lamp burned colza oil.", []string{
			"The tower on the cliff is 41 metres high.", "Its lamp burned colza oil until 1891.",
		}, Unjudged, []string{"The tower on the cliff is 41 metres high.", "Its lamp burned colza oil until 1891."}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := check(t, Pair{Claim: test.claim, Passages: passages(test.passages...)})[0]
			if v.Label != test.want {
				t.Errorf("%s, want %s (score %.2f, signals %v)", v.Label, test.want, *v.Closeness, v.Signals)
			}
			var evidence, missing []string
			for _, e := range v.Evidence {
				evidence = append(evidence, test.passages[e.Passage][e.Start:e.End])
			}
			for _, m := range v.Missing {
				missing = append(missing, m.Text)
			}
			if diff := cmp.Diff(test.evidence, evidence); diff != "" && test.evidence != nil {
				t.Errorf("evidence (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" && test.missing != nil {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

// A quotation is supported, wherever in the passage it is and however it is written.
func TestQuotation(t *testing.T) {
	x := indexPassage(benchPassage)
	for i := range x.sentences {
		s := x.sentences[i].span()
		quote := benchPassage[s.Start:s.End]
		for _, claim := range []string{quote, strings.ToUpper(quote), "“" + strings.TrimSuffix(quote, ".") + "” [1]."} {
			v := check(t, Pair{Claim: claim, Passages: passages(benchPassage)})[0]
			if !v.Verbatim || v.Label != Supported || *v.Closeness < verbatimScore || v.Word() != "supported-verbatim" {
				t.Errorf("%s, verbatim %t, score %.2f: %q", v.Label, v.Verbatim, *v.Closeness, claim)
			}
			if len(v.Missing) > 0 || len(v.Evidence) == 0 || !strings.Contains(benchPassage[v.Evidence[0].Start:v.Evidence[0].End], quote) {
				t.Errorf("evidence %v, missing %v: %q", v.Evidence, v.Missing, claim)
			}
		}
	}
}

// A claim with a changed number is not supported, however well the rest matches.
func TestChangedNumber(t *testing.T) {
	for _, test := range [][2]string{{"1874", "1878"}, {"41 metres", "47 metres"}, {"November 1983", "November 1988"}, {"2.4 million", "3.4 million"}} {
		x := indexPassage(benchPassage)
		for i := range x.sentences {
			s := x.sentences[i].span()
			quote := benchPassage[s.Start:s.End]
			if !strings.Contains(quote, test[0]) {
				continue
			}
			v := check(t, Pair{Claim: strings.Replace(quote, test[0], test[1], 1), Passages: passages(benchPassage)})[0]
			if v.Label != Differs || v.Verbatim || v.Word() != "differs" {
				t.Errorf("%s for %s: %s, differences %v", test[1], test[0], v.Label, v.Differences)
			}
		}
	}
}

// A figure in another form counts as present; a different one is missing, or a difference.
func TestFigures(t *testing.T) {
	for _, lines := range readCases(t, "figures.txt") {
		passage := strings.ReplaceAll(lines[0], `\n`, "\n")
		for _, claim := range lines[1:] {
			claim, differs := strings.CutPrefix(claim, "! ")
			v := check(t, Pair{Claim: claim, Passages: passages(passage)})[0]
			missing := slices.ContainsFunc(v.Missing, func(m Term) bool {
				return strings.ContainsAny(m.Text, "0123456789") || m.Text == "half" || m.Text == "kilogram"
			})
			if !differs && (missing || v.Label == Differs) || differs && v.Label == Supported {
				t.Errorf("%s (%.2f), differences %v, missing %v: %s", v.Label, *v.Closeness, v.Differences, v.Missing, claim)
			}
		}
	}
}

// What cannot be compared is unchecked or unjudged, with the reason, and never an error.
func TestUncheckable(t *testing.T) {
	for _, test := range []struct {
		name  string
		pair  Pair
		issue string
	}{
		{"nothing", Pair{}, issueClaimEmpty},
		{"no claim", Pair{Passages: passages(benchPassage)}, issueClaimEmpty},
		{"one letter", Pair{Claim: "a", Passages: passages(benchPassage)}, issueClaimEmpty},
		{"one sign", Pair{Claim: "!", Passages: passages(benchPassage)}, issueClaimEmpty},
		{"only function words", Pair{Claim: "It is.", Passages: passages(benchPassage)}, issueClaimEmpty},
		{"no passages", Pair{Claim: benchClaim}, issueNoPassages},
		{"empty passages", Pair{Claim: benchClaim, Passages: passages("", " \n", "—")}, issueNoPassages},
		{"two languages", Pair{
			Claim:    "The tower was finished in the year of the flood, and it is the highest of them.",
			Passages: passages("Der Turm wurde nach der Flut von den Bürgern der Stadt gebaut und ist nicht hoch."),
		}, issueLanguagesDiffer},
		{"a claim in German", Pair{
			Claim: "Der Leuchtturm wurde 1874 von Anna Petersen gebaut und ist 41 Meter hoch.", Passages: passages(benchPassage),
		}, issueLanguagesDiffer},
		{"a claim in French, passages said to be in English", Pair{
			Claim: "Le phare a été construit en 1874 par Anna Petersen.", Passages: []Passage{{Text: benchPassage, Language: "en-GB"}},
		}, issueLanguagesDiffer},
		{"a claim in Japanese", Pair{Claim: "灯台は1874年に完成した。", Passages: passages(benchPassage)}, issueLanguagesDiffer},
		{"a claim in Russian", Pair{Claim: "Маяк построен в 1874 году.", Passages: passages(benchPassage)}, issueLanguagesDiffer},
		{"too short to detect, except for the script", Pair{
			Claim: "Moscow has 12 million people.", Passages: passages("В Москве живёт 12 миллионов человек."),
		}, issueLanguagesDiffer},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := check(t, test.pair)[0]
			want := Unchecked
			if test.issue == issueLanguagesDiffer {
				want = Unjudged
			}
			if v.Label != want || v.Closeness != nil || v.Word() != string(want) || !v.has(test.issue) {
				t.Errorf("%s, closeness %v, issues %v", v.Label, v.Closeness, v.Issues)
			}
		})
	}
}

// Input over the limits is cut, reported, and never supported.
func TestLimits(t *testing.T) {
	long := strings.Repeat(benchPassage+" ", 1<<20/len(benchPassage)+1)
	v := check(t, Pair{Claim: long, Passages: passages(benchPassage)})[0]
	if v.Label == Supported || !v.has(issueClaimTruncated) {
		t.Errorf("a claim of 1 MB: %s, issues %v", v.Label, v.Issues)
	}
	for _, m := range v.Missing {
		if strings.Contains(benchPassage, m.Text) {
			t.Errorf("missing a cut word: %q", m.Text)
		}
	}
	word := strings.Repeat("x", 1<<20)
	v = check(t, Pair{Claim: "The tower was finished in 1874. " + word, Passages: passages(benchPassage)})[0]
	if len(v.Missing) != 1 || len(v.Missing[0].Text) != maxTerm {
		t.Errorf("a word of 1 MB: %d missing terms: %.300s", len(v.Missing), fmt.Sprint(v.Missing))
	}
	half := strings.Repeat("The tower was finished in 1874. ", maxClaim/32-1)
	half += strings.Repeat("x", maxClaim-len(half)-4) + " lighthouse stands"
	v = check(t, Pair{Claim: half, Passages: passages(benchPassage)})[0]
	if len(v.Missing) != 1 || strings.Trim(v.Missing[0].Text, "x") != "" {
		t.Errorf("a claim cut in a word: missing %.300s", fmt.Sprint(v.Missing))
	}
	check(t, Pair{Claim: strings.Repeat("\x80", maxClaim+1), Passages: passages(benchPassage)})
	huge := strings.Repeat("Lorem ipsum dolor sit amet. ", maxPassage/28) + benchPassage + strings.Repeat(" x", maxPassage/2)
	v = check(t, Pair{Claim: "The tower was finished in 1874 and is 41 metres high.", Passages: passages(huge)})[0]
	if !v.has(issuePassageTruncated) || v.Closeness == nil {
		t.Errorf("a passage of %d bytes: %s, issues %v", len(huge), v.Label, v.Issues)
	}
	flat := strings.Repeat("tower lighthouse granite lamp ", 1<<16)
	check(t, Pair{Claim: flat, Passages: passages(flat)})
	var s strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&s, "w%dx. ", i)
	}
	check(t, Pair{Claim: s.String(), Passages: passages(s.String())})
}

func TestLanguages(t *testing.T) {
	german := "Der Leuchtturm auf dem Felsen wurde 1874 von der Ingenieurin Anna Petersen gebaut. Er ist 41 Meter hoch, und die Mauern " +
		"sind fast drei Meter dick. Das Licht war auf See weit zu sehen."
	for _, test := range []struct {
		claim, passage, language string
		want                     Label
	}{
		{"Der Leuchtturm wurde von Anna Petersen gebaut.", german, "de", Unjudged},
		{"Der Leuchtturm ist 41 Meter hoch.", german, "de", Unjudged},
		{"Die Brücke über den Fluss wurde im Krieg zerstört.", german, "de", Unjudged},
		{"灯台は1874年に完成した。", "灯台は1874年に完成した。高さは41メートルで、壁の厚さは約3メートルである。", "ja", Supported},
	} {
		v := check(t, Pair{Claim: test.claim, Passages: passages(test.passage)})[0]
		if v.Label != test.want {
			t.Errorf("%s: %s, want %s (%v, %v)", test.claim, v.Label, test.want, *v.Closeness, v.Signals)
		}
		if want := []ibid.Issue{{Code: issueLanguageUnmeasured, Detail: test.language}}; cmp.Diff(want, v.Issues) != "" {
			t.Errorf("%s: issues %v, want %v", test.claim, v.Issues, want)
		}
	}
}

// A passage in the claim's language is compared, whatever the others are; and a tag more specific than the detected
// language is the same language.
func TestSameLanguage(t *testing.T) {
	german := "Der Leuchtturm auf dem Felsen wurde 1874 von der Ingenieurin Anna Petersen gebaut. Er ist 41 Meter hoch."
	russian := "Маяк построен в 1874 году. Его высота 41 метр."
	for _, p := range []Pair{
		{Claim: "Der Leuchtturm wurde 1874 von Anna Petersen gebaut.", Passages: passages(benchPassage, german)},
		{Claim: "The tower was finished in 1874 and is 41 metres high.", Passages: passages(german, benchPassage)},
		{Claim: "Маяк построен в 1874 году.", Passages: []Passage{{Text: russian, Language: "ru"}}},
		{Claim: "東京大学設立", Passages: passages("東京大学は1877年に設立された。")},
	} {
		v := check(t, p)[0]
		if v.has(issueLanguagesDiffer) || v.Closeness == nil {
			t.Errorf("%s: %s, issues %v", p.Claim, v.Label, v.Issues)
		}
	}
}

// Verbatim claims and figures are compared in any language.
func TestFigureInOtherLanguage(t *testing.T) {
	german := "Der Leuchtturm auf dem Felsen wurde 1874 von der Ingenieurin Anna Petersen gebaut. Er ist 41 Meter hoch."
	for claim, want := range map[string]Label{
		"Der Leuchtturm auf dem Felsen wurde 1874 von der Ingenieurin Anna Petersen gebaut.": Supported,
		"Der Leuchtturm auf dem Felsen wurde 1847 von der Ingenieurin Anna Petersen gebaut.": Differs,
	} {
		if v := check(t, Pair{Claim: claim, Passages: passages(german)})[0]; v.Label != want {
			t.Errorf("%s: %s, want %s (missing %v)", claim, v.Label, want, v.Missing)
		}
	}
}

// fillers are passages about other things.
func fillers(n int) []Passage {
	list := make([]Passage, n)
	for i := range list {
		list[i].Text = fmt.Sprintf("Penguins of colony %d breed on the sea ice of bay %d. They feed on krill, squid and small fish, and dive "+
			"for %d minutes. The chicks of year %d fledged late.", i, i*7, i%20, 1700+i%200)
	}
	return list
}

// Text about other things neither removes support nor adds any, in other passages or around the right sentences.
func TestUnrelatedText(t *testing.T) {
	others := fillers(1000)
	var around strings.Builder
	for _, p := range others {
		around.WriteString(p.Text + "\n\n")
	}
	long := around.String()
	for _, claim := range []string{
		benchClaim,
		"The tower was finished in 1874 and is 41 metres high.",
		"Anna Petersen, an engineer, was hired by the board to build the light.",
		"Electricity came to the island by an undersea cable in 1934.",
		"The lighthouse was designed by Miguel Santos of Lisbon.",
		"The keepers' cottage burned down in 1912 and was never rebuilt.",
	} {
		alone := check(t, Pair{Claim: claim, Passages: passages(benchPassage)})[0]
		for name, p := range map[string][]Passage{
			"passages behind": append(passages(benchPassage), others...),
			"passages before": append(slices.Clone(others), passages(benchPassage)...),
			"one long source": passages(long, benchPassage),
			"one document":    passages(long[:len(long)/2] + "\n\n" + benchPassage + "\n\n" + long[len(long)/2:]),
		} {
			v := check(t, Pair{Claim: claim, Passages: p})[0]
			if v.Label != alone.Label || *v.Closeness < *alone.Closeness-.02 { // with more text, more words match by chance
				t.Errorf("%s: %s %.2f, alone %s %.2f: %s", name, v.Label, *v.Closeness, alone.Label, *alone.Closeness, claim)
			}
		}
	}
}

// Check and Score return the same scores.
func TestParity(t *testing.T) {
	var s scorer
	for _, claim := range []string{benchClaim, "The lamp burned oil.", "Paraffin was cheap."} {
		m := s.Score(englishClaim(claim), indexPassage(benchPassage))
		v := check(t, Pair{Claim: claim, Passages: passages(benchPassage)})[0]
		if m.Score != *v.Closeness {
			t.Errorf("%g, but Check returns %g: %s", m.Score, *v.Closeness, claim)
		}
		if m.Window != v.Evidence[0].Span {
			t.Errorf("window %v, but Check returns %v: %s", m.Window, v.Evidence[0].Span, claim)
		}
		long := strings.Repeat("Penguins breed in colonies. ", 200) + benchPassage
		m, v = s.Score(englishClaim(claim), indexPassage(long)), check(t, Pair{Claim: claim, Passages: passages(long)})[0]
		if m.Score != *v.Closeness || m.Window != v.Evidence[0].Span {
			t.Errorf("in a long text %g at %v, but Check returns %g at %v: %s", m.Score, m.Window, *v.Closeness, v.Evidence[0].Span, claim)
		}
	}
}

// Neither the order nor the other pairs of a call change a verdict in English.
func TestBatch(t *testing.T) {
	var pairs []Pair
	for _, claim := range []string{benchClaim, "The lamp burned oil.", benchClaim} {
		for _, text := range []string{benchPassage, "The lamp burned oil.", "", benchPassage} {
			pairs = append(pairs, Pair{Claim: claim, Passages: passages(text)})
		}
	}
	got := check(t, pairs...)
	for i := range pairs {
		if diff := cmp.Diff(check(t, pairs[i])[0], got[i]); diff != "" {
			t.Errorf("pair %d alone (-) and among others (+):\n%s", i, diff)
		}
	}
}

// A passage or claim that several pairs share is read once.
func TestReadOnce(t *testing.T) {
	pairs := answerPairs()
	q := testenv.Must(newRequest(t.Context(), pairs, map[string]*indexedPassage{}))(t)
	for i := range pairs {
		q.read(&pairs[i])
	}
	if len(pairs) != 300 || len(q.indexes) != 20 || len(q.claims) != 15 {
		t.Errorf("%d pairs: %d passages and %d claims were read, want 20 and 15", len(pairs), len(q.indexes), len(q.claims))
	}
}

func TestCheckCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := new(Lexical).Check(ctx, make([]Pair, 2)); !errors.Is(err, context.Canceled) || v != nil {
		t.Errorf("verdicts %v, error %v", v, err)
	}
	if v, err := new(Lexical).Check(ctx, nil); err != nil || len(v) != 0 {
		t.Errorf("verdicts %v, error %v", v, err)
	}
}

func TestWord(t *testing.T) {
	for _, test := range []struct {
		verdict Verdict
		want    string
	}{
		{Verdict{}, "unjudged"},
		{Verdict{Label: Supported}, "supported-lexical"},
		{Verdict{Label: Supported, By: "lexical@2"}, "supported-lexical"},
		{Verdict{Label: Supported, By: "judge@2"}, "supported-judge"},
		{Verdict{Label: Supported, By: "lexical@2", Verbatim: true}, "supported-verbatim"},
		{Verdict{Label: Differs, By: "lexical@2"}, "differs"},
		{Verdict{Label: Unsupported, By: "judge@2"}, "unsupported-judge"},
		{Verdict{Label: Contradicted}, "contradicted-judge"},
		{Verdict{Label: Unjudged}, "unjudged"},
		{Verdict{Label: Unchecked}, "unchecked"},
	} {
		if got := test.verdict.Word(); got != test.want {
			t.Errorf("%+v is %s, want %s", test.verdict, got, test.want)
		}
	}
}

// No value is read across two passages, and conflicts name the right passage.
func TestValuesStayInTheirPassage(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Name      string
		Claim     string
		Passages  []string
		Conflicts string
	}](t, "testdata/values-stay-in-their-passage.txt") {
		p := Pair{Claim: test.Claim, Passages: passages(test.Passages...)}
		v := check(t, p)[0]
		var got []string
		for _, c := range v.Differences {
			got = append(got, fmt.Sprintf("%s %d: %s / %s", c.Kind, c.B.Passage, c.A.ValueText(), c.B.ValueText()))
		}
		if got := strings.Join(got, "; "); got != test.Conflicts {
			t.Errorf("%s: %q, want %q", test.Name, got, test.Conflicts)
		}
	}
}

func TestTextOutOfRange(t *testing.T) {
	p := Pair{Claim: "a claim", Passages: passages("one", "two")}
	for _, s := range []Span{
		{Passage: -1}, {Passage: 2}, {0, ibid.Span{Start: -1, End: 1}}, {1, ibid.Span{End: 4}}, {1, ibid.Span{Start: 3, End: 1}},
	} {
		if got := p.Text(s); got != "" {
			t.Errorf("%+v is %q", s, got)
		}
	}
	if got := p.Text(Span{1, ibid.Span{Start: 1, End: 3}}); got != "wo" {
		t.Errorf("%q, want wo", got)
	}
	e := Excerpt{Span: ibid.Span{Start: 4, End: 7}, Value: ibid.Span{Start: 2, End: 5}, Text: "two"}
	if got := e.ValueText(); got != "" {
		t.Errorf("a value outside of its sentence is %q", got)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(benchClaim, benchPassage, "The lamp burned oil.")
	f.Add("ʼ\x00", "ʼ ", "ʼ")
	f.Add("The Cup roster was named on May 1.", "The Cup roster was named in May", "24 players")
	f.Add("a", "\x00\xff\xfe", "e\u0301 ... 1,,2.3.4'st")
	f.Add("don't can’t U.S. 1,234.50 12th [1] [2, 3]", "灯台は1874年に完成した。", "ÀÉ Straße \U0001F3F3 ９9")
	f.Fuzz(func(t *testing.T, claim, one, two string) {
		check(t, Pair{Claim: claim, Passages: passages(one, two)}, Pair{Claim: one, Passages: passages(one)})
		last := 0
		for _, s := range splitClaim(claim) {
			checkSpan(t, claim, s)
			if s.Start < last {
				t.Errorf("part %v begins before %d", s, last)
			}
			last = s.End
		}
	})
}

// More support never lowers a score: no weight of the model has the wrong sign.
func TestDirections(t *testing.T) {
	for i, f := range lexicalModel {
		if f.weight*direction(i) < 0 {
			t.Errorf("%s has the weight %g", f.name, f.weight)
		}
	}
}

// An answer to a question is verbatim if the passage contains its own words, whether or not it contains the question's.
func TestVerbatimAnswer(t *testing.T) {
	v := check(t, Pair{Claim: "Anna Petersen", Context: "Who built the bridge?", Passages: passages("Anna Petersen made the bridge in 1932.")})[0]
	if !v.Verbatim || *v.Closeness >= verbatimScore {
		t.Errorf("verbatim %t, score %.2f", v.Verbatim, *v.Closeness)
	}
}

// A claim and a passage that repeat one word take time linear in both.
func TestNeighboursAreBounded(t *testing.T) {
	start := time.Now()
	check(t, Pair{Claim: strings.Repeat("heron fish ", maxClaim/11), Passages: passages("fish and bridge. " + strings.Repeat("heron ", 4<<20/6))})
	if took := time.Since(start); took > time.Minute { // a tenth of a second on a quiet machine
		t.Errorf("took %v", took)
	}
}
