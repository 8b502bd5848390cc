package verify

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The elements of JUnit's XML that we write.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name      string      `xml:"name,attr"`
		Timestamp string      `xml:"timestamp,attr,omitempty"`
		Tests     int         `xml:"tests,attr"`
		Failures  int         `xml:"failures,attr"`
		Errors    int         `xml:"errors,attr"`
		Skipped   int         `xml:"skipped,attr"`
		Cases     []junitCase `xml:"testcase"`
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

// WriteJUnit writes reports as JUnit XML: a suite each, a case for each source of each claim, each claim and each
// finding about the manifests. Failures have their text; what could not be looked at is skipped; a report with an Error
// is an error.
func WriteJUnit(w io.Writer, reports ...*Report) error {
	var all junitSuites
	for _, r := range reports {
		s := r.suite()
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

func (r *Report) suite() junitSuite {
	s := junitSuite{Name: shown(r.title())}
	if !r.CheckedAt.IsZero() {
		s.Timestamp = r.CheckedAt.UTC().Format("2006-01-02T15:04:05")
	}
	for _, list := range [][]Finding{r.Failure, r.Info, r.Success} {
		for i := range list {
			if f := &list[i]; f.Claim == "" {
				s.add(
					"manifest", string(f.Code), f.Counts,
					junitResult{Message: shown(f.Detail), Type: string(f.Code), Text: shown(f.where())},
				)
			}
		}
	}
	for i := range r.Claims {
		c := &r.Claims[i]
		s.add(
			"claim", shown(c.ID), c.Counts,
			junitResult{Message: string(c.Status), Type: string(c.Status), Text: shown(c.Text)},
		)
		for k := range c.Sources {
			src := &c.Sources[k]
			s.add("source", shown(c.ID)+" "+shownURL(src.URL), src.Result.Counts, src.junit())
		}
	}
	if r.Error != "" {
		s.Errors, s.Tests = s.Errors+1, s.Tests+1
		s.Cases = append(s.Cases, junitCase{Class: "input", Name: s.Name, Error: &junitResult{Message: shown(r.Error)}})
	}
	for _, up := range r.Upstream {
		counts := CountPass
		switch up.State {
		case Invalid:
			counts = CountFailure
		case Unverifiable:
			counts = CountUnverifiable
		default:
		}
		s.add("upstream", shown(up.title()), counts, junitResult{Message: up.Why(), Type: string(up.State)})
	}
	return s
}

func (s *SourceReport) junit() junitResult {
	r := &s.Result
	lines := []string{shown(cmp.Or(r.Note, string(r.Status)))}
	if s.Excerpt != "" {
		lines = append(lines, "manifest: "+shown(s.Excerpt))
	}
	if r.Near != nil {
		lines = append(lines, "source:   "+shown(r.Near.Text), "changed:  "+(&textReport{}).diff(r.Near))
	}
	return junitResult{Message: string(r.Status), Type: string(r.Status), Text: strings.Join(lines, "\n")}
}

func (s *junitSuite) add(class, name string, counts Counts, r junitResult) {
	c := junitCase{Class: class, Name: shown(name)}
	r.Message, r.Type = shown(r.Message), shown(r.Type)
	s.Tests++
	switch counts {
	case CountPass, CountInfo, CountWarning:
	case CountUnverifiable:
		s.Skipped++
		c.Skipped = &r
	default:
		s.Failures++
		c.Failure = &r
	}
	s.Cases = append(s.Cases, c)
}
