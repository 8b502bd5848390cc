package tee

import (
	"errors"
	"fmt"

	"github.com/ibidhq/ibid"
)

// DefaultLimit is how many bytes of a response are decoded when [Options.Limit] is 0: 256 MiB.
const DefaultLimit = 256 << 20

// Why a response was not decoded to its end. [Result.Err] wraps them.
var (
	ErrLimit    = errors.New("the response is over the limit of what is decoded")
	ErrClosed   = errors.New("the response was closed before its end")
	ErrEncoding = errors.New("no such content encoding is known")
)

// PanicError says that the decoder, or OnEvent, panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the value of the panic.
func (e *PanicError) Error() string { return fmt.Sprintf("decode response: panic: %v", e.Value) }

// Options says how a [Body] decodes what passes. The zero value and nil decode a plain body and tell nobody.
type Options struct {
	Decode ibid.DecodeOptions
	// Encoding is the response's Content-Encoding: empty or identity, or a list of gzip, deflate, br and zstd. With any
	// other one nothing is decoded.
	Encoding string
	// Length is the response's Content-Length: with as many bytes the body has ended, even before it says so. 0 or
	// less: not known.
	Length int64
	// Limit is how many bytes are decoded, of a compressed body how many after decompression. A longer body passes all
	// the same, but its answer is what came until then, with [ErrLimit]. 0: [DefaultLimit].
	Limit int64
	// OnEvent is told what becomes known, while it does, inside Read, and inside Close what the end settles. It must
	// not call Read. Nil: nobody listens.
	OnEvent func(ibid.Event)
	// Done is called exactly once, inside the Read or the Close that ended the response. It must not call Read. Nil:
	// nobody waits.
	Done func(Result)
}

// Result is what a [Body] made of a response.
type Result struct {
	// Answer is never nil: what was known at the end.
	Answer *ibid.Answer
	// Err is nil, or why the answer may not be all of it: a *[ibid.DecodeError], a *[PanicError], the error of reading,
	// or what wraps [ErrLimit], [ErrClosed] or [ErrEncoding].
	Err error
	End End
}

// End says what ended the decoding of a response.
type End uint8

// The ends.
const (
	EndMark   End = iota + 1 // the end mark was seen
	EndOfBody                // the body ended without one
	EndClosed                // the body was closed, or its request cancelled, before: the client is gone
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
