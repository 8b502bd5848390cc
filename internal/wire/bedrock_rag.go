package wire

import (
	"encoding/base64"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Bedrock's RetrieveAndGenerate and InvokeAgent cite spans of the answer, repeat the span's words, and are alone in
// counting the last character in. Names: the Agents for Bedrock Runtime API reference.

// bedrockRAG reads bedrock-rag: a body, RetrieveAndGenerateStream and InvokeAgent's chunks.
type bedrockRAG struct {
	out
	cites    int
	unplaced int // references without an address so far
	delta    template
}

func newBedrockRAG(c *Config) Parser { return &bedrockRAG{out: out{emit: c.Emit}} }

func looksBedrockRAG(s *shape) bool {
	if s.val("output").Get("text").IsString() && s.hasAny("citations", "sessionId", "guardrailAction") {
		return true
	}
	if s.has("generatedResponsePart") || s.has("attribution", "bytes") || s.val("chunk").Get("attribution").IsObject() {
		return true
	}
	if s.event == "chunk" && s.has("bytes") { // an agent's text, or some model's own JSON
		inner := unwrapInvoke(s.doc)
		return len(inner) > 0 && !inner.IsObject()
	}
	return s.val("citation").Get("generatedResponsePart").IsObject() ||
		s.event == "output" && s.has("text") || s.event == "citation" && s.hasAny("citation", "retrievedReferences")
}

// ragEvent is a document, its members found but not read.
type ragEvent struct{ guardrail, output, text, part, citation, chunk, bytes, trace, session scan.Value }

func readRAG(doc scan.Value) (e ragEvent) {
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "guardrail":
			e.guardrail = o.Val
		case "output":
			e.output = o.Val
		case "text":
			e.text = o.Val
		case "generatedResponsePart":
			e.part = o.Val
		case "citation":
			e.citation = o.Val
		case "chunk":
			e.chunk = o.Val
		case "bytes":
			e.bytes = o.Val
		case "trace":
			e.trace = o.Val
		case "sessionId":
			e.session = o.Val
		}
	}
	return e
}

// Parse implements [Parser].
func (p *bedrockRAG) Parse(event []byte, doc scan.Value) bool {
	if text, ok := p.delta.match(doc); ok && string(event) == "output" {
		p.raw(Part{}, text)
		return true
	}
	e := readRAG(doc)
	switch {
	case string(event) == "guardrail" || e.guardrail.IsObject():
		p.guardrail(doc)
	case e.output.Get("text").IsString():
		p.body(doc)
	case string(event) == "output":
		p.delta.learn(doc, e.text, "", Part{}, false)
		p.text(Part{}, e.text)
	case e.part.IsObject():
		p.citation(doc)
	case e.citation.IsObject():
		p.citation(e.citation)
	case string(event) == "citation":
		p.citation(doc)
	case e.chunk.IsObject():
		return p.chunk(e.chunk)
	case e.bytes.IsString():
		return p.chunk(doc)
	case strings.HasSuffix(string(event), "Exception"):
		p.fail(string(event), firstText(doc, "message"))
	case e.trace.IsObject(), string(event) == "trace", string(event) == "sessionId", e.session.IsString():
	default:
		return false
	}
	return true
}

// Close implements [Parser]. There is no end mark but the transport's, and nothing says why an answer ended.
func (p *bedrockRAG) Close() { p.end() }

func (p *bedrockRAG) body(doc scan.Value) {
	p.text(Part{}, doc.Path("output", "text"))
	for citations := scan.Elements(doc.Get("citations")); citations.Next(); {
		p.citation(citations.Val)
	}
	p.guardrail(doc)
}

func (p *bedrockRAG) guardrail(doc scan.Value) {
	action := firstText(doc, "guardrailAction", "action")
	if action == "" {
		action = doc.Path("guardrail", "action").Str()
	}
	if action == "INTERVENED" {
		p.finish(0, FinishFilter)
	}
}

// chunk reads a piece of an agent's answer.
func (p *bedrockRAG) chunk(v scan.Value) bool {
	text, err := base64.StdEncoding.DecodeString(v.Get("bytes").Str())
	if err != nil {
		return false
	}
	p.say(Op{Kind: Text, Text: text})
	for citations := scan.Elements(v.Path("attribution", "citations")); citations.Next(); {
		p.citation(citations.Val)
	}
	return true
}

// citation says a citation, if it is all there.
func (p *bedrockRAG) citation(v scan.Value) {
	if v.Cut() {
		return
	}
	var part, list scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "generatedResponsePart":
			part = o.Val.Get("textResponsePart")
		case "retrievedReferences":
			list = o.Val
		}
	}
	cite := Cite{Key: numbered("citation:", p.cites), Base: AnswerBase, Unit: Nowhere, Quote: part.Get("text").Str()}
	p.cites++
	if span := part.Get("span"); span.IsObject() {
		start, ok1 := p.index("span start", span.Get("start"))
		if !ok1 && span.Get("start").IsNull() {
			ok1 = true // zeros are left out by some SDKs
		}
		if end, ok2 := p.index("span end", span.Get("end")); ok1 && ok2 {
			cite.Unit, cite.Start, cite.End = CodePoints, start, end+1
		}
	}
	for references := scan.Elements(list); references.Next(); {
		cite.Refs = append(cite.Refs, p.reference(references.Val))
	}
	if len(cite.Refs) > 0 { // an uncited run has none
		p.cite(&cite)
	}
}

// reference says the source of a citation and returns the pointer to it.
func (p *bedrockRAG) reference(v scan.Value) Ref {
	s := Source{Kind: KindDocument, Raw: v}
	var metadata scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "content":
			s.Content = o.Val.Get("text").Str()
		case "location":
			p.location(&s, o.Val)
		case "metadata":
			metadata = o.Val
		}
	}
	p.metadata(&s, metadata)
	if s.Key = s.URL; s.Key == "" {
		s.Key = s.GlobalID
	}
	if s.Key == "" {
		s.Key = numbered("reference:", p.unplaced)
		p.unplaced++
	}
	p.source(&s)
	return Ref{Source: s.Key, Quote: s.Content, Locator: s.Locator}
}

// location reads where a reference is kept.
func (p *bedrockRAG) location(s *Source, v scan.Value) {
	for o := scan.Members(v); o.Next(); {
		switch {
		case o.Val.IsObject():
			s.URL = firstText(o.Val, "uri", "url")
			s.GlobalID = o.Val.Get("id").Str()
		case string(o.Key) == "type":
			switch string(o.Val.Bytes()) {
			case "WEB", "CONFLUENCE", "SALESFORCE", "SHAREPOINT":
				s.Kind = KindWeb
			case "S3":
				s.Kind = KindFile
			}
		}
	}
}

// metadata reads what the knowledge base notes of a chunk.
func (p *bedrockRAG) metadata(s *Source, v scan.Value) {
	const prefix = "x-amz-bedrock-kb-"
	for o := scan.Members(v); o.Next(); {
		switch name, _ := strings.CutPrefix(string(o.Key), prefix); name {
		case "source-uri":
			if s.URL == "" {
				s.URL = o.Val.Str()
			}
		case "document-page-number":
			if n, ok := o.Val.Int(); ok && n > 0 {
				s.Locator.Page = n
			}
		case "chunk-id":
			s.ChunkID = o.Val.Text()
			s.Locator.Chunk = s.ChunkID
		case "title":
			s.Title = o.Val.Str()
		}
	}
	if s.Kind == KindFile && s.Filename == "" {
		s.Filename = s.URL[strings.LastIndexByte(s.URL, '/')+1:]
	}
}
