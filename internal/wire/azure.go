package wire

import (
	"github.com/ibidhq/ibid/internal/scan"
)

// azureContext reads what Azure gave the model for answers on own data: the chunks that [docN] in the text stands for.
func (p *chat) azureContext(index int, v scan.Value) {
	if !v.IsObject() {
		return
	}
	var citations, intent, found, messages scan.Value
	v.Read(scan.Fields{
		{"citations", &citations}, {"intent", &intent}, {"all_retrieved_documents", &found}, {"messages", &messages},
	})
	if citations != nil || intent != nil || found != nil {
		p.setFlavour(azureChat)
	}
	p.azureCitations(index, citations)
	p.intent(intent)
	p.meta("all_retrieved_documents", found)
	for a := scan.Elements(messages); a.Next(); { // before 2024-02-15
		p.toolContext(index, a.Val)
	}
}

// azureCitations numbers the retrieved chunks. Chunks of one file are one source, but have numbers of their own.
func (p *chat) azureCitations(index int, list scan.Value) {
	if !p.isNew("context", list) {
		return
	}
	if p.wantList("citations", list); !list.IsArray() {
		return
	}
	p.numbers, p.style = []Ref{}, DocNumber
	prefix := "doc" // each candidate's list has chunks of its own
	if index > 0 {
		prefix = numbered("doc:", index) + ":"
	}
	for a := scan.Elements(list); a.Next() && !a.Cut() && p.numbered(len(p.numbers)); {
		s := azureChunk(a.Val)
		s.Key = numbered(prefix, len(p.numbers)+1)
		p.numbers = append(p.numbers, Ref{Source: s.Key, Quote: s.Content, Locator: Locator{Chunk: s.ChunkID}})
		p.source(s)
	}
	p.choiceOf(index).marked = false
	p.candidate(index)
}

func azureChunk(v scan.Value) *Source {
	s := &Source{Kind: kindDocument, Raw: v}
	var chunk, url scan.Value
	v.Read(scan.Fields{
		{"id", &s.ID},
		{"title", &s.Title},
		{"content", &s.Content},
		{"filepath", &s.Filename},
		{"file_path", &s.Filename},
		{"chunk_id", &chunk},
		{"url", &url},
	})
	s.ChunkID = chunk.Text()
	if s.URL = url.Str(); url.IsObject() {
		s.URL = firstText(url, "url", "uri", "href")
	}
	if s.Filename != "" || s.URL != "" {
		s.Kind = kindFile
	}
	return s
}

// intent reads the queries that a question was turned into: a JSON array in a string.
func (p *chat) intent(v scan.Value) {
	list := scan.Value(v.Bytes())
	if !list.IsArray() {
		p.query(v)
		return
	}
	for a := scan.Elements(list); a.Next(); {
		p.query(a.Val)
	}
}

// messages reads the form before 2024-02-15: a message of the tool, whose content is the context as JSON in a string,
// and the assistant's, both whole or in pieces. It reports whether a piece ends the answer.
func (p *chat) messages(index int, list scan.Value) bool {
	ended := false
	for a := scan.Elements(list); a.Next(); {
		m := a.Val
		ended = ended || m.Get("end_turn").IsTrue()
		if delta := m.Get("delta"); delta.IsObject() {
			m = delta
		}
		if !p.toolContext(index, m) {
			p.message(index, m, false)
		}
	}
	return ended
}

// toolContext reads the tool's message, and reports whether m is one.
func (p *chat) toolContext(index int, m scan.Value) bool {
	if m.Get("role").Str() != "tool" {
		return false
	}
	p.azureContext(index, scan.Value(m.Get("content").Bytes()))
	return true
}
