package ibid

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/text"
)

// DefaultHold is the default of [Live].Hold, in bytes.
const DefaultHold = 512

// Live writes an answer with its citations as it arrives. Its Event method takes the events of one response in order,
// as a [Decoder] emits them:
//
//	live := ibid.Live{W: os.Stdout}
//	decoder := ibid.Decoder{OnEvent: live.Event}
//
// The output only grows: nothing written is ever changed. It is the answer's text byte for byte, with markers inserted
// and visible links replaced as [Answer.Render] does, provided that a citation arrives before the words after its place
// are written. To that end Live holds back, up to Hold bytes, the last word of the text, a visible link or mark whose
// citation may still come, and what follows a citation until it is certain that the marker will not end up inside code,
// a link, a word or math.
//
// If a citation arrives later, its marker is put at the end of its sentence, if that is still to come: anywhere else it
// would appear to support other words. Otherwise it goes into a list after the text, with the words it cites. A
// citation withdrawn after its marker was written is listed under a separate heading. Then come the sources, numbered
// in the order in which they were shown, and the output ends with a line break. Issues and errors are not shown.
//
// If a provider corrects text after sending it, the text that arrived first stays, and citations of the corrected part
// are listed after the text. Only the first candidate is shown.
//
// StyleHTML and StyleLaTeX cannot be written before the structure of the whole text is known; Render writes them at the
// end, in one piece. Unlike Render, Live does not check the labels of StyleFootnotes against footnotes in the text.
//
// Set the fields before the first event. A Live writes one response and is not safe for concurrent use.
type Live struct {
	W     io.Writer
	Style Style // zero means StyleMarkdown
	// ByID writes [Source.ID] into the markers instead of the number. StylePlain then puts a space before a marker, as
	// an id reads like a word.
	ByID bool
	// Numbering assigns the numbers and is extended by new sources. If nil, numbers start at 1.
	Numbering *Numbering
	// Numbers is which numbers the sources get. As numbers cannot be retracted, the model's are kept up to the first
	// source for which they cannot be.
	Numbers Numbers
	// List appends a list of the cited sources, or a line saying that there are none. StyleFootnotes always has its
	// definitions. Late citations are listed in any case.
	List bool
	// Hold is the maximum number of bytes of text to hold back; zero means DefaultHold.
	Hold int

	out       liveOutput
	text      liveText
	places    livePlaces
	sources   map[string]*Source // by id, in the latest version
	owners    map[string]string  // by key, the id of the source that is numbered under it
	numbers   map[string]int     // by id, of sources already shown
	written   numberReader       // the numbers of the model's marks
	own       Numbering          // used if Numbering is nil or not asked
	renumbers bool               // numbers are by first use from here on
	repeats   repeats
	ended     bool
}

// Event handles the next event. An error of W ends the output; see [Live.Err].
func (l *Live) Event(e Event) {
	if l.ended || e.Candidate != 0 && e.Kind != EventAnswer {
		return
	}
	switch e.Kind {
	case EventText:
		l.addText(e.Text)
	case EventPart:
		if e.Part != nil {
			l.text.addPart(&e)
		}
	case EventSource:
		if e.Source != nil {
			l.addSource(e.Source)
		}
	case EventCitation:
		l.readNumbers(e.Citation)
		l.places.addCitation(&e, &l.text)
	case EventAnswer:
		l.end(e.Answer)
	case EventActivity, EventQuery, EventDisplay, EventIssue:
	}
	l.out.flush(l.W)
}

// Close ends the output unless [EventAnswer] has done so: it writes the text held back, then the list of the sources
// known so far. It returns the first error of W, and may be called again.
func (l *Live) Close() error {
	if !l.ended {
		l.end(nil)
		l.out.flush(l.W)
	}
	return l.out.err
}

// Err returns the first error of W. Nothing was written after it.
func (l *Live) Err() error { return l.out.err }

// needsWhole reports whether the style can only be written once the answer is complete.
func (l *Live) needsWhole() bool { return l.Style == StyleHTML || l.Style == StyleLaTeX }

// addSource adds or updates a source.
func (l *Live) addSource(s *Source) {
	if l.sources == nil {
		l.sources, l.owners, l.numbers = map[string]*Source{}, map[string]string{}, map[string]int{}
	}
	l.sources[s.ID] = s
	if key := s.Key(); l.owners[key] == "" {
		l.owners[key] = s.ID
	}
}

// source returns the source with that id. It adds one if no event described it.
func (l *Live) source(id string) *Source {
	if l.sources[id] == nil {
		l.addSource(&Source{ID: id, Kind: DocumentKind})
	}
	return l.sources[id]
}

// number returns the number of a source, assigning one if needed.
func (l *Live) number(s *Source) int {
	if n := l.numbers[s.ID]; n > 0 {
		return n
	}
	numbering := l.Numbering
	if numbering == nil || l.Numbers == NumbersProvider {
		numbering = &l.own
	}
	key := s.Key()
	if owner := l.owners[key]; owner != "" && owner != s.ID {
		key += "#" + s.ID
	}
	written := l.written.of[s.ID]
	if l.renumbers || l.Numbers == NumbersUsed || written == 0 || !numbering.accepts(Numbering{key: written}) {
		written, l.renumbers = 0, true
	}
	n := cmp.Or(written, numbering.Number(key))
	l.numbers[s.ID] = n
	return n
}

// readNumbers reads the numbers by which a citation's mark calls its sources.
func (l *Live) readNumbers(c *Citation) {
	if c == nil {
		return
	}
	if span, ok := l.text.arrived(c.Span); ok && c.Covers == CoversLink && c.Placed() && span.Start >= l.text.from {
		span.Start, span.End = span.Start-l.text.from, span.End-l.text.from
		if span.End <= len(l.text.buf) {
			l.written.read(c.Refs, string(l.text.buf[span.Start:span.End]))
		}
	}
	l.written.see(c.Refs)
}

// addText adds text and writes what is certain.
func (l *Live) addText(s string) {
	if l.needsWhole() || s == "" {
		return
	}
	if l.text.startsMessage() {
		l.endSection()
		l.out.parts = true
	}
	l.text.add(s)
	for {
		end, lead, ok := l.text.blocks.Next(l.text.buf)
		if !ok || l.holdLinks(end, true) < end {
			break
		}
		l.endBlock(end, lead)
	}
	l.advance()
}

// endBlock writes the rest of a block that has ended, which cannot change any more. The next block begins with lead
// bytes of marks.
func (l *Live) endBlock(end, lead int) {
	// a citation that ends in the marks before a block belongs to the previous block
	marks := Span{l.text.from + end, l.text.from + end + lead}
	for _, c := range l.places.pending {
		if c.span.End > marks.Start && c.span.End <= marks.End {
			c.span = Span{min(c.span.Start, marks.Start), marks.Start}
		}
	}
	l.place(end, end, true)
	l.write(end)
	l.places.giveUpBefore(l.text.from + end)
	l.text.forget(end, lead)
}

// endSection writes the rest of a message.
func (l *Live) endSection() {
	for {
		end, lead, ok := l.text.blocks.Next(l.text.buf)
		if !ok {
			break
		}
		l.endBlock(end, lead)
	}
	l.endBlock(len(l.text.buf), 0)
	l.text.section, l.text.filled = l.text.message, false
}

// advance writes what is certain of the open block.
func (l *Live) advance() {
	end := len(l.text.buf)
	limit := min(l.text.lastWord(), l.holdLinks(end, false))
	limit = min(limit, l.place(end, limit, false))
	if over := end - l.hold(); over > limit { // text was held too long
		limit = l.text.back(over)
	}
	l.write(limit)
	l.shorten()
}

// shorten drops the beginning of a long paragraph on one line, up to a sentence that can be parsed without it.
func (l *Live) shorten() {
	t := &l.text
	const long = 2048
	if t.written < max(long, t.shortenAt) || !t.blocks.FirstLine() || !isLetter(bytes.TrimPrefix(t.buf, []byte(" "))) {
		return
	}
	t.shortenAt = 2 * t.written
	for at := t.written - 1; at > t.written-long/4; at-- {
		if t.buf[at] != ' ' || !isLetter(t.buf[at+1:]) || strings.IndexByte(".!?", t.buf[at-1]) < 0 {
			continue
		}
		if solid, phrase := markdown.Parse(string(t.buf[:at])).OpenBefore(at); !solid && !phrase {
			l.places.giveUpBefore(t.from + at)
			t.forget(at, 0)
		}
		return
	}
}

// isLetter reports whether s begins with an ASCII letter.
func isLetter(s []byte) bool { return len(s) > 0 && 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z' }

// hold returns the maximum number of bytes to hold back.
func (l *Live) hold() int {
	if l.Hold > 0 {
		return l.Hold
	}
	return DefaultHold
}

// write writes the open block up to the offset to.
func (l *Live) write(to int) {
	if to > l.text.written {
		l.out.text(l.text.buf[l.text.written:to])
		l.text.written = to
	}
}

// liveOutput collects output and remembers the end of what was written.
type liveOutput struct {
	buf   []byte
	tail  string // the last keepTail bytes of the output: markers depend on them
	parts bool   // a message ended: write a blank line before the next text
	err   error
}

// keepTail is how many bytes of the output are kept. Longer white space is treated as a blank line.
const keepTail = 64

// text appends text of the answer.
func (o *liveOutput) text(s []byte) {
	if o.parts && len(s) > 0 {
		o.parts = false
		o.raw(text.BlankLine(o.tail, string(s[:min(len(s), keepTail)])))
	}
	o.raw(string(s))
}

func (o *liveOutput) raw(s string) {
	o.buf = append(o.buf, s...)
	s = s[max(0, len(s)-keepTail):]
	o.tail = o.tail[max(0, len(o.tail)+len(s)-keepTail):] + s
}

// flush writes the collected output.
func (o *liveOutput) flush(w io.Writer) {
	if len(o.buf) > 0 && o.err == nil && w != nil {
		_, o.err = w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

// options returns the options for markers and lists.
func (l *Live) options() RenderOptions {
	return RenderOptions{
		Style: cmp.Or(l.Style, StyleMarkdown), ByID: l.ByID, List: l.List, Numbering: l.Numbering,
	}
}

// marker writes a marker of sources before next. It numbers sources that have no number yet.
func (l *Live) marker(sources []*Source, st *stop, p places, next string) {
	var m Marker
	for _, s := range sources {
		m.add(MarkerItem{Number: l.number(s), Source: s}, 0)
	}
	slices.SortStableFunc(m.Items, func(a, b MarkerItem) int { return a.Number - b.Number })
	l.repeats.size = l.text.from + len(l.text.buf) + citationSize*len(l.places.all)
	r := rendering{
		RenderOptions: l.options(), answer: &Answer{}, sections: []section{{places: p}}, repeats: &l.repeats,
	}
	var b strings.Builder
	before := l.out.tail
	b.WriteString(before)
	r.writeMarker(&b, &m, st, next)
	text := b.String()[len(before):]
	if l.ByID && r.Style == StylePlain && text[0] != ' ' && before != "" && !markdown.IsSpace(before[len(before)-1]) {
		text = " " + text
	}
	l.out.raw(text)
}

// liveText is the open block of a growing text: the part whose meaning may still change. Offsets count from the start
// of the block.
type liveText struct {
	buf  []byte
	from int // offset of buf in the text as it arrived
	// length of the marks at the start of buf if another block precedes it: a citation that ends in them belongs to
	// that block
	lead      int
	written   int // bytes of buf already written
	oldLen    int // length of buf before the last text was added
	blocks    markdown.Blocks
	shortenAt int // written length from which shorten tries again

	parts   []Span // in the answer's text
	message int    // of the last part
	section int    // the message being written
	filled  bool   // section has text
	// A correction moves the offsets in later events: those from lost.End on are shift bytes beyond the text as it
	// arrived, and those inside lost were never shown.
	lost  Span
	shift int
}

// addPart handles the beginning or the correction of a part.
func (t *liveText) addPart(e *Event) {
	if !e.Corrected {
		t.message = e.Part.Message
		t.parts = append(t.parts, Span{e.Part.Start, e.Part.Start})
		return
	}
	// Empty parts may begin at the same offset as the part with text, which is the last of them.
	i := len(t.parts) - 1
	for i >= 0 && t.parts[i].Start != e.Part.Start {
		i--
	}
	if i < 0 {
		return
	}
	old, grown := t.parts[i], e.Part.Len()-t.parts[i].Len()
	if t.lost.Len() == 0 {
		t.lost = old
	}
	t.lost = Span{min(t.lost.Start, old.Start), max(t.lost.End, old.End) + grown}
	t.shift += grown
	t.parts[i].End += grown
	for k := i + 1; k < len(t.parts); k++ {
		t.parts[k].Start += grown
		t.parts[k].End += grown
	}
}

// arrived converts a span of the answer's text to one of the text as it arrived. It returns false if there is none.
func (t *liveText) arrived(s Span) (Span, bool) {
	switch {
	case s.Start < 0 || s.End < s.Start:
		return Span{}, false
	case t.shift == 0 && t.lost == Span{} || s.End <= t.lost.Start:
		return s, true
	case s.Start >= t.lost.End:
		return Span{s.Start - t.shift, s.End - t.shift}, true
	default:
		return Span{}, false
	}
}

// startsMessage reports whether the next text belongs to a new message.
func (t *liveText) startsMessage() bool {
	if !t.filled {
		t.section = t.message
	}
	return t.filled && t.section != t.message
}

// add appends text.
func (t *liveText) add(s string) {
	t.oldLen = len(t.buf)
	t.buf = append(t.buf, s...)
	t.filled = true
	if len(t.parts) == 0 {
		t.parts = append(t.parts, Span{})
	}
	t.parts[len(t.parts)-1].End += len(s)
}

// forget drops the first n bytes of the block, which were written. A new block follows, after lead bytes of marks.
func (t *liveText) forget(n, lead int) {
	t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	t.from += n
	t.lead = lead
	t.written = max(0, t.written-n)
	t.oldLen = max(0, t.oldLen-n)
	t.blocks.Cut()
	t.shortenAt = 0
}

// isGone reports whether the offset end of the text as it arrived lies in a block that was dropped.
func (t *liveText) isGone(end int) bool { return t.from > 0 && end <= t.from+t.lead }

// back returns the last rune boundary up to at in the unwritten text.
func (t *liveText) back(at int) int {
	for at > t.written && at < len(t.buf) && !utf8.RuneStart(t.buf[at]) {
		at--
	}
	return max(at, t.written)
}

// lastWord returns where the last word begins, including the space before it and any non-word bytes after it: a
// citation of it, or of the words before it, may come next.
func (t *liveText) lastWord() int {
	const long = 24 // bytes; in scripts without spaces a word is as long as the sentence
	end := t.wordsEnd(len(t.buf))
	at := end
	for at > t.written && !markdown.IsSpace(t.buf[at-1]) {
		if at--; end-at > long {
			return t.back(at)
		}
	}
	for at > t.written && markdown.IsSpace(t.buf[at-1]) {
		at--
	}
	return at
}

// wordsEnd returns where the last word before at ends, without white space, punctuation and list marks after it.
func (t *liveText) wordsEnd(at int) int {
	from := at
	for at > t.written {
		switch {
		case t.buf[at-1] < 0x80 && !isASCIIAlnum(rune(t.buf[at-1])):
			at--
			continue
		case bytes.HasSuffix(t.buf[t.written:at], []byte("（")):
			at -= len("（")
			continue
		}
		break
	}
	digits := at
	for digits > t.written && '0' <= t.buf[digits-1] && t.buf[digits-1] <= '9' {
		digits--
	}
	mark := at < from && (t.buf[at] == '.' || t.buf[at] == ')') || at == len(t.buf)
	if mark && digits < at && (digits == 0 || markdown.IsSpace(t.buf[digits-1])) {
		return t.wordsEnd(digits)
	}
	return at
}
