package passage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Limits of what is read from one result. What exceeds them is left out and named in [Result.Unread].
const (
	maxBytes    = 8 << 20 // of a result
	maxPassages = 1000
	maxDepth    = 16 // nesting of wrappers around documents, and of JSON in strings
)

// Result is what a tool, a search or a retriever returned.
type Result struct {
	// Passages are its documents, in order, each once.
	Passages []Passage
	// Text is what it returned besides: prose, or JSON that holds no documents. It is empty if that is only another
	// form of the documents, or a line such as "Found 3 results:".
	Text string
	// Failed reports that the result says that the call failed: then its words are no source.
	Failed bool
	// Unread names what cannot be read as a passage: "image", "blob".
	Unread []string
}

// ReadText reads a result that is text, in which documents may be JSON, JSON lines, or Python literals, which is what
// str() makes of a list. Other layouts of text are left to the caller: they are Text.
func ReadText(s string) *Result {
	r := &reader{}
	if len(s) > maxBytes {
		s = strings.ToValidUTF8(s[:maxBytes], "")
		r.leaveOut("the rest")
	}
	if !r.text(s, 0) && !r.noProse {
		r.prose(s)
	}
	return r.result()
}

// isPrinted reports whether a text is what Python prints of objects that have no better form: <NodeWithScore(…)>, <X
// object at 0x…>.
func isPrinted(s string) bool { return printed.MatchString(s[:min(len(s), 200)]) }

var printed = regexp.MustCompile(`^\s*\[?\s*<[\w.]+(?:\(| object at )`)

// ReadJSON reads a result that is a JSON value.
func ReadJSON(value []byte) *Result {
	v := scan.Value(bytes.TrimSpace(value))
	if v.IsString() || len(v) > maxBytes || !json.Valid(v) {
		if v.IsString() {
			return ReadText(v.Str())
		}
		return ReadText(string(v))
	}
	r := &reader{}
	if !v.IsNull() && !r.value(v, 0, loose) && !r.noProse {
		r.prose(compact(v))
	}
	return r.result()
}

// ReadObject reads one JSON object as a passage, by the names that tools, stores and search services use. It reports
// whether the object has words, an address or a title.
func ReadObject(value []byte) (Passage, bool) {
	v := scan.Value(bytes.TrimSpace(value))
	if !v.IsObject() || len(v) > maxBytes || !json.Valid(v) {
		return Passage{}, false
	}
	d := read(v)
	return d.Passage, d.Text != "" || d.named()
}

// reader reads one result.
type reader struct {
	passages []Passage
	texts    []string
	failed   bool
	noProse  bool // there are images, errors or the agent's own messages: the JSON around them is no prose
	unread   []string
}

func (r *reader) leaveOut(what string) {
	if len(r.unread) < 10 && !slices.Contains(r.unread, what) {
		r.unread = append(r.unread, what)
	}
}

func (r *reader) prose(s string) {
	if isPrinted(s) {
		r.leaveOut("a printed object")
	} else if s = strings.TrimSpace(s); s != "" && !slices.Contains(r.texts[max(0, len(r.texts)-8):], s) {
		r.texts = append(r.texts, s)
	}
}

// minBeside is how many bytes prose beside documents must have; less is a heading.
const minBeside = 160

// result returns what was read. Prose that repeats the words of a document is another form of it.
func (r *reader) result() *Result {
	res := &Result{Passages: distinct(r.passages), Failed: r.failed, Unread: r.unread}
	text := strings.Join(r.texts, "\n\n")
	withWords := slices.IndexFunc(res.Passages, func(p Passage) bool { return p.Text != "" })
	if withWords < 0 || len(text) >= minBeside && !strings.Contains(text, res.Passages[withWords].Text) {
		res.Text = text
	}
	return res
}

// distinct merges passages that are given twice, as in the content and the structuredContent of one result.
func distinct(list []Passage) []Passage {
	type key struct{ name, text string }
	at := make(map[key]int, len(list))
	out := make([]Passage, 0, len(list))
	for _, p := range list {
		found := -1
		names := []string{p.URL, p.ID}
		if p.URL == "" && p.ID == "" {
			names = []string{p.Title}
		}
		for _, name := range names {
			if i, ok := at[key{name, p.Text}]; ok && (name != "" || p.Title == "") {
				found = i
				break
			}
		}
		if found < 0 {
			found = len(out)
			out = append(out, p)
		} else {
			out[found].fill(&p)
		}
		for _, name := range names {
			if _, ok := at[key{name, p.Text}]; !ok && (name != "" || p.URL == "" && p.ID == "") {
				at[key{name, p.Text}] = found
			}
		}
	}
	return out
}

// fill fills in what q lacks.
func (q *Passage) fill(from *Passage) {
	for _, m := range []struct{ to, from *string }{
		{&q.Label, &from.Label},
		{&q.ID, &from.ID},
		{&q.Title, &from.Title},
		{&q.Filename, &from.Filename},
		{&q.Page, &from.Page},
		{&q.URL, &from.URL},
		{&q.Site, &from.Site},
		{&q.PublishedAt, &from.PublishedAt},
		{&q.ChunkID, &from.ChunkID},
		{&q.Text, &from.Text},
	} {
		if *m.to == "" {
			*m.to = *m.from
		}
	}
	if q.Authors == nil {
		q.Authors = from.Authors
	}
	if q.Score == nil {
		q.Score = from.Score
	}
}

// mode is what an object must have to count as a document.
type mode int

const (
	loose  mode = iota // words, or an address with a title
	strict             // words and a name: nothing else tells that the list holds documents
)

func (r *reader) add(p Passage) {
	if len(r.passages) >= maxPassages {
		r.leaveOut(fmt.Sprintf("more than %d passages", maxPassages))
		return
	}
	r.passages = append(r.passages, p)
}

// text reads JSON in a text. It reports false for prose.
func (r *reader) text(s string, depth int) bool {
	s = unfence(strings.TrimSpace(s))
	if s == "" || depth > maxDepth {
		return false
	}
	if s[0] != '[' && s[0] != '{' {
		v, ok := pythonJSON(s)
		return ok && r.value(v, depth+1, strict)
	}
	if v := scan.Value(s); json.Valid(v) {
		return r.value(v, depth+1, loose)
	}
	if lines := jsonLines(s); lines != nil {
		return r.value(lines, depth+1, loose)
	}
	if v, ok := pythonJSON(s); ok {
		return r.value(v, depth+1, loose)
	}
	// JSON that breaks off: its complete documents count.
	before := len(r.passages)
	if r.value(scan.Value(s), depth+1, strict); len(r.passages) > before {
		r.leaveOut("the rest of JSON that breaks off")
		return true
	}
	return false
}

// unfence returns the content of a text that is one block of code.
func unfence(s string) string {
	if !strings.HasPrefix(s, "```") || !strings.HasSuffix(s, "```") || len(s) < 7 {
		return s
	}
	_, inside, ok := strings.Cut(strings.TrimSuffix(s, "```"), "\n")
	if !ok || strings.Contains(inside, "```") {
		return s
	}
	return strings.TrimSpace(inside)
}

// jsonLines returns JSON values that follow each other as a list, or nil.
func jsonLines(s string) scan.Value {
	d := json.NewDecoder(strings.NewReader(s))
	list := []byte{'['}
	for d.More() {
		var v json.RawMessage
		if d.Decode(&v) != nil || v[0] != '{' && v[0] != '[' {
			return nil
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, v...)
	}
	return append(list, ']')
}

// value reads a value, and reports whether it holds documents or the text of a result.
func (r *reader) value(v scan.Value, depth int, m mode) bool {
	switch {
	case depth > maxDepth:
		r.leaveOut("what is nested too deep")
		return false
	case v.IsString():
		s := v.Str()
		if strings.TrimSpace(s) == "" {
			return false
		}
		if !r.text(s, depth+1) {
			r.prose(s)
		}
		return true
	case v.IsArray():
		return r.list(v, depth, m)
	case v.IsObject():
		return r.object(v, depth)
	}
	return false
}

// list reads a list: of documents, of blocks of content, of messages or of texts. What is no document among documents
// is one that is its JSON.
func (r *reader) list(v scan.Value, depth int, m mode) bool {
	found, before := false, len(r.passages)
	type other struct {
		at int // in r.passages
		v  scan.Value
	}
	var others []other
	for e := scan.Elements(v); e.Next(); {
		if len(r.passages) >= maxPassages {
			r.leaveOut(fmt.Sprintf("more than %d passages", maxPassages))
			break
		}
		switch {
		case e.Cut():
			r.leaveOut("the rest of JSON that breaks off")
		case e.Val.IsString() && m == strict:
			return found // a list of words, such as tags
		case e.Val.IsString():
			s := strings.TrimSpace(e.Val.Str())
			switch {
			case s == "" || r.text(s, depth+1):
			case isPrinted(s):
				r.leaveOut("a printed object")
			default:
				r.add(Passage{Text: s, Raw: e.Val})
			}
			found = true
		case e.Val.IsObject():
			noProse := r.noProse
			r.noProse = false
			is := r.element(e.Val, depth, m)
			if !is && !r.noProse && m == loose && len(others) < maxPassages {
				others = append(others, other{len(r.passages), e.Val})
			}
			found, r.noProse = is || found, noProse || r.noProse
		case e.Val.IsArray():
			found = r.list(e.Val, depth+1, m) || found
		}
	}
	if len(r.passages) > before {
		for i, o := range others {
			r.passages = slices.Insert(r.passages, o.at+i, Passage{Text: compact(o.v), Raw: o.v})
		}
	}
	return found
}

// element reads an object in a list.
func (r *reader) element(v scan.Value, depth int, m mode) bool {
	if found, is := r.block(v, depth); is {
		return found
	}
	if text, ok := bareText(v); ok { // a block of content without a type, or a document without a name
		if !r.text(text, depth+1) && text != "" {
			r.add(Passage{Text: text, Raw: v})
		}
		return true
	}
	d := read(v)
	if d.isDocument() || d.Text != "" && m == loose && !d.weak {
		r.add(d.Passage)
		return true
	}
	if r.object(v, depth+1) {
		return true
	}
	if d.Text == "" && d.linked() && m == loose {
		r.add(d.Passage)
		return true
	}
	return false
}

// bareText returns the text of an object that has nothing but a text.
func bareText(v scan.Value) (text string, ok bool) {
	for o := scan.Members(v); o.Next(); {
		if ok || string(o.Key) != "text" || !o.Val.IsString() {
			return "", false
		}
		text, ok = strings.TrimSpace(o.Val.Str()), true
	}
	return text, ok
}

// object reads an object: one document, or something around documents. Its members are read once, so that the time is
// linear.
func (r *reader) object(v scan.Value, depth int) bool {
	if depth > maxDepth {
		r.leaveOut("what is nested too deep")
		return false
	}
	if found, is := r.block(v, depth); is {
		return found
	}
	d := read(v)
	if d.isDocument() && !d.holdsLists {
		r.add(d.Passage)
		return true
	}
	if r.columns(v) || r.keyed(v) {
		return true
	}
	passages, texts := len(r.passages), len(r.texts)
	r.members(v, depth, &d)
	if len(r.passages) > passages && (!d.isDocument() || d.URL == "") {
		return true
	}
	r.passages, r.texts = r.passages[:passages], r.texts[:texts]
	if d.isDocument() {
		r.add(d.Passage)
		return true
	}
	return r.only(v, depth)
}

// members looks for documents in the members of an object. Passages without names get those of the object.
func (r *reader) members(v scan.Value, depth int, d *draft) {
	before := len(r.passages)
	for o := scan.Members(v); o.Next(); {
		if o.Cut() && o.Val.IsString() {
			r.leaveOut("the rest of JSON that breaks off")
			continue
		}
		name := normal(o.Key)
		switch {
		case notResults[name]:
		case carriers[name]:
			if !o.Val.IsString() {
				r.value(o.Val, depth+1, loose)
			} else if s := strings.TrimSpace(o.Val.Str()); s != "" && (s[0] == '[' || s[0] == '{') {
				r.text(s, depth+1)
			}
		case o.Val.IsArray(), o.Val.IsObject():
			r.value(o.Val, depth+1, strict)
		}
	}
	if d.Text == "" && d.named() {
		for i := before; i < len(r.passages); i++ {
			if p := &r.passages[i]; p.ID == "" && p.URL == "" && p.Title == "" {
				p.ID, p.Title, p.URL, p.Filename = d.ID, d.Title, d.URL, d.Filename
			}
		}
	}
}

// only reads an object that is nothing but a wrapper around one text.
func (r *reader) only(v scan.Value, depth int) bool {
	var text scan.Value
	for o := scan.Members(v); o.Next(); {
		name := normal(o.Key)
		switch {
		case beside[name] || o.Val.IsNull():
		case text == nil && (carriers[name] || name == "text" || name == "message"):
			text = o.Val
		default:
			return false
		}
	}
	return text.IsString() && r.value(text, depth+1, loose)
}

// columns reads documents whose parts are lists beside each other, as Chroma returns them.
func (r *reader) columns(v scan.Value) bool {
	texts := v.Get("documents")
	if !texts.IsArray() || !v.Get("ids").IsArray() {
		return false
	}
	var columns [3][]scan.Value
	for i, c := range []scan.Value{texts, v.Get("ids"), v.Get("metadatas")} {
		for e := scan.Elements(c); e.Next(); {
			if !e.Val.IsArray() {
				columns[i] = append(columns[i], e.Val)
				continue
			}
			for in := scan.Elements(e.Val); in.Next(); { // a list for each query
				columns[i] = append(columns[i], in.Val)
			}
		}
	}
	found := false
	for i, text := range columns[0] {
		p := Passage{Text: strings.TrimSpace(text.Str())}
		if p.Text == "" {
			continue
		}
		if i < len(columns[2]) {
			d := read(columns[2][i])
			p = d.Passage
			p.Text = strings.TrimSpace(text.Str())
		}
		if i < len(columns[1]) {
			p.ID = columns[1][i].Text()
		}
		r.add(p)
		found = true
	}
	return found
}

// keyed reads an object whose members are all documents by id, which is how Mistral expects the results of tools:
// objects with words or, if the id is a number, strings.
func (r *reader) keyed(v scan.Value) bool {
	var list []Passage
	for o := scan.Members(v); o.Next(); {
		var p Passage
		name := normal(o.Key)
		if _, ok := fields[name]; ok || carriers[name] || notResults[name] || inner[name] || beside[name] {
			return false
		}
		switch {
		case o.Val.IsObject():
			d := read(o.Val)
			if p = d.Passage; d.weak || d.holdsLists {
				return false
			}
		case o.Val.IsString() && strings.Trim(string(o.Key), "0123456789") == "":
			p.Text = strings.TrimSpace(o.Val.Str())
		}
		if p.Text == "" || len(list) >= maxPassages {
			return false
		}
		if p.ID == "" {
			p.ID = string(o.Key)
		}
		list = append(list, p)
	}
	for _, p := range list {
		r.add(p)
	}
	return len(list) > 0
}

func compact(v []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}
