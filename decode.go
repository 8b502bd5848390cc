package ibid

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// Generic is the format of anything that is not a known provider's response: its text is kept as it is, without
// citations.
const Generic = "generic"

// Formats returns the names of all formats that can be decoded, as [DecodeOptions.Format] takes them.
func Formats() []string { return append(wire.Formats(), Generic) }

// DecodeOptions is what is known about a response besides its bytes. With nil or the zero value, everything is
// detected.
type DecodeOptions struct {
	Format   string // one of [Formats]; if empty, detected from the bytes
	Provider string // the sender, for a format that several providers use; if empty, implied by the format
	Request  []byte // the body of the request: some formats name documents only there
	// the documents given to the model, in order, instead of those in Request; one with an empty ID gets the format's
	// default id
	Documents []Source
	// Mappings describe the responses of providers of one's own. They come before the formats. Those that
	// [Mapping.Check] refuses are ignored.
	Mappings []Mapping
	// Status is the status code of the HTTP response, 0 if unknown. With 300 or more the answer has an Error, whatever
	// the body is.
	Status int
	// One states that the input is a single response, such as an HTTP body: what follows a sure end mark (see
	// [Decoder.End]) is ignored. Otherwise another response may follow, as in a file that holds several.
	One    bool
	Limits Limits
	// Context, if not nil, ends [Decode] soon after it has ended itself: Decode then returns its cause and an empty
	// answer. Others that take these options ignore it.
	Context context.Context //nolint:containedctx // options of one call
}

// Limits bounds what a hostile response can cost. Zero fields mean the defaults. What exceeds a limit is left out and
// reported as an issue; text is never left out.
//
// Regardless of the fields, a closed decoder and its answer keep at most 1 MiB plus 8 times the bytes of the input,
// request and documents. What does not fit is left out and reported as "memory".
type Limits struct {
	Document     int // bytes of one JSON document or event; default 256 MiB
	Sources      int // default 100,000
	Citations    int // default 1,000,000
	Parts        int // default 100,000
	Alternatives int // default 64
	// of each: queries, tool calls, displays, refs of a citation, chunks of a source; default 1,000
	Items    int
	Issues   int // default 1,000
	Metadata int // bytes of provider metadata kept in total; default 16 MiB
}

func (l Limits) withDefaults() Limits {
	set := func(field *int, n int) {
		if *field <= 0 {
			*field = n
		}
	}
	set(&l.Document, frame.DefaultMaxDocument)
	set(&l.Sources, 100_000)
	set(&l.Citations, 1_000_000)
	set(&l.Parts, 100_000)
	set(&l.Alternatives, 64)
	set(&l.Items, 1_000)
	set(&l.Issues, 1_000)
	set(&l.Metadata, 16<<20)
	return l
}

// The causes of a [DecodeError].
var (
	ErrEmpty     = errors.New("nothing but white space")
	ErrBinary    = errors.New("not JSON, an event stream or text")
	ErrTruncated = errors.New("the input ends inside a document")
	ErrDamaged   = errors.New("damaged document")
	ErrTooLarge  = errors.New("document over the size limit")
	ErrFormat    = errors.New("no such format") // a mistake of the caller: see [Formats]
)

// DecodeError reports that a response was damaged. The answer still holds what could be read.
type DecodeError struct {
	Format   string // as far as it was detected
	Document int    // number of the document in the response, from 1
	Err      error  // wraps [ErrEmpty], [ErrBinary], [ErrTruncated], [ErrDamaged], [ErrTooLarge] or [ErrFormat]
}

// Error says which document was damaged and how.
func (e *DecodeError) Error() string {
	if e.Format == "" || e.Format == Generic {
		return "decode response: " + e.Err.Error()
	}
	return fmt.Sprintf("decode %s response: document %d: %v", e.Format, e.Document, e.Err)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// Decode reads a whole response: a JSON body, or a recorded stream of any transport. For a damaged one it returns what
// could be read and a *[DecodeError]. An error that the provider returned is not an error of Decode; it is in
// [Answer.Error].
func Decode(body []byte, opts *DecodeOptions) (*Answer, error) {
	if opts == nil || opts.Context == nil {
		return decode(nil, body, opts)
	}
	a, err := &Answer{}, error(nil)
	if ended := halt.Do(opts.Context, func(h *halt.Halt) { a, err = decode(h, body, opts) }); ended != nil {
		err = ended
	}
	return a, err
}

func decode(h *halt.Halt, body []byte, opts *DecodeOptions) (*Answer, error) {
	var d Decoder
	if opts != nil {
		d.Options = *opts
	}
	d.start()
	d.fold.halt = h
	_, _ = d.Write(body)
	_ = d.Close()
	return d.Answer()
}

// Stream reads a response as it arrives and yields what becomes known. The last event holds the [Answer]. An error of r
// or a *[DecodeError] is yielded once, with that event.
func Stream(r io.Reader, opts *DecodeOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var queue []Event
		d := Decoder{OnEvent: func(e Event) { queue = append(queue, e) }}
		if opts != nil {
			d.Options = *opts
		}
		buf := make([]byte, 32<<10)
		for done := false; !done; queue = queue[:0] {
			n, err := r.Read(buf)
			_, _ = d.Write(buf[:n])
			if done = err != nil; done {
				_ = d.Close()
			}
			for _, e := range queue {
				var failure error // set with the last event: an error of r or of the decoder
				if e.Kind == EventAnswer && !errors.Is(err, io.EOF) {
					failure = fmt.Errorf("read response: %w", err)
				} else if e.Kind == EventAnswer {
					_, failure = d.Answer()
				}
				if !yield(e, failure) {
					return
				}
			}
		}
	}
}

// Decoder reads a response that is written to it. The zero value is ready to use; set the fields before the first
// Write. A Decoder reads one response and is not safe for concurrent use.
type Decoder struct {
	Options DecodeOptions
	OnEvent func(Event) // called from Write and Close; may be nil

	frames     frame.Splitter
	parser     wire.Parser
	mapping    *wire.Mapping // of the parser's format; nil if it has none
	fold       *fold
	raw        []byte         // everything so far, until the format is known
	queue      [][2][]byte    // documents that left the format open: event, data
	earlyError *ProviderError // an error received before the format was known
	onlyError  *ProviderError // the first document, if it is an error unless another document follows
	refused    bool           // the HTTP status is that of an error
	refusal    []byte         // the beginning of a text sent with the HTTP status of an error
	count      int            // number of documents so far
	plain      bool           // the format is generic: all bytes are text
	partial    bool           // the document being parsed is incomplete
	ended      bool           // the response has ended; another may follow
	closed     bool
	damage     *DecodeError
	mark       endMark
}

// maxUnknown is after how many undetected documents the format is taken to be generic.
const maxUnknown = 16

// maxQueued is the size in bytes up to which an undetected document is kept, to be parsed once a later one reveals the
// format. Such documents, pings for example, are small.
const maxQueued = 64 << 10

// Write reads the next bytes of the response. It always consumes all of p and never fails, so that a damaged response
// cannot disturb the stream it was teed from. It does not retain p.
func (d *Decoder) Write(p []byte) (int, error) {
	if d.closed {
		return len(p), nil
	}
	d.start()
	d.fold.left += budgetPer * len(p)
	if d.plain {
		d.text(p)
		return len(p), nil
	}
	_, _ = d.frames.Write(p)
	switch {
	case d.plain && d.frames.Kind() != frame.Other: // just found to be generic: what was held is text too
		d.text(d.raw)
		d.text(p)
		d.raw = nil
	case d.parser == nil && !d.plain && d.frames.Kind() != frame.AWS:
		d.raw = append(d.raw, p...)
	}
	return len(p), nil
}

// Idle returns how many bytes were written since the last that could belong to an event. They are blank lines and the
// comments with which servers keep a connection open, possibly for ever.
func (d *Decoder) Idle() int64 {
	if d.plain {
		return 0
	}
	return d.frames.Idle()
}

// Close marks the end of the input. It emits the events held back, the answer last. It never fails and may be called
// again.
func (d *Decoder) Close() error {
	if d.closed {
		return nil
	}
	d.start()
	d.frames.Close()
	d.closed = true
	if d.count > 1 {
		d.onlyError = nil
	}
	if d.parser == nil {
		d.earlyError = cmp.Or(d.earlyError, d.onlyError)
		d.closeGeneric()
	} else {
		d.parser.Close()
		if b, ok := d.parser.(wire.Body); ok && d.count == 1 && d.damage == nil && !d.fold.complete &&
			d.frames.Kind() == frame.JSON && b.Whole() {
			d.fold.complete = true
			d.fold.issue("no-finish-reason", "the body is whole and does not say why the answer ended")
		}
		if d.onlyError != nil {
			d.addError(d.onlyError)
		}
	}
	if d.refused {
		d.addRefusal()
	}
	d.parser = nil
	d.fold.close()
	return nil
}

// Answer returns a snapshot of what is known so far or, after Close, the final answer; never nil. The error is a
// *[DecodeError] if the response was damaged.
func (d *Decoder) Answer() (*Answer, error) {
	d.start()
	a := d.fold.final
	if a == nil {
		a = d.fold.build()
	}
	if d.damage != nil {
		d.damage.Format = a.Format
		return a, d.damage
	}
	return a, nil
}

func (d *Decoder) start() {
	if d.fold != nil {
		return
	}
	limits := d.Options.Limits.withDefaults()
	d.fold = &fold{
		limits: limits, onEvent: d.OnEvent, provider: d.Options.Provider, providerFixed: d.Options.Provider != "",
	}
	d.fold.sources.fold = d.fold
	known := len(d.Options.Request)
	for i := range d.Options.Documents {
		s := &d.Options.Documents[i]
		known += size[Source]() + len(s.ID) + len(s.Title) + len(s.URL) + len(s.Content) + len(s.Raw)
	}
	d.fold.left = budgetBase + budgetPer*known
	if known > 0 {
		d.fold.given = &given{request: d.Options.Request, documents: wireDocuments(d.Options.Documents)}
	}
	d.refused = d.Options.Status >= 300
	d.frames.Emit = d.document
	d.frames.MaxDocument = limits.Document
	switch format := d.Options.Format; format {
	case "":
	case Generic:
		d.generic()
	default:
		d.use(format)
		d.fold.formatFixed = true
	}
}

// wireDocuments converts the caller's documents.
func wireDocuments(list []Source) []wire.Source {
	documents := make([]wire.Source, 0, len(list))
	for i := range list {
		s := &list[i]
		documents = append(documents, wire.Source{
			Key:         s.ID,
			ID:          s.ID,
			GlobalID:    s.GlobalID,
			Kind:        string(s.Kind),
			Title:       s.Title,
			URL:         s.URL,
			OriginalURL: s.OriginalURL,
			Filename:    s.Filename,
			Site:        s.Site,
			Authors:     s.Authors,
			PublishedAt: s.PublishedAt,
			License:     s.License,
			Content:     s.Content,
			Score:       s.Score,
		})
	}
	return documents
}

// use sets the format of the response.
func (d *Decoder) use(format string) {
	c := &wire.Config{
		Request:   scan.Value(bytes.TrimSpace(d.Options.Request)),
		Documents: wireDocuments(d.Options.Documents),
		Mapping:   d.mapping,
		Emit:      d.op,
		Stream:    func() bool { return d.frames.Kind() == frame.SSE },
		Keep:      d.fold.keep,
	}
	p, err := wire.New(format, c)
	if err != nil {
		d.fail(ErrFormat, format)
		d.generic()
		return
	}
	d.parser = p
}

// generic sets the format to [Generic]: all bytes are text.
func (d *Decoder) generic() {
	d.plain = true
	d.fold.format = Generic
	d.fold.provider = cmp.Or(d.fold.provider, Generic)
}

// next begins another response in the same input.
func (d *Decoder) next(f frame.Frame) {
	d.parser.Close()
	d.fold.next()
	d.ended, d.mark = false, endMark{}
	format := d.fold.format
	if !d.fold.formatFixed {
		format = cmp.Or(d.recognise(f), format)
	}
	d.use(format)
}

// recognise returns the format of a document, or "", and sets its mapping.
func (d *Decoder) recognise(f frame.Frame) string {
	for i := range d.Options.Mappings {
		m := wire.Mapping(d.Options.Mappings[i])
		if m.Check() == nil && m.Looks(d.Options.Provider, f.Data) {
			d.mapping = &m
			return wire.GenericSources
		}
	}
	format := wire.Detect(f.Event, f.Data)
	if format != "" {
		d.mapping = nil
	}
	return format
}

// another reports whether a document that follows the end of a response begins another one.
func (d *Decoder) another(f frame.Frame) bool {
	if d.mapping != nil && d.mapping.Looks(d.Options.Provider, f.Data) {
		return true
	}
	return wire.Another(d.fold.format, d.fold.id, f.Event, f.Data)
}

// op handles an operation of the parser.
func (d *Decoder) op(op *wire.Op) {
	d.fold.halt.Check()
	if op.Kind == wire.End || op.Kind == wire.Error {
		cut := d.partial || d.damage != nil && errors.Is(d.damage.Err, ErrTruncated)
		if !cut {
			d.setEnd(op.Open && d.frames.Kind() != frame.JSON)
		}
		if op.Kind == wire.End {
			d.ended = true
			if cut {
				return // a truncated response is not complete, even if the end of the input is the only end mark
			}
		}
	}
	d.fold.op(op)
}

// document handles one frame of the response.
func (d *Decoder) document(f frame.Frame) {
	d.fold.halt.Check()
	if d.frames.Kind() == frame.Other {
		d.generic()
		d.raw = nil // the frame includes it
		d.text(f.Data)
		return
	}
	if d.plain {
		return // Write handles these bytes as text, with those of earlier documents
	}
	if f.Done {
		d.op(&wire.Op{Kind: wire.End})
		return
	}
	if d.mark.seen && !d.mark.open && (d.Options.One || f.Err != nil && errors.Is(f.Err, frame.ErrTruncated) &&
		!d.another(f)) {
		return // a fragment after the end mark does not concern the answer
	}
	d.count++
	if d.mark.open {
		d.mark = endMark{}
	}
	if f.Err != nil {
		d.addDamage(f.Err)
		d.partial = errors.Is(f.Err, frame.ErrTruncated)
		d.fold.broken = d.partial
	}
	if len(f.Data) == 0 || f.Err != nil && errors.Is(f.Err, frame.ErrTrailing) {
		return
	}
	if f.Data[0] <= ' ' {
		if f.Data = bytes.TrimSpace(f.Data); len(f.Data) == 0 {
			return
		}
	}
	if f.Exception {
		d.op(&wire.Op{Kind: wire.Error, Name: string(f.Event), More: wire.ReadException(f.Data)})
		return
	}
	if d.parser == nil && !d.detect(f) {
		return
	}
	if d.ended && d.another(f) {
		d.next(f)
	}
	if !d.parser.Parse(f.Event, f.Data) {
		d.handleUnknown(f.Event, f.Data)
	}
	d.partial = false
}

// detect detects the format from a document. It returns false while the format is open and if it turns out to be
// generic.
func (d *Decoder) detect(f frame.Frame) bool {
	if format := d.recognise(f); format != "" {
		d.use(format)
		d.raw = nil
		for _, q := range d.queue {
			if !d.parser.Parse(q[0], q[1]) {
				d.handleUnknown(q[0], q[1])
			}
		}
		d.queue, d.mark = nil, endMark{} // the response went on after them
		return true
	}
	if len(d.queue) < maxUnknown && len(f.Data) <= maxQueued {
		d.queue = append(d.queue, [2][]byte{slices.Clone(f.Event), slices.Clone(f.Data)})
	}
	if d.earlyError == nil {
		if code, message, ok := wire.ReadError(f.Event, f.Data); ok {
			d.earlyError = &ProviderError{Code: code, Message: message}
			d.setEnd(d.frames.Kind() != frame.JSON) // a later document may still reveal the format
		}
	}
	_ = d.readOnlyError(f.Data)
	if d.count >= maxUnknown && d.frames.Kind() != frame.AWS {
		d.generic()
		d.queue = nil
	}
	return false
}

// handleUnknown handles a document that the parser does not know: an error in some shape, or an issue.
func (d *Decoder) handleUnknown(event, data []byte) {
	if code, message, ok := wire.ReadError(event, data); ok {
		d.op(&wire.Op{Kind: wire.Error, Name: code, More: message})
		return
	}
	if d.readOnlyError(data) {
		return
	}
	const limit = 512 // bytes, more than the snippet shows
	beginning := fmt.Sprintf("document %d: %s", d.count, snippet(string(data[:min(len(data), limit)])))
	if !d.partial && !json.Valid(data) {
		d.fold.issue("bad-json", beginning)
		return
	}
	d.fold.issue(wire.IssueUnknownType, beginning)
}

// closeGeneric ends a response whose format was not detected.
func (d *Decoder) closeGeneric() {
	d.generic()
	if d.earlyError != nil {
		d.addError(d.earlyError)
		return
	}
	if d.frames.Kind() == frame.AWS { // its raw bytes are not text
		for _, q := range d.queue {
			d.text(append(q[1], '\n'))
		}
		d.raw = nil
	}
	d.text(d.raw)
	queue := d.queue
	d.raw, d.queue = nil, nil
	text := ""
	if c := d.fold.main(); c != nil {
		text = c.text.String()
	}
	for _, q := range queue {
		if !d.refused && json.Valid(q[1]) {
			wire.ReportUnread(q[1], d.fold.op)
		}
	}
	switch {
	case d.damage != nil, d.fold.failure != nil, d.refused:
	case strings.TrimSpace(text) == "":
		d.fail(ErrEmpty, "")
	case strings.Contains(text, "\x00"):
		d.fail(ErrBinary, "")
	case isHTML(text):
		d.fold.op(&wire.Op{Kind: wire.Error, Name: htmlPage, More: htmlTitle(text)})
	default:
		d.fold.op(&wire.Op{Kind: wire.End})
	}
}

func (d *Decoder) text(p []byte) {
	switch {
	case d.refused:
		d.refusal = append(d.refusal, p[:min(len(p), maxRefusal-len(d.refusal))]...)
	case len(p) > 0:
		d.fold.op(&wire.Op{Kind: wire.Text, Text: p})
	}
}

// addDamage records the damage of a frame.
func (d *Decoder) addDamage(err error) {
	switch {
	case errors.Is(err, frame.ErrTruncated):
		d.fold.issue("truncated", fmt.Sprintf("document %d", d.count))
		d.fail(ErrTruncated, "")
	case errors.Is(err, frame.ErrTooLarge):
		d.fold.issue("document-too-large", fmt.Sprintf("document %d", d.count))
		d.fail(ErrTooLarge, "")
	case errors.Is(err, frame.ErrTrailing):
		if d.parser == nil {
			return // all of it is text that happens to begin like JSON
		}
		d.fold.issue("trailing-bytes", fmt.Sprintf("after document %d", d.count-1))
	default:
		d.fold.issue("damaged-frame", fmt.Sprintf("document %d: %v", d.count, err))
		d.fail(ErrDamaged, err.Error())
	}
}

// fail records the damage, unless there was some before.
func (d *Decoder) fail(cause error, detail string) {
	if d.damage != nil {
		return
	}
	if detail != "" {
		cause = fmt.Errorf("%w: %s", cause, detail)
	}
	d.fold.damaged = true
	d.damage = &DecodeError{Document: d.count, Err: cause}
}

// endMark is the place where a response marks its end.
type endMark struct {
	at   int64
	seen bool
	open bool // only the end of the input confirms it
}

// End returns the byte offset in the input of the end mark, which tells a reader that the answer is complete or ended
// with an error. It is the first byte of its event, NDJSON line, array element or binary message; in a JSON body, the
// last byte that is not white space. At is -1 until the whole end mark has been written, and remains -1 if only the end
// of the input marks the end. It does not depend on how the input is split into writes.
//
// Sure is false for an end mark that only the end of the input confirms, such as one in a Gemini chunk: if another
// document follows, At is -1 again. A sure end mark is final. If the input holds several responses, as a file may, End
// returns that of the last. A fragment after it is not part of the response, and not damage.
func (d *Decoder) End() (at int64, sure bool) {
	if !d.mark.seen {
		return -1, false
	}
	return d.mark.at, !d.mark.open
}

// setEnd records the current document as the end mark, unless there is a sure one or the input has ended.
func (d *Decoder) setEnd(open bool) {
	if d.closed || d.mark.seen && !d.mark.open {
		return
	}
	d.mark = endMark{at: d.frames.Mark(), seen: true, open: open}
}

// CallOptions returns what the method and the URL of an API call reveal about its response, and whether the response is
// an answer: false for a list of models, an embedding, an upload; true for fetching an earlier answer.
//
// The host determines the provider. If the host is unknown, such as a gateway's, the end of the path decides, and
// everything else is detected from the bytes. Request, Documents and Limits are left for the caller to set.
func CallOptions(method string, u *url.URL) (DecodeOptions, bool) {
	provider := call.FindHost(strings.ToLower(u.Host))
	route, ok := call.FindRoute(provider, method, u.EscapedPath())
	if !ok || provider == "" {
		return DecodeOptions{}, ok
	}
	return DecodeOptions{Provider: route.Provider}, true
}

// ReadDocuments reads the documents that were given to a model, for [DecodeOptions].Documents. raw is a JSON array of
// strings, flat objects with members such as title, url and text, or objects with an id and data, which is a string or
// such a flat object. null is the same as an empty array.
//
// The content of a document is its text, else its snippet, else its content, else the whole document as JSON. Without
// an id, [Source.ID] is empty and decoding assigns the format's positional id. [Source.Raw] is the element.
//
// The error names the bad element, counted from 0.
func ReadDocuments(raw []byte) ([]Source, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return nil, errors.New("documents: no bytes")
	}
	found, err := wire.ReadDocuments(scan.Value(raw))
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	docs := make([]Source, 0, len(found))
	for i := range found {
		s, _ := newSource(&found[i])
		s.ID = validText(found[i].ID)
		docs = append(docs, s)
	}
	return docs, nil
}

const (
	maxRefusal = 16 << 10 // bytes of a body searched for the reason of a refusal
	maxReason  = 500      // characters of the reason in the message
)

// addRefusal adds an error with the HTTP status as its code. An error in the body takes precedence; it only gets the
// status as its code if it has none.
func (d *Decoder) addRefusal() {
	code := strconv.Itoa(d.Options.Status)
	if e := d.fold.failure; e != nil {
		if e.Code == wire.UnnamedError {
			e.Code = code
		}
		return
	}
	reason := text.Shorten(strings.Join(strings.Fields(validText(string(d.refusal))), " "), maxReason)
	if isHTML(string(d.refusal)) {
		reason = htmlTitle(string(d.refusal))
	}
	reason = cmp.Or(reason, "the HTTP status is that of an error, and the body gives no reason")
	d.addError(&ProviderError{Code: code, Message: reason})
}

// readOnlyError stores what may be an error in the first document of a body, which it is if nothing follows (see
// [wire.BareError]), and reports whether there is one.
func (d *Decoder) readOnlyError(data []byte) bool {
	if d.count > 1 || d.frames.Kind() != frame.JSON {
		return false
	}
	code, message, ok := wire.BareError(data)
	if ok {
		d.onlyError = &ProviderError{Code: code, Message: message}
	}
	return ok
}

// addError passes an error that was held back to the fold.
func (d *Decoder) addError(e *ProviderError) {
	d.fold.op(&wire.Op{Kind: wire.Error, Name: e.Code, More: e.Message})
}

// htmlPage is the code of an error whose body is an HTML page.
const htmlPage = "html-page"

// isHTML reports whether text is an HTML page, as failing servers and proxies send.
func isHTML(text string) bool {
	start := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// htmlTitle returns the title of an HTML page, for a message.
func htmlTitle(text string) string {
	const untitled = "an HTML page"
	text = text[:min(len(text), maxRefusal)]
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // offsets differ: some letters are longer in lower case
		return untitled
	}
	start := strings.Index(lower, "<title")
	if start < 0 {
		return untitled
	}
	start += strings.Index(lower[start:]+">", ">") + 1
	end := strings.Index(lower[min(start, len(lower)):], "</title")
	if end < 0 {
		return untitled
	}
	return untitled + ": " + strings.Join(strings.Fields(html.UnescapeString(text[start:start+end])), " ")
}
