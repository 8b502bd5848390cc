package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxVerified is how many bytes may be sent to be verified here. POST /v1/verify takes more.
	maxVerified = 8 << 20
	// maxFields is how many bytes the other fields of the form may have, with what stands between all of them.
	maxFields = 64 << 10
)

// verifyPage is the form, and what was wrong with what was sent last.
type verifyPage struct {
	Off     bool // nothing is verified here
	Base    string
	URL     string
	Text    string
	Trust   string
	Offline bool
	Wrong   string
	Report  *reportView // nil: nothing was verified yet

	Examples []verifyExample
}

// verifyExample is something to verify that is there.
type verifyExample struct{ Kind, Words, Question, URL string }

// examples returns what a demonstration has to verify; none: this is no demonstration.
func (p *Page) examples(ctx context.Context, r *httpx.Request) ([]verifyExample, error) {
	if p.o.Demo == nil {
		return nil, nil
	}
	var all []verifyExample
	for _, one := range []struct{ kind, words, run string }{
		{badgeGood, "An answer whose sources all say it", p.o.Demo.Holds},
		{badgeBad, "An answer whose source changed", p.o.Demo.Changed},
	} {
		id, err := p.finalAnswer(ctx, r.Who.Tenant, one.run)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue
		}
		call, err := p.call(ctx, r.Who.Tenant, id)
		if err != nil {
			return nil, err
		}
		asked, _ := heading(call.Prompt)
		all = append(all, verifyExample{one.kind, one.words, asked, p.baseURL(r) + "/v1/answers/" + id})
	}
	return all, nil
}

// showVerify asks what is to be verified.
func (p *Page) showVerify(ctx context.Context, r *httpx.Request) (*view, error) {
	address, err := askedLong(r.URL.Query().Get("url"))
	if err != nil {
		return nil, err
	}
	body := &verifyPage{Off: !p.o.Verifies, Base: p.baseURL(r), URL: address}
	if body.Examples, err = p.examples(ctx, r); err != nil {
		return nil, err
	}
	return &view{Name: "verify", Title: "Verify an answer", Body: body}, nil
}

// verify verifies what was sent, and shows the report.
func (p *Page) verify(w *httpx.Reply, r *httpx.Request) error {
	if !p.o.Verifies {
		return p.shows("verify", p.showVerify)(w, r)
	}
	body, order, err := p.readVerify(w, r)
	if err != nil {
		return err
	}
	// only now, so that a slow sender does not take a place
	release, ok := p.bounds.verifying.Take(r.Who.Tenant)
	if !ok {
		return busy("Others verify at the moment.")
	}
	defer release()
	body.Base = p.baseURL(r)
	report, err := p.o.API.Verify(r.Context(), r.Who.Tenant, order)
	if err != nil {
		problem := gateway.ProblemOf(err)
		if problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusTooManyRequests {
			return err
		}
		body.Wrong = sentence(strings.TrimPrefix(problem.Detail, "verifying: "))
		return p.show(w, r, &view{Name: "verify", Status: unfit, Title: "Verify", Section: "verify", Body: body})
	}
	body.Report, body.Text = &reportView{Report: report}, ""
	return p.show(w, r, &view{Name: "verify", Title: body.Report.Headline(), Section: "verify", Body: body})
}

// readVerify reads the form.
func (p *Page) readVerify(w *httpx.Reply, r *httpx.Request) (*verifyPage, *api.Verification, error) {
	release, ok := p.bounds.uploads.Take(r.Who.Tenant)
	if !ok {
		return nil, nil, busy("Others send something to be verified at the moment.")
	}
	defer release()
	defer readInTime(w)()
	tooLong := httpx.BadRequest("What was sent cannot be read, is too long, or took too long.",
		"Up to 8 MiB are verified here. POST /v1/verify and `ibid verify` take more.")
	r.Body = http.MaxBytesReader(w, r.Body, maxVerified+maxFields)
	err := r.ParseMultipartForm(maxVerified + maxFields) // so that nothing goes to files
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, nil, tooLong
	}
	address, err := askedLong(strings.TrimSpace(r.PostForm.Get("url")))
	if err != nil {
		return nil, nil, err
	}
	trust, err := askedLong(r.PostForm.Get("trust"))
	if err != nil {
		return nil, nil, err
	}
	body := &verifyPage{
		URL: address, Trust: trust, Offline: r.PostForm.Get("offline") != "", Text: r.PostForm.Get("text"),
	}
	isBetween := func(r rune) bool { return r == ',' || unicode.IsSpace(r) }
	order := &api.Verification{URL: address, Trust: strings.FieldsFunc(trust, isBetween), Offline: body.Offline}
	if order.Text, err = readUpload(r); err != nil {
		return nil, nil, tooLong
	}
	if order.Text == nil && strings.TrimSpace(body.Text) != "" {
		// Browsers send all ends of lines as CRLF. What is copied from a terminal has LF.
		order.Text = []byte(strings.ReplaceAll(body.Text, "\r\n", "\n"))
	}
	return body, order, nil
}

// readUpload returns the file that was sent; nil: none was, or an empty one.
func readUpload(r *httpx.Request) ([]byte, error) {
	file, _, err := r.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil || len(b) == 0 {
		return nil, err
	}
	return b, nil
}

// sentence makes a sentence of what a problem says.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[n:]
	if last, _ := utf8.DecodeLastRuneInString(s); !strings.ContainsRune(".!?}…", last) {
		s += "."
	}
	return s
}

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

	Depth int // how many reports it is in
}

// Badge says what state the report came to.
func (v *reportView) Badge() badge { return stateBadge(v.State) }

// Headline says in a sentence what the report came to.
func (v *reportView) Headline() string {
	failed := 0
	for _, s := range v.Sourced() {
		if s.Kind == badgeBad {
			failed += s.Count
		}
	}
	n := &v.Findings.Claims
	switch {
	case v.State == verify.Invalid && failed == 1:
		return "A source does not say what the answer quotes"
	case v.State == verify.Invalid && failed > 1:
		return strconv.Itoa(failed) + " quotes are not what their sources say"
	case v.State == verify.Invalid:
		return "Something is not what it was said to be"
	case v.State == verify.Pending:
		return "The answer is not published yet"
	case v.State == verify.Unverifiable:
		return "Nothing failed, and not all of it could be looked at"
	case n.Doubtful == 1:
		return "The sources say what is quoted; one claim is doubtful"
	case n.Doubtful > 1:
		return "The sources say what is quoted; " + strconv.Itoa(n.Doubtful) + " claims are doubtful"
	}
	return "The sources say what the answer quotes"
}

// Sourced counts what was found out about the sources, each time that one is quoted.
func (v *reportView) Sourced() []countedBadge {
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

// Claimed counts what was found out about the claims, the gravest first.
func (v *reportView) Claimed() []countedBadge {
	n := &v.Findings.Claims
	var counts []countedBadge
	for _, one := range []struct {
		n          int
		kind, word string
	}{
		{n.Failed, badgeBad, badgeOf(aboutClaim, "failed").Word},
		{n.Doubtful, badgeClose, wordDoubtful},
		{n.Supported, badgeGood, wordSupported},
		{n.NotChecked - n.Failed, badgeNone, wordUnchecked},
	} {
		if one.n > 0 {
			counts = append(counts, countedBadge{badge{Kind: one.kind, Word: one.word}, one.n})
		}
	}
	return counts
}

// Wrong returns the claims that failed or are doubtful, or of which a source does not say what is quoted; Right the
// others. Each is as many as are shown.
func (v *reportView) Wrong() []verify.ClaimReport { return v.claims(true) }

// Right is described with [reportView.Wrong].
func (v *reportView) Right() []verify.ClaimReport { return v.claims(false) }

func (v *reportView) claims(wrong bool) []verify.ClaimReport {
	var list []verify.ClaimReport
	for i := range v.Claims[:min(len(v.Claims), maxReported)] {
		c := &v.Claims[i]
		failed := func(s verify.SourceReport) bool { return sourceBadge(s.Result.Status).Kind == badgeBad }
		isWrong := c.Finding == verify.Doubtful || claimBadge(c).Kind == badgeBad ||
			slices.ContainsFunc(c.Sources, failed)
		if isWrong == wrong {
			list = append(list, *c)
		}
	}
	return list
}

// MoreClaims returns how many claims are not shown.
func (v *reportView) MoreClaims() int { return max(len(v.Claims)-maxReported, 0) }

// Inner returns the reports in the report, as deep as they are shown.
func (v *reportView) Inner() []*reportView {
	var list []*reportView
	for _, up := range v.Upstream {
		if v.Depth < maxNestedReports {
			list = append(list, &reportView{up, v.Depth + 1})
		}
	}
	return list
}

// Found returns what was found about the response and its manifests that counts so. What was found about single sources
// stands with the claims.
func (v *reportView) Found(counts ...verify.Counts) []verify.Finding {
	var list []verify.Finding
	for _, all := range [][]verify.Finding{v.Failure, v.Info} {
		for i := range all {
			if slices.Contains(counts, all[i].Counts) && all[i].Claim == "" && len(list) < maxReported {
				list = append(list, all[i])
			}
		}
	}
	return list
}

// levelWords says what level was seen and promised; empty: neither.
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

	Title, Site, Open string
	Why               string  // why it was not read, in a sentence; empty: it was
	Quoted, Found     []piece // the excerpt, and what stands in the source; Found is nil where they are the same
}

func reportedSourceOf(s *verify.SourceReport) reportedSource {
	source := &ibid.Source{URL: s.URL, Title: s.Title}
	v := reportedSource{
		SourceReport: s, Title: sourceTitle(source), Site: siteOf(source), Why: unreadWords(&s.Result),
		Open: passageURL(source, &ibid.Ref{Quote: s.Excerpt}), Quoted: appendPiece(nil, s.Excerpt, false),
	}
	switch near := s.Result.Near; {
	case near != nil:
		v.Quoted, v.Found = compareWords(s.Excerpt, near.Text)
	case s.Result.Excerpt != s.Excerpt:
		v.Found = appendPiece(nil, s.Result.Excerpt, false)
	}
	return v
}

var (
	// unread says by its reason why a source could not be read.
	unread = map[string]string{
		"dns": "Its name is not known.", "connect": "Its server takes no connections.",
		"tls": "Its certificate is not in order.", "timeout": "It did not answer in time.",
		"protocol": "What its server sends is no HTTP.", "redirects": "It redirects too often.",
		"429": "Its server asks for less traffic.", "5xx": "Its server has an error.",
		"4xx": "Its server refuses the request.",
	}
	// unfetched says by its reason why an address is not fetched from here.
	unfetched = map[string]string{
		"network": "its address lies in a private network, and what others write must not make this server read " +
			"there. " +
			"Whoever runs this server can allow a network of theirs.",
		"port": "only the ports 80 and 443 are.", "scheme": "only http and https are.",
		"userinfo": "its address has a user name or a password.", "zone": "its address has a zone.",
		"downgrade": "it redirects from https to http.", "offline": "you asked to stay offline.",
		"limit": "one verification reads only so much.",
	}
)

// unreadWords says why a source was not read; empty: it was.
func unreadWords(r *verify.SourceResult) string {
	switch why := unread[r.Reason]; {
	case r.Status == verify.Blocked && unfetched[r.Reason] != "":
		return "It was not fetched: " + unfetched[r.Reason]
	case r.Status == verify.Blocked:
		return "It was not fetched, by the rules of this server."
	case why == "" && r.Reason != "" && r.Status != verify.VerifiedFromArchive:
		return "The reason is " + r.Reason + "."
	default:
		return why
	}
}
