package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// ReadDocuments returns the documents of a file. JSON lines (.jsonl, .ndjson) and JSON arrays (.json) have one document
// for each object with a text, which is in the member text, content, body, page_content, snippet or data; id, title,
// url and similar members describe it. Strings in a JSON array are documents too. Any other file is one document.
//
// A line that is not a document becomes an issue of the first document, unless no line is one. So do bytes of JSON that
// are not UTF-8.
func ReadDocuments(name string, b []byte, o *TextOptions) ([]Document, error) {
	opts := TextOptions{}
	if o != nil {
		opts = *o
	}
	opts.Name = cmp.Or(opts.Name, name)
	if most := cmp.Or(opts.Bytes, MaxBytes); len(b) > most {
		return nil, fmt.Errorf("%s: %w: it has more than %d bytes", name, ErrTooLarge, most)
	}
	said, _ := splitType(opts.MediaType)
	body := bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	switch mediaType := recognise(b, said, &opts); {
	case mediaType == typeLines, strings.HasSuffix(mediaType, "ndjson"), mediaType == "application/x-jsonlines":
		docs, err := readLines(name, body, &opts)
		return noteInvalidUTF8(docs, body), err
	case mediaType == typeJSON:
		docs, err := readArray(name, body, &opts)
		if err != nil || docs != nil {
			return noteInvalidUTF8(docs, body), err
		}
	}
	t, err := Extract(b, &opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := Document{ID: path.Base(name), Title: t.Title, URL: cmp.Or(opts.URL, t.URL), Text: t}
	d.fillSource(ibid.File, path.Base(name))
	return []Document{d}, nil
}

// noteInvalidUTF8 adds an issue to the first document if the JSON has bytes that are not UTF-8.
func noteInvalidUTF8(docs []Document, b []byte) []Document {
	if len(docs) == 0 || utf8.Valid(b) {
		return docs
	}
	n := 1
	for line := range bytes.Lines(b) {
		if !utf8.Valid(line) {
			break
		}
		n++
	}
	docs[0].Text.Issues = append(docs[0].Text.Issues, ibid.Issue{
		Code: IssueInvalidUTF8, Detail: fmt.Sprintf("bytes that are not UTF-8 are lost, the first in line %d", n),
	})
	return docs
}

// readLines reads JSON lines.
func readLines(name string, b []byte, o *TextOptions) ([]Document, error) {
	var docs []Document
	var issues []ibid.Issue
	var failed error
	n := 0
	for line := range bytes.Lines(b) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		d, err := readMember(line, name+"#"+strconv.Itoa(n), o)
		if err != nil {
			if failed == nil {
				failed = fmt.Errorf("%s: line %d: %w", name, n, err)
			}
			if len(issues) < maxLineIssues {
				detail := fmt.Sprintf("line %d: %v", n, err)
				issues = append(issues, ibid.Issue{Code: IssueLineUnreadable, Detail: detail})
			}
			continue
		}
		if err := checkCount(name, len(docs), o); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	if len(docs) == 0 {
		return nil, cmp.Or(failed, fmt.Errorf("%s: %w", name, ErrEmpty))
	}
	docs[0].Text.Issues = append(docs[0].Text.Issues, issues...)
	return docs, nil
}

// maxLineIssues is how many unreadable lines of a file are reported individually.
const maxLineIssues = 100

// checkCount refuses a file with too many documents.
func checkCount(name string, n int, o *TextOptions) error {
	if most := cmp.Or(o.Documents, maxDocuments); n >= most {
		return fmt.Errorf("%s: %w: it has more than %d documents", name, ErrTooLarge, most)
	}
	return nil
}

// readArray reads a JSON array of documents, an object with such an array, or an object that is one. For other JSON it
// returns nil: that is a text.
func readArray(name string, b []byte, o *TextOptions) ([]Document, error) {
	items := elements(b)
	if items == nil {
		if d, err := readMember(b, name, o); err == nil {
			return []Document{d}, nil
		}
		return nil, nil
	}
	var docs []Document
	for i, item := range items {
		d, err := readMember(item, name+"#"+strconv.Itoa(i+1), o)
		if err != nil {
			if i == 0 {
				return nil, nil // an array of something else
			}
			if t := docs[0].Text; len(t.Issues) < maxLineIssues {
				issue := ibid.Issue{Code: IssueLineUnreadable, Detail: fmt.Sprintf("element %d: %v", i+1, err)}
				t.Issues = append(t.Issues, issue)
			}
			continue
		}
		if err := checkCount(name, len(docs), o); err != nil {
			return nil, err
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// elements returns the elements of an array, or of the array of documents in an object.
func elements(b []byte) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(b, &items) == nil {
		return items
	}
	var holder map[string]json.RawMessage
	if json.Unmarshal(b, &holder) != nil {
		return nil
	}
	for _, key := range []string{"documents", "results", "passages", "sources", "items"} {
		if json.Unmarshal(holder[key], &items) == nil && len(items) > 0 {
			return items
		}
	}
	return nil
}

var errNoText = errors.New("it is not a string and has no text, content, body, snippet or data")

// readMember reads one document of a file that holds several. id is its id if it has none itself.
func readMember(raw []byte, id string, o *TextOptions) (Document, error) {
	var flat string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) && json.Unmarshal(raw, &flat) == nil {
		return plainDocument(flat, id, o)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Document{}, fmt.Errorf("it is not a JSON object: %w", err)
	}
	own := member(fields, "id", "doc_id", "document_id", "docid", "_id")
	for _, key := range []string{"data", "document", "metadata"} { // one level deeper
		var inner map[string]json.RawMessage
		if json.Unmarshal(fields[key], &inner) == nil {
			for k, v := range inner {
				if _, taken := fields[k]; !taken {
					fields[k] = v
				}
			}
		}
	}
	words := member(
		fields, "text", "content", "page_content", "body", "contents", "passage", "chunk", "snippet", "excerpt", "data",
	)
	if words == "" {
		return Document{}, errNoText
	}
	d, err := plainDocument(words, cmp.Or(own, id), o)
	if err != nil {
		return Document{}, err
	}
	t := d.Text
	t.Authors = nil
	for _, key := range []string{"authors", "author"} {
		var who any
		if t.Authors == nil && json.Unmarshal(fields[key], &who) == nil {
			t.Authors = people(who)
		}
	}
	first(&t.Title, member(fields, "title", "name", "document_title"))
	first(&t.PublishedAt, isoDate(member(fields, "published_at", "published", "date", "created_at")))
	first(&t.License, member(fields, "license", "licence"))
	first(&t.Site, member(fields, "site", "publisher"))
	first(&t.Language, member(fields, "language", "lang"))
	first(&t.URL, member(fields, "url", "uri", "link", "source_url"))
	d.Title, d.URL = t.Title, t.URL
	d.fillSource(ibid.DocumentKind, "")
	return d, nil
}

// plainDocument makes a document from a text that is already decoded.
func plainDocument(words, id string, o *TextOptions) (Document, error) {
	t, err := Extract([]byte(words), &TextOptions{MediaType: typeMarkdown + "; charset=utf-8", Limits: o.Limits})
	if err != nil {
		return Document{}, err
	}
	t.MediaType, t.Title = typePlain, ""
	d := Document{ID: id, Text: t}
	d.fillSource(ibid.DocumentKind, "")
	return d, nil
}

// member returns the first of the members that is a non-blank string or a number.
func member(fields map[string]json.RawMessage, keys ...string) string {
	for _, key := range keys {
		raw := fields[key]
		var s string
		if json.Unmarshal(raw, &s) == nil && strings.TrimSpace(s) != "" {
			return s
		}
		var n json.Number
		if json.Unmarshal(raw, &n) == nil && n != "" {
			return n.String()
		}
	}
	return ""
}

// fillSource sets the document's Source. One without an address is identified by its text, wherever it is stored.
func (d *Document) fillSource(kind ibid.SourceKind, filename string) {
	t := d.Text
	d.Source = ibid.Source{
		ID: d.ID, Kind: kind, Title: d.Title, Filename: filename, Site: t.Site, Authors: t.Authors,
		PublishedAt: t.PublishedAt, License: t.License,
	}
	if strings.HasPrefix(d.URL, "https://") || strings.HasPrefix(d.URL, "http://") {
		d.Source.URL = d.URL
		if kind == ibid.DocumentKind {
			d.Source.Kind = ibid.Web
		}
		return
	}
	d.Source.GlobalID = Hash([]byte(t.Content))[:len("sha256:")+32]
}
