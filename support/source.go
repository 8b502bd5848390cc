package support

import (
	"cmp"
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

// AssessSource computes the quality of a source from what is known of it: the mean of its parts by their weights.
// Unknown parts are left out, not counted as zero. The parts are a prior of .5 (weight 3); the class of the host (4):
// official .95, academic .9, encyclopedia .7, news .7, forum .2; plain http (.5), which counts as 0; a date (.3), or
// one of more than ten years ago (.5), which counts as 0; an author (1), or that none is named (.5), which counts as 0;
// a licence (.3); and, for at most 20 of each, statements shared with other sources (1) and possible conflicts with
// them (2), citations verified (.1) and failed (.5), feedback up (.1) and down (.2).
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
