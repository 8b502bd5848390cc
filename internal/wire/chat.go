package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksChat recognises Chat Completions that show no flavour.
func looksChat(s *shape) bool { return chatFlavour(s) != 0 }

// chat reads Chat Completions, bodies and streams, in all flavours. Which one it is shows in what the documents hold;
// nothing has to be told beforehand.
type chat struct {
	out
	config   *Config
	chunks   chunkTemplate
	thoughts chunkTemplate // chunks of reasoning, which is not shown
	flavour  flavour
	model    string
	headed   bool
	looking  bool              // for the flavour alone, which neither text nor annotations show
	zero     choice            // of candidate 0, which most answers have alone
	choices  map[int]*choice   // of the other candidates
	lists    map[string][]byte // top-level members as they were read last; many repeat them in every chunk
	numbers  []Ref             // what [n] in the text stands for
	style    MarkerStyle
	tools    map[string]*Source // results of the request's tools, by the id that Mistral's references use

	// What the document being read holds: how many strings of text and of reasoning, and the last of each.
	texts, thinks         int
	noted                 bool // it holds citations: no other is like it
	lastText, lastThought scan.Value
	lastPart              Part
}

// choice is what was said of one candidate so far.
type choice struct {
	known  bool // was mentioned
	begun  bool // has text
	marked bool // was told what [n] stands for
	refuse bool
}

func newChat(c *Config) Parser {
	return &chat{out: out{emit: c.Emit}, config: c}
}

// Close has nothing left to say.
func (p *chat) Close() {}

// chatDoc holds the members of a chunk or a body that matter.
type chatDoc struct {
	id, model, created, object, choices, failure scan.Value
	citations, results                           scan.Value // Perplexity, xAI
}

// Parse reads a body or a chunk.
func (p *chat) Parse(_ []byte, doc scan.Value) bool {
	if content, ok := p.chunks.match(doc); ok {
		p.raw(p.chunks.part, content)
		return true
	}
	if _, ok := p.thoughts.match(doc); ok {
		return true
	}
	var d chatDoc
	p.texts, p.thinks, p.noted = 0, 0, false
	if !p.read(doc, &d) {
		return false
	}
	p.heads(&d)
	p.evidence(&d)
	object := string(d.object.Bytes())
	whole := false
	for a := scan.Elements(d.choices); a.Next(); {
		whole = p.choice(a.Val, object) || whole
	}
	if !d.choices.IsNull() && !d.choices.IsArray() {
		p.issue(IssueWrongType, "choices", d.choices)
	}
	if !d.failure.IsNull() {
		if code, message, ok := ReadError(doc); ok {
			p.fail(code, message)
		}
		return true
	}
	if whole || object == "chat.completion.done" {
		p.end()
	}
	switch {
	case whole, p.noted, p.looking:
	case p.texts == 1 && p.thinks == 0:
		p.chunks.learn(doc, p.lastText, p.lastPart)
	case p.texts == 0 && p.thinks == 1:
		p.thoughts.learn(doc, p.lastThought, Part{})
	}
	return true
}

// read finds the members that matter and what shows a flavour. It is false for what is no chunk.
func (p *chat) read(doc scan.Value, d *chatDoc) bool {
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "id":
			d.id = o.Val
		case "model":
			d.model = o.Val
		case "created":
			d.created = o.Val
		case "object":
			d.object = o.Val
		case "choices":
			d.choices = o.Val
		case "error":
			d.failure = o.Val
		case "citations":
			d.citations = o.Val
		case "search_results":
			d.results = o.Val
		case "usage", "service_tier", "system_fingerprint", "obfuscation":
		default:
			p.extra(string(o.Key), o.Val)
		}
	}
	object := string(d.object.Bytes())
	return d.choices != nil || strings.HasPrefix(object, "chat.") || strings.HasPrefix(object, "extensions.chat.")
}

func (p *chat) heads(d *chatDoc) {
	if strings.HasPrefix(string(d.object.Content()), "extensions.") {
		p.become(azureChat)
	}
	if p.headed || len(d.id.Content()) == 0 && len(d.model.Content()) == 0 {
		return
	}
	p.headed = true
	p.model = d.model.Str()
	p.head(HeadID, d.id)
	p.head(HeadModel, d.model)
	if string(d.created) != "0" {
		p.head(HeadCreated, d.created)
	}
	if strings.HasPrefix(d.id.Str(), "gen-") {
		p.become(openRouterChat)
	}
	p.become(flavourOf(p.model))
}

// choice reads one element of choices. It reports whether it is a whole answer and not a piece of a stream.
func (p *chat) choice(v scan.Value, object string) bool {
	var place, message, delta, messages, finish, failure scan.Value
	last := false
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "index":
			place = o.Val
		case "message":
			message = o.Val
		case "delta":
			delta = o.Val
		case "messages":
			messages = o.Val
		case "finish_reason":
			finish = o.Val
		case "error":
			failure = o.Val
		case "end_turn":
			last = o.Val.IsTrue()
		case "native_finish_reason":
			p.become(openRouterChat)
		case "content_filter_results":
			p.become(azureChat)
		}
	}
	if place == nil && p.several() && v.Cut() {
		return false // it is not known whose text it is
	}
	index, _ := p.index("choice index", place)
	c := p.candidate(index)
	whole := message.IsObject() && (object == "chat.completion" || !delta.IsObject())
	switch {
	case messages.IsArray():
		last = p.messages(index, messages) || last || object == "extensions.chat.completion"
	case whole:
		p.message(index, message, c.begun)
	default:
		p.message(index, delta, false)
	}
	if failure.IsObject() {
		p.fail(firstText(failure, "code", "type"), failure.Get("message").Text())
	}
	p.finished(index, finish, c.refuse)
	if last {
		p.end()
	}
	return whole && object != "chat.completion.chunk"
}

// of returns what is known of a candidate that was mentioned before.
func (p *chat) of(index int) *choice {
	if index == 0 {
		return &p.zero
	}
	return p.choices[index]
}

// several reports whether more than one candidate was mentioned.
func (p *chat) several() bool { return len(p.choices) > 1 || len(p.choices) == 1 && p.zero.known }

// candidate returns what is known of a candidate, and tells a new one what [n] stands for.
func (p *chat) candidate(index int) *choice {
	c := p.of(index)
	if c == nil {
		c = &choice{}
		if p.choices == nil {
			p.choices = map[int]*choice{}
		}
		p.choices[index] = c
	}
	c.known = true
	if !c.marked && len(p.numbers) > 0 {
		c.marked = true
		p.say(Op{Kind: MarkersOp, Part: Part{Candidate: index}, Markers: &Markers{Style: p.style, Refs: p.numbers}})
	}
	return c
}

func (p *chat) finished(index int, v scan.Value, refused bool) {
	var reason string
	switch s := v.Str(); s {
	case "":
		return
	case "stop", "end_turn", "stop_sequence", "eos":
		reason = FinishStop
		if refused {
			reason = FinishRefusal
		}
	case "length", "model_length", "max_tokens":
		reason = FinishLength
	case "tool_calls", "function_call":
		reason = FinishTool
	case "content_filter", "sensitive":
		reason = FinishFilter
	case "error", "insufficient_system_resource", "network_error":
		reason = FinishError
	default:
		p.unknown("finish reason "+clip(s), v)
		return
	}
	p.finish(index, reason)
}

// message reads a message, or what a chunk adds to it. Again says that it is a whole message after its pieces.
func (p *chat) message(index int, m scan.Value, again bool) {
	var content, refusal, annotations scan.Value
	for o := scan.Members(m); o.Next(); {
		switch string(o.Key) {
		case "content":
			content = o.Val
		case "refusal":
			refusal = o.Val
		case "annotations":
			annotations = o.Val
		case "reasoning", "reasoning_content":
			if o.Val.IsString() {
				p.thinks++
				p.lastThought = o.Val
			}
		case "context":
			p.azureContext(index, o.Val)
		case "tool_calls":
			p.toolCalls(o.Val)
		case "function_call":
			p.toolCall("", o.Val)
		case "executed_tools":
			p.executedTools(o.Val)
		}
	}
	c := p.of(index)
	p.content(index, content, again)
	if len(refusal.Content()) > 0 {
		c.refuse = true
		p.piece(Part{Candidate: index, Content: 1, Kind: RefusalPart}, refusal, again)
	}
	p.annotations(index, annotations)
}

// piece says text, which again replaces what was said of the part.
func (p *chat) piece(part Part, v scan.Value, again bool) {
	if p.looking || len(v.Content()) == 0 {
		return
	}
	p.of(part.Candidate).begun = true
	if again {
		p.final(part, v)
		return
	}
	p.lastText, p.lastPart = v, part
	p.texts++
	p.text(part, v)
}

// content reads a message's content: a string, a list of chunks, or one chunk.
func (p *chat) content(index int, v scan.Value, again bool) {
	part := Part{Candidate: index}
	switch {
	case v.IsString():
		p.piece(part, v, again)
	case v.IsObject():
		p.chunk(part, v)
	case v.IsArray():
		if again {
			return // the pieces said it all
		}
		for a := scan.Elements(v); a.Next(); {
			p.chunk(part, a.Val)
		}
	case !v.IsNull():
		p.issue(IssueWrongType, "content", v)
	}
}

// chunk reads one content chunk. All text chunks of a message are one part, as a stream cuts them anywhere.
func (p *chat) chunk(part Part, v scan.Value) {
	if v.IsString() {
		p.piece(part, v, false)
		return
	}
	p.texts = 2 // no chunk is like another
	switch kind := v.Type(); string(kind) {
	case "text", "output_text", "":
		p.piece(part, v.Get("text"), false)
	case "reference":
		p.become(mistralChat)
		p.reference(part, v)
	case "tool_reference":
		p.become(mistralChat)
		p.toolReference(part, v)
	case "thinking":
		p.become(mistralChat)
	case "reasoning", "reasoning_content":
	case "refusal":
		p.of(part.Candidate).refuse = true
		p.piece(Part{Candidate: part.Candidate, Content: 1, Kind: RefusalPart}, v.Get("refusal"), false)
	default:
		p.unknown("content chunk "+clip(string(kind)), v)
	}
}

// annotations reads citations, which some send in one list at the end and some one by one before the text. A citation
// is named by what it says, so that it is one however often it comes.
func (p *chat) annotations(index int, list scan.Value) {
	if p.looking {
		return
	}
	if !list.IsArray() {
		if !list.IsNull() {
			p.issue(IssueWrongType, "annotations", list)
		}
		return
	}
	var urls []string // which only marks are looked up in
	marks := p.flavour == openRouterChat && isSonar(p.model)
	files := 0
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		p.noted = true
		n := readNote(a.Val)
		switch {
		case p.cites(&n, n.key(index), Part{Candidate: index}):
			if marks {
				urls = append(urls, n.url)
			}
		case n.kind == "file": // OpenRouter's reading of an attached file, to be sent back
			p.meta(numbered("file_annotation_", files), a.Val)
			files++
		default:
			p.unknown("annotation "+clip(n.kind), a.Val)
		}
	}
	if len(urls) > 0 {
		p.annotated(index, urls)
	}
}

func (p *chat) toolCalls(list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		f := a.Val.Get("function")
		if f.IsNull() {
			f = a.Val.Get("custom")
		}
		p.toolCall(a.Val.Get("id").Str(), f)
	}
}

func (p *chat) toolCall(id string, f scan.Value) {
	name := f.Get("name").Str()
	if id != "" || name != "" { // else: more of a call's arguments
		p.tool(id, name)
	}
}
