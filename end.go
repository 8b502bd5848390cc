package ibid

import (
	"errors"

	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/wire"
)

// endMark is where a response says that it ends.
type endMark struct {
	at   int64
	seen bool
	open bool // only the end of the input confirms it
}

// sure reports whether the response has ended, whatever follows.
func (m endMark) sure() bool { return m.seen && !m.open }

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

// end takes an operation that ends the response.
func (d *Decoder) end(op *wire.Op) {
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
	d.fold.op(op)
}

// isBehind reports whether a document breaks off behind the end mark, of which it therefore is not known whether it was
// sent whole, and has nothing to do with the answer.
func (d *Decoder) isBehind(f frame.Frame) bool {
	return errors.Is(f.Err, frame.ErrTruncated) && d.mark.sure() &&
		!wire.Another(d.fold.format, d.fold.id, f.Event, f.Data)
}

// marked keeps the document that is being read as the end mark, unless there is a sure one, or the input itself has
// ended.
func (d *Decoder) marked(open bool) {
	if d.closed || d.mark.sure() {
		return
	}
	d.mark = endMark{at: d.frames.Mark(), seen: true, open: open}
}
