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

// Language returns the language of a text as BCP 47: a language ("en") if its script or its function words identify it,
// "und-" and the script ("und-Cyrl") if only the script is certain, else "". It detects English, German, French,
// Spanish, Italian, Portuguese and Dutch by their words, and languages with a script of their own. It reads the first
// 512 bytes.
func Language(text string) string {
	r := reader{text: text}
	var v votes
	for t := (token{}); r.next(&t) && t.start < languageSample; {
		v.add(text, &t)
	}
	return v.detected().language
}

// latin is the script of a text with more than half of its words in Latin letters. Other scripts have the names in
// otherScripts.
const latin = "Latn"

// detection is the detected language of a text.
type detection struct {
	language, script string // see [Language]; "" if unknown
}

// votes counts the evidence of a text's words for its language.
type votes struct {
	words, latin         int
	scripts              [len(otherScripts)]int
	languages, different [len(latinLanguages)]int // function words, in all and distinct
	seen                 [4]uint64                // the numbers of the function words so far
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

// detected returns the language that the votes are for.
func (v *votes) detected() (t detection) {
	if l := scriptLanguage(&v.scripts, v.words); l != "" {
		return detection{l, l}
	}
	if 2*v.latin > v.words {
		t.script = latin
	}
	t.language = latinLanguage(v.languages[:], v.different[:], v.words)
	return t
}

// incomparable reports whether a claim in t cannot be compared, word by word, with a passage in p, or in the named
// language if p has none. Texts too short to detect can be compared, and so can a claim in Chinese characters only with
// Japanese.
func (t detection) incomparable(p detection, named string) bool {
	if t.language == "zh" && p.language == "ja" {
		return false
	}
	if t.script != "" && p.script != "" && t.script != p.script {
		return true
	}
	passage := cmp.Or(p.language, named)
	return t.language != "" && passage != "" && t.language != passage && !strings.HasPrefix(t.language, "und-")
}

// latinLanguage requires two distinct function words ("com" in three addresses is not enough), a twelfth of all words,
// and half as many again as for any other language.
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

// scriptLanguage returns the language or script of more than half of the words. If a fifth are in kana, ideographs are
// Japanese.
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

// functionWord is the languages that have a word, as bits, and its number: from 1 to 255.
type functionWord struct{ languages, number uint8 }

// functionWords are words, without accents, of which nearly every sentence in one of latinLanguages has one.
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

// baseLanguage returns the language of a BCP 47 tag without its subtags.
func baseLanguage(tag string) string {
	l, _, _ := strings.Cut(strings.ToLower(tag), "-")
	if l == "und" {
		return ""
	}
	return l
}
