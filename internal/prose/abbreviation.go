package prose

import (
	"strings"
	"unicode"
)

// abbreviation says what a full stop after a word can be.
type abbreviation uint8

const (
	noAbbreviation abbreviation = iota
	joining                     // never ends a sentence: more must come (titles, "e.g.", "vs.")
	counting                    // comes before a number ("No.", "Fig."), else as common
	common                      // ends a sentence only before a word that clearly opens one
	final                       // mostly the last word of its phrase ("etc.", "p.m."): ends a sentence before a capital
)

// abbreviationOf looks a word, without its last full stop, up in the tables for English, German, French, Spanish and
// Italian.
func abbreviationOf(word string) abbreviation {
	switch word {
	case "etc", "usw", "ecc", "ff", "a.m", "p.m", "A.M", "P.M":
		return final
	case "No", "Nos", "no", "Nr", "Nrn", "nr", "Núm", "núm", "num", "Fig", "Figs", "fig", "figs", "Abb", "Tab", "Eq",
		"Eqs", "eq", "Gl", "Vol", "Vols", "vol", "Bd", "p", "pp", "pg", "pág", "págs", "Art", "art", "Arts", "Abs",
		"Sec", "Secs", "Sect", "sec", "Ch", "Chap", "Kap", "cap", "Cap", "chap", "Ex", "Ver", "ver", "Ziff", "Rn", "Rz",
		"Anm", "par", "Par", "App", "Pt", "Op", "op", "Tel", "tel", "Ext", "ext", "Jan", "Feb", "Mar", "Apr", "Jun",
		"Jul", "Aug", "Sep", "Sept", "Oct", "Okt", "Nov", "Dec", "Dez":
		return counting
	}
	if isJoining(word) {
		return joining
	}
	if isCommon(word) {
		return common
	}
	return noAbbreviation
}

func isJoining(word string) bool {
	switch word {
	case "Dr", "dr", "Drs", "Mr", "Mrs", "Ms", "Mx", "Prof", "prof", "Hon", "Rev", "Gen", "Col", "Maj", "Capt", "Cpt",
		"Lt", "Sgt", "Cmdr", "Adm", "Gov", "Sen", "Rep", "Pres", "Messrs",
		"Mt", // English titles
		// others'
		"Hr", "Frl", "Dipl", "Mme", "Mlle", "MM", "Mgr", "Sra", "Srta", "Dña", "Dott", "Sig", "Sigg", "Avv", "Ing",
		"e.g", "E.g", "i.e", "I.e", "cf", "Cf", "vs", "approx", "Approx", "ca", "Ca", "viz", "resp", "incl", "excl",
		"esp", "v", "vgl", "Vgl", "bzw", "z.B", "Z.B", "d.h", "D.h", "u.U", "i.d.R", "sog", "ggf", "evtl", "inkl",
		"exkl", "zzgl", "p.ej", "P.ej", "p.ex", "P.ex", "c.-à-d", "c.à.d", "p.es",
		"P.es":
		return true
	}
	return false
}

func isCommon(word string) bool {
	switch word {
	case "al", "Inc", "inc", "Ltd", "Corp", "Co", "Bros", "Cie", "Assn", "Intl", "Natl", "Govt", "Dept", "dept", "Univ",
		"Est", "est", "ed", "eds", "Ed", "Eds", "trans", "max", "min", "avg", "gem",
		"lt", // firms, books, measures
		"St", "Ste", "Ave", "Blvd", "Rd", "Ft", "Jr", "Sr", "Str",
		"Hbf", // places, generations
		"Ala", "Ariz", "Calif", "Colo", "Conn", "Fla", "Mass", "Mich", "Minn", "Okla", "Penn", "Tenn", "Va", "Wash",
		"Wis", "Mio", "Mrd", "Tsd", "Std", "Min", "Sek", "Jh", "Jhd", "Chr", "geb", "gest", "verh", "hrsg", "Hrsg",
		"Aufl", "janv", "févr", "avr", "juil", "sept", "oct", "nov", "déc", "av", "env", "éd", "art.cit", "ene", "abr",
		"ago", "dic", "aprox", "Ud", "Uds", "Vd", "pag", "Pag", "sig", "dott", "ing", "avv", "genn",
		"febbr":
		return true
	}
	return false
}

// endsAfter reports whether the full stop at stop, which comes before white space and the word or sign that next says,
// ends a sentence. Where it does not, it belongs to an abbreviation, an initial or an ordinal number.
func endsAfter(text string, stop int, next opening) bool {
	start := abbreviationStart(text, stop)
	word := text[start:stop]
	if word == "" {
		return true
	}
	if isDigit(word[len(word)-1]) {
		return !isOrdinal(text, start, word, next)
	}
	r, w := runeAt(word, 0)
	switch kind := abbreviationOf(word); {
	case kind == joining:
		return false
	case kind == counting && next.kind == digitNext:
		return false
	case kind == counting && (word == "No" || word == "no"):
		return true
	case kind == final:
		return next.kind != capitalNext || !isTimeWord(next.word(text))
	case kind != noAbbreviation:
		return next.opensSentence(text)
	case w == len(word) && !isCaseless(r):
		return endsAfterLetter(text, start, stop, next)
	case isAcronym(word):
		return next.opensSentence(text)
	}
	return true
}

// abbreviationStart returns where the word that ends at stop starts, or stop where it is too long to be an
// abbreviation.
func abbreviationStart(text string, stop int) int {
	const longest = 24
	p := stop
	for p > 0 {
		r, w := runeBefore(text, p)
		if !isWord(r) && r != '.' && r != '-' && !unicode.Is(unicode.Mn, r) {
			break
		}
		if p -= w; stop-p > longest {
			return stop
		}
	}
	for p < stop && (text[p] == '.' || text[p] == '-') {
		p++
	}
	return p
}

// isAcronym reports whether word has full stops inside it and at most three letters between them: "U.S", "Ph.D".
func isAcronym(word string) bool {
	letters, dotted := 0, false
	for _, r := range word {
		switch {
		case r == '.' || r == '-':
			dotted, letters = dotted || r == '.', 0
		case unicode.IsLetter(r) && letters < 3:
			letters++
		default:
			return false
		}
	}
	return dotted
}

// endsAfterLetter is endsAfter for a word of one letter: an initial, a unit, or a piece of "z. B.".
func endsAfterLetter(text string, start, stop int, next opening) bool {
	letter := text[start:stop]
	before := letterBefore(text, start)
	switch {
	case before == "z" && letter == "B", before == "d" && letter == "h", before == "d" && letter == "R":
		return false
	case before != "", next.isLetterStop(text):
		return next.opensSentence(text)
	}
	r, _ := runeAt(letter, 0)
	if !unicode.IsUpper(r) {
		return true
	}
	p, _ := wordBefore(text, start)
	if last, _ := runeBefore(text, p); isWord(last) && last <= '9' || last == '°' {
		return true // a unit
	}
	if next.kind == digitNext {
		return false
	}
	return next.opensSentence(text) && !isNameParticle(next.word(text))
}

// letterBefore returns the single letter that stands, with a full stop, before the word at start; empty where none
// does.
func letterBefore(text string, start int) string {
	p, spaced := wordBefore(text, start)
	if !spaced || p == 0 || text[p-1] != '.' {
		return ""
	}
	r, w := runeBefore(text, p-1)
	if !unicode.IsLetter(r) {
		return ""
	}
	if far, _ := runeBefore(text, p-1-w); isWord(far) {
		return ""
	}
	return text[p-1-w : p-1]
}

// wordBefore returns the end of what stands before the word at start, and whether one space is between them.
func wordBefore(text string, start int) (end int, spaced bool) {
	r, w := runeBefore(text, start)
	if !isSpace(r) || w == 0 {
		return start, false
	}
	return start - w, true
}

// isOrdinal reports whether the full stop after the digits of word, which start at start, makes them an ordinal number
// as in German: "am 3. Oktober", "der 2. Weltkrieg", "3. 10. 2024".
func isOrdinal(text string, start int, word string, next opening) bool {
	if len(word) > 2 || !isDigit(word[0]) {
		return false
	}
	end, spaced := wordBefore(text, start)
	if !spaced {
		return false
	}
	from := end
	for from > max(0, end-8) && text[from-1] > ' ' {
		from--
	}
	before := text[from:end]
	if next.kind == digitNext {
		return next.isLetterStop(text) || isOrdinalNumber(before)
	}
	return next.kind == capitalNext &&
		(isGermanOrdinal(next.word(text)) || callsForOrdinal(before) && !next.opensSentence(text))
}

func isOrdinalNumber(s string) bool {
	digits := strings.TrimSuffix(s, ".")
	return digits != s && digits != "" && len(digits) <= 2 && isNumbers(digits)
}

// callsForOrdinal reports whether a number after this German word is an ordinal one when a full stop follows it.
func callsForOrdinal(word string) bool {
	switch word {
	case "der", "die", "das", "dem", "den", "des", "am", "im", "vom", "zum", "zur", "beim", "ab", "bis", "seit",
		"jeder", "jede", "jedes", "Der", "Die", "Das", "Dem", "Den", "Am", "Im", "Vom", "Zum", "Zur", "Beim", "Ab",
		"Bis", "Seit", "ihr", "sein", "ihren", "seinen", "ihrem", "seinem", "und":
		return true
	}
	return false
}

// isGermanOrdinal reports whether a German ordinal number stands before this word as a rule.
func isGermanOrdinal(word string) bool {
	switch word {
	case "Januar", "Jänner", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober",
		"November", "Dezember", "Jahrhundert", "Jahrhunderts", "Jahrtausend", "Auflage", "Platz", "Weltkrieg",
		"Weltkriegs", "Bundesliga", "Stock", "Klasse", "Kapitel", "Geburtstag", "Todestag", "Etage", "Quartal", "Tag",
		"Lebensjahr", "Liga":
		return true
	}
	return false
}

// isTimeWord reports whether word goes on after "3 p.m.": a day or a time zone.
func isTimeWord(word string) bool {
	switch word {
	case "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "Eastern", "Central", "Mountain",
		"Pacific", "ET", "EST", "EDT", "CT", "CST", "CDT", "MT", "MST", "MDT", "PT", "PST", "PDT", "GMT", "UTC", "BST",
		"CET", "CEST":
		return true
	}
	return false
}
