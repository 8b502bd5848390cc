package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// How many answers a page has: unless told otherwise, and at most.
const (
	defaultAnswers = 10
	MaxAnswers     = 100
)

const (
	maxWords     = 4 << 10  // bytes of the words that are looked for
	maxCursor    = 16 << 10 // bytes of a cursor
	answerBegins = 300      // characters of an answer in a list
)

// findArgs are the arguments of find_answers.
type findArgs struct {
	Words        string `json:"words"`
	Source       string `json:"source"`
	Run          string `json:"run"`
	Conversation string `json:"conversation"`
	AnswerID     string `json:"answer_id"`
	Limit        *int   `json:"limit"`
	Cursor       string `json:"cursor"`
}

// foundAnswers is what find_answers gives back.
type foundAnswers struct {
	Answers []foundAnswer `json:"answers"`
	Next    *string       `json:"next_cursor"`
}

type foundAnswer struct {
	ID           string         `json:"answer_id"`
	StartedAt    time.Time      `json:"started_at"`
	Provider     *string        `json:"provider"`
	Model        *string        `json:"model"`
	Conversation *string        `json:"conversation"`
	Run          *string        `json:"run"`
	Text         string         `json:"text"`
	Citations    int            `json:"citations"`
	Sources      []foundSource  `json:"sources"`
	SourcesMore  int            `json:"sources_left_out"`
	Document     *ibid.Document `json:"document"`
}

type foundSource struct {
	ID    string  `json:"id"`
	Key   string  `json:"key"`
	Title *string `json:"title"`
	URL   *string `json:"url"`
}

// findAnswers finds stored answers, or shows one.
func (m *MCP) findAnswers(ctx context.Context, c *call) (*result, error) {
	var args findArgs
	if err := readArgs(c.args, &args); err != nil {
		return nil, err
	}
	limit, err := number("limit", args.Limit, defaultAnswers, 1, MaxAnswers)
	if err != nil {
		return nil, err
	}
	for name, said := range map[string]string{"words": args.Words, "source": args.Source, "run": args.Run, "conversation": args.Conversation, "answer_id": args.AnswerID} {
		if len(said) > maxWords || strings.Contains(said, "\x00") {
			return nil, refuse(
				fmt.Sprintf("%s: it has more than %d bytes, or control characters", name, maxWords),
				"leave out what is not needed",
			)
		}
	}
	if args.AnswerID != "" {
		return m.oneAnswer(ctx, c.tenant, &args)
	}
	if len(args.Cursor) > maxCursor {
		return nil, store.ErrCursor
	}
	m.settle(ctx)
	page, err := m.store.Calls(ctx, c.tenant, &store.Query{
		Text:         args.Words,
		Source:       args.Source,
		Run:          args.Run,
		Conversation: args.Conversation,
		Cursor:       args.Cursor,
		Limit:        limit,
	})
	if err != nil {
		return nil, storeError("find answers", err)
	}
	out := &foundAnswers{Answers: []foundAnswer{}, Next: orNull(page.Next)}
	var text strings.Builder
	text.WriteString(count(len(page.Items), "answer"))
	for _, one := range page.Items {
		found := showAnswer(one)
		found.Text = trail.Excerpt(found.Text, answerBegins)
		out.Answers = append(out.Answers, found)
		fmt.Fprintf(
			&text, "\n%s, %s, %s: %s", found.ID, found.StartedAt.Format(time.RFC3339),
			count(found.Citations, "citation"), cut(found.Text),
		)
	}
	if page.Next != "" {
		text.WriteString("\nThere are more: pass next_cursor as cursor.")
	}
	return &result{text.String(), out}, nil
}

// oneAnswer shows an answer.
func (m *MCP) oneAnswer(ctx context.Context, tenant string, args *findArgs) (*result, error) {
	if args.Words+args.Source+args.Run+args.Conversation+args.Cursor != "" {
		return nil, refuse("answer_id goes alone", "without it, answers are looked for; with it, that one is shown")
	}
	one, err := m.answer(ctx, tenant, args.AnswerID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refuse(
			"answer_id: there is no answer with this id",
			"what was deleted or is another tenant's looks the same as what never was",
		)
	case err != nil:
		return nil, err
	}
	found := showAnswer(one)
	show := &showing{ibid.StyleMarkdown, ibid.UTF8, true}
	found.Document = show.documentOf(one.Answer, one.AnswerID)
	return &result{citedText(one.Answer, show), &foundAnswers{Answers: []foundAnswer{found}}}, nil
}

// answer reads an answer, which may not be in the store yet.
func (m *MCP) answer(ctx context.Context, tenant, id string) (*store.Call, error) {
	if len(id) > maxID {
		return nil, store.ErrNotFound
	}
	if m.gateway != nil {
		if one, ok := m.gateway.Find(tenant, id); ok {
			return one, nil
		}
	}
	one, err := m.store.Call(ctx, tenant, id)
	if err != nil {
		return nil, storeError("read an answer", err)
	}
	return one, nil
}

func showAnswer(c *store.Call) foundAnswer {
	a := c.Answer
	out := foundAnswer{
		ID:           c.AnswerID,
		StartedAt:    c.Started,
		Provider:     orNull(a.Provider),
		Model:        orNull(a.Model),
		Conversation: orNull(c.Conversation),
		Run:          orNull(c.Run),
		Text:         a.Text,
		Citations:    len(a.Citations),
		Sources:      []foundSource{},
		SourcesMore:  max(0, len(a.Sources)-maxShown),
	}
	for i := range min(len(a.Sources), maxShown) {
		s := &a.Sources[i]
		out.Sources = append(out.Sources, foundSource{s.ID, s.Key(), orNull(s.Title), orNull(s.URL)})
	}
	return out
}
