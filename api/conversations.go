package api

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

// The roles of messages that mean something here.
const (
	roleUser      = store.RoleUser
	roleAssistant = store.RoleAssistant
)

// conversationItem is a conversation in a list.
type conversationItem struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"started_at"`
	UpdatedAt time.Time `json:"updated_at"`
	Answers   int       `json:"answers"` // how many
}

// conversationBody is a conversation as JSON.
type conversationBody struct {
	ID         string         `json:"id"`
	Messages   []messageBody  `json:"messages"`
	Numbering  ibid.Numbering `json:"numbering"`
	NextCursor *string        `json:"next_cursor"` // of the page with the messages before these
}

// messageBody is one message: either what was asked, with its text, or an answer.
type messageBody struct {
	Role     string      `json:"role"`
	Text     *string     `json:"text,omitempty"`
	AnswerID string      `json:"answer_id,omitempty"`
	Answer   *answerBody `json:"answer,omitempty"`
}

// conversations lists conversations, the one with the latest call first.
func (a *API) conversations(w http.ResponseWriter, r *request) error {
	query, err := r.params.query()
	if err != nil {
		return err
	}
	conversations, next, err := list(
		a, r, "list conversations",
		func(ctx context.Context) (*store.Page[store.Conversation], error) {
			return a.store.Conversations(ctx, r.who.Tenant, query)
		},
		func(c *store.Conversation) conversationItem {
			return conversationItem{c.ID, c.Started.UTC(), c.Updated.UTC(), c.Answers}
		},
	)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Conversations []conversationItem `json:"conversations"`
		NextCursor    *string            `json:"next_cursor"`
	}{conversations, next})
}

// conversation shows the latest messages of a conversation with their citations, numbered as they always were.
func (a *API) conversation(w http.ResponseWriter, r *request) error {
	form, err := r.params.choice("as", []string{asJSON, asUI})
	if err != nil {
		return err
	}
	opts, err := r.params.document()
	if err != nil {
		return err
	}
	query, err := r.params.page(maxLimit)
	if err != nil {
		return err
	}
	id, err := r.pathID()
	if err != nil {
		return err
	}
	ctx, cancel := within(r)
	defer cancel()
	a.settle(ctx)
	c, err := a.store.Conversation(ctx, r.who.Tenant, id, query)
	if err != nil {
		return storeError("read a conversation", err)
	}
	if form == asUI {
		return writeUI(w, r, c)
	}
	return writeJSON(w, r, http.StatusOK, showConversation(c, opts))
}

// ConversationJSON returns a conversation as GET /v1/conversations/{id} shows it unless told otherwise.
func ConversationJSON(c *store.Conversation) ([]byte, error) {
	return encode(showConversation(c, ibid.DocumentOptions{}))
}

// CallJSON returns an answer as GET /v1/answers/{id} shows it unless told otherwise.
func CallJSON(c *store.Call) ([]byte, error) { return encode(showCall(c, ibid.DocumentOptions{})) }

func showConversation(c *store.Conversation, opts ibid.DocumentOptions) conversationBody {
	body := conversationBody{
		ID:         c.ID,
		Messages:   []messageBody{},
		Numbering:  maps.Clone(c.Numbering),
		NextCursor: orNull(c.Next),
	}
	if body.Numbering == nil {
		body.Numbering = ibid.Numbering{}
	}
	opts.Numbering = &body.Numbering
	for _, turn := range c.Turns() {
		for _, m := range turn.Asked {
			body.Messages = append(body.Messages, messageBody{Role: m.Role, Text: &m.Text})
		}
		answer := showCall(turn.Call, opts)
		body.Messages = append(
			body.Messages, messageBody{Role: roleAssistant, AnswerID: turn.Call.AnswerID, Answer: &answer},
		)
	}
	return body
}
