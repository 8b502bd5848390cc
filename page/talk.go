package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/store"
)

const (
	// listed is how many conversations a page of their list has.
	listed = 20
	// glanced is how many of the latest answers of a conversation its entry in the list is made of.
	glanced = 12
	// searches is how often up to listed answers are looked through for one page of a filtered list, which ends as soon
	// as it has so many conversations.
	searches = 6
	// spoken is how many answers a page of a conversation has at most.
	spoken = 20
	// maxTitle is how many characters the title of a conversation has.
	maxTitle = 90
	// maxPathID is how long an id in a path can be, in bytes. There are none longer.
	maxPathID = 512
	// askStore bounds how long one page may take the store, and catchUp how long it waits for what was just captured.
	askStore = 20 * time.Second
	catchUp  = 500 * time.Millisecond
)

// talkRoutes returns the endpoints of conversations: to read them, to take them elsewhere, to ask, and to say what is
// wrong.
func (p *Page) talkRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /ui/conversations":             {handle: p.conversations},
		"GET /ui/conversations/{id}":        {handle: p.conversation},
		"GET /ui/conversations/{id}/export": {handle: p.exportConversation},
		"GET /ui/ask":                       {handle: p.showAsk},
		"POST /ui/ask":                      {scope: store.ScopeProxy, handle: p.ask},
		"GET /ui/answers/{id}/live":         {handle: p.liveAnswer},
		"GET /ui/answers/{id}/export":       {handle: p.exportAnswer},
		"GET /ui/answers/{id}/display/{n}":  {handle: p.display},
		"GET /ui/feedback":                  {handle: p.showFeedback},
		"POST /ui/feedback":                 {scope: store.ScopeWrite, handle: p.giveFeedback},
	}
}

// talkList is what the list of conversations shows.
type talkList struct {
	Query, Badge string
	Badges       []talkFilter
	Items        []talkItem
	Next         string // where the next page is; empty: this is the last
	Filtered     bool
}

// talkFilter is one choice of what came of checking.
type talkFilter struct {
	Value, Word string
	Chosen      bool
}

// talkItem is a conversation in the list.
type talkItem struct {
	URL, Title, Models string
	Answers, Sources   int
	Updated            time.Time
	Badges             []talkBadge
	Part               int // the badges are those of so many of its latest answers only; 0: of all
}

// talkBadge is how many citations have a badge.
type talkBadge struct {
	badge

	Count int
}

// talkFilters returns what the list can be narrowed to.
func talkFilters(chosen string) []talkFilter {
	all := []talkFilter{
		{Value: "", Word: "any badge"},
		{Value: store.VerifiedPassed, Word: "checked and in order"},
		{Value: store.VerifiedFailed, Word: "a check failed"},
		{Value: store.VerifiedUnverifiable, Word: "a source could not be read"},
		{Value: store.VerifiedUnchecked, Word: "not checked"},
	}
	for i := range all {
		all[i].Chosen = all[i].Value == chosen
	}
	return all
}

// conversations lists conversations, the one with the latest call first.
func (p *Page) conversations(w http.ResponseWriter, r *request) error {
	q := r.URL.Query()
	list := &talkList{Query: clean(q.Get("q")), Badge: clean(q.Get("badge"))}
	list.Badges = talkFilters(list.Badge)
	list.Filtered = list.Query != "" || list.Badge != ""
	ctx, cancel := context.WithTimeout(r.Context(), askStore)
	defer cancel()
	p.caughtUp(ctx)
	var ids []string
	var next string
	var err error
	if list.Filtered {
		ids, next, err = p.findTalks(ctx, r.who.Tenant, list, q.Get("cursor"))
	} else {
		ids, next, err = p.latestTalks(ctx, r.who.Tenant, q.Get("cursor"))
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		c, err := p.o.Store.Conversation(ctx, r.who.Tenant, id, &store.Query{Limit: glanced})
		if errors.Is(err, store.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		list.Items = append(list.Items, itemOf(c))
	}
	if next != "" {
		q.Set("cursor", next)
		list.Next = "/ui/conversations?" + q.Encode()
	}
	return p.page(w, r, "conversations", &view{Title: "Conversations", Section: "conversations", Body: list})
}

func (p *Page) latestTalks(ctx context.Context, tenant, cursor string) (ids []string, next string, err error) {
	page, err := p.o.Store.Conversations(ctx, tenant, &store.Query{Cursor: cursor, Limit: listed})
	if err != nil {
		return nil, "", err
	}
	for i := range page.Items {
		ids = append(ids, page.Items[i].ID)
	}
	return ids, page.Next, nil
}

// findTalks returns the conversations of the latest answers that a filter finds. One whose answers are on both sides of
// a cursor is on both pages.
func (p *Page) findTalks(
	ctx context.Context, tenant string, list *talkList, cursor string,
) (ids []string, next string, err error) {
	for range searches {
		page, err := p.o.Store.Calls(
			ctx, tenant, &store.Query{Text: list.Query, Verification: list.Badge, Cursor: cursor, Limit: listed},
		)
		if err != nil {
			return nil, "", err
		}
		for _, c := range page.Items {
			if c.Conversation != "" && !slices.Contains(ids, c.Conversation) {
				ids = append(ids, c.Conversation)
			}
		}
		if cursor = page.Next; cursor == "" || len(ids) >= listed {
			break
		}
	}
	return ids, cursor, nil
}

// itemOf returns the entry of a conversation of which the latest answers were read.
func itemOf(c *store.Conversation) talkItem {
	item := talkItem{
		URL:     talkURL(c.ID),
		Title:   titleOf(c),
		Answers: c.Answers,
		Sources: len(c.Numbering),
		Updated: c.Updated,
	}
	if c.Answers > len(c.Calls) {
		item.Part = len(c.Calls)
	}
	var models []string
	for _, call := range c.Calls {
		if m := cut(oneLine(call.Answer.Model), maxLabel); m != "" && !slices.Contains(models, m) {
			models = append(models, m)
		}
		for i := range call.Answer.Citations {
			item.count(quoteBadge(call.Answer.Citations[i].Verification))
		}
	}
	item.Models = strings.Join(models, ", ")
	return item
}

func (item *talkItem) count(b badge) {
	for i := range item.Badges {
		if item.Badges[i].Word == b.Word {
			item.Badges[i].Count++
			return
		}
	}
	b.Title = "" // it is about one citation
	item.Badges = append(item.Badges, talkBadge{b, 1})
}

// titleOf returns what a conversation began with, as far as its calls tell: most clients send all of it with each
// question.
func titleOf(c *store.Conversation) string {
	for _, call := range c.Calls {
		for _, m := range call.Prompt {
			if title := short(m.Text, maxTitle); m.Role == store.RoleUser && title != "" {
				return title
			}
		}
	}
	return "Conversation " + short(c.ID, maxTitle)
}

// clean returns what a reader asked for as it can be looked for: databases keep neither NUL nor what is no text.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(cutBytes(s, maxPathID), "")))
}

// idOf returns the id in a path. What cannot be one is not found, like any id that is not there.
func idOf(r *request) (string, error) {
	id := r.PathValue("id")
	if id == "" || len(id) > maxPathID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return "", store.ErrNotFound
	}
	return id, nil
}

func talkURL(id string) string { return "/ui/conversations/" + url.PathEscape(id) }

// caughtUp waits, for a moment, until what was captured before is in the store.
func (p *Page) caughtUp(ctx context.Context) {
	if p.o.Gateway == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	_ = p.o.Gateway.CatchUp(ctx) // the page shows what is there
}

// placeOf returns which of so many, from 1, a path names; 0: none. There is one way to write each.
func placeOf(r *request, of int) int {
	named := r.PathValue("n")
	if n, err := strconv.Atoi(named); err == nil && n >= 1 && n <= of && strconv.Itoa(n) == named {
		return n
	}
	return 0
}
