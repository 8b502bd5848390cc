package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// readHTML reads a page according to t.Profile.
func readHTML(t *Text, b []byte, params map[string]string) error {
	if t.MediaType == typeXHTML && params["charset"] == "" {
		if name := declared(b[:min(len(b), prescanned)]); name != "" {
			params = map[string]string{"charset": name}
		}
	}
	older := t.Profile == TextProfile1
	read := decode
	if !older {
		read = decodeLikely
	}
	noType := params == nil // a file, which has no declared charset
	b, name, err := read(b, params, prescan, noType)
	if err != nil {
		return err
	}
	t.Charset = name
	if err := guardHTML(b); err != nil {
		return err
	}
	root, err := html.ParseWithOptions(bytes.NewReader(b), html.ParseOptionEnableScripting(older))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTooDeep, err) // the only error of a reader of bytes
	}
	w := htmlWalk{older: older, signs: pageSigns{size: len(b)}}
	w.walk(root)
	w.finish(t)
	facts := &w.facts
	first(&t.Title, facts.title, facts.ogTitle, facts.ldTitle)
	if t.Authors = facts.authors; t.Authors == nil {
		t.Authors = facts.ldAuthors
	}
	first(&t.PublishedAt, facts.published, facts.ldPublished)
	first(&t.Language, facts.language, facts.locale)
	first(&t.Site, facts.site, facts.ldSite, facts.application)
	first(&t.License, facts.license, facts.rights)
	first(&t.URL, facts.canonical)
	if !older {
		t.Obstacle = w.signs.obstacle(t)
	}
	return nil
}

// Classes of elements.
var (
	// without visible text, in ibid-text/1; see skipped2
	hiddenElements = elementSet("head script style template noscript iframe object svg select textarea")
	// with line breaks around them
	blockElements = elementSet(`address article aside blockquote body br caption center dd details dialog div dl dt
		fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p
		pre search section summary table tbody td tfoot th thead tr ul`)
	// reopened if they were not closed
	formattingElements = elementSet("a b big code em font i nobr s small strike strong tt u")
)

func elementSet(names string) map[atom.Atom]bool {
	set := map[atom.Atom]bool{}
	for name := range strings.FieldsSeq(names) {
		set[atom.Lookup([]byte(name))] = true
	}
	return set
}

// htmlWalk collects the visible text of a page. It does not recurse, because trees can be deeper than the parser's
// stack.
type htmlWalk struct {
	stream
	older bool       // read by ibid-text/1
	kinds []htmlKind // of the open block elements
	facts pageFacts
	signs pageSigns
	join  bool // leave out white space at the start of the next text: it continues a word
}

// htmlKind is the kind of the text in an element.
type htmlKind struct {
	of    *html.Node // nil means the document
	kind  BlockKind
	level int
	apart bool
}

func (w *htmlWalk) walk(root *html.Node) {
	w.kinds = append(w.kinds[:0], htmlKind{kind: Paragraph})
	for n := root; n != nil; {
		inside := n.Type == html.DocumentNode
		switch n.Type {
		case html.TextNode:
			if w.join {
				n.Data, w.join = strings.TrimLeft(n.Data, " \t\r\n"), false
			}
			w.raw = append(w.raw, n.Data...)
		case html.ElementNode:
			w.facts.element(n)
			inside = w.element(n)
		default:
		}
		if inside && n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for {
			if last := len(w.kinds) - 1; w.kinds[last].of == n { // the enclosing block continues
				k := w.kinds[last-1]
				w.kinds = w.kinds[:last]
				w.beginBlock(k.kind, k.level, 0, k.apart)
			}
			if n == root {
				return
			}
			if n.NextSibling != nil {
				n = n.NextSibling
				break
			}
			n = n.Parent
		}
	}
}

// element begins an element, and reports whether its content is read.
func (w *htmlWalk) element(n *html.Node) bool {
	if w.older {
		if hiddenElements[n.DataAtom] || slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
			return a.Key == "hidden" && a.Namespace == ""
		}) {
			return false
		}
		if blockElements[n.DataAtom] {
			w.open(n, false)
		}
		return true
	}
	w.signs.element(n)
	how := w.how(n)
	if how == readNot {
		return false
	}
	if text, ok := w.scripted(n); ok {
		w.raw = append(w.raw, text...)
		return false
	}
	if isDropCap(n) {
		w.raw = append(w.raw, strings.TrimSpace(textOf(n, maxMark))...)
		w.join = true
		return false
	}
	if how == readApart || blockElements[n.DataAtom] {
		w.open(n, how == readApart)
	}
	return true
}

// open begins the block of an element.
func (w *htmlWalk) open(n *html.Node, apart bool) {
	k := w.kindOf(n)
	k.apart = apart || w.kinds[len(w.kinds)-1].apart
	w.kinds = append(w.kinds, k)
	w.beginBlock(k.kind, k.level, 0, k.apart)
}

// kindOf returns the kind of the text in a block element: that of the enclosing one unless the element has its own.
func (w *htmlWalk) kindOf(n *html.Node) htmlKind {
	k := htmlKind{of: n}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		k.kind, k.level = Heading, int(n.Data[1]-'0')
	case atom.Li, atom.Dt, atom.Dd:
		k.kind = Item
	case atom.Td, atom.Th, atom.Caption:
		k.kind = Cell
	case atom.Pre:
		k.kind = Code
	default:
		around := w.kinds[len(w.kinds)-1]
		k.kind, k.level = around.kind, around.level
	}
	return k
}

// maxHTMLNodes is the maximum number of nodes of a parsed page, as an upper estimate. A page with a tag every hundred
// bytes reaches it at 200 MB.
const maxHTMLNodes = 2_000_000

// guardHTML refuses a page whose tree would be many times as large as the page: unclosed elements such as <b> are
// reopened in each following block, with all their attributes, and the attributes of each <html> and <body> are
// compared with the earlier ones.
func guardHTML(b []byte) error {
	z := html.NewTokenizer(bytes.NewReader(b))
	open := openFormatting{count: map[string]int{}}
	nodes, global := 0, 0
	foreign := false
	for nodes <= maxHTMLNodes {
		kind := z.Next()
		if kind == html.ErrorToken {
			return nil
		}
		nodes++
		if kind != html.StartTagToken && kind != html.EndTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		raw, more := z.TagName()
		name := atom.Lookup(raw)
		weight := 1
		for more {
			_, _, more = z.TagAttr()
			weight++
		}
		nodes += weight / 4 // an attribute has a quarter of a node's size
		foreign = foreign || name == atom.Svg || name == atom.Math
		if foreign || name != atom.Script && name != atom.Style {
			z.NextIsNotRawText() // the parser may not treat it as raw text either
		}
		switch {
		case formattingElements[name] && kind == html.EndTagToken:
			open.close(name)
		case formattingElements[name]:
			open.open(name, string(z.Raw()), weight)
		case name == atom.Html, name == atom.Body:
			global += weight
			nodes += open.weight + global
		default:
			nodes += open.weight
		}
	}
	return fmt.Errorf("%w: its tree has more than %d nodes", ErrTooLarge, maxHTMLNodes)
}

// openFormatting tracks the elements that would be reopened. The parser remembers at most three equal ones.
type openFormatting struct {
	stack  []formatTag
	count  map[string]int // by the tag's source
	weight int            // of all
}

type formatTag struct {
	name   atom.Atom
	tag    string
	weight int
}

func (f *openFormatting) open(name atom.Atom, tag string, weight int) {
	const alike = 3
	if f.count[tag] >= alike {
		return
	}
	f.count[tag]++
	f.weight += weight
	f.stack = append(f.stack, formatTag{name, tag, weight})
}

func (f *openFormatting) close(name atom.Atom) {
	const depth = 64 // how deep an element is searched for
	for i := len(f.stack) - 1; i >= max(0, len(f.stack)-depth); i-- {
		if t := f.stack[i]; t.name == name {
			f.weight -= t.weight
			f.count[t.tag]--
			f.stack = append(f.stack[:i], f.stack[i+1:]...)
			return
		}
	}
}

// attr returns an attribute of an element, or "" if it does not have it.
func attr(n *html.Node, key string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
			return strings.TrimSpace(n.Attr[i].Val)
		}
	}
	return ""
}

// Bounds for a page's metadata.
const (
	maxFact   = 1000      // bytes of a title, a name and the like
	maxPeople = 50        // authors
	maxLinked = 256 << 10 // bytes of one JSON-LD script
	maxLevels = 6         // of objects in it
)

// pageFacts is the metadata of a page, each fact by source, most trusted first.
type pageFacts struct {
	title, ogTitle, ldTitle   string
	authors, ldAuthors        []string
	published, ldPublished    string
	language, locale          string
	site, application, ldSite string
	license, rights           string
	canonical                 string
}

// element reads the metadata in an element anywhere in the page.
func (f *pageFacts) element(n *html.Node) {
	switch n.DataAtom {
	case atom.Html:
		first(&f.language, attr(n, "lang"))
	case atom.Script:
		if n.FirstChild != nil && strings.EqualFold(attr(n, "type"), "application/ld+json") {
			var v any
			if data := n.FirstChild.Data; len(data) <= maxLinked && json.Unmarshal([]byte(data), &v) == nil {
				f.linkedValue(v, 0)
			}
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
	case atom.Head: // its text is not visible
		for inner := n.FirstChild; inner != nil; inner = inner.NextSibling {
			if inner.Type != html.ElementNode {
				continue
			}
			f.element(inner)
			if inner.DataAtom == atom.Title && inner.FirstChild != nil {
				first(&f.title, inner.FirstChild.Data)
			}
		}
	default:
	}
}

// meta reads a meta element.
func (f *pageFacts) meta(n *html.Node) {
	content := attr(n, "content")
	switch strings.ToLower(cmp.Or(attr(n, "name"), attr(n, "property"))) {
	case "og:title", "twitter:title", "citation_title", "dc.title":
		first(&f.ogTitle, content)
	case "author", "article:author", "citation_author", "dc.creator", "dcterms.creator":
		if !strings.Contains(content, "://") { // sometimes it is a profile's address
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

// linkedValue reads a value of a JSON-LD script.
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
			first(&f.ldTitle, jsonString(v["headline"]), jsonString(v["name"]))
			first(&f.ldPublished, isoDate(jsonString(v["datePublished"])))
			first(&f.ldSite, nameOf(v["publisher"]))
			first(&f.license, jsonString(v["license"]))
			if f.ldAuthors == nil {
				f.ldAuthors = people(v["author"])
			}
		}
		f.linkedValue(v["@graph"], depth+1)
		f.linkedValue(v["mainEntity"], depth+1)
	}
}

// jsonString returns v if it is a string, else "".
func jsonString(v any) string {
	s, _ := v.(string)
	return s
}

// nameOf returns the name of a person or organisation.
func nameOf(v any) string {
	if o, ok := v.(map[string]any); ok {
		return jsonString(o["name"])
	}
	return jsonString(v)
}

// people returns the names of one or several persons.
func people(v any) []string {
	var all []string
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, item := range list {
		if who := nameOf(item); !strings.Contains(who, "://") {
			all = addPerson(all, who)
		}
	}
	return all
}

// first sets s to the first of all that is not blank, unless s is already set.
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

// addPerson adds an author, once.
func addPerson(all []string, who string) []string {
	who = Normalize(who)
	if who == "" || len(who) > maxFact || len(all) >= maxPeople || slices.Contains(all, who) {
		return all
	}
	return append(all, who)
}
