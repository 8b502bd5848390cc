package biblio

import (
	"fmt"
	"strings"
)

// apa returns the entry of an APA reference list. The letter tells works of one author and year apart.
func (it *item) apa(letter string) text {
	var t text
	when := it.apaDate(letter)
	if len(it.names) > 0 {
		t.add(upright, apaNames(it.names))
		t.stop()
		t.add(upright, " ("+when+"). ")
		it.apaTitle(&t)
		t.stop()
	} else {
		it.apaTitle(&t)
		t.stop()
		t.add(upright, " ("+when+").")
	}
	if site := it.styleSite(); site != "" {
		t.add(upright, " "+site)
		t.stop()
	}
	if it.url == "" {
		return t
	}
	t.add(upright, " ")
	if !it.issued.known() && it.accessed.known() {
		t.add(upright, "Retrieved "+it.accessed.american()+", from ")
	}
	t.add(link, it.url)
	return t
}

// apaTitle adds the title and, in parentheses and brackets, what belongs to it.
func (it *item) apaTitle(t *text) {
	if it.title == "" {
		t.add(upright, "["+it.untitled()+"]")
		return
	}
	t.add(italic, it.title)
	if it.pages != nil {
		t.add(upright, fmt.Sprintf(" (pp. %d–%d)", it.pages[0], it.pages[1]))
	}
	switch {
	case it.genre != "":
		t.add(upright, " ["+it.genre+"]")
	case it.class == dataset:
		t.add(upright, " [Data set]")
	}
}

// apaDate returns the year, and for web pages, which change by the day, month and day.
func (it *item) apaDate(letter string) string {
	d := it.issued
	if !d.known() {
		return "n.d." + pick(letter == "", "", "-"+letter)
	}
	year := fmt.Sprint(d.year, letter)
	switch {
	case it.class != webpage || d.month == 0:
		return year
	case d.day == 0:
		return fmt.Sprintf("%s, %s", year, d.month)
	}
	return fmt.Sprintf("%s, %s %d", year, d.month, d.day)
}

// apaNames names up to twenty authors, and of more the first nineteen and the last.
func apaNames(names []name) string {
	all := make([]string, len(names))
	for i, n := range names {
		if n.whole == "" {
			n.given = initials(n.given)
		}
		all[i] = n.inverted()
	}
	last := len(all) - 1
	switch {
	case last == 0:
		return all[0]
	case len(all) > 20:
		return strings.Join(all[:19], ", ") + ", . . . " + all[last]
	}
	return strings.Join(all[:last], ", ") + ", & " + all[last]
}
