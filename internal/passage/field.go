package passage

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// field is a part of a passage that members of a document give.
type field int

const (
	fieldText field = iota
	fieldID
	fieldURL
	fieldTitle
	fieldFilename
	fieldPage
	fieldSite
	fieldAuthor
	fieldDate
	fieldChunk
	fieldScore
	fieldSource // an address, a file, an id or a site
	fieldLabel
	fieldCount
)

// fieldNames are the names of members, normalized, best first: those of LangChain, LlamaIndex, Haystack, the
// providers' searches and the services and stores that agents search.
var fieldNames = [fieldCount]string{
	fieldText: `text content pagecontent exact relevantchunk chunktext chunkcontent passagetext passage chunk body
		document snippet snippets excerpt excerpts extract highlights highlight pagetext fulltext rawtext textcontent
		markdown rawcontent contents quote citedtext data | summary abstract description blurb value`,
	fieldID: "documentid docid id fileid nodeid sourceid pageid recordid uuid doi key",
	fieldURL: `url uri link href sourceurl sourceuri weburl htmlurl permalink pageurl documenturl webpageurl
		canonicalurl address`,
	fieldTitle: `documenttitle title headline pagetitle subject heading sourcetitle sourcedisplayname displayname
		sourcename semanticidentifier |
		name`,
	fieldFilename: "filename file path filepath",
	fieldPage:     "pagenumber pagelabel page",
	fieldSite:     "sitename site publisher domain hostname",
	fieldAuthor:   "author authors byline creator",
	fieldDate:     "publishedat publisheddate publicationdate datepublished date published pageage pubdate",
	fieldChunk:    "chunkid chunkindex",
	fieldScore: `score relevancescore similarity similarityscore rerankscore rerankerscore relevance searchscore
		rankscore`,
	fieldSource: "source",
	fieldLabel:  "citationid refid referenceid label",
}

// placedField is a field with the rank of a name among its names.
type placedField struct {
	field field
	rank  int
	weak  bool // the name may mean something else: words about the document, a name that is no title
}

var fields = func() map[string]placedField {
	all := map[string]placedField{}
	for f, names := range fieldNames {
		weak := false
		for rank, name := range strings.Fields(names) {
			if name == "|" {
				weak = true
				continue
			}
			all[name] = placedField{field(f), rank, weak}
		}
	}
	return all
}()

// fieldOfName returns the field that a member with a normalized name gives. A noun before a known name counts less than
// that name alone: doc_link, chunk_body, article_title.
func fieldOfName(name string) (f placedField, ok bool) {
	if f, ok = fields[name]; ok {
		return f, true
	}
	for _, noun := range fieldNouns {
		if rest, cut := strings.CutPrefix(name, noun); cut {
			if f, ok = fields[rest]; ok && f.field != fieldScore {
				f.rank += perLevel / 2
				return f, true
			}
		}
	}
	return f, false
}

func set(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

var (
	// inner are members that hold more members of the same document.
	inner = set(`metadata meta data document node resource payload fields source attributes extrainfo properties
		location s3location weblocation structdata derivedstructdata retrievedcontext web chunk documentmetadata
		target selector citation page citedsource record additional`)
	// carriers are members that hold documents, whatever else an object has.
	carriers = set(`documents docs results result sources passages chunks matches hits items data context contexts
		searchresults retrieveddocuments retrieveditems retrievalresults organic organicresults output outputs response
		blocks records nodes sourcenodes value webpages web news articles entries list pages content artifact
		structuredcontent kwargs messages citations references returnvalue toolresult update groundingchunks searches
		snippets findings evidence`)
	// notResults are members whose lists are never documents.
	notResults = set(`toolcalls arguments input inputs queries request requests params parameters tools
		usage tags topics images relatedquestions peoplealsoask followupquestions tooluse`)
	// beside are members of a wrapper that say nothing of its content.
	beside = set(`type id name status success ok iserror error toolcallid tooluseid callid meta annotations lc
		artifact additionalkwargs responsemetadata mimetype state duration tool toolname role`)
)

// normal returns a member's name in lower case with nothing but letters and digits, without a prefix such as schema:.
func normal(key []byte) string {
	key = key[bytes.LastIndexByte(key, ':')+1:]
	if len(key) > 40 {
		return ""
	}
	var b [40]byte
	n := 0
	for _, c := range key {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		default:
			continue
		}
		b[n] = c
		n++
	}
	return string(b[:n])
}

// draft is a document as it is read.
type draft struct {
	Passage

	ranks  [fieldCount]int // of the name that gave each field, from 1
	weak   bool            // Text describes the document
	source string
	// holdsLists reports that a member may be a list of documents.
	holdsLists bool
}

func (d *draft) named() bool {
	return d.ID != "" || d.URL != "" || d.Title != "" || d.Filename != ""
}

// isDocument reports whether the object is a document by itself: it has words and a name. Words that only describe
// something need an address or a title.
func (d *draft) isDocument() bool {
	return d.Text != "" && (d.named() || d.Label != "") && (!d.weak || d.URL != "" || d.Title != "")
}

// linked reports whether a document without words is one: it has an address and a title.
func (d *draft) linked() bool { return d.URL != "" && d.Title != "" }

// maxInner is how many levels deep the members of a document may be.
const maxInner = 4

// read reads the members of an object as those of a document.
func read(v scan.Value) draft {
	d := draft{}
	d.members(v, 0)
	d.Raw = v
	if d.source != "" {
		switch {
		case isAddress(d.source):
			if d.URL == "" {
				d.URL = d.source
			}
		case d.URL == "" && d.ID == "":
			d.ID = d.source
		case d.Site == "":
			d.Site = d.source
		}
	}
	if d.Title == "" {
		d.Title = d.Filename
	}
	d.Text = strings.TrimSpace(d.Text)
	return d
}

// objectIn returns the JSON object in a string, or nil.
func objectIn(v scan.Value) scan.Value {
	if text := strings.TrimSpace(v.Str()); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return scan.Value(text)
	}
	return nil
}

// perLevel is more than the number of names of any field, so that members of the document itself come first.
const perLevel = 100

func (d *draft) members(v scan.Value, level int) {
	if level > 0 && string(v.Get("type")) == `"base64"` {
		return
	}
	for o := scan.Members(v); o.Next(); {
		if o.Cut() || o.Val.IsNull() {
			continue
		}
		name := normal(o.Key)
		f, ok := fieldOfName(name)
		if ok {
			d.set(f, name, o.Val, level)
		}
		if level == 0 && o.Val.IsArray() && carriers[name] && f.field != fieldText {
			d.holdsLists = true
		}
		if !inner[name] || level == maxInner {
			continue
		}
		switch {
		case o.Val.IsObject():
			d.members(o.Val, level+1)
		case o.Val.IsArray() && name == "selector":
			for e := scan.Elements(o.Val); e.Next(); {
				d.members(e.Val, level+1)
			}
		case o.Val.IsString() && (name == "data" || strings.HasPrefix(name, "meta")):
			if text := objectIn(o.Val); text != nil {
				d.members(text, level+1)
			}
		}
	}
}

// authorsIn returns the names in a text, or in a list of texts or objects.
func authorsIn(v scan.Value) (authors []string) {
	if v.IsString() {
		return []string{strings.TrimSpace(v.Str())}
	}
	for e := scan.Elements(v); e.Next() && len(authors) < 100; {
		if a := e.Val.Str(); a != "" {
			authors = append(authors, a)
		} else if a = e.Val.Get("name").Str(); a != "" {
			authors = append(authors, a)
		}
	}
	return authors
}

// set sets a field, unless a better name has given it.
func (d *draft) set(f placedField, name string, v scan.Value, level int) {
	rank := 1 + level*perLevel + f.rank
	if f.weak && f.field == fieldTitle {
		rank += (maxInner + 1) * perLevel
	}
	if d.ranks[f.field] != 0 && d.ranks[f.field] <= rank {
		return
	}
	text := ""
	switch {
	case f.field == fieldText:
		text = words(v, 0)
		if name == "data" && (!v.IsString() || objectIn(v) != nil) || name == "value" && !v.IsString() {
			text = ""
		}
	case v.IsString():
		text = strings.TrimSpace(v.Str())
	case f.field == fieldAuthor || f.field == fieldScore:
	case len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9'):
		text = string(v)
	}
	switch f.field {
	case fieldScore:
		score := v.Number()
		if score == nil {
			return
		}
		d.Score = score
	case fieldAuthor:
		authors := authorsIn(v)
		if authors == nil {
			return
		}
		d.Authors = authors
	case fieldURL:
		if !isAddress(text) {
			if text != "" && d.source == "" { // note://7, s3://bucket/key, /docs/a
				d.source = text
			}
			return
		}
		d.URL = text
	default:
		if text == "" {
			return
		}
		*d.of(f.field) = text
	}
	d.ranks[f.field] = rank
	if f.field == fieldText {
		d.weak = f.weak
	}
}

func (d *draft) of(f field) *string {
	switch f {
	case fieldText:
		return &d.Text
	case fieldID:
		return &d.ID
	case fieldTitle:
		return &d.Title
	case fieldFilename:
		return &d.Filename
	case fieldPage:
		return &d.Page
	case fieldSite:
		return &d.Site
	case fieldDate:
		return &d.PublishedAt
	case fieldChunk:
		return &d.ChunkID
	case fieldLabel:
		return &d.Label
	default:
		return &d.source
	}
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// words returns the words in a member: a string, a list of strings or of text blocks, or an object around one.
func words(v scan.Value, depth int) string {
	switch {
	case depth > 3 || v.IsNull():
		return ""
	case v.IsString():
		return v.Str()
	case v.IsObject():
		if kind := v.Get("type").Str(); blocks[kind] == blockMedia {
			return ""
		}
		if data := objectIn(v.Get("data")); data != nil {
			return words(data, depth+1)
		}
		return words(v.Get("text", "content", "value", "markdown", "data"), depth+1)
	case v.IsArray():
		var all []string
		for e := scan.Elements(v); e.Next(); {
			if text := strings.TrimSpace(words(e.Val, depth+1)); text != "" {
				all = append(all, text)
			}
		}
		return strings.Join(all, "\n")
	}
	return ""
}
