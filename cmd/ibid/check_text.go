package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// What is shown of evidence to people.
const (
	maxShownEvidence = 3
	maxShownExcerpt  = 400 // characters
	maxShownMissing  = 12
)

// writeVerdict writes a verdict for people.
func writeVerdict(w io.Writer, v *support.Verdict, m *material) error {
	var b strings.Builder
	label := v.Label
	if label == "" {
		label = support.Unverified
	}
	fmt.Fprintf(&b, "%s", label)
	if v.Score != nil {
		fmt.Fprintf(&b, "  %.2f", *v.Score)
	}
	fmt.Fprintf(&b, "  (%s)\n", v.By)
	row := func(name, text string) { fmt.Fprintf(&b, "  %-9s %s\n", name, oneLine(text)) }
	for _, e := range v.Evidence[:min(len(v.Evidence), maxShownEvidence)] {
		from, span := m.find(e)
		row("evidence", from.place()+": "+excerpt(from.text[span.Start:span.End]))
	}
	if more := len(v.Evidence) - maxShownEvidence; more > 0 {
		row("", fmt.Sprintf("and %d more", more))
	}
	if terms := missing(v); terms != "" {
		row("missing", terms)
	}
	for _, c := range conflictsOf(v) {
		row("changed", c.String())
	}
	for _, issue := range v.Issues {
		row("note", issue.Code+": "+issue.Detail)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String says a conflict to people.
func (c checkConflict) String() string {
	if c.Kind == support.ConflictNegation && c.Note != "" { // its values are no words that stand for each other
		return strings.TrimPrefix(c.Note, "negation: ")
	}
	return fmt.Sprintf("%s: the claim has %s, the source %s", c.Kind, c.Claim, c.Evidence)
}

func missing(v *support.Verdict) string {
	var terms []string
	for i := range v.Missing {
		if i == maxShownMissing {
			terms = append(terms, fmt.Sprintf("and %d more", len(v.Missing)-i))
			break
		}
		terms = append(terms, v.Missing[i].Text)
	}
	return strings.Join(terms, ", ")
}

// excerpt returns the beginning of a text, as a quotation.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	n := 0
	for i := range text {
		if n++; n > maxShownExcerpt {
			return "“" + text[:i] + "…”"
		}
	}
	return "“" + text + "”"
}
