package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// documentMember is what a document says of itself beyond the fields of a [Source].
type documentMember struct {
	name  string
	value scan.Value
}

// rest returns what the Raw of a document, as [ReadDocuments] reads it, says beyond its other fields. One without a
// text is its content whole, and there is nothing beyond.
func (s *Source) rest() []documentMember {
	data := scan.Value(s.Raw)
	if !data.IsObject() || !json.Valid(data) {
		return nil
	}
	if inner := data.Get("data"); !inner.IsNull() {
		data = inner
	}
	content := ""
	for _, name := range []string{"content", "snippet", "text"} {
		if data.Get(name).Text() != "" {
			content = name
		}
	}
	if content == "" {
		return nil
	}
	var rest []documentMember
	for o := scan.Members(data); o.Next(); {
		name, value := string(o.Key), o.Val
		switch name {
		case content, "id", "filename", "file_name", "published_at", "date", "authors":
			continue
		case "title", "url", "author":
			if value.IsString() {
				continue
			}
		}
		if !value.IsNull() {
			rest = append(rest, documentMember{name, value})
		}
	}
	return rest
}

// About returns what is known of a document besides its title, its address and its content, as lines for a model to
// read.
func (s *Source) About() []string {
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, strings.Join(strings.Fields(name+": "+value), " "))
		}
	}
	add("authors", strings.Join(s.Authors, ", "))
	add("published_at", s.PublishedAt)
	for _, m := range s.rest() {
		add(m.name, m.value.Text())
	}
	return lines
}

// context returns what Anthropic's models read of a document and never cite.
func (s *Source) context() []string {
	if s.URL == "" {
		return s.About()
	}
	return append([]string{s.URL}, s.About()...)
}

// withRest writes an object of ours, which can be written, with what else a document says of itself behind its own
// members.
func withRest(object any, s *Source) json.RawMessage {
	all, _ := Encode(object)
	own := scan.Value(bytes.Clone(all))
	for _, m := range s.rest() {
		name, err := Encode(m.name)
		if err != nil || own.Get(m.name) != nil {
			continue
		}
		all = all[:len(all)-1]
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(append(append(append(all, name...), ':'), m.value...), '}')
	}
	return all
}
