package tee

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/halt"
)

// DefaultLimit is the default of [Options.Limit]: 256 MiB.
const DefaultLimit = 256 << 20

// The reasons why a response was not decoded to its end. [Result.Err] wraps them.
var (
	ErrLimit    = errors.New("the response exceeds the decoding limit")
	ErrClosed   = errors.New("the response was closed before its end")
	ErrEncoding = errors.New("unknown content encoding")
	ErrComments = errors.New("the response goes on without an event")
	ErrWorkTime = errors.New("decoding the response takes too much CPU time")
)

// PanicError reports that the decoder, or OnEvent, panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("decode response: panic: %v", e.Value) }

// Options configure a [Body]. The zero value and nil decode an uncompressed body without reporting anything.
type Options struct {
	Decode ibid.DecodeOptions
	// Encoding is the response's Content-Encoding: empty or identity, or a list of gzip, deflate, br and zstd. A
	// response with any other encoding is not decoded.
	Encoding string
	// Length is the response's Content-Length: the body ends after as many bytes, even before it reports io.EOF. Zero
	// or less means unknown.
	Length int64
	// Limit is how many bytes are decoded, counted after decompression. A longer body is still passed on, but its
	// answer consists of what was decoded until then, with [ErrLimit]. Zero means [DefaultLimit].
	Limit int64
	// Hold is called inside Read before more of a response is decoded, for [HoldStep] bytes each time. If it returns
	// false, decoding stops as with Limit. Nil allows everything.
	Hold func(bytes int64) bool
	// Unpacking is called inside Read before a compressed response is decoded, with the memory in bytes that its
	// decompressors may take. If it returns false, nothing is decoded. Nil allows everything.
	Unpacking func(bytes int64) bool
	// WorkTime is how much CPU time decoding may take, give or take a second. Then it stops as with Limit, with
	// [ErrWorkTime]. Zero means any.
	WorkTime time.Duration
	// OnEvent is called with events as they become known, inside Read, and inside Close for what the end settles. It
	// must not call Read. It may be nil.
	OnEvent func(ibid.Event)
	// Done is called exactly once, inside the Read or Close that ended the response. It must not call Read. It may be
	// nil.
	Done func(Result)
}

// Result is the outcome of decoding a response.
type Result struct {
	// Answer is what was known at the end. It is never nil.
	Answer *ibid.Answer
	// Err is the reason why the answer may be incomplete: a *[ibid.DecodeError], a *[PanicError], the error of reading,
	// or an error that wraps [ErrLimit], [ErrClosed], [ErrEncoding] or [ErrWorkTime]. It is nil if there is none.
	Err error
	End End
}

// End is what ended the decoding of a response.
type End uint8

// The values of End.
const (
	EndMark   End = iota + 1 // the end mark was seen
	EndOfBody                // the body ended without one
	EndClosed                // the body was closed or its request cancelled before: the client is gone
	EndBroken                // reading the body returned an error
)

// String returns the end's name.
func (e End) String() string {
	switch e {
	case EndMark:
		return "mark"
	case EndOfBody:
		return "body"
	case EndClosed:
		return "closed"
	case EndBroken:
		return "broken"
	}
	return fmt.Sprintf("End(%d)", uint8(e))
}

// Limits of a response that goes on without an event: an event stream of comments, or blank lines. Beyond either, Read
// returns [ErrComments].
const (
	MaxComments    = 4 << 20   // bytes
	MaxCommentTime = time.Hour // a model may think for long, and some servers send a comment every second
)

// HoldStep is the number of bytes in each call of [Options.Hold].
const HoldStep = 4 << 10

// maxHeld is how many bytes are held after an unconfirmed end mark before they are passed on, in case a server sends
// white space forever.
const maxHeld = 1 << 20

// maxRead is how many bytes are read at once after an unconfirmed end mark.
const maxRead = 32 << 10

// Body is a response body that is decoded while it is read; see the package documentation for when bytes are passed on.
// It is for one reader; Close may be called at any time, from any goroutine.
//
// Body has neither WriteTo nor ReadFrom, so that io.Copy uses Read.
type Body struct {
	body   io.ReadCloser
	done   func(Result)
	closed atomic.Bool

	// Used by the reader alone.
	length int64  // of the body; 0 if unknown
	total  int64  // bytes read from body
	held   []byte // the last of them, which are held
	out    int    // bytes of held that were passed on
	free   int    // bytes of held that may be passed on
	due    End    // if set, Done is called before the next byte
	err    error  // returned by Read once nothing is held

	mu  sync.Mutex
	dec *decoding // nil once Done is called or about to be
}

// NewBody returns a Body that passes body on. Closing it closes body. The caller must read it to its end or close it.
func NewBody(body io.ReadCloser, o *Options) *Body {
	o = cmp.Or(o, &Options{})
	return &Body{body: body, done: o.Done, length: max(o.Length, 0), dec: newDecoding(o)}
}

// Read reads from the response.
func (b *Body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case b.out < b.free:
			n := copy(p, b.held[b.out:b.free])
			if b.out += n; b.out == len(b.held) {
				b.held, b.out, b.free = nil, 0, 0
			}
			return n, nil
		case b.due != 0:
			b.finish()
		case b.err != nil:
			return 0, b.err
		case len(b.held) > 0:
			b.readOn(min(len(p), maxRead))
		default:
			if n, err := b.pass(p); n > 0 || err != nil || len(b.held) == 0 {
				return n, err
			}
		}
	}
}

// pass reads into p and returns how much of it may be passed on. The rest is held.
func (b *Body) pass(p []byte) (int, error) {
	n, hold, err := b.read(p)
	free := n - int(b.total-hold)
	if free <= 0 && b.due != 0 { // all at once, without copying
		b.err = err
		b.finish()
		return n, err
	}
	if b.due == 0 && free == n {
		b.err = err
		return n, err
	}
	free = max(free, 0)
	b.held, b.err = append(b.held, p[free:n]...), err
	return free, nil
}

// readOn reads more after what is held.
func (b *Body) readOn(size int) {
	at := len(b.held)
	b.held = slices.Grow(b.held, size)
	n, hold, err := b.read(b.held[at : at+size])
	b.held, b.err = b.held[:at+n], err
	b.free = max(b.free, len(b.held)-int(min(b.total-hold, int64(len(b.held)))))
	if len(b.held)-b.free > maxHeld {
		b.free = len(b.held)
	}
}

// read reads and decodes once. It returns the offset in the body from which bytes are held, which is b.total if none
// are, and sets due if the response has ended.
func (b *Body) read(p []byte) (n int, hold int64, err error) {
	n, err = b.body.Read(p)
	from := b.total
	b.total += int64(n)
	at, sure, on, endless := b.decode(p[:n])
	if err == nil && endless {
		err = ErrComments
	}
	if b.closed.Load() { // by OnEvent or during decoding
		b.callDone(EndClosed, nil)
		on = false
	}
	whole := errors.Is(err, io.EOF) || b.total == b.length
	switch {
	case !on:
		return n, b.total, err
	case sure:
		b.due = EndMark
		if i := at - from; i >= 0 && p[i] == '}' { // a JSON body's last byte: without it the others are useless
			at = from
		}
	case whole:
		b.due = EndOfBody
		if at < 0 {
			at = from
		}
	case err != nil:
		b.due = EndBroken
		if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrBodyReadAfterClose) {
			b.due = EndClosed
		}
	}
	if at < 0 {
		at = b.total
	}
	return n, at, err
}

// decode decodes p. on is false once the decoder is done with the response, and endless is true if that goes on without
// an event.
func (b *Body) decode(p []byte) (at int64, sure, on, endless bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dec == nil {
		return -1, false, false, false
	}
	at, sure = b.dec.write(p)
	return at, sure, true, b.dec.endless()
}

// finish calls Done and then releases what is held.
func (b *Body) finish() {
	end := b.due
	b.due, b.free = 0, len(b.held)
	b.callDone(end, b.err)
}

// callDone calls Done unless it was called before.
func (b *Body) callDone(end End, err error) {
	b.mu.Lock()
	dec := b.dec
	var r Result
	if dec != nil {
		r = dec.result(end, err)
		b.dec = nil
	}
	b.mu.Unlock()
	if dec != nil && b.done != nil {
		b.done(r)
	}
}

// Close closes the response's body, calls Done unless it was called before, and returns the body's error. If another
// goroutine is decoding, or OnEvent calls Close, the Read in progress calls Done.
func (b *Body) Close() error {
	b.closed.Store(true)
	err := b.body.Close()
	if b.mu.TryLock() {
		b.mu.Unlock()
		b.callDone(EndClosed, nil)
	}
	return err
}

// IssueEndlessComments is the code of the issue of an answer whose response was ended by [ErrComments].
const IssueEndlessComments = "endless-comments"

// IssueWorkTime is the code of the issue of an answer whose response was not decoded to its end, because of
// [ErrWorkTime].
const IssueWorkTime = "decoding-stopped"

// IssueDamagedEncoding is the code of the issue of an answer whose compressed response is damaged.
const IssueDamagedEncoding = "damaged-encoding"

// decoding is the decoder of one response and its failures. It is for one goroutine at a time.
type decoding struct {
	dec    ibid.Decoder
	unpack *unpacker // nil if the response is not compressed
	// asks for the memory of unpack before its first byte; nil afterwards, and if there is no one to ask
	unpacking func(first byte) bool
	size      int64 // bytes decoded so far
	limit     int64
	hold      func(int64) bool // nil allows everything
	held      int64            // bytes allowed by hold
	off       error            // why decoding has stopped
	idleSince time.Time        // when Decoder.Idle was first seen to be positive; zero if it is not
	damage    error            // of the compressed data, such as a wrong checksum after the last byte
	panicky   bool             // the decoder panicked
	most      time.Duration    // see Options.WorkTime; 0 means any
	used      time.Duration    // of it
}

func newDecoding(o *Options) *decoding {
	d := &decoding{
		dec: ibid.Decoder{Options: o.Decode, OnEvent: o.OnEvent}, limit: o.Limit, hold: o.Hold, most: o.WorkTime,
	}
	d.dec.Options.One = true // regardless of what follows the end mark, and in which read
	if d.limit <= 0 {
		d.limit = DefaultLimit
	}
	codings, err := parseEncoding(o.Encoding)
	switch {
	case err != nil:
		d.off = err
	case len(codings) > 0:
		if o.Unpacking != nil {
			d.unpacking = func(first byte) bool { return o.Unpacking(memoryOf(codings, first)) }
		}
		d.unpack = newUnpacker(codings, d.limit, func(p []byte) {
			d.size += int64(len(p))
			d.decode(p)
		})
	}
	return d
}

// write decodes p and returns where the end mark begins, or a negative offset if there is none yet.
func (d *decoding) write(p []byte) (at int64, sure bool) {
	at = -1
	if d.off != nil {
		return at, false
	}
	defer d.guard()
	if d.most > 0 {
		defer d.measure()()
	}
	if d.unpack != nil && len(p) > 0 {
		if d.unpacking != nil && !d.unpacking(p[0]) {
			d.off = fmt.Errorf("decompress response: %w", ErrLimit)
			return at, false
		}
		d.unpacking = nil
		d.unpack.write(p)
	}
	if d.unpack != nil {
		return at, false
	}
	if d.size += int64(len(p)); d.size > d.limit {
		d.off = fmt.Errorf("decode response: %w", ErrLimit)
		return at, false
	}
	d.decode(p)
	return d.dec.End()
}

// measure measures the CPU time until the function that it returns is called, and stops decoding after too much. Up to
// a second that is the time that has passed, which costs less to read and is longer.
func (d *decoding) measure() (end func()) {
	used, unlock := halt.TimePassed(), func() {}
	if d.used > min(time.Second, d.most/2) {
		runtime.LockOSThread()
		used, unlock = halt.ThreadTime(), runtime.UnlockOSThread
	}
	return func() {
		d.used += used()
		unlock()
		if d.used > d.most && d.off == nil {
			d.off = fmt.Errorf("decode response: %w: more than %v", ErrWorkTime, d.most)
		}
	}
}

// endless reports whether the response goes on without an event beyond the limits.
func (d *decoding) endless() bool {
	idle := d.dec.Idle()
	if idle == 0 || d.off != nil {
		d.idleSince = time.Time{}
		return false
	}
	now := time.Now()
	if d.idleSince.IsZero() {
		d.idleSince = now
	}
	return idle > MaxComments || now.Sub(d.idleSince) > MaxCommentTime
}

// decode passes the next bytes, already counted in size, to the decoder.
func (d *decoding) decode(p []byte) {
	for d.hold != nil && d.off == nil && d.held < d.size {
		if !d.hold(HoldStep) {
			d.off = fmt.Errorf("decode response: %w", ErrLimit)
			return
		}
		d.held += HoldStep
	}
	if d.off == nil {
		_, _ = d.dec.Write(p)
	}
}

// guard stops decoding after a panic.
func (d *decoding) guard() {
	if v := recover(); v != nil {
		d.off, d.panicky = &PanicError{Value: v, Stack: debug.Stack()}, true
	}
}

// result ends the decoding for the given reason.
func (d *decoding) result(end End, cause error) Result {
	marked, _ := d.dec.End()
	d.close(end)
	r := Result{End: end}
	var damage error
	r.Answer, damage = d.answer()
	if r.Answer == nil {
		r.Answer = &ibid.Answer{}
	}
	if d.damage != nil {
		r.Answer.Issues = append(r.Answer.Issues, ibid.Issue{Code: IssueDamagedEncoding, Detail: d.damage.Error()})
	}
	if errors.Is(d.off, ErrWorkTime) {
		r.Answer.Complete = false
		r.Answer.Issues = append(r.Answer.Issues, ibid.Issue{Code: IssueWorkTime, Detail: d.off.Error()})
	}
	if errors.Is(cause, ErrComments) {
		r.Answer.Issues = append(r.Answer.Issues, ibid.Issue{Code: IssueEndlessComments, Detail: cause.Error()})
	}
	if at, sure := d.dec.End(); at >= 0 && d.off == nil && (sure || end == EndOfBody) {
		r.End = EndMark
	}
	if r.End >= EndClosed && marked < 0 {
		r.Answer.Complete = false // text, and streams without an end mark, are complete when they end: this was cut off
	}
	switch {
	case d.off != nil:
		r.Err = d.off
	case r.End == EndBroken:
		r.Err = fmt.Errorf("read response: %w", cause)
	case r.End == EndClosed:
		r.Err = fmt.Errorf("read response: %w", ErrClosed)
	default:
		r.Err = damage
	}
	return r
}

// close ends the decoder's input.
func (d *decoding) close(end End) {
	defer d.guard()
	if d.unpack != nil {
		err := d.unpack.close(end == EndOfBody && d.off == nil)
		if d.off == nil {
			d.off = err
			if !errors.Is(err, ErrLimit) {
				d.damage = err
			}
		}
	}
	if !d.panicky {
		_ = d.dec.Close()
	}
}

// answer returns what is known, or nil if the decoder panics again.
func (d *decoding) answer() (a *ibid.Answer, err error) {
	defer d.guard()
	return d.dec.Answer()
}
