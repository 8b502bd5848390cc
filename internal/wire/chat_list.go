package wire

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// Many servers add a list of sources to Chat Completions, beside the choices or in the message, and let the model cite
// its elements by number. They differ in the names of the list and of the members of its elements, which this file
// knows. A list is no proof of who sent it: several servers use each of these names.

// chatReads are the members of Chat Completions that may look like sources.
var chatReads = func() *reads {
	var paths strings.Builder
	paths.WriteString(`citations searchresults websearch searchinfo references sources event images videos
		relatedquestions vertexaigroundingmetadata groundingmetadata vertexaiurlcontextmetadata vertexaicitationmetadata
		choices.groundingmetadata choices.messages choices.contentfilterresults `)
	for _, carrier := range [...]string{"message", "delta"} {
		for name := range strings.FieldsSeq(`citations annotations context searchresults references sources websearch
			searchinfo groundingmetadata vertexaigroundingmetadata
			content/ content.citations content.thinking content.referenceids contentblocks executedtools toolcalls
			functioncall providerspecificfields.citations providerspecificfields.citation
			providerspecificfields.websearchresults providerspecificfields.thinkingblocks thinkingblocks
			reasoningdetails`) {
			paths.WriteString(" choices." + carrier + "." + name)
		}
	}
	return readPaths(paths.String())
}()

// isSourceList reports whether a member beside the choices is a list of sources, or Gemini's grounding.
func isSourceList(name string) bool {
	switch name {
	case "web_search", // Zhipu
		"search_info", // DashScope, Hunyuan
		"references",  // Doubao
		"sources",     // Open WebUI, and servers of one's own
		"vertex_ai_grounding_metadata", "groundingMetadata", "grounding_metadata", "vertex_ai_url_context_metadata":
		return true
	}
	return false
}

// sourceLists reads the lists beside the choices.
func (p *chat) sourceLists(d *chatDoc) {
	for _, m := range d.lists {
		switch name := string(m.name); name {
		case "vertex_ai_grounding_metadata", "groundingMetadata", "grounding_metadata":
			p.groundRoot(m.val)
		case "vertex_ai_url_context_metadata":
			p.groundPages(m.val)
		default:
			p.sourceList(name, m.val)
		}
	}
	switch d.event.Get("type").Str() { // of a pipe of Open WebUI
	case "source", "citation":
		p.webUISource(d.event.Get("data"))
		p.numberWebUI()
	}
}

// sourceList reads a list of sources whose elements marks in the text name by their numbers.
func (p *chat) sourceList(name string, list scan.Value) {
	if list.IsString() && string(list.Content()) == "null" || blank(list) || !p.isNew(name, list) {
		return
	}
	if name == "search_info" {
		list = list.Get("search_results")
	}
	switch {
	case name == "web_search" && strings.HasPrefix(p.model, "glm-"):
		p.setFlavour(zhipuChat)
	case name == "search_info" && strings.HasPrefix(p.model, "qwen"):
		p.setFlavour(qwenChat)
	}
	if p.looking {
		return
	}
	p.wantList(name, list)
	if first := scan.Elements(list); first.Next() && isWebUI(first.Val) {
		for a := scan.Elements(list); a.Next() && !a.Cut(); {
			p.webUISource(a.Val)
		}
		p.numberWebUI()
		return
	}
	var refs []Ref
	for a, i := scan.Elements(list), 0; a.Next() && !a.Cut() && p.numbered(i); i++ {
		s, n := listed(a.Val)
		s.Label = label(a.Val)
		if s.URL == "" && s.Title == "" && s.Content == "" && s.Filename == "" && s.GlobalID == "" {
			p.unknown("source in "+name, a.Val)
			continue
		}
		if n < 1 || n > maxNumber {
			n = i + 1
		}
		if s.Key = cmp.Or(s.URL, s.GlobalID); s.Key == "" {
			s.Key = numbered(name+":", n)
		}
		refs = p.numberAs(refs, n, s.Key)
		p.source(s)
	}
	p.setNumbers(name, refs)
	if p.flavour == exaChat || name == "citations" {
		p.linked(0)
	}
}

// label returns what a list says that marks call its element: Zhipu's ref_1. Numbers count the list anyway.
func label(v scan.Value) string { return v.Get("refer").Str() }

// numberAs sets what the number n stands for.
func (p *chat) numberAs(refs []Ref, n int, key string) []Ref {
	if !p.Keep(2 * refSize * max(0, n-len(refs))) {
		return refs
	}
	for len(refs) < n {
		refs = append(refs, Ref{})
	}
	if refs[n-1].Source == "" {
		refs[n-1].Source = key
	}
	return refs
}

// setNumbers sets what [n] in the text stands for: the elements of the first list that came.
func (p *chat) setNumbers(list string, refs []Ref) {
	if len(refs) == 0 || p.numberer != "" && p.numberer != list {
		return
	}
	p.numberer, p.numbers, p.style = list, refs, bracketNumber
	p.zero.marked = false
	for _, c := range p.choices {
		c.marked = false
	}
	p.candidate(0)
	for _, index := range slices.Sorted(maps.Keys(p.choices)) {
		p.candidate(index)
	}
}

// linked makes links to sources citations: of a list that the provider sends without places, and whose model was told
// to cite by links.
func (p *chat) linked(index int) {
	if c := p.choiceOf(index); !c.linked {
		c.linked = true
		p.emit(Op{Kind: MarkersOp, Part: Part{Candidate: index}, Markers: &Markers{Links: true}})
	}
}

// unplaced reports whether an annotation of an address has no place.
func unplaced(n *note) bool {
	end, ok := n.end.Int()
	return n.url != "" && (!ok || end == 0)
}

// listed reads an element of a list of sources, an object or an address, and the number that the list gives it, or 0.
func listed(v scan.Value) (s *Source, n int) {
	s = &Source{Kind: kindWeb, Raw: v}
	if v.IsString() {
		if s.URL = v.Str(); !strings.Contains(s.URL, "://") {
			s.Kind, s.Title, s.URL = kindDocument, s.URL, ""
		}
		return s, 0
	}
	var link, name, snippet, summary, text, site, date, time, refer, author, docName, docTitle, score string
	v.Read(scan.Fields{
		{"index", &n},
		{"refer", &refer},
		{"url", &s.URL},
		{"link", &link},
		{"title", &s.Title},
		{"name", &name},
		{"author", &author},
		{"content", &s.Content},
		{"snippet", &snippet},
		{"summary", &summary},
		{"text", &text},
		{"site_name", &s.Site},
		{"media", &site},
		{"score", &s.Score},
		{"publish_date", &s.PublishedAt},
		{"publish_time", &time},
		{"published_date", &date},
		{"date", &score},
		{"doc_id", &s.GlobalID},
		{"doc_name", &docName},
		{"doc_title", &docTitle},
		{"chunk_id", &s.ChunkID},
	})
	s.URL, s.Title = cmp.Or(s.URL, link), cmp.Or(s.Title, docTitle, name, docName)
	s.Content = cmp.Or(s.Content, text, summary, snippet)
	s.Site, s.PublishedAt = cmp.Or(s.Site, site), cmp.Or(s.PublishedAt, date, time, score)
	if author != "" {
		s.Authors = []string{author}
	}
	if id := v.Get("id").Str(); s.URL == "" && strings.Contains(id, "://") {
		s.URL = id
	}
	if _, digits, ok := strings.Cut(refer, "_"); ok && n == 0 { // ref_1
		n, _ = scan.Value(digits).Int()
	}
	if s.URL == "" {
		s.Kind = kindDocument
	}
	if s.Filename = fileTitle(docName); s.Filename != "" {
		s.Kind = kindFile
	}
	return s, n
}

// isWebUIFrame reports whether a document is one of Open WebUI's that has sources but no choices.
func isWebUIFrame(event, sources scan.Value) bool {
	if kind := event.Get("type").Str(); event.IsObject() && event.Get("data") != nil {
		return kind == "source" || kind == "citation" || kind == "status"
	}
	first := scan.Elements(sources)
	return first.Next() && isWebUI(first.Val)
}

// isWebUI reports whether an element of a list of sources has Open WebUI's form: parallel lists of passages and of what
// is known about each.
func isWebUI(v scan.Value) bool {
	return v.Get("document").IsArray() && (v.Get("metadata").IsArray() || v.Get("source").IsObject())
}

// webUISource reads an element of Open WebUI's list. [n] counts the distinct sources of all passages: a file of a
// collection, or a page of a search, is a source of its own.
func (p *chat) webUISource(v scan.Value) {
	if v.Cut() {
		return
	}
	group := v.Get("source")
	metadata := scan.Elements(v.Get("metadata"))
	passages := scan.Elements(v.Get("document"))
	some := false
	for passages.Next() && !passages.Cut() {
		metadata.Val = nil
		metadata.Next()
		some = true
		p.webUIPassage(group, metadata.Val, passages.Val.Text())
	}
	if !some && group.IsObject() {
		p.webUIPassage(group, nil, "")
	}
}

func (p *chat) webUIPassage(group, metadata scan.Value, passage string) {
	var name string
	var page scan.Value
	s := &Source{Kind: kindFile, Content: passage, Raw: metadata}
	metadata.Read(scan.Fields{
		{"source", &name}, {"title", &s.Title}, {"name", &s.Filename}, {"file_id", &s.GlobalID}, {"page", &page},
	})
	title := group.Get("name").Str()
	id := cmp.Or(name, group.Get("id").Text(), title)
	if strings.Contains(name, "://") {
		s.Kind, s.URL, s.Filename = kindWeb, name, ""
	} else {
		s.Filename = fileTitle(cmp.Or(s.Filename, name, title))
		if s.Title = cmp.Or(s.Title, title, name); s.Filename == "" {
			s.Kind = kindDocument
		}
	}
	if url := group.Get("url").Str(); s.URL == "" && strings.Contains(url, "://") {
		s.Kind, s.URL = kindWeb, url
	}
	if n, ok := page.Int(); ok && n >= 0 { // counted from 0
		s.Locator.Page = n + 1
	}
	if s.Key = "webui:" + id; id == "" || !p.Keep(2*entrySize+len(s.Key)) {
		return
	}
	if !slices.Contains(p.webui, s.Key) && len(p.webui) < maxItems {
		p.webui = append(p.webui, s.Key)
	}
	p.source(s)
}

// numberWebUI numbers the sources that came so far.
func (p *chat) numberWebUI() {
	var refs []Ref
	for _, key := range p.webui {
		refs = append(refs, Ref{Source: key})
	}
	p.setNumbers("sources", refs)
}

// groqCitation reads a citation of a document of the request, or of the result of a tool in it.
func (p *chat) groqCitation(index int, kind string, v scan.Value) {
	p.setFlavour(groqChat)
	p.requestSources()
	var id string
	var from, to scan.Value
	v.Get(kind).Read(scan.Fields{
		{"document_id", &id}, {"tool_call_id", &id}, {"start_index", &from}, {"end_index", &to},
	})
	if v.Cut() {
		return
	}
	if id == "" {
		p.issue(IssueSourceless, kind, v)
		return
	}
	c := Cite{
		Key:  strings.Join([]string{numbered("", index), kind, id, string(from), string(to)}, "/"),
		Part: Part{Candidate: index}, Refs: []Ref{{Source: id}},
	}
	p.codePoints(&c, from, to)
	p.cite(&c)
}

// requestSources emits, once, the documents and the results of tools in the request, which citations name by their ids.
func (p *chat) requestSources() {
	if p.groq != nil {
		return
	}
	p.groq = map[string]bool{}
	for a := scan.Elements(p.Request.Get("documents")); a.Next(); {
		s := &Source{Kind: kindDocument, ID: a.Val.Get("id").Text(), Raw: a.Val}
		from := a.Val.Get("source")
		if data := from.Get("data"); data.IsObject() {
			fillDocument(s, data)
		} else {
			s.Content = from.Get("text").Str()
		}
		if title := a.Val.Get("title").Str(); title != "" {
			s.Title = title
		}
		if s.Key = s.ID; s.Key != "" {
			p.source(s)
		}
	}
	for a := scan.Elements(p.Request.Get("messages")); a.Next(); {
		id := a.Val.Get("tool_call_id").Str()
		if id != "" && a.Val.Get("role").Str() == "tool" {
			p.source(&Source{Key: id, ID: id, Kind: kindTool, Content: contentText(a.Val.Get("content"))})
		}
	}
}

// braveTags is the state of reading Brave's tags, which are in the text: each <citation> is an object behind the words
// that it supports.
type braveTags struct {
	on   bool
	held map[Part][]byte // text from the beginning of a tag that is not complete
}

// maxBraveTag is the maximum length of a tag in bytes. What is longer is text.
const maxBraveTag = 32 << 10

// The tags: those of the research mode that are for readers lose only their ends.
var (
	braveStart = []byte("<citation>{")
	braveDrop  = strings.Fields("citation usage enum_item queries analyzing thinking progress blindspots")
	braveStrip = strings.Fields("answer enum_start enum_end")
)

// in reports whether text may contain tags. Other models do not write a citation as an object.
func (b *braveTags) in(content []byte) bool {
	b.on = b.on || len(content) > len(braveStart) && bytes.Contains(content, braveStart)
	return b.on
}

// braveText emits text without its tags, and what they contain.
func (p *chat) braveText(part Part, content []byte) {
	b := &p.brave
	text := append(b.held[part], p.unescape(content)...)
	if b.held == nil {
		b.held = map[Part][]byte{}
	}
	b.held[part] = nil
	for len(text) > 0 {
		at := bytes.IndexByte(text, '<')
		if at < 0 {
			at = len(text)
		}
		p.unescaped(part, text[:at])
		if text = text[at:]; len(text) == 0 {
			return
		}
		n, whole := p.braveTag(part, text)
		if !whole && len(text) < maxBraveTag {
			b.held[part] = bytes.Clone(text)
			return
		}
		if n == 0 {
			p.unescaped(part, text[:1])
			n = 1
		}
		text = text[n:]
	}
}

// unescaped emits text that is no longer JSON.
func (p *chat) unescaped(part Part, text []byte) {
	if len(text) > 0 {
		p.emit(Op{Kind: Text, Part: part, Text: text})
		p.choiceOf(part.Candidate).length += len(text)
	}
}

// braveTag reads the tag at the beginning of text, and returns its length, 0 if there is none. It returns false if more
// text is needed.
func (p *chat) braveTag(part Part, text []byte) (n int, whole bool) {
	for _, name := range braveStrip {
		for _, tag := range [...]string{"<" + name + ">", "</" + name + ">"} {
			switch {
			case bytes.HasPrefix(text, []byte(tag)):
				return len(tag), true
			case strings.HasPrefix(tag, string(text)):
				return 0, false
			}
		}
	}
	for _, name := range braveDrop {
		open, end := "<"+name+">", []byte("</"+name+">")
		if !bytes.HasPrefix(text, []byte(open)) {
			if strings.HasPrefix(open, string(text)) {
				return 0, false
			}
			continue
		}
		at := bytes.Index(text, end)
		if at < 0 {
			return 0, false
		}
		inside := scan.Value(bytes.TrimSpace(text[len(open):at]))
		switch name {
		case "citation":
			p.braveCitation(part, inside)
		case "enum_item":
			p.unescaped(part, inside.Get("original_tokens").Bytes())
		case "thinking", "analyzing":
			p.emit(Op{Kind: Reasoning, Part: part, Text: inside})
		case "usage":
			p.meta("usage", inside)
		}
		return at + len(end), true
	}
	return 0, true
}

func (p *chat) braveCitation(part Part, v scan.Value) {
	s := &Source{Kind: kindWeb, Raw: v}
	quote := ""
	v.Read(scan.Fields{{"url", &s.URL}, {"title", &s.Title}, {"snippet", &quote}})
	if s.Key = s.URL; s.Key == "" {
		p.issue(IssueSourceless, "citation", v)
		return
	}
	p.setFlavour(braveChat)
	s.Content = quote
	p.source(s)
	p.cite(&Cite{Part: part, Unit: Here, Covers: Point, Refs: []Ref{{Source: s.Key, Quote: quote}}})
}
