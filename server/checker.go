package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/support"
)

// Checker describes a judge: an element of checkers in the file, or what a flag says. Start from [newChecker].
type Checker struct {
	Judge  string `yaml:"judge"`   // PROVIDER:MODEL or URL#MODEL, see [parseJudge]
	KeyEnv string `yaml:"key-env"` // empty means the usual variable of the provider

	GroundingProject  string `yaml:"grounding-project"`   // Google Cloud's check grounding API, instead of a model
	GroundingTokenEnv string `yaml:"grounding-token-env"` // the variable with an OAuth access token for it

	Passages  int     `yaml:"passages"`   // how many passages nearest to the claim are shown; 0 means all
	Claims    int     `yaml:"claims"`     // in one request
	PerHour   int     `yaml:"per-hour"`   // requests in any hour; 0 means no limit
	PerAnswer int     `yaml:"per-answer"` // requests for the claims of one answer; 0 means no limit
	PriceIn   float64 `yaml:"price-in"`   // of a million tokens sent
	PriceOut  float64 `yaml:"price-out"`  // of a million tokens received
	Timeout   timeout `yaml:"timeout"`    // of one request
	Retries   int     `yaml:"retries"`    // of a request if the judge is busy
}

// newChecker returns the default settings.
func newChecker() *Checker {
	return &Checker{ //nolint:gosec // the name of a variable is no secret
		GroundingTokenEnv: "GOOGLE_OAUTH_ACCESS_TOKEN",
		Passages:          8,
		Claims:            support.JudgeBatch,
		Timeout:           timeout(support.RemoteTimeout),
		Retries:           support.RemoteRetries,
	}
}

// ReadChecker returns the description of a judge that a flag names: PROVIDER:MODEL, URL#MODEL, or the name of one under
// checkers in the file, which is only read for these.
func ReadChecker(file, name string) (*Checker, error) {
	described := newChecker()
	if strings.Contains(name, ":") {
		described.Judge = name
		return described, nil
	}
	c, all := Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddFlags(all)
	all.AddFlagSet(c.Settings())
	c.File = file
	if err := c.readFile(all); err != nil {
		return nil, err
	}
	return c.findChecker(name)
}

// findChecker returns the description of a judge as [ReadChecker] does, from the settings read.
func (c *Config) findChecker(name string) (*Checker, error) {
	if described := c.Checkers[name]; described != nil {
		return described, nil
	}
	if strings.Contains(name, ":") {
		described := newChecker()
		described.Judge = name
		return described, nil
	}
	known := "there are none"
	if len(c.Checkers) > 0 {
		known = "there are " + strings.Join(slices.Sorted(maps.Keys(c.Checkers)), ", ")
	}
	return nil, Usagef(
		"use --judge openai:MODEL, ollama:MODEL or http://HOST/v1#MODEL, or define it under checkers in the file of "+
			"--config",
		"there is no judge %q: %s", name, known,
	)
}

// buildJudge builds the judge of captured citations.
func (c *Config) buildJudge(env Env, cache support.Cache) (support.Checker, *support.Meter, error) {
	described, err := c.findChecker(c.Judge)
	if err != nil {
		return nil, nil, err
	}
	checker, meter, err := described.Build(env, &JudgeOptions{Cache: cache})
	if usage, ok := errors.AsType[*usageError](err); ok {
		return nil, nil, Usagef(usage.hint, "judge %s: %w", c.Judge, usage.err)
	}
	return checker, meter, err
}

// openAIPaths are where providers serve OpenAI's chat completions API.
var openAIPaths = map[string]string{
	"openai": "/v1", "openrouter": "/api/v1", "mistral": "/v1", "xai": "/v1", "gemini": "/v1beta/openai",
}

// ollama is the prefix of models of a local Ollama.
const ollama = "ollama"

// parseJudge reads PROVIDER:MODEL, such as ollama:bespoke-minicheck or openai:gpt-5-mini, or URL#MODEL, such as
// http://127.0.0.1:8000/v1#MODEL. The variable OLLAMA_HOST names another Ollama than the local one.
func parseJudge(judge string, env Env) (base, model string, err error) {
	if strings.HasPrefix(judge, "http://") || strings.HasPrefix(judge, "https://") {
		base, model, _ = strings.Cut(judge, "#")
	} else {
		var name string
		name, model, _ = strings.Cut(judge, ":")
		provider, known := call.FindProvider(name)
		path, serves := openAIPaths[name]
		switch {
		case name == ollama:
			base = cmp.Or(env.first("OLLAMA_HOST"), "http://127.0.0.1:11434")
			if !strings.Contains(base, "://") {
				base = "http://" + base
			}
			base = strings.TrimSuffix(base, "/") + "/v1"
		case known && serves:
			base = provider.URL + path
		default:
			names := append(slices.Sorted(maps.Keys(openAIPaths)), ollama)
			return "", "", Usagef(
				"another server is named by its URL: http://127.0.0.1:8000/v1#MODEL",
				"judge %s: the provider is none of %s", judge, strings.Join(names, ", "),
			)
		}
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || model == "" {
		return "", "", Usagef(
			"for example ollama:bespoke-minicheck, openai:gpt-5-mini or http://127.0.0.1:8000/v1#MODEL",
			"judge %s: it is neither PROVIDER:MODEL nor URL#MODEL", judge,
		)
	}
	return base, model, nil
}

// JudgeOptions are what a program adds to the description of a judge.
type JudgeOptions struct {
	Cache    support.Cache         // nil means one in memory
	Progress func(done, total int) // see support.Judge; may be nil
}

// Build builds the judge, and its meter.
func (c *Checker) Build(env Env, o *JudgeOptions) (support.Checker, *support.Meter, error) {
	if o == nil {
		o = &JudgeOptions{}
	}
	meter := &support.Meter{
		PerHour: c.PerHour, PerAnswer: c.PerAnswer, PriceIn: c.PriceIn, PriceOut: c.PriceOut,
	}
	retries := c.Retries
	if retries == 0 {
		retries = -1
	}
	if c.GroundingProject != "" {
		token := env.first(c.GroundingTokenEnv)
		if token == "" {
			return nil, nil, Usagef(
				"gcloud auth print-access-token prints one",
				"the environment variable %s has no token", c.GroundingTokenEnv,
			)
		}
		grounding := &support.Grounding{
			Project: c.GroundingProject, Timeout: time.Duration(c.Timeout), Retries: retries, Meter: meter,
			Token: func(context.Context) (string, error) { return token, nil },
		}
		return support.WithJudge(support.Nearest(grounding, c.Passages)), meter, nil
	}
	if c.Judge == "" {
		return nil, nil, Usagef(
			"for example judge: 'ollama:bespoke-minicheck'", "a checker needs judge or grounding-project",
		)
	}
	base, model, err := parseJudge(c.Judge, env)
	if err != nil {
		return nil, nil, err
	}
	judge := &support.Judge{
		URL: base, Model: model, Timeout: time.Duration(c.Timeout), Retries: retries, Batch: c.Claims, Meter: meter,
		Cache: o.Cache, Progress: o.Progress,
	}
	if judge.Cache == nil {
		judge.Cache = &support.MemoryCache{}
	}
	if strings.Contains(strings.ToLower(model), string(support.PresetMiniCheck)) {
		judge.Preset = support.PresetMiniCheck
	}
	if err := c.setKey(judge, env); err != nil {
		return nil, nil, err
	}
	return support.WithJudge(support.Nearest(judge, c.Passages)), meter, nil
}

// setKey sets the judge's key, from the variable that the description names or the usual one of its provider.
func (c *Checker) setKey(judge *support.Judge, env Env) error {
	var names []string
	if u, err := url.Parse(judge.URL); err == nil {
		if p, ok := call.FindProvider(call.FindHost(u.Host)); ok {
			names = p.KeyEnv
			if p.KeyPrefix == "" && openAIPaths[p.Name] == "" { // these take bearer tokens there
				judge.Header = p.KeyHeader
			}
		}
	}
	if c.KeyEnv != "" {
		names = []string{c.KeyEnv}
	}
	if judge.Key = env.first(names...); judge.Key != "" {
		return nil
	}
	judge.Header = ""
	if len(names) > 0 {
		return Usagef(
			"set it to a key of "+judge.URL, "the environment variable %s has no key", strings.Join(names, " or "),
		)
	}
	return nil
}

// StrategyChecker builds the checker of a strategy; nil means the built-in one.
func (c *Config) StrategyChecker(s *experiment.Strategy, env Env) (support.Checker, error) {
	described := c.Checkers[s.Checker]
	if described == nil {
		return nil, nil //nolint:nilnil // the built-in one
	}
	made, _, err := described.Build(env, nil)
	if usage, ok := errors.AsType[*usageError](err); ok {
		return nil, Usagef(usage.hint, "checker %s: %w", s.Checker, usage.err)
	}
	if err != nil {
		return nil, fmt.Errorf("checker %s: %w", s.Checker, err)
	}
	return made, nil
}

// CacheDir returns the user's directory for what ibid can do again, or "" if there is none.
func CacheDir(env Env) string {
	dir := env.first("XDG_CACHE_HOME")
	if !filepath.IsAbs(dir) {
		if dir = env.first("HOME"); dir == "" {
			return ""
		}
		dir = filepath.Join(dir, ".cache")
	}
	return filepath.Join(dir, "ibid")
}
