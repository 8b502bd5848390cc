package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/support"
)

// The kinds of checkers.
const (
	checkerLexical   = "lexical"
	checkerJudge     = "judge"
	checkerMiniCheck = "minicheck"
	checkerGrounding = "grounding"
	checkerCascade   = "cascade"
)

// Checker describes what decides whether passages support a claim, as the member checkers of the file does. Start from
// [NewChecker].
type Checker struct {
	Kind string // empty: lexical
	Slow string // of a cascade: the checker that is asked where lexical is not sure; empty: a judge

	JudgeURL    string
	JudgeModel  string
	JudgeKeyEnv string // empty: the usual variable of the provider at JudgeURL

	GroundingProject  string
	GroundingTokenEnv string

	Low, High probability   // a cascade believes lexical below the one and from the other on
	Passages  int           // the nearest to the claim that a checker other than lexical is shown; 0: all
	Budget    int           // claims that a cascade asks its slow checker about at a time
	Timeout   time.Duration // of one request
	Retries   int           // of a request, where the checker is busy
}

// NewChecker returns the description of the built-in checker, with the defaults of the others.
func NewChecker() *Checker {
	return &Checker{ //nolint:gosec // the name of a variable is no secret
		GroundingTokenEnv: "GOOGLE_OAUTH_ACCESS_TOKEN",
		Low:               0.3,
		High:              0.8,
		Passages:          8,
		Budget:            support.CascadePairs,
		Timeout:           support.RemoteTimeout,
		Retries:           support.RemoteRetries,
	}
}

// settings returns what the file says of a checker.
func (c *Checker) settings() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.addSettings(flags)
	return flags
}

func (c *Checker) addSettings(flags *pflag.FlagSet) {
	kinds := []string{checkerLexical, checkerJudge, checkerMiniCheck, checkerGrounding, checkerCascade}
	slow := []string{checkerJudge, checkerMiniCheck, checkerGrounding}
	flags.Var(OneOf(&c.Kind, "CHECKER", kinds...), "checker",
		"`CHECKER` is lexical (default), judge, minicheck, grounding or cascade")
	flags.Var(OneOf(&c.Slow, "CHECKER", slow...), "slow",
		"the `CHECKER` that a cascade asks where lexical is not sure: judge (default), minicheck or grounding")
	flags.StringVar(&c.JudgeURL, "judge-url", "",
		"the `URL` of the model's API that /chat/completions is appended to, as http://127.0.0.1:11434/v1")
	flags.StringVar(&c.JudgeModel, "judge-model", "", "the `NAME` of the model")
	flags.StringVar(&c.JudgeKeyEnv, "judge-key-env", "",
		"the environment `VARIABLE` with the API's key; without one, that of a known provider's own tools")
	flags.StringVar(&c.GroundingProject, "grounding-project", "",
		"the Google Cloud `PROJECT` of the check grounding API")
	flags.StringVar(&c.GroundingTokenEnv, "grounding-token-env", c.GroundingTokenEnv,
		"the environment `VARIABLE` with an OAuth access token for it")
	flags.Var(&c.Low, "low", "a cascade believes lexical below this `SCORE`")
	flags.Var(&c.High, "high", "and from this `SCORE` on")
	flags.IntVar(&c.Passages, "passages", c.Passages,
		"the `NUMBER` of passages nearest to the claim that a checker other than lexical is shown; 0: all")
	flags.IntVar(&c.Budget, "budget", c.Budget,
		"the `NUMBER` of claims that a cascade asks its slow checker about at a time")
	flags.DurationVar(&c.Timeout, "timeout", c.Timeout, "how long one request to a checker may take, as a `TIME`")
	flags.IntVar(&c.Retries, "retries", c.Retries, "the `NUMBER` of times that a busy checker is asked again")
}

// probability is a number from 0 to 1.
type probability float64

func (p *probability) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

func (p *probability) Type() string { return "SCORE" }

func (p *probability) Set(word string) error {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil || !(x >= 0 && x <= 1) { // also if it is NaN
		return errors.New("must be a number from 0 to 1")
	}
	*p = probability(x)
	return nil
}

// Threshold is the flag of the score from which on a claim counts as supported: a number, or a name of one. The zero
// value was not set.
type Threshold float64

// String returns the number.
func (t *Threshold) String() string {
	switch *t {
	case 0:
		return ""
	case support.Balanced:
		return "balanced"
	}
	return strconv.FormatFloat(float64(*t), 'g', -1, 64)
}

// Type returns what the help calls the value.
func (t *Threshold) Type() string { return "NUMBER" }

// Set takes balanced, strict, or a number above 0 and at most 1.
func (t *Threshold) Set(word string) error {
	var p probability
	switch {
	case word == "balanced":
		p = support.Balanced
	case word == "strict":
		p = support.Strict
	case p.Set(word) != nil || p == 0:
		return errors.New("must be balanced (0.5), strict (0.7) or a number above 0 and at most 1")
	}
	*t = Threshold(p)
	return nil
}

// Labels reports whether the checker says a label itself, so that a threshold of scores has no effect.
func (c *Checker) Labels() bool { return c.Kind == checkerJudge || c.Kind == checkerMiniCheck }

// ReadChecker returns the description of the checker of that name: of the built-in one, or of one that stands under
// checkers in a file. An empty name is the built-in one's; the file is read for others only.
func ReadChecker(file, name string) (*Checker, error) {
	if name == "" || name == checkerLexical {
		return NewChecker(), nil
	}
	c, all := Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddFlags(all)
	all.AddFlagSet(c.Settings())
	c.File = file
	if err := c.readFile(all); err != nil {
		return nil, err
	}
	if described := c.Checkers[name]; described != nil {
		return described, nil
	}
	known := append([]string{checkerLexical}, slices.Sorted(maps.Keys(c.Checkers))...)
	return nil, usagef(
		"others than "+checkerLexical+" stand under checkers in the file of --config: "+CheckerExample,
		"there is no checker %q, only %s", name, strings.Join(known, ", "),
	)
}

// CheckerExample is how a file describes a checker.
const CheckerExample = "checkers: {careful: {checker: judge, judge-url: 'http://127.0.0.1:11434/v1', " +
	"judge-model: llama3.1}}"

// Build makes the checker. What a score has to be for supported is threshold; 0 is the checker's own.
func (c *Checker) Build(threshold float64, env Env) (support.Checker, error) {
	lexical := &support.Lexical{Threshold: threshold}
	name := c.Kind
	switch name {
	case "", checkerLexical:
		return lexical, nil
	case checkerCascade:
		if c.Low > c.High {
			return nil, usagef("as low: 0.3, high: 0.8", "low %v is above high %v", c.Low, c.High)
		}
		if name = c.Slow; name == "" {
			name = checkerJudge
		}
	}
	remote, err := c.buildRemote(name, threshold, env)
	if err != nil {
		return nil, err
	}
	near := support.Nearest(remote, c.Passages)
	if c.Kind != checkerCascade {
		return near, nil
	}
	budget := support.Budget{Pairs: c.Budget}
	if c.Budget == 0 {
		budget.Pairs = -1
	}
	return support.Cascade(lexical, float64(c.Low), float64(c.High), near, budget), nil
}

// buildRemote makes a checker that asks a service.
func (c *Checker) buildRemote(name string, threshold float64, env Env) (support.Checker, error) {
	retries := c.Retries
	if retries == 0 {
		retries = -1
	}
	if name == checkerGrounding {
		if c.GroundingProject == "" {
			return nil, usagef(
				"the project's number or id in Google Cloud", "grounding needs grounding-project",
			)
		}
		token := env.first([]string{c.GroundingTokenEnv})
		if token == "" {
			return nil, usagef(
				"gcloud auth print-access-token prints one",
				"there is no token in the environment variable %s", c.GroundingTokenEnv,
			)
		}
		return &support.Grounding{
			Project: c.GroundingProject, Threshold: threshold, Timeout: c.Timeout, Retries: retries,
			Token: func(context.Context) (string, error) { return token, nil },
		}, nil
	}
	if c.JudgeURL == "" || c.JudgeModel == "" {
		return nil, usagef(
			"as judge-url: http://127.0.0.1:11434/v1, judge-model: llama3.1",
			"%s needs judge-url and judge-model", name,
		)
	}
	judge := &support.Judge{
		URL: c.JudgeURL, Model: c.JudgeModel, Timeout: c.Timeout, Retries: retries, Cache: &support.MemoryCache{},
	}
	if name == checkerMiniCheck {
		judge.Preset = support.PresetMiniCheck
	}
	var names []string
	if u, err := url.Parse(c.JudgeURL); err == nil {
		if p, ok := call.FindProvider(call.FindHost(u.Host)); ok {
			names = p.KeyEnv
			if p.KeyPrefix == "" {
				judge.Header = p.KeyHeader
			}
		}
	}
	if c.JudgeKeyEnv != "" {
		names = []string{c.JudgeKeyEnv}
	}
	judge.Key = env.first(names)
	if judge.Key == "" {
		judge.Header = ""
		if c.JudgeKeyEnv != "" {
			return nil, usagef(
				"leave out judge-key-env for an address that needs none",
				"there is no key in the environment variable %s", c.JudgeKeyEnv,
			)
		}
	}
	return judge, nil
}

// StrategyChecker makes the checker of a strategy; nil is the built-in one.
func (c *Config) StrategyChecker(s *experiment.Strategy, env Env) (support.Checker, error) {
	described := c.Checkers[s.Checker]
	if described == nil {
		return nil, nil //nolint:nilnil // nil is the built-in one
	}
	made, err := described.Build(s.Threshold, env)
	if usage, ok := errors.AsType[*usageError](err); ok {
		return nil, usagef(usage.hint, "checker %s: %w", s.Checker, usage.err)
	}
	if err != nil {
		return nil, fmt.Errorf("checker %s: %w", s.Checker, err)
	}
	return made, nil
}
