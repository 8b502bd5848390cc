package ibid

import (
	"strings"

	"github.com/yuin/goldmark/util"
)

// markdown renders the styles that keep the text: markdown, plain and footnotes.
func (r *rendering) markdown() string {
	var b strings.Builder
	b.Grow(len(r.answer.Text) + 64*len(r.markers))
	for i := range r.sections {
		s := &r.sections[i]
		edits := make([]edit, len(s.layout.cuts))
		for k, c := range s.layout.cuts {
			edits[k].Span = c
		}
		r.writeSection(&b, s, edits, r.writeMarker)
	}
	if r.List || r.Style == StyleFootnotes {
		if list := r.list(); list != "" {
			if t := r.sections[len(r.sections)-1].places.tree; t != nil && len(t.blocks) > 0 {
				b.WriteString(t.blocks[len(t.blocks)-1].closer)
			}
			b.WriteString(blankLine(b.String(), list))
			b.WriteString(list)
		}
	}
	return b.String()
}

// edit is a stretch of text and what is written instead.
type edit struct {
	Span
	with string
}

// writeSection writes a section with edits made, which are in order, and calls mark at each stop with the text that
// follows it.
func (r *rendering) writeSection(
	b *strings.Builder, s *section, edits []edit, mark func(b *strings.Builder, m *Marker, st *stop, next string),
) {
	text := r.answer.Text[s.Start:s.End]
	if s.Start > 0 && text != "" {
		b.WriteString(blankLine(b.String(), text))
	}
	at := 0
	copyTo := func(end int) {
		for ; len(edits) > 0 && edits[0].Start < end; edits = edits[1:] {
			if e := edits[0]; e.Start >= at { // else it lies in one before
				r.copyText(b, Span{s.Start + at, s.Start + e.Start})
				r.note(run{Span{s.Start + e.Start, s.Start + e.End}, b.Len(), len(e.with), true})
				b.WriteString(e.with)
			}
			at = max(at, edits[0].End)
		}
		if end > at {
			r.copyText(b, Span{s.Start + at, s.Start + end})
			at = end
		}
	}
	for i := range s.layout.stops {
		st := &s.layout.stops[i]
		copyTo(st.at)
		m := &r.markers[s.first+i]
		if !st.own {
			mark(b, m, st, text[at:])
			continue
		}
		b.WriteString(blankLine(b.String(), ""))
		mark(b, m, st, "")
		if strings.TrimSpace(text[at:]) != "" {
			b.WriteString(blankLine("x", text[at:]))
		}
	}
	copyTo(len(text))
}

// copyText writes the text of the answer in s.
func (r *rendering) copyText(b *strings.Builder, s Span) {
	r.note(run{s, b.Len(), s.Len(), false})
	b.WriteString(r.answer.Text[s.Start:s.End])
}

// note notes where the answer's text stands, if that will be asked for.
func (r *rendering) note(at run) {
	if r.Style == StyleHTML && r.Cited != nil && at.size > 0 {
		r.runs = append(r.runs, at)
	}
}

// blankLine returns the line breaks that are missing between two texts for a blank line to part them. Nothing is
// missing before the first text.
func blankLine(before, after string) string {
	if strings.Trim(before, " \t\r\n") == "" {
		return ""
	}
	n := strings.Count(before[len(strings.TrimRight(before, " \t\r\n")):], "\n") +
		strings.Count(after[:len(after)-len(strings.TrimLeft(after, " \t\r\n"))], "\n")
	return "\n\n"[min(n, 2):]
}

// writeMarker writes the marker m in front of next.
func (r *rendering) writeMarker(b *strings.Builder, m *Marker, st *stop, next string) {
	prev := b.String()
	var text, after string
	switch {
	case r.Marker != nil:
		text = r.Marker(*m)
	case r.Style == StylePlain:
		text = r.plainMarker(m)
	case r.Style == StyleFootnotes:
		text = r.footnoteMarker(m)
		if next != "" && (next[0] == '(' || next[0] == ':') {
			after = " " // [^1]( could be a link and [^1]: a definition
		}
	default:
		text = r.linkMarker(m, prev, next)
	}
	if text == "" {
		return
	}
	if st.space || r.Style != StylePlain && text[0] == '[' && takesBracket(prev) {
		b.WriteByte(' ')
	}
	b.WriteString(text)
	b.WriteString(after)
}

// takesBracket reports whether an opening bracket right after s would mean something with what s ends in: ![ is an
// image, and ][ the label of a reference.
func takesBracket(s string) bool {
	return s != "" && (s[len(s)-1] == '!' || s[len(s)-1] == ']') && !oddBackslashes(s[:len(s)-1])
}

func (r *rendering) plainMarker(m *Marker) string {
	var b strings.Builder
	for _, it := range m.Items {
		b.WriteString("[" + r.label(it) + "]")
	}
	return b.String()
}

func (r *rendering) footnoteMarker(m *Marker) string {
	var b strings.Builder
	for _, it := range m.Items {
		b.WriteString("[^" + r.footnoteLabel(it) + "]")
	}
	return b.String()
}

// footnoteLabel returns the label of a source's footnote. Labels are letters, digits, hyphens, dots and colons.
func (r *rendering) footnoteLabel(it MarkerItem) string {
	return r.labels + strings.Map(func(c rune) rune {
		if isASCIIAlnum(c) || strings.ContainsRune("-.:", c) || c >= 0xA0 {
			return c
		}
		return '-'
	}, r.label(it))
}

// footnotePrefix returns what to put before labels so that none is a label of the text already.
func (r *rendering) footnotePrefix() string {
	prefix := r.prefix
	for strings.Contains(r.answer.Text, "[^"+prefix) && (prefix != "" || r.usesLabel()) {
		prefix += "s"
	}
	return prefix
}

// usesLabel reports whether the text has a footnote with one of our labels.
func (r *rendering) usesLabel() bool {
	text := r.answer.Text
	for i := range r.answer.Sources {
		it := MarkerItem{Number: r.numbers[i], Source: &r.answer.Sources[i]}
		if strings.Contains(text, "[^"+r.footnoteLabel(it)+"]") {
			return true
		}
	}
	return false
}

// linkMarker returns m as markdown: a link for each source that can be opened, else its label in brackets. Brackets are
// escaped wherever they could be read as part of a link.
func (r *rendering) linkMarker(m *Marker, prev, next string) string {
	var b strings.Builder
	wasLink := false
	for i, it := range m.Items {
		label := r.label(it)
		url := safeURL(it.Source.URL)
		if i > 0 && (url != "" || wasLink) {
			b.WriteByte(' ')
		}
		wasLink = url != ""
		switch {
		case url != "":
			b.WriteString("[" + escapeLabel(label) + "](" + markdownURL(url) + ")")
		case r.needsEscape(m, prev, next):
			b.WriteString(`\[` + escapeLabel(label) + `\]`)
		default:
			b.WriteString("[" + escapeLabel(label) + "]")
		}
	}
	return b.String()
}

// needsEscape reports whether a label in plain brackets could become a link, an image or a task box: before ( [ and :,
// after ] and !, at the start of a line, and where the text defines the label.
func (r *rendering) needsEscape(m *Marker, prev, next string) bool {
	if prev == "" || isSpaceByte(prev[len(prev)-1]) || takesBracket(prev) {
		return true
	}
	if next != "" && strings.IndexByte("([:", next[0]) >= 0 {
		return true
	}
	for i := range r.sections {
		t := r.sections[i].places.tree
		if t == nil || len(t.labels) == 0 {
			continue
		}
		for _, it := range m.Items {
			if t.labels[util.ToLinkReference([]byte(r.label(it)))] {
				return true
			}
		}
	}
	return false
}

// escapeLabel escapes what has a meaning in markdown. Ids such as doc:0, file-a.b and turn0_1 stay as they are.
func escapeLabel(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		plain := c >= 0x80 || isASCIIAlnum(rune(c)) || c == ' ' || strings.IndexByte("-.:,", c) >= 0 ||
			c == '_' && i > 0 && i+1 < len(s) && isASCIIAlnum(rune(s[i-1])) && isASCIIAlnum(rune(s[i+1]))
		if !plain {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// escapeMarkdown escapes a name or quote for the middle of a markdown line.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case strings.IndexByte("\\`*_[]<>&$~|!#@^", c) >= 0,
			c == ':' && strings.HasPrefix(s[i:], "://"),
			c == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// escapeStart is escapeMarkdown for the start of a line, where also list marks and rules have a meaning.
func escapeStart(s string) string {
	out := escapeMarkdown(s)
	digits := len(out) - len(strings.TrimLeft(out, "0123456789"))
	switch {
	case out == "":
	case strings.IndexByte("-+=:%", out[0]) >= 0:
		return `\` + out
	case digits > 0 && digits < len(out) && (out[digits] == '.' || out[digits] == ')'):
		return out[:digits] + `\` + out[digits:]
	}
	return out
}
