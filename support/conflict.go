package support

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/internal/text"
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
// the same. Conflicts returns an error only if ctx ends.
func Conflicts(ctx context.Context, passages []Passage, o *ConflictOptions) ([]Conflict, []ibid.Issue, error) {
	f := &conflictFinder{overlap: defaultConflictOverlap, pairs: defaultConflictPairs, ids: map[uint32]int{}}
	if o != nil {
		f.overlap, f.pairs = cmp.Or(o.Overlap, f.overlap), cmp.Or(o.MaxPairs, f.pairs)
	}
	if len(passages) < 2 {
		return nil, nil, ctx.Err()
	}
	err := halt.Do(ctx, func(h *halt.Halt) { f.search(h, passages) })
	if err != nil {
		return nil, nil, fmt.Errorf("find conflicts: %w", err)
	}
	slices.SortStableFunc(f.found, func(a, b Conflict) int {
		return cmp.Or(
			a.A.Passage-b.A.Passage, a.B.Passage-b.B.Passage, a.A.Span.Start-b.A.Span.Start,
			a.B.Span.Start-b.B.Span.Start,
		)
	})
	return f.found, f.issues, nil
}

// conflictFinder compares the sentences of passages, in order. Its words are numbered, so that what pairs of sentences
// share is looked up in lists.
type conflictFinder struct {
	overlap    float64
	pairs      int
	statements []statement
	found      []Conflict
	issues     []ibid.Issue

	pairsSeen, wordsShared int // pairs of sentences so far, and the total of words they share

	ids      map[uint32]int // the words by key
	words    []conflictWord
	with     []sharing // what each sentence shares with the current one
	current  int       // the sentence being compared, from 1
	shares   []int     // the sentences that share a word with it
	compared int       // pairs compared so far: the number of the current one, from 1
	changing []uint32  // the keys of quantities that change over the years; nil until needed
}

// conflictWord is a word of the sentences.
type conflictWord struct {
	in   []int // the sentences of earlier passages that have it
	last int   // the last sentence that has it, from 1
	name bool  // it is part of a name there
	pair int   // the last compared pair that shares it
}

// sharing is the weight of the words that a sentence shares with another.
type sharing struct {
	with   int // the other one, from 1
	weight float64
}

func (f *conflictFinder) truncated(detail string) {
	issue := ibid.Issue{Code: IssueConflictsTruncated, Detail: detail}
	if !slices.Contains(f.issues, issue) {
		f.issues = append(f.issues, issue)
	}
}

// search reads passages, and compares the sentences of each with those of earlier ones that share words with them.
func (f *conflictFinder) search(h *halt.Halt, passages []Passage) {
	left := maxConflictText
	for i := range passages {
		if left -= len(passages[i].Text); left < 0 {
			f.truncated(fmt.Sprintf("only the first %d bytes of the passages were read", maxConflictText))
			break
		}
	}
	left = maxConflictText
	for i := range passages {
		h.Check()
		read := text.Head(passages[i].Text, left)
		left -= len(read)
		from := len(f.statements)
		f.add(readValuedText(Language(read), piece{passage: i, text: read}))
		for b := from; b < len(f.statements); b++ {
			if from > 0 && !f.compareWithEarlier(h, b) {
				return
			}
		}
		for b := from; b < len(f.statements); b++ {
			for _, t := range f.statements[b].terms {
				f.words[t.id].in = append(f.words[t.id].in, b)
			}
		}
	}
}

// statement is one sentence of one passage.
type statement struct {
	text     *valuedText
	sentence int
	terms    []statementWord // one per key, including those of the names that it refers back to
	weight   float64
	names    []int // the words of its names

	details *statementDetails // nil until needed
}

// statementWord is a word of a statement.
type statementWord struct {
	*valueToken
	id   int
	name bool // it is part of a name
}

// statementDetails is what is needed of a statement only if another one is like it.
type statementDetails struct {
	numbers, dates, names, negations, degrees []placedValue

	speculative bool  // it is about plans, expectations or assumptions
	offices     []int // its words that name a role that only one name can have
}

// placedValue is a value with its index in its text.
type placedValue struct {
	*Value
	index int
}

// id returns the number of a word.
func (f *conflictFinder) id(key uint32) int {
	id, ok := f.ids[key]
	if !ok {
		id = len(f.words)
		f.ids[key] = id
		f.words = append(f.words, conflictWord{})
	}
	return id
}

// add appends the sentences of a passage. A sentence without a name inherits the names of the sentence before it.
func (f *conflictFinder) add(text *valuedText) {
	var last []statementWord // names of the last sentence that had any
	for i := range text.sentences {
		st := statement{text: text, sentence: i}
		names := f.read(&st)
		if len(names) == 0 {
			for _, t := range last {
				if f.words[t.id].last != len(f.statements)+1 {
					st.terms = append(st.terms, t)
				}
			}
			names = last
		}
		last = names
		for _, t := range names {
			st.names = append(st.names, t.id)
		}
		for k := range st.terms {
			t := &st.terms[k]
			t.name = slices.Contains(st.names, t.id)
			st.weight += t.weight
		}
		f.statements = append(f.statements, st)
	}
	f.with = append(f.with, make([]sharing, len(f.statements)-len(f.with))...)
}

// read reads the terms of the next statement, and returns those that are part of names.
func (f *conflictFinder) read(st *statement) (names []statementWord) {
	own := st.text.tokensOf(st.sentence)
	st.terms = make([]statementWord, 0, len(own))
	for i := range own {
		if !own[i].topic() {
			continue
		}
		t := statementWord{valueToken: &own[i], id: f.id(own[i].key)}
		if w := &f.words[t.id]; w.last != len(f.statements)+1 {
			w.last = len(f.statements) + 1
			st.terms = append(st.terms, t)
			if t.named && len(names) < maxCarried {
				names = append(names, t)
			}
		}
	}
	return names
}

// maxCarried is the most words of names that one sentence has, and passes on to the next.
const maxCarried = 64

// sharedWords is the most words that pairs of sentences may share on average: it bounds the work for long sentences.
const sharedWords = 16

// compareWithEarlier compares sentence b with those that share words with it. It returns false if a limit is reached.
func (f *conflictFinder) compareWithEarlier(h *halt.Halt, b int) bool {
	h.Check()
	f.current, f.shares = b+1, f.shares[:0]
	full := false
	for _, t := range f.statements[b].terms {
		w := &f.words[t.id]
		w.last, w.name = b+1, t.name
		for _, a := range w.in {
			with := &f.with[a]
			if with.with != b+1 {
				if f.pairsSeen == f.pairs {
					full = true
					continue
				}
				f.pairsSeen++
				*with = sharing{with: b + 1}
				f.shares = append(f.shares, a)
			}
			with.weight += t.weight
		}
		f.wordsShared += len(w.in)
	}
	f.compareAll(h, b)
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
func (f *conflictFinder) compareAll(h *halt.Halt, b int) {
	near := f.shares[:0]
	for _, a := range f.shares {
		if f.with[a].weight >= f.overlap*min(f.statements[a].weight, f.statements[b].weight) {
			near = append(near, a)
		}
	}
	slices.Sort(near)
	for _, a := range near {
		h.Check()
		f.compared++
		p := &statementPair{conflictFinder: f, a: f.detailed(a), b: f.detailed(b), number: f.compared}
		p.conflicts()
	}
}

// detailed returns a statement with its details.
func (f *conflictFinder) detailed(i int) *statement {
	s := &f.statements[i]
	if s.details != nil {
		return s
	}
	d := &statementDetails{speculative: s.text.hasWord(s.sentence, speculativeWords.has)}
	s.details = d
	for _, t := range s.text.tokensOf(s.sentence) {
		if t.topic() && offices.has(t.low) {
			d.offices = append(d.offices, f.id(t.key))
		}
	}
	sentence := s.text.sentences[s.sentence]
	for i := sentence.values[0]; i < sentence.values[1]; i++ {
		v := placedValue{&s.text.values[i], i}
		switch v.Kind {
		case ValueNumber:
			d.numbers = append(d.numbers, v)
		case ValueDate:
			d.dates = append(d.dates, v)
		case ValueName:
			d.names = append(d.names, v)
		case ValueNegation:
			d.negations = append(d.negations, v)
		case ValueDegree:
			d.degrees = append(d.degrees, v)
		}
	}
	return s
}

// statementPair is two sentences of two passages that share most of their words.
type statementPair struct {
	*conflictFinder

	a, b    *statement
	number  int
	weight  float64 // of the shared words
	content int     // shared words outside names
	about   []string
	timed   *bool // see sameTime; nil until needed
}

// conflicts adds the conflicts between the sentences to those found.
func (p *statementPair) conflicts() {
	p.share()
	if p.holders() || !p.sameSubject() || p.a.details.speculative != p.b.details.speculative {
		return
	}
	p.numbers()
	p.dates()
	p.denials()
	p.antonyms()
}

// share finds the shared words.
func (p *statementPair) share() {
	for _, t := range p.a.terms {
		w := &p.words[t.id]
		if w.last != p.current {
			continue
		}
		w.pair = p.number
		p.weight += t.weight
		if !t.name && !w.name {
			p.content++
		}
	}
}

// has reports whether both sentences have a word.
func (p *statementPair) has(id int) bool { return p.words[id].pair == p.number }

// hasKey is like has, for a key.
func (p *statementPair) hasKey(key uint32) bool {
	id, known := p.ids[key]
	return known && p.has(id)
}

var (
	offices   = lists["office"]
	subgroups = lists["subgroup"]
)

// holders reports two names for a role that only one can have: who holds an office, where someone was born.
func (p *statementPair) holders() (found bool) {
	if !slices.ContainsFunc(p.a.details.offices, p.has) || len(p.nameOrder(p.a)) == 0 || !p.sameTime() ||
		p.a.details.speculative != p.b.details.speculative {
		return false
	}
	a, b := p.holder(p.a), p.holder(p.b)
	if a == nil || b == nil || sharesWord(a.Words, b.Words) ||
		!p.shareNamesBut(p.a, a) && !p.shareNamesBut(p.b, b) {
		return false
	}
	p.add(ConflictName, a.Span, b.Span)
	return true
}

// shareNamesBut reports whether all words of a sentence's names but those of v are shared.
func (p *statementPair) shareNamesBut(s *statement, v *Value) bool {
	var own []int
	for _, word := range v.Words {
		if id, known := p.ids[topicKey(word)]; known {
			own = append(own, id)
		}
	}
	return !slices.ContainsFunc(s.names, func(id int) bool { return !p.has(id) && !slices.Contains(own, id) })
}

// holder returns the name of a sentence that the other sentence lacks: after "born" and a preposition if it says where
// someone was born, else of two words or more. It returns nil if there is none, or more than one.
func (p *statementPair) holder(s *statement) *Value {
	var found *Value
	birth, at := topicKey("born"), s.text.sentences[s.sentence].tokens
	born := at[0] + slices.IndexFunc(s.text.tokens[at[0]:at[1]], func(t valueToken) bool { return t.key == birth })
	for _, v := range s.details.names {
		if slices.ContainsFunc(v.Words, func(word string) bool { return p.hasKey(topicKey(word)) }) {
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

func (p *statementPair) within(names []int) bool {
	return !slices.ContainsFunc(names, func(id int) bool { return !p.has(id) })
}

func (p *statementPair) add(kind ConflictKind, a, b ibid.Span) {
	textA, textB := p.a.text.text[a.Start:a.End], p.b.text.text[b.Start:b.End]
	if p.about == nil {
		p.about = p.sharedWords()
	}
	p.found = append(p.found, Conflict{
		Kind:  kind,
		A:     p.a.text.excerpt(p.a.sentence, a),
		B:     p.b.text.excerpt(p.b.sentence, b),
		About: p.about,
		Note:  fmt.Sprintf("possible conflict: %s: %s, %s", kind, strings.TrimSpace(textA), strings.TrimSpace(textB)),
	})
}

// sharedWords returns the words that both sentences have, rarest first.
func (p *statementPair) sharedWords() []string {
	var common []statementWord
	for _, t := range p.a.terms {
		if p.has(t.id) {
			common = append(common, t)
		}
	}
	slices.SortStableFunc(common, func(a, b statementWord) int { return cmp.Compare(b.weight, a.weight) })
	about := make([]string, len(common))
	for i := range common {
		about[i] = common[i].low
	}
	return about
}

// numbers reports the best fitting pair of numbers that differ, if the sentences are about the same time.
func (p *statementPair) numbers() {
	as, bs := p.a.details.numbers, p.b.details.numbers
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
	near := p.b.near(b.index)
	return slices.ContainsFunc(p.a.near(a.index), func(key uint32) bool { return slices.Contains(near, key) })
}

// near returns the keys of the words near a value.
func (s *statement) near(value int) (keys []uint32) {
	place := s.text.places[value]
	sentence := s.text.sentences[s.sentence]
	for i := max(sentence.tokens[0], place-nearWords); i < min(sentence.tokens[1], place+nearWords+1); i++ {
		if token := &s.text.tokens[i]; token.topic() && !token.named {
			keys = append(keys, token.key)
		}
	}
	return keys
}

// sameTime reports whether the sentences may be about the same time: a date of one agrees with one of the other, or
// neither has one. If only one has a date, quantities that change over the years are not compared.
func (p *statementPair) sameTime() bool {
	if p.timed == nil {
		p.timed = new(p.datesMeet())
	}
	return *p.timed
}

func (p *statementPair) datesMeet() bool {
	as, bs := p.a.details.dates, p.b.details.dates
	switch {
	case len(as) == 0 && len(bs) == 0:
		return true
	case len(as) == 0 || len(bs) == 0:
		return !p.changes()
	}
	return slices.ContainsFunc(as, func(a placedValue) bool {
		return slices.ContainsFunc(bs, func(b placedValue) bool { return datesAgree(a, b) })
	})
}

// datesAgree reports whether two dates agree, one perhaps less exactly.
func datesAgree(a, b placedValue) bool {
	return relateDates(&a.Date, &b.Date) >= dateWider
}

// changes reports whether the sentences are about quantities that change over the years.
func (p *statementPair) changes() bool {
	if p.changing == nil {
		for concept := range changingConcepts {
			p.changing = append(p.changing, conceptKey(concept), topicKey(concept))
		}
	}
	return slices.ContainsFunc(p.changing, p.hasKey)
}

// dates reports a pair of dates that differ, if they are of the same event.
func (p *statementPair) dates() {
	as, bs := p.a.details.dates, p.b.details.dates
	// If numbers differ as well, the dates say when each was true.
	if len(as) == 0 || len(bs) == 0 || len(p.a.details.numbers) > 0 && len(p.b.details.numbers) > 0 {
		return
	}
	restA, restB := p.unmatched(as, bs, datesAgree), p.unmatched(bs, as, datesAgree)
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
	as, bs := p.a.details.negations, p.b.details.negations
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
			if p.hasKey(key) {
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
	for _, a := range p.a.details.degrees {
		for _, b := range p.b.details.degrees {
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
	as, bs := p.a.details.degrees, p.b.details.degrees
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
		if term.name && p.has(term.id) {
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
