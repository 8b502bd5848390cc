package snapshot

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/pdf"
)

// readPDF reads the text layer of a PDF.
func readPDF(t *Text, b []byte, o *TextOptions) error {
	d, err := pdf.Read(b, cmp.Or(o.Pages, maxPages), cmp.Or(o.Time, maxTime))
	if err != nil {
		return err
	}
	t.Pages = d.Pages
	first(&t.Title, d.Title)
	for who := range strings.SplitSeq(d.Author, ";") {
		t.Authors = addPerson(t.Authors, who)
	}
	first(&t.PublishedAt, pdfDate(d.Created))
	first(&t.Language, d.Language)
	issue := func(code, format string, args ...any) {
		if len(t.Issues) < maxLineIssues {
			t.Issues = append(t.Issues, ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
		}
	}
	for _, page := range d.Unreadable {
		issue(IssuePageUnreadable, "page %d: its fonts do not say what their glyphs mean", page)
	}
	switch {
	case d.Stopped != nil:
		issue(IssuePagesLeftOut, "reading ended on page %d of %d: %v", d.Read, d.Pages, d.Stopped)
	case d.Read < d.Pages:
		issue(IssuePagesLeftOut, "%d of %d pages were read", d.Read, d.Pages)
	}
	s := stream{}
	kinds := map[pdf.Kind]BlockKind{pdf.Plain: Paragraph, pdf.Heading: Heading, pdf.Item: Item}
	for _, p := range d.Paragraphs {
		s.begin(kinds[p.Kind], p.Level, p.Page)
		s.raw = append(s.raw, p.Text...)
	}
	s.finish(t)
	if t.Content == "" {
		issue(IssueNoTextLayer, "its pages are pictures, or empty; recognise its text (OCR) first")
	}
	low := strings.ToLower(t.Title)
	if low == "" || strings.HasPrefix(low, "microsoft word") || strings.HasPrefix(low, "untitled") ||
		low == "about:blank" { // it has no title, or one that says how it was made
		t.Title = ""
		for _, b := range t.Blocks {
			if b.Kind == Heading && b.Page == 1 {
				first(&t.Title, t.Content[b.Span.Start:b.Span.End])
				break
			}
		}
	}
	return nil
}

// pdfDate returns a date of a PDF (D:20260428100000+02'00') as ISO 8601 writes it; empty: s says none.
func pdfDate(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:")
	if len(s) >= 8 {
		if at, err := time.Parse("20060102", s[:8]); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	return isoDate(s)
}
