package wire

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/ibidhq/ibid/internal/scan"
)

// GroundingCheck is a text and the facts that Google's check grounding API is to compare it with (Discovery Engine,
// method groundingConfigs.check).
type GroundingCheck struct {
	Text      string
	Facts     []string
	Threshold float64 // of a citation, in (0, 1]; 0: the API's own, 0.6
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

// Body returns the request's body. It asks for a score of each claim.
func (g *GroundingCheck) Body() ([]byte, error) {
	r := groundingRequest{
		Candidate: g.Text,
		Facts:     make([]groundingFact, len(g.Facts)),
		Spec:      groundingSpec{g.Threshold, true},
	}
	for i, fact := range g.Facts {
		r.Facts[i] = groundingFact{fact}
	}
	return Encode(r)
}

// Grounding is what the API found.
type Grounding struct {
	Score  *float64 // of the whole text; nil: not said
	Claims []GroundedClaim
	Chunks []GroundedChunk // of the facts, to which the claims' indexes point
}

// GroundedClaim is one sentence of the text. Its offsets are in the text, in UTF-8 bytes.
type GroundedClaim struct {
	Start, End int
	Unchecked  bool     // the API found that it needs no support, and looked for none
	Score      *float64 // nil: not said
	For        []int    // chunks that support it; only those that exist
	Against    []int    // chunks that contradict it, in projects that have that experiment
}

// GroundedChunk is a piece of a fact.
type GroundedChunk struct {
	Text string
	Fact int // index of the fact it is of; -1: not said
}

// ReadGrounding reads the API's response. What is missing or of the wrong type is left out; the only error is that of a
// body that is no such response.
func ReadGrounding(body []byte) (*Grounding, error) {
	doc := scan.Value(bytes.TrimSpace(body))
	claims, score := doc.Get("claims"), float(doc.Get("supportScore"))
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
			Score:   float(each.Val.Get("score")),
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

func float(v scan.Value) *float64 {
	f, ok := v.Float()
	if !ok {
		return nil
	}
	return &f
}

// indexes reads a list of indexes into n things.
func indexes(v scan.Value, n int) []int {
	var all []int
	for each := scan.Elements(v); each.Next(); {
		if i, ok := each.Val.Int(); ok && i >= 0 && i < n {
			all = append(all, i)
		}
	}
	return all
}
