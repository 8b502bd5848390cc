package wire

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksResponses recognises the Responses API of OpenAI and of those who copy it: Azure, DeepSeek, Perplexity's agents.
func looksResponses(s *shape) bool { return isResponses(s) && !isGrok(responseModel(s)) }

// looksXAIResponses recognises the Responses API of xAI, which only the model's name tells from OpenAI's.
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

// responses reads the Responses API. A stream says everything up to four times: in deltas, when a part is done, when
// its item is done, and in the response at its end. What comes again with the same bytes is recognised by its hash and
// not walked again; what comes again with other bytes replaces what was said.
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
	waiting  bool // the last item is a call that the client has to answer
	refused  bool
	answered bool // some text is no refusal
}

// outMessage is what was said of one message so far.
type outMessage struct {
	ordinal int // counts messages, so that it is the same in a body and in a stream
	bound   bool
	kind    PartKind
	parts   map[int]*outPart
}

// outPart is what was said of one content part so far.
type outPart struct {
	Part
	begun, ended bool
	whole        uint64         // hash of its JSON, once done
	text         uint64         // hash of its text, once done
	notes        map[int]uint64 // citations said, by index: the hash of their JSON
}

func newResponses(c *Config) Parser {
	return &responses{
		out: out{emit: c.Emit}, repeats: repeats{seed: maphash.MakeSeed()},
		byIndex: map[int]*outMessage{}, items: map[string]uint64{}, unknowns: map[string]bool{},
	}
}

// Close has nothing left to say.
func (p *responses) Close() {}

// Parse reads an event, or a whole response.
func (p *responses) Parse(event []byte, doc scan.Value) bool {
	if content, ok := p.delta.match(doc); ok {
		if n := p.delta.number(doc); n < 0 || p.fresh(n, content, false) {
			p.raw(p.delta.part, content)
		}
		return true
	}
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
		p.textDone(doc, string(kind) == "response.refusal.done")
	case "response.output_text.annotation.added", "response.output_text_annotation.added":
		p.annotationAdded(doc)
	case "response.content_part.done":
		p.partDone(doc)
	case "response.output_item.added", "response.output_item.done":
		p.itemEvent(doc, string(kind) == "response.output_item.done")
	case "response.created", "response.completed", "response.incomplete", "response.failed", "response.cancelled",
		"response.canceled":
		p.response(openMember(doc, "response"), string(kind[len("response."):]))
	case "error":
		p.lastError(doc)
	case "response.reasoning.search_queries", "response.reasoning.search_results",
		"response.reasoning.fetch_url_results":
		p.searched(doc)
	case "response":
		p.response(doc, "")
	default:
		return p.otherEvent(kind, doc)
	}
	return true
}

// otherEvent is for events that say nothing about text and sources, and for unknown ones.
func (p *responses) otherEvent(kind []byte, doc scan.Value) bool {
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
		p.unknown("event "+clip(string(kind)), doc)
	}
	return true
}

// eventPlace is the members that say which part an event is about.
type eventPlace struct {
	output, content, sequence, note int // -1: not said
	value                           scan.Value
	late                            bool // one of them stands behind the value
	counted                         bool // the sequence number stands before the value
}

// placeOf reads an event's place and one more member.
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
	if e.counted || e.sequence < 0 { // else each has to be walked, or one that came twice would not show
		p.delta.learn(doc, e.value, "sequence_number", part.Part, !e.late)
	}
}

func (p *responses) textDone(doc scan.Value, refusal bool) {
	member := "text"
	if refusal {
		member = "refusal"
	}
	e := p.placeOf(doc, member)
	p.wholeText(p.part(p.message(e.output), e.content, refusal), e.value)
}

func (p *responses) partDone(doc scan.Value) {
	e := p.placeOf(doc, "part")
	p.contentPart(p.message(e.output), e.content, e.value, true)
}

func (p *responses) annotationAdded(doc scan.Value) {
	e := p.placeOf(doc, "annotation")
	part := p.part(p.message(e.output), e.content, false)
	if e.note < 0 {
		e.note = len(part.notes)
	}
	p.annotation(part, e.note, e.value)
}

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
	m.parts[content] = part
	return part
}

// wholeText says what a part's text is, unless that was said before.
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

// contentPart reads a part with its text and all its citations. Done says that what it does not list any more was taken
// back.
func (p *responses) contentPart(m *outMessage, content int, v scan.Value, done bool) {
	known := m.parts[max(content, 0)]
	hash := p.repeats.hash(v)
	if known != nil && known.whole == hash {
		return
	}
	var kind []byte
	var text, refusal, annotations scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			kind = o.Val.Bytes()
		case "text":
			text = o.Val
		case "refusal":
			refusal = o.Val
		case "annotations":
			annotations = o.Val
		}
	}
	switch string(kind) {
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
		p.unknown("content part "+clip(string(kind)), v)
	}
}

func (p *responses) endPart(part *outPart, hash uint64) {
	part.whole = hash
	if !part.ended && part.begun {
		part.ended = true
		p.say(Op{Kind: PartEnd, Part: part.Part})
	}
}

// annotations reads the whole list of a part's citations.
func (p *responses) annotations(part *outPart, list scan.Value, done bool) {
	if !list.IsArray() {
		if !list.IsNull() {
			p.issue(IssueWrongType, "annotations", list)
		}
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
			p.say(Op{Kind: Withdraw, Name: noteKey(part.Part, index)})
			delete(part.notes, index)
		}
	}
}

// fresh reports whether a delta is not the repetition of one that was read, and says so if it is.
func (p *responses) fresh(sequence int, content []byte, cut bool) bool {
	if p.repeats.fresh(sequence, content, cut) {
		return true
	}
	p.issue(IssueDuplicateEvent, numbered("sequence_number ", sequence), nil)
	return false
}

// repeats finds deltas that came twice, as after a reconnect. The number and the text must both be the same, and
// numbers must count at all: some proxies number anew from 0, or everything 0.
type repeats struct {
	seed     maphash.Seed
	seen     []uint64 // the hash of the text by sequence number; 0: not seen
	distinct int      // numbers seen
	faulty   bool     // one number stood for two events: numbers tell nothing
}

// maxSequence bounds what numbers cost.
const maxSequence = 1 << 17

func (r *repeats) hash(b []byte) uint64 { return max(maphash.Bytes(r.seed, b), 1) }

// fresh reports whether a delta is new. Of a cut one only the number can be compared.
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

// number returns the counter of a document that the template matches, or -1.
func (t *template) number(doc []byte) int {
	i := len(t.head)
	if !t.counter || digits(doc, i) == i {
		return -1
	}
	if n, ok := scan.Value(doc[i:digits(doc, i)]).Int(); ok {
		return n
	}
	return -1
}

// openMember returns an object member of doc without looking for its end, since everything in it will be walked anyway:
// behind it stands what doc has left. Where the member is not found at once, it is searched in the ordinary way.
func openMember(doc scan.Value, name string) scan.Value {
	key := `"` + name + `":{`
	if i := bytes.Index(doc[:min(len(doc), 256)], []byte(key)); i >= 0 {
		return doc[i+len(key)-1:]
	}
	return doc.Get(name)
}
