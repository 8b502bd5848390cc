package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// ask makes the second call for a job. It returns the call with its answer completed; nil if nothing was found.
func (b *Backfill) ask(ctx context.Context, j *Job) (*store.Call, error) {
	t := b.target(j.Call.Upstream, j.Call.Route)
	format := j.Format
	if format == "" {
		format = j.Call.Answer.Format
	}
	first, err := call.ReadRequest(format, j.Request)
	if err != nil {
		return nil, &failure{"unreadable", fmt.Errorf("reading the first request: %w", err)}
	}
	messages := first.Messages
	if t.Messages != AllMessages {
		messages = call.Trim(messages, t.Messages)
	}
	model := t.Model
	if model == "" && j.Provider == t.Provider {
		model = first.Model
		if model == "" {
			model = j.Call.Answer.Model
		}
	}
	built, err := call.BuildRequest(
		t.Provider, &call.Chat{Model: model, Messages: messages, Tools: t.Tools, Include: true},
	)
	if err != nil {
		return nil, &failure{"unreadable", fmt.Errorf("building the second request: %w", err)}
	}
	second, err := b.call(ctx, t, j, built)
	if err != nil {
		return nil, err
	}
	if len(second.Citations) == 0 && len(second.Sources) == 0 {
		return nil, nil //nolint:nilnil // nothing was found, and nothing is wrong
	}
	answer, err := merge(j.Call.Answer, second)
	if err != nil {
		return nil, &failure{"unreadable", err}
	}
	if kept := count(messages); kept != len(first.Messages) {
		answer.Issues = append(answer.Issues, ibid.Issue{
			Code: IssueContextDiffers,
			Detail: fmt.Sprintf(
				"the citations are from a second call that had %d of %d messages", kept, len(first.Messages),
			),
		})
	}
	return withAnswer(j.Call, answer), nil
}

// count returns how many of the messages a second call has: those of tools are left out, see [call.Chat].
func count(messages []call.Message) int {
	n := 0
	for _, m := range messages {
		if m.Role != call.RoleTool {
			n++
		}
	}
	return n
}

// call sends the second request and decodes its answer.
func (b *Backfill) call(ctx context.Context, t *target, j *Job, built *call.Built) (*ibid.Answer, error) {
	base, keys, err := t.place(j)
	if err != nil {
		return nil, &failure{"no-key", err}
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, built.Method, address(base, built.Path), bytes.NewReader(built.Body))
	if err != nil {
		return nil, &failure{"error", errors.New("the provider's URL is not valid")}
	}
	for _, headers := range []http.Header{built.Header, keys} {
		maps.Copy(req.Header, headers)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return nil, b.cause(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, &failure{"refused", fmt.Errorf("the provider answered with status %d", res.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, MaxResponse+1))
	if err != nil {
		return nil, b.cause(ctx, err)
	}
	if len(body) > MaxResponse {
		return nil, &failure{"too-large", fmt.Errorf("the response has more than %d bytes", MaxResponse)}
	}
	second, err := ibid.Decode(body, &ibid.DecodeOptions{Provider: t.Provider, Request: built.Body})
	switch {
	case err != nil:
		return nil, &failure{"unreadable", errors.New("the response is damaged")}
	case second.Error != nil:
		return nil, &failure{"refused", errors.New("the provider answered with an error")}
	case !second.Complete:
		return nil, &failure{"unreadable", errors.New("the response is not whole")}
	}
	return second, nil
}

// cause says why a call failed, without its address.
func (b *Backfill) cause(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &failure{"timeout", errors.New("the provider took too long")}
	}
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		err = withURL.Err
	}
	return &failure{"error", fmt.Errorf("asking the provider: %w", err)}
}

// address appends a path, which may have a query, to an upstream's URL.
func address(base *url.URL, path string) string {
	path, query, _ := strings.Cut(path, "?")
	u := base.JoinPath(path)
	u.RawQuery = query
	if base.RawQuery != "" && query != "" {
		u.RawQuery = base.RawQuery + "&" + query
	} else if query == "" {
		u.RawQuery = base.RawQuery
	}
	return u.String()
}

// withAnswer returns the call with another answer. It is not a copy: a Call that was encoded remembers that.
func withAnswer(c *store.Call, a *ibid.Answer) *store.Call {
	return &store.Call{
		AnswerID: c.AnswerID, Tenant: c.Tenant, Upstream: c.Upstream, Route: c.Route,
		Conversation: c.Conversation, Run: c.Run, Agent: c.Agent, Strategy: c.Strategy, Step: c.Step, Prompt: c.Prompt,
		Status: c.Status, Started: c.Started, FirstByte: c.FirstByte, Duration: c.Duration, Bytes: c.Bytes,
		Refetch: c.Refetch, Of: c.Of, Publish: c.Publish, Body: c.Body, Answer: a,
	}
}
