package ibid

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/text"
)

// DefaultHold is how many bytes of text a [Live] holds back at most, unless told otherwise.
const DefaultHold = 512

// Live writes an answer with its citations while it arrives. Its Event method takes the events of one response in their
// order, as a [Decoder] has them:
//
//	live := ibid.Live{W: os.Stdout}
//	decoder := ibid.Decoder{OnEvent: live.Event}
//
// The output only grows: nothing that was written is taken back or changed. It is the answer's text byte for byte, with
// markers put in where [Answer.Render] puts them, and visible links replaced as it does, as long as the citation
// arrives before the words that follow its place are written. To that end Live holds back the last word of the text, a
// visible link or mark whose citation may still come, and what follows a citation until it is certain that no code,
// link, word or math goes on there and would take in the marker; and never more than Hold bytes.
//
// A citation that arrives later has its marker at the end of its sentence, if that is still to come: anywhere else it
// would say that other words are supported. Else it goes into a list behind the text, with the words it stands for; so
// does, under a heading of its own, what the provider took back when its marker was written. Then come the sources,
// numbered in the order in which they were shown, and the output ends with a line break. Issues and errors are not
// shown.
//
// A provider may correct a text after sending it. What arrived first stays; citations of the corrected part are in the
// list behind the text. Candidates other than the first are not shown.
//
// StyleHTML and StyleLaTeX cannot be written before the structure of the whole text is known. They are written in one
// piece at the end, by Render. In StyleFootnotes labels are not checked against footnotes of the text's own, as Render
// does.
//
// Set the fields before the first event. A Live is for one response and one goroutine.
type Live struct {
	W     io.Writer
	Style Style // zero: StyleMarkdown
	// ByID writes [Source.ID] into the markers instead of the number. As an id reads like a word, StylePlain puts a
	// space before a marker then.
	ByID bool
	// Numbering gives the numbers, and takes up the sources it does not have yet. Nil: numbers start at 1.
	Numbering *Numbering
	// List appends the list of the cited sources, or says that there are none. StyleFootnotes always has its
	// definitions. The list of citations that came too late does not depend on it.
	List bool
	// Hold is how many bytes of text are held back at most; zero: DefaultHold.
	Hold int

	out     liveOutput
	text    liveText
	places  livePlaces
	sources map[string]*Source // by id, as last told
	owners  map[string]string  // which source has a number key to itself
	numbers map[string]int     // by id of the sources shown
	own     Numbering          // where the caller has none
	ended   bool
}

// Event takes the next event. Errors of W end the output; see [Live.Err].
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
		l.places.addCitation(&e, &l.text)
	case EventAnswer:
		l.end(e.Answer)
	case EventActivity, EventQuery, EventDisplay, EventIssue:
	}
	l.out.flush(l.W)
}

// Close ends the output where [EventAnswer] has not: what was held back is written, then the list of the sources known
// so far. It returns the first error of W, and may be called again.
func (l *Live) Close() error {
	if !l.ended {
		l.end(nil)
		l.out.flush(l.W)
	}
	return l.out.err
}

// Err returns the first error of W. Nothing was written after it.
func (l *Live) Err() error { return l.out.err }

// whole reports whether the style can only be written when everything is known.
func (l *Live) whole() bool { return l.Style == StyleHTML || l.Style == StyleLaTeX }

// addSource takes a source, or what more is known of one.
func (l *Live) addSource(s *Source) {
	if l.sources == nil {
		l.sources, l.owners, l.numbers = map[string]*Source{}, map[string]string{}, map[string]int{}
	}
	l.sources[s.ID] = s
	if key := s.Key(); l.owners[key] == "" {
		l.owners[key] = s.ID
	}
}

// source returns the source with that id. One that nobody described is still a source.
func (l *Live) source(id string) *Source {
	if l.sources[id] == nil {
		l.addSource(&Source{ID: id, Kind: DocumentKind})
	}
	return l.sources[id]
}

// number returns the number of a source, a new one if it has none yet.
func (l *Live) number(s *Source) int {
	if n := l.numbers[s.ID]; n > 0 {
		return n
	}
	numbering := l.Numbering
	if numbering == nil {
		numbering = &l.own
	}
	key := s.Key()
	if owner := l.owners[key]; owner != "" && owner != s.ID {
		key += "#" + s.ID
	}
	n := numbering.Number(key)
	l.numbers[s.ID] = n
	return n
}

// addText takes text and writes what of it is certain.
func (l *Live) addText(s string) {
	if l.whole() || s == "" {
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

// endBlock writes all of a block that has ended: nothing of it can change any more. The next one begins with marks that
// are lead long.
func (l *Live) endBlock(end, lead int) {
	// what ends in the marks before a block belongs to the block before
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

// endSection writes all that is left of a message.
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

// advance writes what of the open block is certain.
func (l *Live) advance() {
	end := len(l.text.buf)
	limit := min(l.text.lastWord(), l.holdLinks(end, false))
	limit = min(limit, l.place(end, limit, false))
	if over := end - l.hold(); over > limit { // whatever it was that was waited for, it took too long
		limit = l.text.back(over)
	}
	l.write(limit)
	l.shorten()
}

// shorten forgets the beginning of a long paragraph on one line, up to a sentence that can be read without what comes
// before.
func (l *Live) shorten() {
	t := &l.text
	const long = 2048
	if t.written < max(long, t.enough) || !t.blocks.FirstLine() || !isLetter(bytes.TrimPrefix(t.buf, []byte(" "))) {
		return
	}
	t.enough = 2 * t.written
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

// hold returns how many bytes may be held back.
func (l *Live) hold() int {
	if l.Hold > 0 {
		return l.Hold
	}
	return DefaultHold
}

// write writes the open block up to an offset in it.
func (l *Live) write(to int) {
	if to > l.text.written {
		l.out.text(l.text.buf[l.text.written:to])
		l.text.written = to
	}
}

// liveOutput collects what is to be written and knows what stands before.
type liveOutput struct {
	buf   []byte
	tail  string // the last bytes of what was written, as far as markers depend on them
	parts bool   // a message ended: a blank line comes before what follows
	err   error
}

// keepTail is how many bytes of what was written are kept. Longer white space than that is as good as a blank line.
const keepTail = 64

// text appends text of the answer, or what stands for it.
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

// flush writes what was collected.
func (o *liveOutput) flush(w io.Writer) {
	if len(o.buf) > 0 && o.err == nil && w != nil {
		_, o.err = w.Write(o.buf)
	}
	o.buf = o.buf[:0]
}

// options returns how markers and lists are to be rendered.
func (l *Live) options() RenderOptions {
	r := RenderOptions{Style: l.Style, ByID: l.ByID, List: l.List, Numbering: l.Numbering}
	if r.Style == "" {
		r.Style = StyleMarkdown
	}
	return r
}

// marker writes the marker of some sources in front of next. It numbers those that have no number yet.
func (l *Live) marker(sources []*Source, st *stop, p places, next string) {
	var m Marker
	for _, s := range sources {
		m.add(MarkerItem{Number: l.number(s), Source: s}, 0)
	}
	slices.SortStableFunc(m.Items, func(a, b MarkerItem) int { return a.Number - b.Number })
	r := rendering{RenderOptions: l.options(), answer: &Answer{}, sections: []section{{places: p}}}
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

// liveText is the open block of a text that grows: what of it may still change how it is read. Offsets in it count from
// the start of the block.
type liveText struct {
	buf  []byte
	from int // where buf begins in the text as it arrived
	// length of the marks that buf begins with, where another block came before: what ends in them belongs there
	lead    int
	written int // how much of buf is out
	known   int // how much of buf there was before the last text
	blocks  markdown.Blocks
	enough  int // how long buf must be before it is worth looking for a way to shorten it

	parts   []Span // of the answer's text
	message int    // that the last part belongs to
	section int    // the message that is being written
	filled  bool   // it has text
	// A correction moves the places that later events tell: those from lost.End on are shift behind the text as it
	// arrived, those inside lost are in no text that was shown.
	lost  Span
	shift int
}

// addPart takes the beginning or the correction of a part.
func (t *liveText) addPart(e *Event) {
	if !e.Corrected {
		t.message = e.Part.Message
		t.parts = append(t.parts, Span{e.Part.Start, e.Part.Start})
		return
	}
	// Of empty parts that begin where a part with text does, the last is that one.
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

// arrived returns where a span of the answer's text is in the text as it arrived. It is false where it is in neither.
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

// startsMessage reports whether the text to come belongs to another message.
func (t *liveText) startsMessage() bool {
	if !t.filled {
		t.section = t.message
	}
	return t.filled && t.section != t.message
}

// add appends text.
func (t *liveText) add(s string) {
	t.known = len(t.buf)
	t.buf = append(t.buf, s...)
	t.filled = true
	if len(t.parts) == 0 {
		t.parts = append(t.parts, Span{})
	}
	t.parts[len(t.parts)-1].End += len(s)
}

// forget forgets the beginning of the block, which was written: what follows is a block of its own, behind marks that
// are lead long.
func (t *liveText) forget(n, lead int) {
	t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	t.from += n
	t.lead = lead
	t.written = max(0, t.written-n)
	t.known = max(0, t.known-n)
	t.blocks.Cut()
	t.enough = 0
}

// isGone reports whether what ends at an offset of the text as it arrived ends in blocks that are written.
func (t *liveText) isGone(end int) bool { return t.from > 0 && end <= t.from+t.lead }

// back returns the last rune boundary up to at.
func (t *liveText) back(at int) int {
	for at > t.written && at < len(t.buf) && !utf8.RuneStart(t.buf[at]) {
		at--
	}
	return max(at, t.written)
}

// lastWord returns where the last word begins, with the space before and all that is no word behind: a citation of it
// may come next, or of the words before it.
func (t *liveText) lastWord() int {
	const long = 24 // bytes of it; in scripts without spaces a word is as long as the sentence
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

// wordsEnd returns where the last word before at ends: before white space, punctuation, and the marks of a list item.
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
