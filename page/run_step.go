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
	Usage     trail.StepUsage // what it used; zero if that is not known
	Trace     trace           // its place on the time axis of the run; zero if that is not known
	Builds    []stepRef       // the steps it builds on, unless that is just the step before
	First     bool            // it builds on no step, and is not the first
	Rows      []stepSource    // of Sources
	Used      int             // number of documents
	Inner     *nestedView
	IsAnswer  bool  // its conclusion is the answer of the run, word for word
	Sentences []int // that rest on it
	Choose    string
	Chosen    bool
	Related   bool
	Preset    bool // it is related to the part explained at first, with nothing chosen
	// Wrong is the first of Rows with a wrong passage, if a sentence that the step concluded is wrong, or if no step is
	// known to have concluded a wrong one; else nil.
	Wrong *stepSource

	bad *stepSource // the first of Rows with a wrong passage; nil if there is none
}

// Opened reports whether the step is unfolded at first.
func (v *stepView) Opened() bool { return v.Chosen || v.Related && !v.Preset || v.Error != "" }

// HasPlaces reports whether any source has a rank among the results of the step.
func (v *stepView) HasPlaces() bool {
	return slices.ContainsFunc(v.Rows, func(s stepSource) bool { return s.Rank != 0 })
}

// HasPassages reports whether any source has the place of its passage.
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
	Same    bool         // its document is that of the row above
	Twice   bool         // its passage is that of a row above
	Passage *passageView // nil if it is not shown
	Here    bool         // the passage is shown here
	At      *stepRef     // the step where it is shown instead; nil if there is none
	Words   string       // what the step had, if that is not the passage
	Rating  string       // the last rating; empty if there is none
	Run     string
	Step    int
}

// longText is a text that is folded if it is long.
type longText struct{ Short, Full string } // Full is empty if Short is all of it

// maxAtOnce is how many characters of an intermediate answer or a passage are shown at first.
const maxAtOnce = 320

func long(s string) longText {
	s = shownText(s)
	if short := trail.Excerpt(s, maxAtOnce); short != s {
		return longText{short, s}
	}
	return longText{s, ""}
}

// markWrong marks the steps that concluded wrong sentences; if none is known to, the steps with a bad passage.
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

// addSteps adds the steps of the current page.
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
	if b.at[s.Number] != i { // another step has the same number, and so the id
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

// grouped returns the rows with the passages of a document one after the other, at the place of the first.
func grouped(rows []stepSource) []stepSource {
	var all []stepSource
	for _, row := range rows {
		at := len(all)
		for i := range all {
			if row.Doc != nil && all[i].Doc == row.Doc {
				at, row.Same = i+1, true
				if row.Passage != nil && all[i].Passage == row.Passage {
					row.Twice, row.At = true, nil // it is shown above, or where that row says
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
	said, ok := b.ratings[ratingKey{s.Number, f.DocumentID}]
	if !ok && f.Key != "" {
		said, ok = b.ratings[ratingKey{s.Number, f.Key}]
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
	// Deeper says that some of its steps started runs which are not shown.
	Deeper bool
}

// Title returns a name for the run.
func (v *nestedView) Title() string { return cmp.Or(v.Question, v.ID, "A run of its own") }

// MoreRows returns how many steps are not shown.
func (v *nestedView) MoreRows() int { return len(v.Steps) - len(v.Rows) }

// Took returns how long the run took; empty if that is not known.
func (v *nestedView) Took() string { return took(runTime(v.Trail)) }

// nestedStep is a step of a nested run, in brief.
type nestedStep struct {
	*trail.Step

	Names []string // of its sources
	More  int      // number of sources that are not named
	None  bool     // it used none
	Inner *nestedView
}

// nested returns a run that a step started, down to the depth that is shown.
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
