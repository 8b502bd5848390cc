package page

import (
	"context"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
)

// maxCopyText is the number of bytes of a kept copy's text that are shown.
const maxCopyText = 256 << 10

// copyBody is the content of the page of a kept copy.
type copyBody struct {
	Title  string
	Answer string // where the answer is
	Panel  string // where the source is shown
	Hash   string
	Read   time.Time
	Text   template.HTML // with the quoted words marked; empty if it cannot be read
	Why    string        // why there is no text; else empty
	Found  int           // how many quotes it has
	Cut    bool          // the text is longer than shown
}

// showCopy shows the text of a kept copy of a source, with the answer's quotes of it marked.
func (p *Page) showCopy(ctx context.Context, r *httpx.Request) (*view, error) {
	call, err := p.call(ctx, r.Who.Tenant, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	n := pathNumber(r, len(call.Answer.Sources))
	if n == 0 {
		return nil, errNotFound
	}
	s := &call.Answer.Sources[n-1]
	version, err := p.readCopy(ctx, r.Who.Tenant, r.PathValue("hash"))
	if err != nil {
		return nil, err
	}
	body := &copyBody{
		Title: sourceTitle(s), Answer: answerURL(call.AnswerID), Panel: panelURL(call.AnswerID, n), Hash: version.Hash,
		Read: version.FetchedAt,
	}
	v := &view{Name: "copy", Title: body.Title, Body: body}
	read, _, err := p.bounds.texts.Of(&version.Snapshot)
	if err != nil {
		body.Why = "Its text cannot be read."
		return v, nil //nolint:nilerr // the page says so
	}
	o := &panel{p: p, tenant: r.Who.Tenant, call: call, url: cleanAddress(s.URL), body: &panelBody{Source: s, N: n}}
	pins, err := p.o.Store.AnswerPins(ctx, r.Who.Tenant, call.AnswerID)
	if err != nil {
		return nil, err
	}
	o.collect(pins)
	body.setText(&sourceText{content: read.Content, blocks: read.Blocks}, o.body.Quotes)
	return v, nil
}

// setText marks quotes in a text.
func (b *copyBody) setText(t *sourceText, quotes []*panelQuote) {
	end := len(text.Head(t.content, maxCopyText))
	b.Cut = end < len(t.content)
	var found []snapshot.Match
	for _, q := range quotes {
		if m, ok := snapshot.Find(t.content, &q.quote); ok && !m.Cut {
			m.Start = len(text.Runes(t.content, m.Start))
			m.End = m.Start + len(text.Runes(t.content[m.Start:], m.End-m.Start))
			found = append(found, m)
		}
	}
	b.Found = len(found)
	slices.SortFunc(found, func(x, y snapshot.Match) int { return x.Start - y.Start })
	var out strings.Builder
	at := 0
	for _, m := range found {
		if m.Start < at || m.End > end {
			continue
		}
		out.WriteString(template.HTMLEscapeString(t.piece(at, m.Start)))
		id := ""
		if at == 0 {
			id = ` id="quote"`
		}
		out.WriteString("<mark" + id + ">" + template.HTMLEscapeString(t.piece(m.Start, m.End)) + "</mark>")
		at = m.End
	}
	out.WriteString(template.HTMLEscapeString(t.piece(at, end)))
	b.Text = trustedHTML(out.String())
}

// displayPolicy is the content security policy of HTML that a provider requires to be shown as sent: it may have its
// own styles and pictures, and may open links in new tabs. It loads and runs nothing, and is not of our origin.
const displayPolicy = "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src " +
	"'unsafe-inline'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// display serves the n-th, from 1, of what a provider requires to be shown with an answer, such as Google's search
// suggestions, as it was sent, for a frame: <iframe sandbox="allow-popups allow-popups-to-escape-sandbox">.
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
	// A base before the HTML opens its links in a new tab, not in the frame, and changes nothing that is shown.
	const before = "<!doctype html><meta charset=\"utf-8\"><base target=\"_blank\">"
	body := append([]byte(before), withoutLinks(call.Answer.Display[n-1].HTML)...)
	writeBody(w, r, &response{status: http.StatusOK, mediaType: mediaHTML, body: body})
	return nil
}

// linkOrMeta matches the beginning of a tag of two elements that show nothing: link, some kinds of which open a
// connection whatever the policy says, and meta, which can set headers.
var linkOrMeta = regexp.MustCompile(`(?i)<(link|meta)`)

// withoutLinks renames these elements to wbr, which has no end tag either. Everything that looks like one is renamed,
// wherever it is, so that nothing depends on how a browser parses tags.
func withoutLinks(sent string) string { return linkOrMeta.ReplaceAllLiteralString(sent, "<wbr") }
