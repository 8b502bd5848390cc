package page

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

// sourceView is a source as templates/parts/source.html shows it. Names are on one line; what is empty is not known.
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
	Excerpt   *quoteView // what was sent of it, where no citation quotes it
	Uses      []useView
	Panel     string // where more of it is shown
	Answer    string // the id of the answer
	Rated     []ratedView
}

// useView is what citations take from one place of a source: citations that say the same of it are one use.
type useView struct {
	Cites      string // their ids, with spaces between
	Quote      *quoteView
	Locator    string
	Confidence fact
	Check      badge
	Support    badge
	URL        string // where the source can be opened at these words
	Back       string // the id of the first place in the text; empty: it has none
	Inferred   bool   // a program found the citation, after the fact
	Source     string // the id of a source that is not there
}

// fact is a number and who says it.
type fact struct{ Value, By string }

// ratedView is a citation that a reader can judge.
type ratedView struct{ ID, Words string }

const (
	// maxRated is how many citations of one source a reader can choose from to judge one. Cards judge them all.
	maxRated = 50
	// maxRatedWords is how many characters of its claim stand for a citation there.
	maxRatedWords = 60
)

// list lays out the sources, those that are cited apart, and the citations that name none of them.
func (l *layout) list() (cited, uncited []sourceView, lost []useView) {
	views := make([]sourceView, len(l.answer.Sources))
	for i := range views {
		views[i] = l.source(i)
	}
	uses := map[useKey]*useView{}
	order := make([][]*useView, len(views))
	for i := range l.answer.Citations {
		words := (*claimWords)(nil)
		for k := range l.answer.Citations[i].Refs {
			ref := &l.answer.Citations[i].Refs[k]
			at, ok := l.index[ref.Source]
			if !ok {
				lost = append(lost, *l.use(i, ref, nil))
				continue
			}
			key := l.useKey(i, at, ref)
			if u := uses[key]; u != nil {
				u.add(l.ids[i])
				u.Back = cmp.Or(u.Back, l.back(i))
			} else {
				if words == nil {
					words = newClaimWords(l.claim(i))
				}
				u = l.use(i, ref, words)
				u.URL = l.names[at].address.at(ref)
				uses[key] = u
				order[at] = append(order[at], u)
			}
			views[at].rate(l.answer.Citations[i].ID, l.claim(i))
		}
	}
	for i := range views {
		views[i].Uses = make([]useView, len(order[i]))
		for k, u := range order[i] {
			views[i].Uses[k] = *u
		}
		views[i].excerpt(&l.answer.Sources[i])
		if l.cited[i] {
			cited = append(cited, views[i])
		} else {
			uncited = append(uncited, views[i])
		}
	}
	byNumber := func(a, b sourceView) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortStableFunc(cited, byNumber)
	slices.SortStableFunc(uncited, byNumber)
	return cited, uncited, lost
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
		source: source, quote: ref.Quote, locator: locatorWords(ref.Locator), confidence: number(ref.Confidence).Value,
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

// use lays out what one citation takes from a source.
func (l *layout) use(citation int, ref *ibid.Ref, words *claimWords) *useView {
	c := &l.answer.Citations[citation]
	u := &useView{
		Cites: l.ids[citation], Locator: locatorWords(ref.Locator), Confidence: number(ref.Confidence), Check: quoteBadge(c.Verification),
		Support: supportBadge(c.Support), Back: l.back(citation), Inferred: c.Origin == ibid.OriginInferred,
	}
	if words == nil {
		u.Source, words = oneLine(ref.Source), newClaimWords(l.claim(citation))
	}
	if strings.TrimSpace(ref.Quote) != "" {
		q := words.show(ref.Quote)
		u.Quote = &q
	}
	u.Confidence.By = "as the provider gave it"
	if u.Inferred {
		u.Confidence.By = "of the program that found the citation"
	}
	return u
}

func (u *useView) add(id string) {
	if !strings.HasSuffix(" "+u.Cites, " "+id) {
		u.Cites += " " + id
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
	c := &l.answer.Citations[citation]
	s := c.Claim
	if s.Len() <= 0 {
		s = c.Span
	}
	if s.Start < 0 || s.End > len(l.answer.Text) || s.Start > s.End {
		return ""
	}
	return l.answer.Text[s.Start:s.End]
}

// source lays out what is known of a source.
func (l *layout) source(i int) sourceView {
	s, names := &l.answer.Sources[i], &l.names[i]
	v := sourceView{
		Number: l.numbers[i], Anchor: l.prefix + "s-" + strconv.Itoa(l.numbers[i]), Letter: letterIn(names.site, names.title),
		Title: names.title, URL: names.address.whole, Site: names.site, Authors: oneLine(strings.Join(s.Authors, ", ")), Published: published(s.PublishedAt), Read: s.RetrievedAt,
		License: oneLine(s.License), Score: number(s.Score), Answer: l.call.AnswerID,
		Panel: "/ui/answers/" + url.PathEscape(l.call.AnswerID) + "/sources/" + strconv.Itoa(i+1),
	}
	if v.Site == v.Title {
		v.Site = ""
	}
	switch s.ScoreOrigin {
	case ibid.ScoreProvider:
		v.Score.By = "given by the provider"
	case ibid.ScoreRetriever:
		v.Score.By = "given by the retriever"
	case ibid.ScoreRank:
		v.Score.By = "made of its rank"
	case ibid.ScoreOverlap:
		v.Score.By = "made of the words in common"
	default:
		v.Score.By = "nobody says by whom"
	}
	return v
}

// excerpt shows what was sent of a source where nothing of it is quoted.
func (v *sourceView) excerpt(s *ibid.Source) {
	for i := range v.Uses {
		if v.Uses[i].Quote != nil {
			return
		}
	}
	if strings.TrimSpace(s.Content) != "" {
		q := newClaimWords("").show(s.Content)
		v.Excerpt = &q
	}
}

// rate offers a citation to be judged.
func (v *sourceView) rate(id, claim string) {
	if n := len(v.Rated); n >= maxRated || n > 0 && v.Rated[n-1].ID == id {
		return
	}
	v.Rated = append(v.Rated, ratedView{id, cut(oneLine(claim), maxRatedWords)})
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

// number returns a score with two decimals; none where it is none.
func number(f *float64) fact {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return fact{}
	}
	return fact{Value: strconv.FormatFloat(math.Round(*f*100)/100, 'g', 6, 64)}
}

// published returns a date as it is written on pages; what is no date as it is.
func published(s string) string {
	for _, form := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC().Format("2 January 2006")
		}
	}
	return cut(oneLine(s), maxLabel)
}
