package passage

import (
	"regexp"
	"strings"

	"github.com/ibidhq/ibid/internal/text"
)

// frameBegin matches the beginning of a framed passage: [CONTEXT 0]:, [webpage 1 begin], <<<1>>>, BEGIN DOCUMENT 2.
var frameBegin = text.Pattern(`(?i)(?:\[|<<<|\b|-{3,} ?|={3,} ?)` +
	`(?:begin |start )?(` + nouns + `)[ _#-]?(\d{1,4})` +
	`(?: (?:begin|start))?(?:\]|>>>| ?-{3,}| ?={3,}|:|$)[ \t]*:?`)

// framed reads passages between a beginning and an end that both have their number: [CONTEXT 0] … [END CONTEXT 0],
// [webpage 1 begin] … [webpage 1 end].
func framed(_ *promptReader, text string) (list []Passage, outside string) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) || !strings.Contains(lower, "end") {
		return nil, ""
	}
	var rest strings.Builder
	last, misses := 0, 0
	for at := 0; at < len(text) && len(list) < maxPassages && misses < maxMisses; {
		m := frameBegin().FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		begin, from := at+m[0], at+m[1]
		noun, number := lower[at+m[2]:at+m[3]], text[at+m[4]:at+m[5]]
		to, end := frameEnd(lower, from, noun, number)
		if to < 0 {
			at = from
			misses++
			continue
		}
		q := Passage{Label: number}
		q.Text = q.fromHead(text[from:to])
		list = append(list, q)
		rest.WriteString(text[last:begin])
		last, at = end, end
	}
	return list, rest.String() + text[last:]
}

// frameEnd returns where the end of a framed passage begins and ends, or -1. Passages are not nested, so that a
// beginning of the next one ends the search.
func frameEnd(lower string, from int, noun, number string) (to, end int) {
	window := lower[from:min(len(lower), from+maxFrame)]
	for _, form := range [...]string{
		"end " + noun + " " + number, noun + " " + number + " end", "end of " + noun + " " + number,
		"/" + noun + " " + number, "end_" + noun + "_" + number,
	} {
		if n := strings.Index(window, form); n >= 0 {
			to = from + n
			for to > from && strings.IndexByte("[<-= ", lower[to-1]) >= 0 {
				to--
			}
			end = from + n + len(form)
			for end < len(lower) && strings.IndexByte("]>-= ", lower[end]) >= 0 {
				end++
			}
			return to, end
		}
	}
	return -1, -1
}

// The bounds of the search for frames: the bytes of a passage that are searched for its end, and the beginnings without
// an end after which there are no frames.
const (
	maxFrame  = 64 << 10
	maxMisses = 64
)

// ruleName matches a line with the name of the passage that follows it: [File: plan.pdf],
// --- plan.pdf (page 3) ---, ## plan.pdf.
var ruleName = text.Pattern(`^[ \t]*\[([^\]\n]{1,200})\][:]?[ \t]*$|` +
	`^[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,}|#{1,6})[ \t]*([^\s=*_#-][^\n]{0,200}?)` +
	`[ \t]*(?:-{2,}|={2,}|\*{2,}|_{2,}|#{1,6})?[ \t]*$`)

func ruleNameOf(line string) []string {
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" || strings.IndexByte("[-=*_#", trimmed[0]) < 0 || !strings.Contains(line, ".") {
		return nil
	}
	return ruleName().FindStringSubmatch(line)
}

var fileHead = text.Pattern(`(?i)^(?:` + nouns + `|datei|file ?name)[ :#-]+(.+)$`)

// ruledFile returns the file, and the page of it, that such a line names.
func ruledFile(name string) (file, page string) {
	name = strings.Trim(name, "[]:")
	if f := fileHead().FindStringSubmatch(name); f != nil {
		name = f[1]
	}
	file, page = splitPage(strings.Trim(name, "`*_\" []:"))
	separates := func(r rune) bool { return r == ',' || r == ';' || r == '|' }
	if first := strings.FieldsFunc(file, separates); !isFile(file) && len(first) > 1 {
		file = strings.TrimSpace(first[0])
		for _, more := range first[1:] { // [Source: plan.pdf, Page: 4]
			if kind, value := fieldOf(more); kind == "page" {
				page = value
			}
		}
	}
	return file, page
}

// ruled reads passages below a line that names their file, perhaps with a page.
func ruled(_ *promptReader, text string) (list []Passage, outside string) {
	var rest strings.Builder
	var body []string
	open := false
	shut := func() {
		if open {
			q := &list[len(list)-1]
			q.Text = q.fromHead(strings.Join(body, "\n"))
		}
		open, body = false, body[:0]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := ruleNameOf(line); m != nil {
			file, page := ruledFile(strings.TrimSpace(m[1] + m[2]))
			if isFile(file) && len(list) < maxPassages {
				shut()
				q := Passage{Page: page}
				q.name(file)
				list, open = append(list, q), true
				continue
			}
		}
		if open && (isEnder(line) || isClosing(line) || isRule(line) || strings.HasPrefix(line, "# ")) {
			shut()
		}
		if open {
			body = append(body, line)
		} else {
			rest.WriteString(line + "\n")
		}
	}
	shut()
	if n := len(list); n > 1 { // the instructions after the last
		most := 1
		for _, q := range list[:n-1] {
			most = max(most, len(blank.Split(q.Text, -1)))
		}
		if parts := blank.Split(list[n-1].Text, -1); len(parts) > most {
			list[n-1].Text = strings.Join(parts[:most], "\n\n")
		}
	}
	return list, rest.String()
}

// sectionHeading matches a Markdown heading.
var sectionHeading = regexp.MustCompile(`^(#{1,6})[ \t]+(.+?)[ \t#]*$`)

// contextHeading matches the heading or line above sections that are passages.
var contextHeading = text.Pattern(`(?i)\b(?:retrieved|context|sources|documents|passages|search results|` +
	`excerpts|knowledge|chunks|references|material|quellen|kontext|dokumente|fuentes|contexte)\b|上下文|资料|文档|来源|検索結果|資料`)

// sections reads the sections below a heading such as "# Retrieved passages".
func sections(_ *promptReader, text string) (list []Passage, outside string) {
	level, inside := 0, 0 // of the heading above; of its sections
	var rest strings.Builder
	var body []string
	open := false
	shut := func() {
		if open {
			q := &list[len(list)-1]
			q.Text = q.fromHead(strings.Join(body, "\n"))
		}
		open, body = false, body[:0]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		m := sectionHeading.FindStringSubmatch(line)
		switch {
		case m == nil && open && (isEnder(line) || isRule(line)):
			shut()
			level = 0
		case m == nil && open:
			body = append(body, line)
			continue
		case m == nil:
		case level > 0 && len(m[1]) > level && (inside == 0 || len(m[1]) == inside) && len(list) < maxPassages:
			shut()
			inside = len(m[1])
			var q Passage
			q.titleLine(strings.Trim(m[2], "*_ "))
			list, open = append(list, q), true
			continue
		case level > 0 && len(m[1]) > level:
			body = append(body, line)
			continue
		default:
			shut()
			if level, inside = 0, 0; contextHeading().MatchString(m[2]) && len(list) == 0 {
				level = len(m[1])
			}
		}
		rest.WriteString(line + "\n")
	}
	shut()
	if len(list) < 2 {
		return nil, ""
	}
	return list, rest.String()
}

// minParagraph is how many bytes a paragraph of a context has at least.
const minParagraph = 20

// pieces matches the instruction before paragraphs of context.
var pieces = text.Pattern(`(?i)\bfollowing\b[^.\n]{0,40}\b(?:context|passages|documents|sources|excerpts|` +
	`information|pieces)\b|\bcontext (?:information )?(?:is )?below\b|\bpieces of (?:retrieved )?context\b`)

// paragraphs reads a context whose paragraphs are passages, cited by position: below a line such as "Context:", between
// rules, or all that a wrapper has.
func paragraphs(p *promptReader, text string) (list []Passage, outside string) {
	if p.tool && !p.inner {
		return nil, ""
	}
	body, found := text, p.inner
	before := ""
	if !found {
		if before, body, found = afterIntroduction(text, false); !found {
			return nil, ""
		}
	}
	head := "" // a paragraph of names before that of the words, as LlamaIndex writes it
	for _, part := range blank.Split(strings.TrimSpace(body), maxPassages+1) {
		var q Passage
		if onlyFields(part) {
			head += part + "\n"
			continue
		}
		part, head = head+part, ""
		if q.Text = q.fromHead(part); len(q.Text) >= minParagraph {
			list = append(list, q)
		}
	}
	return list, before
}

// onlyFields reports whether all lines of a paragraph name a passage.
func onlyFields(part string) bool {
	for line := range strings.Lines(part) {
		if !isField(line) {
			return false
		}
	}
	return part != ""
}

// bullets splits the only passage of a prompt if it is a list: each of its items is one.
func bullets(list []Passage) []Passage {
	if len(list) != 1 || list[0].Label != "" || strings.Count(list[0].Text, "\n") == 0 {
		return list
	}
	var items []Passage
	named := true
	for line := range strings.Lines(list[0].Text) {
		words, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok && strings.TrimSpace(line) == "" {
			continue
		}
		if !ok || len(words) < minParagraph || len(items) >= maxPassages {
			return list
		}
		items = append(items, Passage{Text: words})
		named = named && tail().MatchString(words)
	}
	for i := range items {
		if q := &items[i]; named {
			m := tail().FindStringSubmatch(q.Text)
			q.Text = strings.TrimSpace(strings.TrimSuffix(q.Text, m[0]))
			q.titleLine(m[1])
		}
	}
	return items
}

// afterIntroduction returns what is between a line that introduces the context and the line that ends it. Without such
// an end nothing tells the context from the instructions after it. With labels, only a line such as "Context:" counts.
func afterIntroduction(text string, labels bool) (before, body string, ok bool) {
	lines := strings.SplitAfter(text, "\n")
	at := 0
	for i, line := range lines {
		at += len(line)
		trimmed := strings.TrimSpace(line)
		ends := strings.HasSuffix(trimmed, ":") || strings.HasSuffix(trimmed, "：") || strings.HasSuffix(trimmed, "**")
		label := ends && labelLine().MatchString(trimmed)
		if !label && (labels || !pieces().MatchString(trimmed)) {
			continue
		}
		from, ruled := at, false
		end := -1
		k := i + 1
		for pos := at; k < len(lines); k++ {
			next := strings.TrimSpace(lines[k])
			switch {
			case isRule(next) && !ruled && strings.TrimSpace(text[from:pos]) == "":
				from, ruled = pos+len(lines[k]), true
			case isRule(next) && ruled, !isRule(next) && isEnder(next), isClosing(next):
				end = pos
			}
			if end >= 0 {
				break
			}
			pos += len(lines[k])
		}
		if end < 0 && label && !ruled {
			end = len(text)
		}
		if end < 0 {
			return "", "", false
		}
		rest := text[from:end]
		if !label {
			if inner, tail, cut := afterIntroduction(rest, true); cut { // "the following context … Context:"
				return text[:from] + inner + text[end:], tail, true
			}
		}
		return text[:from] + text[end:], rest, true
	}
	return "", "", false
}

// labelLine matches a line that is nothing but the name of a context.
var labelLine = text.Pattern(`(?i)^(?:#{1,6} |\*\*)?(?:relevant |retrieved |background |additional )?` +
	`(?:context|contexts|context information|documents|passages|excerpts|search results|background|` +
	`knowledge|kontext|contexto|contexte|contesto|上下文|资料|背景资料|参考资料)(?:\*\*)?[:：](?:\*\*)?$`)

// records reads passages that are lines with names and words, such as "File: …", "Content: …", each beginning with the
// same one.
func records(_ *promptReader, text string) (list []Passage, outside string) {
	var rest strings.Builder
	var body []string
	first, open, worded, bare := "", false, false, false
	shut := func() {
		if open {
			q := &list[len(list)-1]
			fields := 0
			for fields < len(body) && isField(body[fields]) {
				fields++
			}
			for n := len(body); n > 1; n = len(body) { // names below the words
				last := body[n-1]
				if strings.TrimSpace(last) != "" && !isField(last) {
					break
				}
				q.fromHead(last + "\n.")
				body = body[:n-1]
			}
			q.Text = q.fromHead(strings.Join(body, "\n"))
			bare = bare || !worded && (fields < 2 || len(q.Text) < minParagraph)
		}
		open, worded, body = false, false, body[:0]
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if _, after, ok := strings.Cut(line, ": "); ok && first == "" && isField(after) && !isField(line) {
			line = after // Search results: Title: …
		}
		name, _, _ := strings.Cut(line, ":")
		name = normal([]byte(name))
		kind, value := fieldOf(line)
		starts := kind != "" && value != "" && !strings.HasPrefix(line, "    ") && line[0] != '\t'
		if first == "" && starts && kind != "skip" && kind != "page" && kind != "date" &&
			(kind != "id" || i+1 < len(lines) && isField(lines[i+1])) {
			first = name
		}
		switch {
		case starts && name == first && len(list) < maxPassages:
			shut()
			list, open = append(list, Passage{}), true
			body, worded = append(body, line), kind == "text"
		case open && (isEnder(line) || isRule(line) || isClosing(line)):
			shut()
			rest.WriteString(line + "\n")
		case open:
			body = append(body, line)
			worded = worded || kind == "text"
		default:
			rest.WriteString(line + "\n")
		}
	}
	shut()
	if len(list) == 0 || bare {
		return nil, ""
	}
	return labelled(list), rest.String()
}

// namedLine matches a line that begins with the name of the file that its words are from: plan.pdf#page=2: …
var namedLine = text.Pattern(`^[ \t]*(?:[-*•] )?(?:<b>)?(?:(?:Content|Table|Figure) from )?` +
	`\[?([^\s:|<>\[\]]{1,200}\.[A-Za-z][A-Za-z0-9]{1,4}(?:#page=(\d{1,5}))?)\]?:(?:</b>)?[ \t]+(\S.*)$`)

// namedLines reads passages that are lines, each after the name of its file, below a line such as "Sources:".
func namedLines(p *promptReader, text string) (list []Passage, outside string) {
	var rest strings.Builder
	introduced := p.inner || p.tool
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		var m []string
		if introduced && len(list) < maxPassages {
			m = namedLine().FindStringSubmatch(line)
		}
		if m == nil {
			introduced = introduced && (len(list) == 0 || strings.Trim(line, "<br/> \t") == "") ||
				introduction().MatchString(line)
			rest.WriteString(line + "\n")
			continue
		}
		q := Passage{Label: m[1], Page: m[2], Text: m[3]}
		name, _, _ := strings.Cut(m[1], "#page=")
		q.name(name)
		list = append(list, q)
	}
	return list, rest.String()
}

// linkLine matches a line that is nothing but a link: the title of what comes below it.
var linkLine = text.Pattern(`^[ \t]{0,3}(?:#{1,6} |[-*+•] )?(?:\*\*)?` +
	`\[([^\]\n]{1,300})\]\((https?://[^)\s]+)\)(?:\*\*)?[ \t]*:?[ \t]*$`)

// minLinked is how many bytes the words below a link have at least.
const minLinked = 20

// linked reads the results of a search that are links with words below each.
func linked(p *promptReader, text string) (list []Passage, outside string) {
	if !strings.Contains(text, "](http") {
		return nil, ""
	}
	var rest strings.Builder
	var body []string
	open := false
	shut := func() bool {
		if !open {
			return true
		}
		q := &list[len(list)-1]
		q.Text = q.fromHead(strings.Join(body, "\n"))
		open, body = false, body[:0]
		return len(q.Text) >= minLinked
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		m := linkLine().FindStringSubmatch(line)
		switch {
		case m != nil && len(list) < maxPassages:
			if !shut() {
				return nil, "" // a list of links
			}
			q := Passage{Title: strings.TrimSpace(m[1])}
			q.name(m[2])
			list, open = append(list, q), true
		case open && (isEnder(line) || isRule(line) || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ")):
			if !shut() {
				return nil, ""
			}
			rest.WriteString(line + "\n")
		case open:
			body = append(body, line)
		default:
			rest.WriteString(line + "\n")
		}
	}
	if !shut() || len(list) < 2 && !p.tool {
		return nil, ""
	}
	return list, rest.String()
}

// addressLine matches a line with a title and an address, as in Rye grains (https://r.example/rye).
var addressLine = regexp.MustCompile(`^(?:#{1,6} |[-*+•] )?(?:\*\*)?([^\n]{1,160}?)(?:\*\*)?` +
	`(?: ?[-–—|] ?<?| ?[(<\[])(https?://[^)\s>\]]+)[)>\]]?(?:\*\*)?:?$`)

// addressed reads the results of a search that are paragraphs, each below its title and its address, on one line or on
// two. Only a tool's result is so: in a prompt they could be links to read.
func addressed(p *promptReader, text string) (list []Passage, outside string) {
	if !p.tool || !strings.Contains(text, "://") {
		return nil, ""
	}
	var rest strings.Builder
	for block := range strings.SplitSeq(blank.ReplaceAllString(text, "\n\n"), "\n\n") {
		first, body, _ := strings.Cut(strings.TrimSpace(block), "\n")
		first = strings.TrimSpace(first)
		second, below, _ := strings.Cut(body, "\n")
		second = strings.Trim(second, " \t<>()")
		q := Passage{}
		if kind, _ := fieldOf(first); kind != "" || endsSentence(first) {
			first = ""
		}
		if m := addressLine.FindStringSubmatch(first); m != nil {
			q.Title, q.URL, q.Text = m[1], m[2], q.fromHead(body)
		} else if first != "" && len(first) <= 160 && isAddress(second) && !strings.Contains(second, " ") {
			q.Title, q.URL, q.Text = strings.Trim(first, "#* "), second, q.fromHead(below)
		}
		switch {
		case q.URL != "" && len(q.Text) < minLinked:
			return nil, "" // a list of links
		case q.URL != "" && len(list) < maxPassages:
			list = append(list, q)
		case len(list) > 0 && !isRule(block) && !isEnder(block):
			last := &list[len(list)-1]
			last.Text = strings.TrimSpace(last.Text + "\n\n" + strings.TrimSpace(block))
		default:
			rest.WriteString(block + "\n\n")
		}
	}
	if rest.Len() > minBeside { // prose with an address in it
		return nil, ""
	}
	return list, rest.String()
}
