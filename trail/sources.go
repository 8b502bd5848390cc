package trail

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/support"
)

// DefaultExcerpt is how many characters of a passage are shown, unless told otherwise.
const DefaultExcerpt = 200

// Excerpt returns the beginning of text, without the white space around it: all of it, or what ends with a word,
// followed by an ellipsis, if it has more than n characters. The ellipsis is one of them. Characters are what readers
// take for one: an emoji with its modifiers is. Zero n means DefaultExcerpt.
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
	if cut < last/2 { // one endless word, or none
		cut = last
	}
	return text[:cut] + "…"
}

// SourcesFromResults returns the results of a retrieval as sources that the step retrieved and used: those that reach
// the model are used, as far as anybody can tell. Ranks count from 1. Scores are the retriever's; where it gave none,
// none is made up. A result without a document id gets one from its URL, else from its content.
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

// SourcesFromContext returns the bare strings of a context as sources, the fallback where there are no results with
// members. A string may begin with "id:", the id of its document and white space; a comma, semicolon, colon or full
// stop at the id's end is none of it. The others are context_0, context_1, … by their place. Blank strings are passed
// over.
//
// Nothing says how relevant they are but their order, so each has the score max(0.3, 1 - 0.1·place) of the origin
// [ibid.ScoreRank]. This is the only place where trail makes a score.
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

// cutID takes the id off a context string.
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

// SourcesFromAnswer returns the sources of a captured answer, a row for each passage: all are retrieved, and those that
// a citation names cited. Scores keep the origin they have in the answer. Words that a citation quotes and no passage
// has are a passage of their own. Where the answer has citations, Usage is the share of its information in the words
// that rest on the source: see [support.Usage].
func SourcesFromAnswer(a *ibid.Answer) []Source {
	if a == nil {
		return nil
	}
	quotes := make(map[string][]string, len(a.Sources)) // by source; present: it is cited
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
		said, cited := quotes[from.ID]
		row := Source{
			DocumentID: documentID(from),
			Title:      first(from.Title, from.Filename),
			URL:        from.URL,
			Retrieved:  true,
			Cited:      cited,
		}
		if row.Title != "" || from.URL != "" || from.GlobalID != "" || from.Content != "" {
			row.Key = from.Key() // of a source about which nothing is known it is everybody's
		}
		if share, ok := shares[from.ID]; ok {
			row.Usage = new(estimate(share))
		}
		if !from.RetrievedAt.IsZero() {
			row.Version = from.RetrievedAt.UTC().Format("2006-01-02T15:04:05Z")
		}
		row.identify(i)
		sources = append(sources, passages(row, from, said)...)
	}
	return sources
}

// passages returns row once for each passage of a source.
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
		if q == "" || seen[q] || held(rows, q) {
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

func held(rows []Source, quote string) bool {
	for i := range rows {
		if strings.Contains(rows[i].Content, quote) {
			return true
		}
	}
	return false
}

// documentID names a source of an answer in its run: an id that only counts places gives way to one that does not.
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

// positional reports whether an id only counts places in one answer or one context: doc:0, context_3. Two steps may use
// it for two documents.
func positional(id string) bool {
	name, digits, ok := strings.Cut(id, ":")
	if !ok {
		digits, ok = strings.CutPrefix(id, "context_")
		name = "context"
	}
	if !ok || name == "" || digits == "" {
		return false
	}
	for i := range len(name) {
		if name[i] < 'a' || name[i] > 'z' {
			return false
		}
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// identify gives a source without an id one, and one with a URL a key. It reports whether there was no id. At is the
// source's place, for one about which nothing is known.
func (s *Source) identify(at int) (missing bool) {
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
		s.DocumentID = "source:" + strconv.Itoa(at)
	}
	return true
}

// webKey returns the key of the source's address, the same whatever kind of source it is; empty: it has no address.
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

// Enhance adds what a step retrieved to its sources: results, or where there are none the step's context. A passage
// that the step has already is not added again; what the result knows besides (a score, a title, the text) is.
func (s *Step) Enhance(results []Result) {
	if len(results) > 0 {
		s.AddSources(SourcesFromResults(results)...)
		return
	}
	s.AddSources(SourcesFromContext(s.Context)...)
}

// AddAnswer adds a captured call with the sources of its answer. The step's own answer is that answer's text, unless it
// has one. An answer with an id that the step has already replaces it: a call may be fetched again.
func (s *Step) AddAnswer(id string, a *ibid.Answer) {
	at := -1
	for i := range s.Answers {
		if id != "" && s.Answers[i].ID == id {
			at = i
		}
	}
	if at >= 0 {
		s.Answers[at].Answer = a
	} else {
		s.Answers = append(s.Answers, StepAnswer{id, a})
	}
	if a == nil {
		return
	}
	if s.Answer == "" {
		s.Answer = a.Text
	}
	if a.Error != nil && s.Error == "" {
		s.Error = a.Error.Error()
	}
	s.AddSources(SourcesFromAnswer(a)...)
}

// AddSources adds sources to the step. A passage that is there already, told by its document, its chunk and its words,
// is not added again: what was not known of it is filled in, and the better relevance counts.
func (s *Step) AddSources(sources ...Source) {
	if len(sources) == 0 {
		return
	}
	known := newPassageIndex(len(s.Sources) + len(sources))
	some := make(map[string]int) // the first passage of each document
	note := func(i int) {
		f := &s.Sources[i]
		known.add(f.DocumentID, f)
		if _, ok := some[f.DocumentID]; !ok {
			some[f.DocumentID] = i
		}
	}
	for i := range s.Sources {
		note(i)
	}
	for i := range sources {
		add := &sources[i]
		k, ok := known.find(add.DocumentID, add)
		if !ok {
			// A row without a passage is one with any passage of its document.
			k, ok = some[add.DocumentID]
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

// fill adds to s what from knows besides.
func (s *Source) fill(from *Source) {
	s.Title, s.URL, s.Key = first(s.Title, from.Title), first(s.URL, from.URL), first(s.Key, from.Key)
	s.Excerpt, s.Content = first(s.Excerpt, from.Excerpt), first(s.Content, from.Content)
	s.Version, s.Rank = first(s.Version, from.Version), first(s.Rank, from.Rank)
	s.ChunkIndex, s.Locator = first(s.ChunkIndex, from.ChunkIndex), first(s.Locator, from.Locator)
	s.Overlap, s.Usage = larger(s.Overlap, from.Overlap), larger(s.Usage, from.Usage)
	if s.Relevance == nil {
		s.Relevance, s.Origin = from.Relevance, from.Origin
	}
	s.Retrieved, s.Used, s.Cited = s.Retrieved || from.Retrieved, s.Used || from.Used, s.Cited || from.Cited
	if s.Extra == nil {
		s.Extra = from.Extra
	}
}

// larger returns the larger of two numbers, of which nil is none.
func larger(a, b *float64) *float64 {
	if compareScores(b, a) < 0 {
		return b
	}
	return a
}

// first returns a, or where it is zero b.
func first[T comparable](a, b T) T {
	var zero T
	if a == zero {
		return b
	}
	return a
}
