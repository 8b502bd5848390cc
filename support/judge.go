package support

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid"
)

// Preset is how a [Judge] asks.
type Preset string

// The presets.
const (
	// presetVerdict asks any instruction-tuned model for a label and quotes for each claim.
	presetVerdict Preset = ""
	// PresetMiniCheck asks models of the MiniCheck family, such as bespoke-minicheck, in the form they were trained on:
	// "Document: … Claim: …", one claim at a time, answered with Yes or No. There is no quote, so the evidence is all
	// passages. [Pair.Context] is not sent, as the form has no place for it.
	PresetMiniCheck Preset = "minicheck"
)

// JudgeBatch is the default of [Judge.Batch].
const JudgeBatch = 8

// The limits of a [Judge]. A claim over them is [Unjudged], with an error.
const (
	judgeClaimBytes   = 10_000
	judgePassageBytes = 100_000 // of a request's passages
	// judgeQuoteBytes is the least length of a quote that is not the whole passage: a word that occurs in every text
	// proves nothing.
	judgeQuoteBytes = 8
)

// The codes of a [Judge]'s issues.
const (
	// no passage contains one of the model's quotes: its label does not count
	issueQuoteNotFound  = "quote-not-found"
	issueNoVerdict      = "no-verdict"       // the model did not answer in the requested form
	issueContextNotSent = "context-not-sent" // the preset has no place for the pair's context
)

// Judge is a [Checker] that asks a language model through any server with OpenAI's chat completions API. It is safe for
// concurrent use; its fields must not change after first use. Use it through [WithJudge], which asks it only about what
// words leave open.
//
// All passages of a claim are in one request, and up to Batch claims. From a model's answer it accepts one of three
// labels per claim, under an identifier that no passage can know, and quotes. A label other than [Unsupported] counts
// only if each quote is in a passage of the claim, word for word except for white space and the shape of quotation
// marks and dashes; otherwise the verdict is [Unjudged] with the issue quote-not-found. Anything else that a model
// answers, or that a passage makes it answer, is [Unjudged] too. A text can still talk a model into a wrong label for a
// claim of the same request; the quotes show how.
//
// Its verdicts have no closeness: models do not give one that means the same for two of them.
type Judge struct {
	URL    string // the base URL, without "/chat/completions": https://api.openai.com/v1, http://localhost:11434/v1
	Model  string
	Key    string // sent as Authorization: Bearer; if empty, none is sent
	Header string // a header to send the key in instead, as it is
	Preset Preset
	Batch  int // claims in one request; 0 means JudgeBatch

	Name        string       // the checker's ID; empty means the preset's name, or "judge"
	Cache       Cache        // caches the model's verdicts; nil means none
	Meter       *Meter       // counts and limits requests; nil means neither
	Client      *http.Client // nil means one with http.DefaultTransport; redirects are never followed
	Timeout     time.Duration
	Retries     int // 0 means RemoteRetries, negative none
	Concurrency int // requests at a time; 0 means 4
	// Progress is called after each request with the number of claims answered and of those asked. It may be called
	// concurrently.
	Progress func(done, total int)

	form atomic.Int32 // the fullest form of request that the server is known to accept; see forms
}

// judgeVersion changes with the prompts and with the way answers are read. It is part of the keys of the cache.
const judgeVersion = "3"

// Info implements [Checker].
func (j *Judge) Info() Info {
	return Info{
		ID:      cmp.Or(j.Name, string(j.Preset), "judge"),
		Version: judgeVersion + "/" + j.Model,
		Params:  paramsHash(string(j.Preset), j.Model, j.URL),
	}
}

// question is one claim to judge by its passages.
type question struct {
	claim, context string
	passages       []string // not blank
	key            [32]byte
	answer         ruling
	err            error
}

// ruling is a model's answer, as it is cached.
type ruling struct {
	Label  Label    `json:"label"` // Unjudged if no answer counts
	Quotes []string `json:"quotes,omitempty"`
	Whole  bool     `json:"whole,omitempty"` // the passages are the evidence, without a quote
	Detail string   `json:"-"`               // why the label is Unjudged
}

// Check implements [Checker]. Equal questions are asked once. If every question failed, it returns the first error; if
// ctx ends before all are answered, the verdicts on the others have an error.
func (j *Judge) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	server, err := j.endpoint()
	if err != nil {
		return nil, fmt.Errorf("asking a judge: %w", err)
	}
	all, of := j.questions(in)
	open := j.open(ctx, all)
	j.askAll(ctx, server, open)
	answered := func(q *question) bool { return q.err == nil }
	if len(open) > 0 && len(open) == len(all) && !slices.ContainsFunc(open, answered) {
		return nil, open[0].err
	}
	verdicts := make([]Verdict, len(in))
	for i := range in {
		verdicts[i] = j.verdict(&in[i], of[i])
	}
	return verdicts, nil
}

func (j *Judge) endpoint() (*endpoint, error) {
	if j.Model == "" {
		return nil, errors.New("no model is set")
	}
	e, err := remote(j.URL, j.Client, j.Timeout, j.Retries)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(e.url.Path, "/chat/completions") {
		e.url = e.url.JoinPath("chat", "completions") // keeps a query
	}
	if e.key, e.keyHeader = j.Key, j.Header; j.Header == "" && j.Key != "" {
		e.key, e.keyHeader = "Bearer "+j.Key, "Authorization"
	}
	return e, nil
}

// questions returns the questions, without duplicates, and that of each pair; nil if there is nothing to ask.
func (j *Judge) questions(in []Pair) (all, of []*question) {
	of = make([]*question, len(in))
	known := map[[32]byte]*question{}
	info := j.Info()
	for i := range in {
		q := &question{claim: in[i].Claim, context: in[i].Context}
		if checkClaim(q.claim) != nil {
			continue
		}
		if j.Preset == PresetMiniCheck {
			q.context = ""
		}
		for k := range in[i].Passages {
			if text := in[i].Passages[k].Text; strings.TrimSpace(text) != "" {
				q.passages = append(q.passages, text)
			}
		}
		parts := append([]string{info.ID, info.Version, info.Params, q.context, q.claim}, q.passages...)
		q.key = cacheKey(parts...)
		if of[i] = known[q.key]; of[i] == nil {
			known[q.key], of[i] = q, q
			all = append(all, q)
		}
	}
	return all, of
}

func checkClaim(claim string) error {
	switch {
	case strings.TrimSpace(claim) == "":
		return errors.New("the claim is empty")
	case len(claim) > judgeClaimBytes:
		return fmt.Errorf("the claim is longer than %d bytes", judgeClaimBytes)
	}
	return nil
}

// open answers the questions that need no model, and returns the rest.
func (j *Judge) open(ctx context.Context, all []*question) []*question {
	var open []*question
	cached := 0
	for _, q := range all {
		size := 0
		for _, text := range q.passages {
			size += len(text)
		}
		switch {
		case size == 0:
			q.answer = ruling{Label: Unsupported}
		case size > judgePassageBytes:
			q.err = fmt.Errorf("the passages are longer than %d bytes", judgePassageBytes)
		case q.cached(ctx, j.Cache):
			cached++
		default:
			open = append(open, q)
		}
	}
	j.Meter.add(0, cached, 0, 0)
	return open
}

// askAll asks the model, with several requests at a time and several questions in each.
func (j *Judge) askAll(ctx context.Context, server *endpoint, open []*question) {
	batches := j.batches(open)
	allowed := j.Meter.allowed(len(batches))
	for _, batch := range batches[allowed:] {
		for _, q := range batch {
			q.err = j.Meter.overAnswer()
		}
	}
	done := 0
	var mu sync.Mutex
	concurrently(allowed, j.Concurrency, func(i int) {
		j.ask(ctx, server, batches[i])
		if j.Progress != nil {
			mu.Lock()
			defer mu.Unlock()
			done += len(batches[i])
			j.Progress(done, len(open))
		}
	})
}

// batches returns the questions by request. A passage that several of them share counts once.
func (j *Judge) batches(open []*question) [][]*question {
	most := max(1, cmp.Or(j.Batch, JudgeBatch))
	if j.Preset == PresetMiniCheck {
		most = 1
	}
	var batches [][]*question
	size := 0
	var texts map[string]bool // of the last batch
	for _, q := range open {
		more := 0
		for _, text := range q.passages {
			if !texts[text] {
				more += len(text)
			}
		}
		last := len(batches) - 1
		if last < 0 || len(batches[last]) == most || size+more > judgePassageBytes {
			batches, size, texts = append(batches, nil), 0, map[string]bool{}
			last++
		}
		for _, text := range q.passages {
			if !texts[text] {
				texts[text] = true
				size += len(text)
			}
		}
		batches[last] = append(batches[last], q)
	}
	return batches
}

// verdict returns the verdict on a pair.
func (j *Judge) verdict(p *Pair, q *question) Verdict {
	v := Verdict{Label: Unjudged, By: j.Info().By()}
	if v.Err = checkClaim(p.Claim); v.Err != nil || len(p.Passages) == 0 {
		return v
	}
	if j.Preset == PresetMiniCheck && p.Context != "" {
		v.note(issueContextNotSent, "the preset has no place for it")
	}
	if v.Err = q.err; v.Err != nil {
		return v
	}
	evidence, found := q.answer.evidence(p)
	switch {
	case q.answer.Label == Unjudged:
		v.note(issueNoVerdict, "%s", q.answer.Detail)
	case !found:
		v.note(
			issueQuoteNotFound, "the model answered %s, but no passage contains its quote", q.answer.Label,
		)
	default:
		v.Label, v.Evidence = q.answer.Label, evidence
		for _, at := range evidence {
			v.Verbatim = v.Verbatim || v.Label == Supported && Verbatim(p.Claim, p.Text(at))
		}
	}
	return v
}

// evidence returns the places of the quotes in the passages, and whether the label counts.
func (r *ruling) evidence(p *Pair) (spans []Span, found bool) {
	switch {
	case r.Label == Unsupported:
		return nil, true
	case r.Whole:
		for i := range p.Passages {
			if text := p.Passages[i].Text; strings.TrimSpace(text) != "" {
				spans = append(spans, Span{i, ibid.Span{End: len(text)}})
			}
		}
		return spans, true
	}
	for _, quote := range r.Quotes {
		if quote = strings.TrimSpace(quote); quote == "" {
			continue
		}
		at := slices.IndexFunc(p.Passages, func(passage Passage) bool {
			if len(quote) < min(judgeQuoteBytes, len(strings.TrimSpace(passage.Text))) {
				return false
			}
			_, ok := findQuote(passage.Text, quote)
			return ok
		})
		if at < 0 {
			return nil, false
		}
		span, _ := findQuote(p.Passages[at].Text, quote)
		spans = append(spans, Span{at, span})
	}
	return spans, len(spans) > 0
}

// cached takes the answer from the cache, and reports whether it was there.
func (q *question) cached(ctx context.Context, c Cache) bool {
	if c == nil {
		return false
	}
	value, ok := c.Get(ctx, q.key)
	return ok && json.Unmarshal(value, &q.answer) == nil && isJudged(q.answer.Label)
}

// isJudged reports whether a judge decided.
func isJudged(l Label) bool { return l == Supported || l == Unsupported || l == Contradicted }

// remember caches the answer, if the model gave one.
func (q *question) remember(ctx context.Context, c Cache) {
	if c == nil || !isJudged(q.answer.Label) {
		return
	}
	if value, err := json.Marshal(&q.answer); err == nil { // it cannot fail
		c.Put(ctx, q.key, value)
	}
}
