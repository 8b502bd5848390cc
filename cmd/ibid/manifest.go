package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

func newManifest(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest build|lint|show",
		Short: "Build, check and show manifests of claims and their sources",
		Long: `A manifest lists the claims of one answer with the sources of each, and the steps
that led to it. These commands examine only the manifest; ibid verify checks
whether it is true, and who signed it.`,
	}
	return group(cmd, newManifestBuild(w), newManifestLint(w), newManifestShow(w))
}

// manifestFile is the manifest in a file.
type manifestFile struct {
	body   []byte // at most one byte over the limit of a manifest
	signed bool   // from a bundle with a signature, which has not been verified
}

// readManifest reads a manifest, or the one in a stored bundle, which it reports. A byte order mark is kept: it is an
// error to be found.
func readManifest(name string, w world) (*manifestFile, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, usagef(
			"ibid verify "+name+" fetches and checks it", "%s is a URL, but only files are read here", name,
		)
	}
	in, err := openInput(&item{name: name}, w.in, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, verify.DefaultInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, bare(err))
	}
	f := &manifestFile{body: data}
	var members map[string]json.RawMessage // of a stored bundle, as ibid manifest build --sign prints it
	isJSON := len(data) <= verify.DefaultInput && json.Unmarshal(data, &members) == nil
	if isJSON && members["target_uri"] != nil && (members["body"] != nil || members["body_base64"] != nil) {
		var s manifest.Signed
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		say(w.err, "%s is a stored bundle; using the manifest in it", name)
		f.body, f.signed = s.Body, s.SignatureInput != ""
	}
	f.body = f.body[:min(len(f.body), manifest.MaxBytes+1)]
	return f, nil
}

func newManifestLint(w world) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "lint FILE…|-",
		Short: "Report errors in manifests, and possible improvements",
		Long: `Reads manifests and prints a line for each thing that a verifier refuses (error) or
that could be better (advice):

  FILE:LINE:COLUMN: error: /pointer: what is wrong [word]

Nothing is fetched, and signatures are not checked. For a stored bundle, lines
refer to the manifest in it. - is standard input.

Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.`,
		Example: `  ibid manifest lint manifest.json
  curl -s https://agent.example/runs/1/cite | ibid manifest lint -`,
		Args: wants(many, "ibid manifest lint takes a file", "to read standard input: ibid manifest lint -"),
		RunE: func(_ *cobra.Command, names []string) error {
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
				isError := func(f manifest.Finding) bool { return f.Severity == manifest.SeverityError }
				if result == nil && slices.ContainsFunc(findings, isError) {
					result = errNo
				}
			}
			return result
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write one object per file, with its findings: line, column, path, "+
		"severity, code, detail")
	return c
}

func writeFindings(w world, name string, findings []manifest.Finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w.out).Encode(struct {
			File     string             `json:"file"`
			Findings []manifest.Finding `json:"findings"`
		}{name, append([]manifest.Finding{}, findings...)})
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

func newManifestShow(w world) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "show FILE|-",
		Short: "Show a manifest: its claims with their sources, and its steps",
		Long: `Reads a manifest and shows its claims with the excerpts they rest on, its sources,
its steps, and the conformance level it reaches by itself. For a stored bundle it
shows the manifest in it. - is standard input.`,
		Example: `  ibid manifest show manifest.json`,
		Args:    wants(1, "ibid manifest show takes one file", "to read standard input: ibid manifest show -"),
		RunE: func(_ *cobra.Command, names []string) error {
			file, err := readManifest(names[0], w)
			if err != nil {
				return err
			}
			m, err := manifest.Parse(file.body)
			if err != nil {
				return usagef("ibid manifest lint lists all errors", "%s: %w", names[0], err)
			}
			if asJSON {
				return writeBytes(w.out)(m.Canonical())
			}
			t := &manifestText{m: m}
			t.head()
			t.claims()
			t.sources()
			t.chain()
			t.level(file.signed)
			_, err = io.WriteString(w.out, t.String())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write the manifest in canonical form (RFC 8785)")
	return c
}

// manifestText writes a manifest for people.
type manifestText struct {
	paper

	m *manifest.Manifest
}

func (t *manifestText) head() {
	m := t.m
	t.line(0, "Run %s of %s, %s", m.RunID, m.AgentID, m.EmittedAt)
	if m.Self != "" {
		t.line(0, "%s", m.Self)
	}
	if m.Supersedes != "" {
		t.line(0, "supersedes %s", m.Supersedes)
	}
	if m.Output != nil {
		t.line(0, "about a response of type %s, %s", m.Output.MediaType, m.Output.Hash)
	}
	t.line(
		0, "%s · %s · %s",
		plural(len(m.Claims), "claim"),
		plural(len(m.Sources), "source"),
		plural(len(m.Chain), "step"),
	)
}

func (t *manifestText) claims() {
	if len(t.m.Claims) > 0 {
		t.heading("Claims")
	}
	for i := range t.m.Claims {
		c := &t.m.Claims[i]
		var facts []string
		if c.Confidence != "" {
			facts = append(facts, c.Confidence+" confidence")
		}
		if len(c.Steps) > 0 {
			facts = append(facts, "step "+strings.Trim(fmt.Sprint(c.Steps), "[]"))
		}
		if c.Rewritten {
			facts = append(facts, "rewritten")
		}
		t.line(2, "%s", c.Text)
		t.line(4, "%s", strings.Join(append([]string{c.ID}, facts...), " · "))
		for j := range c.Sources {
			t.claimSource(&c.Sources[j])
		}
	}
}

func (t *manifestText) claimSource(s *manifest.ClaimSource) {
	parts := []string{strings.TrimSpace(s.Source + " " + s.URL)}
	if s.Relation != "" && s.Relation != manifest.RelationSupports {
		parts = append(parts, s.Relation)
	}
	if s.ExcerptOffset != nil {
		parts = append(parts, strconv.Itoa(s.ExcerptOffset[0])+" to "+strconv.Itoa(s.ExcerptOffset[1]))
	}
	if s.ExcerptOrigin == manifest.OriginInferred {
		parts = append(parts, s.ExcerptOrigin)
	}
	if s.Unavailable != "" {
		parts = append(parts, "unavailable: "+s.Unavailable)
	}
	t.line(4, "%s", strings.Join(parts, " · "))
	switch {
	case s.Excerpt != nil:
		t.line(6, "%s", excerpt(s.Excerpt.Exact))
	case s.ExcerptHash != "":
		t.line(6, "private excerpt, %s", s.ExcerptHash)
	default:
		t.line(6, "no excerpt")
	}
}

func (t *manifestText) sources() {
	if len(t.m.Sources) > 0 {
		t.heading("Sources")
	}
	for i := range t.m.Sources {
		s := &t.m.Sources[i]
		t.line(2, "%s %s", s.ID, s.URL)
		if s.FinalURL != "" && s.FinalURL != s.URL {
			t.line(4, "redirected to %s", s.FinalURL)
		}
		facts := []string{"read " + string(s.RetrievedAt)}
		if s.RetrievedBy != "" {
			facts[0] += " by the " + s.RetrievedBy
		}
		if s.Cited != nil && !*s.Cited {
			facts = append(facts, "not cited")
		}
		facts = append(facts, s.MediaType, s.Hash)
		if s.Unavailable != "" {
			facts = append(facts, "unavailable: "+s.Unavailable)
		}
		facts = slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
		t.line(4, "%s", strings.Join(facts, " · "))
	}
}

func (t *manifestText) chain() {
	if len(t.m.Chain) > 0 {
		t.heading("Chain")
	}
	for i := range t.m.Chain {
		s := &t.m.Chain[i]
		parts := []string{fmt.Sprintf("%d %s → %s", s.Step, s.Tool, s.OutputsRef)}
		if len(s.InputsRef) > 0 {
			parts = append(parts, "from "+strings.Join(s.InputsRef, ", "))
		}
		switch {
		case s.Inputs != nil:
			parts = append(parts, "inputs "+excerpt(string(s.Inputs)))
		case s.InputsHash != "":
			parts = append(parts, "private inputs")
		}
		if len(s.Sources) > 0 {
			parts = append(parts, strings.Join(s.Sources, ", "))
		}
		t.line(2, "%s", strings.Join(parts, " · "))
	}
}

func (t *manifestText) level(signed bool) {
	if problems := t.m.Problems(); len(problems) > 0 {
		t.heading("Problems")
		for _, p := range problems {
			t.line(2, "%s: %s: %s", p.Status, p.Path, p.Detail)
		}
	}
	level, why := t.m.Level(signed)
	t.line(0, "")
	if signed {
		t.line(0, "Level %d, if its signature is valid", level)
		t.line(2, "ibid verify checks that")
	} else {
		t.line(0, "Level %d, unsigned", level)
	}
	for _, reason := range why {
		t.line(2, "%s", reason)
	}
}
