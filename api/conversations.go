package api

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/store"
)

// conversationItem is a conversation in a list.
type conversationItem struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Answers   int       `json:"answers"` // number of answers
}

// conversationBody is a conversation as JSON.
type conversationBody struct {
	ID         string                `json:"id"`
	Messages   []conversationMessage `json:"messages"`
	Numbering  ibid.Numbering        `json:"numbering"`
	NextCursor *string               `json:"next_cursor"` // of the page with earlier messages
}

// conversationMessage is one message: an answer, or another message with its text.
type conversationMessage struct {
	Role     string      `json:"role"`
	Text     *string     `json:"text,omitempty"`
	AnswerID string      `json:"answer_id,omitempty"`
	Answer   *answerBody `json:"answer,omitempty"`
}

func showListedConversation(_ *httpx.Request, c *store.Conversation) conversationItem {
	return conversationItem{c.ID, c.Started.UTC(), c.Updated.UTC(), c.Answers}
}

// conversation returns the latest messages of a conversation, with citations numbered as they were shown.
func (a *API) conversation(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	isUI := r.Params.Get("as") == asUI
	var pending []*store.Call // must come before the store: an answer may end meanwhile
	if isUI && a.o.Pending != nil && r.Params.Query().Cursor == "" {
		pending = a.o.Pending(r.Who.Tenant, id)
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	a.reader.CatchUp(ctx)
	c, err := a.store.Conversation(ctx, r.Who.Tenant, id, r.Params.Query())
	if errors.Is(err, store.ErrNotFound) && len(pending) > 0 {
		c, err = &store.Conversation{ID: id}, nil
	}
	if err != nil {
		return httpx.StoreError("read a conversation", err)
	}
	if !isUI {
		return w.JSON(http.StatusOK, showConversation(c, documentOptions(r)))
	}
	for _, name := range []string{"unit", "style", "numbers"} {
		if _, said := r.Params.Given()[name]; said {
			return httpx.BadRequest(
				name+": not supported with as=ui",
				"its messages have one form, with offsets in UTF-16 code units, as in JavaScript",
			)
		}
	}
	if c.Next != "" {
		query := url.Values{"as": {asUI}, "cursor": {c.Next}}
		if limit, said := r.Params.Given()["limit"]; said {
			query.Set("limit", limit)
		}
		w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+query.Encode()+`>; rel="next"`)
	}
	return w.JSON(http.StatusOK, uiMessages(c, pending))
}

// ConversationJSON returns a conversation as GET /v1/conversations/{id} does by default.
func ConversationJSON(ctx context.Context, c *store.Conversation) ([]byte, error) {
	return httpx.Encode(showConversation(c, ibid.DocumentOptions{Context: ctx}))
}

// CallJSON returns an answer as GET /v1/answers/{id} does by default.
func CallJSON(ctx context.Context, c *store.Call) ([]byte, error) {
	return httpx.Encode(showCall(c, ibid.DocumentOptions{Context: ctx}))
}

func showConversation(c *store.Conversation, opts ibid.DocumentOptions) conversationBody {
	body := conversationBody{
		ID:         c.ID,
		Messages:   []conversationMessage{},
		Numbering:  maps.Clone(c.Numbering),
		NextCursor: httpx.OrNull(c.Next),
	}
	if body.Numbering == nil {
		body.Numbering = ibid.Numbering{}
	}
	opts.Numbering = &body.Numbering
	for _, turn := range c.Turns() {
		for _, m := range turn.Asked {
			body.Messages = append(body.Messages, conversationMessage{Role: m.Role, Text: &m.Text})
		}
		answer := showCall(turn.Call, opts)
		body.Messages = append(body.Messages, conversationMessage{
			Role: store.RoleAssistant, AnswerID: turn.Call.AnswerID, Answer: &answer,
		})
	}
	return body
}

// asUI is the value of as for the messages that the AI SDK's useChat accepts.
const asUI = "ui"

// uiMessages returns the messages of a conversation, oldest first: the user's messages and the answers. They end with
// the user's messages of pending calls, so that a client that resumes continues the answer to these and not the
// previous one. Instructions, documents and tool results are omitted: they are not for readers, and a client would send
// them again. An answer keeps its own id; the id of a user message is the answer's with its place in the prompt.
//
// Messages that a regenerated answer replaces are omitted, as the client shows it: a call with Follows comes directly
// after the answer that it names. Older pages, which do not contain later calls, are left complete.
func uiMessages(c *store.Conversation, pending []*store.Call) []uimessage.Message {
	all := []uimessage.Message{}
	numbering := maps.Clone(c.Numbering)
	if numbering == nil {
		numbering = ibid.Numbering{}
	}
	turns := c.Turns()
	before := c.Before
	stored := map[string]bool{}
	for _, turn := range turns {
		before = turn.Call
		stored[turn.Call.AnswerID] = true
	}
	for _, call := range pending {
		if !stored[call.AnswerID] {
			turns = append(turns, store.Turn{Asked: call.Asked(before), Call: call})
		}
	}
	for _, turn := range store.Shown(turns, c.Before) {
		id := cmp.Or(turn.Call.AnswerID, "pending")
		for i, m := range turn.Asked {
			if m.Role == store.RoleUser && m.Text != "" && !isDocuments(m.Text) { // an image alone has no text
				all = append(all, uimessage.UserMessage(id+"-"+strconv.Itoa(i+1), m.Text))
			}
		}
		if turn.Call.Answer == nil {
			continue
		}
		all = append(all, uimessage.MessageOf(id, turn.Call.Answer, &uimessage.Options{Numbering: &numbering}))
	}
	return all
}

// isDocuments reports whether a message consists of the documents given with a question, as [ibid.PromptSources]
// formats them.
func isDocuments(text string) bool {
	return strings.HasPrefix(text, "<sources><result ") && strings.HasSuffix(text, "</result></sources>")
}
