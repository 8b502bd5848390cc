package wire

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// What parsers say of the model's reasoning and of its calls of tools.

// think says that a JSON string was added to what the model thought. It reports whether v is a string with words.
func (o *out) think(p Part, v scan.Value) bool {
	if !v.IsString() || len(v.Content()) == 0 {
		return false
	}
	o.emitOp(Op{Kind: Reasoning, Part: p, Text: o.unescape(v.Content())})
	return true
}

// thinkAll says the texts of a list of blocks, as one thought.
func (o *out) thinkAll(p Part, list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		o.think(p, a.Val.Get("text"))
	}
}

// serverTool says a call of a tool that the provider runs. A hidden one is not among the answer's tool calls, which
// need not name a search whose queries they have.
func (o *out) serverTool(id, name string, hidden bool) {
	o.emitOp(Op{Kind: Tool, Name: id, More: name, Server: true, Hidden: hidden})
}

// toolInput says what the input of a call is: JSON, or a string that holds some.
func (o *out) toolInput(id string, v scan.Value) {
	switch {
	case v.Cut():
	case v.IsString():
		o.moreInput(id, v)
		o.toolReady(id)
	case v.IsNull():
		o.toolReady(id)
	default:
		o.emitOp(Op{Kind: ToolReady, Name: id, Raw: v})
	}
}

// moreInput says that a JSON string was added to the input of a call.
func (o *out) moreInput(id string, v scan.Value) {
	if v.IsString() && len(v.Content()) > 0 {
		o.emitOp(Op{Kind: ToolInput, Name: id, Text: o.unescape(v.Content())})
	}
}

// toolReady says that no more is added to the input of a call.
func (o *out) toolReady(id string) { o.emitOp(Op{Kind: ToolReady, Name: id}) }

// toolOutput says what came of a call; failed is why it failed, empty if it did not.
func (o *out) toolOutput(id string, v scan.Value, failed string) {
	if !v.Cut() && (failed != "" || !v.IsNull()) {
		o.emitOp(Op{Kind: ToolOutput, Name: id, Raw: withoutMember(v, "encrypted_content"), More: failed})
	}
}

// withoutMember returns JSON without a member that its objects may have: v itself, or the objects that it lists.
func withoutMember(v scan.Value, name string) scan.Value {
	if !bytes.Contains(v, []byte(`"`+name+`"`)) {
		return v
	}
	var b []byte
	separate := func() {
		if b[len(b)-1] != '[' && b[len(b)-1] != '{' {
			b = append(b, ',')
		}
	}
	switch {
	case v.IsArray():
		b = append(b, '[')
		for a := scan.Elements(v); a.Next(); {
			separate()
			if a.Val.IsObject() {
				b = append(b, withoutMember(a.Val, name)...)
				continue
			}
			b = append(b, a.Val...)
		}
		return append(b, ']')
	case v.IsObject():
		b = append(b, '{')
		for m := scan.Members(v); m.Next(); {
			if string(m.Key) != name {
				separate()
				b = appendMember(b, m.Key, m.Val)
			}
		}
		return append(b, '}')
	}
	return v
}

// appendMember appends a member of an object.
func appendMember(b, key []byte, v scan.Value) []byte {
	quoted, _ := Encode(string(key)) // a string always can be
	return append(append(append(b, quoted...), ':'), v...)
}

// splitCall divides the members of a call that a provider ran into what it was given and what came of it, and says why
// it failed. Ids and names are in neither.
func splitCall(call scan.Value) (input, output scan.Value, failed string) {
	var in, out []byte
	add := func(to *[]byte, key []byte, v scan.Value) {
		if v.IsNull() {
			return
		}
		if *to = append(*to, ','); len(*to) == 1 {
			(*to)[0] = '{'
		}
		*to = appendMember(*to, key, v)
	}
	var status scan.Value
	for m := scan.Members(call); m.Next(); {
		switch string(m.Key) {
		case "id", "type", "name", "call_id", "server_label", "approval_request_id", "index", "object":
		case "status":
			status = m.Val
		case "error":
			failed = errorWords(m.Val)
		case "arguments": // JSON in a string
			input = m.Val
			if m.Val.IsString() {
				input = bytes.Clone(m.Val.Bytes())
			}
		case "action":
			add(&in, m.Key, withoutMember(m.Val, "sources"))
			add(&out, []byte("sources"), m.Val.Get("sources"))
		case "output", "outputs", "result", "results", "search_results", "contents":
			add(&out, m.Key, m.Val)
		default:
			add(&in, m.Key, m.Val)
		}
	}
	switch word := status.Str(); word {
	case "failed", "incomplete":
		if failed == "" {
			failed = word
		}
	case "":
	default:
		add(&out, []byte("status"), status)
	}
	if input == nil && len(in) > 0 {
		input = append(in, '}')
	}
	if len(out) > 0 {
		output = append(out, '}')
	}
	return input, output, failed
}

// errorWords returns what an error says: a string, or an object with a message or a code.
func errorWords(v scan.Value) string {
	if v.IsNull() {
		return ""
	}
	if words := firstText(v, "message", "error_code", "code", "type"); words != "" {
		return words
	}
	if words := v.Text(); words != "" {
		return words
	}
	return "error"
}

// serverCall says a whole call that the provider ran.
func (o *out) serverCall(id, name string, call scan.Value) {
	if call.Cut() {
		return
	}
	input, output, failed := splitCall(call)
	o.serverTool(id, name, true)
	o.toolInput(id, input)
	o.toolOutput(id, output, failed)
}
