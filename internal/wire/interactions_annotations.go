package wire

import (
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// annotations reads the citations of a text block. They may come again with the event that closes the stream.
func (p *interactions) annotations(part Part, list scan.Value) {
	if !list.IsNull() && !list.IsArray() {
		p.issue(IssueWrongType, "annotations", list)
	}
	for a := scan.Elements(list); a.Next(); {
		p.annotation(part, a.Val)
	}
	p.cites.say(&p.out)
}

// annotation is one citation, its members found but not read.
type annotation struct {
	kind, start, end                                   scan.Value
	url, title, name, placeID                          scan.Value
	fileName, documentURI, page, media, custom, origin scan.Value
}

func readAnnotation(v scan.Value) (a annotation) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			a.kind = o.Val
		case "start_index":
			a.start = o.Val
		case "end_index":
			a.end = o.Val
		case "url":
			a.url = o.Val
		case "title":
			a.title = o.Val
		case "name":
			a.name = o.Val
		case "place_id":
			a.placeID = o.Val
		case "file_name":
			a.fileName = o.Val
		case "document_uri":
			a.documentURI = o.Val
		case "page_number":
			a.page = o.Val
		case "media_id":
			a.media = o.Val
		case "custom_metadata":
			a.custom = o.Val
		case "source":
			a.origin = o.Val
		}
	}
	return a
}

// seenSource is what an annotation may add to a source that was said before.
type seenSource struct {
	key, title string
	page       int
}

// annotation files a citation, if it is all there.
func (p *interactions) annotation(part Part, v scan.Value) {
	if v.Cut() {
		return
	}
	a := readAnnotation(v)
	s := &Source{Raw: v}
	switch kind := a.kind.Bytes(); string(kind) {
	case "url_citation":
		a.urlSource(s)
	case "file_citation":
		a.fileSource(s)
	case "place_citation":
		a.placeSource(s)
	case "": // the first version of the API had one kind, without a name
		looseSource(s, a.origin.Str())
	default:
		p.unknown("annotation "+clip(string(kind)), v)
		return
	}
	if s.Key == "" {
		p.issue(IssueSourceless, "annotation "+a.kind.Str(), v)
		return
	}
	if seen := (seenSource{s.Key, s.Title, s.Locator.Page}); !p.sources[seen] {
		p.sources[seen] = true
		p.source(s)
	}
	cite := Cite{Part: part, Base: PartBase}
	p.byteSpan(&cite, a.start, a.end)
	p.cites.add(&cite, &Ref{Source: s.Key, Locator: s.Locator})
}

// keyed sets a source's kind, and its key to the first thing that names it.
func keyed(s *Source, kind string, names ...string) {
	if s.Kind = kind; firstOf(names...) != "" {
		s.Key = kind + ":" + firstOf(names...)
	}
}

func (a *annotation) urlSource(s *Source) {
	s.URL, s.Title = a.url.Str(), a.title.Str()
	s.Site = siteOf(s.Title)
	if keyed(s, KindWeb, s.Title); s.URL != "" {
		s.Key = "url:" + s.URL // as a page that the URL tool fetched
	}
}

func (a *annotation) fileSource(s *Source) {
	uri := a.documentURI.Str()
	s.Filename = a.fileName.Str()
	s.Title = s.Filename
	s.GlobalID = a.media.Str()
	s.Locator.Page = pageOf(a.page)
	if strings.Contains(uri, "://") {
		s.URL = uri
	} else if s.URL = sourceURL(a.custom); s.GlobalID == "" {
		s.GlobalID = uri // a resource name such as fileSearchStores/…
	}
	if keyed(s, KindFile, uri, s.GlobalID, s.Filename); s.Key == "" {
		looseSource(s, a.origin.Str())
		s.Kind = KindFile
	}
}

func (a *annotation) placeSource(s *Source) {
	s.Title, s.URL, s.GlobalID = a.name.Str(), a.url.Str(), a.placeID.Str()
	keyed(s, KindMap, s.GlobalID, s.URL, s.Title)
}

// looseSource reads a source that is a single string: an address, a title or another name.
func looseSource(s *Source, name string) {
	if strings.Contains(name, "://") {
		s.URL = name
		keyed(s, KindWeb, name)
		return
	}
	s.Title = name
	keyed(s, KindDocument, name)
}
