package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// The README's console examples are true: each command is run in the module's root, and what follows is its output, in
// which a line with an ellipsis stands for any lines. Commands that call a program of the README are run in examples.
func TestReadme(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	root := testenv.Root(t)
	page := testenv.Must(os.ReadFile(filepath.Join(root, "README.md")))(t)
	run := 0
	for _, block := range strings.Split(string(page), "\n```console\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			if strings.Contains(command, "http://127.0.0.1:8090/") {
				continue
			}
			if _, err := exec.LookPath("jq"); err != nil && strings.Contains(command, "jq") {
				t.Log("left out, because jq is missing: " + command)
				continue
			}
			cmd := exec.CommandContext(t.Context(), shell, "-c", command)
			cmd.Dir = root
			got, _ := cmd.Output() // the exit code of a check that finds something is 1
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…\n", "(?s:.*)\n") + "\n$"
			pattern = strings.ReplaceAll(pattern, "\n…\n", "\n(?s:.*)\n")
			if !regexp.MustCompile(pattern).Match(got) {
				t.Errorf("README.md: $ %s\nprints\n%s\nand not\n%s", command, got, want)
			}
			run++
		}
	}
	if run < 5 {
		t.Errorf("only %d commands of the README were run", run)
	}
}
