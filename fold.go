package ibid

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/wire"
)

// fold turns the operations of one response into an Answer. It is the only code that converts units, checks spans
// against their words, merges sources and orders citations; see ARCHITECTURE.md.
type fold struct {
	limits  Limits
	onEvent func(Event)

	id, model, format, provider string
	formatFixed, providerFixed  bool
	created                     time.Time
	complete                    bool // the end mark was seen
	damaged                     bool // something of the response could not be read
	failure                     *ProviderError

	candidates []*candidate // by order of appearance; that with the lowest index is the answer
	last       *candidate   // the one that spoke last
	sources    sourceTable
	queries    []string
	tools      []ToolCall
	display    []Display
	issues     []Issue
	seenIssues map[Issue]bool
	metadata   map[string]json.RawMessage
	unknown    []byte // the JSON of what has no meaning here, with commas between
	metaSize   int
	broken     bool // the document that is read breaks off
	final      *Answer

	row   int // how many responses came before the one that is read, and
	first int // how many messages they had
}

func newFold(limits Limits, onEvent func(Event)) *fold {
	f := &fold{limits: limits, onEvent: onEvent}
	f.sources.fold = f
	return f
}

// op takes one operation.
func (f *fold) op(op *wire.Op) {
	if f.row > 0 {
		op = f.inRow(op)
	}
	if op.Kind == wire.Text { // nine of ten operations
		if c := f.candidate(op.Part.Candidate); c != nil {
			c.addText(op.Part, op.Text, op.ASCII)
		}
		return
	}
	switch op.Kind {
	case wire.Final, wire.PartBegin, wire.PartEnd, wire.MarkersOp, wire.Finish:
		if c := f.candidate(op.Part.Candidate); c != nil {
			c.op(op)
		}
	case wire.CiteOp:
		if c := f.candidate(op.Cite.Part.Candidate); c != nil {
			c.addCite(op.Cite)
		}
	case wire.Withdraw:
		for _, c := range f.candidates {
			c.withdraw(op.Name)
		}
	case wire.SourceOp:
		f.sources.add(op.Source)
	default:
		f.opResponse(op)
	}
}

// opResponse takes an operation that is about the response as a whole.
func (f *fold) opResponse(op *wire.Op) {
	switch op.Kind {
	case wire.Head:
		f.head(op.Name, op.More)
	case wire.Query:
		if q := validText(op.Name); !slices.Contains(f.queries, q) && f.room(len(f.queries), "queries") {
			f.queries = append(f.queries, q)
			f.emit(Event{Kind: EventQuery, Query: q})
		}
	case wire.Tool:
		f.addTool(ToolCall{ID: validText(op.Name), Name: validText(op.More)})
	case wire.Display:
		d := Display{Kind: op.Name, HTML: validText(op.More)}
		if !slices.Contains(f.display, d) && f.room(len(f.display), "things to display") {
			f.display = append(f.display, d)
			f.emit(Event{Kind: EventDisplay, Display: &d})
		}
	case wire.End:
		f.complete = true
	case wire.Error:
		f.failure = &ProviderError{Code: validText(op.Name), Message: validText(op.More)}
		f.failed()
	case wire.Issue:
		f.issue(op.Name, op.More)
		if len(op.Raw) > 0 {
			f.keepUnknown(op.Raw)
		}
	case wire.Meta:
		f.meta(validText(op.Name), op.Raw)
	default: // about one candidate
	}
}

func (f *fold) head(field, value string) {
	set := func(s *string, fixed bool) {
		if value != "" && !fixed {
			*s = validText(value)
		}
	}
	switch field {
	case wire.HeadID:
		set(&f.id, false)
	case wire.HeadModel:
		set(&f.model, false)
	case wire.HeadFormat:
		set(&f.format, f.formatFixed && f.format != "")
	case wire.HeadProvider:
		set(&f.provider, f.providerFixed)
	case wire.HeadCreated:
		if t, ok := parseTime(value); ok {
			f.created = t
		}
	}
}

// parseTime reads RFC 3339 or Unix seconds.
func parseTime(s string) (time.Time, bool) {
	if len(s) > 4 && s[4] == '-' { // else it is no date, which time.Parse says at the cost of an error
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t.UTC(), true
		}
	}
	if sec, err := strconv.ParseFloat(s, 64); err == nil && sec > 0 && sec < 1<<40 {
		return time.Unix(int64(sec), 0).UTC(), true
	}
	return time.Time{}, false
}

// setGeneric says that no provider's format was recognised.
func (f *fold) setGeneric() {
	f.format = Generic
	if f.provider == "" {
		f.provider = Generic
	}
}

// room reports whether one more of a small list's items is allowed.
func (f *fold) room(have int, what string) bool {
	if have >= f.limits.Items {
		f.limit(what)
		return false
	}
	return true
}

// addTool adds a tool call, or fills in the name of one that was named before.
func (f *fold) addTool(t ToolCall) {
	for i := range f.tools {
		if f.tools[i].ID == t.ID && t.ID != "" {
			if f.tools[i].Name == "" {
				f.tools[i].Name = t.Name
			}
			return
		}
	}
	if f.room(len(f.tools), "tool calls") {
		f.tools = append(f.tools, t)
	}
}

// failed says that the answer ended with an error.
func (f *fold) failed() {
	c := f.main()
	if c == nil {
		c = f.candidate(0)
	}
	if c != nil {
		c.finish = FinishError
	}
}

// issue reports something odd, once.
func (f *fold) issue(code, detail string) {
	is := Issue{Code: code, Detail: validText(detail)}
	if f.seenIssues[is] || len(f.issues) > f.limits.Issues {
		return
	}
	if len(f.issues) == f.limits.Issues {
		is = Issue{Code: wire.IssueLimit, Detail: "issues"}
	}
	if f.seenIssues == nil {
		f.seenIssues = map[Issue]bool{}
	}
	f.seenIssues[is] = true
	f.issues = append(f.issues, is)
	f.emit(Event{Kind: EventIssue, Issue: &is})
}

// meta keeps a provider's JSON under a name: the last of it.
func (f *fold) meta(name string, raw []byte) {
	if !f.metaRoom(len(raw)-len(f.metadata[name]), raw) {
		return
	}
	if f.metadata == nil {
		f.metadata = map[string]json.RawMessage{}
	}
	f.metaSize += len(raw) - len(f.metadata[name])
	f.metadata[name] = validJSON(raw)
}

// keepUnknown keeps the JSON of something without a meaning here: all of it.
func (f *fold) keepUnknown(raw []byte) {
	if !f.metaRoom(len(raw)+1, raw) {
		return
	}
	if len(f.unknown) > 0 {
		f.unknown = append(f.unknown, ',')
	}
	f.unknown = append(f.unknown, validJSON(raw)...)
	f.metaSize += len(raw) + 1
}

// metaRoom reports whether raw is JSON and so much more metadata may be kept.
func (f *fold) metaRoom(more int, raw []byte) bool {
	if !json.Valid(raw) {
		return false
	}
	if f.metaSize+more > f.limits.Metadata {
		f.limit("metadata")
		return false
	}
	return true
}

// outMetadata returns the metadata as the answer has it.
func (f *fold) outMetadata() map[string]json.RawMessage {
	if len(f.unknown) == 0 {
		return maps.Clone(f.metadata)
	}
	out := map[string]json.RawMessage{"unknown": slices.Concat([]byte{'['}, f.unknown, []byte{']'})}
	maps.Copy(out, f.metadata)
	return out
}

// validJSON returns a copy of raw in which every byte that is not UTF-8 is replaced by U+FFFD.
func validJSON(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	if utf8.Valid(raw) {
		return bytes.Clone(raw)
	}
	return bytes.ToValidUTF8(raw, []byte("\ufffd"))
}

func (f *fold) emit(e Event) {
	if f.onEvent != nil {
		f.onEvent(e)
	}
}

// candidate returns the candidate of that index, made if need be; nil past the limit.
func (f *fold) candidate(index int) *candidate {
	if f.last != nil && f.last.index == index {
		return f.last
	}
	for _, c := range f.candidates {
		if c.index == index {
			f.last = c
			return c
		}
	}
	if len(f.candidates) >= f.limits.Alternatives {
		f.limit("alternatives")
		return nil
	}
	f.last = &candidate{fold: f, index: index}
	f.candidates = append(f.candidates, f.last)
	return f.last
}

// main returns the candidate that is the answer: the one of the lowest index.
func (f *fold) main() *candidate {
	if len(f.candidates) == 0 {
		return nil
	}
	return slices.MinFunc(f.candidates, func(a, b *candidate) int { return a.index - b.index })
}

// text returns the answer's text so far.
func (f *fold) text() string {
	if c := f.main(); c != nil {
		return c.text.String()
	}
	return ""
}

// close settles everything that waited for the end of the input.
func (f *fold) close() {
	for _, c := range f.candidates {
		c.close()
	}
	f.sources.report()
	if !f.complete && f.failure == nil && f.format != Generic {
		f.issue("no-end-mark", "the response ended before its format's end mark")
	}
	f.final = f.build()
	f.candidates, f.last, f.sources, f.seenIssues = nil, nil, sourceTable{}, nil // the answer has it all
	f.emit(Event{Kind: EventAnswer, Answer: f.final})
}

// answer returns the final answer, or a snapshot of what is known so far.
func (f *fold) answer() *Answer {
	if f.final != nil {
		return f.final
	}
	return f.build()
}

func (f *fold) build() *Answer {
	main := f.main()
	if main == nil {
		main = &candidate{fold: f}
	}
	a := f.buildCandidate(main, true)
	a.Queries, a.ToolCalls, a.Display = slices.Clone(f.queries), slices.Clone(f.tools), slices.Clone(f.display)
	a.Issues = slices.Clone(f.issues)
	a.Metadata = f.outMetadata()
	if len(f.candidates) > 1 {
		rest := slices.Clone(f.candidates)
		slices.SortFunc(rest, func(a, b *candidate) int { return a.index - b.index })
		for _, c := range rest[1:] {
			a.Alternatives = append(a.Alternatives, f.buildCandidate(c, false))
		}
	}
	return a
}

func (f *fold) buildCandidate(c *candidate, main bool) *Answer {
	a := &Answer{
		ID:       f.id,
		Provider: f.provider,
		Format:   f.format,
		Model:    f.model,
		Created:  f.created,
		Text:     c.text.String(),
		Parts:    c.outParts(),
		Complete: f.complete && f.failure == nil && !f.damaged,
		Finish:   c.finish,
		Error:    f.failure,
	}
	a.Citations = c.citations()
	a.Sources = f.sourcesOf(c, main)
	order(a)
	assignIDs(a, f.sources.key)
	return a
}

// sourcesOf returns the sources of a candidate: those it cites and, if it is the answer, those that nobody cites.
func (f *fold) sourcesOf(c *candidate, main bool) []Source {
	list := f.sources.list
	switch {
	case len(list) == 0:
		return nil
	case len(f.candidates) > 1:
	case c.closed: // nobody else needs it any more
		return slices.Clip(list)
	default:
		return slices.Clone(list)
	}
	used, foreign := map[int]bool{}, map[int]bool{}
	c.cited(used)
	for _, other := range f.candidates {
		if main && other != c {
			other.cited(foreign)
		}
	}
	var out []Source
	for i := range list {
		if used[i] || main && !foreign[i] {
			out = append(out, list[i])
		}
	}
	return out
}

// limit reports that more of something was said than is kept.
func (f *fold) limit(what string) { f.issue(wire.IssueLimit, what) }

// issuef is issue with a format.
func (f *fold) issuef(code, format string, args ...any) { f.issue(code, fmt.Sprintf(format, args...)) }

// next says that another response follows in the same input. Its parser begins anew: its messages follow those before,
// and what it names by its own keys is something else than what they stood for before.
func (f *fold) next() {
	f.row++
	f.complete = false
	for _, c := range f.candidates {
		c.flush()
		c.endMarks()
		for i := range c.parts {
			c.parts[i].ended = true
			f.first = max(f.first, c.parts[i].key.Message+1)
		}
		c.placeRest() // no citation of it counts into the text of the next
	}
}

// rowKey returns a key of the response that is read as the fold knows it.
func (f *fold) rowKey(key string) string {
	if key == "" {
		return ""
	}
	return f.rowPrefix() + key
}

func (f *fold) rowPrefix() string {
	if f.row == 0 {
		return ""
	}
	return "r" + strconv.Itoa(f.row) + ":"
}

// inRow returns an operation of a later response as one of the whole input.
func (f *fold) inRow(op *wire.Op) *wire.Op {
	out := *op
	out.Part.Message += f.first
	switch op.Kind {
	case wire.SourceOp:
		s := *op.Source
		s.Key = f.rowKey(s.Key)
		out.Source = &s
	case wire.CiteOp:
		out.Cite = f.citeInRow(op.Cite)
	case wire.Withdraw:
		out.Name = f.rowKey(op.Name)
	case wire.MarkersOp:
		m := wire.Markers{Style: op.Markers.Style}
		m.Refs = f.refsInRow(op.Markers.Refs)
		out.Markers = &m
	default: // names nothing
	}
	return &out
}

func (f *fold) citeInRow(c *wire.Cite) *wire.Cite {
	out := *c
	out.Key = f.rowKey(c.Key)
	out.Part.Message += f.first
	if c.Base == wire.AnswerBase {
		out.Base, out.Part.Message = wire.MessageBase, f.first
	}
	out.Refs = f.refsInRow(c.Refs)
	return &out
}

func (f *fold) refsInRow(refs []wire.Ref) []wire.Ref {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Source = f.rowKey(refs[i].Source)
	}
	return refs
}

// index finds numbers by name. Most answers have few names, which a list finds sooner than a map would be made. The
// zero value is empty.
type index struct {
	few  []indexed
	many map[string]int // nil while there are few
}

type indexed struct {
	name string
	n    int
}

// fewNames is how many names are searched one by one.
const fewNames = 8

// get returns the number that name has, and whether it has one.
func (x *index) get(name string) (int, bool) {
	if x.many != nil {
		n, ok := x.many[name]
		return n, ok
	}
	for i := range x.few {
		if x.few[i].name == name {
			return x.few[i].n, true
		}
	}
	return 0, false
}

// set gives name a number, in place of one that it has.
func (x *index) set(name string, n int) {
	if x.many != nil {
		x.many[name] = n
		return
	}
	for i := range x.few {
		if x.few[i].name == name {
			x.few[i].n = n
			return
		}
	}
	switch {
	case x.few == nil:
		x.few = make([]indexed, 0, fewNames/2) // cheaper than 1, 2, 4
	case len(x.few) == fewNames:
		x.many = make(map[string]int, 2*fewNames)
		for _, e := range x.few {
			x.many[e.name] = e.n
		}
		x.many[name] = n
		return
	}
	x.few = append(x.few, indexed{name, n})
}
