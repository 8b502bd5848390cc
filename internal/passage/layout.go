package passage

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/text"
)

// nouns are what prompts call passages before their numbers.
const nouns = `(?:source|document|doc|passage|result|search result|web result|chunk|context|webpage|web page|page|` +
	`snippet|excerpt|article|reference|ref|citation|item|text|note|file|quelle|dokument|textstelle|abschnitt|auszug|` +
	`fuente|documento|fragmento|extrait|fonte|passaggio|bron|källa|źródło|источник|документ|来源|资料|文档|文件|片段|网页|参考|` +
	`引用|出典|資料|文書|출처|문서)`

// head matches the beginning of a numbered passage on its line. Its groups are labels: in brackets with a noun, in
// brackets, in wide brackets, after a noun, in a noun's brackets, in parentheses, before a full stop, in brackets with
// a name, after a number sign; then a name in parentheses.
var head = text.Pattern(`(?i)^[ \t>]{0,12}(?:[-*+•] )?(?:#{1,6} |#{2,6}|[-=*]{3,} ?)?(?:\*\*|__)?(?:` +
	`\[{1,2}` + nouns + `[ :_#-]*(\d{1,4})\]{1,2}|` +
	`(?:(?:source|document|chunk) id:? )?\[{1,2}\^?([\pL\pN][\pL\pN_.:/-]{0,39})\]{1,2}|` +
	`[【［]` + nouns + `? ?(\d{1,4})[】］]|` +
	nouns + ` ?(?:#|no\. ?|nr\. ?)?(\d{1,4})(?:[:.)：—–|-]| ?[(\[]| from | ?[-=*]{3,}|[ \t]*$)|` +
	nouns + ` ?%?[\[(#](\d{1,4})[\])]?%?|` +
	`\((\d{1,4})\)|` +
	`(\d{1,4})[.)] |` +
	`\[` + nouns + `[ #]*(\d{1,4})[ \t]*[:|,–-][ \t]*([^\]\n]{1,200})\]|` +
	`#(\d{1,4})\b[:.)]?` +
	`)(?:\*\*|__)?[ \t]*(?:[(\[]?(?:title: ?)?([^()\[\]\n]{1,200})[)\]](?:\*\*)?:?)?(?:\*\*)?[ \t]*[:：|–—=*-]*[ \t]*`)

// ender matches a line that ends the passages: a question, the task, an answer to be written.
var ender = text.Pattern(`(?i)^[ \t]*(?:#{1,6} ?|\*\*|\[)?(?:the )?` +
	`(?:(?:user(?:'s)?|my|final|current|original|new) )?` +
	`(?:question|query|instructions?|answer|task|request|message|helpful answer|your answer|response|user|assistant|` +
	`human|frage|aufgabe|antwort|anweisungen?|nutzerfrage|pregunta|respuesta|domanda|risposta|pergunta|` +
	`resposta|vraag|antwoord|fråga|问题|回答|答案|任务|用户|質問|回答|질문|답변|вопрос|ответ)\b?[^:：\n]{0,24}(?:\*\*|\])?[:：]`)

// rule matches a line that is nothing but a rule.
var rule = regexp.MustCompile(`^[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,}|#{3,}|~{3,}|` + "`{3,}" + `\w*|"{3})[ \t]*$`)

// closing matches a line that closes an element.
var closing = regexp.MustCompile(`^[ \t]*</[A-Za-z][\w-]*>`)

// isRule, isEnder and isClosing match these expressions, most lines without running them.
func isRule(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line != "" && strings.IndexByte("-=*_#~`\"", line[0]) >= 0 && rule.MatchString(line)
}

func isEnder(line string) bool {
	const near = 96 // bytes in which the colon is
	start := strings.TrimLeft(line, " \t")
	if strings.HasPrefix(start, "The above ") || strings.HasPrefix(start, "以上") { // RAGFlow's
		return true
	}
	return strings.ContainsAny(line[:min(len(line), near)], ":：") && ender().MatchString(line)
}

func isClosing(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " \t"), "</") && closing.MatchString(line)
}

// introduction matches a line after which passages come.
var introduction = text.Pattern(`(?i)^[^\n]{0,120}\b(?:sources?|documents?|passages?|contexts?|results?|` +
	`chunks?|snippets?|excerpts?|articles?|references?|knowledge base|background|kontext|quellen|dokumente|auszüge|` +
	`textstellen|fuentes|contexto|documentos|contexte|extraits|fonti|contesto|fontes|` +
	`bronnen)\b[^\n.?!:]{0,60}(?:\bis below\.?|\bare below\.?|\bbelow[.:]?|\bfollow(?:s|ing)?[.:]|:)\**[ \t]*$|` +
	`^[^\n]{0,40}(?:上下文|资料|文档|来源|参考|检索结果|背景|出典|資料|문서|자료)[^\n]{0,20}[:：][ \t]*$`)

// named is the kind of an item whose label is not a number; the others are groups of head.
const named = 20

// item is one passage as the layouts find it, before its names are read.
type item struct {
	Passage

	rest   string // of the line with its label
	kind   int    // the group of head that matched
	at     int    // offset of its line
	end    int    // offset of the end of its text
	body   string // its lines after the first
	meta   bool   // its second line is one such as URL:
	second int    // offset of its second line
}

// headed reads numbered or labelled passages: lines that begin with [1], Source 1:, Document[1], 【1】, (1) or 1. and the
// like. Of several runs, such as an example's and the real one, the last counts.
func headed(p *promptReader, text string) (list []Passage, outside string) {
	var run, best []item
	introduced, asked := p.inner || p.tool, false
	lastLine := ""
	accept := func() {
		switch {
		case !fits(run, introduced, p.tool):
		case asked && p.options == nil && run[0].kind == 2:
			p.options = finish(text, slices.Clone(run))
		case !asked:
			best = slices.Clone(run)
			kind := best[0].kind
			p.unsure = !introduced && (kind == 2 || kind == 6 || kind == named || kind == 10)
		}
		run, introduced, asked = run[:0], p.inner || p.tool, false
	}
	open := false // whether the last item goes on
	for at := 0; at < len(text); {
		line := text[at:]
		if n := strings.IndexByte(line, '\n'); n >= 0 {
			line = line[:n]
		}
		next := at + len(line) + 1
		it, is := readHead(line)
		if is && len(run) > 0 && !follows(&run[len(run)-1], &it, introduced) {
			switch first := &run[0]; {
			case it.kind == first.kind && restarts(run, &it):
				accept()
				introduced = introduced || introduction().MatchString(lastLine)
			default: // a list in a passage
				is = false
			}
		}
		switch {
		case is:
			if len(run) == 0 {
				introduced = introduced || introduction().MatchString(lastLine)
				asked = strings.HasSuffix(strings.TrimSpace(lastLine), "?") && !introduced
			}
			it.at, it.end = at, min(next, len(text))
			it.rest, it.second = line[len(it.rest):], next
			run, open = append(run, it), true
		case open && quotes(text, &run[len(run)-1], at) > 0:
			end := quotes(text, &run[len(run)-1], at)
			run[len(run)-1].end = end
			line = text[at:end]
			next = end + 1
		case open && isRule(line) && isNextHead(text[min(next, len(text)):], run, introduced):
			open = false // a rule between two of them
		case open && ends(line, run):
			open = false
			accept()
		case open:
			it := &run[len(run)-1]
			it.meta = it.meta || at == it.second && isField(line)
			it.end = min(next, len(text))
		}
		if strings.TrimSpace(line) != "" {
			lastLine = line
		}
		at = next
	}
	accept()
	if len(best) == 0 {
		return nil, ""
	}
	p.round = p.round || best[0].kind == 6
	return finish(text, best), text[:best[0].at] + text[best[len(best)-1].end:]
}

// quotes returns the end of the words of an item that are between quotes from an offset on, or 0: what is quoted is not
// read. Only lines that name the passage may precede it.
func quotes(text string, it *item, at int) int {
	const most = 1024 // bytes of these lines
	first, rest, _ := strings.Cut(text[at:], "\n")
	fence := fenceOf(first)
	if fence == "" || at < it.second || at-it.second > most {
		return 0
	}
	for line := range strings.Lines(text[it.second:at]) {
		if strings.TrimSpace(line) != "" && !isField(line) && !strings.HasSuffix(strings.TrimSpace(line), ":") {
			return 0
		}
	}
	n := strings.Index(rest, "\n"+fence)
	if n < 0 {
		return 0
	}
	end := len(text) - len(rest) + n + len("\n"+fence)
	if n := strings.IndexByte(text[end:], '\n'); n >= 0 {
		return end + n
	}
	return len(text)
}

// readHead reads the label at the beginning of a line. Its rest is the part of the line that the label takes.
func readHead(line string) (item, bool) {
	const near = 48 // bytes in which a label begins
	if !strings.ContainsAny(line[:min(len(line), near)], "0123456789[") {
		return item{}, false
	}
	m := head().FindStringSubmatchIndex(line[:min(len(line), 512)])
	if m == nil {
		return item{}, false
	}
	var it item
	for _, g := range [...]int{1, 2, 3, 4, 5, 6, 7, 8, 10} {
		if m[2*g] >= 0 {
			it.kind, it.Label = g, line[m[2*g]:m[2*g+1]]
		}
	}
	it.rest = line[:m[1]]
	if m[18] >= 0 { // [Source 1 | plan.pdf | page 3]
		file, page := splitPage(strings.TrimSpace(line[m[18]:m[19]]))
		it.name(file)
		it.Page = page
	}
	if m[22] >= 0 { // a name in parentheses
		name := line[m[22]:m[23]]
		file, page := splitPage(name)
		if isFile(file) || isAddress(name) || strings.Contains(strings.ToLower(line), "(title:") {
			it.name(file)
			it.Page = page
		} else {
			it.rest = line[:max(0, strings.LastIndexAny(line[:m[22]+1], "(["))]
		}
	}
	switch it.kind {
	case 2:
		if Number(it.Label) < 0 {
			it.kind = named
			if !strings.ContainsAny(it.Label, "0123456789") && !strings.ContainsAny(it.Label, "-_") {
				return it, false // [INST], [User]
			}
		}
	case 5:
		it.kind = 4
	}
	return it, true
}

// follows reports whether an item may come after another in one list.
func follows(a, b *item, introduced bool) bool {
	if a.kind != b.kind {
		return false
	}
	x, y := Number(a.Label), Number(b.Label)
	if x < 0 || y < 0 {
		return a.Label != b.Label && prefix(a.Label) == prefix(b.Label)
	}
	return y == x+1 || introduced && y > x && y < x+1000 && a.kind != 7
}

// restarts reports whether an item begins a list anew.
func restarts(run []item, it *item) bool {
	n := Number(it.Label)
	return n >= 0 && n <= 1 || it.Label == run[0].Label
}

// prefix returns what precedes the number of a label.
func prefix(label string) string {
	if isHash(label) {
		return ""
	}
	p := strings.TrimRight(label, "0123456789")
	if p == label { // doc-a, doc-b
		return p[:strings.LastIndexAny(p, "-_.:/")+1]
	}
	return p
}

// isHash reports whether a label is the beginning of a hash or a UUID, whose digits count nothing.
func isHash(label string) bool {
	const least = 6 // bytes
	return len(label) >= least && strings.Trim(label, "0123456789abcdef") == "" &&
		strings.Trim(label, "0123456789") != ""
}

// isNextHead reports whether text begins with the head of the passage that follows a run.
func isNextHead(text string, run []item, introduced bool) bool {
	line, _, _ := strings.Cut(strings.TrimLeft(text[:min(len(text), 1024)], " \t\n"), "\n")
	it, is := readHead(line)
	return is && follows(&run[len(run)-1], &it, introduced)
}

// ends reports whether a line ends the passages.
func ends(line string, run []item) bool {
	if line == "" || line[0] != '\t' && strings.TrimSpace(line) == "" {
		return false
	}
	if isRule(line) || isEnder(line) || isClosing(line) ||
		strings.HasPrefix(line, "#") && len(line) < 60 && introduction().MatchString(line) {
		return true
	}
	return strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") && strings.HasPrefix(run[0].rest, "###")
}

// minPasted is how many bytes a numbered passage has on average if nothing but its number shows that it is one: shorter
// ones are options or tasks. minSingle is the same for a list of one.
const (
	minPasted = 25
	minSingle = 40
)

// fits reports whether items are a list of passages.
func fits(run []item, introduced, tool bool) bool {
	if len(run) == 0 {
		return false
	}
	first := Number(run[0].Label)
	if first > 1 && !introduced {
		return false
	}
	size, names := 0, 0
	for i := range run {
		it := &run[i]
		size += it.end - it.at
		if it.URL != "" || it.Filename != "" || it.Title != "" {
			names++
		}
	}
	switch run[0].kind {
	case 7: // 1. could be anything
		if metas := slices.IndexFunc(run, func(it item) bool { return !it.meta }) < 0; !metas && (!introduced || tool) {
			return false
		}
	case named:
		if len(run) == 1 && !introduced {
			return false
		}
	case 1, 4, 8:
		return size > 0 && (len(run) > 1 || size >= minSingle)
	}
	if len(run) == 1 {
		return size >= minSingle
	}
	return size >= minPasted*len(run) || names == len(run)
}

// finish reads the names and words of items. The last item ends where the others do: its further paragraphs are the
// instructions.
func finish(text string, items []item) []Passage {
	leads := leads(text, items)
	paragraphs, lines, spaced := 1, 0, false
	for i := range items {
		it := &items[i]
		body := text[it.at:it.end]
		if i < len(items)-1 {
			spaced = spaced || strings.Contains(body, "\n\n") || strings.Contains(body, "\n \n")
			body = strings.TrimRight(body, " \t\n")
			paragraphs = max(paragraphs, len(blank.Split(body, -1)))
			lines = max(lines, strings.Count(body, "\n")+1)
		} else {
			body = strings.TrimRight(body, " \t\n")
			parts := blank.Split(body, paragraphs+1)
			label := min(len(parts[0]), it.end-it.at-len(it.rest))
			if len(items) == 1 && len(parts) > 1 && strings.TrimSpace(parts[0][label:]) == "" {
				paragraphs = 2
				parts = blank.Split(body, paragraphs+1)
			}
			if len(parts) > paragraphs {
				body = strings.Join(parts[:paragraphs], "\n\n")
			}
			if len(items) > 1 && !spaced && paragraphs == 1 {
				all := strings.SplitAfter(body, "\n")
				body = strings.Join(all[:min(len(all), lines)], "")
			}
			it.end = min(it.end, it.at+len(body))
		}
		_, it.body, _ = strings.Cut(body, "\n")
	}
	list := readNames(items)
	for i, lead := range leads {
		list[i].fromHead(lead + "\n.") // the last line of a head is never a field
	}
	tails := make([]string, 0, len(list))
	for i := range list {
		if m := tail().FindStringSubmatch(list[i].Text); m != nil {
			tails = append(tails, m[1])
		}
	}
	if len(tails) < len(list) { // the words of one may end in a name
		return list
	}
	for i := range list {
		q := &list[i]
		q.Text = strings.TrimRight(q.Text[:len(q.Text)-len(tail().FindString(q.Text))], " \t\n")
		q.titleLine(tails[i])
	}
	return list
}

// tail matches the name of a passage at its end: (Source: plan.pdf), or a line of its own.
var tail = text.Pattern(`(?i)(?:[ \t]*\n|[ \t]+[(\[]|\n[(\[])` +
	`(?:source|from|file|extracted from|url|link|quelle|来源)[:： ][ \t]*([^\n()\[\]]{1,300})[)\]]?[.]?$`)

// leads returns the paragraphs of fields before the labels, as LlamaIndex writes them, and takes them from the texts
// before. It returns nil unless all items have one that begins with the same field.
func leads(text string, items []item) []string {
	list := make([]string, len(items))
	starts := make([]int, len(items))
	from, name := 0, ""
	for i := range items {
		before := text[from:items[i].at]
		lines := strings.TrimRight(before, " \t\n")
		if strings.Count(before[len(lines):], "\n") < 2 {
			return nil
		}
		start := len(lines)
		for start > 0 {
			at := strings.LastIndexByte(lines[:start-1], '\n') + 1
			if !isField(lines[at:start]) {
				break
			}
			start = at
		}
		list[i], starts[i] = lines[start:], from+start
		first, _, _ := strings.Cut(list[i], ":")
		if first == "" || i > 0 && (first != name || !strings.HasSuffix(lines[:start], "\n\n")) {
			return nil
		}
		from, name = items[i].second, first
	}
	for i, start := range starts[1:] {
		items[i].end = start
	}
	return list
}

var blank = regexp.MustCompile(`\n[ \t]*\n\s*`)

// readNames reads the names of items: lines such as URL:, and a title on the line of the label if all items have one.
func readNames(items []item) []Passage {
	titled := true
	for i := range items {
		it := &items[i]
		rest := strings.TrimSpace(strings.Trim(it.rest, "*_ "))
		body := strings.TrimSpace(it.body)
		titled = titled && rest != "" && body != "" && len(rest) <= 160 && !endsSentence(rest)
	}
	list := make([]Passage, len(items))
	for i := range items {
		it := &items[i]
		q := it.Passage
		rest := strings.TrimSpace(it.rest)
		if titled {
			q.titleLine(strings.Trim(rest, "*_ "))
			q.Text = q.fromHead(it.body)
		} else {
			if name, words, ok := strings.Cut(rest, ": "); ok && isFile(name) && !strings.Contains(name, " ") {
				q.name(name)
				rest = words
			}
			q.Text = q.fromHead(strings.TrimSpace(rest + "\n" + it.body))
		}
		list[i] = q
	}
	return list
}

// endsSentence reports whether s ends like a sentence.
func endsSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, `"'”’)* `))
	return strings.ContainsRune(".!?。！？…;", r)
}

var (
	markdownLink = regexp.MustCompile(`^\[([^\]\n]+)\]\((https?://[^)\s]+)\)$`)
	titleAddress = regexp.MustCompile(`^(.*?)[\s–—|:(<-]*(https?://[^\s)>]+)[)>]?$`)
)

// titleLine reads a line with the title of a passage, and perhaps its address or page.
func (q *Passage) titleLine(s string) {
	if m := markdownLink.FindStringSubmatch(s); m != nil {
		q.name(m[2])
		s = m[1]
	} else if m := titleAddress.FindStringSubmatch(s); m != nil {
		q.name(m[2])
		s = m[1]
	}
	if file, page := splitPage(s); isFile(file) {
		q.Page, s = page, file
	}
	if kind, value := fieldOf(s); kind != "" {
		s = value
	}
	q.name(strings.Trim(s, "\"“”: "))
}

// fieldLines are the names of lines with what a passage is called, by [normal].
var fieldLines = map[string]string{
	"title": "title", "name": "title", "titel": "title", "heading": "title", "section": "title", "titre": "title",
	"url": "name", "link": "name", "source": "name", "uri": "name", "href": "name", "file": "name", "filename": "name",
	"filepath": "name", "path": "name", "document": "name", "quelle": "name", "datei": "name", "sourceurl": "name",
	"metadata": "name",
	"page":     "page", "pagelabel": "page", "pagenumber": "page", "pages": "page", "seite": "page",
	"id": "id", "documentid": "id", "docid": "id", "chunkid": "id", "sourceid": "id",
	"author": "author", "authors": "author", "date": "date", "published": "date", "publishedat": "date",
	"site": "site", "domain": "site", "score": "skip", "relevance": "skip", "similarity": "skip", "distance": "skip",
	"type": "skip", "filesize": "skip", "filetype": "skip", "creationdate": "skip", "lastmodifieddate": "skip",
	"updated": "skip", "updatedat": "skip", "lastupdated": "skip", "lastmodified": "skip", "updatetime": "skip",
	"content": "text", "text": "text", "snippet": "text", "excerpt": "text", "passage": "text", "body": "text",
	"description": "text", "summary": "text", "inhalt": "text", "pagecontent": "text", "value": "text",
}

// fieldNouns may precede the name of a field: Article Title, document_url.
var fieldNouns = strings.Fields("article document source doc page chunk passage result web file")

// fieldOf returns what a line such as "Title: …" says of a passage, "" for a line that is none, and its value.
func fieldOf(line string) (kind, value string) {
	const longest = 24 // bytes of a name
	name, value, ok := strings.Cut(line, ":")
	name = strings.Trim(name, " \t*_-#•├└│─")
	if !ok || len(name) > longest {
		return "", ""
	}
	value = strings.TrimSpace(strings.Trim(strings.TrimSpace(value), "*"))
	name = normal([]byte(name))
	kind = fieldLines[name]
	for _, noun := range fieldNouns {
		if rest, ok := strings.CutPrefix(name, noun); ok && kind == "" {
			kind = fieldLines[rest]
		}
	}
	if kind == "name" && len(value) <= 4 && Number(value) >= 0 { // Source: 1
		kind = "id"
	}
	return kind, value
}

// isField reports whether a line names a passage, as "URL: …" does.
func isField(line string) bool {
	kind, value := fieldOf(line)
	return value != "" && kind != "" && kind != "text"
}

// fromHead reads the lines at the beginning of a passage that name it, and returns the rest.
func (q *Passage) fromHead(s string) string {
	const most = 12 // lines
	s = strings.TrimSpace(s)
	for range most {
		line, rest, more := strings.Cut(s, "\n")
		kind, value := fieldOf(line)
		if isAddress(strings.TrimSpace(line)) && more {
			kind, value = "name", strings.TrimSpace(line)
		}
		if kind != "" && value == "" && more && strings.HasPrefix(line, "├") { // a branch without a leaf
			kind = "skip"
		}
		if kind == "" || kind != "text" && kind != "skip" && value == "" || kind != "text" && !more {
			return unquoted(s)
		}
		switch kind {
		case "text":
			return unquoted(strings.TrimSpace(value + "\n" + rest))
		case "title":
			if q.Title == "" {
				q.Title = value
			}
		case "name":
			if q.metadata(value) {
				break
			}
			file, page := splitPage(value)
			if isFile(file) {
				value = file
				if page != "" {
					q.Page = page
				}
			}
			q.name(value)
		case "page":
			q.Page = value
		case "id":
			q.ID = value
			if q.Label == "" {
				q.Label = value
			}
		case "author":
			q.Authors = []string{value}
		case "date":
			q.PublishedAt = value
		case "site":
			q.Site = value
		}
		s = strings.TrimLeft(rest, " \t\n")
	}
	return unquoted(s)
}

// metadata reads the metadata of a document that were printed in place of its name: Source: {'title': …}.
func (q *Passage) metadata(s string) bool {
	if !strings.HasPrefix(s, "{") {
		return false
	}
	v, ok := pythonJSON(s)
	if !ok {
		return false
	}
	if d := read(v); d.named() {
		d.Text = ""
		q.fill(&d.Passage)
	}
	return true
}

// unquoted returns what is between lines of back quotes or quotes around a passage.
func unquoted(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	fence := fenceOf(first)
	if !ok || fence == "" {
		return s
	}
	words, after, ok := strings.Cut(rest, "\n"+fence)
	if !ok || strings.TrimSpace(after) != "" {
		return s
	}
	return strings.TrimSpace(words)
}

// fenceOf returns the quotes that a line consists of, "" for any other line.
func fenceOf(line string) string {
	for _, fence := range [...]string{"```", `"""`} {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), fence); ok && !strings.ContainsAny(rest, " `\"") {
			return fence
		}
	}
	return ""
}
