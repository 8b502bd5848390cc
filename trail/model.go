package trail

import (
	"container/heap"
	"encoding/json"
	"slices"
	"sort"
	"time"

	"github.com/ibidhq/ibid"
)

// Trail is one run of an agent: a question, the steps it took, the answer. It is plain data; a copy shares its slices.
// Its zero value is a run of which nothing is known.
//
// As JSON it is the run of docs/trail.md, with the names that [Read] takes.
type Trail struct {
	ID       string // of the run
	Agent    string // who ran it
	Question string
	Answer   string       // the final answer, as text
	Final    *ibid.Answer // the final answer with its citations; nil: only its text is known
	AnswerID string       // ibid's id of Final; empty: see [Trail.FinalID]
	Started  time.Time    // zero: unknown
	Finished time.Time    // zero: unknown, or not finished
	Parent   string       // the run that this one is nested in; empty: none
	Strategy string       // name@version of the strategy that attributed the sources; empty: none
	Steps    []Step       // by number; steps that share one keep the order in which they came
	Issues   []ibid.Issue // what was odd about the run when it was read; [Trail.Check] has everything
	// Extra has the members of the JSON that were not understood: names that trail does not know, which are written
	// again as they came, and known ones with a value of the wrong type, written in the member invalid_members.
	Extra map[string]json.RawMessage
}

// Step is one thing that a run did.
type Step struct {
	Number int    // from 1, unique in a sound trail
	ID     string // the program's own id; empty: none
	// After has the numbers of the steps that this one builds on. Nil means the one before, empty means none.
	After      []int
	Tool       string // what was called; empty: the model itself
	Question   string
	Answer     string // the intermediate answer
	Reasoning  string // the reasoning trace
	Error      string // why the step failed; empty: it did not
	Confidence *float64
	Started    time.Time     // zero: unknown
	Duration   time.Duration // zero: unknown
	// Inputs and Outputs are what the step was called with and what came of it, as JSON. Programs that must not keep
	// these keep "sha256:" and the hexadecimal SHA-256 in InputsDigest and OutputsDigest instead.
	Inputs, Outputs             json.RawMessage
	InputsDigest, OutputsDigest string
	Context                     []string     // the context as bare strings, where that is all there is
	Sources                     []Source     // what it retrieved, used and cited: a row for each passage
	Answers                     []StepAnswer // calls of models that were captured
	Fed                         []ibid.Span  // which words of the final answer rest on it; [Trail.Link] fills it in
	NoSources                   bool         // the program said that the step used no sources
	Nested                      *Trail       // the run that the step started; nil: none
	Issues                      []ibid.Issue // what was odd about the step when it was read
	Extra                       map[string]json.RawMessage
}

// StepAnswer is one captured call of a model.
type StepAnswer struct {
	ID     string       `json:"answer_id"` // ibid's id of the answer, ans_…; empty: none
	Answer *ibid.Answer `json:"answer"`
}

// Source is one passage of a document that a step drew on. Rows with the same document are the same source in a
// [Summary].
type Source struct {
	// DocumentID names the document in its run. Read, the recorder and Enhance never leave it empty.
	DocumentID string
	Title      string
	URL        string
	// Key is the same for the same document in any run: [ibid.Source.Key]. Empty: only DocumentID says what is the
	// same.
	Key string

	Relevance *float64         // how well it fits the step, as somebody said; nil: nobody did
	Origin    ibid.ScoreOrigin // who said it; empty exactly if Relevance is nil
	Adjusted  *float64         // Relevance times the confidence of the step: only in a summary, only where asked for
	// how much the step's words and the passage's have in common, 0 to 1; nil: not measured; see [Trail.Weigh]
	Overlap *float64
	// the share of the step's information that sentences resting on the source cover; nil: not measured
	Usage *float64

	Excerpt    string        // what is shown of the passage
	Content    string        // the whole passage; empty: only the excerpt is known
	ChunkIndex *int          // which chunk of the document the passage is; nil: not said
	Rank       int           // place in the results of the retrieval, from 1; 0: unknown
	Locator    *ibid.Locator // where in the document the passage stands; nil: unknown
	Version    string        // of the document: a hash, an ETag, a date; empty: unknown

	// Verification is what came of reading the document again and looking for the passage in it; nil: not done, or not
	// known. A store fills it in, and keeps none that it is given.
	Verification *ibid.Verification

	Retrieved bool // a search of the step returned it
	Used      bool // the step worked with it
	Cited     bool // the step's answer names it

	Extra map[string]json.RawMessage
}

// counts reports whether the step drew on the source: that a search returned it is not enough.
func (s *Source) counts() bool { return s.Used || s.Cited }

// text returns as much of the passage as is known.
func (s *Source) text() string {
	if s.Content != "" {
		return s.Content
	}
	return s.Excerpt
}

// Result is one result of a retrieval, in the order of its relevance.
type Result struct {
	DocumentID string
	Title      string
	URL        string
	Score      *float64 // what the retriever said, in its own scale; nil: nothing
	Content    string
	ChunkIndex *int
	Locator    *ibid.Locator
	Version    string
}

// MarshalJSON returns the run with the names that [Read] takes. Reading it gives the same trail.
func (t Trail) MarshalJSON() ([]byte, error) {
	var w objectWriter
	t.write(&w, t.Issues)
	return w.object(t.Extra)
}

func (t *Trail) write(w *objectWriter, issues []ibid.Issue) {
	w.orNull("run_id", t.ID)
	w.orNull("agent", t.Agent)
	w.orOmit("parent_run_id", t.Parent)
	w.orOmit("strategy", t.Strategy)
	w.orNull("original_question", t.Question)
	w.orNull("final_answer", t.Answer)
	if t.Final != nil {
		w.member("answer", document{t.FinalID(), t.Final})
	} else {
		w.own = append(w.own, "answer")
	}
	w.orNull("started_at", t.Started)
	w.orNull("finished_at", t.Finished)
	w.member("reasoning_steps", orEmpty(t.Steps))
	w.member("issues", orEmpty(issues))
}

// MarshalJSON returns the step with the names that [Read] takes.
func (s Step) MarshalJSON() ([]byte, error) {
	var w objectWriter
	w.member("step_number", s.Number)
	w.orOmit("id", s.ID)
	w.member("after", s.After)
	w.orNull("tool", s.Tool)
	w.orNull("question", s.Question)
	w.member("context_used", orEmpty(s.Context))
	w.orNull("intermediate_answer", s.Answer)
	w.orNull("confidence_score", s.Confidence)
	w.orNull("reasoning_trace", s.Reasoning)
	w.orOmit("started_at", s.Started)
	w.orNull("execution_time", max(0, s.Duration.Seconds()))
	w.orNull("error", s.Error)
	w.orOmit("inputs", s.Inputs)
	w.orOmit("outputs", s.Outputs)
	w.orOmit("inputs_digest", s.InputsDigest)
	w.orOmit("outputs_digest", s.OutputsDigest)
	w.member("source_attributions", orEmpty(s.Sources))
	w.member("no_sources", s.NoSources)
	w.orOmit("answers", s.Answers)
	var fed []fedSpan
	for _, f := range s.Fed {
		fed = append(fed, fedSpan(f))
	}
	w.orOmit("fed", fed)
	w.orOmit("nested_run", s.Nested)
	w.orOmit("issues", s.Issues)
	return w.object(s.Extra)
}

type fedSpan struct {
	Start int `json:"text_start"`
	End   int `json:"text_end"`
}

// MarshalJSON returns the answer's document, with its id in it.
func (a StepAnswer) MarshalJSON() ([]byte, error) {
	var w objectWriter
	w.member("answer_id", a.ID)
	if a.Answer == nil {
		w.member("answer", nil)
	} else {
		w.member("answer", document(a))
	}
	return w.object(nil)
}

// document is an answer that is written as its document, with ibid's id of it.
type document StepAnswer

// MarshalJSON returns the answer's document.
func (d document) MarshalJSON() ([]byte, error) {
	return d.Answer.Document(&ibid.DocumentOptions{AnswerID: d.ID}).JSON()
}

// MarshalJSON returns the source with the names that [Read] takes.
func (s Source) MarshalJSON() ([]byte, error) {
	var w objectWriter
	s.write(&w)
	return w.object(s.Extra)
}

func (s *Source) write(w *objectWriter) {
	w.member("document_id", s.DocumentID)
	w.orNull("document_title", s.Title)
	s.writeScores(w)
	w.orNull("excerpt", s.Excerpt)
	w.member("chunk_index", s.ChunkIndex)
	w.orNull("retrieval_rank", s.Rank)
	w.orOmit("url", s.URL)
	w.orOmit("key", s.Key)
	w.orOmit("locator", s.Locator)
	w.orOmit("version", s.Version)
	w.orOmit("content", s.Content)
	w.orOmit("verification", s.Verification)
	w.member("retrieved", s.Retrieved)
	w.member("used", s.Used)
	w.member("cited", s.Cited)
}

func (s *Source) writeScores(w *objectWriter) {
	w.orNull("relevance_score", s.Relevance)
	w.orNull("score_origin", s.Origin)
	w.orOmit("adjusted_relevance", s.Adjusted)
	w.orOmit("overlap", s.Overlap)
	w.orOmit("usage", s.Usage)
}

// Graph returns for each step the indices in t.Steps of those that it builds on, ascending: the ones its After names,
// or where that is nil the one before. Of several steps with one number it is the last. Numbers that no step has, and
// the step's own, are left out.
func (t *Trail) Graph() [][]int {
	at := t.lastByNumber()
	before := make([][]int, len(t.Steps))
	previous := -1 // the first of the last steps with a smaller number
	for i := range t.Steps {
		s := &t.Steps[i]
		if i > 0 && t.Steps[i-1].Number != s.Number {
			previous = i - 1
		}
		if s.After == nil {
			if previous >= 0 {
				before[i] = []int{previous}
			}
			continue
		}
		for _, number := range s.After {
			if b, ok := at[number]; ok && number != s.Number {
				before[i] = append(before[i], b)
			}
		}
		slices.Sort(before[i])
		before[i] = slices.Compact(before[i])
	}
	return before
}

// Before returns the row of [Trail.Graph] for the step at index i.
func (t *Trail) Before(i int) []int { return t.Graph()[i] }

// lastByNumber returns the index of the last step of each number. All of them would make a graph with a square of
// edges.
func (t *Trail) lastByNumber() map[int]int {
	at := make(map[int]int, len(t.Steps))
	for i := range t.Steps {
		at[t.Steps[i].Number] = i
	}
	return at
}

// Order returns the indices of all steps so that each comes after those it builds on, and otherwise by number. Steps in
// a cycle, and those that build on them, come last, by number.
func (t *Trail) Order() []int {
	order, cyclic := order(t.Graph())
	return append(order, cyclic...)
}

// order sorts a graph topologically. What hangs on a cycle is returned apart.
func order(before [][]int) (order, cyclic []int) {
	after, missing := make([][]int, len(before)), make([]int, len(before))
	for i, all := range before {
		missing[i] = len(all)
		for _, b := range all {
			after[b] = append(after[b], i)
		}
	}
	order = make([]int, 0, len(before))
	ready := &minHeap{}
	for i := range before {
		if missing[i] == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int)
		order = append(order, i)
		for _, next := range after[i] {
			if missing[next]--; missing[next] == 0 {
				heap.Push(ready, next)
			}
		}
	}
	if len(order) == len(before) {
		return order, nil
	}
	for i := range before {
		if missing[i] > 0 {
			cyclic = append(cyclic, i)
		}
	}
	return order, cyclic
}

// minHeap gives the smallest of its numbers first.
type minHeap struct{ sort.IntSlice }

// Push appends a number, for package heap.
func (h *minHeap) Push(n any) { h.IntSlice = append(h.IntSlice, n.(int)) }

// Pop removes the last number, for package heap.
func (h *minHeap) Pop() any {
	last := len(h.IntSlice) - 1
	n := h.IntSlice[last]
	h.IntSlice = h.IntSlice[:last]
	return n
}

// CriticalPath returns the steps that the run waited for, as indices in their order, and the time they took together:
// of all ways through the graph the one with the longest sum of durations. Steps in a cycle are left out.
func (t *Trail) CriticalPath() ([]int, time.Duration) {
	before := t.Graph()
	steps, _ := order(before)
	took, from, end := make([]time.Duration, len(before)), make([]int, len(before)), -1
	for _, i := range steps {
		from[i] = -1
		for _, b := range before[i] {
			if from[i] < 0 || took[b] > took[from[i]] {
				from[i] = b
			}
		}
		if from[i] >= 0 {
			took[i] = took[from[i]]
		}
		took[i] += max(0, t.Steps[i].Duration)
		if end < 0 || took[i] > took[end] {
			end = i
		}
	}
	if end < 0 {
		return nil, 0
	}
	var path []int
	for i := end; i >= 0; i = from[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path, took[end]
}
