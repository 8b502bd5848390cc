package page

import (
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/internal/httpx"
)

// displayPolicy is the content security policy of what a provider demands to be shown as it was sent: it may have
// styles and pictures of its own, and may open links in new tabs. It loads nothing and runs nothing, and has no part in
// our origin.
const displayPolicy = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src " +
	"'unsafe-inline'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// display shows the n-th, from 1, of what a provider demands to be shown with an answer, such as Google's search
// suggestions, as it was sent. It is for a frame: <iframe sandbox="allow-popups allow-popups-to-escape-sandbox">.
func (p *Page) display(w *httpx.Reply, r *httpx.Request) error {
	call, err := p.callOf(r.Context(), r)
	if err != nil {
		return err
	}
	n := pathNumber(r, len(call.Answer.Display))
	if n == 0 {
		return errNotFound
	}
	h := w.Header()
	h.Set("Content-Security-Policy", displayPolicy)
	// A base before what was sent makes its links open beside the page, and not in the frame; it changes nothing of
	// what is shown.
	const before = "<!doctype html><meta charset=\"utf-8\"><base target=\"_blank\">"
	body := append([]byte(before), withoutLinks(call.Answer.Display[n-1].HTML)...)
	writeBody(w, r, &response{status: http.StatusOK, mediaType: mediaHTML, body: body})
	return nil
}

// withoutLinks makes elements that show nothing into others that show nothing: link, of which some kinds open a
// connection whatever the policy says, and meta, which may stand for a header. All that looks like one is changed,
// wherever it stands, so that nobody has to agree with a browser on what is a tag; wbr has no end tag either.
func withoutLinks(sent string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(sent, '<')
		if open < 0 {
			b.WriteString(sent)
			return b.String()
		}
		open++
		b.WriteString(sent[:open])
		sent = sent[open:]
		for _, name := range [...]string{"link", "meta"} {
			if len(sent) >= len(name) && strings.EqualFold(sent[:len(name)], name) {
				b.WriteString("wbr")
				sent = sent[len(name):]
			}
		}
	}
}
