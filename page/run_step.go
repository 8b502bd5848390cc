package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/trail"
)

// stepView is a step of a run.
type stepView struct {
	*trail.Step

	ID        string          // of the element
	Usage     trail.StepUsage // what it used; zero: it is not known
	Trace     trace           // where it stands on the time of the run; zero: that is not known
	Builds    []stepRef       // what it builds on, where that is not simply the step before
	First     bool            // it builds on nothing, and is not the first
	Rows      []stepSource    // of Sources
	Used      int             // documents
	Inner     *nestedView
	IsAnswer  bool  // it concluded the answer of the run, word for word
	Sentences []int // that rest on it
	Choose    string
	Chosen    bool
	Related   bool
	Preset    bool // it is related to what is explained at first, and nothing was chosen
	// Wrong is the first of Rows of which something is wrong, where a sentence that the step concluded is wrong, or no
	// step is known to have concluded one; nil: that is not so.
	Wrong *stepSource

	bad *stepSource // the first of Rows of which something is wrong; nil: of none is
}

// Opened reports whether the step is shown in full at once.
func (v *stepView) Opened() bool { return v.Chosen || v.Related && !v.Preset || v.Error != "" }

// HasPlaces reports whether any source has a place in what the step found.
func (v *stepView) HasPlaces() bool {
	return slices.ContainsFunc(v.Rows, func(s stepSource) bool { return s.Rank != 0 })
}

// HasPassages reports whether any source says where in it the passage is.
func (v *stepView) HasPassages() bool {
	return slices.ContainsFunc(v.Rows, func(s stepSource) bool { return placeWords(s.ChunkIndex, s.Locator) != "" })
}

// MoreRows returns how many sources are not shown.
func (v *stepView) MoreRows() int { return len(v.Sources) - len(v.Rows) }

// stepSource is a source of a step.
type stepSource struct {
	*trail.Source

	Doc     *documentView
	Name    string
	Same    bool         // its document is that of the row before
	Twice   bool         // its passage is that of a row before
	Passage *passageView // nil: it is not shown
	Here    bool         // the passage is shown here
	At      *stepRef     // where else it is shown; nil: nowhere
	Words   string       // what the step had, where that is not the passage
	Rating  string       // what was said of it last; empty: nothing
	Run     string
	Step    int
}

// longText is a text that is shown in full only on demand, if it is long.
type longText struct{ Short, Full string } // Full is empty if Short is all of it

// maxAtOnce is how many characters of an intermediate answer or a passage are shown at once.
const maxAtOnce = 320

func long(s string) longText {
	s = shownText(s)
	if short := trail.Excerpt(s, maxAtOnce); short != s {
		return longText{short, s}
	}
	return longText{s, ""}
}

// markWrong marks the steps which concluded sentences that are wrong; where that is known of none, those which have a
// passage that is bad.
func (b *runBody) markWrong() {
	var wrong []int
	if b.Answer != nil {
		for _, s := range b.Answer.Sentences {
			if slices.ContainsFunc(s.Rests, (*restView).isWrong) {
				wrong = append(wrong, s.Steps...)
			}
		}
	}
	isWrong := func(v *stepView) bool { return v.bad != nil && slices.Contains(wrong, v.Number) }
	if !slices.ContainsFunc(b.Steps, isWrong) {
		isWrong = func(v *stepView) bool { return v.bad != nil }
	}
	for _, v := range b.Steps {
		if isWrong(v) {
			v.Wrong = v.bad
		}
	}
}

// addSteps shows the steps of one page.
func (b *runBody) addSteps() {
	t := b.Run
	to := min(b.from+maxShownSteps, len(t.Steps))
	usage := map[int]trail.StepUsage{}
	for _, u := range b.Summary.Steps {
		usage[u.Number] = u
	}
	all, axis := traces(t)
	b.axis = axis
	for i := b.from; i < to; i++ {
		v := b.step(i, usage[t.Steps[i].Number])
		v.Trace = all[i]
		b.Steps = append(b.Steps, v)
	}
	b.markWrong()
	b.Pages = stepPages{From: b.from + 1, To: to, Of: len(t.Steps)}
	if b.from > 0 {
		b.Pages.Before = b.URL + "?from=" + strconv.Itoa(b.from-maxShownSteps+1) + "#steps"
	}
	if to < len(t.Steps) {
		b.Pages.Behind = b.URL + "?from=" + strconv.Itoa(to+1) + "#steps"
	}
}

func (b *runBody) step(i int, used trail.StepUsage) *stepView {
	s := &b.Run.Steps[i]
	v := &stepView{Step: s, ID: stepID(s.Number), Usage: used, Inner: nested(s.Nested, 1)}
	if b.at[s.Number] != i { // another step has the number, and the id
		v.ID += "-" + strconv.Itoa(i)
	}
	before := b.Run.Before(i)
	switch {
	case len(before) == 0:
		v.First = i > 0
	case len(before) > 1 || before[0] != i-1:
		for _, k := range before {
			n := b.Run.Steps[k].Number
			v.Builds = append(v.Builds, stepRef{N: n, URL: b.stepURL(n)})
		}
	}
	for k := range s.Sources[:min(len(s.Sources), maxShownSources)] {
		v.Rows = append(v.Rows, b.stepSource(s, &s.Sources[k]))
	}
	v.Rows = grouped(v.Rows)
	v.IsAnswer = b.Answer != nil && s.Answer == b.Answer.text
	v.Used = len(used.Documents)
	v.Choose = b.choose("step", s.Number, v.ID)
	v.Chosen = b.chosen.Step == s.Number
	if b.Answer != nil {
		for _, sentence := range b.Answer.Sentences {
			if slices.Contains(sentence.Steps, s.Number) {
				v.Sentences = append(v.Sentences, sentence.N)
				v.Related = v.Related || sentence.Chosen || sentence.Preset
				v.Preset = v.Preset || sentence.Preset
			}
		}
	}
	for k := range v.Rows {
		passage := v.Rows[k].Passage
		if passage == nil {
			continue
		}
		v.Related = v.Related || passage.Chosen
		if v.bad == nil && passage.Checked().Kind == badgeBad {
			v.bad = &v.Rows[k]
		}
	}
	return v
}

// grouped returns rows with the passages of a document behind each other, where the first of them stood.
func grouped(rows []stepSource) []stepSource {
	var all []stepSource
	for _, row := range rows {
		at := len(all)
		for i := range all {
			if row.Doc != nil && all[i].Doc == row.Doc {
				at, row.Same = i+1, true
				if row.Passage != nil && all[i].Passage == row.Passage {
					row.Twice, row.At = true, nil // it is shown above, or where that one says
				}
			}
		}
		all = slices.Insert(all, at, row)
	}
	return all
}

func (b *runBody) stepSource(s *trail.Step, f *trail.Source) stepSource {
	doc := b.docs[f.DocumentID]
	if doc == nil && f.DocumentID != "" {
		doc = b.docs[f.DocumentID+"@step_"+strconv.Itoa(s.Number)]
	}
	words := cmp.Or(f.Excerpt, f.Content)
	row := stepSource{
		Source: f, Doc: doc, Name: doc.nameOr(f.Title, f.DocumentID), Run: b.ID, Step: s.Number, Words: words,
		Passage: doc.passage(f.ChunkIndex, words, s.Number),
	}
	if v := row.Passage; v != nil {
		switch at, placed := b.placed[v.N]; {
		case placed:
			row.At, row.Words = &stepRef{N: at, URL: b.stepURL(at)}, ""
		case trail.Excerpt(words, 0) == v.plain || words == "":
			b.placed[v.N], row.Here, row.Words = s.Number, true, ""
			v.Placed = true
		}
	}
	said, ok := b.ratings[rated{s.Number, f.DocumentID}]
	if !ok && f.Key != "" {
		said, ok = b.ratings[rated{s.Number, f.Key}]
	}
	if ok {
		row.Rating = score(&said)
	}
	return row
}

// nestedView is a run that a step started.
type nestedView struct {
	*trail.Trail

	Final string
	Rows  []nestedStep // of Steps
	// Deeper says that it has steps that started runs which are not shown.
	Deeper bool
}

// Title returns what a reader knows the run by.
func (v *nestedView) Title() string { return cmp.Or(v.Question, v.ID, "A run of its own") }

// MoreRows returns how many steps are not shown.
func (v *nestedView) MoreRows() int { return len(v.Steps) - len(v.Rows) }

// Took says how long the run took; empty: it is not known.
func (v *nestedView) Took() string { return took(runTime(v.Trail)) }

// nestedStep is a step of a nested run, in short.
type nestedStep struct {
	*trail.Step

	Names []string // of its sources
	More  int      // sources that are not named
	None  bool     // it used none
	Inner *nestedView
}

// nested shows a run that a step started, as deep as runs are shown in each other.
func nested(t *trail.Trail, depth int) *nestedView {
	if t == nil {
		return nil
	}
	v := &nestedView{Trail: t, Final: t.Answer}
	if strings.TrimSpace(v.Final) == "" && t.Final != nil {
		v.Final = t.Final.Text
	}
	for i := range t.Steps[:min(len(t.Steps), maxShownNested)] {
		s := &t.Steps[i]
		one := nestedStep{Step: s, None: true}
		for k := range s.Sources {
			f := &s.Sources[k]
			one.None = one.None && !f.Used && !f.Cited
			name := documentName(f.Title, f.DocumentID)
			if slices.Contains(one.Names, name) {
				continue
			}
			if len(one.Names) == maxShownSources {
				one.More = len(s.Sources) - k
				break
			}
			one.Names = append(one.Names, name)
		}
		if depth < maxShownDepth {
			one.Inner = nested(s.Nested, depth+1)
		} else {
			v.Deeper = v.Deeper || s.Nested != nil
		}
		v.Rows = append(v.Rows, one)
	}
	return v
}
