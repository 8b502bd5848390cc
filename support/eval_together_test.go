package support

import (
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// The gain from checking passages together: AttributionBench, the sentences of each claim among the passages of its own
// row and the nearest of others, first for rows with one passage, then for those with several. With one citation per
// sentence, none are combined.
func TestEvalTogether(t *testing.T) {
	rows := evalRows(t, "attribench")
	var pool []Passage
	known := map[string]bool{}
	for i := range rows {
		for _, text := range rows[i].Passages {
			if !known[text] {
				known[text] = true
				pool = append(pool, Passage{Text: text})
			}
		}
	}
	corpus := NewCorpus(pool)
	for _, several := range []bool{false, true} {
		var alone, together tally
		for i := range rows {
			row := &rows[i]
			if (len(row.Passages) > 1) != several {
				continue
			}
			var docs []Document
			own := map[string]bool{}
			for _, text := range row.Passages {
				own[text] = true
				docs = append(docs, Document{Text: text})
			}
			for _, hit := range corpus.Search(row.Claim, distractorPassages+len(docs)) {
				if text := pool[hit.Passage].Text; !own[text] {
					docs = append(docs, Document{Text: text})
				}
			}
			alone.add(t, row, docs, 1)
			together.add(t, row, docs, DefaultPerSentence)
		}
		t.Logf("several passages %-5t   alone: F1 %.4f of %+v   together: F1 %.4f of %+v", several, alone.f1(), alone, together.f1(), together)
		if together.f1() < alone.f1() {
			t.Errorf("several passages %t: F1 = %.4f, without %.4f", several, together.f1(), alone.f1())
		}
	}
}

// tally counts sentences: those of claims that their passages support, those that were cited, and those cited rightly.
type tally struct{ supported, cited, right float64 }

func (c *tally) f1() float64 { return 2 * c.right / max(1, c.cited+c.supported) }

func (c *tally) add(t *testing.T, row *evalRow, docs []Document, most int) {
	t.Helper()
	got := testenv.Must(Attribute(t.Context(), &ibid.Answer{Text: row.Claim}, docs, &AttributeOptions{PerSentence: most}))(t)
	for i := range got.Sentences {
		s := &got.Sentences[i]
		if s.Skipped != "" {
			continue
		}
		if row.supported() {
			c.supported++
		}
		if s.Cited == 0 {
			continue
		}
		c.cited++
		for k := range s.Candidates {
			if x := &s.Candidates[k]; row.supported() && x.Source != "" && x.Document < len(row.Passages) {
				c.right++
				break
			}
		}
	}
}
