package page

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

const (
	// maxShownQuotes is how many bytes of quotes a list of sources shows; after that, only the beginnings of quotes.
	maxShownQuotes = 512 << 10
)

// sourceView is a source as a row shows it: see templates/parts/source.html.
type sourceView struct {
	*ibid.Source

	Answer  string // the answer's id
	Prefix  string // of the ids on the page
	Number  int
	Cited   bool
	N       int // its place among the answer's sources, from 1
	Title   string
	Site    string
	Letter  string
	Open    string     // where it can be opened; empty if nowhere
	Excerpt *quoteView // what was sent of it, if no citation quotes it; else nil
	Uses    []*useView // what citations take from it
	// Standing is the gravest of its citations; the zero value if no citation names it.
	Standing standing
	Active   bool // it is the one that is open beside the text at first
}

// IsWrong reports whether a citation of it is wrong or differs, so that its row is open.
func (v *sourceView) IsWrong() bool { return v.Standing.wrongClass() != "" }

// useView is what citations take from one place of a source: citations that say the same of it share one use.
type useView struct {
	Source     string // the id of a source that is missing; else empty
	Cites      string // the ids of the citations, as written in an attribute
	Quote      *quoteView
	Place      string
	Confidence string
	Check      template.HTML // the badge of its citations' standing, as on their chips
	Support    template.HTML // the badge of a checker's result that the standing does not already give; else empty
	Same       bool          // its standing is the source's, which is shown above it, or nothing is known
	Inferred   bool          // a program found the citation, after the fact
	Back       string        // the id of the first chip in the text; empty if there is none
	Open       string        // where the source can be opened at these words; empty if nowhere
	Said       *verdictView
	Judge      string        // where a reader can give feedback on it; empty if nowhere
	Diff       template.HTML // from the quote to what the source says now; empty if equal or unknown
	Now        string        // where the source can be opened at what it says now; empty if nowhere
	Saved      *savedLink    // the copy that has the quote; nil if none is known
	Doubt      badge         // why the quote does not support the claim; zero if nobody says so
	Found      bool          // the words were found in the source: the answer quotes none
	Given      bool          // what the answer was given of the source is shown above it

	Differs bool // words of the quote that are not those of the claim are marked

	quote *quote // nil if nothing is quoted
	word  string // of the standing
}

// Cites returns the ids of all citations of the source, as written in an attribute.
func (v *sourceView) Cites() string {
	all := make([]string, 0, len(v.Uses))
	for _, u := range v.Uses {
		all = append(all, u.Cites)
	}
	return strings.Join(all, " ")
}

// Says reports whether there is something to show about the use besides its words.
func (u *useView) Says() bool {
	return u.Place != "" || u.Found || u.Quote == nil && !u.Given || u.Confidence != "" || !u.Same || u.Support != "" ||
		u.Inferred || u.Back == ""
}

// savedLink is where a kept copy of a source is shown.
type savedLink struct {
	URL string
	On  time.Time
}

// verdictView is the last feedback on a citation.
type verdictView struct {
	verdict

	URL string // where all feedback on it is shown
}

// sourceView lays out the i-th source.
func (l *layout) sourceView(i int, row *ibid.DocumentSource) *sourceView {
	s := &l.answer.Sources[i]
	return &sourceView{
		Source: s, Answer: l.call.AnswerID, Prefix: l.prefix, Number: row.Index, Cited: row.Cited, N: i + 1,
		Title: sourceTitle(s), Site: siteOf(s), Letter: letterOf(s),
		Open: openURL(s),
	}
}

// list lays out the sources by number, cited and uncited ones apart, and the citations whose sources are missing.
func (l *layout) list() (cited, uncited []*sourceView, lost []*useView) {
	lost = l.addUses()
	for _, v := range l.sources {
		for _, u := range v.Uses {
			u.finish()
			u.Same = u.word == v.Standing.Word || u.word == wordNoQuote // which its line shows
		}
		quoted := slices.ContainsFunc(v.Uses, func(u *useView) bool { return u.quote != nil })
		if !quoted && strings.TrimSpace(v.Content) != "" {
			v.Excerpt = new(l.newQuote(v.Content).view())
			for _, u := range v.Uses {
				u.Given = true
			}
		}
		if v.Cited {
			cited = append(cited, v)
		} else {
			uncited = append(uncited, v)
		}
	}
	byNumber := func(a, b *sourceView) int { return cmp.Compare(a.Number, b.Number) }
	slices.SortStableFunc(cited, byNumber)
	slices.SortStableFunc(uncited, byNumber)
	activate(cited)
	return cited, uncited, lost
}

// activate opens the first of the gravest sources.
func activate(cited []*sourceView) {
	if len(cited) == 0 {
		return
	}
	at := cited[0]
	for _, v := range cited[1:] {
		if v.Standing.rank() < at.Standing.rank() && v.Standing.wrongClass() != "" {
			at = v
		}
	}
	at.Active = true
}

// useKey is what all citations of one use have in common.
type useKey struct {
	source                                     int
	quote, place, confidence, standing, labels string
	inferred                                   bool
}

// addUses adds to the sources what citations take from them, in order, and returns the uses of missing sources.
func (l *layout) addUses() (lost []*useView) {
	known := make(map[useKey]*useView, len(l.answer.Citations))
	for i := range l.answer.Citations {
		c := &l.answer.Citations[i]
		claim := claimOf(l.answer, c)
		for k := range c.Refs {
			ref := &c.Refs[k]
			at, ok := l.index[ref.Source]
			key := useKey{
				source: at, quote: l.wordsOf(c, ref), place: placeWords(nil, ref.Locator),
				confidence: score(ref.Confidence), inferred: c.Origin == ibid.OriginInferred,
			}
			key.standing = l.standings[i].Word
			if l.standings[i].isDoubt() {
				key.standing += l.standings[i].Title
			}
			if c.Support != nil {
				key.labels = c.Support.Label
			}
			if !ok {
				u := l.useView(i, ref, &key, claim)
				u.Source = line(ref.Source)
				u.finish()
				lost = append(lost, u)
				continue
			}
			source := l.sources[at]
			source.Standing.worsen(&l.standings[i])
			if u := known[key]; u != nil {
				l.addCitation(u, i, claim)
			} else {
				u = l.useView(i, ref, &key, claim)
				u.Open = passageURL(source.Source, ref)
				l.addChange(u, source, c)
				known[key] = u
				source.Uses = append(source.Uses, u)
			}
		}
	}
	return lost
}

// wordsOf returns what a citation quotes of a source, else the words found in it for the citation.
func (l *layout) wordsOf(c *ibid.Citation, ref *ibid.Ref) string {
	at, ok := l.index[ref.Source]
	if strings.TrimSpace(ref.Quote) != "" || l.trust == nil || !ok {
		return ref.Quote
	}
	return l.trust.found[c.ID][cleanAddress(l.answer.Sources[at].URL)].text
}

// useView lays out what one citation takes from a source.
func (l *layout) useView(citation int, ref *ibid.Ref, key *useKey, claim string) *useView {
	c := &l.answer.Citations[citation]
	u := &useView{
		Cites:      l.ids[citation],
		Place:      key.place,
		Confidence: key.confidence,
		Check:      l.badge(l.standings[citation].badge),
		Back:       l.back(citation),
		Inferred:   key.inferred,
		Said:       l.lastVerdict(citation),
		word:       l.standings[citation].Word,
	}
	if s := &l.standings[citation]; s.isDoubt() {
		u.Doubt = s.badge
	}
	if b := supportBadge(c.Support); b.Word != wordSupported && b.Kind != badgeClose { // the standing has these
		u.Support = l.badge(b)
	}
	if !l.readOnly && !l.live {
		u.Judge = feedbackURL(l.call.AnswerID, c.ID)
	}
	if strings.TrimSpace(key.quote) != "" {
		u.Found = key.quote != ref.Quote
		u.quote = l.newQuote(key.quote)
		u.quote.differs = l.differing(citation)
		u.quote.compare(l.ids[citation], claim)
		u.Differs = u.quote.differs != ""
	}
	return u
}

// differing returns the words of a citation's quotes that the claim differs from; empty if there are none.
func (l *layout) differing(citation int) string {
	claim := reportOf(l.weighed.claims, citation)
	if claim == nil || l.standings[citation].Word != wordDiffers || len(claim.Differs) == 0 {
		return ""
	}
	return claim.Differs[0].Excerpt
}

// addCitation adds another citation to those of a use.
func (l *layout) addCitation(u *useView, citation int, claim string) {
	if id := l.ids[citation]; !strings.HasSuffix(" "+u.Cites, " "+id) {
		if u.quote != nil {
			u.quote.compare(id, claim)
		}
		u.Cites += " " + id
	}
	u.Back = cmp.Or(u.Back, l.back(citation))
	u.Said = cmp.Or(u.Said, l.lastVerdict(citation))
}

// addChange adds how a source differs from what a citation quotes of it, and links to both.
func (l *layout) addChange(u *useView, source *sourceView, c *ibid.Citation) {
	if l.trust == nil {
		return
	}
	address := cleanAddress(source.URL)
	for k := range l.trust.pins[c.ID] {
		pin := &l.trust.pins[c.ID][k]
		if pin.URL != address {
			continue
		}
		u.Saved = l.savedCopy(source.N - 1)
		if change := changeOf(pin); change != nil {
			u.Diff = change.html()
			u.Now = passageURL(source.Source, &ibid.Ref{Quote: change.near})
		}
	}
}

// savedCopy returns the copy of the source at an index that has the cited words; nil if none is known.
func (l *layout) savedCopy(at int) *savedLink {
	if l.trust == nil || l.call.AnswerID == "" {
		return nil
	}
	saved := l.trust.saved[cleanAddress(l.answer.Sources[at].URL)]
	if saved.Hash == "" {
		return nil
	}
	return &savedLink{copyURL(l.call.AnswerID, at+1, saved.Hash), saved.Read}
}

// finish lays out the quote, after all claims were compared with it.
func (u *useView) finish() {
	if u.quote != nil {
		u.Quote = new(u.quote.view())
	}
}

// newQuote returns a quote, or only its beginning once the list of sources has shown enough.
func (l *layout) newQuote(s string) *quote {
	most := maxShownQuote
	if l.quoted >= maxShownQuotes {
		most = shortQuote
	}
	q := newQuote(s, most)
	l.quoted += len(q.text)
	return q
}

// back returns the id of the first chip of a citation; empty if it has none.
func (l *layout) back(citation int) string {
	if l.places[citation] == nil {
		return ""
	}
	return l.prefix + "m-" + strconv.Itoa(l.places[citation].shown().n)
}

// lastVerdict returns the last feedback on a citation; nil if there is none.
func (l *layout) lastVerdict(citation int) *verdictView {
	if l.feedback == nil {
		return nil
	}
	id := l.answer.Citations[citation].ID
	v, ok := l.feedback.last[id]
	if !ok {
		return nil
	}
	return &verdictView{v, feedbackURL(l.call.AnswerID, id)}
}
