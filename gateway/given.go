package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// GivenUpstream is the upstream of answers that no upstream gave: those that people paste, and programs post.
const GivenUpstream = "given"

// NewGiven returns the record of an answer that a request contains, without the answer: with the run, step,
// conversation and agent that the request's headers name, and whether it is to be published. The error is a problem.
func NewGiven(r *http.Request, who Identity) (*store.Call, error) {
	h := r.Header.Clone() // the labels are removed from it
	l, err := readLabels(h)
	if err != nil {
		return nil, err
	}
	publishes, err := who.publishes(l.publish)
	if err != nil {
		return nil, err
	}
	c := &store.Call{
		AnswerID:     NewAnswerID(),
		Tenant:       who.Tenant,
		Upstream:     GivenUpstream,
		Route:        r.Method + " " + r.URL.Path,
		Conversation: l.conversation,
		Follows:      Follows(l.follows),
		Run:          l.run,
		Agent:        l.agent,
		Step:         l.step,
		Status:       http.StatusOK,
		Started:      time.Now(),
		Publish:      publishes,
	}
	if !l.named {
		c.Run = runPrefix + strings.TrimPrefix(c.AnswerID, answerPrefix)
	}
	return c, nil
}

// Submit stores an answer that no upstream gave as durably as a captured one. Of its prompt, what is not to be kept is
// left out. It must not be published unless it is complete. The error is a problem or for the log.
func (g *Gateway) Submit(_ context.Context, c *store.Call) error {
	if q := g.quotas[c.Tenant]; q != nil && q.used.Load() >= q.limit {
		g.overQuota(c.Tenant)
		return NewProblem(CodeTooLarge, errQuota.Error(), "delete some, or raise the quota: docs/serve.md")
	}
	messages := make([]call.Message, len(c.Prompt))
	for i, m := range c.Prompt {
		messages[i] = call.Message{Role: m.Role, Text: m.Text}
	}
	c.Prompt = g.kept(messages)
	c.Publish = c.Publish && g.options.Citing != nil && g.options.Citing.Level > 1 && c.Answer.Complete
	err := g.makeDurable(c) //nolint:contextcheck // it has a limit of its own
	if errors.Is(err, journal.ErrTooLarge) {
		return NewProblem(CodeTooLarge, "the answer is too large to be stored", "")
	}
	if err != nil {
		return fmt.Errorf("store a given answer: %w: %w", Unavailable("answers cannot be stored at the moment"), err)
	}
	return nil
}

// kept returns the messages of a prompt that may be kept.
func (g *Gateway) kept(messages []call.Message) (keep []store.Message) {
	if g.options.Prompts != PromptsAll {
		last, ok := (&call.Request{Messages: messages}).LastUser()
		if messages = nil; ok && g.options.Prompts != PromptsNone {
			messages = []call.Message{last}
		}
	}
	for _, m := range messages {
		keep = append(keep, store.Message{Role: m.Role, Text: m.Text})
	}
	return keep
}
