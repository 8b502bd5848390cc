package support

import (
	"cmp"
	"slices"
)

// unit is a word, number or date of a sentence in an alignment.
type unit struct {
	kind   unitKind
	token  int    // its first token
	value  int    // the index of a figure's value, or -1
	low    string // the effect of an operator; else the word
	begins bool   // a clause begins with it
	joins  bool   // a coordinating word such as "and" precedes it
}

type unitKind uint8

const (
	contentUnit  unitKind = iota // a word that says what the sentence is about
	nameUnit                     // a word of a name
	figureUnit                   // a number or date
	operatorUnit                 // a word that changes what others say: not, may, all
	grammarUnit                  // any other word
)

// hasContent reports whether a unit has content of its own.
func (u *unit) hasContent() bool { return u.kind <= figureUnit }

// contentUnits returns the units with content of their own.
func contentUnits(units []unit) (content []*unit) {
	for i := range units {
		if units[i].hasContent() {
			content = append(content, &units[i])
		}
	}
	return content
}

var operatorWords = lists["operator"]

// units returns the units of a sentence.
func (t *valuedText) units(sentence int) (units []unit) {
	s := &t.sentences[sentence]
	value, begins, joins := s.values[0], false, false
	for i := s.tokens[0]; i < s.tokens[1] && len(units) < maxUnits; i++ {
		token := &t.tokens[i]
		ends, coordinates := clauseWords.has(token.low), coordinating.has(token.low)
		if token.kind == signToken && t.figureFrom(token.start, &value, s.values[1]) < 0 {
			begins = begins || ends && token.low != ","
			joins = joins || coordinates
			continue
		}
		u := unit{contentUnit, i, -1, withoutPossessive(token.low), begins, joins}
		operator := t.operatorAt(i, s)
		switch figure := t.figureFrom(token.start, &value, s.values[1]); {
		case figure >= 0 && (operator == "" || t.values[figure].figure.End > token.end):
			u.kind, u.value = figureUnit, figure
			for i+1 < s.tokens[1] && t.tokens[i+1].start < t.values[figure].figure.End {
				i++
			}
		case operator != "":
			u.kind, u.low = operatorUnit, operator
		case token.key == 0:
			u.kind = grammarUnit
		case token.upper && (!token.opens || t.named(i)):
			u.kind = nameUnit
		}
		u.begins = u.begins || ends && !coordinates
		begins, joins = coordinates, coordinates
		units = append(units, u)
	}
	return units
}

// operatorAt returns the effect of a token on the meaning of the words around it; empty if it has none.
func (t *valuedText) operatorAt(i int, s *valuedSentence) string {
	token := &t.tokens[i]
	for k := s.values[0]; k < s.values[1]; k++ {
		switch v := &t.values[k]; {
		case v.Span.Start > token.start:
			return operatorWords[token.low].name
		case v.Span.Start < token.start:
		case v.Kind == ValueNegation:
			return "not"
		case (v.Kind == ValueModality || v.Kind == ValueDegree) && operatorWords.has("="+v.Words[0]):
			return v.Words[0]
		}
	}
	return operatorWords[token.low].name
}

// named reports whether token i is part of a name.
func (t *valuedText) named(i int) bool {
	token := &t.tokens[i]
	n, _ := slices.BinarySearchFunc(t.values, token.end, func(v Value, end int) int {
		return cmp.Compare(v.Span.Start, end)
	})
	for n--; n >= 0; n-- {
		if v := &t.values[n]; v.Kind == ValueName {
			return token.end <= v.Span.End+len("’s") && !v.Unsure
		}
	}
	return false
}

// figureFrom returns the number or date that begins at a place, or -1. The search starts at value from, which it
// advances.
func (t *valuedText) figureFrom(at int, from *int, end int) int {
	for ; *from < end && t.values[*from].Span.Start <= at; *from++ {
		if v := &t.values[*from]; v.Span.Start == at && (v.Kind == ValueNumber || v.Kind == ValueDate) {
			return *from
		}
	}
	return -1
}

// sameUnit reports whether a unit of the evidence says the same as one of the claim.
func (c *comparison) sameUnit(a, b *unit) bool {
	switch {
	case a.kind == figureUnit && b.kind == figureUnit:
		v, e := &c.claim.values[a.value], &c.evidence.values[b.value]
		return v.sameAs(e) || v.Kind == e.Kind && c.claim.low(a.token) == c.evidence.low(b.token)
	case a.kind == figureUnit, b.kind == figureUnit:
		return false
	case !a.hasContent(), !b.hasContent():
		return a.low == b.low
	}
	return c.claim.tokens[a.token].key == c.evidence.tokens[b.token].key || derived(a.low, b.low)
}

// derived reports whether two words are forms of one: closure and closed.
func derived(a, b string) bool {
	n := sharedLetters(a, b)
	return n >= derivedLetters && 3*n >= 2*min(len(a), len(b))
}

// passive reports whether units name the agent of a passive.
func passive(units []unit) bool {
	for i := 1; i+1 < len(units); i++ {
		if units[i].low == "by" && units[i+1].kind != figureUnit {
			return true
		}
	}
	return false
}
