package api

import (
	"context"
	"errors"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/store"
)

// Comparison compares two strategies on a tenant's stored runs.
type Comparison struct {
	experiment.Trial

	Seen int // runs examined
	Bad  int // of these, runs that could not be read
}

// AddRuns measures the latest runs, up to most, and calls done after each unless it is nil. Runs that cannot be read
// are counted and skipped. A temporary error, or the end of ctx, stops it.
func (c *Comparison) AddRuns(ctx context.Context, s *store.Store, tenant string, most int, done func()) error {
	c.Feedback = func(ctx context.Context, answerID string) (experiment.Feedback, error) {
		counts, err := s.FeedbackCounts(ctx, tenant, &store.FeedbackQuery{AnswerID: answerID})
		if err != nil {
			return experiment.Feedback{}, err
		}
		return experiment.Feedback{Judged: counts.Citations, Right: counts.Right}, nil
	}
	q := &store.Query{}
	for left := most; left > 0; {
		q.Limit = min(left, store.MaxLimit)
		page, err := s.Runs(ctx, tenant, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			c.Seen++
			run, err := s.Trail(ctx, tenant, page.Items[i].ID)
			switch {
			case err == nil:
				err = c.Add(ctx, run)
			case errors.Is(err, store.ErrNotFound): // deleted in the meantime
				err = nil
			case ctx.Err() == nil && !store.IsTemporary(err):
				c.Bad++
				err = nil
			}
			if err != nil {
				return err
			}
			if done != nil {
				done()
			}
		}
		left -= len(page.Items)
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
	return nil
}
