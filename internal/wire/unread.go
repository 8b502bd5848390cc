package wire

import (
	"bytes"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// reads is a tree of the members of a format that may look like sources or citations and are read, or are known to be
// something else. Names are in lower case without underscores.
type reads struct {
	members map[string]*reads
	whole   bool // what is below is its parser's: members that readBelow lacks are reported, unless it is opaque
	inside  bool // it is below a member that is whole
	opaque  bool // what is below is not the format's
	named   bool // its own name is no reason to report it
	rest    bool // nor is that of any of its members
}

// readPaths returns reads for paths separated by white space. What is below the end of a path is whole; below a
// path that ends in a slash it is, but the member itself is not reported; below one that ends in a star only what is an
// object or a list is searched.
func readPaths(paths string) *reads {
	root := &reads{}
	for path := range strings.FieldsSeq(paths + commonReads) {
		r := root
		path, searched := strings.CutSuffix(path, "/")
		for name := range strings.SplitSeq(path, ".") {
			if name == "*" {
				r.rest = true
				continue
			}
			if r.members == nil {
				r.members = map[string]*reads{}
			}
			next := r.members[name]
			if next == nil {
				next = &reads{}
				r.members[name] = next
			}
			r = next
		}
		r.named = true
		r.whole = !searched && !strings.HasSuffix(path, "*")
		r.opaque = r.whole && opaqueNames[path[strings.LastIndexByte(path, '.')+1:]]
	}
	return root
}

// member returns what is known of a member, nil if nothing.
func (r *reads) member(name []byte) *reads {
	if r == nil || r.members == nil && !r.whole && !r.inside {
		return nil
	}
	var room [64]byte
	folded := appendFolded(room[:0], name)
	switch {
	case !r.whole && !r.inside:
		return r.members[string(folded)]
	case opaqueNames[string(folded)]:
		return opaqueReads
	case readBelow[string(folded)]:
		return insideReads
	case isSourceName(name):
		return nil
	}
	return insideUnnamed
}

// The members below those that are whole: known by their names, with any other name, and not the format's.
var (
	insideReads   = &reads{inside: true, named: true}
	insideUnnamed = &reads{inside: true}
	opaqueReads   = &reads{whole: true, opaque: true, named: true}
)

// searched reports whether a list is reported for the shape of its elements.
func (r *reads) searched() bool { return r == nil || r == insideUnnamed }

// opaqueNames are members with what tools were given and returned, and other JSON that has no fixed names.
var opaqueNames = set(`input inputs arguments args result results output outputs response content data metadata tools
	toolcalls toolcall functioncall functionresponse tooluse toolresult toolresults inlinedata json value parameters
	structdata derivedstructdata attributes usage event raw executedtools chathistory trace caller document customdata
	custommetadata promptfeedback instructions prompt error logprobs query queries`)

// readBelow are members of known formats that look like sources by their names.
var readBelow = set(`allretrieveddocuments annotation annotationindex annotations citation citationmetadata citations
	citationscontent citationsdelta citationsources containerfilecitation cortexsearchcitation documentcitation
	documents fileannotation filecitation functioncitation googlesearchresult groundingcheckrequired
	groundingchunkindices groundingchunks groundingmetadata groundingscore groundingsupports placeanswersources
	placecitation reference referenceid referenceids referenceindex references retrievalqueries retrievedcontext
	retrievedreferences retrievedurl retrieverresources reviewsnippets searchinfo searchresult searchresultid
	searchresultindex searchresultlocation searchresults snippets source sourcecontent sources sourceuri
	sourceurl textannotation textannotationdelta toolreference urlcitation urlretrievalstatus
	vertexaigroundingmetadata websearch websearchcall websearchqueries websearchresult websearchresultlocation
	websearchresults websearchtoolresult`)

// set returns a set of words.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		all[word] = true
	}
	return all
}

// commonReads are members that no format has sources in: what the request said, counts, and tools.
const commonReads = ` tools toolchoice usage usagemetadata input prompt instructions include parameters request
	logprobs choices.logprobs error `

// unreadDepth and unreadIssues bound the search: how deep it goes, and how many members of one document are reported.
const (
	unreadDepth  = 24
	unreadIssues = 8
)

// unread reports the members of a document that look like sources or citations, by their name or their shape, and are
// not among those that its format reads. They are few, but which ones a server adds is unknown, and a loss without a
// word is the worst of all. It reads the document once, and not what is read anyway.
func (o *out) unread(doc scan.Value, known *reads) { o.unreadBut(doc, known, nil) }

// unreadBut is unread for a format that also reads a list, which is a part of the document.
func (o *out) unreadBut(doc scan.Value, known *reads, list scan.Value) {
	var room [128]byte
	s := search{out: o, doc: doc, list: list, path: room[:0]}
	s.value(scan.SkipSpace(doc, 0), known, false, 0)
}

// ReportUnread emits an issue for each member that looks like sources of a document whose format is unknown.
func ReportUnread(doc []byte, emit func(*Op)) {
	o := out{Config: &Config{Emit: emit}}
	o.unread(doc, genericReads)
}

// search is one search of a document.
type search struct {
	*out
	doc   scan.Value
	list  scan.Value // is read; nil if there is none
	path  []byte
	found int
}

// value searches the value at an offset, and returns the offset after it, and whether it looks like a source. Listed
// means that it is an element of a list.
func (s *search) value(i int, known *reads, listed bool, depth int) (end int, isSource bool) {
	switch {
	case i >= len(s.doc):
		return i, false
	case depth > unreadDepth || known != nil && known.opaque || s.found == unreadIssues, s.isRead(i):
	case s.doc[i] == '{':
		return s.object(i, known, listed, depth)
	case s.doc[i] == '[':
		return s.elements(i, known, depth)
	}
	return scan.ValueEnd(s.doc, i), false
}

// isRead reports whether the value at an offset is the list that is read.
func (s *search) isRead(i int) bool { return len(s.list) > 0 && &s.doc[i] == &s.list[0] }

// elements searches a list whose bracket is at an offset. One of sources is one, wherever it is.
func (s *search) elements(at int, known *reads, depth int) (end int, isSource bool) {
	before := s.found
	addresses := known.searched() // all are
	for i := scan.SkipSpace(s.doc, at+1); i < len(s.doc); i = scan.SkipSpace(s.doc, i+1) {
		if s.doc[i] == ']' {
			if (isSource || addresses && s.doc[i-1] != '[') && known.searched() && s.found == before {
				s.report(s.doc[at : i+1])
			}
			return i + 1, false
		}
		addresses = addresses && (bytes.HasPrefix(s.doc[i:], []byte(`"http://`)) || bytes.HasPrefix(s.doc[i:], []byte(`"https://`)))
		var source bool
		end, source = s.value(i, known, true, depth+1)
		isSource = isSource || source
		if i = scan.SkipSpace(s.doc, end); i < len(s.doc) && s.doc[i] == ']' {
			i--
		}
	}
	return len(s.doc), false
}

// object searches an object whose brace is at an offset.
func (s *search) object(at int, known *reads, listed bool, depth int) (end int, isSource bool) {
	doc := s.doc
	address, title := false, false
	for i := scan.SkipSpace(doc, at+1); i < len(doc) && doc[i] == '"'; i = scan.SkipSpace(doc, i+1) {
		end = scan.StringEnd(doc, i+1)
		colon := scan.SkipSpace(doc, end)
		if colon >= len(doc) || doc[colon] != ':' {
			break
		}
		key := doc[i+1 : end-1]
		i = colon
		if i = scan.SkipSpace(doc, i+1); i >= len(doc) {
			break
		}
		switch doc[i] {
		case '{', '[':
			end = s.member(key, i, known, depth)
		case '"':
			end = scan.StringEnd(doc, i+1)
			if listed && known.searched() {
				address = address || isAddress(key, doc[i+1:])
				title = title || isTitle(key)
			}
			if mayBeSource(key) && !isCommon(key) && isSourceName(key) {
				end = s.member(key, i, known, depth)
			}
		default:
			end = scan.ValueEnd(doc, i)
		}
		if i = scan.SkipSpace(doc, end); i < len(doc) && doc[i] == '}' {
			return i + 1, address && title
		}
	}
	if i := scan.SkipSpace(doc, at+1); i < len(doc) && doc[i] == '}' {
		return i + 1, false
	}
	return len(doc), false
}

// member searches the member with the value at an offset, and returns the offset after it.
func (s *search) member(key []byte, i int, known *reads, depth int) (end int) {
	inside := known.member(key)
	if s.isRead(i) {
		return scan.ValueEnd(s.doc, i)
	}
	before := len(s.path)
	if before > 0 {
		s.path = append(s.path, '.')
	}
	s.path = append(s.path, key...)
	end = s.inside(key, i, inside, known, depth)
	s.path = s.path[:before]
	return end
}

// inside is member once the path is set.
func (s *search) inside(key []byte, i int, inside, known *reads, depth int) (end int) {
	switch named := inside != nil && inside != insideUnnamed || known != nil && known.rest; {
	case !named && mayBeSource(key) && !isCommon(key) && isSourceName(key):
		if end = scan.ValueEnd(s.doc, i); looksUnread(s.doc[i:end]) && !s.doc[i:end].Cut() {
			s.report(s.doc[i:end])
			return end
		}
	case !named && isMedia(key):
		return scan.ValueEnd(s.doc, i)
	}
	end, _ = s.value(i, inside, false, depth+1)
	return end
}

// report emits the issue for a value at the current path.
func (s *search) report(v scan.Value) {
	if s.found < unreadIssues {
		s.found++
		s.issue(IssueUnread, shorten(string(s.path)), v)
	}
}

// isAddress reports whether a member is the address of a page. Value begins with the string's content.
func isAddress(key, value []byte) bool {
	switch string(key) {
	case "url", "uri", "link", "href", "source_url", "web_url", "sourceUrl", "URL":
		return bytes.HasPrefix(value, []byte("http://")) || bytes.HasPrefix(value, []byte("https://"))
	}
	return false
}

// isTitle reports whether a member with this name, beside an address, makes it a source's.
func isTitle(key []byte) bool {
	switch string(key) {
	case "title", "name", "snippet", "text", "content", "passage", "excerpt", "description", "summary", "site_name",
		"cited_text", "quote", "published_date":
		return true
	}
	return false
}

// isMedia reports whether a member with this name holds pictures and the like, which have titles and addresses, too.
func isMedia(key []byte) bool {
	switch string(key) {
	case "image", "images", "video", "videos", "audio", "thumbnail", "thumbnails", "icon", "icons", "attachments",
		"image_url", "files":
		return true
	}
	return false
}

// isCommon reports whether a name is one of those that most documents have, none of which matters here.
func isCommon(key []byte) bool {
	switch string(key) {
	case "id", "object", "type", "role", "content", "text", "index", "model", "created", "choices", "message", "delta",
		"usage", "url", "title", "finish_reason", "name", "status", "output", "candidates", "parts", "item", "response",
		"event", "arguments", "item_id", "snippet", "stop_reason", "responseId", "modelVersion", "finishReason",
		"sequence_number", "output_index", "content_index", "logprobs", "start_index", "end_index", "url_citation":
		return true
	}
	return false
}

// appendFolded appends a name in lower case without underscores.
func appendFolded(b, name []byte) []byte {
	for _, c := range name {
		switch {
		case c == '_' || c == '-':
		case 'A' <= c && c <= 'Z':
			b = append(b, c+'a'-'A')
		default:
			b = append(b, c)
		}
	}
	return b
}

// looksUnread reports whether a value may hold sources: a list or an object that is not empty, or a text that is an
// address or JSON.
func looksUnread(v scan.Value) bool {
	switch {
	case v.IsString():
		text := bytes.TrimSpace(v.Content())
		return bytes.HasPrefix(text, []byte("http://")) || bytes.HasPrefix(text, []byte("https://")) ||
			len(text) > 2 && (text[0] == '[' || text[0] == '{')
	case v.IsArray():
		for a := scan.Elements(v); a.Next(); {
			if !blank(a.Val) && (a.Val.IsObject() || a.Val.IsString() || a.Val.IsArray()) {
				return true
			}
		}
		return false
	default:
		for o := scan.Members(v); o.Next(); {
			if (o.Val.IsObject() || o.Val.IsArray()) && !blank(o.Val) || looksUnread(o.Val) && o.Val.IsString() {
				return true
			}
		}
		return false
	}
}

// isSourceWord reports whether a word shows that a member has sources, after another word perhaps.
func isSourceWord(last, word []byte) bool {
	switch string(word) {
	case "citation", "citations", "cites", "reference", "references", "source", "sources", "grounding", "groundings",
		"annotation", "annotations", "evidence", "evidences", "footnote", "footnotes", "retrieved", "retriever",
		"retrieval", "retrievals", "documents", "docs", "passages", "snippets", "searched":
		return true
	case "result", "info":
		return string(last) == "search"
	case "results":
		return string(last) == "search" || string(last) == "web"
	case "search":
		return string(last) == "web"
	case "list":
		return string(last) == "quote"
	}
	return false
}

// sourceBegins has the first two letters of the words of isSourceWord: the second ones as bits, by the first.
var sourceBegins = func() (bits [256]uint32) {
	for word := range strings.FieldsSeq("ci re so gr an ev fo do pa sn se in") {
		bits[word[0]] |= letter(word[1])
		bits[word[0]-'a'+'A'] |= letter(word[1])
	}
	return bits
}()

// letter returns the bit of a letter, whatever its case. Some other bytes share it.
func letter(c byte) uint32 { return 1 << (c & 31) }

// mayBeSource reports whether a word of a name begins like one of isSourceWord. Few do.
func mayBeSource(name []byte) bool {
	const least = 4 // letters of the shortest word
	if len(name) < least {
		return false
	}
	begins := true
	for i, c := range name[:len(name)-1] {
		upper := 'A' <= c && c <= 'Z'
		if (begins || upper) && sourceBegins[c]&letter(name[i+1]) != 0 {
			return true
		}
		begins = c == '_' || c == '-'
	}
	return false
}

// isSourceName reports whether a name, in camel case or with underscores, has a word of sources.
func isSourceName(name []byte) bool {
	var room [2][32]byte
	word, last := room[0][:0], room[1][:0]
	for i, c := range name {
		upper := 'A' <= c && c <= 'Z'
		if c == '_' || c == '-' || upper && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') {
			if isSourceWord(last, word) {
				return true
			}
			word, last = last[:0], word
		}
		switch {
		case c == '_' || c == '-':
		case upper:
			word = append(word, c+'a'-'A')
		default:
			word = append(word, c)
		}
	}
	return isSourceWord(last, word)
}
