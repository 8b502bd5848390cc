package openapi

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// shapes are the members of types with their own encoding, which a test compares with it. As input they are tolerant:
// other members are kept.
var shapes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[ibid.Verification](): reflect.TypeFor[verification](),
	reflect.TypeFor[trail.Trail]():       reflect.TypeFor[run](),
	reflect.TypeFor[trail.Step]():        reflect.TypeFor[step](),
	reflect.TypeFor[trail.Source]():      reflect.TypeFor[source](),
	reflect.TypeFor[trail.StepAnswer]():  reflect.TypeFor[stepAnswer](),
	reflect.TypeFor[trail.Summary]():     reflect.TypeFor[summary](),
	reflect.TypeFor[trail.Conflict]():    reflect.TypeFor[conflict](),
}

type verification struct {
	Status    string     `json:"status"`
	CheckedAt *time.Time `json:"checked_at"`
}

type run struct {
	ID       *string        `json:"run_id"`
	Agent    *string        `json:"agent"` // the agent's name
	Parent   string         `json:"parent_run_id,omitempty"`
	Strategy string         `json:"strategy,omitempty"` // name@version
	Question *string        `json:"original_question"`
	Final    *string        `json:"final_answer"`
	Answer   *ibid.Document `json:"answer,omitempty"` // the final answer with its citations
	Started  *time.Time     `json:"started_at"`
	Finished *time.Time     `json:"finished_at"`
	Steps    []trail.Step   `json:"reasoning_steps"`
	Issues   []ibid.Issue   `json:"issues"` // issues found when the run was read

	invalid
}

// Members kept although their value has the wrong type.
type invalid struct {
	Invalid map[string]json.RawMessage `json:"invalid_members,omitempty"` // members of the wrong type, as received
}

type step struct {
	Number        int                `json:"step_number"`
	ID            string             `json:"id,omitempty"` // the program's own
	After         []int              `json:"after"`        // the steps that it builds on; null means the previous one
	Tool          *string            `json:"tool"`         // the tool called; null means the model itself
	Question      *string            `json:"question"`
	Context       []string           `json:"context_used"`
	Answer        *string            `json:"intermediate_answer"`
	Confidence    *float64           `json:"confidence_score"`
	Reasoning     *string            `json:"reasoning_trace"`
	Started       time.Time          `json:"started_at,omitzero"`
	Seconds       *float64           `json:"execution_time"` // in seconds
	Error         *string            `json:"error"`          // why the step failed
	Inputs        json.RawMessage    `json:"inputs,omitempty"`
	Outputs       json.RawMessage    `json:"outputs,omitempty"`
	InputsDigest  string             `json:"inputs_digest,omitempty"`
	OutputsDigest string             `json:"outputs_digest,omitempty"`
	Sources       []trail.Source     `json:"source_attributions"` // sources it retrieved, used and cited
	NoSources     bool               `json:"no_sources"`
	Answers       []trail.StepAnswer `json:"answers,omitempty"` // captured calls of models
	Fed           []fedSpan          `json:"fed,omitempty"`     // the words of the final answer that rest on it
	Nested        *trail.Trail       `json:"nested_run,omitempty"`
	Issues        []ibid.Issue       `json:"issues,omitempty"`

	invalid
}

// A span of the final answer, in UTF-8 bytes.
type fedSpan struct {
	Start int `json:"text_start"`
	End   int `json:"text_end"`
}

type stepAnswer struct {
	ID     string         `json:"answer_id"`
	Answer *ibid.Document `json:"answer"`
}

type scores struct {
	Relevance *float64          `json:"relevance_score"` // relevance to the step; null if not given
	Origin    *ibid.ScoreOrigin `json:"score_origin"`
	Adjusted  *float64          `json:"adjusted_relevance,omitempty"`
	Overlap   *float64          `json:"overlap,omitempty"`
	Usage     *float64          `json:"usage,omitempty"`
}

type source struct {
	scores
	invalid

	DocumentID string        `json:"document_id"`
	Title      *string       `json:"document_title"`
	Excerpt    *string       `json:"excerpt"`
	ChunkIndex *int          `json:"chunk_index"`
	Rank       *int          `json:"retrieval_rank"`
	URL        string        `json:"url,omitempty"`
	Key        string        `json:"key,omitempty"` // the same for a document in any run
	Locator    *ibid.Locator `json:"locator,omitempty"`
	Version    string        `json:"version,omitempty"`
	Content    string        `json:"content,omitempty"`
	// the result of looking for the passage in its document; absent if it was not checked
	Verification *ibid.Verification `json:"verification,omitempty"`
	Retrieved    bool               `json:"retrieved"` // a search of the step returned it
	Used         bool               `json:"used"`      // the step worked with it
	Cited        bool               `json:"cited"`     // the step's answer names it
}

type summary struct {
	run

	Sources struct {
		All      []runSource         `json:"all_sources"` // used or cited by a step, most relevant first
		Primary  []runSource         `json:"primary_sources"`
		ByStep   map[string][]string `json:"source_usage_by_step"` // document ids
		Unused   []runSource         `json:"unused_sources"`       // retrieved only
		Without  []int               `json:"steps_without_sources"`
		Conflict []trail.Conflict    `json:"conflicts,omitempty"`
	} `json:"source_summary"`
	Display struct {
		Total   int `json:"total_sources"`
		Primary []struct {
			DocumentID string   `json:"document_id"`
			Title      string   `json:"title"`
			Relevance  *float64 `json:"relevance"`
			Excerpt    *string  `json:"excerpt"`
		} `json:"primary_sources"`
		Steps map[string]struct {
			Number int      `json:"step_number"`
			Used   int      `json:"sources_used"` // number of sources
			IDs    []string `json:"document_ids"`
		} `json:"step_breakdown"`
	} `json:"display"`
	Sentences []summarySentence `json:"sentences"` // null if not linked
	Uncited   *float64          `json:"uncited_share"`
}

// A document that a run used.
type runSource struct {
	source

	OtherIDs []string         `json:"other_ids,omitempty"` // its other ids in steps
	Passages []summaryPassage `json:"passages,omitempty"`
	Steps    []int            `json:"steps"`
	Quality  *struct {
		Score *float64 `json:"score"`
		Known float64  `json:"known"`
		Parts []struct {
			Name   support.PartKind `json:"name"`
			Value  float64          `json:"value"`
			Weight float64          `json:"weight"`
			Why    string           `json:"why"`
		} `json:"parts"`
	} `json:"quality,omitempty"`
}

// One passage of a document.
type summaryPassage struct {
	scores

	ChunkIndex   *int               `json:"chunk_index"`
	Excerpt      *string            `json:"excerpt"`
	Rank         *int               `json:"retrieval_rank"`
	Locator      *ibid.Locator      `json:"locator,omitempty"`
	Version      string             `json:"version,omitempty"`
	Verification *ibid.Verification `json:"verification,omitempty"`
	Cited        bool               `json:"cited"`
	Steps        []int              `json:"steps"`
}

// A sentence of the final answer and the passages that it rests on.
type summarySentence struct {
	Text      string              `json:"text"`
	Start     int                 `json:"text_start"` // UTF-8 bytes of the final answer
	End       int                 `json:"text_end"`
	Steps     []int               `json:"steps"` // the steps that concluded it
	Passages  []linkedPassage     `json:"passages"`
	NoSources bool                `json:"no_sources"`
	Skipped   *support.SkipReason `json:"skipped"` // why no passage was looked for
}

// A passage that a sentence rests on.
type linkedPassage struct {
	DocumentID string           `json:"document_id"`
	Title      *string          `json:"document_title"`
	ChunkIndex *int             `json:"chunk_index"`
	Locator    *ibid.Locator    `json:"locator,omitempty"`
	Steps      []int            `json:"steps"`
	Via        []int            `json:"via"`
	Reason     trail.LinkReason `json:"reason"`
	Score      *float64         `json:"score"`
	Threshold  *float64         `json:"threshold"`
	By         *string          `json:"by"` // the checker
	Evidence   *string          `json:"evidence"`
	Excerpt    *string          `json:"excerpt"`
	// the differing values of the passage
	Differs      string             `json:"differs,omitempty"`
	Verification *ibid.Verification `json:"verification,omitempty"`
}

type conflict struct {
	Kind support.ConflictKind `json:"kind"`
	A    conflictSide         `json:"a"`
	B    conflictSide         `json:"b"`
	Note string               `json:"note"`
}

// A passage that contradicts another.
type conflictSide struct {
	DocumentID string  `json:"document_id"`
	ChunkIndex *int    `json:"chunk_index"`
	Excerpt    *string `json:"excerpt"`
}
