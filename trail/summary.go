package trail

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// The defaults of [SummaryOptions].
const (
	DefaultThreshold = 0.7 // the relevance of a primary source is above this
	DefaultTop       = 3   // the most primary sources there are
)

// SummaryOptions configures [Trail.Summary]. Nil and the zero value mean the defaults.
type SummaryOptions struct {
	Threshold *float64 // the relevance of a primary source is above this; nil means DefaultThreshold
	Top       int      // the most primary sources there are; 0 means DefaultTop
	Excerpt   int      // the length of an excerpt in characters; 0 means DefaultExcerpt
	// Adjust ranks sources by relevance times the confidence of their step. The relevance itself does not change.
	// Sources whose step has no confidence from 0 to 1 have no such product and come after those that have one.
	Adjust     bool
	NoExcerpts bool // omit the text of sources: excerpts, contents, contexts and captured answers
}

// Summary lists the sources that a run rests on. As JSON it is the run with the members source_summary, display,
// sentences and uncited_share added; docs/trail.md describes them.
type Summary struct {
	Run     *Trail
	Sources []SummarySource // the documents that a step used or cited, most relevant first, each once
	Primary []SummarySource // the most influential of them
	Unused  []SummarySource // documents that were only retrieved
	Steps   []StepUsage     // by number, each once
	// The result of [Trail.Link], set by [Summary.SetLinks]; nil if sentences were not linked.
	Links  *Links
	Issues []ibid.Issue // the result of [Trail.Check], and limits that Assess reached
	// Conflicts are the possible conflicts between passages, of the same or of different documents; nil if
	// [Summary.Assess] was not called.
	Conflicts []Conflict

	options SummaryOptions
	page    *page // nil if this is all of the run
}

// SummarySource is a document of a run. Its Source is the most relevant row of any step that used it, with an excerpt
// of the requested length; what that row lacks (a title, a URL, any text) comes from other rows. Overlap and Usage are
// the largest of any step. Version, if unknown, is the hash of the passage's Content. Verification is nil unless
// checking gave the same result for all passages.
type SummarySource struct {
	Source
	OtherIDs []string         // other ids that steps used for it
	Passages []SummaryPassage // all of its passages that a step had, most relevant first
	// The numbers of the steps that used or cited it or, if none did, that retrieved it.
	Steps []int
	// Quality rates the document as a source, whatever its content; nil if [Summary.Assess] was not called or the
	// document was not used.
	Quality *support.Quality
}

// SummaryPassage is one passage of a document.
type SummaryPassage struct {
	Source
	Steps []int // the numbers of the steps that had it
	at    int   // its index in the document's passageIndex
}

// StepUsage lists the documents that a step used.
type StepUsage struct {
	Number    int
	Documents []string // their ids, in the order of the step's list, each once; empty if it used none
	Best      []Source // for each of Documents, the step's most relevant row with its largest Overlap and Usage
	Retrieved int      // how many documents it retrieved
}

// Summary sums up what the steps of the run used. Its time and memory are linear in the number of sources, apart from
// sorting. The summary shares memory with t, which is not changed.
//
// Sources are ordered by relevance. Those whose relevance was only derived from their position in a list
// ([ibid.ScoreRank]) come after those whose relevance was measured, and those without one last. Among equally relevant
// sources the one used first comes first.
func (t *Trail) Summary(o *SummaryOptions) *Summary {
	s := &Summary{Run: t, Issues: t.Check()}
	if o != nil {
		s.options = *o
	}
	if s.options.Threshold == nil {
		s.options.Threshold = new(DefaultThreshold)
	}
	if s.options.Top <= 0 {
		s.options.Top = DefaultTop
	}
	d := t.documents()
	s.usage(d)
	used, unused := make([][]docRow, len(d.names)), make([][]docRow, len(d.names))
	for _, r := range d.rows {
		if r.counts() {
			used[r.document] = append(used[r.document], r)
		} else {
			unused[r.document] = append(unused[r.document], r)
		}
	}
	for n := range d.names {
		switch {
		case len(used[n]) > 0:
			s.Sources = append(s.Sources, s.document(d, used[n]))
		case len(unused[n]) > 0:
			s.Unused = append(s.Unused, s.document(d, unused[n]))
		}
	}
	slices.SortStableFunc(s.Sources, func(a, b SummarySource) int { return s.compare(&a.Source, &b.Source) })
	slices.SortStableFunc(s.Unused, func(a, b SummarySource) int { return s.compare(&a.Source, &b.Source) })
	s.Primary = s.primary()
	return s
}

// compare orders sources by descending relevance: measured ones first, then those derived from a rank, then those
// without.
func (s *Summary) compare(a, b *Source) int {
	if !s.options.Adjust {
		return compareRelevance(a, b)
	}
	byAdjusted := compareScores(a.Adjusted, b.Adjusted)
	if a.Adjusted == nil || b.Adjusted == nil {
		return cmp.Or(byAdjusted, compareRelevance(a, b))
	}
	return cmp.Or(rankDerived(a)-rankDerived(b), byAdjusted, compareRelevance(a, b))
}

func compareRelevance(a, b *Source) int {
	if a.Relevance == nil || b.Relevance == nil {
		return compareScores(a.Relevance, b.Relevance)
	}
	return cmp.Or(rankDerived(a)-rankDerived(b), compareScores(a.Relevance, b.Relevance))
}

// rankDerived returns 1 for a source whose relevance was derived from its rank, else 0.
func rankDerived(f *Source) int {
	if f.Origin == ibid.ScoreRank {
		return 1
	}
	return 0
}

func compareScores(a, b *float64) int {
	a, b = jsonNumber(a), jsonNumber(b)
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return cmp.Compare(*b, *a)
	}
}

// effective returns the score that sources are ranked by.
func (s *Summary) effective(f *Source) *float64 {
	if s.options.Adjust {
		return f.Adjusted
	}
	return jsonNumber(f.Relevance)
}

func (s *Summary) primary() []SummarySource {
	var all []SummarySource
	for i := range s.Sources {
		score := s.effective(&s.Sources[i].Source)
		if len(all) < s.options.Top && score != nil && *score > *s.options.Threshold {
			all = append(all, s.Sources[i])
		}
	}
	if len(all) > 0 {
		return all
	}
	n := min(s.options.Top, len(s.Sources))
	return s.Sources[:n:n]
}

// SetLinks sets what the sentences of the run's answer rest on, as [Trail.Link] found it. The documents that they rest
// on are the primary ones, whatever their relevance: those of most sentences first. If the answer rests on none, or if
// only citations and marks were followed, relevance alone tells which are.
func (s *Summary) SetLinks(links *Links) {
	if s.Links = links; links.By == "" {
		return
	}
	rests := map[string]int{} // sentences that rest on a document
	for i := range links.Sentences {
		here := map[string]bool{}
		for k := range links.Sentences[i].Passages {
			if p := &links.Sentences[i].Passages[k]; p.Differs == "" && !here[p.DocumentID] {
				here[p.DocumentID] = true
				rests[p.DocumentID]++
			}
		}
	}
	var all []SummarySource
	for i := range s.Sources {
		if rests[s.Sources[i].DocumentID] > 0 {
			all = append(all, s.Sources[i])
		}
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b SummarySource) int {
		return cmp.Compare(rests[b.DocumentID], rests[a.DocumentID])
	})
	s.Primary = all[:min(len(all), s.options.Top)]
}

// usage lists the documents of each step.
func (s *Summary) usage(d *documents) {
	t := s.Run
	index := make(map[int]int, len(t.Steps)) // in s.Steps, by number
	for i := range t.Steps {
		n := t.Steps[i].Number
		if _, ok := index[n]; !ok {
			index[n] = len(s.Steps)
			s.Steps = append(s.Steps, StepUsage{Number: n, Documents: []string{}})
		}
	}
	type pair struct{ step, document int }
	used, retrieved := make(map[pair]int, len(d.rows)), make(map[pair]bool, len(d.rows)) // used: index in Documents
	for _, r := range d.rows {
		u := &s.Steps[index[t.Steps[r.step].Number]]
		p := pair{u.Number, r.document}
		if r.counts() {
			k, ok := used[p]
			if !ok {
				k = len(u.Documents)
				used[p] = k
				u.Documents, u.Best = append(u.Documents, d.names[r.document]), append(u.Best, *r.Source)
			}
			u.Best[k].improve(r.Source)
		}
		if r.Retrieved && !retrieved[p] {
			retrieved[p] = true
			u.Retrieved++
		}
	}
	slices.SortStableFunc(s.Steps, func(a, b StepUsage) int { return cmp.Compare(a.Number, b.Number) })
}

// improve replaces a row by a more relevant one of its document, and keeps the larger Overlap and Usage of both.
func (s *Source) improve(by *Source) {
	overlap, usage := larger(s.Overlap, by.Overlap), larger(s.Usage, by.Usage)
	if compareRelevance(by, s) < 0 {
		*s = *by
	}
	s.Overlap, s.Usage = overlap, usage
}

// document merges the rows of a document into one source.
func (s *Summary) document(d *documents, rows []docRow) SummarySource {
	sum := SummarySource{OtherIDs: d.also[rows[0].document]}
	known := newPassageIndex(len(rows))
	for _, r := range rows {
		step := &s.Run.Steps[r.step]
		sum.Steps = append(sum.Steps, step.Number)
		row := s.shown(r, step, d)
		if k, ok := known.find("", r.Source); ok {
			p := &sum.Passages[k]
			p.Steps = append(p.Steps, step.Number)
			known.join(k, r.Source)
			if s.compare(&row, &p.Source) < 0 {
				row, p.Source = p.Source, row
			}
			p.fill(&row)
			continue
		}
		known.add("", r.Source)
		sum.Passages = append(
			sum.Passages,
			SummaryPassage{Source: row, Steps: []int{step.Number}, at: len(sum.Passages)},
		)
	}
	sum.Steps = distinct(sum.Steps)
	slices.SortStableFunc(sum.Passages, func(a, b SummaryPassage) int { return s.compare(&a.Source, &b.Source) })
	for k := range sum.Passages {
		p := &sum.Passages[k]
		p.Steps = distinct(p.Steps)
		sum.Retrieved, sum.Used, sum.Cited = sum.Retrieved || p.Retrieved, sum.Used || p.Used, sum.Cited || p.Cited
	}
	best := sum.Passages[0].Source
	best.Retrieved, best.Used, best.Cited = sum.Retrieved, sum.Used, sum.Cited
	for k := range sum.Passages[1:] {
		p := &sum.Passages[1+k]
		best.Title, best.URL, best.Key = cmp.Or(best.Title, p.Title), cmp.Or(best.URL, p.URL), cmp.Or(best.Key, p.Key)
		best.Version, best.Excerpt = cmp.Or(best.Version, p.Version), cmp.Or(best.Excerpt, p.Excerpt)
		best.Overlap, best.Usage = larger(best.Overlap, p.Overlap), larger(best.Usage, p.Usage)
		if v := best.Verification; v == nil || p.Verification == nil || p.Verification.Status != v.Status {
			best.Verification = nil
		}
	}
	for k := range sum.Passages {
		if p := &sum.Passages[k]; p.Version == "" {
			p.Version = known.version(p.at)
			best.Version = cmp.Or(best.Version, p.Version)
		}
	}
	sum.Source = best
	return sum
}

// shown returns a row as the summary shows it.
func (s *Summary) shown(r docRow, step *Step, d *documents) Source {
	f := *r.Source
	f.DocumentID = d.names[r.document]
	f.Relevance = jsonNumber(f.Relevance)
	f.Adjusted = nil
	if s.options.Adjust && f.Relevance != nil && step.Confidence != nil && *step.Confidence >= 0 &&
		*step.Confidence <= 1 {
		f.Adjusted = new(*f.Relevance * *step.Confidence)
	}
	switch n := s.options.Excerpt; {
	case s.options.NoExcerpts:
		f.Excerpt = ""
	case n > DefaultExcerpt && len(f.Content) > len(f.Excerpt):
		f.Excerpt = Excerpt(f.Content, n)
	default:
		f.Excerpt = Excerpt(cmp.Or(f.Excerpt, f.Content), n)
	}
	f.Content, f.Extra = "", nil // the run keeps them
	return f
}

// distinct sorts numbers and removes duplicates.
func distinct(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// MarshalJSON returns the run with the members that the summary adds.
func (s *Summary) MarshalJSON() ([]byte, error) {
	t := s.Run.forSummary(s.options.NoExcerpts, 0)
	issues := checker{seen: make(map[ibid.Issue]bool)} // of the run and of its links, each once
	for _, issue := range s.Issues {
		issues.add(issue)
	}
	if s.Links != nil {
		for _, issue := range s.Links.Issues {
			issues.add(issue)
		}
	}
	var w objectWriter
	t.write(&w, issues.issues)
	if s.page != nil {
		w.nested("page", s.page.write)
	}
	w.nested("source_summary", s.writeSources)
	w.nested("display", s.writeDisplay)
	if s.Links == nil {
		w.member("sentences", nil)
		w.member("uncited_share", nil)
	} else {
		writeList(&w, "sentences", s.Links.Sentences, func(w *objectWriter, x *Sentence) { x.write(w, &s.options) })
		w.member("uncited_share", s.Links.Uncited)
	}
	return w.object(t.Extra)
}

func (s *Summary) writeSources(w *objectWriter) {
	full := func(w *objectWriter, d *SummarySource) {
		d.write(w)
		w.orOmit("other_ids", d.OtherIDs)
		if len(d.Passages) > 0 {
			writeList(w, "passages", d.Passages, writePassage)
		}
		w.member("steps", d.Steps)
		d.writeQuality(w)
	}
	writeList(w, "all_sources", s.Sources, full)
	writeList(w, "primary_sources", s.Primary, func(w *objectWriter, d *SummarySource) {
		d.write(w)
		w.orOmit("other_ids", d.OtherIDs)
		w.member("steps", d.Steps)
	})
	without := []int{}
	w.nested("source_usage_by_step", func(w *objectWriter) {
		for _, u := range s.Steps {
			w.member(strconv.Itoa(u.Number), u.Documents)
			if len(u.Documents) == 0 {
				without = append(without, u.Number)
			}
		}
	})
	writeList(w, "unused_sources", s.Unused, full)
	w.member("steps_without_sources", without)
	if s.Conflicts != nil { // Assess was called
		w.member("conflicts", s.Conflicts)
	}
}

// writePassage writes the members that differ between the passages of a document.
func writePassage(w *objectWriter, p *SummaryPassage) {
	w.member("chunk_index", p.ChunkIndex)
	w.orNull("excerpt", p.Excerpt)
	p.writeScores(w)
	w.orNull("retrieval_rank", p.Rank)
	w.orOmit("locator", p.Locator)
	w.orOmit("version", p.Version)
	w.orOmit("verification", p.Verification)
	w.member("cited", p.Cited)
	w.member("steps", p.Steps)
}

// writeDisplay writes the data of a page. The contract fixes its names and shape: nothing may be added.
func (s *Summary) writeDisplay(w *objectWriter) {
	w.member("total_sources", len(s.Sources))
	writeList(w, "primary_sources", s.Primary, func(w *objectWriter, p *SummarySource) {
		w.member("document_id", p.DocumentID)
		w.member("title", cmp.Or(p.Title, p.DocumentID))
		score := s.effective(&p.Source)
		if score != nil {
			score = new(estimate(*score))
		}
		w.orNull("relevance", score)
		w.orNull("excerpt", p.Excerpt)
	})
	w.nested("step_breakdown", func(w *objectWriter) {
		for _, u := range s.Steps {
			w.nested("step_"+strconv.Itoa(u.Number), func(w *objectWriter) {
				w.member("step_number", u.Number)
				w.member("sources_used", len(u.Documents))
				w.member("document_ids", u.Documents)
			})
		}
	})
}

// forSummary returns a copy of the run whose steps have NoSources set, and no text of sources if noTexts is true.
func (t *Trail) forSummary(noTexts bool, depth int) *Trail {
	c := *t
	if noTexts {
		c.Final = nil
	}
	c.Steps = slices.Clone(t.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		s.NoSources = !s.uses(depth)
		if noTexts {
			s.Context, s.Answers = nil, nil
			s.Sources = slices.Clone(s.Sources)
			for k := range s.Sources {
				s.Sources[k].Excerpt, s.Sources[k].Content, s.Sources[k].Extra = "", "", nil
			}
		}
		switch {
		case s.Nested == nil:
		case depth < MaxNested:
			s.Nested = s.Nested.forSummary(noTexts, depth+1)
		case noTexts:
			s.Nested = nil
		}
	}
	return &c
}

// uses reports whether the step, or a run nested in it, used or cited a source.
func (s *Step) uses(depth int) bool {
	return slices.ContainsFunc(s.Sources, func(f Source) bool { return f.counts() }) ||
		s.Nested != nil && depth < MaxNested &&
			slices.ContainsFunc(s.Nested.Steps, func(in Step) bool { return in.uses(depth + 1) })
}

func (s *Sentence) write(w *objectWriter, o *SummaryOptions) {
	w.member("text", s.Text)
	w.member("text_start", s.Span.Start)
	w.member("text_end", s.Span.End)
	w.member("steps", orEmpty(s.Steps))
	writeList(w, "passages", s.Passages, func(w *objectWriter, r *Link) {
		w.member("document_id", r.DocumentID)
		w.orNull("document_title", r.Title)
		w.member("chunk_index", r.ChunkIndex)
		w.orOmit("locator", r.Locator)
		w.member("steps", orEmpty(r.Steps))
		w.member("via", orEmpty(r.Via))
		w.member("reason", r.Reason)
		w.orNull("score", r.Score)
		w.orNull("threshold", r.Threshold)
		w.orNull("by", r.By)
		evidence, excerpt, differs := r.Evidence, Excerpt(r.Excerpt, o.Excerpt), r.Differs
		if o.NoExcerpts {
			evidence, excerpt = "", ""
			if differs != "" {
				differs = "another value"
			}
		}
		w.orNull("evidence", evidence)
		w.orNull("excerpt", excerpt)
		w.orOmit("differs", differs)
		w.orOmit("verification", r.Verification)
	})
	w.member("no_sources", s.NoSources())
	w.orNull("skipped", s.Skipped)
}

// MarshalJSON returns the conflict as docs/trail.md describes it.
func (c Conflict) MarshalJSON() ([]byte, error) {
	var w objectWriter
	w.member("kind", c.Kind)
	w.nested("a", c.A.write)
	w.nested("b", c.B.write)
	w.member("note", c.Note)
	return w.object(nil)
}

func (s *ConflictSide) write(w *objectWriter) {
	w.member("document_id", s.DocumentID)
	w.member("chunk_index", s.ChunkIndex)
	w.orNull("excerpt", s.Excerpt)
}

// writeQuality writes the quality of a source that was assessed.
func (f *SummarySource) writeQuality(w *objectWriter) {
	if f.Quality == nil {
		return
	}
	w.nested("quality", func(w *objectWriter) {
		score := f.Quality.Score
		if score != nil {
			score = new(estimate(*score))
		}
		w.member("score", score)
		w.member("known", estimate(f.Quality.Known))
		writeList(w, "parts", f.Quality.Parts, func(w *objectWriter, p *support.Part) {
			w.member("name", p.Kind)
			w.member("value", estimate(p.Value))
			w.member("weight", p.Weight)
			w.member("why", p.Note)
		})
	})
}
