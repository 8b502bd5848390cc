package trail

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/ibidhq/ibid"
)

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
		Number:   s.Number,
		ID:       orNull(s.ID),
		After:    s.After,
		Tool:     orNull(s.Tool),
		Question: orNull(s.Question),
		Context: orEmpty(
			s.Context,
		),
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
		URL: orNull(
			s.URL,
		),
		Key:       orNull(s.Key),
		Locator:   s.Locator,
		Version:   orNull(s.Version),
		Content:   orNull(s.Content),
		Retrieved: s.Retrieved,
		Used:      s.Used,
		Cited:     s.Cited,
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
