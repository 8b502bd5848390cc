package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// oci reads oci-chat: Cohere's models at Oracle's Generative AI. It is Cohere's v1 in camel case, inside chatResponse
// or, in a stream, without it; the last event of a stream repeats the whole text. Names:
// https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/datatypes/CohereChatResponse.
type oci struct {
	*cohere1
	streamed bool
}

func newOCI(c *Config) Parser {
	inner, _ := newCohere1(c).(*cohere1)
	return &oci{cohere1: inner}
}

func looksOCI(s *shape) bool {
	return strings.HasPrefix(s.val("apiFormat").Str(), "COHERE") ||
		strings.HasPrefix(s.val("chatResponse").Get("apiFormat").Str(), "COHERE")
}

// Parse implements [Parser].
func (p *oci) Parse(_ []byte, doc scan.Value) bool {
	if text, _, ok := p.delta.match(doc); ok {
		p.raw(Part{}, text)
		return true
	}
	response := doc.Get("chatResponse")
	if response == nil {
		response = doc
	}
	if !strings.HasPrefix(response.Get("apiFormat").Str(), "COHERE") {
		return false
	}
	p.unread(doc, ociReads)
	if !p.begun {
		p.begun = true
		p.head(HeadModel, doc.Get("modelId"))
		emitDocuments(&p.out, p.Config, "doc_")
	}
	if message := response.Get("message"); message.IsObject() { // Cohere's v2
		p.second(message)
	}
	text, finish := response.Get("text"), response.Get("finishReason").Str()
	if finish == "" && p.Stream != nil && p.Stream() {
		if doc.Cut() && p.streamed {
			return true // it may be the last event, which repeats the whole text
		}
		if p.streamed = p.text(Part{}, text) || p.streamed; text != nil {
			p.delta.learn(doc, text, Part{}, variation{padding: "pad"})
		}
		return true
	}
	p.response(response)
	cohereFinish(&p.out, finish)
	if message := response.Get("errorMessage").Str(); message != "" {
		p.fail(finish, message)
	}
	p.emit(Op{Kind: End})
	return true
}

// second reads a message of Cohere's v2.
func (p *oci) second(message scan.Value) {
	for a := scan.Elements(message.Get("content")); a.Next(); {
		p.text(Part{}, a.Val.Get("text"))
	}
	for a := scan.Elements(message.Get("citations")); a.Next() && !a.Cut(); {
		c := Cite{Quote: a.Val.Get("text").Str()}
		p.codePoints(&c, a.Val.Get("start"), a.Val.Get("end"))
		for sources := scan.Elements(a.Val.Get("sources")); sources.Next(); {
			s := Source{Kind: kindDocument, ID: sources.Val.Get("id").Text(), Raw: sources.Val}
			document := sources.Val.Get("document")
			fillDocument(&s, document)
			if s.Key = s.ID; s.Key == "" {
				s.Key = document.Get("id").Text()
			}
			if s.Key != "" {
				p.source(&s)
				c.Refs = p.addRef(c.Refs, Ref{Source: s.Key})
			}
		}
		if len(c.Refs) > 0 {
			p.cite(&c)
		}
	}
}
