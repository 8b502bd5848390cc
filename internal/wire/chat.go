package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksChat recognises Chat Completions.
func looksChat(s *shape) bool { return chatFlavour(s) != 0 }

// chat reads Chat Completions, bodies and streams, in all flavours. The documents themselves show which one it is; it
// need not be known beforehand.
type chat struct {
	out
	chunks   template
	thoughts template // chunks of reasoning
	flavour  flavour
	model    string
	headed   bool
	failed   bool              // an error was emitted with its message
	looking  bool              // only for the flavour, which neither text nor annotations show
	zero     choice            // candidate 0, the only one of most answers
	choices  map[int]*choice   // the other candidates
	other    choice            // shared by the candidates past the limit
	lists    map[string][]byte // top-level members as last read; many providers repeat them in every chunk
	numbers  []Ref             // what [n] in the text stands for
	numberer string            // the name of the list that numbers them
	webui    []string          // the sources that Open WebUI numbers, in order
	google   *generate         // Gemini's grounding, which gateways pass on
	grounded map[string]bool   // the addresses that it has
	noted    []notedURL        // the annotations that may repeat it
	claude   *claudeCitations  // Claude's citations, which gateways pass on
	groq     map[string]bool   // the documents and tool results of the request that were emitted
	brave    braveTags
	style    MarkerStyle
	tools    map[string]*Source // results of the request's tools, by the ids in Mistral's references

	// What the current document contains: how many strings of text and of reasoning, and the last of each.
	texts, thinks         int
	annotated             bool // it has citations, so no other document is like it
	lastText, lastThought scan.Value
	lastPart, thoughtPart Part
}

// choice is the state of one candidate.
type choice struct {
	known    bool // it was mentioned
	reasoned bool // it has reasoning
	begun    bool // it has text
	marked   bool // what [n] stands for was emitted for it
	ended    bool // Azure reported the end of its turn
	refused  bool
	calls    []string // the ids of its tool calls, by index
	length   int      // bytes of its text so far
	linked   bool     // links to sources are its citations
}

func newChat(c *Config) Parser {
	return &chat{out: out{Config: c}}
}

// chatDoc has the relevant members of a chunk or a body.
type chatDoc struct {
	id, model, created, object, choices, failure, provider scan.Value
	citations, results                                     scan.Value // Perplexity, xAI
	lists                                                  []member   // other lists of sources, Gemini's grounding
	event                                                  scan.Value // Open WebUI
	bot                                                    bool       // a bot of Volcengine Ark
}

// Parse reads a body or a chunk.
func (p *chat) Parse(_ []byte, doc scan.Value) bool {
	if content, _, ok := p.chunks.match(doc); ok {
		p.visible(p.chunks.part, content)
		return true
	}
	if content, _, ok := p.thoughts.match(doc); ok {
		p.emit(Op{Kind: Reasoning, Part: p.thoughts.part, Text: p.unescape(content)})
		return true
	}
	var d chatDoc
	p.texts, p.thinks, p.annotated = 0, 0, false
	if !p.read(doc, &d) {
		return false
	}
	if !p.looking {
		p.unread(doc, chatReads)
	}
	p.heads(&d)
	p.evidence(&d)
	p.sourceLists(&d)
	object := string(d.object.Bytes())
	p.failed = p.failed || !blank(d.failure)
	whole := false
	for a := scan.Elements(d.choices); a.Next(); {
		whole = p.choice(a.Val, object) || whole
	}
	p.wantList("choices", d.choices)
	if !blank(d.failure) {
		if code, message, ok := ReadError(nil, doc); ok {
			p.fail(code, message)
			return true
		}
	}
	if whole || object == "chat.completion.done" {
		p.Close()
		p.emit(Op{Kind: End})
	}
	switch {
	case whole, p.annotated, p.looking:
	case p.texts == 1 && p.thinks == 0:
		p.chunks.learn(doc, p.lastText, p.lastPart, chunkVariation)
	case p.texts == 0 && p.thinks == 1:
		p.thoughts.learn(doc, p.lastThought, p.thoughtPart, chunkVariation)
	}
	return true
}

// chunkVariation is what else may differ between the chunks of a stream: what precedes the repeated sources or the
// member object, such as an id for each chunk or a growing usage; the text so far; and the padding at the end.
var chunkVariation = variation{
	anchors: []string{`"citations":`, `"search_results":`, `"object":`}, echo: true, padding: "obfuscation",
}

// read finds the relevant members, and what shows a flavour. It returns false for what is not a chunk.
func (p *chat) read(doc scan.Value, d *chatDoc) bool {
	for o := scan.Members(doc); o.Next(); {
		switch name := string(o.Key); name {
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
		case "provider":
			d.provider = o.Val
		case "x_groq":
			p.setFlavour(groqChat)
		case "prompt_filter_results":
			p.setFlavour(azureChat)
		case "bot_usage":
			d.bot = true
		case "event":
			d.event = o.Val
		case "images", "related_questions", "videos":
			p.meta(name, o.Val)
		default:
			if isSourceList(name) {
				d.lists = append(d.lists, member{o.Key, o.Val})
			} else if strings.HasPrefix(name, "vertex_ai_") { // what LiteLLM adds for Gemini
				p.meta(name, o.Val)
			}
		}
	}
	object := string(d.object.Bytes())
	return d.choices != nil || strings.HasPrefix(object, "chat.") || strings.HasPrefix(object, "extensions.chat.") ||
		isWebUIFrame(d.event, doc.Get("sources"))
}

func (p *chat) heads(d *chatDoc) {
	if strings.HasPrefix(string(d.object.Content()), "extensions.") {
		p.setFlavour(azureChat)
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
	p.setFlavour(flavourOf(p.model))
	switch {
	case strings.HasPrefix(d.id.Str(), "gen-"):
		p.setFlavour(openRouterChat)
	case d.bot:
		p.setFlavour(doubaoChat)
	case p.flavour == plainChat && isOpenAI(p.model) && d.provider.IsNull():
		p.provider("openai") // else it is a gateway's, which names another server
	}
}

// choice reads one element of choices. It reports whether it is a whole answer rather than a piece of a stream.
func (p *chat) choice(v scan.Value, object string) bool {
	var place, message, delta, messages, finish, failure, ends, native, filters, grounding scan.Value
	v.Read(scan.Fields{
		{"index", &place},
		{"message", &message},
		{"delta", &delta},
		{"messages", &messages},
		{"finish_reason", &finish},
		{"error", &failure},
		{"end_turn", &ends},
		{"native_finish_reason", &native},
		{"content_filter_results", &filters},
		{"groundingMetadata", &grounding},
	})
	last := ends.IsTrue()
	if native != nil {
		p.setFlavour(openRouterChat)
	}
	if filters != nil {
		p.setFlavour(azureChat)
	}
	if place == nil && (len(p.choices) > 1 || len(p.choices) == 1 && p.zero.known) && v.Cut() {
		return false // it is unknown whose text it is
	}
	index, _ := p.index("choice index", place)
	c := p.candidate(index)
	p.ground(index, grounding)
	whole := message.IsObject() && (!delta.IsObject() || object == "chat.completion" && !p.isPiece(c, delta, finish))
	switch {
	case messages.IsArray():
		last = p.messages(index, messages) || last || object == "extensions.chat.completion"
	case whole:
		p.message(index, message, c.begun)
	default:
		p.message(index, delta, false)
	}
	if !blank(failure) {
		p.failed = true
		p.failure(v)
	}
	if finish.IsString() {
		p.Close()
	}
	p.finished(index, finish, c.refused)
	if c.ended = c.ended || last; last && p.allEnded() {
		p.emit(Op{Kind: End})
	}
	if !whole && object == "chat.completion" && finish.IsString() { // there need not be a [DONE]
		p.emit(Op{Kind: End, Open: true})
	}
	return whole && object != "chat.completion.chunk"
}

// isPiece reports whether a choice with both a message and a delta, as Perplexity sends them, is an event of a stream,
// which the object does not always show. If it ends before anything came, it is the whole answer in one event.
func (p *chat) isPiece(c *choice, delta, finish scan.Value) bool {
	if p.Stream == nil || !p.Stream() {
		return false
	}
	return c.begun || !finish.IsString() || len(delta.Get("content").Content()) > 0
}

// choiceOf returns the state of a candidate that was mentioned before.
func (p *chat) choiceOf(index int) *choice {
	if index == 0 {
		return &p.zero
	}
	if c := p.choices[index]; c != nil {
		return c
	}
	return &p.other
}

// allEnded reports whether every candidate that was mentioned has ended: one candidate's end does not end the answer.
func (p *chat) allEnded() bool {
	if p.zero.known && !p.zero.ended {
		return false
	}
	for _, c := range p.choices {
		if !c.ended {
			return false
		}
	}
	return true
}

// candidate returns the state of a candidate, and emits for a new one what [n] stands for.
func (p *chat) candidate(index int) *choice {
	c := p.choiceOf(index)
	if c == &p.other {
		c = &choice{}
		if p.choices == nil {
			p.choices = map[int]*choice{}
		}
		if len(p.choices) < maxItems {
			p.choices[index] = c
		} else { // far more than an answer has alternatives
			c = &p.other
		}
	}
	c.known = true
	if !c.marked && p.numbers != nil {
		c.marked = true
		m := &Markers{Style: p.style, Refs: p.numbers, Names: p.style == bracketNumber && !p.countsOnly()}
		p.emit(Op{Kind: MarkersOp, Part: Part{Candidate: index}, Markers: m})
	}
	return c
}

// countsOnly reports whether the model cites by numbers in brackets and in no other way, which Perplexity's are taught.
func (p *chat) countsOnly() bool { return p.flavour == perplexityChat || isSonar(p.model) }

func (p *chat) finished(index int, v scan.Value, refused bool) {
	s := v.Str()
	if s == "" {
		return
	}
	reason, known := chatFinish[strings.ToLower(s)]
	switch {
	case !known:
		p.unknown("finish reason "+s, v)
		return
	case reason == finishStop && refused:
		reason = finishRefusal
	}
	for _, id := range p.choiceOf(index).calls {
		p.emit(Op{Kind: ToolReady, Part: Part{Candidate: index}, Name: id})
	}
	if reason != "" {
		p.finish(index, reason)
	}
	if reason == finishError && index == 0 && !p.failed { // Mistral sends nothing else
		p.fail(s, "the model stopped with an error")
	}
}

var chatFinish = map[string]string{
	"stop": finishStop, "end_turn": finishStop, "stop_sequence": finishStop, "eos": finishStop, "complete": finishStop,
	"length": finishLength, "model_length": finishLength, "max_tokens": finishLength,
	"tool_calls": finishTool, "function_call": finishTool,
	"content_filter": finishFilter, "sensitive": finishFilter, "safety": finishFilter, "recitation": finishFilter,
	"other": "", // no reason
	"error": finishError, "insufficient_system_resource": finishError, "network_error": finishError,
}

// message reads a message, or what a chunk adds to it. Again means that it is a whole message after its pieces.
func (p *chat) message(index int, m scan.Value, again bool) {
	var content, refusal, annotations, blocks, specific scan.Value
	for o := scan.Members(m); o.Next(); {
		switch string(o.Key) {
		case "content":
			content = o.Val
		case "refusal":
			refusal = o.Val
		case "annotations":
			annotations = o.Val
		case "content_blocks":
			blocks = o.Val
		case "provider_specific_fields":
			specific = o.Val
		case "citations", "search_results", "references", "sources", "web_search", "search_info":
			p.sourceList(string(o.Key), o.Val)
		case "groundingMetadata", "grounding_metadata", "vertex_ai_grounding_metadata":
			p.ground(index, o.Val)
		case "reasoning", "reasoning_content":
			if o.Val.IsString() {
				p.thought(index, o.Val, again)
			}
		case "context":
			p.azureContext(index, o.Val)
		case "tool_calls":
			if !again || len(p.choiceOf(index).calls) == 0 {
				p.toolCalls(index, o.Val)
			}
		case "function_call":
			p.toolCall(index, -1, "", o.Val)
		case "executed_tools":
			p.setFlavour(groqChat)
			for a := scan.Elements(o.Val); a.Next(); {
				if arguments := a.Val.Get("arguments"); arguments.IsString() { // JSON in a string
					p.query(scan.Value(arguments.Bytes()).Get("query"))
				}
				at, _ := a.Val.Get("index").Int()
				p.serverCall(numbered("executed_", at), a.Val.Get("type").Str(), a.Val)
				p.webSources(a.Val.Get("search_results").Get("results"))
				p.webSources(a.Val.Get("browser_results"))
			}
		}
	}
	c := p.choiceOf(index)
	p.claudeBefore(index, specific)
	before := c.length
	p.content(index, content, again)
	p.claudeAfter(index, before, content, specific, blocks)
	if len(refusal.Content()) > 0 {
		c.refused = true
		p.piece(Part{Candidate: index, Content: 1, Kind: RefusalPart}, refusal, again)
	}
	p.annotations(index, annotations)
}

// thought emits reasoning, once: some providers send it under two names, and again when the message is complete.
func (p *chat) thought(index int, v scan.Value, again bool) {
	c := p.choiceOf(index)
	if p.looking || again && c.reasoned || len(v.Content()) == 0 {
		return
	}
	if p.thinks++; p.thinks > 1 && bytes.Equal(p.lastThought, v) {
		return
	}
	c.reasoned = true
	p.lastThought, p.thoughtPart = v, Part{Candidate: index}
	p.think(p.thoughtPart, v)
}

// piece emits text, which replaces the part's earlier text if again is set.
func (p *chat) piece(part Part, v scan.Value, again bool) {
	if p.looking || len(v.Content()) == 0 {
		return
	}
	p.choiceOf(part.Candidate).begun = true
	if again {
		p.final(part, v)
		return
	}
	p.lastText, p.lastPart = v, part
	p.texts++
	p.visible(part, v.Content())
}

// visible emits text, and counts it. Brave's tags in it are citations.
func (p *chat) visible(part Part, content []byte) {
	if p.brave.in(content) {
		p.braveText(part, content)
		return
	}
	p.raw(part, content)
	p.choiceOf(part.Candidate).length += len(p.textOp.Text)
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
			return // the pieces had it all
		}
		for a := scan.Elements(v); a.Next(); {
			p.chunk(part, a.Val)
		}
	case !v.IsNull():
		p.issue(IssueWrongType, "content", v)
	}
}

// chunk reads one content chunk. All text chunks of a message are one part, since a stream cuts them anywhere.
func (p *chat) chunk(part Part, v scan.Value) {
	if v.IsString() {
		p.piece(part, v, false)
		return
	}
	p.texts = 2 // no chunk is like another one
	switch kind := v.Type(); string(kind) {
	case "text", "output_text", "":
		before := p.choiceOf(part.Candidate).length
		p.piece(part, v.Get("text"), false)
		p.claudeBlock(part.Candidate, before, v.Get("citations"))
	case "reference":
		p.setFlavour(mistralChat)
		p.reference(part, v)
	case "tool_reference":
		p.setFlavour(mistralChat)
		p.citeBefore(part, v, "tool_reference", false)
	case "thinking":
		p.setFlavour(mistralChat)
		p.thinkAll(part, v.Get("thinking"))
	case "reasoning", "reasoning_content":
	case "refusal":
		p.choiceOf(part.Candidate).refused = true
		p.piece(Part{Candidate: part.Candidate, Content: 1, Kind: RefusalPart}, v.Get("refusal"), false)
	default:
		p.unknown("content chunk "+string(kind), v)
	}
}

// annotations reads citations, which some send in one list at the end and some one by one before the text. A citation's
// key is made from its contents, so that it is one however often it comes.
func (p *chat) annotations(index int, list scan.Value) {
	if p.looking {
		return
	}
	p.wantList("annotations", list)
	var urls []string // what marks refer to
	marks := p.flavour == openRouterChat && isSonar(p.model)
	files := 0
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		p.annotated = true
		n := readNote(a.Val)
		key := n.key(index)
		switch {
		case n.kind == "document_citation", n.kind == "function_citation":
			p.groqCitation(index, n.kind, a.Val)
		case n.url != "" && p.grounded[n.url]:
			// a lossy copy of Gemini's grounding, which was read
		case p.cites(&n, key, Part{Candidate: index}):
			if p.remember(key, n.url); unplaced(&n) {
				p.linked(index)
			}
			if marks {
				urls = append(urls, n.url)
			}
		case n.kind == "file": // OpenRouter's reading of an attached file, to be sent back
			p.meta(numbered("file_annotation_", files), a.Val)
			files++
		default:
			p.unknown("annotation "+n.kind, a.Val)
		}
	}
	if len(urls) > 0 {
		if len(p.numbers) > 0 && p.numbers[0].Source == urls[0] { // the whole list again
			p.numbers = nil
		}
		for _, url := range urls {
			if !p.numbered(len(p.numbers)) {
				break
			}
			p.numbers = append(p.numbers, Ref{Source: url})
		}
		p.style = bracketNumber
		p.choiceOf(index).marked = false
		p.candidate(index)
	}
}

func (p *chat) toolCalls(index int, list scan.Value) {
	i := 0
	for a := scan.Elements(list); a.Next(); i++ {
		f := a.Val.Get("function")
		if f.IsNull() {
			f = a.Val.Get("custom")
		}
		at := i
		if n, ok := a.Val.Get("index").Int(); ok {
			at = n
		}
		p.toolCall(index, at, a.Val.Get("id").Str(), f)
	}
}

// toolCall emits the call at an index among those of a candidate, or more of its arguments, which come without id and
// name. Index -1 is the single call of the time before there were lists.
func (p *chat) toolCall(index, at int, id string, f scan.Value) {
	c := p.choiceOf(index)
	name := f.Get("name").Str()
	if id != "" || name != "" {
		p.emit(Op{Kind: Tool, Part: Part{Candidate: index}, Name: id, More: name})
		for at >= len(c.calls) && at < maxItems && p.Keep(2*entrySize) {
			c.calls = append(c.calls, "")
		}
		if at >= 0 && at < len(c.calls) {
			c.calls[at] = id
		}
	} else if at >= 0 && at < len(c.calls) {
		id = c.calls[at]
	}
	arguments := f.Get("arguments", "input")
	op := Op{Part: Part{Candidate: index}, Name: id}
	switch {
	case arguments.IsString() && len(arguments.Content()) > 0:
		op.Kind, op.Text = ToolInput, p.unescape(arguments.Content())
	case arguments.IsObject() && !arguments.Cut():
		op.Kind, op.Raw = ToolReady, arguments
	default:
		return
	}
	p.emit(op)
}

// flavour is one provider's kind of Chat Completions. If a document shows two, the greater counts: what a gateway or a
// host adds tells more than the name of a model that many serve.
type flavour uint8

// The flavours.
const (
	plainChat flavour = iota + 1
	mistralChat
	deepSeekChat
	zhipuChat
	qwenChat
	hunyuanChat
	ernieChat
	kimiChat
	exaChat
	braveChat
	doubaoChat
	xaiChat
	perplexityChat
	groqChat
	openRouterChat
	azureChat
)

// flavours are the format and the provider of each flavour.
var flavours = [...]struct{ format, provider string }{
	plainChat:      {"openai-chat", ""},
	mistralChat:    {"mistral-chat", "mistral"},
	deepSeekChat:   {"openai-chat", "deepseek"},
	zhipuChat:      {"openai-chat", "zhipu"},
	qwenChat:       {"openai-chat", "dashscope"},
	hunyuanChat:    {"openai-chat", "hunyuan"},
	ernieChat:      {"openai-chat", "baidu"},
	kimiChat:       {"openai-chat", "moonshot"},
	exaChat:        {"openai-chat", "exa"},
	braveChat:      {"openai-chat", "brave"},
	doubaoChat:     {"openai-chat", "doubao"},
	xaiChat:        {"xai-chat", "xai"},
	perplexityChat: {"perplexity-chat", "perplexity"},
	groqChat:       {"openai-chat", "groq"},
	openRouterChat: {"openrouter-chat", "openrouter"},
	azureChat:      {"azure-chat", "azure"},
}

// looksFlavour recognises Chat Completions of a flavour.
func looksFlavour(f flavour) func(*shape) bool {
	return func(s *shape) bool { return chatFlavour(s) == f }
}

// chatFlavour returns the flavour that a document shows, or 0 if it is not a Chat Completion.
func chatFlavour(s *shape) flavour {
	if s.chat != 0 || !isChat(s) {
		return s.chat
	}
	c := &Config{Emit: func(*Op) {}, Keep: func(int) bool { return true }}
	p := &chat{out: out{Config: c}, flavour: plainChat, looking: true}
	p.Parse(nil, s.doc)
	s.chat = p.flavour
	return s.chat
}

func isChat(s *shape) bool {
	if strings.HasPrefix(s.kind, "chat.") || strings.HasPrefix(s.kind, "extensions.chat.") {
		return true
	}
	if isWebUIFrame(s.val("event"), s.val("sources")) {
		return true
	}
	choices := s.val("choices")
	if s.kind != "" || !choices.IsArray() {
		return false
	}
	a := scan.Elements(choices)
	if !a.Next() { // the first and the last chunk of some streams
		return s.hasAny("usage", "prompt_filter_results")
	}
	first := a.Val
	return first.Get("message") != nil || first.Get("delta") != nil || first.Get("messages") != nil
}

// setFlavour sets a flavour that a document shows, and emits it.
func (p *chat) setFlavour(f flavour) {
	if f <= p.flavour {
		return
	}
	p.flavour = f
	p.brave.on = p.brave.on || f == braveChat
	if names := flavours[f]; names.provider != "" {
		p.emit(Op{Kind: Head, Name: HeadFormat, More: names.format})
		p.provider(names.provider)
	}
}

// flavourOf returns the flavour that a model's name shows.
func flavourOf(model string) flavour {
	switch {
	case isGrok(model):
		return xaiChat
	case isSonar(model) && !strings.Contains(model, "/"):
		return perplexityChat
	case strings.HasPrefix(model, "groq/"):
		return groqChat
	case model == "deepseek-chat", model == "deepseek-reasoner": // other names are open models, which many serve
		return deepSeekChat
	case strings.HasPrefix(model, "hunyuan-"):
		return hunyuanChat
	case strings.HasPrefix(model, "ernie-"):
		return ernieChat
	case strings.HasPrefix(model, "moonshot-v1-"):
		return kimiChat
	case model == "exa", model == "exa-pro", model == "exa-research", model == "exa-research-pro":
		return exaChat
	case model == "brave", model == "brave-pro":
		return braveChat
	case isMistral(model):
		return mistralChat
	}
	return plainChat
}

// isOpenAI reports whether a model is OpenAI's, in its own naming.
func isOpenAI(model string) bool {
	model = strings.TrimPrefix(model, "ft:")
	for _, family := range [...]string{"gpt-", "chatgpt-", "o1", "o3", "o4", "codex-"} {
		if strings.HasPrefix(model, family) && !strings.HasPrefix(model, "gpt-oss") {
			return true
		}
	}
	return false
}

func isDeepSeek(model string) bool {
	return strings.HasPrefix(model, "deepseek-") && !strings.Contains(model, "/")
}

// isSonar reports whether a model is Perplexity's, in its own or in a gateway's naming.
func isSonar(model string) bool {
	model, gateway := strings.CutPrefix(model, "perplexity/")
	return gateway || strings.HasPrefix(model, "sonar") || strings.HasPrefix(model, "pplx-") || model == "r1-1776"
}

func isMistral(model string) bool {
	family, _, _ := strings.Cut(strings.TrimPrefix(model, "open-"), "-")
	return slices.Contains(mistralFamilies, family) && strings.Contains(model, "-") && !strings.Contains(model, "/")
}

var mistralFamilies = strings.Fields("mistral magistral ministral codestral pixtral devstral voxtral mixtral")

// isNew reports whether a top-level member differs from that of the last document, and remembers it.
func (p *chat) isNew(name string, v scan.Value) bool {
	if v.IsNull() || bytes.Equal(p.lists[name], v) {
		return false
	}
	if p.lists == nil {
		p.lists = map[string][]byte{}
	}
	p.lists[name] = append(p.lists[name][:0], v...)
	return true
}

// webSources emits search results that no mark names.
func (p *chat) webSources(list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		if s, _ := listed(a.Val); s.URL != "" {
			s.Key = s.URL
			p.source(s)
		}
	}
}
