package wire

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// Google's Agent Development Kit and the Live API have Gemini's contents and grounding without candidates. Names: the
// types LlmResponse of google/adk-python and LiveServerContent of googleapis/python-genai.

// adk reads google-adk: the events of an agent, one by one or as a list. Events that are marked as partial are pieces;
// the next one that is not repeats the whole text.
type adk struct {
	*generate
	text []byte // of the pieces since the last whole event
}

func newADK(c *Config) Parser {
	g, _ := newGenerate(c).(*generate)
	return &adk{generate: g}
}

func looksADK(s *shape) bool {
	if s.doc.IsArray() {
		first := scan.Elements(s.doc)
		return first.Next() && first.Val.IsObject() && looksADK(shapeOf(nil, first.Val))
	}
	return s.val("content").Get("parts").IsArray() && s.hasAny("invocationId", "invocation_id", "author")
}

// Parse implements [Parser].
func (p *adk) Parse(_ []byte, doc scan.Value) bool {
	return eachDocument(doc, p.event)
}

func (p *adk) event(doc scan.Value) bool {
	var content, grounding, citations, finish, id, model, partial, interrupted scan.Value
	doc.Read(scan.Fields{
		{"content", &content},
		{"groundingMetadata", &grounding},
		{"citationMetadata", &citations},
		{"finishReason", &finish},
		{"invocationId", &id},
		{"modelVersion", &model},
		{"partial", &partial},
		{"interrupted", &interrupted},
	})
	if content == nil && grounding == nil && finish == nil && doc.Get("author") == nil && doc.Get("actions") == nil {
		return false
	}
	p.unread(doc, adkReads)
	p.headOnce(&p.id, HeadID, id)
	p.headOnce(&p.model, HeadModel, model)
	if code := doc.Get("errorCode", "error_code").Text(); code != "" {
		p.fail(code, doc.Get("errorMessage", "error_message").Text())
		return true
	}
	c := p.at(0)
	if role := content.Get("role").Str(); role == "user" {
		return true // a result of a tool
	}
	if partial.IsTrue() || len(p.text) == 0 {
		before := c.length
		p.content(c, content)
		if partial.IsTrue() && c.length > before && p.Keep(2*(c.length-before)) {
			p.text = append(p.text, partTexts(content)...)
		}
	} else {
		// The whole text again: only what the pieces lacked is new.
		whole := partTexts(content)
		if rest, ok := bytes.CutPrefix(whole, p.text); ok {
			p.addText(c, rest)
		}
		p.text = p.text[:0]
	}
	p.keepGrounding(c, grounding)
	c.recite(p.generate, citations)
	if reason := finish.Text(); reason != "" {
		p.finishAs(c, reason)
	}
	if interrupted.IsTrue() {
		return true
	}
	if !partial.IsTrue() {
		p.emitKept(c)
		p.endHere()
	}
	return true
}

// addText emits text that is no longer JSON.
func (g *generate) addText(c *candidate, text []byte) {
	if len(text) == 0 {
		return
	}
	g.next(c, 0, visiblePart)
	g.emit(Op{Kind: Text, Part: c.part, Text: text})
	c.length += len(text)
}

// partTexts returns the visible texts of a content, joined.
func partTexts(content scan.Value) []byte {
	var b []byte
	for a := scan.Elements(content.Get("parts")); a.Next(); {
		if !a.Val.Get("thought").IsTrue() {
			b = append(b, a.Val.Get("text").Bytes()...)
		}
	}
	return b
}

// live reads gemini-live: the messages of a session of the Live API, recorded as lines. A spoken answer comes as its
// transcription.
type live struct{ *generate }

func newLive(c *Config) Parser {
	g, _ := newGenerate(c).(*generate)
	return &live{g}
}

func looksLive(s *shape) bool {
	return s.val("serverContent").IsObject() || s.val("setupComplete").IsObject() || s.val("server_content").IsObject()
}

// Parse implements [Parser].
func (p *live) Parse(_ []byte, doc scan.Value) bool {
	content := doc.Get("serverContent", "server_content")
	if !content.IsObject() {
		for _, other := range [...]string{
			"setupComplete", "toolCall", "toolCallCancellation", "goAway", "usageMetadata", "sessionResumptionUpdate",
		} {
			if doc.Get(other) != nil {
				for a := scan.Elements(doc.Path("toolCall", "functionCalls")); a.Next(); {
					p.tool(a.Val.Get("id").Str(), a.Val.Get("name").Str())
					p.toolInput(a.Val.Get("id").Str(), a.Val.Get("args"))
				}
				return true
			}
		}
		return false
	}
	p.unread(doc, liveReads)
	c := p.at(0)
	var turn, spoken, grounding, urls, done, whole scan.Value
	content.Read(scan.Fields{
		{"modelTurn", &turn},
		{"outputTranscription", &spoken},
		{"groundingMetadata", &grounding},
		{"urlContextMetadata", &urls},
		{"turnComplete", &done},
		{"generationComplete", &whole},
	})
	p.content(c, turn)
	p.addText(c, spoken.Get("text").Bytes())
	p.keepGrounding(c, grounding)
	c.setField(fieldURLs, urls.Get("urlMetadata"))
	if whole.IsTrue() || done.IsTrue() {
		p.emitKept(c)
	}
	if done.IsTrue() {
		p.finish(0, finishStop)
		p.endHere()
	}
	return true
}
