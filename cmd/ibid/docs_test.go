package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

// docs/cli.md is generated from the program's help.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.Write(testenv.Must(os.ReadFile("testdata/cli-head.md"))(t))
	commands := newRoot(world{}).Commands()
	shared := sharedFlags(commands)
	documentCommands(&b, commands, shared)
	b.WriteString("\n## Shared flags\n\n")
	for _, row := range slices.Sorted(maps.Keys(shared)) {
		b.WriteString(row)
	}
	name := filepath.Join(testenv.Root(t), "docs", "cli.md")
	if *update {
		testenv.OK(t, os.WriteFile(name, []byte(b.String()), 0o666))
		return
	}
	page := testenv.Must(os.ReadFile(name))(t)
	if diff := cmp.Diff(string(page), b.String()); diff != "" {
		t.Errorf("docs/cli.md is out of date, make generate writes it (-is +should be):\n%s", diff)
	}
}

// pages are the pages about commands, which replace the text of the help except for exit codes.
var pages = map[string]string{
	"attribute":  "[Citations after the fact](attribute.md)",
	"check":      "[Support](support.md)",
	"experiment": "[Strategies and experiments](experiment.md)",
	"incidents":  "[Verifying](verify.md#incidents)",
	"mcp":        "[Tools for agents](mcp.md)",
	"serve":      "[Running ibid serve](serve.md)",
	"trail":      "[Trails](trail.md)",
	"verify":     "[Verifying](verify.md)",
}

func documentCommands(w io.Writer, commands []*cobra.Command, shared map[string]string) {
	for _, c := range commands {
		if !c.IsAvailableCommand() {
			continue
		}
		fmt.Fprintf(w, "\n## %s\n\n%s.\n\n```\n%s\n```\n", c.CommandPath(), c.Short, c.UseLine())
		if page := pages[c.Name()]; page != "" && c.HasFlags() {
			fmt.Fprintf(w, "\nSee %s.\n", page)
			if _, codes, found := strings.Cut(c.Long, "\n\nExit codes: "); found {
				fmt.Fprintf(w, "\nExit codes: %s\n", codes)
			}
		} else if c.Long != "" {
			fmt.Fprintf(w, "\n%s\n", markdownHelp(c.Long))
		}
		documentFlags(w, c.LocalFlags(), "--", shared)
		if c.Name() == "serve" {
			fmt.Fprint(w, "\nFew people need these settings, which are set in the file of `--config` or by a variable:\n")
			documentFlags(w, server.Defaults().Settings(), "", nil)
		}
		documentCommands(w, c.Commands(), shared)
	}
}

// sharedFlags returns the lines of flags that several commands have, and their names.
func sharedFlags(commands []*cobra.Command) map[string]string {
	count, shared := map[string]int{}, map[string]string{}
	var walk func([]*cobra.Command)
	walk = func(commands []*cobra.Command) {
		for _, c := range commands {
			c.LocalFlags().VisitAll(func(f *pflag.Flag) {
				row := flagRow(f, "--")
				if count[row]++; row != "" && count[row] == 2 {
					shared[row] = f.Name
				}
			})
			walk(c.Commands())
		}
	}
	walk(commands)
	return shared
}

// flagRow returns a flag's list item, or "" if it is not documented.
func flagRow(f *pflag.Flag, dashes string) string {
	if f.Hidden || f.Name == "help" {
		return ""
	}
	value, usage := pflag.UnquoteUsage(f)
	if value != "" {
		value = " " + value
	}
	if value != "" && f.DefValue != "" && f.DefValue != "[]" && !strings.Contains(usage, "(default") {
		usage += " (default " + strings.Trim(f.DefValue, "[]") + ")"
	}
	if !hasVariable(f) {
		usage += " (no variable)"
	}
	return fmt.Sprintf("- `%s%s%s`: %s\n", dashes, f.Name, value, usage)
}

func documentFlags(w io.Writer, flags *pflag.FlagSet, dashes string, shared map[string]string) {
	head := "\n"
	var elsewhere []string
	flags.VisitAll(func(f *pflag.Flag) {
		row := flagRow(f, dashes)
		if name, several := shared[row]; several {
			elsewhere = append(elsewhere, "`--"+name+"`")
		} else if row != "" {
			fmt.Fprint(w, head+row)
			head = ""
		}
	})
	if len(elsewhere) > 0 {
		fmt.Fprintf(w, "\n[Shared flags](#shared-flags): %s.\n", strings.Join(elsewhere, ", "))
	}
}

// markdownHelp converts a help text to Markdown, in which indented lines are literal.
func markdownHelp(help string) string {
	var b strings.Builder
	literal, blank := false, ""
	for line := range strings.Lines(help + "\n") {
		if line == "\n" { // it is not known yet if it belongs to the literal lines
			blank = line
			continue
		}
		if indented := strings.HasPrefix(line, "  "); indented != literal {
			if literal = indented; literal {
				blank = "\n```\n"
			} else {
				blank = "```\n\n"
			}
		}
		b.WriteString(blank + strings.TrimPrefix(line, "  "))
		blank = ""
	}
	if literal {
		b.WriteString("```\n")
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\n\n\n", "\n\n")
}
