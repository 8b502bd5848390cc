package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

func newManifest(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest build|lint|show",
		Short: "Build, check and show manifests: who claimed what from where",
		Long: `A manifest lists the claims of one answer with the sources of each, and the steps
that led to it. What is looked at here is the manifest by itself; whether it is
true, and who signed it, is for ibid verify.`,
	}
	return group(cmd, newManifestBuild(w), newManifestLint(w), newManifestShow(w))
}

// manifestFile is a manifest as it was read.
type manifestFile struct {
	body   []byte // no more than one byte over what a manifest may have
	signed bool   // it is from a bundle with a signature, which nobody has looked at
}

// readManifest reads the bytes of a manifest, or of the one in a stored bundle, and says so. A byte order mark stays:
// it is one of the things that are wrong.
func readManifest(name string, w world) (*manifestFile, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, &usageError{
			fmt.Errorf("%s is an address, and only files are read here", name),
			"ibid verify " + name + " fetches and checks it",
		}
	}
	in, err := openInput(name, w.in, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, verify.DefaultInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, bare(err))
	}
	f := &manifestFile{body: data}
	if len(data) <= verify.DefaultInput && isBundle(data) {
		var s manifest.Signed
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		say(w.err, "%s is a stored bundle: this is about the manifest in it", name)
		f.body, f.signed = s.Body, s.SignatureInput != ""
	}
	f.body = f.body[:min(len(f.body), manifest.MaxBytes+1)]
	return f, nil
}

// isBundle reports whether JSON has the members of a stored bundle, as ibid manifest build --sign prints it.
func isBundle(data []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return false
	}
	return members["target_uri"] != nil && (members["body"] != nil || members["body_base64"] != nil)
}

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
		Args: wants(many, "ibid manifest lint takes a file", "to read standard input: ibid manifest lint -"),
		RunE: func(_ *cobra.Command, names []string) error { return runManifestLint(names, asJSON, w) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write an object a file, with its findings: line, column, path, "+
		"severity, code, detail")
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
