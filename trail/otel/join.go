package otel

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// clockSkew is by how much the clocks of a traced program and of the gateway may differ.
const clockSkew = 2 * time.Second

// joinCalls joins captured calls with the spans of the same calls, and returns the steps that are left. A call and a
// span are the same if the span has the id of the provider's response or of a call of a tool in it, or if they were at
// the same time and have the same words; of several such spans, as of calls of tools, which have no words, the one
// counts that the call was most within, else the nearest.
func joinCalls(nodes []*spanNode, others []trail.Step) []trail.Step {
	var calls []*spanNode
	for _, n := range nodes {
		if n.Kind == spanLLM && n.isStep && !n.Own && n.Number == 0 {
			calls = append(calls, n)
		}
	}
	if len(calls) == 0 {
		return others
	}
	joined := map[*spanNode]bool{}
	return slices.DeleteFunc(others, func(s trail.Step) bool {
		if len(s.Answers) != 1 || s.Answers[0].Answer == nil {
			return false
		}
		n := spanOf(calls, joined, &s)
		if n == nil {
			return false
		}
		joined[n] = true
		of := n.step
		of.Answers = append(of.Answers, s.Answers...)
		if of.Answer == "" || strings.TrimSpace(of.Answer) == strings.TrimSpace(s.Answer) {
			of.Answer = s.Answer // citations refer to these bytes
		}
		fillTexts(of, &s)
		of.AddSources(s.Sources...)
		of.Issues = append(of.Issues, s.Issues...)
		return true
	})
}

// spanOf returns the span of a captured call, or nil.
func spanOf(calls []*spanNode, joined map[*spanNode]bool, s *trail.Step) *spanNode {
	a := s.Answers[0].Answer
	var best *spanNode
	var overlap, distance int64
	for _, n := range calls {
		if joined[n] {
			continue
		}
		if a.ID != "" && n.Response == a.ID {
			return n
		}
		if same, known := sameCalls(n.step.Outputs, a.ToolCalls); same {
			return n
		} else if known {
			continue
		}
		if n.start == 0 || s.Started.IsZero() || n.Response != "" && a.ID != "" ||
			strings.TrimSpace(n.step.Answer) != strings.TrimSpace(a.Text) {
			continue
		}
		begin, end := s.Started.UnixNano(), s.Started.Add(s.Duration).UnixNano()
		if begin > n.end+int64(clockSkew) || end < n.start-int64(clockSkew) {
			continue
		}
		o, d := max(0, min(end, n.end)-max(begin, n.start)), max(begin-n.start, n.start-begin)
		if best == nil || o > overlap || o == overlap && d < distance {
			best, overlap, distance = n, o, d
		}
	}
	return best
}

// sameCalls reports whether the messages of a model have one of the calls of tools, and whether that is known: both
// have ids.
func sameCalls(outputs json.RawMessage, calls []ibid.ToolCall) (same, known bool) {
	if len(calls) == 0 || len(outputs) == 0 {
		return false, false
	}
	var messages []struct {
		ToolCalls []struct {
			ID string `json:"id"`
		} `json:"tool_calls"`
	}
	if json.Unmarshal(outputs, &messages) != nil {
		return false, false
	}
	for _, m := range messages {
		for _, made := range m.ToolCalls {
			for _, c := range calls {
				same = same || c.ID != "" && c.ID == made.ID
				known = known || c.ID != "" && made.ID != ""
			}
		}
	}
	return same, known
}
