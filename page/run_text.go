package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// sentencePrefix begins the ids of the sources that represent sentences while the final answer is rendered. No real
// source has such an id.
const sentencePrefix = "\x00sentence "

// addAnswer adds the final answer as on an answer's own page, with a mark after each sentence that names the steps
// which concluded it, and adds to passages and steps the sentences that rest on them.
func (p *Page) addAnswer(ctx context.Context, b *runBody, o *answerOptions) {
	final := b.Run.Final
	if final == nil || final.Text == "" {
		if b.Run.Answer == "" {
			return
		}
		final = &ibid.Answer{Text: b.Run.Answer, Complete: true, Parts: []ibid.Part{
			{Span: ibid.Span{End: len(b.Run.Answer)}, Kind: ibid.AnswerPart},
		}}
	}
	a := &answerText{chosen: b.chosen, text: final.Text, docs: b.all}
	b.Answer = a
	for i := range b.Links.Sentences {
		s := &b.Links.Sentences[i]
		if i == maxShownSentences {
			a.Left = len(b.Links.Sentences) - i
			break
		}
		if s.Span.Start < 0 || s.Span.Start >= s.Span.End || s.Span.End > len(final.Text) {
			continue
		}
		v := b.sentence(i+1, s)
		v.Words = final.Text[s.Span.Start:s.Span.End]
		a.Sentences = append(a.Sentences, v)
	}
	o.sentences = a
	a.View = p.answerView(ctx, &store.Call{AnswerID: b.Run.FinalID(), Run: b.ID, Answer: final}, o)
	for _, s := range slices.Concat(a.View.Cited, a.View.Uncited) {
		if a.apart[s.N-1] {
			a.Apart = append(a.Apart, s)
		}
	}
}

// applyStandings gives the passages that a layout's citations name the standings of these, so that they show the same
// as the chips.
func (a *answerText) applyStandings(l *layout) {
	for i := range l.answer.Citations {
		c, s := &l.answer.Citations[i], l.standings[i]
		for _, sentence := range a.Sentences {
			if at := cmp.Or(c.Claim, c.Span); at.Start >= sentence.Span.End || at.End <= sentence.Span.Start {
				continue
			}
			for _, r := range sentence.Rests {
				source := r.citedBy(c, l.answer)
				if source == nil {
					continue
				}
				at := l.index[source.ID]
				r.Open, r.Saved = cmp.Or(r.Open, source.URL), l.savedCopy(at)
				if l.call.AnswerID != "" {
					r.Panel = panelURL(l.call.AnswerID, at+1)
				}
				r.standing.worsen(&s)
				for _, passage := range r.passages() {
					passage.standing.worsen(&s)
				}
			}
		}
	}
}

// link points the chips of a layout to the documents of the run that are shown, and records the sources that have none.
func (a *answerText) link(l *layout) {
	l.links, a.apart = make([]string, len(l.answer.Sources)), make([]bool, len(l.answer.Sources))
	// Tables, because there may be thousands of both. If two documents are the same source, the first counts.
	byKey, byAddress := map[string]*documentView{}, map[string]*documentView{}
	for _, d := range slices.Backward(a.docs) {
		byKey[d.Key], byAddress[cleanAddress(d.URL)] = d, d
	}
	delete(byKey, "")
	delete(byAddress, "")
	for i := range l.answer.Sources {
		source := &l.answer.Sources[i]
		switch d := cmp.Or(byKey[source.Key()], byAddress[cleanAddress(source.URL)]); {
		case d == nil:
			a.apart[i] = true // it has a row of its own
		case d.Shown:
			l.links[i] = "#source-" + strconv.Itoa(d.N)
		default:
			l.links[i] = "#sources"
		}
	}
}

// citedBy returns the source through which a citation of an answer names the passage; nil if it does not name it.
func (v *restView) citedBy(c *ibid.Citation, answer *ibid.Answer) *ibid.Source {
	if v.Reason != trail.ReasonCitation {
		return nil
	}
	for _, ref := range c.Refs {
		source := answer.Source(ref.Source)
		switch {
		case source == nil:
		case v.Doc == nil && v.DocumentID == source.ID, v.Doc != nil && isSame(v.Doc.SummarySource, source):
			return source
		}
	}
	return nil
}

// open opens the explanation of the chosen sentence. If nothing was chosen, it opens the first sentence with a wrong
// passage, else the first with any, and marks what it rests on.
func (a *answerText) open() {
	c := a.chosen
	for _, s := range a.Sentences { // those that rest on the chosen step or passage
		s.Opened = s.Related && c.Sentence == 0
	}
	for _, isWanted := range []func(*sentenceView) bool{
		func(s *sentenceView) bool { return s.Chosen },
		func(s *sentenceView) bool { return c == chosen{} && slices.ContainsFunc(s.Rests, (*restView).isWrong) },
		func(s *sentenceView) bool { return c == chosen{} && len(s.Rests) > 0 },
	} {
		if at := slices.IndexFunc(a.Sentences, isWanted); at >= 0 {
			s := a.Sentences[at]
			s.Opened, s.Related, s.Preset = true, !s.Chosen, c == chosen{}
			for _, r := range s.Rests {
				for _, passage := range r.passages() {
					passage.Related = !passage.Chosen
				}
			}
			return
		}
	}
}

// bare returns the number of sentences without a source.
func (a *answerText) bare() int {
	n := 0
	for _, s := range a.Sentences {
		if s.NoSources() {
			n++
		}
	}
	return n
}

// mark returns the answer of a layout with its sentences as citations of sources that represent them, and sets the
// callbacks that render these as marks.
func (a *answerText) mark(l *layout, how *ibid.RenderOptions) *ibid.Answer {
	marked, cited := *l.answer, len(l.answer.Citations)
	marked.Sources, marked.Citations = slices.Clone(l.answer.Sources), slices.Clone(l.answer.Citations)
	byID := map[string]*sentenceView{}
	for _, s := range a.Sentences {
		id := sentencePrefix + strconv.Itoa(s.N)
		byID[id] = s
		marked.Sources = append(marked.Sources, ibid.Source{ID: id, Kind: ibid.DocumentKind})
		marked.Citations = append(marked.Citations, ibid.Citation{
			ID: id, Span: s.Span, Claim: s.Span, Covers: ibid.CoversClaim, Refs: []ibid.Ref{{Source: id}},
			Anchor: ibid.AnchorExact, Origin: ibid.OriginInferred,
		})
	}
	begun := map[int]bool{} // sentences whose first words, which have the id, are written
	how.Marker = func(m ibid.Marker) string {
		var ties strings.Builder
		cited := m.Items[:0:0]
		for _, item := range m.Items {
			if s := byID[item.Source.ID]; s != nil {
				s.Shown = l.shownClass(wordBare) != ""
				ties.WriteString(l.execute("tie", s))
			} else {
				cited = append(cited, item)
			}
		}
		if m.Items = cited; len(cited) == 0 {
			return ties.String()
		}
		return l.execute("held", trustedHTML(l.writeChip(m)+ties.String()))
	}
	how.Cited = func(citations []int) (before, after string) {
		var claims []int
		for _, c := range citations {
			if c < cited {
				claims = append(claims, c)
				continue
			}
			s := a.Sentences[c-cited]
			before += s.tag(!begun[s.N], l.shownClass(wordBare))
			after += "</span>"
			begun[s.N] = true
		}
		if len(claims) > 0 {
			open, end := l.markClaim(claims)
			before, after = before+open, end+after
		}
		return before, after
	}
	return &marked
}

// tag returns the start tag around words of the sentence. The first one has the id; shown is the class of sentences
// without a source.
func (v *sentenceView) tag(first bool, shown string) string {
	class, id := "sentence", ""
	if v.Chosen {
		class += " chosen"
	}
	if v.Related {
		class += " related"
	}
	if first {
		id = fmt.Sprintf(` id="sentence-%d"`, v.N)
	}
	if v.NoSources() {
		class, id = class+" bare"+shown, id+` data-s="`+slug(wordBare)+`"`
	}
	return fmt.Sprintf(
		`<span class="%s"%s data-n="%d" data-steps="%s" data-passages="%s">`, class, id, v.N, joinNumbers(v.Steps),
		joinNumbers(v.Named),
	)
}

// trace is the place of a step on the time axis of its run, in thousandths.
type trace struct{ From, Length int }

// traces returns the place of each step: from when it began, if known, else after the steps that it builds on. axis is
// the length of the time axis, in microseconds: that of the run; 0 if no step has a duration.
func traces(t *trail.Trail) (all []trace, axis int64) {
	begins, ends := make([]int64, len(t.Steps)), make([]int64, len(t.Steps))
	first := t.Started
	for i := range t.Steps {
		if at := t.Steps[i].Started; !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	total, before := int64(0), t.Graph()
	for i := range t.Steps {
		s := &t.Steps[i]
		if !s.Started.IsZero() {
			begins[i] = s.Started.Sub(first).Microseconds()
		}
		for _, k := range before[i] {
			if k < i && (s.Started.IsZero() || t.Steps[k].Started.IsZero()) { // one of the two has no start time
				begins[i] = max(begins[i], ends[k])
			}
		}
		ends[i] = begins[i] + max(0, s.Duration.Microseconds())
		total = max(total, ends[i])
	}
	if total == 0 {
		return make([]trace, len(t.Steps)), 0
	}
	axis = max(total, runTime(t).Microseconds())
	const whole = 1000
	for i := range t.Steps {
		from := int(begins[i] * whole / axis)
		length := max(int((ends[i]-begins[i])*whole/axis), 4) // so that short steps are visible
		all = append(all, trace{min(from, whole-length), length})
	}
	return all, axis
}
