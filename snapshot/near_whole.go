package snapshot

import "github.com/ibidhq/ibid/internal/prose"

// wholeGraphemes moves the borders between the pieces of a comparison so that none is inside a grapheme: of two flags
// with one letter in common, both are shown whole.
func wholeGraphemes(list []Edit) []Edit {
	var out []Edit
	add := func(kind EditKind, text string) {
		if text != "" {
			out = append(out, Edit{kind, text})
		}
	}
	before := "" // what both have, not yet in out
	for i := 0; i < len(list); {
		if list[i].Kind == EditSame {
			before += list[i].Text
			i++
			continue
		}
		var sides [2]string // the quote's, the text's
		for ; i < len(list) && list[i].Kind != EditSame; i++ {
			if list[i].Kind == EditQuote {
				sides[0] += list[i].Text
			} else {
				sides[1] += list[i].Text
			}
		}
		after := ""
		if i < len(list) {
			after = list[i].Text
			i++
		}
		from, to := len(before), 0
		for _, s := range sides {
			whole, end := before+s+after, len(before)+len(s)
			from = min(from, prose.GraphemeStart(whole, len(before)))
			to = max(to, prose.GraphemeEnd(whole, end)-end)
		}
		add(EditSame, before[:from])
		add(EditQuote, before[from:]+sides[0]+after[:to])
		add(EditText, before[from:]+sides[1]+after[:to])
		before = after[to:]
	}
	add(EditSame, before)
	return out
}
