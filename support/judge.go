package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	// PresetVerdict asks any instructed model for a label and a quote of each claim. Without a cache up to JudgeBatch
	// claims about one passage go in one request.
	PresetVerdict Preset = ""
	// PresetMiniCheck asks models of the MiniCheck family, as bespoke-minicheck, the way they were trained: "Document:
	// … Claim: …", one claim at a time, answered with Yes or No. There is no quote, so the evidence is the whole
	// passage. As the form has no place for it, [Pair.Context] is not sent.
	PresetMiniCheck Preset = "minicheck"
)

// The limits of a [Judge]. A claim or a passage that is longer is [Unverified], with an error.
const (
	JudgeBatch        = 8 // claims of one passage in one request
	JudgeClaimBytes   = 10_000
	JudgePassageBytes = 100_000
	// JudgeQuoteBytes is how short a quote may be, unless it is the whole passage: a word that every text has proves
	// nothing.
	JudgeQuoteBytes = 8
)

// The codes of issues that a [Judge] has.
const (
	// the model's quote does not stand in the passage: its label does not count
	IssueQuoteNotFound    = "quote-not-found"
	IssueNoVerdict        = "no-verdict"        // the model did not answer for this claim in the form it was asked for
	IssueDisputed         = "disputed"          // one passage supports the claim and another contradicts it
	IssuePassageUnchecked = "passage-unchecked" // a passage could not be judged; the verdict is that of the others
	IssueContextNotSent   = "context-not-sent"  // the preset has no place for the pair's context
)

// Judge is a [Checker] that asks a language model, at any address that answers OpenAI's chat completions. It is safe
// for concurrent use; its fields must not change once it is used.
//
// What is believed of a model's answer: one of four labels per claim, under an identifier that the passage cannot know,
// and a quote. A label other than [Unsupported] counts only if the quote stands in the passage, word for word but for
// white space; otherwise the verdict is [Unverified] with the issue [IssueQuoteNotFound]. Whatever else a model says,
// or a passage made it say, is [Unverified], too. A passage can still persuade a model of a wrong label; the quote
// shows with what. So can a claim, of the labels of those that share its request: with a cache each claim goes alone,
// so that what is kept depends on nothing but its key.
//
// The score is the probability that the model gave to "supported" among the four labels (or to Yes against No), where
// the server tells probabilities, and that of "contradicted" is the signal [SignalContradiction] of a verdict that says
// so. They are not calibrated. Where the server does not tell them, there is no score.
type Judge struct {
	URL    string // the base that "/chat/completions" is appended to: https://api.openai.com/v1, http://localhost:11434/v1
	Model  string
	Key    string // sent as Authorization: Bearer; empty: none is sent
	Header string // another header for the key, which is sent there as it is
	Preset Preset

	Name        string       // in verdicts; empty: "judge", or the preset's
	Cache       Cache        // of what the model said; nil: none, and claims share requests
	Client      *http.Client // nil: one with http.DefaultTransport. Redirects are never followed
	Timeout     time.Duration
	Retries     int // 0: RemoteRetries. Negative: none
	Concurrency int // 0: RemoteConcurrency

	form atomic.Int32 // the first form of request that the server is known to take; see forms
}

// judgeVersion changes with the prompts and with what is made of the answers.
const judgeVersion = "1"

// Info implements [Checker].
func (j *Judge) Info() Info {
	return Info{
		ID:      cmp.Or(j.Name, string(j.Preset), "judge"),
		Version: judgeVersion + "/" + j.Model,
		Params:  paramsHash(string(j.Preset), j.Model, j.URL),
	}
}

// question is one claim before one passage.
type question struct {
	claim, context, passage string
	key                     [32]byte
	answer                  ruling
	err                     error
}

// ruling is what a model said, as it is cached.
type ruling struct {
	Label  Label    `json:"label"` // Unverified: nothing that counts
	Quote  string   `json:"quote,omitempty"`
	Score  *float64 `json:"score,omitempty"`
	Refute *float64 `json:"refute,omitempty"` // the probability of Contradicted, if that is the label
	Whole  bool     `json:"whole,omitempty"`  // the evidence is the passage, without a quote
	Detail string   `json:"-"`                // why the label is Unverified
}

// Check implements [Checker]. Equal questions are asked once. Where every question met with an error, the first is
// returned; where ctx ends before all are answered, the others have an error.
func (j *Judge) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	server, err := j.endpoint()
	if err != nil {
		return nil, fmt.Errorf("asking a judge: %w", err)
	}
	asked := j.questions(in)
	open := asked.open(j.Cache)
	j.askAll(ctx, server, open)
	if len(open) > 0 && len(open) == len(asked.all) && allFailed(open) {
		return nil, open[0].err
	}
	verdicts := make([]Verdict, len(in))
	for i := range in {
		verdicts[i] = j.verdict(&in[i], asked.of[i])
	}
	return verdicts, nil
}

func allFailed(all []*question) bool {
	for _, q := range all {
		if q.err == nil {
			return false
		}
	}
	return true
}

func (j *Judge) endpoint() (*endpoint, error) {
	if j.Model == "" {
		return nil, errors.New("no model is named")
	}
	e, err := remote(j.URL, j.Client, j.Timeout, j.Retries)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(e.url.Path, "/chat/completions") {
		e.url = e.url.JoinPath("chat", "completions") // a query stays
	}
	if e.key, e.keyHeader = j.Key, j.Header; j.Header == "" && j.Key != "" {
		e.key, e.keyHeader = "Bearer "+j.Key, "Authorization"
	}
	return e, nil
}

// questions are the questions of one Check.
type questions struct {
	all []*question   // each once
	of  [][]*question // by pair, one per passage; nil where there is nothing to ask
}

func (j *Judge) questions(in []Pair) *questions {
	q := &questions{of: make([][]*question, len(in))}
	known := map[[32]byte]*question{}
	info := j.Info()
	for i := range in {
		p := &in[i]
		if checkClaim(p.Claim) != nil {
			continue
		}
		for k := range p.Passages {
			one := &question{claim: p.Claim, context: p.Context, passage: p.Passages[k].Text}
			if j.Preset == PresetMiniCheck {
				one.context = ""
			}
			one.key = cacheKey(info.ID, info.Version, info.Params, one.context, one.claim, one.passage)
			if same, ok := known[one.key]; ok {
				q.of[i] = append(q.of[i], same)
				continue
			}
			known[one.key] = one
			q.all = append(q.all, one)
			q.of[i] = append(q.of[i], one)
		}
	}
	return q
}

func checkClaim(claim string) error {
	switch {
	case strings.TrimSpace(claim) == "":
		return errors.New("the claim is empty")
	case len(claim) > JudgeClaimBytes:
		return fmt.Errorf("the claim is longer than %d bytes", JudgeClaimBytes)
	}
	return nil
}

// open answers what can be answered without the model, and returns the rest.
func (q *questions) open(cache Cache) []*question {
	var open []*question
	for _, one := range q.all {
		switch {
		case strings.TrimSpace(one.passage) == "":
			one.answer = ruling{Label: Unsupported}
		case len(one.passage) > JudgePassageBytes:
			one.err = fmt.Errorf("a passage is longer than %d bytes", JudgePassageBytes)
		case !one.cached(cache):
			open = append(open, one)
		}
	}
	return open
}

// askAll asks the model: questions about the same passage together, if they may be, several requests at a time.
func (j *Judge) askAll(ctx context.Context, server *endpoint, open []*question) {
	size := JudgeBatch
	if j.Preset == PresetMiniCheck || j.Cache != nil { // what is kept of a claim must not be its neighbours' work
		size = 1
	}
	var order []string
	about := map[string][]*question{}
	for _, q := range open {
		if len(about[q.passage]) == 0 {
			order = append(order, q.passage)
		}
		about[q.passage] = append(about[q.passage], q)
	}
	turns := make(chan struct{}, max(1, cmp.Or(j.Concurrency, RemoteConcurrency)))
	var requests sync.WaitGroup
	defer requests.Wait()
	for _, passage := range order {
		for all := about[passage]; len(all) > 0; {
			batch := all[:min(len(all), size)]
			all = all[len(batch):]
			turns <- struct{}{} // a request ends when ctx does
			requests.Go(func() {
				defer func() { <-turns }()
				j.ask(ctx, server, batch)
			})
		}
	}
}

// verdict puts together what was said about the passages of one pair.
func (j *Judge) verdict(p *Pair, asked []*question) Verdict {
	v := Verdict{Label: Unverified, By: j.Info().By()}
	if v.Err = checkClaim(p.Claim); v.Err != nil || len(p.Passages) == 0 {
		return v
	}
	if j.Preset == PresetMiniCheck && p.Context != "" {
		v.Issues = append(v.Issues, ibid.Issue{Code: IssueContextNotSent, Detail: "the preset has no place for it"})
	}
	found := map[Label]*finding{}
	for i, q := range asked {
		f := q.finding(i, &v)
		if best := found[f.label]; best != nil {
			best.add(f)
		} else {
			found[f.label] = f
		}
	}
	v.conclude(found)
	if v.Label != Unverified && found[Unverified] != nil {
		v.Issues = append(
			v.Issues, ibid.Issue{Code: IssuePassageUnchecked, Detail: "the verdict is that of the other passages"},
		)
		v.Err = nil
	}
	if v.Label == Supported {
		v.compare(p)
	}
	return v
}

// finding is what the passages say that were given the same label.
type finding struct {
	label    Label
	evidence []Span
	score    *float64
	refute   *float64
	unscored bool // of one of them no score is known
}

func (f *finding) add(other *finding) {
	f.evidence = append(f.evidence, other.evidence...)
	f.unscored = f.unscored || other.unscored
	f.score, f.refute = greater(f.score, other.score), greater(f.refute, other.refute)
}

func greater(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// finding says what passage number i says. What was odd goes to v.
func (q *question) finding(i int, v *Verdict) *finding {
	f := &finding{label: Unverified, unscored: true}
	if q.err != nil {
		v.Err = q.err
		return f
	}
	if q.answer.Label == Unverified {
		v.Issues = append(
			v.Issues,
			ibid.Issue{Code: IssueNoVerdict, Detail: fmt.Sprintf("passage %d: %s", i, q.answer.Detail)},
		)
		return f
	}
	at, ok := q.answer.evidence(q.passage)
	if !ok {
		v.Issues = append(v.Issues, ibid.Issue{
			Code:   IssueQuoteNotFound,
			Detail: fmt.Sprintf("passage %d: the model said %s, and its quote does not stand there", i, q.answer.Label),
		})
		return f
	}
	f.label, f.score, f.refute, f.unscored = q.answer.Label, q.answer.Score, q.answer.Refute, q.answer.Score == nil
	if at.Len() > 0 {
		f.evidence = []Span{{Passage: i, Span: at}}
	}
	return f
}

// conclude sets the label: one passage that supports the claim is enough, unless another one contradicts it.
func (v *Verdict) conclude(found map[Label]*finding) {
	for _, label := range []Label{Supported, Contradicted, Partial, Unverified, Unsupported} {
		f := found[label]
		if f == nil {
			continue
		}
		v.Label, v.Evidence = label, f.evidence
		if !f.unscored || label == Supported {
			v.Score = f.score
		}
		if f.refute != nil {
			v.Signals = map[string]float64{SignalContradiction: *f.refute}
		}
		break
	}
	if against := found[Contradicted]; v.Label == Supported && against != nil {
		v.Label, v.Score = Partial, nil
		v.Evidence = append(v.Evidence, against.evidence...)
		v.Issues = append(
			v.Issues, ibid.Issue{Code: IssueDisputed, Detail: "one passage supports the claim, another contradicts it"},
		)
	}
}

// compare looks at the evidence with the rules that need no model, for models overlook a digit.
func (v *Verdict) compare(p *Pair) {
	for _, at := range v.Evidence {
		v.Verbatim = v.Verbatim || Verbatim(p.Claim, p.Text(at))
	}
	if len(v.Evidence) == 0 || v.Verbatim {
		return
	}
	at := v.Evidence[0]
	v.Conflicts = changedIn(p.Claim, piece{at.Passage, at.Start, p.Text(at)})
	v.Changed = len(v.Conflicts) > 0
}
