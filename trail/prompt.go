package trail

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/passage"
)

// Limits of what is read from a prompt.
const (
	maxPrompt        = 8 << 20 // bytes; the rest is ignored
	maxPromptSources = 1000    // the rest are left out
	minPasted        = 40      // bytes of a single numbered paragraph; a shorter one is a list item, not a document
)

// SourcesFromPrompt returns the documents that a program pasted into a prompt for a model to answer from, in order,
// each with its Content. It knows four formats and reads the first one that it finds:
//
//   - JSON: an array of documents, also as the member results, documents or the like of an object, which is what tools
//     return, or an object of documents by id, as in Mistral's guide. A document is a string, or an object with its
//     words as text, content, chunk, excerpt or the like, its document_id or id, its title and its url; the Content of
//     one without words is its JSON;
//   - the output of [ibid.PromptSources], with a source for each of its contents;
//   - tags: <document id="…" title="…" url="…">…</document>, and source, doc, passage, chunk, context, search_result,
//     result and snippet likewise; metadata may also be inside, in <source>, <title> or <url> beside
//     <document_content>;
//   - numbers: paragraphs that begin with [1], 【1】, Source 1:, Document [1] and the like, up to a line that begins with
//     "Question:" or a rule. Lines Title:, URL: or Source: at the beginning are metadata.
//
// Their numbers become their Rank. The DocumentID of a source without an id, or whose id is only its number, is its
// URL, or else one like doc:1, which [Source.Counted] reports, with a Key made from its words. Any other prompt has no
// sources, since nothing tells which parts of it are documents.
func SourcesFromPrompt(text string) []Source {
	text = strings.TrimSpace(text[:min(len(text), maxPrompt)])
	for _, read := range []func(string) []Source{pastedJSON, pastedSources, pastedTags, pastedNumbers} {
		if list := read(text); len(list) > 0 {
			list = list[:min(len(list), maxPromptSources)]
			for i := range list {
				list[i].namePasted()
			}
			return list
		}
	}
	return nil
}

// Counted reports whether DocumentID is only a position in one prompt, answer or context, such as doc:1 or context_0,
// so that the same id may elsewhere mean another document.
func (s *Source) Counted() bool { return positional(s.DocumentID) }

// namePasted replaces an id that is only a number, since other prompts number their documents, too.
func (s *Source) namePasted() {
	if n, err := strconv.Atoi(s.DocumentID); s.DocumentID != "" && (err != nil || n != s.Rank && n != s.Rank-1) &&
		!s.Counted() {
		return
	}
	if s.DocumentID = s.URL; s.URL == "" {
		s.DocumentID, s.Key = "doc:"+strconv.Itoa(s.Rank), (&ibid.Source{Content: s.Content}).Key()
	}
}

// pastedJSON reads documents in JSON, such as the results of a tool.
func pastedJSON(text string) []Source {
	if text == "" || text[0] != '[' && text[0] != '{' {
		return nil
	}
	found := passage.ReadText(text).Passages
	if len(found) == 1 && len(found[0].Raw) == len(text) && text[0] == '{' {
		return nil // one object, which may be anything
	}
	list := sourcesOf(found)
	if len(list) == 0 && text[0] == '[' { // documents without words are their JSON
		documents, err := ibid.ReadDocuments([]byte(text))
		if err != nil {
			return nil
		}
		for i := range documents {
			d := &documents[i]
			list = append(list, Source{DocumentID: d.ID, Title: d.Title, URL: d.URL, Content: d.Content})
		}
	}
	for i := range list {
		list[i].Rank, list[i].Retrieved = i+1, true
	}
	return slices.DeleteFunc(list, func(s Source) bool { return strings.TrimSpace(s.Content) == "" })
}

// pastedTags reads documents between tags.
func pastedTags(text string) []Source {
	var list []Source
	r := tagReader{rest: text}
	for len(list) < maxPromptSources {
		tag, content, ok := r.next()
		if !ok {
			break
		}
		name, attributes, _ := strings.Cut(tag, " ")
		s := Source{
			DocumentID: attribute(attributes, "id", "index", "number"), Title: attribute(attributes, "title", "name"),
			URL: attribute(attributes, "url", "href"), Rank: len(list) + 1, Retrieved: true,
		}
		if n, err := strconv.Atoi(attribute(attributes, "index", "number")); err == nil && n >= 0 {
			s.Rank = n
		}
		if s.URL == "" {
			s.URL = addressOnly(attribute(attributes, "source"))
		}
		inside(&s, content, name)
		if s.Content = strings.TrimSpace(s.Content); s.Content == "" {
			continue
		}
		list = append(list, s)
	}
	return list
}

// tagNames are the names of tags around documents.
var tagNames = strings.Fields("document doc source passage chunk context search_result result snippet")

// tagReader finds documents in tags, one after the other.
type tagReader struct {
	rest string
	open map[string]bool // tags that are not closed in rest, so that no end is searched for twice
}

// maxTag is the maximum length of a tag.
const maxTag = 1024

// next returns the next document's tag and its content.
func (r *tagReader) next() (tag, content string, ok bool) {
	for {
		_, rest, found := strings.Cut(r.rest, "<")
		if !found {
			return "", "", false
		}
		r.rest = rest
		tag, _, found = strings.Cut(rest[:min(len(rest), maxTag)], ">")
		if !found {
			continue
		}
		name, _, _ := strings.Cut(tag, " ")
		if !slices.Contains(tagNames, strings.ToLower(name)) || r.open[name] {
			continue
		}
		content, after, found := strings.Cut(rest[len(tag)+1:], "</"+name+">")
		if found {
			r.rest = after
			return tag, content, true
		}
		if r.open == nil {
			r.open = map[string]bool{}
		}
		r.open[name] = true
	}
}

// inside reads the content of a document's tag: its words, or tags for its parts.
func inside(s *Source, content, outer string) {
	body, found := "", false
	for _, name := range []string{"document_content", "content", "text", "body", "page_content"} {
		if body, found = between(content, name); found {
			break
		}
	}
	if !found {
		s.Content = content
		return
	}
	s.Content = body
	if title, ok := between(content, "title"); ok && s.Title == "" {
		s.Title = title
	}
	for _, name := range []string{"url", "source", "link"} {
		if value, ok := between(content, name); ok && name != outer {
			if s.URL == "" {
				s.URL = addressOnly(value)
			}
			if s.Title == "" && s.URL != value {
				s.Title = value
			}
		}
	}
}

func between(text, name string) (string, bool) {
	_, rest, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return "", false
	}
	content, _, ok := strings.Cut(rest, "</"+name+">")
	return strings.TrimSpace(content), ok
}

// attribute returns the first of the named attributes that a tag has.
func attribute(attributes string, names ...string) string {
	for _, name := range names {
		for _, quote := range []string{`"`, `'`} {
			before, rest, ok := strings.Cut(attributes, name+"="+quote)
			if ok && (before == "" || strings.HasSuffix(before, " ")) {
				value, _, _ := strings.Cut(rest, quote)
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

func addressOnly(s string) string {
	if strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") {
		return s
	}
	return ""
}

// pastedNumbers reads numbered paragraphs.
func pastedNumbers(text string) []Source {
	const noun = `(?:source|document|doc|passage|result|chunk|context)`
	head := regexp.MustCompile(`(?i)^\s*(?:#+\s*|\*\*)?(?:` +
		`\[(?:` + noun + `\s*#?)?(\d{1,4})\]|` +
		`【(\d{1,4})】|` +
		noun + `\s*(?:#|no\. ?)?(\d{1,4})\s*[:.)]|` +
		`(?:source|document|doc|passage)\s*\[(\d{1,4})\](?:\(title: ?([^)]*)\))?` +
		`)(?:\*\*)?[:.\s]*`)
	end := regexp.MustCompile(`(?i)` +
		`^\s*(?:#+\s*|\*\*)?(?:(?:user )?(?:question|query)|instructions?|answer|task)\s*(?:\*\*)?:|` +
		`^\s*(?:-{3,}|={3,})\s*$`)
	var list []Source
	begin, at := -1, 0 // where the content of the open document begins, and where the line does
	shut := func() {
		if begin >= 0 {
			list[len(list)-1].Content = text[begin:at]
		}
		begin = -1
	}
	for line := range strings.Lines(text) {
		switch m := head.FindStringSubmatch(line); {
		case m != nil:
			shut()
			if len(list) == maxPromptSources {
				return trimPasted(list)
			}
			number := m[1] + m[2] + m[3] + m[4]
			n, _ := strconv.Atoi(number)
			list = append(list, Source{DocumentID: number, Rank: n, Title: m[5], Retrieved: true})
			begin = at + len(m[0])
		case end.MatchString(line):
			shut()
		}
		at += len(line)
	}
	shut()
	return trimPasted(list)
}

// trimPasted leaves out what only looks like numbered documents: lists with gaps in their numbers, and a single short
// paragraph.
func trimPasted(list []Source) []Source {
	for i := range list {
		s := &list[i]
		if i > 0 && s.Rank != list[i-1].Rank+1 || i == 0 && s.Rank > 1 {
			return nil
		}
		s.fillFromHead()
	}
	if len(list) == 1 && len(list[0].Content) < minPasted {
		return nil
	}
	return slices.DeleteFunc(list, func(s Source) bool { return s.Content == "" })
}

// fillFromHead reads the metadata in the first lines of a document.
func (s *Source) fillFromHead() {
	s.Content = strings.TrimSpace(s.Content)
	for range 4 {
		line, rest, _ := strings.Cut(s.Content, "\n")
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || value == "" || rest == "" {
			return
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "title":
			s.Title = value
		case "url", "link":
			s.URL = addressOnly(value)
		case "source", "file", "filename":
			if s.URL = addressOnly(value); s.URL == "" && s.Title == "" {
				s.Title = value
			}
		case "content", "text":
			s.Content = strings.TrimSpace(value + "\n" + rest)
			return
		default:
			return
		}
		s.Content = strings.TrimSpace(rest)
	}
}

// promptSources is the output of ibid.PromptSources.
type promptSources struct {
	Results []struct {
		ID       string   `xml:"file_id,attr"`
		Name     string   `xml:"filename,attr"`
		URL      string   `xml:"url,attr"`
		Contents []string `xml:"content"`
	} `xml:"result"`
}

// pastedSources reads the output of ibid.PromptSources, wherever it is in the text.
func pastedSources(text string) []Source {
	const begin, end = "<sources><result file_id=", "</sources>"
	from := strings.Index(text, begin)
	if from < 0 {
		return nil
	}
	to := strings.Index(text[from:], end)
	if to < 0 {
		return nil
	}
	var read promptSources
	if xml.Unmarshal([]byte(text[from:from+to+len(end)]), &read) != nil {
		return nil
	}
	var list []Source
	for i, r := range read.Results {
		for _, content := range r.Contents {
			if content = strings.TrimSpace(content); content != "" && len(list) < maxPromptSources {
				list = append(
					list,
					Source{DocumentID: r.ID, Title: r.Name, URL: r.URL, Content: content, Rank: i + 1, Retrieved: true},
				)
			}
		}
	}
	return list
}
