package support

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// labelledPairs reads one file of the evaluation data, and removes citation marks from its claims.
func labelledPairs(tb testing.TB, name string) []evalRow {
	tb.Helper()
	if *evalPart != "dev" {
		tb.Skip("the floors are those of the dev half")
	}
	rows := evalRows(tb, name)
	for i := range rows {
		rows[i].Claim = marks.ReplaceAllString(rows[i].Claim, "")
	}
	return rows
}

// alteration is a supported claim with exactly one thing changed.
type alteration struct {
	kind  string
	pair  *evalRow
	claim string
}

var (
	marks       = regexp.MustCompile(` ?\[\d+(?:, ?\d+)*\]`)
	figures     = regexp.MustCompile(`\d+(?:[.,]\d+)*`)
	years       = regexp.MustCompile(`\b(?:1[5-9]|20)\d\d\b`)
	months      = regexp.MustCompile(`\b(?:January|February|March|April|June|July|August|September|October|November|December)\b`)
	capitals    = regexp.MustCompile(`[^.!?"“]\s([A-Z][a-z]{3,})\b`)
	smalls      = regexp.MustCompile(`\b[a-z]{3,}\b`)
	denials     = regexp.MustCompile(`(?i)\b(not|never) `)
	auxiliaries = regexp.MustCompile(`\b(is|was|are|were|has|have|had|can|will|would|could|should|does|did)\b`)
)

func wordIn(text, word string) bool {
	return regexp.MustCompile(`(?:^|[^\w.,])` + regexp.QuoteMeta(word) + `(?:$|\W(?:\D|$))`).MatchString(text)
}

// alterations changes one digit, date, name or negation of each supported pair, in each way that applies. The evidence
// contains the claim's value and not the new one. The changes are made on the bare text, without any of the package's
// readers.
func alterations(rows []evalRow, seed uint64) []alteration {
	random := rand.New(rand.NewPCG(seed, 1))
	// A name is a word that is capitalised inside a sentence, and never lower-case in the file.
	small := map[string]bool{}
	for i := range rows {
		for _, word := range smalls.FindAllString(rows[i].Claim+" "+rows[i].text(), -1) {
			small[word] = true
		}
	}
	var pool []string
	for i := range rows {
		for _, m := range capitals.FindAllStringSubmatch(rows[i].Claim, -1) {
			if !small[strings.ToLower(m[1])] {
				pool = append(pool, m[1])
			}
		}
	}
	var out []alteration
	for i := range rows {
		pair := &rows[i]
		if !pair.supported() {
			continue
		}
		add := func(kind, claim string) {
			if claim != "" && claim != pair.Claim {
				out = append(out, alteration{kind, pair, claim})
			}
		}
		add("digit", alterDigit(random, pair))
		add("date", alterDate(random, pair))
		add("name", alterName(random, pair, pool, small))
		add("negation", alterNegation(pair))
	}
	return out
}

func pick(random *rand.Rand, all [][]int) []int {
	if len(all) == 0 {
		return nil
	}
	return all[random.IntN(len(all))]
}

func alterDigit(random *rand.Rand, pair *evalRow) string {
	at := pick(random, figures.FindAllStringIndex(pair.Claim, -1))
	if at == nil {
		return ""
	}
	old := pair.Claim[at[0]:at[1]]
	b := []byte(old)
	for range 20 {
		i := random.IntN(len(b))
		if b[i] < '0' || b[i] > '9' {
			continue
		}
		d := byte('0' + random.IntN(10))
		if d == b[i] || i == 0 && d == '0' {
			continue
		}
		b[i] = d
		break
	}
	if !wordIn(pair.text(), old) || strings.Contains(pair.text(), string(b)) {
		return ""
	}
	return pair.Claim[:at[0]] + string(b) + pair.Claim[at[1]:]
}

func alterDate(random *rand.Rand, pair *evalRow) string {
	text := pair.text()
	if at := pick(random, months.FindAllStringIndex(pair.Claim, -1)); at != nil && random.IntN(2) == 0 {
		all := strings.Split("January February March April June July August September October November December", " ")
		month := all[random.IntN(len(all))]
		if strings.Contains(text, pair.Claim[at[0]:at[1]]) && !strings.Contains(text, month) {
			return pair.Claim[:at[0]] + month + pair.Claim[at[1]:]
		}
	}
	at := pick(random, years.FindAllStringIndex(pair.Claim, -1))
	if at == nil || !wordIn(text, pair.Claim[at[0]:at[1]]) {
		return ""
	}
	year := []byte(pair.Claim[at[0]:at[1]])
	year[2+random.IntN(2)] = byte('0' + random.IntN(10))
	if strings.Contains(text, string(year)) {
		return ""
	}
	return pair.Claim[:at[0]] + string(year) + pair.Claim[at[1]:]
}

func alterName(random *rand.Rand, pair *evalRow, pool []string, small map[string]bool) string {
	matches := capitals.FindAllStringSubmatchIndex(pair.Claim, -1)
	if len(matches) == 0 {
		return ""
	}
	m := matches[random.IntN(len(matches))]
	if small[strings.ToLower(pair.Claim[m[2]:m[3]])] {
		return ""
	}
	name, other := pair.Claim[m[2]:m[3]], pool[random.IntN(len(pool))]
	if months.MatchString(name) || months.MatchString(other) || !wordIn(pair.text(), name) || strings.Contains(strings.ToLower(pair.text()+pair.Claim), strings.ToLower(other)) {
		return ""
	}
	return pair.Claim[:m[2]] + other + pair.Claim[m[3]:]
}

func alterNegation(pair *evalRow) string {
	if at := denials.FindStringIndex(pair.Claim); at != nil {
		return pair.Claim[:at[0]] + pair.Claim[at[1]:]
	}
	at := auxiliaries.FindStringIndex(pair.Claim)
	if at == nil || strings.Contains(pair.Claim, "n't") {
		return ""
	}
	// The evidence must contain what is denied: the word after "not".
	for word := range strings.FieldsSeq(pair.Claim[at[1]:]) {
		word = strings.Trim(word, ".,;:!?()\"'")
		if small := strings.ToLower(word); small == "no" || small == "only" || small == "simply" || small == "just" || small == "merely" || small == "more" || small == "less" {
			return "" // "not only" denies nothing
		}
		if len(word) < 4 {
			continue
		}
		if !wordIn(strings.ToLower(pair.text()), strings.ToLower(word)) {
			return ""
		}
		break
	}
	return pair.Claim[:at[1]] + " not" + pair.Claim[at[1]:]
}

// The floors of TestEvalChanged: an unchanged claim is hardly ever said to differ, and many changes are found all the same.
const (
	leastChanged       = .1
	mostFalselyFlagged = .01
	mostFalselyOfAll   = .01
)

// shares counts hits by row.
type shares map[string]*[2]int

func (s shares) count(row string, hit bool) {
	if s[row] == nil {
		s[row] = &[2]int{}
	}
	s[row][1]++
	if hit {
		s[row][0]++
	}
}

func (s shares) of(row string) float64 {
	if s[row] == nil {
		return 0
	}
	return float64(s[row][0]) / float64(s[row][1])
}

func (s shares) log(tb testing.TB) {
	tb.Helper()
	for _, row := range slices.Sorted(maps.Keys(s)) {
		tb.Logf("%-40s %5d of %5d = %.3f", row, s[row][0], s[row][1], s.of(row))
	}
}

func changedFiles() []string {
	return []string{"attribench", "fever_symmetric", "healthver", "climate_fever", "wice_oracle"}
}

// TestEvalChanged changes one digit, date, name or negation in claims that both people and the default checker call
// supported, and counts what is flagged: by the wording against the whole evidence, and in the verdict of the default
// checker, whose evidence is a few sentences. It counts the same for the unchanged claims.
func TestEvalChanged(t *testing.T) {
	table := shares{}
	for _, name := range changedFiles() {
		pairs := labelledPairs(t, name)
		supported := map[*evalRow]Verdict{}
		for i := range pairs {
			p := &pairs[i]
			if !p.supported() {
				continue
			}
			table.count("falsely: all labelled supported", len(differencesOf(p.Claim, p.text())) > 0)
			if v := checkLexical(t, p.Claim, p); *v.Closeness >= CloseEnough {
				supported[p] = v
				found := differencesOf(p.Claim, p.text())
				table.count("falsely: "+name, len(found) > 0)
				for _, f := range found {
					t.Logf("FALSE %s %s\n  %s\n  %s", name, f.Note, p.Claim, f.B.Text)
				}
			}
		}
		altered := map[*evalRow]bool{}
		for _, a := range alterations(pairs, 7) {
			hit := len(differencesOf(a.claim, a.pair.text())) > 0
			table.count("changed: all labelled supported", hit)
			if _, ok := supported[a.pair]; !ok {
				continue
			}
			altered[a.pair] = true
			v := checkLexical(t, a.claim, a.pair)
			table.count("changed", hit)
			table.count("changed: "+a.kind, hit)
			table.count("changed, in the checker's own evidence", v.Label == Differs)
			table.count("changed, or no longer called supported", hit || v.Label != Supported)
			if !hit {
				t.Logf("MISSED %s %s\n  %s\n  %s", name, a.kind, a.claim, a.pair.Claim)
			}
		}
		for p := range altered {
			table.count("falsely", len(differencesOf(p.Claim, p.text())) > 0)
			table.count("falsely, in the checker's own evidence", supported[p].Label == Differs)
		}
	}
	table.log(t)
	if got := table.of("changed"); got < leastChanged {
		t.Errorf("%.3f of the changes are flagged; want %v", got, leastChanged)
	}
	if got := table.of("falsely: all labelled supported"); got > mostFalselyOfAll {
		t.Errorf("%.3f of all unchanged claims are flagged; want at most %v", got, mostFalselyOfAll)
	}
	if got := table.of("falsely"); got > mostFalselyFlagged {
		t.Errorf("%.3f of the unchanged claims are flagged; want at most %v", got, mostFalselyFlagged)
	}
}

// checkLexical returns the default checker's verdict, with score 0 if it has none.
func checkLexical(tb testing.TB, claim string, p *evalRow) Verdict {
	tb.Helper()
	verdicts := testenv.Must(new(Lexical).Check(tb.Context(), one(claim, p.Passages...)))(tb)
	v := verdicts[0]
	if v.Closeness == nil {
		v.Closeness = new(float64)
	}
	return v
}

// The largest share of supported or neutral pairs in which TestEvalConflicts may find a conflict.
const mostFalseConflicts = .008

// TestEvalConflicts counts the pairs in which [Conflicts] finds something: those that people called supported or
// neutral, where it should find nothing, and the others. One passage is the claim, the other its evidence.
func TestEvalConflicts(t *testing.T) {
	table := shares{}
	for _, name := range changedFiles() {
		for _, p := range labelledPairs(t, name) {
			found, _ := conflictsOf(t, []Passage{{Text: p.Claim}, {Text: p.text()}}, nil)
			table.count(name+": "+p.Label, len(found) > 0)
			if p.Label == "supported" || p.Label == "neutral" {
				table.count("supported or neutral", len(found) > 0)
			}
			for _, f := range found {
				t.Logf("%s %s: %s\n  %s\n  %s", name, p.Label, f.Note, f.A.Text, f.B.Text)
			}
		}
	}
	table.log(t)
	if got := table.of("supported or neutral"); got > mostFalseConflicts {
		t.Errorf("conflicts in %.4f of the pairs that have none; want at most %v", got, mostFalseConflicts)
	}
}

// differencesOf returns the details in which a claim differs from a text.
func differencesOf(claim, text string) []Conflict {
	return compareWording(claim, ibid.Span{End: len(claim)}, sharedLanguage(claim, text), []piece{{text: text, whole: text}}).found
}
