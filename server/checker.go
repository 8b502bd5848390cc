package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
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

// Checker describes a checker, which decides whether passages support a claim: an element of checkers in the file.
// Start from [newChecker].
type Checker struct {
	Kind checkerKind `yaml:"checker"` // empty means lexical
	// the checker that a cascade asks about claims that are not verbatim; empty means a judge
	Slow slowChecker `yaml:"slow"`

	JudgeURL    string `yaml:"judge-url"` // /chat/completions is appended to it, as in http://127.0.0.1:11434/v1
	JudgeModel  string `yaml:"judge-model"`
	JudgeKeyEnv string `yaml:"judge-key-env"` // empty means the usual variable of the provider at JudgeURL

	GroundingProject  string `yaml:"grounding-project"`   // of Google Cloud's check grounding API
	GroundingTokenEnv string `yaml:"grounding-token-env"` // the variable with an OAuth access token for it

	Passages int     `yaml:"passages"` // how many passages nearest to the claim a remote checker gets; 0 means all
	Budget   int     `yaml:"budget"`   // how many claims a cascade passes to its slow checker at a time
	Timeout  timeout `yaml:"timeout"`  // of one request
	Retries  int     `yaml:"retries"`  // of a request if the checker is busy
}

// newChecker returns the description of the built-in checker, with default settings for the others.
func newChecker() *Checker {
	return &Checker{ //nolint:gosec // the name of a variable is no secret
		GroundingTokenEnv: "GOOGLE_OAUTH_ACCESS_TOKEN",
		Passages:          8,
		Budget:            support.CascadePairs,
		Timeout:           timeout(support.RemoteTimeout),
		Retries:           support.RemoteRetries,
	}
}

// checkerKind is a kind of checker; slowChecker is one that a cascade may ask.
type checkerKind string

type slowChecker string

// UnmarshalYAML reads a kind.
func (k *checkerKind) UnmarshalYAML(node ast.Node) error {
	return setWord(node, k, []checkerKind{
		checkerLexical, checkerJudge, checkerMiniCheck, checkerGrounding, checkerCascade,
	})
}

// UnmarshalYAML reads a kind.
func (k *slowChecker) UnmarshalYAML(node ast.Node) error {
	return setWord(node, k, []slowChecker{checkerJudge, checkerMiniCheck, checkerGrounding})
}

// Threshold is the flag of the closeness from which on a passage is cited: a number, or a name for one. The zero value
// means unset.
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

// Type returns the name of the value in help texts.
func (t *Threshold) Type() string { return "NUMBER" }

// Set accepts balanced, strict, or a number above 0 and at most 1.
func (t *Threshold) Set(word string) error {
	switch word {
	case "balanced":
		*t = support.Balanced
	case "strict":
		*t = support.Strict
	default:
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x > 0 && x <= 1) { // also refuses NaN
			return errors.New("must be balanced (0.35), strict (0.5) or a number above 0 and at most 1")
		}
		*t = Threshold(x)
	}
	return nil
}

// ReadChecker returns the description of the named checker: the built-in one, also for an empty name, or one under
// checkers in a file, which is only read for these.
func ReadChecker(file, name string) (*Checker, error) {
	if name == "" || name == checkerLexical {
		return newChecker(), nil
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
	return nil, Usagef(
		"define others than "+checkerLexical+" under checkers in the file of --config: "+checkerExample,
		"there is no checker %q, only %s", name, strings.Join(known, ", "),
	)
}

// checkerExample is a checker in a file.
const checkerExample = "checkers: {careful: {checker: judge, judge-url: 'http://127.0.0.1:11434/v1', " +
	"judge-model: llama3.1}}"

// Build builds the checker.
func (c *Checker) Build(env Env) (support.Checker, error) {
	lexical := &support.Lexical{}
	name := string(c.Kind)
	switch name {
	case "", checkerLexical:
		return lexical, nil
	case checkerCascade:
		name = cmp.Or(string(c.Slow), checkerJudge)
	}
	remote, err := c.buildRemote(name, env)
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
	return support.Cascade(lexical, near, budget), nil
}

// buildRemote builds a checker that calls a service.
func (c *Checker) buildRemote(name string, env Env) (support.Checker, error) {
	retries := c.Retries
	if retries == 0 {
		retries = -1
	}
	if name == checkerGrounding {
		if c.GroundingProject == "" {
			return nil, Usagef(
				"the project's number or id in Google Cloud", "grounding needs grounding-project",
			)
		}
		token := env.first(c.GroundingTokenEnv)
		if token == "" {
			return nil, Usagef(
				"gcloud auth print-access-token prints one",
				"the environment variable %s has no token", c.GroundingTokenEnv,
			)
		}
		return &support.Grounding{
			Project: c.GroundingProject, Timeout: time.Duration(c.Timeout), Retries: retries,
			Token: func(context.Context) (string, error) { return token, nil },
		}, nil
	}
	if c.JudgeURL == "" || c.JudgeModel == "" {
		return nil, Usagef(
			"for example judge-url: http://127.0.0.1:11434/v1, judge-model: llama3.1",
			"%s needs judge-url and judge-model", name,
		)
	}
	judge := &support.Judge{
		URL: c.JudgeURL, Model: c.JudgeModel, Timeout: time.Duration(c.Timeout), Retries: retries,
		Cache: &support.MemoryCache{},
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
	judge.Key = env.first(names...)
	if judge.Key == "" {
		judge.Header = ""
		if c.JudgeKeyEnv != "" {
			return nil, Usagef(
				"leave out judge-key-env if the address needs no key",
				"the environment variable %s has no key", c.JudgeKeyEnv,
			)
		}
	}
	return judge, nil
}

// StrategyChecker builds the checker of a strategy; nil means the built-in one.
func (c *Config) StrategyChecker(s *experiment.Strategy, env Env) (support.Checker, error) {
	described := c.Checkers[s.Checker]
	if described == nil {
		return nil, nil //nolint:nilnil // the built-in one
	}
	made, err := described.Build(env)
	if usage, ok := errors.AsType[*usageError](err); ok {
		return nil, Usagef(usage.hint, "checker %s: %w", s.Checker, usage.err)
	}
	if err != nil {
		return nil, fmt.Errorf("checker %s: %w", s.Checker, err)
	}
	return made, nil
}
