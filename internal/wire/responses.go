package wire

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksResponses recognises the Responses API of OpenAI and its copies: Azure, DeepSeek, Perplexity's agents.
func looksResponses(s *shape) bool { return isResponses(s) && !isGrok(responseModel(s)) }

// looksXAIResponses recognises the Responses API of xAI, which differs from OpenAI's only by the model's name.
func looksXAIResponses(s *shape) bool { return isResponses(s) && isGrok(responseModel(s)) }

func isResponses(s *shape) bool {
	switch {
	case strings.HasPrefix(s.kind, "response."), s.kind == "response":
		return true
	case s.kind == "error": // the providers that nest their errors have other formats
		return s.has("sequence_number") && s.has("message")
	case s.kind != "":
		return false
	}
	a := scan.Elements(s.val("output"))
	return a.Next() && len(a.Val.Type()) > 0
}

func responseModel(s *shape) string {
	if v := s.val("model"); v != nil {
		return v.Str()
	}
	return s.val("response").Get("model").Str()
}

// isGrok reports whether a model is xAI's, in xAI's own naming.
func isGrok(model string) bool { return strings.HasPrefix(model, "grok") }

// responses reads the Responses API. A stream contains everything up to four times: in deltas, when a part is done,
// when its item is done, and in the response at its end. A repetition with the same bytes is recognised by its hash and
// not walked again; one with other bytes replaces what was emitted.
type responses struct {
	out
	delta    template
	repeats  repeats
	messages []*outMessage       // in order of appearance
	byIndex  map[int]*outMessage // by the provider's index, which counts tool calls and reasoning, too
	items    map[string]uint64   // items that were done, by id: the hash of their JSON
	unknowns map[string]bool     // event types that were reported
	results  []Ref               // what [n] in the text stands for; Perplexity's agents only
	xai      bool
	thoughts map[string]bool   // pieces of reasoning that were emitted, by thoughtKey
	thinking string            // the id of the last reasoning item with text
	thinkers int               // how many of them there were
	calls    map[string]string // the ids of calls, by those of their items
	azure    []Source          // what Azure AI Search found; citations name them by position
	waiting  bool              // the last item is a call for the client
	refused  bool
	answered bool // some text is not a refusal
}

// outMessage is what was emitted of one message so far.
type outMessage struct {
	ordinal int // index among the messages, which is the same in a body and in a stream
	bound   bool
	kind    partKind
	parts   map[int]*outPart
}

// outPart is what was emitted of one content part so far.
type outPart struct {
	Part
	begun, ended bool
	whole        uint64         // hash of its JSON, once done
	text         uint64         // hash of its text, once done
	notes        map[int]uint64 // hashes of the JSON of citations emitted, by index
}

func newResponses(c *Config) Parser {
	return &responses{
		out: out{Config: c}, repeats: repeats{seed: maphash.MakeSeed()},
		byIndex: map[int]*outMessage{}, items: map[string]uint64{}, unknowns: map[string]bool{},
		thoughts: map[string]bool{}, calls: map[string]string{},
	}
}

// Parse reads an event, or a whole response.
func (p *responses) Parse(event []byte, doc scan.Value) bool {
	if content, counter, ok := p.delta.match(doc); ok {
		if n, counted := counter.Int(); !counted || p.fresh(n, content, false) {
			p.raw(p.delta.part, content)
		}
		return true
	}
	p.unread(doc, responsesReads)
	kind := doc.Type()
	if len(kind) == 0 {
		if isBody(doc) {
			p.response(doc, "")
			return true
		}
		kind = event
	}
	return p.event(kind, doc)
}

func isBody(doc scan.Value) bool {
	return string(doc.Get("object").Bytes()) == "response" || doc.Get("output").IsArray()
}

// event reads one event of a stream.
func (p *responses) event(kind []byte, doc scan.Value) bool {
	switch string(kind) {
	case "response.output_text.delta", "response.refusal.delta":
		p.textDelta(doc, string(kind) == "response.refusal.delta")
	case "response.output_text.done", "response.refusal.done":
		refusal := string(kind) == "response.refusal.done"
		member := "text"
		if refusal {
			member = "refusal"
		}
		e := p.placeOf(doc, member)
		p.wholeText(p.part(p.message(e.output), e.content, refusal), e.value)
	case "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		"response.reasoning_text.delta", "response.reasoning_text.done":
		list, index := listContent, doc.Get("content_index")
		if bytes.HasPrefix(kind, []byte("response.reasoning_summary")) {
			list, index = listSummary, doc.Get("summary_index")
		}
		id := doc.Get("item_id").Str()
		i, _ := p.index("index", index)
		if delta := doc.Get("delta"); delta.IsString() {
			p.emitThought(id, list, i, delta)
		} else if !p.thoughts[thoughtKey(id, list, i)] {
			p.emitThought(id, list, i, doc.Get("text"))
		}
	case "response.function_call_arguments.delta", "response.mcp_call_arguments.delta":
		p.moreInput(p.calls[doc.Get("item_id").Str()], doc.Get("delta"))
	case "response.output_text.annotation.added", "response.output_text_annotation.added":
		e := p.placeOf(doc, "annotation")
		part := p.part(p.message(e.output), e.content, false)
		if e.note < 0 {
			e.note = len(part.notes)
		}
		p.annotation(part, e.note, e.value)
	case "response.content_part.done":
		e := p.placeOf(doc, "part")
		p.contentPart(p.message(e.output), e.content, e.value, true)
	case "response.output_item.added", "response.output_item.done":
		p.itemEvent(doc, string(kind) == "response.output_item.done")
	case "response.created", "response.completed", "response.incomplete", "response.failed", "response.cancelled",
		"response.canceled":
		p.response(openMember(doc, "response"), string(kind[len("response."):]))
	case "error":
		p.failure(doc)
	case "response.reasoning.search_queries", "response.reasoning.search_results",
		"response.reasoning.fetch_url_results":
		p.searched(doc)
	case "response":
		p.response(doc, "")
	default:
		name, ok := bytes.CutPrefix(kind, []byte("response."))
		if !ok {
			return string(kind) == "keepalive" || string(kind) == "ping"
		}
		family, _, _ := bytes.Cut(name, []byte("."))
		switch string(family) {
		case "in_progress", "queued", "content_part", "output_text", "refusal", "audio":
			return true
		}
		for _, known := range []string{"_call", "_call_arguments", "_call_code", "_call_input"} {
			if bytes.HasSuffix(family, []byte(known)) {
				return true
			}
		}
		if bytes.HasPrefix(family, []byte("reasoning")) || bytes.HasPrefix(family, []byte("mcp_")) {
			return true
		}
		if !p.unknowns[string(kind)] && len(p.unknowns) < 64 {
			p.unknowns[string(kind)] = true
			p.unknown("event "+string(kind), doc)
		}
		return true
	}
	return true
}

// eventPlace is the members that tell which part an event is about.
type eventPlace struct {
	output, content, sequence, note int // -1 if missing
	value                           scan.Value
	late                            bool // one of them comes after the value
	counted                         bool // the sequence number comes before the value
}

// placeOf reads an event's place and one more member, its value.
func (p *responses) placeOf(doc scan.Value, member string) eventPlace {
	e := eventPlace{output: -1, content: -1, sequence: -1, note: -1}
	for o := scan.Members(doc); o.Next(); {
		var to *int
		switch key := string(o.Key); key {
		case member:
			e.value = o.Val
			continue
		case "output_index":
			to = &e.output
		case "content_index":
			to = &e.content
		case "sequence_number":
			to = &e.sequence
			e.counted = e.value == nil
		case "annotation_index":
			to = &e.note
		case "type":
			e.late = e.late || e.value != nil
			continue
		default:
			continue
		}
		if n, ok := p.index(string(o.Key), o.Val); ok {
			*to = n
		}
		e.late = e.late || e.value != nil
	}
	return e
}

func (p *responses) textDelta(doc scan.Value, refusal bool) {
	e := p.placeOf(doc, "delta")
	if e.sequence >= 0 && !p.fresh(e.sequence, e.value.Content(), e.value.Cut()) {
		return
	}
	part := p.part(p.message(e.output), e.content, refusal)
	if !p.text(part.Part, e.value) {
		if !e.value.IsNull() {
			p.issue(IssueWrongType, "delta", e.value)
		}
		return
	}
	part.begun = true
	if e.counted || e.sequence < 0 { // otherwise each has to be walked, to find repeated ones
		p.delta.learn(doc, e.value, part.Part, variation{counter: "sequence_number", anyTail: !e.late})
	}
}

// The memory that a message and a part of one take.
var (
	messageSize = size[outMessage]() + 2*entrySize
	partSize    = size[outPart]() + 3*entrySize
)

// message returns the message with the provider's index; -1 is the latest.
func (p *responses) message(index int) *outMessage {
	if m := p.byIndex[index]; m != nil {
		return m
	}
	var m *outMessage
	if n := len(p.messages); n > 0 && (index < 0 || !p.messages[n-1].bound) {
		m = p.messages[n-1]
	} else {
		m = &outMessage{ordinal: n, parts: map[int]*outPart{}}
		p.Keep(messageSize) // counted, but kept in any case, since it is smaller than its event
		p.messages = append(p.messages, m)
	}
	if index >= 0 {
		m.bound = true
		p.byIndex[index] = m
	}
	return m
}

// part returns a content part of a message; -1 is the first.
func (p *responses) part(m *outMessage, content int, refusal bool) *outPart {
	content = max(content, 0)
	if part := m.parts[content]; part != nil {
		return part
	}
	part := &outPart{Part: Part{Message: m.ordinal, Content: content, Kind: m.kind}, notes: map[int]uint64{}}
	if refusal {
		part.Kind = RefusalPart
		p.refused = true
	} else {
		p.answered = true
	}
	if len(m.parts) == 0 || p.Keep(partSize) {
		m.parts[content] = part
	}
	return part
}

// wholeText emits a part's whole text, unless it was emitted before.
func (p *responses) wholeText(part *outPart, v scan.Value) {
	if !v.IsString() {
		return
	}
	hash := p.repeats.hash(v.Content())
	switch {
	case part.text == hash:
		return
	case part.begun:
		p.final(part.Part, v)
	case len(v.Content()) > 0:
		p.text(part.Part, v)
	}
	part.begun, part.text = true, hash
}

// contentPart reads a part with its text and all its citations. Done means that citations it no longer lists are
// withdrawn.
func (p *responses) contentPart(m *outMessage, content int, v scan.Value, done bool) {
	known := m.parts[max(content, 0)]
	hash := p.repeats.hash(v)
	if known != nil && known.whole == hash {
		return
	}
	var kind string
	var text, refusal, annotations scan.Value
	v.Read(scan.Fields{
		{"type", &kind}, {"text", &text}, {"refusal", &refusal}, {"annotations", &annotations},
	})
	switch kind {
	case "output_text", "text", "":
		part := p.part(m, content, false)
		p.wholeText(part, text)
		p.annotations(part, annotations, done)
		p.endPart(part, hash)
	case "refusal":
		part := p.part(m, content, true)
		p.wholeText(part, refusal)
		p.endPart(part, hash)
	case "reasoning_text", "summary_text":
	default:
		p.unknown("content part "+kind, v)
	}
}

func (p *responses) endPart(part *outPart, hash uint64) {
	part.whole = hash
	if !part.ended && part.begun {
		part.ended = true
		p.emit(Op{Kind: PartEnd, Part: part.Part})
	}
}

// annotations reads the whole list of a part's citations.
func (p *responses) annotations(part *outPart, list scan.Value, done bool) {
	if p.wantList("annotations", list); !list.IsArray() {
		return
	}
	n := 0
	for a := scan.Elements(list); a.Next(); n++ {
		p.annotation(part, n, a.Val)
	}
	if !done || len(part.notes) <= n {
		return
	}
	for _, index := range slices.Sorted(maps.Keys(part.notes)) {
		if index >= n {
			p.emit(Op{Kind: Withdraw, Name: noteKey(part.Part, index)})
			delete(part.notes, index)
		}
	}
}

// fresh reports whether a delta is not a repetition of one that was read, and emits an issue if it is.
func (p *responses) fresh(sequence int, content []byte, cut bool) bool {
	if sequence < maxSequence && !p.Keep(8*max(0, sequence+1-cap(p.repeats.seen))) {
		return true
	}
	if p.repeats.fresh(sequence, content, cut) {
		return true
	}
	p.issue(IssueDuplicateEvent, numbered("sequence_number ", sequence), nil)
	return false
}

// repeats finds repeated deltas, which reconnecting causes. Both number and text must be the same, and numbers must
// count at all: some proxies restart them from 0, or number everything 0.
type repeats struct {
	seed     maphash.Seed
	seen     []uint64 // the hash of the text by sequence number; 0 if not seen
	distinct int      // numbers seen
	faulty   bool     // one number stood for two events, so numbers tell nothing
}

// maxSequence bounds the memory for sequence numbers.
const maxSequence = 1 << 17

func (r *repeats) hash(b []byte) uint64 { return max(maphash.Bytes(r.seed, b), 1) }

// fresh reports whether a delta is new. Only the number of a cut one can be compared.
func (r *repeats) fresh(n int, content []byte, cut bool) bool {
	if r.faulty || n >= maxSequence {
		return true
	}
	if n >= len(r.seen) {
		r.seen = append(r.seen, make([]uint64, n+1-len(r.seen))...)
	}
	hash := r.hash(content)
	if cut && r.seen[n] != 0 {
		hash = r.seen[n]
	}
	switch r.seen[n] {
	case 0:
		r.seen[n] = hash
		r.distinct++
	case hash:
		return r.distinct < 2
	default:
		r.faulty, r.seen = true, nil
	}
	return true
}

// openMember returns an object member of doc without searching for its end, since everything in it will be walked
// anyway: it is followed by the rest of doc. If the member is not near the beginning, it is searched for in the
// ordinary way.
func openMember(doc scan.Value, name string) scan.Value {
	key := `"` + name + `":{`
	if i := bytes.Index(doc[:min(len(doc), 256)], []byte(key)); i >= 0 {
		return doc[i+len(key)-1:]
	}
	return doc.Get(name)
}

// note is an annotation of the Responses or the Chat Completions API, of any kind, flat or nested.
type note struct {
	kind, url, title, content, file, filename, quote string
	named                                            string // the key of the source, if it is not url
	start, end, index                                scan.Value
	raw                                              scan.Value
}

// readNote reads an annotation. Chat Completions nest the fields in a member named like the annotation's type.
func readNote(v scan.Value) note {
	n := note{raw: v}
	n.read(v, true)
	return n
}

func (n *note) read(v scan.Value, outer bool) {
	var kind scan.Value
	v.Read(scan.Fields{
		{"type", &kind},
		{"url", &n.url},
		{"title", &n.title},
		{"content", &n.content},
		{"file_id", &n.file},
		{"filename", &n.filename},
		{"quote", &n.quote},
		{"exactQuote", &n.quote}, // Jina
		{"start_index", &n.start},
		{"end_index", &n.end},
		{"index", &n.index},
	})
	if kind != nil {
		n.kind = noteKind(kind.Bytes())
	}
	if !outer {
		return
	}
	for o := scan.Members(v); o.Next(); {
		for _, name := range noteKinds {
			if o.Val.IsObject() && scan.IsName(o.Key, name) {
				n.kind = cmp.Or(n.kind, name)
				n.read(o.Val, false)
			}
		}
	}
}

var noteKinds = [...]string{"url_citation", "file_citation", "container_file_citation", "file_path"}

// noteKind returns an annotation's type as a string, without allocating for the usual ones.
func noteKind(b []byte) string {
	for _, kind := range noteKinds {
		if string(b) == kind {
			return kind
		}
	}
	return string(b)
}

// source returns what the annotation cites, without a key if it cites nothing.
func (n *note) source() Source {
	s := Source{Title: n.title, Content: n.content, Raw: n.raw}
	if n.kind == "url_citation" {
		s.Kind, s.Key, s.URL = kindWeb, cmp.Or(n.named, n.url), n.url
	} else {
		s.Kind, s.ID, s.GlobalID, s.Filename = kindFile, n.file, n.file, n.filename
		s.Key, s.Title = cmp.Or(n.file, n.filename), cmp.Or(n.title, n.filename)
	}
	return s
}

// key returns a key made from the annotation's contents.
func (n *note) key(candidate int) string {
	b := strconv.AppendInt(make([]byte, 0, 256), int64(candidate), 10)
	b = append(append(b, '/'), n.kind...)
	for _, number := range []scan.Value{n.start, n.end, n.index} {
		b = append(append(b, '/'), number...)
	}
	b = append(append(b, '/'), n.url...)
	return string(append(append(b, '/'), n.file...))
}

// place reads the place of the annotation in c's part: over a link, at a point, or nowhere. All offsets are code
// points.
func (o *out) place(n *note, c *Cite) {
	c.Unit = Nowhere
	if n.kind == "file_citation" || n.kind == "file_path" {
		c.Covers = Point
		if at, ok := o.index("index", n.index); ok && (n.start.IsNull() || n.end.IsNull()) {
			c.Unit, c.Start, c.End = CodePoints, at, at
			return
		}
	} else {
		c.Covers = Link
	}
	start, ok1 := o.index("start_index", n.start)
	end, ok2 := o.index("end_index", n.end)
	if !ok1 || !ok2 || end == 0 { // 0–0 means no place
		return
	}
	c.Unit, c.Start, c.End = CodePoints, start, end
	switch {
	case start == end:
		c.Covers = Point
	case n.kind == "url_citation" && n.named == "":
		c.URL = n.url
	case n.kind == "container_file_citation" && n.filename != "":
		c.URL = "sandbox:/mnt/data/" + n.filename
	case c.Covers == Point:
		c.Covers = Claim
	}
}

// cites emits a citation and its source, for an annotation that is complete. It returns false for annotations of other
// types.
func (o *out) cites(n *note, key string, p Part) bool {
	if !slices.Contains(noteKinds[:], n.kind) {
		return false
	}
	s := n.source()
	if s.Key == "" {
		o.issue(IssueSourceless, n.kind, n.raw)
		return true
	}
	refs := o.naming().refs[:]
	refs[0] = Ref{Source: s.Key, Quote: n.quote}
	c := Cite{Key: key, Part: p, Refs: refs}
	o.place(n, &c)
	o.source(&s)
	o.cite(&c)
	return true
}

// annotation reads a citation of a part, if it is complete and not a repetition.
func (p *responses) annotation(part *outPart, index int, v scan.Value) {
	if v.Cut() {
		return
	}
	hash := p.repeats.hash(v)
	if part.notes[index] == hash {
		return
	}
	if !p.Keep(entrySize) {
		return
	}
	part.notes[index] = hash
	n := readNote(v)
	if p.xai && strings.Trim(n.title, "0123456789") == "" { // the number shown in the text, not a title
		n.title = ""
	}
	p.azureNote(&n)
	if !p.cites(&n, noteKey(part.Part, index), part.Part) {
		p.unknown("annotation "+n.kind, v)
	}
}

// noteKey identifies a citation by its place in the response, so that its key is the same each time it comes.
func noteKey(p Part, index int) string {
	b := strconv.AppendInt(make([]byte, 0, 32), int64(p.Message), 10)
	b = strconv.AppendInt(append(b, '/'), int64(p.Content), 10)
	return string(strconv.AppendInt(append(b, '/'), int64(index), 10))
}

// response reads a response object: a body, or what the first and the last event of a stream contain. Event is the last
// word of the event's type, empty for a body.
func (p *responses) response(v scan.Value, event string) {
	var id, model, created, status, output, failure, details, filters scan.Value
	v.Read(scan.Fields{
		{"id", &id},
		{"model", &model},
		{"created_at", &created},
		{"status", &status},
		{"output", &output},
		{"error", &failure},
		{"incomplete_details", &details},
		{"content_filters", &filters},
	})
	p.head(HeadID, id)
	p.head(HeadModel, model)
	p.head(HeadCreated, created)
	name := model.Str()
	switch {
	case isGrok(name):
		p.xai = true
		p.emit(Op{Kind: Head, Name: HeadFormat, More: "xai-responses"})
		p.provider("xai")
	case isDeepSeek(name):
		p.provider("deepseek")
	case isSonar(name):
		p.provider("perplexity")
	case filters != nil:
		p.provider("azure")
	}
	p.wantList("output", output)
	ordinal := 0
	for a := scan.Elements(output); a.Next(); {
		p.outputItem(a.Val, &ordinal)
	}
	state := status.Str()
	if state == "" && event != "created" {
		state = event
	}
	if state == "" && event == "" && output.IsArray() { // a body with nothing but its output
		state = "completed"
	}
	if v.Cut() { // the reason why it ended may be missing
		return
	}
	p.ended(state, details.Get("reason"), failure)
}

// ended emits why a response ended, if it did.
func (p *responses) ended(state string, reason, failure scan.Value) {
	if failure.IsObject() {
		p.failure(failure)
	}
	switch state {
	case "completed":
		switch {
		case p.waiting:
			p.finish(0, finishTool)
		case p.refused && !p.answered:
			p.finish(0, finishRefusal)
		default:
			p.finish(0, finishStop)
		}
	case "incomplete":
		switch why := reason.Str(); why {
		case "max_output_tokens", "max_tokens", "":
			p.finish(0, finishLength)
		case "content_filter":
			p.finish(0, finishFilter)
		default:
			p.unknown("incomplete reason "+why, reason)
		}
	case "failed":
		p.finish(0, finishError)
	case "cancelled", "canceled":
	default: // queued, in_progress
		return
	}
	p.emit(Op{Kind: End})
}

// itemEvent reads an output item that begins or is done.
func (p *responses) itemEvent(doc scan.Value, done bool) {
	e := p.placeOf(doc, "item")
	id, kind := identify(e.value)
	if kind != "message" {
		p.otherItem(kind, id, e.value, done)
		return
	}
	p.messageItem(p.message(e.output), e.value, done)
	if done {
		p.done(id, p.repeats.hash(e.value))
	}
}

// outputItem reads an item of a response's output. Ordinal counts its messages.
func (p *responses) outputItem(item scan.Value, ordinal *int) {
	id, kind := identify(item)
	if kind != "message" {
		p.otherItem(kind, id, item, true)
		return
	}
	m := &outMessage{ordinal: *ordinal, bound: true, parts: map[int]*outPart{}}
	if *ordinal < len(p.messages) {
		m = p.messages[*ordinal]
	} else if p.Keep(messageSize + partSize) { // otherwise nothing refers to it later
		p.messages = append(p.messages, m)
	}
	*ordinal++
	if id != "" && p.items[id] == p.repeats.hash(item) {
		return
	}
	p.messageItem(m, item, true)
}

// done remembers an item.
func (p *responses) done(id string, hash uint64) {
	if _, known := p.items[id]; known || p.Keep(entrySize+len(id)) {
		p.items[id] = hash
	}
}

func identify(item scan.Value) (id, kind string) {
	for o := scan.Members(item); o.Next() && (id == "" || kind == ""); {
		switch string(o.Key) {
		case "id":
			id = o.Val.Str()
		case "type":
			kind = o.Val.Str()
		}
	}
	if kind == "" && item.Get("content") != nil { // the body breaks off before the type
		kind = "message"
	}
	return id, kind
}

// messageItem reads a message: whether it is the answer or commentary before it and, once it is done, its content.
// Parts that have begun keep their kind.
func (p *responses) messageItem(m *outMessage, item scan.Value, done bool) {
	var phase, content scan.Value
	item.Read(scan.Fields{{"phase", &phase}, {"content", &content}})
	if phase.Str() == "commentary" {
		m.kind = CommentaryPart
	}
	if !done {
		return
	}
	p.waiting = false
	if content.IsString() {
		p.wholeText(p.part(m, 0, false), content)
		return
	}
	p.wantList("content", content)
	n := 0
	for a := scan.Elements(content); a.Next(); n++ {
		p.contentPart(m, n, a.Val, false)
	}
}

// otherItem reads an item that is not a message, usually a call of a tool.
func (p *responses) otherItem(kind, id string, item scan.Value, done bool) {
	if kind == "reasoning" {
		p.reasoning(id, item, done)
		return
	}
	hash := p.repeats.hash(item)
	if id != "" && p.items[id] == hash {
		return
	}
	p.done(id, hash)
	switch kind {
	case "file_search_call":
		p.emitQueries(item.Get("queries"))
		results := item.Get("results")
		if results.IsNull() {
			results = item.Get("search_results")
		}
		p.wantList("results", results)
		for a := scan.Elements(results); a.Next(); {
			s := fileChunk(a.Val)
			if s.Key == "" {
				p.unknown("file search result", a.Val)
				continue
			}
			p.source(s)
		}
		p.searchCall(id, kind, item, done)
	case "web_search_call":
		action := item.Get("action")
		if queries := action.Get("queries"); queries.IsArray() {
			p.emitQueries(queries)
		} else {
			p.query(action.Get("query"))
		}
		if arguments := item.Get("arguments"); arguments.IsString() { // xAI, formerly: JSON in a string
			p.query(scan.Value(arguments.Bytes()).Get("query"))
		}
		if url := action.Get("url").Str(); url != "" { // a page that was opened, or searched in
			p.source(&Source{Key: url, Kind: kindWeb, URL: url, Raw: action})
		}
		for a := scan.Elements(action.Get("sources")); a.Next(); {
			s := &Source{Kind: kindWeb, URL: a.Val.Get("url").Str(), Raw: a.Val}
			if s.Key = s.URL; s.Key == "" { // a data service without an address
				name := a.Val.Get("name").Str()
				s.Kind, s.Key, s.ID, s.Title = kindTool, "api:"+name, name, name
				if name == "" {
					p.unknown("search source", a.Val)
					continue
				}
			}
			p.source(s)
		}
		p.searchCall(id, kind, item, done)
	case "search_results", "fetch_url_results":
		p.searched(item)
	case "mcp_list_tools", "mcp_approval_response", "compaction", "compaction_summary", "additional_tools", "program":
	default:
		p.toolItem(kind, id, item, done)
	}
}

// searchCall emits a search as a call; its queries are emitted as well.
func (p *responses) searchCall(id, kind string, item scan.Value, done bool) {
	name := strings.TrimSuffix(kind, "_call")
	if done {
		p.serverCall(id, name, item)
		return
	}
	p.serverTool(id, name, true)
}

// thoughtKey identifies a piece of reasoning: its item, whether it is of the summary, and its index there.
func thoughtKey(id, list string, index int) string { return numbered(id+"/"+list+"/", index) }

// emitThought emits a piece of reasoning, or more of it.
func (p *responses) emitThought(id, list string, index int, v scan.Value) {
	key := thoughtKey(id, list, index)
	if id != p.thinking {
		p.thinking = id
		p.thinkers++
	}
	part := Part{Message: p.thinkers, Content: index}
	if list == listContent {
		part.Kind = CommentaryPart // to distinguish it from that of the summary
	}
	if p.think(part, v) && !p.thoughts[key] && p.Keep(entrySize+len(key)) {
		p.thoughts[key] = true
	}
}

// The lists of a reasoning item.
const (
	listSummary = "summary"
	listContent = "content"
)

// reasoning reads an item with the model's reasoning, as far as it was not emitted.
func (p *responses) reasoning(id string, item scan.Value, done bool) {
	if !done {
		return
	}
	for _, list := range []string{listSummary, listContent} {
		i := 0
		for a := scan.Elements(item.Get(list)); a.Next(); i++ {
			if !p.thoughts[thoughtKey(id, list, i)] {
				p.emitThought(id, list, i, a.Val.Get("text"))
			}
		}
	}
}

func (p *responses) toolItem(kind, id string, item scan.Value, done bool) {
	if strings.HasSuffix(kind, "_output") || strings.HasSuffix(kind, "_result") {
		if kind == "azure_ai_search_call_output" {
			p.azureSearch(item.Get("output"))
		}
		return
	}
	name, ok := strings.CutSuffix(kind, "_call")
	if !ok && kind != "mcp_approval_request" {
		p.unknown("output item "+kind, item)
		return
	}
	if s := item.Get("name").Str(); s != "" {
		name = s
	}
	if call := item.Get("call_id").Str(); call != "" {
		if id != "" && p.Keep(entrySize+len(id)+len(call)) {
			p.calls[id] = call
		}
		id = call
	}
	client := false
	switch kind {
	case "function_call", "computer_call", "local_shell_call", "apply_patch_call", "mcp_approval_request":
		client = true
	case "custom_tool_call":
		client = !p.xai // xAI runs its own
	}
	p.waiting = p.waiting || client
	if !client {
		p.serverTool(id, name, false)
		if done {
			p.serverCall(id, name, item)
		}
		return
	}
	p.tool(id, name)
	if done && !item.Cut() {
		input, _, _ := splitCall(item)
		p.toolInput(id, input)
	}
}

// fileChunk reads one result of a file search, in the form of a response or of a vector store's own search.
func fileChunk(v scan.Value) *Source {
	s := &Source{Kind: kindFile, Raw: v}
	var parts scan.Value
	v.Read(scan.Fields{
		{"file_id", &s.ID}, {"filename", &s.Filename}, {"score", &s.Score}, {"text", &s.Content}, {"content", &parts},
	})
	if parts != nil {
		var texts []string
		for a := scan.Elements(parts); a.Next(); {
			if t := a.Val.Get("text").Str(); t != "" {
				texts = append(texts, t)
			}
		}
		s.Content = strings.Join(texts, "\n")
	}
	s.Key, s.GlobalID, s.Title = cmp.Or(s.ID, s.Filename), s.ID, s.Filename
	return s
}

func (p *responses) emitQueries(list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		if !bytes.HasPrefix(a.Val.Content(), []byte("ws_call_id=")) { // DeepSeek puts the call's id among them
			p.query(a.Val)
		}
	}
}

// searched reads what Perplexity's agents searched for and found. In their text, [n] stands for the result with the id
// n.
func (p *responses) searched(v scan.Value) {
	p.provider("perplexity")
	p.emitQueries(v.Get("queries"))
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
				if !p.Keep(2 * refSize * max(0, id-len(p.results))) {
					return
				}
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
		p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: p.results}})
	}
}

// maxNumber bounds the memory for ids of search results.
const maxNumber = 10_000

// searchResult reads one of Perplexity's search results, and its number, 0 if it has none.
func searchResult(v scan.Value) (s *Source, id int) {
	s = &Source{Kind: kindWeb, Raw: v}
	v.Read(scan.Fields{
		{"index", &id},
		{"id", &id},
		{"url", &s.URL},
		{"title", &s.Title},
		{"date", &s.PublishedAt},
		{"snippet", &s.Content},
	})
	return s, id
}
