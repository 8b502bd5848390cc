package ibid

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/wire"
)

// candidate is one alternative answer while it is read.
type candidate struct {
	fold   *fold
	index  int
	text   strings.Builder // only appended to, so that its strings stay valid; see replacePart
	parts  []foldPart
	first  map[wire.Part]int // index of the first part with a key; nil while there is only one part
	full   bool              // no more parts are allowed: the last receives all text
	closed bool
	finish Finish

	tail []byte // bytes at the end of the last delta that may be the start of a character
	held []byte // text from the start of a private marker, until it is complete or too long
	cuts []cut  // removed private markers, leaked markup and thoughts

	leaking     *leaking // nil until the text may have a leak: see leaks
	sourceLinks *links   // nil unless links to sources are citations

	cites    []foldCite
	citeKeys map[string]int      // indexes in cites by the provider's key
	waiting  waitHeap            // citations that wait for more text
	blocks   map[wire.Part][]int // citations that wait for the end of a part
	searched int                 // bytes read in searches for lost quotes
	marks    *marks
	marked   int // start of the text that marks applies to

	fileMarks bool // the text may contain file-search marks

	corrected int           // how many times the text of a part was replaced
	relisted  int           // how many times the list of marks was set
	linked    int           // number of citations already in linkEnds
	linkEnds  map[int]int   // starts of visible links by end
	markCites map[int][]int // citations at a run of file-search marks, by its start
	moved     map[int]place // by index, last emitted places of citations that have moved since
	before    map[int]place // by index, places before a correction of citations not placed again yet
	placed    bool          // the place of every citation is final
	structure structure

	offsets   Offsets    // of text
	claimUnit *wire.Unit // see unitOfClaims

	activities []foldActivity
}

// foldPart is one part of the text.
type foldPart struct {
	key, shown wire.Part // the part as read and as shown; they differ once full
	start, end int
	from       int // start of the text of key
	ended      bool
	missing    bool // the input ended before its text arrived
	split      bool // its text came in several runs, so it cannot be compared as a whole
}

// cut is something that was removed from the text: a private marker, leaked markup, a thought. Providers count it in
// offsets.
type cut struct {
	at     int    // its place in the text
	from   int    // start of its part
	text   string // empty for a thought
	size   [3]int // its length by wire.Unit
	before [3]int // total length of all cuts before it
}

// maxHeld is how many bytes of text are held back for an unterminated private marker. Known ones are far shorter.
const maxHeld = 1024

// minText is the minimum capacity allocated for text, in bytes.
const minText = 1024

// endPart closes a part, so that citations of the whole part can be placed.
func (c *candidate) endPart(p wire.Part) {
	if i := c.find(p); i >= 0 {
		c.flush()
		c.parts[i].ended = true
		for _, k := range c.blocks[p] {
			c.try(k, false)
		}
		delete(c.blocks, p)
	}
}

// addText appends visible text to a part.
func (c *candidate) addText(p wire.Part, s []byte, ascii bool) {
	if len(s) == 0 {
		return
	}
	if n := len(c.parts); n == 0 || c.parts[n-1].key != p {
		c.open(p)
	}
	if (c.leaking == nil || c.leaking.thought == "") && len(c.parts) > 0 &&
		c.parts[len(c.parts)-1].from == c.text.Len() && c.readsLeaks() && beginsThought(s) {
		c.leaks().thought = thoughtTags[0]
	}
	if len(c.tail) > 0 || len(c.held) > 0 || c.leaking != nil && (c.leaking.thought != "" || c.leaking.skip) ||
		!ascii && (!utf8.Valid(s) || bytes.IndexByte(s, markerBegin[0]) >= 0) || leakStart(s) >= 0 && c.readsLeaks() {
		c.addOdd(s)
		return
	}
	c.append(s)
}

// readsLeaks reports whether leaked markup is cut from the text. Text of an unknown format is kept as it is.
func (c *candidate) readsLeaks() bool { return c.fold.format != Generic }

// append adds text that is valid and has no private markers, and emits its event.
func (c *candidate) append(s []byte) {
	from := c.text.Len()
	if c.text.Cap()-from < len(s) {
		before := c.text.Cap()
		c.text.Grow(max(len(s), minText)) // doubles, unlike Write
		c.fold.left -= c.text.Cap() - before
	}
	c.text.Write(s)
	c.fileMarks = c.fileMarks || bytes.Contains(s, []byte(markBegin))
	c.parts[len(c.parts)-1].end = c.text.Len()
	if c.fold.onEvent != nil {
		c.fold.onEvent(Event{Kind: EventText, Candidate: c.index, Text: c.text.String()[from:], At: from})
	}
	if len(c.waiting) > 0 {
		c.retryWaiting()
	}
	if c.marks == nil && c.fold.given != nil {
		c.useGiven()
	}
	if c.marks != nil {
		c.scanMarks(false)
	}
	if c.sourceLinks != nil {
		c.scanLinks(false)
	}
}

// open makes p the part to which text is added.
func (c *candidate) open(p wire.Part) {
	c.flush()
	i := c.find(p)
	if i >= 0 && i == len(c.parts)-1 {
		return
	} else if i >= 0 {
		c.parts[i].split = true
		c.fold.issuef("text-out-of-order", "message %d, part %d goes on after a later part began", p.Message, p.Content)
	}
	full := len(c.parts) >= c.fold.limits.Parts
	if full {
		c.fold.limit("parts")
	}
	if full || len(c.parts) > 0 && !c.fold.keep(partSize) {
		if n := len(c.parts); n > 0 {
			if c.first[c.parts[n-1].key] == n-1 {
				delete(c.first, c.parts[n-1].key)
			}
			last := &c.parts[n-1]
			last.key, last.from, last.split, c.full = p, c.text.Len(), i >= 0, true
		}
		return
	}
	if k := c.leaking; k != nil {
		k.thought, k.skip, k.open = "", false, nil
	}
	at := c.text.Len()
	if len(c.parts) == 1 { // most answers have only one
		c.first = map[wire.Part]int{c.parts[0].key: 0}
	}
	if _, again := c.first[p]; !again && c.first != nil {
		c.first[p] = len(c.parts)
	}
	c.parts = append(c.parts, foldPart{key: p, shown: p, start: at, from: at, end: at, split: i >= 0})
	if c.fold.onEvent != nil {
		part := outPart(&c.parts[len(c.parts)-1])
		c.fold.emit(Event{Kind: EventPart, Candidate: c.index, Part: &part})
	}
}

// find returns the index of a part, the first if its text came out of order, or -1.
func (c *candidate) find(p wire.Part) int {
	if n := len(c.parts); n > 0 && c.parts[n-1].key == p {
		return n - 1
	}
	if i, ok := c.first[p]; ok {
		return i
	}
	return -1
}

// U+E200 and U+E201, between which OpenAI's models put marks that are not meant for readers.
const (
	markerBegin = "\ue200"
	markerEnd   = "\ue201"
)

// addOdd appends text that contains a private marker, leaked markup, a thought or invalid UTF-8. It does so in pieces
// that contain the end of a marker only as their last bytes, so that the order of issues does not depend on how the
// text was split.
func (c *candidate) addOdd(s []byte) {
	for len(s) > 0 {
		n := min(len(s), max(1, (maxHeld-len(c.held))/len("\ufffd")))
		if end := bytes.IndexFunc(s[:n], isMarkupEnd); end >= 0 {
			_, size := utf8.DecodeRune(s[end:n])
			n = end + size
		}
		c.addOddPiece(s[:n])
		s = s[n:]
	}
}

// isMarkupEnd reports whether a private marker or leaked markup may end with r.
func isMarkupEnd(r rune) bool { return strings.ContainsRune(markerEnd+markEnd+">]}", r) }

func (c *candidate) addOddPiece(s []byte) {
	s = append(c.held, c.repair(s, false)...)
	c.held = c.held[:0]
	for k := c.leaks(); len(s) > 0; {
		if k.thought != "" {
			n := c.thoughtPiece(s)
			if s = s[n:]; k.thought != "" {
				c.held = append(c.held, s...)
				return
			}
			continue
		}
		if k.skip {
			rest := bytes.TrimLeft(s, " \t\r\n")
			if c.parts[len(c.parts)-1].from == c.text.Len() && len(rest) < len(s) {
				c.extendCut(s[:len(s)-len(rest)])
				s = rest
				continue
			}
			k.skip = false
		}
		n, private := bytes.Index(s, []byte(markerBegin)), true
		if c.readsLeaks() {
			if leak := leakStart(s); leak >= 0 && (n < 0 || leak < n) {
				n, private = leak, false
			}
		}
		if n != 0 {
			if n < 0 {
				n = len(s)
			}
			c.append(s[:n])
			s = s[n:]
			continue
		}
		if !private {
			n := c.leakText(s)
			if n == 0 && len(s) < maxHeld {
				c.held = append(c.held, s...)
				return
			}
			if n == 0 {
				n = 1
				c.append(s[:n])
			}
			s = s[n:]
			continue
		}
		n = bytes.Index(s[:min(len(s), maxHeld)], []byte(markerEnd))
		switch {
		case n >= 0:
			n += len(markerEnd)
			c.addCut(cut{at: c.text.Len(), from: c.parts[len(c.parts)-1].from, text: string(s[:n])})
			c.fold.issue("private-marker", markerIDs(s[:n]))
			s = s[n:]
		case len(s) < maxHeld:
			c.held = append(c.held, s...)
			return
		default: // too long for a marker: it is text
			c.fold.issue("private-marker-unterminated", markerIDs(s))
			c.append(s[:len(markerBegin)])
			s = s[len(markerBegin):]
		}
	}
}

// addCut adds a cut after all others.
func (c *candidate) addCut(k cut) {
	if k.text != "" {
		k.size = sizeOfText(k.text)
	}
	k.before = [3]int{}
	if n := len(c.cuts); n > 0 {
		for u := range k.before {
			k.before[u] = c.cuts[n-1].before[u] + c.cuts[n-1].size[u]
		}
	}
	if c.fold.keep(cutSize + len(k.text)) { // else later offsets are computed without it
		c.cuts = append(c.cuts, k)
	}
}

// markerIDs returns the contents of a private marker, for a message.
func markerIDs(marker []byte) string {
	const limit = 60
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 0xE200 && r <= 0xE20F {
			return ' '
		}
		return r
	}, validText(string(marker[:min(len(marker), limit)]))), " ")
}

// repair returns s as valid UTF-8. A possible first half of a character, as some providers split them, is kept for the
// next text of the part; a high surrogate is joined with its low surrogate. Invalid bytes become U+FFFD.
func (c *candidate) repair(s []byte, last bool) []byte { return c.fold.repair(&c.tail, s, last) }

// repair is [candidate.repair] with any tail.
func (f *fold) repair(tail *[]byte, s []byte, last bool) []byte {
	if len(*tail) == 0 && utf8.Valid(s) {
		return s
	}
	b := append(slices.Clone(*tail), s...)
	*tail = (*tail)[:0]
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r != utf8.RuneError || n > 1 {
			out = append(out, b[:n]...)
			b = b[n:]
			continue
		}
		if joined, ok := surrogates(b); ok {
			out = utf8.AppendRune(out, joined)
			b = b[6:]
			continue
		}
		if !last && unfinished(b) {
			*tail = append(*tail, b...)
			break
		}
		n = 1
		if surrogate(b) >= 0 {
			n = 3
		}
		f.issue("invalid-utf8", "")
		out = utf8.AppendRune(out, utf8.RuneError)
		b = b[n:]
	}
	return out
}

// surrogate returns the UTF-16 surrogate at the start of b, encoded in three bytes (which UTF-8 forbids), or -1.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return -1
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// surrogates joins the surrogate pair at the start of b.
func surrogates(b []byte) (rune, bool) {
	hi := surrogate(b)
	if hi < 0xD800 || hi > 0xDBFF || len(b) < 6 {
		return 0, false
	}
	lo := surrogate(b[3:])
	if lo < 0xDC00 {
		return 0, false
	}
	return (hi-0xD800)<<10 | (lo - 0xDC00) + 0x10000, true
}

// unfinished reports whether b, the end of a text, may be the start of a character or a surrogate pair.
func unfinished(b []byte) bool {
	if hi := surrogate(b); hi >= 0xD800 && hi <= 0xDBFF {
		return len(b) == 3 || surrogate(b[3:]) < 0 && len(b) < 6 && (b[3] == 0xED)
	}
	if b[0] == 0xED && len(b) < 3 {
		return len(b) == 1 || b[1]&0xC0 == 0x80
	}
	return !utf8.FullRune(b)
}

// flush adds the text held back, as nothing can complete it any more. Text truncated by the end of the input is
// dropped: it would have become something else.
func (c *candidate) flush() {
	if len(c.tail) == 0 && len(c.held) == 0 {
		return
	}
	private := bytes.HasPrefix(c.held, []byte(markerBegin))
	if private {
		c.fold.issue("private-marker-unterminated", markerIDs(c.held))
	}
	if c.leaking != nil && c.leaking.thought != "" {
		c.addReasoning(c.parts[len(c.parts)-1].key, c.held)
		c.held, c.tail = c.held[:0], c.tail[:0]
		return
	}
	if c.fold.broken {
		c.held, c.tail = c.held[:0], c.tail[:0]
		return
	}
	s := append(c.held, c.repair(nil, true)...)
	c.held = c.held[:0]
	c.append(s)
}

// finalText compares a part's text with the final text that the provider sends at its end. Missing text is added; a
// different text replaces the one read so far, since the provider's offsets refer to it. A truncated final text cannot
// be compared.
func (c *candidate) finalText(p wire.Part, s []byte, broken bool) {
	i := c.find(p)
	if i < 0 {
		if !c.full { // else the part may share the last one
			c.addText(p, s, false)
			c.flush()
		}
		return
	}
	if i == len(c.parts)-1 {
		c.flush()
	}
	part := c.parts[i]
	have := c.text.String()[part.from:part.end]
	if len(s) == len(have) && string(s) == have {
		return
	}
	if i == len(c.parts)-1 && len(c.cuts) == 0 && bytes.HasPrefix(s, []byte(have)) {
		c.addText(p, s[len(have):], false)
		c.flush()
		return
	}
	if broken {
		return
	}
	want, cuts := cleanText(c.fold, s)
	if want != have && !part.split {
		c.replacePart(i, want, cuts)
	}
}

// cleanText is addText for a whole text: it returns the text as in the answer, and the cuts.
func cleanText(f *fold, s []byte) (string, []cut) {
	scratch := candidate{fold: &fold{limits: f.limits, left: budgetBase}}
	scratch.addText(wire.Part{}, s, false)
	scratch.flush()
	return scratch.text.String(), scratch.cuts
}

// replacePart replaces the text of a part.
func (c *candidate) replacePart(i int, want string, cuts []cut) {
	const limit = 1000 // corrections, each of which copies the text
	if c.corrected++; c.corrected > limit {
		c.fold.limit("text corrections")
		return
	}
	part := &c.parts[i]
	c.fold.issuef("text-corrected", "message %d, part %d", part.key.Message, part.key.Content)
	old := c.text.String()
	shift := len(want) - (part.end - part.from)
	c.text = strings.Builder{}
	c.text.WriteString(old[:part.from])
	c.text.WriteString(want)
	c.text.WriteString(old[part.end:])
	c.fileMarks = strings.Contains(c.text.String(), markBegin)
	former := c.cuts
	c.cuts = nil
	for _, k := range former {
		if k.from < part.from {
			c.addCut(k)
		}
	}
	for _, k := range cuts {
		k.at += part.from
		k.from = part.from
		c.addCut(k)
	}
	for _, k := range former {
		if k.from > part.from {
			k.at += shift
			k.from += shift
			c.addCut(k)
		}
	}
	for k := i + 1; k < len(c.parts); k++ {
		c.parts[k].start += shift
		c.parts[k].from += shift
		c.parts[k].end += shift
	}
	for k := range c.activities {
		switch a := &c.activities[k]; {
		case a.At >= part.end:
			a.At += shift
		case a.At > part.from:
			a.At = part.end + shift
		}
	}
	if c.leaking != nil {
		c.leaking.code = codeState{at: part.from}
	}
	part.end = part.from + len(want)
	for k := range c.cites { // places given as the length of the text
		if c.cites[k].at >= part.end-shift {
			c.cites[k].at += shift
		}
	}
	c.offsets, c.claimUnit = Offsets{}, nil
	out := outPart(part)
	c.fold.emit(
		Event{
			Kind:      EventPart,
			Candidate: c.index,
			Part:      &out,
			Corrected: true,
			Text:      c.text.String()[part.start:part.end],
			At:        part.start,
		},
	)
	c.unsettle()
}

// unsettle places every citation again, as the text has changed.
func (c *candidate) unsettle() {
	c.waiting, c.markCites = nil, nil
	c.linked, c.linkEnds = 0, nil
	for i := range c.cites {
		cite := &c.cites[i]
		if cite.emitted && !cite.withdrawn && c.fold.onEvent != nil && cite.anchor != "" {
			if c.before == nil {
				c.before = map[int]place{}
			}
			c.before[i] = cite.place
		}
		cite.settled = cite.withdrawn
		cite.statementIn, cite.place, cite.found = Span{}, place{}, place{}
	}
	for i := range c.cites {
		if !c.cites[i].withdrawn {
			c.placeOrWait(i)
		}
	}
	if c.marks != nil {
		c.marks.restart()
	}
	if c.sourceLinks != nil {
		c.sourceLinks.restart()
	}
}

func (c *candidate) close() {
	c.fold.broken = !c.fold.complete
	c.flush()
	c.closed = true
	c.endParts()
	c.resolveLeaks()
	// in a complete answer all inputs are known
	for i := range c.activities {
		if a := &c.activities[i]; a.Kind == ToolActivity && c.fold.complete {
			c.setInput(i, nil)
		}
	}
	c.settleGiven()
	if c.usePrinted(); c.marks != nil {
		c.scanMarks(true)
	}
	if c.sourceLinks != nil {
		c.scanLinks(true)
	}
	c.placeRest()
	if markdown.CapsReferences(c.fold.halt, c.text.String()) {
		c.fold.issue("references-capped", "")
	}
}

// endParts ends all parts.
func (c *candidate) endParts() {
	for i := range c.parts {
		p := &c.parts[i]
		p.missing = p.missing || !p.ended && p.end == p.from
		p.ended = true
	}
}

func outPart(p *foldPart) Part {
	kind := [...]PartKind{
		wire.AnswerPart: AnswerPart, wire.CommentaryPart: CommentaryPart, wire.RefusalPart: RefusalPart,
	}[p.shown.Kind]
	return Part{Span: Span{p.start, p.end}, Kind: kind, Message: p.shown.Message, Content: p.shown.Content}
}

// maxToolJSON is the maximum size in bytes of the input or output of a call. Larger ones, such as pictures, are left
// out and reported as an issue.
const maxToolJSON = 256 << 10

// foldActivity is an activity while it is read.
type foldActivity struct {
	Activity

	key   wire.Part // of reasoning
	sent  string    // the id sent by the provider
	bytes []byte    // reasoning text, or an input that arrives in pieces
	tail  []byte    // bytes at the end of the text that may be the start of a character
}

var activitySize = grown[foldActivity]() + grown[Activity]()

// addActivity handles an operation about reasoning or a tool.
func (c *candidate) addActivity(op *wire.Op) {
	if op.Kind == wire.Reasoning {
		c.addReasoning(op.Part, op.Text)
		return
	}
	id := validText(op.Name)
	i := len(c.activities) - 1 // the last call with that id, or -1; the id is empty if the provider sends none
	for i >= 0 && (c.activities[i].Kind != ToolActivity || c.activities[i].sent != id) {
		i--
	}
	switch {
	case op.Kind == wire.Tool && (i < 0 || id == ""):
		a := foldActivity{sent: id, Activity: Activity{
			Kind: ToolActivity, ID: id, Name: validText(op.More), Server: op.Server,
		}}
		if id == "" {
			a.ID = "call_" + strconv.Itoa(len(c.activities)+1)
		}
		if i := c.begin(&a); i >= 0 {
			c.emitActivity(i, "")
		}
	case i < 0: // a call in an earlier response
	case op.Kind == wire.Tool:
		if a := &c.activities[i]; a.Name == "" && op.More != "" {
			a.Name = validText(op.More)
			c.emitActivity(i, "")
		}
	case op.Kind == wire.ToolInput: // append, unless the whole input is known
		a := &c.activities[i]
		if a.Input != nil || len(a.bytes) > maxToolJSON || !c.fold.keep(2*len(op.Text)) {
			return
		}
		a.bytes = append(a.bytes, op.Text...)
		c.fold.emit(Event{Kind: EventActivity, Candidate: c.index, Index: i, Text: validText(string(op.Text))})
	case op.Kind == wire.ToolReady:
		c.setInput(i, op.Raw)
	case op.Kind == wire.ToolOutput:
		c.setInput(i, nil)
		a := &c.activities[i]
		output, failed := c.toolJSON(op.Raw, "a tool's output"), validText(op.More)
		if bytes.Equal(a.Output, output) && a.Error == failed {
			return
		}
		a.Output, a.Error = output, failed
		c.emitActivity(i, "")
	}
}

// begin adds an activity and returns its index, or -1 if over a limit.
func (c *candidate) begin(a *foldActivity) int {
	if !c.fold.room(len(c.activities), "activities") ||
		!c.fold.keep(activitySize+len(a.Name)+len(a.ID)+len(a.sent)) {
		return -1
	}
	a.At = c.text.Len()
	c.activities = append(c.activities, *a)
	return len(c.activities) - 1
}

// addReasoning adds reasoning text. It begins a new activity if the key differs or something else came in between.
func (c *candidate) addReasoning(key wire.Part, s []byte) {
	i := len(c.activities) - 1
	goesOn := i >= 0 && c.activities[i].Kind == ReasoningActivity && c.activities[i].key == key &&
		c.activities[i].At == c.text.Len()
	if !goesOn {
		if i = c.begin(&foldActivity{Activity: Activity{Kind: ReasoningActivity}, key: key}); i < 0 {
			return
		}
	}
	a := &c.activities[i]
	s = c.fold.repair(&a.tail, s, false)
	if !c.fold.keep(2 * len(s)) {
		return
	}
	a.bytes = append(a.bytes, s...)
	switch {
	case !goesOn:
		c.emitActivity(i, string(s))
	case len(s) > 0 && c.fold.onEvent != nil:
		c.fold.onEvent(Event{Kind: EventActivity, Candidate: c.index, Index: i, Text: string(s)})
	}
}

// setInput sets the input of a call if it is not set. If raw is nil, it uses the pieces received.
func (c *candidate) setInput(i int, raw []byte) {
	a := &c.activities[i]
	if a.Input != nil {
		return
	}
	if raw == nil {
		raw = bytes.TrimSpace(a.bytes)
	}
	switch {
	case len(raw) > 0 && !json.Valid(raw): // a mistake of the model, or a plain text input
		a.Input, _ = json.Marshal(validText(string(raw)))
	default:
		a.Input = c.toolJSON(raw, "a tool's input")
	}
	if a.Input == nil {
		a.Input = json.RawMessage("{}")
	}
	a.bytes = nil
	c.emitActivity(i, "")
}

// toolJSON returns a compact copy of raw, or nil if it is not valid or over a limit.
func (c *candidate) toolJSON(raw []byte, what string) json.RawMessage {
	var b bytes.Buffer
	switch {
	case len(raw) == 0 || json.Compact(&b, raw) != nil:
		return nil
	case b.Len() > maxToolJSON:
		c.fold.limit(what)
		return nil
	case !c.fold.keep(2 * b.Len()):
		return nil
	}
	return validJSON(b.Bytes())
}

// emitActivity emits an activity, with what was added to its text.
func (c *candidate) emitActivity(i int, text string) {
	if c.fold.onEvent != nil {
		a := c.activities[i].Activity
		c.fold.onEvent(Event{Kind: EventActivity, Candidate: c.index, Index: i, Activity: &a, Text: text})
	}
}
