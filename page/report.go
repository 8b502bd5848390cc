package page

import (
	"cmp"
	"slices"
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
	*verify.Report

	Depth    int      // number of reports it is nested in
	base     string   // the address of this server
	unsigned string   // why an answer of this server is not signed; empty if it is, or if it is another server's
	Bare     []string // sentences without a source, in an answer of this server
}

// Read returns when the least recently read source was read.
func (v *reportView) Read() time.Time {
	at := v.CheckedAt
	for i := range v.Claims {
		for k := range v.Claims[i].Sources {
			if s := &v.Claims[i].Sources[k]; s.CheckedAt.Before(at) && !s.CheckedAt.IsZero() {
				at = s.CheckedAt
			}
		}
	}
	return at
}

// Verdict returns the result of the report in a sentence.
func (v *reportView) Verdict() badge {
	var b badge
	quotes, unquoted, failed, lost, how := 0, 0, 0, 0, "failed"
	for _, c := range v.sourced() {
		quotes += c.Count
		switch {
		case c.Word == wordUnchanged:
			quotes -= c.Count
			unquoted += c.Count
		case c.Kind == badgeBad:
			if how = c.Word; failed > 0 {
				how = "failed" // in several ways
			}
			failed += c.Count
		case c.Kind == badgeLost, c.Kind == badgeNone:
			lost += c.Count
		}
	}
	claims := &v.Findings.Claims
	switch {
	case failed > 0:
		b = badge{Kind: badgeBad, Word: shareWords(failed, quotes, how)}
	case v.State == verify.Invalid && len(v.Failure) > 0:
		why := cmp.Or(incidentBadge(v.Failure[0].Code).Title, v.Failure[0].Detail)
		b = badge{Kind: badgeBad, Word: strings.TrimSuffix(why, ".")}
	case v.State == verify.Pending:
		b = badge{Kind: badgeLost, Word: "The answer is not published yet"}
	case lost > 0:
		b = badge{Kind: badgeLost, Word: shareWords(lost, quotes, "lost")}
	case quotes == 0 && unquoted > 0:
		b = badge{Kind: badgeFound, Word: counted(unquoted, "source is", "sources are") + " unchanged"}
	case quotes == 0:
		b = badge{Kind: badgeNone, Word: "There is no quote to check"}
	case v.State == verify.Unverifiable:
		b = badge{Kind: badgeLost, Word: shareWords(quotes, quotes, "found") + "; something else could not be checked"}
	case claims.Supported == len(v.Claims):
		b = badge{Kind: badgeGood, Word: shareWords(quotes, quotes, "supported")}
	default:
		b = badge{Kind: badgeFound, Word: shareWords(quotes, quotes, "found")}
	}
	if claims.Differs > 0 {
		b.Word += "; " + counted(claims.Differs, "sentence differs", "sentences differ")
	}
	if n := claims.Unsupported + claims.Contradicted; n > 0 {
		b.Word += "; " + counted(n, "sentence is", "sentences are") + " not supported"
	}
	if claims.Denied() > 0 {
		if b.Kind != badgeBad {
			b.Kind = badgeClose
		}
	}
	if len(v.Bare) > 0 {
		b.Word += "; " + counted(len(v.Bare), "sentence has", "sentences have") + " no source"
	}
	return b
}

// shares are the phrases for a number of quotes: singular and plural.
var shares = map[string][2]string{
	wordChanged:   {"has changed", "have changed"},
	wordMissing:   {"is missing from its source", "are missing from their sources"},
	wordMisquoted: {"was never in its source", "were never in their sources"},
	"failed":      {"is not in its source", "are not in their sources"},
	"lost":        {"could not be checked", "could not be checked"},
	"found":       {"is still in its source", "are still in their sources"},
	"supported": {
		"is still in its source, and supports the sentence", "are still in their sources, and support the sentences",
	},
}

// shareWords returns in a sentence how many of the quotes are in a state.
func shareWords(n, of int, what string) string {
	words, ok := shares[what]
	if !ok {
		words = shares["failed"]
	}
	switch {
	case of == 1:
		return "The quote " + words[0]
	case n == of:
		return "All " + strconv.Itoa(of) + " quotes " + words[1]
	case n == 1:
		return "1 of " + strconv.Itoa(of) + " quotes " + words[0]
	}
	return strconv.Itoa(n) + " of " + strconv.Itoa(of) + " quotes " + words[1]
}

// site returns the host of an address, or "this server" if that is a loopback address of it.
func (v *reportView) site(address string) string {
	if host := siteAt(address); !isHere(host) || !strings.HasPrefix(address, v.base+"/") {
		return host
	}
	return "this server"
}

// reportLine is the result of one kind of checks.
type reportLine struct {
	Kind, Name string
	Counts     []countedBadge // the results
	Text       string         // the result in words, if nothing is counted
	At         string         // the id of the element with the details; empty if there is none
}

// Lines returns the results of reading the sources, comparing the sentences with them, and checking the signature.
func (v *reportView) Lines() []reportLine {
	line := func(name string, counts []countedBadge, none string) reportLine {
		if len(counts) == 0 {
			return reportLine{Kind: badgeNone, Name: name, Text: none}
		}
		return reportLine{Kind: worstOf(counts), Name: name, Counts: counts, At: "sentences"}
	}
	var claims []countedBadge
	for i := range v.Claims {
		claims = countBadge(claims, claimBadge(&v.Claims[i]))
	}
	if n := len(v.Bare); n > 0 {
		claims = append(claims, countedBadge{badge{Kind: badgeBare, Word: "without a source"}, n})
	}
	return []reportLine{
		line("Sources", v.sourced(), "none is quoted"), line("Sentences", claims, "none has a quote"), v.signature(),
	}
}

// sourced counts the results for the sources, once for each quote.
func (v *reportView) sourced() []countedBadge {
	var counts []countedBadge
	for i := range v.Claims {
		for k := range v.Claims[i].Sources {
			counts = countBadge(counts, sourceBadge(v.Claims[i].Sources[k].Result.Status))
		}
	}
	for i := range v.Sources {
		counts = countBadge(counts, sourceBadge(v.Sources[i].Result.Status))
	}
	return counts
}

// signature returns who signed the verified answer, and whether it is unchanged since.
func (v *reportView) signature() reportLine {
	said := reportLine{Kind: badgeNone, Name: "Signature", Text: cmp.Or(v.unsigned, "not signed"), At: "signature"}
	for _, f := range v.Failure {
		if f.Claim == "" && f.Source == "" { // it is not about a quote
			said.Kind, said.Text = badgeBad, incidentBadge(f.Code).Word
			return said
		}
	}
	if len(v.Manifests) == 0 {
		said.At = ""
		return said
	}
	isBound := slices.ContainsFunc(v.Success, func(f verify.Finding) bool { return f.Code == verify.OutputBound })
	m := &v.Manifests[0]
	switch {
	case m.Manifest == nil:
		said.Kind, said.Text = badgeLost, "the published manifest cannot be read"
	case m.Verified:
		if said.Kind = badgeFound; m.Trusted {
			said.Kind = badgeGood
		}
		said.Text = "signed by " + v.site(m.URL)
		if isBound {
			said.Text += ", unchanged since " + published(m.SignedAt)
		}
	case m.KeyID != "":
		said.Kind, said.Text = badgeLost, "signed, but its key could not be read"
	}
	return said
}

// Wrong returns the claims that failed, differ, are denied by a judge, or quote words that a source does not have;
// Right returns the others. Both are among the first maxReported claims.
func (v *reportView) Wrong() []verify.ClaimReport { return v.claims(true) }

// Right is described with [reportView.Wrong].
func (v *reportView) Right() []verify.ClaimReport { return v.claims(false) }

func (v *reportView) claims(wrong bool) []verify.ClaimReport {
	var list []verify.ClaimReport
	for i := range v.Claims[:min(len(v.Claims), maxReported)] {
		c := &v.Claims[i]
		failed := func(s verify.SourceReport) bool { return sourceBadge(s.Result.Status).Kind == badgeBad }
		isWrong := c.Status.DeniesClaim() || claimBadge(c).Kind == badgeBad ||
			slices.ContainsFunc(c.Sources, failed)
		if isWrong == wrong {
			list = append(list, *c)
		}
	}
	return list
}

// MoreClaims returns how many claims are not shown.
func (v *reportView) MoreClaims() int { return max(len(v.Claims)-maxReported, 0) }

// Inner returns the nested reports, down to the depth that is shown.
func (v *reportView) Inner() []*reportView {
	var list []*reportView
	for _, up := range v.Upstream {
		if v.Depth < maxNestedReports {
			list = append(list, &reportView{Report: up, Depth: v.Depth + 1, base: v.base})
		}
	}
	return list
}

// Found returns the findings about the response and its manifests with one of the given counts. Findings about single
// sources are shown with the claims.
func (v *reportView) Found(counts ...verify.Counts) []verify.Finding {
	var list []verify.Finding
	for _, all := range [][]verify.Finding{v.Failure, v.Info} {
		for i := range all {
			f := &all[i]
			// The former is shown with the level, the latter with the sources.
			isSaid := f.Counts != verify.CountFailure &&
				(f.Code == verify.LevelNotMet || f.Code == verify.NothingQuoted)
			if slices.Contains(counts, f.Counts) && f.Claim == "" && !isSaid && len(list) < maxReported {
				list = append(list, all[i])
			}
		}
	}
	return list
}

// levelWords returns the observed and the promised level in a sentence.
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

// reportedSource is a source of a claim.
type reportedSource struct {
	*verify.SourceReport

	Badge             badge
	Title, Site, Open string
	Says              string  // what the badge and the words leave open, in sentences; else empty
	Quoted, Found     []piece // the excerpt, and the words in the source; Found is nil if they are equal
}

func reportedSourceOf(s *verify.SourceReport) reportedSource {
	source := &ibid.Source{URL: s.URL, Title: s.Title}
	v := reportedSource{
		SourceReport: s, Badge: sourceBadge(s.Result.Status), Title: sourceTitle(source), Site: siteOf(source),
		Open: passageURL(source, &ibid.Ref{Quote: s.Excerpt}), Quoted: appendPiece(nil, s.Excerpt, false),
	}
	if v.Badge.Word != wordFound {
		v.Says = strings.TrimSpace(v.Badge.Title + " " + unreadWords(&s.Result))
	}
	switch near := s.Result.Near; {
	case near != nil:
		v.Quoted, v.Found = compareWords(s.Excerpt, near.Text)
		v.Says = "" // the words show it
	case s.Result.Excerpt != s.Excerpt:
		v.Found = appendPiece(nil, s.Result.Excerpt, false)
	}
	return v
}

var (
	// unread are the sentences on why a source could not be read, by reason.
	unread = map[string]string{
		"dns": "Its host name is unknown.", "connect": "Its server does not accept connections.",
		"tls": "Its certificate is not valid.", "timeout": "It did not answer in time.",
		"protocol": "Its server does not speak HTTP.", "redirects": "It redirects too often.",
		"429": "Its server asks for fewer requests.", "5xx": "Its server reported an error.",
		"4xx": "Its server refuses the request.",
	}
	// unfetched are the reasons why an address is not fetched from here, as the rest of a sentence.
	unfetched = map[string]string{
		"network": "its address lies in a private network. The server's operator can allow it.",
		"port":    "only the ports 80 and 443 are.", "scheme": "only http and https are.",
		"userinfo": "its address has a user name or a password.", "zone": "its address has a zone.",
		"downgrade": "it redirects from https to http.", "offline": "you asked to stay offline.",
		"limit": "one verification reads only a limited amount.",
	}
)

// unreadWords returns in a sentence why a source was not read; empty if it was.
func unreadWords(r *verify.SourceResult) string {
	switch why := unread[r.Reason]; {
	case r.Status == verify.Blocked && unfetched[r.Reason] != "":
		return "It was not fetched: " + unfetched[r.Reason]
	case r.Status == verify.Blocked:
		return "The rules of this server do not allow it to be fetched."
	case why == "" && r.Reason != "" && r.Status != verify.VerifiedFromArchive:
		return "The reason is " + r.Reason + "."
	default:
		return why
	}
}

// comparedWords returns how a sentence was compared with its quotes.
func comparedWords(by string) string {
	if strings.HasPrefix(by, "lexical@") {
		return "compared by words"
	}
	return "compared by " + line(by)
}
