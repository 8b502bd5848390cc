package support

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
)

// ConflictKind is what kind of detail differs.
type ConflictKind string

// The kinds of a conflict.
const (
	ConflictNumber   ConflictKind = "number"   // another quantity of the same kind
	ConflictDate     ConflictKind = "date"     // another day, month, year or period
	ConflictUnit     ConflictKind = "unit"     // the same figure in another unit
	ConflictName     ConflictKind = "name"     // another name
	ConflictNegation ConflictKind = "negation" // one side denies what the other says
	ConflictAntonym  ConflictKind = "antonym"  // one side has the opposite of the other's word: rose, fell
)

// InClaim is the Passage of an [Excerpt] of the claim.
const InClaim = -1

// Excerpt is one side of a [Conflict].
type Excerpt struct {
	Passage int       // index of the passage, or InClaim
	Span    ibid.Span // the sentence, in that text
	Value   ibid.Span // the differing value, in that text, inside Span
	Text    string    // the text of Span
}

// ValueText returns the text of the value, or "" if Text does not contain it.
func (e *Excerpt) ValueText() string { return textAt(e.Text, shifted(e.Value, -e.Span.Start)) }

// Conflict is a possible conflict: two texts that seem to be about the same thing give different values. It is found by
// rules, which compare words, not meaning: it is a reason to look, never a contradiction.
type Conflict struct {
	Kind  ConflictKind
	A, B  Excerpt
	About []string // the words that both sides share, rarest first: what they are about
	Note  string   // one line to display: "possible conflict: number: 330 m, 324 m"
}

// ConflictOptions are the options of [Conflicts]. The zero value means the defaults.
type ConflictOptions struct {
	// Overlap is the least share of the lighter sentence's word weight that both sentences must have in common; 0 means
	// 0.5.
	Overlap float64
	// MaxPairs is the most pairs of sentences with a common word that are looked at; 0 means 200,000.
	MaxPairs int
}

// The defaults of [ConflictOptions], and the other limits of [Conflicts].
const (
	defaultConflictOverlap = .5
	defaultConflictPairs   = 200_000

	maxConflictText = 4 << 20 // bytes of all passages together
	maxConflicts    = 1000    // conflicts in the result
)

// IssueConflictsTruncated is the code of the issue that reports which limit of [Conflicts] left something out.
const IssueConflictsTruncated = "conflicts-truncated"

// Conflicts finds possible conflicts between passages: it compares sentences of two passages that share most of their
// words and mention the same names, and reports values of one kind that differ. A is always in the earlier passage. Two
// sentences of one passage are never in conflict.
//
// Values that are rounded, converted or given more or less exactly do not conflict, nor do values for different years.
// The issues report what a limit left out ([IssueConflictsTruncated]); the conflicts found until then are returned all
// the same.
func Conflicts(passages []Passage, o *ConflictOptions) ([]Conflict, []ibid.Issue) {
	if len(passages) < 2 {
		return nil, nil
	}
	f := &conflictFinder{overlap: defaultConflictOverlap, pairs: defaultConflictPairs}
	if o != nil {
		f.overlap, f.pairs = cmp.Or(o.Overlap, f.overlap), cmp.Or(o.MaxPairs, f.pairs)
	}
	left := maxConflictText
	for i := range passages {
		read := text.Head(passages[i].Text, left)
		if len(read) < len(passages[i].Text) {
			f.truncated(fmt.Sprintf("only the first %d bytes of the passages were read", maxConflictText))
		}
		left -= len(read)
		f.add(readValuedText(Language(read), piece{passage: i, text: read}))
	}
	f.search()
	slices.SortStableFunc(f.found, func(a, b Conflict) int {
		return cmp.Or(
			a.A.Passage-b.A.Passage, a.B.Passage-b.B.Passage, a.A.Span.Start-b.A.Span.Start,
			a.B.Span.Start-b.B.Span.Start,
		)
	})
	return f.found, f.issues
}

// statement is one sentence of one passage, with its terms and names.
type statement struct {
	passage, sentence int
	text              *valuedText
	terms             []*valueToken // one per key, including those of the names it refers back to
	weight            float64
	names             map[uint32]bool
}

type conflictFinder struct {
	overlap    float64
	pairs      int
	statements []statement
	found      []Conflict
	issues     []ibid.Issue

	pairsSeen, wordsShared int // pairs of sentences so far, and the total of words they share
}

func (f *conflictFinder) truncated(detail string) {
	issue := ibid.Issue{Code: IssueConflictsTruncated, Detail: detail}
	if !slices.Contains(f.issues, issue) {
		f.issues = append(f.issues, issue)
	}
}

// add appends the sentences of a passage. A sentence without a name inherits the names of the sentence before it.
func (f *conflictFinder) add(text *valuedText) {
	var last []*valueToken // names of the last sentence that had any
	for i := range text.sentences {
		st, names := newStatement(text, i)
		if len(names) == 0 {
			for _, term := range last {
				if !slices.ContainsFunc(st.terms, func(own *valueToken) bool { return own.key == term.key }) {
					st.terms = append(st.terms, term)
				}
			}
			names = last
		}
		last = names
		for _, term := range names {
			st.names[term.key] = true
		}
		for _, term := range st.terms {
			st.weight += term.weight
		}
		f.statements = append(f.statements, st)
	}
}

// newStatement returns a sentence with its terms, one per key, and those of them that are part of names.
func newStatement(text *valuedText, sentence int) (st statement, names []*valueToken) {
	s := &text.sentences[sentence]
	st = statement{passage: text.pieces[0].passage, sentence: sentence, text: text, names: map[uint32]bool{}}
	seen := map[uint32]bool{}
	for i := s.tokens[0]; i < s.tokens[1]; i++ {
		term := &text.tokens[i]
		if !term.topic() || seen[term.key] {
			continue
		}
		seen[term.key] = true
		st.terms = append(st.terms, term)
		if term.named && len(names) < maxCarried {
			names = append(names, term)
		}
	}
	return st, names
}

// maxCarried is the most words of names that one sentence has, and passes on to the next.
const maxCarried = 64

// search compares sentences with those of earlier passages that share words with them.
func (f *conflictFinder) search() {
	postings := make(map[uint32][]int)
	shared := make(map[int]float64)
	var to int
	for from := 0; from < len(f.statements); from = to {
		for to = from; to < len(f.statements) && f.statements[to].passage == f.statements[from].passage; to++ {
			if len(postings) > 0 && !f.compareWithEarlier(to, postings, shared) {
				return
			}
		}
		for b := from; b < to; b++ {
			for _, term := range f.statements[b].terms {
				postings[term.key] = append(postings[term.key], b)
			}
		}
	}
}

// sharedWords is the most words that pairs of sentences may share on average: it bounds the work for long sentences.
const sharedWords = 16

// compareWithEarlier compares sentence b with those that share words with it. It returns false if a limit is reached.
func (f *conflictFinder) compareWithEarlier(b int, postings map[uint32][]int, shared map[int]float64) bool {
	clear(shared)
	full := false
	for _, term := range f.statements[b].terms {
		for _, a := range postings[term.key] {
			if _, known := shared[a]; !known {
				if f.pairsSeen == f.pairs {
					full = true
					continue
				}
				f.pairsSeen++
			}
			shared[a] += term.weight
		}
		f.wordsShared += len(postings[term.key])
	}
	f.compareAll(b, shared)
	if full || f.wordsShared > sharedWords*f.pairs {
		f.truncated(fmt.Sprintf("only %d pairs of sentences were compared", f.pairsSeen))
		return false
	}
	if len(f.found) > maxConflicts {
		f.truncated(fmt.Sprintf("only %d conflicts are listed", maxConflicts))
		f.found = f.found[:maxConflicts]
		return false
	}
	return true
}

// compareAll compares sentence b with those that share enough weight with it, in order.
func (f *conflictFinder) compareAll(b int, shared map[int]float64) {
	var near []int
	for a, weight := range shared {
		if weight >= f.overlap*min(f.statements[a].weight, f.statements[b].weight) {
			near = append(near, a)
		}
	}
	slices.Sort(near)
	for _, a := range near {
		p := &statementPair{a: &f.statements[a], b: &f.statements[b]}
		f.found = append(f.found, p.conflicts()...)
	}
}

// statementPair is two sentences of two passages that share most of their words.
type statementPair struct {
	a, b    *statement
	shared  map[uint32]bool
	weight  float64 // of the shared words
	content int     // shared words outside names
	about   []string
	found   []Conflict
}

func (p *statementPair) conflicts() []Conflict {
	p.share()
	if p.holders(); len(p.found) > 0 {
		return p.found
	}
	if !p.sameSubject() || p.a.speculative() != p.b.speculative() {
		return nil
	}
	p.numbers()
	p.dates()
	p.denials()
	p.antonyms()
	return p.found
}

// share finds the shared words.
func (p *statementPair) share() {
	p.shared = make(map[uint32]bool)
	in := make(map[uint32]bool, len(p.b.terms))
	for _, term := range p.b.terms {
		in[term.key] = true
	}
	var common []*valueToken
	for _, term := range p.a.terms {
		if !in[term.key] {
			continue
		}
		p.shared[term.key] = true
		common = append(common, term)
		p.weight += term.weight
		if !p.a.names[term.key] && !p.b.names[term.key] {
			p.content++
		}
	}
	slices.SortStableFunc(common, func(a, b *valueToken) int { return cmp.Compare(b.weight, a.weight) })
	for _, term := range common {
		p.about = append(p.about, term.low)
	}
}

var (
	offices   = lists["office"]
	subgroups = lists["subgroup"]
)

// holders reports two names for a role that only one can have: who holds an office, where someone was born.
func (p *statementPair) holders() {
	office := false
	for key := range p.shared {
		office = office || p.a.office(key)
	}
	if !office || len(p.nameOrder(p.a)) == 0 || !p.sameTime() || p.a.speculative() != p.b.speculative() {
		return
	}
	a, b := p.a.holder(p.shared), p.b.holder(p.shared)
	if a != nil && b != nil && !sharesWord(a.Words, b.Words) && (p.within(p.a.otherNames(a)) ||
		p.within(p.b.otherNames(b))) {
		p.add(ConflictName, a.Span, b.Span)
	}
}

// otherNames returns the words of a sentence's names without those of v.
func (s *statement) otherNames(v *Value) map[uint32]bool {
	names := maps.Clone(s.names)
	for _, word := range v.Words {
		delete(names, topicKey(word))
	}
	return names
}

// office reports whether a word of a sentence names a role that only one name can have.
func (s *statement) office(key uint32) bool {
	return slices.ContainsFunc(s.text.tokensOf(s.sentence), func(t valueToken) bool {
		return t.key == key && offices.has(t.low)
	})
}

// holder returns the name of a sentence that the other sentence lacks: after "born" and a preposition if it says where
// someone was born, else of two words or more. It returns nil if there is none, or more than one.
func (s *statement) holder(shared map[uint32]bool) *Value {
	var found *Value
	birth, at := topicKey("born"), s.text.sentences[s.sentence].tokens
	born := at[0] + slices.IndexFunc(s.text.tokens[at[0]:at[1]], func(t valueToken) bool { return t.key == birth })
	for _, v := range s.values(ValueName) {
		if slices.ContainsFunc(v.Words, func(word string) bool { return shared[topicKey(word)] }) {
			continue
		}
		behind := s.text.places[v.index] - born
		if born >= at[0] && (behind < 0 || behind > nearWords ||
			!prepositions.has(s.text.low(s.text.places[v.index]-1))) ||
			born < at[0] && len(v.Words) < 2 {
			continue
		}
		if found != nil {
			return nil
		}
		found = v.Value
	}
	return found
}

// sameSubject reports whether both sentences are about the same names: one may have more of them, but not both.
func (p *statementPair) sameSubject() bool {
	if len(p.a.names) == 0 && len(p.b.names) == 0 {
		return p.content >= minSharedContent
	}
	return len(p.a.names) > 0 && p.within(p.a.names) || len(p.b.names) > 0 && p.within(p.b.names)
}

// minSharedContent is the least number of words that two sentences without names must share.
const minSharedContent = 3

func (p *statementPair) within(names map[uint32]bool) bool {
	for key := range names {
		if !p.shared[key] {
			return false
		}
	}
	return true
}

// speculative reports whether a sentence is about plans, expectations or assumptions.
func (s *statement) speculative() bool {
	return s.text.hasWord(s.sentence, speculativeWords.has)
}

func (p *statementPair) add(kind ConflictKind, a, b ibid.Span) {
	textA, textB := p.a.text.text[a.Start:a.End], p.b.text.text[b.Start:b.End]
	p.found = append(p.found, Conflict{
		Kind:  kind,
		A:     p.a.text.excerpt(p.a.sentence, a),
		B:     p.b.text.excerpt(p.b.sentence, b),
		About: p.about,
		Note:  fmt.Sprintf("possible conflict: %s: %s, %s", kind, strings.TrimSpace(textA), strings.TrimSpace(textB)),
	})
}

// placedValue is a value with its index in its text.
type placedValue struct {
	*Value
	index int
}

// values returns the values of one kind of a statement.
func (s *statement) values(kind ValueKind) []placedValue {
	var values []placedValue
	sentence := s.text.sentences[s.sentence]
	for i := sentence.values[0]; i < sentence.values[1]; i++ {
		if s.text.values[i].Kind == kind {
			values = append(values, placedValue{&s.text.values[i], i})
		}
	}
	return values
}

// numbers reports the best fitting pair of numbers that differ, if the sentences are about the same time.
func (p *statementPair) numbers() {
	as, bs := p.a.values(ValueNumber), p.b.values(ValueNumber)
	if len(as) == 0 || len(bs) == 0 || !p.sameTime() || p.opposed() || p.otherOrdinals(as, bs) {
		return
	}
	as, bs = p.unmatched(as, bs, p.sameQuantity), p.unmatched(bs, as, p.sameQuantity)
	best, bestA, bestB := 0, placedValue{}, placedValue{}
	for _, a := range as {
		for _, b := range bs {
			if fit := p.fit(a, b); fit > best {
				best, bestA, bestB = fit, a, b
			}
		}
	}
	if best == 0 {
		return
	}
	kind := ConflictNumber
	if sameFigure(bestA.Value, bestB.Value) {
		kind = ConflictUnit
	}
	p.add(kind, bestA.Span, bestB.Span)
}

// otherOrdinals reports whether the sentences are about different items of a series: the first edition, the second
// edition.
func (p *statementPair) otherOrdinals(as, bs []placedValue) bool {
	for _, a := range as {
		for _, b := range bs {
			if a.Unit.Kind == unitOrdinal && b.Unit.Kind == unitOrdinal && a.Number != b.Number {
				return true
			}
		}
	}
	return false
}

// unmatched returns the values that have no equal on the other side.
func (p *statementPair) unmatched(values, others []placedValue, same func(a, b placedValue) bool) []placedValue {
	var left []placedValue
	for _, v := range values {
		if !slices.ContainsFunc(others, func(other placedValue) bool { return same(v, other) }) {
			left = append(left, v)
		}
	}
	return left
}

func (p *statementPair) sameQuantity(a, b placedValue) bool {
	return comparableNumbers(a.Value, b.Value) && sameNumber(a.Value, b.Value, max(a.slack(), b.slack())) ||
		sameFigure(a.Value, b.Value) && !otherUnit(a.Value, b.Value)
}

// fit scores how likely two numbers measure the same thing; 0 means they do not.
func (p *statementPair) fit(a, b placedValue) int {
	if sameNumber(a.Value, b.Value, max(a.slack(), b.slack())) {
		return 0
	}
	attributeA, attributeB := p.a.attribute(a, quantityConcept), p.b.attribute(b, quantityConcept)
	if attributeA != "" && attributeB != "" && attributeA != attributeB {
		return 0
	}
	same := attributeA != "" && attributeA == attributeB
	switch {
	case !p.fitUnits(a, b, same):
		return 0
	case same:
		return 2
	}
	return 1
}

// fitUnits reports whether the units of two numbers can measure the same thing; same means that both name the same
// attribute.
func (p *statementPair) fitUnits(a, b placedValue, same bool) bool {
	ka, kb := a.Unit.Kind, b.Unit.Kind
	switch {
	case ka == unitMoney && kb == unitMoney:
		return a.Unit.Name == b.Unit.Name
	case ka == unitPercent && kb == unitPercent, ka == unitTime && kb == unitTime, counts(ka) && counts(kb):
		// Percentages, times and bare numbers can measure anything: a word near both must say what.
		return same || p.sharedNear(a, b)
	}
	return ka == kb
}

func counts(kind UnitKind) bool { return kind == unitNone || kind == unitCount }

// nearWords is how many words from a value may name its attribute.
const nearWords = 8

// attribute returns the concept nearest to a value, on either side, such as height or birth; empty if none is near. A
// counted noun comes last: it says what is counted, not what happens to it.
func (s *statement) attribute(v placedValue, concepts func(string, *Value) string) string {
	place := s.text.places[v.index]
	sentence := s.text.sentences[s.sentence]
	best, nearest := "", nearWords+1
	own := ""
	for i := max(sentence.tokens[0], place-nearWords); i < min(sentence.tokens[1], place+2*nearWords); i++ {
		token := &s.text.tokens[i]
		concept := concepts(string(stem([]byte(token.low))), v.Value)
		switch distance := max(i-place, place-i); {
		case concept == "":
		case token.start >= v.Span.Start && token.end <= v.Span.End:
			own = concept
		case distance < nearest:
			best, nearest = concept, distance
		}
	}
	if best == "" {
		return own
	}
	return best
}

// The stems of words for one attribute: what is tall has a height.
var (
	measureStems     = lists["measure"]
	eventStems       = lists["event"]
	peopleStems      = lists["people"]
	moneyStems       = lists["money"]
	measuredIn       = lists["measured-in"]
	changingConcepts = lists["changing"]
	speculativeWords = lists["speculative"]
)

// conceptOf returns the attribute that a stem names; empty if none.
func conceptOf(stem string) string {
	return cmp.Or(measureStems[stem].name, eventStems[stem].name, peopleStems[stem].name, moneyStems[stem].name)
}

// conceptKey returns the key of a concept. No stem has the same key.
func conceptKey(concept string) uint32 { return hashString("="+concept) &^ 1 }

// quantityConcept returns the attribute that a stem names, if the number can measure it.
func quantityConcept(stem string, v *Value) string {
	measure := measureStems[stem].name
	switch kind := v.Unit.Kind; kind {
	case unitLength, unitArea, unitVolume, unitMass, unitSpeed, unitTemperature, unitData, unitPower, unitEnergy,
		unitTime:
		if measure == "output" || measure == "use" || measuredIn[measure].name == string(kind) {
			return measure
		}
		return ""
	case unitMoney:
		return moneyStems[stem].name
	default:
	}
	concept := cmp.Or(peopleStems[stem].name, moneyStems[stem].name)
	if concept == "" && eventStems[stem].name == "death" {
		return "death"
	}
	if concept == "" && (measure == "capacity" || measure == "output") {
		return measure
	}
	return concept
}

// dateConcept returns the event that a stem names, for dates.
func dateConcept(stem string, _ *Value) string { return eventStems[stem].name }

// sharedNear reports whether some word outside names is near both values.
func (p *statementPair) sharedNear(a, b placedValue) bool {
	near := p.a.near(a.index)
	for key := range p.b.near(b.index) {
		if near[key] {
			return true
		}
	}
	return false
}

func (s *statement) near(value int) map[uint32]bool {
	keys := map[uint32]bool{}
	place := s.text.places[value]
	sentence := s.text.sentences[s.sentence]
	for i := max(sentence.tokens[0], place-nearWords); i < min(sentence.tokens[1], place+nearWords+1); i++ {
		if token := &s.text.tokens[i]; token.topic() && !token.named {
			keys[token.key] = true
		}
	}
	return keys
}

// sameTime reports whether the sentences may be about the same time: a date of one agrees with one of the other, or
// neither has one. If only one has a date, quantities that change over the years are not compared.
func (p *statementPair) sameTime() bool {
	as, bs := p.a.values(ValueDate), p.b.values(ValueDate)
	switch {
	case len(as) == 0 && len(bs) == 0:
		return true
	case len(as) == 0 || len(bs) == 0:
		return !p.changing()
	}
	return len(p.unmatched(as, bs, datesAgree)) < len(as)
}

// datesAgree reports whether two dates agree, one perhaps less exactly.
func datesAgree(a, b placedValue) bool {
	return relateDates(&a.Date, &b.Date) >= dateWider
}

// changing reports whether the sentences are about quantities that change over the years.
func (p *statementPair) changing() bool {
	for concept := range changingConcepts {
		if p.shared[conceptKey(concept)] || p.shared[topicKey(concept)] {
			return true
		}
	}
	return false
}

// dates reports a pair of dates that differ, if they are of the same event.
func (p *statementPair) dates() {
	as, bs := p.a.values(ValueDate), p.b.values(ValueDate)
	restA, restB := p.unmatched(as, bs, datesAgree), p.unmatched(bs, as, datesAgree)
	// If numbers differ as well, the dates say when each was true.
	if len(p.a.values(ValueNumber)) > 0 && len(p.b.values(ValueNumber)) > 0 {
		return
	}
	alone := len(as) == 1 && len(bs) == 1
	for _, a := range restA {
		for _, b := range restB {
			if !sameGrain(&a.Date, &b.Date) {
				continue
			}
			eventA, eventB := p.a.attribute(a, dateConcept), p.b.attribute(b, dateConcept)
			if eventA != "" && eventB != "" && eventA != eventB {
				continue
			}
			if eventA != "" && eventA == eventB || alone && p.sharedNear(a, b) {
				p.add(ConflictDate, a.Span, b.Span)
				return
			}
		}
	}
}

// Negations and opposites need more in common than values do: sentences use them for many reasons.
const (
	polarContent = 2  // shared words outside names
	polarFocus   = .6 // least share, by weight, of the denied words that the other sentence has
	polarOverlap = .4 // least share of the heavier sentence's weight that both have in common
)

// denials reports what one sentence denies and the other states.
func (p *statementPair) denials() {
	if p.content < polarContent || p.weight < polarOverlap*max(p.a.weight, p.b.weight) || !p.sameTime() {
		return
	}
	as, bs := p.a.values(ValueNegation), p.b.values(ValueNegation)
	switch {
	case len(as) > 0 && len(bs) == 0:
		p.denial(p.a, p.b, as)
	case len(bs) > 0 && len(as) == 0:
		p.denial(p.b, p.a, bs)
	}
}

func (p *statementPair) denial(denying, saying *statement, negations []placedValue) {
	if saying.text.hasWord(saying.sentence, denyingWord) || p.opposed() {
		return
	}
	for _, n := range negations {
		weights, total := denying.text.focus(n.index)
		shared := 0.
		for key, weight := range weights {
			if p.shared[key] {
				shared += weight
			}
		}
		if total == 0 || shared < polarFocus*total {
			continue
		}
		span, _ := saying.text.extent(saying.sentence, weights)
		if denying == p.a {
			p.add(ConflictNegation, n.withScope(), span)
		} else {
			p.add(ConflictNegation, span, n.withScope())
		}
		p.found[len(p.found)-1].Note = fmt.Sprintf(
			"possible conflict: negation: only one side denies %s", denying.text.quoted(n.Value),
		)
		return
	}
}

// opposed reports whether one sentence has the opposite of a word of the other: "did not rise" and "fell" agree.
func (p *statementPair) opposed() bool {
	for _, a := range p.a.values(ValueDegree) {
		for _, b := range p.b.values(ValueDegree) {
			if a.Words[0] == b.Words[1] {
				return true
			}
		}
	}
	return false
}

// antonyms reports opposite words.
func (p *statementPair) antonyms() {
	if p.content < 1 || p.weight < polarOverlap*max(p.a.weight, p.b.weight) || !p.sameTime() {
		return
	}
	as, bs := p.a.values(ValueDegree), p.b.values(ValueDegree)
	for _, a := range as {
		for _, b := range bs {
			denied := p.a.text.denied(p.a.text.places[a.index])
			if a.Words[0] == b.Words[1] && denied == p.b.text.denied(p.b.text.places[b.index]) &&
				!subgroups.has(a.Words[0]) && !has(as, b.Words[0]) && !has(bs, a.Words[0]) &&
				!p.namesSwapped(a.Words[0]) {
				p.add(ConflictAntonym, a.Span, b.Span)
				return
			}
		}
	}
}

// has reports whether one of the degree words is on a side of its pair. A sentence with both sides opposes nothing.
func has(values []placedValue, side string) bool {
	return slices.ContainsFunc(values, func(v placedValue) bool { return v.Words[0] == side })
}

// namesSwapped reports whether the sentences name the two sides of a relation in opposite order: A beat B, B lost to A.
func (p *statementPair) namesSwapped(word string) bool {
	if !relationWords.has(word) {
		return false
	}
	if len(p.nameOrder(p.a)) < 2 {
		return true // who lends to one may borrow from another
	}
	a, b := p.nameOrder(p.a), p.nameOrder(p.b)
	return len(a) > 1 && len(b) > 1 && a[0] != b[0]
}

// nameOrder returns the keys of a sentence's names that are shared, in order.
func (p *statementPair) nameOrder(s *statement) []uint32 {
	var keys []uint32
	for _, term := range s.terms {
		if p.shared[term.key] && s.names[term.key] {
			keys = append(keys, term.key)
		}
	}
	return keys
}

// sameGrain reports whether two dates give the same part: a year or a month.
func sameGrain(a, b *Date) bool {
	return (a.Year != 0 && b.Year != 0 || a.Month != 0 && b.Month != 0) && (a.Day == 0 || b.Month != 0)
}

func sharesWord(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// sharedLetters returns the length of the common prefix of two words in bytes.
func sharedLetters(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// sideOf returns the name of a word's side of its opposites.
func sideOf(low string) string {
	side, _, _ := strings.Cut(oppositeWords[low].name, "|")
	return side
}

var (
	prepositions = lists["preposition"]
	clauseWords  = lists["clause-break"]
)
