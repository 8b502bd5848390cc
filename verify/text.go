package verify

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ibidhq/ibid/snapshot"
)

// WriteText writes the report for a person to read, with ANSI colours or without. Nothing in the report, however
// hostile, can do more than stand there: control and bidirectional characters are shown escaped, hosts in ASCII.
func (r *Report) WriteText(w io.Writer, colour bool) error {
	buffered := bufio.NewWriter(w)
	t := &textReport{w: buffered, colour: colour}
	t.report(r, "")
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

type textReport struct {
	w      *bufio.Writer
	colour bool
}

func (t *textReport) line(indent, format string, args ...any) {
	t.w.WriteString(indent) //nolint:errcheck // Flush returns it
	fmt.Fprintf(t.w, format, args...)
	t.w.WriteByte('\n') //nolint:errcheck // Flush returns it
}

// paint colours a word, if colours are wanted.
func (t *textReport) paint(code, word string) string {
	if !t.colour {
		return word
	}
	return "\x1b[" + code + "m" + word + "\x1b[0m"
}

func (t *textReport) state(s State) string {
	word := strings.ToUpper(string(s))
	switch s {
	case Trusted:
		return t.paint("1;32", word)
	case Valid:
		return t.paint("1;36", word)
	case Invalid:
		return t.paint("1;31", word)
	default:
		return t.paint("1;33", cmp.Or(word, "UNTRUSTED"))
	}
}

// mark is what stands before a status.
func (t *textReport) mark(c Counts) string {
	switch c {
	case CountPass:
		return t.paint("32", "ok     ")
	case CountInfo:
		return t.paint("36", "note   ")
	case CountWarning:
		return t.paint("33", "WARN   ")
	case CountUnverifiable:
		return t.paint("33", "unknown")
	default:
		return t.paint("31", "FAIL   ")
	}
}

func (t *textReport) report(r *Report, indent string) {
	t.line(indent, "%s  %s", t.state(r.State), shown(r.title()))
	t.line(indent, "%s", r.Why())
	t.about(r, indent)
	t.findings(r, indent)
	for i := range r.Claims {
		t.claim(&r.Claims[i], indent)
	}
	for _, up := range r.Upstream {
		t.line("", "")
		t.line(indent, "Upstream, a source that is an agent's answer itself:")
		t.report(up, indent+"    ")
	}
	if indent == "" {
		if next := r.Next(); next != "" {
			t.line("", "")
			t.line("", "Next: %s", next)
		}
	}
}

func (r *Report) title() string {
	if r.Kind == KindResponse || r.Kind == KindManifest {
		if address := cmp.Or(r.Input, r.ResponseURL); strings.Contains(address, "://") {
			return shownURL(address)
		}
	}
	return cmp.Or(r.Input, r.ResponseURL, string(r.Kind))
}

// about says which manifests there are.
func (t *textReport) about(r *Report, indent string) {
	for i := range r.Manifests {
		m := &r.Manifests[i]
		t.line("", "")
		t.line(indent, "Manifest %s", cmp.Or(shownURL(m.URL), "(from a file)"))
		if m.AgentID != "" {
			t.line(indent, "    agent %s, run %s, emitted %s", shown(m.AgentID), shown(m.RunID), shown(m.EmittedAt))
		}
		switch {
		case m.Trusted:
			t.line(
				indent, "    signed at %s with key %s, trusted by your --trust %s", shown(m.SignedAt), shown(m.KeyID),
				shown(m.TrustedBy),
			)
		case m.Verified:
			t.line(
				indent, "    signed at %s with key %s, which you have not said to trust", shown(m.SignedAt),
				shown(m.KeyID),
			)
		}
		if m.Level.Observed > 0 {
			t.line(indent, "    level %d observed, %d promised", m.Level.Observed, m.Level.Promised)
		}
	}
}

// findings writes what was found beside the sources of claims, which have their place below.
func (t *textReport) findings(r *Report, indent string) {
	first := true
	for _, list := range [][]Finding{r.Failure, r.Info, r.Success} {
		for i := range list {
			f := &list[i]
			if f.Claim != "" {
				continue
			}
			if first {
				t.line("", "")
				first = false
			}
			t.line(indent, "  %s  %-22s %s", t.mark(f.Counts), shown(string(f.Code)), shown(f.where()))
		}
	}
}

func (f *Finding) where() string {
	detail := f.Detail
	if f.Path != "" {
		detail += " (at " + f.Path + ")"
	}
	if f.Source != "" {
		detail = strings.TrimSpace(detail + " " + shownURL(f.Source))
	}
	return detail
}

func (t *textReport) claim(c *ClaimReport, indent string) {
	t.line("", "")
	t.line(indent, "Claim %s: %s", shown(c.ID), shown(c.Text))
	t.line(indent, "  %s  %-22s %s", t.mark(c.Counts), shown(string(c.Status)), shown(by(c)))
	for i := range c.Sources {
		t.source(&c.Sources[i], indent+"  ")
	}
}

// by says who judged a claim.
func by(c *ClaimReport) string {
	if c.By == "" {
		return c.Detail
	}
	return strings.TrimSpace(c.Detail + " (said by " + c.By + ")")
}

func (t *textReport) source(s *SourceReport, indent string) {
	r := &s.Result
	word := string(r.Status)
	if r.Reason != "" {
		word += " (" + r.Reason + ")"
	}
	t.line(indent, "%s  %-22s %s", t.mark(r.Counts), shown(word), shownURL(s.URL))
	indent += "         "
	if r.Note != "" {
		t.line(indent, "%s", shown(r.Note))
	}
	if s.Cached {
		t.line(indent, "looked at %s, not again since", s.CheckedAt.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if r.Redirected {
		t.line(indent, "found at  %s", shownURL(r.FinalURL))
	}
	if !r.Counts.Passes() && s.Excerpt != "" {
		t.line(indent, "manifest: %s", shown(s.Excerpt))
		if r.Near != nil {
			t.line(indent, "source:   %s", shown(r.Near.Text))
			t.line(indent, "changed:  %s", t.diff(r.Near))
		}
	}
	if r.Counts == CountFailure && s.Expected.Hash != "" && r.Hash != "" && r.Hash != s.Expected.Hash {
		t.line(indent, "octets:   %s, recorded %s", shown(r.Hash), shown(s.Expected.Hash))
	}
}

// diff shows what stands in place of an excerpt: [-the manifest's words-]{+the source's+}.
func (t *textReport) diff(n *snapshot.Near) string {
	var b strings.Builder
	for _, e := range n.Diff {
		switch e.Kind {
		case snapshot.EditQuote:
			b.WriteString(t.paint("31", "[-"+shownInDiff(e.Text)+"-]"))
		case snapshot.EditText:
			b.WriteString(t.paint("32", "{+"+shownInDiff(e.Text)+"+}"))
		default:
			b.WriteString(shownInDiff(e.Text))
		}
	}
	return b.String()
}
