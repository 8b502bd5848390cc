package page

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
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
}

// showVerify asks what is to be verified.
func (p *Page) showVerify(w http.ResponseWriter, r *request) error {
	address, err := named(r.URL.Query().Get("url"))
	if err != nil {
		return err
	}
	body := &verifyPage{Off: !p.o.Verifies, Base: p.baseURL(r), URL: address}
	return p.page(w, r, "verify", &view{Title: "Verify", Section: "verify", Body: body})
}

// verify verifies what was sent, and shows the report.
func (p *Page) verify(w http.ResponseWriter, r *request) error {
	if !p.o.Verifies {
		return p.showVerify(w, r)
	}
	body, order, err := p.readVerify(w, r)
	if err != nil {
		return err
	}
	// only now: who sends slowly takes nobody's place
	release, ok := p.bounds.verifying.take(r.who.Tenant, maxVerifying)
	if !ok {
		return busy("Others verify at the moment.")
	}
	defer release()
	body.Base = p.baseURL(r)
	report, err := p.o.API.Verify(r.Context(), r.who.Tenant, order)
	if err != nil {
		problem := gateway.ProblemOf(err)
		if problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusTooManyRequests {
			return err
		}
		body.Wrong = sentence(strings.TrimPrefix(problem.Detail, "verifying: "))
		return p.show(
			w, r,
			&shown{
				name:   "verify",
				status: http.StatusUnprocessableEntity,
				view:   &view{Title: "Verify", Section: "verify", Body: body},
			},
		)
	}
	body.Report, body.Text = newReport(report, 0), ""
	return p.page(w, r, "verify", &view{Title: "Verified: " + body.Report.Word, Section: "verify", Body: body})
}

// readVerify reads the form.
func (p *Page) readVerify(w http.ResponseWriter, r *request) (*verifyPage, *api.Verification, error) {
	release, ok := p.bounds.uploads.take(r.who.Tenant, maxUploads)
	if !ok {
		return nil, nil, busy("Others send something to be verified at the moment.")
	}
	defer release()
	defer readInTime(w)()
	tooLong := badRequest("What was sent cannot be read, is too long, or took too long.",
		"Up to 8 MiB are verified here. POST /v1/verify and `ibid verify` take more.")
	r.Body = http.MaxBytesReader(w, r.Body, maxVerified+maxFields)
	err := r.ParseMultipartForm(maxVerified + maxFields) // so that nothing goes to files
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, nil, tooLong
	}
	address, err := named(strings.TrimSpace(r.PostForm.Get("url")))
	if err != nil {
		return nil, nil, err
	}
	trust, err := named(r.PostForm.Get("trust"))
	if err != nil {
		return nil, nil, err
	}
	body := &verifyPage{
		URL:     address,
		Trust:   trust,
		Offline: r.PostForm.Get("offline") != "",
		Text:    r.PostForm.Get("text"),
	}
	order := &api.Verification{URL: body.URL, Trust: trusted(body.Trust), Offline: body.Offline}
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
func readUpload(r *request) ([]byte, error) {
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

// trusted reads a list of hosts and ids of keys.
func trusted(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// sentence makes a sentence of what a problem says.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	first, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[n:]
	if !strings.ContainsAny(s[len(s)-1:], ".!?}…") {
		s += "."
	}
	return s
}
