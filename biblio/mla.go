package biblio

import "fmt"

// mla returns the entry of an MLA list of works cited.
func (it *item) mla() text {
	var t text
	if len(it.names) > 0 {
		t.add(upright, mlaNames(it.names))
		t.stop()
		t.add(upright, " ")
	}
	site := it.styleSite()
	switch {
	case it.title == "":
		t.add(upright, it.untitled())
	case it.class == webpage && site != "":
		t.add(upright, quoted(it.title, "."))
	default: // it stands alone
		t.add(italic, it.title)
	}
	t.stop()

	var place []run
	if site != "" {
		l := upright
		if it.class == webpage {
			l = italic
		}
		place = append(place, run{l, site})
	}
	if it.issued.known() {
		place = append(place, run{upright, it.issued.short()})
	}
	if it.pages != nil {
		place = append(place, run{upright, fmt.Sprintf("pp. %d–%d", it.pages[0], it.pages[1])})
	}
	if it.url != "" {
		place = append(place, run{link, it.url})
	}
	t.list(place)
	if !it.issued.known() && it.accessed.known() {
		t.add(upright, " Accessed "+it.accessed.short()+".")
	}
	if it.genre != "" && it.title != "" {
		t.add(upright, " "+it.genre+".")
	}
	return t
}

// mlaNames names one or two authors, and of more the first.
func mlaNames(names []name) string {
	first := names[0].inverted()
	switch len(names) {
	case 1:
		return first
	case 2:
		return first + ", and " + names[1].natural()
	}
	return first + ", et al."
}
