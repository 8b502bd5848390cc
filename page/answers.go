package page

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

const (
	// answersListed is how many answers and conversations a page of their list has.
	answersListed = 25
	// previewed is how many of a conversation's latest answers its entry in the list is made from.
	previewed = 12
	// maxTitle is the maximum number of characters of a title in the list.
	maxTitle = 90
)

// answerList is the content of the list of answers.
type answerList struct {
	Badges []choice // for the search
	Items  []answerItem
	Next   string // where the next page is; empty if this is the last
}

// answerItem is an entry of the list: an answer, a conversation with all of its answers, or a run of several steps.
type answerItem struct {
	Title   string
	URL     string
	Answers int            // of the conversation; 0 for a run, 1 for an answer on its own
	Steps   int            // of the run; 0 if it is none
	Turns   []turn         // the conversation's latest answers, the latest first; nil if there is only one
	By      string         // models, or providers if they do not say; the agent of a run
	Known   bool           // the number of sources is known
	Sources int            // cited by the answer, in the conversation, or used by the run
	At      time.Time      // when it began last
	Badges  []countedBadge // citations with something to look at; empty if there are none
	Part    int            // number of the latest answers that the badges cover; 0 if they cover all
}

// turn is an answer of a conversation in the list.
type turn struct{ Question, URL string }

// answers lists all answers, the latest first.
func (p *Page) answers(ctx context.Context, r *httpx.Request) (*view, error) {
	p.captured.CatchUp(ctx)
	list := &answerList{Badges: verificationChoices("")}
	items, next, err := p.latestAnswers(ctx, r.Who.Tenant, r.URL.Query().Get("cursor"), answersListed)
	if errors.Is(err, store.ErrCursor) {
		return nil, httpx.BadRequest("There is no such page of the list.", "Start again at /ui/answers.")
	}
	list.Items, list.Next = items, nextURL(r.URL, next)
	return &view{Name: "answers", Title: "Answers", Body: list}, err
}

// latestAnswers returns the entries with the latest answers.
func (p *Page) latestAnswers(
	ctx context.Context, tenant, cursor string, limit int,
) (items []answerItem, next string, err error) {
	page, err := p.o.Store.Entries(ctx, tenant, &store.Query{Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	until := time.Now().Add(listFor)
	for i := range page.Items {
		item, err := p.answerItem(ctx, tenant, &page.Items[i], until)
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, "", err
		}
		items = append(items, *item)
	}
	return items, page.Next, nil
}

// answerItem makes the entry of the list. What takes longer than until is left out.
func (p *Page) answerItem(ctx context.Context, tenant string, e *store.Entry, until time.Time) (*answerItem, error) {
	if e.Run != nil {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		row := p.runRow(ctx, tenant, e.Run)
		return &answerItem{
			Title: cmp.Or(short(row.Question, maxTitle), "Run "+row.ID), URL: runURL(row.ID), Steps: row.Steps,
			By: line(row.Agent), Known: row.Known, Sources: row.Sources, At: row.Started,
		}, nil
	}
	item := &answerItem{
		Title: questionOf(e.Call), URL: answerURL(e.Call.AnswerID), Answers: 1,
		Known: true, Sources: citedSources(e.Call.Answer),
	}
	calls := []*store.Call{e.Call}
	if e.Call.Conversation != "" {
		c, err := p.o.Store.Conversation(ctx, tenant, e.Call.Conversation, &store.Query{Limit: previewed})
		if err != nil {
			return nil, err
		}
		item.addConversation(c)
		calls = c.Calls
	}
	return item, p.addCalls(ctx, tenant, item, calls, until)
}

// addConversation makes an entry that of a conversation.
func (item *answerItem) addConversation(c *store.Conversation) {
	item.Title, item.URL = titleOf(c), conversationURL(c.ID)
	item.Answers, item.Sources = c.Answers, len(c.Numbering)
	if c.Answers > len(c.Calls) {
		item.Part = len(c.Calls)
	}
	if c.Answers == 1 {
		return
	}
	for _, call := range slices.Backward(c.Calls) {
		item.Turns = append(item.Turns, turn{questionOf(call), answerURL(call.AnswerID)})
	}
}

// addCalls adds what is known of the calls of an entry, oldest first.
func (p *Page) addCalls(
	ctx context.Context, tenant string, item *answerItem, calls []*store.Call, until time.Time,
) (err error) {
	var names []string
	var badges []countedBadge
	for _, call := range calls {
		item.At = call.Started
		name := label(cmp.Or(call.Answer.Model, call.Answer.Provider, call.Upstream))
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if badges, err = p.countStandings(ctx, tenant, badges, call, until); err != nil {
			return err
		}
	}
	item.By = strings.Join(names, ", ")
	for _, b := range badges {
		if b.Kind == badgeBad || b.Kind == badgeClose || b.Kind == badgeLost {
			item.Badges = append(item.Badges, b)
		}
	}
	return nil
}

// citedSources returns how many of its sources an answer cites.
func citedSources(a *ibid.Answer) int {
	cited := map[string]bool{}
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			if a.Source(ref.Source) != nil {
				cited[ref.Source] = true
			}
		}
	}
	return len(cited)
}
