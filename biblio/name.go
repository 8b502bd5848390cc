package biblio

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name is an author: a person's name in parts, or a whole name.
type name struct {
	whole    string // organisations, and persons whose names are not split; the other fields are then empty
	family   string
	given    string // may be empty
	particle string // van der, de, von: before the family name
	suffix   string // Jr., III
}

// parseName splits a person's name. Anything that might be something else is kept whole, because a wrongly split name
// is abbreviated and sorted wrongly everywhere. The name must be clean.
func parseName(s string) name {
	whole := name{whole: s}
	if strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsDigit(r) || strings.ContainsRune("@/\\()[]{}<>:;&|+_\"*#%", r)
	}) {
		return whole
	}
	if strings.Contains(s, ",") {
		return parseInverted(s)
	}
	words := strings.Fields(s)
	if len(words) < 2 || len(words) > 6 || !personal(words) || isAcronym(words[len(words)-1]) {
		return whole
	}
	var suffix string
	if n := len(words); n > 2 && suffixes[words[n-1]] {
		suffix, words = words[n-1], words[:n-1]
	}
	given, family := splitWords(words)
	n := withParticle(family)
	n.given, n.suffix = strings.Join(given, " "), suffix
	if n.family == "" || n.given == "" {
		return whole
	}
	return n
}

// parseInverted reads "Family, Given" with a suffix before, after or instead of the given names.
func parseInverted(s string) name {
	whole := name{whole: s}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if len(parts) > 3 || slices.Contains(parts, "") || companies[strings.ToLower(parts[len(parts)-1])] {
		return whole
	}
	if len(parts) == 2 && suffixes[parts[1]] {
		n := parseName(parts[0])
		if n.whole == "" {
			n.suffix = parts[1]
			return n
		}
		return whole
	}
	family, given, suffix := parts[0], parts[1], ""
	if len(parts) == 3 {
		switch {
		case suffixes[parts[1]]:
			suffix, given = parts[1], parts[2]
		case suffixes[parts[2]]:
			suffix = parts[2]
		default:
			return whole
		}
	}
	if !personal(strings.Fields(family)) || !personal(strings.Fields(given)) {
		return whole
	}
	n := withParticle(strings.Fields(family))
	n.given, n.suffix = given, suffix
	if n.family == "" {
		return whole
	}
	return n
}

// splitWords splits the words of a name in natural order. Trailing initials mean that the family name comes first.
func splitWords(words []string) (given, family []string) {
	if last := len(words) - 1; isInitials(words[last]) && !isInitials(words[0]) && !particles[words[last-1]] {
		first := last
		for first > 1 && isInitials(words[first-1]) {
			first--
		}
		return words[first:], words[:first]
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return particles[w] }) + 1
	switch {
	case at == 0:
		at = len(words) - 1
	case (words[at] == "y" || words[at] == "e") && at > 1:
		at-- // Ortega y Gasset: the family name begins before that
	}
	return words[:at], words[at:]
}

// withParticle makes a name from family names that may begin with particles.
func withParticle(words []string) name {
	n := 0
	for n < len(words) && particles[words[n]] {
		n++
	}
	return name{particle: strings.Join(words[:n], " "), family: strings.Join(words[n:], " ")}
}

// personal reports whether words may be parts of a person's name: in a script with capitals, each capitalized or a
// particle, and none that only organisations use.
func personal(words []string) bool {
	for _, w := range words {
		first, size := utf8.DecodeRuneInString(w)
		_, afterApostrophe, _ := strings.Cut(strings.ReplaceAll(w, "’", "'"), "'")
		second, _ := utf8.DecodeRuneInString(afterApostrophe)
		switch {
		case particles[w], suffixes[w]:
			continue
		case unicode.IsUpper(second) && unicode.IsLower(first): // d'Alembert
		case !unicode.IsUpper(first) || companies[strings.ToLower(w)] || organisational[strings.ToLower(w)]:
			return false
		}
		if len(w) > size && w == strings.ToUpper(w) && !isInitials(w) {
			return false // NASA
		}
	}
	return true
}

// Words of names.
var (
	particles = set(`van von vom der den de del della degli dei di da das do dos du des la le el al bin ibn ben ten ter
		te zu zum zur af av y e 't`)
	suffixes  = set("Jr. Jr Sr. Sr II III IV")
	companies = set("inc inc. ltd ltd. llc llp corp corp. co. gmbh ag plc s.a. b.v. n.v. kg limited incorporated")
	// organisational are words in names of organisations that names of persons do not have.
	organisational = set(`the academy agency association authority bank board bureau center centre college commission
		committee community company consortium contributors corporation council court daily department desk
		developers digital documentation editorial editors federation foundation fund global government
		group health herald hospital institute institution international journal lab laboratories laboratory
		labs library magazine media ministry museum national network news newsroom office online
		organisation organization partners post press project publishing research review school science
		sciences service services society software solutions staff state states studio studios survey
		systems team technologies technology times tribune trust union united university web weekly wiki
		wikipedia world`)
)

// isInitials reports whether w is initials as citations write them: "J.", "J.A.", "J.-P.", "JA".
func isInitials(w string) bool {
	letters := 0
	for _, r := range w {
		switch {
		case unicode.IsUpper(r):
			letters++
		case r != '.' && r != '-':
			return false
		}
	}
	return letters > 0 && letters <= 2 || letters == 3 && strings.Contains(w, ".")
}

// isAcronym reports whether w, the last word of a name, may abbreviate something other than given names: "Reuters UK",
// "Malcolm X".
func isAcronym(w string) bool {
	return !suffixes[w] && !strings.Contains(w, ".") && w == strings.ToUpper(w)
}

// initials abbreviates given names: "Jean-Paul Ada" is "J.-P. A."
func initials(given string) string {
	var all []string
	for _, word := range strings.FieldsFunc(given, func(r rune) bool { return r == ' ' || r == '.' }) {
		if isInitials(word) && !strings.Contains(word, "-") {
			for _, r := range word {
				all = append(all, string(r)+".")
			}
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(word, "-") {
			if r, _ := utf8.DecodeRuneInString(part); unicode.IsUpper(r) {
				parts = append(parts, string(r)+".")
			}
		}
		if len(parts) == 0 {
			continue
		}
		joined := strings.Join(parts, "-")
		if strings.HasPrefix(word, "-") && len(all) > 0 { // the second half of "J.-P."
			all[len(all)-1] += "-" + joined
			continue
		}
		all = append(all, joined)
	}
	return strings.Join(all, " ")
}
