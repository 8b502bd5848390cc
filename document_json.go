package ibid

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxNested is how deep alternatives may lie in alternatives for a document to be written by hand. encoding/json, which
// notices when they lie in themselves, has the rest.
const maxNested = 100

// AppendJSON appends d to b as [Document.JSON] returns it. On an error, which is JSON's, b is returned as it was.
func (d *Document) AppendJSON(b []byte) ([]byte, error) {
	w := jsonWriter{b: slices.Grow(b, d.sizeJSON())}
	if w.document(d, 0); !w.failed {
		return w.b, nil
	}
	data, err := marshalPlain(d)
	if err != nil {
		return b, err
	}
	return append(b, data...), nil
}

// sizeJSON is about the length of d as JSON.
func (d *Document) sizeJSON() int {
	if d == nil {
		return 0
	}
	size := 800 + len(d.Text) + len(d.Text)/32 + len(d.CitedText) + 100*len(d.Parts) + 700*len(d.Sources)
	for i := range d.Sources {
		size += len(orZero(d.Sources[i].Content))
		for k := range d.Sources[i].Chunks {
			size += 100 + len(orZero(d.Sources[i].Chunks[k].Content))
		}
	}
	for i := range d.Citations {
		size += 600 + len(orZero(d.Citations[i].CitedText)) + len(orZero(d.Citations[i].Quote))
	}
	for _, raw := range d.Metadata {
		size += 50 + len(raw)
	}
	return size
}

// jsonWriter writes byte for byte what encoding/json does with its HTML escapes off, in a tenth of the time. Where
// encoding/json has an error to report, it fails. Names are written as they must be: with their comma, quotes and
// colon.
type jsonWriter struct {
	b      []byte
	failed bool
}

func (w *jsonWriter) document(d *Document, depth int) {
	if d == nil {
		w.raw("null")
		return
	}
	if depth > maxNested {
		w.failed = true
		return
	}
	w.int(`{"version":`, d.Version)
	if d.Input != "" {
		w.string(`,"input":`, d.Input)
	}
	writeNullable(w, `,"answer_id":`, d.AnswerID)
	writeNullable(w, `,"id":`, d.ID)
	writeNullable(w, `,"provider":`, d.Provider)
	writeNullable(w, `,"format":`, d.Format)
	writeNullable(w, `,"model":`, d.Model)
	w.time(`,"created_at":`, d.CreatedAt)
	w.bool(`,"complete":`, d.Complete)
	writeNullable(w, `,"finish":`, d.Finish)
	if w.raw(`,"error":`); d.Error == nil {
		w.raw("null")
	} else {
		w.pair(`{"code":`, d.Error.Code, `,"message":`, d.Error.Message)
	}
	w.string(`,"text":`, d.Text)
	w.string(`,"text_sha256":`, d.TextSHA256)
	w.string(`,"unit":`, string(d.Unit))
	w.rows(d)
	w.strings(`,"queries":`, d.Queries)
	w.rest(d)
	if w.list(`,"alternatives":`, d.Alternatives == nil) {
		for i, other := range d.Alternatives {
			w.comma(i)
			w.document(other, depth+1)
		}
		w.raw("]")
	}
	if w.list(`,"issues":`, d.Issues == nil) {
		for i := range d.Issues {
			w.comma(i)
			w.pair(`{"code":`, d.Issues[i].Code, `,"detail":`, d.Issues[i].Detail)
		}
		w.raw("]")
	}
	w.metadata(d.Metadata)
	w.raw("}")
}

func (w *jsonWriter) rows(d *Document) {
	if w.list(`,"parts":`, d.Parts == nil) {
		for i := range d.Parts {
			w.comma(i)
			w.part(&d.Parts[i])
		}
		w.raw("]")
	}
	w.string(`,"cited_text":`, d.CitedText)
	w.bool(`,"has_citations":`, d.HasCitations)
	if w.list(`,"sources":`, d.Sources == nil) {
		for i := range d.Sources {
			w.comma(i)
			w.source(&d.Sources[i])
		}
		w.raw("]")
	}
	if w.list(`,"citations":`, d.Citations == nil) {
		for i := range d.Citations {
			w.comma(i)
			w.citation(&d.Citations[i])
		}
		w.raw("]")
	}
}

func (w *jsonWriter) rest(d *Document) {
	if w.list(`,"tool_calls":`, d.ToolCalls == nil) {
		for i := range d.ToolCalls {
			w.comma(i)
			w.pair(`{"id":`, d.ToolCalls[i].ID, `,"name":`, d.ToolCalls[i].Name)
		}
		w.raw("]")
	}
	if w.list(`,"display_requirements":`, d.Display == nil) {
		for i := range d.Display {
			w.comma(i)
			w.pair(`{"kind":`, d.Display[i].Kind, `,"html":`, d.Display[i].HTML)
		}
		w.raw("]")
	}
}

func (w *jsonWriter) part(p *DocumentPart) {
	w.int(`{"text_start":`, p.TextStart)
	w.int(`,"text_end":`, p.TextEnd)
	w.string(`,"kind":`, string(p.Kind))
	w.int(`,"message":`, p.Message)
	w.int(`,"content":`, p.Content)
	w.raw("}")
}

func (w *jsonWriter) source(s *DocumentSource) {
	w.int(`{"index":`, s.Index)
	w.string(`,"id":`, s.ID)
	w.string(`,"key":`, s.Key)
	if s.GlobalID != "" {
		w.string(`,"global_id":`, s.GlobalID)
	}
	w.string(`,"kind":`, string(s.Kind))
	writeNullable(w, `,"title":`, s.Title)
	writeNullable(w, `,"url":`, s.URL)
	writeNullable(w, `,"original_url":`, s.OriginalURL)
	writeNullable(w, `,"filename":`, s.Filename)
	writeNullable(w, `,"site":`, s.Site)
	w.strings(`,"authors":`, s.Authors)
	writeNullable(w, `,"published_at":`, s.PublishedAt)
	w.time(`,"retrieved_at":`, s.RetrievedAt)
	writeNullable(w, `,"license":`, s.License)
	writeNullable(w, `,"content":`, s.Content)
	if w.list(`,"chunks":`, s.Chunks == nil) {
		for i := range s.Chunks {
			w.comma(i)
			w.chunk(&s.Chunks[i])
		}
		w.raw("]")
	}
	w.float(`,"score":`, s.Score)
	writeNullable(w, `,"score_origin":`, s.ScoreOrigin)
	w.bool(`,"cited":`, s.Cited)
	w.raw("}")
}

func (w *jsonWriter) chunk(c *DocumentChunk) {
	writeNullable(w, `{"id":`, c.ID)
	writeNullable(w, `,"content":`, c.Content)
	w.float(`,"score":`, c.Score)
	w.locator(`,"locator":`, c.Locator)
	w.raw("}")
}

func (w *jsonWriter) citation(c *DocumentCitation) {
	w.string(`{"id":`, c.ID)
	w.int(`,"group":`, c.Group)
	w.int(`,"index":`, c.Index)
	w.string(`,"source_id":`, c.SourceID)
	writeNullable(w, `,"source_title":`, c.SourceTitle)
	writeNullable(w, `,"source_url":`, c.SourceURL)
	w.maybeInt(`,"text_start":`, c.TextStart)
	w.maybeInt(`,"text_end":`, c.TextEnd)
	writeNullable(w, `,"cited_text":`, c.CitedText)
	w.maybeInt(`,"claim_start":`, c.ClaimStart)
	w.maybeInt(`,"claim_end":`, c.ClaimEnd)
	w.bool(`,"claim_inferred":`, c.ClaimInferred)
	writeNullable(w, `,"quote":`, c.Quote)
	w.locator(`,"locator":`, c.Locator)
	w.float(`,"confidence":`, c.Confidence)
	w.string(`,"covers":`, string(c.Covers))
	w.string(`,"anchor":`, string(c.Anchor))
	w.string(`,"origin":`, string(c.Origin))
	if w.raw(`,"support":`); c.Support == nil {
		w.raw("null")
	} else {
		w.string(`{"label":`, c.Support.Label)
		w.float(`,"score":`, c.Support.Score)
		w.string(`,"by":`, c.Support.By)
		w.raw("}")
	}
	if w.raw(`,"verification":`); c.Verification == nil {
		w.raw("null}")
	} else {
		w.string(`{"status":`, c.Verification.Status)
		w.time(`,"checked_at":`, instant(c.Verification.CheckedAt))
		w.raw("}}")
	}
}

// locator leaves out what is not known.
func (w *jsonWriter) locator(name string, l *Locator) {
	w.raw(name)
	if l == nil {
		w.raw("null")
		return
	}
	begin := len(w.b)
	if l.Page != 0 {
		w.int(`,"page":`, l.Page)
	}
	if len(l.Pages) > 0 {
		w.list(`,"pages":`, false)
		for i, page := range l.Pages {
			w.comma(i)
			w.int("", page)
		}
		w.raw("]")
	}
	if l.Chunk != "" {
		w.string(`,"chunk":`, l.Chunk)
	}
	for _, field := range [...]struct {
		name  string
		value *int
	}{{`,"block":`, l.Block}, {`,"block_end":`, l.BlockEnd}, {`,"char_start":`, l.CharStart}, {`,"char_end":`, l.CharEnd}} {
		if field.value != nil {
			w.int(field.name, *field.value)
		}
	}
	if len(w.b) == begin {
		w.raw("{")
	} else {
		w.b[begin] = '{' // where the first comma is
	}
	w.raw("}")
}

func (w *jsonWriter) metadata(m map[string]json.RawMessage) {
	if len(m) == 0 {
		return
	}
	next := byte('{')
	w.raw(`,"provider_metadata":`)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w.b = append(w.b, next)
		next = ','
		w.b = append(appendQuoted(w.b, name), ':')
		if m[name] == nil {
			w.raw("null")
			continue
		}
		out := bytes.NewBuffer(w.b)
		w.failed = json.Compact(out, m[name]) != nil || w.failed
		w.b = out.Bytes()
	}
	w.raw("}")
}

func writeNullable[T ~string](w *jsonWriter, name string, v *T) {
	if v == nil {
		w.b = append(append(w.b, name...), "null"...)
		return
	}
	w.string(name, string(*v))
}

// list begins a list, unless it is nil. Lists are written by loops where they stand, not by a function that is passed
// along: with one the writer would have to live on the heap.
func (w *jsonWriter) list(name string, isNil bool) bool {
	w.raw(name)
	if isNil {
		w.raw("null")
		return false
	}
	w.raw("[")
	return true
}

// comma stands before every element of a list but the first.
func (w *jsonWriter) comma(i int) {
	if i > 0 {
		w.raw(",")
	}
}

func (w *jsonWriter) strings(name string, list []string) {
	if !w.list(name, list == nil) {
		return
	}
	for i, s := range list {
		w.comma(i)
		w.string("", s)
	}
	w.raw("]")
}

func (w *jsonWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *jsonWriter) string(name, s string) { w.b = appendQuoted(append(w.b, name...), s) }

// pair writes an object of two members.
func (w *jsonWriter) pair(firstName, first, secondName, second string) {
	w.string(firstName, first)
	w.string(secondName, second)
	w.raw("}")
}

func (w *jsonWriter) int(name string, n int) {
	w.b = strconv.AppendInt(append(w.b, name...), int64(n), 10)
}

func (w *jsonWriter) bool(name string, v bool) { w.b = strconv.AppendBool(append(w.b, name...), v) }

func (w *jsonWriter) maybeInt(name string, n *int) {
	if n == nil {
		w.raw(name)
		w.raw("null")
		return
	}
	w.int(name, *n)
}

func (w *jsonWriter) float(name string, f *float64) {
	w.raw(name)
	switch {
	case f == nil:
		w.raw("null")
	case !isFinite(*f):
		w.failed = true
	default:
		w.b = appendFloat(w.b, *f)
	}
}

func (w *jsonWriter) time(name string, t *time.Time) {
	w.raw(name)
	if t == nil {
		w.raw("null")
		return
	}
	w.raw(`"`)
	b, err := t.AppendText(w.b)
	if err != nil {
		w.failed = true
		return
	}
	w.b = append(b, '"')
}

// appendFloat writes f as ES6 does, and with it encoding/json.
func appendFloat(b []byte, f float64) []byte {
	if abs := math.Abs(f); abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, f, 'e', -1, 64)
	if n := len(b); n >= 4 && b[n-4] == 'e' && (b[n-3] == '-' || b[n-3] == '+') && b[n-2] == '0' { // e-09 is e-9
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// appendQuoted writes s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := skipPlain(s, 0); i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			b = appendEscape(append(b, s[from:i]...), c)
			from = i + 1
			i = skipPlain(s, from)
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[from:i]...), `\ufffd`...)
			from = i + size
		case r == '\u2028' || r == '\u2029': // JSON allows them, JavaScript did not
			b = append(append(b, s[from:i]...), `\u202`...)
			b = append(b, '8'+byte(r&1))
			from = i + size
		}
		if i += size; i < len(s) && s[i] < utf8.RuneSelf {
			i = skipPlain(s, i)
		}
	}
	return append(append(b, s[from:]...), '"')
}

// appendEscape writes a character that may not stand in a string as it is.
func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	}
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// skipPlain returns the index of the first byte of s from i on that needs a look: below a space, a quote, a backslash,
// or no ASCII. It looks at eight bytes at once.
func skipPlain(s string, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, backslash := x^'"'*ones, x^'\\'*ones
		// the lowest is right
		if found := (x | (x - ' '*ones) | (quote - ones) | (backslash - ones)) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}
