package biblio

import (
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// item is an entry as all formats need it: its words are cleaned, its class is decided. Unknown fields are empty.
type item struct {
	number   int
	key      string
	class    class
	genre    string // what it is, if the class does not say it
	names    []name
	title    string
	site     string
	url      string
	doi      string
	issued   date
	accessed date
	pages    []int // first and last
}

// class is the kind of a source in a bibliography.
type class uint8

const (
	webpage class = iota
	document
	dataset
)

// classes are the names of the classes, and of their site in biblatex's data model.
var classes = [...]struct{ bibtex, site, ris, csl, untitled string }{
	webpage:  {"online", "organization", "ELEC", "webpage", "webpage"},
	document: {"misc", "organization", "GEN", "document", "document"},
	dataset:  {"dataset", "publisher", "DATA", "dataset", "data set"},
}

func newItems(entries []Entry) []item {
	items := make([]item, len(entries))
	taken := make(map[string]bool, len(entries))
	for i := range entries {
		items[i] = newItem(&entries[i])
		items[i].key = uniqueKey(items[i].baseKey(), taken)
	}
	return items
}

func newItem(e *Entry) item {
	s := &e.Source
	it := item{
		number: e.Number,
		title:  text.Line(s.Title, 0),
		site:   text.Line(s.Site, 0),
		url:    cleanURL(s.URL),
		issued: parseDate(s.PublishedAt),
	}
	for _, author := range s.Authors {
		if n := parseName(text.Line(author, 0)); n != (name{}) {
			it.names = append(it.names, n)
		}
	}
	it.doi = doi(it.url)
	it.class, it.genre = classify(s, it.url)
	if it.title == "" {
		it.title = text.Line(s.Filename, 0)
	}
	if it.url != "" {
		it.accessed = dateOf(e.Accessed)
		if !it.accessed.known() {
			it.accessed = dateOf(s.RetrievedAt)
		}
	}
	if it.class == document && s.Kind == ibid.File {
		it.pages = pageRange(s.Chunks)
	}
	return it
}

// classify decides what a source is, see the package's documentation, and describes what has no class of its own.
func classify(s *ibid.Source, address string) (class, string) {
	ext := strings.ToLower(path.Ext(fileName(s, address)))
	switch {
	case dataFiles[ext] && s.Kind != ibid.Tool:
		return dataset, ""
	case s.Kind == ibid.File, address != "" && documentFiles[ext]:
		return document, ""
	case address != "", s.Kind == ibid.Web, s.Kind == "":
		return webpage, ""
	case s.Kind == ibid.Tool:
		return document, "Tool output"
	case s.Kind == ibid.Image:
		return document, "Image"
	case s.Kind == ibid.Map:
		return document, "Map"
	}
	return document, "Unpublished document"
}

// fileName returns the most likely name of the source's file.
func fileName(s *ibid.Source, address string) string {
	if s.Filename != "" {
		return s.Filename
	}
	if u, err := url.Parse(address); err == nil && path.Ext(u.Path) != "" {
		return u.Path
	}
	// The title of a web page may end in a file name that the page is about.
	if s.Kind == ibid.File || s.Kind != ibid.Web && !strings.ContainsRune(strings.TrimSpace(s.Title), ' ') {
		return strings.TrimSpace(s.Title)
	}
	return ""
}

// The names of files that are data, and documents.
var (
	dataFiles = set(`.csv .tsv .xls .xlsx .ods .json .jsonl .ndjson .geojson .parquet .feather .arrow .avro .orc .sqlite
		.sav .dta .rds .hdf5 .h5 .nc`)
	documentFiles = set(".pdf .ps .doc .docx .odt .rtf .ppt .pptx .odp .epub .tex")
)

// set returns the words of a list.
func set(list string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		words[word] = true
	}
	return words
}

// pageRange returns the first and last page if the chunks name exactly one range of several pages.
func pageRange(chunks []ibid.Chunk) []int {
	var pages []int
	for i := range chunks {
		l := chunks[i].Locator
		switch {
		case l == nil || l.Page == 0 && len(l.Pages) == 0:
		case len(l.Pages) != 2 || l.Pages[0] < 1 || l.Pages[0] >= l.Pages[1]:
			return nil
		case pages != nil && (pages[0] != l.Pages[0] || pages[1] != l.Pages[1]):
			return nil
		default:
			pages = []int{l.Pages[0], l.Pages[1]}
		}
	}
	return pages
}

// date is a day, a month (day 0), a year (month 0) or unknown (year 0).
type date struct {
	year  int
	month time.Month
	day   int
}

// parseDate reads an ISO 8601 date of any precision, or the day of an RFC 3339 time as written. Anything else is
// unknown.
func parseDate(s string) date {
	s = strings.TrimSpace(s)
	day := s
	if len(s) > 10 && (s[10] == 'T' || s[10] == 't' || s[10] == ' ') {
		day = s[:10]
	}
	if t, err := time.Parse("2006-01-02", day); err == nil {
		return dateOf(t)
	}
	if t, err := time.Parse("2006-01", s); err == nil {
		return date{year: t.Year(), month: t.Month()}
	}
	if t, err := time.Parse("2006", s); err == nil {
		return date{year: t.Year()}
	}
	return date{}
}

// dateOf returns the day of t in t's own location; the zero time is no day.
func dateOf(t time.Time) date {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return date{}
	}
	return date{year: t.Year(), month: t.Month(), day: t.Day()}
}

func (d date) known() bool { return d.year > 0 }

// format returns the date in the layout of package time for its precision; empty if it is unknown.
func (d date) format(year, month, day string) string {
	switch {
	case !d.known():
		return ""
	case d.month == 0:
		day = year
	case d.day == 0:
		day = month
	}
	return time.Date(d.year, max(d.month, 1), max(d.day, 1), 0, 0, 0, 0, time.UTC).Format(day)
}

// iso returns the date in ISO 8601.
func (d date) iso() string { return d.format("2006", "2006-01", "2006-01-02") }

// american returns the date as Chicago writes it: March 5, 2024.
func (d date) american() string { return d.format("2006", "January 2006", "January 2, 2006") }

// short returns the date as MLA writes it: 5 Mar. 2024. Month names of up to four letters are not shortened.
func (d date) short() string {
	name := "Jan."
	switch {
	case len(d.month.String()) <= 4:
		name = "January"
	case d.month == time.September:
		name = "Sept."
	}
	return d.format("2006", name+" 2006", "2 "+name+" 2006")
}

// parts returns the known ones of year, month and day.
func (d date) parts() []int {
	switch {
	case !d.known():
		return nil
	case d.month == 0:
		return []int{d.year}
	case d.day == 0:
		return []int{d.year, int(d.month)}
	}
	return []int{d.year, int(d.month), d.day}
}
