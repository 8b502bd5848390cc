package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// looksGenerate recognises a response of Gemini's generateContent, or one chunk of streamGenerateContent, of the Gemini
// API and of Vertex AI, also with snake_case names, which some SDKs write, or inside a member response, as in batches.
func looksGenerate(s *shape) bool {
	if s.val("candidates").IsArray() || s.val("promptFeedback").IsObject() ||
		s.has("usageMetadata") && s.hasAny("modelVersion", "responseId") {
		return true
	}
	inner := s.val("response")
	return inner.Get("candidates").IsArray() || inner.Get("promptFeedback").IsObject()
}

// generate reads Gemini's generateContent.
//
// All visible text of a candidate is one part, whatever parts it came in: each chunk of a stream has a piece of the
// same part as its parts[0], and the grounding counts bytes over all of it. Grounding metadata may come with any chunk,
// whole or empty, and may be missing from the last one, so the last non-empty value of each field is kept until the
// candidate ends.
type generate struct {
	out
	candidates map[int]*candidate
	order      []*candidate
	once       onceSet
	id         string
	model      string
	created    string
	late       bool         // thoughts may be marked as such after their text
	seed       maphash.Seed // of the hashes of chunks

	chunks template   // of chunks with nothing but a piece of text
	cand   *candidate // which the template's text belongs to
}

func newGenerate(c *Config) Parser {
	thinking := c.Request.Path("generationConfig", "thinkingConfig")
	return &generate{
		out: out{Config: c}, candidates: map[int]*candidate{}, once: onceSet{},
		late: thinking.Get("includeThoughts").IsTrue(), seed: maphash.MakeSeed(),
	}
}

// onceSet remembers what need not be emitted twice.
type onceSet map[string]bool

// first reports whether key is new.
func (s onceSet) first(key string) bool {
	const most = 4096 // after these, repetitions are emitted, which the fold recognises
	if s[key] {
		return false
	}
	if len(s) < most {
		s[key] = true
	}
	return true
}

// candidate is the state of one of the alternative answers.
type candidate struct {
	part     Part
	prefix   string // of the keys of its sources and citations
	length   int    // bytes of visible text so far
	hidden   int    // bytes of thoughts so far
	last     partSort
	index    int         // of the last part; a part that spans several chunks counts once
	parts    []partStart // the visible ones
	calls    bool        // it called a function
	finished bool
	grounding
}

// partSort is whether a part of a candidate belongs to the answer's text.
type partSort uint8

const (
	noPart partSort = iota
	visiblePart
	hiddenPart
)

// partStart is where in a candidate's text a part begins, and how many bytes of thoughts come before it.
type partStart struct{ index, start, hidden int }

// next counts a part at index i of its document.
func (g *generate) next(c *candidate, i int, sort partSort) {
	if i == 0 && c.last == sort {
		return // the part continues
	}
	if c.last != noPart {
		c.index++
	}
	c.last = sort
	if sort == visiblePart && g.Keep(2*size[partStart]()) {
		c.parts = append(c.parts, partStart{c.index, c.length, c.hidden})
	}
}

func (g *generate) Parse(_ []byte, doc scan.Value) bool {
	if content, _, ok := g.chunks.match(doc); ok {
		g.addPiece(g.cand, 0, content)
		return true
	}
	g.unread(doc, generateReads)
	return eachDocument(doc, func(doc scan.Value) bool { return g.document(doc, true) })
}

// eachDocument reads a document, or each of an array of them, and reports whether any was recognised.
func eachDocument(doc scan.Value, read func(scan.Value) bool) bool {
	if !doc.IsArray() {
		return read(doc)
	}
	known := false
	for a := scan.Elements(doc); a.Next(); {
		known = read(a.Val) || known
	}
	return known
}

// addPiece emits the text of the visible part at index i of its document.
func (g *generate) addPiece(c *candidate, i int, content []byte) {
	g.next(c, i, visiblePart)
	g.raw(c.part, content)
	c.length += len(g.textOp.Text)
}

// document reads one document of a response. Wrapped allows another document in it.
func (g *generate) document(doc scan.Value, wrapped bool) bool {
	var candidates, feedback, usage, failure, inner, id, model, created scan.Value
	doc.Read(scan.Fields{
		{"candidates", &candidates},
		{"promptFeedback", &feedback},
		{"usageMetadata", &usage},
		{"error", &failure},
		{"response", &inner},
		{"responseId", &id},
		{"modelVersion", &model},
		{"createTime", &created},
	})
	g.headOnce(&g.id, HeadID, id)
	g.headOnce(&g.model, HeadModel, model)
	g.headOnce(&g.created, HeadCreated, created)
	if inner.IsObject() && wrapped {
		g.document(inner, false)
		return true
	}
	if !blank(failure) {
		g.failure(doc)
		g.finish(0, finishError)
	}
	// A refused prompt has no candidates.
	if why := feedback.Get("blockReason").Text(); why != "" && why != "BLOCK_REASON_UNSPECIFIED" && why != "0" {
		g.meta("promptFeedback", feedback)
		g.finish(0, finishFilter)
		g.endHere()
	}
	g.wantList("candidates", candidates)
	i, finished := 0, false
	var text scan.Value
	for a := scan.Elements(candidates); a.Next(); i++ {
		d := g.candidate(i, a.Val)
		finished = finished || d.finished
		if text = nil; i == 0 && d.plain {
			text = d.text
		}
	}
	if text != nil {
		g.cand = g.order[0]
		// The counts of tokens differ from chunk to chunk.
		if g.chunks.learn(doc, text, g.cand.part, variation{numbers: usage}); len(g.order) > 1 {
			g.chunks.forget() // with several candidates it is not worth it
		}
	}
	if finished {
		g.meta("usageMetadata", usage)
		g.checkEnd()
	}
	for _, v := range []scan.Value{candidates, feedback, usage, failure, inner, id, model, created} {
		if v != nil {
			return true
		}
	}
	return false
}

// headOnce emits a head field, which every chunk repeats, if it is new.
func (g *generate) headOnce(last *string, field string, v scan.Value) {
	if s := v.Content(); v != nil && string(s) != *last {
		*last = string(s)
		g.head(field, v)
	}
}

// digest sums up a candidate's document.
type digest struct {
	text     scan.Value // of its last visible part
	visible  int        // how many visible parts
	hidden   int        // how many other parts
	plain    bool       // it has one piece of visible text and nothing else that matters
	finished bool
}

// candidate reads one element of candidates.
func (g *generate) candidate(i int, v scan.Value) digest {
	var index, content, finish, message, grounding, urls, citations scan.Value
	v.Read(scan.Fields{
		{"index", &index},
		{"content", &content},
		{"finishReason", &finish},
		{"finishMessage", &message},
		{"groundingMetadata", &grounding},
		{"urlContextMetadata", &urls},
		{"citationMetadata", &citations},
	})
	g.meta("finishMessage", message)
	if index == nil && len(g.order) > 1 && v.Cut() {
		return digest{} // it is unknown whose text it is
	}
	if n, ok := g.index("candidates.index", index); ok {
		i = n
	}
	c := g.at(i)
	d := g.content(c, content)
	g.keepGrounding(c, grounding)
	c.setField(fieldURLs, urls.Get("urlMetadata"))
	c.recite(g, citations)
	reason := finish.Text()
	d.finished = reason != "" && reason != "FINISH_REASON_UNSPECIFIED" && reason != "0"
	if d.finished {
		g.emitKept(c)
		g.finishAs(c, reason)
	}
	d.plain = d.visible == 1 && d.hidden == 0 && !d.finished &&
		blank(grounding) && blank(urls) && blank(citations)
	return d
}

// recite keeps what Google found to repeat known texts. Recitations of earlier chunks that a chunk repeats add nothing,
// but an entry that comes twice in one list is two.
func (c *candidate) recite(g *generate, citations scan.Value) {
	list := citations.Get("citationSources", "citations")
	before := len(c.recited)
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		if !c.recitedSeen[string(a.Val)] && g.Keep(2*size[scan.Value]()+entrySize+2*len(a.Val)) {
			c.recited = append(c.recited, bytes.Clone(a.Val))
		}
	}
	if len(c.recited) > before && c.recitedSeen == nil {
		c.recitedSeen = map[string]bool{}
	}
	for _, r := range c.recited[before:] {
		c.recitedSeen[string(r)] = true
	}
}

// at returns the candidate with an index.
func (g *generate) at(index int) *candidate {
	c := g.candidates[index]
	if c == nil {
		c = &candidate{part: Part{Candidate: index}}
		if index > 0 {
			c.prefix = numbered("candidate:", index) + "/"
		}
		if len(g.order) > 0 && !g.Keep(entrySize+2*size[candidate]()) {
			return c // it is emitted, but not remembered
		}
		g.candidates[index] = c
		g.order = append(g.order, c)
	}
	return c
}

// content reads the parts of a candidate.
func (g *generate) content(c *candidate, v scan.Value) (d digest) {
	parts := v.Get("parts")
	g.wantList("content.parts", parts)
	i := 0
	for a := scan.Elements(parts); a.Next(); i++ {
		text, hidden := g.partOf(c, a.Val)
		if text.IsNull() || hidden {
			if hidden && !a.Val.Cut() {
				g.think(c.part, text)
			}
			g.next(c, i, hiddenPart)
			c.hidden += len(g.unescape(text.Content()))
			d.hidden++
			continue
		}
		if !text.IsString() {
			g.issue(IssueWrongType, "parts.text", text)
			d.hidden++
			continue
		}
		g.addPiece(c, i, text.Content())
		d.text = text
		d.visible++
	}
	return d
}

// partOf reads one part. Everything but text and function calls (images, code and its results, the server's own tools)
// has no place in the answer's text. Hidden reports a thought, or text after which the document breaks off, so that it
// may be one.
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
			// Of a call whose arguments are streamed, only the first piece has the name.
			if name := o.Val.Get("name").Str(); name != "" {
				id := o.Val.Get("id").Str()
				g.tool(id, name)
				if args := o.Val.Get("args"); args.IsObject() {
					g.toolInput(id, args)
				}
				c.calls = true
			}
		default:
			g.serverPart(string(o.Key), o.Val)
		}
	}
	if text == nil || thought != nil || !v.Cut() {
		return text, thought.IsTrue()
	}
	return text, g.late || bytes.Contains(v, []byte(`"thought"`))
}

// serverPart emits what a part contains of a tool that the server runs: code that the model wrote, and searches.
func (g *generate) serverPart(name string, v scan.Value) {
	const code = "code_execution"
	switch id := v.Get("id").Str(); name {
	case "executableCode", "executable_code":
		g.serverTool(id, code, true)
		g.toolInput(id, v)
	case "codeExecutionResult", "code_execution_result":
		failed := ""
		if outcome := v.Get("outcome").Str(); outcome != "" && outcome != "OUTCOME_OK" {
			failed = outcome
			if words := v.Get("output").Str(); words != "" {
				failed += ": " + words
			}
		}
		g.toolOutput(id, v, failed)
	case "toolCall", "tool_call":
		if tool := strings.ToLower(firstText(v, "toolType", "tool_type")); tool != "" {
			g.serverTool(id, tool, true)
			g.toolInput(id, v.Get("args"))
		}
	case "toolResponse", "tool_response":
		g.toolOutput(id, v.Get("response"), "")
	}
}

// finishAs emits why a candidate ended. Of the names that SDKs write ("FinishReason.STOP", "stop") the last word
// counts; of the numbers of the protocol buffers, the oldest are known.
func (g *generate) finishAs(c *candidate, reason string) {
	c.finished = true
	word := strings.ToUpper(reason[strings.LastIndexByte(reason, '.')+1:])
	neutral, known := geminiFinish[word]
	switch {
	case neutral == finishStop && c.calls:
		neutral = finishTool
	case !known && strings.HasPrefix(word, "IMAGE_"):
		neutral = finishFilter
	case !known:
		g.issue(IssueUnknownType, "finishReason "+shorten(reason), nil)
	}
	if neutral != "" {
		g.finish(c.part.Candidate, neutral)
	}
}

var geminiFinish = map[string]string{
	"STOP": finishStop, "1": finishStop, "MAX_TOKENS": finishLength, "2": finishLength,
	"SAFETY": finishFilter, "3": finishFilter, "RECITATION": finishFilter, "4": finishFilter, "BLOCKLIST": finishFilter,
	"PROHIBITED_CONTENT": finishFilter, "SPII": finishFilter, "LANGUAGE": finishFilter, "MODEL_ARMOR": finishFilter,
	"MALFORMED_FUNCTION_CALL": finishError, "UNEXPECTED_TOOL_CALL": finishError, "TOO_MANY_TOOL_CALLS": finishError,
	"MALFORMED_RESPONSE": finishError, "MISSING_THOUGHT_SIGNATURE": finishError, "NO_IMAGE": finishError,
	"OTHER": "", "5": "", // no reason
}

// checkEnd emits the end if every candidate has ended. Some servers end a candidate with every chunk, and some send the
// grounding after it, so only the end of the input confirms the end.
func (g *generate) checkEnd() {
	for _, c := range g.order {
		if !c.finished {
			return
		}
	}
	g.endHere()
}

func (g *generate) endHere() { g.emit(Op{Kind: End, Open: true}) }

func (g *generate) Close() {
	for _, c := range g.order {
		g.emitKept(c)
	}
}

// Whole implements [Body].
func (g *generate) Whole() bool {
	return slices.ContainsFunc(g.order, func(c *candidate) bool { return c.length > 0 })
}

// groundingField names a field of the metadata that is kept until the candidate ends.
type groundingField int

const (
	fieldChunks groundingField = iota
	fieldSupports
	fieldWebQueries
	fieldImageQueries
	fieldRetrievalQueries
	fieldEntryPoint
	fieldURLs
	groundingFields
)

// maxShifts is how many parts a support is tried at. Real answers have a handful of parts.
const maxShifts = 32

// grounding is what is known about a candidate's sources and citations.
type grounding struct {
	fields   [groundingFields]scan.Value // the last non-empty values, copied
	dirty    bool                        // fields changed since they were emitted
	chunks   []emittedChunk              // as last emitted
	round    int                         // how often fields were emitted
	origins  map[string]chunkOrigin      // of all chunks that were emitted, by key
	supports []emittedSupport            // all that were emitted as citations, of any list
	known    map[string]int              // their indices there, by what they support
	listed   []int                       // the indices there of those of the last list
	shifts   []int

	// Unlike grounding, each chunk of a stream brings only the recitations found since the last.
	recited        []scan.Value    // copied
	recitedEmitted int             // how many of them were emitted
	recitedSeen    map[string]bool // the JSON of those of earlier chunks

	supportsEmitted bool // the supports were emitted with their chunks, which have been replaced since
	cut             bool // the input breaks off in the metadata
}

// chunkOrigin tells whether a chunk is the same as one of another list.
type chunkOrigin struct {
	url  string
	hash uint64 // of its JSON
}

// origins is a set of what chunks are recognised by: their keys, addresses and JSON.
type origins map[chunkName]bool

// chunkName is one thing that a chunk is recognised by; the other fields are zero.
type chunkName struct {
	key string
	chunkOrigin
}

// add adds everything that a chunk is recognised by.
func (o origins) add(key string, of chunkOrigin) {
	if o[chunkName{key: key}] {
		return
	}
	o[chunkName{key: key}] = true
	o[chunkName{chunkOrigin: chunkOrigin{hash: of.hash}}] = true
	if of.url != "" {
		o[chunkName{chunkOrigin: chunkOrigin{url: of.url}}] = true
	}
}

// has reports whether a chunk is one of those that were added.
func (o origins) has(key string, of chunkOrigin) bool {
	return o[chunkName{key: key}] || o[chunkName{chunkOrigin: chunkOrigin{hash: of.hash}}] ||
		of.url != "" && o[chunkName{chunkOrigin: chunkOrigin{url: of.url}}]
}

// emittedSupport is one grounding support as it was emitted.
type emittedSupport struct {
	key   string
	refs  []Ref
	own   int // how many of refs are of the last list that has it; those after them are of former lists
	round int
}

// emittedChunk is one grounding chunk as it was emitted. Supports name it by its index in the list.
type emittedChunk struct {
	key     string
	raw     scan.Value
	quote   string // the retrieved text of the source
	locator Locator
}

// setField stores a field if it is not empty. It does not overwrite the former value's memory, which may still be in
// use.
func (gr *grounding) setField(f groundingField, v scan.Value) {
	if !blank(v) && !bytes.Equal(gr.fields[f], v) {
		gr.fields[f] = bytes.Clone(v)
		gr.dirty = true
	}
}

// groundingNames are the names of the fields in groundingMetadata.
var groundingNames = [...]string{
	fieldChunks: "groundingChunks", fieldSupports: "groundingSupports", fieldWebQueries: "webSearchQueries",
	fieldImageQueries: "imageSearchQueries", fieldRetrievalQueries: "retrievalQueries",
	fieldEntryPoint: "searchEntryPoint",
}

// keepGrounding keeps a candidate's groundingMetadata. The indices of supports refer to the last list of chunks before
// or with them. So before a new list of either replaces the former, that is emitted.
func (g *generate) keepGrounding(c *candidate, v scan.Value) {
	chunks, supports := v.Get(groundingNames[fieldChunks]), v.Get(groundingNames[fieldSupports])
	c.cut = c.cut || v.Cut()
	g.wantList(groundingNames[fieldChunks], chunks)
	g.wantList(groundingNames[fieldSupports], supports)
	if blank(chunks) && v.Cut() {
		supports = nil // the chunks that they refer to may be missing
	}
	replaces := func(f groundingField, v scan.Value) bool {
		return !blank(v) && !blank(c.fields[f]) && !bytes.Equal(v, c.fields[f])
	}
	if replaces(fieldChunks, chunks) || replaces(fieldSupports, supports) {
		if c.dirty {
			g.sources(c)
		}
		if c.dirty && !c.supportsEmitted {
			g.cites(c)
		}
		c.supportsEmitted = true
		c.round++
	}
	if !blank(supports) {
		c.supportsEmitted = false
	}
	for o := scan.Members(v); o.Next(); {
		f := slices.IndexFunc(groundingNames[:], func(name string) bool { return scan.IsName(o.Key, name) })
		switch {
		case groundingField(f) == fieldSupports:
			c.setField(fieldSupports, supports)
		case f >= 0:
			c.setField(groundingField(f), o.Val)
		case !blank(o.Val): // retrievalMetadata, googleMapsWidgetContextToken, sourceFlaggingUris …
			g.meta(c.prefix+string(o.Key), o.Val)
		}
	}
}

// emitKept emits what was kept of a candidate and not emitted yet.
func (g *generate) emitKept(c *candidate) {
	if c.dirty {
		c.dirty = false
		for _, f := range []groundingField{fieldWebQueries, fieldImageQueries, fieldRetrievalQueries} {
			g.queries(g.once, c.fields[f])
		}
		g.suggestions(g.once, c.fields[fieldEntryPoint].Get("renderedContent"))
		g.sources(c)
		for a := scan.Elements(c.fields[fieldURLs]); a.Next(); {
			g.fetched(g.once, a.Val.Get("retrievedUrl").Str(), a.Val.Get("urlRetrievalStatus").Text(), a.Val)
		}
		if !c.supportsEmitted {
			g.cites(c)
		}
		c.round++
	}
	for ; c.recitedEmitted < len(c.recited); c.recitedEmitted++ {
		g.recitation(c, c.recitedEmitted, c.recited[c.recitedEmitted])
	}
}

// queries emits the searches of a list, each once.
func (o *out) queries(once onceSet, list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		if once.first("query:" + string(a.Val)) {
			o.query(a.Val)
		}
	}
}

// suggestions emits, once, the search suggestions that Google's terms require to be shown.
func (o *out) suggestions(once onceSet, html scan.Value) {
	if s := string(html.Bytes()); s != "" && once.first(s) {
		o.emit(Op{Kind: Display, Name: searchSuggestions, More: s})
	}
}

// searchSuggestions is the kind of display that Google's search grounding requires.
const searchSuggestions = "google-search-suggestions"

// sources emits the grounding chunks. Chunks that differ from those of a former list get other keys, so that they do
// not add to the wrong source.
func (g *generate) sources(c *candidate) {
	former := c.chunks
	c.chunks = nil
	for a := scan.Elements(c.fields[fieldChunks]); a.Next() && g.Keep(2*size[emittedChunk]()); {
		i := len(c.chunks)
		if i < len(former) && bytes.Equal(former[i].raw, a.Val) {
			c.chunks = append(c.chunks, former[i])
			continue
		}
		key := c.prefix + numbered("chunk:", i)
		if i < len(former) {
			key += numbered("~", c.round)
		}
		s, known := readChunk(a.Val)
		if s.Key = key; !known {
			g.unknown(numbered("grounding chunk ", i), a.Val)
		}
		g.source(s)
		c.chunks = append(c.chunks, emittedChunk{key, a.Val, s.Content, s.Locator})
		if g.Keep(entrySize + size[chunkOrigin]() + len(s.URL)) {
			if c.origins == nil {
				c.origins = map[string]chunkOrigin{}
			}
			c.origins[key] = chunkOrigin{s.URL, maphash.Bytes(g.seed, a.Val)}
		}
	}
}

// cites emits the supports. One that supports the same words as one of a former list is the same. Those of the list
// before that are missing from a list are kept, and so are their sources.
func (g *generate) cites(c *candidate) {
	// Offsets may also count from the beginning of each part, and with the thoughts before it.
	c.shifts = append(c.shifts[:0], 0)
	add := func(shift int) {
		if len(c.shifts) < maxShifts && !slices.Contains(c.shifts, shift) {
			c.shifts = append(c.shifts, shift)
		}
	}
	for _, p := range c.parts {
		add(p.start)
	}
	for _, p := range c.parts {
		add(-p.hidden)
	}
	if len(c.shifts) == 1 {
		c.shifts = nil
	}
	former, later := c.listed, len(c.supports) > 0
	c.listed = nil
	again := map[string]int{} // how often words are supported in this list
	i := 0
	for a := scan.Elements(c.fields[fieldSupports]); a.Next() && !a.Cut(); i++ {
		cite, ok := g.support(c, i, a.Val)
		if !ok {
			g.issue(IssueSourceless, cite.Key, a.Val)
			continue
		}
		words := fmt.Sprintf("%d %d %s", cite.Start, cite.End, cite.Quote)
		again[words]++
		words += numbered(" ", again[words])
		at, known := c.known[words]
		if known {
			g.repeat(c, &c.supports[at], cite)
		} else {
			if later {
				cite.Key += numbered("~", c.round)
			}
			at = len(c.supports)
			if g.Keep(2*size[emittedSupport]() + entrySize + len(words) + len(cite.Refs)*refSize) {
				if c.known == nil {
					c.known = map[string]int{}
				}
				c.known[words] = at
				c.supports = append(c.supports, emittedSupport{key: cite.Key, refs: cite.Refs, own: len(cite.Refs)})
			}
		}
		if at < len(c.supports) {
			c.supports[at].round = c.round
			c.listed = append(c.listed, at)
		}
		g.cite(cite)
	}
	for _, at := range former {
		if s := &c.supports[at]; s.round != c.round && !c.cut {
			g.issue(IssueNotRepeated, s.key, nil)
		}
	}
}

// repeat turns cite, whose words a former list supports as well, into the citation of that list. Sources that only the
// former list has for it are kept, as long as the citation has no more than maxRefs.
func (g *generate) repeat(c *candidate, former *emittedSupport, cite *Cite) {
	cite.Key = former.key
	own, present := len(cite.Refs), make(origins, 3*(len(cite.Refs)+len(former.refs)))
	for _, r := range cite.Refs {
		present.add(r.Source, c.origins[r.Source])
	}
	for i, r := range former.refs {
		was := c.origins[r.Source]
		if present.has(r.Source, was) {
			continue
		}
		if len(cite.Refs) >= maxRefs {
			g.issue(IssueLimit, refsOfCitation, nil)
			break
		}
		cite.Refs = append(cite.Refs, r)
		present.add(r.Source, was)
		if i < former.own { // the others were reported when a list first lacked them
			g.issue(IssueNotRepeated, former.key+" "+r.Source, nil)
		}
	}
	former.refs, former.own = cite.Refs, own
}

// support reads one element of groundingSupports. It returns false if the citation has no valid chunk.
func (g *generate) support(c *candidate, i int, v scan.Value) (*Cite, bool) {
	cite := &Cite{Key: c.prefix + numbered("support:", i), Part: c.part, Base: AnswerBase, Shifts: c.shifts}
	var segment, indices, older, scores scan.Value
	v.Read(scan.Fields{
		{"segment", &segment},
		{"segmentText", &cite.Quote},
		{"groundingChunkIndices", &indices},
		{"supportChunkIndices", &older},
		{"confidenceScores", &scores},
		{"confidenceScore", &scores},
	})
	if blank(indices) {
		indices = older
	}
	g.segment(c, cite, segment)
	confidence := scan.Elements(scores)
	for a := scan.Elements(indices); a.Next(); {
		confidence.Val = nil
		confidence.Next()
		n, ok := g.index("groundingChunkIndices", a.Val)
		if !ok {
			continue
		}
		if n >= len(c.chunks) {
			g.issue(IssueChunkIndex, fmt.Sprintf("%s names chunk %d of %d", cite.Key, n, len(c.chunks)), nil)
			continue
		}
		ch := &c.chunks[n]
		cite.Refs = g.addRef(cite.Refs, Ref{ch.key, ch.quote, ch.locator, confidence.Val.Number()})
	}
	return cite, len(cite.Refs) > 0
}

// segment reads which words a support is about. A part index is rarely sent; without it the offsets count over the
// whole text. With it, they are first tried over that part, then over the whole text.
func (g *generate) segment(c *candidate, cite *Cite, v scan.Value) {
	var start, end, part scan.Value
	v.Read(scan.Fields{
		{"startIndex", &start}, {"endIndex", &end}, {"partIndex", &part}, {"text", &cite.Quote},
	})
	g.byteSpan(cite, start, end)
	if cite.Unit == Nowhere {
		cite.Shifts = nil
		return
	}
	n, ok := g.index("partIndex", part)
	if !ok {
		return
	}
	for _, p := range c.parts {
		if p.index == n && p.start > 0 {
			others := slices.DeleteFunc(slices.Clone(c.shifts), func(s int) bool { return s == p.start })
			cite.Shifts = slices.Concat([]int{p.start}, others)
		}
	}
}

// byteSpan fills in a citation's offsets in bytes. Google omits zeros: without a start it begins at 0. Without an end
// it has no place and can only be found by its quote.
func (o *out) byteSpan(cite *Cite, start, end scan.Value) {
	from, ok := o.index("startIndex", start)
	to, placed := o.index("endIndex", end)
	cite.Unit = Bytes
	if cite.Start, cite.End = from, to; !placed || to == 0 || !ok && !start.IsNull() {
		cite.Unit, cite.Start, cite.End = Nowhere, 0, 0
	}
}

// fetched emits one page that the model asked for and, if it did not get it, why. A page that was not read is a source
// as well, since a citation may name it.
func (o *out) fetched(once onceSet, url, status string, raw scan.Value) {
	if !once.first("fetched:" + url + " " + status) {
		return
	}
	if url != "" {
		o.source(&Source{Key: "url:" + url, Kind: kindWeb, URL: url, Raw: raw})
	}
	word := strings.ToUpper(strings.TrimPrefix(status, "URL_RETRIEVAL_STATUS_"))
	if word != "" && word != "SUCCESS" && word != "UNSPECIFIED" {
		o.issue(IssueSourceFailed, strings.TrimSpace(word+" "+url), raw)
	}
}

// recitation emits one passage that Google found to repeat a known text.
func (g *generate) recitation(c *candidate, i int, v scan.Value) {
	var start, end, date scan.Value
	s := &Source{Key: c.prefix + numbered("citation:", i), Kind: kindDocument, Raw: v}
	v.Read(scan.Fields{
		{"startIndex", &start},
		{"endIndex", &end},
		{"uri", &s.URL},
		{"title", &s.Title},
		{"license", &s.License},
		{"publicationDate", &date},
	})
	s.PublishedAt = calendarDate(date)
	cite := &Cite{Key: s.Key, Part: c.part, Base: AnswerBase}
	if s.URL == "" && s.Title == "" && s.License == "" {
		g.issue(IssueSourceless, cite.Key, v)
		return
	}
	if s.URL != "" {
		s.Kind = kindWeb
		s.Key = "recited:" + s.URL
	}
	g.byteSpan(cite, start, end)
	if s.URL == "" || g.once.first(s.Key+" "+s.Title+" "+s.License) {
		g.source(s)
	}
	cite.Refs = []Ref{{Source: s.Key}}
	g.cite(cite)
}

// calendarDate reads a date that is a string, or an object with year, month and day, the last of which may be unknown.
func calendarDate(v scan.Value) string {
	if v.IsString() {
		return v.Str()
	}
	year, _ := v.Get("year").Int()
	month, _ := v.Get("month").Int()
	day, _ := v.Get("day").Int()
	switch {
	case year < 1 || year > 9999:
		return ""
	case month < 1 || month > 12:
		return fmt.Sprintf("%04d", year)
	case day < 1 || day > 31:
		return fmt.Sprintf("%04d-%02d", year, month)
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day)
}

// readChunk reads a grounding chunk, which has exactly one arm. It returns false if that is missing or unknown; the
// chunk is still a source, since supports may name it.
func readChunk(v scan.Value) (*Source, bool) {
	s := &Source{Kind: kindDocument, Raw: v}
	known := false
	for o := scan.Members(v); o.Next(); {
		if !o.Val.IsObject() {
			continue // SDKs write unset arms as null
		}
		known = true
		fields := scan.Fields{{"uri", &s.URL}, {"title", &s.Title}, {"domain", &s.Site}}
		switch string(o.Key) {
		case "web":
			s.Kind = kindWeb
			if o.Val.Read(fields); s.Site == "" {
				s.Site = siteOf(s.Title)
			}
		case "retrievedContext", "retrieved_context":
			retrievedChunk(s, o.Val)
		case "maps":
			s.Kind = kindMap
			o.Val.Read(append(fields[:2], scan.Fields{{"text", &s.Content}, {"placeId", &s.GlobalID}}...))
		case "image": // the source is the page it is on, not the image file
			s.Kind = kindImage
			fields[0].Name = "sourceUri"
			o.Val.Read(fields)
		default:
			known = false
			s.URL, s.Title = o.Val.Get("uri", "url").Str(), o.Val.Get("title").Str()
		}
	}
	return s, known
}

// retrievedChunk reads a piece of a file or document that was searched.
func retrievedChunk(s *Source, v scan.Value) {
	var document, media, file, text string
	var store, page, rag, custom scan.Value
	v.Read(scan.Fields{
		{"uri", &s.URL},
		{"title", &s.Title},
		{"text", &s.Content},
		{"documentName", &document},
		{"mediaId", &media},
		{"fileSearchStore", &store},
		{"pageNumber", &page},
		{"ragChunk", &rag},
		{"customMetadata", &custom},
	})
	s.Locator.Page = pageOf(page)
	if rag.IsObject() { // a chunk of Vertex AI's RAG engine
		var chunk, id, span scan.Value
		rag.Read(scan.Fields{{"text", &text}, {"pageSpan", &span}, {"chunkId", &chunk}, {"fileId", &id}})
		s.Content, s.ChunkID, file = cmp.Or(text, s.Content), chunk.Text(), id.Text()
		s.Locator.Chunk = s.ChunkID
		if span != nil {
			s.Locator.Page = pageOf(span.Get("firstPage"))
			if last := pageOf(span.Get("lastPage")); last > s.Locator.Page && s.Locator.Page > 0 {
				s.Locator.LastPage = last
			}
		}
	}
	if s.URL != "" && !strings.Contains(s.URL, "://") { // a resource name such as fileSearchStores/…
		file, s.URL = cmp.Or(file, s.URL), ""
	}
	s.GlobalID = cmp.Or(document, media, file)
	if !blank(store) || !blank(rag) || s.GlobalID != "" || strings.HasPrefix(s.URL, "gs://") {
		s.Kind = kindFile
		s.Filename = fileTitle(s.Title)
	}
	s.URL = cmp.Or(s.URL, sourceURL(custom))
}

// sourceURL returns the address that the uploader of a file gave as its metadata source_url, in a list of keys and
// values or as a member of an object.
func sourceURL(v scan.Value) string {
	if v.IsObject() {
		return v.Get("source_url").Str()
	}
	for a := scan.Elements(v); a.Next(); {
		if a.Val.Get("key").Str() == "source_url" {
			return a.Val.Get("stringValue").Str()
		}
	}
	return ""
}

// pageOf reads a 1-based page number; 0 means none.
func pageOf(v scan.Value) int {
	if n, ok := v.Int(); ok && n > 0 {
		return n
	}
	return 0
}

// fileTitle returns a title that is a file's name, or "".
func fileTitle(title string) string {
	ext := path.Ext(title)
	if len(ext) < 2 || len(ext) > 6 || strings.ContainsAny(title, "/\n") || strings.ContainsAny(ext, " ,;:") {
		return ""
	}
	return title
}

// siteOf returns a title that is only a host's name, as Google's titles of web pages mostly are, or "".
func siteOf(title string) string {
	dot := strings.LastIndexByte(title, '.')
	if dot <= 0 || dot+3 > len(title) || strings.Contains(title, "..") {
		return ""
	}
	for _, r := range title {
		if r <= ' ' || strings.ContainsRune(`/\:?#@,;()"'`, r) {
			return ""
		}
	}
	top := strings.ToLower(title[dot+1:])
	if slices.Contains(fileExtensions, top) || digits([]byte(top), 0) > 0 {
		return ""
	}
	return title
}

// fileExtensions are extensions of files that could be taken for top-level domains.
var fileExtensions = strings.Fields("pdf html htm txt doc docx ppt pptx xls xlsx csv json xml php asp aspx jpg png")
