package ibid

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// fold builds an Answer from the operations of a response. Only this code converts units, checks spans against their
// words, merges sources and orders citations; see ARCHITECTURE.md.
type fold struct {
	limits  Limits
	left    int // remaining memory budget in bytes
	onEvent func(Event)
	halt    *halt.Halt

	id, model, format, provider string
	formatFixed, providerFixed  bool
	created                     time.Time
	complete                    bool // the end mark was seen
	damaged                     bool // part of the response could not be read
	failure                     *ProviderError

	candidates []*candidate // in order of appearance; the one with the lowest index is the answer
	last       *candidate   // the one used last
	sources    sourceTable
	queries    []string
	tools      []ToolCall
	display    []Display
	issues     []Issue
	seenIssues map[Issue]bool
	metadata   map[string]json.RawMessage
	unknown    []byte // the JSON of unknown items, comma-separated
	metaSize   int
	broken     bool   // the current document is truncated
	given      *given // what the model was given; nil if nothing
	cited      bool   // the provider sent citations
	final      *Answer

	earlier   int    // number of responses before the current one
	messages  int    // number of messages in them
	former    int    // number of sources in them
	keyPrefix string // prefix of the current one's keys, unless it is the first
}

// op handles one operation.
func (f *fold) op(op *wire.Op) {
	if f.earlier > 0 {
		op = f.opInInput(op)
	}
	switch op.Kind {
	case wire.Text: // nine out of ten operations
		if c := f.candidate(op.Part.Candidate); c != nil {
			c.addText(op.Part, op.Text, op.ASCII)
		}
	case wire.Final, wire.PartBegin, wire.PartEnd, wire.MarkersOp, wire.Finish:
		c := f.candidate(op.Part.Candidate)
		switch {
		case c == nil:
		case op.Kind == wire.Final:
			c.finalText(op.Part, op.Text, op.Cut)
		case op.Kind == wire.PartBegin:
			c.open(op.Part)
		case op.Kind == wire.PartEnd:
			c.endPart(op.Part)
		case op.Kind == wire.MarkersOp:
			if op.Markers.Links {
				c.readLinks()
				break
			}
			c.setMarks(op.Markers)
		case op.Kind == wire.Finish:
			c.finish = Finish(op.Name)
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
	case wire.Head:
		f.head(op.Name, op.More)
	case wire.Query:
		if q := validText(op.Name); !slices.Contains(f.queries, q) && f.room(len(f.queries), "queries") &&
			f.keep(entrySize+2*len(q)) {
			f.queries = append(f.queries, q)
			f.emit(Event{Kind: EventQuery, Query: q})
		}
	case wire.Reasoning, wire.Tool, wire.ToolInput, wire.ToolReady, wire.ToolOutput:
		if op.Kind == wire.Tool && !op.Hidden {
			f.addTool(ToolCall{ID: validText(op.Name), Name: validText(op.More)})
		}
		if c := f.candidate(op.Part.Candidate); c != nil {
			c.addActivity(op)
		}
	case wire.Display:
		d := Display{Kind: op.Name, HTML: validText(op.More)}
		if !slices.Contains(f.display, d) && f.room(len(f.display), "displays") &&
			f.keep(grown[Display]()+len(d.HTML)) {
			f.display = append(f.display, d)
			f.emit(Event{Kind: EventDisplay, Display: &d})
		}
	case wire.End:
		f.complete = true
	case wire.Error:
		f.failure = &ProviderError{Code: validText(op.Name), Message: validText(op.More)}
		c := f.main()
		if c == nil {
			c = f.candidate(0)
		}
		if c != nil {
			c.finish = FinishError
		}
	case wire.Issue:
		f.issue(op.Name, op.More)
		if len(op.Raw) > 0 {
			f.keepMetadata("unknown", op.Raw)
		}
	case wire.Meta:
		f.keepMetadata(validText(op.Name), op.Raw)
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
		if len(value) > 4 && value[4] == '-' { // avoids the cost of a parse error
			if t, err := time.Parse(time.RFC3339, value); err == nil {
				f.created = t.UTC()
				return
			}
		}
		if sec, err := strconv.ParseFloat(value, 64); err == nil && sec > 0 && sec < 1<<40 {
			f.created = time.Unix(int64(sec), 0).UTC()
		}
	}
}

// The memory budget of a response in bytes: a base, without what the decoder itself takes, plus an amount per byte of
// input. The text counts as it is, the rest by estimates that include the spare capacity of lists and maps. The budget
// is for a decoder at its largest; the final answer has fewer lists and no maps. [Limits] documents the resulting
// bound, and a test measures it.
const (
	budgetBase = 1<<20 - 64<<10
	budgetPer  = 10
)

// keep reports whether n more bytes fit into the budget, and subtracts them. If not, it adds an issue.
func (f *fold) keep(n int) bool {
	if n > 0 && n > f.left {
		f.limit("memory")
		return false
	}
	f.left -= n
	return true
}

// The memory in bytes that one item takes while a response is read and in its answer, without its strings. Map entries
// include the spare capacity of the map.
var (
	entrySize  = 40
	sourceSize = grown[Source]() + grown[string]() + 3*entrySize
	chunkSize  = grown[Chunk]() + size[Locator]()
	citeSize   = grown[foldCite]() + entrySize
	refSize    = size[wire.Ref]() + size[Ref]()
	partSize   = grown[foldPart]() + grown[Part]() + entrySize
	cutSize    = grown[cut]()
	issueSize  = grown[Issue]() + entrySize
)

// grown returns the size of an element in a long list, of whose capacity up to a quarter is spare.
func grown[T any]() int { return size[T]() * 9 / 8 }

func size[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// room reports whether a list limited by [Limits].Items may have one more item.
func (f *fold) room(have int, what string) bool {
	if have >= f.limits.Items {
		f.limit(what)
		return false
	}
	return true
}

// addTool adds a tool call, or the name of a known one.
func (f *fold) addTool(t ToolCall) {
	for i := range f.tools {
		if f.tools[i].ID == t.ID && t.ID != "" {
			if f.tools[i].Name == "" {
				f.tools[i].Name = t.Name
			}
			return
		}
	}
	if f.room(len(f.tools), "tool calls") && f.keep(grown[ToolCall]()+len(t.ID)+len(t.Name)) {
		f.tools = append(f.tools, t)
	}
}

// issue adds an issue, unless it is a duplicate.
func (f *fold) issue(code, detail string) {
	const longest, few = 500, 100 // bytes of a detail; issues kept even without budget
	is := Issue{Code: code, Detail: text.Shorten(validText(detail), longest)}
	if f.seenIssues[is] || len(f.issues) > f.limits.Issues {
		return
	}
	n := issueSize + len(is.Detail)
	if n > f.left && len(f.issues) >= few {
		return
	}
	f.left -= n
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

// keepMetadata keeps a provider's JSON under a name, replacing earlier JSON; under "unknown" it keeps all.
func (f *fold) keepMetadata(name string, raw []byte) {
	unknown := name == "unknown"
	more := len(raw) + 1
	if !unknown {
		more = len(raw) - len(f.metadata[name])
	}
	switch {
	case !json.Valid(raw):
		return
	case f.metaSize+more > f.limits.Metadata:
		f.limit("metadata")
		return
	case !f.keep(max(0, 2*more) + entrySize):
		return
	case unknown && len(f.unknown) > 0:
		f.unknown = append(f.unknown, ',')
	}
	f.metaSize += more
	if unknown {
		f.unknown = append(f.unknown, validJSON(raw)...)
		return
	}
	if f.metadata == nil {
		f.metadata = map[string]json.RawMessage{}
	}
	f.metadata[name] = validJSON(raw)
}

// validJSON returns a copy of raw with invalid UTF-8 replaced by U+FFFD.
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

// candidate returns the candidate with that index, adding it if needed; nil beyond the limit.
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

// main returns the candidate that is the answer: the one with the lowest index.
func (f *fold) main() *candidate {
	if len(f.candidates) == 0 {
		return nil
	}
	return slices.MinFunc(f.candidates, func(a, b *candidate) int { return a.index - b.index })
}

// close settles everything that waits for the end of the input.
func (f *fold) close() {
	for _, c := range f.candidates {
		c.close()
	}
	f.closeGiven()
	for _, key := range slices.Sorted(maps.Keys(f.sources.bare)) { // a description may come after the citations
		f.issue("source-not-described", f.sources.resolve(key).ID)
	}
	if !f.complete && f.failure == nil && f.format != Generic {
		f.issue("no-end-mark", "the response ended before its format's end mark")
	}
	f.final = f.build()
	f.candidates, f.last, f.sources, f.seenIssues = nil, nil, sourceTable{}, nil // no longer needed
	f.emit(Event{Kind: EventAnswer, Answer: f.final})
}

func (f *fold) build() *Answer {
	main := f.main()
	if main == nil {
		main = &candidate{fold: f}
	}
	a := f.buildCandidate(main, true)
	a.Queries, a.ToolCalls, a.Display = slices.Clone(f.queries), slices.Clone(f.tools), slices.Clone(f.display)
	a.Issues = slices.Clone(f.issues)
	a.Metadata = maps.Clone(f.metadata)
	if len(f.unknown) > 0 {
		if a.Metadata == nil {
			a.Metadata = map[string]json.RawMessage{}
		}
		a.Metadata["unknown"] = slices.Concat([]byte{'['}, f.unknown, []byte{']'})
	}
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
	var parts []Part // without empty ones; neighbours of the same kind, message and content are merged
	for i := range c.parts {
		p := outPart(&c.parts[i])
		if p.Len() == 0 {
			continue
		}
		if n := len(parts); n > 0 {
			last := &parts[n-1]
			if last.Kind == p.Kind && last.Message == p.Message && last.Content == p.Content {
				last.End = p.End
				continue
			}
		}
		parts = append(parts, p)
	}
	a := &Answer{
		ID:       f.id,
		Provider: f.provider,
		Format:   f.format,
		Model:    f.model,
		Created:  f.created,
		Text:     c.text.String(),
		Parts:    parts,
		Complete: f.complete && f.failure == nil && !f.damaged,
		Finish:   c.finish,
		Error:    f.failure,
	}
	for i := range c.activities {
		activity := c.activities[i].Activity
		if activity.Kind == ReasoningActivity {
			activity.Text = string(c.activities[i].bytes)
		}
		a.Activities = append(a.Activities, activity)
	}
	a.Citations = c.citations()
	a.Sources = f.sourcesOf(c, main)
	order(a)
	assignIDs(a, func(s *Source) string {
		t := &f.sources
		if i, ok := t.ids[s.ID]; ok && t.names[i] != "" {
			return t.names[i]
		}
		return s.Key()
	})
	return a
}

// sourcesOf returns the sources of a candidate: those it cites and, if it is the answer, those that no candidate cites.
func (f *fold) sourcesOf(c *candidate, main bool) []Source {
	list := f.sources.list
	switch {
	case len(list) == 0:
		return nil
	case len(f.candidates) > 1:
	case c.closed: // not shared any more
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

// limit adds the issue that a limit was exceeded.
func (f *fold) limit(what string) { f.issue(wire.IssueLimit, what) }

// issuef is issue with a formatted detail.
func (f *fold) issuef(code, format string, args ...any) { f.issue(code, fmt.Sprintf(format, args...)) }

// next begins another response in the same input. Its parser starts from scratch, so its messages are renumbered to
// follow the earlier ones, and its keys are distinct from theirs.
func (f *fold) next() {
	f.earlier++
	f.keyPrefix = "r" + strconv.Itoa(f.earlier) + ":"
	for _, c := range f.candidates {
		c.flush()
		c.resolveLeaks()
		if c.usePrinted(); c.marks != nil {
			c.scanMarks(true)
		}
		if c.sourceLinks != nil {
			c.scanLinks(true)
			c.sourceLinks = nil
		}
		c.marks, c.marked = nil, c.text.Len() // later marks refer to another list, or none
		c.endParts()
		for i := range c.parts {
			f.messages = max(f.messages, c.parts[i].key.Message+1)
		}
		c.claimUnit = nil
		c.placeRest() // its citations must not refer to the text of the next response
	}
	f.complete, f.former = false, len(f.sources.list)
}

// uniqueKey converts a key of the current response to one that is unique in the input.
func (f *fold) uniqueKey(key string) string {
	if key == "" {
		return ""
	}
	return f.keyPrefix + key
}

// opInInput converts an operation of a later response to one of the whole input.
func (f *fold) opInInput(op *wire.Op) *wire.Op {
	out := *op
	out.Part.Message += f.messages
	switch op.Kind {
	case wire.SourceOp:
		s := *op.Source
		s.Key = f.uniqueKey(s.Key)
		out.Source = &s
	case wire.CiteOp:
		out.Cite = f.citeInInput(op.Cite)
	case wire.Withdraw:
		out.Name = f.uniqueKey(op.Name)
	case wire.MarkersOp:
		m := *op.Markers
		m.Refs = f.refsInInput(op.Markers.Refs)
		out.Markers = &m
	default: // no keys
	}
	return &out
}

func (f *fold) citeInInput(c *wire.Cite) *wire.Cite {
	out := *c
	out.Key = f.uniqueKey(c.Key)
	out.Part.Message += f.messages
	if c.Base == wire.AnswerBase {
		out.Base, out.Part.Message = wire.MessageBase, f.messages
	}
	out.Refs = f.refsInInput(c.Refs)
	return &out
}

func (f *fold) refsInInput(refs []wire.Ref) []wire.Ref {
	refs = slices.Clone(refs)
	for i := range refs {
		refs[i].Source = f.uniqueKey(refs[i].Source)
	}
	return refs
}

// sourceTable holds the sources of a response, each once.
type sourceTable struct {
	fold       *fold
	list       []Source
	names      []string          // cached Source.Key; empty if not computed, or outdated
	keys       map[string]int    // indexes in list by the key that citations use on the wire
	same       map[string]int    // by identity
	ids        map[string]int    // by id
	collisions map[string]int    // number of collisions by id
	counter    map[string]int    // number of ids generated by kind
	bare       map[string]bool   // keys that citations use but no source has described so far
	labels     map[string]string // what marks call sources, by key
}

// keyOf returns a key that citations can use for the source with an index. No provider's key begins with a NUL.
func (t *sourceTable) keyOf(i int) string {
	key := "\x00" + strconv.Itoa(i)
	if _, ok := t.keys[key]; !ok && t.fold.keep(entrySize+len(key)) {
		t.keys[key] = i
	}
	return key
}

// calls returns what marks may call the sources of a list by, or nil if they only number them.
func (t *sourceTable) calls(w *wire.Markers) []called {
	if len(t.labels) == 0 && !w.Names {
		return nil
	}
	calls := make([]called, len(w.Refs))
	for i := range w.Refs {
		calls[i].label = t.labels[w.Refs[i].Source]
		if k, ok := t.keys[w.Refs[i].Source]; ok && w.Names {
			s := &t.list[k]
			calls[i].id, calls[i].title, calls[i].filename, calls[i].url = s.ID, s.Title, s.Filename, s.URL
			if strings.HasPrefix(s.ID, string(s.Kind)+":") { // made by [sourceTable.add]
				calls[i].id = ""
			}
		}
	}
	return calls
}

// add handles a source from the wire: a new one, an update of a known one, or another key for a known one.
func (t *sourceTable) add(w *wire.Source) {
	if t.keys == nil {
		t.keys, t.same, t.ids, t.counter = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	}
	if w.Label != "" && t.labels[w.Key] != w.Label && t.fold.keep(entrySize+len(w.Key)+len(w.Label)) {
		if t.labels == nil {
			t.labels = map[string]string{}
		}
		t.labels[w.Key] = validText(w.Label)
	}
	if i, ok := t.keys[w.Key]; ok {
		s := &t.list[i]
		described := t.bare[w.Key]
		if described {
			delete(t.bare, w.Key)
			t.names[i] = ""
			s.Kind, s.Raw = cmp.Or(SourceKind(w.Kind), DocumentKind), validJSON(w.Raw)
		}
		if t.merge(i, w) || described {
			t.emit(s)
		}
		return
	}
	s, more := newSource(w)
	// Two sources of a response are the same if their Key is. Without a URL or a global id that is their content; but
	// two documents to which the caller gave different ids remain two, whatever their content.
	key := ""
	if s.URL != "" || s.GlobalID != "" || w.ID == "" && s.Content != "" {
		key = s.Key()
	}
	known, ok := t.same[key]
	if !ok { // an equal source with the same key in the first response is one document, given for both
		if known, ok = t.keys[strings.TrimPrefix(w.Key, t.fold.keyPrefix)]; ok {
			first := &t.list[known]
			ok = first.Kind == s.Kind && first.Title == s.Title && first.URL == s.URL && first.Content == s.Content
		}
	}
	if ok {
		if t.fold.keep(entrySize + len(w.Key)) {
			t.keys[w.Key] = known
		}
		if t.merge(known, w) {
			t.emit(&t.list[known])
		}
		return
	}
	if len(t.list) >= t.fold.limits.Sources {
		t.fold.limit("sources")
		return
	}
	if !t.fold.keep(sourceSize + len(w.Key) + len(key) + len(w.ID) + len(w.Raw) + more) {
		return
	}
	id := validText(w.ID) // unique in the answer
	if id == "" {
		id = string(s.Kind) + ":" + strconv.Itoa(t.counter[string(s.Kind)])
		t.counter[string(s.Kind)]++
	}
	_, taken := t.ids[id]
	for base := id; taken; _, taken = t.ids[id] {
		if t.collisions == nil {
			t.collisions = map[string]int{}
		}
		t.collisions[base]++
		id = base + "~" + strconv.Itoa(t.collisions[base]+1)
	}
	t.ids[id] = len(t.list)
	s.ID = id
	i := len(t.list)
	if t.list == nil {
		t.list, t.names = make([]Source, 0, 4), make([]string, 0, 4) // cheaper than 1, 2, 4
	}
	t.list, t.names = append(t.list, s), append(t.names, key)
	t.keys[w.Key] = i
	if key != "" {
		t.same[key] = i
	}
	t.emit(&t.list[i])
}

func (t *sourceTable) emit(s *Source) {
	if t.fold.onEvent != nil {
		c := *s
		c.Chunks = slices.Clip(s.Chunks) // they are only appended to
		t.fold.emit(Event{Kind: EventSource, Source: &c})
	}
}

// resolve returns the source with the key that a citation uses, adding it if none has described it. The pointer is
// valid until the next source is added.
func (t *sourceTable) resolve(key string) *Source {
	if i, ok := t.keys[key]; ok {
		return &t.list[i]
	}
	t.add(&wire.Source{Key: key, ID: strings.TrimPrefix(key, t.fold.keyPrefix)})
	i, ok := t.keys[key]
	if !ok { // over the limit, which has been reported
		return nil
	}
	if t.bare == nil {
		t.bare = map[string]bool{}
	}
	if t.fold.keep(entrySize) {
		t.bare[key] = true
	}
	return &t.list[i]
}

// newSource converts w to a source without an id, and returns the number of bytes that [fill] set.
func newSource(w *wire.Source) (s Source, more int) {
	s.Kind = cmp.Or(SourceKind(w.Kind), DocumentKind)
	more = fill(&s, w)
	if c, ok := chunk(w); ok {
		s.Chunks = []Chunk{c}
	}
	if len(w.Raw) > 0 {
		s.Raw = validJSON(w.Raw)
	}
	return s, more
}

// merge adds to the i-th source what w adds to it, and reports whether anything changed.
func (t *sourceTable) merge(i int, w *wire.Source) bool {
	filled := t.list[i]
	more := fill(&filled, w)
	changed := more > 0 && t.fold.keep(more)
	if changed {
		t.list[i], t.names[i] = filled, ""
	}
	return t.addChunk(&t.list[i], w) || changed
}

// fill sets missing fields of s from w, and returns the number of bytes set.
func fill(s *Source, w *wire.Source) (more int) {
	set := func(field *string, value string) {
		if *field == "" && value != "" {
			*field = validText(value)
			more += len(value)
		}
	}
	if s.URL == "" && w.URL != "" {
		url := validText(strings.TrimSpace(w.URL))
		set(&s.URL, cleanURL(url))
		if s.URL != url {
			set(&s.OriginalURL, url)
		}
	}
	set(&s.OriginalURL, w.OriginalURL)
	set(&s.GlobalID, w.GlobalID)
	set(&s.Title, w.Title)
	set(&s.Filename, w.Filename)
	set(&s.Site, w.Site)
	if s.PublishedAt == "" && w.PublishedAt != "" {
		set(&s.PublishedAt, isoDate(w.PublishedAt))
	}
	set(&s.License, w.License)
	set(&s.Content, w.Content)
	if len(s.Authors) == 0 && len(w.Authors) > 0 {
		s.Authors = slices.Clone(w.Authors)
		for _, author := range w.Authors {
			more += size[string]() + len(author)
		}
	}
	if w.Score != nil && (s.Score == nil || *w.Score > *s.Score) {
		s.Score, s.ScoreOrigin = new(*w.Score), ScoreProvider
		more += size[float64]()
	}
	return more
}

// addChunk adds the chunk in w to s, unless it is a duplicate, and reports whether it did.
func (t *sourceTable) addChunk(s *Source, w *wire.Source) bool {
	c, ok := chunk(w)
	if !ok {
		return false
	}
	for _, known := range s.Chunks {
		if known.ID == c.ID && known.Content == c.Content && equalLocators(known.Locator, c.Locator) {
			return false
		}
	}
	if !t.fold.room(len(s.Chunks), "chunks of one source") || !t.fold.keep(chunkSize+len(c.ID)+len(c.Content)) {
		return false
	}
	s.Chunks = append(s.Chunks, c)
	return true
}

// locator converts w; it returns nil if w is zero.
func locator(w wire.Locator) *Locator {
	if w == (wire.Locator{}) {
		return nil
	}
	l := &Locator{Page: w.Page, Chunk: validText(w.Chunk), CharStart: w.CharStart, CharEnd: w.CharEnd, Block: w.Block}
	if w.LastPage > w.Page {
		l.Pages = []int{w.Page, w.LastPage}
	}
	if w.Block != nil && w.LastBlock != nil && *w.LastBlock >= *w.Block {
		end := *w.LastBlock + 1
		l.BlockEnd = &end
	}
	return l
}

// chunk returns the chunk in w, if any.
func chunk(w *wire.Source) (Chunk, bool) {
	c := Chunk{ID: validText(w.ChunkID), Content: validText(w.Content), Locator: locator(w.Locator)}
	if w.Score != nil {
		c.Score = new(*w.Score)
	}
	return c, c.Content != "" || c.Score != nil || c.ID != "" || c.Locator != nil
}

func equalLocators(a, b *Locator) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := equal[int]
	return a.Page == b.Page && slices.Equal(a.Pages, b.Pages) && a.Chunk == b.Chunk && same(a.Block, b.Block) &&
		same(a.BlockEnd, b.BlockEnd) && same(a.CharStart, b.CharStart) && same(a.CharEnd, b.CharEnd)
}

// equal reports whether two optional values are equal.
func equal[T comparable](x, y *T) bool { return x == y || x != nil && y != nil && *x == *y }

// isoDate returns a date in ISO 8601, or "" if s is not a date, such as "3 days ago".
func isoDate(s string) string {
	s = strings.TrimSpace(s)
	if len(s) < 4 || len(s) > 40 {
		return ""
	}
	layouts := []string{"January 2, 2006", "Jan 2, 2006"}
	switch {
	case s[0] < '0' || s[0] > '9':
	case len(s) >= 19 && s[4] == '-':
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime} {
			if t, err := time.Parse(layout, s); err == nil {
				return t.UTC().Format(time.RFC3339)
			}
		}
		return ""
	case len(s) == 10:
		layouts = []string{time.DateOnly, "2006/01/02"}
	case len(s) <= 7: // a year, or a year and a month, is kept as it is
		for _, layout := range []string{"2006", "2006-01"} {
			if _, err := time.Parse(layout, s); err == nil {
				return s
			}
		}
		return ""
	default:
		layouts = []string{"2 January 2006", "2 Jan 2006"}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}

// validText returns s with every run of invalid UTF-8 replaced by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
