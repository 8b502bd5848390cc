package page

import (
	"context"
	"unicode"

	"github.com/ibidhq/ibid/store"
)

const (
	// maxSpoken is about how many bytes of answers, with all that they quote, a page of a conversation has: of heavy
	// ones it has fewer than spoken.
	maxSpoken = 4 << 20
	// spokenFirst is how many answers are read to see whether they are heavy, and as many at a time if they are.
	spokenFirst = 2
)

// weightOf returns about how many bytes an answer has, with what it quotes and what it was given.
func weightOf(call *store.Call) int {
	n := len(call.Answer.Text)
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
	return n
}

// weightOfAll returns about how many bytes answers have.
func weightOfAll(calls []*store.Call) int {
	n := 0
	for _, call := range calls {
		n += weightOf(call)
	}
	return n
}

// latestOf reads the part of a conversation that a page shows: up to spoken answers before a cursor, fewer if they are
// heavy.
func (p *Page) latestOf(ctx context.Context, tenant, id, cursor string) (*store.Conversation, error) {
	whole, err := p.o.Store.Conversation(ctx, tenant, id, &store.Query{Cursor: cursor, Limit: spokenFirst})
	if err != nil {
		return nil, err
	}
	weight := weightOfAll(whole.Calls)
	for whole.Next != "" && len(whole.Calls) < spoken && weight < maxSpoken {
		limit := spokenFirst
		if weight < maxSpoken/spoken {
			limit = spoken - len(whole.Calls)
		}
		c, err := p.o.Store.Conversation(ctx, tenant, id, &store.Query{Cursor: whole.Next, Limit: limit})
		if err != nil {
			return nil, err
		}
		weight += weightOfAll(c.Calls)
		c.Calls = append(c.Calls, whole.Calls...)
		whole = c
	}
	return whole, nil
}

// direction returns in which direction a text runs, by its first letter: "ltr" or "rtl"; "auto" as long as there is
// none. With thousands of elements in a text, a browser takes minutes to find that out by itself.
func direction(text string) string {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Samaritan, unicode.Mandaic,
			unicode.Adlam, unicode.Hanifi_Rohingya, unicode.Mende_Kikakui):
			if unicode.IsLetter(r) {
				return "rtl"
			}
		case unicode.IsLetter(r):
			return "ltr"
		}
	}
	return "auto"
}
