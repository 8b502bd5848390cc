package trail

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/support"
)

// AssessOptions has what [Summary.Assess] should know besides the run. Nil and the zero value mean nothing.
type AssessOptions struct {
	Now time.Time // the time that ages of sources are counted from; if zero, ages are unknown
	// Known has what else is known about documents, by DocumentID or Key, such as the results of earlier citations, or
	// feedback. Empty fields are filled in from the run.
	Known map[string]support.QualityInput
}

// maxConflictPassage is how many bytes of a passage, from its beginning, [Summary.Assess] searches for conflicts.
const maxConflictPassage = 64 << 10

// Conflict is a possible conflict between two passages of the run: see [support.Conflict].
type Conflict struct {
	Kind support.ConflictKind
	A, B ConflictSide
	// Note describes the conflict in one line, such as "possible conflict: number: 330 m, 324 m". It omits the values
	// if the summary has no excerpts.
	Note string
}

// ConflictSide is one of the passages.
type ConflictSide struct {
	DocumentID string
	ChunkIndex *int
	Excerpt    string // of the sentence
}

// Assess finds possible conflicts between the passages that the run's steps retrieved or used, and rates each of
// Sources and Primary as a source: see Conflicts and SummarySource.Quality. Limits of [support.Conflicts] that were
// reached are added to Issues.
//
// Set Links first: a sentence of the answer that rests on two documents counts as a statement that they share. Assess
// returns an error only if ctx ends.
func (s *Summary) Assess(ctx context.Context, o *AssessOptions) error {
	if o == nil {
		o = &AssessOptions{}
	}
	d := s.Run.documents()
	against, err := s.conflicts(ctx, d)
	if err != nil {
		return fmt.Errorf("assess sources: %w", err)
	}
	shared, captured := s.shared(), s.captured(d)
	for _, list := range [][]SummarySource{s.Sources, s.Primary} {
		for i := range list {
			f := &list[i]
			in, ok := o.Known[f.DocumentID]
			if !ok && f.Key != "" {
				in = o.Known[f.Key]
			}
			in.Now = o.Now
			f.known(&in, captured[f.DocumentID])
			if in.Agreement == nil {
				in.Agreement = &support.Tally{Good: shared[f.DocumentID], Bad: against[f.DocumentID]}
			}
			f.Quality = new(support.AssessSource(&in))
		}
	}
	return nil
}

// known fills in what the run knows about a document. From is its source in a captured answer, or nil.
func (f *SummarySource) known(in *support.QualityInput, from *ibid.Source) {
	in.URL = cmp.Or(in.URL, f.URL)
	dated := func(dst *time.Time, text string) {
		for _, layout := range []string{time.DateOnly, time.RFC3339} {
			if at, err := time.Parse(layout, text); err == nil && dst.IsZero() {
				*dst = at
			}
		}
	}
	if from != nil {
		dated(&in.Published, from.PublishedAt)
		in.License = cmp.Or(in.License, from.License)
		if in.Authors == nil {
			in.Authors = from.Authors
		}
	}
	if len(f.Version) == len(time.DateOnly) { // with a time of day it may be the time of retrieval
		dated(&in.Modified, f.Version)
	}
}

// captured returns the sources of captured answers by document: for each, the first with the most metadata.
func (s *Summary) captured(d *documents) map[string]*ibid.Source {
	found := make(map[string]*ibid.Source)
	metadata := func(f *ibid.Source) (n int) {
		for _, is := range []bool{len(f.Authors) > 0, f.License != "", f.PublishedAt != ""} {
			if is {
				n++
			}
		}
		return n
	}
	look := func(a *ibid.Answer) {
		if a == nil {
			return
		}
		for i := range a.Sources {
			from := &a.Sources[i]
			n := d.find(&Source{DocumentID: documentID(from), URL: from.URL, Key: from.Key()})
			if n < 0 || metadata(from) == 0 {
				continue
			}
			if old := found[d.names[n]]; old == nil || metadata(from) > metadata(old) {
				found[d.names[n]] = from
			}
		}
	}
	look(s.Run.Final)
	for i := range s.Run.Steps {
		for _, a := range s.Run.Steps[i].Answers {
			look(a.Answer)
		}
	}
	return found
}

// Bibliography returns the documents that the run used or cited as entries for package biblio, with the metadata of
// captured answers.
func (s *Summary) Bibliography() []biblio.Entry {
	captured := s.captured(s.Run.documents())
	entries := make([]biblio.Entry, len(s.Sources))
	for i := range s.Sources {
		f := &s.Sources[i]
		e := ibid.Source{ID: f.DocumentID, Kind: ibid.DocumentKind, Title: cmp.Or(f.Title, f.DocumentID), URL: f.URL}
		if f.URL != "" {
			e.Kind = ibid.Web
		}
		if from := captured[f.DocumentID]; from != nil {
			e = *from
			e.Title, e.URL = cmp.Or(e.Title, f.Title), cmp.Or(e.URL, f.URL)
		}
		entries[i].Source = e
	}
	return entries
}

// shared counts, for each document, the sentences of the answer that rest on it and on another one.
func (s *Summary) shared() map[string]int {
	counts := make(map[string]int)
	if s.Links == nil {
		return counts
	}
	for i := range s.Links.Sentences {
		on := make(map[string]bool)
		for _, p := range s.Links.Sentences[i].Passages {
			if p.Differs == "" {
				on[p.DocumentID] = true
			}
		}
		if len(on) > 1 {
			for id := range on {
				counts[id]++
			}
		}
	}
	return counts
}

// conflicts sets Conflicts, and counts the conflicts of each document with others.
func (s *Summary) conflicts(ctx context.Context, d *documents) (map[string]int, error) {
	var had []int
	for i := range d.rows {
		if d.rows[i].counts() || d.rows[i].Retrieved {
			had = append(had, i)
		}
	}
	var rows []*docRow
	var texts []support.Passage
	cut := 0
	for _, i := range d.withWords(had) {
		words := d.rows[i].text()
		if len(words) > maxConflictPassage {
			words = text.Head(words, maxConflictPassage)
			cut++
		}
		rows, texts = append(rows, &d.rows[i]), append(texts, support.Passage{Text: words})
	}
	found, issues, err := support.Conflicts(ctx, texts, nil)
	if err != nil {
		return nil, err
	}
	s.Issues = append(s.Issues, issues...)
	if cut > 0 {
		s.Issues = append(s.Issues, ibid.Issue{
			Code:   support.IssueConflictsTruncated,
			Detail: fmt.Sprintf("only the first %d bytes of %d passages were searched", maxConflictPassage, cut),
		})
	}
	s.Conflicts = make([]Conflict, len(found))
	against := make(map[string]int)
	for i := range found {
		c := &found[i]
		a, b := rows[c.A.Passage], rows[c.B.Passage]
		s.Conflicts[i] = Conflict{Kind: c.Kind, A: s.side(d, a, &c.A), B: s.side(d, b, &c.B), Note: c.Note}
		if s.options.NoExcerpts {
			s.Conflicts[i].Note = "possible conflict: " + string(c.Kind)
		}
		if a.document != b.document {
			against[d.names[a.document]]++
			against[d.names[b.document]]++
		}
	}
	return against, nil
}

func (s *Summary) side(d *documents, r *docRow, e *support.Excerpt) ConflictSide {
	side := ConflictSide{DocumentID: d.names[r.document], ChunkIndex: r.ChunkIndex}
	if !s.options.NoExcerpts {
		side.Excerpt = Excerpt(e.Text, s.options.Excerpt)
	}
	return side
}

// maxWeighed is how many steps, the first with an answer, [Trail.Weigh] measures the usage of.
const maxWeighed = 50

// Weigh measures, by words alone, how the sources of each step relate to it. It does not change Relevance, which others
// report.
//
//   - Source.Overlap is the BM25 score of the passage for the step's answer, else its question, divided by the score
//     that those words would have as a passage: from 0 to 1, and comparable between steps.
//   - Source.Usage is the share of the information of the step's answer in sentences that the source supports,
//     according to c; nil means support.Lexical. A usage known from citations is kept.
//
// It must not run concurrently with readers of t. It returns an error if ctx ends or the checker fails.
func (t *Trail) Weigh(ctx context.Context, c support.Checker) error {
	left := maxWeighed
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
		if err := s.measureOverlap(ctx); err != nil {
			return err
		}
		unmeasured := func(f Source) bool { return f.Usage == nil && f.text() != "" }
		if s.Answer != "" && *left > 0 && slices.ContainsFunc(s.Sources, unmeasured) {
			*left--
			if err := s.measureUsage(ctx, c); err != nil {
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

// measureOverlap compares the passages with the step's words.
func (s *Step) measureOverlap(ctx context.Context) error {
	words := cmp.Or(s.Answer, s.Question)
	if words == "" || len(s.Sources) == 0 {
		return nil
	}
	texts := make([]support.Passage, len(s.Sources))
	for i := range s.Sources {
		texts[i].Text = s.Sources[i].text()
	}
	relevance, err := support.Relevance(ctx, words, texts)
	for i := range relevance {
		if texts[i].Text != "" {
			s.Sources[i].Overlap = new(estimate(relevance[i]))
		}
	}
	return err
}

// measureUsage attributes the step's answer to its sources.
func (s *Step) measureUsage(ctx context.Context, c support.Checker) error {
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

// estimate rounds to two decimals, since more would suggest a precision that estimates do not have.
func estimate(x float64) float64 {
	if math.Abs(x) > 1<<52 {
		return x // it has no fraction, and x*100 may be infinite
	}
	return math.Round(x*100) / 100
}
