package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/support"
)

// checkerSetting is a checker as the file describes it: by the flags of ibid check.
type checkerSetting struct {
	flags checkerFlags
	cmd   *cobra.Command // holds them
}

// readCheckers reads the member checkers.
func (f *configFile) readCheckers(c *config, node ast.Node) {
	for _, e := range f.mapping(node) {
		if e.key == experiment.CheckerLexical {
			_ = f.fail(e.at, e.key+" is the built-in one", "give it another name") // it is kept in f
			return
		}
		s := &checkerSetting{flags: newCheckerFlags(), cmd: &cobra.Command{}}
		s.flags.add(s.cmd)
		var names []string
		s.cmd.Flags().VisitAll(func(one *pflag.Flag) { names = append(names, one.Name) })
		for _, m := range f.mapping(e.value) {
			if !slices.Contains(names, m.key) {
				f.unknown(m, names)
				return
			}
			f.flag(s.cmd.Flags(), m)
		}
		c.checkers[e.key] = s
	}
}

// checker makes the checker of a strategy; nil: the built-in one.
func (c *config) checker(s *experiment.Strategy, w world) (support.Checker, error) {
	setting := c.checkers[s.Checker]
	if setting == nil {
		return nil, nil //nolint:nilnil // nil is the built-in one
	}
	made, err := setting.flags.build(setting.cmd, s.Threshold, w)
	if err != nil {
		if usage, ok := errors.AsType[*usageError](err); ok {
			return nil, &usageError{fmt.Errorf("checker %s: %w", s.Checker, usage.err), usage.hint}
		}
		return nil, fmt.Errorf("checker %s: %w", s.Checker, err)
	}
	return made, nil
}
