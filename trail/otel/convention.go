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
	{"genkit:metadata:subtype", "genkit:input", "genkit:output"},
	{"genkit:type", "genkit:input", "genkit:output"}, // of what is no action
	{"lmnr.span.type", "lmnr.span.input", "lmnr.span.output"},
	{"confident.span.type", "confident.span.input", "confident.span.output"},
	{"haystack.component.type", "haystack.component.input", "haystack.component.output"},
	{"spring.ai.kind", "spring.ai.tool.call.arguments", "spring.ai.tool.call.result"},
}

// haystackKinds are the kinds of Haystack's components by words in the names of their classes, in order.
var haystackKinds = []struct {
	word string
	kind spanKind
}{
	{"Retriever", spanRetriever},
	{"WebSearch", spanRetriever},
	{"Ranker", spanReranker},
	{"Generator", spanLLM},
	{"ToolInvoker", spanTool},
	{"Agent", spanAgent},
	{"Embedder", notKept},
}

// mastraKinds are the kinds of Mastra's spans. The parts of a model's call are none of their own.
var mastraKinds = map[string]any{
	"agent_run":        string(spanAgent),
	"workflow_run":     string(spanChain),
	"model_generation": string(spanLLM), "llm_generation": string(spanLLM),
	"tool_call": string(spanTool), "mcp_tool_call": string(spanTool),
}

// otherNames are names of GenAI's attributes before or beside the conventions: those of Sentry, pydantic-ai and
// Google's ADK, whose spans of tools have the model's attributes without contents.
var otherNames = []struct {
	of     string
	others []string
}{
	{"gen_ai.tool.call.arguments", []string{"gen_ai.tool.input", "tool_arguments", "gcp.vertex.agent.tool_call_args"}},
	{"gen_ai.tool.call.result", []string{"gen_ai.tool.output", "tool_response", "gcp.vertex.agent.tool_response"}},
	{"gen_ai.input.messages", []string{
		"gen_ai.request.messages", "gcp.vertex.agent.llm_request", "pydantic_ai.all_messages", "all_messages_events",
	}},
	{"gen_ai.output.messages", []string{"gen_ai.response.text", "gcp.vertex.agent.llm_response", "final_result"}},
}

// translate adds OpenInference's attributes to a span of another convention, unless it has them itself.
func (s *span) translate() {
	a := s.attrs
	if a[attrKind] != nil {
		return
	}
	for _, name := range otherNames {
		for _, other := range name.others {
			if v := a[other]; a[name.of] == nil && v != nil && v != "{}" {
				a[name.of] = v
			}
		}
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
		switch c.kind {
		case "genkit:metadata:subtype":
			a[attrTool] = a["genkit:name"]
		case "haystack.component.type":
			a[attrTool] = a["haystack.component.name"]
			kind = haystackKind(kind)
		case "spring.ai.kind":
			s.translateSpring(kind)
			return
		}
		a[attrKind] = kind
		for to, from := range map[string]string{attrInput: c.input, attrOutput: c.output} {
			if a[to] == nil && a[from] != nil {
				a[to] = unquoted(a[from])
			}
		}
		return
	}
	if kind := a.text("mastra.span.type"); kind != "" && a["mastra."+kind+".output"] != nil {
		a[attrKind] = mastraKinds[kind]
		a[attrInput], a[attrOutput] = a["mastra."+kind+".input"], a["mastra."+kind+".output"]
		return
	}
	if a["haystack.pipeline.input_data"] != nil || a["haystack.pipeline.output_data"] != nil {
		a[attrKind] = string(spanChain)
		a[attrInput], a[attrOutput] = a["haystack.pipeline.input_data"], a["haystack.pipeline.output_data"]
		return
	}
	if of := members(a.structured("braintrust.span_attributes")); of != nil {
		a[attrKind] = cmp.Or(of.text("type"), string(spanChain))
		a[attrInput], a[attrOutput] = a["braintrust.input_json"], a["braintrust.output_json"]
	}
}

func haystackKind(class string) string {
	for _, of := range haystackKinds {
		if strings.Contains(class, of.word) {
			return string(of.kind)
		}
	}
	return string(spanChain)
}

// translateSpring translates a span of Spring AI. Those of model calls have OpenTelemetry's attributes.
func (s *span) translateSpring(kind string) {
	a := s.attrs
	switch kind {
	case "tool_call":
		a[attrKind], a[attrTool] = string(spanTool), a["spring.ai.tool.definition.name"]
		a[attrInput], a[attrOutput] = a["spring.ai.tool.call.arguments"], a["spring.ai.tool.call.result"]
	case "vector_store":
		if a[attrKind] = string(spanRetriever); a.text("db.operation.name") != "query" {
			a[attrKind] = string(notKept)
		}
		a[attrInput], a[attrOutput] = a["db.vector.query.content"], a["db.vector.query.response.documents"]
	default: // chat_client, advisor
		a[attrKind], a[attrInput], a[attrOutput] = string(spanChain), a["gen_ai.prompt"], a["gen_ai.completion"]
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
		if a["gen_ai.request.model"] == nil {
			a["gen_ai.request.model"] = a["ai.model.id"]
		}
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

// isRequest reports whether a model's span has only made the request to the model, which is its output, as
// LlamaIndex' _prepare_chat_with_tools.
func (s *span) isRequest() bool {
	made := members(s.attrs.structured(attrOutput))
	_, asks := made["messages"].([]any)
	return asks && made["tools"] != nil && s.messagesOut() == nil
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
