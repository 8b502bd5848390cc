package biblio

import (
	"fmt"
	"io"
	"time"

	"github.com/ibidhq/ibid"
)

// Format says what a bibliography is written as.
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

// MediaType returns the media type of what [Write] writes in the format, for a [Plain] style; empty for an unknown
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

// Markup says how the styles [APA], [MLA] and [Chicago] write italics and links.
type Markup string

// The markups of a style.
const (
	Plain    Markup = ""         // neither; one line an entry
	Markdown Markup = "markdown" // CommonMark, one paragraph an entry
	HTML     Markup = "html"     // one p element an entry
)

// Entry is one source of a bibliography.
type Entry struct {
	// Number is the mark that stands for the source in the answer's text. 0: none. The styles write it before the
	// entry, the data formats do not.
	Number int
	Source ibid.Source
	// Accessed is when somebody last saw the source. Zero: when it was retrieved, if the source says so. Its day is
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

// Options says how [Write] writes.
type Options struct {
	Markup Markup // of the styles; the data formats have none
}

// Write writes the entries to w in one piece. Nil options are the zero [Options].
//
// A style with an entry without a number among its entries is in their order; see the package's documentation for lists
// without any. The data formats always keep the order. Their keys are made of the author or the site, the year and a
// word of the title, in lower-case ASCII letters and digits, and do not depend on other entries, unless two would be
// the same: then the later one gets a letter.
//
// The error is w's, or says that there is no such format or markup.
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
