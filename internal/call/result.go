package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// ToolResult is what a tool returned to the model.
type ToolResult struct {
	ID      string          // of the call; empty if it has none
	Tool    string          // the tool's name; empty if the request does not have the call
	Inputs  json.RawMessage // what it was called with; nil if unknown
	Content json.RawMessage // what it returned: any JSON value
}

// maxResults is how many results of tools are read from a request: the last ones.
const maxResults = 64

// ReadResults returns the results of tools in the body of a request that are new to the model: those after its last
// message or call. The results refer to body.
func ReadResults(body []byte) []ToolResult {
	doc := scan.Value(bytes.TrimSpace(body))
	if !doc.IsObject() || !mayHaveResults(body) {
		return nil
	}
	r := &resultReader{calls: map[string]ToolResult{}}
	r.read(doc.Get("messages", "contents", "input", "inputs"))
	for a := scan.Elements(doc.Get("tool_results")); a.Next(); { // Cohere v1
		r.add(
			plainText(a.Val.Path("call", "id")), plainText(a.Val.Path("call", "name")), a.Val.Get("outputs"),
		)
	}
	return r.results
}

// mayHaveResults reports whether a body has a word that all results of tools have near them: most requests have none.
func mayHaveResults(body []byte) bool {
	for _, word := range []string{`"tool`, `_output"`, `unction_re`, `unctionRe`, `unction.re`, `"function"`} {
		if bytes.Contains(body, []byte(word)) {
			return true
		}
	}
	return false
}

// ReadMessages returns the results of tools in a list of messages, as in the requests of any provider, in order.
func ReadMessages(list []byte) []ToolResult {
	r := &resultReader{calls: map[string]ToolResult{}, all: true}
	r.read(scan.Value(bytes.TrimSpace(list)))
	return r.results
}

type resultReader struct {
	calls   map[string]ToolResult // by id
	results []ToolResult
	all     bool // results of earlier turns count, too
}

func (r *resultReader) read(messages scan.Value) {
	for a := scan.Elements(messages); a.Next(); {
		if a.Val.IsObject() {
			r.message(a.Val)
		}
	}
}

// message reads a message, or an item that is a call or a result.
func (r *resultReader) message(v scan.Value) {
	var kind, role, content, parts, calls, id, name, output, result, arguments scan.Value
	v.Read(scan.Fields{
		{"type", &kind},
		{"role", &role},
		{"content", &content},
		{"parts", &parts},
		{"tool_calls", &calls},
		{"name", &name},
		{"output", &output},
		{"result", &result},
		{"arguments", &arguments},
	})
	id = v.Get("tool_call_id", "call_id")
	switch kind.Str() {
	case "function_call", "custom_tool_call", "function.call": // an item
		if arguments == nil {
			arguments = v.Get("input")
		}
		r.turn()
		r.call(id, name, arguments)
		return
	case "function_call_output", "custom_tool_call_output", "function.result", "function_result":
		if output == nil {
			output = result
		}
		r.add(plainText(id), plainText(name), output)
		return
	}
	if wrapped := v.Get("kwargs", "data"); role == nil && content == nil && wrapped.IsObject() { // LangChain's
		r.langChain(v, wrapped)
		return
	}
	if pydanticKind(v) == "response" {
		r.turn()
	}
	author := roleOf("", string(role.Bytes()))
	if role == nil {
		author = langChainRole(kind.Str())
	}
	switch author {
	case RoleAssistant:
		r.turn()
		for a := scan.Elements(calls); a.Next(); {
			of := a.Val.Get("function")
			if of == nil {
				of = a.Val
			}
			r.call(a.Val.Get("id"), of.Get("name"), of.Get("arguments", "parameters", "args"))
		}
	case RoleTool:
		switch artifact := v.Get("artifact"); {
		case v.Get("status").Str() == "error":
			return
		case !artifact.IsNull(): // the documents themselves, beside what the model was told of them
			r.add(plainText(id), plainText(name), v)
			return
		case hasResults(content):
		case content != nil:
			r.add(plainText(id), plainText(name), content)
			return
		}
	}
	if parts == nil {
		parts = content
	}
	for a := scan.Elements(parts); a.Next(); {
		r.part(a.Val)
	}
}

// hasResults reports whether the parts of a message are results that each name their call.
func hasResults(content scan.Value) bool {
	e := scan.Elements(content)
	if !e.Next() {
		return false
	}
	switch e.Val.Get("type").Str() {
	case "tool-result", "tool_call_response", "tool_result":
		return true
	}
	return e.Val.Get("toolResult", "functionResponse", "function_response") != nil
}

// langChain reads a message that LangChain has serialized: {"type": "tool", "data": …}, or by the name of its class.
func (r *resultReader) langChain(v, inside scan.Value) {
	role := v.Get("type").Str()
	for e := scan.Elements(v.Get("id")); e.Next(); {
		role = e.Val.Str()
	}
	if role = langChainRole(role); role == "" {
		return
	}
	message := []byte(`{"role":"` + role + `"`)
	for o := scan.Members(inside); o.Next(); {
		switch string(o.Key) {
		case "content", "artifact", "tool_calls", "tool_call_id", "name", "status":
			message = append(append(append(message, `,"`...), o.Key...), `":`...)
			message = append(message, o.Val...)
		}
	}
	r.message(append(message, '}'))
}

// langChainRole returns the role of a message of LangChain by its type or class; "" for any other.
func langChainRole(kind string) string {
	switch strings.ToLower(strings.TrimSuffix(kind, "Chunk")) {
	case "ai", "aimessage":
		return RoleAssistant
	case "tool", "toolmessage", "function", "functionmessage":
		return RoleTool
	case "human", "humanmessage":
		return RoleUser
	}
	return ""
}

// turn begins a turn of the model: it knew the results before.
func (r *resultReader) turn() {
	if !r.all {
		r.results = nil
	}
}

// part reads a part of a message that is a call or a result: Anthropic's, Bedrock's, Google's or the AI SDK's.
func (r *resultReader) part(v scan.Value) {
	switch v.Get("type", "part_kind").Str() {
	case "tool-return": // pydantic-ai's
		r.add(plainText(v.Get("tool_call_id")), plainText(v.Get("tool_name")), v.Get("content"))
		return
	case "tool_use":
		r.call(v.Get("id"), v.Get("name"), v.Get("input"))
		return
	case "tool_result":
		if !v.Get("is_error").IsTrue() {
			r.add(plainText(v.Get("tool_use_id")), "", v.Get("content"))
		}
		return
	case "tool_call":
		r.call(v.Get("id"), v.Get("name"), v.Get("arguments", "args"))
		return
	case "tool_call_response":
		r.add(plainText(v.Get("id")), plainText(v.Get("name")), v.Get("response", "result"))
		return
	case "tool-call":
		r.call(v.Get("toolCallId", "tool_call_id"), v.Get("toolName", "tool_name"), v.Get("input", "args"))
		return
	case "tool-result":
		r.add(plainText(v.Get("toolCallId")), plainText(v.Get("toolName")), v.Get("output", "result"))
		return
	}
	// The AI SDK's messages of its interface.
	if kind := v.Get("type").Str(); strings.HasPrefix(kind, "tool-") || kind == "dynamic-tool" {
		id, name := v.Get("toolCallId"), cmp.Or(v.Get("toolName").Str(), strings.TrimPrefix(kind, "tool-"))
		r.call(id, v.Get("toolName"), v.Get("input"))
		r.add(plainText(id), name, v.Get("output"))
		return
	}
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "toolUse":
			r.call(o.Val.Get("toolUseId"), o.Val.Get("name"), o.Val.Get("input"))
		case "toolResult":
			if o.Val.Get("status").Str() != "error" {
				r.add(plainText(o.Val.Get("toolUseId")), "", o.Val.Get("content"))
			}
		case "functionCall", "function_call":
			r.call(o.Val.Get("id"), o.Val.Get("name"), o.Val.Get("args"))
		case "functionResponse", "function_response":
			r.add(plainText(o.Val.Get("id")), plainText(o.Val.Get("name")), o.Val.Get("response"))
		}
	}
}

func (r *resultReader) call(id, name, arguments scan.Value) {
	if key := plainText(id); key != "" && len(r.calls) < maxMessages {
		r.calls[key] = ToolResult{ID: key, Tool: plainText(name), Inputs: inputs(arguments)}
	}
}

// inputs returns arguments as JSON, which most formats write as a string.
func inputs(v scan.Value) json.RawMessage {
	if text := []byte(v.Str()); v.IsString() && json.Valid(text) {
		return text
	}
	if json.Valid(v) {
		return json.RawMessage(v)
	}
	return nil
}

// add adds a result; those of the same call replace each other.
func (r *resultReader) add(id, name string, content scan.Value) {
	if content.IsNull() || content.Cut() || !json.Valid(content) {
		return
	}
	result := r.calls[id]
	if result.ID = id; name != "" {
		result.Tool = name
	}
	result.Content = json.RawMessage(content)
	if r.results = append(r.results, result); len(r.results) > maxResults {
		r.results = r.results[len(r.results)-maxResults:]
	}
}

// pydanticKind returns the kind of a message of pydantic-ai, "request" or "response"; "" for any other message.
func pydanticKind(v scan.Value) string {
	kind := v.Get("kind").Str()
	if (kind == "request" || kind == "response") && v.Get("parts").IsArray() {
		return kind
	}
	return ""
}

// readPydantic reads a message of pydantic-ai.
func (r *requestReader) readPydantic(v scan.Value) {
	for e := scan.Elements(v.Get("parts")); e.Next(); {
		role := map[string]string{
			"user-prompt": RoleUser, "text": RoleAssistant, "system-prompt": RoleSystem, "tool-return": RoleTool,
		}[e.Val.Get("part_kind").Str()]
		if role == RoleTool {
			r.addMessage(role, anyText(e.Val.Get("content")))
		} else if role != "" {
			r.addMessage(role, joinText(e.Val.Get("content"), "\n"))
		}
	}
}
