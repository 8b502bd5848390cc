package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// ReadDocuments reads a list of documents as in Cohere's requests, which users write as well: a JSON array of strings,
// of flat objects, or of {"id", "data"}. The Key and ID of a document without an id are empty.
func ReadDocuments(list scan.Value) ([]Source, error) {
	switch {
	case list.IsNull():
		return nil, nil
	case !list.IsArray():
		return nil, errors.New("not a JSON array")
	case !json.Valid(list):
		return nil, errors.New("not JSON")
	}
	var docs []Source
	for a := scan.Elements(list); a.Next(); {
		s := Source{Kind: kindDocument, Raw: a.Val}
		switch {
		case a.Val.IsString():
			s.Content = a.Val.Str()
		case a.Val.IsObject():
			data := a.Val
			if inner := a.Val.Get("data"); !inner.IsNull() {
				data = inner
			} else if inner := a.Val.Path("source", "data"); inner.IsObject() { // Groq's
				data = inner
			} else if inner := a.Val.Get("source"); inner.Get("text").IsString() {
				data = inner
			}
			fillDocument(&s, data)
			s.ID = a.Val.Get("id").Text()
			s.Key = s.ID
		default:
			return docs, fmt.Errorf("element %d is neither a string nor an object", len(docs))
		}
		docs = append(docs, s)
	}
	return docs, nil
}

// fillDocument reads a document's members. Its content is its text, else its snippet, else its content, else all of it
// as JSON.
func fillDocument(s *Source, data scan.Value) {
	if !data.IsObject() {
		if s.Content = data.Text(); data.IsArray() && !data.Cut() {
			s.Content = Compact(data)
		}
		return
	}
	var filename, file, published, date, author, authors, text, snippet, content scan.Value
	data.Read(scan.Fields{
		{"title", &s.Title},
		{"url", &s.URL},
		{"filename", &filename},
		{"file_name", &file},
		{"published_at", &published},
		{"date", &date},
		{"author", &author},
		{"authors", &authors},
		{"text", &text},
		{"snippet", &snippet},
		{"content", &content},
	})
	for _, by := range []scan.Value{author, authors} { // either may be a name or a list
		if by.IsString() && by.Str() != "" {
			s.Authors = append(s.Authors, by.Str())
		}
		for a := scan.Elements(by); a.Next() && len(s.Authors) < maxItems; {
			s.Authors = append(s.Authors, a.Val.Text())
		}
	}
	s.Filename = cmp.Or(filename.Text(), file.Text())
	s.PublishedAt = cmp.Or(published.Text(), date.Text())
	if s.Content = cmp.Or(text.Text(), snippet.Text(), content.Text()); s.Content == "" {
		s.Content = jsonText(data)
	}
}

// jsonText returns data without its id and without white space, so that the same data gives the same words in any form.
// It is empty if the id is all there is, or if data breaks off.
func jsonText(data scan.Value) string {
	if data.Cut() {
		return ""
	}
	var b bytes.Buffer
	for o := scan.Members(data); o.Next(); {
		if string(o.Key) == "id" {
			continue
		}
		name, _ := json.Marshal(string(o.Key)) // a string can always be encoded
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(Compact(o.Val))
	}
	if b.Len() == 0 {
		return ""
	}
	return b.String() + "}"
}

// Compact returns v without white space between its tokens, or unchanged if it is damaged.
func Compact(v scan.Value) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}

// IsRedirect reports whether an address is one of a provider's own that redirects to the source without naming it.
// Google's grounded answers cite such addresses, which stop working after a while.
func IsRedirect(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, "vertexaisearch.cloud.google.com") &&
		strings.HasPrefix(u.Path, "/grounding-api-redirect/") && len(u.Path) > len("/grounding-api-redirect/")
}
