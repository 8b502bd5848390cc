package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/support"
)

// The values of --checker.
const (
	checkerLexical   = "lexical"
	checkerJudge     = "judge"
	checkerMiniCheck = "minicheck"
	checkerGrounding = "grounding"
	checkerCascade   = "cascade"
)

// Where a cascade believes the lexical checker, unless it is told: below the one and from the other on.
const (
	cascadeLow  = 0.3
	cascadeHigh = 0.8
)

// checkerFlags are the flags that choose a checker.
type checkerFlags struct {
	checker, slow             choice
	url, model, keyEnv        string
	project, tokenEnv         string
	low, high                 probability
	passages, budget, retries int
	timeout                   time.Duration
}

func newCheckerFlags() checkerFlags {
	return checkerFlags{
		low:  cascadeLow,
		high: cascadeHigh,
		checker: choice{
			kind:  "CHECKER",
			words: []string{checkerLexical, checkerJudge, checkerMiniCheck, checkerGrounding, checkerCascade},
		},
		slow: choice{
			kind:  "CHECKER",
			words: []string{checkerJudge, checkerMiniCheck, checkerGrounding},
		},
	}
}

func (f *checkerFlags) add(c *cobra.Command) {
	flags := c.Flags()
	addChoice(c, &f.checker, "checker", "`CHECKER` is lexical (default), judge, minicheck, grounding or cascade")
	addChoice(
		c, &f.slow, "slow",
		"the `CHECKER` that a cascade asks where lexical is not sure: judge (default), minicheck or grounding",
	)
	flags.StringVar(
		&f.url, "judge-url", "",
		"the `URL` of the model's API that /chat/completions is appended to, as http://127.0.0.1:11434/v1",
	)
	flags.StringVar(&f.model, "judge-model", "", "the `NAME` of the model")
	flags.StringVar(
		&f.keyEnv, "judge-key-env", "",
		"the environment `VARIABLE` with the API's key; without one, that of a known provider's own tools",
	)
	flags.StringVar(&f.project, "grounding-project", "", "the Google Cloud `PROJECT` of the check grounding API")
	flags.StringVar(
		&f.tokenEnv, "grounding-token-env", "GOOGLE_OAUTH_ACCESS_TOKEN",
		"the environment `VARIABLE` with an OAuth access token for it",
	)
	flags.Var(&f.low, "low", "a cascade believes lexical below this `SCORE`")
	flags.Var(&f.high, "high", "and from this `SCORE` on")
	flags.IntVar(
		&f.passages, "passages", 8,
		"the `NUMBER` of passages nearest to the claim that a checker other than lexical is shown; 0: all",
	)
	flags.IntVar(
		&f.budget, "budget", support.CascadePairs,
		"the `NUMBER` of claims that a cascade asks its slow checker about at a time",
	)
	flags.DurationVar(
		&f.timeout, "timeout", support.RemoteTimeout, "how long one request to a checker may take, as a `TIME`",
	)
	flags.IntVar(
		&f.retries, "retries", support.RemoteRetries, "the `NUMBER` of times that a busy checker is asked again",
	)
}

// probability is the value of a flag that is a number from 0 to 1.
type probability float64

// String returns the number.
func (p *probability) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Type returns what the help calls the value.
func (p *probability) Type() string { return "SCORE" }

// Set reads a number.
func (p *probability) Set(word string) error {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil || !(x >= 0 && x <= 1) { // also if it is NaN
		return errors.New("must be a number from 0 to 1")
	}
	*p = probability(x)
	return nil
}

// threshold is the value of a flag that is a probability with names for two of them.
type threshold struct{ word string }

// String returns what was chosen; empty: nothing was.
func (t *threshold) String() string { return t.word }

// Type returns what the help calls the value.
func (t *threshold) Type() string { return "NUMBER" }

// Set chooses a probability.
func (t *threshold) Set(word string) error {
	if (&threshold{word}).least() == 0 {
		return errors.New("must be balanced (0.5), strict (0.7) or a number above 0 and at most 1")
	}
	t.word = word
	return nil
}

// least returns the probability; 0: none was chosen.
func (t *threshold) least() float64 {
	switch t.word {
	case "balanced":
		return support.Balanced
	case "strict":
		return support.Strict
	}
	var p probability
	if p.Set(t.word) != nil {
		return 0
	}
	return float64(p)
}

// build makes the checker.
func (f *checkerFlags) build(c *cobra.Command, threshold float64, w world) (support.Checker, error) {
	name := f.checker.value
	lexical := &support.Lexical{Threshold: threshold}
	if f.slow.value != "" && name != checkerCascade {
		hint(w.err, "--slow has no effect without --checker cascade")
	}
	switch name {
	case "", checkerLexical:
		return lexical, nil
	case checkerCascade:
		if f.low > f.high {
			return nil, &usageError{fmt.Errorf("--low %v is above --high %v", f.low, f.high), "as --low 0.3 --high 0.8"}
		}
		name = f.slow.value
		if name == "" {
			name = checkerJudge
		}
	}
	checker, err := f.buildOne(name, threshold, w)
	if err != nil {
		return nil, err
	}
	if c.Flags().Changed("threshold") && (name == checkerJudge || name == checkerMiniCheck) &&
		f.checker.value != checkerCascade {
		hint(w.err, "--threshold has no effect on a judge, which says a label itself")
	}
	near := support.Nearest(checker, f.passages)
	if f.checker.value != checkerCascade {
		return near, nil
	}
	budget := support.Budget{Pairs: f.budget}
	if f.budget == 0 {
		budget.Pairs = -1
	}
	return support.Cascade(lexical, float64(f.low), float64(f.high), near, budget), nil
}

// buildOne makes a checker that is neither lexical nor a cascade.
func (f *checkerFlags) buildOne(name string, threshold float64, w world) (support.Checker, error) {
	retries := f.retries
	if retries == 0 {
		retries = -1
	}
	if name == checkerGrounding {
		if f.project == "" {
			return nil, &usageError{
				errors.New("grounding needs --grounding-project"), "the project's number or id in Google Cloud",
			}
		}
		token, _ := w.env(f.tokenEnv)
		if token == "" {
			return nil, &usageError{
				fmt.Errorf("there is no token in the environment variable %s", f.tokenEnv),
				"gcloud auth print-access-token prints one",
			}
		}
		return &support.Grounding{
			Project: f.project, Threshold: threshold, Timeout: f.timeout, Retries: retries,
			Token: func(context.Context) (string, error) { return token, nil },
		}, nil
	}
	if f.url == "" || f.model == "" {
		return nil, &usageError{
			fmt.Errorf("%s needs --judge-url and --judge-model", name),
			"as --judge-url http://127.0.0.1:11434/v1 --judge-model llama3.1",
		}
	}
	key, header, err := f.key(w)
	if err != nil {
		return nil, err
	}
	judge := &support.Judge{
		URL:     f.url,
		Model:   f.model,
		Key:     key,
		Header:  header,
		Timeout: f.timeout,
		Retries: retries,
		Cache:   &support.MemoryCache{},
	}
	if name == checkerMiniCheck {
		judge.Preset = support.PresetMiniCheck
	}
	return judge, nil
}

// key returns the judge's key and the header for it, if that is another one than usual.
func (f *checkerFlags) key(w world) (key, header string, err error) {
	var names []string
	if u, err := url.Parse(f.url); err == nil {
		if p, ok := call.FindProvider(call.FindHost(u.Host)); ok {
			names = p.KeyEnv
			if p.KeyPrefix == "" {
				header = p.KeyHeader
			}
		}
	}
	if f.keyEnv != "" {
		names = []string{f.keyEnv}
	}
	for _, name := range names {
		if key, _ := w.env(name); key != "" {
			return key, header, nil
		}
	}
	if f.keyEnv != "" {
		return "", "", &usageError{
			fmt.Errorf("there is no key in the environment variable %s", f.keyEnv),
			"leave out --judge-key-env for an address that needs none",
		}
	}
	return "", "", nil
}
