package verify

import (
	"context"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// NothingQuoted is found of an answer document without a quote: there is nothing to compare with its sources.
const NothingQuoted Status = "nothing-quoted"

// Answer verifies the quotes of an answer document against its sources. Nobody signed it, so its report is never
// [Trusted].
func (v *Verifier) Answer(ctx context.Context, a *ibid.Answer) (*Report, error) {
	return v.answer(ctx, a, "")
}

func (v *Verifier) answer(ctx context.Context, a *ibid.Answer, name string) (*Report, error) {
	j := v.job(KindDocument, name)
	m := &checked{job: j, announced: &announced{}, stored: true, man: quotes(a)}
	if len(m.man.Claims) == 0 {
		j.report.add(Finding{
			Code:   NothingQuoted,
			Counts: CountUnverifiable,
			Detail: "No citation of the answer quotes its source, so there is nothing to compare.",
		})
		return j.end(), nil
	}
	j.report.add(Finding{Code: Unsigned, Counts: CountInfo, Detail: "Nobody signed the answer."})
	return j.finish(m.claims(ctx))
}

// quotes returns the citations of an answer that quote a source, in the form of a manifest.
func quotes(a *ibid.Answer) *manifest.Manifest {
	man := &manifest.Manifest{TextProfile: manifest.TextProfile}
	for i := range a.Citations {
		c := &a.Citations[i]
		claim := manifest.Claim{ID: c.ID, Text: claimText(a, c)}
		for k := range c.Refs {
			ref := &c.Refs[k]
			if src := a.Source(ref.Source); src != nil && ref.Quote != "" {
				claim.Sources = append(claim.Sources, quoted(src, ref.Quote))
			}
		}
		if len(claim.Sources) > 0 {
			man.Claims = append(man.Claims, claim)
		}
	}
	return man
}

func quoted(src *ibid.Source, quote string) manifest.ClaimSource {
	address := src.URL
	if _, err := snapshot.CleanURL(address); err != nil {
		address = manifest.SourceURN + src.ID
	}
	return manifest.ClaimSource{
		URL: address, Excerpt: &manifest.Excerpt{Exact: quote}, ExcerptOrigin: manifest.OriginProvider,
	}
}

// claimText returns what a citation stands for.
func claimText(a *ibid.Answer, c *ibid.Citation) string {
	for _, span := range []ibid.Span{c.Claim, c.Span} {
		if span.Start >= 0 && span.Start < span.End && span.End <= len(a.Text) {
			return a.Text[span.Start:span.End]
		}
	}
	return ""
}
