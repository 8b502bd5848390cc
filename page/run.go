package page

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

const (
	// maxRuns is how many runs a page of the list has.
	maxRuns = 25
	// maxListed is the maximum stored size of a run, in bytes, for the list to show its sources. For larger runs, only
	// their own pages do.
	maxListed = 256 << 10
	// listFor limits how long a list takes to find the sources of its runs, and to compare its answers with their
	// quotes. It leaves out what is not known by then.
	listFor = time.Second
)

// Limits of the page of a run. The page says what is left out, and the exports have all of it.
const (
	maxShownSteps     = 50 // on one page; there are further pages
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

// runsBody is the content of the list of runs.
type runsBody struct {
	Runs []runRow
	Next string // the address of the next page; empty if there is none
}

// runRow is a run in the list.
type runRow struct {
	*store.Run

	Question string // empty if it is not known
	Steps    int
	Known    bool   // the fields below are known
	Sources  int    // used by its steps
	Uncited  string // the share of sentences without a source, in words; empty if none needs one
}

// Open reports whether the run was not reported as ended.
func (r runRow) Open() bool { return r.Recorded > 0 && r.Finished.IsZero() }

// runs lists the runs of more than one step, the one with the latest call or record first.
func (p *Page) runs(ctx context.Context, r *httpx.Request) (*view, error) {
	p.captured.CatchUp(ctx)
	page, err := p.o.Store.Runs(
		ctx, r.Who.Tenant, &store.Query{Stepped: true, Cursor: r.URL.Query().Get("cursor"), Limit: maxRuns},
	)
	if err != nil {
		return nil, err
	}
	body := &runsBody{Runs: p.runRows(ctx, r.Who.Tenant, page.Items), Next: nextURL(r.URL, page.Next)}
	return &view{Name: "runs", Title: "Runs", Body: body}, nil
}

// runRows returns runs for a list, with their sources as far as they can be read within [listFor].
func (p *Page) runRows(ctx context.Context, tenant string, runs []store.Run) []runRow {
	ctx, cancel := context.WithTimeout(ctx, listFor)
	defer cancel()
	rows := make([]runRow, 0, len(runs))
	for i := range runs {
		rows = append(rows, p.runRow(ctx, tenant, &runs[i]))
	}
	return rows
}

// runRow returns a run for the list, with its sources if they can be read quickly.
func (p *Page) runRow(ctx context.Context, tenant string, run *store.Run) runRow {
	row := runRow{Run: run, Question: run.Question, Steps: max(run.Recorded, run.Answers)}
	if weight, err := p.o.Store.Weight(ctx, tenant, run.ID); err != nil || weight > maxListed {
		return row
	}
	s, err := p.o.API.Summary(ctx, tenant, run.ID)
	if err != nil {
		return row
	}
	row.Known, row.Steps, row.Sources = true, len(s.Run.Steps), len(s.Sources)
	if s.Links.Uncited != nil {
		row.Uncited = percent(*s.Links.Uncited)
	}
	if row.Question == "" {
		row.Question = s.Run.Question
	}
	return row
}

// exportRun sends a run as a file, in the forms of GET /v1/runs/{id}/summary.
func (p *Page) exportRun(w *httpx.Reply, r *httpx.Request) error {
	as := r.URL.Query().Get("as")
	name, ok := map[string]string{
		"": "run.json", "json": "run.json", "prov": "run.prov.json", "otlp": "run.otlp.json",
	}[as]
	if !ok {
		return httpx.BadRequest("There is no such form.", "Set as to json, prov or otlp.")
	}
	id, err := r.PathID()
	if err != nil {
		return err
	}
	body, err := p.o.API.ExportRun(r.Context(), r.Who.Tenant, id, as)
	if err != nil {
		return err
	}
	writeFile(w, r, name, "application/json", body)
	return nil
}

// runBody is the content of the page of a run.
type runBody struct {
	*trail.Summary

	ID      string
	URL     string
	Open    bool        // it was not reported as ended
	Live    string      // the address at which a script learns of additions; empty if there is none
	Tabs    *answerTabs // nil if it has no answer of its own
	Without int         // steps that used no sources

	Answer    *answerText // nil if there is none
	Steps     []*stepView
	Pages     stepPages
	Graph     *graph // nil if the steps simply follow each other
	Sources   []*documentView
	Unused    []*documentView
	Conflicts []conflictView

	chosen  chosen
	from    int         // index of the first step that is shown
	at      map[int]int // the index of the first step of each number
	docs    map[string]*documentView
	all     []*documentView // values of docs, each once
	ratings map[ratingKey]float64
	known   *trust      // of its answer
	axis    int64       // length of the time axis of the steps in microseconds, see traces
	placed  map[int]int // the step that shows a passage, by the passage's number
	passed  int         // number of passages numbered so far
	counted int         // number of documents numbered so far
}

// Title returns the question, or a name of the run.
func (b *runBody) Title() string {
	if b.Run.Question == "" {
		return "Run " + b.ID
	}
	return b.Run.Question
}

// Took returns how long the run took, as its steps are drawn; empty if that is not known.
func (b *runBody) Took() string {
	return took(max(runTime(b.Run), time.Duration(b.axis)*time.Microsecond))
}

// Scale returns the times at the ends and the middle of the time axis; nil if no step has a duration.
func (b *runBody) Scale() []string {
	if b.axis == 0 {
		return nil
	}
	axis := time.Duration(b.axis) * time.Microsecond
	return []string{"0", took(axis / 2), took(axis)}
}

// SourceCount returns how many sources the steps and the answer used.
func (b *runBody) SourceCount() int {
	n := len(b.Summary.Sources)
	if b.Answer != nil {
		for _, s := range b.Answer.Apart {
			if s.Cited {
				n++
			}
		}
	}
	return n
}

// Others returns how many documents are not shown.
func (b *runBody) Others() int {
	return len(b.Summary.Sources) + len(b.Summary.Unused) - len(b.Sources) - len(b.Unused)
}

// stepRef names a step and leads to it.
type stepRef struct {
	N     int
	URL   string
	Words string // its question, or the tool it called; empty where the number is enough
}

// stepPages says which of the steps are shown.
type stepPages struct {
	From, To, Of   int // 1-based places, not numbers of steps
	Before, Behind string
}

// answerTabs are the pages about one answer.
type answerTabs struct {
	Answer, Steps, Verification string // addresses
	Count                       int    // of steps
	Current                     string // answer, steps, verification
}

// tabsOf returns the pages about an answer and which of them is current. run may be empty, and steps 0 if their number
// is not known.
func tabsOf(answerID, run string, steps int, current string) *answerTabs {
	t := &answerTabs{answerURL(answerID), "", verificationURL(answerID), steps, current}
	if run != "" && steps != 1 { // a single call is no run to a reader
		t.Steps = runURL(run)
	}
	return t
}

// stepsIn returns the number of a run's steps, if it can be read quickly; 0 if not, or if there is no run.
func (p *Page) stepsIn(ctx context.Context, tenant, run string) int {
	if run == "" {
		return 0
	}
	if weight, err := p.o.Store.Weight(ctx, tenant, run); err != nil || weight > maxListed {
		return 0 // a tab without a number is better than no page
	}
	t, err := p.o.Store.Trail(ctx, tenant, run)
	if err != nil {
		return 0
	}
	return len(t.Steps)
}

// chosen is what the reader chose, to mark what belongs to it. At most one field is not 0.
type chosen struct{ Sentence, Step, Passage int }

// run shows a run: its answer sentence by sentence, its steps and its sources, and which of these rest on which.
func (p *Page) run(ctx context.Context, r *httpx.Request) (*view, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	// What was captured before is not reported as an addition.
	p.captured.CatchUp(ctx)
	live, err := p.liveURL(r.Context(), r.Who.Tenant, id) //nolint:contextcheck // it may take longer than ctx
	if err != nil {
		return nil, err
	}
	s, err := p.o.API.Summary(r.Context(), r.Who.Tenant, id) //nolint:contextcheck // it may take longer than ctx
	if err != nil {
		return nil, err
	}
	b := &runBody{
		Summary: s, ID: id, URL: runURL(id), Open: s.Run.Finished.IsZero() && isRecorded(s.Run),
		at: map[int]int{}, docs: map[string]*documentView{}, placed: map[int]int{},
	}
	b.ratings, err = p.ratings(r.Context(), r.Who.Tenant, id) //nolint:contextcheck // it may take longer than ctx
	if err != nil {
		return nil, err
	}
	if b.Open || !isRecorded(s.Run) {
		b.Live = live // if only its calls are known, it may go on unannounced
	}
	if b.chosen.Sentence = number(r, "sentence"); b.chosen.Sentence == 0 {
		if b.chosen.Step = number(r, "step"); b.chosen.Step == 0 {
			b.chosen.Passage = number(r, "passage")
		}
	}
	o := &answerOptions{readOnly: true, prefix: "final-"}
	if final := s.Run.FinalID(); final != "" {
		b.Tabs = tabsOf(final, id, len(s.Run.Steps), "steps")
	}
	if o.trust, err = p.trustOfRun(ctx, r, b); err != nil {
		return nil, err
	}
	addAnswer := func() { p.addAnswer(r.Context(), b, o) } //nolint:contextcheck // it may take longer than ctx
	b.layOut(number(r, "from")-1, addAnswer)
	v := &view{Name: "run", Title: b.Title(), Body: b}
	if b.Tabs != nil {
		v.Section = "answers" // it is a tab of an answer
	}
	return v, nil
}

// trustOfRun reads what is known of a run's answer: for a captured answer as on its own page, for others what their
// citations have.
func (p *Page) trustOfRun(ctx context.Context, r *httpx.Request, b *runBody) (*trust, error) {
	known := &trust{show: asked(r, "show")}
	if final := b.Run.FinalID(); final != "" && b.Run.Final != nil {
		call := &store.Call{Tenant: r.Who.Tenant, AnswerID: final, Run: b.ID, Answer: b.Run.Final}
		var err error
		if known, err = p.trustOf(ctx, r, call); err != nil {
			return nil, err
		}
	}
	known.page, b.known = b.URL, known
	return known, nil
}

// layOut lays the run out, with the page of steps that has the step at the index from; if from is negative, that of the
// chosen step. Documents come first because the rest refers to them; what rests on them is added last.
func (b *runBody) layOut(from int, addAnswer func()) {
	t := b.Run
	for i := range t.Steps {
		if _, there := b.at[t.Steps[i].Number]; !there {
			b.at[t.Steps[i].Number] = i
		}
	}
	if i, ok := b.at[b.chosen.Step]; ok && from < 0 {
		from = i
	}
	b.from = max(0, min(from, len(t.Steps)-1)) / maxShownSteps * maxShownSteps
	b.addDocuments()
	addAnswer()
	b.addSteps()
	for i := range b.Summary.Conflicts[:min(len(b.Summary.Conflicts), maxShownConflicts)] {
		b.addConflict(&b.Summary.Conflicts[i])
	}
	if b.Graph = drawGraph(t, b.stepURL); b.Graph == nil {
		return
	}
	for i := range b.Graph.Nodes { // the drawing marks the same steps as the list
		n := &b.Graph.Nodes[i]
		for _, s := range b.Steps {
			if s.Number == n.N {
				n.Chosen, n.Related = s.Chosen, s.Related
			}
		}
	}
}

// runTime returns how long a run took; 0 if that is not known.
func runTime(t *trail.Trail) time.Duration {
	if t.Started.IsZero() || t.Finished.IsZero() {
		return 0
	}
	return max(0, t.Finished.Sub(t.Started))
}

// isRecorded reports whether an agent reported a run, instead of only its calls having been captured: only an agent
// reports its end.
func isRecorded(t *trail.Trail) bool {
	return slices.ContainsFunc(t.Steps, func(s trail.Step) bool { return len(s.Answers) == 0 || s.ID != "" })
}

// stepURL returns where a step is shown: on this page, if possible.
func (b *runBody) stepURL(number int) string {
	i, ok := b.at[number]
	switch {
	case !ok:
		return ""
	case i >= b.from && i < b.from+maxShownSteps:
		return "#" + stepID(number)
	}
	return b.URL + "?from=" + strconv.Itoa(i/maxShownSteps*maxShownSteps+1) + "#" + stepID(number)
}

// choose returns the address that chooses a part of the run, on the current page of steps.
func (b *runBody) choose(what string, n int, fragment string) string {
	q := url.Values{what: {strconv.Itoa(n)}}
	if b.from > 0 {
		q.Set("from", strconv.Itoa(b.from+1))
	}
	return b.URL + "?" + q.Encode() + "#" + fragment
}

func (b *runBody) refs(numbers []int) []stepRef {
	refs := make([]stepRef, 0, len(numbers))
	for _, n := range numbers {
		words := ""
		if i, ok := b.at[n]; ok {
			words = short(stepWords(&b.Run.Steps[i]), maxHeading)
		}
		refs = append(refs, stepRef{n, b.stepURL(n), words})
	}
	return refs
}

// stepWords returns a name of a step.
func stepWords(s *trail.Step) string { return cmp.Or(s.Question, s.Tool, "A call of the model") }

func stepID(number int) string { return "step-" + strconv.Itoa(number) }

// answerText is the final answer of a run, with its sentences.
type answerText struct {
	View      *answerView
	Sentences []*sentenceView
	Left      int // number of sentences that are not marked

	Apart []*sourceView // sources of the answer that are not documents of the run

	chosen chosen
	text   string          // as it is shown
	docs   []*documentView // of the run
	apart  []bool          // by index, whether a source is not a document of the run
}

// Head returns the heading of the explanations. The page's script has the same words.
func (a *answerText) Head() string {
	switch {
	case a.chosen.Step != 0:
		return "What rests on step " + strconv.Itoa(a.chosen.Step)
	case a.chosen.Passage != 0:
		return "What rests on this passage"
	}
	return "What it rests on"
}

// None returns why no sentence is shown under Head; empty if some are. The page's script has the same words.
func (a *answerText) None() string {
	switch {
	case slices.ContainsFunc(a.Sentences, func(s *sentenceView) bool { return s.Opened }):
		return ""
	case a.chosen.Step != 0, a.chosen.Passage != 0:
		return "No sentence rests on it."
	}
	return "Choose a sentence or a step to see what belongs together."
}

// Of returns the kind of the chosen part; empty if nothing was chosen.
func (a *answerText) Of() string {
	switch {
	case a.chosen.Sentence != 0:
		return "sentence"
	case a.chosen.Step != 0:
		return "step"
	case a.chosen.Passage != 0:
		return "passage"
	}
	return ""
}

// sentenceView is a sentence of the final answer, and what it rests on.
type sentenceView struct {
	*trail.Sentence

	N        int // from 1
	Words    string
	Refs     []stepRef   // of Steps
	Rests    []*restView // of Passages
	Named    []int       // the numbers of the passages that are shown
	Choose   string
	Chosen   bool
	Related  bool
	Unlooked string // why it was not matched to sources; empty if it was
	Unread   bool   // what it rests on is not known, because a result could not be read
	Shown    bool   // the reader filtered for sentences without a source
	Opened   bool   // what it rests on is shown at first
	Preset   bool   // Opened although nothing was chosen
}

// MoreRests returns how many passages are not shown.
func (v *sentenceView) MoreRests() int { return len(v.Passages) - len(v.Rests) }

// restView is a passage that a sentence rests on, and the reason why.
type restView struct {
	*trail.Link

	Doc      *documentView // nil if only the answer names it
	Name     string
	Passage  *passageView  // nil if it is not shown
	Quote    []piece       // the words of the passage, with the words marked that support the sentence
	Refs     []stepRef     // of Steps
	ViaRefs  []stepRef     // of Via
	Because  string        // why, if Relation alone does not say it; else empty
	Relation string        // cited, marked, inferred
	Open     string        // the address of its source; empty if it has none
	Panel    string        // where its source is shown alone; empty if nowhere
	Saved    *savedLink    // the copy that has the passage; nil if none is known
	standing standing      // of the citation that names it; the zero value if none does
	Earlier  bool          // Steps found it before the step whose passage is shown
	Diff     template.HTML // from the passage to what the source says now; empty if equal or unknown
}

// passages returns the passage, and other passages of its document that contain all of its words: a step may have read
// more of the document than another found.
func (v *restView) passages() []*passageView {
	var all []*passageView
	if v.Passage != nil {
		all = append(all, v.Passage)
	}
	words := trail.Excerpt(v.Excerpt, 0)
	if v.Doc == nil || words == "" {
		return all
	}
	for _, other := range v.Doc.Passages {
		if other != v.Passage && strings.Contains(other.plain, words) {
			all = append(all, other)
		}
	}
	return all
}

// prefer makes Passage one that some of the given steps read, those that concluded the sentence, if there is one.
func (v *restView) prefer(steps []int) {
	readBy := func(p *passageView) bool {
		return p != nil && slices.ContainsFunc(p.Steps, func(n int) bool { return slices.Contains(steps, n) })
	}
	isOther := func(p *passageView) bool { // one with the same words is shown under the number of the first
		return readBy(p) && (v.Passage == nil || p.Words != v.Passage.Words)
	}
	if all := v.passages(); !readBy(v.Passage) {
		if at := slices.IndexFunc(all, isOther); at >= 0 {
			v.Passage, v.Earlier = all[at], true
		}
	}
}

// isWrong reports whether the passage is wrong.
func (v *restView) isWrong() bool { return v.Differs != "" || v.Checked().Kind == badgeBad }

// Checked returns the result of checking the citation, or of looking for the passage in its document; the zero badge if
// neither was done.
func (v *restView) Checked() badge {
	if v.standing.Word != "" {
		return v.standing.badge
	}
	return checkedBadge(v.Verification)
}

func checkedBadge(v *ibid.Verification) badge {
	if v == nil {
		return badge{}
	}
	return quoteBadge(v)
}

// shownText returns a text, cut to what a page shows.
func shownText(s string) string { return trail.Excerpt(s, maxShownText) }

// unlooked are the reasons why no source was looked for.
var unlooked = map[support.SkipReason]string{
	"":                      "",
	support.SkipHeading:     "a heading",
	support.SkipQuestion:    "a question",
	support.SkipCode:        "code",
	support.SkipShort:       "too short to make a statement",
	support.SkipBoilerplate: "a phrase that needs no source",
	trail.SkipUnread:        "",
}

func (b *runBody) sentence(n int, s *trail.Sentence) *sentenceView {
	v := &sentenceView{
		Sentence: s, N: n, Refs: b.refs(s.Steps),
		Chosen: b.chosen.Sentence == n, Choose: b.choose("sentence", n, "why"),
		Related: b.chosen.Step != 0 && slices.Contains(s.Steps, b.chosen.Step),
	}
	var known bool
	if v.Unlooked, known = unlooked[s.Skipped]; !known {
		v.Unlooked = "skipped: " + string(s.Skipped)
	}
	v.Unread = s.Skipped == trail.SkipUnread
	for i := range s.Passages {
		rest := b.rest(&s.Passages[i])
		rest.prefer(s.Steps)
		if i < maxShownRests {
			b.explain(rest)
			v.Rests = append(v.Rests, rest)
		}
		for _, passage := range rest.passages() {
			if slices.Contains(v.Named, passage.N) {
				continue
			}
			v.Named = append(v.Named, passage.N)
			passage.Sentences = append(passage.Sentences, n)
			passage.Related = passage.Related || v.Chosen
			v.Related = v.Related || passage.Chosen
		}
	}
	return v
}

// relations are the words for why a sentence rests on a passage.
var relations = map[trail.LinkReason]string{
	trail.ReasonCitation: "cited", trail.ReasonMarker: "marked", trail.ReasonInferred: "inferred",
}

func (b *runBody) rest(r *trail.Link) *restView {
	doc := b.docs[r.DocumentID]
	return &restView{Link: r, Doc: doc, Passage: doc.passage(r.ChunkIndex, r.Excerpt, 0)}
}

// explain fills in what is shown of a passage that a sentence rests on.
func (b *runBody) explain(v *restView) {
	r, doc := v.Link, v.Doc
	v.Name, v.Relation = doc.nameOr(r.Title, r.DocumentID), relations[r.Reason]
	v.Refs, v.ViaRefs = b.refs(r.Steps), b.refs(r.Via)
	if doc != nil {
		v.Open = doc.URL
	}
	words := shownText(r.Excerpt)
	if !strings.Contains(words, r.Evidence) {
		words = shownText(r.Evidence)
	}
	v.Quote = marked(words, shownText(r.Evidence))
	if doc != nil && v.Checked().Kind == badgeBad {
		v.Diff = b.changed(doc.URL, r.Excerpt).Change
	}
	switch r.Reason {
	case trail.ReasonCitation: // Relation says it
	case trail.ReasonMarker:
		v.Because = "A mark in the text names it."
	case trail.ReasonInferred:
		v.Because = "The checker " + r.By + " finds it close to the sentence"
		if len(r.Via) > 0 {
			v.Because = "The checker " + r.By +
				" finds that a step’s answer, which rests on it, supports the sentence"
		}
		switch {
		case r.Differs != "":
			v.Because = "The checker " + r.By + " finds that it would support the sentence if the values agreed."
		case r.Score == nil:
			v.Because += "; it gives no scores."
		case r.Threshold > 0:
			v.Because += ": " + score(r.Score) + ", where " + score(&r.Threshold) + " is enough."
		default: // the best match below the threshold
			v.Because = "It comes closest to the sentence; the checker " + r.By + " gives it " + score(r.Score) +
				"."
		}
	}
	if r.Differs != "" {
		v.Because = strings.TrimSpace(v.Because + " It says " + r.Differs + ".")
	}
}

// changedWords is a passage whose document has changed: the quoted words as they differ, and the words around them.
type changedWords struct {
	Before  string
	Change  template.HTML // empty if it is not known how the document differs
	Behind  string
	Was, Is string // the first words that differ, and those that the document has in their place
}

// changed returns how a document now differs from a passage that the answer of the run quotes.
func (b *runBody) changed(address, passage string) changedWords {
	if b.known == nil {
		return changedWords{}
	}
	address = cleanAddress(address)
	for _, pins := range b.known.pins {
		for i := range pins {
			quoted := pins[i].Claim.Excerpt
			if pins[i].URL != address || quoted == nil {
				continue
			}
			before, behind, found := strings.Cut(passage, quoted.Exact)
			if change := changeOf(&pins[i]); found && change != nil {
				return changedWords{before, change.html(), behind, change.Was, change.Is}
			}
		}
	}
	return changedWords{}
}

// conflictView is two passages that may contradict each other.
type conflictView struct {
	*trail.Conflict

	Said  string // the note
	Sides [2]conflictSide
}

// conflictSide is one of them, with the differing value marked.
type conflictSide struct {
	Doc     *documentView
	Name    string
	Where   string
	Quote   []piece
	Passage *passageView
}

func (b *runBody) addConflict(c *trail.Conflict) {
	v := conflictView{Conflict: c, Said: strings.TrimPrefix(c.Note, "possible conflict: ")}
	one, other := differing(c)
	values := [2]string{one, other}
	for i, side := range []*trail.ConflictSide{&c.A, &c.B} {
		doc := b.docs[side.DocumentID]
		v.Sides[i] = conflictSide{
			Doc: doc, Name: doc.nameOr("", side.DocumentID), Where: placeWords(side.ChunkIndex, nil),
			Quote: marked(side.Excerpt, values[i]), Passage: doc.passage(side.ChunkIndex, side.Excerpt, 0),
		}
	}
	b.Conflicts = append(b.Conflicts, v)
}

// differing returns the words in which the sides of a conflict differ, taken from its note; empty if it does not have
// them.
func differing(c *trail.Conflict) (a, b string) {
	_, values, _ := strings.Cut(c.Note, "possible conflict: "+string(c.Kind)+": ")
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

// Issues returns the issues of the run that are shown.
func (b *runBody) Issues() []ibid.Issue {
	return first(maxShownIssues, b.Summary.Issues).([]ibid.Issue)
} //nolint:forcetypeassert // what it is given
