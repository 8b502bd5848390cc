package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

// runnable returns the commands that do something themselves, by path.
func runnable(c *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	if c.Runnable() && c.IsAvailableCommand() && !c.HasAvailableSubCommands() {
		all[c.CommandPath()] = c
	}
	for _, sub := range c.Commands() {
		maps.Copy(all, runnable(sub))
	}
	return all
}

// oneMeaning gives the common meaning of flags with different descriptions that share a variable.
var oneMeaning = map[string]string{
	"config":    "the configuration file of ibid serve",
	"json":      "write JSON instead of text",
	"data":      "the data directory of ibid serve",
	"source":    "what the claims of an answer are compared with",
	"threshold": "the least score of what counts as supported",
	"trust":     "whose signatures are trusted",
	"manifests": "how long manifests are kept",
	"documents": "the documents that are, or were, given to the model",
}

// No environment variable has different meanings in different commands: IBID_CHECK used to make ibid incidents audit
// its list.
func TestOneVariableOneMeaning(t *testing.T) {
	type meaning struct{ command, kind, usage string }
	first := map[string]meaning{}
	add := func(path string, flags *pflag.FlagSet) {
		flags.VisitAll(func(f *pflag.Flag) {
			if !hasVariable(f) {
				return
			}
			name := envName(f.Name)
			m := meaning{path, f.Value.Type(), f.Usage}
			before, ok := first[name]
			if !ok {
				first[name] = m
				return
			}
			if m.kind != before.kind || m.usage != before.usage && oneMeaning[f.Name] == "" {
				t.Errorf("%s: %s: %s %q; %s: %s %q", name, before.command, before.kind, before.usage, path, m.kind, m.usage)
			}
		})
	}
	commands := runnable(newRoot(world{}))
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		add(path, commands[path].Flags())
	}
	add("the settings of ibid serve", server.Defaults().Settings())
	for name, command := range map[string]string{"IBID_CHECK": "ibid serve", "IBID_PUBLISH": "ibid serve", "IBID_CLAIM": "ibid check"} {
		if got := first[name].command; got != command {
			t.Errorf("%s is of %q, want %q", name, got, command)
		}
	}
}

// Commands that accept a file accept - for standard input, once, and give a hint if the file does not exist.
func TestFilesAlike(t *testing.T) {
	home := t.TempDir()
	for path, c := range runnable(newRoot(world{})) {
		if !strings.Contains(c.Use, "FILE") && !strings.Contains(c.Use, "ANSWER") || strings.HasPrefix(c.Use, "new") ||
			c.Name() == "serve" {
			continue
		}
		args := strings.Fields(path)[1:]
		switch c.Name() {
		case "attribute":
			args = append(args, "--source", "commands_test.go")
		case "check":
			args = append(args, "--batch")
		}
		call := func(in string, names ...string) (exit int, out, words string) {
			var stdout, stderr bytes.Buffer
			exit = run(context.Background(), append(args, names...), world{
				strings.NewReader(in), &stdout, &stderr, func(name string) (string, bool) { return home, name == "HOME" },
			})
			return exit, stdout.String(), stderr.String()
		}
		if exit, _, words := call("", "-"); strings.Contains(words, "no such file") {
			t.Errorf("%s -: %d %s", path, exit, words)
		}
		if c.Name() == "build" {
			continue // a name that is not a file may be an id
		}
		exit, out, words := call("", "none.json")
		if exit != exitUnknown || out != "" && c.Name() != "cite" || !strings.Contains(words, "none.json") ||
			!strings.Contains(words, "\nhint: ") {
			t.Errorf("%s none.json: %d %q %s", path, exit, out, words)
		}
		if c.Name() == "check" {
			continue // --batch is itself one
		}
		if exit, _, words := call("", "-", "-"); exit != exitUnknown || !strings.HasPrefix(words, "ibid: ") {
			t.Errorf("%s - -: %d %s", path, exit, words)
		}
	}
}

// Commands whose output programs may read have --json.
func TestJSONAlike(t *testing.T) {
	writesNothing := []string{ // only messages
		"ibid completion", "ibid demo", "ibid key forget", "ibid key retire", "ibid key revoke", "ibid mcp", "ibid serve",
		"ibid token revoke", "ibid help",
	}
	for path, c := range runnable(newRoot(world{})) {
		f := c.Flags().Lookup("json")
		switch {
		case slices.Contains(writesNothing, path):
			if f != nil {
				t.Errorf("%s has --json", path)
			}
		case f == nil || f.Value.Type() != "bool" || f.DefValue != "false" || f.Shorthand != "" || !hasVariable(f):
			t.Errorf("%s has no --json as the others have it: %+v", path, f)
		}
	}
}

// ibid serve does not have too many flags for its help to be read.
func TestServeFlags(t *testing.T) {
	n := 0
	serve := runnable(newRoot(world{}))["ibid serve"]
	serve.InitDefaultHelpFlag()
	serve.LocalFlags().VisitAll(func(*pflag.Flag) { n++ })
	if n-1 > 21 { // --help
		t.Errorf("ibid serve has %d flags", n-1)
	}
	server.Defaults().Settings().VisitAll(func(f *pflag.Flag) {
		if serve.Flags().Lookup(f.Name) != nil {
			t.Errorf("%s is a setting and a flag", f.Name)
		}
	})
}

// Help is as wide as the terminal: only indented, literal lines and single words are wider.
func TestHelpWraps(t *testing.T) {
	for _, width := range []int{40, 60, 80, 132} {
		widest := 0
		for path := range runnable(newRoot(world{out: io.Discard})) {
			var out bytes.Buffer
			root := newRoot(world{out: &out})
			wrapHelp(root, width)
			c, _, err := root.Find(strings.Fields(path)[1:])
			testenv.OK(t, err)
			c.InitDefaultHelpFlag()
			usage := c.LocalFlags().FlagUsagesWrapped(width)
			if help := c.UsageString(); !strings.Contains(help, strings.TrimSpace(usage)) {
				t.Errorf("%s: the flags are not wrapped at %d columns:\n%s", path, width, help)
			}
			for line := range strings.Lines(c.Long) {
				n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
				if n > width && !strings.HasPrefix(line, " ") && strings.Contains(line, " ") {
					t.Errorf("%s at %d columns: %q has %d", path, width, line, n)
				}
			}
			for line := range strings.Lines(usage) {
				widest = max(widest, utf8.RuneCountInString(line))
			}
		}
		if width == 132 && widest <= 80 {
			t.Errorf("at %d columns no line of the flags has more than %d", width, widest)
		}
	}
}
