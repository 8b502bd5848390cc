package ibid

import (
	"cmp"
	"strconv"
	"strings"
)

// PromptSources returns sources as XML to put into a prompt, in the form that providers recommend for retrieved
// passages:
//
//	<sources><result file_id='a' filename='a.pdf'><content>…</content></result></sources>
//
// Each source is one result, each of its chunks one content; a source without chunks has its [Source.Content]. The
// file_id is the source's ID, which is what citations name (else its global id, else "source-" and its place), the
// filename its file name, title, site or URL, whichever it has. A source that can be opened has a url attribute too.
// Everything is escaped, so that a passage cannot close its element; characters that XML does not allow become U+FFFD.
func PromptSources(sources []Source) string {
	var b strings.Builder
	b.WriteString("<sources>")
	for i := range sources {
		s := &sources[i]
		id := cmp.Or(s.ID, s.GlobalID, "source-"+strconv.Itoa(i+1))
		b.WriteString("<result file_id='")
		escapeXML(&b, id)
		b.WriteString("' filename='")
		escapeXML(&b, cmp.Or(s.Filename, s.Title, s.Site, s.URL, id))
		if s.URL != "" {
			b.WriteString("' url='")
			escapeXML(&b, s.URL)
		}
		b.WriteString("'>")
		for _, content := range contents(s) {
			b.WriteString("<content>")
			escapeXML(&b, content)
			b.WriteString("</content>")
		}
		b.WriteString("</result>")
	}
	b.WriteString("</sources>")
	return b.String()
}

// contents returns the passages of a source.
func contents(s *Source) []string {
	var all []string
	for i := range s.Chunks {
		if c := s.Chunks[i].Content; c != "" {
			all = append(all, c)
		}
	}
	if len(all) == 0 && s.Content != "" {
		all = append(all, s.Content)
	}
	return all
}

// escapeXML writes s so that it is text in an element as well as in an attribute, whatever the quotes.
func escapeXML(b *strings.Builder, s string) {
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '\'':
			b.WriteString("&#39;")
		case r == '"':
			b.WriteString("&#34;")
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
}
