package page

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// sourceView is a source as a row shows it. Names are on one line; what is empty is not known.
type sourceView struct {
	Number    int
	Anchor    string // the id of its row
	Letter    string
	Title     string
	URL       string // where it can be opened
	Site      string // where it is from; empty too where the title says so
	Authors   string
	Published string
	Read      time.Time
	License   string
	Score     fact
	Excerpt   template.HTML // what was sent of it, where no citation quotes it
	Panel     string        // where more of it is shown
	Answer    string        // the id of the answer
	Rated     string        // the citation that a reader can judge; empty: none, or
	Options   template.HTML // several

	uses  []*useView // what citations take from it
	rated []ratedView
}

// fact is a number and who says it.
type fact struct{ Value, By string }

// ratedView is a citation that a reader can judge.
type ratedView struct{ id, words string }

const (
	// maxRated is how many citations of one source a reader can choose from to judge one. Cards judge them all.
	maxRated = 50
	// maxRatedRows is how many sources an answer can have for each to have a form of its own. Of more only the first
	// that is cited has one, which cards take for all: a browser lays out the page anew for each form while it reads
	// it.
	maxRatedRows = 100
	// maxRatedWords is how many characters of its claim stand for a citation there.
	maxRatedWords = 60
)

// list lays out the sources, those that are cited apart, and the citations that name none of them.
func (l *layout) list() (cited, uncited []sourceView, lost template.HTML) {
	views := make([]sourceView, len(l.answer.Sources))
	for i := range views {
		views[i] = l.source(i)
	}
	var b strings.Builder
	uses := l.uses(views, &b)
	lost = template.HTML(b.String()) //nolint:gosec // use escapes
	forms := 0
	cited = make([]sourceView, 0, len(views))
	for i := range views {
		v := &views[i]
		v.uses = uses[i]
		quoted := slices.ContainsFunc(v.uses, func(u *useView) bool { return u.quote.text != "" })
		if !quoted {
			v.Excerpt = l.excerpt(&l.answer.Sources[i])
		}
		if len(v.rated) > 0 && !l.mute && (forms == 0 || len(views) <= maxRatedRows) {
			v.judge()
			forms++
		}
		if l.cited[i] {
			cited = append(cited, *v)
		} else {
			uncited = append(uncited, *v)
		}
	}
	byNumber := func(a, b sourceView) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortStableFunc(cited, byNumber)
	slices.SortStableFunc(uncited, byNumber)
	return cited, uncited, lost
}

// uses returns what citations take from the sources, in their order, and writes those that name none of them.
func (l *layout) uses(views []sourceView, lost *strings.Builder) [][]*useView {
	known := make(map[useKey]*useView, len(l.answer.Citations))
	order := make([][]*useView, len(views))
	words := newClaimWords("")
	for i := range l.answer.Citations {
		set := false
		for k := range l.answer.Citations[i].Refs {
			ref := &l.answer.Citations[i].Refs[k]
			at, ok := l.index[ref.Source]
			key := l.useKey(i, at, ref)
			if u := known[key]; ok && u != nil {
				l.alsoMark(i, u, words)
				set = false // the words may be set anew
				u.add(l.ids[i])
				u.back = cmp.Or(u.back, l.back(i))
				u.said = cmp.Or(u.said, l.saidOf(i))
			} else {
				if !set {
					words.set(l.claim(i))
					set = true
				}
				u = l.useOf(i, ref, words)
				if !ok {
					u.source = oneLine(ref.Source)
					l.use(lost, u)
					continue
				}
				u.url = l.names[at].address.at(ref)
				known[key] = u
				order[at] = append(order[at], u)
			}
			views[at].rate(l.answer.Citations[i].ID, l.claim(i))
		}
	}
	return order
}

// useKey is what is the same in all citations of one use.
type useKey struct {
	source                                   int
	quote, locator, confidence, check, label string
	inferred                                 bool
}

func (l *layout) useKey(citation, source int, ref *ibid.Ref) useKey {
	c := &l.answer.Citations[citation]
	k := useKey{
		source: source, quote: ref.Quote, locator: locatorWords(ref.Locator), confidence: score(ref.Confidence),
		inferred: c.Origin == ibid.OriginInferred,
	}
	if c.Verification != nil {
		k.check = c.Verification.Status
	}
	if c.Support != nil {
		k.label = c.Support.Label
	}
	return k
}

// useOf lays out what one citation takes from a source.
func (l *layout) useOf(citation int, ref *ibid.Ref, words *claimWords) *useView {
	c := &l.answer.Citations[citation]
	u := &useView{
		cites:      l.ids[citation],
		locator:    locatorWords(ref.Locator),
		confidence: score(ref.Confidence),
		check:      quoteBadge(c.Verification),
		support: supportBadge(
			c.Support,
		),
		back:     l.back(citation),
		inferred: c.Origin == ibid.OriginInferred,
		said:     l.saidOf(citation),
	}
	if strings.TrimSpace(ref.Quote) != "" {
		u.quote = l.quote(words, ref.Quote)
	}
	if u.confidence != "" && u.inferred {
		u.confidence += ", by the program that found it"
	} else if u.confidence != "" {
		u.confidence += ", said by the provider"
	}
	return u
}

// alsoMark marks what the claim of another citation of a use shares with its quote. It sets the words.
func (l *layout) alsoMark(citation int, u *useView, words *claimWords) {
	if u.quote.text == "" || u.claims >= maxClaims || strings.HasSuffix(" "+u.cites, " "+l.ids[citation]) {
		return
	}
	words.set(l.claim(citation))
	u.quote.also(words, l.ids[citation], u.cites)
	u.claims++
}

func (u *useView) add(id string) {
	if !strings.HasSuffix(" "+u.cites, " "+id) {
		u.cites += " " + id
	}
}

// back returns the id of the first chip of a citation; empty: it has none.
func (l *layout) back(citation int) string {
	if l.places[citation] == 0 {
		return ""
	}
	return l.prefix + "m-" + strconv.Itoa(l.places[citation])
}

// claim returns the words that a citation stands for.
func (l *layout) claim(citation int) string {
	return claimOf(l.answer, &l.answer.Citations[citation])
}

// source lays out what is known of a source.
func (l *layout) source(i int) sourceView {
	s, names := &l.answer.Sources[i], &l.names[i]
	v := sourceView{
		Number:    l.numbers[i],
		Anchor:    l.prefix + "s-" + strconv.Itoa(l.numbers[i]),
		Letter:    letterIn(shortName(names.site, names.title), names.title),
		Title:     names.title,
		URL:       names.address.whole,
		Site:      names.site,
		Authors:   oneLine(strings.Join(s.Authors, ", ")),
		Published: published(s.PublishedAt),
		Read:      s.RetrievedAt,
		License: oneLine(
			s.License,
		),
		Score:  fact{score(s.Score), cmp.Or(originWords(s.ScoreOrigin), "nobody says by whom")},
		Answer: l.call.AnswerID,
		Panel:  "/ui/answers/" + url.PathEscape(l.call.AnswerID) + "/sources/" + strconv.Itoa(i+1),
	}
	if v.Site == v.Title {
		v.Site = ""
	}
	return v
}

// excerpt shows what was sent of a source.
func (l *layout) excerpt(s *ibid.Source) template.HTML {
	if strings.TrimSpace(s.Content) == "" {
		return ""
	}
	var b strings.Builder
	q := l.quote(newClaimWords(""), s.Content)
	writeQuote(&b, &q)
	return template.HTML(b.String()) //nolint:gosec // writeQuote escapes
}

// judge lays out the choice of what can be judged.
func (v *sourceView) judge() {
	if v.Options = options(v.rated); len(v.rated) == 1 {
		v.Rated = v.rated[0].id
	}
}

// rate offers a citation to be judged.
func (v *sourceView) rate(id, claim string) {
	if n := len(v.rated); n >= maxRated || n > 0 && v.rated[n-1].id == id {
		return
	}
	v.rated = append(v.rated, ratedView{id, cut(oneLine(claim), maxRatedWords)})
}

// locatorWords returns a place in a source as people say it; empty: none is known.
func locatorWords(l *ibid.Locator) string {
	if l == nil {
		return ""
	}
	var out []string
	if p := pages(l); p != "" {
		out = append(out, p)
	}
	if l.Chunk != "" {
		out = append(out, "chunk "+cut(oneLine(l.Chunk), maxLabel))
	}
	if l.Block != nil {
		out = append(out, "block "+span(*l.Block+1, l.BlockEnd))
	}
	if l.CharStart != nil {
		out = append(out, "characters "+span(*l.CharStart, l.CharEnd))
	}
	return strings.Join(out, ", ")
}

// span returns a range of which the end may be unknown, or no more than the start.
func span(from int, to *int) string {
	if to == nil || *to <= from {
		return strconv.Itoa(from)
	}
	return strconv.Itoa(from) + "–" + strconv.Itoa(*to)
}

// published returns a date as it is written on pages; what is no date as it is.
func published(s string) string {
	for _, form := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return day(t)
		}
	}
	return cut(oneLine(s), maxLabel)
}
