package support

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// finderPage is a page of sentences, four to a paragraph, and their places in its text.
type finderPage struct {
	text  *snapshot.Text
	spans []ibid.Span // empty if not found
}

func pageOf(tb testing.TB, sentences []string) finderPage {
	tb.Helper()
	var b strings.Builder
	b.WriteString("<!doctype html><meta charset=utf-8><body>")
	for i, s := range sentences {
		s = html.EscapeString(strings.ToValidUTF8(s, ""))
		if title, ok := strings.CutPrefix(s, "# "); ok {
			b.WriteString("<h2>" + title + "</h2><p>")
			continue
		}
		if i%4 == 0 {
			b.WriteString("<p>")
		}
		b.WriteString(s + "\n")
	}
	text := testenv.Must(snapshot.Extract([]byte(b.String()), &snapshot.TextOptions{MediaType: "text/html"}))(tb)
	p := finderPage{text: text, spans: make([]ibid.Span, len(sentences))}
	at := 0
	for i, s := range sentences {
		s = snapshot.Normalize(strings.TrimPrefix(strings.ToValidUTF8(s, ""), "# "))
		if n := strings.Index(text.Content[at:], s); n >= 0 && s != "" {
			p.spans[i] = ibid.Span{Start: at + n, End: at + n + len(s)}
			at = p.spans[i].End
		}
	}
	return p
}

// findInWholeTexts looks for the evidence in whole texts, each as one passage.
func findInWholeTexts(tb testing.TB, list []Sought) []Found {
	tb.Helper()
	pairs := make([]Pair, len(list))
	for i := range list {
		pairs[i] = Pair{Claim: list[i].Claim, Passages: passages(list[i].Text.Content)}
	}
	verdicts := testenv.Must(new(Lexical).Check(tb.Context(), pairs))(tb)
	found := make([]Found, len(list))
	for i := range verdicts {
		found[i].Verdict = verdicts[i]
		if len(verdicts[i].Evidence) > 0 {
			found[i].Evidence = verdicts[i].Evidence[0].Span
		}
	}
	return found
}

// Which part of a whole page is shown for a claim: WiCE, where people marked the supporting sentences.
func TestEvalFinder(t *testing.T) {
	rows := evalRows(t, "wice")
	pages, list := make([]finderPage, len(rows)), make([]Sought, len(rows))
	for i := range rows {
		pages[i] = pageOf(t, rows[i].Passages)
		list[i] = Sought{rows[i].Claim, pages[i].text}
	}
	found := testenv.Must(new(Finder).Find(t.Context(), list))(t)
	for _, way := range []struct {
		name             string
		found            []Found
		hit, right, rank float64 // floors
	}{{"whole page", findInWholeTexts(t, list), 0, 0, 0}, {"passages", found, .905, .495, .84}} {
		var all, hits, sentences, right, length float64
		var scores []float64
		var positive []bool
		for i := range way.found {
			f := &way.found[i]
			score := 0.0
			if f.Verdict.Closeness != nil {
				score = *f.Verdict.Closeness
			}
			scores, positive = append(scores, score), append(positive, rows[i].supported())
			gold := slices.Concat(rows[i].Gold...)
			if len(gold) == 0 {
				continue
			}
			all++
			length += float64(f.Evidence.Len())
			hit := 0.0
			for k, s := range pages[i].spans {
				if s.Start < f.Evidence.End && f.Evidence.Start < s.End {
					sentences++
					if slices.Contains(gold, k) {
						right++
						hit = 1
					}
				}
			}
			hits += hit
		}
		rank := auroc(scores, positive)
		t.Logf("%-58s %8.4f   of %.0f; %.3f of its sentences; %.0f bytes; AUROC of the score %.3f",
			fmt.Sprintf("evidence in a page, %s: it has a right sentence", way.name), hits/all, all, right/sentences, length/all, rank)
		if hits/all < way.hit || right/sentences < way.right || rank < way.rank {
			t.Errorf("%s: worse than it was", way.name)
		}
	}
}
