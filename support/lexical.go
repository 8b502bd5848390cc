package support

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// The default checker's name.
const (
	lexicalID      = "lexical"
	lexicalVersion = "2"
)

// The codes of a verdict's issues. issueClaimTruncated and issuePassageTruncated mean that only the first maxClaim or
// maxPassage bytes were read.
const (
	issueClaimEmpty         = "claim-empty"     // it has no words, or only insignificant ones
	issueNoPassages         = "no-passages"     // none was given, or none has words
	issueClaimTruncated     = "claim-truncated" // the unread rest cannot be supported
	issuePassageTruncated   = "passage-truncated"
	issueLanguageUnmeasured = "language-unmeasured" // the method is the same; its quality there is unknown
	issueLanguagesDiffer    = "languages-differ"    // those of claim and passages: their words cannot be compared
)

// Lexical is the default checker. It reads words and values, not meaning, and uses no language model, opens no
// connection and costs a fraction of a millisecond per pair. Equal input gets equal verdicts.
//
// A claim is [Supported] if a passage says it word for word or in close wording, and [Differs] if a passage says it but
// for one number, date, name, negation or opposite; then the words of both are shown. Everything else is [Unjudged], or
// [Unchecked] if no passage has words. It never returns [Unsupported] or [Contradicted].
//
// Its closeness is a model's estimate, fitted to human judgements, from which of the claim's words are in the passages,
// how rare they are, in what order and how close together. It was fitted to English; in other languages words are
// weighted by their rarity in the passages of the same call, and the verdict has the issue language-unmeasured.
//
// The zero value is ready to use. It is safe for concurrent use.
type Lexical struct{}

// Info implements [Checker].
func (l *Lexical) Info() Info {
	return Info{
		ID: lexicalID, Version: lexicalVersion, Languages: []string{"en"},
		Params: fmt.Sprintf("%08x", modelHash()),
	}
}

// Check implements [Checker]. It reads every passage and claim once, however many pairs share it, and keeps all
// passages of a call in memory. It stops early with ctx's error if ctx ends.
func (l *Lexical) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	return l.check(ctx, in, map[string]*indexedPassage{})
}

// check is Check with passages that were indexed before, by their text. It adds those that are not there yet.
func (l *Lexical) check(ctx context.Context, in []Pair, read map[string]*indexedPassage) ([]Verdict, error) {
	q, err := newRequest(ctx, in, read)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(in))
	for i := range in {
		if err := q.judge(ctx, &in[i], &verdicts[i]); err != nil {
			return nil, fmt.Errorf("checking claim %d of %d: %w", i+1, len(in), err)
		}
	}
	return verdicts, nil
}

// judge fills in the verdict on one pair. It looks at ctx between its steps, each of which takes time linear in the
// texts.
func (q *request) judge(ctx context.Context, pair *Pair, v *Verdict) error {
	v.By, v.Label = lexicalID+"@"+lexicalVersion, Unjudged
	c, language := q.read(pair)
	q.note(pair, c, language, v)
	s := &q.scorer
	s.agreements = s.agreements[:0]
	if err := ctx.Err(); err != nil || c.total < minWeight || !s.compare(c, q.passages) || v.has(issueLanguagesDiffer) {
		return err
	}
	v.Evidence, v.Missing = s.evidence(), s.missing()
	if q.agree(v.Evidence, v.Missing, cmp.Or(c.detected.language, language)) {
		s.compare(c, q.passages)
		v.Evidence, v.Missing = s.evidence(), s.missing()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	closeness := s.score()
	v.Signals = s.signals()
	allFound := !slices.Contains(s.counts, 0) // all terms, including the question's
	v.Verbatim = (allFound || c.question > 0) && q.verbatim()
	if v.Verbatim && allFound && len(c.tokens) >= minVerbatim {
		closeness = max(closeness, verbatimScore)
	}
	v.Closeness = &closeness
	if err := ctx.Err(); err != nil {
		return err
	}
	sentence, focus := pair.sentence()
	isFragment := focus.Len() < len(sentence)
	shared := sharedLanguage(sentence, q.textOf(v.Evidence))
	pieces := q.pieces(v.Evidence)
	if isFragment { // a sentence with its words may not be the one that says its sentence
		whole, _ := q.read(&Pair{Claim: sentence, Passages: pair.Passages})
		if s.compare(whole, q.passages) {
			pieces = append(pieces, q.pieces(s.evidence())...)
		}
	}
	w := compareWording(text.Head(sentence, maxClaim), focus, shared, pieces)
	switch {
	case c.truncated:
	case w.saying == saysSo, v.Verbatim && !isFragment && w.saying != saysQualified:
		v.Label = Supported
	case len(w.found) > 0 && (!v.Verbatim || w.saying == saysQualified):
		v.Label, v.Differences = Differs, w.found
	}
	q.restore(v)
	return nil
}

// restore converts the offsets of a verdict to those of the passages as given.
func (q *request) restore(v *Verdict) {
	for i := range v.Evidence {
		e := &v.Evidence[i]
		e.Span = q.passages[e.Passage].original(e.Span)
	}
	for i := range v.Differences {
		b := &v.Differences[i].B
		if x := q.passages[b.Passage]; len(x.moved) > 0 {
			b.Span, b.Value = x.original(b.Span), x.original(b.Value)
		}
	}
}

// sentence returns the sentence that the claim is a part of according to the context, and the claim's place in it; or
// else the claim.
func (p *Pair) sentence() (sentence string, focus ibid.Span) {
	claim := strings.TrimSpace(p.Claim)
	at := strings.Index(p.Context, claim)
	if claim == "" || at < 0 || len(p.Context) > maxClaim {
		return p.Claim, ibid.Span{End: len(p.Claim)}
	}
	for start, end := range prose.Sentences(p.Context) {
		if start <= at && at+len(claim) <= end {
			return p.Context[start:end], ibid.Span{Start: at - start, End: at - start + len(claim)}
		}
	}
	return p.Claim, ibid.Span{End: len(p.Claim)}
}

// textOf returns the text of the first piece of evidence.
func (q *request) textOf(evidence []Span) string {
	if len(evidence) == 0 {
		return ""
	}
	return textAt(q.passages[evidence[0].Passage].text, evidence[0].Span)
}

// pieces returns pieces of evidence with their texts.
func (q *request) pieces(evidence []Span) []piece {
	pieces := make([]piece, len(evidence))
	for i, e := range evidence {
		whole := q.passages[e.Passage].text
		pieces[i] = piece{e.Passage, e.Start, textAt(whole, e.Span), whole}
	}
	return pieces
}

const (
	// minWeight is the least total weight of a claim's words: lighter ones occur in every text.
	minWeight = 0.3
	// verbatimScore is the least closeness of a claim of at least minVerbatim words that a passage contains verbatim:
	// people call nine in ten of such pairs supported (TestEval).
	verbatimScore = 0.9
	minVerbatim   = 5
)

// note adds a pair's irregularities to its verdict.
func (q *request) note(pair *Pair, c *parsedClaim, language string, v *Verdict) {
	if c.total < minWeight {
		v.note(issueClaimEmpty, "")
		v.Label = Unchecked
	}
	if c.truncated {
		v.note(issueClaimTruncated, "%d of %d bytes were read", len(c.claim()), len(pair.Claim))
	}
	tokens := 0
	for i, p := range q.passages {
		tokens += p.tokens
		if p.truncated {
			v.note(
				issuePassageTruncated, "passage %d: %d of %d bytes were read", i, len(p.text),
				len(pair.Passages[i].Text),
			)
		}
	}
	if tokens == 0 {
		v.note(issueNoPassages, "")
		v.Label = Unchecked
		return
	}
	if language != measuredLanguage {
		v.note(issueLanguageUnmeasured, "%s", language)
	}
	if q.differ(pair, c.detected) {
		v.note(issueLanguagesDiffer, "claim %s, passages %s", cmp.Or(c.detected.language, c.detected.script),
			language)
	}
}

// differ reports whether no passage is in the claim's language.
func (q *request) differ(pair *Pair, claim detection) bool {
	differ := false
	for i, p := range q.passages {
		if p.tokens == 0 {
			continue
		}
		if !claim.incomparable(p.detected, baseLanguage(pair.Passages[i].Language)) {
			return false
		}
		differ = true
	}
	return differ
}

func (v *Verdict) has(code string) bool {
	return slices.ContainsFunc(v.Issues, func(issue ibid.Issue) bool { return issue.Code == code })
}

// measuredLanguage is the language that the model was fitted to.
const measuredLanguage = "en"

// request is one call of Check: the state that its pairs share.
type request struct {
	scorer    scorer
	indexes   map[string]*indexedPassage // by text
	claims    map[claimKey]*parsedClaim
	figures   map[[2]string][]Value // by text and language
	passages  []*indexedPassage     // of the current pair
	counts    map[uint32]int32      // for each term, the number of sentences that contain it; nil until counted
	sentences int                   // in all passages of the call
}

type claimKey struct {
	question, text string
	local          bool // weighted by the passages of the call
}

func newRequest(ctx context.Context, in []Pair, read map[string]*indexedPassage) (*request, error) {
	q := &request{
		indexes: read,
		claims:  map[claimKey]*parsedClaim{},
		figures: map[[2]string][]Value{},
	}
	for i := range in {
		for j := range in[i].Passages {
			text := in[i].Passages[j].Text
			if q.indexes[text] != nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("reading the passages of claim %d of %d: %w", i+1, len(in), err)
			}
			q.indexes[text] = indexPassage(text)
		}
	}
	return q, nil
}

// read returns a pair's parsed claim and the language of its passages, and sets q.passages.
func (q *request) read(pair *Pair) (c *parsedClaim, language string) {
	q.passages = q.passages[:0]
	for i := range pair.Passages {
		p := &pair.Passages[i]
		x := q.indexes[p.Text]
		q.passages = append(q.passages, x)
		switch l := cmp.Or(baseLanguage(p.Language), x.detected.language); {
		case language == "":
			language = l
		case l != language && l != "" && Language(pair.Claim) == l:
			language = l // prefer that of the passages which may support it
		}
	}
	if language == "" {
		language = measuredLanguage // too short to detect: names, numbers
	}
	key := claimKey{questionOf(pair), pair.Claim, language != measuredLanguage}
	if c = q.claims[key]; c == nil {
		weight := english().weight
		if key.local {
			weight = q.weight
		}
		c = parseClaim(key.question, pair.Claim, weight)
		q.claims[key] = c
	}
	return c, language
}

// weight returns how rare a term is in the sentences of all passages of the call, on the scale of [idfTable.weight].
func (q *request) weight(key uint32) float64 {
	if key&1 != 0 {
		return weightNumber
	}
	if q.counts == nil {
		q.count()
	}
	n, all := float64(q.counts[key]), float64(q.sentences)
	if n == 0 {
		return weightUnknown
	}
	return math.Log1p(all/n) / math.Log1p(all)
}

func (q *request) count() {
	q.counts = map[uint32]int32{}
	for _, x := range q.indexes {
		q.sentences += len(x.sentences)
		for i := range x.table {
			last := noSlot
			for _, at := range x.places[x.table[i].from:x.table[i].to] {
				if s := x.sentence[at]; s != last {
					q.counts[x.table[i].key]++
					last = s
				}
			}
		}
	}
}

const (
	// maxEvidence is the most pieces of evidence in a verdict: the best window, then single sentences.
	maxEvidence = 4
	// maxMissing is the most missing terms in a verdict.
	maxMissing = 32
	// maxTerm is the most bytes of a missing term that are shown.
	maxTerm = 256
	// moreEvidence is the least share of the claim, by weight, that a sentence outside the window must add.
	moreEvidence = 0.08
)

// evidence returns the best window, followed by the sentences that contain most of what it lacks.
func (s *scorer) evidence() []Span {
	spans := s.spans(nil, s.window)
	left := make([]bool, len(s.claim.terms)) // terms without evidence so far
	for t := range left {
		left[t] = s.counts[t] > 0 && s.claim.terms[t].weight > weightContent
	}
	s.removeCovered(left, s.window)
	for len(spans) < maxEvidence && slices.Contains(left, true) {
		s.single.reset(1, len(s.lengths[0].sums))
		for t := range left {
			if left[t] {
				s.eachPlace(int32(t), func(n int, weight float64) { s.single.add(n, int32(t), weight) })
			}
		}
		best := s.single.best()
		if best.sum < moreEvidence*s.claim.total {
			break
		}
		spans = s.spans(spans, window{best.at, best.at + 1})
		s.removeCovered(left, window{best.at, best.at + 1})
	}
	return spans
}

// removeCovered unmarks the terms in left that occur in a window.
func (s *scorer) removeCovered(left []bool, w window) {
	for t := range left {
		if left[t] {
			s.eachPlace(int32(t), func(n int, _ float64) { left[t] = left[t] && (n < w.from || n >= w.to) })
		}
	}
}

// spans appends a window as spans: one for each passage it touches.
func (s *scorer) spans(list []Span, w window) []Span {
	base := 0
	for i, p := range s.passages {
		from, to := max(w.from-base, 0), min(w.to-base, len(p.sentences))
		base += len(p.sentences)
		if from < to {
			list = append(
				list,
				Span{i, ibid.Span{Start: p.sentences[from].span().Start, End: p.sentences[to-1].span().End}},
			)
		}
	}
	return list
}

// missing returns the terms of the claim that no passage contains, rarest first.
func (s *scorer) missing() []Term {
	type lack struct {
		Term
		weight float64
		token  int
	}
	lacks := make([]lack, 0, 16)
	claim := s.claim.claim()
	for i := range s.claim.tokens {
		t := &s.claim.tokens[i]
		e := &s.claim.terms[t.term]
		negation := t.flags&flagNegation != 0
		if s.counts[t.term] > 0 || int(e.token) != i || int(t.start) < s.claim.question ||
			e.weight <= weightContent && !negation {
			continue
		}
		span := ibid.Span{Start: int(t.start) - s.claim.question, End: int(t.end) - s.claim.question}
		if n := len(lacks); n > 0 && span.Start < lacks[n-1].Span.End {
			continue // US is two words in one place
		} else if n > 0 && e.kind == TermName && lacks[n-1].Kind == TermName && lacks[n-1].token == i-1 &&
			claim[lacks[n-1].Span.End:span.Start] == " " {
			last := &lacks[n-1]
			last.Span.End, last.token, last.weight = span.End, i, max(last.weight, e.weight)
			last.Text = claim[last.Span.Start:span.End]
			continue
		}
		text := claim[span.Start:span.End]
		lacks = append(lacks, lack{Term{text, termKind(text, e.kind), span}, e.weight, i})
	}
	slices.SortStableFunc(lacks, func(a, b lack) int { return cmp.Compare(b.weight, a.weight) })
	terms := make([]Term, 0, min(len(lacks), maxMissing))
	for i := range lacks[:min(len(lacks), maxMissing)] {
		term := lacks[i].Term
		term.Text = text.Head(term.Text, maxTerm)
		term.Span.End = term.Span.Start + len(term.Text)
		terms = append(terms, term)
	}
	return terms
}

var englishMonths = strings.Fields(
	"January February March April May June July August September October November December",
)

// termKind tells dates (years, names of months) from other numbers and names.
func termKind(text string, kind TermKind) TermKind {
	if kind == TermNumber && len(text) == 4 && (text[0] == '1' || text[0] == '2') &&
		strings.Trim(text, "0123456789") == "" {
		return TermDate
	}
	if kind == TermName && slices.Contains(englishMonths, text) {
		return TermDate
	}
	return kind
}

// verbatim reports whether a passage contains the claim verbatim. It reads only passages with all of the claim's terms.
func (q *request) verbatim() bool {
	s := &q.scorer
	for i, p := range q.passages {
		slots := s.slots[i*len(s.claim.terms):][:len(s.claim.terms)]
		lacks := func(slot uint32) bool { return len(p.at(slot)) == 0 }
		if (s.claim.question > 0 || !slices.ContainsFunc(slots, lacks)) && Verbatim(s.claim.claim(), p.text) {
			return true
		}
	}
	return false
}

// worthReading is the least share of the claim that the evidence would contain with the figures included for them to be
// read: reading them costs as much as all the rest, and below it they change no verdict.
const worthReading = 0.6

// agree finds the terms of figures that the evidence gives in another form, a dozen for 12, and tells the scorer in
// which sentences. It reports whether there are any. It reads figures only if one is missing and they could change the
// verdict.
func (q *request) agree(evidence []Span, missing []Term, language string) bool {
	if len(missing) == 0 {
		return false
	}
	s := &q.scorer
	share := s.features[featWindow] * s.claim.total // that the evidence would contain with the figures
	var lacking []Value
	for _, v := range q.figuresOf(s.claim.claim(), language) {
		n := 0
		for k := range missing {
			if contains(v.figure, missing[k].Span) {
				n++
			}
		}
		if n > 0 {
			lacking = append(lacking, v)
			share += float64(n) * weightNumber
		}
	}
	if len(lacking) == 0 || share < worthReading*s.claim.total {
		return false
	}
	base := 0
	for i, p := range q.passages {
		for n := range p.sentences {
			if at := p.sentences[n].span(); isEvidence(Span{i, at}, evidence) {
				others := q.figuresOf(textAt(p.text, at), language)
				for _, v := range lacking {
					if slices.ContainsFunc(others, func(e Value) bool { return v.agrees(&e) }) {
						s.noteAgreeing(v.figure, base+n)
					}
				}
			}
		}
		base += len(p.sentences)
	}
	return len(s.agreements) > 0
}

// figuresOf returns the numbers and dates of a text, read once per request.
func (q *request) figuresOf(content, language string) []Value {
	key := [2]string{content, language}
	values, ok := q.figures[key]
	if !ok {
		values = figuresOf(text.Head(content, maxClaim), language)
		q.figures[key] = values
	}
	return values
}

// noteAgreeing records that a sentence gives a figure of the claim in another form.
func (s *scorer) noteAgreeing(figure ibid.Span, sentence int) {
	for k := range s.claim.tokens {
		t := &s.claim.tokens[k]
		at := ibid.Span{Start: int(t.start) - s.claim.question, End: int(t.end) - s.claim.question}
		if s.claim.terms[t.term].weight > 0 && s.counts[t.term] == 0 && contains(figure, at) {
			s.agreements = append(s.agreements, agreement{t.term, sentence})
		}
	}
}

// contains reports whether s begins inside in.
func contains(in, s ibid.Span) bool { return s.Start >= in.Start && s.Start < in.End }

func isEvidence(s Span, evidence []Span) bool {
	return slices.ContainsFunc(evidence, func(e Span) bool {
		return e.Passage == s.Passage && s.Start < e.End && e.Start < s.End
	})
}
