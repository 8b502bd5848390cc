package passage

import (
	"regexp"
	"strings"

	"github.com/ibidhq/ibid/internal/text"
)

// Microsoft's GraphRAG writes what it found as tables: sources, and what it made from them. Models cite rows by the
// name of the table and their ids: [Data: Sources (15, 16); Entities (5)].

// tableHeads matches the name of a table and the names of its columns, of which the first is id.
var tableHeads = text.Pattern(`(?m)^-{3,} ?([A-Z][A-Za-z ]{1,40}?) ?-{3,}[ \t]*\n(id\|[^\n]{1,400})\n`)

// tableRow matches the beginning of a row.
var tableRow = regexp.MustCompile(`^(\d{1,9})\|`)

// tables reads the rows of tables. A row may have several lines.
func tables(_ *promptReader, text string) (list []Passage, outside string) {
	if !strings.Contains(text, "\nid|") {
		return nil, ""
	}
	var rest strings.Builder
	last := 0
	for _, m := range tableHeads().FindAllStringSubmatchIndex(text, maxPassages) {
		name, columns := text[m[2]:m[3]], strings.Split(text[m[4]:m[5]], "|")
		end, from, start := m[1], len(list), 0
		shut := func() { // the last row ends
			if len(list) > from {
				list[len(list)-1].Text = text[start:end]
				list[len(list)-1].cells(columns)
			}
		}
		for line := range strings.Lines(text[m[1]:]) {
			row := tableRow.FindStringSubmatch(line)
			if row == nil && (strings.TrimSpace(line) == "" || isRule(strings.TrimSpace(line)) || ruledName(line)) {
				break
			}
			if row != nil && len(list) < maxPassages {
				shut()
				start = end
				list = append(list, Passage{Label: name + " " + row[1]})
			}
			end += len(line)
		}
		shut()
		rest.WriteString(text[last:m[0]])
		last = end
	}
	if len(list) == 0 {
		return nil, ""
	}
	return list, rest.String() + text[last:]
}

// ruledName reports whether a line is the name of a table.
func ruledName(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "---") && strings.HasSuffix(line, "---")
}

// cells reads the row that is the text of a passage: its title and its words.
func (q *Passage) cells(columns []string) {
	cells := strings.SplitN(strings.TrimSpace(q.Text), "|", len(columns))
	q.Text = ""
	var words []string
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		switch kind := strings.TrimSpace(columns[i]); kind {
		case "title", "entity":
			q.Title = cell
		case "text", "content", "description":
			q.Text = cell
		case "source", "target":
			words = append(words, cell)
		}
	}
	if q.Title == "" && len(words) == 2 { // a relationship
		q.Title = strings.Join(words, " – ")
	}
}

// listedName matches a line of a list of names: [1] plan.pdf.
var listedName = text.Pattern(`(?m)^[ \t]*(?:[-*•] )?\[(\d{1,4})\][ \t]+(\S[^\n]{0,200})$`)

// nameListed names passages that have only numbers by a list of names elsewhere in the prompt that has them all.
func nameListed(list []Passage, outside string) {
	for i := range list {
		if q := &list[i]; q.Title != "" || q.Filename != "" || q.URL != "" || Number(q.Label) < 0 {
			return
		}
	}
	names := map[string]string{}
	for _, m := range listedName().FindAllStringSubmatch(outside, maxPassages) {
		names[m[1]] = strings.TrimSpace(m[2])
	}
	for i := range list {
		if names[list[i].Label] == "" {
			return
		}
	}
	for i := range list {
		list[i].titleLine(names[list[i].Label])
	}
}
