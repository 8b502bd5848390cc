package page

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// What the page of a run shows at most. It says what is left out, and the exports have all of it.
const (
	maxShownSteps     = 50 // on one page; the others are on pages of their own
	maxShownSources   = 12 // of one step
	maxShownDocuments = 60
	maxShownPassages  = 5 // of one document
	maxShownSentences = 300
	maxShownRests     = 12 // passages that one sentence rests on
	maxShownConflicts = 20
	maxShownIssues    = 50
	maxShownNested    = 40 // steps of one nested run
	maxShownDepth     = 3  // runs in steps of runs
	maxShownText      = 20_000
)

// runBody is what the page of a run shows.
type runBody struct {
	ID       string
	URL      string
	Title    string // the question, or the id
	Asked    bool   // the question is known
	Agent    string
	Strategy string
	Parent   *link
	Started  time.Time
	Took     string // empty: it is not known
	Open     bool   // nobody said that it has ended
	Live     string // where a script hears that something was added; empty: nowhere
	Uncited  string // empty: no sentence says anything
	By       string // the checker that inferred; empty: none was asked

	Counts  runCounts
	Answer  *answerText
	Final   *link // the captured answer that is the final one
	Steps   []*stepView
	Pages   stepPages
	Graph   *graph // nil: the steps simply follow each other
	Sources []*documentView
	Unused  []*documentView
	Others  int // documents that are not shown

	Conflicts     []conflictView
	MoreConflicts int
	Issues        []ibid.Issue
	MoreIssues    int
}

// runCounts says how much there is of everything.
type runCounts struct{ Steps, Sources, Primary, Without, Retrieved int }

// link is a name with an address.
type link struct{ Name, URL string }

// stepRef names a step and leads to it.
type stepRef struct {
	N   int
	URL string
}

// stepPages says which of many steps are shown.
type stepPages struct {
	From, To, Of   int // 1-based places, not numbers of steps
	Before, Behind string
}

// chosen is what a reader chose, so that what belongs to it is marked. At most one of its fields is not 0.
type chosen struct{ Sentence, Step, Passage int }

// runPage makes the page of a run.
type runPage struct {
	s       *trail.Summary
	body    *runBody
	chosen  chosen
	from    int         // index of the first step that is shown
	at      map[int]int // the index of the first step of each number
	docs    map[string]*documentView
	ratings map[rated]float64
	passed  int // passages that have a number
	counted int // documents that have one
}

// showRun shows a run: its answer sentence by sentence, its steps and its sources, and which of these rest on which.
func (p *Page) showRun(w http.ResponseWriter, r *request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	live, err := p.liveURL(r.Context(), r.who.Tenant, id)
	if err != nil {
		return err
	}
	s, err := p.o.API.Summary(r.Context(), r.who.Tenant, id)
	if err != nil {
		return err
	}
	said, err := p.ratings(r.Context(), r.who.Tenant, id)
	if err != nil {
		return err
	}
	run := &runPage{s: s, at: map[int]int{}, docs: map[string]*documentView{}, ratings: said}
	run.chosen = chosen{Sentence: readNumber(r, "sentence")}
	if run.chosen.Sentence == 0 {
		if run.chosen.Step = readNumber(r, "step"); run.chosen.Step == 0 {
			run.chosen.Passage = readNumber(r, "passage")
		}
	}
	run.from = readNumber(r, "from") - 1
	body := run.make(id)
	if body.Open {
		body.Live = live
	}
	return p.page(w, r, "run", &view{Title: body.Title, Section: "runs", Body: body})
}

// make makes all of it. Documents come first, for the rest names them; they learn last what rests on them.
func (p *runPage) make(id string) *runBody {
	t := p.s.Run
	p.body = &runBody{
		ID: id, URL: runURL(id), Title: t.Question, Asked: t.Question != "", Agent: t.Agent, Strategy: t.Strategy,
		Started: t.Started, Open: t.Finished.IsZero() && isRecorded(t),
	}
	b := p.body
	if !b.Asked {
		b.Title = "Run " + id
	}
	if t.Parent != "" {
		b.Parent = &link{t.Parent, runURL(t.Parent)}
	}
	b.Took = took(runTime(t))
	if final := t.FinalID(); final != "" {
		b.Final = &link{final, answerURL(final)}
	}
	for i := range t.Steps {
		if _, there := p.at[t.Steps[i].Number]; !there {
			p.at[t.Steps[i].Number] = i
		}
	}
	p.from = p.firstShown()
	p.addDocuments()
	p.addAnswer()
	p.addSteps()
	p.addConflicts()
	b.Graph = drawGraph(t, p.stepURL)
	p.markNodes()
	b.Issues = p.s.Issues
	if len(b.Issues) > maxShownIssues {
		b.Issues, b.MoreIssues = b.Issues[:maxShownIssues], len(b.Issues)-maxShownIssues
	}
	return b
}

// markNodes marks the steps in the drawing that are marked in the list.
func (p *runPage) markNodes() {
	if p.body.Graph == nil {
		return
	}
	at := map[int]*stepView{}
	for _, s := range p.body.Steps {
		at[s.N] = s
	}
	for i := range p.body.Graph.Nodes {
		n := &p.body.Graph.Nodes[i]
		if s := at[n.N]; s != nil {
			n.Chosen, n.Related = s.Chosen, s.Related
		}
	}
}

// runTime returns how long a run took; 0: it is not known.
func runTime(t *trail.Trail) time.Duration {
	if t.Started.IsZero() || t.Finished.IsZero() {
		return 0
	}
	return max(0, t.Finished.Sub(t.Started))
}

// isRecorded reports whether an agent said something of a run, and not only its calls were captured: only then somebody
// will say that it ends.
func isRecorded(t *trail.Trail) bool {
	for i := range t.Steps {
		if s := &t.Steps[i]; len(s.Answers) == 0 || s.ID != "" {
			return true
		}
	}
	return false
}

// firstShown returns the index of the first step on this page: that of the page that was asked for, or that has the
// chosen step.
func (p *runPage) firstShown() int {
	n := len(p.s.Run.Steps)
	if i, ok := p.at[p.chosen.Step]; ok && p.from < 0 {
		p.from = i
	}
	return max(0, min(p.from, n-1)) / maxShownSteps * maxShownSteps
}

// stepURL returns where a step is shown: on this page if it is on it.
func (p *runPage) stepURL(number int) string {
	i, ok := p.at[number]
	switch {
	case !ok:
		return ""
	case i >= p.from && i < p.from+maxShownSteps:
		return "#" + stepID(number)
	}
	return p.body.URL + "?from=" + strconv.Itoa(i/maxShownSteps*maxShownSteps+1) + "#" + stepID(number)
}

// choose returns the address that chooses something of the run, on the page of steps that is shown.
func (p *runPage) choose(what string, n int, fragment string) string {
	q := url.Values{what: {strconv.Itoa(n)}}
	if p.from > 0 {
		q.Set("from", strconv.Itoa(p.from+1))
	}
	return p.body.URL + "?" + q.Encode() + "#" + fragment
}

func (p *runPage) refs(numbers []int) []stepRef {
	refs := make([]stepRef, 0, len(numbers))
	for _, n := range numbers {
		refs = append(refs, stepRef{n, p.stepURL(n)})
	}
	return refs
}

func stepID(number int) string { return "step-" + strconv.Itoa(number) }

// addConflicts shows the passages that may contradict each other.
func (p *runPage) addConflicts() {
	for i := range p.s.Conflicts {
		if i == maxShownConflicts {
			p.body.MoreConflicts = len(p.s.Conflicts) - maxShownConflicts
			return
		}
		c := &p.s.Conflicts[i]
		a, b := differing(c)
		p.body.Conflicts = append(p.body.Conflicts, conflictView{
			Kind: string(
				c.Kind,
			),
			Note: strings.TrimPrefix(c.Note, "possible conflict: "),
			A:    p.side(&c.A, a),
			B:    p.side(&c.B, b),
		})
	}
}

// took returns a duration as people read it.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// percent returns a share as people read it. Only all of it is 100 %, and only nothing 0 %.
func percent(share float64) string {
	switch {
	case 0.99 < share && share < 1:
		return "over 99 %"
	case 0 < share && share < 0.01:
		return "under 1 %"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + " %"
}

// score returns a score with two decimals; empty: there is none.
func score(v *float64) string {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}
