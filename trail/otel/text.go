package otel

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/trail"
)

// digest returns the digest that a trail has in place of data that must not be kept.
func digest(b []byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(b))
}

// message is one message to a model or from it.
type message struct {
	Role      string `json:"role,omitempty"`
	Content   string `json:"content,omitempty"`
	ToolCalls []any  `json:"tool_calls,omitempty"`
	Results   string `json:"results,omitempty"` // what tools returned, in a message that also has the model's words
	reasoning string
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
	textPlain     = "text/plain"
)

// readTexts fills in the question and the answer of a step, and its input and output.
func readTexts(s *span, kind spanKind, step *trail.Step) {
	asked, answered := s.input(), s.output()
	if kind == spanTool {
		answered = s.toolOutput()
	}
	isGroup := kind == spanAgent || kind == spanChain
	var in, out []message
	if kind == spanLLM || isGroup {
		in, out = s.messagesIn(), s.messagesOut()
	}
	if kind == spanLLM && in == nil {
		in = messagesOf(asked, 0)
	}
	if kind == spanLLM && out == nil {
		out = messagesOf(answered, 0)
	}
	for i := range out {
		step.Reasoning = cutText(cmp.Or(step.Reasoning, out[i].reasoning), step)
	}
	step.Question, step.Answer = s.question(asked, in, isGroup), s.answer(answered, out, kind)
	switch {
	case kind == spanLLM:
		step.Inputs, step.Outputs = keptMessages(asked, in, step.Question), keptMessages(answered, out, step.Answer)
	case !isGroup || step.Question == "" && step.Answer == "": // what groups pass on is in the spans below them
		step.Inputs, step.Outputs = keptValue(asked, step.Question), keptValue(answered, step.Answer)
	}
	step.Question, step.Answer = cutText(step.Question, step), cutText(step.Answer, step)
}

// question returns the question of a span. IsGroup means that it contains other spans.
func (s *span) question(asked any, in []message, isGroup bool) string {
	question := s.attrs.text("gen_ai.retrieval.query.text", "gen_ai.memory.query.text", "reranker.query")
	question = cmp.Or(question, lastContent(in, roleUser))
	if question == "" {
		question = textOf(asked, roleUser, 0)
	}
	if question == "" && isGroup {
		question = onlyText(asked, roleUser)
	}
	return question
}

// isPrinted reports whether a text is what Python prints of an object: StopEvent(result=AgentOutput(….
func isPrinted(s string) bool { return printed.MatchString(s[:min(len(s), 100)]) }

var printed = regexp.MustCompile(`^(?:[A-Z]\w*\(\w+=|<[\w.]+ object at 0x)`)

// onlyText returns the text in the only member of an object: a pipeline has one variable or one result.
func onlyText(v any, role string) string {
	if only := members(v); len(only) == 1 {
		for _, v := range only {
			return textOf(v, role, 1)
		}
	}
	return ""
}

// answer returns the answer of a span.
func (s *span) answer(answered any, out []message, kind spanKind) string {
	answer := lastContent(out, roleAssistant)
	// The output that a model's library logs may be the provider's own JSON, which is not interpreted. Beside messages
	// it is another form of them, and what Python prints of an object is no answer.
	said, plain := answered.(string)
	if kind == spanLLM && len(out) > 0 || isPrinted(said) {
		return answer
	}
	if answer != "" || kind == spanLLM && !plain || kind == spanRetriever || kind == spanReranker {
		return answer
	}
	if answer = textOf(answered, roleAssistant, 0); answer == "" && (kind == spanAgent || kind == spanChain) {
		answer = onlyText(answered, roleAssistant)
	}
	return answer
}

// keptMessages returns the messages of a model or, if there are none, the value as JSON; nil if text contains all of
// it.
func keptMessages(v any, messages []message, text string) json.RawMessage {
	switch {
	case len(messages) == 0:
		return keptValue(v, text)
	case len(messages) == 1 && messages[0].Content == text && len(messages[0].ToolCalls) == 0:
		return nil
	}
	return encodeValue(messages)
}

// keptValue returns an input or an output as JSON; nil if text contains all of it.
func keptValue(v any, text string) json.RawMessage {
	if s, plain := v.(string); v == nil || plain && s == text {
		return nil
	}
	return encodeValue(v)
}

// readOwn reads the texts of a span that [Write] wrote.
func readOwn(s *span, step *trail.Step) {
	a := s.attrs
	step.Question, step.Answer = a.text("ibid.question"), a.text("ibid.answer")
	step.Reasoning = a.text("ibid.reasoning")
	step.InputsDigest, step.OutputsDigest = a.text("ibid.inputs_digest"), a.text("ibid.outputs_digest")
	for name, into := range map[string]*json.RawMessage{"ibid.inputs": &step.Inputs, "ibid.outputs": &step.Outputs} {
		if text, ok := a[name].(string); ok && json.Valid([]byte(text)) && !tooDeep(text) {
			*into = json.RawMessage(text)
		}
	}
	for _, text := range []*string{&step.Question, &step.Answer, &step.Reasoning} {
		*text = cutText(*text, step)
	}
	step.InputsDigest, step.OutputsDigest = cutName(step.InputsDigest), cutName(step.OutputsDigest)
	if c, ok := number(a["ibid.confidence"]); ok {
		step.Confidence = &c
	}
	context, _ := a["ibid.context"].([]any)
	for _, text := range context {
		step.Context = append(step.Context, scalar(text))
	}
	answers, _ := a["ibid.answers"].([]any)
	for _, id := range answers {
		step.Answers = append(step.Answers, trail.StepAnswer{ID: cutName(scalar(id))})
	}
}

// input returns what a span was called with, in any form.
func (s *span) input() any {
	v := s.payload("input", "gen_ai.tool.call.arguments")
	for i := 0; v == nil && i < len(s.events); i++ {
		if s.events[i].name == "gen_ai.tool.message" {
			v = s.events[i].attrs.structured("content")
		}
	}
	return v
}

// output returns the result of a span, in any form.
func (s *span) output() any {
	return s.payload("output", "gen_ai.tool.call.result")
}

// toolOutput returns what a tool returned, which some instrumentations record as an event.
func (s *span) toolOutput() any {
	v := s.output()
	for i := 0; v == nil && i < len(s.events); i++ {
		switch event := s.events[i]; event.name {
		case "gen_ai.choice":
			v = event.attrs.structured("message", "content")
		case operationDetails: // a message of the tool
			v = event.attrs.structured("gen_ai.output.messages")
		}
	}
	return v
}

// payload returns the input or the output of a span.
func (s *span) payload(name string, genAI ...string) any {
	if v := s.attrs[name+".value"]; v != nil && s.attrs[name+".mime_type"] == textPlain {
		return v
	}
	return s.attrs.structured(slices.Concat(
		[]string{"langfuse.observation." + name, name + ".value"}, genAI,
		[]string{"traceloop.entity." + name, "langfuse.trace." + name},
	)...)
}

// messagesIn returns the messages to a model, if a convention for messages has them.
func (s *span) messagesIn() []message {
	list := s.messages("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", false)
	for _, p := range s.attrs.list("llm.prompts") {
		list = append(list, message{Role: roleUser, Content: p.text("prompt.text")})
	}
	if system := textOf(s.detail("gen_ai.system_instructions"), roleUser, 0); system != "" {
		list = append([]message{{Role: "system", Content: system}}, list...)
	}
	return list
}

// messagesOut returns the messages of a model, without further candidates.
func (s *span) messagesOut() []message {
	if list := s.messages("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion", true); list != nil {
		return list
	}
	if list := s.attrs.list("llm.choices"); list != nil {
		return []message{{Role: roleAssistant, Content: list[0].text("completion.text")}}
	}
	return nil
}

// messages returns the messages of the first convention that has any: OpenInference's attributes, GenAI's,
// OpenLLMetry's, or GenAI's former events.
func (s *span) messages(openInference, genAI, openLLMetry string, out bool) []message {
	if list := flatMessages(s.attrs.list(openInference)); list != nil {
		return list
	}
	list := messagesOf(s.detail(genAI), 0)
	if list == nil {
		list = flatMessages(s.attrs.list(openLLMetry))
	}
	if list == nil {
		list = s.eventMessages(out)
	}
	if list == nil {
		role := roleUser
		if out {
			role = roleAssistant
		}
		list = messagesOrText(s.detail(genAI), role)
	}
	if out && list != nil {
		return list[:1]
	}
	return list
}

// operationDetails is the event in which older and leaner instrumentations put the contents of a span.
const operationDetails = "gen_ai.client.inference.operation.details"

// detail returns a structured attribute of the span, or of its event [operationDetails].
func (s *span) detail(key string) any {
	if v := s.attrs.structured(key); v != nil {
		return v
	}
	for _, event := range s.events {
		if event.name == operationDetails {
			if v := event.attrs.structured(key); v != nil {
				return v
			}
		}
	}
	return nil
}

// eventMessages reads the messages that are events of the span, as formerly in the GenAI conventions.
func (s *span) eventMessages(out bool) []message {
	var list []message
	for _, event := range s.events {
		switch name := event.name; {
		case out && name == "gen_ai.content.completion":
			list = append(list, messagesOrText(event.attrs.structured("gen_ai.completion"), roleAssistant)...)
		case out && name == "gen_ai.choice":
			list = append(list, messagesOrText(event.attrs.structured("message", "content"), roleAssistant)...)
		case out:
		case name == "gen_ai.content.prompt":
			list = append(list, messagesOrText(event.attrs.structured("gen_ai.prompt"), roleUser)...)
		case strings.HasPrefix(name, "gen_ai.") && strings.HasSuffix(name, ".message"):
			role := strings.TrimSuffix(strings.TrimPrefix(name, "gen_ai."), ".message")
			list = append(list, messagesOrText(event.attrs.structured("content"), role)...)
		}
	}
	return list
}

func messagesOrText(v any, role string) []message {
	if list := messagesOf(v, 0); list != nil {
		return list
	}
	if text := textOf(v, role, 0); text != "" {
		return []message{{Role: role, Content: text}}
	}
	return nil
}

// flatMessages reads messages that are flattened into attributes, OpenInference's or OpenLLMetry's.
func flatMessages(list []attributes) []message {
	var messages []message
	for _, a := range list {
		m := message{Role: a.text("message.role", "role"), Content: a.text("message.content", "content")}
		var parts []string
		for _, part := range a.list("message.contents") {
			text := part.text("message_content.text")
			if part.text("message_content.type") == "reasoning" {
				m.reasoning = joined(m.reasoning, text)
			} else if text != "" {
				parts = append(parts, text)
			}
		}
		m.Content = cmp.Or(m.Content, strings.Join(parts, "\n"))
		for _, prefix := range []string{"message.tool_calls", "tool_calls"} {
			for _, call := range a.list(prefix) {
				m.ToolCalls = append(m.ToolCalls, map[string]any{
					"id":        call.text("tool_call.id", "id"),
					"name":      call.text("tool_call.function.name", "name"),
					"arguments": structuredValue(call.text("tool_call.function.arguments", "arguments")),
				})
			}
		}
		messages = append(messages, m)
	}
	return messages
}

// messagesOf reads messages from a value, or returns nil if it is something else.
func messagesOf(v any, depth int) []message {
	if depth > maxUnwrap {
		return nil
	}
	switch v := v.(type) {
	case []any:
		if len(v) == 1 {
			inner, ok := v[0].([]any)
			if _, isMessage := messageOf(v[0]); ok && !isMessage {
				return messagesOf(inner, depth+1)
			}
		}
		var list []message
		for _, item := range v {
			m, ok := messageOf(item)
			if !ok {
				return nil
			}
			list = append(list, m)
		}
		return list
	case map[string]any:
		if m, ok := messageOf(v); ok {
			return []message{m}
		}
		for _, name := range []string{
			"messages", "inputs", "outputs", "kwargs", "generations", "message", "contents", "content", "replies",
		} {
			if list := messagesOf(v[name], depth+1); list != nil {
				return list
			}
		}
	}
	return nil
}

// maxUnwrap is how many wrappers are removed from a value to find its text.
const maxUnwrap = 8

// messageOf reads one message: {role, content}, {role, parts}, or LangChain's {type, content} and {kwargs: …}.
func messageOf(v any) (message, bool) {
	if pair, ok := v.([]any); ok && len(pair) == 2 { // LangChain's ("user", "…")
		role, isRole := pair[0].(string)
		text, isText := pair[1].(string)
		if lang, ok := langRole(role); ok {
			role = lang
		}
		return message{Role: role, Content: text}, isRole && isText && slices.Contains(roleNames, role)
	}
	object := members(v)
	if inner := members(object["data"]); inner["content"] != nil && object["type"] != nil { // LangChain's {type, data}
		object = inner
	}
	if inner := members(object["message"]); inner != nil && object["role"] == nil { // a generation
		return messageOf(inner)
	}
	if inner := members(object["kwargs"]); inner != nil && object["id"] != nil {
		object = inner
	}
	role, ok := object["role"].(string)
	if !ok {
		role, ok = langRole(object["type"])
	}
	if !ok {
		return message{}, false
	}
	if role == "model" { // Google's
		role = roleAssistant
	}
	m := message{Role: role}
	content, ok := object["content"]
	for _, name := range []string{"parts", "blocks"} {
		if !ok {
			content, ok = object[name]
		}
	}
	calls, called := object["tool_calls"].([]any)
	if !ok && !called {
		return message{}, false
	}
	m.ToolCalls = calls
	if m.addContent(content) {
		m.Role, m.Content, m.Results = "tool", m.Results, "" // some formats send it as the user
	} else if m.Role != roleAssistant {
		m.Content, m.Results = joined(m.Content, m.Results), ""
	}
	return m, true
}

var roleNames = []string{roleUser, roleAssistant, "system", "developer", "tool"}

// langRole returns the role of LangChain's message types.
func langRole(v any) (string, bool) {
	switch v {
	case "human", "HumanMessage":
		return roleUser, true
	case "ai", "AIMessage", "AIMessageChunk":
		return roleAssistant, true
	case "system", "tool":
		return v.(string), true
	}
	return "", false
}

// addContent adds a text, or the parts of one, to the content, and those that are results of tools to the results. It
// reports whether they are nothing but these.
func (m *message) addContent(v any) (results bool) {
	list, ok := v.([]any)
	if !ok {
		m.Content = scalar(v)
		return false
	}
	results = len(list) > 0
	for _, item := range list {
		part := members(item)
		text, isResult := scalar(item), false
		switch kind := part["type"]; kind {
		case "reasoning":
			m.reasoning = joined(m.reasoning, part.text("content", "text"))
		case "tool_call_response":
			text, isResult = textOrJSON(part.structured("response", "result")), true
		case "tool-result":
			text, isResult = textOrJSON(part.structured("output", "result")), true
		default:
			if call := callOf(part); call != nil {
				m.ToolCalls = append(m.ToolCalls, call)
			}
			for _, name := range []string{"toolResult", "functionResponse", "function_response", "toolResponse"} {
				if result := members(part[name]); result != nil {
					text, isResult = textOrJSON(result.structured("content", "response", "output")), true
				}
			}
			text = cmp.Or(text, part.text("text"))
			if text == "" && kind == "text" {
				text = part.text("content")
			}
		}
		if results = results && isResult; isResult {
			m.Results = joined(m.Results, text)
		} else {
			m.Content = joined(m.Content, text)
		}
	}
	return results
}

// callOf returns the call that a part of a message is, or nil.
func callOf(part attributes) any {
	switch kind := part["type"]; {
	case kind == "tool-call", kind == nil && part["toolName"] != nil:
		return toolCall(part["toolCallId"], part["toolName"], part["input"])
	case kind == "tool_call":
		return toolCall(part["id"], part["name"], part["arguments"])
	}
	for _, name := range []string{"toolUse", "functionCall", "function_call", "toolRequest"} {
		if call := members(part[name]); call != nil {
			arguments := call["input"]
			if arguments == nil {
				arguments = call["args"]
			}
			return toolCall(call.text("toolUseId", "id", "ref"), call["name"], arguments)
		}
	}
	return nil
}

func toolCall(id, name, arguments any) any {
	return map[string]any{"id": id, "name": name, "arguments": structuredValue(arguments)}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

func textOrJSON(v any) string {
	switch v.(type) {
	case nil:
		return ""
	case string:
		return scalar(v)
	}
	return string(encodeValue(v))
}

// lastContent returns the content of the last message with a role. If there is none, and the model's is wanted, it is
// that of the last message that is neither the user's nor the system's.
func lastContent(list []message, role string) string {
	for _, m := range slices.Backward(list) {
		if m.Role == role && m.Content != "" {
			return m.Content
		}
	}
	if role == roleUser {
		return ""
	}
	for _, m := range slices.Backward(list) {
		if m.Role != roleUser && m.Role != "system" && m.Content != "" {
			return m.Content
		}
	}
	return ""
}

// textOf returns the question or the answer in a value, without the wrappers that libraries put around it.
func textOf(v any, role string, depth int) string {
	if depth > maxUnwrap {
		return ""
	}
	if list := messagesOf(v, depth); list != nil {
		return lastContent(list, role)
	}
	switch v := v.(type) {
	case string:
		return v
	case []any:
		texts := make([]string, 0, 1)
		for _, item := range v {
			if text := textOf(item, role, depth+1); text != "" {
				texts = append(texts, text)
			}
		}
		if len(texts) == 1 || len(texts) == len(v) && isParts(v) {
			return strings.Join(texts, "\n")
		}
	case map[string]any:
		return memberText(v, role, depth)
	}
	return ""
}

// isParts reports whether a list consists of the parts of one text.
func isParts(list []any) bool {
	for _, item := range list {
		if members(item)["type"] != "text" {
			return false
		}
	}
	return true
}

func memberText(v attributes, role string, depth int) string {
	for _, name := range []string{"inputs", "outputs", "kwargs", "args"} {
		if inner, ok := v[name]; ok {
			if text := textOf(inner, role, depth+1); text != "" {
				return text
			}
		}
	}
	names := []string{
		"question", "query", "input", "prompt", "task", "user_msg", "user_query", "user_input", "text", "message",
		"content",
	}
	if role == roleAssistant {
		names = []string{"answer", "output", "result", "response", "replies", "text", "message", "content"}
	}
	for _, name := range names {
		if text := textOf(v[name], role, depth+1); text != "" {
			return text
		}
	}
	return ""
}
