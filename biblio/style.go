package biblio

import (
	"cmp"
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

// text returns the entry in a style. The letter is APA's alone.
func (it *item) text(f Format, letter string) text {
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

// head returns what the entry begins with in a style.
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

// sortKey returns s without what sorting ignores: case, accents, punctuation and an article in front.
func sortKey(s string) string {
	words := strings.FieldsFunc(foldLatin(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(words) > 1 && (words[0] == "the" || words[0] == "a" || words[0] == "an") {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// yearLetters returns, for each entry that APA would cite like a neighbour of a sorted list, the letter that tells them
// apart: 2024a, n.d.-b. Where marks are numbers nothing is cited by year.
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

// styleSite returns the site, unless the entry says the same words as author or title.
func (it *item) styleSite() string {
	if strings.EqualFold(it.site, it.title) || len(it.names) == 1 && strings.EqualFold(it.site, it.names[0].whole) {
		return ""
	}
	return it.site
}

// untitled describes what has no title.
func (it *item) untitled() string {
	switch {
	case it.genre != "":
		return "Untitled " + strings.TrimPrefix(strings.ToLower(it.genre), "untitled ")
	case it.class == webpage:
		return "Untitled webpage"
	case it.class == dataset:
		return "Untitled data set"
	}
	return "Untitled document"
}

// inverted returns a person's name with the family name in front, whole names as they are.
func (n name) inverted() string {
	if n.whole != "" {
		return n.whole
	}
	return joinNonEmpty(", ", joinNonEmpty(" ", n.particle, n.family), n.given, n.suffix)
}

// natural returns the name as it is spoken.
func (n name) natural() string {
	return joinNonEmpty(" ", n.whole, n.given, n.particle, n.family, n.suffix)
}

func joinNonEmpty(sep string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), sep)
}
