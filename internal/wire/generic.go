package wire

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/scan"
)

// Many services answer with a text and a list of sources beside it, each with names of its own: Tavily, Linkup, Kagi,
// Exa, You.com, Cloudflare, Vectara, and servers that use LangChain or LlamaIndex. One reader takes the text, the lists
// and the marks that it recognises.

// textNames and listNames are the members that hold the text and the list, the best first; wrapNames those that may
// hold both.
var (
	textNames = strings.Fields(`answer response output_text output text summary reply generated_text completion result
		content message`)
	listNames = strings.Fields(`citations sources references source_documents source_nodes search_results results
		documents hits contexts context passages chunks web_results data`)
	wrapNames = strings.Fields("data result output response answer")
)

// generic reads generic-sources.
type generic struct{ out }

func newGenericSources(c *Config) Parser {
	if c.Mapping != nil {
		return newMapped(c)
	}
	return &generic{out{Config: c}}
}

func looksGenericSources(s *shape) bool {
	if !s.doc.IsObject() || s.doc.Cut() {
		return false
	}
	text, list := answerAndList(s.doc)
	return text != nil && list != nil
}

// answerAndList returns the text and the list of sources of a document, perhaps those of a member that holds both; nil
// if it does not have both. Names count before shapes.
func answerAndList(doc scan.Value) (text, list scan.Value) {
	for _, find := range [...]func(scan.Value) (text, list scan.Value){
		func(v scan.Value) (text, list scan.Value) { return textOf(v), listOf(v) },
		func(v scan.Value) (text, list scan.Value) {
			if list = orValue(listOf(v), sourcesIn(v)); list != nil {
				text = orValue(textOf(v), proseIn(v))
			}
			return text, list
		},
	} {
		if text, list = find(doc); text != nil && list != nil {
			return text, list
		}
		for _, name := range wrapNames {
			if inner := doc.Get(name); inner.IsObject() {
				innerText, innerList := find(inner)
				if innerText = orValue(innerText, text); innerText != nil && orValue(innerList, list) != nil {
					return innerText, orValue(innerList, list)
				}
			}
		}
	}
	return nil, nil
}

// notText are members whose words are not the answer's.
var notText = strings.Fields(`query question prompt input q search_query original_query rewritten_query error detail
	description instructions system thought reasoning thinking title name url`)

// proseIn returns the longest string of an object that reads like an answer: some words that end like a sentence.
func proseIn(v scan.Value) (text scan.Value) {
	const least = 3 // spaces
	for o := scan.Members(v); o.Next(); {
		words := bytes.TrimSpace(o.Val.Content())
		if !o.Val.IsString() || slices.Contains(notText, strings.ToLower(string(o.Key))) || len(words) == 0 {
			continue
		}
		wide := bytes.ContainsAny(words, "。！")
		reads := wide || bytes.Count(words, []byte(" ")) >= least && bytes.ContainsAny(words, ".!")
		if reads && len(o.Val) > len(text) {
			text = o.Val
		}
	}
	return text
}

// sourcesIn returns the first list of an object whose elements are sources by their shape: each has words and a name,
// or an address and a title.
func sourcesIn(v scan.Value) scan.Value {
	for o := scan.Members(v); o.Next(); {
		if !o.Val.IsArray() || blank(o.Val) || isMedia(o.Key) || string(o.Key) == "messages" {
			continue
		}
		sources := true
		for a, n := scan.Elements(o.Val), 0; n < sampledElements && sources && a.Next(); n++ {
			p, ok := element(a.Val)
			sources = ok && a.Val.IsObject() && (p.URL != "" && (p.Title != "" || p.Text != "") ||
				p.Text != "" && (p.Title != "" || p.Filename != ""))
		}
		if sources {
			return o.Val
		}
	}
	return nil
}

func orValue(a, b scan.Value) scan.Value {
	if a != nil {
		return a
	}
	return b
}

func textOf(v scan.Value) scan.Value {
	for _, name := range textNames {
		if text := v.Get(name); text.IsString() && len(bytes.TrimSpace(text.Content())) > 0 {
			return text
		}
	}
	return nil
}

// sampledElements is how many elements show what a list has.
const sampledElements = 8

// listOf returns the first list whose elements are sources: all have a name or an address.
func listOf(v scan.Value) scan.Value {
	for _, name := range listNames {
		list := v.Get(name)
		if !list.IsArray() || blank(list) {
			continue
		}
		sources := true
		for a, n := scan.Elements(list), 0; n < sampledElements && sources && a.Next(); n++ {
			p, ok := element(a.Val)
			sources = ok && (p.URL != "" || p.Title != "" || p.Filename != "" || p.ID != "")
		}
		if sources {
			return list
		}
	}
	return nil
}

// element reads an element of a list: an object, or an address.
func element(v scan.Value) (passage.Passage, bool) {
	if v.IsString() {
		return passage.Passage{URL: v.Str()}, strings.Contains(v.Str(), "://")
	}
	return passage.ReadObject(v)
}

// Parse implements [Parser].
func (p *generic) Parse(_ []byte, doc scan.Value) bool {
	text, list := answerAndList(doc)
	if !text.IsString() {
		return false
	}
	p.unreadBut(doc, genericReads, list)
	p.heads(doc)
	p.wantList("sources", list)
	var refs []Ref
	for a := scan.Elements(list); a.Next() && !a.Cut() && len(refs) < maxNumber && p.Keep(2*refSize); {
		s, ok := readListed(a.Val)
		if !ok {
			p.unknown("source", a.Val)
			refs = append(refs, Ref{})
			continue
		}
		s.Key = cmp.Or(s.URL, s.ID, s.GlobalID)
		if s.Key == "" {
			s.Key = numbered("source:", len(refs)+1)
		}
		refs = append(refs, Ref{Source: s.Key})
		p.source(s)
	}
	if p.emit(Op{Kind: MarkersOp, Markers: &Markers{Links: true}}); len(refs) > 0 {
		p.emit(Op{Kind: MarkersOp, Markers: &Markers{Style: bracketNumber, Refs: refs, Names: true}})
	}
	p.text(Part{}, text)
	p.finish(0, finishStop)
	p.emit(Op{Kind: End})
	return true
}

// genericReads are none: what is not read is reported.
var genericReads = readPaths("")

// heads emits the id and the model of an answer.
func (o *out) heads(doc scan.Value) {
	for _, name := range [...]string{"id", "request_id", "requestId"} {
		if id := doc.Get(name); id.IsString() {
			o.head(HeadID, id)
			break
		}
	}
	o.head(HeadModel, doc.Get("model"))
}

// readListed reads an element of a list of sources.
func readListed(v scan.Value) (*Source, bool) {
	e, ok := element(v)
	s := &Source{
		ID: e.ID, Title: cmp.Or(e.Title, e.Filename), URL: e.URL, Filename: e.Filename,
		Site: e.Site, Authors: e.Authors, PublishedAt: e.PublishedAt, Content: e.Text, ChunkID: e.ChunkID,
		Score: e.Score, Raw: v,
	}
	if strings.Contains(s.ID, "://") { // an address as an id
		s.URL, s.ID = cmp.Or(s.URL, s.ID), ""
	}
	s.Kind = kindOf(s)
	return s, ok || s.Title != "" || s.URL != "" || s.ID != ""
}

// kindOf returns the kind of a source by what it has.
func kindOf(s *Source) string {
	switch {
	case s.URL != "":
		return kindWeb
	case s.Filename != "":
		return kindFile
	}
	return kindDocument
}
