package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/text"
)

// out emits the operations of a parser, the frequent ones without an allocation. Every parser embeds one.
type out struct {
	*Config
	op     Op     // reused for every operation
	textOp Op     // reused for text only, so that nothing else needs to be cleared
	buf    []byte // for unescaping

	named *named // nil until the first source or citation
}

// named is what operations about sources and citations point to. Most answers have none.
type named struct {
	source Source
	cite   Cite
	refs   [1]Ref
}

// naming returns what the next operation about a source or a citation points to.
func (o *out) naming() *named {
	if o.named == nil {
		o.named = &named{}
	}
	return o.named
}

// The memory in bytes that one more of something takes, without its own strings. An entry of a map is counted with the
// map's free room.
const entrySize = 64

var (
	refSize    = size[Ref]()
	sourceSize = size[Source]()
	citeSize   = size[heldCite]() + entrySize + size[citeKey]()
)

func size[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// maxItems is how many references one citation may have, and authors one source.
const maxItems = 1000

// refsOfCitation is the detail of an issue about too many of them.
const refsOfCitation = "refs of one citation"

// addRef adds a reference to those of a citation, up to maxItems.
func (o *out) addRef(refs []Ref, r Ref) []Ref {
	if len(refs) >= maxItems {
		o.issue(IssueLimit, refsOfCitation, nil)
		return refs
	}
	return append(refs, r)
}

// Close implements [Parser] for those that hold nothing back.
func (o *out) Close() {}

// text emits that a JSON string was added to a part. It reports whether v is a string.
func (o *out) text(p Part, v scan.Value) bool {
	if !v.IsString() {
		return false
	}
	o.raw(p, v.Content())
	return true
}

// raw is like text, for the contents of a string between its quotes.
func (o *out) raw(p Part, content []byte) {
	o.textOp.Kind, o.textOp.Part, o.textOp.Text, o.textOp.ASCII = Text, p, content, true
	if !isPlain(content) {
		o.textOp.Text, o.textOp.ASCII = o.unescape(content), false
	}
	o.Emit(&o.textOp)
}

// isPlain reports whether b is ASCII without escapes, as most text is.
func isPlain(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		word := binary.LittleEndian.Uint64(b)
		x := word ^ '\\'*ones // has a zero byte for each backslash
		if (word|(x-ones)&^x)&highs != 0 {
			return false
		}
	}
	for _, c := range b {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// final emits the whole text of a part.
func (o *out) final(p Part, v scan.Value) {
	if v.IsString() {
		o.emit(Op{Kind: Final, Part: p, Text: o.unescape(v.Content()), Cut: v.Cut()})
	}
}

func (o *out) unescape(content []byte) []byte {
	if bytes.IndexByte(content, '\\') < 0 {
		return content
	}
	o.buf = scan.AppendString(o.buf[:0], content)
	return o.buf
}

func (o *out) emit(op Op) {
	o.op = op
	o.Emit(&o.op)
}

func (o *out) head(field string, v scan.Value) {
	if s := v.Text(); s != "" {
		o.emit(Op{Kind: Head, Name: field, More: s})
	}
}

func (o *out) provider(name string) { o.emit(Op{Kind: Head, Name: HeadProvider, More: name}) }

// source emits a source. If its JSON breaks off, it is emitted as far as it could be read, unless that is nothing.
func (o *out) source(s *Source) {
	if scan.Value(s.Raw).Cut() {
		if cmp.Or(s.ID, s.GlobalID, s.Title, s.URL, s.Filename, s.Content) == "" {
			return
		}
		cut := *s
		cut.Raw = nil
		s = &cut
	}
	to := o.naming()
	to.source = *s
	o.emit(Op{Kind: SourceOp, Source: &to.source})
}

func (o *out) cite(c *Cite) {
	to := o.naming()
	to.cite = *c
	o.emit(Op{Kind: CiteOp, Cite: &to.cite})
}

func (o *out) query(v scan.Value) {
	if s := v.Str(); s != "" {
		o.emit(Op{Kind: Query, Name: s})
	}
}

func (o *out) tool(id, name string) { o.emit(Op{Kind: Tool, Name: id, More: name}) }

func (o *out) finish(candidate int, r string) {
	o.emit(Op{Kind: Finish, Part: Part{Candidate: candidate}, Name: r})
}

func (o *out) fail(code, message string) { o.emit(Op{Kind: Error, Name: code, More: message}) }

// failure emits the error in a document, which is known to be one even if it has no details.
func (o *out) failure(doc scan.Value) {
	code, message := readError(doc)
	o.fail(cmp.Or(code, UnnamedError), message)
}

func (o *out) meta(name string, v scan.Value) {
	if !v.IsNull() {
		o.emit(Op{Kind: Meta, Name: name, Raw: v})
	}
}

// issue emits an issue. The codes are listed in op.go.
func (o *out) issue(code, detail string, raw scan.Value) {
	o.emit(Op{Kind: Issue, Name: code, More: detail, Raw: raw})
}

// wantList emits an issue if v is neither a list nor missing.
func (o *out) wantList(what string, v scan.Value) {
	if !v.IsNull() && !v.IsArray() {
		o.issue(IssueWrongType, what, v)
	}
}

// unknown emits that an item, annotation or event type is unknown.
func (o *out) unknown(what string, v scan.Value) { o.issue(IssueUnknownType, shorten(what), v) }

// index reads an offset or an index, which must be a non-negative integer. If it is missing, ok is false without an
// issue; a wrong one is reported.
func (o *out) index(what string, v scan.Value) (int, bool) {
	if v.IsNull() {
		return 0, false
	}
	n, ok := v.Int()
	if !ok || n < 0 {
		o.issue(IssueBadNumber, what+" "+shorten(string(v)), nil)
		return 0, false
	}
	return n, true
}

// blank reports whether v is empty: null, "", {} or [].
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

// shorten cuts a value to fit into a message.
func shorten(s string) string { return text.Shorten(strings.ToValidUTF8(s, ""), 100) }

// documents returns the documents given to the model, with keys: the caller's, else those of the request.
func (c *Config) documents(requested []Source, defaultID func(int) string) []Source {
	docs := c.Documents
	if len(docs) == 0 {
		docs = requested
	}
	for i := range docs {
		if docs[i].Key == "" {
			docs[i].Key = defaultID(i)
		}
		if docs[i].Kind == "" {
			docs[i].Kind = kindDocument
		}
	}
	return docs
}

// numbered returns prefix + the decimal number i.
func numbered(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// citeSet merges the citations of one span: some providers send one for each source of a span, several times over,
// where others send one citation with all its sources.
type citeSet struct {
	cites   map[citeKey]*heldCite
	touched []*heldCite // those that changed since they were emitted, in order of arrival
	full    bool        // a citation had more references than are kept
}

// citeKey identifies equal citations.
type citeKey struct {
	part       Part
	unit       Unit
	start, end int
	source     string // without a place, each source has a citation of its own
}

// heldCite is a citation that may get more sources.
type heldCite struct {
	Cite
	touched bool
}

// maxRefs is how many references a citation may have that gets them one by one. Each of them makes the citation be
// emitted again.
const maxRefs = 100

// add adds a citation of one source and returns the key under which it will be emitted, or "" if there is no room. It
// uses the part, unit, base and offsets of c.
func (s *citeSet) add(o *out, c *Cite, ref *Ref) string {
	k := citeKey{part: c.Part, unit: c.Unit, start: c.Start, end: c.End}
	if c.Unit == Nowhere {
		k.source = ref.Source
	}
	if s.cites == nil {
		s.cites = map[citeKey]*heldCite{}
	}
	held := s.cites[k]
	if held == nil {
		if !o.Keep(citeSize + refSize) {
			return ""
		}
		held = &heldCite{Cite: *c}
		held.Key, held.Refs = fmt.Sprintf("%d/%d/%s", k.part.Message, k.part.Content, k.source), nil
		if k.unit != Nowhere {
			held.Key += fmt.Sprintf("%d-%d", k.start, k.end)
		}
		s.cites[k] = held
	}
	if len(held.Refs) == maxRefs {
		s.full = true
		return held.Key
	}
	if slices.ContainsFunc(held.Refs, func(r Ref) bool {
		return r.Source == ref.Source && r.Quote == ref.Quote && r.Locator.Page == ref.Locator.Page
	}) {
		return held.Key
	}
	if len(held.Refs) > 0 && !o.Keep(2*refSize) {
		return held.Key
	}
	held.Refs = append(held.Refs, *ref)
	if !held.touched {
		held.touched = true
		s.touched = append(s.touched, held)
	}
	return held.Key
}

// emitTouched emits the citations that changed.
func (s *citeSet) emitTouched(o *out) {
	for _, c := range s.touched {
		c.touched = false
		o.cite(&c.Cite)
	}
	if s.full {
		s.full = false
		o.issue(IssueLimit, refsOfCitation, nil)
	}
	s.touched = s.touched[:0]
}

// template recognises documents that differ in little but one string: the text deltas of a stream. It learns from a
// document that was walked in full; documents like it need no walk.
//
// It is the learned document, divided into bytes that must be equal and holes that may differ.
type template struct {
	doc     []byte // the learned document from where the template begins
	holes   []hole
	anchor  []byte // where the template begins; if empty, at the document's start
	at      int    // where it began in the learned document
	tail    int    // doc[tail:] follows the last hole
	anyTail bool   // what follows the last hole may differ
	part    Part   // which the text belongs to
}

// hole is a place where documents differ. doc[from:to] precedes it and must be equal.
type hole struct {
	kind     holeKind
	from, to int
}

type holeKind uint8

const (
	textHole   holeKind = iota // the content of the string that matters
	stringHole                 // the content of another string
	numberHole                 // digits
)

// variation is what else, besides the text, may differ between similar documents.
type variation struct {
	// anchors are members, at the first of which the template begins; anything may precede it.
	anchors []string
	counter string     // a member before the text, with a number
	echo    bool       // a message before the text, which repeats the text so far
	padding string     // a member after the text, with a string
	numbers scan.Value // a value after the text, from which on all numbers may differ
	anyTail bool       // everything after the text
}

// maxAnchor is how far into a document anchors are searched for.
const maxAnchor = 2048

// learn replaces the template by doc, in which text is a string.
func (t *template) learn(doc, text scan.Value, p Part, v variation) {
	t.holes = t.holes[:0]
	start := cap(doc) - cap(text) + 1 // both end at the end of the same memory
	end := start + len(text) - 2
	if len(text) < 2 || start < 1 || end >= len(doc) || &doc[start-1] != &text[0] {
		return
	}
	t.anchor, t.at = t.anchor[:0], 0
	for _, anchor := range v.anchors {
		if i := bytes.Index(doc[:min(start, maxAnchor)], []byte(anchor)); i >= 0 {
			t.anchor, t.at = append(t.anchor, anchor...), i
			break
		}
	}
	t.doc, t.part, t.anyTail = append(t.doc[:0], doc[t.at:]...), p, v.anyTail
	start, end = start-t.at, end-t.at
	from := 0
	add := func(kind holeKind, at, to int) {
		t.holes = append(t.holes, hole{kind, from, at})
		from = to
	}
	if v.counter != "" {
		if i := indexAfter(t.doc[:start], `"`+v.counter+`":`); i > 0 && digits(t.doc, i) > i {
			add(numberHole, i, digits(t.doc, i))
		}
	}
	if v.echo {
		if i := echoed(t.doc[:start]); i > 0 {
			add(stringHole, i, scan.StringEnd(t.doc, i)-1)
		}
	}
	add(textHole, start, end)
	if v.padding != "" {
		if i := indexAfter(t.doc[end:], `"`+v.padding+`":"`); i > 0 {
			add(stringHole, end+i, scan.StringEnd(t.doc, end+i)-1)
		}
	}
	if at := cap(doc) - cap(v.numbers) - t.at; v.numbers != nil && at >= from {
		for i := at; i < len(t.doc); i++ {
			if to := digits(t.doc, i); to > i {
				add(numberHole, i, to)
				i = to
			}
		}
	}
	t.tail = from
}

// forget makes the template match nothing.
func (t *template) forget() { t.holes = t.holes[:0] }

// match returns the contents of doc's text between its quotes, and the first number that may differ, if doc is like the
// learned document.
func (t *template) match(doc []byte) (text []byte, counter scan.Value, ok bool) {
	if len(t.holes) == 0 {
		return nil, nil, false
	}
	first := t.doc[:t.holes[0].to]
	i := min(t.at, len(doc))
	if !bytes.HasPrefix(doc[i:], first) {
		i = bytes.Index(doc[:min(len(doc), maxAnchor)], t.anchor)
		if len(t.anchor) == 0 || i < 0 || !bytes.HasPrefix(doc[i:], first) {
			return nil, nil, false
		}
	}
	for k := range t.holes {
		h := &t.holes[k]
		if k > 0 && !bytes.HasPrefix(doc[i:], t.doc[h.from:h.to]) {
			return nil, nil, false
		}
		i += h.to - h.from
		from := i
		if h.kind == numberHole {
			if i = digits(doc, from); i == from {
				return nil, nil, false
			}
			if counter == nil {
				counter = doc[from:i]
			}
			continue
		}
		if i = scan.StringEnd(doc, from) - 1; i < from || doc[i] != '"' {
			return nil, nil, false
		}
		if h.kind == textHole {
			text = doc[from:i]
		}
	}
	if t.anyTail && i+1 < len(doc) || !t.anyTail && bytes.Equal(doc[i:], t.doc[t.tail:]) {
		return text, counter, true
	}
	return nil, nil, false
}

// indexAfter returns the offset after the first mark in b, or 0 if there is none.
func indexAfter(b []byte, mark string) int {
	if i := bytes.Index(b, []byte(mark)); i >= 0 {
		return i + len(mark)
	}
	return 0
}

// echoed returns where in head the text so far begins that a message before the delta repeats, or 0 if there is none.
func echoed(head []byte) int {
	i := bytes.LastIndex(head, []byte(`"message":{`))
	if i < 0 || !bytes.Contains(head[i:], []byte(`"delta":{`)) {
		return 0
	}
	j := indexAfter(head[i:], `"content":"`)
	if j == 0 || scan.StringEnd(head, i+j) >= len(head) { // it is the text itself
		return 0
	}
	return i + j
}

// before reports whether v, a member that tells which part the text belongs to, precedes it in their document. Proxies
// that sort members put it after the text, and then what follows the text does matter.
func before(v, text scan.Value) bool { return len(v) > 0 && cap(v) > cap(text) }

// digits returns the offset after the digits that begin at b[i].
func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// Operations for the model's reasoning and its tool calls.

// think emits that a JSON string was added to the model's reasoning. It reports whether v is a non-empty string.
func (o *out) think(p Part, v scan.Value) bool {
	if !v.IsString() || len(v.Content()) == 0 {
		return false
	}
	o.emit(Op{Kind: Reasoning, Part: p, Text: o.unescape(v.Content())})
	return true
}

// thinkAll emits the texts of a list of blocks, as one piece of reasoning.
func (o *out) thinkAll(p Part, list scan.Value) {
	for a := scan.Elements(list); a.Next(); {
		o.think(p, a.Val.Get("text"))
	}
}

// serverTool emits a call of a tool that the provider runs. A hidden one is not listed among the answer's tool calls,
// such as a search whose queries the answer has.
func (o *out) serverTool(id, name string, hidden bool) {
	o.emit(Op{Kind: Tool, Name: id, More: name, Server: true, Hidden: hidden})
}

// toolInput emits the input of a call: JSON, or a string that contains JSON.
func (o *out) toolInput(id string, v scan.Value) {
	switch {
	case v.Cut():
	case v.IsString():
		o.moreInput(id, v)
		o.emit(Op{Kind: ToolReady, Name: id})
	case v.IsNull():
		o.emit(Op{Kind: ToolReady, Name: id})
	default:
		o.emit(Op{Kind: ToolReady, Name: id, Raw: v})
	}
}

// moreInput emits that a JSON string was added to the input of a call.
func (o *out) moreInput(id string, v scan.Value) {
	if v.IsString() && len(v.Content()) > 0 {
		o.emit(Op{Kind: ToolInput, Name: id, Text: o.unescape(v.Content())})
	}
}

// toolOutput emits the result of a call. Failed is why it failed, empty if it did not.
func (o *out) toolOutput(id string, v scan.Value, failed string) {
	if !v.Cut() && (failed != "" || !v.IsNull()) {
		o.emit(Op{Kind: ToolOutput, Name: id, Raw: withoutMember(v, "encrypted_content"), More: failed})
	}
}

// withoutMember returns JSON without a member: of v itself, or of the objects that it lists.
func withoutMember(v scan.Value, name string) scan.Value {
	if !bytes.Contains(v, []byte(`"`+name+`"`)) {
		return v
	}
	var b []byte
	separate := func() {
		if b[len(b)-1] != '[' && b[len(b)-1] != '{' {
			b = append(b, ',')
		}
	}
	switch {
	case v.IsArray():
		b = append(b, '[')
		for a := scan.Elements(v); a.Next(); {
			separate()
			if a.Val.IsObject() {
				b = append(b, withoutMember(a.Val, name)...)
				continue
			}
			b = append(b, a.Val...)
		}
		return append(b, ']')
	case v.IsObject():
		b = append(b, '{')
		for m := scan.Members(v); m.Next(); {
			if string(m.Key) != name {
				separate()
				b = appendMember(b, m.Key, m.Val)
			}
		}
		return append(b, '}')
	}
	return v
}

// appendMember appends a member of an object.
func appendMember(b, key []byte, v scan.Value) []byte {
	quoted, _ := Encode(string(key)) // a string can always be encoded
	return append(append(append(b, quoted...), ':'), v...)
}

// splitCall splits the members of a call that a provider ran into its input and output, and returns why it failed. Ids
// and names are in neither.
func splitCall(call scan.Value) (input, output scan.Value, failed string) {
	var in, out []byte
	add := func(to *[]byte, key []byte, v scan.Value) {
		if v.IsNull() {
			return
		}
		if *to = append(*to, ','); len(*to) == 1 {
			(*to)[0] = '{'
		}
		*to = appendMember(*to, key, v)
	}
	var status scan.Value
	for m := scan.Members(call); m.Next(); {
		switch string(m.Key) {
		case "id", "type", "name", "call_id", "server_label", "approval_request_id", "index", "object":
		case "status":
			status = m.Val
		case "error":
			failed = errorWords(m.Val)
		case "arguments": // JSON in a string
			input = m.Val
			if m.Val.IsString() {
				input = bytes.Clone(m.Val.Bytes())
			}
		case "action":
			add(&in, m.Key, withoutMember(m.Val, "sources"))
			add(&out, []byte("sources"), m.Val.Get("sources"))
		case "output", "outputs", "result", "results", "search_results", "contents":
			add(&out, m.Key, m.Val)
		default:
			add(&in, m.Key, m.Val)
		}
	}
	switch word := status.Str(); word {
	case "failed", "incomplete":
		if failed == "" {
			failed = word
		}
	case "":
	default:
		add(&out, []byte("status"), status)
	}
	if input == nil && len(in) > 0 {
		input = append(in, '}')
	}
	if len(out) > 0 {
		output = append(out, '}')
	}
	return input, output, failed
}

// errorWords returns the message of an error: a string, or an object with a message or a code.
func errorWords(v scan.Value) string {
	if v.IsNull() {
		return ""
	}
	if words := firstText(v, "message", "error_code", "code", "type"); words != "" {
		return words
	}
	if words := v.Text(); words != "" {
		return words
	}
	return "error"
}

// serverCall emits a whole call that the provider ran.
func (o *out) serverCall(id, name string, call scan.Value) {
	if call.Cut() {
		return
	}
	input, output, failed := splitCall(call)
	o.serverTool(id, name, true)
	o.toolInput(id, input)
	o.toolOutput(id, output, failed)
}
