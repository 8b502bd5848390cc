package wire

import (
	"bytes"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// response reads a response object: a body, or what the first and the last event of a stream hold. Event is the last
// word of the event's type, empty for a body.
func (p *responses) response(v scan.Value, event string) {
	var id, model, created, status, output, failure, details scan.Value
	filters := false
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "id":
			id = o.Val
		case "model":
			model = o.Val
		case "created_at":
			created = o.Val
		case "status":
			status = o.Val
		case "output":
			output = o.Val
		case "error":
			failure = o.Val
		case "incomplete_details":
			details = o.Val
		case "content_filters":
			filters = true
		}
	}
	p.head(HeadID, id)
	p.head(HeadModel, model)
	p.head(HeadCreated, created)
	p.sender(model.Str(), filters)
	if !output.IsNull() && !output.IsArray() {
		p.issue(IssueWrongType, "output", output)
	}
	ordinal := 0
	for a := scan.Elements(output); a.Next(); {
		p.outputItem(a.Val, &ordinal)
	}
	state := status.Str()
	if state == "" && event != "created" {
		state = event
	}
	if state == "" && event == "" && output.IsArray() { // a body that was stripped down to its output
		state = "completed"
	}
	if v.Cut() { // what may tell why it ended is missing
		return
	}
	p.ended(state, details.Get("reason"), failure)
}

// sender says who sent a response, as far as it tells.
func (p *responses) sender(model string, filters bool) {
	switch {
	case isGrok(model):
		p.xai = true
		p.say(Op{Kind: Head, Name: HeadFormat, More: "xai-responses"})
		p.say(Op{Kind: Head, Name: HeadProvider, More: "xai"})
	case isDeepSeek(model):
		p.say(Op{Kind: Head, Name: HeadProvider, More: "deepseek"})
	case isSonar(model):
		p.say(Op{Kind: Head, Name: HeadProvider, More: "perplexity"})
	case filters:
		p.say(Op{Kind: Head, Name: HeadProvider, More: "azure"})
	}
}

// ended says why a response ended, if it did.
func (p *responses) ended(state string, reason, failure scan.Value) {
	if failure.IsObject() {
		p.failed(failure)
	}
	switch state {
	case "completed":
		p.finish(0, p.completed())
	case "incomplete":
		switch why := reason.Str(); why {
		case "max_output_tokens", "max_tokens", "":
			p.finish(0, FinishLength)
		case "content_filter":
			p.finish(0, FinishFilter)
		default:
			p.unknown("incomplete reason "+clip(why), reason)
		}
	case "failed":
		p.finish(0, FinishError)
	case "cancelled", "canceled":
	default: // queued, in_progress
		return
	}
	p.end()
}

func (p *responses) completed() string {
	switch {
	case p.waiting:
		return FinishTool
	case p.refused && !p.answered:
		return FinishRefusal
	default:
		return FinishStop
	}
}

func (p *responses) failed(failure scan.Value) {
	code := firstText(failure, "code", "type")
	if code == "" {
		code = "error"
	}
	p.fail(code, failure.Get("message").Text())
}

// lastError reads an error event, flat or with the error nested.
func (p *responses) lastError(doc scan.Value) {
	if e := doc.Get("error"); e.IsObject() {
		p.failed(e)
		return
	}
	code, message := doc.Get("code").Text(), doc.Get("message").Text()
	if code == "" {
		code = "error"
	}
	p.fail(code, message)
}

// itemEvent reads an output item that begins or is done.
func (p *responses) itemEvent(doc scan.Value, done bool) {
	e := p.placeOf(doc, "item")
	id, kind := identify(e.value)
	if kind != "message" {
		p.otherItem(kind, id, e.value)
		return
	}
	p.messageItem(p.message(e.output), e.value, done)
	if done {
		p.items[id] = p.repeats.hash(e.value)
	}
}

// outputItem reads an item of a response's output. Ordinal counts its messages.
func (p *responses) outputItem(item scan.Value, ordinal *int) {
	id, kind := identify(item)
	if kind != "message" {
		p.otherItem(kind, id, item)
		return
	}
	for len(p.messages) <= *ordinal {
		p.messages = append(p.messages, &outMessage{ordinal: len(p.messages), bound: true, parts: map[int]*outPart{}})
	}
	m := p.messages[*ordinal]
	*ordinal++
	if id != "" && p.items[id] == p.repeats.hash(item) {
		return
	}
	p.messageItem(m, item, true)
}

func identify(item scan.Value) (id, kind string) {
	content := false
	for o := scan.Members(item); o.Next() && (id == "" || kind == ""); {
		switch string(o.Key) {
		case "id":
			id = o.Val.Str()
		case "type":
			kind = o.Val.Str()
		case "content":
			content = true
		}
	}
	if kind == "" && content { // the body breaks off before it says so
		kind = "message"
	}
	return id, kind
}

// messageItem reads a message: whether it is the answer or commentary on the way to it, and, once it is done, its
// content. Parts that have begun keep their kind.
func (p *responses) messageItem(m *outMessage, item scan.Value, done bool) {
	var content scan.Value
	for o := scan.Members(item); o.Next(); {
		switch string(o.Key) {
		case "phase":
			if o.Val.Str() == "commentary" {
				m.kind = CommentaryPart
			}
		case "content":
			content = o.Val
		}
	}
	if !done {
		return
	}
	p.waiting = false
	if content.IsString() {
		p.wholeText(p.part(m, 0, false), content)
		return
	}
	if !content.IsArray() {
		if !content.IsNull() {
			p.issue(IssueWrongType, "content", content)
		}
		return
	}
	n := 0
	for a := scan.Elements(content); a.Next(); n++ {
		p.contentPart(m, n, a.Val, false)
	}
}

// otherItem reads an item that is no message: a call of a tool mostly.
func (p *responses) otherItem(kind, id string, item scan.Value) {
	if kind == "reasoning" {
		return
	}
	hash := p.repeats.hash(item)
	if id != "" && p.items[id] == hash {
		return
	}
	p.items[id] = hash
	switch kind {
	case "file_search_call":
		p.fileSearch(item)
	case "web_search_call":
		p.webSearch(item)
	case "search_results", "fetch_url_results":
		p.searched(item)
	case "mcp_list_tools", "mcp_approval_response", "compaction", "compaction_summary", "additional_tools", "program":
	default:
		p.toolItem(kind, id, item)
	}
}

func (p *responses) toolItem(kind, id string, item scan.Value) {
	if strings.HasSuffix(kind, "_output") || strings.HasSuffix(kind, "_result") {
		return
	}
	name, ok := strings.CutSuffix(kind, "_call")
	if !ok && kind != "mcp_approval_request" {
		p.unknown("output item "+clip(kind), item)
		return
	}
	if s := item.Get("name").Str(); s != "" {
		name = s
	}
	if call := item.Get("call_id").Str(); call != "" {
		id = call
	}
	p.tool(id, name)
	switch kind {
	case "function_call", "computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request":
		p.waiting = true
	case "custom_tool_call":
		p.waiting = !p.xai // xAI runs its own
	}
}

// fileSearch reads the chunks that a file search found. One file may come several times.
func (p *responses) fileSearch(item scan.Value) {
	p.queries(item.Get("queries"))
	results := item.Get("results")
	if results.IsNull() {
		results = item.Get("search_results")
	}
	if !results.IsNull() && !results.IsArray() {
		p.issue(IssueWrongType, "results", results)
	}
	for a := scan.Elements(results); a.Next(); {
		s := fileChunk(a.Val)
		if s.Key == "" {
			p.unknown("file search result", a.Val)
			continue
		}
		p.source(s)
	}
}

// fileChunk reads one result of a file search, in the shape of a response or in that of a vector store's own search.
func fileChunk(v scan.Value) *Source {
	s := &Source{Kind: KindFile, Raw: v}
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "file_id":
			s.ID = o.Val.Str()
		case "filename":
			s.Filename = o.Val.Str()
		case "score":
			s.Score = score(o.Val)
		case "text":
			s.Content = o.Val.Str()
		case "content":
			var texts []string
			for a := scan.Elements(o.Val); a.Next(); {
				if t := a.Val.Get("text").Str(); t != "" {
					texts = append(texts, t)
				}
			}
			s.Content = strings.Join(texts, "\n")
		}
	}
	s.Key, s.GlobalID, s.Title = s.ID, s.ID, s.Filename
	if s.Key == "" {
		s.Key = s.Filename
	}
	return s
}

func (p *responses) queries(list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		if !bytes.HasPrefix(a.Val.Content(), []byte("ws_call_id=")) { // DeepSeek puts the call's id among them
			p.query(a.Val)
		}
	}
}

// webSearch reads what a web search looked for and all that it looked at.
func (p *responses) webSearch(item scan.Value) {
	action := item.Get("action")
	if queries := action.Get("queries"); queries.IsArray() {
		p.queries(queries)
	} else {
		p.query(action.Get("query"))
	}
	if arguments := item.Get("arguments"); arguments.IsString() { // xAI, formerly: JSON in a string
		p.query(scan.Value(arguments.Bytes()).Get("query"))
	}
	for a := scan.Elements(action.Get("sources")); a.Next(); {
		s := &Source{Kind: KindWeb, URL: a.Val.Get("url").Str(), Raw: a.Val}
		if s.Key = s.URL; s.Key == "" { // a data service without an address
			name := a.Val.Get("name").Str()
			s.Kind, s.Key, s.ID, s.Title = KindTool, "api:"+name, name, name
			if name == "" {
				p.unknown("search source", a.Val)
				continue
			}
		}
		p.source(s)
	}
}

// searched reads what Perplexity's agents searched for and found. Their text holds [n], which stands for the result
// with the id n.
func (p *responses) searched(v scan.Value) {
	p.say(Op{Kind: Head, Name: HeadProvider, More: "perplexity"})
	p.queries(v.Get("queries"))
	known := len(p.results)
	changed := false
	for _, member := range []string{"results", "contents"} {
		for a := scan.Elements(v.Get(member)); a.Next(); {
			s, id := searchResult(a.Val)
			if s.URL == "" {
				p.unknown("search result", a.Val)
				continue
			}
			if s.Key = s.URL; id > 0 && id <= maxNumber {
				for len(p.results) < id {
					p.results = append(p.results, Ref{})
				}
				changed = changed || p.results[id-1].Source == ""
				p.results[id-1].Source = s.Key
			}
			p.source(s)
		}
	}
	if changed || len(p.results) > known {
		p.say(Op{Kind: MarkersOp, Markers: &Markers{Style: BracketNumber, Refs: p.results}})
	}
}

// maxNumber bounds what the ids of search results cost.
const maxNumber = 10_000

// searchResult reads one of Perplexity's search results, and its number, 0 where it has none.
func searchResult(v scan.Value) (s *Source, id int) {
	s = &Source{Kind: KindWeb, Raw: v}
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "id":
			id, _ = o.Val.Int()
		case "url":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "date":
			s.PublishedAt = o.Val.Str()
		case "snippet":
			s.Content = o.Val.Str()
		}
	}
	return s, id
}
