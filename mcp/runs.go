package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// findRunsArgs are the arguments of find_runs.
type findRunsArgs struct {
	Limit  *int   `json:"limit"`
	Cursor string `json:"cursor"`
}

// foundRuns is the result of find_runs.
type foundRuns struct {
	Runs []foundRun `json:"runs"`
	Next *string    `json:"next_cursor"`
}

type foundRun struct {
	Run      string     `json:"run"`
	Agent    *string    `json:"agent"`
	Question *string    `json:"question"`
	Started  *time.Time `json:"started_at"`
	Answers  int        `json:"answers"`
	Steps    int        `json:"steps"`
}

// findRuns lists recorded runs.
func (m *MCP) findRuns(ctx context.Context, c *call, args *findRunsArgs) (*result, error) {
	limit, err := number("limit", args.Limit, defaultAnswers, 1, MaxAnswers)
	if err != nil {
		return nil, err
	}
	if len(args.Cursor) > maxCursor {
		return nil, store.ErrCursor
	}
	m.captured.CatchUp(ctx)
	page, err := m.store.Runs(ctx, c.tenant, &store.Query{Cursor: args.Cursor, Limit: limit})
	if err != nil {
		return nil, httpx.StoreError("list runs", err)
	}
	out := &foundRuns{Runs: []foundRun{}, Next: httpx.OrNull(page.Next)}
	var text strings.Builder
	text.WriteString(count(len(page.Items), "run") + "; run_sources shows what one rests on")
	for i := range page.Items {
		r := &page.Items[i]
		out.Runs = append(out.Runs, foundRun{
			r.ID, httpx.OrNull(r.Agent), httpx.OrNull(r.Question), httpx.OrNull(r.Started), r.Answers, r.Recorded,
		})
		fmt.Fprintf(&text, "\n%s: %s", r.ID, named(r.Question, r.Agent, count(r.Recorded+r.Answers, "step")))
	}
	rest := "… cut here: use a smaller limit"
	if page.Next != "" {
		text.WriteString("\nThere are more: repeat the call with cursor " + page.Next)
		rest += ", or repeat the call with cursor " + page.Next
	}
	return &result{shorten(text.String(), rest), out}, nil
}
