package otel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// The attributes that the other conventions are translated to: OpenInference's.
const (
	attrKind   = "openinference.span.kind"
	attrInput  = "input.value"
	attrOutput = "output.value"
	attrTool   = "tool.name"
)

// plainConventions have an attribute for the kind of a span, one for its input and one for its output.
var plainConventions = []struct{ kind, input, output string }{
	{"langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion"},
	{"mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"},
	{"agentops.span.kind", "agentops.entity.input", "agentops.entity.output"},
}

// translate adds OpenInference's attributes to a span of another convention, unless it has them itself.
func (s *span) translate() {
	a := s.attrs
	if a[attrKind] != nil {
		return
	}
	if operation := a.text("ai.operationId"); strings.HasPrefix(operation, "ai.") {
		s.translateAI(operation)
		return
	}
	for _, c := range plainConventions {
		kind := strings.Trim(a.text(c.kind), `"`)
		if kind == "" {
			continue
		}
		a[attrKind] = kind
		for to, from := range map[string]string{attrInput: c.input, attrOutput: c.output} {
			if a[to] == nil && a[from] != nil {
				a[to] = unquoted(a[from])
			}
		}
		return
	}
	if of := members(a.structured("braintrust.span_attributes")); of != nil {
		a[attrKind] = cmp.Or(of.text("type"), string(spanChain))
		a[attrInput], a[attrOutput] = a["braintrust.input_json"], a["braintrust.output_json"]
	}
}

// unquoted returns the text of a JSON string, and anything else as it is.
func unquoted(v any) any {
	var text string
	if s, ok := v.(string); ok && json.Unmarshal([]byte(s), &text) == nil {
		return text
	}
	return v
}

// translateAI translates a span of the AI SDK (Vercel): generateText and the like are agents, whose model calls are
// doGenerate and doStream.
func (s *span) translateAI(operation string) {
	a := s.attrs
	switch {
	case operation == "ai.toolCall":
		a[attrKind], a[attrTool] = string(spanTool), a["ai.toolCall.name"]
		a[attrInput], a[attrOutput] = a["ai.toolCall.args"], a["ai.toolCall.result"]
	case strings.HasPrefix(operation, "ai.embed"):
		a[attrKind] = "embedding"
	case strings.Contains(operation, ".do"):
		a[attrKind] = string(spanLLM)
		if a["gen_ai.input.messages"] == nil {
			a["gen_ai.input.messages"] = a["ai.prompt.messages"]
		}
		if a["gen_ai.output.messages"] == nil {
			parts := []any{map[string]any{"type": "text", "text": a.text("ai.response.text", "ai.response.object")}}
			if reasoning := a.text("ai.response.reasoning"); reasoning != "" {
				parts = append(parts, map[string]any{"type": "reasoning", "text": reasoning})
			}
			calls, _ := a.structured("ai.response.toolCalls").([]any)
			a["gen_ai.output.messages"] = []any{
				map[string]any{"role": roleAssistant, "content": append(parts, calls...)},
			}
		}
	default:
		a[attrKind], a["agent.name"] = string(spanAgent), a["ai.telemetry.functionId"]
		a[attrInput] = a["ai.prompt"]
		if a[attrInput] == nil {
			a[attrInput] = a["ai.prompt.messages"]
		}
		a[attrOutput] = a["ai.response.text"]
		if a[attrOutput] == nil {
			a[attrOutput] = a["ai.response.object"]
		}
	}
}

// isNode reports whether a span is a node of a LangGraph graph: a group, although its name may be that of an agent.
func (s *span) isNode() bool {
	node := members(s.attrs.structured("metadata")).text("langgraph_node")
	return node != "" && node == s.name
}

// tellingWords are in the names of attributes that hold what models, tools and retrievers were given and returned.
var tellingWords = strings.Fields(`prompt completion llm retriev tool agent chain inputs outputs documents messages
	chat rerank embedding rag model`)

// otherWords are in the names of attributes that any program's spans have.
var otherWords = strings.Fields(`http. db. net. rpc. messaging. user_agent server. client. url. thread. code. process.
	service. telemetry. faas. k8s. host. os. exception. otel. peer. network. cloud. browser. aws. gcp.`)

// unreadAttribute returns an attribute of a span of no known convention that looks as if it were part of an agent's
// run, or "".
func (s *span) unreadAttribute() string {
	var found []string
	for key := range s.attrs {
		lower := strings.ToLower(key)
		has := func(word string) bool { return strings.Contains(lower, word) }
		if slices.ContainsFunc(tellingWords, has) &&
			!slices.ContainsFunc(otherWords, func(word string) bool { return strings.HasPrefix(lower, word) }) {
			found = append(found, key)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}
