package support

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// languageSample is how many bytes of a text [Language] reads.
const languageSample = 512

// Language returns the language of a text as BCP 47: a language ("en") where its script or its function words tell,
// "und-" and the script ("und-Cyrl") where only the script is certain, and "" where too little is. It knows English,
// German, French, Spanish, Italian, Portuguese and Dutch by their words, and those that have a script of their own. It reads
// the first half kilobyte.
func Language(text string) string {
	if len(text) > languageSample {
		text = wholeRunes(text[:languageSample])
	}
	var votes [len(latinLanguages)]int
	var scripts [len(otherScripts)]int
	words, known := 0, functionWords()
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		if t.flags&flagNumber != 0 {
			continue
		}
		words++
		ch, _ := utf8.DecodeRuneInString(text[t.start:])
		if ch >= 0x370 {
			for i := range scripts {
				if unicode.Is(scriptTable(i), ch) {
					scripts[i]++
					break
				}
			}
			continue
		}
		for bits, i := known[string(t.word[1:len(t.word)-1])], 0; bits != 0; bits, i = bits>>1, i+1 {
			votes[i] += int(bits & 1)
		}
	}
	if words == 0 {
		return ""
	}
	if l := scriptLanguage(&scripts, words); l != "" {
		return l
	}
	return latinLanguage(votes[:], words)
}

// latinLanguage needs two function words, a twelfth of all words, and half as many again as for any other language.
func latinLanguage(votes []int, words int) string {
	best, second := 0, 0
	for i, v := range votes {
		switch {
		case v > votes[best]:
			best, second = i, votes[best]
		case i != best:
			second = max(second, v)
		}
	}
	if v := votes[best]; v < 2 || v*12 < words || v*2 < second*3 {
		return ""
	}
	return latinLanguages[best]
}

//nolint:gochecknoglobals // tables, never written
var (
	latinLanguages = [...]string{"en", "de", "fr", "es", "it", "pt", "nl"}
	otherScripts   = [...]string{"ja", "zh", "ko", "el", "he", "th", "und-Cyrl", "und-Arab", "und-Deva", "und-Beng"}
)

func scriptTable(i int) *unicode.RangeTable {
	return [...]*unicode.RangeTable{
		unicode.Hiragana, unicode.Han, unicode.Hangul, unicode.Greek, unicode.Hebrew, unicode.Thai,
		unicode.Cyrillic, unicode.Arabic, unicode.Devanagari, unicode.Bengali,
	}[i]
}

// scriptLanguage returns the language or script that more than half of the words are written in. A fifth in kana makes
// ideographs Japanese.
func scriptLanguage(scripts *[len(otherScripts)]int, words int) string {
	if kana := scripts[0]; 5*kana >= words && 2*(kana+scripts[1]) > words {
		return otherScripts[0]
	}
	for i, n := range scripts {
		if 2*n > words {
			return otherScripts[i]
		}
	}
	return ""
}

// functionWords has, for each of latinLanguages, words that nearly every sentence has one of, without accents.
//
//nolint:gochecknoglobals // made once, never written afterwards
var functionWords = sync.OnceValue(func() map[string]uint8 {
	words := map[string]uint8{}
	for i, list := range [...]string{
		"the of and to that with from by his which were this are have has be on it as at for an is was in",
		"der die das und ist nicht ein eine mit auf fur von dem den des sich wurde im zu als was in",
		"le la les un une et est dans du de des au aux sur pour qui que pas avec ete ce ou il en",
		"el la los las un una y de del que en fue con por se su es",
		"il la di che e gli un una della del nel sono per non dei alla ha con in da",
		"o os um uma de do da em nao com foi ao dos pela no na que e por se",
		"de het een van niet met voor zijn werd dat die aan op ook te en is was in",
	} {
		for word := range strings.FieldsSeq(list) {
			words[word] |= 1 << i
		}
	}
	return words
})

// baseLanguage returns the language of a BCP 47 tag without what follows it.
func baseLanguage(tag string) string {
	l, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if l == "und" {
		return ""
	}
	return l
}
