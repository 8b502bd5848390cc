package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// HostClass is what kind of place a source comes from, as far as its host name tells.
type HostClass string

// The classes of a host. They are read from public suffixes and from the short lists in words.txt; every other host
// is unknown, which is no bad mark.
const (
	hostUnknown      HostClass = "unknown"
	hostOfficial     HostClass = "official"     // governments, their agencies, bodies between states
	hostAcademic     HostClass = "academic"     // universities, journals, archives of papers
	hostEncyclopedia HostClass = "encyclopedia" // encyclopedias and dictionaries
	hostNews         HostClass = "news"         // news agencies, papers, broadcasters
	hostForum        HostClass = "forum"        // what anybody writes: forums, social networks, blog hosts
)

// PartKind names a part of a [Quality].
type PartKind string

// The parts of a quality, in their order.
const (
	partPrior     PartKind = "prior"     // what is assumed of a source of which nothing is known
	partHost      PartKind = "host"      // the class of the host
	partHTTPS     PartKind = "https"     // the address is not encrypted
	partAge       PartKind = "age"       // when it was last changed, or published
	partAuthor    PartKind = "author"    // it says who wrote it
	partLicence   PartKind = "licence"   // it says how it may be used
	partAgreement PartKind = "agreement" // what the other sources say of the same things
	partHistory   PartKind = "history"   // how often earlier citations of it could be verified
	partFeedback  PartKind = "feedback"  // what people said of it
)

// Tally counts outcomes of one kind: verified and not, up and down.
type Tally struct{ Good, Bad int }

// QualityInput is what is known of a source. Everything is plain data and may be missing: nil, empty and zero mean
// unknown.
type QualityInput struct {
	URL       string
	Published time.Time
	Modified  time.Time // counts instead of Published where it is later
	Now       time.Time // what ages are counted from; zero: the age stays unknown
	// Read says that the document's own words about itself were looked for, so that no author means that it names none.
	Read      bool
	Authors   []string
	License   string
	Agreement *Tally // statements that other sources share, and possible conflicts with them
	History   *Tally // citations that were verified, and that failed
	Feedback  *Tally // people's ups and downs
}

// Part is one signal of a [Quality].
type Part struct {
	Kind   PartKind
	Value  float64 // in [0, 1]: 1 speaks for the source, 0 against it
	Weight float64 // how much it counts, in observations
	Note   string  // what was seen: "host class academic (suffix edu)"
}

// Quality is what the signals say of a source. It says nothing about what the source says: a good source may be wrong.
type Quality struct {
	// Score is the mean of the parts by their weights, in (0, 1): the mean of a beta distribution, which begins at 0.5
	// and rises with each signal that speaks for the source and falls with each that speaks against it. Nil: nothing is
	// known, not even an address.
	Score *float64
	Parts []Part // the prior and the known ones
	// Known is how sure the score is: the share of the weight that is not the prior's, from 0 to nearly 1.
	Known float64
	Host  HostClass // hostUnknown is no part
}

// What the signals count, in observations. testdata/sources.txt has the order that they must give.
const (
	weightPrior   = 3
	weightHost    = 4
	weightHTTP    = .5 // against it; https speaks for nobody
	weightDated   = .3
	weightOld     = .5 // against it
	weightAuthor  = 1
	weightNobody  = .5 // against it
	weightLicence = .3
)

// weightTally is what one of a [Tally] counts for and against a source: that others contradict it weighs more than that
// they agree, and that a quotation was not found in it more than that it was.
var weightTally = map[PartKind][2]float64{
	partAgreement: {1, 2}, partHistory: {.1, .5}, partFeedback: {.1, .2},
}

// maxTally is how many observations a [Tally] counts for at most.
const maxTally = 20

// oldAge is the age from which on a date speaks against a source.
const oldAge = 10 * 365 * 24 * time.Hour

// AssessSource computes the quality of a source from what is known of it. Unknown parts are left out, not counted as
// zero.
func AssessSource(in *QualityInput) Quality {
	q := Quality{Host: hostUnknown}
	if in == nil {
		return q
	}
	q.address(in.URL)
	q.age(in)
	q.metadata(in)
	q.tally(partAgreement, in.Agreement, "statements shared, possible conflicts")
	q.tally(partHistory, in.History, "citations verified, failed")
	q.tally(partFeedback, in.Feedback, "ups, downs")
	if len(q.Parts) == 0 {
		return q
	}
	sum, weight := 0., 0.
	for _, part := range q.Parts {
		sum += part.Value * part.Weight
		weight += part.Weight
	}
	q.Score, q.Known = new(sum/weight), 1-weightPrior/weight
	return q
}

// add adds a part, and before the first one the prior.
func (q *Quality) add(kind PartKind, weight, value float64, note string) {
	if len(q.Parts) == 0 {
		q.Parts = []Part{{Kind: partPrior, Value: .5, Weight: weightPrior, Note: "nothing is known"}}
	}
	if weight > 0 {
		q.Parts = append(q.Parts, Part{Kind: kind, Value: value, Weight: weight, Note: note})
	}
}

func (q *Quality) address(address string) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	class, why := hostClass(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
	q.Host = class
	if class == hostUnknown {
		q.add(partHost, 0, 0, "")
	} else {
		q.add(partHost, weightHost, classValues[class], "host class "+string(class)+" ("+why+")")
	}
	if u.Scheme == "http" {
		q.add(partHTTPS, weightHTTP, 0, "http")
	}
}

// classValues are what the classes count; hostUnknown nothing.
var classValues = map[HostClass]float64{
	hostOfficial: .95, hostAcademic: .9, hostEncyclopedia: .7, hostNews: .7, hostForum: .2,
}

func (q *Quality) age(in *QualityInput) {
	last, what := in.Published, "published "
	if in.Modified.After(last) {
		last, what = in.Modified, "changed "
	}
	switch {
	case last.IsZero() || in.Now.IsZero():
	case in.Now.Sub(last) < oldAge:
		q.add(partAge, weightDated, 1, what+last.Format(time.DateOnly))
	default:
		q.add(partAge, weightOld, 0, what+last.Format(time.DateOnly))
	}
}

func (q *Quality) metadata(in *QualityInput) {
	switch {
	case len(in.Authors) > 0:
		q.add(partAuthor, weightAuthor, 1, "names an author")
	case in.Read:
		q.add(partAuthor, weightNobody, 0, "names no author")
	}
	if in.License != "" {
		q.add(partLicence, weightLicence, 1, "names a licence")
	}
}

// tally adds a part for counts.
func (q *Quality) tally(kind PartKind, t *Tally, what string) {
	if t == nil || t.Good < 0 || t.Bad < 0 || t.Good+t.Bad == 0 {
		return
	}
	one := weightTally[kind]
	good, bad := one[0]*float64(t.Good), one[1]*float64(t.Bad)
	note := what + ": " + strconv.Itoa(t.Good) + ", " + strconv.Itoa(t.Bad)
	q.add(kind, min(good+bad, maxTally), good/(good+bad), note)
}

var (
	listedHosts     = lists["host"]
	hostSuffixes    = lists["suffix"]
	countrySuffixes = lists["suffix-of-country"]
)

// hostClass reads the class of a host from its suffix and the lists below, and says why. An address in digits is
// unknown.
func hostClass(host string) (HostClass, string) {
	if _, err := netip.ParseAddr(host); err == nil {
		return hostUnknown, ""
	}
	// Names in the lists go before suffixes, the longer before the shorter.
	for name := host; name != ""; {
		if listed, ok := listedHosts[name]; ok {
			return HostClass(listed.name), name
		}
		_, name, _ = strings.Cut(name, ".")
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	second := ""
	if len(labels) > 2 && len(last) == 2 {
		second = labels[len(labels)-2]
	}
	if class := hostSuffixes[last].name; class != "" && len(labels) > 1 {
		return HostClass(class), "suffix " + last
	}
	if class := countrySuffixes[second].name; class != "" {
		return HostClass(class), "suffix " + second + "." + last
	}
	return hostUnknown, ""
}

// Stand is what one source does to one claim.
type Stand string

// The stands.
const (
	Supports Stand = "supports"
	Refutes  Stand = "refutes" // said by a configured judge, never by rules
	Neither  Stand = "neither" // it says less than the claim, something else, or nobody could find out
)

// Stance is one cell of a [Matrix].
type Stance struct {
	Stand Stand
	// Support is the verdict's score, Refute its [SignalContradiction], both in [0, 1]; nil: the checker has none. One
	// below the threshold is kept, and the stand is Neither.
	Support, Refute *float64
	Verdict         Verdict // what the checker said
}

// Matrix is claims by sources.
type Matrix struct {
	Cells    [][]Stance // Cells[claim][passage]
	Disputed []bool     // for each claim: one source supports it and another refutes it, both by the threshold
	By       string     // the checker
	Refuting bool       // whether the checker can say Refutes; if not, nothing is ever disputed
	Issues   []ibid.Issue
}

// SignalContradiction is the signal of a verdict with the probability that the checker gave to [Contradicted] itself.
// It is not what is left of the score: the rest may be [Partial] or [Unsupported].
const SignalContradiction = "contradiction"

// defaultStanceThreshold is the least score with which a source supports or refutes a claim.
const defaultStanceThreshold = .7

// maxStances is the number of pairs of a claim and a passage that one call of [Stances] checks. What is beyond stays
// without a stand, and an issue says so.
const maxStances = 10_000

// stanceBatch is how many pairs a checker is given at once: the rest is not begun when the context ends.
const stanceBatch = 256

// issueStancesTruncated is the code of the issue that says that [maxStances] was reached.
const issueStancesTruncated = "stances-truncated"

// Stances asks a checker about every claim and every passage alone. A nil checker is [Lexical], which compares words
// and so never refutes: only a checker that says [Contradicted] itself, such as a judge, makes a source refute a claim.
//
// Where a checker has no score for the side of its label, the label counts. What cannot be checked is Neither, with the
// reason in its Verdict.
func Stances(ctx context.Context, claims []string, passages []Passage, c Checker) (*Matrix, error) {
	if c == nil {
		c = &Lexical{}
	}
	_, rules := c.(*Lexical)
	m := &Matrix{
		Cells:    make([][]Stance, len(claims)),
		Disputed: make([]bool, len(claims)),
		By:       c.Info().By(),
		Refuting: !rules,
	}
	var pairs []Pair
	for i := range claims {
		m.Cells[i] = make([]Stance, len(passages))
		for j := range passages {
			m.Cells[i][j].Stand = Neither
			if len(pairs) < maxStances {
				pairs = append(pairs, Pair{Claim: claims[i], Passages: passages[j : j+1 : j+1]})
			}
		}
	}
	if len(pairs) < len(claims)*len(passages) {
		detail := fmt.Sprintf("only %d of %d pairs were checked", len(pairs), len(claims)*len(passages))
		m.Issues = []ibid.Issue{{Code: issueStancesTruncated, Detail: detail}}
	}
	checked := 0
	for batch := range slices.Chunk(pairs, stanceBatch) {
		verdicts, err := c.Check(ctx, batch)
		if err == nil && len(verdicts) != len(batch) {
			err = errors.New("the checker returned another number of verdicts")
		}
		if err != nil {
			return nil, fmt.Errorf("checking what %d passages say of %d claims: %w", len(passages), len(claims), err)
		}
		for _, v := range verdicts {
			m.Cells[checked/len(passages)][checked%len(passages)] = stanceOf(v, rules)
			checked++
		}
	}
	for i := range m.Cells {
		m.Disputed[i] = disputed(m.Cells[i])
	}
	return m, nil
}

// stanceOf reads a verdict.
func stanceOf(v Verdict, rules bool) Stance {
	s := Stance{Stand: Neither, Verdict: v}
	if v.Err != nil {
		return s
	}
	if v.Label == Contradicted && !rules {
		if refute, ok := v.Signals[SignalContradiction]; ok {
			s.Refute = &refute
		}
		if s.Refute == nil || *s.Refute >= defaultStanceThreshold {
			s.Stand = Refutes
		}
		return s
	}
	s.Support = v.Score
	if v.Label == Supported && (v.Score == nil || *v.Score >= min(defaultStanceThreshold, thresholdOf(&v))) {
		s.Stand = Supports
	}
	return s
}

// thresholdOf is the checker's own threshold, where it has one: what it calls supported supports.
func thresholdOf(v *Verdict) float64 {
	if v.Threshold > 0 {
		return v.Threshold
	}
	return defaultStanceThreshold
}

func disputed(row []Stance) bool {
	has := func(stand Stand) bool {
		return slices.ContainsFunc(row, func(s Stance) bool { return s.Stand == stand })
	}
	return has(Supports) && has(Refutes)
}

// Usage returns how much of a text rests on each source: the share of the text's information that stands in the spans
// attributed to it. A word's information is how rare it is, so that function words count for little. A word counts
// where one span has all of it, and once, however many do. What of a span lies outside the text has no words. Shares of
// several sources may add up to more than 1, because a sentence can rest on two.
//
// The keys are the caller's. A text without words gives 0 for all.
func Usage(text string, covered map[string][]ibid.Span) map[string]float64 {
	words := weighWords(text)
	total := 0.0
	for i := range words {
		total += words[i].weight
	}
	shares := make(map[string]float64, len(covered))
	for key, spans := range covered {
		shares[key] = 0
		if total > 0 {
			shares[key] = min(1, weightWithin(words, spans)/total)
		}
	}
	return shares
}

// Covered returns the claims of an answer's citations by the ids of the sources that they rest on: what [Usage] takes.
// Every source has an entry; citations without a place add nothing.
func Covered(a *ibid.Answer) map[string][]ibid.Span {
	covered := make(map[string][]ibid.Span, len(a.Sources))
	for i := range a.Sources {
		covered[a.Sources[i].ID] = nil
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		if !c.Placed() || c.Claim.Len() <= 0 {
			continue
		}
		for _, ref := range c.Refs {
			spans := covered[ref.Source]
			if n := len(spans); n == 0 || spans[n-1] != c.Claim {
				covered[ref.Source] = append(spans, c.Claim)
			}
		}
	}
	return covered
}

// weighted is a word of a text and its information.
type weighted struct {
	start, end int
	weight     float64
}

func weighWords(text string) []weighted {
	table := english()
	var words []weighted
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		words = append(words, weighted{t.start, t.end, table.weight(t.key)})
	}
	return words
}

// weightWithin returns the weight of the words that stand in one of the spans.
func weightWithin(words []weighted, spans []ibid.Span) float64 {
	spans = slices.SortedFunc(slices.Values(spans), func(x, y ibid.Span) int { return cmp.Compare(x.Start, y.Start) })
	sum, at, end := 0.0, 0, -1
	for _, w := range words {
		for at < len(spans) && spans[at].Start <= w.start {
			end = max(end, spans[at].End)
			at++
		}
		if w.end <= end {
			sum += w.weight
		}
	}
	return sum
}
