package support

// stem cuts the endings of English inflection and the commonest ones of derivation off a word in lower case, and
// returns what is left of w, which it may change. It only has to treat alike what belongs together; its results are no
// words.
func stem(w []byte) []byte {
	n := len(w)
	if n < 4 || w[0] >= 0x80 {
		return w
	}
	w = stemPlural(w)
	w = stemVerb(w)
	w = stemSuffix(w)
	n = len(w)
	switch {
	case n > 3 && w[n-1] == 'e':
		w = w[:n-1]
	case n > 2 && w[n-1] == 'y' && !isVowel(w[n-2]):
		w[n-1] = 'i'
	}
	return w
}

func stemPlural(w []byte) []byte {
	n := len(w)
	if w[n-1] != 's' {
		return w
	}
	switch {
	case hasSuffix(w, "sses"):
		return w[:n-2]
	case hasSuffix(w, "ies") && n > 4:
		w[n-3] = 'y'
		return w[:n-2]
	case hasSuffix(w, "ches"), hasSuffix(w, "shes"), hasSuffix(w, "xes"):
		return w[:n-2]
	case w[n-2] == 's', w[n-2] == 'u', w[n-2] == 'i':
		return w
	}
	return w[:n-1]
}

func stemVerb(w []byte) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "ied") && n > 4:
		w[n-3] = 'y'
		return w[:n-2]
	case hasSuffix(w, "eed"):
		return w
	case hasSuffix(w, "ed") && n > 4 && hasVowel(w[:n-2]):
		return undouble(w[:n-2])
	case hasSuffix(w, "ing") && n > 5 && hasVowel(w[:n-3]):
		return undouble(w[:n-3])
	}
	return w
}

func stemSuffix(w []byte) []byte {
	n := len(w)
	switch {
	case n > 5 && hasSuffix(w, "ly"):
		w = w[:n-2]
	case n > 7 && (hasSuffix(w, "ment") || hasSuffix(w, "ness")):
		w = w[:n-4]
	case n > 6 && (hasSuffix(w, "tion") || hasSuffix(w, "sion")):
		w = w[:n-3]
	}
	return w
}

// undouble undoes the doubled consonant of stopped and running.
func undouble(w []byte) []byte {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !isVowel(w[n-1]) && w[n-1] != 'l' && w[n-1] != 's' && w[n-1] != 'z' {
		return w[:n-1]
	}
	return w
}

func hasSuffix(w []byte, s string) bool { return len(w) >= len(s) && string(w[len(w)-len(s):]) == s }

func hasVowel(w []byte) bool {
	for _, c := range w {
		if isVowel(c) || c == 'y' {
			return true
		}
	}
	return false
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	}
	return false
}

// american writes the endings of British English as American English has them. Words of five letters or fewer stay.
func american(w []byte) []byte {
	n := len(w)
	if n <= 5 {
		return w
	}
	switch w[n-1] {
	case 's', 'd', 'g', 'n':
		return americanInflected(w)
	case 'r':
		if hasSuffix(w, "our") {
			return append(w[:n-2], 'r')
		}
	case 'e':
		switch {
		case hasSuffix(w, "ise"), hasSuffix(w, "yse"):
			w[n-2] = 'z'
		case hasSuffix(w, "tre"):
			w[n-2], w[n-1] = 'e', 'r'
		case hasSuffix(w, "ogue") && n > 6:
			return w[:n-2]
		}
	}
	return w
}

func americanInflected(w []byte) []byte {
	n := len(w)
	switch {
	case hasSuffix(w, "ised"), hasSuffix(w, "ises"):
		w[n-3] = 'z'
	case hasSuffix(w, "ising"):
		w[n-4] = 'z'
	case hasSuffix(w, "isation"):
		w[n-6] = 'z'
	case hasSuffix(w, "isations"):
		w[n-7] = 'z'
	case hasSuffix(w, "ours"):
		return append(w[:n-3], w[n-2:]...)
	case hasSuffix(w, "oured"):
		return append(w[:n-4], w[n-3:]...)
	case hasSuffix(w, "ouring"):
		return append(w[:n-5], w[n-4:]...)
	}
	return w
}
