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
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// claim is one claim of a manifest that is being built.
type claim struct {
	Claim
	raw  ibid.Span // of the answer's text
	pins []*pin
	over int // sources beyond maxClaimSources
	// what a checker said of one of its citations; nil if none did
	judged *ibid.Support
}

// claimSpan returns the span of the answer that a citation is for, and false if there is none.
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

// findClaims lists the claims of the answer in text order, each with the sources of its citations.
func (w *buildState) findClaims() {
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
		at.judged = cmp.Or(at.judged, c.Support)
		for k := range c.Refs {
			ref := &c.Refs[k]
			at.raiseConfidence(ref.Confidence)
			s := w.sources.ofAnswer[ref.Source]
			if s == nil || s.dropped {
				at.over++
				continue
			}
			at.addPin(&pin{
				source: s, quote: ref.Quote, origin: cmp.Or(w.QuotedBy, OriginProvider),
				replace: w.QuotedBy == OriginPublisher,
			})
		}
	}
	slices.SortStableFunc(w.claims, func(x, y *claim) int {
		return cmp.Or(cmp.Compare(x.raw.Start, y.raw.Start), cmp.Compare(x.raw.End, y.raw.End))
	})
	w.claims = slices.DeleteFunc(w.claims, func(c *claim) bool {
		if len(c.pins) == 0 { // its sources do not exist, or were left out
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
		c.setConfidence()
		w.leftOut.ClaimSources += c.over
		c.Steps = w.run.stepsFor(c.raw)
	}
}

// raiseConfidence raises the claim's confidence to that of a provider, if it is higher.
func (c *claim) raiseConfidence(s *float64) {
	if s != nil && *s >= 0 && *s <= 1 && (c.ConfidenceScore == nil || *s > *c.ConfidenceScore) {
		c.ConfidenceScore = new(*s)
	}
}

// setConfidence sets the claim's confidence and its origin: a checker's verdict against the claim, else the provider's
// score, else a verdict for it. How close words are is no confidence, so a verdict gives no score.
func (c *claim) setConfidence() {
	c.Confidence = ConfidenceUnknown
	label := support.Label("")
	if c.judged != nil {
		label = support.Label(c.judged.Label)
	}
	switch {
	case label == support.Differs || label == support.Unsupported || label == support.Contradicted:
		c.Confidence, c.ConfidenceScore, c.ConfidenceOrigin = ConfidenceLow, nil, c.judged.By
	case c.ConfidenceScore != nil:
		c.Confidence, c.ConfidenceOrigin = confidence(*c.ConfidenceScore), OriginProvider
	case label == support.Supported:
		c.Confidence, c.ConfidenceOrigin = ConfidenceHigh, c.judged.By
	}
}

// addPin adds a source to the claim, once for each quote. A reference without a quote adds nothing if the source is
// also quoted.
func (c *claim) addPin(more *pin) {
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

// placeClaims sets the places of the claims in the normalised answer. Claims without words are dropped, and claims with
// the same place are merged.
func (w *buildState) placeClaims() {
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
					same.addPin(p)
				}
				same.raiseConfidence(c.ConfidenceScore)
				same.judged = cmp.Or(same.judged, c.judged)
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
func (w *buildState) pinAll(ctx context.Context) error {
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

// maxRaw is how many bytes of a span are read for a claim: as many as maxText code points can have.
const maxRaw = 4 * maxText

// placer maps spans of a text to its normalised form.
type placer struct {
	text, normal string
	at           map[int]int // offsets in text to offsets in normal, for the starts of claims
	points       *ibid.Offsets
}

// maxRestarts is how often a placer may normalise again from the beginning, where normalising joins the text on both
// sides of a border.
const maxRestarts = 16

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

// walk normalises the text between the borders and adds up the lengths to find each border's place in the normalised
// form.
func (p *placer) walk(borders []int) {
	last, pos, restarts := 0, 0, 0
	var waiting []int // borders with only white space since the last words
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
		if restarts++; restarts > maxRestarts {
			return
		}
		pos = min(len(snapshot.Normalize(p.text[:border])), len(p.normal))
	}
}

// place returns the words of a span and their place in the normalised form, or nil if they are not there unchanged.
func (p *placer) place(s ibid.Span) (string, *Range) {
	raw := p.text[s.Start:s.End]
	if len(raw) > maxRaw {
		raw = strings.ToValidUTF8(raw[:maxRaw], "")
	}
	words := snapshot.Normalize(raw)
	exact := words
	if snapshot.Normalize(words) != words {
		// normalising is not idempotent, and reading the manifest must give the same words
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

// Cited is a source of one citation as recorded in a manifest.
type Cited struct {
	Citation string // ibid.Citation.ID
	Claim    *Claim
	Source   *ClaimSource // of Claim
	Document *Source      // named by Source; nil if the manifest does not have it
}

// Cited returns what m, built from answer a, records for each citation, in their order: a row for each source and each
// of its excerpts. What m left out is missing here too. The results point into m.
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

// claimPlace distinguishes claims: the same words may occur in several places.
type claimPlace struct {
	text string
	span Range // zero if the claim is not in the answer unchanged
}

func placeOf(text string, span *Range) claimPlace {
	if span == nil {
		return claimPlace{text: text}
	}
	return claimPlace{text, *span}
}

// names reports whether a citation refers to a source with this address or URN.
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
	Texts   *snapshot.Texts // caches texts; nil disables caching
	Checker support.Checker // for refs without a quote; nil means support.Lexical
}

// Pin finds the excerpt in snap that a ref of a citation of a rests on, as described at Build. Source, the id in a
// manifest, is empty. A nil snap means that the source was not read. The error means that ctx ended or the checker
// failed.
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

// Quote finds in snap, as Pin does, words that were quoted from the source at url; origin is the origin of the quote.
// If quote is empty, it finds what supports the claim.
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

// pin is one source of a claim whose excerpt is being searched for.
type pin struct {
	ClaimSource
	source *source
	quote  string // as it was quoted; empty if there is no quote
	origin string // origin of the quote
	// if the source was read and does not have the quote, search for evidence as if there were no quote
	replace bool
	claim   string // the claim's text
}

// claimSource returns a ClaimSource with the members that repeat those of the source.
func (s *source) claimSource() ClaimSource {
	return ClaimSource{
		Source: s.ID, URL: s.URL, OriginalURL: s.OriginalURL, RetrievedAt: s.RetrievedAt, Hash: s.Hash,
		Relation: RelationSupports, Unavailable: s.Unavailable,
	}
}

// findQuote searches for the quote. It returns p if the checker is to search for evidence.
func (p *pin) findQuote() []*pin {
	quote := snapshot.Normalize(p.quote)
	switch text := p.source.text; {
	case snapshot.ShortExcerpt(quote): // or there is none
		if text == nil {
			p.unavailable(NoText)
			return nil
		}
		return []*pin{p}
	case text == nil:
		p.unavailable(NoText)
		p.publishQuote(quote)
	default:
		m, ok := text.Searcher().Find(&snapshot.Quote{Exact: quote})
		if ok {
			start, end := text.WholeWords(m)
			p.place(start, end, p.origin)
			return nil
		}
		if p.replace {
			return []*pin{p}
		}
		p.unavailable(ExcerptNotFound)
		p.publishQuote(quote)
	}
	return nil
}

// unavailable sets why something is missing. The first reason, which is the source's own, stays.
func (p *pin) unavailable(why string) {
	if p.Unavailable == "" {
		p.Unavailable = why
	}
}

// publishQuote publishes a quote that was not found.
func (p *pin) publishQuote(quote string) {
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

// place sets the excerpt to the code points [start, end) of the source's text.
func (p *pin) place(start, end int, origin string) {
	content := p.source.text.Content
	at, ok := p.source.places.Span(ibid.CodePoint, start, min(end, start+maxExact))
	if end > start+maxExact {
		at.End = max(at.Start, prose.GraphemeStart(content, at.End))
		end = start + utf8.RuneCountInString(content[at.Start:at.End])
	}
	exact := content[at.Start:at.End]
	switch {
	case !ok: // a finder that violates its contract
		p.unavailable(NoEvidence)
		return
	case snapshot.ShortExcerpt(exact):
		p.unavailable(ExcerptTooShort)
		return
	}
	p.ExcerptHash, p.ExcerptOrigin = snapshot.Hash([]byte(exact)), origin
	before := at.Start - len(text.LastRunes(content[:at.Start], around))
	after := at.End + len(text.Runes(content[at.End:], around))
	p.excerpt(&Excerpt{
		Exact: exact, Prefix: content[min(at.Start, prose.GraphemeEnd(content, before)):at.Start],
		Suffix: content[at.End:max(at.End, prose.GraphemeStart(content, after))],
	})
	if p.source.text.Profile != TextProfile {
		p.unavailable(AdvisoryText)
		return
	}
	p.ExcerptOffset = &Range{start, end}
}

// around is how many code points before and after an excerpt are recorded.
const around = 32

// inferAll lets the checker search for evidence for the claims without quotes, all at once, so that each text is read
// once.
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
		return fmt.Errorf("searching for evidence: %w", err)
	}
	for i, p := range pins {
		evidence := found[i].Evidence
		start, end := p.source.places.In(ibid.CodePoint, evidence)
		v := &found[i].Verdict
		if !v.IsClose() && v.Label != support.Differs || evidence.Len() == 0 || start < 0 || start == end {
			p.unavailable(NoEvidence)
			continue
		}
		p.place(start, end, OriginInferred) // the best one
	}
	return nil
}
