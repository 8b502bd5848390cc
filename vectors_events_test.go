package ibid_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
)

// eventLines formats events, one per line. Consecutive text deltas are not merged.
//
//	text 12 "dry."                                      text added at byte 12
//	part 12:30 answer 1/0                               part 0 of message 1 begins; with a text, it was corrected
//	source file-1 file "tides.txt"                      id, kind, title (or another name)
//	citation 0/0/0 [12:16] link exact claim [0:11]? file-1 web:0    key, span, covers, anchor, claim (? if inferred), sources
//	citation 0/0/0 withdrawn
//	query "tide tables"
//	display google-search-suggestions "<b>…"
//	issue span-moved "10–61"
//	answer complete stop
//
// Events of candidates other than 0 begin with the number: #1 text 0 "…".
func eventLines(events []ibid.Event) string {
	var b strings.Builder
	for i := range events {
		e := &events[i]
		if e.Candidate != 0 {
			fmt.Fprintf(&b, "#%d ", e.Candidate)
		}
		b.WriteString(string(e.Kind))
		switch e.Kind {
		case ibid.EventText:
			fmt.Fprintf(&b, " %d %q", e.At, e.Text)
		case ibid.EventPart:
			fmt.Fprintf(&b, " %d:%d %s %d/%d", e.Part.Start, e.Part.End, e.Part.Kind, e.Part.Message, e.Part.Content)
			if e.Text != "" {
				fmt.Fprintf(&b, " %q", e.Text)
			}
		case ibid.EventSource:
			fmt.Fprintf(&b, " %s %s %q", e.Source.ID, e.Source.Kind, cmp.Or(e.Source.Title, e.Source.URL, e.Source.Filename, e.Source.Content))
		case ibid.EventCitation:
			b.WriteString(" " + strconv.Quote(e.Key))
			if e.Withdrawn {
				b.WriteString(" withdrawn")
			} else {
				b.WriteString(citationLine(e.Citation))
			}
		case ibid.EventActivity:
			b.WriteString(activityLine(e))
		case ibid.EventQuery:
			fmt.Fprintf(&b, " %q", e.Query)
		case ibid.EventDisplay:
			fmt.Fprintf(&b, " %s %q", e.Display.Kind, e.Display.HTML)
		case ibid.EventIssue:
			fmt.Fprintf(&b, " %s %q", e.Issue.Code, e.Issue.Detail)
		case ibid.EventAnswer:
			if e.Answer.Complete {
				b.WriteString(" complete")
			}
			b.WriteString(" " + string(e.Answer.Finish))
		}
		out := strings.TrimRight(b.String(), " ")
		b.Reset()
		b.WriteString(out + "\n")
	}
	return b.String()
}

// activityLine formats the activity of an event, with only the length of an output.
func activityLine(e *ibid.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, " %d", e.Index)
	if a := e.Activity; a != nil {
		fmt.Fprintf(&b, " %s %d", a.Kind, a.At)
		if a.Kind == ibid.ToolActivity {
			fmt.Fprintf(&b, " %s %s server=%t %s", a.ID, a.Name, a.Server, a.Input)
		}
		if a.Output != nil {
			fmt.Fprintf(&b, " output %d", len(a.Output))
		}
		if a.Error != "" {
			fmt.Fprintf(&b, " error %q", a.Error)
		}
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " %q", e.Text)
	}
	return b.String()
}

// citationLine formats a citation without its key.
func citationLine(c *ibid.Citation) string {
	var b strings.Builder
	if c.Placed() {
		fmt.Fprintf(&b, " [%d:%d]", c.Span.Start, c.Span.End)
	}
	fmt.Fprintf(&b, " %s %s", c.Covers, c.Anchor)
	if c.Placed() && (c.ClaimInferred || c.Claim != c.Span) {
		fmt.Fprintf(&b, " claim [%d:%d]", c.Claim.Start, c.Claim.End)
		if c.ClaimInferred {
			b.WriteString("?")
		}
	}
	for _, ref := range c.Refs {
		b.WriteString(" " + ref.Source)
	}
	return b.String()
}

// checkEvents checks that the events of a reading add up to its answer.
func checkEvents(t *testing.T, what string, r *reading) {
	t.Helper()
	if n := len(r.events); n == 0 || r.events[n-1].Kind != ibid.EventAnswer {
		t.Errorf("%s: the last event is not the answer", what)
		return
	}
	l := listener{
		t: t, what: what, texts: map[int]string{}, parts: map[int][]ibid.Part{}, sources: map[string]*ibid.Source{},
		citations: map[int]map[string]*ibid.Citation{}, done: map[int][]ibid.Activity{},
	}
	for i := range r.events {
		l.hear(i, &r.events[i])
	}
	last := r.events[len(r.events)-1].Answer
	if diff := gocmp.Diff(r.answer, last); diff != "" {
		t.Errorf("%s: the last event's answer differs (-answer +event):\n%s", what, diff)
	}
	l.compare(r.answer)
}

// listener collects the contents of events.
type listener struct {
	t         *testing.T
	what      string
	texts     map[int]string
	parts     map[int][]ibid.Part
	sources   map[string]*ibid.Source
	citations map[int]map[string]*ibid.Citation
	done      map[int][]ibid.Activity
	queries   []string
	display   []ibid.Display
	issues    []ibid.Issue
}

func (l *listener) hear(i int, e *ibid.Event) {
	l.t.Helper()
	place := fmt.Sprintf("%s: event %d (%s)", l.what, i, e.Kind)
	text := l.texts[e.Candidate]
	switch e.Kind {
	case ibid.EventText:
		if e.At != len(text) || e.Text == "" || !utf8.ValidString(e.Text) {
			l.t.Errorf("%s: %q at %d, after %d bytes", place, e.Text, e.At, len(text))
		}
		l.texts[e.Candidate] += e.Text
	case ibid.EventPart:
		l.hearPart(place, e, text)
	case ibid.EventSource:
		l.sources[e.Source.ID] = e.Source
	case ibid.EventCitation:
		l.hearCitation(place, e, text)
	case ibid.EventActivity:
		l.hearActivity(place, e, text)
	case ibid.EventQuery:
		l.queries = append(l.queries, e.Query)
	case ibid.EventDisplay:
		l.display = append(l.display, *e.Display)
	case ibid.EventIssue:
		l.issues = append(l.issues, *e.Issue)
	case ibid.EventAnswer:
	default:
		l.t.Errorf("%s: unknown kind", place)
	}
}

// hearPart handles a part that begins, or the corrected text of one, which replaces its text.
func (l *listener) hearPart(place string, e *ibid.Event, text string) {
	l.t.Helper()
	parts := l.parts[e.Candidate]
	i := slices.IndexFunc(parts, func(p ibid.Part) bool {
		return p.Kind == e.Part.Kind && p.Message == e.Part.Message && p.Content == e.Part.Content && p.Start == e.Part.Start
	})
	if e.Text == "" && (i < 0 || e.Part.Start == len(text)) {
		if e.Part.Start != len(text) || e.Part.Len() != 0 {
			l.t.Errorf("%s: %d to %d begins after %d bytes", place, e.Part.Start, e.Part.End, len(text))
		}
		l.parts[e.Candidate] = append(parts, *e.Part)
		return
	}
	if i < 0 || e.Part.Len() != len(e.Text) || e.At != e.Part.Start {
		l.t.Errorf("%s: %q at %d does not fill a part from %d to %d", place, e.Text, e.At, e.Part.Start, e.Part.End)
		return
	}
	end := len(text)
	if i+1 < len(parts) {
		end = parts[i+1].Start
	}
	l.texts[e.Candidate] = text[:e.At] + e.Text + text[end:]
	for k := i + 1; k < len(parts); k++ {
		parts[k].Start += e.Part.End - end
	}
}

// hearActivity handles an activity that begins or continues: reasoning is the sum of its events.
func (l *listener) hearActivity(place string, e *ibid.Event, text string) {
	l.t.Helper()
	list := l.done[e.Candidate]
	begins := e.Activity != nil && e.Index == len(list)
	switch {
	case begins:
		if e.Activity.At != len(text) {
			l.t.Errorf("%s: the activity begins at %d, after %d bytes", place, e.Activity.At, len(text))
		}
		list = append(list, *e.Activity)
	case e.Index >= len(list) || e.Activity == nil && e.Text == "":
		l.t.Errorf("%s: %d of %d", place, e.Index, len(list))
		return
	case e.Activity != nil:
		list[e.Index] = *e.Activity
	}
	if a := &list[e.Index]; a.Kind == ibid.ReasoningActivity {
		a.Text += e.Text
	}
	l.done[e.Candidate] = list
}

func (l *listener) hearCitation(place string, e *ibid.Event, text string) {
	l.t.Helper()
	known := l.citations[e.Candidate]
	if known == nil {
		known = map[string]*ibid.Citation{}
		l.citations[e.Candidate] = known
	}
	if e.Key == "" {
		l.t.Errorf("%s: no key", place)
	}
	if e.Withdrawn {
		if known[e.Key] == nil {
			l.t.Errorf("%s: withdrawn, but never announced", place)
		}
		delete(known, e.Key)
		return
	}
	known[e.Key] = e.Citation
	for _, ref := range e.Citation.Refs {
		if l.sources[ref.Source] == nil {
			l.t.Errorf("%s: the source %q was not announced", place, ref.Source)
		}
	}
	for _, s := range []ibid.Span{e.Citation.Span, e.Citation.Claim} {
		if s.Start < 0 || s.End < s.Start || s.End > len(text) ||
			!utf8.ValidString(text[:s.Start]) || !utf8.ValidString(text[s.Start:s.End]) {
			l.t.Errorf("%s: %d to %d is not a span of the %d bytes so far", place, s.Start, s.End, len(text))
		}
	}
}

func (l *listener) compare(a *ibid.Answer) {
	l.t.Helper()
	check := func(name string, got, want any) {
		l.t.Helper()
		if diff := gocmp.Diff(want, got); diff != "" {
			l.t.Errorf("%s: the events differ from the answer in %s (-answer +events):\n%s", l.what, name, diff)
		}
	}
	check("queries", l.queries, a.Queries)
	check("display", l.display, a.Display)
	check("issues", l.issues, a.Issues)
	if a.Text != "" || len(a.Citations) > 0 || len(a.Alternatives) == 0 { // else there may be no event of the answer itself
		l.compareCandidate(a, l.first())
	}
	told := []string{}
	for id := range l.sources {
		told = append(told, id)
	}
	all := sourceIDs(a)
	for _, other := range a.Alternatives {
		all = append(all, sourceIDs(other)...)
	}
	slices.Sort(told)
	slices.Sort(all)
	check("sources", told, slices.Compact(all))
	for i := range a.Sources {
		if s := l.sources[a.Sources[i].ID]; s != nil {
			check("source "+s.ID, s, &a.Sources[i])
		}
	}
}

func sourceIDs(a *ibid.Answer) []string {
	ids := []string{}
	for i := range a.Sources {
		ids = append(ids, a.Sources[i].ID)
	}
	return ids
}

// first returns the lowest candidate in events.
func (l *listener) first() int {
	heard := slices.Concat(
		slices.Collect(maps.Keys(l.parts)), slices.Collect(maps.Keys(l.citations)), slices.Collect(maps.Keys(l.done)))
	if len(heard) == 0 {
		return 0
	}
	return slices.Min(heard)
}

// compareCandidate compares the text and the citations of the answer itself.
func (l *listener) compareCandidate(a *ibid.Answer, candidate int) {
	l.t.Helper()
	if text := l.texts[candidate]; text != a.Text {
		l.t.Errorf("%s: the text of the events is %q, the answer's %q", l.what, text, a.Text)
	}
	heard := slices.Clone(l.done[candidate])
	for i := range heard { // a correction may have moved them
		if i < len(a.Activities) {
			heard[i].At = a.Activities[i].At
		}
	}
	if diff := gocmp.Diff(a.Activities, heard, cmpopts.EquateEmpty()); diff != "" {
		l.t.Errorf("%s: the events differ from the answer in activities (-answer +events):\n%s", l.what, diff)
	}
	want, got := []string{}, []string{}
	for i := range a.Citations {
		want = append(want, sortedCitationLine(&a.Citations[i]))
	}
	for _, c := range l.citations[candidate] {
		got = append(got, sortedCitationLine(c))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		l.t.Errorf("%s: the events differ from the answer in citations (-answer +events):\n%s", l.what, diff)
	}
}

// sortedCitationLine is citationLine with the refs in a fixed order: those of the answer are in the order of its
// sources.
func sortedCitationLine(c *ibid.Citation) string {
	sorted := *c
	sorted.Refs = slices.Clone(c.Refs)
	slices.SortFunc(sorted.Refs, func(x, y ibid.Ref) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Quote, y.Quote))
	})
	return citationLine(&sorted)
}
