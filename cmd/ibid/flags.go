package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/support"
)

// addChoice gives a command a flag of a few words.
func addChoice(cmd *cobra.Command, choice *server.Choice, name, usage string) {
	cmd.Flags().Var(choice, name, usage)
	complete(cmd)
}

// addStoreFlags gives a command the flags of where the answers are.
func addStoreFlags(cmd *cobra.Command, c *server.Config) {
	c.AddStoreFlags(cmd.Flags())
	complete(cmd)
}

// fileEndings are the endings of files that shells offer for a flag; none: all files.
var fileEndings = map[string][]string{
	"address-file": nil,
	"config":       {"yaml", "yml"},
	"db":           {"db", "sqlite"},
	"documents":    {"json"},
	"import":       {"pem", "jwk", "json"},
	"junit":        {"xml"},
	"request":      {"json"},
	"tls-cert":     {"pem", "crt"},
	"tls-key":      {"pem", "key"},
}

// complete makes shells complete the values of a command's flags.
func complete(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done {
			return
		}
		var values []cobra.Completion
		directive := cobra.ShellCompDirectiveNoFileComp
		endings, isFile := fileEndings[f.Name]
		choice, isChoice := f.Value.(*server.Choice)
		switch {
		case isChoice:
			values = choice.Words()
		case isFile && len(endings) == 0:
			directive = cobra.ShellCompDirectiveDefault
		case isFile:
			values, directive = endings, cobra.ShellCompDirectiveFilterFileExt
		case f.Name == "data" || f.Name == "save":
			directive = cobra.ShellCompDirectiveFilterDirs
		case f.Name == "upstream":
			for _, p := range call.Providers() {
				values = append(values, p.Name+"="+p.URL)
			}
			directive |= cobra.ShellCompDirectiveNoSpace
		default:
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, directive)); err != nil {
			panic(err) // the flag is there, and has no other completion
		}
	})
}

// buildChecker makes the checker that flags describe, and says which of them have no effect. A threshold of 0 was not
// asked for.
func buildChecker(c *server.Checker, threshold float64, w world) (support.Checker, error) {
	checker, err := c.Build(threshold, w.env)
	if err == nil {
		for _, unused := range c.Unused(threshold > 0) {
			hint(w.err, unused)
		}
	}
	return checker, err
}

// judgeOf returns a checker whose word counts when something is verified; nil: it is the one that compares words.
func judgeOf(c *server.Checker, checker support.Checker) support.Checker {
	if c.Kind == "" || c.Kind == "lexical" {
		return nil
	}
	return checker
}

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

// plain returns an error of a flag's Set without the names of Go's functions. Flags of our own types say themselves
// what they want.
func plain(f *pflag.Flag, err error) error {
	kind := f.Value.Type()
	switch number, ok := errors.AsType[*strconv.NumError](err); {
	case kind == "duration":
		return errors.New("must be a time as 30s, 5m or 1h30m")
	case !ok:
		return err
	case errors.Is(number.Err, strconv.ErrRange):
		return errors.New("the number is out of range")
	case kind == "bool":
		return errors.New("must be true or false")
	case strings.HasPrefix(kind, "float"):
		return errors.New("must be a number")
	default:
		return errors.New("must be a whole number")
	}
}

// readEnv sets the flags that the command line left alone. An empty variable is no variable.
func readEnv(c *cobra.Command, env server.Env) error {
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
				fmt.Errorf("environment variable %s=%q: %w", name, value, plain(f, err)),
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
