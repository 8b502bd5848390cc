package support

import (
	"cmp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// languageSample is how many bytes of a text [Language] reads.
const languageSample = 512

// Language returns the language of a text as BCP 47: a language ("en") where its script or its function words tell,
// "und-" and the script ("und-Cyrl") where only the script is certain, and "" where too little is. It knows English,
// German, French, Spanish, Italian, Portuguese and Dutch by their words, and those that have a script of their own. It
// reads the first half kilobyte.
func Language(text string) string { return tongueOf(text).language }

// latin is the script of a text that more than half of the words of are in Latin letters. Other scripts are named by
// what otherScripts has for them.
const latin = "Latn"

// tongue is what is known of the language of a text.
type tongue struct {
	language, script string // see [Language]; "" where too little tells
}

func tongueOf(text string) tongue {
	r := reader{text: text}
	var v votes
	for t := (token{}); r.next(&t) && t.start < languageSample; {
		v.add(text, &t)
	}
	return v.tongue()
}

// votes are what the words of a text say of its language.
type votes struct {
	words, latin         int
	scripts              [len(otherScripts)]int
	languages, different [len(latinLanguages)]int // function words, and those that came for the first time
	seen                 [4]uint64                // function words, by their numbers
}

// add counts a word of a text.
func (v *votes) add(text string, t *token) {
	if t.flags&flagNumber != 0 {
		return
	}
	v.words++
	ch, _ := utf8.DecodeRuneInString(text[t.start:])
	if ch >= 0x370 {
		for i := range v.scripts {
			if unicode.Is(scriptTable(i), ch) {
				v.scripts[i]++
				break
			}
		}
		return
	}
	v.latin++
	w := functionWords()[string(t.word[1:len(t.word)-1])]
	again := v.seen[w.number/64]>>(w.number%64)&1 != 0
	v.seen[w.number/64] |= 1 << (w.number % 64)
	for bits, i := w.languages, 0; bits != 0; bits, i = bits>>1, i+1 {
		v.languages[i] += int(bits & 1)
		if !again {
			v.different[i] += int(bits & 1)
		}
	}
}

// tongue is what the votes say.
func (v *votes) tongue() (t tongue) {
	if l := scriptLanguage(&v.scripts, v.words); l != "" {
		return tongue{l, l}
	}
	if 2*v.latin > v.words {
		t.script = latin
	}
	t.language = latinLanguage(v.languages[:], v.different[:], v.words)
	return t
}

// apart reports whether a claim in t cannot be compared, word by word, with a passage in p, which its caller says is in
// a language. What is too short to tell can. So can a claim without kana with Japanese.
func (t tongue) apart(p tongue, named string) bool {
	if t.language == "zh" && p.language == "ja" {
		return false
	}
	if t.script != "" && p.script != "" && t.script != p.script {
		return true
	}
	said := cmp.Or(p.language, named)
	return t.language != "" && said != "" && t.language != said && !strings.HasPrefix(t.language, "und-")
}

// latinLanguage needs two different function words ("com" in three addresses is none), a twelfth of all words, and half
// as many again as for any other language.
func latinLanguage(votes, different []int, words int) string {
	best, second := 0, 0
	for i, v := range votes {
		switch {
		case v > votes[best]:
			best, second = i, votes[best]
		case i != best:
			second = max(second, v)
		}
	}
	if v := votes[best]; different[best] < 2 || v*12 < words || v*2 < second*3 {
		return ""
	}
	return latinLanguages[best]
}

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

// functionWord is a word with the languages that have it, as bits, and its number: from 1 to 255.
type functionWord struct{ languages, number uint8 }

// functionWords has, for each of latinLanguages, words that nearly every sentence has one of, without accents.
var functionWords = sync.OnceValue(func() map[string]functionWord {
	words := map[string]functionWord{}
	for i, language := range latinLanguages {
		for word := range lists["in-"+language] {
			w, ok := words[word]
			if !ok {
				w.number = uint8(len(words) + 1)
			}
			w.languages |= 1 << i
			words[word] = w
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
