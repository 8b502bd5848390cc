package support

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// The limits of an alignment, and what two sentences must share.
const (
	maxUnits       = 120 // units of a sentence
	maxAligned     = 16  // sentences of each side
	minMatched     = 2   // words with content that both sentences have
	alignedWording = .8  // least share of the claim's other content that the evidence has in the same order, by weight
	maxGapUnits    = 4   // units of a gap that may replace each other
)

// unit is a word, figure or negation of a sentence. Punctuation is none.
type unit struct {
	word   string // folded; a number's value; "not" for a negation
	key    uint32 // of its stem; 0 if it has none
	kind   unitKind
	name   bool // it begins with a capital, though no sentence begins there
	weight float64
	span   ibid.Span // in the text
}

type unitKind uint8

const (
	contentUnit unitKind = iota // a word that says what the sentence is about
	figureUnit
	denialUnit
	lightUnit // any other word
)

// alignedText is a text as units, by sentence, with its numbers and dates.
type alignedText struct {
	text      string
	language  string
	sentences [][]unit
	values    []Value
}

// The words that deny, in each language whose own words are known, and number words. CJK ones are looked for as they
// are.
var (
	denyingBy    = listsByLanguage("denial-")
	foreignCount = lists["foreign-number"]
	otherWords   = lists["other"] // words of which a sentence has one or the other, in other languages than English
	restricting  = lists["restricting"]
	unsureBefore = lists["unsure-before"]
	narrowing    = lists["narrowing"]
	elided       = lists["elided"]
	pastWords    = lists["past"]
	presentWords = lists["present"]
)

// readAligned reads a text.
func readAligned(text, language string) *alignedText {
	t := &alignedText{text: text, language: language}
	tokens := valueTokens(text)
	r := newValueReader(text, tokens, language)
	r.figures(false)
	t.values = r.out
	last := -1
	for i := range tokens {
		token := &tokens[i]
		if token.sentence != last {
			last = token.sentence
			t.sentences = append(t.sentences, nil)
		}
		s := &t.sentences[len(t.sentences)-1]
		if token.kind != signToken && len(*s) < maxUnits {
			*s = t.appendUnits(*s, token, decimalComma(language))
		}
	}
	return t
}

// appendUnits appends the units of a token: two for isn't.
func (t *alignedText) appendUnits(all []unit, token *valueToken, comma bool) []unit {
	u := unit{span: token.span(), name: token.upper && !token.opens, weight: 1}
	if token.kind == numberToken {
		u.kind, u.word, u.weight = figureUnit, token.low, weightNumber
		if f, ok := readDigits(token.low, comma); ok {
			u.word = strconv.FormatFloat(f.value, 'f', -1, 64)
		}
		return append(all, u)
	}
	u.word = foldWord(withoutPossessive(token.low))
	if before, behind, ok := strings.Cut(u.word, "'"); ok && elided.has(before) && foreign(t.language) {
		u.word = behind // n'est, dell'acqua
	}
	if bare, ok := strings.CutSuffix(u.word, "n't"); ok || u.word == "cannot" {
		if u.word == "cannot" {
			bare = "can"
		}
		verb := u
		verb.kind, verb.word = lightUnit, map[string]string{"ca": "can", "wo": "will"}[bare]
		if verb.word == "" {
			verb.word = bare
		}
		u.kind, u.word = denialUnit, "not"
		return append(all, verb, u)
	}
	if u.word == "ん" && len(all) > 1 && all[len(all)-1].word == "せ" && all[len(all)-2].word == "ま" { // ません
		span := ibid.Span{Start: all[len(all)-2].span.Start, End: u.span.End}
		return append(all[:len(all)-2], unit{word: "not", kind: denialUnit, span: span})
	}
	number, isNumber := numberWords[u.word]
	if foreign(t.language) {
		number, isNumber = foreignCount[u.word]
	}
	switch {
	case lists["denial-"+cmp.Or(t.language, "en")].has(u.word):
		u.kind, u.word = denialUnit, "not"
	case isNumber && (number.number != 1 || endsWithBound(all)):
		u.kind, u.word = figureUnit, strconv.FormatFloat(number.number, 'f', -1, 64)
	default:
		t.classify(&u, token)
	}
	return append(all, u)
}

// endsWithBound reports whether units end with "at most" or "at least", after which "one" is a number.
func endsWithBound(all []unit) bool {
	n := len(all)
	return n >= 2 && all[n-2].word == "at" && boundWords.has(all[n-1].word)
}

// classify tells words with content from others.
func (t *alignedText) classify(u *unit, token *valueToken) {
	first, _ := utf8.DecodeRuneInString(u.word)
	switch english := !foreign(t.language); {
	case ideograph(first):
		u.kind = contentUnit
		if strings.ContainsRune("のはがをにでともやますたし的了", first) {
			u.kind = lightUnit
		}
	case english:
		u.key, u.weight = topicWord(u.word)
		opposed := oppositeWords[u.word].name != "" && u.word != "in" && u.word != "over" ||
			token.upper && monthNames.has(u.word) // May
		m := knownWords()[hashString(u.word)&^1]
		if !opposed && !unitNames.has(u.word) && (m != nil && m.flags&flagStop != 0 || smallWords.has(u.word)) {
			u.kind = lightUnit
		}
	default:
		w := functionWords()[u.word]
		if u.kind = contentUnit; !otherWords.has(u.word) &&
			(w.languages != 0 || utf8.RuneCountInString(u.word) < 3 && !token.upper) {
			u.kind = lightUnit
		}
	}
}

// topicWord returns the key of a word's stem and its rarity.
func topicWord(low string) (key uint32, weight float64) {
	if to := lists["same"][low].name; to != "" {
		low = to
	}
	key = hash(stem([]byte(low))) &^ 1
	return key, english().weight(key)
}

func (u *unit) equal(v *unit) bool {
	return u.word == v.word && (u.kind == figureUnit) == (v.kind == figureUnit) ||
		u.key != 0 && u.key == v.key && u.kind != figureUnit && v.kind != figureUnit
}

// alignment is a sentence of the claim beside one of the evidence.
type alignment struct {
	claim, evidence *alignedText
	a, b            []unit
	of              []int // for each unit of a, the unit of b that it is matched with, or -1
}

// align matches as many units as possible, in order; words with content count more than others, and units that follow a
// matched one a little more.
func align(claim, evidence *alignedText, a, b []unit) *alignment {
	x := &alignment{claim: claim, evidence: evidence, a: a, b: b, of: make([]int, len(a))}
	best := make([][]float64, len(a)+1)
	for i := range best {
		best[i] = make([]float64, len(b)+1)
	}
	worth := func(i, j int) float64 {
		w := 1 + 4*a[i].weight
		if a[i].kind == lightUnit {
			w = .5
		}
		if i > 0 && j > 0 && a[i-1].equal(&b[j-1]) {
			w += .25
		}
		return w
	}
	for i := range a {
		for j := range b {
			best[i+1][j+1] = max(best[i][j+1], best[i+1][j])
			if a[i].equal(&b[j]) {
				best[i+1][j+1] = max(best[i+1][j+1], best[i][j]+worth(i, j))
			}
		}
	}
	for i := range x.of {
		x.of[i] = -1
	}
	for i, j := len(a), len(b); i > 0 && j > 0; {
		switch {
		case a[i-1].equal(&b[j-1]) && best[i][j] == best[i-1][j-1]+worth(i-1, j-1):
			x.of[i-1] = j - 1
			i, j = i-1, j-1
		case best[i][j] == best[i-1][j]:
			i--
		default:
			j--
		}
	}
	return x
}

// gap is what two matched units have between them: half-open ranges of both sides.
type gap struct{ a, b [2]int }

// gaps returns the gaps between matched units, those before the first and after the last without limit on the claim's
// side, and as long on the evidence's.
func (x *alignment) gaps() []gap {
	var gaps []gap
	from, fromB, first := 0, 0, true
	for i, j := range x.of {
		if j < 0 {
			continue
		}
		g := gap{[2]int{from, i}, [2]int{fromB, j}}
		if first {
			g.b[0] = max(0, j-i)
		}
		gaps, from, fromB, first = append(gaps, g), i+1, j+1, false
	}
	if first {
		return nil
	}
	return append(gaps, gap{[2]int{from, len(x.a)}, [2]int{fromB, min(len(x.b), fromB+len(x.a)-from)}})
}

// saying is whether a sentence says what another one says.
type saying int

const (
	saysNot saying = iota
	saysQualified
	saysSo
)

// says reports whether the evidence's sentence says the claim's in close wording: all of its units in order, with only
// free words added or left out; or with its beginning moved to its end. It is qualified if the sentence doubts or
// restricts it.
func (x *alignment) says() saying {
	gaps := x.gaps()
	if !x.isWhole(gaps) {
		gaps = nil
	}
	bound := false
	for i, j := range x.of {
		if j < 0 {
			continue
		}
		same, d := x.sameSigns(&x.a[i], &x.b[j])
		if d != nil {
			return saysNot
		}
		bound = bound || !same
	}
	switch {
	case gaps == nil && !bound && x.rotated():
		return saysSo
	case gaps == nil:
		return saysNot
	}
	first := gaps[0].b[1]
	last := gaps[len(gaps)-1].b[0]
	if bound || !x.evidence.unqualified(x.b, first, last) || x.narrowed(last) {
		return saysQualified
	}
	return saysSo
}

// denied returns how the passage denies the claim's sentence, which it has, or nil.
func (x *alignment) denied(p *piece) *Conflict {
	gaps := x.gaps()
	if gaps == nil || !x.isWhole(gaps) {
		return nil
	}
	first, last := gaps[0].b[1], gaps[len(gaps)-1].b[0]-1
	said := shifted(ibid.Span{Start: x.b[first].span.Start, End: x.b[last].span.End}, p.from)
	at := denial(p.whole, said)
	if at.Len() == 0 {
		return nil
	}
	a := spanOf(x.a)
	b := ibid.Span{Start: min(said.Start, at.Start), End: max(said.End, at.End)}
	claim := x.claim.text[a.Start:a.End]
	return &Conflict{
		Kind: ConflictNegation,
		A:    Excerpt{InClaim, a, a, claim},
		B:    Excerpt{p.passage, b, at, p.whole[b.Start:b.End]},
		Note: fmt.Sprintf("%s: %s, %s", ConflictNegation, claim, p.whole[at.Start:at.End]),
	}
}

// isWhole reports whether all of the claim's units have their match, except for free words.
func (x *alignment) isWhole(gaps []gap) bool {
	words := lists["free-"+cmp.Or(x.claim.language, "en")] // that close wording may add or leave out
	free := func(units []unit) bool {
		return !slices.ContainsFunc(units, func(u unit) bool { return !words.has(u.word) })
	}
	for k, g := range gaps {
		inside := k > 0 && k < len(gaps)-1
		if !free(x.a[g.a[0]:g.a[1]]) || inside && !free(x.b[g.b[0]:g.b[1]]) {
			return false
		}
	}
	return true
}

// narrowed reports whether the evidence's sentence goes on, after the units up to last, with a phrase that narrows down
// what the claim says in general: "The ferry is free" of "The ferry is free for children". What happened once is
// narrowed by nothing.
func (x *alignment) narrowed(last int) bool {
	if last == 0 || last >= len(x.b) || !narrowing.has(x.b[last].word) || x.isPast() {
		return false
	}
	between := x.evidence.text[x.b[last-1].span.End:x.b[last].span.Start]
	return strings.TrimSpace(between) == ""
}

// isPast reports whether the claim's sentence tells what happened: by its verb or a year.
func (x *alignment) isPast() bool {
	past := false
	for i := range x.a {
		u := &x.a[i]
		v := x.claim.valueAt(u.span)
		switch {
		case presentWords.has(u.word):
			return false
		case v != nil && v.Kind == ValueDate && v.Date.Year != 0, pastWords.has(u.word),
			!foreign(x.claim.language) && i > 0 && len(u.word) > 4 && strings.HasSuffix(u.word, "ed"):
			past = true
		}
	}
	return past
}

// unqualified reports whether a sentence neither doubts nor restricts the units from first up to last.
func (t *alignedText) unqualified(units []unit, first, last int) bool {
	for _, u := range units[:first] {
		if u.kind == denialUnit || unsureBefore.has(u.word) {
			return false
		}
	}
	for _, u := range units[last:] {
		if restricting.has(u.word) {
			return false
		}
	}
	return true
}

// rotated reports whether the claim's sentence is the evidence's with a part of it moved from one end to the other: "In
// 1932 the bridge opened." The part begins with a preposition of time or place.
func (x *alignment) rotated() bool {
	if len(x.a) != len(x.b) || len(x.a) < 4 {
		return false
	}
	for k := 1; k < len(x.a); k++ {
		moved := x.b[0]
		if !movable.has(moved.word) {
			moved = x.b[k]
		}
		same := movable.has(moved.word)
		for i := 0; same && i < len(x.a); i++ {
			same = x.a[i].equal(&x.b[(i+k)%len(x.b)])
		}
		if same {
			return true
		}
	}
	return false
}

var movable = lists["movable"]

// difference is a gap in which the two sides differ.
type difference struct {
	kind ConflictKind
	a, b ibid.Span // in the texts
}

// differs returns the one detail in which the evidence's sentence differs from the claim's, if the wording is otherwise
// aligned; nil if there is none, or more than one.
func (x *alignment) differs() *difference {
	var found *difference
	matched, all, words := 0., 0., 0
	gaps := x.gaps()
	inGap := map[int]bool{}
	for k, g := range gaps {
		d := x.gapDiffers(g)
		if d == nil {
			if k > 0 && k < len(gaps)-1 && slices.ContainsFunc(x.b[g.b[0]:g.b[1]], isMeasure) {
				return nil // the sentence has another figure there
			}
			continue
		}
		if found != nil {
			return nil
		}
		found = d
		for i := g.a[0]; i < g.a[1]; i++ {
			inGap[i] = true
		}
	}
	for i, j := range x.of {
		if j < 0 {
			continue
		}
		_, d := x.sameSigns(&x.a[i], &x.b[j])
		switch {
		case d == nil || found != nil && d.a.Start < found.a.End && found.a.Start < d.a.End: // 50 euros, 50 dollars
		case found != nil:
			return nil
		default:
			found = d
		}
	}
	if found == nil {
		return nil
	}
	for i := range x.a {
		u := &x.a[i]
		switch {
		case inGap[i] || u.kind == lightUnit || x.of[i] < 0 && contains(found.a, u.span): // the p.m. of its time
		case x.of[i] >= 0:
			matched, all, words = matched+u.weight, all+u.weight, words+1
		case u.kind == figureUnit || u.kind == denialUnit || u.name:
			return nil // another detail that the evidence's sentence lacks
		default:
			all += u.weight
		}
	}
	if words < minMatched || matched < alignedWording*all {
		return nil
	}
	return found
}

// gapDiffers returns the difference of a gap, or nil.
func (x *alignment) gapDiffers(g gap) *difference {
	as, bs := x.a[g.a[0]:g.a[1]], x.b[g.b[0]:g.b[1]]
	if len(as) > maxGapUnits || len(bs) > maxGapUnits {
		return nil
	}
	as, bs = x.claim.heavy(as), x.evidence.heavy(bs)
	switch {
	case len(as) == 0 && len(bs) == 1 && bs[0].kind == denialUnit,
		len(bs) == 0 && len(as) == 1 && as[0].kind == denialUnit:
		if g.a[1] == len(x.a) || g.a[0] == 0 || g.b[0] == 0 || g.b[1] >= len(x.b) {
			return nil // it may belong to another clause
		}
		if slices.ContainsFunc(x.a, isDenial) && slices.ContainsFunc(x.b, isDenial) {
			return nil // both deny, perhaps in other places: no child may, children may not
		}
		return &difference{
			ConflictNegation,
			ibid.Span{Start: x.a[g.a[0]-1].span.Start, End: x.a[g.a[1]].span.End},
			ibid.Span{Start: x.b[g.b[0]-1].span.Start, End: x.b[g.b[1]].span.End},
		}
	case len(as) == 0 || len(bs) == 0:
		return nil
	case len(as) == 1 && len(bs) == 1:
		v, e := x.claim.valueAt(as[0].span), x.evidence.valueAt(bs[0].span)
		if v != nil && e != nil && v.isOrdinal() && e.isOrdinal() && v.Number != e.Number {
			return &difference{ConflictNumber, v.Span, e.Span}
		}
		if kind := x.wordsDiffer(&as[0], &bs[0]); kind != "" {
			if v != nil && e != nil && (as[0].kind == figureUnit && bs[0].kind == figureUnit || kind == ConflictDate) {
				return &difference{kind, v.Span, e.Span}
			}
			return &difference{kind, as[0].span, bs[0].span}
		}
	}
	if !foreign(x.claim.language) && allNames(as) && allNames(bs) && !sameName(as, bs) && !x.evidence.hasAny(as) {
		return &difference{ConflictName, spanOf(as), spanOf(bs)}
	}
	return nil
}

// heavy returns the units that are neither light nor the words of a figure's bound: at most 40, fewer than 40.
func (t *alignedText) heavy(units []unit) (all []unit) {
	bound := false
	for i := len(units) - 1; i >= 0; i-- {
		u := &units[i]
		switch {
		case u.kind == lightUnit:
			continue
		case u.kind == figureUnit:
			v := t.valueAt(u.span)
			bound = v != nil && v.Bound != 0
		case bound && (boundWords.has(u.word) || boundWords.has(u.word+" than")):
			continue
		default:
			bound = false
		}
		all = append(all, *u)
	}
	slices.Reverse(all)
	return all
}

func isDenial(u unit) bool { return u.kind == denialUnit }

// isMeasure reports whether a unit is a figure, or a unit of measure.
func isMeasure(u unit) bool {
	return u.kind == figureUnit || unitNames.has(u.word) || otherWords.has(u.word)
}

func spanOf(units []unit) ibid.Span {
	return ibid.Span{Start: units[0].span.Start, End: units[len(units)-1].span.End}
}

func allNames(units []unit) bool {
	return !slices.ContainsFunc(units, func(u unit) bool { return !u.name || u.kind != contentUnit })
}

// hasAny reports whether the text has one of the units anywhere.
func (t *alignedText) hasAny(units []unit) bool {
	for _, s := range t.sentences {
		for i := range s {
			if slices.ContainsFunc(units, func(u unit) bool { return u.equal(&s[i]) }) {
				return true
			}
		}
	}
	return false
}

// sameName reports whether two names may be one: they share a word or the beginning of one, or one abbreviates the
// other.
func sameName(a, b []unit) bool {
	for i := range a {
		for j := range b {
			if n := sharedLetters(a[i].word, b[j].word); n >= min(4, len(a[i].word), len(b[j].word)) {
				return true
			}
		}
	}
	return abbreviates(a, b) || abbreviates(b, a)
}

// abbreviates reports whether a single word has the first letters of the other name's words, in order: EZB, Europäische
// Zentralbank.
func abbreviates(a, b []unit) bool {
	if len(a) != 1 || len(a[0].word) > 8 {
		return false
	}
	var all strings.Builder
	for i := range b {
		all.WriteString(b[i].word)
	}
	rest := all.String()
	if rest == "" || a[0].word[0] != rest[0] {
		return false
	}
	for _, letter := range a[0].word {
		_, behind, ok := strings.Cut(rest, string(letter))
		if !ok {
			return false
		}
		rest = behind
	}
	return true
}

// wordsDiffer returns the kind of difference between two units in one place; empty if they may mean the same.
func (x *alignment) wordsDiffer(a, b *unit) ConflictKind {
	switch {
	case a.kind == figureUnit && b.kind == figureUnit:
		return x.figuresDiffer(a, b)
	case a.kind != contentUnit || b.kind != contentUnit:
		return ""
	case isOther(anyMonth, a.word, b.word), isOther(lists["weekday"], a.word, b.word):
		return ConflictDate
	case currencyNames.has(a.word) && currencyNames.has(b.word) && currencyNames[a.word] != currencyNames[b.word]:
		return ConflictUnit
	case otherUnits(a.word, b.word):
		return ConflictUnit
	case foreign(x.claim.language):
		if opposed(otherWords, a.word, b.word) {
			return ConflictAntonym
		}
		return ""
	case scaleWords.has(a.word) && scaleWords.has(b.word) && scaleWords[a.word].number != scaleWords[b.word].number:
		return ConflictNumber
	case opposed(oppositeWords, a.word, b.word) && !relationWords.has(sideOf(a.word)):
		return ConflictAntonym
	}
	return ""
}

// otherUnits reports whether two words are units of different size that measure the same.
func otherUnits(a, b string) bool {
	x, okA := unitNames.unit(a)
	y, okB := unitNames.unit(b)
	return okA && okB && x.kind == y.kind && x.factor != y.factor
}

// anyMonth are the names of anyMonth in all languages that are known.
var anyMonth = func() wordList {
	all := wordList{}
	for _, name := range []string{"month", "foreign-month"} {
		for word, m := range lists[name] {
			all.add(word, m)
		}
	}
	return all
}()

// isOther reports whether two words are in a list with different meanings.
func isOther(list wordList, a, b string) bool {
	return list.has(a) && list.has(b) && a != b && (list[a] != list[b] || list[a] == meaning{})
}

// sameSigns reports whether two figures that are written alike are the same number, with its sign, bound, currency and
// percent, and if they are not what differs, unless that may be meant: €50, $50.
func (x *alignment) sameSigns(a, b *unit) (bool, *difference) {
	if a.kind != figureUnit || b.kind != figureUnit {
		return true, nil
	}
	v, e := x.claim.valueAt(a.span), x.evidence.valueAt(b.span)
	if v == nil || e == nil || v.Kind != ValueNumber || e.Kind != ValueNumber {
		return true, nil
	}
	kinds := [2]UnitKind{v.Unit.Kind, e.Unit.Kind}
	switch {
	case kinds[0] == unitMoney && kinds[1] == unitMoney && v.Unit.Name != e.Unit.Name:
		return false, &difference{ConflictUnit, v.Span, e.Span}
	case v.Written != 0 && v.Written == -e.Written,
		kinds == [2]UnitKind{unitPercent, unitPoints}, kinds == [2]UnitKind{unitPoints, unitPercent}:
		return false, &difference{ConflictNumber, v.Span, e.Span}
	case v.Written == e.Written && otherUnit(v, e) && !sameNumber(v, e, max(v.slack(), e.slack())):
		return false, &difference{ConflictUnit, v.Span, e.Span} // 30 m, 30 cm
	}
	return v.Bound == e.Bound && (kinds[0] == unitPercent) == (kinds[1] == unitPercent), nil
}

// opposed reports whether two words are on different sides of a pair in a list.
func opposed(list wordList, a, b string) bool {
	sides := strings.Split(list[a].name, "|")
	other, _, _ := strings.Cut(list[b].name, "|")
	return other != "" && slices.Contains(sides[1:], other)
}

// figuresDiffer compares two figures in one place, by the numbers or dates that they belong to.
func (x *alignment) figuresDiffer(a, b *unit) ConflictKind {
	v, e := x.claim.valueAt(a.span), x.evidence.valueAt(b.span)
	if v == nil || e == nil {
		return ConflictNumber // words for numbers of other languages
	}
	switch {
	case v.Kind == ValueDate && e.Kind == ValueDate:
		if relateDates(&v.Date, &e.Date) >= dateWider {
			return ""
		}
		return ConflictDate
	case v.Kind == ValueDate || e.Kind == ValueDate:
		return ConflictNumber
	case (v.Unit.Kind == unitPercent) != (e.Unit.Kind == unitPercent) && v.Written != e.Written:
		return "" // one in four, 25 %
	case v.Bound*e.Bound < 0 && v.Unit.Kind == e.Unit.Kind && apart(v, e):
		return ConflictNumber
	case v.Bound != e.Bound || sameQuantity(v, e) || sameGroups(v.raw, e.raw),
		v.Approximate && sameNumber(v, e, v.slack()):
		return ""
	}
	return ConflictNumber
}

// sameGroups reports whether two figures may be one, grouped by another sign: the 18.300 of a text whose language is
// unknown is 18 300 or 18.3.
func sameGroups(a, b string) bool {
	bare := strings.NewReplacer(" ", "", ",", "", ".", "")
	return inGroups.MatchString(a) && inGroups.MatchString(b) && bare.Replace(a) == bare.Replace(b)
}

var inGroups = regexp.MustCompile(`^(\d{1,3}([ .,]\d{3})+|\d{4,})$`)

// apart reports whether no number is within both of two opposite bounds: at most 1, at least 7.
func apart(a, b *Value) bool {
	if a.Bound > 0 {
		a, b = b, a
	}
	return a.High+max(a.slack(), b.slack()) < b.Number
}

// valueAt returns the number or date with the figure at a span, or nil.
func (t *alignedText) valueAt(at ibid.Span) *Value {
	for i := range t.values {
		if v := &t.values[i]; v.Span.Start <= at.Start && at.End <= v.Span.End {
			return v
		}
	}
	return nil
}

// wording is what pieces of evidence say of a claim.
type wording struct {
	saying saying // of the claim's sentences, that which the evidence says least
	found  []Conflict
}

// compareWording compares a claim with pieces of its evidence, sentence by sentence. Differences are those in the part
// of the claim in focus, with offsets in that.
func compareWording(claim string, focus ibid.Span, language string, pieces []piece) (w wording) {
	c := readAligned(claim, language)
	texts := make([]*alignedText, len(pieces))
	for i := range pieces {
		texts[i] = readAligned(pieces[i].text, language)
	}
	if len(c.sentences) > 0 && len(c.sentences) <= maxAligned {
		w.saying = saysSo
	}
	for i := range c.sentences[:min(len(c.sentences), maxAligned)] {
		said := saysNot
		var differs, denied []Conflict
		for k, p := range pieces {
			t := texts[k]
			for j := range t.sentences[:min(len(t.sentences), maxAligned)] {
				x := align(c, t, c.sentences[i], t.sentences[j])
				says := x.says()
				if d := x.denied(&p); d != nil && focus.Len() == len(claim) {
					says, denied = min(says, saysQualified), append(denied, *d)
				}
				said = max(said, says)
				if d := x.differs(); d != nil && d.a.Start >= focus.Start && d.a.End <= focus.End && !p.leavesOut(d.b) {
					differs = append(differs, x.conflict(d, &p, focus.Start))
				}
			}
		}
		switch w.saying = min(w.saying, said); said { //nolint:exhaustive // a sentence that is said has no difference
		case saysNot:
			w.found = append(w.found, differs...)
		case saysQualified:
			w.found = append(w.found, denied...)
		}
	}
	w.found = w.found[:min(len(w.found), maxConflicts)]
	return w
}

// leavesOut reports whether an ellipsis stands next to words of a piece, which may go on there: "in 19…".
func (p *piece) leavesOut(at ibid.Span) bool {
	before, after := p.whole[:p.from+at.Start], strings.TrimLeft(p.whole[p.from+at.End:], " ")
	before = strings.TrimRight(before, " ")
	return strings.HasSuffix(before, "…") || strings.HasSuffix(before, "...") ||
		strings.HasPrefix(after, "…") || strings.HasPrefix(after, "...")
}

// conflict returns a difference with the sentences around it.
func (x *alignment) conflict(d *difference, p *piece, offset int) Conflict {
	sentence := func(units []unit, value ibid.Span) ibid.Span {
		s := spanOf(units)
		return ibid.Span{Start: min(s.Start, value.Start), End: max(s.End, value.End)}
	}
	d.a.End -= trailingStop(x.claim.text[d.a.Start:d.a.End])
	d.b.End -= trailingStop(x.evidence.text[d.b.Start:d.b.End])
	a, b := sentence(x.a, d.a), sentence(x.b, d.b)
	said, there := x.claim.text[d.a.Start:d.a.End], x.evidence.text[d.b.Start:d.b.End]
	return Conflict{
		Kind: d.kind,
		A:    Excerpt{InClaim, shifted(a, -offset), shifted(d.a, -offset), x.claim.text[a.Start:a.End]},
		B:    Excerpt{p.passage, shifted(b, p.from), shifted(d.b, p.from), x.evidence.text[b.Start:b.End]},
		Note: fmt.Sprintf("%s: %s, %s", d.kind, said, there),
	}
}

// trailingStop is the length of a full stop at the end of a value, which ends its sentence: 9 May.
func trailingStop(value string) int { return len(value) - len(strings.TrimRight(value, ".")) }

// IsQualified reports whether a sentence of a text has a claim's words, but doubts, denies or restricts it: "The mayor
// denied that he took the money."
func IsQualified(claim, text string) bool { return inText(claim, text).saying == saysQualified }

// Denies returns the words by which a text denies a claim, nil if it does not: it has the claim's words and says that
// they are not so ("contrary to reports that …"), or has them with a negation.
func Denies(claim, text string) *Conflict {
	for _, c := range inText(claim, text).found {
		if c.Kind == ConflictNegation {
			return &c
		}
	}
	return nil
}

func inText(claim, text string) wording {
	whole := ibid.Span{End: len(claim)}
	return compareWording(claim, whole, sharedLanguage(claim, text), []piece{{text: text, whole: text}})
}
