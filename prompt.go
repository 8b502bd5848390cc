package ibid

import (
	"cmp"
	"strconv"
	"strings"
)

// PromptSources returns sources as XML for a prompt, in the form that providers recommend for retrieved passages:
//
//	<sources><result file_id='a' filename='a.pdf'><content>…</content></result></sources>
//
// Each source is a result and each of its chunks a content; for a source without chunks, [Source.Content] is used. The
// file_id is the source's ID, which citations refer to (else its global id, else "source-" and its number). No two
// results have the same file_id: if sources of different answers share an ID, the first keeps it and the others get
// "-2", "-3" and so on appended. The filename is the first non-empty one of file name, title, site and URL. A source
// with a URL has a url attribute too. Everything is escaped: no passage can close its element, and an XML parser
// returns the original text; characters that XML does not allow become U+FFFD.
func PromptSources(sources []Source) string {
	var b strings.Builder
	b.WriteString("<sources>")
	ids := promptIDs(sources)
	for i := range sources {
		s := &sources[i]
		b.WriteString("<result")
		writeAttribute(&b, "file_id", ids[i])
		writeAttribute(&b, "filename", cmp.Or(s.Filename, s.Title, s.Site, s.URL, ids[i]))
		if s.URL != "" {
			writeAttribute(&b, "url", s.URL)
		}
		b.WriteString(">")
		for _, content := range contents(s) {
			b.WriteString("<content>")
			b.WriteString(contentXML.Replace(strings.Map(xmlRune, content)))
			b.WriteString("</content>")
		}
		b.WriteString("</result>")
	}
	b.WriteString("</sources>")
	return b.String()
}

// promptIDs returns a distinct id for each source.
func promptIDs(sources []Source) []string {
	ids := make([]string, len(sources))
	first := make(map[string]int, len(sources)) // index of the first source with an id
	for i := range sources {
		s := &sources[i]
		ids[i] = strings.Map(xmlRune, cmp.Or(s.ID, s.GlobalID, "source-"+strconv.Itoa(i+1)))
		if _, taken := first[ids[i]]; !taken {
			first[ids[i]] = i
		}
	}
	counts := map[string]int{}
	for i, id := range ids {
		if first[id] == i {
			continue
		}
		for taken := true; taken; _, taken = first[ids[i]] {
			counts[id] = max(counts[id], 1) + 1
			ids[i] = id + "-" + strconv.Itoa(counts[id])
		}
		first[ids[i]] = i
	}
	return ids
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

// contentXML escapes the text of an element, attributeXML the value of an attribute in either kind of quotes. Parsers
// convert an unescaped carriage return to a line break and, in attributes, any unescaped white space to a space.
var (
	contentXML   = strings.NewReplacer(xmlEscapes...)
	attributeXML = strings.NewReplacer(append(xmlEscapes, "\n", "&#10;", "\t", "&#9;")...)
	xmlEscapes   = []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;", "\r", "&#13;"}
)

func writeAttribute(b *strings.Builder, name, value string) {
	b.WriteString(" " + name + "='")
	b.WriteString(attributeXML.Replace(strings.Map(xmlRune, value)))
	b.WriteString("'")
}

// xmlRune returns r, or U+FFFD if XML does not allow it.
func xmlRune(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
		return '\uFFFD'
	}
	return r
}
