package biblio

import (
	"fmt"
	"io"
	"time"

	"github.com/ibidhq/ibid"
)

// Format is the form of a bibliography.
type Format string

// The formats of a bibliography.
const (
	BibTeX  Format = "bibtex"   // entries for biblatex; UTF-8
	RIS     Format = "ris"      // tagged lines; UTF-8
	CSLJSON Format = "csl-json" // an array of CSL 1.0.2 items
	APA     Format = "apa"      // 7th edition
	MLA     Format = "mla"      // 9th edition
	Chicago Format = "chicago"  // 17th edition, bibliography of the notes system
)

// Formats returns all formats, data first.
func Formats() []Format { return []Format{BibTeX, RIS, CSLJSON, APA, MLA, Chicago} }

// MediaType returns the media type of the output of [Write] in the format, for a [Plain] style; empty for an unknown
// format.
func (f Format) MediaType() string {
	switch f {
	case BibTeX:
		return "application/x-bibtex; charset=utf-8"
	case RIS:
		return "application/x-research-info-systems; charset=utf-8"
	case CSLJSON:
		return "application/vnd.citationstyles.csl+json"
	case APA, MLA, Chicago:
		return "text/plain; charset=utf-8"
	}
	return ""
}

// Markup is how the styles [APA], [MLA] and [Chicago] write italics and links.
type Markup string

// The markups of a style.
const (
	Plain    Markup = ""         // neither; one line per entry
	Markdown Markup = "markdown" // CommonMark, one paragraph per entry
	HTML     Markup = "html"     // one p element per entry
)

// Entry is one source of a bibliography.
type Entry struct {
	// Number is the source's mark in the answer's text; 0 if it has none. The styles write it before the entry, the
	// data formats do not.
	Number int
	Source ibid.Source
	// Accessed is when the source was last seen. If zero, it is when the source was retrieved, if known. Its day is
	// taken in its own location.
	Accessed time.Time
}

// Cited returns the sources that an answer cites, each once, in the order of [ibid.Answer].Sources and without numbers.
func Cited(a *ibid.Answer) []Entry {
	cited := map[string]bool{}
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			cited[ref.Source] = true
		}
	}
	var entries []Entry
	for i := range a.Sources {
		if cited[a.Sources[i].ID] {
			entries = append(entries, Entry{Source: a.Sources[i]})
		}
	}
	return entries
}

// Options configure [Write].
type Options struct {
	Markup Markup // for the styles; the data formats have none
}

// Write writes the entries to w in one piece. Nil options are the zero [Options].
//
// If any entry has a number, the styles keep the order of the entries; see the package's documentation for lists
// without numbers. The data formats always keep the order. Their keys consist of the author or the site, the year and a
// word of the title, in lower-case ASCII letters and digits, and do not depend on other entries, unless two would be
// equal: then the later one gets a letter.
//
// The error is that of w, or says that there is no such format or markup.
func Write(w io.Writer, f Format, entries []Entry, opts *Options) error {
	if opts == nil {
		opts = &Options{}
	}
	out, err := format(f, opts.Markup, newItems(entries))
	if err == nil {
		_, err = w.Write(out)
	}
	if err != nil {
		return fmt.Errorf("writing a bibliography: %w", err)
	}
	return nil
}

func format(f Format, m Markup, items []item) ([]byte, error) {
	switch f {
	case BibTeX:
		return appendBibTeX(nil, items), nil
	case RIS:
		return appendRIS(nil, items), nil
	case CSLJSON:
		return marshalCSL(items)
	case APA, MLA, Chicago:
		return appendStyle(nil, f, m, items)
	}
	return nil, fmt.Errorf("there is no format %q", f)
}
