package chat

import (
	"strings"

	"github.com/ibidhq/ibid"
)

// draft is the text of an answer while it arrives. The ends of its parts are not kept up: each goes to where the next
// begins.
type draft struct {
	text  strings.Builder
	parts []ibid.Part
}

// correct puts another text in the place of a part's, and returns by how much the text has grown. It reports false, and
// does nothing, where there is no such part.
func (d *draft) correct(ev *ibid.Event) (shift int, ok bool) {
	old := d.text.String()
	at := -1
	for i, p := range d.parts {
		if p.Start == ev.Part.Start && p.Message == ev.Part.Message && p.Content == ev.Part.Content {
			at = i
		}
	}
	if at < 0 || ev.Part.Start > len(old) {
		return 0, false
	}
	end := d.end(at)
	shift = len(ev.Text) - (end - ev.Part.Start)
	d.text = strings.Builder{}
	d.text.WriteString(old[:ev.Part.Start] + ev.Text + old[end:])
	for i := at + 1; i < len(d.parts); i++ {
		d.parts[i].Start += shift
	}
	return shift, true
}

// end returns where a part ends.
func (d *draft) end(part int) int {
	if part+1 < len(d.parts) {
		return d.parts[part+1].Start
	}
	return d.text.Len()
}
