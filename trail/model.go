package trail

import (
	"container/heap"
	"encoding/json"
	"slices"
	"sort"
	"time"

	"github.com/ibidhq/ibid"
)

// Trail is one run of an agent: the question, the steps it took, the answer. It is plain data; a copy shares its
// slices. The zero value is a run about which nothing is known.
//
// Its JSON is the run that docs/trail.md describes, with the names that [Read] accepts.
type Trail struct {
	ID       string // of the run
	Agent    string // the name of the agent
	Question string
	Answer   string       // the final answer, as text
	Final    *ibid.Answer // the final answer with its citations; nil if only its text is known
	AnswerID string       // ibid's id of Final; if empty, see [Trail.FinalID]
	Started  time.Time    // zero if unknown
	Finished time.Time    // zero if unknown or not finished
	Parent   string       // the id of the run that this one is nested in; empty if none
	Strategy string       // name@version of the strategy that attributed the sources; empty if none
	Steps    []Step       // sorted by number; steps that share one keep their original order
	Issues   []ibid.Issue // issues found while reading the run; [Trail.Check] returns all
	// Extra has the JSON members that were not understood: unknown ones, which are written back unchanged, and known
	// ones with a value of the wrong type, which are written in the member invalid_members.
	Extra map[string]json.RawMessage
}

// Step is one thing that a run did.
type Step struct {
	Number int    // from 1, unique in a sound trail
	ID     string // the program's own id; empty if none
	// After has the numbers of the steps that this one builds on. Nil means the step before, empty means none.
	After      []int
	Tool       string // the tool called; empty for the model itself
	Question   string
	Answer     string // the intermediate answer
	Reasoning  string // the reasoning trace
	Error      string // why the step failed; empty if it did not
	Confidence *float64
	Started    time.Time     // zero if unknown
	Duration   time.Duration // zero if unknown
	// Inputs and Outputs are what the step was called with and what it returned, as JSON. Programs that must not keep
	// these set InputsDigest and OutputsDigest to "sha256:" and the hexadecimal SHA-256 instead.
	Inputs, Outputs             json.RawMessage
	InputsDigest, OutputsDigest string
	Context                     []string     // the context as bare strings, if that is all there is
	Sources                     []Source     // what it retrieved, used and cited, a row for each passage
	Answers                     []StepAnswer // captured model calls
	Fed                         []ibid.Span  // the parts of the final answer that rest on it, set by [Trail.Link]
	NoSources                   bool         // the program reported that the step used no sources
	Nested                      *Trail       // the run that the step started; nil if none
	Issues                      []ibid.Issue // issues found while reading the step
	Extra                       map[string]json.RawMessage
}

// StepAnswer is one captured model call.
type StepAnswer struct {
	ID     string       `json:"answer_id"` // ibid's id of the answer, ans_…; empty if none
	Answer *ibid.Answer `json:"answer"`
}

// Source is one passage of a document that a step drew on. Rows with the same document are the same source in a
// [Summary].
type Source struct {
	// DocumentID identifies the document within its run. Read, Recorder and Enhance never leave it empty.
	DocumentID string
	Title      string
	URL        string
	// Key identifies the document across runs: see [ibid.Source.Key]. If it is empty, only DocumentID identifies the
	// document.
	Key string

	Relevance *float64         // how well it fits the step, as reported; nil if not scored
	Origin    ibid.ScoreOrigin // where Relevance comes from; empty if and only if that is nil
	Adjusted  *float64         // Relevance times the step's confidence; set only in summaries, by the option Adjust
	// How much the step's words and the passage's have in common, 0 to 1; nil if not measured. See [Trail.Weigh].
	Overlap *float64
	// The share of the step's information in sentences that rest on the source; nil if not measured.
	Usage *float64

	Excerpt    string        // the part of the passage that is shown
	Content    string        // the whole passage; empty if only the excerpt is known
	ChunkIndex *int          // which chunk of the document the passage is; nil if unknown
	Rank       int           // position in the retrieval results, from 1; 0 if unknown
	Locator    *ibid.Locator // where in the document the passage is; nil if unknown
	Version    string        // of the document: a hash, an ETag, a date; empty if unknown

	// Verification is the result of fetching the document again and looking for the passage in it; nil if that was not
	// done or is not known. A store sets it, and discards any that it is given.
	Verification *ibid.Verification

	Retrieved bool // a search of the step returned it
	Used      bool // the step worked with it
	Cited     bool // the step's answer names it

	Extra map[string]json.RawMessage
}

// counts reports whether the step drew on the source. Having been retrieved is not enough.
func (s *Source) counts() bool { return s.Used || s.Cited }

// text returns as much of the passage as is known.
func (s *Source) text() string {
	if s.Content != "" {
		return s.Content
	}
	return s.Excerpt
}

// Result is one result of a retrieval. Lists of results are ordered by relevance.
type Result struct {
	DocumentID string
	Title      string
	URL        string
	Score      *float64 // the retriever's score, on its own scale; nil if none
	Content    string
	ChunkIndex *int
	Locator    *ibid.Locator
	Version    string
}

// MarshalJSON returns the run with the names that [Read] accepts. Reading it back yields the same trail.
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

// MarshalJSON returns the step with the names that [Read] accepts.
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
	w.own = append(w.own, certainRunNames...) // with one of these it would be read as a run
	return w.object(s.Extra)
}

type fedSpan struct {
	Start int `json:"text_start"`
	End   int `json:"text_end"`
}

// MarshalJSON returns the answer's id and its document.
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

// document is an answer that marshals to its document, which includes its id.
type document StepAnswer

// MarshalJSON returns the answer's document.
func (d document) MarshalJSON() ([]byte, error) {
	return d.Answer.Document(&ibid.DocumentOptions{AnswerID: d.ID}).JSON()
}

// MarshalJSON returns the source with the names that [Read] accepts.
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

// Graph returns, for each step, the indices in t.Steps of the steps that it builds on, ascending: those that After
// names or, if After is nil, the step before. A number that several steps share means the last of them. The step's own
// number and numbers of no step are ignored.
func (t *Trail) Graph() [][]int {
	at := t.lastByNumber()
	before := make([][]int, len(t.Steps))
	previous := -1 // the last step with the previous number
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

// lastByNumber returns the index of the last step with each number. Graph takes only this one, because edges to all of
// them could be quadratically many.
func (t *Trail) lastByNumber() map[int]int {
	at := make(map[int]int, len(t.Steps))
	for i := range t.Steps {
		at[t.Steps[i].Number] = i
	}
	return at
}

// Order returns the indices of all steps, each after those it builds on and otherwise by number. Steps in a cycle, and
// those that build on them, come last, by number.
func (t *Trail) Order() []int {
	order, cyclic := order(t.Graph())
	return append(order, cyclic...)
}

// order sorts a graph topologically. Nodes in a cycle, and those that build on them, are returned separately.
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

// minHeap is a heap of ints, smallest first.
type minHeap struct{ sort.IntSlice }

// Push implements heap.Interface.
func (h *minHeap) Push(n any) { h.IntSlice = append(h.IntSlice, n.(int)) }

// Pop implements heap.Interface.
func (h *minHeap) Pop() any {
	last := len(h.IntSlice) - 1
	n := h.IntSlice[last]
	h.IntSlice = h.IntSlice[:last]
	return n
}

// CriticalPath returns the path through the graph whose durations have the largest sum, as indices in order, and that
// sum: the steps that the run waited for. Steps in a cycle are left out.
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
