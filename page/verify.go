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
	// maxVerified is how many bytes may be sent to be verified here. POST /v1/verify takes more.
	maxVerified = 8 << 20
	// maxFields is how many bytes the other fields of the form may have, with what stands between all of them.
	maxFields = 64 << 10
)

// verifyPage is a report, or the form with what was wrong with what was sent last.
type verifyPage struct {
	Off     bool // nothing is verified here
	Base    string
	URL     string
	Text    string
	Trust   string
	Offline bool
	Wrong   string
	Report  *reportView // nil: nothing was verified yet

	Heading string      // what the report is on; empty: there is none
	Link    string      // where that is; empty: nowhere
	Tabs    *answerTabs // the pages about it; nil: it is no answer of this server

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

// verify verifies what was sent, and shows the report: that on an answer of this server on its own page.
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
		if _, err = p.verifyOwn(r, own, pins, 0); err != nil {
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
		v.Status = unfit
		return p.show(w, r, v)
	}
	body.Report, body.Heading = &reportView{Report: report, base: body.Base}, "What you sent"
	if order.URL != "" {
		body.Heading, body.Link = "An answer of "+body.Report.site(order.URL), openURL(&ibid.Source{URL: order.URL})
	}
	v.Title, body.URL, body.Text = body.Report.Verdict().Word, "", ""
	return p.show(w, r, v)
}

// report verifies, within the bounds of a tenant. What a demonstration signs is trusted on its page.
func (p *Page) report(r *httpx.Request, order *api.Verification) (*verify.Report, error) {
	release, ok := p.bounds.verifying.Take(r.Who.Tenant)
	if !ok {
		return nil, busy("Others verify at the moment.")
	}
	defer release()
	if _, host, _ := strings.Cut(p.baseURL(r), "://"); p.o.Demo != nil {
		order.Trust = append(order.Trust, host)
	}
	return p.o.API.Verify(r.Context(), r.Who.Tenant, order)
}

// ownAnswer returns the answer of this server whose address alone is to be verified; nil: it is something else.
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

// verifyOwn verifies an answer of this server, which has these pins: as it is published, else what it quotes. What is
// known of a source may be so old.
func (p *Page) verifyOwn(
	r *httpx.Request, call *store.Call, pins []store.Pin, age time.Duration,
) (*reportView, error) {
	published, err := p.manifestOf(r.Context(), r.Who.Tenant, call)
	if err != nil {
		return nil, err
	}
	v := &reportView{
		base: p.baseURL(r), unsigned: "not published, so nobody signed it",
		Bare: bareSentences(call.Answer, p.weighedWith(r.Context(), call, pins)),
	}
	if published != nil && published.Digest != "" {
		order := &api.Verification{URL: servedURL(v.base, call.AnswerID), MaxAge: int64(age / time.Second)}
		if r.Who.Token != "" { // the answer itself is not for everybody
			order.URL = v.base + published.URL
		}
		if v.Report, err = p.report(r, order); err != nil || v.Unread == nil {
			return v, err
		}
		v.unsigned = "signed, not checked: what was published cannot be read from here"
	}
	order := &api.Verification{MaxAge: int64(age / time.Second)}
	if order.Text, err = call.Answer.Document(nil).JSON(); err != nil {
		return nil, err
	}
	v.Report, err = p.report(r, order)
	return v, err
}

// verification shows the report on an answer of this server, of what is known of its sources since they were read last.
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
	v := &view{Name: "verify", Title: "Verification: " + body.Heading, Section: "conversations", Body: body}
	switch {
	case body.Off:
	case r.Who.Token != "" && !r.Who.May(store.ScopeVerify):
		body.URL, body.Wrong = "", "To have an answer verified, a token needs the scope verify. Yours has not."
	default:
		pins, err := p.o.Store.AnswerPins(r.Context(), r.Who.Tenant, call.AnswerID)
		if err != nil {
			return err
		}
		if body.Report, err = p.verifyOwn(r, call, pins, readAgo(pins)); err != nil {
			problem := gateway.ProblemOf(err)
			body.Report, body.Wrong, v.Status = nil, sentence(problem.Detail), problem.Status
		}
	}
	return p.show(w, r, v)
}

// reportFor is how long what was found about sources is good for of which no other check is known.
const reportFor = 15 * time.Minute

// readAgo returns how long ago a source of an answer was read again last, by its pins: what is older may not be so any
// more.
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
	return min(time.Since(last)+2*time.Second, 24*time.Hour) // it is rounded to seconds, and verifying takes some
}

// unreadableWords says why a report has nothing; empty: it has something.
func unreadableWords(r *verify.Report) string {
	const code = verify.HeaderMissing
	switch e := r.Unread; {
	case e == nil && slices.ContainsFunc(r.Info, func(f verify.Finding) bool { return f.Code == code }):
		return "What is there names no sources that could be verified: it has no Citation-Source header."
	case e == nil:
		return ""
	case e.Kind == snapshot.Gone:
		return "There is no answer at this address (" + strconv.Itoa(e.Status) + ")."
	case e.Kind == snapshot.AccessDenied:
		return "This address may not be read by everybody (" + strconv.Itoa(e.Status) + ")."
	case e.Kind == snapshot.TooLarge:
		return "What is there is too large for an answer."
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
