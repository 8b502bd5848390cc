package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
	partHost      PartKind = "host"      // the class of the host
	partHTTPS     PartKind = "https"     // the address is encrypted
	partAge       PartKind = "age"       // how long ago it was last changed, or published
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
	Value  float64 // in [0, 1]
	Weight float64 // its share of the score if all parts were known
	Note   string  // what was seen: "host class academic (suffix edu)"
}

// Quality is what the signals say of a source. It says nothing about what the source says: a good source may be wrong.
type Quality struct {
	// Score is the weighted mean of the known parts, in [0, 1]; nil: no part is known.
	Score *float64
	Parts []Part    // the known ones
	Known float64   // the share of the weight that is known, in [0, 1]
	Host  HostClass // hostUnknown is no part
}

// The weights of the parts. They are a choice, not a measurement; the parts are there so that others can be used.
const (
	weightHost      = .20
	weightHTTPS     = .05
	weightAge       = .10
	weightAuthor    = .10
	weightLicence   = .05
	weightAgreement = .20
	weightHistory   = .20
	weightFeedback  = .10
)

// halfAge is the age at which a source's freshness is one half.
const halfAge = 5 * 365 * 24 * time.Hour

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
	q.tally(partAgreement, weightAgreement, in.Agreement, "statements shared, possible conflicts")
	q.tally(partHistory, weightHistory, in.History, "citations verified, failed")
	q.tally(partFeedback, weightFeedback, in.Feedback, "ups, downs")
	sum := 0.
	for _, part := range q.Parts {
		sum += part.Value * part.Weight
		q.Known += part.Weight
	}
	if q.Known > 0 {
		score := sum / q.Known
		q.Score = &score
	}
	return q
}

func (q *Quality) add(kind PartKind, weight, value float64, note string) {
	q.Parts = append(q.Parts, Part{Kind: kind, Value: value, Weight: weight, Note: note})
}

func (q *Quality) address(address string) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	class, why := hostClass(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
	q.Host = class
	if class != hostUnknown {
		q.add(partHost, weightHost, classValue(class), "host class "+string(class)+" ("+why+")")
	}
	if u.Scheme == "https" {
		q.add(partHTTPS, weightHTTPS, 1, "https")
	} else {
		q.add(partHTTPS, weightHTTPS, 0, "http")
	}
}

// classValue is what a class counts.
func classValue(class HostClass) float64 {
	switch class {
	case hostOfficial, hostAcademic:
		return .9
	case hostEncyclopedia:
		return .8
	case hostNews:
		return .7
	case hostForum:
		return .3
	default:
		return 0
	}
}

func (q *Quality) age(in *QualityInput) {
	last, what := in.Published, "published "
	if in.Modified.After(last) {
		last, what = in.Modified, "changed "
	}
	if last.IsZero() || in.Now.IsZero() {
		return
	}
	age := max(in.Now.Sub(last), 0)
	q.add(partAge, weightAge, math.Exp2(-float64(age)/float64(halfAge)), what+last.Format(time.DateOnly))
}

func (q *Quality) metadata(in *QualityInput) {
	switch {
	case len(in.Authors) > 0:
		q.add(partAuthor, weightAuthor, 1, "names an author")
	case in.Read:
		q.add(partAuthor, weightAuthor, 0, "names no author")
	}
	switch {
	case in.License != "":
		q.add(partLicence, weightLicence, 1, "names a licence")
	case in.Read:
		q.add(partLicence, weightLicence, 0, "names no licence")
	}
}

// tally adds a part for counts. Its value is the lower end of Wilson's 95 % interval: few counts prove little.
func (q *Quality) tally(kind PartKind, weight float64, t *Tally, what string) {
	if t == nil || t.Good < 0 || t.Bad < 0 || t.Good+t.Bad == 0 {
		return
	}
	q.add(kind, weight, wilsonLower(t.Good, t.Bad), what+": "+strconv.Itoa(t.Good)+", "+strconv.Itoa(t.Bad))
}

// wilsonZ is the quantile of the normal distribution for an interval of 95 %.
const wilsonZ = 1.959963984540054

// wilsonLower returns the lower end of Wilson's 95 % score interval for the share of good ones; 0 if there are none at
// all. (E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927.)
func wilsonLower(good, bad int) float64 {
	n := float64(max(good, 0)) + float64(max(bad, 0))
	if n == 0 {
		return 0
	}
	const z2 = wilsonZ * wilsonZ
	p := float64(max(good, 0)) / n
	lower := (p + z2/(2*n) - wilsonZ*math.Sqrt(p*(1-p)/n+z2/(4*n*n))) / (1 + z2/n)
	return max(lower, 0)
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
