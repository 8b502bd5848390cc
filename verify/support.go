package verify

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/support"
)

// evidence is a claim with the results for its supporting sources, without those that contradict it or give context.
type evidence struct {
	*ClaimReport

	context string // the sentence that the claim is a part of; empty if it is none, or that is unknown
	results []SourceResult
	given   []support.Passage // what the model was given of sources that it does not quote, or that have no address
}

// isSlice reports whether a manifest records only the place of an excerpt, neither its words nor their hash.
func isSlice(cs *manifest.ClaimSource) bool {
	return cs.Excerpt == nil && cs.ExcerptHash == "" && cs.ExcerptOffset != nil
}

// isCut reports whether the match is a part of a number or word, which supports nothing unless it was completed.
func (r *SourceResult) isCut() bool { return r.Match != nil && r.Match.Cut && r.Passage == "" }

// compareClaims sets for each claim whether the excerpts of its sources that passed, taken together, support it. An
// error means that nothing is known about any claim: the context has ended, or the checker failed altogether.
//
// For a claim that its own excerpts are far from, WrongSource is the excerpt of another claim that supports it. A claim
// whose excerpts were cut short is compared with the passages around them, too.
func compareClaims(ctx context.Context, claims []evidence, checker support.Checker) error {
	var asked []int
	var pairs []support.Pair
	var all []support.Passage // the excerpts of all claims, each once
	var passages [][]string   // for each pair, the passages around its excerpts that were cut
	seen := map[support.Passage]bool{}
	for i := range claims {
		c := &claims[i]
		c.setUncompared()
		var found []support.Passage // the excerpts of the sources that passed, each once
		var around []string
		for k := range c.results {
			r := &c.results[k]
			p := support.Passage{ID: r.FinalURL, Text: r.Excerpt}
			duplicate := func(other support.Passage) bool { return other.Text == p.Text && p.Text != "" }
			if !r.Counts.Passes() || r.isCut() || p.Text+r.Passage == "" || slices.ContainsFunc(found, duplicate) {
				continue
			}
			found, around = append(found, p), append(around, r.Passage)
			if p.Text != "" && !seen[p] {
				seen[p], all = true, append(all, p)
			}
		}
		found, around = append(found, c.given...), append(around, make([]string, len(c.given))...)
		if len(found) > 0 {
			asked = append(asked, i)
			pairs = append(pairs, support.Pair{Claim: c.Text, Context: c.context, Passages: found})
			passages = append(passages, around)
		}
	}
	for i := range pairs {
		pairs[i].Others = all
	}
	verdicts, err := checkWidened(ctx, checker, pairs, passages)
	if err != nil {
		return fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	for n, i := range asked {
		claims[i].setVerdict(&pairs[n], &verdicts[n])
		if !verdicts[n].Escalated {
			claims[i].setContext()
		}
	}
	return nil
}

// checkWidened checks pairs, some of whose passages are quotes that were cut short: those have the text around them in
// around, which has an entry, maybe empty, for each passage of each pair. The checker is given that text instead. What
// words say of it counts only if they say that it supports the claim: in a text that nobody quoted, another sentence
// with another value is no difference. If the quotes themselves differ from the claim and the text around them supports
// it, the claim is unjudged.
//
// The passages of the pairs become those that the verdicts refer to.
func checkWidened(
	ctx context.Context, checker support.Checker, pairs []support.Pair, around [][]string,
) ([]support.Verdict, error) {
	var cut []int
	var quoted []support.Pair
	for i := range pairs {
		if !slices.ContainsFunc(around[i], func(s string) bool { return s != "" }) {
			continue
		}
		cut, quoted = append(cut, i), append(quoted, pairs[i])
		pairs[i].Passages = slices.Clone(pairs[i].Passages)
		for k, text := range around[i] {
			if text != "" {
				pairs[i].Passages[k].Text = text
			}
		}
	}
	wide, err := support.CheckPairs(ctx, support.RightSource(checker), pairs)
	if err != nil {
		return nil, err
	}
	narrow, err := support.CheckPairs(ctx, support.RightSource(&support.Lexical{}), quoted)
	if err != nil {
		return nil, err
	}
	words := (&support.Lexical{}).Info().By()
	for n, i := range cut {
		switch w := &wide[i]; {
		case w.By != words: // a judge decided
		case narrow[n].Label == support.Differs && w.Label == support.Supported:
			w.Label, w.Verbatim = support.Unjudged, false
		case narrow[n].Label == support.Supported, narrow[n].Label == support.Differs:
			narrow[n].Escalated, narrow[n].Issues = w.Escalated, w.Issues
			*w, pairs[i] = narrow[n], quoted[n]
		case w.Label == support.Differs:
			w.Label, w.Differences = support.Unjudged, nil
		}
	}
	return wide, nil
}

func newDifference(c *support.Conflict) Difference {
	return Difference{c.Kind, c.A.ValueText(), c.B.ValueText(), c.B.Text}
}

// The reasons why a claim is unchecked; or unjudged, if the checker failed.
const (
	reasonNoExcerpt = "no-excerpt" // no excerpt was recorded to compare it with
	reasonCut       = "cut"        // its excerpts are parts of numbers or words
	reasonUnread    = "unread"     // no source could be read
	reasonNoSource  = "no-source"  // it has no supporting source
	reasonFailed    = "failed"     // no source has its quote, which are failures of their own
	reasonError     = "error"      // the checker failed
)

// setUncompared sets what is known about a claim before its excerpts are compared with it.
func (e *evidence) setUncompared() {
	passed, cut, unread := 0, 0, 0
	for i := range e.results {
		switch r := &e.results[i]; {
		case r.Counts.Passes() && r.isCut():
			cut++
		case r.Counts.Passes():
			passed++
		case r.Counts == CountUnverifiable:
			unread++
		}
	}
	e.Finding, e.Status, e.Counts = support.Unchecked, ClaimUnchecked, CountInfo
	switch {
	case cut > 0:
		e.Reason, e.Detail = reasonCut, "The claim rests on a part of a number or word of its source."
	case passed > 0:
		e.Reason, e.Detail = reasonNoExcerpt, "No excerpt was recorded to compare the claim with."
	case len(e.results) == 0:
		e.Reason, e.Counts = reasonNoSource, CountUnverifiable
		e.Detail = "The manifest names no supporting source for the claim."
	case unread > 0:
		e.Reason, e.Counts = reasonUnread, CountUnverifiable
		e.Detail = "No source of the claim could be verified."
	default:
		e.Reason, e.Detail = reasonFailed, "No source of the claim has what is quoted from it."
	}
}

// farFromClaim is the closeness below which excerpts are so far from a claim that another source which supports it is
// named.
const farFromClaim = 0.4

// saidElsewhere precedes the address of another source that supports a claim.
const saidElsewhere = "Another source says it in nearly the same words: "

// setVerdict sets the result of a checker for a claim.
func (e *evidence) setVerdict(p *support.Pair, v *support.Verdict) {
	c := e.ClaimReport
	c.Finding, c.Status, c.Counts = cmp.Or(v.Label, support.Unjudged), Status(v.Word()), CountInfo
	c.By, c.Closeness, c.Reason, c.Detail, c.Differs, c.WrongSource = v.By, v.Closeness, "", "", nil, nil
	for i := range v.Differences {
		c.Differs = append(c.Differs, newDifference(&v.Differences[i]))
	}
	switch c.Finding {
	case support.Supported:
		c.Counts = CountPass
		if slices.ContainsFunc(p.Passages, func(x support.Passage) bool { return support.Verbatim(p.Claim, x.Text) }) {
			c.Status = SupportedVerbatim
		}
	case support.Differs:
		c.Counts = CountWarning
		c.Detail = fmt.Sprintf("The claim says %q, its excerpt %q.", c.Differs[0].Claim, c.Differs[0].Excerpt)
	case support.Unsupported, support.Contradicted:
		c.Counts = CountWarning
		c.Detail = "The excerpts are there but do not support the claim, according to " + v.By + "."
	default:
		c.Detail = "Nobody has judged whether the excerpts say it: read both."
		if issue := v.WhyUnjudged(); issue != nil {
			c.Reason, c.Detail = issue.Code, "Nobody has judged whether the excerpts say it: "+issue.Detail+"."
		}
		if v.Err != nil {
			c.Reason, c.Detail = reasonError, "The claim could not be checked."
		} else if v.WrongSource != nil && v.Closeness != nil && *v.Closeness < farFromClaim {
			right := p.Others[v.WrongSource.Passage].ID
			c.WrongSource = &Excerpted{right, p.OtherText(*v.WrongSource)}
			c.Detail = saidElsewhere + shownURL(right)
		}
	}
}

// CitationOptions are the options of [CheckCitations]. Plain is required.
type CitationOptions struct {
	Plain func(string) string // converts a part of the answer's text to plain text
	Most  int                 // maximum number of claims to compare
	// Quote returns the words quoted from a source, and the passage around them if they were cut short and it is known;
	// see SourceResult. Nil means the quote of the ref.
	Quote func(*ibid.Citation, *ibid.Ref) (quote, passage string)
}

// CheckCitations compares the claims of an answer with the quotes cited for them, as a report does for claims whose
// excerpts are in their sources. It compares words; no model and no server is asked. If only the quote of another claim
// supports a claim, the URL of its WrongSource is the id of that quote's source. It returns a report for each citation;
// it is the zero value for a citation without a quote or a place, and for claims beyond the maximum.
func CheckCitations(ctx context.Context, a *ibid.Answer, o *CitationOptions) ([]ClaimReport, error) {
	var pairs []support.Pair
	pairOf := make([]int, len(a.Citations)) // index of its pair plus one; 0 if none
	pairAt := map[ibid.Span]int{}           // citations of the same words are compared together
	var all []support.Passage               // the quotes of all claims, each once
	seen := map[support.Passage]bool{}
	var around [][]string // for each pair, the passages around its quotes
	for i := range a.Citations {
		c := &a.Citations[i]
		at := cmp.Or(c.Claim, c.Span)
		if !c.Placed() || at.Start < 0 || at.Start >= at.End || at.End > len(a.Text) {
			continue
		}
		n := pairAt[at]
		for k := range c.Refs {
			quote, wide := c.Refs[k].Quote, ""
			if o.Quote != nil {
				quote, wide = o.Quote(c, &c.Refs[k])
			}
			if strings.TrimSpace(quote) == "" || n == 0 && len(pairs) == o.Most {
				continue
			}
			if n == 0 {
				pairs = append(pairs, support.Pair{
					Claim: o.Plain(a.Text[at.Start:at.End]), Context: o.Plain(SentenceOf(a.Text, at)),
				})
				around = append(around, nil)
				n = len(pairs)
				pairAt[at] = n
			}
			p, passage := &pairs[n-1], support.Passage{ID: c.Refs[k].Source, Text: quote}
			p.Passages, around[n-1] = append(p.Passages, passage), append(around[n-1], wide)
			if pairOf[i] = n; !seen[passage] {
				seen[passage], all = true, append(all, passage)
			}
		}
	}
	for i := range pairs {
		pairs[i].Others = all
	}
	verdicts, err := checkWidened(ctx, &support.Lexical{}, pairs, around)
	if err != nil {
		return nil, fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	found := make([]ClaimReport, len(pairs))
	for i := range found {
		found[i].Text = pairs[i].Claim
		e := evidence{ClaimReport: &found[i]}
		e.setVerdict(&pairs[i], &verdicts[i])
		if right := found[i].WrongSource; right != nil {
			if s := a.Source(right.URL); s != nil && s.URL != "" {
				found[i].Detail = saidElsewhere + shownURL(s.URL)
			}
		}
	}
	reports := make([]ClaimReport, len(a.Citations))
	for i, n := range pairOf {
		if n > 0 {
			reports[i] = found[n-1]
		}
	}
	return reports, nil
}

// sharedWords returns the share of the words of text, of four letters or more, that other has too, comparing their
// first five letters. It is 1 if there are no such words.
func sharedWords(text, other string) float64 {
	stems := func(s string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for word := range strings.FieldsFuncSeq(strings.ToLower(s), isNoLetter) {
				if runes := []rune(word); len(runes) >= 4 && !yield(string(runes[:min(len(runes), 5)])) {
					return
				}
			}
		}
	}
	there := map[string]bool{}
	for stem := range stems(other) {
		there[stem] = true
	}
	all, hits := 0, 0
	for stem := range stems(text) {
		if all++; there[stem] {
			hits++
		}
	}
	if all == 0 {
		return 1
	}
	return float64(hits) / float64(all)
}

func isNoLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}
