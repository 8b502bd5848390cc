package trail

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/support"
)

// DefaultExcerpt is the default length of an excerpt in characters.
const DefaultExcerpt = 200

// Excerpt returns text without surrounding white space, shortened to n characters: longer text is cut after a word and
// followed by an ellipsis, which counts as one of them. A character is what readers see as one, such as an emoji with
// its modifiers. Zero n means DefaultExcerpt.
func Excerpt(text string, n int) string {
	if n <= 0 {
		n = DefaultExcerpt
	}
	text = strings.TrimSpace(text)
	if len(text) <= n {
		return text
	}
	last, seen := 0, 0 // where the character before the n-th ends
	for _, end := range prose.Graphemes(text) {
		if seen++; seen == n {
			if end == len(text) {
				return text
			}
			break
		}
		last = end
	}
	if seen < n {
		return text
	}
	cut := 0
	for _, end := range prose.Words(text) {
		if end > last {
			break
		}
		cut = end
	}
	if cut < last/2 { // one very long word, or none
		cut = last
	}
	return text[:cut] + "…"
}

// MaxQuote is the maximum length of [Source.Quote] in code points, the same as that of an excerpt in a manifest.
const MaxQuote = 4096

// Quote returns the words that the source quotes from its document: the passage, cut to MaxQuote, or, if only the
// excerpt is known, that without an ellipsis at either end. It is empty if neither is known.
func (s *Source) Quote() string {
	words := strings.TrimSpace(s.Content)
	if words == "" {
		words = strings.TrimSpace(s.Excerpt)
		for _, dots := range []string{"…", "..."} {
			words = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(words, dots), dots))
		}
	}
	return text.Runes(words, MaxQuote)
}

// SourcesFromResults returns the results of a retrieval as sources that the step retrieved and, as far as can be told,
// used, because results usually reach the model. Ranks count from 1. Scores are the retriever's; a result without one
// gets none. The document id of a result without one is its URL, or else made from its content.
func SourcesFromResults(results []Result) []Source {
	sources := make([]Source, 0, len(results))
	for i := range results {
		r := &results[i]
		s := Source{
			DocumentID: r.DocumentID, Title: r.Title, URL: r.URL, Content: r.Content, Excerpt: Excerpt(r.Content, 0),
			ChunkIndex: r.ChunkIndex, Locator: r.Locator, Version: r.Version, Rank: i + 1, Retrieved: true, Used: true,
		}
		if r.Score != nil && isFinite(*r.Score) {
			s.Relevance, s.Origin = new(*r.Score), ibid.ScoreRetriever
		}
		s.identify(i)
		sources = append(sources, s)
	}
	return sources
}

// SourcesFromContext returns the bare strings of a context as sources, for programs without structured results. A
// string may begin with "id:", the id of its document and white space; a comma, semicolon, colon or full stop after the
// id is not part of it. The others are named context_0, context_1, … by their index. Blank strings are skipped.
//
// Only their order tells how relevant they are, so each has the score max(0.3, 1 - 0.1·index) with the origin
// [ibid.ScoreRank]. Nothing else in this package makes up a score.
func SourcesFromContext(context []string) []Source {
	var sources []Source
	for i, text := range context {
		id, text := cutID(text)
		if strings.TrimSpace(text) == "" && id == "" {
			continue
		}
		s := Source{DocumentID: id, Content: text, Excerpt: Excerpt(text, 0), Rank: i + 1, Retrieved: true, Used: true}
		s.Relevance, s.Origin = new(max(0.3, float64(10-i)/10)), ibid.ScoreRank
		if id == "" {
			s.DocumentID, s.Key = "context_"+strconv.Itoa(i), (&ibid.Source{Content: text}).Key()
		}
		sources = append(sources, s)
	}
	return sources
}

// cutID splits a context string into its id and its text.
func cutID(text string) (id, rest string) {
	after, ok := strings.CutPrefix(strings.TrimSpace(text), "id:")
	if !ok {
		return "", text
	}
	end := strings.IndexAny(after, " \t\r\n")
	if end < 0 {
		end = len(after)
	}
	if id = strings.TrimRight(after[:end], ",;:."); id == "" {
		return "", text
	}
	return id, strings.TrimSpace(after[end:])
}

// SourcesFromAnswer returns the sources of a captured answer, a row for each passage. All are retrieved, and those that
// a citation names are cited. Scores keep the origin they have in the answer. A quote that no passage contains becomes
// a passage of its own. If the answer has citations, Usage is the share of its information in words that rest on the
// source: see [support.Usage].
func SourcesFromAnswer(a *ibid.Answer) []Source {
	if a == nil {
		return nil
	}
	quotes := make(map[string][]string, len(a.Sources)) // by source; those present are cited
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			quotes[ref.Source] = append(quotes[ref.Source], ref.Quote)
		}
	}
	var shares map[string]float64
	if len(a.Citations) > 0 {
		shares = support.Usage(a.Text, support.Covered(a))
	}
	var sources []Source
	for i := range a.Sources {
		from := &a.Sources[i]
		quoted, cited := quotes[from.ID]
		row := Source{
			DocumentID: documentID(from), Title: cmp.Or(from.Title, from.Filename), URL: from.URL,
			Retrieved: true, Cited: cited,
		}
		if row.Title != "" || from.URL != "" || from.GlobalID != "" || from.Content != "" {
			row.Key = from.Key() // all sources about which nothing is known have the same key
		}
		if share, ok := shares[from.ID]; ok {
			row.Usage = new(estimate(share))
		}
		if !from.RetrievedAt.IsZero() {
			row.Version = from.RetrievedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		row.identify(i)
		sources = append(sources, passages(row, from, quoted)...)
	}
	return sources
}

// passages returns a copy of row for each passage of a source.
func passages(row Source, from *ibid.Source, quotes []string) []Source {
	var rows []Source
	add := func(text string, score *float64, at *ibid.Locator) {
		r := row
		r.Content, r.Excerpt, r.Locator = text, Excerpt(text, 0), at
		if score == nil && len(from.Chunks) < 2 {
			score = from.Score
		}
		if score != nil && isFinite(*score) {
			r.Relevance, r.Origin = new(*score), from.ScoreOrigin
			if r.Origin == "" {
				r.Origin = ibid.ScoreProvider
			}
		}
		rows = append(rows, r)
	}
	for i := range from.Chunks {
		add(from.Chunks[i].Content, from.Chunks[i].Score, from.Chunks[i].Locator)
	}
	if len(rows) == 0 && from.Content != "" {
		add(from.Content, from.Score, nil)
	}
	seen := map[string]bool{}
	for _, q := range quotes {
		has := func(r Source) bool { return strings.Contains(r.Content, q) }
		if q == "" || seen[q] || slices.ContainsFunc(rows, has) {
			continue
		}
		seen[q] = true
		add(q, nil, nil)
	}
	if len(rows) == 0 {
		add("", from.Score, nil)
	}
	return rows
}

// documentID returns the id of an answer's source in its run, preferably not one that is only a position.
func documentID(s *ibid.Source) string {
	switch {
	case s.ID != "" && !positional(s.ID):
		return s.ID
	case s.GlobalID != "":
		return s.GlobalID
	case s.URL != "":
		return s.URL
	default:
		return s.ID
	}
}

// positional reports whether an id is only a position in one answer or context, such as doc:0 or context_3. Two steps
// may use it for two documents.
func positional(id string) bool {
	name, digits, ok := strings.Cut(id, ":")
	if !ok {
		digits, ok = strings.CutPrefix(id, "context_")
		name = "context"
	}
	if !ok || name == "" || digits == "" {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" && strings.Trim(digits, "0123456789") == ""
}

// identify sets the key of a source with a URL, and the id of one that lacks it. It reports whether the id was missing.
// The index of the source is its id if nothing else is known about it.
func (s *Source) identify(index int) (missing bool) {
	if s.Key == "" {
		s.Key = s.webKey()
	}
	if s.DocumentID != "" {
		return false
	}
	switch text := s.text(); {
	case s.URL != "":
		s.DocumentID = s.URL
	case text != "":
		if s.Key == "" {
			s.Key = (&ibid.Source{Content: text}).Key()
		}
		s.DocumentID = s.Key
	case s.Title != "":
		s.DocumentID = s.Title
	default:
		s.DocumentID = "source:" + strconv.Itoa(index)
	}
	return true
}

// webKey returns the key of the source's address, whatever the source's kind, or "" if it has no address.
func (s *Source) webKey() string {
	url := s.URL
	if url == "" && (strings.HasPrefix(s.DocumentID, "https://") || strings.HasPrefix(s.DocumentID, "http://")) {
		url = s.DocumentID
	}
	if url == "" {
		return ""
	}
	return (&ibid.Source{Kind: ibid.Web, URL: url}).Key()
}

// Enhance adds what a step retrieved to its sources: the results or, if there are none, the step's context. A passage
// that the step already has is not added again, but completed with what the result adds (a score, a title, the text).
func (s *Step) Enhance(results []Result) {
	if len(results) > 0 {
		s.AddSources(SourcesFromResults(results)...)
		return
	}
	s.AddSources(SourcesFromContext(s.Context)...)
}

// AddAnswer adds a captured model call with the sources of its answer. The answer's text becomes the step's, unless the
// step has one. An answer whose id the step already has replaces the earlier one, since a call may be fetched again.
func (s *Step) AddAnswer(id string, a *ibid.Answer) {
	known := func(a StepAnswer) bool { return id != "" && a.ID == id }
	if at := slices.IndexFunc(s.Answers, known); at >= 0 {
		s.Answers[at].Answer = a
	} else {
		s.Answers = append(s.Answers, StepAnswer{id, a})
	}
	if a == nil {
		return
	}
	s.Answer = cmp.Or(s.Answer, a.Text)
	if a.Error != nil && s.Error == "" {
		s.Error = a.Error.Error()
	}
	s.AddSources(SourcesFromAnswer(a)...)
}

// AddSources adds sources to the step. A passage that it already has, recognised by document, chunk and text, is not
// added again: missing members are filled in, and the higher relevance is kept.
func (s *Step) AddSources(sources ...Source) {
	if len(sources) == 0 {
		return
	}
	known := newPassageIndex(len(s.Sources) + len(sources))
	first := make(map[string]int) // passage of each document
	note := func(i int) {
		f := &s.Sources[i]
		known.add(f.DocumentID, f)
		if _, ok := first[f.DocumentID]; !ok {
			first[f.DocumentID] = i
		}
	}
	for i := range s.Sources {
		note(i)
	}
	for i := range sources {
		add := &sources[i]
		k, ok := known.find(add.DocumentID, add)
		if !ok {
			// A row without a passage matches any passage of its document.
			k, ok = first[add.DocumentID]
			ok = ok && (add.bare() || s.Sources[k].bare())
		}
		if !ok {
			s.Sources = append(s.Sources, *add)
			note(len(s.Sources) - 1)
			continue
		}
		known.join(k, add)
		f := &s.Sources[k]
		if compareRelevance(add, f) < 0 {
			f.Relevance, f.Origin = add.Relevance, add.Origin
		}
		f.fill(add)
	}
}

// fill fills in what s lacks from another row.
func (s *Source) fill(from *Source) {
	s.Title, s.URL, s.Key = cmp.Or(s.Title, from.Title), cmp.Or(s.URL, from.URL), cmp.Or(s.Key, from.Key)
	s.Excerpt, s.Content = cmp.Or(s.Excerpt, from.Excerpt), cmp.Or(s.Content, from.Content)
	s.Version, s.Rank = cmp.Or(s.Version, from.Version), cmp.Or(s.Rank, from.Rank)
	s.ChunkIndex, s.Locator = cmp.Or(s.ChunkIndex, from.ChunkIndex), cmp.Or(s.Locator, from.Locator)
	s.Overlap, s.Usage = larger(s.Overlap, from.Overlap), larger(s.Usage, from.Usage)
	if s.Relevance == nil {
		s.Relevance, s.Origin = from.Relevance, from.Origin
	}
	s.Verification = cmp.Or(s.Verification, from.Verification)
	s.Retrieved, s.Used, s.Cited = s.Retrieved || from.Retrieved, s.Used || from.Used, s.Cited || from.Cited
	if s.Extra == nil {
		s.Extra = from.Extra
	}
}

// larger returns the larger of two numbers, which may be nil.
func larger(a, b *float64) *float64 {
	if compareScores(b, a) < 0 {
		return b
	}
	return a
}

// documents groups the rows of a run's steps by document.
type documents struct {
	rows  []docRow
	at    map[*Source]int // index in rows
	names []string        // of each document in this run, unique
	also  [][]string      // other ids of each document
	known map[string]int  // documents by identity
}

// docRow is one row of a step, or of a run nested in it.
type docRow struct {
	*Source
	step     int // index in Trail.Steps
	document int
}

// documents returns the documents of the run, numbered by first use in step order. Rows are of the same document if
// they have the same id or equivalent addresses. Ids that are only positions, and hashes of content, are not enough.
func (t *Trail) documents() *documents {
	d := &documents{at: make(map[*Source]int)}
	for i := range t.Steps {
		d.collect(&t.Steps[i], i, 0)
	}
	parent := make([]int, len(d.rows))
	byName := make(map[string]int, len(d.rows))
	for i := range d.rows {
		parent[i] = i
		for _, name := range identities(d.rows[i].Source) {
			if other, ok := byName[name]; ok {
				join(parent, i, other)
			} else {
				byName[name] = i
			}
		}
	}
	d.number(t, parent)
	d.known = make(map[string]int, len(byName))
	for name, row := range byName {
		d.known[name] = d.rows[row].document
	}
	return d
}

// documentOf returns the document of a row.
func (d *documents) documentOf(s *Source) int { return d.rows[d.at[s]].document }

// find returns the document of a source, or -1.
func (d *documents) find(s *Source) int {
	for _, name := range identities(s) {
		if n, ok := d.known[name]; ok {
			return n
		}
	}
	return -1
}

// withWords returns the rows that have words, without repeated texts of a document.
func (d *documents) withWords(rows []int) (all []int) {
	type words struct {
		document int
		text     string
	}
	seen := make(map[words]bool, len(rows))
	for _, i := range rows {
		if key := (words{d.rows[i].document, d.rows[i].text()}); key.text != "" && !seen[key] {
			seen[key] = true
			all = append(all, i)
		}
	}
	return all
}

func (d *documents) collect(s *Step, step, depth int) {
	for k := range s.Sources {
		d.rows = append(d.rows, docRow{Source: &s.Sources[k], step: step})
	}
	if s.Nested == nil || depth == MaxNested {
		return
	}
	for i := range s.Nested.Steps {
		d.collect(&s.Nested.Steps[i], step, depth+1)
	}
}

// identities returns the names that identify a row's document. Rows that share one are of the same document.
func identities(s *Source) []string {
	var names []string
	if web := s.webKey(); web != "" {
		names = append(names, "key "+web)
	}
	counted := positional(s.DocumentID)
	if s.Key != "" && (counted || s.DocumentID == s.Key || !strings.HasPrefix(s.Key, "sha256:")) {
		names = append(names, "key "+s.Key)
	}
	switch {
	case !counted:
		names = append(names, "id "+s.DocumentID)
	case len(names) == 0:
		names = append(names, "counted "+s.DocumentID)
	}
	return names
}

// join merges the sets of a and b, represented by the earlier row.
func join(parent []int, a, b int) {
	if a, b = root(parent, a), root(parent, b); a < b {
		parent[b] = a
	} else {
		parent[a] = b
	}
}

func root(parent []int, i int) int {
	for parent[i] != i {
		parent[i] = parent[parent[i]]
		i = parent[i]
	}
	return i
}

// number numbers the documents, and names each by its first id that is not only a position.
func (d *documents) number(t *Trail, parent []int) {
	numbers := make(map[int]int)
	var firsts []int // the first row of each document
	for i := range d.rows {
		r := &d.rows[i]
		n, ok := numbers[root(parent, i)]
		if !ok {
			n = len(firsts)
			numbers[root(parent, i)] = n
			firsts = append(firsts, i)
			d.names, d.also = append(d.names, r.DocumentID), append(d.also, nil)
		}
		r.document, d.at[r.Source] = n, i
		if positional(d.names[n]) && !positional(r.DocumentID) {
			d.names[n] = r.DocumentID
		}
	}
	taken := make(map[string]bool, len(d.names))
	for n, name := range d.names {
		for base, again := name, 0; taken[name]; again++ {
			name = fmt.Sprintf("%s@step_%d", base, t.Steps[d.rows[firsts[n]].step].Number)
			if again > 0 {
				name += fmt.Sprintf("_%d", again+1)
			}
		}
		taken[name], d.names[n] = true, name
	}
	seen := make(map[[2]string]bool)
	for i := range d.rows {
		r := &d.rows[i]
		name := d.names[r.document]
		pair := [2]string{name, r.DocumentID}
		if r.DocumentID != name && !strings.HasPrefix(name, r.DocumentID+"@step_") && !seen[pair] {
			seen[pair] = true
			d.also[r.document] = append(d.also[r.document], r.DocumentID)
		}
	}
}

// passageIndex finds rows of the same passage: of one document and chunk, with the same words. A row without words is
// recognised by its chunk, one with only an excerpt by that. Passages are numbered from 0 as they are added.
type passageIndex struct {
	at  map[passageID]int
	all []Source // the document, words and chunk of each, as far as known
}

// passageID is one way to identify a passage.
type passageID struct {
	document, text string
	chunk          int // -1 if unknown
	by             passageBy
}

type passageBy int

const (
	byContent     passageBy = iota // text is the whole passage
	byExcerpt                      // text is its excerpt
	byExcerptOnly                  // the same, if there is nothing but the excerpt
	byChunk                        // only the chunk counts
	byChunkOnly                    // the same, if the passage has no words
)

func newPassageIndex(size int) *passageIndex {
	return &passageIndex{at: make(map[passageID]int, size), all: make([]Source, 0, size)}
}

func (s *Source) passageID(by passageBy, text string) passageID {
	id := passageID{document: s.DocumentID, text: text, chunk: -1, by: by}
	if s.ChunkIndex != nil {
		id.chunk = *s.ChunkIndex
	}
	return id
}

// find returns the number of the passage that a row of a document belongs to.
func (p *passageIndex) find(document string, s *Source) (n int, ok bool) {
	f := Source{
		DocumentID: document,
		Content:    s.Content,
		Excerpt:    cmp.Or(s.Excerpt, s.Content),
		ChunkIndex: s.ChunkIndex,
	}
	switch {
	case s.Content != "":
		if n, ok = p.at[f.passageID(byContent, f.Content)]; !ok {
			n, ok = p.at[f.passageID(byExcerptOnly, f.Excerpt)]
		}
	case s.Excerpt != "":
		n, ok = p.at[f.passageID(byExcerpt, f.Excerpt)]
	case s.ChunkIndex != nil:
		n, ok = p.at[f.passageID(byChunk, "")]
	}
	if !ok && (s.ChunkIndex != nil || s.bare()) {
		n, ok = p.at[f.passageID(byChunkOnly, "")]
	}
	return n, ok
}

// add adds the passage of a row.
func (p *passageIndex) add(document string, s *Source) {
	p.all = append(p.all, Source{DocumentID: document})
	p.join(len(p.all)-1, s)
}

// join adds what a row knows about its passage.
func (p *passageIndex) join(n int, s *Source) {
	f := &p.all[n]
	f.Content, f.Excerpt = cmp.Or(f.Content, s.Content), cmp.Or(f.Excerpt, cmp.Or(s.Excerpt, s.Content))
	f.ChunkIndex = cmp.Or(f.ChunkIndex, s.ChunkIndex)
	p.note(f.passageID(byContent, f.Content), n, f.Content != "")
	p.note(f.passageID(byExcerpt, f.Excerpt), n, f.Excerpt != "")
	p.note(f.passageID(byExcerptOnly, f.Excerpt), n, f.Content == "" && f.Excerpt != "")
	p.note(f.passageID(byChunk, ""), n, f.ChunkIndex != nil)
	p.note(f.passageID(byChunkOnly, ""), n, f.Excerpt == "")
}

// note records whether a passage is identified by id. If several are, the first counts.
func (p *passageIndex) note(id passageID, n int, is bool) {
	switch old, ok := p.at[id]; {
	case is && !ok:
		p.at[id] = n
	case !is && ok && old == n:
		delete(p.at, id)
	}
}

// version returns the hash of a passage's content, or "" if only an excerpt is known.
func (p *passageIndex) version(n int) string {
	if words := p.all[n].Content; words != "" {
		return digest([]byte(words))
	}
	return ""
}

func (s *Source) bare() bool { return s.ChunkIndex == nil && s.text() == "" }
