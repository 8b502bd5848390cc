package chat

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/store"
)

// errFound ends the waiting for late citations.
var errFound = errors.New("citations came")

// mayFollow reports whether citations may come for an answer that has ended without any.
func (c *call) mayFollow(a *ibid.Answer) bool {
	o := &c.chat.options
	return o.Late > 0 && o.LateFor != nil && o.Bus != nil && a.Complete && a.Error == nil && a.Text != "" &&
		len(a.Citations) == 0 &&
		a.Finish != ibid.FinishTool &&
		o.LateFor(c.provider.Upstream, c.route, c.talk.Run)
}

// late waits for citations that come behind the answer.
func (c *call) late() {
	t := c.talk
	t.mu.Lock()
	waits := t.answer != nil && t.status == uimessage.Pending
	t.mu.Unlock()
	if !waits {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.chat.options.Late)
	defer cancel()
	defer context.AfterFunc(c.chat.closing, cancel)()
	found := c.wait(ctx)
	t.update(func() {
		t.late = t.answer // nothing came: now that is final
		if found != nil {
			t.late = found
		}
	})
}

// wait returns the answer with its citations; nil: none came in time.
func (c *call) wait(ctx context.Context) *ibid.Answer {
	o, t := &c.chat.options, c.talk
	listener, err := o.Bus.Listen(ctx, t.tenant, t.Run)
	if err == nil {
		defer listener.Close()
		err = listener.Follow(ctx, o.Store, 0, func(m bus.Message) error {
			if m.Event != nil && m.Event.Kind == store.EventBackfill && isAbout(m.Event, t.AnswerID) {
				return errFound
			}
			return nil
		})
	}
	if !errors.Is(err, errFound) {
		if err != nil && ctx.Err() == nil {
			c.chat.log.LogAttrs(
				ctx, slog.LevelWarn, "late citations cannot be waited for", slog.String("answer_id", t.AnswerID),
				slog.Any("error", err),
			)
		}
		return nil
	}
	call, err := o.Store.Call(ctx, t.tenant, t.AnswerID)
	if err != nil {
		c.chat.log.LogAttrs(
			ctx, slog.LevelWarn, "late citations cannot be read", slog.String("answer_id", t.AnswerID),
			slog.Any("error", err),
		)
		return nil
	}
	return call.Answer
}

// isAbout reports whether an event is about the answer.
func isAbout(e *store.Event, answerID string) bool {
	var d struct {
		AnswerID string `json:"answer_id"`
	}
	return json.Unmarshal(e.Data, &d) == nil && d.AnswerID == answerID
}
