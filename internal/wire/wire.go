package wire

import (
	"cmp"
	"fmt"

	"github.com/ibidhq/ibid/internal/scan"
)

// Parser reads the documents of one response in order and says what they hold. A Parser is for one response and one
// goroutine.
type Parser interface {
	// Parse reads one document: a whole body, or the data of one event (event is its name, where the transport has
	// one). It keeps nothing of doc. It reports whether it knows what the document is; one that it need not act on
	// counts as known. It never fails: what is missing or of the wrong type is left out, what is odd is said as an
	// Issue.
	Parse(event []byte, doc scan.Value) bool
	// Close says what was held back until the end of the input.
	Close()
}

// Config is what a parser is told before the first document.
type Config struct {
	Provider string     // empty: the format's usual one, or the one that the documents tell
	Request  scan.Value // the request that the response answers; nil: not known
	// documents given to the model; they take the place of those in Request. An empty Key: the format's default id
	Documents []Source
	Emit      func(*Op) // takes the operations
	// Stream reports whether the documents are the events of a stream, by their framing. It may be asked from the first
	// document on. Nil: they are not.
	Stream func() bool
	// Keep reports whether so many more bytes may be kept of the response, and counts them if so; less than 0: they are
	// let go. It says itself that the budget is used up. Whatever grows with what a response says asks before. Nil, for
	// [New]: anything may.
	Keep func(bytes int) bool
}

// format is one line of the table of formats.
type format struct {
	name     string // as in the answer document
	provider string // who usually sends it
	// looks reports whether a document is of the format. It is asked in the order of the table.
	looks func(*shape) bool
	parse func(*Config) Parser
}

// formats is the table of all formats. The order matters only where one document could be of several: the narrower
// format stands first.
var formats = [...]format{
	{"gemini-generate", "gemini", looksGenerate, newGenerate},
	{"gemini-interactions", "gemini", looksInteractions, newInteractions},
	{"openai-responses", "openai", looksResponses, newResponses},
	{"xai-responses", "xai", looksXAIResponses, newResponses},
	{"anthropic-messages", "anthropic", looksAnthropic, newAnthropic},
	{"cohere-v2", "cohere", looksCohere2, newCohere2},
	{"cohere-v1", "cohere", looksCohere1, newCohere1},
	{"bedrock-converse", "bedrock", looksConverse, newConverse},
	{"bedrock-rag", "bedrock", looksBedrockRAG, newBedrockRAG},
	{"vertex-search", "vertex", looksVertexSearch, newVertexSearch},
	{"mistral-conversations", "mistral", looksConversations, newConversations},
	{"azure-chat", "azure", looksFlavour(azureChat), newChat},
	{"perplexity-chat", "perplexity", looksFlavour(perplexityChat), newChat},
	{"openrouter-chat", "openrouter", looksFlavour(openRouterChat), newChat},
	{"xai-chat", "xai", looksFlavour(xaiChat), newChat},
	{"mistral-chat", "mistral", looksFlavour(mistralChat), newChat},
	{"openai-chat", "openai", looksChat, newChat},
}

// Formats returns the names of all formats, without generic, which needs no parser.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// New returns a parser for a format. The parser says the format's name and provider as its first Head operations; a
// flavour that only later documents tell is said by further ones.
func New(name string, c *Config) (Parser, error) {
	if c.Keep == nil {
		c.Keep = func(int) bool { return true }
	}
	for i := range formats {
		f := &formats[i]
		if f.name != name {
			continue
		}
		op := Op{Kind: Head, Name: HeadFormat, More: f.name}
		c.Emit(&op)
		op = Op{Kind: Head, Name: HeadProvider, More: f.provider}
		c.Emit(&op)
		return f.parse(c), nil
	}
	return nil, fmt.Errorf("format %q: not known", name)
}

// Detect returns the format of a response's document, or "" where it could be of none or of any.
func Detect(event []byte, doc scan.Value) string {
	s := shapeOf(event, doc)
	for i := range formats {
		if formats[i].looks(s) {
			return formats[i].name
		}
	}
	return ""
}

// shape is what the recognition of a format looks at.
type shape struct {
	event   string
	kind    string // the document's type, event_type or object member
	doc     scan.Value
	members []member // the first maxMembers
	room    [16]member
	chat    flavour // see chatFlavour
}

// member is one member of a document, its name as it is spelled.
type member struct {
	name []byte
	val  scan.Value
}

func shapeOf(event []byte, doc scan.Value) *shape {
	s := &shape{event: string(event), doc: doc}
	s.members = s.room[:0]
	for o := scan.Members(doc); o.Next() && len(s.members) < maxMembers; {
		s.members = append(s.members, member{o.Key, o.Val})
	}
	s.kind = cmp.Or(s.val("type").Str(), s.val("event_type").Str(), s.val("object").Str())
	return s
}

// maxMembers is how many members of a document are looked at to recognise its format.
const maxMembers = 64

// val returns a member's value, the last one's of that name; nil: there is none. A document has few members, and a
// search through them costs less than a map.
func (s *shape) val(name string) scan.Value {
	for i := len(s.members) - 1; i >= 0; i-- {
		if m := &s.members[i]; scan.IsName(m.name, name) {
			return m.val
		}
	}
	return nil
}

// typed reports whether a list's elements are of known types, as far as they say their type. Documents that break off
// are recognised by that, and those that were stripped of the members that name their format.
func typed(list scan.Value, known func(kind string) bool) bool {
	some := false
	for a := scan.Elements(list); a.Next(); {
		kind := a.Val.Get("type").Str()
		if kind != "" && !known(kind) {
			return false
		}
		some = some || kind != ""
	}
	return some
}

// has reports whether the document has all these members, whatever their value.
func (s *shape) has(names ...string) bool {
	for _, name := range names {
		if s.val(name) == nil {
			return false
		}
	}
	return true
}

// hasAny reports whether the document has one of these members.
func (s *shape) hasAny(names ...string) bool {
	for _, name := range names {
		if s.val(name) != nil {
			return true
		}
	}
	return false
}

// Providers returns the names of the providers whose answers are recognised.
func Providers() []string {
	var names []string
	for i := range formats {
		names = append(names, formats[i].provider)
	}
	for f := plainChat + 1; f <= azureChat; f++ {
		names = append(names, flavours[f].provider)
	}
	return names
}

// Another reports whether a document that comes after the end of a response begins another one, as bodies in one file
// do. Format and id are those of the response that has ended; who has none is told by what only a body holds.
func Another(format, id string, event []byte, doc scan.Value) bool {
	if format == "anthropic-messages" { // its parser counts the turns itself: what one fetched, the next cites
		return false
	}
	if next := responseID(doc); next != "" {
		return next != id
	}
	s := shapeOf(event, doc)
	if choices := scan.Elements(s.val("choices")); choices.Next() {
		return choices.Val.Get("message").IsObject() && !choices.Val.Get("delta").IsObject()
	}
	if s.has("candidates") { // the next chunk, where a server ends a candidate with each and has no ids
		return id != ""
	}
	return s.event == "messageStart" ||
		s.hasAny("messageStart", "output", "outputs", "answer", "summary", "reply", "message", "text", "steps")
}

// responseID returns the id of the response that a document is, begins or is a piece of, or "".
func responseID(doc scan.Value) string {
	var id, second string // Cohere has both
	for o := scan.Members(doc); o.Next() && id == ""; {
		switch string(o.Key) {
		case "conversation_id", "generation_id", "generationId", "id":
			id = o.Val.Text()
		case "responseId", "response_id":
			second = o.Val.Text()
		case "response", "interaction", "answer":
			if o.Val.IsObject() {
				second = firstText(o.Val, "generation_id", "id", "responseId", "name")
			}
		}
	}
	return cmp.Or(id, second)
}

// firstText returns the first of the named members that says something.
func firstText(v scan.Value, names ...string) string {
	for _, name := range names {
		if s := v.Get(name).Text(); s != "" {
			return s
		}
	}
	return ""
}
