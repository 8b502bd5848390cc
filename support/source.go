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

// HostClass is the kind of place that a source comes from, judging by its host name.
type HostClass string

// The classes of a host, from public suffixes and the short lists in words.txt. All other hosts are unknown, which does
// not count against them.
const (
	hostUnknown      HostClass = "unknown"
	hostOfficial     HostClass = "official"     // governments, their agencies, intergovernmental bodies
	hostAcademic     HostClass = "academic"     // universities, journals, archives of papers
	hostEncyclopedia HostClass = "encyclopedia" // encyclopedias and dictionaries
	hostNews         HostClass = "news"         // news agencies, newspapers, broadcasters
	hostForum        HostClass = "forum"        // open to everyone: forums, social networks, blog hosts
)

// PartKind names a part of a [Quality].
type PartKind string

// The parts of a quality, in order.
const (
	partPrior     PartKind = "prior"     // the assumption before anything is known
	partHost      PartKind = "host"      // the class of the host
	partHTTPS     PartKind = "https"     // the address is plain http
	partAge       PartKind = "age"       // when it was last changed, or published
	partAuthor    PartKind = "author"    // whether it names its author
	partLicence   PartKind = "licence"   // whether it names its licence
	partAgreement PartKind = "agreement" // what the other sources say about the same things
	partHistory   PartKind = "history"   // how often earlier citations of it were verified
	partFeedback  PartKind = "feedback"  // people's feedback on it
)

// Tally counts good and bad outcomes of one kind: verified and failed, up and down.
type Tally struct{ Good, Bad int }

// QualityInput is what is known about a source. Every field may be missing: nil, empty and zero mean unknown.
type QualityInput struct {
	URL       string
	Published time.Time
	Modified  time.Time // used instead of Published if it is later
	Now       time.Time // the time that ages are measured from; if zero, the age is unknown
	// Read says that the document was searched for its metadata, so that no authors means that it names none.
	Read      bool
	Authors   []string
	License   string
	Agreement *Tally // statements that other sources share; possible conflicts with them
	History   *Tally // citations that were verified; that failed
	Feedback  *Tally // up and down votes
}

// Part is one signal of a [Quality].
type Part struct {
	Kind   PartKind
	Value  float64 // in [0, 1]: 1 speaks for the source, 0 against it
	Weight float64 // its weight, in observations
	Note   string  // what was observed: "host class academic (suffix edu)"
}

// Quality is an assessment of a source. It does not judge what the source says: a good source may be wrong.
type Quality struct {
	// Score is the weighted mean of the parts, in (0, 1): the mean of a beta distribution that starts at 0.5, rises
	// with each signal for the source and falls with each against it. Nil if nothing is known, not even an address.
	Score *float64
	Parts []Part // the prior and the known parts
	// Known is how well founded the score is: the share of the weight that is not the prior's, from 0 to nearly 1.
	Known float64
	Host  HostClass // hostUnknown adds no part
}

// The weights of signals, in observations. testdata/sources.txt has the order of sources that they must produce.
const (
	weightPrior   = 3
	weightHost    = 4
	weightHTTP    = .5 // against it; https does not count
	weightDated   = .3
	weightOld     = .5 // against it
	weightAuthor  = 1
	weightNobody  = .5 // against it
	weightLicence = .3
)

// weightTally is the weight of one good and one bad outcome of a [Tally]: a contradiction weighs more than an
// agreement, and a quotation that was not found more than one that was.
var weightTally = map[PartKind][2]float64{
	partAgreement: {1, 2}, partHistory: {.1, .5}, partFeedback: {.1, .2},
}

// maxTally is the most observations that a [Tally] counts as.
const maxTally = 20

// oldAge is the age from which a date counts against a source.
const oldAge = 10 * 365 * 24 * time.Hour

// AssessSource computes the quality of a source from what is known about it: the weighted mean of its parts. Unknown
// parts are left out, not counted as zero. The parts are a prior of .5 (weight 3); the class of the host (4): official
// .95, academic .9, encyclopedia .7, news .7, forum .2; plain http (.5), which counts as 0; a date (.3), or one more
// than ten years ago (.5), which counts as 0; an author (1), or that none is named (.5), which counts as 0; a licence
// (.3); and, for at most 20 of each, statements shared with other sources (1) and possible conflicts with them (2),
// citations verified (.1) and failed (.5), feedback up (.1) and down (.2).
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

// add adds a part, preceded by the prior if it is the first.
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

// classValues are the values of the classes; hostUnknown has none.
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

// hostClass returns the class of a host by the lists of hosts and suffixes, and what matched. An IP address is unknown.
func hostClass(host string) (HostClass, string) {
	if _, err := netip.ParseAddr(host); err == nil {
		return hostUnknown, ""
	}
	// Listed names take precedence over suffixes, longer names over shorter.
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

// Usage returns how much of a text rests on each source: the share of the text's information within the spans
// attributed to it. A word's information is its rarity, so that function words count for little. A word counts once if
// a single span contains all of it. Parts of spans outside the text are ignored. Shares of several sources may add up
// to more than 1, because a sentence can rest on two.
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

// Covered returns the claims of an answer's citations by the id of the source that they cite, as input for [Usage].
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

// weightWithin returns the weight of the words that lie within one of the spans.
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
