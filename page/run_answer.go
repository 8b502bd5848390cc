package page

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// answerText is the final answer of a run, sentence by sentence.
type answerText struct {
	Paragraphs [][]*sentenceView
	Sentences  []*sentenceView
	Chosen     bool   // something was chosen
	Says       string // which sentences rest on the step or passage that was chosen; empty: none of these was
	More       string // what of the text is not cut into sentences; empty: all of it is
	Left       int    // sentences in More
}

// sentenceView is a sentence of the final answer, and what it rests on.
type sentenceView struct {
	N         int // from 1
	Before    string
	Text      string
	Steps     []stepRef
	Rests     []*restView
	More      int // passages that are not shown
	NoSources bool
	Heading   bool
	Skipped   string // why no source was looked for; empty: it was
	Choose    string
	Chosen    bool
	Related   bool

	StepList, PassageList string // numbers, for scripts
	steps, passages       []int
}

// restView is a passage that a sentence rests on, and why that is said.
type restView struct {
	Doc     *documentView // nil: only the answer names it
	Title   string
	Passage *passageView // nil: it is not shown
	Where   string
	Before  string // the words of the passage
	Marked  string // those of them that support the sentence; empty: no checker said
	Behind  string
	Reason  string // cited, marked, inferred
	Because string // the same in a sentence
	Score   string
	Steps   []stepRef
	Via     []stepRef
}

// addAnswer shows the final answer, and tells passages and steps which sentences rest on them.
func (p *runPage) addAnswer() {
	links, text := p.s.Links, p.s.Run.Answer
	if final := textOf(p.s.Run); final != "" {
		text = final
	}
	if text == "" {
		return
	}
	a := &answerText{}
	p.body.Answer = a
	if links.Uncited != nil {
		p.body.Uncited = percent(*links.Uncited)
	}
	p.body.By = links.By
	at := 0
	for i := range links.Sentences {
		s := &links.Sentences[i]
		if i == maxShownSentences {
			a.Left = len(links.Sentences) - i
			break
		}
		if s.Span.Start < at || s.Span.End > len(text) {
			continue
		}
		v := p.sentence(i+1, s)
		v.Before = text[at:s.Span.Start]
		v.Text = text[s.Span.Start:s.Span.End]
		if at = s.Span.End; v.Heading {
			v.Before, v.Text = strings.TrimRight(v.Before, "# "), strings.TrimLeft(v.Text, "# ")
		}
		if first := len(a.Sentences) == 0; first || isBreak(v.Before) {
			v.Before = strings.TrimLeft(v.Before, "\n")
			a.Paragraphs = append(a.Paragraphs, nil)
		}
		last := len(a.Paragraphs) - 1
		a.Paragraphs[last] = append(a.Paragraphs[last], v)
		a.Sentences = append(a.Sentences, v)
	}
	a.Chosen = p.chosen != chosen{}
	a.Says = a.bears(p.chosen)
	a.More = shorten(strings.TrimSpace(text[at:]), maxShownText)
}

// bears says which sentences rest on the step or passage that was chosen.
func (a *answerText) bears(c chosen) string {
	what := "Step " + strconv.Itoa(c.Step)
	if c.Step == 0 {
		what = "Passage " + strconv.Itoa(c.Passage)
	}
	if c.Step == 0 && c.Passage == 0 {
		return ""
	}
	var on []int
	for _, s := range a.Sentences {
		if s.Related {
			on = append(on, s.N)
		}
	}
	switch len(on) {
	case 0:
		return what + " bears no sentence."
	case 1:
		return what + " bears sentence " + strconv.Itoa(on[0]) + "."
	}
	return what + " bears sentences " + strings.ReplaceAll(list(on), " ", ", ") + "."
}

// isBreak reports whether a paragraph begins behind what stands between two sentences.
func isBreak(between string) bool { return strings.Count(between, "\n") > 1 }

func (p *runPage) sentence(n int, s *trail.Sentence) *sentenceView {
	v := &sentenceView{
		N:         n,
		NoSources: s.NoSources(),
		Heading:   s.Skipped == support.SkipHeading,
		Skipped:   skippedWords(s.Skipped),
		Steps:     p.refs(s.Steps),
		steps:     s.Steps,
		StepList:  list(s.Steps),
		Chosen:    p.chosen.Sentence == n,
	}
	v.Choose = p.choose("sentence", n, "why")
	v.Related = p.chosen.Step != 0 && contains(s.Steps, p.chosen.Step)
	for i := range s.Passages {
		if i == maxShownRests {
			v.More = len(s.Passages) - i
			break
		}
		rest := p.rest(&s.Passages[i])
		v.Rests = append(v.Rests, rest)
		if rest.Passage == nil || contains(v.passages, rest.Passage.N) {
			continue
		}
		v.passages = append(v.passages, rest.Passage.N)
		rest.Passage.Sentences = append(rest.Passage.Sentences, n)
		rest.Passage.Related = rest.Passage.Related || v.Chosen
		v.Related = v.Related || rest.Passage.Chosen
	}
	v.PassageList = list(v.passages)
	return v
}

func (p *runPage) rest(r *trail.Link) *restView {
	doc := p.docs[r.DocumentID]
	v := &restView{
		Doc:     doc,
		Title:   documentTitle(r.Title, r.DocumentID),
		Passage: doc.passage(r.ChunkIndex, r.Excerpt, 0),
		Where:   placeWords(r.ChunkIndex, r.Locator),
		Reason:  reasonWord(r.Reason),
		Steps:   p.refs(r.Steps),
		Via:     p.refs(r.Via),
		Score:   score(r.Score),
	}
	if doc != nil {
		v.Title = doc.Title
	}
	v.Before = shorten(r.Excerpt, maxShownText)
	if before, behind, ok := strings.Cut(v.Before, r.Evidence); ok && r.Evidence != "" {
		v.Before, v.Marked, v.Behind = before, r.Evidence, behind
	} else if r.Evidence != "" {
		v.Before, v.Marked = "", shorten(r.Evidence, maxShownText)
	}
	v.Because = because(r)
	return v
}

func reasonWord(r trail.LinkReason) string {
	switch r {
	case trail.ReasonCitation:
		return "cited"
	case trail.ReasonMarker:
		return "marked"
	case trail.ReasonInferred:
		return "inferred"
	}
	return string(r)
}

// because says why a sentence is said to rest on a passage.
func because(r *trail.Link) string {
	switch r.Reason {
	case trail.ReasonCitation:
		return "The provider cites it."
	case trail.ReasonMarker:
		return "A mark in the text names it."
	case trail.ReasonInferred:
	}
	text := "The checker " + r.By + " finds that it supports the sentence"
	if len(r.Via) > 0 {
		text = "The checker " + r.By + " finds that a step’s answer supports the sentence, and that one rests on it"
	}
	if r.Score == nil {
		return text + "; it gives no scores."
	}
	text += ": " + score(r.Score)
	if r.Threshold > 0 {
		text += ", where " + strconv.FormatFloat(r.Threshold, 'f', 2, 64) + " is enough"
	}
	return text + "."
}

// skippedWords says why a sentence has nothing that it could rest on.
func skippedWords(r support.SkipReason) string {
	switch r {
	case "":
		return ""
	case support.SkipHeading:
		return "a heading"
	case support.SkipQuestion:
		return "a question"
	case support.SkipCode:
		return "code"
	case support.SkipShort:
		return "too short to say something"
	case support.SkipBoilerplate:
		return "says nothing that a source could"
	case support.SkipCited, support.SkipLimit, support.SkipPart:
	}
	return "not looked at: " + string(r)
}

// conflictView is two passages that seem to contradict each other.
type conflictView struct {
	Kind, Note string
	A, B       conflictSide
}

// conflictSide is one of them, with the value in which it differs marked.
type conflictSide struct {
	Doc                    *documentView
	Title, Where           string
	Before, Marked, Behind string
	Passage                *passageView
}

func (p *runPage) side(c *trail.ConflictSide, value string) conflictSide {
	doc := p.docs[c.DocumentID]
	v := conflictSide{
		Doc:     doc,
		Title:   documentTitle("", c.DocumentID),
		Where:   placeWords(c.ChunkIndex, nil),
		Passage: doc.passage(c.ChunkIndex, c.Excerpt, 0),
	}
	if doc != nil {
		v.Title = doc.Title
	}
	v.Before = c.Excerpt
	if before, behind, ok := strings.Cut(c.Excerpt, value); ok && value != "" {
		v.Before, v.Marked, v.Behind = before, value, behind
	}
	return v
}

// differing returns the words in which the sides of a conflict differ, as its note has them; empty: it does not tell.
func differing(c *trail.Conflict) (a, b string) {
	_, values, ok := strings.Cut(c.Note, "possible conflict: "+string(c.Kind)+": ")
	if !ok {
		return "", ""
	}
	const comma = ", "
	for at := 0; ; {
		i := strings.Index(values[at:], comma)
		if i < 0 {
			return "", ""
		}
		a, b = values[:at+i], values[at+i+len(comma):]
		if strings.Contains(c.A.Excerpt, a) && strings.Contains(c.B.Excerpt, b) {
			return a, b
		}
		at += i + len(comma)
	}
}
