package ibid

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/wire"
)

// Most models that answer from passages get them in the prompt and cite them with marks in the text: [1]. Their
// provider knows nothing of it. So an answer whose provider sends no citations gets the passages of its request, or the
// documents that the caller gives, as sources, and its marks as citations.

// given is what the model was given to answer from.
type given struct {
	request   []byte
	documents []wire.Source // instead of the request's
	read      bool
	sources   []wire.Source
	list      *markList     // nil if there are no sources
	unsure    []wire.Source // the sources if the answer cites them: see [given.settle]
	added     bool          // the sources are in the answer
}

// marksOf returns the list of what the model was given, nil if there is nothing.
func (g *given) marksOf(format string) *markList {
	if g.read {
		return g.list
	}
	g.read = true
	if citesDocuments(format) {
		return nil
	}
	var found call.Given
	if len(g.request) > 0 {
		found = call.ReadGiven(format, g.request)
	}
	documents := g.documents
	if len(documents) == 0 && found.Documents != nil {
		documents, _ = wire.ReadDocuments(found.Documents)
	}
	g.sources = givenSources(found.Passages, documents)
	if len(g.sources) > 0 {
		g.list = givenList(g.sources, found.Round)
	} else {
		g.unsure = givenSources(found.Unsure, nil)
	}
	return g.list
}

// givenList returns the list that marks refer to. Round means that numbers in parentheses are marks.
func givenList(sources []wire.Source, round bool) *markList {
	markers := wire.Markers{Names: true, Round: round, Refs: make([]wire.Ref, len(sources))}
	calls := make([]called, len(sources))
	for i := range sources {
		s := &sources[i]
		markers.Refs[i] = wire.Ref{Source: s.Key, Locator: s.Locator}
		calls[i] = called{label: s.Label, id: s.ID, title: s.Title, filename: s.Filename, url: s.URL}
		if s.Locator.Page > 0 {
			calls[i].page = strconv.Itoa(s.Locator.Page)
		}
	}
	return newMarkList(&markers, calls, true)
}

// settle decides whether what may be passages are some, now that the answer is whole: its marks must name nothing
// else, and close sentences with words of what they name. Options and tasks are discussed in other words, and named in
// mid-sentence or at the beginning of lines.
func (g *given) settle(answer string, from int) {
	const most, fewest = 1 << 20, 2 // bytes of an answer; words that a sentence has in common with its passage
	list := givenList(g.unsure, false)
	sources := g.unsure
	if g.unsure = nil; len(answer) > most {
		return
	}
	m := &marks{markList: list, from: from}
	m.restart()
	words := make([]map[string]bool, len(sources))
	cites, others := 0, 0
	for found, ok := m.next(answer, true); ok; found, ok = m.next(answer, true) {
		if found.lost || len(found.refs) == 0 {
			return
		}
		start, end := prose.SentenceBefore(answer, found.span.Start)
		said := contentWords(answer[start:min(end, found.span.Start)])
		common := 0
		for _, i := range found.refs {
			if words[i] == nil {
				words[i] = contentWords(sources[i].Title + " " + sources[i].Content)
			}
			n := 0
			for word := range said {
				if words[i][word] {
					n++
				}
			}
			common = max(common, n)
		}
		before := answer[max(0, found.span.Start-maxMarkContext):found.span.Start]
		if common >= fewest && !beginsLine(answer, found.span.Start) && !leadsToItem().MatchString(before) &&
			closesWords(answer[found.span.End:]) {
			cites++
		} else {
			others++
		}
	}
	if cites > others {
		g.sources, g.list = sources, list
	}
}

// leadsToItem matches what precedes a number that is a word of the sentence: in line [2], do [1].
var leadsToItem = text.Pattern(`(?i)\b(?:lines?|items?|tasks?|steps?|options?|numbers?|points?|entry|entries|` +
	`messages?|questions?|parts?|rows?|with|do|in|for|to|of|and|or|from|like|choose|pick|zeile|punkt|schritt|mit|und|` +
	`oder|von) ?$`)

// contentWords returns the words of a text that mean something, in small letters: long ones, and those with digits or
// of scripts without spaces.
func contentWords(s string) map[string]bool {
	const long = 4
	words := map[string]bool{}
	for start, end := range prose.Words(s) {
		word := strings.ToLower(s[start:end])
		if len(word) >= long || strings.ContainsAny(word, "0123456789") {
			words[word] = true
		}
	}
	return words
}

// citesDocuments reports whether a format's provider reads the documents of a request itself, and cites them.
func citesDocuments(format string) bool {
	return strings.HasPrefix(format, "cohere-") || format == "bedrock-rag" || format == "vertex-search"
}

// givenSources returns passages, or else documents, as sources. Passages with the same label and names are chunks of
// one source.
func givenSources(passages []passage.Passage, documents []wire.Source) []wire.Source {
	var out []wire.Source
	if len(documents) > 0 {
		for i := range documents {
			s := documents[i]
			s.Key, s.Label = "given:"+strconv.Itoa(i), s.ID
			out = append(out, s)
		}
		return out
	}
	type name struct{ label, id, title, filename, url string }
	first := map[name]string{}
	for i := range passages {
		p := &passages[i]
		s := wire.Source{
			Key: "given:" + strconv.Itoa(i), Label: p.Label, ID: p.ID, Title: p.Title, Filename: p.Filename, URL: p.URL,
			Site: p.Site, Authors: p.Authors, PublishedAt: p.PublishedAt, ChunkID: p.ChunkID, Score: p.Score,
			Content: p.Text, Raw: scan.Value(p.Raw), Kind: string(DocumentKind),
		}
		if s.ID == "" && passage.Number(s.Label) < 0 {
			s.ID = s.Label
		}
		if passage.Number(s.ID) >= 0 {
			s.ID = "" // positions in one prompt
		}
		if s.URL != "" {
			s.Kind = string(Web)
		}
		s.Locator.Page, _ = strconv.Atoi(p.Page)
		n := name{p.Label, p.ID, p.Title, p.Filename, p.URL}
		if key, ok := first[n]; ok && p.Label != "" {
			s.Key = key
		} else {
			first[n] = s.Key
		}
		out = append(out, s)
	}
	return out
}

// addGiven adds the sources that the model was given to the answer.
func (f *fold) addGiven() {
	if f.given == nil || f.given.added {
		return
	}
	f.given.added = true
	for i := range f.given.sources {
		f.sources.add(&f.given.sources[i])
	}
}

// useGiven begins to read marks that refer to what the model was given, unless the provider has a list of its own.
func (c *candidate) useGiven() {
	if c.marks != nil || c.fold.given == nil || c.fold.cited {
		return
	}
	if list := c.fold.given.marksOf(c.fold.format); list != nil {
		c.marks = &marks{markList: list, from: c.marked}
		c.marks.restart()
	}
}

// settleGiven reads the marks of an answer that refer to what only the whole answer shows to be passages.
func (c *candidate) settleGiven() {
	g := c.fold.given
	if g == nil || c.marks != nil || c.fold.cited || len(g.unsure) == 0 {
		return
	}
	if g.settle(c.text.String(), c.marked); g.list != nil {
		c.marks = &marks{markList: g.list, from: c.marked}
		c.marks.restart()
	}
}

// closeGiven adds what the model was given if the provider sent no sources.
func (f *fold) closeGiven() {
	if f.given == nil || f.failure != nil || len(f.sources.list) > 0 || f.cited {
		return
	}
	if f.given.marksOf(f.format) != nil {
		f.addGiven()
	}
}
