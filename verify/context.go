package verify

import (
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// SentenceOf returns the sentence of an answer that a claim is a part of, or "" if the claim is not a part of one.
func SentenceOf(answer string, claim ibid.Span) string {
	start, _ := prose.SentenceAt(answer, claim.Start+1)
	_, end := prose.SentenceAt(answer, claim.End)
	if start > claim.Start || end < claim.End {
		return ""
	}
	_, said := prose.SentenceBefore(answer, end) // without the marks and links of citations at its end
	if strings.TrimSpace(answer[start:claim.Start]) == "" &&
		strings.Trim(answer[claim.End:max(claim.End, said)], " .!?\n") == "" {
		return ""
	}
	if from, to := prose.SentenceAt(answer, start+1); from != start || to != end {
		return "" // of several
	}
	return answer[start:end]
}

// blockOf returns the block of the text that has a place, or the blocks from its first to its last.
func (c *comparison) blockOf(place ibid.Span) ibid.Span {
	around := place
	for i := range c.text.Blocks {
		b := c.text.Blocks[i].Span
		if b.Start < place.End && place.Start < b.End {
			around = ibid.Span{Start: min(around.Start, b.Start), End: max(around.End, b.End)}
		}
	}
	return around
}

// sentencesAround returns the sentences of a block that have a place, and the next one, which may refer to it: "This
// was wrong." If the place is quoted, they begin with the sentence that introduces it.
func sentencesAround(content string, block, place ibid.Span) ibid.Span {
	from, _ := prose.SentenceAt(content, place.Start+1)
	from = max(block.Start, min(from, place.Start))
	before := strings.TrimRight(content[block.Start:place.Start], " ")
	if lead := strings.TrimRight(before, openings); lead != before {
		start, _ := prose.SentenceAt(content, block.Start+len(lead))
		from = max(block.Start, min(from, start))
	}
	_, to := prose.SentenceAt(content, place.End)
	to = min(max(to, place.End), block.End)
	if _, next := prose.SentenceAt(content, min(to+2, block.End)); next > to {
		to = min(next, block.End)
	}
	return ibid.Span{Start: from, End: to}
}

// longQuote is the length in code points from which a quote that stops inside a sentence is taken for one that was cut
// at a length. Providers cut at 150 or more; who quotes a part of a sentence quotes less.
const longQuote = 100

// ellipsis are the characters by which a quote leaves something out.
const ellipsis = " .…[]()"

// completed returns an excerpt's place in the text with the rest of the sentences that it was cut in, and whether it
// was cut: it begins or ends with an ellipsis, or is long and stops inside a sentence.
func (c *comparison) completed(block, place ibid.Span) (whole ibid.Span, cut bool) {
	if c.cs.Excerpt == nil {
		return place, false
	}
	content, whole := c.text.Content, place
	before, after := snapshot.CutShort(c.cs.Excerpt.Exact)
	if _, end := prose.SentenceAt(content, place.End); !after && !c.result.Match.Cut &&
		utf8.RuneCountInString(c.cs.Excerpt.Exact) >= longQuote {
		rest := content[place.End:max(place.End, min(end, block.End))]
		after = strings.ContainsFunc(rest, func(r rune) bool { return !isNoLetter(r) })
	}
	if before {
		start, _ := prose.SentenceAt(content, place.Start+1)
		whole.Start = min(place.Start, max(block.Start, start))
	}
	if after {
		_, end := prose.SentenceAt(content, place.End)
		whole.End = max(place.End, min(end, block.End))
	}
	if m := c.result.Match; m.Cut && snapshot.IsCut(
		content, m.Start-utf8.RuneCountInString(content[whole.Start:place.Start]),
		m.End+utf8.RuneCountInString(content[place.End:whole.End]),
	) {
		return place, false // at its other end
	}
	return whole, before || after
}

// openings are what stands between a quotation and the sentence that introduces it.
const openings = "\"'“”„‘‚«»「『:： "

// The limits of the notices of corrections that are read.
const (
	maxCorrections = 4
	maxCorrection  = 1000 // bytes of one
)

// correctionHeads are the words with which notices of corrections begin.
var correctionHeads = []string{
	"correction", "corrections", "clarification", "retraction", "editor's note", "erratum", "korrektur", "berichtigung",
	"richtigstellung", "rectificatif", "correctif", "corrección", "rectificación", "fe de errores", "rettifica",
	"errata corrige", "rectificatie", "correctie", "correção", "errata", "訂正", "更正",
}

// corrections returns the notices of corrections outside a block.
func (c *comparison) corrections(outside ibid.Span) (notices []string) {
	for i := range c.text.Blocks {
		b := c.text.Blocks[i].Span
		if b.Start < outside.End && outside.Start < b.End {
			continue
		}
		words := c.text.Content[b.Start:b.End]
		head := strings.ToLower(strings.ReplaceAll(text.Head(strings.TrimLeft(words, "*[(_ "), 40), "’", "'"))
		for _, h := range correctionHeads {
			rest, ok := strings.CutPrefix(head, h)
			next, _ := utf8.DecodeRuneInString(rest)
			if ok && (rest == "" || !isInsideWord('x', next)) {
				notices = append(notices, strings.Clone(text.Head(words, maxCorrection)))
				break
			}
		}
		if len(notices) == maxCorrections {
			break
		}
	}
	return notices
}

// setContext changes what words say of a claim by what its sources say around the excerpts: it differs if each of them
// denies it there, and it is unjudged if each of them denies, doubts or restricts it: "The mayor denied that he took
// the money."
func (e *evidence) setContext() {
	if e.Finding != support.Supported && e.Finding != support.Unjudged {
		return
	}
	var denied []Difference
	passed, sentences := 0, ""
	for i := range e.results {
		r := &e.results[i]
		if !r.Counts.Passes() || r.isCut() || r.Excerpt == "" {
			continue
		}
		passed++
		switch denial := r.denies(e.Text); {
		case denial != nil:
			denied = append(denied, newDifference(denial))
		case r.Sentences == "" || !support.IsQualified(e.Text, r.Sentences):
			return
		}
		if sentences == "" {
			sentences = r.Sentences
		}
	}
	switch {
	case passed == 0:
	case len(denied) == passed:
		e.Finding, e.Status, e.Counts, e.Reason, e.Differs = support.Differs, ClaimDiffers, CountWarning, "", denied
		e.Detail = "The source does not say so, but denies it: “" + denied[0].Excerpt + "”."
	case e.Finding == support.Supported:
		e.Finding, e.Status, e.Counts = support.Unjudged, ClaimUnjudged, CountInfo
		e.Detail = "The excerpt is part of a sentence that may not say it: “" + sentences + "”."
	}
}

// denies returns how the source denies a claim, around the excerpt or in a correction; nil if it does not.
func (r *SourceResult) denies(claim string) *support.Conflict {
	if r.Sentences != "" {
		if denial := support.Denies(claim, r.Sentences); denial != nil {
			return denial
		}
	}
	for _, notice := range r.Corrections {
		if denial := support.Denies(claim, notice); denial != nil {
			return denial
		}
	}
	return nil
}
