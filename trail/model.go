package trail

import (
	"bytes"
	"encoding/json"
	"math"
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
	Started  time.Time    // zero: unknown
	Finished time.Time    // zero: unknown, or not finished
	Parent   string       // the run that this one is nested in; empty: none
	Strategy string       // name@version of the strategy that attributed the sources; empty: none
	Steps    []Step       // by number; steps that share one keep the order in which they came
	Issues   []ibid.Issue // what was odd about the run when it was read; [Trail.Check] has everything
	// Extra has the members of the JSON that were not understood: names that trail does not know, and known ones with a
	// value of the wrong type. They are written again as they came.
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
	ID     string // ibid's id of the answer, ans_…; empty: none
	Answer *ibid.Answer
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

// jsonRun is a run as JSON.
type jsonRun struct {
	ID       *string      `json:"run_id"`
	Agent    *string      `json:"agent"`
	Parent   *string      `json:"parent_run_id,omitempty"`
	Strategy *string      `json:"strategy,omitempty"`
	Question *string      `json:"original_question"`
	Answer   *string      `json:"final_answer"`
	Final    *identified  `json:"answer,omitempty"`
	Started  *time.Time   `json:"started_at"`
	Finished *time.Time   `json:"finished_at"`
	Steps    []Step       `json:"reasoning_steps"`
	Issues   []ibid.Issue `json:"issues"`
}

// jsonStep is a step as JSON.
type jsonStep struct {
	Number        int             `json:"step_number"`
	ID            *string         `json:"id,omitempty"`
	After         []int           `json:"after"`
	Tool          *string         `json:"tool"`
	Question      *string         `json:"question"`
	Context       []string        `json:"context_used"`
	Answer        *string         `json:"intermediate_answer"`
	Confidence    *float64        `json:"confidence_score"`
	Reasoning     *string         `json:"reasoning_trace"`
	Started       *time.Time      `json:"started_at,omitempty"`
	Seconds       *float64        `json:"execution_time"`
	Error         *string         `json:"error"`
	Inputs        json.RawMessage `json:"inputs,omitempty"`
	Outputs       json.RawMessage `json:"outputs,omitempty"`
	InputsDigest  *string         `json:"inputs_digest,omitempty"`
	OutputsDigest *string         `json:"outputs_digest,omitempty"`
	Sources       []Source        `json:"source_attributions"`
	NoSources     bool            `json:"no_sources"`
	Answers       []jsonAnswer    `json:"answers,omitempty"`
	Fed           []fedSpan       `json:"fed,omitempty"`
	Nested        *Trail          `json:"nested_run,omitempty"`
	Issues        []ibid.Issue    `json:"issues,omitempty"`
}

type jsonAnswer struct {
	ID     string       `json:"answer_id"`
	Answer *ibid.Answer `json:"answer"`
}

// MarshalJSON returns the answer with its id in its document, too.
func (a jsonAnswer) MarshalJSON() ([]byte, error) {
	return plain(struct {
		ID     string      `json:"answer_id"`
		Answer *identified `json:"answer"`
	}{a.ID, documentOf(a.ID, a.Answer)})
}

// identified is an answer that is written with ibid's id of it.
type identified struct {
	id     string
	answer *ibid.Answer
}

func documentOf(id string, a *ibid.Answer) *identified {
	if a == nil {
		return nil
	}
	return &identified{id, a}
}

// MarshalJSON returns the answer's document.
func (d *identified) MarshalJSON() ([]byte, error) {
	return d.answer.Document(&ibid.DocumentOptions{AnswerID: d.id}).JSON()
}

type fedSpan struct {
	Start int `json:"text_start"`
	End   int `json:"text_end"`
}

// jsonSource is a source of a step as JSON.
type jsonSource struct {
	DocumentID string            `json:"document_id"`
	Title      *string           `json:"document_title"`
	Relevance  *float64          `json:"relevance_score"`
	Origin     *ibid.ScoreOrigin `json:"score_origin"`
	Adjusted   *float64          `json:"adjusted_relevance,omitempty"`
	Overlap    *float64          `json:"overlap,omitempty"`
	Usage      *float64          `json:"usage,omitempty"`
	Excerpt    *string           `json:"excerpt"`
	ChunkIndex *int              `json:"chunk_index"`
	Rank       *int              `json:"retrieval_rank"`
	URL        *string           `json:"url,omitempty"`
	Key        *string           `json:"key,omitempty"`
	Locator    *ibid.Locator     `json:"locator,omitempty"`
	Version    *string           `json:"version,omitempty"`
	Content    *string           `json:"content,omitempty"`
	Retrieved  bool              `json:"retrieved"`
	Used       bool              `json:"used"`
	Cited      bool              `json:"cited"`
}

// MarshalJSON returns the run with the names that [Read] takes. Reading it gives the same trail.
func (t Trail) MarshalJSON() ([]byte, error) { return marshal(t.json(t.Issues), t.Extra) }

func (t *Trail) json(issues []ibid.Issue) *jsonRun {
	return &jsonRun{
		ID: orNull(t.ID), Agent: orNull(t.Agent), Parent: orNull(t.Parent), Strategy: orNull(t.Strategy),
		Question: orNull(t.Question), Answer: orNull(t.Answer), Final: documentOf(t.finalID(), t.Final),
		Started: timeOrNull(t.Started), Finished: timeOrNull(t.Finished),
		Steps: orEmpty(t.Steps), Issues: orEmpty(issues),
	}
}

// finalID returns ibid's id of the final answer, where it is one of a step's.
func (t *Trail) finalID() string {
	for i := range t.Steps {
		for _, a := range t.Steps[i].Answers {
			if a.Answer == t.Final && t.Final != nil {
				return a.ID
			}
		}
	}
	return ""
}

// MarshalJSON returns the step with the names that [Read] takes.
func (s Step) MarshalJSON() ([]byte, error) {
	j := &jsonStep{
		Number:        s.Number,
		ID:            orNull(s.ID),
		After:         s.After,
		Tool:          orNull(s.Tool),
		Question:      orNull(s.Question),
		Context:       orEmpty(s.Context),
		Answer:        orNull(s.Answer),
		Confidence:    jsonNumber(s.Confidence),
		Reasoning:     orNull(s.Reasoning),
		Started:       timeOrNull(s.Started),
		Error:         orNull(s.Error),
		Inputs:        valid(s.Inputs),
		Outputs:       valid(s.Outputs),
		InputsDigest:  orNull(s.InputsDigest),
		OutputsDigest: orNull(s.OutputsDigest),
		Sources:       orEmpty(s.Sources),
		NoSources:     s.NoSources,
		Nested:        s.Nested,
		Issues:        s.Issues,
	}
	if s.Duration > 0 {
		j.Seconds = new(s.Duration.Seconds())
	}
	for _, a := range s.Answers {
		j.Answers = append(j.Answers, jsonAnswer(a))
	}
	for _, f := range s.Fed {
		j.Fed = append(j.Fed, fedSpan(f))
	}
	return marshal(j, s.Extra)
}

// MarshalJSON returns the source with the names that [Read] takes.
func (s Source) MarshalJSON() ([]byte, error) { return marshal(s.json(), s.Extra) }

func (s *Source) json() *jsonSource {
	return &jsonSource{
		DocumentID: s.DocumentID,
		Title:      orNull(s.Title),
		Relevance:  jsonNumber(s.Relevance),
		Origin:     orNull(s.Origin),
		Adjusted:   jsonNumber(s.Adjusted),
		Overlap:    jsonNumber(s.Overlap),
		Usage:      jsonNumber(s.Usage),
		Excerpt:    orNull(s.Excerpt),
		ChunkIndex: s.ChunkIndex,
		Rank:       orNull(s.Rank),
		URL:        orNull(s.URL),
		Key:        orNull(s.Key),
		Locator:    s.Locator,
		Version:    orNull(s.Version),
		Content:    orNull(s.Content),
		Retrieved:  s.Retrieved,
		Used:       s.Used,
		Cited:      s.Cited,
	}
}

// marshal returns v as JSON, with extra members where v has none, or null.
func marshal(v any, extra map[string]json.RawMessage) ([]byte, error) {
	data, err := plain(v)
	if err != nil || len(extra) == 0 {
		return data, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	added := false
	for name, raw := range extra {
		if has, ok := members[name]; (!ok || string(has) == "null") && json.Valid(raw) {
			members[name], added = raw, true
		}
	}
	if !added {
		return data, nil
	}
	return plain(members)
}

// plain returns v as JSON without HTML escapes.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// timeOrNull returns a time that JSON can have.
func timeOrNull(t time.Time) *time.Time {
	if t = t.UTC(); t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// jsonNumber returns a number that JSON can have.
func jsonNumber(f *float64) *float64 {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return nil
	}
	return f
}

// valid returns raw if it is JSON: a program may have filled it in by hand.
func valid(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}
