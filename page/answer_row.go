package page

import (
	"html"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// rows writes the rows of sources: see the beginning of answer_use.go.
func (l *layout) rows(views []sourceView) template.HTML {
	var b strings.Builder
	size := 0
	for i := range views {
		size += 1536 + len(views[i].Excerpt) + len(views[i].Options)
		for _, u := range views[i].uses {
			size += u.size()
		}
	}
	b.Grow(size)
	for i := range views {
		l.row(&b, &views[i])
	}
	return template.HTML(b.String()) //nolint:gosec // row escapes
}

// row writes a row.
func (l *layout) row(b *strings.Builder, v *sourceView) {
	put := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	n := strconv.Itoa(v.Number)
	put(
		`<div class="source" role="listitem" id="`, v.Anchor, "\">\n",
		`<div class="source-head"><span class="n" aria-hidden="true">`, n,
		`</span><span class="tile" aria-hidden="true">`, html.EscapeString(v.Letter), "</span>\n",
		`<div><p class="source-name"><span class="unseen">Source `, n, `: </span>`,
	)
	if v.URL != "" {
		put(
			`<a href="`, html.EscapeString(v.URL), `" rel="noopener noreferrer nofollow"><bdi>`,
			html.EscapeString(v.Title), `</bdi></a>`,
		)
	} else {
		put(`<bdi>`, html.EscapeString(v.Title), `</bdi>`)
	}
	put("</p>\n", `<p class="facts">`)
	for _, name := range [...]string{v.Site, v.Authors, v.Published} {
		if name != "" {
			put("<span><bdi>", html.EscapeString(name), "</bdi></span>")
		}
	}
	if !v.Read.IsZero() {
		put(
			`<span>read <time datetime="`, v.Read.UTC().Format(time.RFC3339), `">`,
			v.Read.UTC().Format("2 January 2006"), `</time></span>`,
		)
	}
	if v.Score.Value != "" {
		put("<span>score ", v.Score.Value, ", ", v.Score.By, "</span>")
	}
	if v.License != "" {
		put("<span><bdi>", html.EscapeString(v.License), "</bdi></span>")
	}
	put(`<span><a class="to-panel" href="`, html.EscapeString(v.Panel), "\">details</a></span></p></div></div>\n")
	if v.Excerpt != "" {
		put(`<p class="quiet">What was sent of it:</p>`, string(v.Excerpt))
	}
	if len(v.uses) > 0 {
		put("<div class=\"uses\">\n")
		for _, u := range v.uses {
			l.use(b, u)
		}
		put("</div>\n")
	}
	if v.Rated != "" || v.Options != "" {
		v.writeForm(put)
	}
	put("</div>\n")
}

// writeForm writes the form for a reader's word on a citation of the source.
func (v *sourceView) writeForm(put func(...string)) {
	put(
		`<form class="rate" method="post" action="/ui/feedback"><input type="hidden" name="answer" value="`,
		html.EscapeString(v.Answer), `">`,
	)
	if v.Options != "" {
		put(`<label>Cited for <select name="citation">`, string(v.Options), `</select></label>`)
	} else {
		put(`<input type="hidden" name="citation" value="`, html.EscapeString(v.Rated), `">`)
	}
	put(
		"\n",
		`<button class="thumb up plain" name="verdict" value="right">Right</button>`,
		"\n",
		`<details><summary class="thumb down">Wrong</summary><div class="wrongs"><label>Note <input name="note" maxlength="500" autocomplete="off"></label>`,
	)
	for _, verdict := range [...]string{store.VerdictNotSaid, store.VerdictWrongSource, store.VerdictOther} {
		put(`<button name="verdict" value="`, verdict, `">`, capital(verdictWord(verdict)), `</button>`)
	}
	put("</div></details></form>\n")
}
