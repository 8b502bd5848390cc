package support

// The words below are switches, not maps, because the package has no variables and Go searches them as fast.

// smallNumber reads zero to nineteen and the tens.
func smallNumber(low string) (float64, bool) {
	switch low {
	case "zero":
		return 0, true
	case "one":
		return 1, true
	case "two":
		return 2, true
	case "three":
		return 3, true
	case "four":
		return 4, true
	case "five":
		return 5, true
	case "six":
		return 6, true
	case "seven":
		return 7, true
	case "eight":
		return 8, true
	case "nine":
		return 9, true
	case "ten":
		return 10, true
	case "eleven":
		return 11, true
	case "twelve":
		return 12, true
	}
	return teenOrTen(low)
}

func teenOrTen(low string) (float64, bool) {
	switch low {
	case "thirteen":
		return 13, true
	case "fourteen":
		return 14, true
	case "fifteen":
		return 15, true
	case "sixteen":
		return 16, true
	case "seventeen":
		return 17, true
	case "eighteen":
		return 18, true
	case "nineteen":
		return 19, true
	case "twenty":
		return 20, true
	case "thirty":
		return 30, true
	case "forty":
		return 40, true
	case "fifty":
		return 50, true
	case "sixty":
		return 60, true
	case "seventy":
		return 70, true
	case "eighty":
		return 80, true
	case "ninety":
		return 90, true
	}
	return 0, false
}

// scaleOf reads a word that multiplies the number before it; 0: it is none.
func scaleOf(low string) float64 {
	switch low {
	case "hundred":
		return 1e2
	case "dozen":
		return 12
	case "thousand", "thousands":
		return 1e3
	case "lakh":
		return 1e5
	case "million", "millions", "mn", "mln":
		return 1e6
	case "crore":
		return 1e7
	case "billion", "billions", "bn", "bln":
		return 1e9
	case "trillion", "trillions", "tn":
		return 1e12
	}
	return 0
}

// gluedScale reads the letter right behind a figure: 10k; with a currency also $5m and $3b.
func gluedScale(text string, money bool) float64 {
	switch text {
	case "k", "K":
		return 1e3
	case "M":
		return 1e6
	case "m":
		if money {
			return 1e6
		}
	case "B", "b":
		if money {
			return 1e9
		}
	}
	return 0
}

// ordinalWord reads first to twelfth, and the tens.
func ordinalWord(low string) float64 {
	switch low {
	case "first":
		return 1
	case "second":
		return 2
	case "third":
		return 3
	case "fourth":
		return 4
	case "fifth":
		return 5
	case "sixth":
		return 6
	case "seventh":
		return 7
	case "eighth":
		return 8
	case "ninth":
		return 9
	case "tenth":
		return 10
	case "eleventh":
		return 11
	case "twelfth":
		return 12
	}
	return laterOrdinal(low)
}

func laterOrdinal(low string) float64 {
	switch low {
	case "thirteenth":
		return 13
	case "fourteenth":
		return 14
	case "fifteenth":
		return 15
	case "sixteenth":
		return 16
	case "seventeenth":
		return 17
	case "eighteenth":
		return 18
	case "nineteenth":
		return 19
	case "twentieth":
		return 20
	}
	return 0
}

// partWord reads what divides: half, third, quarter; 0: it is none.
func partWord(low string) float64 {
	switch low {
	case "half", "halves":
		return 1. / 2
	case "third", "thirds":
		return 1. / 3
	case "quarter", "quarters", "fourth", "fourths":
		return 1. / 4
	case "fifth", "fifths":
		return 1. / 5
	case "sixth", "sixths":
		return 1. / 6
	case "eighth", "eighths":
		return 1. / 8
	case "tenth", "tenths":
		return 1. / 10
	}
	return 0
}

// vulgarFraction reads a fraction that is one character; 0: it is none.
func vulgarFraction(sign string) float64 {
	switch sign {
	case "½":
		return 1. / 2
	case "⅓":
		return 1. / 3
	case "⅔":
		return 2. / 3
	case "¼":
		return 1. / 4
	case "¾":
		return 3. / 4
	case "⅛":
		return 1. / 8
	}
	return 0
}

// currencyOf reads a currency's sign, code or name as its ISO 4217 code; empty: it is none. A bare dollar is USD.
func currencyOf(low string) string {
	switch low {
	case "$", "usd", "dollar", "dollars", "us$":
		return "USD"
	case "€", "eur", "euro", "euros":
		return "EUR"
	case "£", "gbp", "pounds sterling", "sterling":
		return "GBP"
	case "¥", "jpy", "yen":
		return "JPY"
	case "₹", "inr", "rupee", "rupees":
		return "INR"
	case "cny", "rmb", "yuan", "renminbi":
		return "CNY"
	case "₽", "rub", "rouble", "roubles", "ruble", "rubles":
		return "RUB"
	case "₩", "krw", "won":
		return "KRW"
	case "chf", "franc", "francs":
		return "CHF"
	case "cad":
		return "CAD"
	case "aud":
		return "AUD"
	case "sek", "kronor":
		return "SEK"
	case "₺", "try", "lira":
		return "TRY"
	case "brl", "real", "reais":
		return "BRL"
	}
	return ""
}

// aboutWord reports whether a word before a number says that it is not exact.
func aboutWord(low string) bool {
	switch low {
	case "about", "around", "approximately", "approx", "roughly", "nearly", "almost", "some", "~", "≈", "circa", "c",
		"ca", "estimated", "close", "virtually", "barely", "approaching":
		return true
	}
	return false
}

// boundWord reads a word before a number that makes it a bound: +1 or more, -1 or less.
func boundWord(low string) int {
	switch low {
	case "over", "above", "exceeding", "exceeds", "exceed", "exceeded", ">", "≥", "least", "minimum", "surpassing",
		"surpassed", "topping", "beyond":
		return 1
	case "under", "below", "<", "≤", "most", "maximum", "within":
		return -1
	}
	return 0
}

// monthOf reads a month's name or abbreviation; 0: it is none.
func monthOf(low string) int {
	switch low {
	case "january", "jan":
		return 1
	case "february", "feb":
		return 2
	case "march", "mar":
		return 3
	case "april", "apr":
		return 4
	case "may":
		return 5
	case "june", "jun":
		return 6
	case "july", "jul":
		return 7
	case "august", "aug":
		return 8
	case "september", "sep", "sept":
		return 9
	case "october", "oct":
		return 10
	case "november", "nov":
		return 11
	case "december", "dec":
		return 12
	}
	return 0
}

// smallWord reports whether a word is grammar: it is part of no name, no count and no topic.
func smallWord(low string) bool {
	switch low {
	case "a", "an", "the", "this", "that", "these", "those", "it", "its", "it's", "he", "she", "they", "them", "their",
		"his", "her", "hers", "him", "we", "us", "our", "you", "your", "i", "my", "me", "who", "whom", "whose", "which",
		"what", "when", "where", "why", "how", "and", "or", "but", "nor", "so", "yet", "if", "then", "than", "as", "of",
		"in", "on", "at", "by", "for", "with", "from", "to", "into", "onto", "about", "over", "under", "between",
		"among", "through", "during", "since", "until", "till", "after", "before", "while", "because", "although",
		"though", "however", "also", "too", "very", "just", "only", "even", "still", "both", "either", "neither",
		"each", "every", "all", "any", "some", "many", "much", "more", "most", "other", "another", "such", "own",
		"same", "there", "here", "is", "are", "was", "were", "be", "been", "being", "am", "has", "have", "had",
		"having", "do", "does", "did", "done", "will", "would", "can", "could", "may", "might", "must", "shall",
		"should", "not", "no", "never", "up", "down", "out", "off", "again", "per", "via", "within", "without",
		"according", "approximately", "around", "roughly", "nearly", "almost", "one", "upon", "whether", "once",
		"against", "across", "along", "toward", "towards", "like", "i'm", "that's", "there's", "itself", "himself",
		"herself", "themselves", "his/her", "s", "t", "overall", "today", "currently", "now", "later", "meanwhile",
		"despite", "unlike", "yes", "additionally", "furthermore", "moreover", "therefore", "thus", "hence", "finally",
		"instead", "please", "let", "see", "first", "second", "next", "last", "recent", "recently", "other's", "others",
		"few", "several", "various", "certain", "based", "given", "using", "including", "following", "due", "example",
		"title", "content", "et", "al", "eg", "ie", "etc", "well", "further", "several's", "note", "generally":
		return true
	}
	return false
}

// foreignMonth reads a month's name, without diacritics, in German, French, Spanish, Italian, Portuguese or Dutch; 0:
// it is none.
func foreignMonth(low string) int {
	switch low {
	case "januar", "janner", "janvier", "enero", "gennaio", "janeiro", "januari":
		return 1
	case "februar", "fevrier", "febrero", "febbraio", "fevereiro", "februari":
		return 2
	case "marz", "mars", "marzo", "marco", "maart":
		return 3
	case "april", "avril", "abril", "aprile":
		return 4
	case "mai", "mayo", "maggio", "maio", "mei":
		return 5
	case "juni", "juin", "junio", "giugno", "junho":
		return 6
	case "juli", "juillet", "julio", "luglio", "julho":
		return 7
	case "august", "aout", "agosto", "augustus":
		return 8
	case "september", "septembre", "septiembre", "settembre", "setembro":
		return 9
	case "oktober", "octobre", "octubre", "ottobre", "outubro":
		return 10
	case "november", "novembre", "noviembre", "novembro":
		return 11
	case "dezember", "decembre", "diciembre", "dicembre", "dezembro", "december": //nolint:misspell // French
		return 12
	}
	return 0
}
