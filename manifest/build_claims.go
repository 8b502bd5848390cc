package manifest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// claim is one claim of a manifest that is being made.
type claim struct {
	Claim
	raw  ibid.Span // of the answer's text
	pins []*pin
	over int // sources beyond maxClaimSources
}

// claimSpan returns the stretch of the answer that a citation stands for; false: there is none.
func claimSpan(a *ibid.Answer, c *ibid.Citation) (ibid.Span, bool) {
	if !c.Placed() {
		return ibid.Span{}, false
	}
	s := c.Claim
	if s.Len() == 0 {
		s = c.Span
	}
	return s, s.Len() > 0 && s.Start >= 0 && s.End <= len(a.Text)
}

// findClaims lists the claims of the answer in the order of the text, each with what its citations say.
func (w *building) findClaims() {
	byRaw := map[ibid.Span]*claim{}
	for i := range w.answer.Citations {
		c := &w.answer.Citations[i]
		s, ok := claimSpan(w.answer, c)
		if !ok {
			w.leftOut.Claims++
			continue
		}
		at := byRaw[s]
		if at == nil {
			at = &claim{raw: s}
			byRaw[at.raw] = at
			w.claims = append(w.claims, at)
		}
		for k := range c.Refs {
			ref := &c.Refs[k]
			at.score(ref.Confidence)
			s := w.sources.ofAnswer[ref.Source]
			if s == nil || s.dropped {
				at.over++
				continue
			}
			at.refer(&pin{
				source: s, quote: ref.Quote, origin: cmp.Or(w.QuotedBy, OriginProvider),
				replace: w.QuotedBy == OriginPublisher,
			})
		}
	}
	slices.SortStableFunc(w.claims, func(x, y *claim) int {
		return cmp.Or(cmp.Compare(x.raw.Start, y.raw.Start), cmp.Compare(x.raw.End, y.raw.End))
	})
	w.claims = slices.DeleteFunc(w.claims, func(c *claim) bool {
		if len(c.pins) == 0 { // its sources are not there, or were left out
			w.leftOut.Claims++
		}
		return len(c.pins) == 0
	})
	if over := len(w.claims) - maxClaims; over > 0 {
		w.leftOut.Claims += over
		w.claims = w.claims[:maxClaims]
	}
	w.placeClaims()
	ids := make(map[string]bool, len(w.claims))
	for _, c := range w.claims {
		id := ClaimID(c.Text)
		c.ID = id
		for n := 2; ids[c.ID]; n++ {
			c.ID = id + "-" + strconv.Itoa(n)
		}
		ids[c.ID] = true
		c.Confidence = ConfidenceUnknown
		if c.ConfidenceScore != nil {
			c.Confidence = confidence(*c.ConfidenceScore)
		}
		w.leftOut.ClaimSources += c.over
		c.Steps = w.run.made(c.raw)
	}
}

// score takes a provider's confidence for the claim's, if it is greater.
func (c *claim) score(s *float64) {
	if s != nil && *s >= 0 && *s <= 1 && (c.ConfidenceScore == nil || *s > *c.ConfidenceScore) {
		c.ConfidenceScore = new(*s)
	}
}

// refer adds a source to the claim, once for each quote. That a source is cited says nothing more where it is quoted,
// too.
func (c *claim) refer(more *pin) {
	for _, p := range c.pins {
		if p.source == more.source && (p.quote == more.quote || more.quote == "") {
			return
		}
		if p.source == more.source && p.quote == "" {
			p.quote, p.origin, p.replace = more.quote, more.origin, more.replace
			return
		}
	}
	if len(c.pins) == maxClaimSources {
		c.over++
		return
	}
	c.pins = append(c.pins, more)
}

// placeClaims says where the claims stand in the normalised answer. Claims that have no words of their own go, and
// those of one place become one.
func (w *building) placeClaims() {
	p := newPlacer(w.answer.Text, w.claims)
	list, byPlace := w.claims[:0], map[Range]*claim{}
	for _, c := range w.claims {
		if c.Text, c.Span = p.place(c.raw); c.Text == "" {
			w.leftOut.Claims++
			continue
		}
		if c.Rewritten = c.Span == nil; !c.Rewritten {
			if same := byPlace[*c.Span]; same != nil {
				for _, p := range c.pins {
					same.refer(p)
				}
				same.score(c.ConfidenceScore)
				same.over += c.over
				continue
			}
			byPlace[*c.Span] = c
		}
		list = append(list, c)
	}
	w.claims = list
}

// pinAll finds the excerpts of all claims.
func (w *building) pinAll(ctx context.Context) error {
	var open []*pin
	for _, c := range w.claims {
		for _, p := range c.pins {
			p.ClaimSource, p.claim = p.source.claimSource(), c.Text
			open = append(open, p.findQuote()...)
		}
	}
	if err := inferAll(ctx, &support.Finder{Checker: w.Checker, Texts: w.Texts}, open); err != nil {
		return err
	}
	for _, c := range w.claims {
		c.Sources = make([]ClaimSource, 0, len(c.pins))
		for _, p := range c.pins {
			c.Sources = append(c.Sources, p.ClaimSource)
		}
	}
	return nil
}

// maxRaw is how many bytes of a stretch are read for a claim: as many as maxText code points may have.
const maxRaw = 4 * maxText

// placer finds stretches of a text in its normal form.
type placer struct {
	text, normal string
	at           map[int]int // bytes of text to bytes of normal, for where claims begin
	points       *ibid.Offsets
}

// maxAnew is how often a placer counts anew from the beginning, where normalising joins what stands on both sides of a
// border.
const maxAnew = 16

func newPlacer(text string, claims []*claim) *placer {
	p := &placer{text: text, at: make(map[int]int, len(claims))}
	if len(claims) == 0 {
		return p
	}
	p.normal = snapshot.Normalize(text)
	p.points = ibid.NewOffsets(p.normal)
	borders := make([]int, 0, 2*len(claims)+1)
	for _, c := range claims {
		borders = append(borders, c.raw.Start, c.raw.End)
	}
	slices.Sort(borders)
	p.walk(slices.Compact(append(borders, len(text))))
	return p
}

// walk normalises what stands between the borders, and adds up how far that is in the normal form.
func (p *placer) walk(borders []int) {
	last, pos, anew := 0, 0, 0
	var waiting []int // borders before which nothing but white space has stood since the last words
	for _, border := range borders {
		piece := snapshot.Normalize(p.text[last:border])
		last = border
		if piece == "" {
			waiting = append(waiting, border)
			continue
		}
		if pos > 0 && strings.HasPrefix(p.normal[pos:], " ") {
			pos++ // pieces have no spaces at their ends
		}
		for _, b := range waiting {
			p.at[b] = pos
		}
		waiting = append(waiting[:0], border)
		if strings.HasPrefix(p.normal[pos:], piece) {
			pos += len(piece)
			continue
		}
		if anew++; anew > maxAnew {
			return
		}
		pos = min(len(snapshot.Normalize(p.text[:border])), len(p.normal))
	}
}

// place returns the words of a stretch and where the normal form has them; nil: not as they are.
func (p *placer) place(s ibid.Span) (string, *Range) {
	raw := p.text[s.Start:s.End]
	if len(raw) > maxRaw {
		raw = strings.ToValidUTF8(raw[:maxRaw], "")
	}
	words := snapshot.Normalize(raw)
	exact := words
	if snapshot.Normalize(words) != words {
		// normalising is no projection: what is read again must give the same words
		exact = strings.ToValidUTF8(raw, "\ufffd")
	}
	pos, known := p.at[s.Start]
	if s.Start == 0 {
		pos, known = 0, true
	}
	if words == "" || !known || !strings.HasPrefix(p.normal[pos:], words) {
		return text.Runes(exact, maxText), nil
	}
	start, end := p.points.In(ibid.CodePoint, ibid.Span{Start: pos, End: pos + len(words)})
	if end-start > maxText {
		exact, end = text.Runes(words, maxText), start+maxText
	}
	return exact, &Range{start, end}
}

// Cited says what became of one citation's source in a manifest.
type Cited struct {
	Citation string // ibid.Citation.ID
	Claim    *Claim
	Source   *ClaimSource // of Claim
	Document *Source      // that Source names; nil: the manifest has none of that name
}

// Cited returns what m says of each citation of the answer that it was built of, in their order: a row for each source,
// and for each of its excerpts. What m left out is left out here, too. They point into m.
func (m *Manifest) Cited(a *ibid.Answer) []Cited {
	claims, documents := make(map[claimPlace]*Claim, len(m.Claims)), make(map[string]*Source, len(m.Sources))
	for i := range m.Claims {
		if at := placeOf(m.Claims[i].Text, m.Claims[i].Span); claims[at] == nil {
			claims[at] = &m.Claims[i]
		}
	}
	for i := range m.Sources {
		documents[m.Sources[i].ID] = &m.Sources[i]
	}
	var stretches []*claim
	for i := range a.Citations {
		if s, ok := claimSpan(a, &a.Citations[i]); ok {
			stretches = append(stretches, &claim{raw: s})
		}
	}
	places := newPlacer(a.Text, stretches)
	var list []Cited
	for i := range a.Citations {
		c := &a.Citations[i]
		s, ok := claimSpan(a, c)
		if !ok {
			continue
		}
		claim := claims[placeOf(places.place(s))]
		if claim == nil {
			continue
		}
		for k := range claim.Sources {
			if cs := &claim.Sources[k]; names(a, c, cs.URL) {
				list = append(list, Cited{Citation: c.ID, Claim: claim, Source: cs, Document: documents[cs.Source]})
			}
		}
	}
	return list
}

// claimPlace tells claims apart: the same words may stand in several places.
type claimPlace struct {
	text string
	span Range // zero: the claim is not in the answer as it is
}

func placeOf(text string, span *Range) claimPlace {
	if span == nil {
		return claimPlace{text: text}
	}
	return claimPlace{text, *span}
}

// names reports whether a citation has a source of this address, or of this URN.
func names(a *ibid.Answer, c *ibid.Citation, url string) bool {
	for i := range c.Refs {
		s := a.Source(c.Refs[i].Source)
		if s != nil && (clean(s.URL) == url || clean(s.URL) == "" && urn(s) == url) {
			return true
		}
	}
	return false
}

// Pinner finds the excerpts of citations in snapshots of their sources. The zero value works, and is safe for
// concurrent use if the checker is.
type Pinner struct {
	Texts   *snapshot.Texts // nil: each text is made anew
	Checker support.Checker // for refs without a quote; nil: support.Lexical
}

// Pin finds what the ref of a citation of a rests on in snap, as Build does; see there. Source, the id in a manifest,
// is empty. A nil snap was not read. The error says that ctx ended or the checker could not work.
func (p *Pinner) Pin(
	ctx context.Context, a *ibid.Answer, c *ibid.Citation, ref *ibid.Ref, snap *snapshot.Snapshot,
) (ClaimSource, error) {
	s := &source{given: &ibid.Source{}}
	if given := a.Source(ref.Source); given != nil {
		s.given, s.URL = given, clean(given.URL)
	}
	if s.URL == "" {
		s.URL = urn(s.given)
	}
	claim, _ := claimSpan(a, c)
	said := a.Text[claim.Start:claim.End]
	return p.find(ctx, &pin{source: s, quote: ref.Quote, origin: OriginProvider, claim: said}, snap)
}

// Quote finds words that were quoted of the source at url, by whom origin says, in snap, as Pin does. Where no words
// were quoted, it finds what supports the claim.
func (p *Pinner) Quote(
	ctx context.Context, url, quote, origin, claim string, snap *snapshot.Snapshot,
) (ClaimSource, error) {
	s := &source{given: &ibid.Source{URL: url}, Source: Source{URL: clean(url)}}
	return p.find(ctx, &pin{source: s, quote: quote, origin: origin, claim: claim}, snap)
}

// find reads snap and finds the excerpt of a pin in it.
func (p *Pinner) find(ctx context.Context, pin *pin, snap *snapshot.Snapshot) (ClaimSource, error) {
	s := pin.source
	s.Unavailable = NotRead
	if snap != nil {
		s.Unavailable = ""
		s.read(snap, "")
		s.readText(p.Texts)
		if !snap.FetchedAt.IsZero() {
			s.RetrievedAt = seconds(snap.FetchedAt)
		}
	}
	pin.ClaimSource, pin.claim = s.claimSource(), snapshot.Normalize(pin.claim)
	if err := inferAll(ctx, &support.Finder{Checker: p.Checker, Texts: p.Texts}, pin.findQuote()); err != nil {
		return ClaimSource{}, fmt.Errorf("pinning a citation: %w", err)
	}
	return pin.ClaimSource, nil
}

// pin is one source of a claim while its excerpt is looked for.
type pin struct {
	ClaimSource
	source *source
	quote  string // as it was quoted; empty: nobody did
	origin string // who quoted it
	// a source that was read and does not have the quote is searched for evidence, as if nobody had quoted
	replace bool
	claim   string // what it is to support
}

// claimSource returns what the source of a claim repeats of the source.
func (s *source) claimSource() ClaimSource {
	return ClaimSource{
		Source: s.ID, URL: s.URL, OriginalURL: s.OriginalURL, RetrievedAt: s.RetrievedAt, Hash: s.Hash,
		Relation: RelationSupports, Unavailable: s.Unavailable,
	}
}

// findQuote looks for what was quoted. It returns p if the checker is to look for evidence.
func (p *pin) findQuote() []*pin {
	quote := snapshot.Normalize(p.quote)
	switch text := p.source.text; {
	case snapshot.ShortExcerpt(quote): // also none
		if text == nil {
			p.unavailable(NoText)
			return nil
		}
		return []*pin{p}
	case text == nil:
		p.unavailable(NoText)
		p.show(quote)
	default:
		m, ok := snapshot.Find(text.Content, &snapshot.Quote{Exact: quote})
		if ok {
			p.place(m.Start, m.End, p.origin)
			return nil
		}
		if p.replace {
			return []*pin{p}
		}
		p.unavailable(ExcerptNotFound)
		p.show(quote)
	}
	return nil
}

// unavailable says why something is not there. What is not there of the source comes first.
func (p *pin) unavailable(why string) {
	if p.Unavailable == "" {
		p.Unavailable = why
	}
}

// show publishes a quote that was not found anywhere.
func (p *pin) show(quote string) {
	p.ExcerptHash, p.ExcerptOrigin = snapshot.Hash([]byte(quote)), p.origin
	if utf8.RuneCountInString(quote) > maxExact {
		p.Unavailable = ExcerptTooLong
		return
	}
	p.excerpt(&Excerpt{Exact: quote})
}

func (p *pin) excerpt(e *Excerpt) {
	if !p.source.private {
		p.Excerpt = e
	}
}

// place takes the code points [start, end) of the source's text for the excerpt.
func (p *pin) place(start, end int, origin string) {
	end = min(end, start+maxExact)
	content := p.source.text.Content
	at, ok := p.source.places.Span(ibid.CodePoint, start, end)
	exact := content[at.Start:at.End]
	switch {
	case !ok: // a finder that says otherwise than it may
		p.unavailable(NoEvidence)
		return
	case snapshot.ShortExcerpt(exact):
		p.unavailable(ExcerptTooShort)
		return
	}
	p.ExcerptHash, p.ExcerptOrigin = snapshot.Hash([]byte(exact)), origin
	p.excerpt(&Excerpt{
		Exact: exact, Prefix: text.LastRunes(content[:at.Start], around), Suffix: text.Runes(content[at.End:], around),
	})
	if p.source.text.Profile != TextProfile {
		p.unavailable(AdvisoryText)
		return
	}
	p.ExcerptOffset = &Range{start, end}
}

// around is how many code points of what stands before and after an excerpt go with it.
const around = 32

// inferAll lets the checker look for the evidence of claims that nobody quoted, all at once: it reads each text once.
func inferAll(ctx context.Context, finder *support.Finder, pins []*pin) error {
	if len(pins) == 0 {
		return ctx.Err()
	}
	list := make([]support.Sought, len(pins))
	for i, p := range pins {
		list[i] = support.Sought{Claim: p.claim, Text: p.source.text}
	}
	found, err := finder.Find(ctx, list)
	if err != nil {
		return fmt.Errorf("looking for evidence: %w", err)
	}
	for i, p := range pins {
		label, evidence := found[i].Verdict.Label, found[i].Evidence
		start, end := p.source.places.In(ibid.CodePoint, evidence)
		if label != support.Supported && label != support.Partial || evidence.Len() == 0 || start < 0 || start == end {
			p.unavailable(NoEvidence)
			continue
		}
		p.place(start, end, OriginInferred) // the best one
	}
	return nil
}
