package snapshot

import (
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of what is read of what a page says of itself.
const (
	maxFact   = 1000      // bytes of a title, a name and the like
	maxPeople = 50        // authors
	maxLinked = 256 << 10 // bytes of one JSON-LD script
	maxLevels = 6         // of objects in it
)

// pageFacts is what a page says of itself: of each fact, what its sources say, the most trusted first.
type pageFacts struct {
	title, ogTitle, ldTitle   string
	authors, ldAuthors        []string
	published, ldPublished    string
	language, locale          string
	site, application, ldSite string
	license, rights           string
	canonical                 string
}

// element reads what an element anywhere in the page says.
func (f *pageFacts) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Html:
		first(&f.language, attr(n, "lang"))
	case atom.Script:
		if n.FirstChild != nil && strings.EqualFold(attr(n, "type"), "application/ld+json") {
			f.linked(n.FirstChild.Data)
		}
	case atom.A, atom.Link:
		rel := strings.Fields(strings.ToLower(attr(n, "rel")))
		if slices.Contains(rel, "license") {
			first(&f.license, attr(n, "href"))
		}
		if n.DataAtom == atom.Link && slices.Contains(rel, "canonical") {
			first(&f.canonical, attr(n, "href"))
		}
	case atom.Meta:
		f.meta(n)
	default:
	}
}

// head reads what stands in the head, of which no text is visible.
func (f *pageFacts) head(head *html.Node) {
	for n := head.FirstChild; n != nil; n = n.NextSibling {
		if n.Type != html.ElementNode {
			continue
		}
		f.element(n)
		if n.DataAtom == atom.Title && n.FirstChild != nil {
			first(&f.title, n.FirstChild.Data)
		}
	}
}

func (f *pageFacts) meta(n *html.Node) {
	name := attr(n, "name")
	if name == "" {
		name = attr(n, "property")
	}
	content := attr(n, "content")
	switch strings.ToLower(name) {
	case "og:title", "twitter:title", "citation_title", "dc.title":
		first(&f.ogTitle, content)
	case "author", "article:author", "citation_author", "dc.creator", "dcterms.creator":
		if !strings.Contains(content, "://") { // some name a profile's address
			f.authors = addPerson(f.authors, content)
		}
	case "article:published_time", "citation_publication_date", "citation_date", "dc.date", "dcterms.created", "date",
		"pubdate", "datepublished", "parsely-pub-date":
		first(&f.published, isoDate(content))
	case "og:site_name":
		first(&f.site, content)
	case "application-name":
		first(&f.application, content)
	case "og:locale":
		first(&f.locale, strings.ReplaceAll(content, "_", "-"))
	case "dc.rights", "dcterms.license", "license":
		first(&f.rights, content)
	}
}

// linked reads a JSON-LD script.
func (f *pageFacts) linked(text string) {
	if len(text) > maxLinked {
		return
	}
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		f.linkedValue(v, 0)
	}
}

func (f *pageFacts) linkedValue(v any, depth int) {
	if depth > maxLevels {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			f.linkedValue(item, depth+1)
		}
	case map[string]any:
		if _, article := v["headline"]; article || v["datePublished"] != nil {
			first(&f.ldTitle, text(v["headline"]), text(v["name"]))
			first(&f.ldPublished, isoDate(text(v["datePublished"])))
			first(&f.ldSite, name(v["publisher"]))
			first(&f.license, text(v["license"]))
			if f.ldAuthors == nil {
				f.ldAuthors = people(v["author"])
			}
		}
		f.linkedValue(v["@graph"], depth+1)
		f.linkedValue(v["mainEntity"], depth+1)
	}
}

// text returns a JSON string; of anything else nothing.
func text(v any) string {
	s, _ := v.(string)
	return s
}

// name returns what a person or an organisation is called.
func name(v any) string {
	if o, ok := v.(map[string]any); ok {
		return text(o["name"])
	}
	return text(v)
}

// people returns what one or several persons are called.
func people(v any) []string {
	var all []string
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, item := range list {
		if who := name(item); !strings.Contains(who, "://") {
			all = addPerson(all, who)
		}
	}
	return all
}

// fill puts what is known into t.
func (f *pageFacts) fill(t *Text) {
	first(&t.Title, f.title, f.ogTitle, f.ldTitle)
	t.Authors = f.authors
	if t.Authors == nil {
		t.Authors = f.ldAuthors
	}
	first(&t.PublishedAt, f.published, f.ldPublished)
	first(&t.Language, f.language, f.locale)
	first(&t.Site, f.site, f.ldSite, f.application)
	first(&t.License, f.license, f.rights)
	first(&t.URL, f.canonical)
}

// first sets s to the first of all that says something, unless it does already.
func first(s *string, all ...string) {
	for _, one := range all {
		if *s != "" {
			return
		}
		if one = Normalize(one); len(one) <= maxFact {
			*s = one
		}
	}
}

// addPerson adds an author whom nobody has named yet.
func addPerson(all []string, who string) []string {
	who = Normalize(who)
	if who == "" || len(who) > maxFact || len(all) >= maxPeople || slices.Contains(all, who) {
		return all
	}
	return append(all, who)
}
