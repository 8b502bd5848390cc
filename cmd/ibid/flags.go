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

// addTenantFlag adds --tenant.
func addTenantFlag(flags *pflag.FlagSet, tenant *string) {
	flags.StringVar(tenant, "tenant", store.DefaultTenant, "the `TENANT` of the answers, runs and incidents")
}

// fileEndings are the file extensions that shells complete for a flag; nil means all files.
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

// complete sets up shell completion of the values of a command's flags.
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
			panic(err) // the flag exists and has no other completion
		}
	})
}

// judgeFlags select a command's judge.
type judgeFlags struct{ name, file string }

// add adds --judge, and --config unless the command has it, in which case file is its value.
func (f *judgeFlags) add(flags *pflag.FlagSet, file *string) {
	server.AddJudgeFlag(flags, &f.name)
	if file == nil {
		file = &f.file
		server.AddFileFlag(flags, file)
	}
}

// build builds the checker of a command that reads its judge's settings from a file, nil without a judge. When the
// command ends, it must call done, which reports what the judge was asked.
func (f *judgeFlags) build(file string, w world) (checker support.Checker, done func(), err error) {
	if f.name == "" {
		return nil, func() {}, nil
	}
	described, err := server.ReadChecker(file, f.name)
	if err != nil {
		return nil, nil, err
	}
	bar := &claimBar{world: w}
	checker, meter, err := described.Build(w.env, &server.JudgeOptions{
		Cache: openVerdicts(server.CacheDir(w.env)), Progress: bar.show,
	})
	if err != nil {
		return nil, nil, err
	}
	return checker, func() {
		bar.end()
		if spent := meter.Spent(); spent.Claims+spent.Cached > 0 {
			say(w.err, "%s: %s", checker.Info().By(), spentWords(&spent))
		}
	}, nil
}

// spentWords says what a judge was asked.
func spentWords(s *support.Spent) string {
	words := fmt.Sprintf("%s in %s", plural(s.Claims, "claim"), plural(s.Requests, "request"))
	if s.TokensIn+s.TokensOut > 0 {
		words += fmt.Sprintf(", %d tokens sent and %d received", s.TokensIn, s.TokensOut)
	}
	if s.Cost != nil {
		words += fmt.Sprintf(", cost %.6f", *s.Cost)
	}
	if s.Cached > 0 {
		words += fmt.Sprintf("; %d known", s.Cached)
	}
	return words
}

// claimBar shows on a terminal how many of the claims a judge has answered.
type claimBar struct {
	world

	bar   *progress
	total int
}

// show is called by one judge at a time.
func (b *claimBar) show(done, total int) {
	if b.bar == nil || total != b.total {
		b.end()
		b.bar, b.total = countProgress(total, "claims", b.world), total
	}
	if b.bar.set(done); done == total {
		b.end()
	}
}

func (b *claimBar) end() {
	b.bar.end()
	b.bar = nil
}

// Annotations of flags.
const (
	// annotationInstead lists alternatives of a flag: if one of them is on the command line, the flag's environment
	// variable is ignored.
	annotationInstead = "ibid_instead"
	// annotationNoVariable marks a flag without an environment variable: a flag of the same name has another meaning in
	// another command, or the flag only makes sense for a single call.
	annotationNoVariable = "ibid_no_variable"
)

func annotate(flags *pflag.FlagSet, name, mark string, value []string) {
	if err := flags.SetAnnotation(name, mark, value); err != nil {
		panic(err) // there is no such flag
	}
}

// alternatives marks flags as alternatives of each other.
func alternatives(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		others := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
		annotate(flags, name, annotationInstead, others)
	}
}

// withoutVariable marks flags that have no environment variable.
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

// plain returns an error of a flag's Set without the names of Go functions. Our own flag types have readable errors.
func plain(f *pflag.Flag, err error) error {
	kind := f.Value.Type()
	switch number, ok := errors.AsType[*strconv.NumError](err); {
	case kind == "duration":
		return errors.New("must be a duration such as 30s, 5m or 1h30m")
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

// readEnv sets the flags that are not on the command line. An empty variable counts as unset.
func readEnv(c *cobra.Command, env server.Env) error {
	return setFromEnv(c.Flags(), env, func(f *pflag.Flag) string {
		return fmt.Sprintf(
			"it applies to all commands with --%s: unset it, or override it with %s --%[1]s", f.Name, c.CommandPath(),
		)
	})
}

// setFromEnv sets flags that are not on the command line. advice returns the hint for a wrong value.
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
