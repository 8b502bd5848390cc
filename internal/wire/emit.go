package wire

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/text"
)

// out emits the operations of a parser, without an allocation for those that come often. Every parser embeds one.
type out struct {
	emit   func(*Op)
	op     Op     // reused for every operation
	textOp Op     // reused for text alone, so that nothing else needs to be cleared
	buf    []byte // for unescaping
	room   *room  // nil until it is needed: most answers cite nothing
}

// room holds what operations point to, so that it is allocated once.
type room struct {
	src Source
	at  Cite
	ref [1]Ref
}

// Close implements [Parser] for those that hold nothing back.
func (o *out) Close() {}

func (o *out) rooms() *room {
	if o.room == nil {
		o.room = &room{}
	}
	return o.room
}

// text says that a JSON string was added to a part. It reports whether v is a string.
func (o *out) text(p Part, v scan.Value) bool {
	if !v.IsString() {
		return false
	}
	o.raw(p, v.Content())
	return true
}

// raw is text for a string's content as it stands between its quotes.
func (o *out) raw(p Part, content []byte) {
	o.textOp.Kind, o.textOp.Part, o.textOp.Text, o.textOp.ASCII = Text, p, content, true
	if !isPlain(content) {
		o.textOp.Text, o.textOp.ASCII = o.unescape(content), false
	}
	o.emit(&o.textOp)
}

// isPlain reports whether b is ASCII without escapes, as most text is.
func isPlain(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		word := binary.LittleEndian.Uint64(b)
		x := word ^ '\\'*ones // a zero byte where there is a backslash
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

// final says the whole text of a part.
func (o *out) final(p Part, v scan.Value) {
	if v.IsString() {
		o.say(Op{Kind: Final, Part: p, Text: o.unescape(v.Content()), Cut: v.Cut()})
	}
}

func (o *out) unescape(content []byte) []byte {
	if bytes.IndexByte(content, '\\') < 0 {
		return content
	}
	o.buf = scan.AppendString(o.buf[:0], content)
	return o.buf
}

func (o *out) say(op Op) {
	o.op = op
	o.emit(&o.op)
}

func (o *out) head(field string, v scan.Value) {
	if s := v.Text(); s != "" {
		o.say(Op{Kind: Head, Name: field, More: s})
	}
}

// source says a source. One whose JSON breaks off is what could be read of it; if that is nothing, it is none.
func (o *out) source(s *Source) {
	if scan.Value(s.Raw).Cut() {
		if cmp.Or(s.ID, s.GlobalID, s.Title, s.URL, s.Filename, s.Content) == "" {
			return
		}
		cut := *s
		cut.Raw = nil
		s = &cut
	}
	o.whole(s)
}

// whole says a source whose JSON does not break off.
func (o *out) whole(s *Source) {
	r := o.rooms()
	r.src = *s
	o.say(Op{Kind: SourceOp, Source: &r.src})
}

func (o *out) cite(c *Cite) {
	r := o.rooms()
	r.at = *c
	o.say(Op{Kind: CiteOp, Cite: &r.at})
}

func (o *out) query(v scan.Value) {
	if s := v.Str(); s != "" {
		o.say(Op{Kind: Query, Name: s})
	}
}
func (o *out) tool(id, name string) { o.say(Op{Kind: Tool, Name: id, More: name}) }
func (o *out) finish(candidate int, r string) {
	o.say(Op{Kind: Finish, Part: Part{Candidate: candidate}, Name: r})
}
func (o *out) end()                      { o.say(Op{Kind: End}) }
func (o *out) fail(code, message string) { o.say(Op{Kind: Error, Name: code, More: message}) }

// failure says the error that a document holds, which is one even where it says nothing of itself.
func (o *out) failure(doc scan.Value) {
	code, message, ok := ReadError(doc)
	if !ok {
		code = "error"
	}
	o.fail(code, message)
}

func (o *out) meta(name string, v scan.Value) {
	if !v.IsNull() {
		o.say(Op{Kind: Meta, Name: name, Raw: v})
	}
}

// issue says that something was odd. The codes are listed in issue.go.
func (o *out) issue(code, detail string, raw scan.Value) {
	o.say(Op{Kind: Issue, Name: code, More: detail, Raw: raw})
}

// wantList says that v should be a list, if it is neither that nor missing.
func (o *out) wantList(what string, v scan.Value) {
	if !v.IsNull() && !v.IsArray() {
		o.issue(IssueWrongType, what, v)
	}
}

// unknown says that an item, annotation or event type has no meaning here.
func (o *out) unknown(what string, v scan.Value) { o.issue(IssueUnknownType, shorten(what), v) }

// index reads an offset or an index that a provider must send as a non-negative integer. Missing is ok = false without
// an issue; a wrong one is reported.
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

// shorten makes a value of any length fit for a message.
func shorten(s string) string { return text.Shorten(strings.ToValidUTF8(s, ""), 100) }

// documents returns the documents given to the model, with keys: those the caller gave, else those of the request.
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

// citeSet joins the sources of one span: some providers send a citation for each source of a span, several times over,
// where others send one citation with all its sources.
type citeSet struct {
	cites   map[citeKey]*heldCite
	touched []*heldCite // those that changed since they were said, in the order of arrival
	full    bool        // one had more references than are kept
}

// citeKey is what makes two citations one.
type citeKey struct {
	part       Part
	unit       Unit
	start, end int
	source     string // without a place each source is a citation of its own
}

// heldCite is a citation that may still get further sources.
type heldCite struct {
	Cite
	touched bool
	refs    map[refKey]bool // nil while there are few
}

// refKey is what makes two references one.
type refKey struct {
	source, quote string
	page          int
}

// maxRefs is how many references one citation may have. Each of them makes the citation be said again.
const maxRefs = 100

// fewRefs is how many references are searched one by one.
const fewRefs = 16

// add files a citation of one source and returns the key under which it will be said. The part, unit, base and offsets
// of c count.
func (s *citeSet) add(c *Cite, ref *Ref) string {
	k := citeKey{part: c.Part, unit: c.Unit, start: c.Start, end: c.End}
	if c.Unit == Nowhere {
		k.source = ref.Source
	}
	if s.cites == nil {
		s.cites = map[citeKey]*heldCite{}
	}
	held := s.cites[k]
	if held == nil {
		held = &heldCite{Cite: *c}
		held.Key, held.Refs = k.String(), nil
		s.cites[k] = held
	}
	if len(held.Refs) == maxRefs {
		s.full = true
		return held.Key
	}
	if held.has(ref) {
		return held.Key
	}
	held.Refs = append(held.Refs, *ref)
	if !held.touched {
		held.touched = true
		s.touched = append(s.touched, held)
	}
	return held.Key
}

// has reports whether a reference is there already. If it is not, the caller adds it.
func (h *heldCite) has(ref *Ref) bool {
	k := keyOf(ref)
	if len(h.Refs) < fewRefs {
		return slices.ContainsFunc(h.Refs, func(r Ref) bool { return keyOf(&r) == k })
	}
	if h.refs == nil {
		h.refs = map[refKey]bool{}
		for i := range h.Refs {
			h.refs[keyOf(&h.Refs[i])] = true
		}
	}
	if h.refs[k] {
		return true
	}
	h.refs[k] = true
	return false
}

func keyOf(r *Ref) refKey { return refKey{r.Source, r.Quote, r.Locator.Page} }

// String names the citation in the response.
func (k citeKey) String() string {
	b := make([]byte, 0, 32+len(k.source))
	b = strconv.AppendInt(b, int64(k.part.Message), 10)
	b = strconv.AppendInt(append(b, '/'), int64(k.part.Content), 10)
	if b = append(b, '/'); k.unit == Nowhere {
		return string(b) + k.source
	}
	b = strconv.AppendInt(b, int64(k.start), 10)
	return string(strconv.AppendInt(append(b, '-'), int64(k.end), 10))
}

// say says those that changed.
func (s *citeSet) say(o *out) {
	for _, c := range s.touched {
		c.touched = false
		o.cite(&c.Cite)
	}
	if s.full {
		s.full = false
		o.issue(IssueLimit, "refs of one citation", nil)
	}
	s.touched = s.touched[:0]
}
