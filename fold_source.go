package ibid

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/wire"
)

// sourceTable holds the sources of a response, each once.
type sourceTable struct {
	fold    *fold
	list    []Source
	names   []string        // what Source.Key was when it was asked for; empty: not asked, or more was said since
	keys    index           // places in list by the key that citations use on the wire
	same    index           // and by identity
	ids     index           // and by id
	again   map[string]int  // how many times an id was asked for again
	counter index           // how many ids were made of a kind
	bare    map[string]bool // keys that citations name and nobody has described so far
}

// add takes a source from the wire: a new one, more of one that is known, or another name for the same.
func (t *sourceTable) add(w *wire.Source) {
	if i, ok := t.keys.get(w.Key); ok {
		s := &t.list[i]
		described := t.bare[w.Key]
		if described {
			delete(t.bare, w.Key)
			t.names[i] = ""
			s.Kind, s.Raw = kind(w), validJSON(w.Raw)
		}
		if t.merge(i, w) || described {
			t.emit(s)
		}
		return
	}
	s := newSource(w)
	key := identity(&s, w)
	known, ok := t.same.get(key)
	if !ok {
		known, ok = t.former(w.Key, &s)
	}
	if ok {
		t.keys.set(w.Key, known)
		if t.merge(known, w) {
			t.emit(&t.list[known])
		}
		return
	}
	if len(t.list) >= t.fold.limits.Sources {
		t.fold.limit("sources")
		return
	}
	s.ID = t.newID(w.ID, s.Kind)
	i := len(t.list)
	if t.list == nil {
		t.list, t.names = make([]Source, 0, 4), make([]string, 0, 4) // cheaper than 1, 2, 4
	}
	t.list, t.names = append(t.list, s), append(t.names, key)
	t.keys.set(w.Key, i)
	if key != "" {
		t.same.set(key, i)
	}
	t.emit(&t.list[i])
}

func (t *sourceTable) emit(s *Source) {
	if t.fold.onEvent != nil {
		c := *s
		c.Chunks = slices.Clip(s.Chunks) // which only ever grow
		t.fold.emit(Event{Kind: EventSource, Source: &c})
	}
}

// identity returns what makes two sources of one response the same: the Key. Without an address or a global id that is
// their content; but two documents that the caller gave different ids stay two, whatever they say.
func identity(s *Source, w *wire.Source) string {
	if s.URL == "" && s.GlobalID == "" && (w.ID != "" || s.Content == "") {
		return ""
	}
	return s.Key()
}

// former finds the source of the first response that has the key which s has in a later one, if they say the same: one
// document, given for both.
func (t *sourceTable) former(key string, s *Source) (int, bool) {
	i, ok := t.keys.get(strings.TrimPrefix(key, t.fold.rowPrefix()))
	if !ok {
		return 0, false
	}
	first := &t.list[i]
	return i, first.Kind == s.Kind && first.Title == s.Title && first.URL == s.URL && first.Content == s.Content
}

// resolve returns the source that a citation names, until the next is added. One that nobody described is still a
// source.
func (t *sourceTable) resolve(key string) *Source {
	if i, ok := t.keys.get(key); ok {
		return &t.list[i]
	}
	t.add(&wire.Source{Key: key, ID: strings.TrimPrefix(key, t.fold.rowPrefix())})
	i, ok := t.keys.get(key)
	if !ok { // over the limit, which was reported
		return nil
	}
	if t.bare == nil {
		t.bare = map[string]bool{}
	}
	t.bare[key] = true
	return &t.list[i]
}

// report makes an issue of every source that was never described. A description may come after the citations.
func (t *sourceTable) report() {
	if len(t.bare) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(t.bare)) {
		t.fold.issue("source-not-described", t.resolve(key).ID)
	}
}

// newID makes the id of the source that is added next, unique in the answer.
func (t *sourceTable) newID(want string, kind SourceKind) string {
	id := validText(want)
	if id == "" {
		n, _ := t.counter.get(string(kind))
		t.counter.set(string(kind), n+1)
		id = string(kind) + ":" + strconv.Itoa(n)
	}
	_, taken := t.ids.get(id)
	for base := id; taken; _, taken = t.ids.get(id) {
		if t.again == nil {
			t.again = map[string]int{}
		}
		t.again[base]++
		id = base + "~" + strconv.Itoa(t.again[base]+1)
	}
	t.ids.set(id, len(t.list))
	return id
}

// key returns the Key of a source of the list.
func (t *sourceTable) key(s *Source) string {
	if i, ok := t.ids.get(s.ID); ok && t.names[i] != "" {
		return t.names[i]
	}
	return s.Key()
}

// newSource makes a source of what the wire says, without its id.
func newSource(w *wire.Source) Source {
	s := Source{Kind: kind(w)}
	fill(&s, w)
	if c, ok := chunk(w); ok {
		s.Chunks = []Chunk{c}
	}
	if len(w.Raw) > 0 {
		s.Raw = validJSON(w.Raw)
	}
	return s
}

func kind(w *wire.Source) SourceKind {
	if w.Kind == "" {
		return DocumentKind
	}
	return SourceKind(w.Kind)
}

// merge adds to the source at a place what w says besides and reports whether there was anything.
func (t *sourceTable) merge(i int, w *wire.Source) bool {
	changed := fill(&t.list[i], w)
	if changed {
		t.names[i] = ""
	}
	return t.addChunk(&t.list[i], w) || changed
}

// fill sets what is still missing.
func fill(s *Source, w *wire.Source) bool {
	changed := false
	set := func(field *string, value string) {
		if *field == "" && value != "" {
			*field = validText(value)
			changed = true
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
		s.Authors, changed = slices.Clone(w.Authors), true
	}
	if w.Score != nil && (s.Score == nil || *w.Score > *s.Score) {
		score := *w.Score
		s.Score, s.ScoreOrigin, changed = &score, ScoreProvider, true
	}
	return changed
}

// addChunk keeps the piece of the source that w brings, once.
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
	if !t.fold.room(len(s.Chunks), "chunks of one source") {
		return false
	}
	s.Chunks = append(s.Chunks, c)
	return true
}

// locator converts a place in a source; nil where nothing is known of it.
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

// chunk returns the piece of a source that w brings, if it says anything of one.
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
	return a.Page == b.Page && slices.Equal(a.Pages, b.Pages) && a.Chunk == b.Chunk &&
		same(
			a.Block, b.Block,
		) && same(a.BlockEnd, b.BlockEnd) && same(a.CharStart, b.CharStart) && same(a.CharEnd, b.CharEnd)
}

// equal reports whether two optional values are the same.
func equal[T comparable](x, y *T) bool { return x == y || x != nil && y != nil && *x == *y }

// isoDate returns a date as ISO 8601, or "" where s says no date: "3 days ago" is none.
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
	case len(s) <= 7:
		return isoMonth(s)
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

// isoMonth returns s if it is a year or a month of one.
func isoMonth(s string) string {
	for _, layout := range []string{"2006", "2006-01"} {
		if _, err := time.Parse(layout, s); err == nil {
			return s
		}
	}
	return ""
}

// validText returns s with every byte that is not UTF-8 replaced by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// wireDocuments turns documents given by the caller into what parsers take.
func wireDocuments(docs []Source) []wire.Source {
	out := make([]wire.Source, 0, len(docs))
	for i := range docs {
		s := &docs[i]
		out = append(out, wire.Source{
			Key:         s.ID,
			ID:          s.ID,
			GlobalID:    s.GlobalID,
			Kind:        string(s.Kind),
			Title:       s.Title,
			URL:         s.URL,
			OriginalURL: s.OriginalURL,
			Filename:    s.Filename,
			Site:        s.Site,
			Authors:     s.Authors,
			PublishedAt: s.PublishedAt,
			License:     s.License,
			Content:     s.Content,
			Score:       s.Score,
		})
	}
	return out
}
