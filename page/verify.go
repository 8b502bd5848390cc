package page

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

const (
	// maxVerified is the maximum size in bytes of an upload to verify here. POST /v1/verify accepts more.
	maxVerified = 8 << 20
	// maxFields is the maximum size in bytes of the form's other fields and of the multipart boundaries.
	maxFields = 64 << 10
)

// verifyPage is a report, or the form with what was wrong with the last input.
type verifyPage struct {
	Off     bool // nothing is verified here
	Base    string
	URL     string
	Text    string
	Trust   string
	Offline bool
	Wrong   string
	Report  *reportView // nil if nothing was verified yet

	Progress *verifyProgress // nil if none is running

	Heading string      // what the report is about; empty if there is none
	Link    string      // its address; empty if it has none
	Tabs    *answerTabs // the pages about it; nil if it is not an answer of this server

	Examples []verifyExample
}

// verifyExample is an answer offered for verification.
type verifyExample struct{ Kind, Words, Question, URL string }

// examples returns the answers that a demonstration offers for verification; none if this is not a demonstration.
func (p *Page) examples(ctx context.Context, r *httpx.Request) ([]verifyExample, error) {
	if p.o.Demo == nil {
		return nil, nil
	}
	var all []verifyExample
	for _, one := range []struct{ kind, words, run string }{
		{badgeGood, "An answer whose sources all still agree", p.o.Demo.Holds},
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
		all = append(all, verifyExample{one.kind, one.words, asked, verificationURL(id)})
	}
	return all, nil
}

// showVerify shows the form.
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

// verify verifies the input and shows the report. For an answer of this server it redirects to the report's own page.
func (p *Page) verify(w *httpx.Reply, r *httpx.Request) error {
	if !p.o.Verifies {
		return p.shows("verify", p.showVerify)(w, r)
	}
	body, order, err := p.readVerify(w, r)
	if err != nil {
		return err
	}
	if own := p.ownAnswer(r, order); own != nil {
		pins, err := p.o.Store.AnswerPins(r.Context(), r.Who.Tenant, own.AnswerID)
		if err != nil {
			return err
		}
		if _, _, err = p.verifyOwn(r, own, pins, 0, true); err != nil {
			return err
		}
		http.Redirect(w, r.Request, verificationURL(own.AnswerID), http.StatusSeeOther)
		return nil
	}
	body.Base = p.baseURL(r)
	report, err := p.report(r, order)
	v := &view{Name: "verify", Title: "Verify an answer", Section: "verify", Body: body}
	switch problem := gateway.ProblemOf(err); {
	case err == nil:
		body.Wrong = unreadableWords(report)
	case problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusTooManyRequests:
		return err
	default:
		body.Wrong = sentence(strings.TrimPrefix(problem.Detail, "verifying: "))
	}
	if body.Wrong != "" {
		if body.Examples, err = p.examples(r.Context(), r); err != nil {
			return err
		}
		v.Status = statusRejected
		return p.show(w, r, v)
	}
	body.Report, body.Heading = &reportView{Report: report, base: body.Base}, "What you sent"
	if order.URL != "" {
		body.Heading, body.Link = "An answer of "+body.Report.site(order.URL), openURL(&ibid.Source{URL: order.URL})
	}
	v.Title, body.URL, body.Text = body.Report.Verdict().Word, "", ""
	return p.show(w, r, v)
}

// report verifies, within the limits of a tenant. On the page of a demonstration, its own signatures are trusted.
func (p *Page) report(r *httpx.Request, order *api.Verification) (*verify.Report, error) {
	release, ok := p.bounds.verifying.Take(r.Who.Tenant)
	if !ok {
		return nil, busy("Other verifications are running at the moment.")
	}
	defer release()
	if _, host, _ := strings.Cut(p.baseURL(r), "://"); p.o.Demo != nil {
		order.Trust = append(order.Trust, host)
	}
	return p.o.API.Verify(r.Context(), r.Who.Tenant, order)
}

// ownAnswer returns the answer of this server if its address alone is to be verified; else nil.
func (p *Page) ownAnswer(r *httpx.Request, order *api.Verification) *store.Call {
	path, ok := strings.CutPrefix(order.URL, p.baseURL(r))
	if !ok || order.Text != nil || order.Offline || len(order.Trust) > 0 {
		return nil
	}
	id := path[strings.LastIndexByte(path, '/')+1:]
	if path != servedURL("", id) && path != answerURL(id) && !strings.HasPrefix(path, "/runs/") {
		return nil
	}
	call, err := p.call(r.Context(), r.Who.Tenant, id)
	if err != nil {
		return nil
	}
	return call
}

// reportOwn verifies an answer of this server, which has these pins: its published manifest if there is one, else its
// quotes. Known results for sources may be up to age old.
func (p *Page) reportOwn(
	r *httpx.Request, call *store.Call, pins []store.Pin, age time.Duration, progress func(verify.Progress),
) (*reportView, error) {
	published, err := p.manifestOf(r.Context(), r.Who.Tenant, call)
	if err != nil {
		return nil, err
	}
	v := &reportView{
		base: p.baseURL(r), unsigned: "not published, so not signed",
		Bare: bareSentences(call.Answer, p.weighedWith(r.Context(), call, pins)),
	}
	if published != nil && published.Digest != "" {
		order := &api.Verification{
			URL: servedURL(v.base, call.AnswerID), MaxAge: int64(age / time.Second), Progress: progress,
		}
		if r.Who.Token != "" { // the answer itself is not public
			order.URL = v.base + published.URL
		}
		if v.Report, err = p.report(r, order); err != nil || v.Unread == nil {
			return v, err
		}
		v.unsigned = "signed, not checked: the published answer cannot be read from here"
	}
	order := &api.Verification{MaxAge: int64(age / time.Second), Progress: progress}
	if order.Text, err = call.Answer.Document(nil).JSON(); err != nil {
		return nil, err
	}
	v.Report, err = p.report(r, order)
	return v, err
}

// verification shows the report on an answer of this server, using the results since its sources were last read.
func (p *Page) verification(w *httpx.Reply, r *httpx.Request) error {
	call, err := p.callOf(r.Context(), r)
	if err != nil {
		return err
	}
	body := &verifyPage{
		Off: !p.o.Verifies, URL: servedURL(p.baseURL(r), call.AnswerID), Link: answerURL(call.AnswerID),
		Tabs: tabsOf(call.AnswerID, call.Run, p.stepsIn(r.Context(), r.Who.Tenant, call.Run), "verification"),
	}
	body.Heading, _ = heading(call.Prompt)
	v := &view{Name: "verify", Title: "Verification: " + body.Heading, Section: "answers", Body: body}
	switch {
	case body.Off:
	case r.Who.Token != "" && !r.Who.May(store.ScopeVerify):
		body.URL, body.Wrong = "", "Verifying needs the scope verify, which your token does not have."
	default:
		pins, err := p.o.Store.AnswerPins(r.Context(), r.Who.Tenant, call.AnswerID)
		if err != nil {
			return err
		}
		if body.Report, body.Progress, err = p.verifyOwn(r, call, pins, readAgo(pins), false); err != nil {
			problem := gateway.ProblemOf(err)
			body.Report, body.Wrong, v.Status = nil, sentence(problem.Detail), problem.Status
		}
		if body.Progress != nil { // with scripts or without
			w.Header().Set("Refresh", strconv.Itoa(progressAgain))
		}
	}
	return p.show(w, r, v)
}

// reportFor is how old results for sources may be if no other check is known.
const reportFor = 15 * time.Minute

// readAgo returns how long ago a source of an answer was last read again, by its pins: older results may be outdated.
func readAgo(pins []store.Pin) time.Duration {
	var last time.Time
	for i := range pins {
		if pins[i].CheckedAt.After(last) {
			last = pins[i].CheckedAt
		}
	}
	if last.IsZero() {
		return reportFor
	}
	return min(time.Since(last)+2*time.Second, 24*time.Hour) // it is rounded to seconds, and verifying takes a moment
}

// unreadableWords returns why a report is empty; empty if it is not.
func unreadableWords(r *verify.Report) string {
	const code = verify.HeaderMissing
	switch e := r.Unread; {
	case e == nil && slices.ContainsFunc(r.Info, func(f verify.Finding) bool { return f.Code == code }):
		return "The response names no sources to verify: it has no Citation-Source header."
	case e == nil:
		return ""
	case e.Kind == snapshot.Gone:
		return "There is no answer at this address (" + strconv.Itoa(e.Status) + ")."
	case e.Kind == snapshot.AccessDenied:
		return "This address is not public (" + strconv.Itoa(e.Status) + ")."
	case e.Kind == snapshot.TooLarge:
		return "The response is too large for an answer."
	case e.Reason == "dns":
		return "No such host: " + text.Host(e.URL) + "."
	default:
		return unreadWords(&verify.SourceResult{Status: verify.Status(e.Kind), Reason: e.Reason})
	}
}

// readVerify reads the form.
func (p *Page) readVerify(w *httpx.Reply, r *httpx.Request) (*verifyPage, *api.Verification, error) {
	release, ok := p.bounds.uploads.Take(r.Who.Tenant)
	if !ok {
		return nil, nil, busy("Other uploads are being received at the moment.")
	}
	defer release()
	defer readInTime(w)()
	tooLong := httpx.BadRequest("The upload cannot be read, is too large, or took too long.",
		"Uploads may have up to 8 MiB. POST /v1/verify and `ibid verify` accept more.")
	r.Body = http.MaxBytesReader(w, r.Body, maxVerified+maxFields)
	err := r.ParseMultipartForm(maxVerified + maxFields) // so that nothing is written to files
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
		// Browsers send all line endings as CRLF, but text copied from a terminal has LF.
		order.Text = []byte(strings.ReplaceAll(body.Text, "\r\n", "\n"))
	}
	return body, order, nil
}

// readUpload returns the uploaded file; nil if there is none, or if it is empty.
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

// sentence makes a sentence of a problem's detail.
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
