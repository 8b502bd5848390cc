package trail

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// MaxWeighed is how many steps [Trail.Weigh] measures the usage of: the first ones with an answer. The others have
// none.
const MaxWeighed = 1000

// Weigh measures from words alone what the sources of each step have to do with it. Relevance stays as it is: that is
// what somebody said.
//
//   - Source.Overlap is BM25 of the passage for what the step answered, or else asked, over what those words would
//     score as a
//     passage themselves: from 0 to 1, and comparable between steps.
//   - Source.Usage is the share of the information of the step's answer that stands in sentences which the source
//     supports, by
//     c; nil is support.Lexical. Where it is known already, from citations, it stays.
//
// It must not run beside a reader of t. The error says that ctx ended, or that the checker could not work at all.
func (t *Trail) Weigh(ctx context.Context, c support.Checker) error {
	left := MaxWeighed
	if err := t.weigh(ctx, c, &left, 0); err != nil {
		return fmt.Errorf("weigh sources: %w", err)
	}
	return nil
}

func (t *Trail) weigh(ctx context.Context, c support.Checker, left *int, depth int) error {
	for i := range t.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := &t.Steps[i]
		s.overlap()
		if s.Answer != "" && *left > 0 && s.unmeasured() {
			*left--
			if err := s.use(ctx, c); err != nil {
				return fmt.Errorf("step %d: %w", s.Number, err)
			}
		}
		if s.Nested != nil && depth < MaxNested {
			if err := s.Nested.weigh(ctx, c, left, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlap compares the passages with the step's words.
func (s *Step) overlap() {
	words := first(s.Answer, s.Question)
	if words == "" || len(s.Sources) == 0 {
		return
	}
	texts := make([]support.Passage, len(s.Sources))
	for i := range s.Sources {
		texts[i].Text = s.Sources[i].text()
	}
	for i, relevance := range support.NewCorpus(texts, nil).Relevance(words) {
		if texts[i].Text != "" {
			s.Sources[i].Overlap = new(estimate(relevance))
		}
	}
}

// unmeasured reports whether there is a source with words whose usage is not known.
func (s *Step) unmeasured() bool {
	for i := range s.Sources {
		if s.Sources[i].Usage == nil && s.Sources[i].text() != "" {
			return true
		}
	}
	return false
}

// use attributes the step's answer to its sources.
func (s *Step) use(ctx context.Context, c support.Checker) error {
	var documents []support.Document
	covered := map[string][]ibid.Span{} // by DocumentID
	for i := range s.Sources {
		if text := s.Sources[i].text(); text != "" {
			documents = append(
				documents,
				support.Document{Source: ibid.Source{ID: strconv.Itoa(i), Kind: ibid.DocumentKind}, Text: text},
			)
			covered[s.Sources[i].DocumentID] = nil
		}
	}
	done, err := support.Attribute(ctx, &ibid.Answer{Text: s.Answer}, documents, &support.AttributeOptions{Checker: c})
	if err != nil {
		return err
	}
	for i := range done.Sentences {
		sentence := &done.Sentences[i]
		for k := range sentence.Candidates {
			if candidate := &sentence.Candidates[k]; candidate.Source != "" {
				row, _ := strconv.Atoi(documents[candidate.Document].Source.ID) // we wrote it
				id := s.Sources[row].DocumentID
				covered[id] = append(covered[id], sentence.Claim)
			}
		}
	}
	shares := support.Usage(s.Answer, covered)
	for i := range s.Sources {
		source := &s.Sources[i]
		if share, ok := shares[source.DocumentID]; ok && source.Usage == nil {
			source.Usage = new(estimate(share))
		}
	}
	return nil
}

// estimate rounds what is estimated: more digits would say more than is known.
func estimate(x float64) float64 { return math.Round(x*100) / 100 }
