package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksGenerate recognises a response of Gemini's generateContent, or one chunk of streamGenerateContent, of the Gemini
// API and of Vertex AI; with snake_case names as some SDKs write it down; wrapped in a member response as batches do.
func looksGenerate(s *shape) bool {
	if s.val("candidates").IsArray() || s.val("promptFeedback").IsObject() || s.val("prompt_feedback").IsObject() {
		return true
	}
	if s.has("usageMetadata") && s.hasAny("modelVersion", "responseId") {
		return true
	}
	inner := s.val("response")
	return inner.Get("candidates").IsArray() || inner.Get("promptFeedback").IsObject()
}

// generate reads Gemini's generateContent.
//
// All visible text of a candidate is one part, whatever parts it came in: each chunk of a stream holds a piece of the
// same part as its parts[0], and the grounding counts bytes over all of it. Grounding metadata may come with any chunk,
// whole or empty, and may be missing from the last one, so the last value of each field that said something is kept
// until the candidate ends.
type generate struct {
	out
	candidates map[int]*candidate
	order      []*candidate
	once       onceSet
	id         string
	model      string
	created    string
	late       bool // thoughts may say behind their text that they are thoughts

	hot   template   // the chunks that hold nothing but a piece of text
	fixed int        // so many bytes of the template's tail must be the same; in those after them numbers may differ
	cand  *candidate // whose text the template's is
}

func newGenerate(c *Config) Parser {
	thinking := pick(pick(c.Request, "generationConfig", "generation_config"), "thinkingConfig", "thinking_config")
	return &generate{
		out: out{emit: c.Emit}, candidates: map[int]*candidate{}, once: onceSet{},
		late: pick(thinking, "includeThoughts", "include_thoughts").IsTrue(),
	}
}

// onceSet remembers what need not be said twice.
type onceSet map[string]bool

// first reports whether key comes for the first time.
func (s onceSet) first(key string) bool {
	if s[key] {
		return false
	}
	s[key] = true
	return true
}

// candidate is one of the alternative answers.
type candidate struct {
	part     Part
	prefix   string // of the keys of its sources and citations
	length   int    // bytes of visible text so far
	hidden   int    // bytes of thoughts so far
	last     partSort
	index    int         // of the last part, a part that goes on over several chunks counted once
	parts    []partStart // the visible ones
	calls    bool        // it called a function
	finished bool
	grounding
}

// partSort says whether a part of a candidate belongs to the answer's text.
type partSort uint8

const (
	noPart partSort = iota
	visiblePart
	hiddenPart
)

// partStart is where in a candidate's text a part begins, and how many bytes of thoughts come before it.
type partStart struct{ index, start, hidden int }

// next counts a part that stands at place i of its document.
func (c *candidate) next(i int, sort partSort) {
	if i == 0 && c.last == sort {
		return // the part goes on
	}
	if c.last != noPart {
		c.index++
	}
	c.last = sort
	if sort == visiblePart {
		c.parts = append(c.parts, partStart{c.index, c.length, c.hidden})
	}
}

func (g *generate) Parse(_ []byte, doc scan.Value) bool {
	if content, ok := g.match(doc); ok {
		g.piece(g.cand, 0, content)
		return true
	}
	if !doc.IsArray() {
		return g.document(doc, true)
	}
	known := false
	for a := scan.Elements(doc); a.Next(); {
		known = g.document(a.Val, true) || known
	}
	return known
}

// piece says the text of the visible part that stands at place i of its document.
func (g *generate) piece(c *candidate, i int, content []byte) {
	c.next(i, visiblePart)
	g.raw(c.part, content)
	c.length += len(g.said.Text)
}

// generated is one document, its members found but not read.
type generated struct{ candidates, feedback, usage, err, inner scan.Value }

func (g *generate) document(doc scan.Value, wrapped bool) bool {
	var r generated
	known := false
	for o := scan.Members(doc); o.Next(); {
		known = g.member(&r, &o) || known
	}
	if r.inner.IsObject() && wrapped {
		return g.document(r.inner, false) || known
	}
	if !blank(r.err) {
		g.failure(doc)
		g.finish(0, FinishError)
	}
	g.feedback(r.feedback)
	if !r.candidates.IsNull() && !r.candidates.IsArray() {
		g.issue(IssueWrongType, "candidates", r.candidates)
	}
	i, finished := 0, false
	var text scan.Value
	for a := scan.Elements(r.candidates); a.Next(); i++ {
		d := g.candidate(i, a.Val)
		finished = finished || d.finished
		if text = nil; i == 0 && d.plain {
			text = d.text
		}
	}
	if text != nil {
		g.learn(doc, text, r.usage)
	}
	if finished {
		g.meta("usageMetadata", r.usage)
		g.checkEnd()
	}
	return known
}

// member files one member of a document and reports whether it is known.
func (g *generate) member(r *generated, o *scan.Object) bool {
	switch string(o.Key) {
	case "candidates":
		r.candidates = o.Val
	case "promptFeedback", "prompt_feedback":
		r.feedback = o.Val
	case "usageMetadata", "usage_metadata":
		r.usage = o.Val
	case "error":
		r.err = o.Val
	case "response":
		r.inner = o.Val
	case "responseId", "response_id":
		g.headOnce(&g.id, HeadID, o.Val)
	case "modelVersion", "model_version":
		g.headOnce(&g.model, HeadModel, o.Val)
	case "createTime", "create_time":
		g.headOnce(&g.created, HeadCreated, o.Val)
	default:
		return false
	}
	return true
}

// headOnce says a head field that every chunk repeats when it is new.
func (g *generate) headOnce(last *string, field string, v scan.Value) {
	if s := v.Content(); string(s) != *last {
		*last = string(s)
		g.head(field, v)
	}
}

// feedback reads why a prompt was refused. A refused prompt has no candidates.
func (g *generate) feedback(v scan.Value) {
	reason := pick(v, "blockReason", "block_reason").Text()
	if reason == "" || reason == "BLOCK_REASON_UNSPECIFIED" || reason == "0" {
		return
	}
	g.meta("promptFeedback", v)
	g.finish(0, FinishFilter)
	g.endHere()
}

// digest is what a candidate's document turned out to hold.
type digest struct {
	text     scan.Value // of its last visible part
	visible  int        // how many visible parts
	hidden   int        // how many other parts
	plain    bool       // it holds one piece of visible text and nothing else that matters
	finished bool
}

// candidate reads one element of candidates.
func (g *generate) candidate(i int, v scan.Value) digest {
	var index, content, finish scan.Value
	var grounding, urls, citations scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "index":
			index = o.Val
		case "content":
			content = o.Val
		case "finishReason", "finish_reason":
			finish = o.Val
		case "groundingMetadata", "grounding_metadata":
			grounding = o.Val
		case "urlContextMetadata", "url_context_metadata":
			urls = o.Val
		case "citationMetadata", "citation_metadata":
			citations = o.Val
		case "finishMessage", "finish_message":
			g.meta("finishMessage", o.Val)
		}
	}
	if index == nil && len(g.order) > 1 && v.Cut() {
		return digest{} // it is not known whose text it is
	}
	if n, ok := g.index("candidates.index", index); ok {
		i = n
	}
	c := g.at(i)
	d := g.content(c, content)
	g.ground(c, grounding)
	c.keep(fieldURLs, pick(urls, "urlMetadata", "url_metadata"))
	g.recite(c, citations)
	reason := finish.Text()
	d.finished = reason != "" && reason != "FINISH_REASON_UNSPECIFIED" && reason != "0"
	if d.finished {
		g.close(c)
		g.finishAs(c, reason)
	}
	d.plain = d.visible == 1 && d.hidden == 0 && !d.finished &&
		blank(grounding) && blank(urls) && blank(citations)
	return d
}

// at returns the candidate with an index.
func (g *generate) at(index int) *candidate {
	c := g.candidates[index]
	if c == nil {
		c = &candidate{part: Part{Candidate: index}}
		if index > 0 {
			c.prefix = numbered("candidate:", index) + "/"
		}
		g.candidates[index] = c
		g.order = append(g.order, c)
	}
	return c
}

// content reads the parts of a candidate.
func (g *generate) content(c *candidate, v scan.Value) (d digest) {
	parts := v.Get("parts")
	if !parts.IsNull() && !parts.IsArray() {
		g.issue(IssueWrongType, "content.parts", parts)
	}
	i := 0
	for a := scan.Elements(parts); a.Next(); i++ {
		text, hidden := g.partOf(c, a.Val)
		if text.IsNull() || hidden {
			c.next(i, hiddenPart)
			c.hidden += len(g.unescape(text.Content()))
			d.hidden++
			continue
		}
		if !text.IsString() {
			g.issue(IssueWrongType, "parts.text", text)
			d.hidden++
			continue
		}
		g.piece(c, i, text.Content())
		d.text = text
		d.visible++
	}
	return d
}

// partOf reads one part. Everything but text and function calls (images, code and its results, the server's own tools)
// has no place in the answer's text. Hidden is a thought, and what a document breaks off in where it could yet have
// become one.
func (g *generate) partOf(c *candidate, v scan.Value) (text scan.Value, hidden bool) {
	var thought scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "text":
			text = o.Val
		case "thought":
			thought = o.Val
			g.late = g.late || text != nil && thought.IsTrue()
		case "functionCall", "function_call":
			// A call whose arguments are streamed is named by its first piece only.
			if name := o.Val.Get("name").Str(); name != "" {
				g.tool(o.Val.Get("id").Str(), name)
				c.calls = true
			}
		}
	}
	if text == nil || thought != nil || !v.Cut() {
		return text, thought.IsTrue()
	}
	return text, g.late || bytes.Contains(v, []byte(`"thought"`))
}

// finishAs says why a candidate ended. Of the names that SDKs write ("FinishReason.STOP", "stop") the last word counts,
// of the numbers of the protocol buffers the oldest are known.
func (g *generate) finishAs(c *candidate, reason string) {
	c.finished = true
	word := strings.ToUpper(reason[strings.LastIndexByte(reason, '.')+1:])
	var neutral string
	switch word {
	case "STOP", "1":
		neutral = FinishStop
		if c.calls {
			neutral = FinishTool
		}
	case "MAX_TOKENS", "2":
		neutral = FinishLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "3", "4":
		neutral = FinishFilter
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
		"MISSING_THOUGHT_SIGNATURE", "NO_IMAGE":
		neutral = FinishError
	case "OTHER", "5":
		return
	default:
		if !strings.HasPrefix(word, "IMAGE_") {
			g.issue(IssueUnknownType, "finishReason "+clip(reason), nil)
			return
		}
		neutral = FinishFilter
	}
	g.finish(c.part.Candidate, neutral)
}

// checkEnd says the end where every candidate has ended. Some servers end a candidate with every chunk, and some send
// the grounding after it, so that only the end of the input confirms an end.
func (g *generate) checkEnd() {
	for _, c := range g.order {
		if !c.finished {
			return
		}
	}
	g.endHere()
}

func (g *generate) endHere() { g.say(Op{Kind: End, Open: true}) }

func (g *generate) Close() {
	for _, c := range g.order {
		g.close(c)
	}
}

// learn remembers what stands around the text of a chunk. The counts of tokens differ from chunk to chunk: where they
// stand after the candidates, numbers from there on are not compared.
func (g *generate) learn(doc, text, usage scan.Value) {
	g.cand = g.order[0]
	g.hot.learn(doc, text, "", g.cand.part, true)
	g.fixed = len(g.hot.tail)
	if len(g.order) > 1 {
		g.hot.head = g.hot.head[:0] // with several candidates it is not worth it
		return
	}
	if at, tail := cap(doc)-cap(usage), len(doc)-len(g.hot.tail); usage != nil && at >= tail {
		g.fixed = at - tail
	}
}

// match returns the text of a chunk that is like the learned one.
func (g *generate) match(doc []byte) ([]byte, bool) {
	content, ok := g.hot.match(doc)
	if !ok {
		return nil, false
	}
	tail, want := doc[len(g.hot.head)+len(content):], g.hot.tail
	if len(tail) < g.fixed || !bytes.Equal(tail[:g.fixed], want[:g.fixed]) {
		return nil, false
	}
	return content, sameButNumbers(tail[g.fixed:], want[g.fixed:])
}

// sameButNumbers reports whether a and b are equal but for the digits of their numbers.
func sameButNumbers(a, b []byte) bool {
	for {
		n := commonPrefix(a, b)
		inNumber := n > 0 && digits(a[n-1:n], 0) == 1
		a, b = a[n:], b[n:]
		if len(a) == 0 && len(b) == 0 {
			return true
		}
		i, j := digits(a, 0), digits(b, 0)
		if i+j == 0 || !inNumber && (i == 0 || j == 0) {
			return false
		}
		a, b = a[i:], b[j:]
	}
}

// commonPrefix returns how many bytes a and b begin with are the same.
func commonPrefix(a, b []byte) int {
	i, n := 0, min(len(a), len(b))
	for i+16 <= n && string(a[i:i+16]) == string(b[i:i+16]) {
		i += 16
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// pick returns the first member that has one of the names: a field in camelCase and in snake_case.
func pick(v scan.Value, names ...string) scan.Value {
	for o := scan.Members(v); o.Next(); {
		if slices.Contains(names, string(o.Key)) {
			return o.Val
		}
	}
	return nil
}

// blank reports whether v says nothing: null, "", {} or [].
func blank(v scan.Value) bool {
	switch {
	case v.IsNull():
		return true
	case v.IsString():
		return len(v.Content()) == 0
	case v.IsObject():
		o := scan.Members(v)
		return !o.Next()
	case v.IsArray():
		a := scan.Elements(v)
		return !a.Next()
	}
	return false
}
