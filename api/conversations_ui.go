package api

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/store"
)

// asUI is the form of a conversation that the AI SDK's useChat takes as its messages.
const asUI = "ui"

// writeUI answers with the messages of a conversation as a list of UIMessage. That there are older ones says the header
// Link.
func writeUI(w http.ResponseWriter, r *request, c *store.Conversation) error {
	for _, name := range []string{"unit", "style"} {
		if _, said := r.params[name]; said {
			return badRequest(name+": the form ui has none", "its offsets are UTF-16 code units, as JavaScript counts")
		}
	}
	if c.Next != "" {
		query := url.Values{"as": {asUI}, "cursor": {c.Next}}
		if limit, said := r.params["limit"]; said {
			query.Set("limit", limit)
		}
		w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+query.Encode()+`>; rel="next"`)
	}
	return writeJSON(w, r, http.StatusOK, uiMessages(c))
}

// uiMessages returns the messages of a conversation, oldest first: what its user said, and the answers. Instructions
// and what tools returned are not for readers, and a client would send them again. An answer has its own id, what was
// asked that of the answer and its place before it.
func uiMessages(c *store.Conversation) []uimessage.Message {
	all := []uimessage.Message{}
	numbering := maps.Clone(c.Numbering)
	if numbering == nil {
		numbering = ibid.Numbering{}
	}
	for _, turn := range c.Turns() {
		for i, m := range turn.Asked {
			if m.Role == roleUser && m.Text != "" { // a picture alone has no words
				all = append(all, uimessage.UserMessage(turn.Call.AnswerID+"-"+strconv.Itoa(i+1), m.Text))
			}
		}
		all = append(
			all, uimessage.MessageOf(turn.Call.AnswerID, turn.Call.Answer, &uimessage.Options{Numbering: &numbering}),
		)
	}
	return all
}
