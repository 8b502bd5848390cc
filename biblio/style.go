package biblio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// appendStyle writes the entries of a style, sorted if none has a number.
func appendStyle(out []byte, f Format, m Markup, items []item) ([]byte, error) {
	if !slices.ContainsFunc(items, func(it item) bool { return it.number != 0 }) {
		sortItems(f, items)
	}
	letter := yearLetters(f, items)
	var err error
	for i := range items {
		it := &items[i]
		if out, err = it.text(f, letter[i]).append(out, m, it.number); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// text returns the entry in a style. Only APA uses the letter.
func (it *item) text(f Format, letter string) entryText {
	if f == MLA {
		return it.mla()
	}
	if f == Chicago {
		return it.chicago()
	}
	return it.apa(letter)
}

// sortItems sorts by what the entries begin with, then by title; APA sorts an author's works by year first.
func sortItems(f Format, items []item) {
	slices.SortStableFunc(items, func(a, b item) int {
		order := cmp.Compare(sortKey(a.head(f)), sortKey(b.head(f)))
		if order == 0 && f == APA {
			order = cmp.Compare(a.issued.year, b.issued.year)
		}
		return cmp.Or(order, cmp.Compare(sortKey(a.title), sortKey(b.title)))
	})
}

// head returns the beginning of the entry in a style.
func (it *item) head(f Format) string {
	switch {
	case len(it.names) > 0 && f == APA:
		return apaNames(it.names)
	case len(it.names) > 0 && f == MLA:
		return mlaNames(it.names)
	case len(it.names) > 0:
		return chicagoNames(it.names)
	case f == Chicago && it.siteLeads():
		return it.site
	case it.title == "":
		return it.untitled()
	}
	return it.title
}

// sortKey returns s without what sorting ignores: case, accents, punctuation and a leading article.
func sortKey(s string) string {
	words := strings.FieldsFunc(foldLatin(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) > 1 && (words[0] == "the" || words[0] == "a" || words[0] == "an") {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// yearLetters returns the letters that distinguish entries which APA would cite alike, in a sorted list: 2024a, n.d.-b.
// Numbered entries are not cited by year, and have none.
func yearLetters(f Format, items []item) []string {
	all := make([]string, len(items))
	if f != APA || slices.ContainsFunc(items, func(it item) bool { return it.number != 0 }) {
		return all
	}
	alike := func(i, j int) bool {
		a, b := &items[i], &items[j]
		return len(a.names) > 0 && len(b.names) > 0 && a.issued.year == b.issued.year &&
			apaNames(a.names) == apaNames(b.names)
	}
	n := 0
	for i := range items {
		before, after := i > 0 && alike(i-1, i), i+1 < len(items) && alike(i, i+1)
		if !before {
			n = 0
		}
		if before || after {
			all[i] = letters(n)
			n++
		}
	}
	return all
}

// styleSite returns the site, unless the entry has the same words as author or title.
func (it *item) styleSite() string {
	if strings.EqualFold(it.site, it.title) || len(it.names) == 1 && strings.EqualFold(it.site, it.names[0].whole) {
		return ""
	}
	return it.site
}

// untitled describes an entry without a title.
func (it *item) untitled() string {
	if it.genre != "" {
		return "Untitled " + strings.TrimPrefix(strings.ToLower(it.genre), "untitled ")
	}
	return "Untitled " + classes[it.class].untitled
}

// inverted returns a person's name with the family name first, and whole names unchanged.
func (n name) inverted() string {
	if n.whole != "" {
		return n.whole
	}
	return joinNonEmpty(", ", joinNonEmpty(" ", n.particle, n.family), n.given, n.suffix)
}

// natural returns the name in natural order.
func (n name) natural() string {
	return joinNonEmpty(" ", n.whole, n.given, n.particle, n.family, n.suffix)
}

func joinNonEmpty(sep string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), sep)
}

// apa returns the entry of an APA reference list. The letter distinguishes works of the same author and year.
func (it *item) apa(letter string) entryText {
	var t entryText
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

// apaTitle adds the title and, in parentheses and brackets, its details.
func (it *item) apaTitle(t *entryText) {
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

// apaDate returns the year, and for web pages also month and day.
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

// apaNames returns the names of up to twenty authors; if there are more, of the first nineteen and the last.
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

// mla returns the entry of an MLA list of works cited.
func (it *item) mla() entryText {
	var t entryText
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
	default: // it is not part of a site
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

// mlaNames returns the names of one or two authors; if there are more, of the first.
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

// chicago returns the entry of a Chicago bibliography.
func (it *item) chicago() entryText {
	var t entryText
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
		site = "" // it was added above
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
func (it *item) chicagoTitle(t *entryText, mark string) {
	if it.title == "" {
		t.add(upright, it.untitled()+mark)
		return
	}
	t.add(upright, quoted(it.title, mark))
}

// siteLeads reports whether the site takes the place of the author, as for a web page without one.
func (it *item) siteLeads() bool {
	return len(it.names) == 0 && it.class == webpage && it.styleSite() != ""
}

// titledGenre returns the genre, unless it stands in for the title.
func (it *item) titledGenre() string {
	return pick(it.title == "", "", it.genre)
}

// chicagoDate returns the date. If there is none it returns "n.d.", or nothing if the day of access is given instead.
func (it *item) chicagoDate() string {
	switch {
	case it.issued.known():
		return it.issued.american()
	case it.accessed.known():
		return ""
	}
	return "n.d."
}

// chicagoNames returns the names of up to ten authors; if there are more, of the first seven.
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
