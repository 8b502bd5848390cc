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
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
)

// addTenantFlag adds the flag of which tenant a command is about.
func addTenantFlag(flags *pflag.FlagSet, tenant *string) {
	flags.StringVar(tenant, "tenant", store.DefaultTenant, "the `TENANT` whose answers, runs and incidents these are")
}

// fileEndings are the endings of files that shells offer for a flag; none: all files.
var fileEndings = map[string][]string{
	"address-file": nil,
	"config":       {"yaml", "yml"},
	"db":           {"db", "sqlite"},
	"documents":    {"json"},
	"import":       {"pem", "jwk", "json"},
	"list":         nil,
	"junit":        {"xml"},
	"request":      {"json"},
	"resume":       nil,
	"tls-cert":     {"pem", "crt"},
	"tls-key":      {"pem", "key"},
}

// complete makes shells complete the values of a command's flags.
func complete(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
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
		case f.Name == "scope":
			values = append(store.Scopes(), allScopes)
		case f.Name == "status":
			values = text.Strings(incidentStatuses())
		default:
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, directive)); err != nil {
			panic(err) // the flag is there, and has no other completion
		}
	})
}

// checkerFlags say which checker a command uses.
type checkerFlags struct{ name, file string }

// add adds --checker, and --config where the command has none of its own: then file is that.
func (f *checkerFlags) add(flags *pflag.FlagSet, file *string) {
	flags.StringVar(&f.name, "checker", "",
		"the checker that says what is supported: lexical (default), or the `NAME` of one under checkers in the file "+
			"of --config")
	if file == nil {
		file = &f.file
		server.AddFileFlag(flags, file)
	}
}

// build makes the checker. A threshold of 0 was not asked for.
func (f *checkerFlags) build(file string, threshold float64, w world) (support.Checker, error) {
	described, err := server.ReadChecker(file, f.name)
	if err != nil {
		return nil, err
	}
	checker, err := described.Build(threshold, w.env)
	if err == nil && threshold > 0 && described.Labels() {
		hint(w.err, "--threshold has no effect on a judge, which says a label itself")
	}
	return checker, err
}

// isJudge reports whether a checker was named whose word counts when something is verified: another than the one that
// compares words.
func (f *checkerFlags) isJudge() bool { return f.name != "" && f.name != "lexical" }

// Marks of flags.
const (
	// annotationInstead has the names of flags that say the same: when one of them stands on the command line, the
	// environment variable of this one counts for nothing.
	annotationInstead = "ibid_instead"
	// annotationNoVariable says that no environment variable sets the flag: what it means differs from a flag of the
	// same name of another command, or it says what to do in this one call.
	annotationNoVariable = "ibid_no_variable"
)

func annotate(flags *pflag.FlagSet, name, mark string, value []string) {
	if err := flags.SetAnnotation(name, mark, value); err != nil {
		panic(err) // there is no such flag
	}
}

// alternatives marks flags that say the same in different ways.
func alternatives(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		annotate(flags, name, annotationInstead, others)
	}
}

// withoutVariable marks flags that no environment variable sets.
func withoutVariable(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		annotate(flags, name, annotationNoVariable, []string{})
	}
}

// hasVariable reports whether an environment variable sets a flag.
func hasVariable(f *pflag.Flag) bool {
	_, marked := f.Annotations[annotationNoVariable]
	return !marked && f.Name != "help"
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
	return setFromEnv(c.Flags(), env, func(f *pflag.Flag) string {
		return fmt.Sprintf(
			"it is for all commands with --%s: unset it, or overrule it with %s --%[1]s", f.Name, c.CommandPath(),
		)
	})
}

// setFromEnv sets those of flags that were not set. What to do about a wrong value is what advice says.
func setFromEnv(flags *pflag.FlagSet, env server.Env, advice func(*pflag.Flag) string) error {
	var onLine []string
	flags.Visit(func(f *pflag.Flag) { onLine = append(onLine, f.Name) })
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		said := func(name string) bool { return slices.Contains(onLine, name) }
		if failed != nil || !hasVariable(f) || said(f.Name) ||
			slices.ContainsFunc(f.Annotations[annotationInstead], said) {
			return
		}
		name := envName(f.Name)
		value, ok := env(name)
		if !ok || value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			failed = usagef(advice(f), "environment variable %s=%q: %w", name, value, plain(f, err))
		}
		f.Changed = true
	})
	return failed
}
