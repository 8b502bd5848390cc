package page

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxReported is how many claims, sources and findings of a kind a page shows of a report. The JSON of POST
	// /v1/verify has all.
	maxReported = 200
	// maxNestedReports is how deep reports within reports are shown.
	maxNestedReports = 3
)

// reportView is a report as templates/parts/report.html shows it.
type reportView struct {
	Word, Kind, Means string // the state, its badge's kind, and what it means
	Input, Of         string // what was verified, and what sort of thing it is
	Checked           time.Time
	Offline           bool
	Level             string // what level was promised and seen; empty: nothing was
	Why               []string
	Manifests         []manifestView
	Claims            []claimReport
	Sources           []reportSource
	Failures          []findingView
	Warnings          []findingView // what is in order but should be looked at
	Unseen            []findingView // what could not be looked at
	Notes             []findingView
	Passed            []findingView
	MoreClaims        int // that are not shown
	Upstream          []*reportView
	Nested            bool
}

// manifestView is what was found about a manifest.
type manifestView struct {
	URL, Site         string
	Agent, Run        string
	Emitted, SignedAt string
	Key, TrustedBy    string
	Signature         badge
	Logged            bool
	LogSize           int
	Level             string
}

// claimReport is a claim with what was found about its sources.
type claimReport struct {
	Text, ID, Detail string
	Badge            badge
	By               string
	Sources          []reportSource
}

// reportSource is a source of a claim.
type reportSource struct {
	Title, Site, Open string
	URL               string
	Link              string // to its page here
	Badge             badge
	Why               string // of what was not read, in a sentence
	Note              string
	Cached            bool
	Checked           time.Time
	Quoted, Found     []piece // the excerpt, and what stands in the source
	Compared          bool    // Found differs from Quoted
	Said              bool    // something is quoted
	Elsewhere         string  // the site that it is at now
}

// findingView is one thing that was found.
type findingView struct {
	Code, Detail, Claim, Site string
}

// newReport lays a report out. depth is how many reports it is in.
func newReport(r *verify.Report, depth int) *reportView {
	v := &reportView{
		Input:   r.Input,
		Of:      kindWords(r.Kind),
		Checked: r.CheckedAt,
		Offline: r.Offline,
		Why:     r.Level.Why,
		Nested:  depth > 0,
	}
	v.Word, v.Kind, v.Means = stateWords(r.State)
	if r.Level.Promised+r.Level.Observed > 0 {
		v.Level = levelWords(r.Level)
	}
	for i := range r.Manifests {
		v.Manifests = append(v.Manifests, manifestViewOf(&r.Manifests[i]))
	}
	for i := range r.Claims[:min(len(r.Claims), maxReported)] {
		v.Claims = append(v.Claims, claimReportOf(&r.Claims[i]))
	}
	v.MoreClaims = len(r.Claims) - len(v.Claims)
	for i := range r.Sources[:min(len(r.Sources), maxReported)] {
		v.Sources = append(v.Sources, reportSourceOf(&r.Sources[i]))
	}
	v.addFindings(r)
	for _, up := range r.Upstream {
		if depth < maxNestedReports {
			v.Upstream = append(v.Upstream, newReport(up, depth+1))
		}
	}
	return v
}

// addFindings adds what was found about the response and its manifests. What was found about single sources stands with
// the claims.
func (v *reportView) addFindings(r *verify.Report) {
	for i := range r.Failure {
		if f := &r.Failure[i]; f.Claim == "" {
			v.Failures = appendFinding(v.Failures, f)
		}
	}
	for i := range r.Info {
		f := &r.Info[i]
		if f.Claim != "" {
			continue
		}
		switch f.Counts {
		case verify.CountWarning:
			v.Warnings = appendFinding(v.Warnings, f)
		case verify.CountUnverifiable:
			v.Unseen = appendFinding(v.Unseen, f)
		case verify.CountInfo, verify.CountPass, verify.CountFailure:
			v.Notes = appendFinding(v.Notes, f)
		}
	}
	for i := range r.Success {
		v.Passed = appendFinding(v.Passed, &r.Success[i])
	}
}

func appendFinding(list []findingView, f *verify.Finding) []findingView {
	if len(list) >= maxReported {
		return list
	}
	view := findingView{Code: words(string(f.Code)), Detail: f.Detail, Claim: f.Claim}
	if f.Source != "" {
		view.Site = siteOf(&ibid.Source{URL: f.Source})
	}
	return append(list, view)
}

func stateWords(s verify.State) (word, kind, means string) {
	switch s {
	case verify.Trusted:
		return "trusted", badgeGood, "Everything is in order, and every manifest is signed by somebody whom you named as trusted."
	case verify.Valid:
		return "valid", badgeGood, "Everything that was looked at is in order. Nobody here said that its signer is trusted, or nobody signed it."
	case verify.Unverifiable:
		return "unverifiable", badgeLost, "Nothing failed, but something that is claimed could not be looked at."
	case verify.Invalid:
		return "invalid", badgeBad, "Something failed. Below it says what."
	}
	return "unknown", badgeNone, "It came to no state."
}

func kindWords(k verify.Kind) string {
	switch k {
	case verify.KindResponse:
		return "a response"
	case verify.KindManifest:
		return "a manifest by itself: which response it is about was not looked at"
	case verify.KindBundle:
		return "a stored bundle"
	case verify.KindDocument:
		return "an answer document: its quotes, which nobody signed"
	}
	return ""
}

func levelWords(l verify.Levels) string {
	observed := "Level " + strconv.Itoa(l.Observed) + " was seen"
	switch l.Promised {
	case 0:
		return observed + "; none was promised."
	case l.Observed:
		return observed + ", as promised."
	}
	return observed + "; level " + strconv.Itoa(l.Promised) + " was promised."
}

func manifestViewOf(m *verify.ManifestReport) manifestView {
	return manifestView{
		URL:       m.URL,
		Site:      siteOf(&ibid.Source{URL: m.URL}),
		Agent:     m.AgentID,
		Run:       m.RunID,
		Emitted:   m.EmittedAt,
		SignedAt:  m.SignedAt,
		Key:       m.KeyID,
		TrustedBy: m.TrustedBy,
		Signature: signatureBadge(m),
		Logged:    m.Logged,
		LogSize:   int(m.LogSize),
		Level:     levelWords(m.Level),
	}
}

func claimReportOf(c *verify.ClaimReport) claimReport {
	v := claimReport{Text: c.Text, ID: c.ID, Detail: c.Detail, By: c.By, Badge: claimBadge(c)}
	for i := range c.Sources[:min(len(c.Sources), maxReported)] {
		v.Sources = append(v.Sources, reportSourceOf(&c.Sources[i]))
	}
	return v
}

// claimBadge says whether the excerpts support a claim.
func claimBadge(c *verify.ClaimReport) badge {
	b := badge{Code: string(c.Status), Word: words(string(c.Status)), Title: c.Detail}
	switch c.Status {
	case verify.SupportedVerbatim:
		b.Kind, b.Word, b.Title = badgeGood, "word for word", "The claim stands in an excerpt, word for word."
	case verify.SupportSuspect:
		b.Kind, b.Word = badgeClose, "read it"
	case verify.SupportUnchecked:
		b.Kind, b.Word = badgeNone, "support not checked"
	case verify.UnsupportedClaim:
		b.Kind, b.Word = badgeBad, "not supported"
	default:
		b.Kind = badgeClose
		if strings.HasPrefix(string(c.Status), "supported-") {
			b.Kind, b.Word = badgeGood, "supported"
		}
	}
	return b
}

func reportSourceOf(s *verify.SourceReport) reportSource {
	source := &ibid.Source{URL: s.URL, Title: s.Title}
	v := reportSource{
		Title: sourceTitle(
			source,
		),
		Site: siteOf(source),
		URL:  s.URL,
		Open: passageURL(source, &ibid.Ref{Quote: s.Excerpt}),
		Link: sourceURLLink(s.URL),
		Badge: resultBadge(
			&s.Result,
		),
		Why:     reasonWords(&s.Result),
		Note:    s.Result.Note,
		Cached:  s.Cached,
		Checked: s.CheckedAt,
		Said:    s.Excerpt != "",
	}
	if near := s.Result.Near; near != nil {
		v.Quoted, v.Found = compareWords(s.Excerpt, near.Text)
		v.Compared = true
	} else {
		v.Quoted, v.Found, v.Compared = wholePiece(
			s.Excerpt,
		), wholePiece(
			s.Result.Excerpt,
		), s.Result.Excerpt != "" &&
			s.Result.Excerpt != s.Excerpt
	}
	if s.Result.Redirected {
		v.Elsewhere = siteOf(&ibid.Source{URL: s.Result.FinalURL})
	}
	return v
}

// resultBadge is the badge of what was found about a source.
func resultBadge(r *verify.SourceResult) badge {
	b := statusBadge(r.Status, time.Time{})
	if r.Status == verify.Blocked { // where a citation was merely not checked
		b.Kind, b.Word, b.Title = badgeLost, "not fetched", "" // its reason says it
	}
	return b
}

// reasonWords says why a source was not read; empty: it was.
func reasonWords(r *verify.SourceResult) string {
	if r.Status == verify.Blocked {
		return blockedWords(r.Reason)
	}
	why := map[string]string{
		"dns": "Its name is not known.", "connect": "Its server takes no connections.", "tls": "Its certificate is not in order.",
		"timeout": "It did not answer in time.", "protocol": "What its server sends is no HTTP.", "redirects": "It redirects too often.",
		"429": "Its server asks for less traffic.", "5xx": "Its server has an error.", "4xx": "Its server refuses the request.",
	}[r.Reason]
	if why == "" && r.Reason != "" && r.Status != verify.VerifiedFromArchive {
		why = "The reason is " + r.Reason + "."
	}
	return why
}

// blockedWords explains why an address is not fetched from here.
func blockedWords(reason string) string {
	return cmp.Or(map[string]string{
		"network":   "It was not fetched: its address lies in a private network, and what others write must not make this server read there. Whoever runs this server can allow a network of theirs.",
		"port":      "It was not fetched: only the ports 80 and 443 are.",
		"scheme":    "It was not fetched: only http and https are.",
		"userinfo":  "It was not fetched: its address has a user name or a password.",
		"zone":      "It was not fetched: its address has a zone.",
		"downgrade": "It was not fetched: it redirects from https to http.",
		"offline":   "It was not fetched: you asked to stay offline.",
		"limit":     "It was not fetched: one verification reads only so much.",
	}[reason], "It was not fetched, by the rules of this server.")
}
