package page

import (
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

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxQuestionSize is the maximum size of a question in bytes.
	maxQuestionSize = 256 << 10
	// maxRecalled is how many of the latest turns of a conversation are sent with a question.
	maxRecalled = 50
	// maxArriving is how many arriving answers a page keeps track of; further ones show up once they have ended.
	maxArriving = 1024
)

// composer is the form for a question.
type composer struct {
	Conversation string // empty for a new one
	Providers    []chat.Provider
	Provider     string // the chosen one
	Model        string
	Citations    []choice
	Question     string   // what was written before, if it was not accepted
	Wrong        string   // what was wrong with it
	May          bool     // the reader may ask
	Stop         string   // the arriving answer, which can be stopped; empty if there is none
	Demo         bool     // answers are made up, so that no key is needed
	Samples      []string // questions that a demonstration can answer, and that were not asked yet
}

// retry is a question that can be asked again. Follows, as in [gateway.FollowsHeader], says after which answer; later
// ones are replaced.
type retry struct{ Conversation, Question, Provider, Model, Follows string }

// failedTurn is a question that got no answer. It is not stored, but kept here while there is room.
type failedTurn struct {
	retry

	tenant string
	Wrong  string // why, in sentences
}

// maxFailed is how many questions without an answer are kept, and maxFailedSize their total size in bytes.
const maxFailed, maxFailedSize = 256, 4 << 20

// arrivingAnswer is an answer that is arriving.
type arrivingAnswer struct {
	turn                    *chat.Turn // nil if another node asked for it
	tenant, conversation    string
	answerID, run, question string
	provider                string // the one asked; empty if it is the first one, or unknown
	follows                 string // as in [gateway.FollowsHeader]
	since                   time.Time
	whole                   *store.Call // the answer, if it is known to have ended; else nil
}

// call returns the part of the answer that has arrived, as a call.
func (t *arrivingAnswer) call(conversation string) *store.Call {
	call := &store.Call{
		AnswerID: t.answerID, Run: t.run, Conversation: conversation, Started: t.since, Answer: &ibid.Answer{},
	}
	if t.turn != nil {
		if a := t.turn.Answer(); a != nil {
			call.Answer = a
		}
	}
	return call
}

// hasEnded reports whether the answer can now be found by its id.
func (t *arrivingAnswer) hasEnded() bool {
	select {
	case <-t.turn.Done():
		return true
	default:
		return false
	}
}

// arriving holds the answers that were asked for on a page of this node and have not ended.
type arriving struct {
	mu    sync.Mutex
	all   []*arrivingAnswer // oldest first
	whole httpx.Flights     // of answers that have arrived, for those who watch

	failed []*failedTurn // oldest first
}

// fail records a question that got no answer.
func (t *arriving) fail(f *failedTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = append(t.failed, f)
	size := 0
	for i, one := range slices.Backward(t.failed) {
		size += len(one.Question) + len(one.Wrong)
		if size > maxFailedSize || len(t.failed)-i > maxFailed {
			t.failed = slices.Delete(t.failed, 0, i+1)
			return
		}
	}
}

// failures returns the questions of a conversation that got no answer.
func (t *arriving) failures(tenant, conversation string) []*failedTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*failedTurn
	for _, f := range t.failed {
		if f.tenant == tenant && f.Conversation == conversation {
			list = append(list, f)
		}
	}
	return list
}

// forget removes a question that got no answer, because it is asked again.
func (t *arriving) forget(tenant, conversation, question string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = slices.DeleteFunc(t.failed, func(f *failedTurn) bool {
		return f.tenant == tenant && f.Conversation == conversation && f.Question == question
	})
}

func (t *arriving) add(a *arrivingAnswer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, (*arrivingAnswer).hasEnded)
	if len(t.all) < maxArriving {
		t.all = append(t.all, a)
	}
}

// of returns the arriving answers of a conversation.
func (t *arriving) of(tenant, conversation string) []*arrivingAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*arrivingAnswer
	for _, a := range t.all {
		if a.tenant == tenant && a.conversation == conversation && !a.hasEnded() {
			list = append(list, a)
		}
	}
	return list
}

// find returns an arriving answer by its id; nil if there is none.
func (t *arriving) find(tenant, answerID string) *arrivingAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		if a.tenant == tenant && a.answerID == answerID {
			return a
		}
	}
	return nil
}

// composer returns the form for the next question of a conversation; nil if asking is disabled.
func (p *Page) composer(r *httpx.Request, c *store.Conversation) *composer {
	if p.o.Chat == nil {
		return nil
	}
	form := &composer{May: r.Who.May(store.ScopeProxy) || r.Who.Token == ""}
	if p.o.Demo != nil {
		form.Demo, form.Samples = true, slices.Clone(p.o.Demo.Questions)
	}
	if c != nil {
		form.Conversation = c.ID
		if n := len(c.Calls); n > 0 {
			form.Provider = c.Calls[n-1].Upstream
		}
	}
	form.addChoices(p.o.Chat, "")
	return form
}

// addChoices fills in the options to choose from.
func (form *composer) addChoices(c *chat.Chat, citations string) {
	form.Providers = c.Providers()
	form.Citations = choices(
		citations, choice{Value: "", Word: "by default"}, choice{Value: "accurate", Word: "accurate"},
		choice{Value: "fast", Word: "fast"}, choice{Value: "off", Word: "off"},
	)
}

// showAsk shows an empty form, for a new conversation.
func (p *Page) showAsk(ctx context.Context, r *httpx.Request) (*view, error) {
	if p.o.Chat == nil {
		return nil, errNotFound
	}
	return &view{Name: "ask", Title: "New conversation", Body: p.composer(r, nil)}, nil
}

// ask asks a question, and redirects to its conversation as soon as the answer begins.
func (p *Page) ask(w *httpx.Reply, r *httpx.Request) error {
	if p.o.Chat == nil {
		return errNotFound
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	question := strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(f.Get("question"), "\r\n", "\n")), "\ufffd")
	q := &chat.Question{
		Provider: clean(f.Get("provider")), Model: clean(f.Get("model")), Citations: clean(f.Get("citations")),
		Conversation: clean(f.Get("conversation")),
	}
	if follows := f.Get("follows"); gateway.CheckID(follows) == "" {
		q.Follows = follows
	}
	again := func(wrong string, status int) error { // so that the input is not lost
		form := &composer{
			Conversation: clean(f.Get("conversation")), Question: question, May: true, Provider: q.Provider,
			Model: q.Model, Wrong: wrong,
		}
		if len(question) > maxQuestionSize {
			form.Question = ""
		}
		form.addChoices(p.o.Chat, q.Citations)
		return p.show(w, r, &view{Name: "ask", Status: status, Title: "Ask", Section: "ask", Body: form})
	}
	switch {
	case question == "":
		return again("Write a question first.", statusRejected)
	case len(question) > maxQuestionSize:
		wrong := fmt.Sprintf("The question has more than %d KiB.", maxQuestionSize>>10)
		return again(wrong, statusRejected)
	}
	if err := p.recall(r, q); err != nil {
		if gateway.IsInternal(err) {
			p.log.LogAttrs(r.Context(), slog.LevelError, "a conversation could not be read", slog.Any("error", err))
		}
		return again(problemWords(err), gateway.ProblemOf(err).Status)
	}
	q.Messages = append(q.Messages, chat.Message{Role: store.RoleUser, Text: question})
	p.arriving.forget(r.Who.Tenant, q.Conversation, question)
	turn, err := p.o.Chat.Ask(r.Context(), r.Who, q)
	if err != nil && !gateway.IsInternal(err) { // it is shown in the conversation, and can be asked again
		p.arriving.fail(&failedTurn{
			retry{q.Conversation, question, q.Provider, q.Model, q.Follows}, r.Who.Tenant, problemWords(err),
		})
		http.Redirect(w, r.Request, conversationURL(q.Conversation)+"#failed", http.StatusSeeOther)
		return nil
	}
	if err != nil {
		return err
	}
	p.arriving.add(&arrivingAnswer{
		turn: turn, tenant: r.Who.Tenant, conversation: q.Conversation, answerID: turn.AnswerID, run: turn.Run,
		question: question, provider: q.Provider, follows: q.Follows, since: time.Now(),
	})
	to := url.Values{"answer": {turn.AnswerID}, "run": {turn.Run}} // for a node that did not ask
	next := conversationURL(q.Conversation) + "?" + to.Encode() + "#a-" + url.PathEscape(turn.AnswerID)
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}

// stop ends an arriving answer. What has arrived of it is kept.
func (p *Page) stop(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	if p.o.Chat == nil {
		return errNotFound
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	if err := p.o.Chat.Stop(ctx, r.Who.Tenant, id); err != nil {
		return gateway.Unavailable("The answer is taking long to stop. Reload the page.")
	}
	http.Redirect(w, r.Request, cameFrom(r).RequestURI(), http.StatusSeeOther)
	return nil
}

// recall adds the earlier messages of a question's conversation; a new conversation gets an id.
func (p *Page) recall(r *httpx.Request, q *chat.Question) error {
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
	p.captured.CatchUp(ctx)
	// Before the store is read, so that an answer that ends now is in one or the other.
	begun := len(p.arriving.of(r.Who.Tenant, q.Conversation)) > 0 ||
		len(p.arriving.failures(r.Who.Tenant, q.Conversation)) > 0
	c, err := p.o.Store.Conversation(ctx, r.Who.Tenant, q.Conversation, &store.Query{Limit: maxRecalled})
	if begun && errors.Is(err, store.ErrNotFound) {
		return nil // its first answer is still arriving, or never came: there is nothing to recall
	}
	if err != nil {
		return err
	}
	turns, _, _ := store.KeptBehind(store.Shown(c.Turns(), c.Before), c.Before, gateway.Follows(q.Follows))
	for _, turn := range turns {
		var asked []chat.Message
		for _, m := range turn.Asked {
			if m.Role == store.RoleUser && m.Text != "" {
				asked = append(asked, chat.Message{Role: m.Role, Text: m.Text})
			}
		}
		if len(asked) == 0 || turn.Call.Answer.Text == "" {
			continue // providers expect question and answer in turns, and neither empty
		}
		q.Messages = append(
			append(q.Messages, asked...), chat.Message{Role: store.RoleAssistant, Text: turn.Call.Answer.Text},
		)
	}
	return nil
}

// problemWords returns what is wrong in sentences.
func problemWords(err error) string {
	problem := gateway.ProblemOf(err)
	return strings.TrimSpace(sentence(problem.Detail) + " " + sentence(problem.Hint))
}
