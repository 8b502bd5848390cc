package trail

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// LinkReason says why a sentence is said to rest on a passage.
type LinkReason string

// The reasons, best first.
const (
	ReasonCitation LinkReason = "citation" // the provider's citation says so
	ReasonMarker   LinkReason = "marker"   // a mark in the text does: the number, the id or the address of the source
	// ReasonInferred: a checker finds that it supports the words, or that a step's answer does which rests on it.
	ReasonInferred LinkReason = "inferred"
)

// The limits of [Trail.Link].
const (
	maxPassages = 100_000 // texts that sentences are compared with; the rest are not, and Links.Issues says so
	maxWay      = 64      // sentences of intermediate answers that are looked at for one of the final answer
	maxLinks    = 100     // passages of one sentence; the first are kept
	maxNamed    = 100     // steps that are named for one passage; the first are
)

// maxQuoted is how many passages of a document are searched for the words of one citation.
const maxQuoted = 1000

// LinkOptions says how [Trail.Link] links. The zero value, and nil, mean the defaults.
type LinkOptions struct {
	Threshold   float64 // the least score with which a passage is inferred; 0: what the checker calls supported
	PerSentence int     // how many passages are inferred for one sentence at most; 0: support.DefaultPerSentence
	// how many passages and how many steps a sentence is checked against; 0: support.DefaultCandidates
	Candidates  int
	ByScore     bool // candidates are chosen by the relevance that somebody gave them instead of by BM25
	NoInference bool // only citations and marks count; no checker is asked
}

// Links says what the sentences of a final answer rest on.
type Links struct {
	Sentences []Sentence
	// Uncited is the share of the sentences that say something and rest on no passage, those included that
	// [Sentence.Differs] from all of theirs; nil: no sentence says anything.
	Uncited *float64
	By      string       // the checker that was asked, as ID@Version; empty: none
	Issues  []ibid.Issue // limits that were reached, and marks that lead nowhere
}

// Sentence is one sentence of the final answer.
type Sentence struct {
	Span ibid.Span // in the final answer: Trail.Final's text, else Trail.Answer
	Text string
	// The numbers of the steps that concluded it, ascending: whose answers say it, the first of those that pass it on.
	// Where no step's answer does, those that had its passages.
	Steps    []int
	Passages []Link
	// Skipped says why no passage was looked for, a heading say; empty: it was, or the sentence has some.
	Skipped support.SkipReason

	concluded []int // the steps whose answers say it, as indices: see [linker.concluders]
}

// Differs returns the values of the passages where the sentence has others, and rests on none otherwise: "62". Empty:
// nothing differs, or it rests on another passage.
func (s *Sentence) Differs() string {
	var values []string
	for i := range s.Passages {
		if s.Passages[i].Differs == "" {
			return ""
		}
		if !slices.Contains(values, s.Passages[i].Differs) {
			values = append(values, s.Passages[i].Differs)
		}
	}
	return strings.Join(values, ", ")
}

// NoSources reports whether the sentence says something and rests on no passage.
func (s *Sentence) NoSources() bool { return len(s.Passages) == 0 && s.Skipped == "" }

// Link ties a sentence of the final answer to one passage that supports it.
type Link struct {
	DocumentID string
	Title      string
	ChunkIndex *int
	Locator    *ibid.Locator
	Excerpt    string
	// Steps has the numbers of the steps that used the passage, or where none did of those that retrieved it: of these
	// the ones that concluded the sentence, else the nearest before those, else all, 100 at most. Empty: only the
	// answer names it.
	Steps []int
	// the numbers of the steps whose answers lead there, the final answer's side first; empty: it leads there itself
	Via    []int
	Reason LinkReason
	// Score is how sure the checker is: of several links in a row, of the least sure one. Nil: a provider or a mark
	// says it, or the checker gives no scores.
	Score     *float64
	Threshold float64 // the least score that counts; 0: there is no score
	By        string  // the checker
	Evidence  string  // the words of the passage that support it; empty: no checker said
	// Differs has the values of the passage, "62", where the sentence has others and would otherwise rest on it; empty:
	// nothing differs, as far as the checker finds.
	Differs string
	// Verification is that of the citation, where it names this source alone, else of the passage; nil: none is known.
	Verification *ibid.Verification

	source  *Source
	holders *holders // nil: no step had it
	near    bool     // the checker does not find that it supports the sentence, see [linker.near]
}

// Text returns as much of the passage as is known: all of it, or the words that were quoted, or its excerpt. Empty:
// none.
func (r *Link) Text() string {
	if r.source != nil && r.source.Content != "" {
		return r.source.Content
	}
	return cmp.Or(r.Evidence, r.Excerpt)
}

// Link finds for each sentence of the final answer the steps and the passages that it rests on. The provider's
// citations count first, then marks in the text. For sentences that have neither, passages of all steps are ranked, and
// c is asked whether they support the sentence; so are the answers of the steps, and what those rest on is followed
// back through the steps before. A sentence that no text supports alone may rest on several together: see
// [support.Together]. Nil c is support.Lexical.
//
// A mark is the id, the title or the address of a source, [step 2], or a number where one step alone can be meant: the
// one that gave the answer, else the only one with sources. The number counts that step's sources.
//
// Link sets Step.Fed of all steps and changes nothing else, so it must not run beside a reader of t. The error says
// that ctx ended, or that the checker could not work at all.
func (t *Trail) Link(ctx context.Context, c support.Checker, o *LinkOptions) (*Links, error) {
	l := newLinker(t, c, o)
	l.links.Sentences = l.sentences(l.final.Text, l.origin)
	l.linkCitations(l.final, l.links.Sentences)
	for i := range l.links.Sentences {
		if s := &l.links.Sentences[i]; len(s.Passages) == 0 {
			l.reportLost(i, l.linkMarks(s, l.origin))
		}
	}
	if err := l.infer(ctx); err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	l.finish()
	return l.links, nil
}

// linker is one call of Link.
type linker struct {
	*documents
	t        *Trail
	links    *Links
	options  LinkOptions
	checker  support.Checker
	final    *ibid.Answer
	origin   int            // the step that gave the final answer, else the only one with sources; -1: neither
	last     int            // the last step whose answer is the final one; -1: none
	byDoc    [][]int        // rows of each document
	passages []*holders     // of each passage
	lost     int            // marks that lead nowhere
	holders  []*holders     // by row: those of its passage
	bySaid   map[string]int // what marks call a document; -1: more than one
	before   [][]int        // the graph
	byNumber map[int]int    // the last step of each number
	bases    map[int]*basis // by step
	feeders  map[int]map[int]int
	answers  *support.Corpus // of the steps; nil: not needed yet
}

func newLinker(t *Trail, c support.Checker, o *LinkOptions) *linker {
	l := &linker{
		documents: t.documents(),
		t:         t,
		links:     &Links{},
		origin:    -1,
		last:      -1,
		checker:   c,
		final:     t.Final,
		bases:     map[int]*basis{},
		feeders:   map[int]map[int]int{},
		before:    t.Graph(),
		byNumber:  t.lastByNumber(),
	}
	if o != nil {
		l.options = *o
	}
	if c == nil {
		l.checker = &support.Lexical{}
	}
	if l.options.PerSentence <= 0 {
		l.options.PerSentence = support.DefaultPerSentence
	}
	if l.options.Candidates <= 0 {
		l.options.Candidates = support.DefaultCandidates
	}
	if l.final == nil {
		l.final = &ibid.Answer{Text: strings.ToValidUTF8(t.Answer, "\ufffd")}
	}
	l.byDoc, l.holders = make([][]int, len(l.names)), make([]*holders, len(l.rows))
	known := newPassageIndex(len(l.rows))
	for i := range l.rows {
		n := l.rows[i].document
		l.byDoc[n] = append(l.byDoc[n], i)
		l.notePassage(i, known)
	}
	only, withSources := -1, 0
	for i := range t.Steps {
		sources := len(t.Steps[i].Sources) > 0
		if sources {
			only = i
			withSources++
		}
		if t.Steps[i].Answer == l.final.Text && l.final.Text != "" {
			if l.last = i; sources {
				l.origin = i
			}
		}
	}
	if l.origin < 0 && withSources == 1 {
		l.origin = only
	}
	l.nameMarks()
	return l
}

// linkCitations adds what the citations of an answer say of its sentences.
func (l *linker) linkCitations(a *ibid.Answer, sentences []Sentence) {
	if len(a.Citations) == 0 {
		return
	}
	sources := make(map[string]*Source, len(a.Sources))
	for i := range a.Sources {
		s := SourcesFromAnswer(&ibid.Answer{Sources: a.Sources[i : i+1]})[0]
		sources[a.Sources[i].ID] = &s
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		if !c.Placed() {
			continue
		}
		for k := range coveredSentences(sentences, c) {
			for r := range c.Refs {
				if source := sources[c.Refs[r].Source]; source != nil {
					sentences[k].add(l.citedLink(c, &c.Refs[r], source))
				}
			}
		}
	}
}

// coveredSentences yields the indices of the sentences that a citation stands for; a point, for the one that it closes.
func coveredSentences(sentences []Sentence, c *ibid.Citation) iter.Seq[int] {
	span := c.Claim
	if span.Len() <= 0 {
		span = c.Span
	}
	return func(yield func(int) bool) {
		k, _ := slices.BinarySearchFunc(sentences, span.Start, func(s Sentence, at int) int {
			if s.Span.End <= at {
				return -1
			}
			return 1
		})
		if span.Len() <= 0 {
			if k > 0 && sentences[k-1].Span.End == span.Start {
				k--
			}
			if k < len(sentences) {
				yield(k)
			}
			return
		}
		for ; k < len(sentences) && sentences[k].Span.Start < span.End && yield(k); k++ {
		}
	}
}

func (l *linker) citedLink(c *ibid.Citation, ref *ibid.Ref, source *Source) Link {
	var link Link
	if n := l.find(source); n >= 0 {
		link = l.linkTo(n, ref.Quote)
	} else {
		link = Link{
			DocumentID: source.DocumentID,
			Title:      source.Title,
			Excerpt:    cmp.Or(Excerpt(ref.Quote, 0), source.Excerpt),
		}
	}
	link.Locator = cmp.Or(ref.Locator, link.Locator)
	if len(c.Refs) == 1 {
		link.Verification = cmp.Or(c.Verification, link.Verification)
	}
	switch c.Origin {
	case ibid.OriginMarker:
		link.Reason = ReasonMarker
	case ibid.OriginInferred:
		link.Reason = ReasonInferred
		link.Score = jsonNumber(ref.Confidence)
		if c.Support != nil {
			link.Score, link.By = jsonNumber(c.Support.Score), c.Support.By
		}
	default:
		link.Reason = ReasonCitation
	}
	link.Evidence = ref.Quote
	return link
}

// linkTo returns a link to a document: the passage that has the quote, else the first that a step used.
func (l *linker) linkTo(n int, quote string) Link {
	best := -1
	for _, i := range l.byDoc[n][:min(len(l.byDoc[n]), maxQuoted)] {
		r := &l.rows[i]
		if quote != "" && strings.Contains(r.text(), quote) {
			best = i
			break
		}
		if best < 0 || r.counts() && !l.rows[best].counts() {
			best = i
		}
	}
	return l.linkToRow(best)
}

// linkToRow returns a link to the passage of a row, with the steps that had this passage.
func (l *linker) linkToRow(row int) Link {
	r := &l.rows[row]
	h := l.holders[row]
	return Link{
		DocumentID: l.names[r.document], Title: h.title, ChunkIndex: r.ChunkIndex, Locator: r.Locator,
		Excerpt: Excerpt(cmp.Or(r.Excerpt, r.Content), 0), Verification: r.Verification,
		source: r.Source, holders: h,
	}
}

// add adds a passage to the sentence, unless it has it.
func (s *Sentence) add(r Link) {
	for i := range s.Passages {
		p := &s.Passages[i]
		if p.DocumentID == r.DocumentID && p.source == r.source && p.Evidence == r.Evidence {
			return
		}
	}
	if len(s.Passages) < maxLinks {
		s.Passages = append(s.Passages, r)
	}
}

// finish names the steps of all sentences, counts the sentences without sources and sets Step.Fed.
func (l *linker) finish() {
	for i := range l.t.Steps {
		l.t.Steps[i].Fed = nil
	}
	say, without := 0, 0
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		l.nameSteps(s)
		if len(s.Passages) > 0 {
			s.Skipped = ""
		}
		if s.Skipped == "" {
			say++
		}
		if s.NoSources() || s.Skipped == "" && s.Differs() != "" {
			without++
		}
		for _, n := range s.Steps {
			if step, ok := l.byNumber[n]; ok {
				l.t.Steps[step].Fed = append(l.t.Steps[step].Fed, s.Span)
			}
		}
	}
	if say > 0 {
		l.links.Uncited = new(float64(without) / float64(say))
	}
}

// FinalID returns the id of the captured answer that is the final one: AnswerID, else that of the step's answer which
// is Final itself, else of the last one of the same words. Empty: none is.
func (t *Trail) FinalID() string {
	if t.Final == nil || t.AnswerID != "" {
		return t.AnswerID
	}
	id := ""
	for i := range slices.Backward(t.Steps) {
		for k := range slices.Backward(t.Steps[i].Answers) {
			one := &t.Steps[i].Answers[k]
			switch {
			case one.ID == "" || one.Answer == nil:
			case one.Answer == t.Final:
				return one.ID
			case id == "" && one.Answer.Text == t.Final.Text:
				id = one.ID
			}
		}
	}
	return id
}

// FinalAnswer returns the final answer with its citations. Where only its text is known its sentences cite the
// documents that they rest on, as [Trail.Link] finds them with c and o, with the origin [ibid.OriginInferred]. Of a
// document with an address the passage is quoted: see [Source.Quote]; of a passage longer than that, what supports the
// sentence. Nil: there is no final answer. The error says that ctx ended, or that the checker could not
// work at all.
func (t *Trail) FinalAnswer(ctx context.Context, c support.Checker, o *LinkOptions) (*ibid.Answer, error) {
	if t.Final != nil || t.Answer == "" {
		return t.Final, nil
	}
	links, err := t.Link(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("citing what the final answer rests on: %w", err)
	}
	a := &ibid.Answer{Text: t.Answer, Complete: true}
	for i := range links.Sentences {
		s := &links.Sentences[i]
		var refs []ibid.Ref
		for k := range s.Passages {
			if p := &s.Passages[k]; p.Differs != "" || p.near || p.Score != nil && *p.Score < support.Balanced {
				continue
			}
			ref := ibid.Ref{Source: addSource(a, &s.Passages[k]), Quote: s.Passages[k].quote()}
			if ref.Source != "" && !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
		if len(refs) == 0 {
			continue
		}
		if err := a.Cite(s.Span, refs...); err != nil {
			return nil, fmt.Errorf("citing what the final answer rests on: %w", err)
		}
	}
	return a, nil
}

// quote returns what a citation of the passage quotes; empty: nothing, for its document has no address where others
// could look for it.
func (r *Link) quote() string {
	switch {
	case r.source == nil || r.source.URL == "":
		return ""
	case utf8.RuneCountInString(r.source.Content) > MaxQuote && r.Evidence != "":
		return r.Evidence
	}
	return r.source.Quote()
}

// addSource returns the id of a passage's document among the answer's sources, which it is added to; empty: no step has
// it.
func addSource(a *ibid.Answer, r *Link) string {
	switch {
	case a.Source(r.DocumentID) != nil:
		return r.DocumentID
	case r.source == nil:
		return ""
	}
	source := ibid.Source{
		ID:      r.DocumentID,
		Kind:    ibid.DocumentKind,
		Title:   r.source.Title,
		URL:     r.source.URL,
		Content: r.source.Content,
	}
	if source.URL != "" {
		source.Kind = ibid.Web
	}
	a.Sources = append(a.Sources, source)
	return source.ID
}
