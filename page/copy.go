package page

import (
	"context"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
)

// maxCopyText is how many bytes of the text of a kept copy are shown.
const maxCopyText = 256 << 10

// copyBody is what the page of a kept copy shows.
type copyBody struct {
	Title  string
	Answer string // where the answer is
	Panel  string // where the source is shown
	Hash   string
	Read   time.Time
	Text   template.HTML // with the quoted words marked; empty: it cannot be read
	Why    string        // why there is no text; empty: there is
	Found  int           // how many quotes stand in it
	Cut    bool          // there is more of it
}

// showCopy shows the text of a kept copy of a source, with the words that the answer quotes of it marked.
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
	pins, err := o.pins(ctx)
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
