package page

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/passage"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxTurns is the maximum number of answers on a page of a conversation, and maxTurnsBytes their approximate
	// maximum size with all quotes: of large answers there are fewer.
	maxTurns      = 20
	maxTurnsBytes = 4 << 20
	// fewTurns is how many answers are read first to see how large they are, and how many at a time if they are large.
	fewTurns = 2
	// maxMessage is how many bytes of a message are shown at first; the rest unfolds.
	maxMessage = 1200
)

// choice is an option of a form.
type choice struct {
	Value, Word string
	Chosen      bool
}

// choices marks the chosen option.
func choices(chosen string, all ...choice) []choice {
	for i := range all {
		all[i].Chosen = all[i].Value == chosen
	}
	return all
}

// verificationChoices returns the filters for lists of answers.
func verificationChoices(chosen string) []choice {
	return choices(
		chosen, choice{Value: "", Word: "any result"},
		choice{Value: store.VerifiedPassed, Word: "checked and in order"},
		choice{Value: store.VerifiedFailed, Word: "a check failed"},
		choice{Value: store.VerifiedUnverifiable, Word: "a source could not be read"},
		choice{Value: store.VerifiedUnchecked, Word: "not checked"},
	)
}

// titleOf returns the first question of a conversation, as far as its calls have it: most clients send all messages
// with each question.
func titleOf(c *store.Conversation) string {
	for _, call := range c.Calls {
		for _, m := range call.Prompt {
			if title := short(passage.Question(m.Text), maxTitle); m.Role == store.RoleUser && title != "" {
				return title
			}
		}
	}
	return "Conversation of " + moment(c.Started)
}

// conversationBody is the content of the page of a conversation.
type conversationBody struct {
	*store.Conversation

	Title           string
	Turns           []turnView
	Earlier, Latest string // other pages of it; empty if there are none
	Arriving        []arrivingView
	Failed          []*failedTurn
	Composer        *composer // nil if asking is disabled
}

// Menus returns the export menus of the conversation.
func (b *conversationBody) Menus() []exportMenu {
	return exportMenus(conversationURL(b.ID)+"/export", false)
}

// turnView is the messages since the last answer, and the answer.
type turnView struct {
	Asked  []messageView
	Answer *answerView
	Again  *retry // nil if the answer is complete, or others came after it
}

// messageView is a message that is not an answer. Rest is the folded part of it.
type messageView struct{ Role, Text, Rest string }

// arrivingView is an answer that is still arriving.
type arrivingView struct {
	Question string
	LiveURL  string // empty if it has arrived meanwhile
	State    string // of the answer, in a sentence
	Answer   *answerView
	Again    *retry // asks the question again, if the answer breaks off
}

// conversation shows the latest messages of a conversation with their answers, numbered as they always were, and the
// answers that are still arriving.
func (p *Page) conversation(ctx context.Context, r *httpx.Request) (*view, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	p.captured.CatchUp(ctx)
	cursor := r.URL.Query().Get("cursor")
	arriving := p.arriving.of(r.Who.Tenant, id) // before the store, or one that ends now could be missed
	var failed []*failedTurn
	if cursor == "" {
		failed = p.arriving.failures(r.Who.Tenant, id)
	}
	if cursor == "" && len(arriving) == 0 {
		arriving = p.announced(ctx, r, id)
	}
	c, err := p.conversationPart(ctx, r.Who.Tenant, id, cursor)
	if errors.Is(err, store.ErrNotFound) && cursor == "" && len(arriving)+len(failed) > 0 {
		c, err = &store.Conversation{ID: id, Started: time.Now(), Updated: time.Now()}, nil
	}
	if err != nil {
		return nil, err
	}
	body := &conversationBody{Conversation: c, Title: titleOf(c)}
	turns := store.Shown(c.Turns(), c.Before)
	for _, t := range arriving {
		turns, _, _ = store.KeptBehind(turns, c.Before, gateway.Follows(t.follows))
	}
	if err := p.addTurns(ctx, r, body, turns); err != nil {
		return nil, err
	}
	if c.Next != "" {
		body.Earlier = conversationURL(c.ID) + "?cursor=" + url.QueryEscape(c.Next)
	}
	if cursor != "" {
		body.Latest = conversationURL(id)
	} else {
		if body.Arriving, err = p.arrivingViews(ctx, r, c, arriving); err != nil {
			return nil, err
		}
		body.Failed = failed
		switch {
		case len(body.Turns) > 0:
		case len(body.Arriving) > 0:
			body.Title = short(body.Arriving[0].Question, maxTitle)
		case len(failed) > 0:
			body.Title = short(failed[0].Question, maxTitle)
		}
		form := p.composer(r, c)
		if form != nil && len(arriving) > 0 {
			form.Provider = cmp.Or(arriving[len(arriving)-1].provider, form.Provider)
		}
		body.addComposer(form)
	}
	v := &view{Name: "conversation", Title: body.Title, Body: body}
	if body.Composer != nil {
		v.Section = "ask"
	}
	return v, nil
}

// addComposer adds the form for the next question, and offers to ask the last one again if its answer broke off.
func (b *conversationBody) addComposer(form *composer) {
	if b.Composer = form; form == nil || !form.May {
		return
	}
	for i := range b.Arriving {
		v := &b.Arriving[i]
		v.Again = &retry{b.ID, v.Question, form.Provider, "", b.before(len(b.Turns))}
		if v.LiveURL != "" {
			form.Stop = v.Answer.AnswerID
		}
	}
	for i := range b.Turns {
		form.Samples = slices.DeleteFunc(form.Samples, func(q string) bool {
			asked := lastQuestion(b.Turns[i].Answer.Prompt)
			return asked != nil && asked.Text == q
		})
	}
	form.Samples = slices.DeleteFunc(form.Samples, func(q string) bool {
		return slices.ContainsFunc(b.Arriving, func(v arrivingView) bool { return v.Question == q }) ||
			slices.ContainsFunc(b.Failed, func(f *failedTurn) bool { return f.Question == q })
	})
	if n := len(b.Turns); n > 0 && len(b.Turns[n-1].Answer.Samples) > 0 {
		form.Samples = nil // that answer has them
	}
	if len(b.Turns) == 0 || len(b.Arriving)+len(b.Failed) > 0 {
		return
	}
	last := &b.Turns[len(b.Turns)-1]
	if asked := lastQuestion(last.Answer.Prompt); asked != nil && !last.Answer.Answer.Complete {
		last.Again = &retry{
			b.ID, asked.Text, last.Answer.Upstream, last.Answer.Answer.Model, b.before(len(b.Turns) - 1),
		}
	}
}

// before returns the answer before a turn of the page, as in [gateway.FollowsHeader].
func (b *conversationBody) before(turn int) string {
	switch {
	case turn > 0:
		return b.Turns[turn-1].Answer.AnswerID
	case b.Before != nil:
		return b.Before.AnswerID
	}
	return gateway.FollowsNone
}

// conversationPart reads the part of a conversation that a page shows: up to [maxTurns] answers before a cursor, fewer
// if they are large.
func (p *Page) conversationPart(ctx context.Context, tenant, id, cursor string) (*store.Conversation, error) {
	limit, size := fewTurns, 0
	var whole *store.Conversation
	for {
		c, err := p.o.Store.Conversation(ctx, tenant, id, &store.Query{Cursor: cursor, Limit: limit})
		if err != nil {
			return nil, err
		}
		size += sizeOf(c.Calls)
		if whole != nil {
			c.Calls = append(c.Calls, whole.Calls...)
		}
		whole, cursor = c, c.Next
		if cursor == "" || len(c.Calls) >= maxTurns || size >= maxTurnsBytes {
			return whole, nil
		}
		if limit = fewTurns; size < maxTurnsBytes/maxTurns {
			limit = maxTurns - len(c.Calls)
		}
	}
}

// sizeOf returns the approximate size of answers in bytes, with their quotes and prompts.
func sizeOf(calls []*store.Call) int {
	n := 0
	for _, call := range calls {
		n += len(call.Answer.Text)
		for i := range call.Prompt {
			n += len(call.Prompt[i].Text)
		}
		for i := range call.Answer.Sources {
			s := &call.Answer.Sources[i]
			n += len(s.Title) + len(s.URL) + len(s.Content)
		}
		for i := range call.Answer.Citations {
			for k := range call.Answer.Citations[i].Refs {
				n += len(call.Answer.Citations[i].Refs[k].Quote)
			}
		}
	}
	return n
}

// addTurns adds the messages and answers.
func (p *Page) addTurns(ctx context.Context, r *httpx.Request, body *conversationBody, turns []store.Turn) error {
	numbering := maps.Clone(body.Numbering)
	for i, turn := range turns {
		feedback, err := p.feedbackOf(ctx, r.Who.Tenant, turn.Call.AnswerID)
		if err != nil {
			return err
		}
		known, err := p.trustOf(ctx, r, turn.Call)
		if err != nil {
			return err
		}
		o := &answerOptions{
			numbering: &numbering, prefix: "m" + strconv.Itoa(i+1) + "-", feedback: feedback, readOnly: !mayWrite(r),
			strip: true, trust: known, checking: p.isChecking(turn.Call),
		}
		t := turnView{}
		t.Answer = p.answerView(r.Context(), turn.Call, o) //nolint:contextcheck // it may take longer than ctx
		for _, m := range turn.Asked {
			message := messageView{Role: m.Role, Text: m.Text}
			if len(m.Text) > maxMessage+maxMessage/4 {
				message.Text = text.Head(m.Text, maxMessage)
				message.Rest = m.Text[len(message.Text):]
			}
			t.Asked = append(t.Asked, message)
		}
		body.Turns = append(body.Turns, t)
	}
	return nil
}

// arrivingViews returns the arriving answers that the store does not have yet.
func (p *Page) arrivingViews(
	ctx context.Context, r *httpx.Request, c *store.Conversation, all []*arrivingAnswer,
) ([]arrivingView, error) {
	stored := map[string]bool{}
	for _, call := range c.Calls {
		stored[call.AnswerID] = true
	}
	numbering := maps.Clone(c.Numbering)
	var views []arrivingView
	for _, t := range all {
		if stored[t.answerID] || t.whole != nil && len(c.Calls) > 0 && t.whole.Started.Before(c.Calls[0].Started) {
			continue // it is on this page, or on an earlier one
		}
		call := t.whole
		if call == nil {
			if whole, err := p.call(ctx, r.Who.Tenant, t.answerID); err == nil {
				call = whole
			}
		}
		o := &answerOptions{
			numbering: &numbering, prefix: "live" + strconv.Itoa(len(views)+1) + "-", live: call == nil,
			readOnly: !mayWrite(r), strip: true,
		}
		if call != nil {
			var err error
			if o.trust, err = p.trustOf(ctx, r, call); err != nil {
				return nil, err
			}
		}
		v := arrivingView{Question: t.question}
		if o.live {
			call = t.call(c.ID)
			v.State = arrivingWords(call.Answer)
			call.Answer = settled(call.Answer, 0)
			q := url.Values{"prefix": {o.prefix}, "run": {t.run}, "conversation": {c.ID}}
			v.LiveURL = answerURL(t.answerID) + "/live?" + q.Encode()
		}
		v.Answer = p.answerView(r.Context(), call, o) //nolint:contextcheck // it may take longer than ctx
		if asked := lastQuestion(call.Prompt); v.Question == "" && asked != nil {
			v.Question = asked.Text
		}
		views = append(views, v)
	}
	return views, nil
}

// lastQuestion returns the last question; nil if there is none.
func lastQuestion(prompt []store.Message) *store.Message {
	for i := range slices.Backward(prompt) {
		if prompt[i].Role == store.RoleUser {
			return &prompt[i]
		}
	}
	return nil
}

// announced returns the answer that the address of a conversation says is arriving, which another node may have asked
// for. If it has arrived already, it must belong to this conversation.
func (p *Page) announced(ctx context.Context, r *httpx.Request, conversation string) []*arrivingAnswer {
	answerID, run := asked(r, "answer"), asked(r, "run")
	if answerID == "" || run == "" || p.o.Bus == nil {
		return nil
	}
	since, ok := beginningOf(answerID)
	if !ok {
		return nil
	}
	t := &arrivingAnswer{answerID: answerID, run: run, since: since}
	switch call, err := p.call(ctx, r.Who.Tenant, answerID); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil || call.Conversation != conversation:
		return nil
	default:
		t.whole = call
	}
	return []*arrivingAnswer{t}
}

// beginningOf returns when an answer began, which is part of its id; ok is false if it is not the id of an answer.
func beginningOf(answerID string) (at time.Time, ok bool) {
	id, is := strings.CutPrefix(answerID, "ans_")
	u, err := uuid.Parse(id)
	if !is || err != nil || u.Version() != 7 || u.String() != id {
		return time.Time{}, false
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec), true
}
