package wire

import (
	"cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

// Another reports whether a document that comes after the end of a response begins another one, as bodies in one file
// do. Format and id are those of the response that has ended; who has none is told by what only a body holds.
func Another(format, id string, event []byte, doc scan.Value) bool {
	if format == "anthropic-messages" { // its parser counts the turns itself: what one fetched, the next cites
		return false
	}
	if next := responseID(doc); next != "" {
		return next != id
	}
	s := look(event, doc)
	if choices := scan.Elements(s.val("choices")); choices.Next() {
		return choices.Val.Get("message").IsObject() && !choices.Val.Get("delta").IsObject()
	}
	if s.has("candidates") { // the next chunk, where a server ends a candidate with each and has no ids
		return id != ""
	}
	return s.event == "messageStart" ||
		s.hasAny("messageStart", "output", "outputs", "answer", "summary", "reply", "message", "text", "steps")
}

// responseID returns the id of the response that a document is, begins or is a piece of, or "".
func responseID(doc scan.Value) string {
	var id, second string // Cohere has both
	for o := scan.Members(doc); o.Next() && id == ""; {
		switch string(o.Key) {
		case "conversation_id", "generation_id", "generationId", "id":
			id = o.Val.Text()
		case "responseId", "response_id":
			second = o.Val.Text()
		case "response", "interaction", "answer":
			if o.Val.IsObject() {
				second = firstText(o.Val, "generation_id", "id", "responseId", "name")
			}
		}
	}
	return cmp.Or(id, second)
}
