package api

import (
	"encoding/json"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
)

// maxUnitText limits the bytes of text of arriving answers that a stream keeps to convert offsets. Deltas of what is
// longer are left out: the event of the whole answer follows.
const maxUnitText = 1 << 20

// unitText converts the offsets of live deltas, which are UTF-8 bytes, to another unit. It needs the text of each
// answer from its beginning, which a reader that starts in the middle gets, too.
type unitText struct {
	unit  ibid.Unit // empty for UTF-8
	texts map[string][]byte
	size  int
}

// ended forgets the text of an answer.
func (u *unitText) ended(data json.RawMessage) {
	var of struct {
		AnswerID string `json:"answer_id"`
	}
	if len(u.texts) > 0 && json.Unmarshal(data, &of) == nil {
		u.size -= len(u.texts[of.AnswerID])
		delete(u.texts, of.AnswerID)
	}
}

// convert returns a delta with offsets in the unit. It returns false if that is impossible, because text before it is
// not known.
func (u *unitText) convert(m *bus.Live) (bus.Live, bool) {
	out := *m
	if u.unit == "" || u.unit == ibid.UTF8 {
		return out, true
	}
	text := u.texts[m.AnswerID]
	if m.At > len(text) {
		return out, false
	}
	if m.Kind == gateway.LiveText {
		var piece string
		if json.Unmarshal(m.Data, &piece) != nil || u.size+len(piece) > maxUnitText {
			return out, false
		}
		if rest := m.At + len(piece) - len(text); rest > 0 {
			if u.texts == nil {
				u.texts = map[string][]byte{}
			}
			u.texts[m.AnswerID] = append(text, piece[len(piece)-rest:]...)
			u.size += rest
		}
	}
	offsets := ibid.NewOffsets(string(text))
	out.At, _ = offsets.In(u.unit, ibid.Span{Start: m.At, End: m.At})
	if m.Kind != gateway.LiveCitation {
		return out, true
	}
	var rows gateway.LiveCitations
	if json.Unmarshal(m.Data, &rows) != nil {
		return out, false
	}
	for i := range rows.Citations {
		row := &rows.Citations[i]
		for _, ends := range [][2]*int{{row.TextStart, row.TextEnd}, {row.ClaimStart, row.ClaimEnd}} {
			if ends[0] == nil || ends[1] == nil {
				continue
			}
			if *ends[1] > len(text) {
				return out, false
			}
			*ends[0], *ends[1] = offsets.In(u.unit, ibid.Span{Start: *ends[0], End: *ends[1]})
		}
	}
	data, err := json.Marshal(rows)
	out.Data = data
	return out, err == nil
}
