package biblio

import (
	"fmt"
	"strings"
)

// chicago returns the entry of a Chicago bibliography.
func (it *item) chicago() text {
	var t text
	site := it.styleSite()
	switch {
	case len(it.names) > 0:
		t.add(upright, chicagoNames(it.names))
		t.stop()
		t.add(upright, " ")
	case it.siteLeads():
		t.add(upright, site)
		t.stop()
		t.add(upright, " ")
		site = "" // it has moved
	}

	var published []run
	for _, s := range []string{pick(site == "", it.titledGenre(), site), it.chicagoDate()} {
		if s != "" {
			published = append(published, run{upright, s})
		}
	}
	if it.pages != nil {
		published = append(published, run{upright, fmt.Sprintf("%d–%d", it.pages[0], it.pages[1])})
	}
	alone := site == "" && it.titledGenre() == "" && len(published) > 0
	it.chicagoTitle(&t, pick(alone, ",", "."))
	if site != "" && it.titledGenre() != "" {
		t.add(upright, " "+it.genre+".")
	}
	t.list(published)
	if !it.issued.known() && it.accessed.known() {
		t.add(upright, " Accessed "+it.accessed.american()+".")
	}
	if it.url != "" {
		t.list([]run{{link, it.url}})
	}
	return t
}

// chicagoTitle adds the title and the mark after it.
func (it *item) chicagoTitle(t *text, mark string) {
	if it.title == "" {
		t.add(upright, it.untitled()+mark)
		return
	}
	t.add(upright, quoted(it.title, mark))
}

// siteLeads reports whether the site stands where the author would: it answers for a web page that nobody signed.
func (it *item) siteLeads() bool {
	return len(it.names) == 0 && it.class == webpage && it.styleSite() != ""
}

// titledGenre returns the genre, unless it stands in for the title.
func (it *item) titledGenre() string {
	return pick(it.title == "", "", it.genre)
}

// chicagoDate returns the date, which for what has none is "n.d.", or nothing where the day of access is given instead.
func (it *item) chicagoDate() string {
	switch {
	case it.issued.known():
		return it.issued.american()
	case it.accessed.known():
		return ""
	}
	return "n.d."
}

// chicagoNames names up to ten authors, and of more the first seven.
func chicagoNames(names []name) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = n.natural()
	}
	first := names[0]
	if first.whole == "" {
		first.given, first.particle = joinNonEmpty(" ", first.given, first.particle), ""
		all[0] = first.inverted()
	}
	last := len(all) - 1
	switch {
	case last == 0:
		return all[0]
	case len(all) > 10:
		return strings.Join(all[:7], ", ") + ", et al."
	}
	return strings.Join(all[:last], ", ") + ", and " + all[last]
}
