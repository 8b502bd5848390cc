package snapshot

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// This file decides what of a page is text according to ibid-text/2: what a reader of the rendered page takes for its
// words. Content that a reader sees beside the words, such as an advertisement, stays in the text, in blocks that are
// set apart.

// reading is how an element of a page is read.
type reading uint8

const (
	readText  reading = iota
	readApart         // in a block of its own that is set apart
	readNot           // neither it nor what it contains
)

// Bounds for a single element.
const (
	maxButton = 100  // bytes of a button
	maxMark   = 60   // bytes of a note's mark, [citation needed]
	maxHidden = 500  // bytes of text hidden by a class: more is content that a script shows
	maxApart  = 1500 // bytes of text set apart by a class or a place: more is the page itself
	maxLooked = 300  // nodes of an element that are looked at to know its length
)

// skipped2 are the elements without visible text. Unlike in ibid-text/1, noscript is text, because no script is run,
// and buttons, deleted text and the readings of ruby are not.
var skipped2 = elementSet(
	"head script style template iframe object svg select textarea button del s strike rt rp rtc annotation")

// apartElements are beside the words of a page.
var apartElements = elementSet("aside nav footer form figcaption dialog")

// how returns how an element is read.
func (w *htmlWalk) how(n *html.Node) reading {
	switch {
	case n.DataAtom == atom.Template && attr(n, "shadowrootmode") != "":
		return readText // browsers render it in the place of the element that it is in
	case n.DataAtom == atom.Button &&
		inside(n, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Summary, atom.Dt):
		return readText
	case n.DataAtom == atom.Button && len(textOf(n, maxButton)) > maxButton: // never closed
	case skipped2[n.DataAtom], n.Data == "annotation-xml":
		return readNot
	case isHidden(n), strings.EqualFold(attr(n, "role"), "doc-pagebreak"):
		return readNot
	case n.DataAtom == atom.A && isReferral(n, false), isNoteRef(n):
		return readNot
	case n.DataAtom == atom.Sup && w.isNote(n):
		return readNot
	case n.DataAtom == atom.Html, n.DataAtom == atom.Body, n.DataAtom == atom.Main, n.DataAtom == atom.Article:
		return readText
	case apartElements[n.DataAtom], isApart(n):
		return readApart
	}
	return readText
}

func inside(n *html.Node, elements ...atom.Atom) bool {
	for up, depth := n.Parent, 0; up != nil && depth < 4; up, depth = up.Parent, depth+1 {
		if slices.Contains(elements, up.DataAtom) {
			return true
		}
	}
	return false
}

// textOf returns the text in an element, cut off where it is longer than most bytes or has too many nodes.
func textOf(n *html.Node, most int) string {
	var b strings.Builder
	looked := 0
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		looked++
		for kid := n.FirstChild; kid != nil && looked < maxLooked && b.Len() <= most; kid = kid.NextSibling {
			switch {
			case kid.Type == html.TextNode:
				b.WriteString(kid.Data[:min(len(kid.Data), most+1)])
			case kid.Type == html.ElementNode && !skipped2[kid.DataAtom]:
				walk(kid)
			}
		}
	}
	walk(n)
	if looked >= maxLooked {
		return b.String() + strings.Repeat(" ", most) // it is longer than that
	}
	return b.String()
}

// isHidden reports whether a reader does not see an element.
func isHidden(n *html.Node) bool {
	panel := strings.EqualFold(attr(n, "role"), "tabpanel") // which a click shows
	for i := range n.Attr {
		a := &n.Attr[i]
		if a.Namespace != "" {
			continue
		}
		switch a.Key {
		case "hidden":
			if !panel && !strings.EqualFold(a.Val, "until-found") {
				return true
			}
		case "aria-hidden": // an icon, if it has no letters; otherwise only what is read aloud differs
			if a.Val == "true" && !hasWords(textOf(n, maxMark)) {
				return true
			}
		case "style":
			if !panel && hidesByStyle(a.Val) {
				return true
			}
		case "class", "id":
			if hidesByClass(a.Val) && len(textOf(n, maxHidden)) <= maxHidden {
				return true
			}
		}
	}
	return false
}

func hasWords(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}

// hidesByStyle reports whether a style attribute hides an element from sight.
func hidesByStyle(style string) bool {
	if style == "" || len(style) > 1000 {
		return false
	}
	style = strings.ToLower(strings.Join(strings.Fields(style), ""))
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
		strings.Contains(style, "position:absolute") &&
			(strings.Contains(style, "clip:rect(") || strings.Contains(style, "clip-path:inset(") ||
				strings.Contains(style, "left:-999") || strings.Contains(style, "width:1px"))
}

// hidesByClass reports whether a class is one of those by which sites hide words that only screen readers speak, icons
// made of ligatures, links to edit a section, and the second form of a formula.
func hidesByClass(class string) bool {
	if len(class) > 500 {
		return false
	}
	class = strings.ToLower(class)
	for _, part := range []string{
		"visually-hidden", "visuallyhidden", "visually_hidden", "sr-only", "sr_only", "sronly", "screen-reader",
		"screenreader", "assistive", "element-invisible", "offscreen", "off-screen", "a11y-hidden",
		"editsection", "edit-section", "material-icons", "material-symbols", "katex-mathml",
		"headerlink", "anchor-link", "anchorjs",
	} {
		if at := strings.Index(class, part); at >= 0 && !strings.HasSuffix(class[:at], "not-") {
			return true
		}
	}
	return false
}

// isReferral reports whether a link is only a mark that refers to a note, or to its own place: [1], *, ¶, ↩. Of a
// superscript one, a number or a letter alone is enough.
func isReferral(n *html.Node, raised bool) bool {
	target, ok := strings.CutPrefix(attr(n, "href"), "#")
	if !ok {
		return false
	}
	mark := strings.TrimSpace(textOf(n, maxMark))
	if mark == "" || len(mark) > maxMark {
		return false
	}
	if !hasWords(mark) || isBracketed(mark) {
		return true
	}
	return isMark(mark) && (raised || isNoteName(target) || isNoteName(attr(n, "class")) || isNoteName(attr(n, "id")))
}

// isBracketed reports whether a mark is in square brackets.
func isBracketed(mark string) bool {
	return strings.HasPrefix(mark, "[") && strings.HasSuffix(mark, "]")
}

// isMark reports whether a text can be the mark of a note: a number, a letter or two, "n 3".
func isMark(mark string) bool {
	return utf8.RuneCountInString(mark) <= 8 && (strings.ContainsFunc(mark, unicode.IsDigit) || len(mark) <= 2)
}

// isNoteRef reports whether an element says itself that it is the mark of a note, by its role or its class.
func isNoteRef(n *html.Node) bool {
	isRef := strings.EqualFold(attr(n, "role"), "doc-noteref")
	if class := strings.ToLower(attr(n, "class")); !isRef && (n.DataAtom == atom.Span || n.DataAtom == atom.Sup) {
		for _, name := range []string{
			"footnote-ref", "footnoteref", "noteref", "note-ref", "fnref", "footnote-marker",
		} {
			isRef = isRef || strings.Contains(class, name)
		}
	}
	return isRef && isMark(strings.TrimSpace(textOf(n, maxMark)))
}

// isNoteName reports whether a class, an id or the target of a link names a note.
func isNoteName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"fn", "foot", "note", "cite", "ref", "bib", "endn"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// isNote reports whether a superscript is the mark of a note rather than a part of a number or a word.
func (w *htmlWalk) isNote(n *html.Node) bool {
	mark := strings.TrimSpace(textOf(n, maxMark))
	switch {
	case mark == "" || len(mark) > maxMark:
		return false
	case !hasWords(mark):
		return !strings.ContainsFunc(mark, func(r rune) bool { return strings.ContainsRune("+-−–°′″", r) })
	case isBracketed(mark), isMark(mark) && isNoteName(attr(n, "class")):
		return true
	}
	linked := n.Parent != nil && n.Parent.DataAtom == atom.A && isReferral(n.Parent, true)
	for kid := n.FirstChild; kid != nil && !linked; kid = kid.NextSibling {
		linked = kid.DataAtom == atom.A && isReferral(kid, true)
	}
	if linked {
		return true
	}
	digits := strings.TrimFunc(mark, func(r rune) bool { return unicode.IsDigit(r) || r == ',' || r == ' ' }) == ""
	return digits && isAfterNoted(string(lastBytes(w.raw, 64)))
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// isAfterNoted reports whether a raised number after a text can only be the mark of a note: after a word that is no
// unit or symbol, a year, or the end of a clause.
func isAfterNoted(before string) bool {
	last, size := utf8.DecodeLastRuneInString(before)
	switch {
	case unicode.IsLetter(last):
		word := before[strings.LastIndexFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })+1:]
		return utf8.RuneCountInString(word) > 2 && !raisedUnits[strings.ToLower(word)]
	case '0' <= last && last <= '9':
		from := strings.LastIndexFunc(before, func(r rune) bool { return r < '0' || '9' < r }) + 1
		number := before[from:]
		if from > 0 { // a part of a longer number, or 2⋅1500
			previous, _ := utf8.DecodeLastRuneInString(before[:from])
			if !unicode.IsSpace(previous) && previous != '(' && !isDash(previous) {
				return false
			}
		}
		return len(number) == 4 && "1400" <= number && number < "2100"
	case last == ')':
		inner, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
		return unicode.IsLetter(inner) && isAfterNoted(before[:len(before)-size])
	}
	return strings.ContainsRune(".,;:!?”’»\"'…。、", last) && last != utf8.RuneError
}

// raisedUnits are the words of more than two letters that a power may follow.
var raisedUnits = map[string]bool{
	"sec": true, "min": true, "mol": true, "rad": true, "inch": true, "metre": true, "meter": true, "foot": true,
	"feet": true, "log": true, "sin": true, "cos": true, "tan": true, "exp": true, "chi": true, "hour": true,
	"day": true,
}

// The digits and signs that Unicode has in raised and lowered form.
const (
	plainScript   = "0123456789+-−()n"
	raisedScript  = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ"
	loweredScript = "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎ₙ"
)

// script returns a raised or lowered number in Unicode's characters, so that 10<sup>6</sup> is not 106. It returns
// false if there is none for a character, or it has no digit: the "st" of 21st is a part of the word.
func script(s, form string) (string, bool) {
	s = strings.TrimSpace(s)
	if !strings.ContainsFunc(s, unicode.IsDigit) && s != "n" && s != "-" && s != "+" && s != "−" || len(s) > 32 {
		return "", false
	}
	plain, out := []rune(plainScript), []rune(form)
	var b strings.Builder
	for _, r := range s {
		at := slices.Index(plain, r)
		if at < 0 {
			return "", false
		}
		b.WriteRune(out[at])
	}
	return b.String(), true
}

// scripted returns the text of a raised or lowered number, or false if the element is read like any other. A lowered
// one becomes a character of its own only next to a number: CO<sub>2</sub> is CO2.
func (w *htmlWalk) scripted(n *html.Node) (string, bool) {
	switch n.DataAtom { //nolint:exhaustive // the others are neither
	case atom.Sup:
		return script(textOf(n, maxMark), raisedScript)
	case atom.Sub:
		last, _ := utf8.DecodeLastRune(w.raw)
		next := n.NextSibling
		if unicode.IsDigit(last) || next != nil && next.Type == html.TextNode && startsWithDigit(next.Data) {
			return script(textOf(n, maxMark), loweredScript)
		}
	}
	return "", false
}

// isApart reports whether an element is beside the words of the page: by its role, its class, or because it stands
// between two paragraphs and is none.
func isApart(n *html.Node) bool {
	switch strings.ToLower(attr(n, "role")) {
	case "complementary", "navigation", "dialog", "alertdialog", "search", "contentinfo", "banner", "form":
		return true
	}
	if !namesApart(attr(n, "class")) && !namesApart(attr(n, "id")) && !isBetween(n) && !isTime(n) {
		return false
	}
	return len(textOf(n, maxApart)) <= maxApart
}

// apartNames are the words in classes and ids of what is set apart.
var apartNames = wordSet(`ad ads advert adverts advertisement advertising adslot sponsor sponsored promo promotion
	newsletter subscribe subscription signup share sharing social tweet related cookie cookies consent gdpr pullquote
	caption credit teaser teasers toc breadcrumb breadcrumbs sidebar infobox factbox outbrain taboola recommended
	recommendations popup modal overlay tooltip byline timestamp timecode donate donation offer paywall comments
	readmore seealso callout signature`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// namesApart reports whether a word of a class or an id, in camelCase or with hyphens, is one of apartNames.
func namesApart(class string) bool {
	if class == "" || len(class) > 500 {
		return false
	}
	at := 0
	for i, r := range class + " " {
		upper := unicode.IsUpper(r)
		if !upper && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			continue
		}
		if apartNames[strings.ToLower(class[at:i])] {
			return true
		}
		if at = i; !upper {
			at = i + utf8.RuneLen(r)
		}
	}
	low := strings.ToLower(class)
	return strings.Contains(low, "pull-quote") || strings.Contains(low, "read-more") ||
		strings.Contains(low, "see-also")
}

// isBetween reports whether an element stands between two paragraphs, or divides one.
func isBetween(n *html.Node) bool {
	if n.DataAtom != atom.Div && n.DataAtom != atom.Section && n.DataAtom != atom.Figure &&
		!strings.Contains(n.Data, "-") {
		return false
	}
	previous, next := neighbour(n, false), neighbour(n, true)
	return previous != nil && next != nil && previous.DataAtom == atom.P &&
		(next.DataAtom == atom.P || next.Type == html.TextNode)
}

// neighbour returns the next or previous sibling with content.
func neighbour(n *html.Node, next bool) *html.Node {
	for range 8 {
		if next {
			n = n.NextSibling
		} else {
			n = n.PrevSibling
		}
		if n == nil || n.Type == html.ElementNode || n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			return n
		}
	}
	return nil
}

// isTime reports whether an element is the time stamp of a transcript: 0:41.
func isTime(n *html.Node) bool {
	if n.DataAtom != atom.Span && n.DataAtom != atom.Time && n.DataAtom != atom.A && n.DataAtom != atom.Div {
		return false
	}
	s := strings.Trim(textOf(n, 16), " \n\t[]()")
	return len(s) >= 4 && len(s) <= 12 && strings.Contains(s, ":") &&
		strings.TrimFunc(s, func(r rune) bool { return '0' <= r && r <= '9' || r == ':' || r == '.' }) == ""
}

// isDropCap reports whether an element is the large first letter of a paragraph, which the rest of its word follows.
func isDropCap(n *html.Node) bool {
	class := strings.ToLower(attr(n, "class"))
	return (strings.Contains(class, "drop") && strings.Contains(class, "cap") || strings.Contains(class, "initial") ||
		strings.Contains(class, "first-letter") || strings.Contains(class, "firstletter")) &&
		utf8.RuneCountInString(strings.TrimSpace(textOf(n, 16))) == 1
}
