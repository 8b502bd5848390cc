package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/server"
)

// main does not handle signals: there is nothing to clean up, so Ctrl-C stops at once, and a closed pipe (| head) ends
// the program silently.
func main() {
	if len(os.Args) > 1 && os.Args[1] == pdfCommand {
		os.Exit(servePDF(os.Args[2:]))
	}
	isolatePDFs()
	os.Exit(run(context.Background(), os.Args[1:], world{os.Stdin, os.Stdout, os.Stderr, os.LookupEnv}))
}

// world is the program's environment.
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

// newRoot returns the command ibid with all its subcommands.
func newRoot(w world) *cobra.Command {
	root := &cobra.Command{
		Use:   "ibid",
		Short: "The citation layer for LLM applications",
		Long: `ibid shows the answers of LLM providers with their citations in the right places.

Flags can also be set by environment variables: --no-list by IBID_NO_LIST=true.
The flag takes precedence.

Exit codes: 0 yes or done, 1 no, 2 could not find out.`,
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
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			f := wrong.GetFlag()
			why := plain(f, wrong.Unwrap())
			err = fmt.Errorf("invalid argument %q for \"--%s\" flag: %w", wrong.GetValue(), f.Name, why)
		}
		advice := fmt.Sprintf("%s --help lists the flags", c.CommandPath())
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && c.Name() == "serve" {
			if name := unknown.GetSpecifiedName(); server.Defaults().Settings().Lookup(name) != nil {
				advice = "set " + name + " in the file of --config, or by the environment variable " + envName(name)
			}
		}
		return usagef(advice, "%w", err)
	})
	group(
		root, newCite(w), newPrompt(w), newTrail(w), newAttribute(w), newCheck(w), newManifest(w), newVerify(w),
		newList(w), newShow(w), newSearch(w), newIncidents(w), newAudit(w), newExperiment(w), newServe(w), newDemo(w),
		newToken(w), newKey(w), newPrune(w), newBackup(w), newMCP(w), newCompletion(w), newVersion(w),
	)
	root.SetHelpCommand(newHelp())
	completeAll(root)
	wrapHelp(root, terminalWidth(w.out))
	return root
}

// minHelp is the narrowest width that help is wrapped to; fewer columns would be unreadable.
const minHelp = 40

// wrapHelp wraps the help of a command and its subcommands to width columns.
func wrapHelp(root *cobra.Command, width int) {
	width = max(width, minHelp)
	root.SetUsageTemplate("") // cobra's
	root.SetUsageTemplate(strings.ReplaceAll(
		root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped "+strconv.Itoa(width),
	))
	if width <= helpWidth { // wider terminals show the texts unchanged
		wrapTexts(root, width)
	}
}

func wrapTexts(c *cobra.Command, width int) {
	c.Long = wrapText(c.Long, width)
	for _, sub := range c.Commands() {
		wrapTexts(sub, width)
	}
}

// wrapText wraps the paragraphs of a text. Indented lines are kept.
func wrapText(s string, width int) string {
	var b strings.Builder
	at := 0 // columns written on the current line; 0 if it is empty
	end := func() {
		if at > 0 {
			b.WriteByte('\n')
		}
		at = 0
	}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, " ") {
			end()
			b.WriteString(line + "\n")
			continue
		}
		for word := range strings.FieldsSeq(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case at == 0:
			case at+1+n > width:
				end()
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += n
		}
	}
	return b.String()
}

// group makes cmd a command that only has subcommands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	cmd.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// completeAll sets up completion for cmd and its subcommands. Commands that do not declare arguments refuse them.
func completeAll(cmd *cobra.Command) {
	complete(cmd)
	if cmd.Args == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		cmd.Args = func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef(
					c.CommandPath()+" --help shows the usage",
					"%s takes no arguments, but got %q", c.CommandPath(), args[0],
				)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		completeAll(sub)
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	advice := "ibid --help lists the commands"
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		advice = "did you mean: ibid " + strings.Join(similar, ", ibid ") + "?"
	} else if info, err := os.Stat(name); err == nil && !info.IsDir() {
		advice = "to read a file: ibid cite " + name
	}
	return usagef(advice, "unknown command %q", name)
}

// newHelp returns the command help. Cobra's own exits with 0 if it does not know a command.
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

func newCompletion(w world) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print the completion script of a shell",
		Long: `Prints a script that makes a shell complete the commands, flags and values of
ibid. To use it in this shell, and in every new one:

  bash        source <(ibid completion bash)
              ibid completion bash >~/.local/share/bash-completion/completions/ibid
  zsh         source <(ibid completion zsh)
              ibid completion zsh >"${fpath[1]}/_ibid"
  fish        ibid completion fish | source
              ibid completion fish >~/.config/fish/completions/ibid.fish
  powershell  ibid completion powershell | Out-String | Invoke-Expression
              the same line in the file $PROFILE`,
		ValidArgs: shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef(
					c.CommandPath()+" --help shows how to use the script",
					"%s needs one shell: %s", c.CommandPath(), strings.Join(shells, ", "),
				)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(w.out, true)
			case "zsh":
				return root.GenZshCompletion(w.out)
			case "fish":
				return root.GenFishCompletion(w.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(w.out)
			}
		},
	}
}

// build is the output of ibid version --json. Its members must not be renamed.
type build struct {
	Version  string  `json:"version"`
	Revision *string `json:"revision"` // of the repository; null if built outside one
	Time     *string `json:"time"`     // of the revision
	Modified bool    `json:"modified"` // the tree had changes
	Go       string  `json:"go"`
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
}

// readBuild reads the build information from the Go runtime.
func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return newBuild(info)
}

func newBuild(info *debug.BuildInfo) build {
	b := build{
		Version: cmp.Or(info.Main.Version, "(devel)"),
		Go:      info.GoVersion,
		OS:      runtime.GOOS,
		Arch:    runtime.GOARCH,
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = &s.Value
		case "vcs.time":
			b.Time = &s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the version for people.
func (b build) String() string {
	s := b.Version
	if b.Revision != nil {
		revision := (*b.Revision)[:min(len(*b.Revision), 12)]
		if b.Modified {
			revision += ", modified"
		}
		s += " (" + revision + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", s, b.Go, b.OS, b.Arch)
}

func newVersion(w world) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if asJSON {
				return json.NewEncoder(w.out).Encode(b)
			}
			_, err := fmt.Fprintln(w.out, "ibid", b)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// many stands for any number of arguments.
const many = math.MaxInt

// wants accepts 1 to most arguments, at most one of which is standard input; anything else is a usage error.
func wants(most int, wrong, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || len(args) > most {
			return usagef(hint, "%s", wrong)
		}
		return onceStdin(args)
	}
}
