package support

import (
	_ "embed"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// wordsText is what the package knows about words, signs and units; it describes its own format.
//
//go:embed words.txt
var wordsText string

// wordList is a list of words.txt.
type wordList map[string]meaning

// meaning is what a list says about a word.
type meaning struct {
	name   string
	number float64
}

func (l wordList) has(word string) bool { _, ok := l[word]; return ok }

// The lists of words.txt, which describes them. Lists used in one file only are declared there.
var (
	lists = readLists(wordsText)

	smallWords    = lists["small"]
	monthNames    = lists["month"]
	ordinalWords  = lists["ordinal"]
	numberWords   = lists["number"]
	pluralWords   = lists["plural"]
	oppositeWords = lists["opposite"]
	relationWords = lists["relation"]
	denyingWords  = lists["denying"]
	currencyNames = lists["currency"]
)

// readLists parses words.txt. A test ensures that it is well formed.
func readLists(text string) map[string]wordList {
	lists := map[string]wordList{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\n ", " ")) {
		head, words, ok := strings.Cut(line, ":")
		if !ok || line[0] == '#' {
			continue
		}
		fields := strings.Fields(head)
		list := lists[fields[0]]
		if list == nil {
			list = wordList{}
			lists[fields[0]] = list
		}
		if sides := strings.Split(words, "|"); len(sides) > 1 {
			list.addSides(sides)
			continue
		}
		var m meaning
		counts := false
		for _, field := range fields[1:] {
			if number, ok := parseNumber(strings.TrimSuffix(field, "+")); ok {
				m.number, counts = number, strings.HasSuffix(field, "+")
			} else {
				m.name = field
			}
		}
		for word := range strings.FieldsSeq(words) {
			if !counts {
				list.add(word, m)
				continue
			}
			for same := range strings.SplitSeq(word, "/") {
				list.add(same, m)
			}
			m.number++
		}
	}
	return lists
}

func (l wordList) add(word string, m meaning) {
	if word = strings.ReplaceAll(word, "_", " "); !l.has(word) {
		l[word] = m
	}
}

// addSides adds the words of each side of opposites. Their meaning is the names of all sides, their own first.
func (l wordList) addSides(sides []string) {
	names := make([]string, len(sides))
	for i, side := range sides {
		names[i] = strings.Trim(strings.Fields(side)[0], "()")
	}
	for i, side := range sides {
		name := strings.Join(append([]string{names[i]}, slices.Delete(slices.Clone(names), i, i+1)...), "|")
		for word := range strings.FieldsSeq(side) {
			if !strings.HasPrefix(word, "(") {
				l.add(word, meaning{name: name})
			}
		}
	}
}

// listsByLanguage returns the words of all lists whose names begin with a prefix.
func listsByLanguage(prefix string) wordList {
	all := wordList{}
	for name, list := range lists {
		if strings.HasPrefix(name, prefix) {
			maps.Copy(all, list)
		}
	}
	return all
}

// parseNumber parses .0254, 1e3 and 1/3.
func parseNumber(s string) (float64, bool) {
	above, below, isFraction := strings.Cut(s, "/")
	number, err := strconv.ParseFloat(above, 64)
	if err == nil && isFraction {
		var divisor float64
		divisor, err = strconv.ParseFloat(below, 64)
		number /= divisor
	}
	return number, err == nil
}

// word is what the reader knows about a word.
type word struct {
	key   uint32 // of what it is read as; 0 for its stem
	flags tokenFlags
}

// knownWords are the words with a special meaning for the reader, by the keys of their unstemmed form.
var knownWords = sync.OnceValue(func() map[uint32]*word {
	known := map[uint32]*word{}
	at := func(text string) *word {
		raw := hashString(text) &^ 1
		if known[raw] == nil {
			known[raw] = new(word)
		}
		return known[raw]
	}
	for list, flag := range map[string]tokenFlags{
		"stop": flagStop, "person": flagPerson, "never": flagNegation, "clause": flagClause,
	} {
		for word := range lists[list] {
			at(word).flags |= flag
		}
	}
	for word, m := range lists["same"] {
		at(word).key = stemKey([]byte(m.name))
	}
	months := map[float64]string{} // by number: the full name is the longest
	for word, m := range monthNames {
		if len(word) > len(months[m.number]) {
			months[m.number] = word
		}
	}
	for word, m := range monthNames {
		at(word).key = stemKey([]byte(months[m.number]))
	}
	for list, last := range map[string]float64{"number": 90, "ordinal": 10, "number-word": 3} {
		for word, m := range lists[list] {
			if m.number >= 2 && m.number <= last { // one is a pronoun, and first is seldom a number
				w := at(word)
				w.key = hashString(strconv.Itoa(int(m.number))) | 1
				w.flags |= flagNumber
			}
		}
	}
	return known
})

// idf.bin gives the rarity of English words. It begins with idfMagic, the SHA-256 of the word list it was made from (32
// bytes) and the number of entries (4 bytes, little-endian, like everything after it). Then come the keys of the
// entries, four bytes each, ascending, and their weights, one byte each.
//
// The list has one word per line, commonest first. An entry is the stem of one or more of its words. Its mass is the
// sum of 1/(rank+3) over them, with ranks from 1: roughly how often they occur. Its weight is -ln(mass) as a share of
// maxIDF, in one byte.
//
// TestIDF writes it: `go test ./support -run TestIDF -idf`, from the list in $IBID_SHARED/data/words40k.txt.
//
//go:embed idf.bin
var idfBin string

const (
	idfMagic  = "ibid-idf/1\n"
	idfHeader = len(idfMagic) + 32 + 4
)

// idfTable maps the key of a stem to its rarity in English, in 255ths.
type idfTable map[uint32]uint8

// english reads the embedded idf.bin; a test ensures that it is complete.
var english = sync.OnceValue(func() idfTable {
	entries := []byte(idfBin[idfHeader:])
	n := len(entries) / 5
	t := make(idfTable, n)
	for i := range n {
		t[binary.LittleEndian.Uint32(entries[4*i:])] = entries[4*n+i]
	}
	return t
})

const (
	maxIDF = 11.0 // the greatest weight: rarer words are names or misspellings
	// weightContent is the least weight of nearly all words with content.
	weightContent = 0.45
	weightUnknown = 1 // of a word that is not in the table: usually a name
	weightNumber  = 1
)

// weight returns the rarity of a term: near 0 if it occurs in every text, 1 if in few.
func (t idfTable) weight(key uint32) float64 {
	if key&1 != 0 {
		return weightNumber
	}
	if weight, ok := t[key]; ok {
		return float64(weight) / 255
	}
	return weightUnknown
}
