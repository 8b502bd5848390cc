package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// A page can have thousands of uses, rows, chips and marks. They are written here, in answer_row.go and in
// answer_text.go: a template takes ten times as long for each. Everything else of an answer is in templates/parts.

// useView is what citations take from one place of a source: citations that say the same of it are one use.
type useView struct {
	cites      string // their ids as they stand in an attribute, with spaces between
	quote      markedQuote
	claims     int // with how many more it was compared
	locator    string
	confidence string
	check      badge
	support    badge
	url        string // where the source can be opened at these words; empty: nowhere
	back       string // the id of the first chip in the text; empty: there is none
	inferred   bool   // a program found the citation, after the fact
	source     string // the id of a source that is not there
	said       string // what was said of it last, as HTML; empty: nothing
}

// use writes a use. None of it is a list: browsers count the items of all lists of a page anew whenever some arrive,
// which with thousands takes many seconds. The badges are those that quoteBadge and supportBadge have for it.
func (l *layout) use(b *strings.Builder, u *useView) {
	put := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	put(`<div class="use" data-cites="`, u.cites, `">`)
	if u.source != "" {
		put(`<p class="quiet">source <bdi>`, html.EscapeString(u.source), `</bdi></p>`)
	}
	quoted := u.quote.text != ""
	if quoted {
		writeQuote(b, &u.quote)
	}
	put(`<p class="facts">`)
	if u.locator != "" {
		put("<span><bdi>", html.EscapeString(u.locator), "</bdi></span>")
	}
	if !quoted {
		put("<span>no words quoted</span>")
	}
	if u.confidence != "" {
		put("<span>confidence ", u.confidence, "</span>")
	}
	put("<span>", l.badge(u.check), "</span>")
	if u.support.Word != "" {
		put("<span>", l.badge(u.support), "</span>")
	}
	if u.inferred {
		put("<span>found afterwards</span>")
	}
	if u.back != "" {
		put(`<span class="back"><a href="#`, u.back, `">in the text</a></span>`)
	} else {
		put("<span>for no certain place in the text</span>")
	}
	if u.url != "" {
		open := "open"
		if quoted {
			open = "open at the passage"
		}
		put(
			`<span><a class="passage" href="`, html.EscapeString(u.url), `" rel="noopener noreferrer nofollow">`, open,
			`</a></span>`,
		)
	}
	if u.said != "" {
		put("<span>", u.said, "</span>")
	}
	put("</p></div>\n")
}

// size returns about how many bytes a use takes: rather more than less.
func (u *useView) size() int {
	const rest = 768
	quote := len(u.quote.text) + u.quote.short
	return rest + len(u.cites) + len(u.url) + len(u.said) + quote + quote/8 + len("<mark></mark>")*len(u.quote.hits)
}

// writeQuote writes a source's words; a long quote opens from its beginning.
func writeQuote(b *strings.Builder, q *markedQuote) {
	b.WriteString(`<blockquote dir="auto">`)
	if q.short > 0 {
		b.WriteString(`<details class="long"><summary><span class="short">`)
		q.writeTo(b, q.short)
		b.WriteString(`…</span> <span class="more">more</span></summary>`)
		q.write(b)
		b.WriteString(`</details>`)
	} else {
		q.write(b)
	}
	b.WriteString(`</blockquote>`)
}

// saidOf writes what was said last of a citation, and leads to all of it; empty: nothing was.
func (l *layout) saidOf(citation int) string {
	if l.said == nil {
		return ""
	}
	id := l.answer.Citations[citation].ID
	v, ok := l.said.last[id]
	if !ok {
		return ""
	}
	by := "somebody"
	if v.By != "" {
		by = "<bdi>" + html.EscapeString(oneLine(v.By)) + "</bdi>"
	}
	return `<a href="` + html.EscapeString(
		feedbackURL(l.call.AnswerID, id),
	) + `">` + by + ": " + verdictWord(
		v.Word,
	) + `</a>`
}

// badge returns a badge as its template shows it. Many citations have the same.
func (l *layout) badge(one badge) string {
	if s, ok := l.badges[one]; ok {
		return s
	}
	var b strings.Builder
	if t := l.views; t == nil || t.ExecuteTemplate(&b, "badge", one) != nil {
		b.Reset()
		b.WriteString(html.EscapeString(one.Word))
	}
	l.badges[one] = b.String()
	return b.String()
}

// options returns the citations that a reader can choose from to judge one.
func options(rated []ratedView) template.HTML {
	if len(rated) < 2 {
		return ""
	}
	var b strings.Builder
	for _, r := range rated {
		fmt.Fprintf(&b, `<option value="%s">%s</option>`, html.EscapeString(r.id), html.EscapeString(r.words))
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}
