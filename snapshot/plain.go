package snapshot

import (
	"fmt"
	"strings"

	"github.com/ibidhq/ibid"
	md "github.com/ibidhq/ibid/internal/markdown"
)

// readPlain reads a text that is taken unchanged.
func readPlain(t *Text, b []byte, params map[string]string) error {
	var declares func([]byte) string
	if strings.HasSuffix(t.MediaType, "xml") {
		declares = declared
	}
	b, name, err := decode(b, params, declares, true)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	t.Charset = name
	text := string(b)
	s := stream{}
	if t.Profile != TextProfile1 && readData(&s, t, text) {
		s.finish(t)
		return nil
	}
	for _, block := range blocks(text, dialectOf(t.MediaType)) {
		s.beginBlock(block.Kind, block.Level, 0, false)
		s.raw = append(s.raw, text[block.Span.Start:block.Span.End]...)
	}
	s.finish(t)
	if t.MediaType == typeMarkdown {
		frontMatter(t, text)
	}
	return nil
}

// dialect is the syntax that separates the blocks of a text.
type dialect int

const (
	plainText dialect = iota // empty lines separate blocks
	markdown                 // roughly as in CommonMark
	rows                     // each line is a block
	code                     // empty lines separate blocks of code
)

func dialectOf(mediaType string) dialect {
	switch mediaType {
	case typeMarkdown:
		return markdown
	case typeCSV, "text/tab-separated-values":
		return rows
	case typePlain:
		return plainText
	}
	return code
}

// blocks divides a text into its blocks. Between them are only line breaks; every other byte is in a block.
func blocks(text string, d dialect) []Block {
	c := blockCutter{text: text, dialect: d}
	at := 0
	for line := range strings.Lines(text) {
		c.line(line, at)
		at += len(line)
	}
	c.end(len(text))
	return c.blocks
}

// blockCutter divides a text into blocks line by line.
type blockCutter struct {
	text    string
	dialect dialect
	blocks  []Block
	open    Block // valid if inside
	inside  bool
	fence   md.Fence
	front   bool   // the line is in the front matter
	last    string // the previous line, without white space
}

func (c *blockCutter) line(line string, at int) {
	words := strings.TrimSpace(line)
	switch {
	case c.dialect == rows:
		c.beginBlock(Cell, 0, at)
	case c.dialect == markdown:
		c.markdownLine(line, words, at)
	case words == "":
		c.end(at)
	case !c.inside && c.dialect == code:
		c.beginBlock(Code, 0, at)
	case !c.inside:
		c.beginBlock(Paragraph, 0, at)
	}
	c.last = words
}

// markdownLine handles as much of Markdown as is needed to divide it into blocks.
func (c *blockCutter) markdownLine(line, words string, at int) {
	switch {
	case at == 0 && words == "---":
		c.front = true
		c.beginBlock(Code, 0, at)
	case c.front:
		if words == "---" || words == "..." {
			c.front = false
			c.end(at + len(line))
		}
	case c.fence.Open():
		if c.fence.Line(words); !c.fence.Open() {
			c.end(at + len(line))
		}
	case words != "" && words[0] != '>' && c.fence.Line(words):
		c.beginBlock(Code, 0, at)
	case words == "":
		c.end(at)
	case md.HeadingLevel(words) > 0:
		c.beginBlock(Heading, md.HeadingLevel(words), at)
		c.end(at + len(line))
	case c.inside && c.open.Kind == Paragraph && isUnderline(words) &&
		c.open.Span.Start+len(c.last) >= at-len(c.last)-2:
		c.open.Kind, c.open.Level = Heading, 1+strings.Count(words[:1], "-")
		c.end(at + len(line))
	case strings.HasPrefix(words[md.ItemMark(words):], " "): // words begins with no space, so it has a mark
		c.beginBlock(Item, 0, at)
	case strings.HasPrefix(words, "|"):
		c.beginBlock(Cell, 0, at)
	case !c.inside:
		c.beginBlock(Paragraph, 0, at)
	}
}

func (c *blockCutter) beginBlock(kind BlockKind, level, at int) {
	c.end(at)
	c.open, c.inside = Block{Span: ibid.Span{Start: at}, Kind: kind, Level: level}, true
}

func (c *blockCutter) end(at int) {
	if c.inside {
		c.open.Span.End = at
		c.blocks = append(c.blocks, c.open)
	}
	c.inside = false
}

// isUnderline reports whether a line makes the previous line a heading.
func isUnderline(words string) bool {
	return len(words) >= 2 && (strings.Trim(words, "=") == "" || strings.Trim(words, "-") == "")
}

// frontMatter reads the metadata of a Markdown document: lines of "name: value" between two lines of ---, and its first
// heading.
func frontMatter(t *Text, text string) {
	head, ok := strings.CutPrefix(strings.ReplaceAll(text[:min(len(text), 16<<10)], "\r\n", "\n"), "---\n")
	if head, _, closed := strings.Cut(head, "\n---"); ok && closed {
		list := ""
		for line := range strings.Lines(head) {
			item, isList := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if isList && list != "" {
				matter(t, list, unquoted(item))
				continue
			}
			key, value, found := strings.Cut(line, ":")
			if !found || strings.TrimLeft(line, " \t") != line {
				continue
			}
			list = strings.ToLower(strings.TrimSpace(key))
			for _, one := range values(value) {
				matter(t, list, one)
			}
		}
	}
	for _, b := range t.Blocks {
		if b.Kind == Heading {
			first(
				&t.Title,
				strings.TrimSpace(strings.TrimRight(strings.Trim(t.Content[b.Span.Start:b.Span.End], "# "), "=-")),
			)
			return
		}
	}
}

// matter sets the field of one line of front matter.
func matter(t *Text, key, value string) {
	switch key {
	case "title":
		first(&t.Title, value)
	case "author", "authors":
		t.Authors = addPerson(t.Authors, value)
	case "date", "published", "pubdate":
		first(&t.PublishedAt, isoDate(value))
	case "lang", "language":
		first(&t.Language, value)
	case "license", "licence", "rights":
		first(&t.License, value)
	case "url", "canonical", "canonical_url", "source":
		if strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://") {
			first(&t.URL, value)
		}
	}
}

// values returns the value of a line of front matter, or the values of its list.
func values(s string) []string {
	s = strings.TrimSpace(s)
	inner, ok := strings.CutPrefix(s, "[")
	if !ok {
		return []string{unquoted(s)}
	}
	var all []string
	for one := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), ",") {
		all = append(all, unquoted(strings.TrimSpace(one)))
	}
	return all
}

func unquoted(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}
