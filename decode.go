package ibid

import (
	"bytes"
	"cmp"
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
	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// Generic is the format of whatever is no known provider's response: its text is shown as it is, without citations.
const Generic = "generic"

// Formats returns the names of all formats that can be decoded, as [DecodeOptions.Format] takes them.
func Formats() []string { return append(wire.Formats(), Generic) }

// DecodeOptions says what is known of a response besides its bytes. The zero value, and nil, means: nothing; all is
// recognised.
type DecodeOptions struct {
	Format   string // one of [Formats]; empty: recognised from the bytes
	Provider string // who sent it, for a format that several send; empty: told by the format
	Request  []byte // the request body that this answers: some formats name documents only there
	// the documents given to the model, in order, in place of those in Request; an empty ID means the format's default
	// id
	Documents []Source
	// Status is the status code of the HTTP response; 0: not known. From 300 on the answer has an Error, whatever the
	// body says.
	Status int
	// One says that the input is one response, as an HTTP body is: what follows a sure end mark (see [Decoder.End]) is
	// left alone. Otherwise it may be another response, as in a file that was put together from several.
	One    bool
	Limits Limits
}

// Limits bounds what a hostile response can cost. Zero fields mean the defaults. What goes over a limit is left out and
// reported as an issue; the text never is.
//
// Whatever the fields say, a closed decoder and its answer keep at most 8 times the bytes of the input (with those of
// the request and the documents) and 1 MiB. What does not fit is left out and reported, as "memory".
type Limits struct {
	Document     int // bytes of one JSON document or event; default 256 MiB
	Sources      int // default 100,000
	Citations    int // default 1,000,000
	Parts        int // default 100,000
	Alternatives int // default 64
	// queries, tool calls, things to display, refs of one citation, chunks of one source: of each; default 1,000
	Items    int
	Issues   int // default 1,000
	Metadata int // bytes of all provider metadata kept; default 16 MiB
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
	ErrFormat    = errors.New("no such format") // the caller's mistake: see [Formats]
)

// DecodeError says that a response was damaged. What could be read is in the answer all the same.
type DecodeError struct {
	Format   string // as far as it was recognised
	Document int    // which document of the response, from 1
	Err      error  // wraps one of [ErrEmpty], [ErrBinary], [ErrTruncated], [ErrDamaged], [ErrTooLarge], [ErrFormat]
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

// Decode reads a whole response: a JSON body, or a recorded stream of any transport. A damaged one gives what could be
// read and a *[DecodeError]. An error that the provider answered with is not an error of Decode but [Answer.Error].
func Decode(body []byte, opts *DecodeOptions) (*Answer, error) {
	var d Decoder
	if opts != nil {
		d.Options = *opts
	}
	_, _ = d.Write(body)
	_ = d.Close()
	return d.Answer()
}

// Stream reads a response while it arrives and yields what becomes known. The last event holds the [Answer]. An error
// of r or a *[DecodeError] is yielded once, with the answer's event.
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
				var failure error // of the last event: whether it came of reading or of the bytes
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
// Write. A Decoder is for one response and one goroutine.
type Decoder struct {
	Options DecodeOptions
	OnEvent func(Event) // called inside Write and Close; nil: nobody listens

	frames     frame.Splitter
	parser     wire.Parser
	fold       *fold
	raw        []byte         // everything so far, until the format is known
	queue      [][2][]byte    // documents that did not tell the format: event, data
	earlyError *ProviderError // an error that came before the format was known
	onlyError  *ProviderError // the first document, if it is an error in case nothing follows it
	refused    bool           // the HTTP status says that the body is not an answer
	refusal    []byte         // the beginning of a text that came with the HTTP status of an error
	count      int            // documents so far
	plain      bool           // the format is generic: bytes are text
	partial    bool           // the document being parsed is incomplete
	ended      bool           // the response has ended; what follows may be another
	closed     bool
	damage     *DecodeError
	mark       endMark
}

// maxUnknown is how many documents may leave the format open before it is taken for generic.
const maxUnknown = 16

// maxTelling is how large a document may be, in bytes, to be read again once a later one has told the format. Those
// that do not tell it, such as pings, are small.
const maxTelling = 64 << 10

// Write takes the next bytes of the response. It always takes all of them and never fails, so that a damaged response
// cannot harm the stream it was teed from. It does not keep p.
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
	case d.plain && d.frames.Kind() != frame.Other: // just found to be generic: give back what was taken for documents
		d.text(d.raw)
		d.text(p)
		d.raw = nil
	case d.parser == nil && !d.plain && d.frames.Kind() != frame.AWS:
		d.raw = append(d.raw, p...)
	}
	return len(p), nil
}

// Close says that the input has ended. It emits what was held back, and last the answer. It never fails and may be
// called again.
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
		if d.onlyError != nil {
			d.failed(d.onlyError)
		}
	}
	if d.refused {
		d.refuse()
	}
	d.parser = nil
	d.fold.close()
	return nil
}

// Answer returns what is known so far: a snapshot at any time, the final answer after Close. It is never nil. The error
// is a *[DecodeError] if the response was damaged.
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

// use makes format the format of the response.
func (d *Decoder) use(format string) {
	documents := make([]wire.Source, 0, len(d.Options.Documents))
	for i := range d.Options.Documents {
		s := &d.Options.Documents[i]
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
	c := &wire.Config{
		Provider:  d.Options.Provider,
		Request:   scan.Value(bytes.TrimSpace(d.Options.Request)),
		Documents: documents,
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

// generic says that no provider's format is known, and that all bytes are text.
func (d *Decoder) generic() {
	d.plain = true
	d.fold.format = Generic
	d.fold.provider = cmp.Or(d.fold.provider, Generic)
}

// next begins another response, which follows in the same input.
func (d *Decoder) next(f frame.Frame) {
	d.parser.Close()
	d.fold.next()
	d.ended, d.mark = false, endMark{}
	format := d.fold.format
	if next := wire.Detect(f.Event, f.Data); next != "" && !d.fold.formatFixed {
		format = next
	}
	d.use(format)
}

// op takes an operation of the parser.
func (d *Decoder) op(op *wire.Op) {
	if op.Kind == wire.End || op.Kind == wire.Error {
		cut := d.partial || d.damage != nil && errors.Is(d.damage.Err, ErrTruncated)
		if !cut {
			d.marked(op.Open && d.frames.Kind() != frame.JSON)
		}
		if op.Kind == wire.End {
			d.ended = true
			if cut {
				return // what is cut off is not complete, even where the end of the input is the only end mark
			}
		}
	}
	d.fold.op(op)
}

// document takes one frame of the response.
func (d *Decoder) document(f frame.Frame) {
	if d.frames.Kind() == frame.Other {
		d.generic()
		d.raw = nil // the frame begins with what was held
		d.text(f.Data)
		return
	}
	if d.plain {
		return // Write passes these bytes on as text, with those of the documents before
	}
	if f.Done {
		d.op(&wire.Op{Kind: wire.End})
		return
	}
	if d.mark.seen && !d.mark.open && (d.Options.One || f.Err != nil && errors.Is(f.Err, frame.ErrTruncated) &&
		!wire.Another(d.fold.format, d.fold.id, f.Event, f.Data)) {
		return // what breaks off behind the end mark has nothing to do with the answer
	}
	d.count++
	if d.mark.open {
		d.mark = endMark{}
	}
	if f.Err != nil {
		d.damaged(f.Err)
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
	if d.parser == nil && !d.recognise(f) {
		return
	}
	if d.ended && wire.Another(d.fold.format, d.fold.id, f.Event, f.Data) {
		d.next(f)
	}
	if !d.parser.Parse(f.Event, f.Data) {
		d.unread(f.Event, f.Data)
	}
	d.partial = false
}

// recognise finds the format from a document. It is false while that is open, and where the response turns out generic.
func (d *Decoder) recognise(f frame.Frame) bool {
	if format := wire.Detect(f.Event, f.Data); format != "" {
		d.use(format)
		d.raw = nil
		for _, q := range d.queue {
			if !d.parser.Parse(q[0], q[1]) {
				d.unread(q[0], q[1])
			}
		}
		d.queue, d.mark = nil, endMark{} // whatever they said, it went on
		return true
	}
	if len(d.queue) < maxUnknown && len(f.Data) <= maxTelling {
		d.queue = append(d.queue, [2][]byte{slices.Clone(f.Event), slices.Clone(f.Data)})
	}
	if d.earlyError == nil {
		if code, message, ok := wire.ReadError(f.Event, f.Data); ok {
			d.earlyError = &ProviderError{Code: code, Message: message}
			d.marked(d.frames.Kind() != frame.JSON) // a later document may tell the format, and go on
		}
	}
	_ = d.readOnlyError(f.Data)
	if d.count >= maxUnknown && d.frames.Kind() != frame.AWS {
		d.generic()
		d.queue = nil
	}
	return false
}

// unread takes a document that the parser does not know: an error, in whatever shape, or something odd.
func (d *Decoder) unread(event, data []byte) {
	if code, message, ok := wire.ReadError(event, data); ok {
		d.op(&wire.Op{Kind: wire.Error, Name: code, More: message})
		return
	}
	if d.readOnlyError(data) {
		return
	}
	const most = 512 // bytes, which are more than the snippet shows
	beginning := fmt.Sprintf("document %d: %s", d.count, snippet(string(data[:min(len(data), most)])))
	if !d.partial && !json.Valid(data) {
		d.fold.issue("bad-json", beginning)
		return
	}
	d.fold.issue(wire.IssueUnknownType, beginning)
}

// closeGeneric ends a response whose format nobody knew.
func (d *Decoder) closeGeneric() {
	d.generic()
	if d.earlyError != nil {
		d.failed(d.earlyError)
		return
	}
	if d.frames.Kind() == frame.AWS { // whose own bytes are no text
		for _, q := range d.queue {
			d.text(append(q[1], '\n'))
		}
		d.raw = nil
	}
	d.text(d.raw)
	d.raw, d.queue = nil, nil
	text := ""
	if c := d.fold.main(); c != nil {
		text = c.text.String()
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

// damaged records what a frame says is wrong with it.
func (d *Decoder) damaged(err error) {
	switch {
	case errors.Is(err, frame.ErrTruncated):
		d.fold.issue("truncated", fmt.Sprintf("document %d", d.count))
		d.fail(ErrTruncated, "")
	case errors.Is(err, frame.ErrTooLarge):
		d.fold.issue("document-too-large", fmt.Sprintf("document %d", d.count))
		d.fail(ErrTooLarge, "")
	case errors.Is(err, frame.ErrTrailing):
		if d.parser == nil {
			return // all of it is text, which only began as JSON does
		}
		d.fold.issue("trailing-bytes", fmt.Sprintf("after document %d", d.count-1))
	default:
		d.fold.issue("damaged-frame", fmt.Sprintf("document %d: %v", d.count, err))
		d.fail(ErrDamaged, err.Error())
	}
}

// fail keeps the first damage.
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

// endMark is where a response says that it ends.
type endMark struct {
	at   int64
	seen bool
	open bool // only the end of the input confirms it
}

// End returns where in the input, in bytes, the end mark begins: what tells a reader that the answer is whole, or that
// it ended with an error. That is the first byte of its event, NDJSON line, array element or binary message; of a JSON
// body, which is nothing without it, the last byte that is no white space. At is -1 until the end mark has been written
// as a whole, and stays so where only the end of the input is one. How the input was cut never changes it.
//
// Sure is false for an end that only the end of the input confirms, such as that of a chunk of Gemini's: when another
// document follows, End is -1 again. A sure end mark is final. Where several responses follow one another in one input,
// as they do in files, it is the last one's. What breaks off behind it is no part of the response, and no damage.
func (d *Decoder) End() (at int64, sure bool) {
	if !d.mark.seen {
		return -1, false
	}
	return d.mark.at, !d.mark.open
}

// marked keeps the document that is being read as the end mark, unless there is a sure one, or the input itself has
// ended.
func (d *Decoder) marked(open bool) {
	if d.closed || d.mark.seen && !d.mark.open {
		return
	}
	d.mark = endMark{at: d.frames.Mark(), seen: true, open: open}
}

// CallOptions returns what the method and the address of a call tell of its response, and whether it is one that is
// answered with an answer: false for a list of models, an embedding, an upload. Answers that are fetched again count.
//
// The host tells the provider; where it is unknown, a gateway's say, the end of the path decides, and all else is
// recognised from the bytes. Request, Documents and Limits are left for the caller to fill in.
func CallOptions(method string, u *url.URL) (DecodeOptions, bool) {
	provider := call.FindHost(strings.ToLower(u.Host))
	route, ok := call.FindRoute(provider, method, u.EscapedPath())
	if !ok || provider == "" {
		return DecodeOptions{}, ok
	}
	return DecodeOptions{Provider: route.Provider}, true
}

// ReadDocuments reads the documents that were given to a model, for [DecodeOptions].Documents. raw is a JSON array
// whose elements are strings, flat objects with members such as title, url and text, or objects of an id and data,
// which is a string or such an object. null is the same as an empty array.
//
// The content of a document is its text, else its snippet, else its content, else all of it as JSON. One that names no
// id has an empty [Source.ID]: it takes the one its format gives by position. Raw is the element.
//
// The error says what is wrong with which element, counted from 0.
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
	maxRefusal = 16 << 10 // bytes of a body that are searched for the reason why a call was refused
	maxReason  = 500      // characters of the reason in the message
)

// refuse adds an error with the HTTP status as its code. If the body had an error of its own, that stays, and only gets
// the status as its code where it has none.
func (d *Decoder) refuse() {
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
	reason = cmp.Or(reason, "the HTTP status is that of an error, and nothing says why")
	d.failed(&ProviderError{Code: code, Message: reason})
}

// readOnlyError reads the first document of a body, which is an error if nothing follows it (see [wire.BareError]). It
// reports whether it looks like one.
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

// failed passes an error that was held back on to the fold.
func (d *Decoder) failed(e *ProviderError) {
	d.fold.op(&wire.Op{Kind: wire.Error, Name: e.Code, More: e.Message})
}

// htmlPage is the code of an error whose body is an HTML page.
const htmlPage = "html-page"

// isHTML reports whether a text is an HTML page, which is what servers and proxies send when they fail.
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
