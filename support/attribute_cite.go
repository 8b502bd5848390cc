package support

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/snapshot"
)

const (
	maxQuote   = 1000 // bytes of a quote
	maxContext = 500  // bytes of the answer before a sentence
	// nearWindows is the most bytes between two windows that count as one place.
	nearWindows = 300
)

// copyAnswer returns a copy of an answer to add citations to.
func copyAnswer(a *ibid.Answer) *ibid.Answer {
	c := *a
	c.Sources = slices.Clone(a.Sources)
	c.Citations = slices.Clone(a.Citations)
	for i := range c.Sources {
		c.Sources[i].Chunks = slices.Clip(c.Sources[i].Chunks)
	}
	return &c
}

// titleOf returns the text to put before a passage when it is judged: its document's title and its heading, unless it
// begins with them. A passage seldom repeats what it is about.
func titleOf(d *Document, p *snapshot.Passage) string {
	var b strings.Builder
	for _, words := range []string{d.Source.Title, p.Heading} {
		head := d.Text[p.Span.Start:min(p.Span.End, p.Span.Start+2*len(words)+16)]
		if words != "" && !strings.Contains(head, words) && !strings.Contains(b.String(), words) {
			b.WriteString(words + "\n\n")
		}
	}
	return b.String()
}

// judgedText returns a passage as it is judged: preceded by its title, and with its blocks separated.
func judgedText(d *Document, p *snapshot.Passage) string { return titleOf(d, p) + p.Apart(d.Text) }

// inDocument returns the span in the document of a span in a judged text; empty if it is in the title.
func inDocument(d *Document, p *snapshot.Passage, s ibid.Span) ibid.Span {
	if s.Start < 0 || s.End <= s.Start {
		return ibid.Span{}
	}
	n := len(titleOf(d, p))
	return p.Place(d.Text, ibid.Span{Start: s.Start - n, End: s.End - n})
}

// precedingWords returns the end of the answer before a place, at most maxContext bytes.
func precedingWords(answer string, at int) string {
	return strings.TrimSpace(text.Tail(answer[:at], maxContext))
}

// citer adds citations to an answer.
type citer struct {
	answer  *ibid.Answer
	byKey   map[string]string    // source ids, by key
	byName  map[[2]string]string // ids of added sources, by the documents' own ids and URLs
	first   map[[2]string]*Document
	taken   map[string]bool    // source ids
	last    int                // the last number used in an id
	sources map[int]string     // source ids, by document
	chunks  map[place]string   // ids of passages among the chunks of their source
	pieces  map[[2]string]bool // ids of sources and their chunks
	next    map[string]int     // for each source, the number of the next chunk whose own is taken
}

func newCiter(a *ibid.Answer, docs []Document) citer {
	c := citer{
		answer:  a,
		byKey:   map[string]string{},
		byName:  map[[2]string]string{},
		first:   firstPieces(docs),
		taken:   map[string]bool{},
		sources: map[int]string{},
		chunks:  map[place]string{},
		pieces:  map[[2]string]bool{},
		next:    map[string]int{},
	}
	for i := range a.Sources {
		s := &a.Sources[i]
		c.taken[s.ID] = true
		if _, known := c.byKey[s.Key()]; !known {
			c.byKey[s.Key()] = s.ID
		}
		for k := range s.Chunks {
			c.pieces[[2]string{s.ID, s.Chunks[k].ID}] = true
		}
	}
	return c
}

// source returns the id of the answer's source for a document, adding the source if it is not there.
func (c *citer) source(document int, d *Document) string {
	id, known := c.sources[document]
	if !known {
		id = c.find(d)
		c.sources[document] = id
	}
	return id
}

func (c *citer) find(d *Document) string {
	if id, known := c.byName[nameOf(d)]; known && d.Source.ID != "" {
		return id
	}
	if d.isAnonymous() {
		if id, known := c.byKey[d.wholeKey()]; known {
			return id
		}
	}
	s := identified(d, c.first)
	key := s.Key()
	if id, known := c.byKey[key]; known {
		return id
	}
	s.ID, s.Chunks = c.freeID(s.ID), slices.Clone(s.Chunks)
	c.taken[s.ID], c.byKey[key], c.byName[nameOf(d)] = true, s.ID, s.ID
	for i := range s.Chunks {
		c.pieces[[2]string{s.ID, s.Chunks[i].ID}] = true
	}
	c.answer.Sources = append(c.answer.Sources, s)
	return s.ID
}

// freeID returns an id that no source has: the wanted one, else a mere counter like doc:1, which never looks like the
// name of another document.
func (c *citer) freeID(wanted string) string {
	for wanted == "" || c.taken[wanted] {
		c.last++
		wanted = "doc:" + strconv.Itoa(c.last)
	}
	return wanted
}

// cite cites the best candidates of a sentence, if any is good enough.
func (a *attributor) cite(s *SentenceSupport) error {
	picked := a.pick(s)
	together := len(picked) == 0 && s.Together != nil && a.isCitable(&s.Together.Verdict)
	if together {
		for _, i := range s.Together.Candidates {
			picked = append(picked, &s.Candidates[i])
		}
	}
	if len(picked) == 0 {
		return nil
	}
	best := &picked[0].Verdict
	if together {
		best = &s.Together.Verdict
	}
	refs := make([]ibid.Ref, 0, len(picked))
	for _, c := range picked {
		c.Source = a.citer.source(c.Document, &a.docs[c.Document])
		score := c.Verdict.Closeness
		if together {
			score = best.Closeness
		}
		refs = append(refs, a.ref(c, score))
	}
	answer := a.out.Answer
	if err := answer.Cite(s.Claim, refs...); err != nil {
		return err
	}
	for i := len(answer.Citations) - 1; i >= 0; i-- {
		if x := &answer.Citations[i]; x.Span == s.Claim && x.Origin == ibid.OriginInferred && x.Support == nil {
			x.Support = &ibid.Support{Label: string(best.Label), Score: best.validCloseness(), By: best.By}
			break
		}
	}
	s.Cited++
	return nil
}

// pick returns the candidates that a sentence cites, one per place.
func (a *attributor) pick(s *SentenceSupport) []*Candidate {
	var picked []*Candidate
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if len(picked) < a.options.PerSentence && a.isCitable(&c.Verdict) &&
			!slices.ContainsFunc(picked, func(p *Candidate) bool { return a.samePlace(p, c) }) {
			picked = append(picked, c)
		}
	}
	return picked
}

// isCitable reports whether a verdict is good enough to cite its passage: if a judge says so, by its closeness, or by
// its label if the checker has none. A passage with a differing value is not, however much else matches.
func (a *attributor) isCitable(v *Verdict) bool {
	switch closeness := v.validCloseness(); {
	case v.isSaid():
		return true
	case v.deniesClaim() || v.Label == Unsupported:
		return false
	case closeness != nil:
		return *closeness >= a.options.Threshold
	default:
		return v.Label == Supported
	}
}

// validCloseness returns the closeness, or nil if there is none or it is NaN.
func (v *Verdict) validCloseness() *float64 {
	if v.Closeness == nil || math.IsNaN(*v.Closeness) {
		return nil
	}
	return v.Closeness
}

// samePlace reports whether two candidates have their evidence in one place: close together, under one heading, on one
// page.
func (a *attributor) samePlace(x, y *Candidate) bool {
	if x.Document != y.Document {
		return false
	}
	p, q := &a.docs[x.Document].Passages[x.Passage], &a.docs[y.Document].Passages[y.Passage]
	v, w := x.window(), y.window()
	return p.Heading == q.Heading && p.Page == q.Page && max(v.Start, w.Start)-min(v.End, w.End) <= nearWindows
}

// window returns the span of the evidence, or of the passage if the checker named none.
func (c *Candidate) window() ibid.Span {
	if c.Evidence.Len() > 0 {
		return c.Evidence
	}
	return c.Span
}

// ref returns a reference to a candidate, and adds its passage to the chunks of its source.
func (a *attributor) ref(c *Candidate, score *float64) ibid.Ref {
	d := &a.docs[c.Document]
	w := c.window()
	quote := text.Head(d.Text[w.Start:w.End], maxQuote)
	w.End = w.Start + len(quote)
	quote = strings.Join(strings.Fields(quote), " ")
	l := &ibid.Locator{Page: d.Passages[c.Passage].Page, Chunk: a.chunk(c)}
	if start, end := a.offsets(c.Document).In(ibid.CodePoint, w); start >= 0 {
		l.CharStart, l.CharEnd = &start, &end
	}
	ref := ibid.Ref{Source: c.Source, Quote: quote, Locator: l}
	if score != nil && !math.IsNaN(*score) {
		ref.Confidence = new(*score)
	}
	return ref
}

// chunk adds a cited passage to the chunks of its source, and returns its id there: its index in its document, unless
// another document of the same source has that id.
func (a *attributor) chunk(c *Candidate) string {
	at := place{c.Document, c.Passage}
	if id, known := a.citer.chunks[at]; known {
		return id
	}
	id := strconv.Itoa(c.Passage)
	for a.citer.pieces[[2]string{c.Source, id}] {
		id = strconv.Itoa(a.citer.next[c.Source])
		a.citer.next[c.Source]++
	}
	a.citer.chunks[at] = id
	a.citer.pieces[[2]string{c.Source, id}] = true
	d := &a.docs[c.Document]
	chunk := ibid.Chunk{ID: id, Content: d.Text[c.Span.Start:c.Span.End]}
	if page := d.Passages[c.Passage].Page; page > 0 {
		chunk.Locator = &ibid.Locator{Page: page}
	}
	if s := a.out.Answer.Source(c.Source); s != nil {
		s.Chunks = append(s.Chunks, chunk)
	}
	return id
}

// count sets LeftOut and Uncited.
func (a *Attribution) count() {
	n, without := 0.0, 0.0
	a.LeftOut = map[SkipReason]int{}
	for i := range a.Sentences {
		s := &a.Sentences[i]
		if !s.Says() {
			a.LeftOut[s.Skipped]++
			continue
		}
		n++
		if s.Cited == 0 {
			without++
		}
	}
	if n > 0 {
		a.Uncited = new(without / n)
	}
}

// sentencesOf returns the sentences of an answer, with the reason to skip them if there is one. If spans is nil, it
// splits the text.
func sentencesOf(a *ibid.Answer, spans []ibid.Span, citedToo bool) []SentenceSupport {
	if spans == nil {
		for start, end := range prose.Sentences(a.Text) {
			spans = append(spans, ibid.Span{Start: start, End: end})
		}
	}
	var all []SentenceSupport
	covered := newCover(a)
	list, _ := a.PrintedList()
	looked := 0
	for _, span := range spans {
		s := SentenceSupport{Span: span}
		s.Claim = claimOf(a.Text, s.Span)
		s.Cited = covered.count(s.Span)
		if s.Skipped = skipReason(a, &s); s.Skipped == "" && list.Start <= span.Start && span.Start < list.End {
			s.Skipped = SkipBoilerplate
		}
		if s.Skipped == "" && s.Cited > 0 && !citedToo {
			s.Skipped = SkipCited
		}
		if s.Skipped == "" {
			if looked++; looked > maxAttributedSentences {
				s.Skipped = SkipLimit
			}
		}
		all = append(all, s)
	}
	return all
}

// claimOf returns a sentence without its final mark.
func claimOf(text string, s ibid.Span) ibid.Span {
	words := strings.TrimRight(text[s.Start:s.End], ".!?。！？｡… \t\r\n")
	if words == "" {
		return s
	}
	return ibid.Span{Start: s.Start, End: s.Start + len(words)}
}

// skipReason returns why a sentence is not attributed, whatever it cites; empty if it is.
func skipReason(a *ibid.Answer, s *SentenceSupport) SkipReason {
	words := a.Text[s.Span.Start:s.Span.End]
	switch {
	case !inAnswer(a, s.Span.Start):
		return SkipPart
	case strings.HasPrefix(words, "```"), strings.HasPrefix(words, "~~~"):
		return SkipCode
	case isHeading(a.Text, s.Span):
		return SkipHeading
	case strings.HasSuffix(strings.TrimRight(words, `"'”’)* `), "?"), strings.HasSuffix(words, "？"):
		return SkipQuestion
	case isBoilerplate(words):
		return SkipBoilerplate
	case isFragment(visibleText(words)):
		return SkipShort
	}
	return ""
}

// inAnswer reports whether a place is in a part of the answer of kind AnswerPart.
func inAnswer(a *ibid.Answer, at int) bool {
	i, _ := slices.BinarySearchFunc(a.Parts, at, func(p ibid.Part, at int) int {
		if p.End <= at {
			return -1
		}
		return 1
	})
	return i >= len(a.Parts) || a.Parts[i].Kind == ibid.AnswerPart
}

// isHeading reports whether a sentence is a heading: a line after # signs, in bold by itself, that introduces what
// follows with a colon, underlined, or in the first row of a table.
func isHeading(text string, s ibid.Span) bool {
	const indent = 16 // bytes before a heading's words on its line
	before := text[max(0, s.Start-indent):s.Start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if strings.HasPrefix(strings.TrimLeft(before, " >"), "#") {
		return true
	}
	words := strings.TrimSpace(text[s.Start:s.End])
	after := strings.TrimLeft(text[s.End:], " \t")
	alone := after == "" || after[0] == '\n' || after[0] == '\r'
	bare := strings.TrimRight(words, "*_ ")
	if strings.HasSuffix(bare, ":") || strings.HasSuffix(bare, "：") {
		return alone
	}
	bold := len(words) > 4 && strings.HasPrefix(words, "**") && strings.HasSuffix(words, "**") &&
		!strings.Contains(words[2:len(words)-2], "**")
	return alone && bold && !strings.ContainsAny(words[len(words)-3:], ".!") || isUnderlined(after) ||
		headsTable(text[s.End:])
}

// headsTable reports whether a row ends here and the next line is the dashes below the head of a table.
func headsTable(after string) bool {
	const longest = 2000 // bytes of both
	_, rest, _ := strings.Cut(after[:min(len(after), longest)], "\n")
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	return strings.Contains(line, "|") && strings.Contains(line, "-") && strings.Trim(line, "|-: \t") == ""
}

// isUnderlined reports whether the next line underlines the one before, making it a heading.
func isUnderlined(after string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(after, "\r"), "\n")
	if !ok {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	return len(line) >= 3 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "")
}

// visibleText returns a text without its Markdown images and link addresses, which are not words of the sentence.
func visibleText(words string) string {
	var b strings.Builder
	for {
		n := strings.Index(words, "](")
		if n < 0 {
			return b.String() + words
		}
		end := strings.IndexByte(words[n:], ')')
		if end < 0 {
			return b.String() + words
		}
		before := words[:n]
		if image := strings.LastIndex(before, "!["); image >= 0 && !strings.Contains(before[image:], "]") {
			before = before[:image]
		}
		b.WriteString(before)
		words = words[n+end+1:]
	}
}

// isFragment reports whether there are too few words to say something: one word, or no content word. "It failed." says
// something, and so does "It is 1,075."
func isFragment(words string) bool {
	count, _ := countWords(words)
	return count < 2 || contentWords(words) == 0
}

// contentWords counts the words of a sentence that are not function words.
func contentWords(words string) int {
	_, content := countWords(words)
	return content
}

func countWords(words string) (all, content int) {
	r := reader{text: words}
	for t := (token{}); r.next(&t); all++ {
		if t.flags&flagStop == 0 && english().weight(t.key) >= weightVerb {
			content++
		}
	}
	return all, content
}

// weightVerb is the weight of the commonest verbs with a meaning of their own: works, won, came.
const weightVerb = 0.4

// Beginnings of sentences about the answer itself, in lower case.
var (
	openings      = lists["opening"]
	shortOpenings = lists["short-opening"]
)

// isBoilerplate reports whether a sentence is about the answer itself, or addresses the reader.
func isBoilerplate(words string) bool {
	head := strings.Map(func(r rune) rune {
		if r == '’' {
			return '\''
		}
		return unicode.ToLower(r)
	}, text.Head(strings.TrimLeft(words, "*_>-• "), 80))
	for opening := range openings {
		if strings.HasPrefix(head, opening) {
			return true
		}
	}
	for opening := range shortOpenings {
		if strings.HasPrefix(head, opening) {
			return contentWords(words) <= 4
		}
	}
	return false
}

// cover counts the citations of a sentence. It has the starts and ends of all cited spans, each sorted.
type cover struct{ starts, ends []int }

func newCover(a *ibid.Answer) *cover {
	c := &cover{}
	for i := range a.Citations {
		x := &a.Citations[i]
		if !x.Placed() {
			continue
		}
		span := x.Claim
		if span.Len() <= 0 {
			span = x.Span
		}
		c.starts, c.ends = append(c.starts, span.Start), append(c.ends, span.End)
	}
	slices.Sort(c.starts)
	slices.Sort(c.ends)
	return c
}

// count returns how many citations cover words of a sentence, or stand right after it: those that begin before its end,
// except those that end before it.
func (c *cover) count(s ibid.Span) int {
	begun, _ := slices.BinarySearch(c.starts, s.End+1)
	ended, _ := slices.BinarySearch(c.ends, s.Start+1)
	return begun - ended
}
