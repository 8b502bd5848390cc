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

// evidence is a claim with what was found about the sources that are to support it, and not about those that contradict
// it or give context.
type evidence struct {
	*ClaimReport

	results []SourceResult
	sliced  bool // of some excerpt only the place was recorded: see isSlice
}

// isSlice reports whether a manifest records where an excerpt stands, and neither its words nor their hash.
func isSlice(cs *manifest.ClaimSource) bool {
	return cs.Excerpt == nil && cs.ExcerptHash == "" && cs.ExcerptOffset != nil
}

// cut reports whether what was found is a part of a number or word, which supports nothing.
func (r *SourceResult) cut() bool { return r.Match != nil && r.Match.Cut }

// compareClaims sets for each claim whether the excerpts of their sources that passed support them, together. An error
// means that nothing is known of any: the context has ended, or the checker could say nothing at all.
//
// A claim that its excerpts do not support, and those of another claim do, is doubtful: its source is the wrong one. A
// judge, if there is one, is asked about all claims that do not stand in an excerpt as they are, and its word counts.
func compareClaims(ctx context.Context, claims []evidence, checker, judge support.Checker) error {
	var asked []int
	var pairs []support.Pair
	var all []support.Passage // the excerpts of all claims, each once
	seen := map[support.Passage]bool{}
	for i := range claims {
		c := &claims[i]
		c.setUncompared()
		var passages []support.Passage // the excerpts of the sources that passed, each once
		for k := range c.results {
			r := &c.results[k]
			p := support.Passage{ID: r.FinalURL, Text: r.Excerpt}
			known := func(other support.Passage) bool { return other.Text == p.Text }
			if !r.Counts.Passes() || r.cut() || p.Text == "" || slices.ContainsFunc(passages, known) {
				continue
			}
			passages = append(passages, p)
			if !seen[p] {
				seen[p], all = true, append(all, p)
			}
		}
		if len(passages) > 0 {
			asked = append(asked, i)
			pairs = append(pairs, support.Pair{Claim: c.Text, Passages: passages})
		}
	}
	for i := range pairs {
		pairs[i].Others = all
	}
	verdicts, err := support.CheckPairs(ctx, support.RightSource(checker), pairs)
	if err != nil {
		return fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	var open []int // indexes in asked
	var left []support.Pair
	for n, i := range asked {
		claims[i].setVerdict(&pairs[n], &verdicts[n], false)
		if judge != nil && claims[i].Status != SupportedVerbatim {
			open, left = append(open, asked[n]), append(left, pairs[n])
		}
	}
	if verdicts, err = support.CheckPairs(ctx, judge, left); err != nil {
		return fmt.Errorf("judging %d claims: %w", len(left), err)
	}
	for k, i := range open {
		if v := &verdicts[k]; v.Err == nil && v.Label != support.Unverified && v.Label != "" {
			claims[i].setVerdict(&left[k], v, true)
		}
	}
	for i := range claims {
		claims[i].setQualified()
	}
	return nil
}

// setQualified makes a supported claim doubtful if each excerpt is cut out of a sentence that denies it, or says that
// it is possible, planned, alleged or so on a condition: "The mayor denied that he took the money."
func (e *evidence) setQualified() {
	if e.Finding != Supported {
		return
	}
	var found *support.Conflict
	for i := range e.results {
		r := &e.results[i]
		if !r.Counts.Passes() || r.cut() || r.Excerpt == "" {
			continue
		}
		if r.sentences == "" {
			return
		}
		changed := support.Changed(e.Text, r.sentences)
		at := slices.IndexFunc(changed, func(c support.Conflict) bool {
			return c.Kind == support.ConflictNegation || c.Kind == support.ConflictModality
		})
		if at < 0 {
			return
		}
		found = cmp.Or(found, &changed[at])
	}
	if found != nil {
		d := newDifference(found)
		e.Finding, e.Counts, e.Differs = Doubtful, CountWarning, []Difference{d}
		e.Detail = fmt.Sprintf("The excerpt is a part of a sentence that says %q.", d.Excerpt)
	}
}

func newDifference(c *support.Conflict) Difference {
	return Difference{c.Kind, c.A.ValueText(), c.B.ValueText(), c.B.Text}
}

// Why a claim was not checked.
const (
	reasonUnsure    = "unsure"     // its score is too low to call it supported, and too high to call it doubtful
	reasonNoExcerpt = "no-excerpt" // no excerpt was recorded that it could be compared with
	reasonCut       = "cut"        // its excerpts are parts of numbers or words
	reasonUnread    = "unread"     // no source could be read
	reasonNoSource  = "no-source"  // none is to support it
	reasonFailed    = "failed"     // no source says what is quoted from it: those are failures of their own
	reasonError     = "error"      // the checker could not
)

// setUncompared sets what is known of a claim before its excerpts are compared with it.
func (e *evidence) setUncompared() {
	passed, cut, unread := 0, 0, 0
	for i := range e.results {
		switch r := &e.results[i]; {
		case r.Counts.Passes() && r.cut():
			cut++
		case r.Counts.Passes():
			passed++
		case r.Counts == CountUnverifiable:
			unread++
		}
	}
	e.Finding = NotChecked
	switch {
	case cut > 0:
		e.Status, e.Reason = SupportSuspect, reasonCut
		e.Detail = "The claim rests on a part of a number or word of its source."
	case passed > 0:
		e.Status, e.Reason = SupportUnchecked, reasonNoExcerpt
		e.Detail = "No excerpt was recorded that the claim could be compared with."
	case len(e.results) == 0:
		e.Status, e.Reason, e.Counts = SupportUnchecked, reasonNoSource, CountUnverifiable
		e.Detail = "The manifest names no source that is to support the claim."
	case unread > 0:
		e.Status, e.Reason, e.Counts = SupportUnchecked, reasonUnread, CountUnverifiable
		e.Detail = "No source of the claim could be verified."
	default:
		e.Status, e.Reason = UnsupportedClaim, reasonFailed
		e.Detail = "No source of the claim says what is quoted from it."
	}
	e.Counts = cmp.Or(e.Counts, e.Status.counts())
}

// What makes a claim doubtful. TestEvalDoubtful chooses the numbers so that at most 1.4 % of the claims that people
// call supported are doubtful: three of four answers of 20 such claims then have no doubtful one. `make eval` prints
// how many are.
const (
	// doubtfulScore is the score below which a claim is doubtful, if its excerpts have at most doubtfulShare of its
	// words.
	doubtfulScore = 0.2
	doubtfulShare = 0.1
	// slicedScore and slicedShare are the same where the excerpt is what stands in its place, with nothing to say that
	// the place is right: they were not measured.
	slicedScore = 0.4
	slicedShare = 0.35
	// shownShare is how much of the claim's sentence, beside the words that differ, the sentence of the excerpt has at
	// least, for a difference to be shown: elsewhere both may speak of different things.
	shownShare = 0.9
)

// saidElsewhere stands before the address of the source that a claim should name.
const saidElsewhere = "Its excerpts do not say it, those of another source do: "

// setVerdict sets what a checker found out about a claim. The word of a judge counts: of what it calls supported
// nothing is doubtful, and what it calls unsupported or contradicted is.
func (e *evidence) setVerdict(p *support.Pair, v *support.Verdict, judge bool) {
	c := e.ClaimReport
	c.Status, c.By, c.Finding, c.Reason, c.Detail = Status(v.Word()), v.By, NotChecked, reasonUnsure, ""
	c.Label, c.Score, c.Differs, c.WrongSource = v.Label, v.Score, nil, nil
	switch {
	case v.Err != nil:
		c.Reason, c.Detail = reasonError, "The claim could not be checked."
	case strings.HasPrefix(string(c.Status), "supported-"):
		c.Finding, c.Reason = Supported, ""
		if slices.ContainsFunc(p.Passages, func(x support.Passage) bool { return support.Verbatim(p.Claim, x.Text) }) {
			c.Status = SupportedVerbatim
		}
	case judge && (v.Label == support.Unsupported || v.Label == support.Contradicted):
		c.Finding, c.Reason = Doubtful, ""
		c.Detail = "The excerpts are there and do not support the claim, says " + v.By + "."
	default:
		score, share := doubtfulScore, doubtfulShare
		if e.sliced {
			score, share = slicedScore, slicedShare
		}
		c.Differs = differences(p, v, shownShare)
		c.Detail = "Whether the excerpts support the claim was not found out."
		switch {
		case len(c.Differs) > 0:
			c.Finding, c.Reason, c.Detail = Doubtful, "", fmt.Sprintf(
				"The claim says %q, its excerpt %q.", c.Differs[0].Claim, c.Differs[0].Excerpt)
		case v.WrongSource != nil && (v.Label == support.Unsupported || v.Label == support.Contradicted):
			// Seldom wrong: see TestEvalDoubtfulSource.
			right := p.Others[v.WrongSource.Passage].ID
			c.WrongSource = &Excerpted{right, p.OtherText(*v.WrongSource)}
			c.Finding, c.Reason = Doubtful, ""
			c.Detail = saidElsewhere + shownURL(right)
		case saysNothing(p, v, score, share):
			c.Finding, c.Reason = Doubtful, ""
			c.Detail = "The excerpts say next to nothing of what the claim says."
		case v.Label == support.Unsupported || v.Label == support.Contradicted:
			c.Detail = "It was compared, and the excerpts do not support it: read them."
		case v.Label == support.Partial:
			c.Detail = "A part of the claim is not in the excerpts, or differs from them."
			for _, issue := range v.Issues {
				if issue.Code == support.IssueReworded {
					c.Detail = "The claim says " + issue.Detail + "."
				}
			}
		}
	}
	switch c.Finding {
	case Supported:
		c.Counts = CountPass
	case Doubtful:
		c.Counts = CountWarning
	default:
		if c.Counts = c.Status.counts(); c.Counts == CountFailure {
			c.Counts = CountInfo // a checker says that it is unsupported, and no source failed
		}
	}
}

// CitationOptions are the options of [CheckCitations]. Plain is needed.
type CitationOptions struct {
	Plain func(string) string // makes plain text of a part of the answer's
	Most  int                 // how many claims are compared at most
	// Quote returns the words that are quoted of a source; nil: those of the ref.
	Quote func(*ibid.Citation, *ibid.Ref) string
}

// CheckCitations compares what an answer cites with the words that are quoted for it, as a report says it of claims
// whose excerpts stand in their sources, by the words: no model and no other server is asked. A claim that only the
// quote of another claim supports names the source of that by its id, as the URL of WrongSource. It returns a report
// for each citation; that of one without a quote or a place is the zero value, as are those of the claims that are too
// many.
func CheckCitations(ctx context.Context, a *ibid.Answer, o *CitationOptions) ([]ClaimReport, error) {
	var pairs []support.Pair
	of := make([]int, len(a.Citations)) // which pair, from 1; 0: none
	known := map[ibid.Span]int{}        // by the claim: what is cited for the same words counts together
	var all []support.Passage           // the quotes of all claims, each once
	seen := map[support.Passage]bool{}
	for i := range a.Citations {
		c := &a.Citations[i]
		at := cmp.Or(c.Claim, c.Span)
		if !c.Placed() || at.Start < 0 || at.Start >= at.End || at.End > len(a.Text) {
			continue
		}
		n := known[at]
		for k := range c.Refs {
			quote := c.Refs[k].Quote
			if o.Quote != nil {
				quote = o.Quote(c, &c.Refs[k])
			}
			if strings.TrimSpace(quote) == "" || n == 0 && len(pairs) == o.Most {
				continue
			}
			if n == 0 {
				pairs = append(pairs, support.Pair{Claim: o.Plain(a.Text[at.Start:at.End])})
				n = len(pairs)
				known[at] = n
			}
			p, passage := &pairs[n-1], support.Passage{ID: c.Refs[k].Source, Text: quote}
			p.Passages = append(p.Passages, passage)
			if of[i] = n; !seen[passage] {
				seen[passage], all = true, append(all, passage)
			}
		}
	}
	for i := range pairs {
		pairs[i].Others = all
	}
	verdicts, err := support.CheckPairs(ctx, support.RightSource(&support.Lexical{}), pairs)
	if err != nil {
		return nil, fmt.Errorf("checking %d claims: %w", len(pairs), err)
	}
	found := make([]ClaimReport, len(pairs))
	for i := range found {
		found[i].Text = pairs[i].Claim
		e := evidence{ClaimReport: &found[i]}
		e.setVerdict(&pairs[i], &verdicts[i], false)
		if right := found[i].WrongSource; right != nil {
			if s := a.Source(right.URL); s != nil && s.URL != "" {
				found[i].Detail = saidElsewhere + shownURL(s.URL)
			}
		}
	}
	reports := make([]ClaimReport, len(a.Citations))
	for i, n := range of {
		if n > 0 {
			reports[i] = found[n-1]
		}
	}
	return reports, nil
}

// differences returns the values of a claim that are others in its excerpts, where these have at least that share of
// the words around them. Where a checker does not compare values, as a judge does not, [support.Changed] does.
func differences(p *support.Pair, v *support.Verdict, least float64) []Difference {
	conflicts := v.Conflicts
	if len(conflicts) == 0 && v.Threshold == 0 {
		for i := range p.Passages {
			conflicts = append(conflicts, support.Changed(p.Claim, p.Passages[i].Text)...)
		}
	}
	var list []Difference
	for i := range conflicts {
		c := &conflicts[i]
		around := c.A.Text // without the words that differ
		if from, to := c.A.Value.Start-c.A.Span.Start, c.A.Value.End-c.A.Span.Start; from >= 0 && from <= to &&
			to <= len(around) {
			around = around[:from] + " " + around[to:]
		}
		if sharedWords(around, c.B.Text) >= least {
			list = append(list, newDifference(c))
		}
	}
	return list
}

// saysNothing reports whether the score is below a limit and the excerpts have at most a share of the claim's words. In
// languages in which scores were not measured it is false.
func saysNothing(p *support.Pair, v *support.Verdict, below, share float64) bool {
	if v.Score == nil || *v.Score >= below ||
		slices.ContainsFunc(v.Issues, func(i ibid.Issue) bool { return i.Code == "language-unmeasured" }) {
		return false
	}
	var all strings.Builder
	for i := range p.Passages {
		all.WriteString(p.Passages[i].Text + "\n")
	}
	return sharedWords(p.Claim, all.String()) <= share
}

// sharedWords returns the share of a text's words of four letters or more that other has, by their first five letters:
// 1 if there are none.
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
