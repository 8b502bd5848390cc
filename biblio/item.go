package biblio

import (
	"net/url"
	"path"
	"strings"

	"github.com/ibidhq/ibid"
)

// item is an entry as all formats need it: its words are cleaned, its kind decided. An empty field is not known.
type item struct {
	number   int
	key      string
	class    class
	genre    string // what it is, where the class does not say it
	names    []name
	title    string
	site     string
	url      string
	doi      string
	issued   date
	accessed date
	pages    []int // first and last
}

// class is what a source is to a bibliography.
type class uint8

const (
	webpage class = iota
	document
	dataset
)

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
		title:  clean(s.Title),
		site:   clean(s.Site),
		url:    cleanURL(s.URL),
		issued: parseDate(s.PublishedAt),
	}
	for _, author := range s.Authors {
		if n := parseName(clean(author)); n != (name{}) {
			it.names = append(it.names, n)
		}
	}
	it.doi = doi(it.url)
	it.class, it.genre = classify(s, it.url)
	if it.title == "" {
		it.title = clean(s.Filename)
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

// classify decides what a source is, see the package's documentation, and describes what no class describes.
func classify(s *ibid.Source, address string) (class, string) {
	ext := strings.ToLower(path.Ext(fileName(s, address)))
	switch {
	case isData(ext) && s.Kind != ibid.Tool:
		return dataset, ""
	case s.Kind == ibid.File, address != "" && isDocument(ext):
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

// fileName returns what looks most like the name of the source's file.
func fileName(s *ibid.Source, address string) string {
	if s.Filename != "" {
		return s.Filename
	}
	if u, err := url.Parse(address); err == nil && path.Ext(u.Path) != "" {
		return u.Path
	}
	// The title of a web page may end in a file name that it writes about.
	if s.Kind == ibid.File || s.Kind != ibid.Web && !strings.ContainsRune(strings.TrimSpace(s.Title), ' ') {
		return strings.TrimSpace(s.Title)
	}
	return ""
}

func isData(ext string) bool {
	switch ext {
	case ".csv", ".tsv", ".xls", ".xlsx", ".ods", ".json", ".jsonl", ".ndjson", ".geojson", ".parquet", ".feather",
		".arrow", ".avro", ".orc", ".sqlite", ".sav", ".dta", ".rds", ".hdf5", ".h5", ".nc":
		return true
	}
	return false
}

func isDocument(ext string) bool {
	switch ext {
	case ".pdf", ".ps", ".doc", ".docx", ".odt", ".rtf", ".ppt", ".pptx", ".odp", ".epub", ".tex":
		return true
	}
	return false
}

// pageRange returns first and last page if the chunks name exactly one range of several pages.
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
