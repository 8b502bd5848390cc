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
	"github.com/ibidhq/ibid/internal/markdown"
)

const (
	// maxHeld is how many bytes at the end of an arriving text are held back because the next bytes may change them.
	maxHeld = 512
	// maxHeard is how many bytes of text, and maxHeardItems how many sources and citations, are kept of an answer that
	// another node relays.
	maxHeard      = 4 << 20
	maxHeardItems = 10_000
)

// partial is the part of an answer that was received without gaps. If a piece is missing it waits until that is sent
// again, or for the answer. The zero value is ready to use.
type partial struct {
	text    strings.Builder
	sources []ibid.DocumentSource
	rows    []heardCitation
	taken   liveState // number of items received, including those since replaced or withdrawn
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
		if json.Unmarshal(l.Data, &text) != nil || l.At < 0 {
			return
		}
		// It may be sent again, for a listener who came later.
		known, end := h.text.Len(), l.At+len(text)
		if l.At <= known && end > known && end <= maxHeard {
			h.text.WriteString(text[known-l.At:])
			h.taken.text = end
		}
	case gateway.LiveSource:
		var s ibid.DocumentSource
		if json.Unmarshal(l.Data, &s) != nil || s.ID == "" {
			return
		}
		h.taken.sources++
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
		h.taken.citations++
		i := slices.IndexFunc(h.rows, func(known heardCitation) bool { return known.key == c.Key })
		switch {
		case i >= 0 && c.Withdrawn:
			h.rows = slices.Delete(h.rows, i, i+1)
		case i >= 0:
			h.rows[i].rows = c.Citations
		case !c.Withdrawn && len(h.rows) < maxHeardItems:
			h.rows = append(h.rows, heardCitation{c.Key, c.Citations})
		}
	}
}

// state returns a value that changes whenever the answer does.
func (h *partial) state() liveState { return h.taken }

// answer returns what was received of the answer.
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
	return &ibid.Answer{Text: d.Text} // a citation does not match the text; the complete answer will
}

// settled returns an arriving answer without the end of its text that the next words may change: the last word, and
// text after a Markdown mark that is not closed yet. What was shown stays in place: shown is how much that was.
func settled(a *ibid.Answer, shown int) *ibid.Answer {
	end := settledEnd(a.Text)
	if shown > end { // the text was corrected, or a mark turned out not to be one
		end = runeStart(a.Text, min(shown, len(a.Text)))
	}
	return cutAt(a, end)
}

// withoutOpenLink returns an answer that broke off without the beginning of a link at its end, which would be shown as
// Markdown.
func withoutOpenLink(a *ibid.Answer) *ibid.Answer {
	end := settledEnd(a.Text + " ")
	if end >= len(a.Text) || a.Text[end] != '[' {
		return a
	}
	return cutAt(a, len(strings.TrimRight(a.Text[:end], " (")))
}

// cutAt returns an answer whose text ends at end, without citations beyond that.
func cutAt(a *ibid.Answer, end int) *ibid.Answer {
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

// settledEnd returns how much of a text can be shown. It never decreases while the text grows, unless more than maxHeld
// bytes would be held back.
func settledEnd(text string) int {
	least := max(0, len(text)-maxHeld)
	end := lineEnd(text, least)
	if end < least {
		return len(text)
	}
	fence, closed := fenceIn(text[:end])
	if fence != "" {
		return end // code has no marks
	}
	// No mark continues after a blank line or a code block.
	start := max(closed, strings.LastIndex(text, "\n\n")+1)
	if start >= end {
		return end
	}
	if open := markdown.FirstOpen(text[start:end]); open >= 0 && start+open >= least {
		end = start + open
	}
	return end
}

// lineEnd returns how much of a text can be shown, judged by its last line.
func lineEnd(text string, least int) int {
	line := strings.LastIndexByte(text, '\n') + 1
	if line < least {
		return wordsEnd(text)
	}
	switch begin := strings.TrimLeft(text[line:], " "); {
	case strings.Trim(text[line:], " \t#>*+-=_|`~:0123456789.)") == "", strings.HasPrefix(begin, "```"),
		strings.HasPrefix(begin, "~~~"):
		// A line of marks alone can turn its neighbours into a heading, a list, a rule or a table, or the text that
		// follows into code.
		return len(strings.TrimRight(text[:line], "\n"))
	case strings.HasPrefix(begin, "|"):
		return line // table rows are shown whole
	}
	return wordsEnd(text)
}

// wordsEnd returns where the last word of a text begins, which may be incomplete. In scripts whose lines may break
// between any two characters, each character is final.
func wordsEnd(text string) int {
	const ideographs = 0x2e80 // these scripts begin here, and little else is above
	for i := len(text); i > 0; {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if unicode.IsSpace(r) || r >= ideographs && r != utf8.RuneError {
			return i
		}
		i -= size
	}
	return 0
}

// blocksOf splits HTML that we rendered into its outermost elements. There is only white space and comments between
// them.
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

// tagEnd returns where the tag that begins at i ends: attribute values may contain a >.
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

// isVoid reports whether a tag is of an element without an end tag.
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
