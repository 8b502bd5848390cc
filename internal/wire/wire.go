package wire

import (
	"cmp"
	"fmt"

	"github.com/ibidhq/ibid/internal/scan"
)

// GenericSources is the format of an answer with a list of sources beside it, of no provider that is known.
const GenericSources = "generic-sources"

// Parser reads the documents of one response in order and emits what they contain. A Parser is for one response and one
// goroutine.
type Parser interface {
	// Parse reads one document: a whole body, or the data of one event, where event is its name, if the transport has
	// one. It does not retain doc. It reports whether it recognises the document, even if there is nothing to emit. It
	// never fails: what is missing or of the wrong type is left out, and what is odd is emitted as an Issue.
	Parse(event []byte, doc scan.Value) bool
	// Close emits what was held back until the end of the input.
	Close()
}

// Body is a parser for a format whose end mark is a finish reason, which a whole body may lack.
type Body interface {
	// Whole reports whether the only document has an answer's text.
	Whole() bool
}

// Config configures a parser.
type Config struct {
	Request scan.Value // the request that the response answers; nil if unknown
	// The documents given to the model, in place of those in Request. The Key of one without is the format's default
	// id.
	Documents []Source
	// Mapping, if not nil, says where generic-sources has its text and sources. It must pass [Mapping.Check].
	Mapping *Mapping
	Emit    func(*Op) // receives the operations
	// Stream reports whether the documents are framed as the events of a stream. It may be called from the first
	// document on. Nil means that they are not.
	Stream func() bool
	// Keep reports whether that many more bytes of the response may be kept, and counts them if so; a negative number
	// releases bytes. It reports by itself that the budget is exhausted. Whatever grows with the response asks first.
	// If it is nil, [New] allows everything.
	Keep func(bytes int) bool
}

// format is one line of the table of formats.
type format struct {
	name     string // as in the answer document
	provider string // that usually sends it
	// looks reports whether a document has the format. It is called in the order of the table.
	looks func(*shape) bool
	parse func(*Config) Parser
}

// formats is the table of all formats. The order matters only if a document could have several: the narrower format
// comes first.
var formats = [...]format{
	{"google-adk", "gemini", looksADK, newADK},
	{"gemini-live", "gemini", looksLive, newLive},
	{"snowflake-agents", "snowflake", looksCortex, newCortex},
	{"oci-chat", "oci", looksOCI, newOCI},
	{"dify-chat", "dify", looksDify, newDify},
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
	{"openai-chat", unknownProvider, looksChat, newChat},
	{"generic-sources", unknownProvider, looksGenericSources, newGenericSources},
}

// unknownProvider is the provider of an answer in a format that many servers have. A name is never guessed.
const unknownProvider = "unknown"

// Formats returns the names of all formats except generic, which needs no parser.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// New returns a parser for a format. Its first operations are Heads with the format's name and provider; further ones
// follow if later documents show a flavour.
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
	return nil, fmt.Errorf("unknown format %q", name)
}

// Detect returns the format of a response's document, or "" if it could have none or any.
func Detect(event []byte, doc scan.Value) string {
	s := shapeOf(event, doc)
	for i := range formats {
		if formats[i].looks(s) {
			return formats[i].name
		}
	}
	return ""
}

// shape is what formats are recognised by.
type shape struct {
	event   string
	kind    string // the document's type, event_type or object member
	doc     scan.Value
	members []member // the first maxMembers
	room    [16]member
	initial [256]bool // the first bytes of their names
	chat    flavour   // see chatFlavour
}

// member is one member of a document, with its name as spelled.
type member struct {
	name []byte
	val  scan.Value
}

func shapeOf(event []byte, doc scan.Value) *shape {
	s := &shape{event: string(event), doc: doc}
	s.members = s.room[:0]
	for o := scan.Members(doc); o.Next() && len(s.members) < maxMembers; {
		s.members = append(s.members, member{o.Key, o.Val})
		if len(o.Key) > 0 {
			s.initial[o.Key[0]] = true
		}
	}
	s.kind = cmp.Or(s.val("type").Str(), s.val("event_type").Str(), s.val("object").Str())
	return s
}

// maxMembers is how many members of a document are read to recognise its format.
const maxMembers = 64

// val returns the value of the last member with a name, or nil. A document has few members, and a search through them
// costs less than a map.
func (s *shape) val(name string) scan.Value {
	if !s.initial[name[0]] {
		return nil
	}
	for i := len(s.members) - 1; i >= 0; i-- {
		if m := &s.members[i]; scan.IsName(m.name, name) {
			return m.val
		}
	}
	return nil
}

// typed reports whether a list has elements with types, all of them known. It recognises documents that break off, and
// those that lack the members that name their format.
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

// has reports whether the document has all these members, whatever their values.
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

// Another reports whether a document that follows the end of a response begins another one, as in a file with several
// bodies. Format and id are those of the response that ended. A document without an id is recognised by members that
// only a body has.
func Another(format, id string, event []byte, doc scan.Value) bool {
	if format == "anthropic-messages" { // its parser counts the turns itself, since one cites what another fetched
		return false
	}
	if next := responseID(doc); next != "" {
		return next != id
	}
	s := shapeOf(event, doc)
	if format == GenericSources { // it has no streams
		return looksGenericSources(s)
	}
	if choices := scan.Elements(s.val("choices")); choices.Next() {
		return choices.Val.Get("message").IsObject() && !choices.Val.Get("delta").IsObject()
	}
	if s.has("candidates") { // a next chunk, if a server without ids ends a candidate with each
		return id != ""
	}
	return s.event == "messageStart" ||
		s.hasAny("messageStart", "chatResponse", "output", "outputs", "answer", "summary", "reply", "message", "text",
			"steps")
}

// responseID returns the id of the response that a document is a part of, or "".
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

// firstText returns the first of the named members that has a text.
func firstText(v scan.Value, names ...string) string {
	for _, name := range names {
		if s := v.Get(name).Text(); s != "" {
			return s
		}
	}
	return ""
}
