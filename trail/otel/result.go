package otel

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/trail"
)

// maxSpanResults is how many bytes of the results of tools are kept of the messages to one model.
const maxSpanResults = 256 << 10

// toolResult is what a tool returned, as the messages to a model show it.
type toolResult struct {
	ID      string          `json:"id,omitempty"` // of the call
	Tool    string          `json:"tool,omitempty"`
	Inputs  json.RawMessage `json:"inputs,omitempty"`
	Content json.RawMessage `json:"content"`
}

// readSpanResults returns what tools returned to a model since its last answer. Programs that trace only their client,
// and not their tools, show it nowhere else.
func readSpanResults(s *span, asked any, step *trail.Step) (list []toolResult) {
	messages := s.rawMessages(asked)
	if len(messages) == 0 {
		return nil
	}
	left := maxSpanResults
	for _, r := range call.ReadResults(encodeValue(map[string]any{"messages": messages})) {
		if left -= len(r.Content) + len(r.Inputs); left < 0 {
			addIssue(step, issueUnread, "the results of tools in the messages are too large to be kept")
			return list
		}
		list = append(list, toolResult{
			ID: cutName(r.ID), Tool: cutName(r.Tool), Inputs: r.Inputs, Content: r.Content,
		})
	}
	return list
}

// rawMessages returns the messages to a model as they were recorded, those of flattened conventions as objects.
func (s *span) rawMessages(asked any) []any {
	for _, prefix := range []string{"llm.input_messages", "gen_ai.prompt"} {
		var list []any
		for _, a := range s.attrs.list(prefix) {
			m := map[string]any{
				"role":         a.text("message.role", "role"),
				"content":      a.text("message.content", "content"),
				"tool_call_id": a.text("message.tool_call_id", "tool_call_id"),
			}
			if name := a.text("message.name", "name"); name != "" {
				m["name"] = name
			}
			var calls []any
			for _, calling := range []string{"message.tool_calls", "tool_calls"} {
				for _, c := range a.list(calling) {
					made := map[string]any{
						"id": c.text("tool_call.id", "id"), "name": c.text("tool_call.function.name", "name"),
					}
					if arguments := c.text("tool_call.function.arguments", "arguments"); arguments != "" {
						made["arguments"] = arguments
					}
					calls = append(calls, made)
				}
			}
			if calls != nil {
				m["tool_calls"] = calls
			}
			list = append(list, m)
		}
		if list != nil {
			return list
		}
	}
	if list := messageList(s.detail("gen_ai.input.messages"), 0); list != nil {
		return list
	}
	if list := s.eventList(); list != nil {
		return list
	}
	return messageList(asked, 0)
}

// messageList returns the list of messages in a value.
func messageList(v any, depth int) []any {
	if depth > maxUnwrap {
		return nil
	}
	switch v := v.(type) {
	case []any:
		if len(v) == 1 {
			if inner, ok := v[0].([]any); ok {
				return messageList(inner, depth+1)
			}
		}
		return v
	case map[string]any:
		for _, name := range []string{"messages", "contents", "inputs", "input", "kwargs"} {
			if list := messageList(v[name], depth+1); list != nil {
				return list
			}
		}
	}
	return nil
}

// eventList returns the messages to a model that are events of its span.
func (s *span) eventList() (list []any) {
	for _, event := range s.events {
		name, isMessage := strings.CutSuffix(event.name, ".message")
		role, isGenAI := strings.CutPrefix(name, "gen_ai.")
		if !isMessage || !isGenAI {
			continue
		}
		m := map[string]any{"role": role, "content": event.attrs.structured("content")}
		for to, from := range map[string]string{"tool_call_id": "id", "tool_calls": "tool_calls", "name": "name"} {
			if v := event.attrs.structured(from); v != nil {
				m[to] = v
			}
		}
		list = append(list, m)
	}
	return list
}

// addResults returns the spans with those of the calls of tools that only the messages to the models show.
func addResults(nodes []*spanNode, others []trail.Step) []*spanNode {
	var known knownResults
	for _, n := range nodes {
		known.addSpan(n)
	}
	for i := range others {
		known.ids[others[i].ID] = true
	}
	found := nodes
	silent := silentTools(nodes)
	for _, n := range nodes {
		for i := range n.Results {
			r := &n.Results[i]
			if silent.fill(n, r) {
				continue
			}
			if n.Kind != spanLLM || n.Own || !known.isNew(r) {
				continue
			}
			t := &spanNode{start: n.start, end: n.start, step: &trail.Step{
				ID: r.ID, Tool: r.Tool, Inputs: r.Inputs, Started: n.step.Started,
			}}
			if t.step.ID == "" {
				t.step.ID = n.step.ID + "/" + strconv.Itoa(i+1)
			}
			t.spanFacts = spanFacts{Trace: n.Trace, Parent: n.Parent, Kind: spanTool, Start: n.Start, End: n.Start}
			if t.step.AddResult(r.Content); len(t.step.Sources) == 0 && len(t.step.Issues) == 0 || known.has(t.step) {
				continue
			}
			limitSources(t.step)
			found = append(found, t)
		}
	}
	if len(found) > len(nodes) {
		slices.SortFunc(found, (*spanNode).compare)
		for i, n := range found {
			n.at = i
		}
	}
	return found
}

// silent are the spans of tools, by time, that have not recorded what the tool returned.
type silent []*spanNode

func silentTools(nodes []*spanNode) (list silent) {
	for _, n := range nodes {
		s := n.step
		if n.Kind == spanTool && !n.Own && s.Error == "" &&
			s.Outputs == nil && s.OutputsDigest == "" && s.Answer == "" && len(s.Sources) == 0 && !s.NoSources {
			list = append(list, n)
		}
	}
	return list
}

// fill gives the span of a call what the messages to the next model say that it returned: the span with the id of the
// call or, if it has none, the first of the tool.
func (list silent) fill(model *spanNode, r *toolResult) bool {
	for _, n := range list {
		s := n.step
		same := n.Call == r.ID
		if n.Call == "" || r.ID == "" {
			same = r.Tool != "" && s.Tool == r.Tool
		}
		if !same || s.Outputs != nil || n.start > model.end || n.Trace != model.Trace {
			continue
		}
		if s.Outputs = r.Content; s.Inputs == nil && s.InputsDigest == "" {
			s.Inputs = r.Inputs
		}
		return true
	}
	return false
}

// knownResults is what the spans of a run tell of the calls of tools.
type knownResults struct {
	tools map[string]bool
	any   bool            // a span is a call of a tool
	ids   map[string]bool // of calls, and of results without one
	texts map[string]bool // of documents that spans retrieved, and of answers
}

func (k *knownResults) addSpan(n *spanNode) {
	if k.tools == nil {
		k.tools, k.ids, k.texts = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	if n.Kind == spanTool || n.Kind == spanRetriever || n.Kind == spanAgent {
		k.tools[n.step.Tool], k.tools[n.Agent], k.ids[n.Call] = true, true, true
	}
	k.any = k.any || n.Kind == spanTool || n.Kind == spanRetriever
	for i := range n.step.Sources {
		k.texts[useText(n.step.Sources[i].Content)] = true
	}
	k.texts[useText(n.step.Answer)] = true
}

// isNew reports whether no span shows the call, and remembers it.
func (k *knownResults) isNew(r *toolResult) bool {
	if r.Tool == "" && k.any || r.Tool != "" && k.tools[r.Tool] || isHandoff(r.Tool) {
		return false
	}
	id := r.ID
	if id == "" {
		id = r.Tool + string(r.Content)
	}
	if k.ids[id] {
		return false
	}
	k.ids[id] = true
	return true
}

// has reports whether the spans have all that a result has: a retriever within the tool, or an agent that is the tool.
func (k *knownResults) has(s *trail.Step) bool {
	for i := range s.Sources {
		if text := useText(s.Sources[i].Content); text == "" || !k.texts[text] {
			return false
		}
	}
	return len(s.Sources) > 0
}
