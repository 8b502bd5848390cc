package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that takes one of a few words.
type choice struct {
	value string // empty: not chosen
	words []string
	kind  string // what the help calls it
}

// words returns names as a choice has them.
func words[T ~string](names []T) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = string(name)
	}
	return all
}

// String returns what was chosen.
func (c *choice) String() string { return c.value }

// Type returns what the help calls the value.
func (c *choice) Type() string { return c.kind }

// Set chooses a word.
func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("must be one of %s", strings.Join(c.words, ", "))
	}
	c.value = word
	return nil
}

// addChoice gives a command a flag for c, which shells complete.
func addChoice(cmd *cobra.Command, c *choice, name, usage string) {
	cmd.Flags().Var(c, name, usage)
	complete := cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag was added above
	}
}
