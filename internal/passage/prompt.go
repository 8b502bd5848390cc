package passage

import (
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/text"
)

// Prompt is what a prompt gives a model to answer from.
type Prompt struct {
	Passages []Passage
	// Unsure reports that the passages have nothing but numbers or labels in brackets: they could be options or tasks,
	// unless the prompt says that something is to be cited. Cites reports that it does.
	Unsure, Cites bool
	// Round reports that sources are called by numbers in parentheses: (1).
	Round bool
	// Options is a numbered list right after a question, if there are no passages: options mostly, but perhaps what
	// the question is about.
	Options []Passage
}

// ReadPrompt reads the passages in a text that a program wrote for a model: a message of a prompt, or a tool's result
// (then tool is true, and its numbers may go on from an earlier one). It returns what the first
// layout finds that fits. Instructions, examples, questions, options and tasks are no passages.
func ReadPrompt(text string, tool bool) Prompt {
	p := &promptReader{tool: tool}
	if len(text) > maxBytes {
		text = strings.ToValidUTF8(text[:maxBytes], "")
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	list, outside := p.read(text)
	list = slices.DeleteFunc(list, func(q Passage) bool { return strings.TrimSpace(q.Text) == "" })
	list = bullets(list)
	found := Prompt{Passages: list[:min(len(list), maxPassages)]}
	for i := range found.Passages {
		found.Passages[i].Text = strings.TrimSpace(found.Passages[i].Text)
	}
	found.Unsure = p.unsure
	if len(list) == 0 {
		found.Options = p.options
	}
	nameListed(found.Passages, outside)
	found.Cites = cites().MatchString(outside)
	found.Round = p.round || asksForRound(outside)
	return found
}

// promptReader reads one prompt.
type promptReader struct {
	tool  bool // it is a tool's result
	inner bool // it is what a wrapper such as <context> has inside
	round bool // labels are in parentheses
	// unsure, options: see [Prompt]
	unsure  bool
	options []Passage
}

// read tries the layouts in which programs write passages, the most explicit first. Each returns the passages that it
// finds, and the text outside them.
func (p *promptReader) read(text string) (list []Passage, outside string) {
	for _, layout := range []func(*promptReader, string) ([]Passage, string){
		wholeJSON, elements, framed, linked, tables, headed, ruled, blockJSON, records, addressed, sections,
		namedLines, paragraphs,
	} {
		if list, outside = layout(p, text); len(list) > 0 {
			return list, outside
		}
	}
	return nil, text
}

// cites matches instructions to answer from sources.
var cites = text.Pattern(`(?i)\b(?:cit(?:e|es|ing|ation\w*|ed)|sources?|references?|passages?|documents?|` +
	`contexts?|excerpts?|snippets?|search results?|retrieved|articles?|notes|quellen?|zitier\w*|beleg\w*|dokument\w*|` +
	`kontext|textstellen?|fuentes?|citar?|contexto|citez|extraits?|contexte|fonti|cita\w*|fontes?|bronnen|` +
	`numbers? in (?:square )?brackets|numbers of the)\b|引用|来源|资料|文档|出处|编号|標註|出典|資料|参照|출처|источник`)

// round matches a number in parentheses as an example of a mark: (3), (n).
var round = regexp.MustCompile(`\((?:\d{1,3}|[nNxX]|number|Nummer)\)|parenthes|round brackets|runden? Klammern`)

// asksForRound reports whether instructions ask for numbers in parentheses.
func asksForRound(instructions string) bool { return round.MatchString(instructions) }

// graphPart matches JSON that begins with a node or an edge of a knowledge graph: it was made from passages, which come
// after it.
var graphPart = regexp.MustCompile(`^[\[\s]*\{\s*(?:"id"\s*:\s*"?\d+"?\s*,\s*)?` +
	`"(?:entity|entity1|entity_name|src_id)"\s*:`)

// wholeJSON reads a prompt or result that is JSON.
func wholeJSON(_ *promptReader, text string) ([]Passage, string) {
	if text == "" || text[0] != '[' && text[0] != '{' || graphPart.MatchString(text) {
		return nil, ""
	}
	return labelled(ReadText(text).Passages), ""
}

// blockJSON reads JSON in a block of code, or on lines of its own.
func blockJSON(p *promptReader, text string) ([]Passage, string) {
	const attempts = 8
	rest, at := text, 0
	for range attempts {
		n := jsonStart.FindStringSubmatchIndex(rest)
		if n == nil {
			break
		}
		start := at + n[2]
		size := valueLen(text[start:])
		if size > 0 {
			if list, _ := wholeJSON(p, text[start:start+size]); len(list) > 0 {
				end := start + size
				for len(list) < maxPassages { // further values: JSON lines, objects between rules
					gap := len(betweenValues.FindString(text[end:]))
					size := valueLen(text[end+gap:])
					if size == 0 {
						break
					}
					more, _ := wholeJSON(p, text[end+gap:end+gap+size])
					if len(more) == 0 {
						break
					}
					list, end = append(list, more...), end+gap+size
				}
				return list, text[:start] + text[end:]
			}
		}
		at = start + max(size, 1)
		rest = text[at:]
	}
	return nil, ""
}

var jsonStart = regexp.MustCompile(`(?m)^[ \t]*(?:[\w ]{1,40}:[ \t]*)?(\[\s*\{|\{)`)

// betweenValues matches what stands between the values of a list that is written without brackets.
var betweenValues = regexp.MustCompile(`^[\s,;]*(?:[-=*_]{3,}\s*)?`)

// valueLen returns the length of the JSON value at the start of s, or 0.
func valueLen(s string) int {
	if open := strings.IndexAny(s, "[{"); open > 0 {
		return 0
	}
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// labelled sets the label of passages whose list calls them by ids that are numbers, or short names.
func labelled(list []Passage) []Passage {
	for i := range list {
		q := &list[i]
		if q.Label == "" {
			q.Label = q.ID
		}
		if q.Label == "" {
			q.Label = q.ChunkID
		}
		if len(q.Label) > maxLabel || strings.Contains(q.Label, "://") {
			q.Label = ""
		}
	}
	return list
}

// maxLabel is the most bytes of a label.
const maxLabel = 120

// The names of elements around one passage, and of those around several.
var (
	passageElements = set(`document doc source passage chunk searchresult result snippet item article page webpage
		reference excerpt record entry file context text content node sourcedocument citation quelle dokument`)
	wrapperElements = set(`context contexts documents sources results searchresults passages chunks knowledge
		knowledgebase data information retrieveddocuments retrievedcontext retrieved references excerpts articles
		snippets webresults websearchresults background files kontext quellen dokumente`)
)

// element is one element of markup: the offsets of its opening tag and of its content.
type element struct {
	name       string // as written
	attributes string
	open, from int
	to, end    int
}

var openingTag = text.Pattern(`<([A-Za-z][\w.-]{0,40})((?:\s+[^<>\n]{0,900})?)\s*>`)

// elements reads passages in elements such as <document index="1">. An opening tag that is only mentioned has no end of
// its own, and belongs to the instructions.
func elements(p *promptReader, text string) (list []Passage, outside string) {
	var wrapped []element // wrappers without passages of their own
	var rest strings.Builder
	last := 0
	for _, e := range findElements(text) {
		name := normal([]byte(e.name))
		content := text[e.from:e.to]
		if e.open < last || strings.TrimSpace(content) == "" {
			continue
		}
		label := attribute(e.attributes, labelAttributes...)
		switch {
		case !passageElements[name],
			wrapperElements[name] && label == "" && attribute(e.attributes, nameAttributes...) == "",
			name == "text" && label == "", name == "content" && label == "":
			if wrapperElements[name] {
				wrapped = append(wrapped, e)
			}
			continue
		}
		q := Passage{Label: label, Page: attribute(e.attributes, "page", "page_number")}
		q.name(attribute(e.attributes, nameAttributes...))
		q.name(attribute(e.attributes, "url", "href", "link", "uri"))
		q.name(attribute(e.attributes, "source", "file", "filename", "file_name", "path"))
		parts := q.inside(content, name)
		for _, part := range parts {
			each := q
			each.Text = part
			list = append(list, each)
		}
		rest.WriteString(text[last:e.open])
		last = e.end
		if len(list) >= maxPassages {
			break
		}
	}
	if len(list) > 0 {
		return list, rest.String() + text[last:]
	}
	for i, e := range wrapped {
		if p.inner || i+1 < len(wrapped) && wrapped[i+1].open < e.end {
			continue // the innermost counts
		}
		inner := &promptReader{tool: p.tool, inner: true}
		if found, _ := inner.read(strings.TrimSpace(text[e.from:e.to])); len(found) > 0 {
			p.round = p.round || inner.round
			return found, text[:e.open] + text[e.end:]
		}
	}
	return nil, ""
}

var (
	labelAttributes = strings.Fields("id index number n num file_id doc_id document_id source_id ref nr")
	nameAttributes  = []string{"title", "name"}
	// What an element for a passage may hold: elements for its words, the best first, and for what is known of it.
	wordElements  = strings.Fields("document_content content text body page_content snippet excerpt passage context")
	aboutElements = strings.Fields("title url link source name filename file page id index author date")
)

// findElements returns the elements of passages and wrappers, in order of their opening tags. An element that has
// another of its name inside is left out: its opening tag is only mentioned.
func findElements(text string) []element {
	var all []element
	open := map[string][]int{} // indexes in all of elements without an end, by name
	for at := 0; at < len(text); {
		n := strings.IndexByte(text[at:], '<')
		if n < 0 {
			break
		}
		at += n
		tag := text[at:min(len(text), at+maxTag)]
		if name, ok := strings.CutPrefix(tag, "</"); ok {
			name, _, found := strings.Cut(name, ">")
			if stack := open[name]; found && len(stack) > 0 {
				e := &all[stack[len(stack)-1]]
				e.to, e.end = at, at+len(name)+len("</>")
				open[name] = stack[:0]
			}
			at += 2
			continue
		}
		if m := openingTag().FindStringSubmatch(tag); m != nil && strings.HasPrefix(tag, m[0]) {
			if kind := normal([]byte(m[1])); passageElements[kind] || wrapperElements[kind] {
				all = append(all, element{name: m[1], attributes: m[2], open: at, from: at + len(m[0])})
				open[m[1]] = append(open[m[1]], len(all)-1)
			}
			at += len(m[0])
			continue
		}
		at++
	}
	return slices.DeleteFunc(all, func(e element) bool { return e.end == 0 })
}

// maxTag is the most bytes of a tag.
const maxTag = 1024

// inside reads the content of a passage's element: its words, or elements for its parts. It returns its texts.
func (q *Passage) inside(content, outer string) []string {
	var texts []string
	for _, name := range wordElements {
		if name == outer {
			continue
		}
		for rest := content; ; {
			body, after, ok := between(rest, name)
			if !ok {
				break
			}
			texts, rest = append(texts, html.UnescapeString(body)), after
		}
		if len(texts) > 0 {
			break
		}
	}
	body := content
	for _, name := range aboutElements {
		value, after, ok := between(content, name)
		if !ok || name == outer || len(value) > maxTag {
			continue
		}
		value = html.UnescapeString(value)
		switch name {
		case "id", "index":
			if q.Label == "" {
				q.Label = value
			}
		case "page":
			q.Page = value
		case "author":
			q.Authors = []string{value}
		case "date":
			q.PublishedAt = value
		default:
			q.name(value)
		}
		if len(after) < len(body) {
			body = after
		}
	}
	if len(texts) == 0 {
		texts = []string{q.fromHead(body)}
	}
	return texts
}

// between returns the content of the first element with a name, and what follows it.
func between(text, name string) (content, after string, ok bool) {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return "", "", false
	}
	content, after, ok = strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(content), after, ok
}

// nextAttribute matches what follows the value of an attribute that has no quotes: <result index=1 title=Tide tables>.
var nextAttribute = regexp.MustCompile(`\s+[A-Za-z_]\w*=.*$`)

// attribute returns the first of the named attributes that a tag has.
func attribute(attributes string, names ...string) string {
	for _, name := range names {
		at := 0
		for {
			n := strings.Index(attributes[at:], name+"=")
			if n < 0 {
				break
			}
			at += n
			before := at == 0 || strings.ContainsRune(" \t\n", rune(attributes[at-1]))
			at += len(name) + 1
			if !before || at == len(attributes) {
				continue
			}
			value := attributes[at:]
			if quote := value[0]; quote == '"' || quote == '\'' {
				value, _, _ = strings.Cut(value[1:], string(quote))
			} else {
				value = value[:len(value)-len(nextAttribute.FindString(value))]
			}
			return html.UnescapeString(strings.TrimSpace(value))
		}
	}
	return ""
}

// name gives a passage a name: its address, its file or its title, by the form of the name.
func (q *Passage) name(s string) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
	case isAddress(s):
		if q.URL == "" {
			q.URL = s
		}
	case isFile(s):
		if q.Filename == "" {
			q.Filename = s[strings.LastIndexAny(s, `/\`)+1:]
		}
	case q.Title == "":
		q.Title = s
	}
}

// isFile reports whether s looks like the name of a file.
func isFile(s string) bool { return fileName().MatchString(s) }

var fileName = text.Pattern(`^[^\n<>|*?"]{1,200}\.(?:[A-Za-z][A-Za-z0-9]{0,4}|7z|mp[34])$`)

// splitPage splits a name such as "plan.pdf (page 3)" into the file and its page.
func splitPage(s string) (name, page string) {
	if m := pageSuffix.FindStringSubmatch(s); m != nil {
		return m[1], m[2]
	}
	return s, ""
}

var pageSuffix = regexp.MustCompile(`(?i)^(.+?)[\s,;:(|–-]+(?:pages?|pp?\.?|pg\.?|seiten?|s\.)` +
	`[ :]*(\d{1,5}(?:[-–]\d{1,5})?|[ivxlc]{1,8})\)?$`)

// Number returns the number that a label is, or -1.
func Number(label string) int {
	if n, err := strconv.Atoi(label); err == nil && n >= 0 {
		return n
	}
	return -1
}
