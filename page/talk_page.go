package page

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/ibidhq/ibid/store"
)

// maxSaid is how many bytes of a message are shown at once; the rest opens.
const maxSaid = 1200

// talkBody is what the page of a conversation shows.
type talkBody struct {
	ID, Title        string
	Answers, Sources int
	Started, Updated time.Time
	Turns            []turnView
	Earlier, Latest  string // pages of it; empty: there are none
	Coming           []comingView
	Composer         *composer // nil: nobody can be asked here
	Exports          []exportLink
}

// turnView is what was said since the last answer, and the answer.
type turnView struct {
	Asked  []saidView
	Answer *answerView
}

// saidView is a message that is no answer.
type saidView struct {
	Role, Text, Rest string
}

// comingView is an answer that is still arriving.
type comingView struct {
	Question string
	LiveURL  string
	Answer   *answerView
}

func messageOf(m store.Message) saidView {
	s := saidView{Role: m.Role, Text: m.Text}
	if len(m.Text) > maxSaid+maxSaid/4 {
		s.Text = cutBytes(m.Text, maxSaid)
		s.Rest = m.Text[len(s.Text):]
	}
	return s
}

// conversation shows the latest messages of a conversation with their answers, numbered as they always were, and what
// is still arriving.
func (p *Page) conversation(w http.ResponseWriter, r *request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	cursor := r.URL.Query().Get("cursor")
	coming := p.talks.of(r.who.Tenant, id) // before the store: an answer that ends now is in one of both
	if cursor == "" && len(coming) == 0 {
		coming = p.announced(ctx, r, id)
	}
	c, err := p.latestOf(ctx, r.who.Tenant, id, cursor)
	if errors.Is(err, store.ErrNotFound) && cursor == "" && len(coming) > 0 {
		c, err = &store.Conversation{ID: id, Started: time.Now(), Updated: time.Now()}, nil
	}
	if err != nil {
		return err
	}
	body, err := p.talkBody(ctx, r, c)
	if err != nil {
		return err
	}
	if cursor != "" {
		body.Latest = talkURL(id)
	} else {
		body.Coming = p.comingViews(ctx, r, c, coming)
		if len(body.Coming) > 0 && len(body.Turns) == 0 {
			body.Title = short(body.Coming[0].Question, maxTitle)
		}
		body.Composer = p.composer(r, c)
	}
	return p.page(w, r, "conversation", &view{Title: body.Title, Section: "conversations", Body: body})
}

func (p *Page) talkBody(ctx context.Context, r *request, c *store.Conversation) (*talkBody, error) {
	body := &talkBody{
		ID:      c.ID,
		Title:   titleOf(c),
		Answers: c.Answers,
		Sources: len(c.Numbering),
		Started: c.Started,
		Updated: c.Updated,
		Exports: exportLinks(talkURL(c.ID)+"/export", false),
	}
	numbering := maps.Clone(c.Numbering)
	for i, turn := range c.Turns() {
		said, err := p.said(ctx, r.who.Tenant, turn.Call.AnswerID)
		if err != nil {
			return nil, err
		}
		o := &answerOptions{numbering: &numbering, prefix: turnPrefix(i), said: said, mute: !r.mayWrite()}
		t := turnView{Answer: p.answerView(turn.Call, o)}
		for _, m := range turn.Asked {
			t.Asked = append(t.Asked, messageOf(m))
		}
		body.Turns = append(body.Turns, t)
	}
	if c.Next != "" {
		body.Earlier = talkURL(c.ID) + "?cursor=" + url.QueryEscape(c.Next)
	}
	return body, nil
}

// turnPrefix begins the ids of an answer on the page of its conversation.
func turnPrefix(i int) string { return "m" + strconv.Itoa(i+1) + "-" }

// comingViews returns what is arriving of the answers that the store does not have yet.
func (p *Page) comingViews(ctx context.Context, r *request, c *store.Conversation, coming []*coming) []comingView {
	stored := map[string]bool{}
	for _, call := range c.Calls {
		stored[call.AnswerID] = true
	}
	numbering := maps.Clone(c.Numbering)
	var views []comingView
	for _, t := range coming {
		if stored[t.answerID] || t.whole != nil && len(c.Calls) > 0 && t.whole.Started.Before(c.Calls[0].Started) {
			continue // it is on this page, or on one before
		}
		call := t.whole
		if call == nil {
			if whole, err := p.call(ctx, r.who.Tenant, t.answerID); err == nil {
				call = whole
			}
		}
		o := &answerOptions{
			numbering: &numbering,
			prefix:    "live" + strconv.Itoa(len(views)+1) + "-",
			live:      call == nil,
			mute:      !r.mayWrite(),
		}
		if o.live {
			call = t.call(c.ID)
			call.Answer = settled(call.Answer, 0)
		}
		v := comingView{Question: t.question, Answer: p.answerView(call, o)}
		if asked := lastQuestion(call); v.Question == "" && len(asked) > 0 {
			v.Question = asked[0].Text
		}
		if o.live {
			v.LiveURL = liveURL(t, o.prefix, c.ID)
		}
		views = append(views, v)
	}
	return views
}

// announced returns the answer that the address of a conversation says is arriving, which another node may have asked
// for. Of one that has arrived it is known if it is of this conversation.
func (p *Page) announced(ctx context.Context, r *request, conversation string) []*coming {
	q := r.URL.Query()
	answerID, run := clean(q.Get("answer")), clean(q.Get("run"))
	if answerID == "" || run == "" || p.o.Bus == nil {
		return nil
	}
	since, ok := beginningOf(answerID)
	if !ok {
		return nil
	}
	t := &coming{answerID: answerID, run: run, since: since}
	switch call, err := p.call(ctx, r.who.Tenant, answerID); {
	case errors.Is(err, store.ErrNotFound):
	case err != nil || call.Conversation != conversation:
		return nil
	default:
		t.whole = call
	}
	return []*coming{t}
}

// beginningOf returns when an answer began, which its id says; not ok: that is not the id of an answer.
func beginningOf(answerID string) (at time.Time, ok bool) {
	id, is := strings.CutPrefix(answerID, "ans_")
	u, err := uuid.Parse(id)
	if !is || err != nil || u.Version() != 7 || u.String() != id {
		return time.Time{}, false
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec), true
}

func liveURL(t *coming, prefix, conversation string) string {
	q := url.Values{"prefix": {prefix}, "run": {t.run}, "conversation": {conversation}}
	return "/ui/answers/" + url.PathEscape(t.answerID) + "/live?" + q.Encode()
}
