package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
)

// main leaves signals to the system: there is nothing to clean up, so Ctrl-C stops at once, and a reader that has seen
// enough (| head) ends the program without a word.
func main() {
	os.Exit(run(context.Background(), os.Args[1:], world{os.Stdin, os.Stdout, os.Stderr, os.LookupEnv}))
}

// world is what the program has to do with.
type world struct {
	in  io.Reader
	out io.Writer
	err io.Writer
	env server.Env
}

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, w world) int {
	w.out, w.err = forTerminal(w.out), forTerminal(w.err)
	root := newRoot(w)                        //nolint:contextcheck // what outlives the context of serve says so
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	v := explain(err)
	if !v.quiet {
		say(w.err, "%v", err)
		hint(w.err, v.hint)
	}
	return v.exit
}

// newRoot returns the command ibid with all that is below it.
func newRoot(w world) *cobra.Command {
	root := &cobra.Command{
		Use:   "ibid",
		Short: "The citation layer for LLM applications",
		Long: `ibid shows what LLM providers answered with its citations in the right places.

Every flag can be set by an environment variable, too: --no-list by
IBID_NO_LIST=true. The flag wins.

Exit codes: 0 yes or done, 1 no, 2 could not find out.`,
		Args: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(root, args[0])
			}
			return nil
		},
		RunE:                       func(root *cobra.Command, _ []string) error { return root.Help() },
		PersistentPreRunE:          func(c *cobra.Command, _ []string) error { return readEnv(c, w.env) },
		SilenceErrors:              true,
		SilenceUsage:               true,
		Version:                    readBuild().String(),
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("ibid {{.Version}}\n")
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{err, fmt.Sprintf("%s --help lists the flags", c.CommandPath())}
	})
	root.AddCommand(
		newCite(w), newTrail(w), newAttribute(w), newCheck(w), newManifest(w), newVerify(w), newIncidents(w),
		newExperiment(w), newServe(w), newDemo(w), newToken(w), newKey(w), newPrune(w), newMCP(w), newCompletion(w),
		newVersion(w),
	)
	root.SetHelpCommand(newHelp())
	return root
}

func unknownCommand(root *cobra.Command, name string) error {
	err := &usageError{fmt.Errorf("unknown command %q", name), "ibid --help lists the commands"}
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		err.hint = "did you mean: ibid " + strings.Join(similar, ", ibid ") + "?"
	} else if info, statErr := os.Stat(name); statErr == nil && !info.IsDir() {
		err.hint = "to read a file: ibid cite " + name
	}
	return err
}

// newHelp returns the command help. Cobra's own exits with 0 when it does not know a command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			for _, sub := range c.Root().Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(c.Root(), args[0])
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
