package snapshot

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/ibidhq/ibid/internal/prose"
)

// Bounds of quotes with ellipses.
const (
	maxSegments  = 32
	maxLeftOut   = 3000 // bytes of whole sentences that an ellipsis may leave out
	maxStarts    = 64   // hits of the first piece that are followed
	nearWords    = 3    // words next to a piece that would turn its meaning
	editorsWords = 4    // words of the text that editorial brackets may replace
)

// segment is a piece of a quote between ellipses.
type segment struct {
	text   string
	editor bool // words of an editor precede it, in brackets, instead of an ellipsis
}

var leftOut = regexp.MustCompile(`[\[(](?:…|\.{2,4}|\. \. \.)[\])]|…|\.{3,}|\. \. \.|\[[^\[\]]{2,60}\]`)

// CutShort reports whether a quote says that it leaves out what comes before its first words, or after its last ones:
// it begins or ends with an ellipsis.
func CutShort(quote string) (before, after bool) {
	first, last := strings.IndexFunc(quote, isSignificant), strings.LastIndexFunc(quote, isSignificant)
	if first < 0 {
		return false, false
	}
	for _, place := range leftOut.FindAllStringIndex(quote, -1) {
		if words := quote[place[0]:place[1]]; words[0] == '[' && !strings.ContainsAny(words, "….") {
			continue // an editor's words
		}
		before = before || place[1] <= first
		after = after || place[0] > last
	}
	return before, after
}

// segments divides a quote at its ellipses and editorial brackets. It returns nil if there are none inside, or brackets
// that turn the meaning: [not].
func segments(quote string) []segment {
	var list []segment
	add := func(text string, editor bool) {
		if text = strings.TrimSpace(text); strings.ContainsFunc(text, isSignificant) {
			list = append(list, segment{text, editor})
		}
	}
	at, editor := 0, false
	for _, place := range leftOut.FindAllStringIndex(quote, maxSegments) {
		words := quote[place[0]:place[1]]
		bracketed := words[0] == '[' && !strings.Contains(words, "…") && !strings.Contains(words, "..")
		if bracketed && (bracketMark(words, true) > 0 || !strings.ContainsFunc(words, unicode.IsLetter)) {
			continue
		}
		if bracketed && (turns(words, -1) || strings.ContainsFunc(words, unicode.IsDigit)) {
			return nil
		}
		add(quote[at:place[0]], editor)
		at, editor = place[1], bracketed
	}
	add(quote[at:], editor)
	if len(list) < 2 {
		return nil
	}
	return list
}

func isSignificant(r rune) bool { return kindOf(r) != noKind }

// shortened searches for the pieces of a quote between its ellipses, in order in one passage. A piece that goes on in
// the middle of a sentence belongs to the sentence of the one before, and what is left out between them must not begin
// or end with a word that turns the meaning.
func (f *finder) shortened(quote string, comma bool) (Match, bool) {
	list := segments(quote)
	if list == nil {
		return Match{}, false
	}
	forms := make([][]needle, len(list))
	for i := range list {
		if forms[i] = needles(list[i].text, comma); forms[i] == nil {
			return Match{}, false
		}
	}
	var found []hit
	starts := 0
	for k := range forms[0] {
		f.hits(&forms[0][k], 0, len(f.text), func(h hit) bool {
			starts++
			if f.isWhole(h, quote) && f.isEnd(h.end) {
				found = f.follow(h, list, forms)
			}
			return found == nil && starts < maxStarts
		})
		if found != nil {
			break
		}
	}
	if found == nil {
		return Match{}, false
	}
	h := hit{found[0].start, found[len(found)-1].end}
	if f.isAsked(h, quote) {
		return Match{}, false
	}
	m := f.place(h)
	m.How, m.Count, m.Cut = MatchShortened, 1, cuts(f.text, h)
	pieces := make([]string, len(list))
	for i := range list {
		pieces[i] = list[i].text
	}
	m.Text = strings.Join(pieces, " … ")
	return m, true
}

// isEnd reports whether an offset is not inside a word or number.
func (v *view) isEnd(at int) bool {
	last, _ := utf8.DecodeLastRuneInString(v.text[:at])
	next, _ := utf8.DecodeRuneInString(v.text[at:])
	return !unicode.IsLower(next) || !unicode.IsLetter(last)
}

// follow finds the pieces after the first, each as near as possible, or returns nil.
func (f *finder) follow(first hit, list []segment, forms [][]needle) []hit {
	found := []hit{first}
	for i := 1; i < len(list); i++ {
		last := found[len(found)-1]
		var next hit
		for k := range forms[i] {
			f.hits(&forms[i][k], last.end, min(len(f.text), last.end+maxLeftOut+len(list[i].text)*2), func(h hit) bool {
				ends := i == len(list)-1 || f.isEnd(h.end)
				if h.start >= last.end && ends && !cuts(f.text, hit{h.start, h.end}) &&
					f.goesOn(last, h, list[i].editor) {
					next = h
				}
				return next.end == 0
			})
			if next.end > 0 {
				break
			}
		}
		if next.end == 0 {
			return nil
		}
		found = append(found, next)
	}
	return found
}

// goesOn reports whether a quote may leave out what is between two pieces of the text.
func (f *finder) goesOn(a, b hit, editor bool) bool {
	gap := f.text[a.end:b.start]
	if editor {
		return countWords(gap) <= editorsWords && !turns(gap, -1)
	}
	from, to := f.blockAt(a.end-1), f.blockAt(b.start)
	for i := from + 1; i <= to; i++ {
		if f.blocks[i].Kind == Heading {
			return false
		}
	}
	if f.begins(b.start) || f.startsSentence(b.start) {
		return true
	}
	if to > from && f.blocks[to].Kind == Paragraph {
		return false // in the middle of another paragraph
	}
	start, _ := prose.SentenceAt(f.text, b.start)
	return start < a.end && !turns(gap, nearWords)
}

// startsSentence reports whether a sentence begins at an offset.
func (v *view) startsSentence(at int) bool {
	before := strings.TrimRight(v.text[:at], " \"'“”‘’«»([")
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(v.text[at:])
	return before == "" || strings.ContainsRune(".!?。！？…", last) && !unicode.IsLower(next)
}

// turning are words that turn the meaning of what they stand next to, or make it conditional.
var turning = wordSet(`not no never nor neither none nobody nothing without unless except only hardly barely
	scarcely cannot can't don't doesn't didn't won't isn't aren't wasn't weren't hasn't haven't hadn't
	shouldn't wouldn't couldn't provided lest fails failed refuse refused denied denies false falsely
	wrongly nicht kein keine keinen keinem keiner keines nie niemals ohne außer nur weder kaum ne pas jamais
	sans sauf aucun aucune nunca jamás sin salvo ningún ninguna solo sólo non mai senza tranne nessun niet
	geen nooit zonder behalve slechts não sem exceto nem inte aldrig utan ikke aldri uden nie bez не нет ни
	никогда без`)

// turns reports whether a text has a turning word among its first or last so many words; negative means anywhere.
func turns(text string, near int) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return strings.ContainsRune("不没沒無无未非", r) }) ||
		strings.Contains(text, "ない") || strings.Contains(text, "ません") {
		return true
	}
	words := strings.FieldsFunc(folded(text), func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\'' && r != '’'
	})
	if near >= 0 && len(words) > 2*near {
		words = slices.Concat(words[:near], words[len(words)-near:])
	}
	return slices.ContainsFunc(words, func(w string) bool { return turning[w] })
}

// The markup that quotes have: Markdown, as converters of pages write it, and HTML.
var (
	quotedImage = regexp.MustCompile(`!\[([^\]\n]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*\)`)
	quotedLink  = regexp.MustCompile(`\[((?:[^\[\]\n]|\[[^\[\]\n]*\])*)\]` +
		`\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?: "[^"\n]*")?\)`)
	quotedRef    = regexp.MustCompile(`\[\^[^\]\s]{1,32}\]`)
	quotedStruck = regexp.MustCompile(`~~[^~\n]+~~`)
	quotedHead   = regexp.MustCompile(`(?m)^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•][ \t]+)`)
	quotedItems  = regexp.MustCompile(`(?m)^[ \t]*\d{1,3}[.)][ \t]+`)
	quotedRule   = regexp.MustCompile(`(?m)^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$`)
	quotedEscape = regexp.MustCompile("\\\\([\\\\`*_{}\\[\\]()#+.!|>~$&<-])")
	quotedPower  = regexp.MustCompile(`(?i)<(sup|sub)>([^<]{1,16})</(?:sup|sub)>`)
	quotedTag    = regexp.MustCompile(`</?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?>`)
)

// unmark removes the markup of a quote.
func unmark(quote string) string {
	if !strings.ContainsAny(quote, "[<#>~\\`|*-.)•&") {
		return quote
	}
	for range 2 {
		if out := xhtml.UnescapeString(quote); strings.Contains(quote, "&") {
			quote = out
		}
	}
	quote = quotedPower.ReplaceAllStringFunc(quote, func(s string) string {
		of := quotedPower.FindStringSubmatch(s)
		form := raisedScript
		if strings.EqualFold(of[1], "sub") {
			form = loweredScript
		}
		if out, ok := script(of[2], form); ok {
			return out
		}
		return of[2]
	})
	quote = quotedTag.ReplaceAllStringFunc(quote, func(s string) string {
		name := strings.ToLower(strings.Trim(strings.Fields(s)[0], "</>"))
		switch {
		case atom.Lookup([]byte(name)) == 0:
			return s
		case blockElements[atom.Lookup([]byte(name))]:
			return "\n"
		}
		return ""
	})
	quote = quotedRule.ReplaceAllString(quote, "")
	quote = quotedHead.ReplaceAllString(quote, "")
	if len(quotedItems.FindAllStringIndex(quote, 2)) > 1 { // a single number may belong to what is quoted
		quote = quotedItems.ReplaceAllString(quote, "")
	}
	quote = withoutNumbers(quote)
	quote = quotedStruck.ReplaceAllString(quote, "")
	quote = quotedImage.ReplaceAllString(quote, "")
	quote = quotedLink.ReplaceAllString(quote, "$1")
	quote = quotedRef.ReplaceAllString(quote, "")
	return quotedEscape.ReplaceAllString(quote, "$1")
}

// withoutNumbers removes the numbers of a list in one line, which count up from one: "1. Close it. 2. Open it."
func withoutNumbers(quote string) string {
	var b strings.Builder
	rest, n := quote, 0
	for {
		n++
		mark := strconv.Itoa(n) + ". "
		at := 0
		if n > 1 {
			if at = strings.Index(rest, " "+mark) + 1; at == 0 {
				break
			}
		} else if !strings.HasPrefix(rest, mark) {
			return quote
		}
		b.WriteString(rest[:at])
		rest = rest[at+len(mark):]
	}
	if n < 3 {
		return quote // a single number may belong to what is quoted
	}
	return b.String() + rest
}
