package support

import (
	"fmt"
	"math"
)

// The features of a claim and passages. W is the weight of all terms of the claim; stop words are no terms.
const (
	featWindow  = iota // of the best three sentences that follow each other, the share of W
	featPairs          // of the claim's neighbours, stop words left out, those that are neighbours in a passage
	featNumbers        // how many of the claim's numbers no passage has, ln(1+n)
	featNames          // how many words of the claim's names no passage has, ln(1+n)
	featPersons        // how many words for the speaker and the listener the claim has, ln(1+n)
	featLength         // the words of the passages, at most maxLength, ln(1+n)
	featureCount
)

// feature is what the model makes of a feature.
type feature struct {
	name   string  // in [Verdict.Signals]
	weight float64 // of log odds
}

// lexicalBias and lexicalModel are the model: a logistic regression. TestFit makes their numbers, and holds that more
// support never lowers the score: the first two weights are not negative, and the others not positive.
const lexicalBias = -1.3847

var lexicalModel = [featureCount]feature{
	featWindow:  {"window", 2.4512},
	featPairs:   {"pairs", 1.9223},
	featNumbers: {"numbers_missing", -1.4106},
	featNames:   {"names_missing", -0.8261},
	featPersons: {"person", -0.8292},
	featLength:  {"length", -0.1238},
}

// score returns P(supported) where half of all claims are supported.
func (s *scorer) score() float64 {
	z := float64(lexicalBias)
	for i, x := range s.features {
		z += lexicalModel[i].weight * x
	}
	return 1 / (1 + math.Exp(-z))
}

// signals returns the features by name.
func (s *scorer) signals() map[string]float64 {
	m := make(map[string]float64, featureCount)
	for i, f := range lexicalModel {
		m[f.name] = s.features[i]
	}
	return m
}

// modelHash tells models apart: it covers each of their numbers.
func modelHash() uint32 { return hash(fmt.Append(nil, lexicalBias, lexicalModel)) }
