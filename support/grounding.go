package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
)

// The limits of [Grounding]; those of the facts are the API's own.
const (
	GroundingClaimBytes = 10_000 // of a claim; the API takes 4,096 tokens
	// of one claim, and pieces of evidence; a passage is one fact, or several if it is longer than GroundingFactBytes
	GroundingFacts     = 200
	GroundingFactBytes = 10_000 // of one fact
	GroundingThreshold = 0.6    // the API's own, unless Grounding.Threshold says another
)

// The codes of issues that only [Grounding] has.
const (
	IssueFactsLeftOut  = "facts-left-out" // there were more facts than GroundingFacts; the first were sent
	IssueNoCheckNeeded = "no-check-needed"
)

// Grounding is a [Checker] that asks Google's check grounding API (Vertex AI Search, Discovery Engine). It is safe for
// concurrent use; its fields must not change once it is used.
//
// The API takes a claim as one or several sentences and cites the facts that support each. All cited: [Supported].
// Some: [Partial]. None: [Unsupported]. Facts that it names against a sentence make it [Contradicted]; only projects
// that Google let into that experiment have them. Whether a number agrees is looked at again with rules, see
// [Verdict.Changed]. [Pair.Context] is not sent. Nothing is cached.
type Grounding struct {
	// Project is the Google Cloud project, by number or id: the URL is made of it. URL is another one, whole.
	Project, URL string
	// Token returns an OAuth access token with the scope cloud-platform. It is called for every Check.
	Token     func(context.Context) (string, error)
	Threshold float64 // of a citation, in (0, 1]; 0: GroundingThreshold

	Client      *http.Client // nil: one with http.DefaultTransport. Redirects are never followed
	Timeout     time.Duration
	Retries     int // 0: RemoteRetries. Negative: none
	Concurrency int // 0: RemoteConcurrency
}

// Info implements [Checker]. The score is the API's, and is not calibrated by ibid.
func (g *Grounding) Info() Info {
	return Info{ID: "grounding", Version: "1", Params: paramsHash(fmt.Sprint(g.threshold()))}
}

func (g *Grounding) threshold() float64 { return cmp.Or(g.Threshold, GroundingThreshold) }

// Check implements [Checker], with one request per pair. Where every request failed, the first error is returned.
func (g *Grounding) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	server, err := g.endpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for grounding: %w", err)
	}
	verdicts := make([]Verdict, len(in))
	turns := make(chan struct{}, max(1, cmp.Or(g.Concurrency, RemoteConcurrency)))
	var requests sync.WaitGroup
	for i := range in {
		turns <- struct{}{} // a request ends when ctx does
		requests.Go(func() {
			defer func() { <-turns }()
			verdicts[i] = g.check(ctx, server, &in[i])
		})
	}
	requests.Wait()
	for i := range verdicts {
		if verdicts[i].Err == nil {
			return verdicts, nil
		}
	}
	if len(verdicts) > 0 {
		return nil, verdicts[0].Err
	}
	return verdicts, nil
}

func (g *Grounding) endpoint(ctx context.Context) (*endpoint, error) {
	address := g.URL
	if address == "" {
		if g.Project == "" || strings.ContainsAny(g.Project, "/?#%") {
			return nil, errors.New("no project is named")
		}
		address = "https://discoveryengine.googleapis.com/v1/projects/" + g.Project +
			"/locations/global/groundingConfigs/default_grounding_config:check"
	}
	e, err := remote(address, g.Client, g.Timeout, g.Retries)
	if err != nil {
		return nil, err
	}
	if g.Token != nil {
		token, err := g.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("getting a token: %w", err)
		}
		e.keyHeader, e.key = "Authorization", "Bearer "+token
	}
	return e, nil
}

// check asks about one pair.
func (g *Grounding) check(ctx context.Context, server *endpoint, p *Pair) Verdict {
	v := Verdict{Label: Unverified, By: g.Info().By(), Threshold: g.threshold()}
	switch {
	case strings.TrimSpace(p.Claim) == "":
		v.Err = errors.New("the claim is empty")
	case len(p.Claim) > GroundingClaimBytes:
		v.Err = fmt.Errorf("the claim is longer than %d bytes", GroundingClaimBytes)
	}
	facts := factsOf(p.Passages)
	if v.Err != nil || len(facts) == 0 {
		return v
	}
	if p.Context != "" {
		v.Issues = append(v.Issues, ibid.Issue{Code: IssueContextNotSent, Detail: "the API has no place for it"})
	}
	if len(facts) > GroundingFacts {
		v.Issues = append(
			v.Issues,
			ibid.Issue{
				Code:   IssueFactsLeftOut,
				Detail: fmt.Sprintf("%d of %d facts were sent", GroundingFacts, len(facts)),
			},
		)
		facts = facts[:GroundingFacts]
	}
	request := call.GroundingCheck{Text: p.Claim, Threshold: g.Threshold}
	for _, f := range facts {
		request.Facts = append(request.Facts, p.Passages[f.Passage].Text[f.Start:f.End])
	}
	body, err := request.Body()
	if err == nil {
		body, err = server.post(ctx, body)
	}
	var found *call.Grounding
	if err == nil {
		found, err = call.ReadGrounding(body)
	}
	if err != nil {
		v.Err = fmt.Errorf("asking for grounding: %w", err)
		return v
	}
	v.ground(p, found, facts)
	return v
}

// factsOf cuts passages into pieces that the API takes, at white space where there is some.
func factsOf(passages []Passage) []Span {
	var facts []Span
	for i := range passages {
		text, from := passages[i].Text, 0
		for len(text)-from > GroundingFactBytes {
			end := from + len(wholeRunes(text[from:from+GroundingFactBytes]))
			if space := strings.LastIndexAny(text[from:end], " \n\t"); space > GroundingFactBytes/2 {
				end = from + space + 1
			}
			facts = append(facts, Span{i, ibid.Span{Start: from, End: end}})
			from = end
		}
		if strings.TrimSpace(text[from:]) != "" {
			facts = append(facts, Span{i, ibid.Span{Start: from, End: len(text)}})
		}
	}
	return facts
}

// ground makes a verdict of what the API found.
func (v *Verdict) ground(p *Pair, found *call.Grounding, facts []Span) {
	var checked, cited int
	var against []Span
	scored := true
	for i := range found.Claims {
		c := &found.Claims[i]
		if c.Unchecked {
			continue
		}
		checked++
		if len(c.For) > 0 {
			cited++
		}
		v.Evidence = appendChunks(v.Evidence, p, found, facts, c.For)
		against = appendChunks(against, p, found, facts, c.Against)
		if scored = scored && c.Score != nil; scored && (v.Score == nil || *c.Score < *v.Score) {
			v.Score = c.Score // as weak as its weakest sentence
		}
	}
	if checked > 0 && !scored {
		v.Score = found.Score
	}
	if v.Score != nil && !(*v.Score >= 0 && *v.Score <= 1) {
		v.Score = nil
	}
	switch {
	case checked == 0:
		v.Issues = append(
			v.Issues,
			ibid.Issue{Code: IssueNoCheckNeeded, Detail: "the API found nothing in the claim that needs support"},
		)
	case len(against) > 0 && cited > 0:
		v.Label = Partial
		v.Issues = append(
			v.Issues, ibid.Issue{Code: IssueDisputed, Detail: "some facts support the claim, others contradict it"},
		)
	case len(against) > 0:
		v.Label = Contradicted
	case cited == checked:
		v.Label = Supported
	case cited > 0:
		v.Label = Partial
	default:
		v.Label = Unsupported
	}
	v.Evidence = append(v.Evidence, against...)
	if v.Label == Supported {
		v.compare(p)
	}
}

// appendChunks appends where chunks stand in the passages: those of facts that were sent, up to [GroundingFacts].
func appendChunks(all []Span, p *Pair, found *call.Grounding, facts []Span, chunks []int) []Span {
	for _, i := range chunks {
		chunk := &found.Chunks[i]
		if len(all) == GroundingFacts {
			break
		}
		if chunk.Fact < 0 || chunk.Fact >= len(facts) {
			continue
		}
		at := facts[chunk.Fact]
		if in, ok := findQuote(p.Passages[at.Passage].Text[at.Start:at.End], chunk.Text); ok {
			at.Start, at.End = at.Start+in.Start, at.Start+in.End
		}
		all = append(all, at)
	}
	return all
}
