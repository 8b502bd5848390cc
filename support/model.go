package support

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// The features of a claim and passages. W is the weight of all terms of the claim; stop words are no terms.
const (
	featWindow        = iota // of the best three sentences that follow each other, the share of W
	featWindow5              // of the best five
	featTight                // of the best run of 30 words
	featTogether             // of all pairs of terms, those that share a sentence, by the product of their weights
	featWeakest              // of the claim's worst part, the share that its best sentence has
	featBM25                 // BM25 of the passages as one text, over the most it can be
	featPairs                // of the claim's neighbours, stop words left out, those that are neighbours in a passage
	featTokens               // of the claim's words, stop words too, those in the best three sentences
	featRarest               // the weight of the rarest term that no passage has
	featNumberMissing        // of the claim's numbers, those that no passage has
	featNumbers              // how many numbers the claim has, ln(1+n)
	featNameMissing          // of the weight of the claim's names, that of those that no passage has
	featPerson               // how many words for the speaker and the listener the claim has, ln(1+n)
	featClaimLength          // its words, ln(1+n)
	featSentences            // the sentences of the passages, ln(1+n)
	featureCount
)

// featureNames are the keys of [Verdict.Signals].
func featureNames() [featureCount]string {
	return [featureCount]string{
		"window", "window5", "tight", "together", "weakest_part", "bm25", "pairs", "tokens",
		"rarest_missing", "numbers_missing", "numbers", "names_missing", "person", "claim_length", "sentences",
	}
}

// featureDirections say what more of a feature can do to the score: 1 only raise it, -1 only lower it, 0 either.
func featureDirections() [featureCount]int {
	return [featureCount]int{1, 1, 1, 1, 1, 1, 1, 1, -1, -1, 0, -1, -1, 0, 0}
}

// model turns features into P(supported). Its margin is treeShare of a sum of trees of depth two and the rest of a
// linear function; a line calibrates it (Platt).
type model struct {
	bias, slope, offset float64 // bias is the linear function's and the trees' together
	weights             [featureCount]float64
	trees               []tree
	params              uint32 // hash of all of the above
}

const treeShare = 0.6

// tree compares feature[0] with the threshold at[0], and then feature[1] where it is at most that, or else feature[2].
type tree struct {
	feature [3]uint8
	at      [3]float64
	leaf    [4]float64
}

func (m *model) margin(f *[featureCount]float64) float64 {
	z, linear := 0.0, 0.0
	for i, w := range m.weights {
		linear += w * f[i]
	}
	for i := range m.trees {
		t := &m.trees[i]
		n, leaf := 1, 0
		if f[t.feature[0]] > t.at[0] {
			n, leaf = 2, 2
		}
		if f[t.feature[n]] > t.at[n] {
			leaf++
		}
		z += t.leaf[leaf]
	}
	return m.bias + treeShare*z + (1-treeShare)*linear
}

func (m *model) score(f *[featureCount]float64) float64 {
	return 1 / (1 + math.Exp(-(m.slope*m.margin(f) + m.offset)))
}

// weightsText has the numbers of the model; it says its own form. TestFit makes it.
//
//go:embed weights.txt
var weightsText string

var lexicalModel = sync.OnceValue(func() *model { return readModel(weightsText) })

// readModel reads weights.txt. It is part of the program, and TestFit holds that it is whole.
func readModel(text string) *model {
	var numbers []float64
	for line := range strings.Lines(text) {
		if line[0] == '#' {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			number, _ := strconv.ParseFloat(field, 64)
			numbers = append(numbers, number)
		}
	}
	next := func() float64 {
		first := numbers[0]
		numbers = numbers[1:]
		return first
	}
	m := &model{bias: next(), slope: next(), offset: next()}
	for i := range m.weights {
		m.weights[i] = next()
	}
	for len(numbers) > 0 {
		var t tree
		for i := range t.feature {
			t.feature[i] = uint8(next())
		}
		for i := range t.at {
			t.at[i] = next()
		}
		for i := range t.leaf {
			t.leaf[i] = next()
		}
		m.trees = append(m.trees, t)
	}
	m.params = m.hash()
	return m
}

// hash tells models apart: it covers each of their numbers.
func (m *model) hash() uint32 {
	return hash(fmt.Append(nil, m.bias, m.slope, m.offset, m.weights, m.trees))
}
