package wire

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Request is what a request says that matters to who keeps its answer. All its strings are valid UTF-8.
type Request struct {
	Model    string    // empty: the body does not say
	Stream   bool      // the body asks for a stream
	Messages []Message // oldest first, instructions before all others; the last MaxMessages
	Tools    []string  // what the model may use: a function's name, any other tool's type; the first MaxTools
	// the body asks the provider to search, or to answer from documents, so that there can be citations
	Grounded bool
}

// The most that a [Request] keeps. A body of a few megabytes could name millions.
const (
	MaxMessages = 4096
	MaxTools    = 256
)

// Message is one message of a conversation, as far as it is text.
type Message struct {
	Role string // RoleSystem, RoleUser, RoleAssistant or RoleTool
	Text string // its visible text; empty only where a user's message has none, as with a picture
}

// The roles of a message. What providers call developer is a system message, model and chatbot are the assistant,
// function is a tool.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ReadRequest reads the body of a request. format is that of its answer, as [FindRoute] says it; empty: not known. The
// body's own members tell what they mean in all formats, so that format only adds what no member says: whose answers
// are always grounded, and that Cohere's are in what a tool found.
//
// Reading is tolerant: what is missing, of the wrong type or cut off is left out. The only error is that of a body that
// is no JSON object. Nothing of body is kept.
func ReadRequest(format string, body []byte) (*Request, error) {
	doc := scan.Value(bytes.TrimSpace(body))
	if !doc.IsObject() {
		return nil, errors.New("reading a request: not a JSON object")
	}
	r := &requestReader{}
	switch format {
	case "perplexity-chat", "bedrock-rag", "vertex-search":
		r.Grounded = true
	}
	var talk conversation
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "model":
			r.Model = plainText(o.Val)
			r.Grounded = r.Grounded || searches(r.Model)
		case "stream":
			r.Stream = o.Val.IsTrue()
		default:
			if !talk.take(string(o.Key), o.Val) {
				r.option(string(o.Key), o.Val)
			}
		}
	}
	r.conversation(&talk)
	if strings.HasPrefix(format, "cohere-") {
		r.Grounded = r.Grounded || slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == RoleTool })
	}
	r.Messages = r.Messages[max(0, len(r.Messages)-MaxMessages):]
	return &r.Request, nil
}

// LastUser returns the newest message of the user, and whether there is one. A tool's result, which some formats send
// in the user's name, is none.
func (r *Request) LastUser() (Message, bool) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == RoleUser {
			return m, true
		}
	}
	return Message{}, false
}

// conversation is where a body holds its messages.
type conversation struct {
	instructions, history, turns, newest, results scan.Value
}

// take keeps a member that holds messages, and reports whether it is one.
func (c *conversation) take(name string, v scan.Value) bool {
	switch name {
	case "system", "instructions", "preamble", "systemInstruction", "system_instruction":
		c.instructions = v
	case "chat_history":
		c.history = v
	case "messages", "contents", "input", "inputs":
		c.turns = v
	case "message", "query":
		c.newest = v
	case "tool_results":
		c.results = v
	default:
		return false
	}
	return true
}

type requestReader struct{ Request }

func (r *requestReader) conversation(c *conversation) {
	if system := texts(c.instructions, "\n"); system != "" {
		r.add(RoleSystem, system)
	}
	r.turns(c.history)
	r.turns(c.turns)
	if string(c.newest) != `""` { // what Cohere v1 wants beside a tool's results
		r.turns(c.newest)
	}
	for a := scan.Elements(c.results); a.Next(); {
		r.add(RoleTool, shown(a.Val.Get("outputs")))
	}
}

// turns reads a list of messages, or one in its place. Parts without a role, as the Interactions API takes them in
// place of messages, are all one message of the user.
func (r *requestReader) turns(v scan.Value) {
	var loose []string
	if !v.IsArray() {
		loose = r.turn(loose, v)
	}
	for a := scan.Elements(v); a.Next(); {
		loose = r.turn(loose, a.Val)
	}
	if len(loose) > 0 {
		r.add(RoleUser, strings.Join(loose, "\n"))
	}
}

// turn reads one message: a string is the user's. What is only the part of one is appended to loose.
func (r *requestReader) turn(loose []string, v scan.Value) []string {
	switch {
	case v.IsString():
		r.add(RoleUser, plainText(v))
		return loose
	case !v.IsObject():
		return loose
	}
	var kind, role, content, text scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			kind = o.Val
		case "role":
			role = o.Val
		case "content", "parts", "message", "output", "result":
			content = o.Val
		case "text":
			text = o.Val
		}
	}
	if role == nil && content == nil && text != nil {
		if part, ok := visible(v); ok {
			loose = append(loose, part)
		}
		return loose
	}
	if whose := roleOf(string(kind.Bytes()), string(role.Bytes())); whose != "" {
		r.message(whose, content)
	}
	return loose
}

// roleOf returns whose message an item of that type and role is; empty: it is none, but a call, a thought or a
// reference.
func roleOf(kind, role string) string {
	switch kind {
	case "user_input":
		return RoleUser
	case "model_output", "message.output":
		return RoleAssistant
	case "function_call_output", "custom_tool_call_output", "function.result", "function_result":
		return RoleTool
	case "", "message", "message.input":
	default:
		return ""
	}
	switch strings.ToLower(role) { // Cohere v1 writes USER and User
	case "system", "developer":
		return RoleSystem
	case "", "user":
		return RoleUser
	case "assistant", "model", "chatbot":
		return RoleAssistant
	case "tool", "function":
		return RoleTool
	}
	return ""
}

// message adds a message. The results of tools inside it come first, as messages of their own, because they answer the
// message before it.
func (r *requestReader) message(role string, content scan.Value) {
	between := "\n"
	if role == RoleAssistant {
		between = "" // a provider cuts its answer where citations are
	}
	answered := false
	for a := scan.Elements(content); a.Next(); {
		if result, ok := toolResult(a.Val); ok {
			answered = true
			r.add(RoleTool, result)
		}
		r.Grounded = r.Grounded || givesDocument(a.Val)
	}
	if text := texts(content, between); text != "" || !answered {
		r.add(role, text)
	}
}

// add adds a message; one without text is left out, unless it is the user's.
func (r *requestReader) add(role, text string) {
	if text == "" && role != RoleUser {
		return
	}
	if len(r.Messages) >= 2*MaxMessages {
		r.Messages = append(r.Messages[:0], r.Messages[len(r.Messages)-MaxMessages:]...)
	}
	r.Messages = append(r.Messages, Message{role, text})
}
