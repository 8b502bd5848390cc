package wire

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// note is an annotation of the Responses or the Chat Completions API: all kinds, flat or nested.
type note struct {
	kind, url, title, content, file, filename, quote string
	start, end, index                                scan.Value
	raw                                              scan.Value
}

// readNote reads an annotation. Chat Completions nest the fields in a member named like the annotation's type.
func readNote(v scan.Value) note {
	n := note{raw: v}
	n.read(v, true)
	return n
}

func (n *note) read(v scan.Value, outer bool) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			n.kind = noteKind(o.Val.Bytes())
		case "url":
			n.url = o.Val.Str()
		case "title":
			n.title = o.Val.Str()
		case "content":
			n.content = o.Val.Str()
		case "file_id":
			n.file = o.Val.Str()
		case "filename":
			n.filename = o.Val.Str()
		case "quote":
			n.quote = o.Val.Str()
		case "start_index":
			n.start = o.Val
		case "end_index":
			n.end = o.Val
		case "index":
			n.index = o.Val
		case "url_citation", "file_citation", "container_file_citation", "file_path":
			if outer && o.Val.IsObject() {
				if n.kind == "" {
					n.kind = noteKind(o.Key)
				}
				n.read(o.Val, false)
			}
		}
	}
}

// noteKind returns an annotation's type as a string, of the usual ones without a copy.
func noteKind(b []byte) string {
	for _, kind := range [...]string{"url_citation", "file_citation", "container_file_citation", "file_path"} {
		if string(b) == kind {
			return kind
		}
	}
	return string(b)
}

// source returns what the annotation cites, without a key where it cites nothing.
func (n *note) source() Source {
	s := Source{Title: n.title, Content: n.content, Raw: n.raw}
	if n.kind == "url_citation" {
		s.Kind, s.Key, s.URL = KindWeb, n.url, n.url
	} else {
		s.Kind, s.Key, s.ID, s.GlobalID, s.Filename = KindFile, n.file, n.file, n.file, n.filename
		if s.Key == "" {
			s.Key = n.filename
		}
		if s.Title == "" {
			s.Title = n.filename
		}
	}
	return s
}

// key names the annotation by what it says.
func (n *note) key(candidate int) string {
	b := strconv.AppendInt(make([]byte, 0, 256), int64(candidate), 10)
	b = append(append(b, '/'), n.kind...)
	for _, number := range []scan.Value{n.start, n.end, n.index} {
		b = append(append(b, '/'), number...)
	}
	b = append(append(b, '/'), n.url...)
	return string(append(append(b, '/'), n.file...))
}

// place reads where the annotation stands in c's part: over a link, at a point, or nowhere. All count code points.
func (o *out) place(n *note, c *Cite) {
	c.Unit = Nowhere
	if n.kind == "file_citation" || n.kind == "file_path" {
		c.Covers = Point
		if at, ok := o.index("index", n.index); ok && (n.start.IsNull() || n.end.IsNull()) {
			c.Unit, c.Start, c.End = CodePoints, at, at
			return
		}
	} else {
		c.Covers = Link
	}
	start, ok1 := o.index("start_index", n.start)
	end, ok2 := o.index("end_index", n.end)
	if !ok1 || !ok2 || end == 0 { // 0–0 is how they say: nowhere
		return
	}
	c.Unit, c.Start, c.End = CodePoints, start, end
	switch {
	case start == end:
		c.Covers = Point
	case n.kind == "url_citation":
		c.URL = n.url
	case n.kind == "container_file_citation" && n.filename != "":
		c.URL = "sandbox:/mnt/data/" + n.filename
	case c.Covers == Point:
		c.Covers = Claim
	}
}

// cites says a citation and its source, of an annotation that does not break off. It is false for annotations of other
// types.
func (o *out) cites(n *note, key string, p Part) bool {
	switch n.kind {
	case "url_citation", "file_citation", "container_file_citation", "file_path":
	default:
		return false
	}
	s := n.source()
	if s.Key == "" {
		o.issue(IssueSourceless, n.kind, n.raw)
		return true
	}
	r := o.rooms()
	r.ref[0] = Ref{Source: s.Key, Quote: n.quote}
	c := Cite{Key: key, Part: p, Refs: r.ref[:]}
	o.place(n, &c)
	o.whole(&s)
	o.cite(&c)
	return true
}

// annotation reads a citation of a part, if it is all there and not the one that was read before.
func (p *responses) annotation(part *outPart, index int, v scan.Value) {
	if v.Cut() {
		return
	}
	hash := p.repeats.hash(v)
	if part.notes[index] == hash {
		return
	}
	part.notes[index] = hash
	n := readNote(v)
	if p.xai && strings.Trim(n.title, "0123456789") == "" { // the number shown in the text, no title
		n.title = ""
	}
	if !p.cites(&n, noteKey(part.Part, index), part.Part) {
		p.unknown("annotation "+clip(n.kind), v)
	}
}

// noteKey names a citation by its place in the response, so that it is the same each time it comes.
func noteKey(p Part, index int) string {
	b := strconv.AppendInt(make([]byte, 0, 32), int64(p.Message), 10)
	b = strconv.AppendInt(append(b, '/'), int64(p.Content), 10)
	return string(strconv.AppendInt(append(b, '/'), int64(index), 10))
}
