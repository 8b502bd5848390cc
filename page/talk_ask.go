package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxQuestionSize is how many bytes a question may have.
	maxQuestionSize = 256 << 10
	// recalled is how many of the latest turns of a conversation go along with a question.
	recalled = 50
	// maxComing is how many answers that are arriving a page knows of at the same time. Of more it learns when they
	// have ended.
	maxComing = 1024
)

// composer is the form for a question.
type composer struct {
	Conversation string // empty: a new one
	Providers    []providerChoice
	Model        string
	Citations    []citationChoice
	Question     string // what was written before, if it was not right
	Wrong        string // what was not right
	May          bool   // the reader may ask
	status       int    // of the response where something was not right; 0: 422
}

// Back returns where the conversation is.
func (form *composer) Back() string { return talkURL(form.Conversation) }

type providerChoice struct {
	Name, Model string
	Chosen      bool
	HasKey      bool // else it can only be asked if it wants none
}

type citationChoice struct {
	Value, Word string
	Chosen      bool
}

// coming is an answer that is arriving.
type coming struct {
	talk                    *chat.Turn // nil: another node asked for it
	tenant, conversation    string
	answerID, run, question string
	since                   time.Time
	whole                   *store.Call // the answer, if it has ended; nil: that is not known
}

// call returns the answer as far as it has arrived, as a call.
func (t *coming) call(conversation string) *store.Call {
	call := &store.Call{
		AnswerID:     t.answerID,
		Run:          t.run,
		Conversation: conversation,
		Started:      t.since,
		Answer:       &ibid.Answer{},
	}
	if t.talk != nil {
		if a := t.talk.Answer(); a != nil {
			call.Answer = a
		}
	}
	return call
}

// talks are the answers that were asked for on a page of this node, and have not ended.
type talks struct {
	mu      sync.Mutex
	all     []*coming          // oldest first
	exports slots              // exports of conversations that are made
	whole   singleflight.Group // of answers that have arrived, for who watches
}

func (t *talks) add(c *coming) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	if len(t.all) < maxComing {
		t.all = append(t.all, c)
	}
}

// prune forgets those that have ended: they are found by their ids.
func (t *talks) prune() {
	t.all = slices.DeleteFunc(t.all, func(c *coming) bool {
		select {
		case <-c.talk.Done():
			return true
		default:
			return false
		}
	})
}

// of returns those of a conversation.
func (t *talks) of(tenant, conversation string) []*coming {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	var list []*coming
	for _, c := range t.all {
		if c.tenant == tenant && c.conversation == conversation {
			list = append(list, c)
		}
	}
	return list
}

// find returns one by the id of its answer; nil: it is not among them.
func (t *talks) find(tenant, answerID string) *coming {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.all {
		if c.tenant == tenant && c.answerID == answerID {
			return c
		}
	}
	return nil
}

// composer returns the form for the next question of a conversation; nil: nobody can be asked.
func (p *Page) composer(r *request, c *store.Conversation) *composer {
	if p.o.Chat == nil {
		return nil
	}
	form := &composer{May: r.who.May(store.ScopeProxy) || r.who.Token == ""}
	last := ""
	if c != nil {
		form.Conversation = c.ID
		if n := len(c.Calls); n > 0 {
			last = c.Calls[n-1].Upstream
		}
	}
	form.choose(p.o.Chat.Providers(), last, "")
	return form
}

// choose fills in what there is to choose from.
func (form *composer) choose(providers []chat.Provider, provider, citations string) {
	for _, known := range providers {
		form.Providers = append(
			form.Providers, providerChoice{known.Upstream, known.Model, known.Upstream == provider, known.HasKey},
		)
	}
	for _, c := range []citationChoice{{Value: "", Word: "by default"}, {Value: "accurate", Word: "accurate"}, {Value: "fast", Word: "fast"}, {Value: "off", Word: "off"}} {
		c.Chosen = c.Value == citations
		form.Citations = append(form.Citations, c)
	}
}

// showAsk shows an empty form, for a new conversation.
func (p *Page) showAsk(w http.ResponseWriter, r *request) error {
	if p.o.Chat == nil {
		return p.nowhere(w, r)
	}
	return p.page(w, r, "ask", &view{Title: "New conversation", Section: "conversations", Body: p.composer(r, nil)})
}

// ask puts a question, and leads to the conversation that it is part of as soon as the answer begins.
func (p *Page) ask(w http.ResponseWriter, r *request) error {
	if p.o.Chat == nil {
		return p.nowhere(w, r)
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	question := strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(f.Get("question"), "\r\n", "\n")), "\ufffd")
	q := &chat.Question{
		Provider: clean(
			f.Get("provider"),
		),
		Model:        clean(f.Get("model")),
		Citations:    clean(f.Get("citations")),
		Conversation: clean(f.Get("conversation")),
	}
	form := &composer{Conversation: q.Conversation, Question: question, May: true}
	switch {
	case question == "":
		form.Wrong = "Write a question first."
	case len(question) > maxQuestionSize:
		form.Question, form.Wrong = "", fmt.Sprintf("The question has more than %d KiB.", maxQuestionSize>>10)
	}
	if form.Wrong != "" {
		return p.askAgain(w, r, q, form)
	}
	if err := p.recall(r, q); err != nil { // what was written is not lost
		if gateway.IsInternal(err) {
			p.log.LogAttrs(r.Context(), slog.LevelError, "a conversation could not be read", slog.Any("error", err))
		}
		form.Wrong, form.status = problemWords(err), gateway.ProblemOf(err).Status
		return p.askAgain(w, r, q, form)
	}
	q.Messages = append(q.Messages, chat.Message{Role: store.RoleUser, Text: question})
	talk, err := p.o.Chat.Ask(r.Context(), r.who, q)
	if err != nil && !gateway.IsInternal(err) {
		form.Wrong = problemWords(err)
		return p.askAgain(w, r, q, form)
	}
	if err != nil {
		return err
	}
	p.talks.add(&coming{
		talk:         talk,
		tenant:       r.who.Tenant,
		conversation: q.Conversation,
		answerID:     talk.AnswerID,
		run:          talk.Run,
		question:     question,
		since:        time.Now(),
	})
	to := url.Values{"answer": {talk.AnswerID}, "run": {talk.Run}} // for a node that did not ask
	http.Redirect(
		w, r.Request, talkURL(q.Conversation)+"?"+to.Encode()+"#a-"+url.PathEscape(talk.AnswerID), http.StatusSeeOther,
	)
	return nil
}

// recall fills in what was said before in the conversation of a question; one that begins gets a name.
func (p *Page) recall(r *request, q *chat.Question) error {
	if q.Conversation == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("beginning a conversation: %w", err)
		}
		q.Conversation = "talk_" + id.String()
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	// before the store: an answer that ends now is in one of both
	begun := len(p.talks.of(r.who.Tenant, q.Conversation)) > 0
	c, err := p.o.Store.Conversation(ctx, r.who.Tenant, q.Conversation, &store.Query{Limit: recalled})
	if begun && errors.Is(err, store.ErrNotFound) {
		return nil // its first answer is still arriving: there is nothing to recall
	}
	if err != nil {
		return err
	}
	for _, turn := range c.Turns() {
		var asked []chat.Message
		for _, m := range turn.Asked {
			if m.Role == store.RoleUser && m.Text != "" {
				asked = append(asked, chat.Message{Role: m.Role, Text: m.Text})
			}
		}
		if len(asked) == 0 || turn.Call.Answer.Text == "" {
			continue // providers want question and answer by turns, and neither empty
		}
		q.Messages = append(
			append(q.Messages, asked...), chat.Message{Role: store.RoleAssistant, Text: turn.Call.Answer.Text},
		)
	}
	return nil
}

// problemWords says what is wrong in sentences.
func problemWords(err error) string {
	problem := gateway.ProblemOf(err)
	return strings.TrimSpace(strings.TrimRight(problem.Detail, ". ") + ". " + problem.Hint)
}

// askAgain shows the form with what was written, and what is wrong with it.
func (p *Page) askAgain(w http.ResponseWriter, r *request, q *chat.Question, form *composer) error {
	form.choose(p.o.Chat.Providers(), q.Provider, q.Citations)
	form.Model = q.Model
	return p.show(w, r, &shown{
		name:   "ask",
		status: cmp.Or(form.status, http.StatusUnprocessableEntity),
		view:   &view{Title: "Ask", Section: "conversations", Body: form},
	})
}
