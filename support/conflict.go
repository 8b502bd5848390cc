package support

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// ConflictKind is what differs.
type ConflictKind string

// The kinds of a conflict.
const (
	ConflictNumber   ConflictKind = "number"   // another quantity of the same kind
	ConflictDate     ConflictKind = "date"     // another day, month, year or period
	ConflictUnit     ConflictKind = "unit"     // the same figure in another unit
	ConflictName     ConflictKind = "name"     // another name; only [Changed] says it
	ConflictNegation ConflictKind = "negation" // one side denies what the other says
	ConflictAntonym  ConflictKind = "antonym"  // one side has the opposite word: rose, fell
)

// InClaim is the Passage of an [Excerpt] that stands in the claim.
const InClaim = -1

// Excerpt is one side of a [Conflict].
type Excerpt struct {
	Passage int       // index of the passage, or InClaim
	Span    ibid.Span // the sentence, in that text
	Value   ibid.Span // what differs, in that text, inside Span
	Text    string    // the bytes of Span
}

// ValueText returns the words that differ; empty if Text does not have them.
func (e *Excerpt) ValueText() string { return textAt(e.Text, shifted(e.Value, -e.Span.Start)) }

// Conflict is a possible conflict: two texts that seem to speak of the same thing give different values. It is found by
// rules, and rules see words, not meaning, so it is a reason to look and never a contradiction.
type Conflict struct {
	Kind  ConflictKind
	A, B  Excerpt
	About []string // the words that both sides share, the weightiest first: what they speak of
	Note  string   // one line for people: "possible conflict: number: 330 m, 324 m"
}

// ConflictOptions are the options of [Conflicts]. The zero value means the defaults.
type ConflictOptions struct {
	// Overlap is the least share of the weight of the words of the sentence with less that both sentences must have in
	// common; 0: DefaultConflictOverlap.
	Overlap float64
	// MaxPairs bounds the pairs of sentences with a word in common that are looked at; 0: DefaultConflictPairs.
	MaxPairs int
}

// The defaults of [ConflictOptions], and the other limits of [Conflicts].
const (
	DefaultConflictOverlap = .65
	DefaultConflictPairs   = 200_000

	MaxConflictText = 4 << 20 // bytes of all passages together
	MaxConflicts    = 1000    // conflicts that are returned
)

// IssueConflictsTruncated is the code of the issue that says which limit of [Conflicts] left something out.
const IssueConflictsTruncated = "conflicts-truncated"

// Conflicts finds possible conflicts between passages: of sentences of two passages that share most of their words and
// speak of the same names, a value of one kind that differs. A is always in the passage that comes first. Two sentences
// of one passage are never in conflict.
//
// Values that are rounded, converted or said more or less exactly are no conflict, nor are values for different years.
// The issues say what a limit left out ([IssueConflictsTruncated]); what was found until then is returned all the same.
func Conflicts(passages []Passage, o *ConflictOptions) ([]Conflict, []ibid.Issue) {
	if len(passages) < 2 {
		return nil, nil
	}
	f := &conflictFinder{overlap: DefaultConflictOverlap, pairs: DefaultConflictPairs}
	if o != nil {
		f.overlap, f.pairs = cmp.Or(o.Overlap, f.overlap), cmp.Or(o.MaxPairs, f.pairs)
	}
	left := MaxConflictText
	for i := range passages {
		text := firstBytes(passages[i].Text, left)
		if len(text) < len(passages[i].Text) {
			f.truncated(fmt.Sprintf("only the first %d bytes of the passages were read", MaxConflictText))
		}
		left -= len(text)
		f.add(readValuedText(Language(text), piece{i, 0, text}))
	}
	f.search()
	f.sort()
	return f.found, f.issues
}

// statement is one sentence of one passage, with what it speaks of.
type statement struct {
	passage, sentence int
	text              *valuedText
	terms             []topicTerm // one per key, those of the names it refers back to included
	weight            float64
	names             map[uint32]bool
}

type conflictFinder struct {
	overlap    float64
	pairs      int
	statements []statement
	found      []Conflict
	issues     []ibid.Issue

	looked, words int // pairs of sentences so far, and the words that they share
}

func (f *conflictFinder) truncated(detail string) {
	for _, issue := range f.issues {
		if issue.Detail == detail {
			return
		}
	}
	f.issues = append(f.issues, ibid.Issue{Code: IssueConflictsTruncated, Detail: detail})
}

// add appends the sentences of a passage. A sentence without a name speaks of the names of the sentence before it.
func (f *conflictFinder) add(text *valuedText) {
	var last []topicTerm // names of the last sentence that had any
	for i := range text.sentences {
		st, names := newStatement(text, i)
		if len(names) == 0 {
			for _, term := range last {
				if !slices.ContainsFunc(st.terms, func(own topicTerm) bool { return own.key == term.key }) {
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

// newStatement returns a sentence with its terms, one per key, and those of them that are in names.
func newStatement(text *valuedText, sentence int) (st statement, names []topicTerm) {
	s := &text.sentences[sentence]
	st = statement{passage: text.pieces[0].passage, sentence: sentence, text: text, names: map[uint32]bool{}}
	seen := make(map[uint32]bool, s.terms[1]-s.terms[0])
	for _, term := range text.terms[s.terms[0]:s.terms[1]] {
		if seen[term.key] {
			continue
		}
		seen[term.key] = true
		st.terms = append(st.terms, term)
		if term.name && len(names) < maxCarried {
			names = append(names, term)
		}
	}
	return st, names
}

// maxCarried is how many words of names one sentence has, and hands on to the next.
const maxCarried = 64

// search compares the sentences that share words with those of the passages before.
func (f *conflictFinder) search() {
	postings := make(map[uint32][]int)
	shared := make(map[int]float64)
	var to int
	for from := 0; from < len(f.statements); from = to {
		for to = from; to < len(f.statements) && f.statements[to].passage == f.statements[from].passage; to++ {
			if len(postings) > 0 && !f.look(to, postings, shared) {
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

// sharedWords is how many words the pairs of sentences may have in common on average: it bounds the work for long
// sentences.
const sharedWords = 16

// look compares sentence b with those that share words with it. It reports false where a limit is reached.
func (f *conflictFinder) look(b int, postings map[uint32][]int, shared map[int]float64) bool {
	clear(shared)
	full := false
	for _, term := range f.statements[b].terms {
		for _, a := range postings[term.key] {
			if _, known := shared[a]; !known {
				if f.looked == f.pairs {
					full = true
					continue
				}
				f.looked++
			}
			shared[a] += term.weight
		}
		f.words += len(postings[term.key])
	}
	f.compareAll(b, shared)
	if full || f.words > sharedWords*f.pairs {
		f.truncated(fmt.Sprintf("only %d pairs of sentences were compared", f.looked))
		return false
	}
	if len(f.found) > MaxConflicts {
		f.truncated(fmt.Sprintf("only %d conflicts are listed", MaxConflicts))
		f.found = f.found[:MaxConflicts]
		return false
	}
	return true
}

func (f *conflictFinder) sort() {
	slices.SortStableFunc(f.found, func(a, b Conflict) int {
		return cmp.Or(
			a.A.Passage-b.A.Passage, a.B.Passage-b.B.Passage, a.A.Span.Start-b.A.Span.Start,
			a.B.Span.Start-b.B.Span.Start,
		)
	})
}

// compareAll compares sentence b with those that share enough with it, in order.
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
	content int     // shared words that are in no name
	about   []string
	found   []Conflict
}

func (p *statementPair) conflicts() []Conflict {
	p.share()
	if !p.sameSubject() || p.speculative(p.a) != p.speculative(p.b) {
		return nil
	}
	p.numbers()
	p.dates()
	p.denials()
	p.antonyms()
	return p.found
}

// share finds the words in common.
func (p *statementPair) share() {
	p.shared = make(map[uint32]bool)
	in := make(map[uint32]bool, len(p.b.terms))
	for _, term := range p.b.terms {
		in[term.key] = true
	}
	var common []topicTerm
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
	slices.SortStableFunc(common, func(a, b topicTerm) int { return cmp.Compare(b.weight, a.weight) })
	for _, term := range common {
		p.about = append(p.about, p.a.text.tokens[term.token].low)
	}
}

// sameSubject reports whether both sentences speak of the same names: one side may name more, but not each what the
// other does not.
func (p *statementPair) sameSubject() bool {
	if len(p.a.names) == 0 && len(p.b.names) == 0 {
		return p.content >= minSharedContent
	}
	common := 0
	for key := range p.a.names {
		if p.shared[key] {
			common++
		}
	}
	for key := range p.b.names {
		if p.shared[key] && !p.a.names[key] {
			common++
		}
	}
	return common > 0 && (p.within(p.a.names) || p.within(p.b.names))
}

// minSharedContent is how many words two sentences without a name must share.
const minSharedContent = 3

func (p *statementPair) within(names map[uint32]bool) bool {
	for key := range names {
		if !p.shared[key] {
			return false
		}
	}
	return true
}

// speculative reports whether a sentence speaks of what is planned, expected or assumed.
func (p *statementPair) speculative(s *statement) bool {
	sentence := s.text.sentences[s.sentence]
	for _, token := range s.text.tokens[sentence.tokens[0]:sentence.tokens[1]] {
		switch token.low {
		case "planned", "plans", "plan", "expected", "expects", "forecast", "forecasts", "projected", "proposed",
			"target", "targets", "aims", "would", "might", "could", "if", "hopes", "intended", "scheduled", "predicted",
			"predicts":
			return true
		}
	}
	return false
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
