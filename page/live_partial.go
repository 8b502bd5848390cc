package page

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
)

const (
	// maxHeld is how many bytes at the end of an arriving text are not shown yet, because what comes next may change them.
	maxHeld = 512
	// maxHeard is how many bytes of text, and how many sources and citations, are kept of an answer that another node tells of.
	maxHeard      = 4 << 20
	maxHeardItems = 10_000
)

// partial is what was heard of an answer from its beginning. Once a piece is missing it waits for the answer. The zero value is
// ready to use.
type partial struct {
	text    strings.Builder
	sources []ibid.DocumentSource
	rows    []heardCitation
}

type heardCitation struct {
	key  string
	rows []ibid.DocumentCitation
}

// take adds a delta.
func (h *partial) take(l *bus.Live) {
	switch l.Kind {
	case gateway.LiveText:
		var text string
		if json.Unmarshal(l.Data, &text) == nil && l.At == h.text.Len() && h.text.Len()+len(text) <= maxHeard {
			h.text.WriteString(text)
		}
	case gateway.LiveSource:
		var s ibid.DocumentSource
		if json.Unmarshal(l.Data, &s) != nil || s.ID == "" {
			return
		}
		if i := slices.IndexFunc(h.sources, func(known ibid.DocumentSource) bool { return known.ID == s.ID }); i >= 0 {
			h.sources[i] = s
		} else if len(h.sources) < maxHeardItems {
			h.sources = append(h.sources, s)
		}
	case gateway.LiveCitation:
		var c gateway.LiveCitations
		if json.Unmarshal(l.Data, &c) != nil {
			return
		}
		h.rows = slices.DeleteFunc(h.rows, func(known heardCitation) bool { return known.key == c.Key })
		if !c.Withdrawn && len(h.rows) < maxHeardItems {
			h.rows = append(h.rows, heardCitation{c.Key, c.Citations})
		}
	}
}

// answer returns the answer as far as it was heard.
func (h *partial) answer() *ibid.Answer {
	d := ibid.Document{Version: 1, Unit: ibid.UTF8, Text: h.text.String(), Sources: h.sources}
	known := map[string]bool{}
	for i := range h.sources {
		known[h.sources[i].ID] = true
	}
	for i, c := range h.rows {
		for _, row := range c.rows {
			if !known[row.SourceID] || row.TextEnd != nil && *row.TextEnd > len(d.Text) {
				continue
			}
			row.ID, row.Group = c.key, i+1
			d.Citations = append(d.Citations, row)
		}
	}
	if a, err := d.Answer(); err == nil {
		return a
	}
	return &ibid.Answer{Text: d.Text} // what a citation of it says does not fit; the answer will
}

// settled returns an arriving answer without the end of its text that what comes next may change: the last word, and what has a
// mark of markdown before it that is not closed yet. What is shown of it stays where it stands.
func settled(a *ibid.Answer) *ibid.Answer {
	end := settledEnd(a.Text)
	if end == len(a.Text) {
		return a
	}
	s := *a
	s.Text, s.Parts, s.Citations = a.Text[:end], nil, nil
	for _, p := range a.Parts {
		if p.End = min(p.End, end); p.Start < p.End {
			s.Parts = append(s.Parts, p)
		}
	}
	for i := range a.Citations {
		if c := &a.Citations[i]; c.Span.End <= end && c.Claim.End <= end {
			s.Citations = append(s.Citations, *c)
		}
	}
	return &s
}

// settledEnd returns how much of a text can be shown.
func settledEnd(text string) int {
	least := max(0, len(text)-maxHeld)
	line := strings.LastIndexByte(text, '\n') + 1
	if line >= least && strings.Trim(text[line:], " \t#>*+-=_|`~:0123456789.)") == "" {
		// Marks alone make a heading, a list, a rule or a table of what stands before or after them.
		return len(strings.TrimRight(text[:line], "\n"))
	}
	if line >= least && strings.HasPrefix(strings.TrimLeft(text[line:], " "), "|") {
		return line // rows of tables come whole
	}
	end := wordsEnd(text)
	if end < least {
		return len(text)
	}
	if openFence(text[:end]) != "" {
		return end // nothing in code is a mark
	}
	paragraph := strings.LastIndex(text[:end], "\n\n") + 1
	if open := openMark(text[paragraph:end]); open >= 0 && paragraph+open >= least {
		end = paragraph + open
	}
	return end
}

// wordsEnd returns where the last word of a text begins, which may go on. Where lines may break between any two characters, no
// character moves because of the next.
func wordsEnd(text string) int {
	const ideographs = 0x2e80 // from here on up, and little else
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if unicode.IsSpace(r) || r >= ideographs && r != utf8.RuneError {
			return i
		}
		i -= size
	}
	return 0
}

// openMark returns where a mark of emphasis, code or a link begins that is not closed in the text; -1: nowhere.
func openMark(text string) int {
	open := map[string]int{}
	for i := 0; i < len(text); {
		mark := ""
		switch {
		case strings.HasPrefix(text[i:], "**"), strings.HasPrefix(text[i:], "__"), strings.HasPrefix(text[i:], "~~"):
			mark = text[i : i+2]
		case text[i] == '`':
			mark = text[i : len(text)-len(strings.TrimLeft(text[i:], "`"))]
		case text[i] == '*':
			mark = "*"
		case text[i] == '[':
			if _, is := open["["]; !is {
				open["["] = i
			}
		case text[i] == ')' || text[i] == ']' && i+1 < len(text) && text[i+1] != '(':
			delete(open, "[")
		}
		if mark == "" {
			i++
			continue
		}
		if _, is := open[mark]; is {
			delete(open, mark)
		} else if i+len(mark) == len(text) || text[i+len(mark)] != ' ' { // a mark with a space after it opens nothing
			open[mark] = i
		}
		i += len(mark)
	}
	first := -1
	for _, at := range open {
		if first < 0 || at < first {
			first = at
		}
	}
	return first
}

// blocksOf cuts HTML that we made into its outermost elements. What stands between them is nothing but white space and comments.
func blocksOf(html string) []string {
	var blocks []string
	depth, start := 0, 0
	for i := 0; i < len(html); {
		open := strings.IndexByte(html[i:], '<')
		if open < 0 {
			break
		}
		i += open
		if strings.HasPrefix(html[i:], "<!--") {
			end := strings.Index(html[i:], "-->")
			if end < 0 {
				break
			}
			i += end + len("-->")
			continue
		}
		end := tagEnd(html, i)
		tag := html[i:end]
		if depth == 0 {
			start = i
		}
		switch {
		case strings.HasPrefix(tag, "</"):
			depth--
		case !strings.HasSuffix(tag, "/>") && !isVoid(tag):
			depth++
		}
		i = end
		if depth <= 0 {
			depth = 0
			blocks = append(blocks, html[start:i])
		}
	}
	return blocks
}

// tagEnd returns where the tag ends that begins at i: values of attributes may hold a >.
func tagEnd(html string, i int) int {
	quote := byte(0)
	for ; i < len(html); i++ {
		switch c := html[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return len(html)
}

// isVoid reports whether a tag is of an element that has no end tag.
func isVoid(tag string) bool {
	name := strings.TrimLeft(tag, "<")
	if i := strings.IndexAny(name, " \t\n/>"); i >= 0 {
		name = name[:i]
	}
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr":
		return true
	}
	return false
}
