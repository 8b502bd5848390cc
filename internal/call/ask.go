package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// Ask is one question to OpenAI's chat API, which many servers implement.
type Ask struct {
	Model  string
	System string // instructions; may be empty
	User   string
	// Schema is a JSON schema that the answer must follow, Name its name in the request. If empty, the answer is free
	// text.
	Schema json.RawMessage
	Name   string
	// Steady requests a temperature of 0, which some models reject.
	Steady bool
}

type askFormat struct {
	Type   string    `json:"type"`
	Schema askSchema `json:"json_schema"`
}

type askSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// Body returns the request's body.
func (a *Ask) Body() ([]byte, error) {
	var messages []roleContent
	if a.System != "" {
		messages = append(messages, roleContent{RoleSystem, a.System})
	}
	r := requestBody{Model: a.Model, Messages: append(messages, roleContent{RoleUser, a.User}), Stream: new(bool)}
	if len(a.Schema) > 0 {
		r.Format = &askFormat{
			Type:   "json_schema",
			Schema: askSchema{Name: a.Name, Strict: true, Schema: a.Schema},
		}
	}
	if a.Steady {
		r.Temperature = new(float64)
	}
	return wire.Encode(r)
}

// ReadUsage returns how many tokens the server counted for an [Ask] and for its answer; 0 if it did not say.
func ReadUsage(body []byte) (in, out int) {
	usage := scan.Value(bytes.TrimSpace(body)).Get("usage")
	in, _ = usage.Get("prompt_tokens").Int()
	out, _ = usage.Get("completion_tokens").Int()
	return max(0, in), max(0, out)
}

// GroundingCheck is a text and the facts to compare it with, for Google's check grounding API (Discovery Engine, method
// groundingConfigs.check).
type GroundingCheck struct {
	Text      string
	Facts     []string
	Threshold float64 // minimum confidence of a citation, in (0, 1]; 0 means the API's default, 0.6
}

type groundingRequest struct {
	Candidate string          `json:"answerCandidate"`
	Facts     []groundingFact `json:"facts"`
	Spec      groundingSpec   `json:"groundingSpec"`
}

type groundingFact struct {
	Text string `json:"factText"`
}

type groundingSpec struct {
	Threshold  float64 `json:"citationThreshold,omitempty"`
	ClaimScore bool    `json:"enableClaimLevelScore"`
}

// Body returns the request's body. It requests a score for each claim.
func (g *GroundingCheck) Body() ([]byte, error) {
	r := groundingRequest{
		Candidate: g.Text,
		Facts:     make([]groundingFact, len(g.Facts)),
		Spec:      groundingSpec{g.Threshold, true},
	}
	for i, fact := range g.Facts {
		r.Facts[i] = groundingFact{fact}
	}
	return wire.Encode(r)
}

// Grounding is the result of a GroundingCheck.
type Grounding struct {
	Score  *float64 // support score of the whole text; nil if missing
	Claims []GroundedClaim
	Chunks []GroundedChunk // parts of the facts, referred to by the claims' indexes
}

// GroundedClaim is one sentence of the text. Its offsets are in UTF-8 bytes.
type GroundedClaim struct {
	Start, End int
	Unchecked  bool     // the API decided that it needs no support, and did not look for any
	Score      *float64 // nil if missing
	For        []int    // indexes of existing chunks that support it
	Against    []int    // indexes of chunks that contradict it, in projects with that experiment
}

// GroundedChunk is a part of a fact.
type GroundedChunk struct {
	Text string
	Fact int // index of its fact; -1 if missing
}

// ReadGrounding parses the API's response. Missing members and those of the wrong type are omitted; the only error is a
// body that is not such a response.
func ReadGrounding(body []byte) (*Grounding, error) {
	doc := scan.Value(bytes.TrimSpace(body))
	claims, score := doc.Get("claims"), doc.Get("supportScore").Number()
	if !doc.IsObject() || score == nil && !claims.IsArray() {
		return nil, errors.New("reading a grounding: neither a score nor claims")
	}
	g := &Grounding{Score: score}
	for each := scan.Elements(doc.Get("citedChunks")); each.Next(); {
		fact, err := strconv.Atoi(each.Val.Get("source").Text())
		if err != nil {
			fact = -1
		}
		g.Chunks = append(g.Chunks, GroundedChunk{each.Val.Get("chunkText").Str(), fact})
	}
	for each := scan.Elements(claims); each.Next(); {
		c := GroundedClaim{
			Score:   each.Val.Get("score").Number(),
			For:     indexes(each.Val.Get("citationIndices"), len(g.Chunks)),
			Against: indexes(each.Val.Get("antiCitationIndices"), len(g.Chunks)),
		}
		c.Start, _ = each.Val.Get("startPos").Int()
		c.End, _ = each.Val.Get("endPos").Int()
		required := each.Val.Get("groundingCheckRequired")
		c.Unchecked = len(required) > 0 && !required.IsTrue()
		g.Claims = append(g.Claims, c)
	}
	return g, nil
}

// indexes parses a list of indexes below n and omits invalid ones.
func indexes(v scan.Value, n int) []int {
	var all []int
	for each := scan.Elements(v); each.Next(); {
		if i, ok := each.Val.Int(); ok && i >= 0 && i < n {
			all = append(all, i)
		}
	}
	return all
}
