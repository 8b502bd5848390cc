package support

import (
	"cmp"
	"slices"

	"github.com/ibidhq/ibid"
)

// Usage returns how much of a text rests on each source: the share of the text's information that stands in the spans
// attributed to it. A word's information is how rare it is, so that function words count for little. A word counts
// where one span has all of it, and once, however many do. What of a span lies outside the text has no words. Shares of
// several sources may add up to more than 1, because a sentence can rest on two.
//
// The keys are the caller's. A text without words gives 0 for all.
func Usage(text string, covered map[string][]ibid.Span) map[string]float64 {
	words := weighWords(text)
	total := 0.0
	for i := range words {
		total += words[i].weight
	}
	shares := make(map[string]float64, len(covered))
	for key, spans := range covered {
		shares[key] = 0
		if total > 0 {
			shares[key] = min(1, weightWithin(words, spans)/total)
		}
	}
	return shares
}

// Covered returns the claims of an answer's citations by the ids of the sources that they rest on: what [Usage] takes.
// Every source has an entry; citations without a place add nothing.
func Covered(a *ibid.Answer) map[string][]ibid.Span {
	covered := make(map[string][]ibid.Span, len(a.Sources))
	for i := range a.Sources {
		covered[a.Sources[i].ID] = nil
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		if !c.Placed() || c.Claim.Len() <= 0 {
			continue
		}
		for _, ref := range c.Refs {
			spans := covered[ref.Source]
			if n := len(spans); n == 0 || spans[n-1] != c.Claim {
				covered[ref.Source] = append(spans, c.Claim)
			}
		}
	}
	return covered
}

// weighted is a word of a text and its information.
type weighted struct {
	start, end int
	weight     float64
}

func weighWords(text string) []weighted {
	table := english()
	var words []weighted
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		words = append(words, weighted{t.start, t.end, table.weight(t.key)})
	}
	return words
}

// weightWithin returns the weight of the words that stand in one of the spans.
func weightWithin(words []weighted, spans []ibid.Span) float64 {
	spans = slices.SortedFunc(slices.Values(spans), func(x, y ibid.Span) int { return cmp.Compare(x.Start, y.Start) })
	sum, at, end := 0.0, 0, -1
	for _, w := range words {
		for at < len(spans) && spans[at].Start <= w.start {
			end = max(end, spans[at].End)
			at++
		}
		if w.end <= end {
			sum += w.weight
		}
	}
	return sum
}
