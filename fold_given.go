package ibid

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/scan"
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
	list      *markList // nil if there are no sources
	added     bool      // the sources are in the answer
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
	markers := wire.Markers{Names: true}
	var found call.Given
	if len(g.request) > 0 {
		found = call.ReadGiven(format, g.request)
		markers.Round = found.Round
	}
	documents := g.documents
	if len(documents) == 0 && found.Documents != nil {
		documents, _ = wire.ReadDocuments(found.Documents)
	}
	g.sources = givenSources(found.Passages, documents)
	if len(g.sources) == 0 {
		return nil
	}
	calls := make([]called, len(g.sources))
	markers.Refs = make([]wire.Ref, len(g.sources))
	for i := range g.sources {
		s := &g.sources[i]
		markers.Refs[i] = wire.Ref{Source: s.Key, Locator: s.Locator}
		calls[i] = called{label: s.Label, id: s.ID, title: s.Title, filename: s.Filename, url: s.URL}
		if s.Locator.Page > 0 {
			calls[i].page = strconv.Itoa(s.Locator.Page)
		}
	}
	g.list = newMarkList(&markers, calls, true)
	return g.list
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

// closeGiven adds what the model was given if the provider sent no sources.
func (f *fold) closeGiven() {
	if f.given == nil || f.failure != nil || len(f.sources.list) > 0 || f.cited {
		return
	}
	if f.given.marksOf(f.format) != nil {
		f.addGiven()
	}
}
