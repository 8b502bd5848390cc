package verify

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// WriteText writes the report for people, optionally with ANSI colours. Hostile content is neutralized: control and
// bidirectional characters are escaped, hosts are in ASCII.
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

// mark is a word and its colour, an ANSI code.
type mark struct{ colour, word string }

// paint colours a word, if colours are enabled.
func (t *textReport) paint(m mark) string {
	if !t.colour {
		return m.word
	}
	return "\x1b[" + m.colour + "m" + m.word + "\x1b[0m"
}

// stateColours are the colours of states; others are yellow.
var stateColours = map[State]string{Trusted: "1;32", Valid: "1;36", Invalid: "1;31"}

// findingMarks precede claims.
var findingMarks = map[support.Label]mark{
	support.Supported: {"32", "SUPPORTED"}, support.Differs: {"1;31", "DIFFERS"},
	support.Unsupported: {"1;31", "UNSUPPORTED"}, support.Contradicted: {"1;31", "CONTRADICTED"},
	support.Unjudged: {"36", "UNJUDGED"}, support.Unchecked: {"33", "UNCHECKED"},
}

// failedMark replaces the mark of a claim whose quotes none of its sources has.
var failedMark = mark{"1;31", "FAILED"}

// marks precede statuses.
var marks = map[Counts]mark{
	CountPass: {"32", "ok     "}, CountInfo: {"36", "note   "}, CountWarning: {"33", "WARN   "},
	CountUnverifiable: {"33", "unknown"}, CountFailure: {"31", "FAIL   "},
}

func (t *textReport) report(r *Report, indent string) {
	state := mark{cmp.Or(stateColours[r.State], "1;33"), cmp.Or(strings.ToUpper(string(r.State)), "UNTRUSTED")}
	t.line(indent, "sources: %s  %s", t.paint(state), shown(r.title()))
	n, gravest := &r.Findings.Claims, support.Supported
	switch {
	case n.Failed > 0 || n.Denied() > 0:
		gravest = support.Differs
	case n.Unchecked > 0 || n.Supported+n.Unjudged == 0:
		gravest = support.Unchecked
	case n.Unjudged > 0:
		gravest = support.Unjudged
	}
	t.line(indent, "claims:  %s", t.paint(mark{findingMarks[gravest].colour, strings.ToUpper(n.String())}))
	t.line(indent, "%s", strings.TrimSpace(r.Why()+" "+r.WhyClaims()))
	for i := range r.Manifests {
		t.manifest(&r.Manifests[i], indent)
	}
	for i, f := range r.general() {
		if i == 0 {
			t.line("", "")
		}
		is := t.paint(cmp.Or(marks[f.Counts], marks[CountFailure]))
		t.line(indent, "  %s  %-22s %s", is, shown(string(f.Code)), shown(f.fullDetail()))
	}
	for i := range r.Claims {
		t.claim(&r.Claims[i], indent)
	}
	for _, up := range r.Upstream {
		t.line("", "")
		t.line(indent, "Upstream, a source that is itself an agent's answer:")
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

func (t *textReport) manifest(m *ManifestReport, indent string) {
	t.line("", "")
	t.line(indent, "Manifest %s", cmp.Or(shownURL(m.URL), "(from a file)"))
	if m.AgentID != "" {
		t.line(indent, "    agent %s, run %s, emitted %s", shown(m.AgentID), shown(m.RunID), shown(m.EmittedAt))
	}
	switch {
	case m.Trusted:
		t.line(indent, "    signed at %s with key %s, trusted by your --trust %s",
			shown(m.SignedAt), shown(m.KeyID), shown(m.TrustedBy))
	case m.Verified:
		t.line(indent, "    signed at %s with key %s, which you have not said to trust",
			shown(m.SignedAt), shown(m.KeyID))
	}
	if m.Level.Observed > 0 {
		t.line(indent, "    level %d observed, %d promised", m.Level.Observed, m.Level.Promised)
	}
}

// general returns the findings that are not about a claim, the worst first, and claims without a supporting source.
func (r *Report) general() []Finding {
	return slices.DeleteFunc(slices.Concat(r.Failure, r.Info, r.Success), func(f Finding) bool {
		return f.Claim != "" && f.Code != NothingClaimed
	})
}

func (f *Finding) fullDetail() string {
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
	said := c.Detail
	if c.By != "" {
		said = strings.TrimSpace(said + " (according to " + c.By + ")")
	}
	found, word := findingMarks[c.Finding], string(c.Status)
	if c.Reason == reasonFailed {
		found = failedMark
	}
	if c.Reason != "" {
		word = c.Reason + ", " + word
	}
	t.line("", "")
	t.line(indent, "Claim %s: %s", shown(c.ID), shown(c.Text))
	t.line(indent, "  %s  %-22s %s", t.paint(found), shown(word), shown(said))
	for i := range c.Differs {
		d := &c.Differs[i]
		t.line(indent, "    %s: the claim says %s, its excerpt %s, in: %s",
			d.Kind, shown(d.Claim), shown(d.Excerpt), shown(d.Sentence))
	}
	if right := c.WrongSource; right != nil {
		t.line(indent, "    %s says: %s", shownURL(right.URL), shown(right.Excerpt))
	}
	for i := range c.Sources {
		t.source(&c.Sources[i], indent+"  ")
	}
}

func (t *textReport) source(s *SourceReport, indent string) {
	r := &s.Result
	word := string(r.Status)
	if r.Reason != "" {
		word += " (" + r.Reason + ")"
	}
	is := t.paint(cmp.Or(marks[r.Counts], marks[CountFailure]))
	t.line(indent, "%s  %-22s %s", is, shown(word), shownURL(s.URL))
	indent += "         "
	if r.Note != "" {
		t.line(indent, "%s", shown(r.Note))
	}
	if s.Cached {
		t.line(indent, "checked at %s, and not since", s.CheckedAt.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if r.Redirected {
		t.line(indent, "found at  %s", shownURL(r.FinalURL))
	}
	if !r.Counts.Passes() {
		for _, line := range t.diffLines(s) {
			t.line(indent, "%s", line)
		}
	}
	if r.Counts == CountFailure && s.Expected.Hash != "" && r.Hash != "" && r.Hash != s.Expected.Hash {
		t.line(indent, "octets:   %s, recorded %s", shown(r.Hash), shown(s.Expected.Hash))
	}
}

// diffLines returns the manifest's quote, the source's text and their difference: [-the manifest's words-]{+the
// source's+}.
func (t *textReport) diffLines(s *SourceReport) []string {
	var lines []string
	if s.Excerpt != "" {
		lines = append(lines, "manifest: "+shown(s.Excerpt))
	}
	near := s.Result.Near
	if near == nil {
		return lines
	}
	var diff strings.Builder
	for _, e := range near.Diff {
		words := markEscaper.Replace(shown(e.Text))
		switch e.Kind {
		case snapshot.EditQuote:
			words = t.paint(mark{"31", "[-" + words + "-]"})
		case snapshot.EditText:
			words = t.paint(mark{"32", "{+" + words + "+}"})
		case snapshot.EditSame:
		}
		diff.WriteString(words)
	}
	return append(lines, "source:   "+shown(near.Text), "changed:  "+diff.String())
}

// markEscaper escapes words that look like the marks of a difference.
var markEscaper = strings.NewReplacer("[-", `\u{005B}-`, "-]", `-\u{005D}`, "{+", `\u{007B}+`, "+}", `+\u{007D}`)

// The elements of JUnit XML that are written.
type (
	junitSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		junitCounts
		Suites []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string `xml:"name,attr"`
		Timestamp string `xml:"timestamp,attr,omitempty"`
		junitCounts
		Cases []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
	}
	junitCase struct {
		Class   string       `xml:"classname,attr"`
		Name    string       `xml:"name,attr"`
		Failure *junitResult `xml:"failure"`
		Error   *junitResult `xml:"error"`
		Skipped *junitResult `xml:"skipped"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes reports as JUnit XML: a suite for each, with a case for each source of each claim, each claim and
// each finding about the manifests. Failures have their text; what could not be checked, and a claim that is unjudged
// or unchecked, is skipped, unless the gate fails on it. A report with an Error is an error.
func WriteJUnit(w io.Writer, on FailOn, reports ...*Report) error {
	var all junitSuites
	for _, r := range reports {
		s := r.suite(on)
		all.Tests, all.Failures = all.Tests+s.Tests, all.Failures+s.Failures
		all.Errors, all.Skipped = all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	b, err := xml.MarshalIndent(&all, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, b); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	return nil
}

func (r *Report) suite(on FailOn) junitSuite {
	s := junitSuite{Name: shown(r.title())}
	if !r.CheckedAt.IsZero() {
		s.Timestamp = r.CheckedAt.UTC().Format("2006-01-02T15:04:05")
	}
	for _, f := range r.general() {
		s.add("manifest", string(f.Code), f.Counts,
			junitResult{Message: f.Detail, Type: string(f.Code), Text: shown(f.fullDetail())})
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		word, counts := string(c.Status), CountUnverifiable
		switch {
		case c.Finding == support.Supported:
			counts = c.Counts
		case on == FailOnUnjudged, c.Status.DeniesClaim() && on != FailOnInvalid:
			counts = CountFailure
		}
		lines := []string{shown(c.Text), shown(c.Detail)}
		for k := range c.Differs {
			lines = append(lines, "excerpt: "+shown(c.Differs[k].Sentence))
		}
		s.add("claim", c.ID, counts, junitResult{word, word, strings.Join(lines, "\n")})
		for k := range c.Sources {
			src := &c.Sources[k]
			word := string(src.Result.Status)
			lines := append([]string{shown(cmp.Or(src.Result.Note, word))}, (&textReport{}).diffLines(src)...)
			s.add("source", c.ID+" "+shownURL(src.URL), src.Result.Counts,
				junitResult{word, word, strings.Join(lines, "\n")})
		}
	}
	if r.Error != "" {
		s.Errors, s.Tests = s.Errors+1, s.Tests+1
		s.Cases = append(s.Cases, junitCase{Class: "input", Name: s.Name, Error: &junitResult{Message: shown(r.Error)}})
	}
	for _, up := range r.Upstream {
		counts := map[State]Counts{
			Invalid: CountFailure, Unverifiable: CountUnverifiable, Pending: CountUnverifiable,
		}[up.State]
		s.add("upstream", up.title(), cmp.Or(counts, CountPass), junitResult{Message: up.Why(), Type: string(up.State)})
	}
	return s
}

func (s *junitSuite) add(class, name string, counts Counts, r junitResult) {
	c := junitCase{Class: class, Name: shown(name)}
	r.Message, r.Type = shown(r.Message), shown(r.Type)
	s.Tests++
	switch {
	case counts.Passes():
	case counts == CountUnverifiable:
		s.Skipped++
		c.Skipped = &r
	default:
		s.Failures++
		c.Failure = &r
	}
	s.Cases = append(s.Cases, c)
}

// maxShown is how many code points of a string WriteText shows.
const maxShown = 600

// shown returns a string that cannot affect what surrounds it: control characters, line ends, bidirectional controls,
// invisible characters and invalid bytes are escaped. It is cut to maxShown.
func shown(s string) string {
	var b strings.Builder
	n := 0
	right := false
	for i, r := range s {
		if n++; n > maxShown {
			b.WriteString("…")
			break
		}
		right = right || r >= 0x590 && (r < 0x8ff || 0xfb1d <= r && r <= 0xfdff || 0xfe70 <= r && r <= 0xfefc ||
			0x10800 <= r && r <= 0x10fff || 0x1e800 <= r && r <= 0x1efff)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == ' ' || unicode.IsPrint(r) && !text.Hidden(r) && !unicode.In(r, strikes, unicode.Variation_Selector):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		}
	}
	if right {
		const isolate, end = "\u2068", "\u2069" // keeps the surrounding text in place
		return isolate + b.String() + end
	}
	return b.String()
}

// strikes are marks that strike out or enclose the preceding character.
var strikes = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x334, Hi: 0x338, Stride: 1},
	{Lo: 0x20d2, Hi: 0x20d3, Stride: 1},
	{Lo: 0x20d8, Hi: 0x20da, Stride: 1},
	{Lo: 0x20dd, Hi: 0x20e0, Stride: 1},
	{Lo: 0x20e2, Hi: 0x20e8, Stride: 1},
	{Lo: 0x20ea, Hi: 0x20eb, Stride: 1},
}}

// shownURL returns a URL with its host in ASCII, because letters of other scripts can look like Latin ones. It drops
// the user info, which can look like a host.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ascii(address)
	}
	if host, err := idna.ToASCII(u.Hostname()); err == nil {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		u.Host = host
	}
	u.User = nil
	return ascii(u.String())
}

// ascii escapes everything that is not printable ASCII.
func ascii(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case i > 2*maxShown:
			return b.String() + "..."
		case r > ' ' && r < 0x7f:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%04X}`, r)
		}
	}
	return b.String()
}
