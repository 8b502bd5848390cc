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

// LinkReason is the reason why a sentence is linked to a passage.
type LinkReason string

// The reasons, strongest first.
const (
	ReasonCitation LinkReason = "citation" // the provider cites it
	ReasonMarker   LinkReason = "marker"   // a mark in the text names it: the number, id or address of the source
	// ReasonInferred means that a checker finds the sentence supported by the passage, or by a step's answer that rests
	// on it.
	ReasonInferred LinkReason = "inferred"
)

// The limits of [Trail.Link].
const (
	maxPassages = 100_000 // texts that sentences are compared with; Links.Issues reports if there are more
	maxFollowed = 64      // sentences of intermediate answers that are followed for one of the final answer
	maxLinks    = 100     // passages of one sentence; the first are kept
	maxNamed    = 100     // steps of one passage; the first are kept
)

// maxQuoted is how many passages of a document are searched for the quote of a citation.
const maxQuoted = 1000

// LinkOptions configures [Trail.Link]. Nil and the zero value mean the defaults.
type LinkOptions struct {
	Threshold   float64 // the least score of an inferred passage; 0 means what the checker calls supported or close
	PerSentence int     // the most passages inferred for one sentence; 0 means support.DefaultPerSentence
	// The number of passages, and of steps, that a sentence is checked against; 0 means support.DefaultCandidates.
	Candidates  int
	ByScore     bool // choose candidates by their reported relevance instead of BM25
	NoInference bool // use only citations and marks, and no checker
}

// Links lists what the sentences of a final answer rest on.
type Links struct {
	Sentences []Sentence
	// Uncited is the share of sentences that rest on no passage, or only on passages that differ ([Sentence.Differs]),
	// among those that say something; nil if none does.
	Uncited *float64
	By      string       // the checker that was asked, as ID@Version; empty if none
	Issues  []ibid.Issue // limits that were reached, and unresolved marks
}

// Sentence is one sentence of the final answer.
type Sentence struct {
	Span ibid.Span // in the final answer: Trail.Final's text, else Trail.Answer
	Text string
	// The numbers of the steps that it rests on, ascending: those that concluded it, whose answers are the first to say
	// it, and those that lead from there to its passages. If no step's answer says it, the steps that had its passages.
	Steps    []int
	Passages []Link
	// Skipped is the reason why no passage was looked for, for example a heading, or [SkipUnread]; empty if one was, or
	// if the sentence has passages.
	Skipped support.SkipReason

	concluded []int // the indices of the steps that concluded it: see [linker.concluders]
}

// SkipUnread is the reason why it is not known what a sentence rests on: no passage supports it, but a step that it may
// rest on had a result that could not be read, or whose words were not kept.
const SkipUnread support.SkipReason = "result-unread"

// Differs returns the values that the passages have in place of the sentence's, such as "62". It is empty if nothing
// differs, or if the sentence rests on another passage.
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
	// Steps has the numbers of the steps that used the passage or, if none did, of those that retrieved it: of these
	// the ones that concluded the sentence, else the nearest before those, else all, at most 100. It is empty if only
	// the answer names the passage.
	Steps []int
	// The numbers of the steps whose answers lead to the passage, the final answer's side first; empty if the final
	// answer leads to it directly.
	Via    []int
	Reason LinkReason
	// Score is how sure the checker is; in a chain of links, of the least sure one. Nil if a provider or a mark makes
	// the link, or if the checker gives no scores.
	Score     *float64
	Threshold float64 // the least score that counts; 0 if there is no score
	By        string  // the checker
	Evidence  string  // the words of the passage that support it; empty if unknown
	// Differs has the values of the passage, such as "62", if the sentence has others and would otherwise rest on it;
	// empty if the checker finds no difference.
	Differs string
	// Verification is the citation's, if that names only this source, else the passage's; nil if neither is known.
	Verification *ibid.Verification

	source  *Source
	holders *holders // nil if no step had it
	near    bool     // it is not found to support the sentence, but [linker.near] it
}

// Text returns as much of the passage as is known: all of it, the quoted words, or its excerpt. It is empty if none is
// known.
func (r *Link) Text() string {
	if r.source != nil && r.source.Content != "" {
		return r.source.Content
	}
	return cmp.Or(r.Evidence, r.Excerpt)
}

// Link finds the steps and passages that each sentence of the final answer rests on. The provider's citations come
// first, then marks in the text. For sentences with neither, the passages of all steps are ranked, and c is asked
// whether they support the sentence; the same is done with the answers of the steps, and what those rest on is followed
// back through the steps before. If no text supports a sentence alone, it may rest on several together: see
// [support.Together]. Nil c means support.Lexical.
//
// A mark is the id, title or address of a source, [step 2], or a number. Numbers count the sources of the step that
// gave the answer, else of the only step with sources; if there are several, a number names nothing.
//
// Link sets Step.Fed of all steps and changes nothing else, so it must not run concurrently with readers of t. It
// returns an error if ctx ends or the checker fails.
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
	origin   int                 // the step that gave the final answer, else the only one with sources, else -1
	last     int                 // the last step whose answer is the final one, or -1
	byDoc    [][]int             // rows of each document
	passages []*holders          // of each passage
	lost     int                 // how many marks name nothing
	holders  []*holders          // of the passage of each row
	byMark   map[string]int      // documents by what marks call them; -1 if ambiguous
	before   [][]int             // the graph
	byNumber map[int]int         // the last step of each number
	bases    map[int]*basis      // by step
	earlier  map[int]map[int]int // by step: see stepsBefore
	answers  *support.Corpus     // of the steps; nil until needed
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
		earlier:   map[int]map[int]int{},
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
	l.indexMarks()
	return l
}

// linkCitations links the sentences of an answer to what its citations name.
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

// coveredSentences yields the indices of the sentences that a citation covers. A citation at a point covers the
// sentence that ends there.
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

// linkTo returns a link to the passage of a document that has the quote, else to the first that a step used.
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

// linkToRow returns a link to the passage of a row, with the steps that had it.
func (l *linker) linkToRow(row int) Link {
	r := &l.rows[row]
	h := l.holders[row]
	return Link{
		DocumentID: l.names[r.document], Title: h.title, ChunkIndex: r.ChunkIndex, Locator: r.Locator,
		Excerpt: Excerpt(cmp.Or(r.Excerpt, r.Content), 0), Verification: r.Verification,
		source: r.Source, holders: h,
	}
}

// add adds a passage to the sentence, unless the sentence has it.
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

// finish sets the steps of all sentences, Links.Uncited and Step.Fed.
func (l *linker) finish() {
	for i := range l.t.Steps {
		l.t.Steps[i].Fed = nil
	}
	claims, uncited := 0, 0
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		l.nameSteps(s)
		switch {
		case len(s.Passages) > 0:
			s.Skipped = ""
		case s.Skipped == "" && l.mayRestOnUnread(s):
			s.Skipped = SkipUnread
		}
		if s.Skipped == "" {
			claims++
		}
		if s.NoSources() || s.Skipped == "" && s.Differs() != "" {
			uncited++
		}
		for _, n := range s.Steps {
			if step, ok := l.byNumber[n]; ok {
				l.t.Steps[step].Fed = append(l.t.Steps[step].Fed, s.Span)
			}
		}
	}
	if claims > 0 {
		l.links.Uncited = new(float64(uncited) / float64(claims))
	}
}

// mayRestOnUnread reports whether a sentence may rest on a result that could not be read: one of the steps that
// concluded it or, if none is known, of the run.
func (l *linker) mayRestOnUnread(s *Sentence) bool {
	for i := range l.t.Steps {
		if !l.t.Steps[i].hasUnread(0) {
			continue
		}
		if len(s.concluded) == 0 {
			return true
		}
		for _, by := range s.concluded {
			if _, before := l.stepsBefore(by)[i]; before || by == l.last {
				return true
			}
		}
	}
	return false
}

// hasUnread reports whether the step, or a run nested in it, had a result that could not be read.
func (s *Step) hasUnread(depth int) bool {
	return slices.ContainsFunc(s.Issues, func(i ibid.Issue) bool {
		return i.Code == issueUnread || i.Code == issueNotKept
	}) || s.Nested != nil && depth < MaxNested &&
		slices.ContainsFunc(s.Nested.Steps, func(in Step) bool { return in.hasUnread(depth + 1) })
}

// FinalID returns the id of the captured answer that is the final one: AnswerID, else that of the step's answer that is
// Final itself, else of the last one with the same text. It is empty if there is none.
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

// FinalAnswer returns the final answer with its citations, or nil if there is none. If only its text is known, its
// sentences cite the documents that they rest on, as [Trail.Link] finds them with c and o, with the origin
// [ibid.OriginInferred]. If a document has an address, the citation quotes the passage (see [Source.Quote]) or, if that
// is longer than MaxQuote, the words that support the sentence. FinalAnswer returns an error if ctx ends or the checker
// fails.
func (t *Trail) FinalAnswer(ctx context.Context, c support.Checker, o *LinkOptions) (*ibid.Answer, error) {
	if t.Final != nil || t.Answer == "" {
		return t.Final, nil
	}
	links, err := t.Link(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("cite the final answer: %w", err)
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
			return nil, fmt.Errorf("cite the final answer: %w", err)
		}
	}
	return a, nil
}

// quote returns the words that a citation of the passage quotes. It is empty if the document has no address where they
// could be looked up.
func (r *Link) quote() string {
	switch {
	case r.source == nil || r.source.URL == "":
		return ""
	case utf8.RuneCountInString(r.source.Content) > MaxQuote && r.Evidence != "":
		return r.Evidence
	}
	return r.source.Quote()
}

// addSource adds the document of a passage to the answer's sources, unless it is there, and returns its id, or "" if no
// step has it.
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
