package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/manifest"
)

func newManifestShow(w world) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "show FILE|-",
		Short: "Show a manifest: its claims with their sources, and how they came about",
		Long: `Reads a manifest and shows its claims with the excerpts they rest on, its sources,
its steps, and the conformance level it deserves by itself. Of a stored bundle it
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
				return &usageError{
					fmt.Errorf("%s: %w", names[0], err), "ibid manifest lint lists everything that is wrong",
				}
			}
			if asJSON {
				return writeBytes(w.out)(m.Canonical())
			}
			return writeManifest(w.out, m, file.signed)
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

func writeManifest(w io.Writer, m *manifest.Manifest, signed bool) error {
	t := &manifestText{m: m}
	t.head()
	t.claims()
	t.sources()
	t.chain()
	t.level(signed)
	_, err := io.WriteString(w, t.String())
	return err
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
		t.line(0, "about a response of %s, %s", m.Output.MediaType, m.Output.Hash)
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
			t.line(4, "led to %s", s.FinalURL)
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
		t.line(0, "Level %d, if its signature is good", level)
		t.line(2, "ibid verify looks at that")
	} else {
		t.line(0, "Level %d, unsigned", level)
	}
	for _, reason := range why {
		t.line(2, "%s", reason)
	}
}
