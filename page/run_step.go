package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/trail"
)

// stepView is a step of a run.
type stepView struct {
	N          int
	ID         string // of the element
	Tool       string
	Question   string
	Answer     longText
	Reasoning  string
	Error      string
	Confidence string
	Took       string
	Share      int // how long it took, of the longest step that is shown, in percent
	Started    time.Time
	After      []stepRef // what it builds on, where that is not simply the step before
	First      bool      // it builds on nothing, and is not the first
	Sources    []stepSource
	More       int  // sources that are not shown
	None       bool // it used none
	Used       int  // documents that it used
	Documents  []*documentView
	Retrieved  int // documents that a search of it returned
	Captured   []link
	Nested     *nestedView
	Sentences  []int // that rest on it
	Choose     string
	Chosen     bool
	Related    bool
}

// stepSource is a source of a step.
type stepSource struct {
	Doc       *documentView
	Title     string
	Passage   *passageView // nil: it is not shown
	Words     longText
	Where     string
	Relevance string
	Origin    string
	Did       string // used, cited, retrieved only
	Idle      bool   // it was retrieved only
	Rank      int
	Rating    string // what was said of it last; empty: nothing
	Rate      rateForm
}

// rateForm is what the form says that rates a source.
type rateForm struct {
	Run, Source, Next string
	Step              int
}

// longText is a text that is shown in full only on demand, if it is long.
type longText struct{ Short, Full string } // Full is empty if Short is all of it

// maxAtOnce is how many characters of an intermediate answer or a passage are shown at once.
const maxAtOnce = 320

func long(text string) longText {
	text = shorten(strings.TrimSpace(text), maxShownText)
	if short := trail.Excerpt(text, maxAtOnce); short != text {
		return longText{short, text}
	}
	return longText{text, ""}
}

// nestedView is a run that a step started.
type nestedView struct {
	Title  string
	Agent  string
	Took   string
	Answer string
	Steps  []nestedStep
	More   int
	Deeper bool // it has steps that started runs which are not shown
}

// nestedStep is a step of a nested run, in short.
type nestedStep struct {
	N                      int
	Tool, Question, Answer string
	Error                  string
	Took                   string
	Sources                []string
	More                   int
	None                   bool
	Nested                 *nestedView
}

// addSteps shows the steps of one page.
func (p *runPage) addSteps() {
	t, b := p.s.Run, p.body
	to := min(p.from+maxShownSteps, len(t.Steps))
	usage := map[int]*trail.StepUsage{}
	for i := range p.s.Steps {
		usage[p.s.Steps[i].Number] = &p.s.Steps[i]
	}
	var longest time.Duration
	for i := p.from; i < to; i++ {
		longest = max(longest, t.Steps[i].Duration)
	}
	for i := p.from; i < to; i++ {
		v := p.step(i, usage[t.Steps[i].Number])
		if longest > 0 {
			v.Share = int(100 * t.Steps[i].Duration / longest)
		}
		b.Steps = append(b.Steps, v)
	}
	b.Pages = stepPages{From: p.from + 1, To: to, Of: len(t.Steps)}
	if p.from > 0 {
		b.Pages.Before = b.URL + "?from=" + strconv.Itoa(p.from-maxShownSteps+1) + "#steps"
	}
	if to < len(t.Steps) {
		b.Pages.Behind = b.URL + "?from=" + strconv.Itoa(to+1) + "#steps"
	}
}

func (p *runPage) step(i int, used *trail.StepUsage) *stepView {
	s := &p.s.Run.Steps[i]
	v := &stepView{
		N:        s.Number,
		ID:       stepID(s.Number),
		Tool:     s.Tool,
		Question: shorten(s.Question, maxShownText),
		Answer:   long(s.Answer),
		Reasoning: shorten(
			s.Reasoning, maxShownText,
		),
		Error:      shorten(s.Error, maxShownText),
		Confidence: score(s.Confidence),
		Took:       took(s.Duration),
		Started:    s.Started,
		Nested:     nested(s.Nested, 1),
	}
	if p.at[s.Number] != i { // another step has the number, and the id
		v.ID += "-" + strconv.Itoa(i)
	}
	if used != nil {
		v.Used, v.None, v.Retrieved = len(used.Documents), len(used.Documents) == 0, used.Retrieved
		for _, id := range used.Documents[:min(len(used.Documents), maxShownSources)] {
			if d := p.docs[id]; d != nil {
				v.Documents = append(v.Documents, d)
			}
		}
	}
	before := p.s.Run.Before(i)
	switch {
	case len(before) == 0:
		v.First = i > 0
	case len(before) > 1 || before[0] != i-1:
		numbers := make([]int, 0, len(before))
		for _, k := range before {
			numbers = append(numbers, p.s.Run.Steps[k].Number)
		}
		v.After = p.refs(numbers)
	}
	for k := range s.Sources {
		if k == maxShownSources {
			v.More = len(s.Sources) - k
			break
		}
		v.Sources = append(v.Sources, p.stepSource(s, &s.Sources[k]))
	}
	for k := range s.Answers {
		if id := s.Answers[k].ID; id != "" {
			v.Captured = append(v.Captured, link{id, answerURL(id)})
		}
	}
	v.Choose = p.choose("step", s.Number, v.ID)
	v.Chosen = p.chosen.Step == s.Number
	p.relateStep(v)
	return v
}

func (p *runPage) stepSource(s *trail.Step, f *trail.Source) stepSource {
	doc := p.docs[f.DocumentID]
	if doc == nil && f.DocumentID != "" {
		doc = p.docs[f.DocumentID+"@step_"+strconv.Itoa(s.Number)]
	}
	words := cmp.Or(f.Excerpt, f.Content)
	row := stepSource{
		Doc:     doc,
		Title:   documentTitle(f.Title, f.DocumentID),
		Passage: doc.passage(f.ChunkIndex, words, s.Number),
		Words: long(
			words,
		),
		Where:     placeWords(f.ChunkIndex, f.Locator),
		Relevance: score(f.Relevance),
		Origin:    originWords(f.Origin),
		Rank:      f.Rank,
	}
	if doc != nil {
		row.Title = doc.Title
	}
	switch {
	case f.Cited:
		row.Did = "cited"
	case f.Used:
		row.Did = "used"
	default:
		row.Did, row.Idle = "retrieved, not used", true
	}
	said, ok := p.ratings[rated{s.Number, f.DocumentID}]
	if !ok && f.Key != "" {
		said, ok = p.ratings[rated{s.Number, f.Key}]
	}
	if ok {
		row.Rating = score(&said)
	}
	row.Rate = rateForm{p.body.ID, f.DocumentID, p.body.URL + "#" + stepID(s.Number), s.Number}
	return row
}

// relateStep says which sentences rest on a step, and whether it belongs to what was chosen.
func (p *runPage) relateStep(v *stepView) {
	if p.body.Answer != nil {
		for _, s := range p.body.Answer.Sentences {
			if contains(s.steps, v.N) {
				v.Sentences = append(v.Sentences, s.N)
				v.Related = v.Related || s.Chosen
			}
		}
	}
	for _, row := range v.Sources {
		v.Related = v.Related || row.Passage != nil && row.Passage.Chosen
	}
}

// nested shows a run that a step started, as deep as runs are shown in each other.
func nested(t *trail.Trail, depth int) *nestedView {
	if t == nil {
		return nil
	}
	v := &nestedView{
		Title: cmp.Or(
			t.Question, t.ID, "A run of its own",
		),
		Agent:  t.Agent,
		Answer: shorten(cmp.Or(t.Answer, textOf(t)), maxShownText),
	}
	v.Took = took(runTime(t))
	for i := range t.Steps {
		if i == maxShownNested {
			v.More = len(t.Steps) - i
			break
		}
		s := &t.Steps[i]
		one := nestedStep{
			N:        s.Number,
			Tool:     s.Tool,
			Question: shorten(s.Question, maxShownText),
			Answer:   shorten(s.Answer, maxShownText),
			Error:    shorten(s.Error, maxShownText),
			Took:     took(s.Duration),
			None:     true,
		}
		for k := range s.Sources {
			f := &s.Sources[k]
			one.None = one.None && !f.Used && !f.Cited
			title := documentTitle(f.Title, f.DocumentID)
			if slices.Contains(one.Sources, title) {
				continue
			}
			if len(one.Sources) == maxShownSources {
				one.More = len(s.Sources) - k
				break
			}
			one.Sources = append(one.Sources, title)
		}
		if depth < maxShownDepth {
			one.Nested = nested(s.Nested, depth+1)
		} else {
			v.Deeper = v.Deeper || s.Nested != nil
		}
		v.Steps = append(v.Steps, one)
	}
	return v
}

func textOf(t *trail.Trail) string {
	if t.Final == nil {
		return ""
	}
	return t.Final.Text
}

func contains(numbers []int, n int) bool { return slices.Contains(numbers, n) }
