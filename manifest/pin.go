package manifest

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

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
		s.given, s.URL = given, address(given)
	}
	if s.URL == "" {
		s.URL = urn(s.given)
	}
	s.Unavailable = NotRead
	if snap != nil {
		s.Unavailable = ""
		s.read(snap, "")
		s.readText(p.Texts)
		if !snap.FetchedAt.IsZero() {
			s.RetrievedAt = seconds(snap.FetchedAt)
		}
	}
	claim, _ := claimSpan(a, c)
	pin := &pin{ClaimSource: s.claimSource(), source: s, quote: ref.Quote, claim: snapshot.Normalize(claim.of(a.Text))}
	if err := inferAll(ctx, &support.Finder{Checker: p.Checker, Texts: p.Texts}, pin.findQuote()); err != nil {
		return ClaimSource{}, fmt.Errorf("pinning a citation: %w", err)
	}
	return pin.ClaimSource, nil
}

// pin is one source of a claim while its excerpt is looked for.
type pin struct {
	ClaimSource
	source *source
	quote  string // as the provider sent it
	claim  string // what it is to support
}

// claimSource returns what the source of a claim repeats of the source.
func (s *source) claimSource() ClaimSource {
	return ClaimSource{
		Source: s.ID, URL: s.URL, OriginalURL: s.OriginalURL, RetrievedAt: s.RetrievedAt, Hash: s.Hash,
		Relation: RelationSupports, Unavailable: s.Unavailable,
	}
}

// findQuote looks for the provider's quote. It returns p if the checker is to look for evidence.
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
			p.place(m.Start, m.End, OriginProvider)
			return nil
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
	p.ExcerptHash, p.ExcerptOrigin = snapshot.Hash([]byte(quote)), OriginProvider
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
		Exact: exact, Prefix: lastOf(content[:at.Start], around), Suffix: text.Runes(content[at.End:], around),
	})
	if p.source.text.Profile != TextProfile {
		p.unavailable(AdvisoryText)
		return
	}
	p.ExcerptOffset = &Range{start, end}
}

// around is how many code points of what stands before and after an excerpt go with it.
const around = 32

// lastOf returns the last n code points of s.
func lastOf(s string, n int) string {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

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
		p.infer(&found[i])
	}
	return nil
}

// infer takes the best evidence for the excerpt, if the claim is supported.
func (p *pin) infer(f *support.Found) {
	if label := f.Verdict.Label; label != support.Supported && label != support.Partial || f.Evidence.Len() == 0 {
		p.unavailable(NoEvidence)
		return
	}
	start, end := p.source.places.In(ibid.CodePoint, f.Evidence)
	if start < 0 || start == end {
		p.unavailable(NoEvidence)
		return
	}
	p.place(start, end, OriginInferred)
}
