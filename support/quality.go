package support

import (
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HostClass is what kind of place a source comes from, as far as its host name tells.
type HostClass string

// The classes of a host. They are read from public suffixes and from the short lists in hostClass, which
// docs/support.md prints; every other host is unknown, which is no bad mark.
const (
	HostUnknown      HostClass = "unknown"
	HostOfficial     HostClass = "official"     // governments, their agencies, bodies between states
	HostAcademic     HostClass = "academic"     // universities, journals, archives of papers
	HostEncyclopedia HostClass = "encyclopedia" // encyclopedias and dictionaries
	HostNews         HostClass = "news"         // news agencies, papers, broadcasters
	HostForum        HostClass = "forum"        // what anybody writes: forums, social networks, blog hosts
)

// PartKind names a part of a [Quality].
type PartKind string

// The parts of a quality, in their order.
const (
	PartHost      PartKind = "host"      // the class of the host
	PartHTTPS     PartKind = "https"     // the address is encrypted
	PartAge       PartKind = "age"       // how long ago it was last changed, or published
	PartAuthor    PartKind = "author"    // it says who wrote it
	PartLicence   PartKind = "licence"   // it says how it may be used
	PartAgreement PartKind = "agreement" // what the other sources say of the same things
	PartHistory   PartKind = "history"   // how often earlier citations of it could be verified
	PartFeedback  PartKind = "feedback"  // what people said of it
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
	Host  HostClass // HostUnknown is no part
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
	q := Quality{Host: HostUnknown}
	if in == nil {
		return q
	}
	q.address(in.URL)
	q.age(in)
	q.metadata(in)
	q.tally(PartAgreement, weightAgreement, in.Agreement, "statements shared, possible conflicts")
	q.tally(PartHistory, weightHistory, in.History, "citations verified, failed")
	q.tally(PartFeedback, weightFeedback, in.Feedback, "ups, downs")
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
	if class != HostUnknown {
		q.add(PartHost, weightHost, classValue(class), "host class "+string(class)+" ("+why+")")
	}
	if u.Scheme == "https" {
		q.add(PartHTTPS, weightHTTPS, 1, "https")
	} else {
		q.add(PartHTTPS, weightHTTPS, 0, "http")
	}
}

// classValue is what a class counts.
func classValue(class HostClass) float64 {
	switch class {
	case HostOfficial, HostAcademic:
		return .9
	case HostEncyclopedia:
		return .8
	case HostNews:
		return .7
	case HostForum:
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
	q.add(PartAge, weightAge, math.Exp2(-float64(age)/float64(halfAge)), what+last.Format(time.DateOnly))
}

func (q *Quality) metadata(in *QualityInput) {
	switch {
	case len(in.Authors) > 0:
		q.add(PartAuthor, weightAuthor, 1, "names an author")
	case in.Read:
		q.add(PartAuthor, weightAuthor, 0, "names no author")
	}
	switch {
	case in.License != "":
		q.add(PartLicence, weightLicence, 1, "names a licence")
	case in.Read:
		q.add(PartLicence, weightLicence, 0, "names no licence")
	}
}

// tally adds a part for counts. Its value is the lower end of Wilson's 95 % interval: few counts prove little.
func (q *Quality) tally(kind PartKind, weight float64, t *Tally, what string) {
	if t == nil || t.Good < 0 || t.Bad < 0 || t.Good+t.Bad == 0 {
		return
	}
	q.add(kind, weight, WilsonLower(t.Good, t.Bad), what+": "+strconv.Itoa(t.Good)+", "+strconv.Itoa(t.Bad))
}

// wilsonZ is the quantile of the normal distribution for an interval of 95 %.
const wilsonZ = 1.959963984540054

// WilsonLower returns the lower end of Wilson's 95 % score interval for the share of good ones; 0 if there are none at
// all. (E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927.)
func WilsonLower(good, bad int) float64 {
	n := float64(max(good, 0)) + float64(max(bad, 0))
	if n == 0 {
		return 0
	}
	const z2 = wilsonZ * wilsonZ
	p := float64(max(good, 0)) / n
	lower := (p + z2/(2*n) - wilsonZ*math.Sqrt(p*(1-p)/n+z2/(4*n*n))) / (1 + z2/n)
	return max(lower, 0)
}

// hostClass reads the class of a host from its suffix and the lists below, and says why. An address in digits is
// unknown.
func hostClass(host string) (HostClass, string) {
	if _, err := netip.ParseAddr(host); err == nil {
		return HostUnknown, ""
	}
	// Names in the lists go before suffixes, the longer before the shorter.
	for name := host; name != ""; {
		if class := listedHost(name); class != HostUnknown {
			return class, name
		}
		_, name, _ = strings.Cut(name, ".")
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	second := ""
	if len(labels) > 2 && len(last) == 2 {
		second = labels[len(labels)-2]
	}
	switch {
	case len(labels) < 2:
		return HostUnknown, ""
	case last == "gov", last == "mil", last == "int":
		return HostOfficial, "suffix " + last
	case last == "edu":
		return HostAcademic, "suffix edu"
	}
	switch second {
	case "gov", "gouv", "gob", "gv", "govt", "go", "mil":
		return HostOfficial, "suffix " + second + "." + last
	case "ac", "edu":
		return HostAcademic, "suffix " + second + "." + last
	}
	return HostUnknown, ""
}

// listedHost is the class of a host that is in the lists. They are short on purpose: what most readers know.
func listedHost(name string) HostClass {
	switch name {
	case "europa.eu", "admin.ch", "bund.de", "bundesregierung.de", "bundestag.de", "canada.ca", "who.int", "un.org",
		"worldbank.org", "imf.org", "oecd.org", "gov.uk":
		return HostOfficial
	case "arxiv.org", "nature.com", "science.org", "sciencedirect.com", "springer.com", "wiley.com", "plos.org",
		"jstor.org", "doi.org", "pubmed.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov", "biorxiv.org", "medrxiv.org", "acm.org",
		"ieee.org", "semanticscholar.org", "ssrn.com":
		return HostAcademic
	case "wikipedia.org", "wiktionary.org", "wikidata.org", "britannica.com", "encyclopedia.com", "merriam-webster.com",
		"scholarpedia.org", "plato.stanford.edu":
		return HostEncyclopedia
	case "reuters.com", "apnews.com", "bbc.com", "bbc.co.uk", "nytimes.com", "theguardian.com", "washingtonpost.com",
		"wsj.com", "ft.com", "economist.com", "npr.org", "aljazeera.com", "dw.com", "lemonde.fr", "spiegel.de",
		"zeit.de", "faz.net", "elpais.com", "nhk.or.jp", "bloomberg.com", "afp.com", "cnn.com":
		return HostNews
	case "reddit.com", "quora.com", "stackoverflow.com", "stackexchange.com", "medium.com", "substack.com", "x.com",
		"twitter.com", "facebook.com", "instagram.com", "tiktok.com", "youtube.com", "tumblr.com", "blogspot.com",
		"wordpress.com", "ycombinator.com", "discord.com", "pinterest.com", "linkedin.com", "fandom.com", "github.io":
		return HostForum
	}
	return HostUnknown
}

// AgreementOf counts, for the passages of one source among those of others, the possible conflicts it takes part in and
// the statements that other passages share. It turns what [Conflicts] found into [QualityInput.Agreement].
//
// sources has for each passage the source it is of; shared are the statements of the source that others make, too, as
// the caller counts them.
func AgreementOf(source string, sources []string, shared int, conflicts []Conflict) *Tally {
	t := Tally{Good: max(shared, 0)}
	for i := range conflicts {
		a, b := sourceAt(sources, conflicts[i].A.Passage), sourceAt(sources, conflicts[i].B.Passage)
		if a != b && (a == source || b == source) {
			t.Bad++
		}
	}
	return &t
}

func sourceAt(sources []string, passage int) string {
	if passage < 0 || passage >= len(sources) {
		return ""
	}
	return sources[passage]
}
