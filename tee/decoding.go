package tee

import (
	"fmt"
	"runtime/debug"

	"github.com/ibidhq/ibid"
)

// decoding is the decoder of one response and what may go wrong with it. It is for one goroutine at a time.
type decoding struct {
	dec     ibid.Decoder
	unpack  *unpacker // nil: the response is not compressed
	size    int64     // bytes decoded so far
	limit   int64
	off     error // why nothing is decoded any more
	panicky bool  // because the decoder panicked
}

func newDecoding(o *Options) *decoding {
	d := &decoding{dec: ibid.Decoder{Options: o.Decode, OnEvent: o.OnEvent}, limit: o.Limit}
	d.dec.Options.One = true // whatever follows the end mark, and in whichever read it comes
	if d.limit <= 0 {
		d.limit = DefaultLimit
	}
	codings, err := parseEncoding(o.Encoding)
	switch {
	case err != nil:
		d.off = err
	case len(codings) > 0:
		d.unpack = newUnpacker(codings, d.limit, func(p []byte) { _, _ = d.dec.Write(p) })
	}
	return d
}

// write decodes p and returns where the end mark begins, below 0 while there is none.
func (d *decoding) write(p []byte) (at int64, sure bool) {
	at = -1
	if d.off != nil {
		return at, false
	}
	defer d.guard()
	if d.unpack != nil {
		d.unpack.write(p)
		return at, false
	}
	if d.size += int64(len(p)); d.size > d.limit {
		d.off = fmt.Errorf("decode response: %w", ErrLimit)
		return at, false
	}
	_, _ = d.dec.Write(p)
	return d.dec.End()
}

// guard switches the decoding off after a panic.
func (d *decoding) guard() {
	if v := recover(); v != nil {
		d.off, d.panicky = &PanicError{Value: v, Stack: debug.Stack()}, true
	}
}

// result ends the decoding, for what is said to be the reason.
func (d *decoding) result(end End, cause error) Result {
	d.close(end)
	r := Result{End: end}
	var damage error
	r.Answer, damage = d.answer()
	if r.Answer == nil {
		r.Answer = &ibid.Answer{}
	}
	if at, sure := d.dec.End(); at >= 0 && d.off == nil && (sure || end == EndOfBody) {
		r.End = EndMark
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

// close tells the decoder that the input has ended.
func (d *decoding) close(end End) {
	defer d.guard()
	if d.unpack != nil {
		err := d.unpack.close(end == EndOfBody && d.off == nil)
		if d.off == nil {
			d.off = err
		}
	}
	if !d.panicky {
		_ = d.dec.Close()
	}
}

// answer returns what is known, nil if the decoder panicked so that it cannot tell.
func (d *decoding) answer() (a *ibid.Answer, err error) {
	defer d.guard()
	return d.dec.Answer()
}
