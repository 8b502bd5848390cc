package passage

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// blockKind is how a block of content, a message or a part of one is read.
type blockKind int

const (
	blockText    blockKind = iota + 1 // its text, in which documents may be JSON
	blockResult                       // around the result of a call
	blockMessage                      // the agent's own words, or a call: no result
	blockMedia                        // it has no words
	blockError                        // why the call failed
)

// blocks maps the type of a block to its kind: those of MCP, of the providers, of the AI SDK, of LangChain and of
// OpenTelemetry's messages. Types that documents have, such as search_result, are left out.
var blocks = map[string]blockKind{
	"text": blockText, "input_text": blockText, "output_text": blockText,
	"tool_result": blockResult, "tool-result": blockResult, "tool_call_response": blockResult,
	"function_call_output": blockResult, "custom_tool_call_output": blockResult, "mcp_tool_result": blockResult,
	"tool_call_output": blockResult, "tool_response": blockResult, "web_search_tool_result": blockResult,
	"web_fetch_tool_result": blockResult, "tool": blockResult, "toolmessage": blockResult, "function": blockResult,
	"json": blockResult, "content": blockResult,
	"human": blockMessage, "ai": blockMessage, "system": blockMessage, "humanmessage": blockMessage,
	"aimessage": blockMessage, "systemmessage": blockMessage, "tool_use": blockMessage, "tool_call": blockMessage,
	"tool-call": blockMessage, "function_call": blockMessage, "reasoning": blockMessage, "thinking": blockMessage,
	"image": blockMedia, "input_image": blockMedia, "image_url": blockMedia, "audio": blockMedia, "video": blockMedia,
	"error-text": blockError, "error-json": blockError, "execution-denied": blockError,
}

var roles = map[string]blockKind{
	"user": blockMessage, "assistant": blockMessage, "system": blockMessage, "developer": blockMessage,
	"model": blockMessage, "human": blockMessage, "ai": blockMessage,
	"tool": blockResult, "function": blockResult, "toolresult": blockResult,
}

// block reads a block of content, a message or the envelope of a result. It reports whether v is one, and whether it
// holds documents or text.
func (r *reader) block(v scan.Value, depth int) (found, is bool) {
	var kind, role, failed, failedToo, content, structured, artifact, kwargs, lc, callID, useID, parts scan.Value
	v.Read(scan.Fields{
		{"type", &kind},
		{"role", &role},
		{"isError", &failed},
		{"is_error", &failedToo},
		{"content", &content},
		{"structuredContent", &structured},
		{"artifact", &artifact},
		{"kwargs", &kwargs},
		{"lc", &lc},
		{"tool_call_id", &callID},
		{"tool_use_id", &useID},
		{"parts", &parts},
	})
	if content == nil {
		content = v.Get("blocks") // LlamaIndex'
	}
	if kind == nil {
		kind = v.Get("block_type")
	}
	k := blocks[strings.ToLower(kind.Str())]
	if role.IsString() {
		if of := roles[strings.ToLower(role.Str())]; of != 0 && (content != nil || parts != nil) {
			k = of
		}
	}
	// What LangChain serializes by the names of its classes.
	if kwargs.IsObject() && (lc != nil || v.Get("id").IsArray()) {
		switch names := string(v.Get("id")); {
		case strings.Contains(names, "AIMessage"), strings.Contains(names, "HumanMessage"),
			strings.Contains(names, "SystemMessage"):
			r.noProse = true
			return false, true
		}
		return r.object(kwargs, depth+1), true
	}
	if failed.IsTrue() || failedToo.IsTrue() {
		k = blockError
	}
	if k == 0 && (callID.IsString() || useID.IsString()) && content != nil {
		k = blockResult
	}
	envelope := structured != nil || content.IsArray() && (failed != nil || failedToo != nil || onlyBlocks(content))
	switch {
	case k == blockText:
		words := v.Get("text", "content", "value")
		if words.IsObject() {
			words = words.Get("value", "text")
		}
		if d := read(v); d.URL != "" || d.Title != "" || d.Filename != "" { // a document that has the type text
			return false, false
		}
		return r.value(words, depth+1, loose), true
	case k == blockError:
		r.failed, r.noProse = true, true
		return false, true
	case k == blockResult && content == nil && v.Get("data").IsObject(): // LangChain's {type, data}
		return r.object(v.Get("data"), depth+1), true
	case k == blockMessage:
		r.noProse = true
		return false, true
	case k == blockMedia:
		r.leaveOut(kind.Str())
		r.noProse = true
		return false, true
	case k == 0 && v.Get("json") != nil && kind == nil && onlyMember(v):
		return r.value(v.Get("json"), depth+1, loose), true
	case k == blockResult && v.Get("content", "output", "result", "response", "value", "parts") != nil,
		k == 0 && envelope && len(read(v).Title) == 0:
		return r.envelope(v, structured, artifact, depth), true
	}
	return false, false
}

// onlyMember reports whether an object has exactly one member.
func onlyMember(v scan.Value) bool {
	n := 0
	for o := scan.Members(v); o.Next() && n < 2; n++ {
	}
	return n == 1
}

// onlyBlocks reports whether all elements of a list are blocks of content.
func onlyBlocks(list scan.Value) bool {
	n := 0
	for e := scan.Elements(list); e.Next(); n++ {
		switch kind := e.Val.Get("type", "block_type").Str(); {
		case blocks[kind] != 0, kind == "resource", kind == "resource_link", kind == "search_result":
		default:
			return false
		}
	}
	return n > 0
}

// envelope reads the result of a call. Structured content and artifacts are the documents; the content is another form
// of them then.
func (r *reader) envelope(v, structured, artifact scan.Value, depth int) bool {
	passages := len(r.passages)
	for _, part := range []scan.Value{structured, artifact} {
		if !part.IsNull() {
			r.value(part, depth+1, loose)
		}
	}
	had := len(r.passages) > passages
	texts := len(r.texts)
	cites := v.Get("citations")
	if cites.IsArray() {
		r.list(cites, depth+1, loose)
	}
	if had {
		for i := passages; i < len(r.passages); i++ {
			if r.passages[i].Text != "" { // the content has the same in other words
				cites = nil
				break
			}
		}
	}
	content := v.Get("content", "output", "result", "response", "value", "parts", "blocks")
	r.value(content, depth+1, loose)
	if had && cites == nil {
		r.texts = r.texts[:texts]
	}
	return len(r.passages) > passages || len(r.texts) > texts
}
