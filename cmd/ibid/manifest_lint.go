package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/manifest"
)

func newManifestLint(w world) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "lint FILE…|-",
		Short: "Say what is wrong with manifests, and what could be better",
		Long: `Reads manifests and prints a line for everything in them that a verifier refuses
(error) or that could be better (advice):

  FILE:LINE:COLUMN: error: /pointer: what is wrong [word]

Nothing is fetched, and signatures are not looked at. Of a stored bundle it is the
manifest in it that is looked at, and that has the lines. - is standard input.

Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.`,
		Example: `  ibid manifest lint manifest.json
  curl -s https://agent.example/runs/1/cite | ibid manifest lint -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{
					errors.New("ibid manifest lint takes a file"), "to read standard input: ibid manifest lint -",
				}
			}
			return onceStdin(args)
		},
		RunE: func(_ *cobra.Command, names []string) error { return runManifestLint(names, asJSON, w) },
	}
	c.Flags().
		BoolVar(&asJSON, "json", false, "write an object a file, with its findings: line, column, path, severity, code, detail")
	return c
}

func runManifestLint(names []string, asJSON bool, w world) error {
	var result error
	for _, name := range names {
		file, err := readManifest(name, w)
		if err != nil {
			if len(names) == 1 {
				return err
			}
			say(w.err, "%v", err)
			result = errReported
			continue
		}
		findings := manifest.Lint(file.body)
		if err := writeFindings(w, name, findings, asJSON); err != nil {
			return err
		}
		if result == nil &&
			slices.ContainsFunc(
				findings, func(f manifest.Finding) bool { return f.Severity == manifest.SeverityError },
			) {
			result = errNo
		}
	}
	return result
}

func writeFindings(w world, name string, findings []manifest.Finding, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(struct {
			File     string             `json:"file"`
			Findings []manifest.Finding `json:"findings"`
		}{name, append([]manifest.Finding{}, findings...)})
		if err != nil {
			return err
		}
		return writeLine(w.out, string(b))
	}
	var b strings.Builder
	for _, f := range findings {
		if f.Path != "" {
			f.Detail = f.Path + ": " + f.Detail
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s [%s]\n", name, f.Line, f.Column, f.Severity, oneLine(f.Detail), f.Code)
	}
	_, err := w.out.Write([]byte(b.String()))
	return err
}
