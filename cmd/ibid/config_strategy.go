package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibidhq/ibid/experiment"
)

// splitFlag is the value of --experiment: NAME=A,B[,SHARE].
type splitFlag struct {
	name, a, b string
	share      float64
}

// String returns what was said.
func (f *splitFlag) String() string {
	if f.name == "" {
		return ""
	}
	return fmt.Sprintf("%s=%s,%s,%v", f.name, f.a, f.b, f.share)
}

// Type returns what the help calls the value.
func (f *splitFlag) Type() string { return "NAME=A,B[,SHARE]" }

// Set reads an experiment.
func (f *splitFlag) Set(text string) error {
	name, rest, ok := strings.Cut(text, "=")
	sides := strings.Split(rest, ",")
	if !ok || name == "" || len(sides) < 2 || len(sides) > 3 {
		return errors.New("must be NAME=A,B or NAME=A,B,SHARE, such as tone=balanced,strict,0.5")
	}
	share := 0.5
	if len(sides) == 3 {
		var err error
		if share, err = strconv.ParseFloat(sides[2], 64); err != nil || !(share >= 0 && share <= 1) {
			return fmt.Errorf("the share of the second strategy is from 0 to 1, not %q", sides[2])
		}
	}
	*f = splitFlag{name, sides[0], sides[1], share}
	return nil
}

// strategyList returns the strategies that there are: the built-in ones and the file's.
func (c *config) strategyList() []experiment.Strategy {
	return append(experiment.Builtin(), c.strategies...)
}

// chooseStrategy returns which strategy attributes the answers of a run; nil: none does.
func (c *config) chooseStrategy() (func(run string) *experiment.Strategy, error) {
	list := c.strategyList()
	switch {
	case c.split.name != "" && c.attribute != "":
		return nil, &usageError{
			errors.New("--attribute and --experiment contradict each other"),
			"an experiment names both of its strategies",
		}
	case c.split.name != "":
		split := &experiment.Split{Name: c.split.name, Share: c.split.share}
		var err error
		if split.A, err = experiment.Find(list, c.split.a); err == nil {
			split.B, err = experiment.Find(list, c.split.b)
		}
		if err == nil {
			err = split.Check()
		}
		if err != nil {
			return nil, &usageError{fmt.Errorf("experiment: %w", err), strategyHint}
		}
		return split.Choose, nil
	case c.attribute != "":
		s, err := experiment.Find(list, c.attribute)
		if err != nil {
			return nil, &usageError{fmt.Errorf("attribute: %w", err), strategyHint}
		}
		return func(string) *experiment.Strategy { return &s }, nil
	}
	return nil, nil //nolint:nilnil // no strategy is no error
}

// checkStrategies finds strategies whose checker is not there.
func (c *config) checkStrategies() error {
	for i := range c.strategies {
		s := &c.strategies[i]
		if s.Checker != experiment.CheckerLexical && c.checkers[s.Checker] == nil {
			return &usageError{
				fmt.Errorf("strategy %s: there is no checker %q", s.ID(), s.Checker),
				fmt.Sprintf(
					"%s is always there; others stand under checkers in the file of --config",
					experiment.CheckerLexical,
				),
			}
		}
	}
	return nil
}

// chosen returns the strategies that answers are attributed by: none, one, or the two of an experiment.
func (c *config) chosen() []experiment.Strategy {
	var chosen []experiment.Strategy
	for _, name := range []string{c.attribute, c.split.a, c.split.b} {
		if s, err := experiment.Find(c.strategyList(), name); err == nil {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// strategyWords says which strategies there will be; empty: none.
func (c *config) strategyWords() string {
	switch chosen := c.chosen(); len(chosen) {
	case 1:
		return chosen[0].ID()
	case 2:
		return fmt.Sprintf("%s: %s and %s, %v of the runs", c.split.name, chosen[0].ID(), chosen[1].ID(), c.split.share)
	}
	return ""
}

const strategyHint = "a strategy of your own stands under strategies in the file of --config"

// readStrategies reads the member strategies.
func (f *configFile) readStrategies(c *config, node ast.Node) {
	for _, e := range f.mapping(node) {
		s := experiment.Strategy{
			Name:      e.key,
			Version:   1,
			PostHoc:   true,
			Threshold: 0.5,
			Scorer:    experiment.ScorerBM25,
			Checker:   experiment.CheckerLexical,
		}
		for _, m := range f.mapping(e.value) {
			f.strategy(&s, m)
		}
		if f.err != nil {
			return
		}
		if err := s.Check(); err != nil {
			_ = f.fail(e.at, err.Error(), "") // it is kept in f
			return
		}
		if known, err := experiment.Find(c.strategyList(), s.ID()); err == nil && known != s {
			_ = f.fail(
				e.at,
				fmt.Sprintf("%s is there already, and is another one", s.ID()),
				"give it another version or name",
			)
			return
		}
		c.strategies = append(c.strategies, s)
	}
}

func (f *configFile) strategy(s *experiment.Strategy, e entry) {
	switch e.key {
	case "version":
		s.Version = f.integer(e)
	case "post_hoc":
		s.PostHoc = f.scalar(e.value, true) == "true"
	case "threshold":
		s.Threshold = f.number(e)
	case "per_sentence":
		s.PerSentence = f.integer(e)
	case "scorer":
		s.Scorer = f.text(e)
	case "checker":
		s.Checker = f.text(e)
	default:
		f.unknown(e, []string{"version", "post_hoc", "threshold", "per_sentence", "scorer", "checker"})
	}
}

func (f *configFile) integer(e entry) int {
	n, ok := e.value.(*ast.IntegerNode)
	if ok {
		if i, err := strconv.Atoi(n.GetToken().Value); err == nil {
			return i
		}
	}
	f.bad(e, "must be a whole number")
	return 0
}

func (f *configFile) number(e entry) float64 {
	switch e.value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if x, err := strconv.ParseFloat(e.value.GetToken().Value, 64); err == nil {
			return x
		}
	}
	f.bad(e, "must be a number")
	return 0
}
