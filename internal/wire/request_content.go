package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
)

// plainText returns a string's content as valid UTF-8, or "" where v is no string.
func plainText(v scan.Value) string { return validText(v.Str()) }

func validText(s string) string {
	if utf8.ValidString(s) { // much faster than what follows
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// shown is plainText, for what may be any JSON.
func shown(v scan.Value) string {
	if v.IsString() {
		return plainText(v)
	}
	return validText(compact(v))
}

// texts joins the visible text of a message's content: a string, one part or a list of parts, or an object that holds
// one of these.
func texts(content scan.Value, between string) string {
	if content.IsObject() {
		for _, name := range []string{"parts", "content"} {
			if inner := content.Get(name); inner != nil {
				content = inner
				break
			}
		}
	}
	if !content.IsArray() {
		text, _ := visible(content)
		return text
	}
	var first string
	var all strings.Builder
	for a := scan.Elements(content); a.Next(); {
		text, ok := visible(a.Val)
		switch {
		case !ok || text == "":
		case first == "":
			first = text // most often the only one
		default:
			if all.Len() == 0 {
				all.WriteString(first)
			}
			all.WriteString(between)
			all.WriteString(text)
		}
	}
	if all.Len() > 0 {
		return all.String()
	}
	return first
}

// visible returns the text of one part of a message, and whether the part is text that its reader sees.
func visible(part scan.Value) (string, bool) {
	if part.IsString() {
		return plainText(part), true
	}
	var text scan.Value
	for o := scan.Members(part); o.Next(); {
		switch string(o.Key) {
		case "text":
			text = o.Val
		case "type":
			switch string(o.Val.Bytes()) {
			case "text", "input_text", "output_text":
			default:
				return "", false
			}
		case "thought":
			if o.Val.IsTrue() {
				return "", false
			}
		}
	}
	return plainText(text), text.IsString()
}

// toolResult returns what a tool answered, where a part of a message is that: Anthropic's, Bedrock's, Google's or
// Cohere's.
func toolResult(part scan.Value) (string, bool) {
	for o := scan.Members(part); o.Next(); {
		switch string(o.Key) {
		case "type":
			if string(o.Val.Bytes()) == "tool_result" {
				return texts(part.Get("content"), "\n"), true
			}
		case "toolResult":
			return texts(o.Val.Get("content"), "\n"), true
		case "functionResponse", "function_response":
			return shown(o.Val.Get("response")), true
		case "document":
			if data := o.Val.Get("data"); data != nil {
				return shown(data), true
			}
		}
	}
	return "", false
}

// givesDocument reports whether a part of a message is something to cite, or holds it as what a tool found: Anthropic's
// and Bedrock's documents and search results with citations switched on.
func givesDocument(part scan.Value) bool {
	for o := scan.Members(part); o.Next(); {
		switch string(o.Key) {
		case "type":
			switch string(o.Val.Bytes()) {
			case "document", "search_result":
				return citable(part)
			case "tool_result":
				return anyCitable(part.Get("content"))
			}
			return false
		case "document", "searchResult":
			return citable(o.Val)
		case "toolResult":
			return anyCitable(o.Val.Get("content"))
		}
	}
	return false
}

func citable(document scan.Value) bool { return document.Path("citations", "enabled").IsTrue() }

// anyCitable looks at the parts of a tool's result, which hold no further results.
func anyCitable(content scan.Value) bool {
	for a := scan.Elements(content); a.Next(); {
		if citable(a.Val) || citable(a.Val.Get("document")) || citable(a.Val.Get("searchResult")) {
			return true
		}
	}
	return false
}

// option reads a member of a body that is neither its model nor a message.
func (r *requestReader) option(name string, v scan.Value) {
	switch name {
	case "toolConfig":
		r.option("tools", v.Get("tools"))
	case "tools":
		if v.IsObject() { // Google takes one in place of a list of one
			r.tool(v)
		}
		for a := scan.Elements(v); a.Next(); {
			r.tool(a.Val)
		}
	case "connectors", "plugins":
		for a := scan.Elements(v); a.Next(); {
			r.offer(plainText(a.Val.Get("id")))
			r.Grounded = r.Grounded || name == "connectors" || string(a.Val.Get("id").Bytes()) == "web"
		}
	case "documents", "data_sources", "dataSources":
		a := scan.Elements(v)
		r.Grounded = r.Grounded || a.Next()
	case "web_search_options":
		r.Grounded = r.Grounded || v.IsObject()
	case "search_parameters":
		r.Grounded = r.Grounded || v.IsObject() && string(v.Get("mode").Bytes()) != "off"
	}
}

// tool reads one tool. Those that a provider runs itself have a type, or are named by their only member; a caller's
// have a name.
func (r *requestReader) tool(v scan.Value) {
	kind, name := plainText(v.Get("type")), plainText(v.Get("name"))
	switch kind {
	case "function", "custom", "":
		if name == "" {
			name = plainText(v.Path("function", "name"))
		}
		if name != "" {
			r.offer(name)
			return
		}
	default:
		r.offer(kind)
		r.Grounded = r.Grounded || grounds(kind)
		return
	}
	for o := scan.Members(v); o.Next(); {
		r.member(string(o.Key), o.Val)
	}
}

// member reads a tool that is named by its member.
func (r *requestReader) member(name string, v scan.Value) {
	switch name {
	case "type", "function":
	case "functionDeclarations", "function_declarations":
		for a := scan.Elements(v); a.Next(); {
			r.offer(plainText(a.Val.Get("name")))
		}
	case "toolSpec":
		r.offer(plainText(v.Get("name")))
	case "systemTool":
		r.offer(plainText(v.Get("name")))
		r.Grounded = r.Grounded || grounds(v.Get("name").Str())
	default:
		r.offer(validText(name))
		r.Grounded = r.Grounded || grounds(name)
	}
}

func (r *requestReader) offer(tool string) {
	if tool != "" && len(r.Tools) < MaxTools {
		r.Tools = append(r.Tools, tool)
	}
}

// grounds reports whether a tool that a provider runs itself finds sources: web_search in all its versions,
// file_search, googleSearchRetrieval, urlContext, google_maps, web_fetch, document_library, nova_grounding. Anthropic's
// tool_search_tool finds tools.
func grounds(tool string) bool {
	if strings.HasPrefix(tool, "tool_search") {
		return false
	}
	tool = strings.ToLower(tool)
	for _, word := range []string{"search", "retriev", "url", "maps", "fetch", "document_library", "grounding"} {
		if strings.Contains(tool, word) {
			return true
		}
	}
	return false
}

// searches reports whether a model searches without being asked: OpenAI's search models, Perplexity's, and any of
// OpenRouter's with :online.
func searches(model string) bool {
	return strings.HasSuffix(model, ":online") || strings.Contains(model, "-search-preview") ||
		strings.Contains(model, "-search-api") || strings.Contains(model, "sonar")
}
