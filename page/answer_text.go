package page

import (
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxMarked is how many citations a stretch of text tells that it rests on. More than that many claims over the
	// same words mark nothing.
	maxMarked = 16
	// maxLabel is how many characters of a name a chip shows.
	maxLabel = 40
)

// layout is one answer on its way to its template.
type layout struct {
	call    *store.Call
	answer  *ibid.Answer
	prefix  string
	numbers []int          // by index of Answer.Sources
	cited   []bool         // likewise
	index   map[string]int // of sources, by id
	ids     []string       // of citations, as they stand in attributes
	names   []naming       // by index of Answer.Sources
	places  []int          // by citation: which marker it is the first time in, from 1; 0: in none
	marks   int            // markers written so far
	quoted  int            // bytes of quotes laid out so far
	views   *template.Template
	badges  map[badge]string
	said    *sayings // nil: nothing
	mute    bool     // its reader may not judge it
}

// naming is what a source is called, and where it is.
type naming struct {
	title, site string
	address     address
}

func newLayout(views *template.Template, call *store.Call, o *answerOptions) *layout {
	a := call.Answer
	l := &layout{
		call:   call,
		answer: a,
		prefix: o.prefix,
		said:   o.said,
		mute:   o.mute,
		views:  views,
		badges: map[badge]string{},
		numbers: make(
			[]int, len(a.Sources),
		),
		cited: make([]bool, len(a.Sources)),
		index: make(map[string]int, len(a.Sources)),
		names: make(
			[]naming, len(a.Sources),
		),
		ids:    make([]string, len(a.Citations)),
		places: make([]int, len(a.Citations)),
	}
	for i := len(a.Sources) - 1; i >= 0; i-- {
		s := &a.Sources[i]
		l.index[s.ID] = i
		l.names[i] = naming{sourceTitle(s), siteOf(s), addressOf(s)}
	}
	for i := range a.Citations {
		l.ids[i] = html.EscapeString(token(a.Citations[i].ID))
	}
	return l
}

// token returns an id as one of the words of an attribute that lists such.
func token(id string) string {
	if !strings.ContainsFunc(id, unicode.IsSpace) {
		return id
	}
	return strings.Join(strings.Fields(id), "_")
}

// number numbers the sources as the answer's document does.
func (l *layout) number(numbering *ibid.Numbering) {
	doc := l.answer.Document(&ibid.DocumentOptions{Bare: true, Numbering: numbering})
	for i := range doc.Sources {
		l.numbers[i], l.cited[i] = doc.Sources[i].Index, doc.Sources[i].Cited
	}
}

// text renders the answer's text with its chips, and with marks around what is cited. Code that is too wide can be
// scrolled by keyboard.
func (l *layout) text(numbering *ibid.Numbering) template.HTML {
	text := l.answer.Render(&ibid.RenderOptions{
		Style: ibid.StyleHTML, IDPrefix: l.prefix, Numbering: numbering, Marker: l.chip, Cited: l.mark,
	})
	return template.HTML(
		strings.ReplaceAll(text, "<pre>", `<pre tabindex="0">`),
	) //nolint:gosec // ibid makes HTML safe, chips are escaped
}

// mark returns the tags around words that are cited.
func (l *layout) mark(citations []int) (before, after string) {
	var b strings.Builder
	b.WriteString(`<mark class="claim" data-cites="`)
	for i, c := range citations[:min(len(citations), maxMarked)] {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l.ids[c])
	}
	b.WriteString(`">`)
	return b.String(), "</mark>"
}

// chip writes a marker: a link to the first source's row, in the element that makes a card of it. The element's
// attributes say which citations and rows it is about.
func (l *layout) chip(m ibid.Marker) string {
	l.marks++
	var b, rows strings.Builder
	b.WriteString(`<ibid-cite id="` + l.prefix + "m-" + strconv.Itoa(l.marks) + `" data-cites="`)
	space := ""
	for i := range m.Items {
		for _, c := range m.Items[i].Citations {
			if l.places[c] == 0 {
				l.places[c] = l.marks
			} else if l.places[c] == l.marks {
				continue // of two sources
			}
			b.WriteString(space + l.ids[c])
			space = " "
		}
		if i > 0 {
			rows.WriteByte(' ')
		}
		rows.WriteString(strconv.Itoa(m.Items[i].Number))
	}
	first := &m.Items[0]
	name, place := l.label(first)
	b.WriteString(
		`" data-n="` + rows.String() + `"><a class="chip" href="#` + l.prefix + "s-" + strconv.Itoa(
			first.Number,
		) + `"><bdi>` + html.EscapeString(
			name,
		) + `</bdi>`,
	)
	if place != "" {
		b.WriteString(` <span>` + html.EscapeString(place) + `</span>`)
	}
	if more := len(m.Items) - 1; more > 0 {
		b.WriteString(` <span class="more">+` + strconv.Itoa(more) + `</span>`)
	}
	b.WriteString(`</a></ibid-cite>`)
	return b.String()
}

// label returns what a chip says of a source: its site, or its name with the page.
func (l *layout) label(it *ibid.MarkerItem) (name, place string) {
	names := &l.names[l.index[it.Source.ID]]
	name = shortName(names.site, names.title)
	for _, c := range it.Citations {
		for _, ref := range l.answer.Citations[c].Refs {
			if ref.Source == it.Source.ID && pageOf(ref.Locator) > 0 {
				return cut(name, maxLabel), pages(ref.Locator)
			}
		}
	}
	return cut(name, maxLabel), ""
}

// pages returns the pages of a locator as people write them; empty: it names none.
func pages(loc *ibid.Locator) string {
	first := pageOf(loc)
	if first <= 0 {
		return ""
	}
	if n := len(loc.Pages); n > 1 && loc.Pages[n-1] > first {
		return "pp. " + strconv.Itoa(first) + "–" + strconv.Itoa(loc.Pages[n-1])
	}
	return "p. " + strconv.Itoa(first)
}
