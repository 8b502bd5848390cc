package page

import (
	"strings"

	"github.com/ibidhq/ibid/snapshot"
)

// diffPart is a piece of a comparison: words that both have, that only the quote has, or only the source.
type diffPart struct {
	Kind string // same, quote, text
	Text string
}

// byWords returns a comparison in whole words: that 26 became 25 is easier to see than that 6 became 5.
func byWords(edits []snapshot.Edit) []diffPart {
	var d wordDiff
	for _, e := range edits {
		switch e.Kind {
		case snapshot.EditQuote:
			d.begin()
			d.quote += e.Text
		case snapshot.EditText:
			d.begin()
			d.text += e.Text
		case snapshot.EditSame:
			d.same += e.Text
			d.end(false)
		}
	}
	d.end(true)
	d.add(snapshot.EditSame, d.same)
	return d.parts
}

// wordDiff is a comparison that is being made: its parts, and what comes behind them.
type wordDiff struct {
	parts       []diffPart
	quote, text string // what differs, in whole words so far
	same        string // what follows it and does not; while that begins inside a word it is empty
}

// differs reports whether something differs that no part has yet.
func (d *wordDiff) differs() bool { return d.quote != "" || d.text != "" }

func (d *wordDiff) add(kind snapshot.EditKind, text string) {
	if text != "" {
		d.parts = append(d.parts, diffPart{string(kind), text})
	}
}

// begin makes the beginning of a word in which something differs a part of what differs.
func (d *wordDiff) begin() {
	if d.differs() {
		return
	}
	at := strings.LastIndexByte(d.same, ' ') + 1
	d.add(snapshot.EditSame, d.same[:at])
	d.quote, d.text, d.same = d.same[at:], d.same[at:], ""
}

// end ends what differs with its word, if that ends in what is the same, or at once at the end of all.
func (d *wordDiff) end(all bool) {
	if !d.differs() {
		return
	}
	at := strings.IndexByte(d.same, ' ')
	switch {
	case endsWord(d.quote) && endsWord(d.text):
		at = 0
	case at < 0:
		at = len(d.same)
	}
	inside := at == len(d.same) && at > 0
	d.quote, d.text, d.same = d.quote+d.same[:at], d.text+d.same[:at], d.same[at:]
	if inside && !all { // the word goes on
		return
	}
	d.add(snapshot.EditQuote, d.quote)
	d.add(snapshot.EditText, d.text)
	d.quote, d.text = "", ""
}

func endsWord(text string) bool { return text == "" || strings.HasSuffix(text, " ") }
