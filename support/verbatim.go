package support

// Verbatim reports whether the claim's words stand in the text one after the other. Case, accents, punctuation, white
// space, citation marks and the grouping of digits do not matter; everything else does. A claim without words stands
// nowhere. It takes time linear in both.
func Verbatim(claim, text string) bool {
	words := rawWords(claim)
	if len(words) == 0 {
		return false
	}
	// Knuth, Morris and Pratt: fall[i] is how many words are matched still where words[i] does not match.
	fall := make([]int, len(words))
	for i, n := 1, 0; i < len(words); i++ {
		for n > 0 && words[n] != words[i] {
			n = fall[n-1]
		}
		if words[n] == words[i] {
			n++
		}
		fall[i] = n
	}
	r, n := reader{text: text}, 0
	for t := (token{}); r.next(&t); {
		word := t.raw()
		for n > 0 && words[n] != word {
			n = fall[n-1]
		}
		if words[n] == word {
			n++
		}
		if n == len(words) {
			return true
		}
	}
	return false
}

func rawWords(text string) []uint32 {
	var words []uint32
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		words = append(words, t.raw())
	}
	return words
}
