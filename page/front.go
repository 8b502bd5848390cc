package page

import (
	"context"
	"errors"
	"slices"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// latestListed is how many of the latest answers and incidents the front page lists.
const latestListed = 10

// Demo is what the page of a demonstration shows in addition. All fields are required.
type Demo struct {
	Changed   string   // the run whose answer the front page opens with: one of its sources changed
	Holds     string   // a run whose sources all say what its answer cites
	Questions []string // that the demonstration can answer
}

// Upstream is a provider behind the gateway; the front page shows how to call it.
type Upstream struct{ Name, Provider string }

// firstCall is what the front page needs to show how a provider is called.
type firstCall struct {
	Upstream

	Base  string // the address of this server
	Key   string // the environment variable that usually holds a key
	Model string // to ask
}

func firstCallOf(base string, u Upstream) firstCall {
	c := firstCall{u, base, "API_KEY", call.DefaultModel(u.Provider)}
	if p, ok := call.FindProvider(u.Provider); ok && len(p.KeyEnv) > 0 {
		c.Key = p.KeyEnv[0]
	}
	return c
}

// frontBody is the content of the front page.
type frontBody struct {
	Base      string // the address of this server, shown while there is nothing else
	Upstreams []Upstream
	Demo      *Demo       // nil if this is not a demonstration
	Questions []string    // that it can answer, without that of the hero
	Hero      *answerView // the answer that the page opens with; nil if there is none
	Follow    string      // the chip of the sentence whose source changed
	VerifyURL string      // where the answer is verified
	Answers   []answerItem
	Alarms    []incidentRow
}

// Empty reports whether there is nothing to show yet.
func (b *frontBody) Empty() bool { return len(b.Answers)+len(b.Alarms) == 0 }

// front shows the latest entries and, in a demonstration, an answer whose source changed.
func (p *Page) front(ctx context.Context, r *httpx.Request) (*view, error) {
	p.captured.CatchUp(ctx)
	body := &frontBody{Base: p.baseURL(r), Upstreams: p.o.Upstreams, Demo: p.o.Demo}
	var err error
	if body.Answers, _, err = p.latestAnswers(ctx, r.Who.Tenant, "", latestListed); err != nil {
		return nil, err
	}
	alarms, err := p.o.Store.Incidents(ctx, r.Who.Tenant, &store.IncidentQuery{Limit: latestListed})
	if err != nil {
		return nil, err
	}
	if body.Alarms, err = p.incidentRows(ctx, r.Who.Tenant, alarms.Items); err != nil {
		return nil, err
	}
	if p.o.Demo != nil {
		body.Questions = p.o.Demo.Questions
		if err := p.addHero(ctx, r, body); err != nil {
			return nil, err
		}
	}
	return &view{Name: "front", Title: "Where each sentence comes from", Body: body}, nil
}

// addHero adds the answer that the front page of a demonstration opens with, if it exists.
func (p *Page) addHero(ctx context.Context, r *httpx.Request, body *frontBody) error {
	id, err := p.finalAnswer(ctx, r.Who.Tenant, p.o.Demo.Changed)
	if err != nil || id == "" {
		return err
	}
	answer, err := p.call(ctx, r.Who.Tenant, id)
	if err != nil {
		return err
	}
	o, err := p.optionsFor(ctx, r, answer)
	if err != nil {
		return err
	}
	body.Hero = p.answerView(r.Context(), answer, o) //nolint:contextcheck // it may take longer than ctx
	// The hero's question is on the page once.
	body.Questions = slices.DeleteFunc(slices.Clone(body.Questions), func(q string) bool {
		return q == body.Hero.Heading
	})
	body.Answers = slices.DeleteFunc(body.Answers, func(a answerItem) bool {
		return a.URL == conversationURL(answer.Conversation) || a.URL == runURL(answer.Run)
	})
	body.Follow = followURL(body.Hero)
	body.VerifyURL = verificationURL(id)
	return nil
}

// finalAnswer returns the id of a run's final answer; empty if there is no such run, or no answer yet.
func (p *Page) finalAnswer(ctx context.Context, tenant, run string) (string, error) {
	s, err := p.o.API.Summary(ctx, tenant, run)
	switch {
	case err == nil:
		return s.Run.FinalID(), nil
	case gateway.ProblemOf(err).Status == errNotFound.Status, errors.Is(err, store.ErrNotFound):
		return "", nil
	}
	return "", err
}

// followURL returns where a reader can follow a sentence of an answer to its source: the first chip of the source that
// is open beside the text, which is the gravest; the source itself if there is no chip.
func followURL(v *answerView) string {
	for _, s := range v.Cited {
		for _, u := range s.Uses {
			if s.Active && u.Back != "" {
				return "#" + u.Back
			}
		}
	}
	return panelURL(v.AnswerID, 1)
}
