package wire

import (
	"path"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// readChunk reads a grounding chunk, of which exactly one arm is set. It reports false for one without an arm or with
// an unknown one; that is still a source, since supports may name it.
func readChunk(v scan.Value) (*Source, bool) {
	s := &Source{Kind: KindDocument, Raw: v}
	known := false
	for o := scan.Members(v); o.Next(); {
		if !o.Val.IsObject() {
			continue // SDKs write the arms that are not set as null
		}
		known = true
		switch string(o.Key) {
		case "web":
			webChunk(s, o.Val)
		case "retrievedContext", "retrieved_context":
			retrievedChunk(s, o.Val)
		case "maps":
			mapsChunk(s, o.Val)
		case "image":
			imageChunk(s, o.Val)
		default:
			known = false
			s.URL = pick(o.Val, "uri", "url").Str()
			s.Title = o.Val.Get("title").Str()
		}
	}
	return s, known
}

func webChunk(s *Source, v scan.Value) {
	s.Kind = KindWeb
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "domain":
			s.Site = o.Val.Str()
		}
	}
	if s.Site == "" {
		s.Site = siteOf(s.Title)
	}
}

// imageChunk reads an image that was found: the page it stands on is the source, not the picture's file.
func imageChunk(s *Source, v scan.Value) {
	s.Kind = KindImage
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "sourceUri", "source_uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "domain":
			s.Site = o.Val.Str()
		}
	}
}

func mapsChunk(s *Source, v scan.Value) {
	s.Kind = KindMap
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "text":
			s.Content = o.Val.Str()
		case "placeId", "place_id":
			s.GlobalID = o.Val.Str()
		}
	}
}

// retrievedChunk reads a piece of a file or document that was searched.
func retrievedChunk(s *Source, v scan.Value) {
	var document, media, file, custom string
	stored := false
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "text":
			if s.Content == "" {
				s.Content = o.Val.Str()
			}
		case "documentName", "document_name":
			document = o.Val.Str()
		case "mediaId", "media_id":
			media = o.Val.Str()
		case "fileSearchStore", "file_search_store":
			stored = !blank(o.Val)
		case "pageNumber", "page_number":
			s.Locator.Page = pageOf(o.Val)
		case "ragChunk", "rag_chunk":
			stored = stored || !blank(o.Val)
			file = ragChunk(s, o.Val)
		case "customMetadata", "custom_metadata":
			custom = sourceURL(o.Val)
		}
	}
	if s.URL != "" && !strings.Contains(s.URL, "://") { // a resource name such as fileSearchStores/…
		file, s.URL = firstOf(file, s.URL), ""
	}
	s.GlobalID = firstOf(document, media, file)
	if stored || s.GlobalID != "" || strings.HasPrefix(s.URL, "gs://") {
		s.Kind = KindFile
		s.Filename = fileTitle(s.Title)
	}
	if s.URL == "" {
		s.URL = custom
	}
}

// ragChunk reads a chunk of Vertex AI's RAG engine and returns the id of its file.
func ragChunk(s *Source, v scan.Value) (file string) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "text":
			if !blank(o.Val) {
				s.Content = o.Val.Str()
			}
		case "pageSpan", "page_span":
			s.Locator.Page = pageOf(pick(o.Val, "firstPage", "first_page"))
			if last := pageOf(pick(o.Val, "lastPage", "last_page")); last > s.Locator.Page && s.Locator.Page > 0 {
				s.Locator.LastPage = last
			}
		case "chunkId", "chunk_id":
			s.ChunkID = o.Val.Text()
			s.Locator.Chunk = s.ChunkID
		case "fileId", "file_id":
			file = o.Val.Text()
		}
	}
	return file
}

// sourceURL returns the address that whoever stored a file gave for it as its metadata source_url: in a list of keys
// and values, or as a member of an object.
func sourceURL(v scan.Value) string {
	if v.IsObject() {
		return v.Get("source_url").Str()
	}
	for a := scan.Elements(v); a.Next(); {
		if a.Val.Get("key").Str() == "source_url" {
			return pick(a.Val, "stringValue", "string_value").Str()
		}
	}
	return ""
}

// pageOf reads a 1-based page number; 0: there is none.
func pageOf(v scan.Value) int {
	if n, ok := v.Int(); ok && n > 0 {
		return n
	}
	return 0
}

// firstOf returns the first string that is not empty.
func firstOf(s ...string) string {
	for _, s := range s {
		if s != "" {
			return s
		}
	}
	return ""
}

// fileTitle returns a title that is a file's name, or "".
func fileTitle(title string) string {
	ext := path.Ext(title)
	if len(ext) < 2 || len(ext) > 6 || strings.ContainsAny(title, "/\n") || strings.ContainsAny(ext, " ,;:") {
		return ""
	}
	return title
}

// siteOf returns a title that is only a host's name, as Google's titles of web pages mostly are, or "".
func siteOf(title string) string {
	dot := strings.LastIndexByte(title, '.')
	if dot <= 0 || dot+3 > len(title) || strings.Contains(title, "..") {
		return ""
	}
	for _, r := range title {
		if r <= ' ' || strings.ContainsRune(`/\:?#@,;()"'`, r) {
			return ""
		}
	}
	switch top := strings.ToLower(title[dot+1:]); top {
	case "pdf", "html", "htm", "txt", "doc", "docx", "ppt", "pptx", "xls", "xlsx", "csv", "json", "xml", "php", "asp",
		"aspx", "jpg", "png":
		return "" // a file's name
	default:
		if digits([]byte(top), 0) > 0 {
			return ""
		}
	}
	return title
}
