package support

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

var wordNet = flag.String("wordnet", "", "write antonyms.txt anew from WordNet 3.0's files in this `directory` (needs $IBID_SHARED/data/words40k.txt)")

// antonyms.txt is well formed, carries its licence, and has words of the reader's. With -wordnet it is written anew.
func TestAntonyms(t *testing.T) {
	if *wordNet != "" {
		if err := os.WriteFile("antonyms.txt", makeAntonyms(t, *wordNet), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.Contains(antonymText, "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved.") {
		t.Error("antonyms.txt lacks the notice that WordNet's licence asks for")
	}
	for i, line := range strings.Split(strings.TrimSpace(antonymText), "\n") {
		if line == "" {
			continue
		}
		if left, right, ok := strings.Cut(line, " | "); line[0] != '#' && (!ok || left == "" || right == "") {
			t.Errorf("line %d is no pair: %q", i+1, line)
		}
	}
	for _, pair := range [][2]string{{"preserves", "destroyed"}, {"resistant", "susceptible"}, {"profitable", "unprofitable"}, {"sealed", "unsealed"}, {"damp", "dry"}} {
		if !slices.Contains(antonyms()[topicKey(pair[0])], topicKey(pair[1])) {
			t.Errorf("%s has no opposite %s", pair[0], pair[1])
		}
	}
}

// What a word must be to be in the table: so common, and the sense that has the opposite among its first.
const (
	maxAntonymRank   = 40_000 // in the list of words that idf.bin was made from
	maxOppositeSense = 3      // of a word that WordNet itself has as an opposite
	maxSynonymSense  = 1      // of a word that only means the same as one of those
)

// synset is an entry of WordNet's data files: words of one sense.
type synset struct {
	words     []string
	opposites []link
	similar   []string // of an adjective: the offsets of those near it
}

// link is a pointer from one word of a synset to one of another.
type link struct {
	from, to int
	offset   string
}

// makeAntonyms makes antonyms.txt of WordNet's files.
func makeAntonyms(t *testing.T, dir string) []byte {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(testenv.Shared(t), "data", "words40k.txt"))
	if err != nil {
		t.Fatal(err)
	}
	common := map[string]bool{}
	for _, word := range strings.Fields(string(list))[:maxAntonymRank] {
		common[word] = true
	}
	notice, lines := "", map[string]bool{}
	for _, part := range []string{"verb", "adj", "adv", "noun"} {
		read := func(name string) string {
			data, err := os.ReadFile(filepath.Join(dir, name+"."+part))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		data := read("data")
		synsets := map[string]*synset{}
		notice = ""
		for line := range strings.Lines(data) {
			if line[0] == ' ' {
				notice += strings.TrimRight("#"+strings.TrimLeft(line, " 0123456789"), " \n") + "\n"
				continue
			}
			offset, _, _ := strings.Cut(line, " ")
			synsets[offset] = readSynset(line)
		}
		senses := map[string]int{} // by a word and an offset, counted from 1
		for line := range strings.Lines(read("index")) {
			if fields := strings.Fields(line); line[0] != ' ' {
				synsetCount, _ := strconv.Atoi(fields[2])
				for i, offset := range fields[len(fields)-synsetCount:] {
					senses[fields[0]+offset] = i + 1
				}
			}
		}
		known := func(offset string, most int, words ...string) (out []string) {
			for _, word := range words {
				if sense := senses[word+offset]; sense > 0 && sense <= most && common[word] {
					out = append(out, word)
				}
			}
			return out
		}
		for offset, s := range synsets {
			for _, l := range s.opposites {
				other := synsets[l.offset]
				a, b := known(offset, maxOppositeSense, s.words[l.from]), known(l.offset, maxOppositeSense, other.words[l.to])
				if len(b) == 0 {
					continue
				}
				if part != "noun" {
					a = append(a, known(offset, maxSynonymSense, s.words...)...)
				}
				for _, near := range s.similar {
					a = append(a, known(near, maxSynonymSense, synsets[near].words...)...)
				}
				slices.Sort(a)
				a = slices.Compact(a)
				if len(a) > 1 || len(a) == 1 && a[0] < b[0] {
					lines[fmt.Sprintf("%s | %s\n", strings.Join(a, " "), b[0])] = true
				}
			}
		}
	}
	out := "# Opposites of WordNet 3.0, of common words only: antonym.go says the form and how it is made. WordNet's notice:\n#\n" +
		notice + "\n"
	return []byte(out + strings.Join(slices.Sorted(maps.Keys(lines)), ""))
}

// readSynset reads a line of a data file.
func readSynset(line string) *synset {
	fields := strings.Fields(line)
	count, _ := strconv.ParseInt(fields[3], 16, 0)
	s := &synset{}
	for i := range int(count) {
		word, _, _ := strings.Cut(fields[4+2*i], "(") // an adjective's place: (a), (p)
		s.words = append(s.words, word)
	}
	pointers := fields[4+2*count:]
	n, _ := strconv.Atoi(pointers[0])
	for p := range slices.Chunk(pointers[1:1+4*n], 4) {
		switch ends, _ := strconv.ParseInt(p[3], 16, 0); p[0] {
		case "!":
			s.opposites = append(s.opposites, link{int(ends>>8) - 1, int(ends&255) - 1, p[1]})
		case "&":
			s.similar = append(s.similar, p[1])
		}
	}
	return s
}
