package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	calls "github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxHeading is the maximum number of characters of a question in a page's heading.
	maxHeading = 120
	// maxQuestion is the maximum number of bytes of a question that are shown.
	maxQuestion = 16 << 10
	// maxMarked is the maximum number of citations marked on a stretch of text; further claims over the same words are
	// not marked.
	maxMarked = 16
)

// answer shows one answer.
func (p *Page) answer(ctx context.Context, r *httpx.Request) (*view, error) {
	call, err := p.call(ctx, r.Who.Tenant, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	o, err := p.optionsFor(ctx, r, call)
	if err != nil {
		return nil, err
	}
	body := p.answerView(r.Context(), call, o) //nolint:contextcheck // it may take longer than ctx
	if p.isPasted(call) {
		body.Pasted = answerURL(call.AnswerID) + "/keep"
	}
	body.Tabs = tabsOf(call.AnswerID, call.Run, p.stepsIn(ctx, r.Who.Tenant, call.Run), "answer")
	return &view{Name: "answer", Title: body.Heading, Body: body}, nil
}

// optionsFor returns how an answer is shown on its own page.
func (p *Page) optionsFor(ctx context.Context, r *httpx.Request, call *store.Call) (*answerOptions, error) {
	feedback, err := p.feedbackOf(ctx, r.Who.Tenant, call.AnswerID)
	if err != nil {
		return nil, err
	}
	known, err := p.trustOf(ctx, r, call)
	if err != nil {
		return nil, err
	}
	return &answerOptions{feedback: feedback, readOnly: !mayWrite(r) || p.isPasted(call), trust: known}, nil
}

// call returns a tenant's answer: from the gateway until the store has it, or
// one that was pasted.
func (p *Page) call(ctx context.Context, tenant, id string) (*store.Call, error) {
	if why := gateway.CheckID(id); why != "" {
		return nil, httpx.BadRequest("The id of an answer "+why+".", "")
	}
	if call, ok := p.captured.Captured(tenant, id); ok {
		return call, nil
	}
	if call := p.pasted.find(tenant, id); call != nil {
		return call, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	call, err := p.o.Store.Call(ctx, tenant, id)
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	return call, nil
}

// callOf returns the answer that the {id} of a path names.
func (p *Page) callOf(ctx context.Context, r *httpx.Request) (*store.Call, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	return p.call(ctx, r.Who.Tenant, id)
}

// answerOptions say how an answer is shown on a page. Nil shows it alone, and as it was stored.
type answerOptions struct {
	numbering *ibid.Numbering // of the conversation's sources; nil numbers from 1
	prefix    string          // prefix of all ids of this answer on the page: letters, digits, hyphens
	live      bool            // it is still arriving
	checking  bool            // its sources are being read for the first time
	readOnly  bool            // its reader may not give feedback
	strip     bool            // its sources are a strip of tiles that opens
	feedback  *answerFeedback // feedback on it; nil if there is none
	trust     *trust          // what else is known of it; nil for nothing, which also leaves out the summary line
	unfolded  int             // the place of the source whose row has all of its uses, from 1; 0 for none
	sentences *answerText     // sentences of the run that led to it, to be marked with what they rest on; nil for none
}

// answerView is an answer as templates/parts/answer.html shows it.
type answerView struct {
	*store.Call

	Prefix   string // of the ids on the page
	Heading  string // the question, shortened; never empty
	Question string // the last question in full, if the heading does not have all of it
	Text     template.HTML
	Notices  []notice // what a reader must know before reading
	Cited    []*sourceView
	Uncited  []*sourceView
	Lost     []*useView // citations whose sources are not among the answer's
	Live     bool
	Tabs     *answerTabs // the pages about it; nil if it is not alone on its page
	Pasted   string      // where its reader can have it stored; empty if it is not a pasted answer
	Strip    bool        // the sources are a strip of tiles that opens
	Said     int         // how much feedback people gave on it
	Trust    *trustView
	Worst    standing // of the cited sources, if something is wrong or differs; else the zero value
	Worse    int      // how many of them have it
	Samples  []string // questions that a demonstration can answer with sources, if this answer has none
	AskFor   string   // what the request needs for sources to be named; empty if some are, or if that is not known
}

// IsDense reports whether more than a third of the text is cited: underlining all of it would mark nothing.
func (v *answerView) IsDense() bool {
	cited, end := 0, 0
	for _, span := range citedSpans(v.Answer) {
		cited += max(0, span.End-max(span.Start, end))
		end = max(end, span.End)
	}
	return 3*cited > len(v.Answer.Text)
}

// citedSpans returns the words that the citations of an answer rest on, in the order of the text.
func citedSpans(a *ibid.Answer) []ibid.Span {
	spans := make([]ibid.Span, 0, len(a.Citations))
	for i := range a.Citations {
		spans = append(spans, cmp.Or(a.Citations[i].Claim, a.Citations[i].Span))
	}
	slices.SortFunc(spans, func(a, b ibid.Span) int { return cmp.Compare(a.Start, b.Start) })
	return spans
}

// Dir returns the direction of the text.
func (v *answerView) Dir() string { return direction(v.Answer.Text) }

// caution returns what is wrong with the citations, to follow the words on how an answer ended; empty if nothing is
// known to be.
func (v *answerView) caution() string {
	if v.Worst.Word == "" {
		return ""
	}
	return ": " + strconv.Itoa(v.Worse) + " " + v.Worst.Word + "."
}

// Menus returns the answer's export menus: in a conversation only the one that cites its sources, if it has any.
func (v *answerView) Menus() []exportMenu {
	all := exportMenus(answerURL(v.AnswerID)+"/export", true)
	if len(v.Cited) == 0 {
		all = all[:1]
	}
	if v.Strip {
		all = all[1:]
	}
	return all
}

// notice is a sentence above an answer, with the kind of its icon and colour: see [badge].
type notice struct {
	Kind, Text string
	Links      []exportLink // nil if there are none
}

// answerView lays an answer out for its template.
func (p *Page) answerView(ctx context.Context, call *store.Call, o *answerOptions) *answerView {
	if o == nil {
		o = &answerOptions{}
	}
	if !o.live && !call.Answer.Complete {
		shown := *call
		shown.Answer = withoutOpenLink(call.Answer)
		call = &shown
	}
	v := &answerView{Call: call, Prefix: o.prefix, Live: o.live, Strip: o.strip, Notices: notices(call.Answer, o.live)}
	v.Heading, v.Question = heading(call.Prompt)
	if o.feedback != nil {
		v.Said = o.feedback.words
	}
	l := p.layOut(ctx, call, o)
	if ctx.Err() != nil {
		return v
	}
	if len(call.Answer.Sources) == 0 && !o.live && call.Answer.Complete {
		if p.o.Demo != nil {
			v.Samples = p.o.Demo.Questions
		}
		v.AskFor = calls.AskForSources(cmp.Or(call.Answer.Provider, call.Upstream))
	}
	v.Text = l.text
	v.Notices = append(v.Notices, l.changeNotices()...)
	v.Trust = l.trustLine()
	v.Cited, v.Uncited, v.Lost = l.list()
	for _, s := range v.Cited {
		switch one := &s.Standing; {
		case one.wrongClass() == "":
		case v.Worst.Word == "" || one.rank() < v.Worst.rank():
			v.Worst, v.Worse = *one, 1
		case one.Word == v.Worst.Word:
			v.Worse++
		}
	}
	return v
}

// heading returns the last question as a heading, and in full if the heading does not have all of it.
func heading(prompt []store.Message) (short, full string) {
	for _, m := range slices.Backward(prompt) {
		if m.Role != store.RoleUser || strings.TrimSpace(m.Text) == "" {
			continue
		}
		full = strings.TrimSpace(strings.ToValidUTF8(m.Text, "\uFFFD"))
		asked := passage.Question(full)
		if len(full) > maxQuestion {
			full = text.Head(full, maxQuestion) + " …"
		}
		short = text.Shorten(line(asked), maxHeading)
		if short == full {
			full = ""
		}
		return short, full
	}
	return "An answer", ""
}

// endings are the notices on how an answer ended.
var endings = map[ibid.Finish]notice{
	ibid.FinishLength:  {Kind: badgeClose, Text: "The answer was cut off at its maximum length."},
	ibid.FinishRefusal: {Kind: badgeLost, Text: "The model refused to answer."},
	ibid.FinishFilter:  {Kind: badgeLost, Text: "A filter of the provider stopped the answer."},
	ibid.FinishTool:    {Kind: badgeNone, Text: "This is not the end: the model is waiting for the result of a tool."},
	ibid.FinishError:   {Kind: badgeBad, Text: "The answer ended with an error."},
}

// notices returns what is wrong with an answer.
func notices(a *ibid.Answer, live bool) []notice {
	var all []notice
	ending, ended := endings[a.Finish]
	if a.Error != nil {
		all = append(all, notice{
			Kind: badgeBad,
			Text: "The provider answered with an error: " + text.Shorten(line(a.Error.Error()), maxHeading),
		})
		ended = ended && a.Finish != ibid.FinishError
	}
	if ended {
		all = append(all, ending)
	}
	switch {
	case live:
	case isStopped(a):
		all = append(all, notice{Kind: badgeNone, Text: "The answer was stopped. This is what had arrived."})
	case !a.Complete && a.Error == nil:
		all = append(all, notice{Kind: badgeClose, Text: "The answer broke off. This is what had arrived."})
	case a.Text == "" && len(all) == 0:
		all = append(all, notice{Kind: badgeNone, Text: "The answer has no text."})
	}
	if n := len(a.Alternatives); n > 0 {
		others := counted(n, "other answer", "other answers")
		all = append(all, notice{
			Kind: badgeNone, Text: "The provider sent " + others + " to the same question. The JSON has them.",
		})
	}
	return all
}

// isStopped reports whether the client stopped an answer before it ended.
func isStopped(a *ibid.Answer) bool {
	wasStopped := func(is ibid.Issue) bool { return is.Code == gateway.IssueStopped }
	return !a.Complete && slices.ContainsFunc(a.Issues, wasStopped)
}

// layout is an answer being laid out for its template.
type layout struct {
	*answerOptions

	call    *store.Call
	answer  *ibid.Answer
	weighed *weighed
	// standings are those of the citations, which their chips show.
	standings []standing
	text      template.HTML
	sources   []*sourceView  // as in Answer.Sources
	index     map[string]int // of those, by their id
	ids       []string       // of citations, as written in attributes
	places    []*chip        // by citation: the first chip it is in; nil if it is in none
	chips     []*chip        // in the order of the text
	merges    bool           // neighbouring chips of the same sources become one
	links     []string       // where the chips of each source lead, by its index; empty for its row in the list
	quoted    int            // bytes of quotes laid out so far
	views     *template.Template
	badges    map[badge]template.HTML
}

// layOut renders the text of an answer, with its sources numbered as in the answer's document.
func (p *Page) layOut(ctx context.Context, call *store.Call, o *answerOptions) *layout {
	a := call.Answer
	l := &layout{
		answerOptions: o, call: call, answer: a, index: map[string]int{}, places: make([]*chip, len(a.Citations)),
		views: p.views["answer"], badges: map[badge]template.HTML{}, weighed: &weighed{},
	}
	if !o.live {
		var found excerpts
		if o.trust != nil {
			found = o.trust.found
		}
		l.weighed = p.weighings.of(ctx, call, found)
	}
	numbering := o.numbering
	if numbering == nil {
		numbering = &ibid.Numbering{}
	}
	doc := a.Document(&ibid.DocumentOptions{Bare: true, Numbering: numbering, Context: ctx})
	if ctx.Err() != nil {
		return l // its reader has left, or it takes too long: nothing of it is sent
	}
	for i := range a.Sources {
		l.sources = append(l.sources, l.sourceView(i, &doc.Sources[i]))
	}
	for i, source := range slices.Backward(a.Sources) { // of two with the same id the first counts
		l.index[source.ID] = i
	}
	l.setStandings()
	for i := range a.Citations {
		l.ids = append(l.ids, token(a.Citations[i].ID))
	}
	all := maps.Clone(*numbering) // the placeholder for a missing source takes no number
	shown, how := a, &ibid.RenderOptions{
		IDPrefix: o.prefix, Numbering: &all, Marker: l.writeChip, Cited: l.markClaim, Context: ctx,
	}
	switch {
	case o.sentences != nil:
		o.sentences.applyStandings(l)
		o.sentences.open()
		o.sentences.link(l)
		shown = o.sentences.mark(l, how)
	case l.shownClass(wordBare) != "":
		shown = l.withBare()
	}
	l.merges = !o.live && !o.strip && o.sentences == nil // else words that are shown already would move
	l.text = l.withChips(renderedHTML(shown, how))
	return l
}

// setStandings sets the standings of all citations.
func (l *layout) setStandings() {
	l.standings = make([]standing, len(l.answer.Citations))
	web := webSourcesOf(l.answer)
	for i := range l.answer.Citations {
		c := &l.answer.Citations[i]
		claim := reportOf(l.weighed.claims, i)
		var last *verdict
		if l.feedback != nil {
			if v, ok := l.feedback.last[c.ID]; ok {
				last = &v
			}
		}
		l.standings[i] = standingOf(c, web, claim, last)
		if l.trust == nil || l.standings[i].Kind != badgeBad {
			continue
		}
		for k := range l.trust.pins[c.ID] {
			if change := changeOf(&l.trust.pins[c.ID][k]); change != nil && change.Is != "" {
				l.standings[i].Note = "now " + text.Shorten(line(change.Is), maxNote)
				break
			}
		}
	}
}

// bareID is the id of the placeholder source of sentences that have none.
const bareID = "\x00no source"

// withBare returns the answer with a citation of the placeholder for each sentence without a source, so that they are
// marked and followed by a sign. Only a reader who filtered for them gets that: they may be most of a text.
func (l *layout) withBare() *ibid.Answer {
	if len(l.weighed.bare) == 0 {
		return l.answer
	}
	a := *l.answer
	a.Sources = append(slices.Clone(a.Sources), ibid.Source{ID: bareID, Kind: ibid.DocumentKind, Title: wordBare})
	a.Citations = slices.Clone(a.Citations)
	for _, s := range l.weighed.bare {
		a.Citations = append(a.Citations, ibid.Citation{
			Span: s, Claim: s, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact, Refs: []ibid.Ref{{Source: bareID}},
		})
	}
	return &a
}

// renderedHTML returns an answer's text as HTML. The callbacks of the options must return HTML from templates. Wide
// code can be scrolled by keyboard.
func renderedHTML(a *ibid.Answer, o *ibid.RenderOptions) template.HTML {
	o.Style = ibid.StyleHTML
	return trustedHTML(strings.ReplaceAll(a.Render(o), "<pre>", `<pre tabindex="0">`))
}

// trustedHTML marks HTML as safe that ibid rendered, whatever the answer contains, or that a template made. Anything
// else put into a page is escaped.
func trustedHTML(rendered string) template.HTML {
	return template.HTML(rendered) //nolint:gosec // see above
}

// token returns an id as one word of an attribute that lists ids.
func token(id string) string {
	if !strings.ContainsFunc(id, unicode.IsSpace) {
		return id
	}
	return strings.Join(strings.Fields(id), "_")
}

// execute returns the output of a template. If it fails the output is empty; the templates executed here cannot fail.
func (l *layout) execute(name string, data any) string {
	var b strings.Builder
	if l.views.ExecuteTemplate(&b, name, data) != nil {
		return ""
	}
	return b.String()
}

// badge returns a badge as HTML. They are cached, because thousands of citations share a few.
func (l *layout) badge(b badge) template.HTML {
	html, ok := l.badges[b]
	if !ok {
		html = trustedHTML(l.execute("badge", b))
		l.badges[b] = html
	}
	return html
}

// markClaim returns the tags around words that are cited.
func (l *layout) markClaim(citations []int) (before, after string) {
	var ids []string
	var here standingSet
	for _, c := range citations[:min(len(citations), maxMarked)] {
		if c < len(l.ids) { // else it is a sentence without a source
			ids = append(ids, l.ids[c])
			here.add(&l.standings[c])
		}
	}
	if len(ids) == 0 {
		return `<span class="bare` + l.shownClass(wordBare) + `" data-s="` + slug(wordBare) + `">`, "</span>"
	}
	return `<mark class="claim` + here.worst.wrongClass() + l.shownClass(here.words...) + `"` + here.attribute() +
		` data-cites="` + template.HTMLEscapeString(strings.Join(ids, " ")) + `">`, "</mark>"
}

// shownClass returns the class, after a space, for what the reader filtered for; empty if nothing or something else is.
func (l *layout) shownClass(words ...string) string {
	if l.trust != nil && slices.ContainsFunc(words, func(word string) bool { return l.trust.show == slug(word) }) {
		return " shown"
	}
	return ""
}

// standingSet collects the standings of the citations at one place. The zero value is empty.
type standingSet struct {
	worst standing
	words []string // each once
}

func (a *standingSet) add(s *standing) {
	if !slices.Contains(a.words, s.Word) {
		a.words = append(a.words, s.Word)
	}
	a.worst.worsen(s)
}

// attribute returns them as the attribute data-s, after a space. What was not checked, and nothing else, has none:
// thousands of elements of a page may be so.
func (a *standingSet) attribute() string {
	if len(a.words) == 1 && a.words[0] == wordUnchecked {
		return ""
	}
	all := make([]string, 0, len(a.words))
	for _, word := range a.words {
		all = append(all, slug(word))
	}
	return ` data-s="` + strings.Join(all, " ") + `"`
}

// wrongClass returns the class, after a space, of words marked as wrong or differing; empty if neither.
func (s *standing) wrongClass() string {
	if s.Kind == badgeBad || s.Kind == badgeClose {
		return " " + s.Kind
	}
	return ""
}
