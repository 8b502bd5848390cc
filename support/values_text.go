package support

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// piece is a claim or a passage, or what stands in it from a place on.
type piece struct {
	passage, from int // passage: an index, or InClaim
	text          string
}

// betweenPieces parts pieces that are read together.
const betweenPieces = "\n\n"

func joined(pieces []piece) string {
	texts := make([]string, len(pieces))
	for i := range pieces {
		texts[i] = pieces[i].text
	}
	return strings.Join(texts, betweenPieces)
}

// valuedText is one or more pieces with their values, their words and their sentences. Places count in the joined text.
// No value and no sentence stands in two pieces.
type valuedText struct {
	text      string // of all pieces
	pieces    []piece
	starts    []int // of each piece in text
	tokens    []valueToken
	values    []Value
	places    []int // for each value its first token
	terms     []topicTerm
	sentences []valuedSentence
}

// topicTerm is a word that says what a sentence is about: no grammar, no value but a name.
type topicTerm struct {
	key    uint32
	weight float64
	token  int
	name   bool
}

// valuedSentence is one sentence: half-open ranges of tokens, terms and values.
type valuedSentence struct {
	span           ibid.Span
	tokens         [2]int
	terms          [2]int
	values         [2]int
	weight         float64 // of its terms, each counted once
	names, content int     // how many terms are words of names, and how many are not
}

// conceptWeight is what a word that stands for a concept weighs at most: the concept has commoner words.
const conceptWeight = .5

// topicOf returns the key of a word, the same for words that say the same of a value (tall, height), and its weight.
func topicOf(low string) (key uint32, weight float64) {
	word := stem([]byte(foldWord(withoutPossessive(low))))
	weight = english().weight(hash(word) &^ 1)
	if concept := conceptOf(string(word)); concept != "" {
		return hashString(concept) &^ 1, min(weight, conceptWeight)
	}
	return hash(word) &^ 1, weight
}

func topicKey(low string) uint32 {
	key, _ := topicOf(low)
	return key
}

// readPieces reads the tokens and values of each piece by itself.
func (t *valuedText) readPieces(language string) {
	at, sentences := 0, 0
	for i := range t.pieces {
		text := t.pieces[i].text
		tokens := valueTokens(text)
		values := readValues(text, tokens, language)
		for k := range tokens {
			tokens[k].start, tokens[k].end = tokens[k].start+at, tokens[k].end+at
			tokens[k].sentence += sentences
		}
		for k := range values {
			v := &values[k]
			v.Span, v.Scope, v.figure = shifted(v.Span, at), shifted(v.Scope, at), shifted(v.figure, at)
		}
		if len(tokens) > 0 {
			sentences = tokens[len(tokens)-1].sentence + 1
		}
		t.tokens, t.values, t.starts = append(t.tokens, tokens...), append(t.values, values...), append(t.starts, at)
		at += len(text) + len(betweenPieces)
	}
}

// readValuedText reads pieces in a language, empty if that is unknown: their values, and then tokens, terms and values
// of each sentence side by side.
//
//nolint:gocognit // one loop over the tokens, with the values that go with them
func readValuedText(language string, pieces ...piece) *valuedText {
	t := &valuedText{text: joined(pieces), pieces: pieces}
	t.readPieces(language)
	t.places = make([]int, len(t.values))
	value, name := 0, ibid.Span{}
	covered := 0 // bytes before it belong to a number or a date
	for i := range t.tokens {
		token := &t.tokens[i]
		if len(t.sentences) == 0 || t.tokens[t.sentences[len(t.sentences)-1].tokens[0]].sentence != token.sentence {
			t.sentences = append(t.sentences, valuedSentence{
				span: ibid.Span{
					Start: token.start,
				},
				tokens: [2]int{i, i},
				terms:  [2]int{len(t.terms), len(t.terms)},
				values: [2]int{value, value},
			})
		}
		for value < len(t.values) && t.values[value].Span.Start <= token.start {
			v := &t.values[value]
			t.places[value] = i
			switch v.Kind {
			case ValueNumber:
				covered = v.Span.End
				if v.Unit.Kind == UnitCount {
					covered = token.end // the noun says what is counted
				}
			case ValueDate, ValueNegation, ValueDegree:
				covered = v.Span.End
			case ValueName:
				if !v.Unsure {
					name = v.Span
				}
			}
			value++
		}
		s := &t.sentences[len(t.sentences)-1]
		if token.kind == wordToken && token.start >= covered && !smallWord(token.low) {
			key, weight := topicOf(token.low)
			t.terms = append(t.terms, topicTerm{key: key, weight: weight, token: i, name: token.start < name.End})
		}
		s.span.End = token.end
		s.tokens[1], s.terms[1], s.values[1] = i+1, len(t.terms), value
	}
	for i := range t.sentences {
		t.weigh(&t.sentences[i])
	}
	return t
}

func (t *valuedText) weigh(s *valuedSentence) {
	seen := make(map[uint32]bool, s.terms[1]-s.terms[0])
	for _, term := range t.terms[s.terms[0]:s.terms[1]] {
		if seen[term.key] {
			continue
		}
		seen[term.key] = true
		s.weight += term.weight
		if term.name {
			s.names++
		} else {
			s.content++
		}
	}
}

// sentenceOf returns the index of the sentence that has token i.
func (t *valuedText) sentenceOf(i int) int {
	low, high := 0, len(t.sentences)
	for low+1 < high {
		if middle := (low + high) / 2; t.sentences[middle].tokens[0] <= i {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// excerpt is a sentence with a value in it, in the passage that it stands in.
func (t *valuedText) excerpt(sentence int, value ibid.Span) Excerpt {
	span := t.sentences[sentence].span
	span.Start, span.End = min(span.Start, value.Start), max(span.End, value.End)
	n, found := slices.BinarySearch(t.starts, span.Start)
	if !found {
		n--
	}
	by := t.pieces[n].from - t.starts[n]
	return Excerpt{
		Passage: t.pieces[n].passage, Span: shifted(span, by), Value: shifted(value, by), Text: textAt(t.text, span),
	}
}
