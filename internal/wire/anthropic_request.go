package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// requestDocuments collects the document blocks and the search results of a request, in the order that citations count
// them: over all messages, those inside tool results too.
func requestDocuments(request scan.Value) (documents, results []Source) {
	var walk func(content scan.Value, depth int)
	walk = func(content scan.Value, depth int) {
		for blocks := scan.Elements(content); blocks.Next(); {
			b := blocks.Val
			switch string(b.Type()) {
			case "document":
				documents = append(documents, requestDocument(b, len(documents)))
			case "web_fetch_tool_result":
				if page := fetchedPage(b.Get("content")); page.URL != "" {
					documents = append(documents, page)
				}
			case "search_result":
				results = append(results, requestResult(b, len(results)))
			case "tool_result":
				if depth == 0 {
					walk(b.Get("content"), 1)
				}
			}
		}
	}
	for messages := scan.Elements(request.Get("messages")); messages.Next(); {
		walk(messages.Val.Get("content"), 0)
	}
	return documents, results
}

func requestDocument(b scan.Value, i int) Source {
	s := Source{Key: numbered("doc:", i), Kind: KindDocument, Title: b.Get("title").Str()}
	src := b.Get("source")
	switch string(src.Type()) {
	case "text":
		s.Content = src.Get("data").Str()
	case "content":
		s.Content = contentText(src.Get("content"))
	case "url":
		s.URL = src.Get("url").Str()
	case "file":
		s.Kind, s.GlobalID = KindFile, src.Get("file_id").Str()
	}
	return s
}

func requestResult(b scan.Value, i int) Source {
	s := Source{
		Key:     numbered("sr:", i),
		Kind:    KindDocument,
		Title:   b.Get("title").Str(),
		Content: contentText(b.Get("content")),
	}
	setAddress(&s, b.Get("source").Str())
	return s
}

// setAddress takes what a caller named as a search result's source: an address, or any other name.
func setAddress(s *Source, address string) {
	switch {
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		s.Kind, s.URL = KindWeb, address
	case s.Title == "":
		s.Title = address
	default:
		s.GlobalID = address
	}
}

// contentText joins the texts of content blocks, or returns a content that is a string.
func contentText(v scan.Value) string {
	if v.IsString() {
		return v.Str()
	}
	var b strings.Builder
	for blocks := scan.Elements(v); blocks.Next(); {
		b.Write(blocks.Val.Get("text").Bytes())
	}
	return b.String()
}
