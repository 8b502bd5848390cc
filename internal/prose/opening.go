package prose

import (
	"strings"
	"unicode"
)

// nextKind says what follows a terminator.
type nextKind uint8

const (
	nothingNext   nextKind = iota // the text ends
	lowerNext                     // a lower-case word: mostly the sentence goes on
	capitalNext                   // a capital, or a word that is written small at the start too (iPhone, an address)
	caselessNext                  // a letter of a script without capitals
	digitNext                     // a number
	signNext                      // anything else: code, a currency sign, an emoji
	continuesNext                 // a comma, a dash or another terminator: the sentence goes on
)

// opening is the first word or sign after a terminator, behind opening quotes, brackets and emphasis.
type opening struct {
	kind nextKind
	at   int
}

// openingAt finds what opens the text at p.
func openingAt(text string, p int) opening {
	const most = 8 // signs before a word; more are decoration
	for range most {
		r, w := runeAt(text, p)
		if w == 0 {
			return opening{nothingNext, p}
		}
		if kind := kindOf(r); kind != signNext {
			return opening{refine(text, p, kind), p}
		}
		switch {
		case r == '|':
			p = skipBlanks(text, p+1)
		case isOpener(r) || r == '\u00ad' || unicode.Is(unicode.Cf, r):
			p += w
		default:
			return opening{signNext, p}
		}
	}
	return opening{signNext, p}
}

func kindOf(r rune) nextKind {
	switch {
	case 'a' <= r && r <= 'z':
		return lowerNext
	case 'A' <= r && r <= 'Z':
		return capitalNext
	case '0' <= r && r <= '9':
		return digitNext
	case r < 0xAA:
		if strings.ContainsRune(",;:-.!?", r) {
			return continuesNext
		}
		return signNext
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return capitalNext
	case unicode.IsLower(r):
		return lowerNext
	case unicode.IsLetter(r):
		return caselessNext
	case unicode.IsDigit(r):
		return digitNext
	case terminatorOf(r) != noTerminator || strings.ContainsRune("–—、，：；،؛", r):
		return continuesNext
	}
	return signNext
}

// refine looks at more than the first rune where that is not enough.
func refine(text string, p int, kind nextKind) nextKind {
	rest := text[p:]
	if kind == continuesNext && (rest[0] == '.' || rest[0] == '-') {
		if c, _ := runeAt(rest, 1); isWord(c) { // .NET, -5
			return capitalNext
		}
	}
	if kind == lowerNext && (opensAddress(rest) || hasInnerCapital(rest)) {
		return capitalNext
	}
	return kind
}

func opensAddress(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "www.")
}

// hasInnerCapital reports whether a capital follows the first few small letters of s: iPhone, eBay, mRNA.
func hasInnerCapital(s string) bool {
	for i := 1; i < min(len(s), 4); i++ {
		switch {
		case 'A' <= s[i] && s[i] <= 'Z':
			return true
		case s[i] < 'a' || 'z' < s[i]:
			return false
		}
	}
	return false
}

// isOpener reports whether r stands before the first word of a sentence.
func isOpener(r rune) bool {
	switch r {
	case '(', '[', '{', '"', '\'', '*', '_', '~', '#', '¿', '¡', '«', '»', '“', '”', '„', '‘', '’', '‚', '‹', '›':
		return true
	}
	return r >= 0x2000 && (unicode.Is(unicode.Ps, r) || unicode.Is(unicode.Pi, r))
}

// word returns the word that opens the sentence, up to an apostrophe in it.
func (o opening) word(text string) string {
	const longest = 24
	end := o.at
	for end < min(len(text), o.at+longest) {
		r, w := runeAt(text, end)
		if !isWord(r) && !unicode.Is(unicode.Mn, r) {
			break
		}
		end += w
	}
	return text[o.at:end]
}

// isLetterStop reports whether a single letter or number with a full stop opens the text.
func (o opening) isLetterStop(text string) bool {
	word := o.word(text)
	_, w := runeAt(word, 0)
	end := o.at + len(word)
	short := w == len(word) || o.kind == digitNext && len(word) <= 2
	return word != "" && short && end < len(text) && text[end] == '.'
}

// opensSentence reports whether the word is one that is written with a capital only because it opens a sentence.
func (o opening) opensSentence(text string) bool {
	if o.kind != capitalNext {
		return o.kind == nothingNext
	}
	word := o.word(text)
	after, w := runeAt(text, o.at+len(word))
	elided := after == '\'' || after == '’'
	if w > 0 && !isSpace(after) && after != ',' && after != ':' && !elided {
		return false
	}
	return isOpeningWord(word, elided)
}

func isOpeningWord(word string, elided bool) bool {
	if elided {
		switch word {
		case "L", "D", "J", "C", "N", "S", "Qu", "Dell", "Nell", "All", "Un":
			return true
		}
	}
	return isEnglishOpening(word) || isOtherOpening(word)
}

func isEnglishOpening(word string) bool {
	switch word {
	case "The", "This", "That", "These", "Those", "It", "Its", "He", "She", "They", "We", "I", "You", "His", "Her",
		"Their", "Our", "My", "Your", "A", "An", "In", "On", "At", "By", "For", "From", "To", "With", "Without",
		"Under", "Over", "After", "Before", "During", "Since", "Until", "Between", "Among", "Through", "Within",
		"Despite", "But", "And", "Or", "So", "Yet", "Nor", "However", "Therefore", "Thus", "Hence", "Moreover",
		"Furthermore", "Additionally", "Also", "Then", "Still", "Instead", "Meanwhile", "Otherwise", "Although",
		"Though", "While", "Whereas", "When", "Where", "If", "Unless", "Because", "As", "Once", "Now", "Today", "Later",
		"Finally", "First", "Second", "Third", "Next", "Overall", "According", "There", "Here", "What", "Who", "Why",
		"How", "Which", "Some", "Many", "Most", "Several", "Both", "Each", "Every", "All", "Another", "Other", "Others",
		"Such", "Any", "No", "Not", "Only", "Even", "Is", "Are", "Was", "Were", "Do", "Does", "Did", "Can", "Could",
		"Will", "Would", "Should", "Has", "Have", "Had", "Please", "Yes", "Let", "See", "Note":
		return true
	}
	return false
}

// isOtherOpening is isEnglishOpening for German, French, Spanish and Italian.
func isOtherOpening(word string) bool {
	switch word {
	case "Der", "Die", "Das", "Den", "Dem", "Ein", "Eine", "Es", "Er", "Sie", "Wir", "Ich", "Ihr", "Ihre", "Im", "Am",
		"Auf", "Bei", "Mit", "Nach", "Vor", "Für", "Zum", "Zur", "Von", "Seit", "Durch", "Diese", "Dieser", "Dieses",
		"Diesen", "Dort", "Hier", "Aber", "Und", "Oder", "Doch", "Denn", "Wenn", "Als", "Auch", "Da", "Dann", "Damit",
		"Dabei", "Dadurch", "Daher", "Deshalb", "Zudem", "Außerdem", "Allerdings", "Jedoch", "Trotzdem", "Obwohl",
		"Weil", "Während", "Heute", "Man", "Nur", "Laut":
		return true
	case "Le", "La", "Les", "Une", "Il", "Elle", "Ils", "Elles", "Ce", "Cette", "Ces", "Cela", "Dans", "En", "Mais",
		"Et", "Ou", "Nous", "Vous", "Je", "Au", "Aux", "Pour", "Avec", "Selon", "Cependant", "Toutefois", "Depuis",
		"Lorsque", "Sa", "Son":
		return true
	case "El", "Los", "Las", "Un", "Una", "Uno", "Este", "Esta", "Estos", "Estas", "Esto", "Ese", "Esa", "Pero", "Y",
		"Se", "Por", "Con", "Su", "Sus", "Según", "Además", "También", "Cuando", "Aunque", "Desde", "Hay", "Al", "Del":
		return true
	case "Lo", "Gli", "Questo", "Questa", "Questi", "Queste", "Nel", "Nella", "Ma", "E", "È", "Si", "Per", "Secondo",
		"Inoltre", "Anche", "Quando", "Dal", "Dalla", "Della", "Dopo", "Però":
		return true
	}
	return false
}

// isNameParticle reports whether word, which may open a sentence, is also a part of names: "J. La Rue", "C. Das".
func isNameParticle(word string) bool {
	switch word {
	case "Le", "La", "Les", "El", "Los", "Las", "Lo", "Da", "Das", "Den", "Der", "Die", "Del", "Della", "Al", "De",
		"Du", "Von", "Man", "Su", "Y", "E":
		return true
	}
	return false
}
