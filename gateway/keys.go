package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// keysOf returns all keys that the call was made with: a provider may also repeat one that it did not use, such as a
// key in the header besides one in the query.
func (e *exchange) keysOf() call.Keys {
	query := http.Header{}
	if p, ok := call.FindProvider(e.provider()); ok && p.KeyQuery != "" {
		query[p.KeyHeader] = e.in.URL.Query()[p.KeyQuery]
	}
	return call.KeysOf(e.in.Header, query)
}

// HideKeys masks keys in an answer's error. Some providers repeat what they were sent, and their messages are kept and
// shown to people who have other keys.
func HideKeys(keys call.Keys, a *ibid.Answer) {
	if a.Error != nil {
		a.Error = &ibid.ProviderError{Code: keys.Hide(a.Error.Code), Message: keys.Hide(a.Error.Message)}
	}
}

// maskKeys returns c with the call's keys masked, and whether it contained any. Call it before c is stored or sent.
func (e *exchange) maskKeys(keys call.Keys, c *store.Call) (*store.Call, bool) {
	record, err := c.Encode() // contains everything that is kept of the call
	if err != nil || !keys.In(record) {
		return c, false
	}
	answer, _ := call.Mask(keys, c.Answer)
	e.prompt, _ = call.Mask(keys, e.prompt)
	e.results, _ = call.Mask(keys, e.results)
	masked := e.call(answer, c.Duration)
	masked.Publish = false // verification would fail, since the client received the unmasked text
	return masked, true
}

// maxWithheld is how many events may be withheld after a text that may be the beginning of a key. Further ones are
// dropped.
const maxWithheld = 1024

// KeyMask masks keys in the texts of events, including a key that is split across several. A text that may end in the
// beginning of a key is withheld, with all events that follow it, until that is clear. The texts passed on have the
// offsets that they have in the masked text of the whole answer. Only texts are masked; sources, for example, are not.
//
// It is not safe for concurrent use.
type KeyMask struct {
	keys     call.Keys
	emit     func(ibid.Event)
	withheld []ibid.Event // the first has text that may be the beginning of a key
}

// NewKeyMask returns a mask for keys that passes events on to emit.
func NewKeyMask(keys call.Keys, emit func(ibid.Event)) *KeyMask {
	return &KeyMask{keys: keys, emit: emit}
}

// Event processes the next event of an answer. It reports false if the event was dropped because too many are withheld.
func (m *KeyMask) Event(ev ibid.Event) bool {
	if len(m.withheld) == 0 {
		open := 0
		if grows(&ev) {
			masked, withheld := m.keys.MaskText(ev.Text, true)
			if open = withheld; open == 0 {
				ev.Text = masked
			}
		}
		if open == 0 {
			m.emit(ev)
			return true
		}
	} else if len(m.withheld) >= maxWithheld && !continues(&ev, &m.withheld[0]) {
		return false
	}
	for _, w := range slices.Backward(m.withheld) {
		if ev.Kind == ibid.EventText && w.Kind == ibid.EventText {
			if ev.At != w.At+len(w.Text) { // it does not continue the last withheld text of the answer
				m.release(false)
			}
			break
		}
	}
	m.withheld = append(m.withheld, ev)
	m.release(true)
	return true
}

// End passes on the withheld events. Call it once, when the answer has ended.
func (m *KeyMask) End() { m.release(false) }

// grows reports whether an event adds to a text.
func grows(ev *ibid.Event) bool {
	return ev.Kind == ibid.EventText || ev.Kind == ibid.EventActivity && ev.Text != ""
}

// continues reports whether two events add to the same text.
func continues(ev, first *ibid.Event) bool {
	return grows(ev) && grows(first) && ev.Kind == first.Kind && ev.Index == first.Index
}

// release passes on the withheld events in which no key can begin any more. If more is true, further text may follow.
func (m *KeyMask) release(more bool) {
	for len(m.withheld) > 0 {
		ev := &m.withheld[0]
		if grows(ev) && !m.maskFirst(more) {
			return
		}
		m.emit(*ev)
		*ev = ibid.Event{}
		m.withheld = m.withheld[1:]
	}
	m.withheld = nil
}

// maskFirst masks the first withheld text as far as it is certain, and reports whether that is all of it. If not, it
// passes on the certain part and keeps the rest.
func (m *KeyMask) maskFirst(more bool) bool {
	first := &m.withheld[0]
	var joined strings.Builder
	for i := range m.withheld {
		if continues(&m.withheld[i], first) {
			joined.WriteString(m.withheld[i].Text)
		}
	}
	masked, _ := m.keys.MaskText(joined.String(), more)
	if n := len(masked); n < len(first.Text) {
		if n > 0 {
			partial := *first
			partial.Text = masked
			m.emit(partial)
			first.Text, first.At, first.Activity = first.Text[n:], first.At+n, nil
		}
		return false
	}
	for i := range m.withheld { // a key may end in later texts
		if ev := &m.withheld[i]; continues(ev, first) {
			n := min(len(ev.Text), len(masked))
			ev.Text, masked = masked[:n]+ev.Text[n:], masked[n:]
		}
	}
	return true
}
