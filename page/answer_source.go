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
	// maxOpenUses is how many uses and excerpts it shows before a reader opens a source. Of a page with thousands of
	// citations, they would be nearly all.
	maxOpenUses = 50
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
	Open    string     // where it can be opened; empty if nowhere
	Excerpt *quoteView // what was sent of it, if no citation quotes it; else nil
	Uses    []*useView // what citations take from it, as far as it is shown
	// Standing is the gravest of its citations; the zero value if no citation names it.
	Standing standing
	Active   bool // it is the one that is open beside the text at first
	Left     int  // how many of its uses, and its excerpt, are not laid out: see [layout.fold]

	all []*useView
}

// IsFolded reports whether nothing of the source is shown but the source itself.
func (v *sourceView) IsFolded() bool { return v.Left > 0 && len(v.Uses) == 0 && v.Excerpt == nil }

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

	key       useKey
	citations []int     // each once
	ref       *ibid.Ref // of the first one
}

// Cites returns the ids of all citations of the source, as written in an attribute.
func (v *sourceView) Cites() string {
	all := make([]string, 0, len(v.all))
	for _, u := range v.all {
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

// Letter returns the letter on the source's tile.
func (v *sourceView) Letter() string { return letterOf(v.Source) }

// Row returns a row of a folded source as HTML: its number, which leads to what else is known of it, its title and its
// site. A template would take most of the time of a page that has thousands.
func (v *sourceView) Row() template.HTML {
	var b strings.Builder
	write := func(parts ...string) {
		for _, s := range parts {
			b.WriteString(s)
		}
	}
	escape, number := template.HTMLEscapeString, strconv.Itoa(v.Number)
	warned := ""
	if v.IsWrong() {
		warned = " warned"
	}
	write(
		`<div class="source folded`, warned, `" role="listitem" id="`, v.Prefix, "s-", number,
		`"><p class="source-name"><a class="n" href="`, escape(panelURL(v.Answer, v.N)), `">`, number, "</a> ",
	)
	if v.Open != "" {
		write(`<a href="`, escape(v.Open), `" rel="nofollow"><bdi>`, escape(v.Title), "</bdi></a>")
	} else {
		write("<bdi>", escape(v.Title), "</bdi>")
	}
	if v.Site != "" && v.Site != v.Title {
		write(" <bdi>", escape(v.Site), "</bdi>")
	}
	if s := &v.Standing; v.Cited && s.Word != "" && s.Word != wordUnchecked {
		write(` <span class="standing `, s.Kind, `">`, escape(s.Word), "</span>")
	}
	if !v.RetrievedAt.IsZero() {
		write(` <span class="read">read `, day(v.RetrievedAt), "</span>")
	}
	write("</p></div>")
	return trustedHTML(b.String())
}

// sourceView lays out the i-th source.
func (l *layout) sourceView(i int, row *ibid.DocumentSource) *sourceView {
	s := &l.answer.Sources[i]
	return &sourceView{
		Source: s, Answer: l.call.AnswerID, Prefix: l.prefix, Number: row.Index, Cited: row.Cited, N: i + 1,
		Title: sourceTitle(s), Site: siteOf(s), Open: openURL(s),
	}
}

// list lays out the sources by number, cited and uncited ones apart, and the citations whose sources are missing.
func (l *layout) list() (cited, uncited []*sourceView, lost []*useView) {
	lost = l.addUses()
	for _, v := range l.sources {
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
	l.fold(cited, uncited)
	return cited, uncited, lost
}

// fold lays out the first uses of the sources, beginning with the sources that have something wrong. The rest is laid
// out when a reader opens its source.
func (l *layout) fold(lists ...[]*sourceView) {
	rest := maxOpenUses
	for _, first := range [...]bool{true, false} {
		for _, v := range slices.Concat(lists...) {
			if (v.Active || v.IsWrong()) != first {
				continue
			}
			n := len(v.all)
			hasQuote := func(u *useView) bool { return strings.TrimSpace(u.key.quote) != "" }
			hasExcerpt := !slices.ContainsFunc(v.all, hasQuote) && strings.TrimSpace(v.Content) != ""
			if hasExcerpt {
				n++
			}
			shown := min(n, rest)
			switch l.unfolded {
			case 0:
				rest -= shown
			case v.N:
				shown = n
			default:
				shown = 0
			}
			v.Left = n - shown
			if hasExcerpt && shown > 0 {
				v.Excerpt = new(l.newQuote(v.Content).view())
				shown--
			}
			v.Uses = v.all[:min(shown, len(v.all))]
			for _, u := range v.Uses {
				u.Given = v.Excerpt != nil
				l.layOutUse(u, v)
			}
		}
	}
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
				u := &useView{key: key, ref: ref, citations: []int{i}, Cites: l.ids[i], Source: line(ref.Source)}
				l.layOutUse(u, nil)
				lost = append(lost, u)
				continue
			}
			source := l.sources[at]
			source.Standing.worsen(&l.standings[i])
			u := known[key]
			switch {
			case u == nil:
				u = &useView{key: key, ref: ref, citations: []int{i}, Cites: l.ids[i]}
				known[key] = u
				source.all = append(source.all, u)
			case u.citations[len(u.citations)-1] != i: // it may name the same place twice
				u.citations = append(u.citations, i)
				u.Cites += " " + l.ids[i]
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

// layOutUse lays out what citations take from a source; a nil source is missing.
func (l *layout) layOutUse(u *useView, source *sourceView) {
	first := u.citations[0]
	c, s := &l.answer.Citations[first], &l.standings[first]
	u.Place, u.Confidence, u.Inferred = u.key.place, u.key.confidence, u.key.inferred
	u.Check = l.badge(s.badge)
	if s.isDoubt() {
		u.Doubt = s.badge
	}
	if b := supportBadge(c.Support); b.Word != wordSupported && b.Kind != badgeClose { // the standing has these
		u.Support = l.badge(b)
	}
	if !l.readOnly && !l.live {
		u.Judge = feedbackURL(l.call.AnswerID, c.ID)
	}
	for _, i := range u.citations {
		u.Back = cmp.Or(u.Back, l.back(i))
		u.Said = cmp.Or(u.Said, l.lastVerdict(i))
	}
	if strings.TrimSpace(u.key.quote) != "" {
		u.Found = u.key.quote != u.ref.Quote
		quote := l.newQuote(u.key.quote)
		quote.differs = l.differing(first)
		for _, i := range u.citations {
			quote.compare(l.ids[i], claimOf(l.answer, &l.answer.Citations[i]))
		}
		u.Differs = quote.differs != ""
		u.Quote = new(quote.view())
	}
	if source != nil {
		u.Same = s.Word == source.Standing.Word || s.Word == wordNoQuote // which its line shows
		u.Open = passageURL(source.Source, u.ref)
		l.addChange(u, source, c)
	}
}

// differing returns the words of a citation's quotes that the claim differs from; empty if there are none.
func (l *layout) differing(citation int) string {
	claim := reportOf(l.weighed.claims, citation)
	if claim == nil || l.standings[citation].Word != wordDiffers || len(claim.Differs) == 0 {
		return ""
	}
	return claim.Differs[0].Excerpt
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
