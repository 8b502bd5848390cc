package ibid

import (
	"slices"
	"strconv"

	"github.com/ibidhq/ibid/internal/wire"
)

// next says that another response follows in the same input. Its parser begins anew: its messages follow those before,
// and what it names by its own keys is something else than what they stood for before.
func (f *fold) next() {
	f.row++
	f.complete = false
	for _, c := range f.candidates {
		c.flush()
		c.endMarks()
		for i := range c.parts {
			c.parts[i].ended = true
			f.first = max(f.first, c.parts[i].key.Message+1)
		}
		c.settle() // no citation of it counts into the text of the next
	}
}

// rowKey returns a key of the response that is read as the fold knows it.
func (f *fold) rowKey(key string) string {
	if key == "" {
		return ""
	}
	return f.rowPrefix() + key
}

func (f *fold) rowPrefix() string {
	if f.row == 0 {
		return ""
	}
	return "r" + strconv.Itoa(f.row) + ":"
}

// inRow returns an operation of a later response as one of the whole input.
func (f *fold) inRow(op *wire.Op) *wire.Op {
	out := *op
	out.Part.Message += f.first
	switch op.Kind {
	case wire.SourceOp:
		s := *op.Source
		s.Key = f.rowKey(s.Key)
		out.Source = &s
	case wire.CiteOp:
		out.Cite = f.citeInRow(op.Cite)
	case wire.Withdraw:
		out.Name = f.rowKey(op.Name)
	case wire.MarkersOp:
		m := wire.Markers{Style: op.Markers.Style}
		m.Refs = f.refsInRow(op.Markers.Refs)
		out.Markers = &m
	default: // names nothing
	}
	return &out
}

func (f *fold) citeInRow(c *wire.Cite) *wire.Cite {
	out := *c
	out.Key = f.rowKey(c.Key)
	out.Part.Message += f.first
	if c.Base == wire.AnswerBase {
		out.Base, out.Part.Message = wire.MessageBase, f.first
	}
	out.Refs = f.refsInRow(c.Refs)
	return &out
}

func (f *fold) refsInRow(refs []wire.Ref) []wire.Ref {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Source = f.rowKey(refs[i].Source)
	}
	return refs
}
