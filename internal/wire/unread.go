package wire

import (
	"bytes"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// reads lists the members of a format that may look like sources or citations and are read, or are known to be
// something else, as paths with lower-case names without underscores. What is below such a member is its parser's
// business. A path that ends in a star stands for all that begin with it.
type reads map[string]bool

// readPaths returns reads for paths separated by white space.
func readPaths(paths string) reads {
	r := reads{}
	for path := range strings.FieldsSeq(paths + commonReads) {
		r[path] = true
	}
	return r
}

// commonReads are members that no format has sources in: what the request said, counts, and tools.
const commonReads = ` tools toolchoice usage usagemetadata input prompt instructions include parameters request
	logprobs choices.logprobs error.* `

// unreadDepth, unreadElements and unreadIssues bound the search: how deep it goes, how many elements of a list are
// searched (those of a list are alike), and how many members of one document are reported.
const (
	unreadDepth    = 8
	unreadElements = 8
	unreadIssues   = 8
)

// unread reports the members of a document that look like sources or citations and are not among those that its format
// reads. They are few, but which ones a server adds is unknown, and a loss without a word is the worst of all.
func (o *out) unread(doc scan.Value, known reads) {
	if !mayHaveSources(doc) {
		return
	}
	s := search{out: o, known: known}
	s.members(doc, 0)
}

// mayHaveSources reports whether a document has a name that matters. Most have none.
func mayHaveSources(doc scan.Value) bool {
	for _, part := range sourceStems {
		if bytes.Contains(doc, part) {
			return true
		}
	}
	return false
}

// sourceStems are in all names that [isSourceName] accepts.
var sourceStems = [...][]byte{
	[]byte("itation"), []byte("ource"), []byte("eference"), []byte("round"), []byte("nnotation"),
	[]byte("earch"), []byte("etriev"), []byte("vidence"), []byte("ootnote"), []byte("ocuments"), []byte("ocs\""),
	[]byte("assages"), []byte("nippets"),
}

// search is one search of a document.
type search struct {
	*out
	known reads
	path  []byte
	found int
}

func (s *search) members(v scan.Value, depth int) {
	if depth > unreadDepth || s.found == unreadIssues {
		return
	}
	if v.IsArray() {
		for a, n := scan.Elements(v), 0; n < unreadElements && a.Next(); n++ {
			if a.Val.IsObject() || a.Val.IsArray() {
				s.members(a.Val, depth+1)
			}
		}
		return
	}
	for o := scan.Members(v); o.Next(); {
		nested := o.Val.IsObject() || o.Val.IsArray()
		if !nested && !o.Val.IsString() || o.Val.Cut() {
			continue
		}
		at := len(s.path)
		if at > 0 {
			s.path = append(s.path, '.')
		}
		s.path = appendFolded(s.path, o.Key)
		switch {
		case s.known[string(s.path)], s.known[string(s.path[:max(at, 0)])+".*"]:
		case isSourceName(o.Key) && looksUnread(o.Val):
			s.found++
			s.issue(IssueUnread, s.spelled(o.Key, at), o.Val)
		case nested:
			s.members(o.Val, depth+1)
		}
		s.path = s.path[:at]
	}
}

// spelled returns the path of a member with its own name as it is spelled, for a reader to find it.
func (s *search) spelled(key []byte, at int) string {
	path := string(s.path[:at])
	if path != "" {
		path += "."
	}
	return shorten(path + string(key))
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

// sourceWords are the words by which a member is recognised: each alone, or two together.
var sourceWords = map[string]bool{
	"citation": true, "citations": true, "cites": true, "reference": true, "references": true, "source": true,
	"sources": true, "grounding": true, "groundings": true, "annotation": true, "annotations": true, "evidence": true,
	"evidences": true, "footnote": true, "footnotes": true, "retrieved": true, "retriever": true, "retrieval": true,
	"retrievals": true, "documents": true, "docs": true, "passages": true, "snippets": true,
	"search results": true, "search result": true, "web results": true, "web search": true, "search sources": true,
	"search info": true, "searched": true,
}

// isSourceName reports whether a name has one of the words of [sourceWords], in camel case or with underscores.
func isSourceName(name []byte) bool {
	var word, last []byte
	end := func() bool {
		if sourceWords[string(word)] || len(last) > 0 && sourceWords[string(last)+" "+string(word)] {
			return true
		}
		last, word = append(last[:0], word...), word[:0]
		return false
	}
	for i, c := range name {
		upper := 'A' <= c && c <= 'Z'
		if (c == '_' || c == '-' || upper && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z')) && end() {
			return true
		}
		switch {
		case c == '_' || c == '-':
		case upper:
			word = append(word, c+'a'-'A')
		default:
			word = append(word, c)
		}
	}
	return end()
}
