package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// annotationInstead marks a flag with the names of those that say the same: when one of them stands on the command
// line, the environment variable of this one counts for nothing.
const annotationInstead = "ibid_instead"

// alternatives marks flags that say the same in different ways.
func alternatives(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		f := flags.Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[annotationInstead] = others
	}
}

// envName returns the environment variable of a flag.
func envName(flag string) string {
	return "IBID_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readEnv sets the flags that the command line left alone. An empty variable is no variable.
func readEnv(c *cobra.Command, env func(string) (string, bool)) error {
	var onLine []string
	c.Flags().Visit(func(f *pflag.Flag) { onLine = append(onLine, f.Name) })
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		said := func(name string) bool { return slices.Contains(onLine, name) }
		if failed != nil || f.Name == "help" || said(f.Name) ||
			slices.ContainsFunc(f.Annotations[annotationInstead], said) {
			return
		}
		name := envName(f.Name)
		value, ok := env(name)
		if !ok || value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = &usageError{
				fmt.Errorf("environment variable %s=%q: %w", name, value, err),
				fmt.Sprintf(
					"it is for all commands with --%s: unset it, or overrule it with %s --%[1]s", f.Name,
					c.CommandPath(),
				),
			}
		}
		f.Changed = true
	})
	return failed
}
