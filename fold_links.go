package ibid

import (
	"strings"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/wire"
)

// links finds the links in a text whose address is that of a source, for providers that tell their models to cite by
// links and send a list of sources without places. It reads the text once, as it grows. A link to a source that comes
// only later is read again at the end.
type links struct {
	at      int    // where the text goes on to be read
	from    int    // where the text to read begins
	unknown []link // to addresses that no source has so far
	code    codeState
	sources map[string]int // indexes of the sources by their addresses
	known   int            // how many of the sources are in it
}

// link is a link in the text.
type link struct {
	Span
	address string
}

func (l *links) restart() { *l = links{at: l.from, from: l.from} }

// readLinks makes links to sources citations.
func (c *candidate) readLinks() {
	if c.sourceLinks == nil {
		c.sourceLinks = &links{at: c.marked, from: c.marked}
	}
	c.scanLinks(c.closed)
}

// scanLinks adds citations for the links that have become certain.
func (c *candidate) scanLinks(last bool) {
	l, text := c.sourceLinks, c.text.String()
	for l.at < len(text) {
		n := strings.IndexAny(text[l.at:], "`[\\")
		if n < 0 {
			l.at = len(text)
			break
		}
		l.at += n
		var step int
		rest, certain := text[l.at:], true
		switch rest[0] {
		case '`':
			step, certain = markdown.Code(rest, last)
			step = max(step, markdown.Run(rest))
		case '[':
			step, certain = markdown.Link(rest, last)
			if l.code.advance(text[:l.at]); l.code.fence == "" && step > 0 && !beginsImage(text, l.at) {
				if end := strings.LastIndex(rest[:step], "]("); end > 0 && certain {
					c.addLink(link{Span{l.at, l.at + step}, destination(rest[end+2 : step-1])})
				}
			}
			step = max(step, 1)
		default:
			step = 2
		}
		if !certain && !last {
			break
		}
		l.at = min(l.at+step, len(text))
	}
	if last {
		for _, link := range l.unknown {
			c.citeLink(link)
		}
		l.unknown = nil
	}
}

// destination returns the address of a link, without its title.
func destination(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), " ")
	return strings.Trim(s, "<>")
}

// addLink adds a citation for a link, now or at the end.
func (c *candidate) addLink(l link) {
	if !c.citeLink(l) && len(c.sourceLinks.unknown) < c.fold.limits.Items && c.fold.keep(entrySize) {
		c.sourceLinks.unknown = append(c.sourceLinks.unknown, l)
	}
}

// citeLink adds a citation for a link if its address is that of a source.
func (c *candidate) citeLink(l link) bool {
	t := &c.fold.sources
	for ; c.sourceLinks.known < len(t.list); c.sourceLinks.known++ {
		s := &t.list[c.sourceLinks.known]
		if s.URL == "" {
			continue
		}
		if c.sourceLinks.sources == nil {
			c.sourceLinks.sources = map[string]int{}
		}
		if c.fold.keep(entrySize + len(s.URL)) {
			c.sourceLinks.sources[sameAddress(s.URL)] = c.sourceLinks.known
		}
	}
	source, ok := c.sourceLinks.sources[sameAddress(l.address)]
	if !ok {
		return false
	}
	if c.marks != nil && c.marks.urls[string(appendNormalURL(nil, l.address))] > 0 {
		return true // it is read as a mark
	}
	const most = 10_000 // citations up to which a link is compared with all of them
	for i := range c.cites {
		if cite := &c.cites[i]; i < most && !cite.withdrawn && cite.anchor != AnchorNone && cite.covers == CoversLink &&
			cite.span.Start < l.End && cite.span.End > l.Start {
			return true // the provider's own, or a mark
		}
	}
	c.addCite(&wire.Cite{
		Key: linkKey(l.Start), Part: wire.Part{Candidate: c.index}, Base: wire.AnswerBase,
		Unit: wire.Bytes, Start: l.Start, End: l.End, Covers: wire.Link, Origin: wire.OriginMarker,
		Quote: c.text.String()[l.Start:l.End], Refs: []wire.Ref{{Source: t.keyOf(source)}},
	})
	return true
}

// sameAddress returns what equal addresses have in common: neither a tag of who sent the reader, nor a final slash.
func sameAddress(url string) string {
	url = cleanURL(url)
	if i := strings.Index(url, "utm_source="); i > 0 {
		end := strings.IndexByte(url[i:], '&')
		if end < 0 {
			url = url[:i-1]
		} else {
			url = url[:i] + url[i+end+1:]
		}
	}
	url, _, _ = strings.Cut(url, "#")
	return strings.TrimSuffix(url, "/")
}
