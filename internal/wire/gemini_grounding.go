package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
)

// groundingField names a field of the metadata that is kept until the candidate ends.
type groundingField int

const (
	fieldChunks groundingField = iota
	fieldSupports
	fieldWebQueries
	fieldImageQueries
	fieldRetrievalQueries
	fieldEntryPoint
	fieldURLs
	groundingFields
)

// maxShifts bounds how many parts a support is tried at. Real answers have a handful of parts.
const maxShifts = 32

// grounding is what is known of a candidate's sources and citations.
type grounding struct {
	fields   [groundingFields]scan.Value // the last that said something, copied
	unsaid   bool                        // fields changed since they were said
	chunks   []saidChunk                 // as said last
	round    int                         // how often fields were said
	supports []bool                      // which supports were said as citations
	shifts   []int

	// Unlike grounding, each chunk of a stream brings only the recitations found since the last.
	recited     []scan.Value    // copied
	recitedSaid int             // so many of them were said
	recitedSeen map[string]bool // the JSON of those of earlier chunks
}

// saidChunk is one grounding chunk as it was said: supports name it by its place in the list.
type saidChunk struct {
	key     string
	raw     scan.Value
	quote   string // the retrieved text: what the source says
	locator Locator
}

// keep stores a field if it says something. The value that was there may still be in use: it is not overwritten.
func (gr *grounding) keep(f groundingField, v scan.Value) {
	if !blank(v) && !bytes.Equal(gr.fields[f], v) {
		gr.fields[f] = bytes.Clone(v)
		gr.unsaid = true
	}
}

// ground files a candidate's groundingMetadata.
func (g *generate) ground(c *candidate, v scan.Value) {
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "groundingChunks", "grounding_chunks":
			c.keep(fieldChunks, o.Val)
		case "groundingSupports", "grounding_supports":
			c.keep(fieldSupports, o.Val)
		case "webSearchQueries", "web_search_queries":
			c.keep(fieldWebQueries, o.Val)
		case "imageSearchQueries", "image_search_queries":
			c.keep(fieldImageQueries, o.Val)
		case "retrievalQueries", "retrieval_queries":
			c.keep(fieldRetrievalQueries, o.Val)
		case "searchEntryPoint", "search_entry_point":
			c.keep(fieldEntryPoint, o.Val)
		default:
			if !blank(o.Val) { // retrievalMetadata, googleMapsWidgetContextToken, sourceFlaggingUris …
				g.meta(c.prefix+string(o.Key), o.Val)
			}
		}
	}
}

// recite files the recitations of one document. A chunk that repeats those of former chunks adds nothing; within one
// list the same entry twice is two citations.
func (g *generate) recite(c *candidate, v scan.Value) {
	list := pick(v, "citationSources", "citation_sources", "citations")
	before := len(c.recited)
	for a := scan.Elements(list); a.Next() && !a.Cut(); {
		if !c.recitedSeen[string(a.Val)] {
			c.recited = append(c.recited, bytes.Clone(a.Val))
		}
	}
	if len(c.recited) > before && c.recitedSeen == nil {
		c.recitedSeen = map[string]bool{}
	}
	for _, r := range c.recited[before:] {
		c.recitedSeen[string(r)] = true
	}
}

// close says what was kept of a candidate and not said yet.
func (g *generate) close(c *candidate) {
	if c.unsaid {
		c.unsaid = false
		g.queries(c.fields[fieldWebQueries])
		g.queries(c.fields[fieldImageQueries])
		g.queries(c.fields[fieldRetrievalQueries])
		g.suggestions(g.once, pick(c.fields[fieldEntryPoint], "renderedContent", "rendered_content"))
		g.sources(c)
		g.urls(c)
		g.cites(c)
		c.round++
	}
	for ; c.recitedSaid < len(c.recited); c.recitedSaid++ {
		g.recitation(c, c.recitedSaid, c.recited[c.recitedSaid])
	}
}

func (g *generate) queries(v scan.Value) {
	for a := scan.Elements(v); a.Next(); {
		if g.once.first("query:" + string(a.Val)) {
			g.query(a.Val)
		}
	}
}

// suggestions says, once, the search suggestions that Google's terms demand to be shown.
func (o *out) suggestions(once onceSet, html scan.Value) {
	if b := html.Bytes(); len(b) > 0 && !once[string(b)] {
		s := string(b)
		once[s] = true
		o.say(Op{Kind: Display, Name: searchSuggestions, More: s})
	}
}

// searchSuggestions is the kind of display that Google's search grounding demands.
const searchSuggestions = "google-search-suggestions"

// sources says the grounding chunks. Should a later list differ from the one said before, those in which it differs get
// other keys, so that they do not add to the wrong source.
func (g *generate) sources(c *candidate) {
	former := c.chunks
	c.chunks = nil
	for a := scan.Elements(c.fields[fieldChunks]); a.Next(); {
		i := len(c.chunks)
		if i < len(former) && bytes.Equal(former[i].raw, a.Val) {
			c.chunks = append(c.chunks, former[i])
			continue
		}
		key := c.prefix + numbered("chunk:", i)
		if i < len(former) {
			key += numbered("~", c.round)
		}
		s, known := readChunk(a.Val)
		if s.Key = key; !known {
			g.unknown(numbered("grounding chunk ", i), a.Val)
		}
		g.source(s)
		c.chunks = append(c.chunks, saidChunk{key, a.Val, s.Content, s.Locator})
	}
}

// cites says the supports, and takes back those that are gone from the list.
func (g *generate) cites(c *candidate) {
	c.findShifts()
	former := c.supports
	c.supports = nil
	for a := scan.Elements(c.fields[fieldSupports]); a.Next() && !a.Cut(); {
		i := len(c.supports)
		cite, ok := g.support(c, i, a.Val)
		c.supports = append(c.supports, ok)
		if ok {
			g.cite(cite)
			continue
		}
		g.issue(IssueSourceless, cite.Key, a.Val)
		if i < len(former) && former[i] {
			g.say(Op{Kind: Withdraw, Name: cite.Key})
		}
	}
	for i := len(c.supports); i < len(former); i++ {
		if former[i] {
			g.say(Op{Kind: Withdraw, Name: c.prefix + numbered("support:", i)})
		}
	}
}

// findShifts lists where else offsets may count from: from the beginning of each part, and with the thoughts before it.
func (c *candidate) findShifts() {
	c.shifts = append(c.shifts[:0], 0)
	add := func(shift int) {
		if len(c.shifts) < maxShifts && !slices.Contains(c.shifts, shift) {
			c.shifts = append(c.shifts, shift)
		}
	}
	for _, p := range c.parts {
		add(p.start)
	}
	for _, p := range c.parts {
		add(-p.hidden)
	}
	if len(c.shifts) == 1 {
		c.shifts = nil
	}
}

// support reads one element of groundingSupports. It reports false where no chunk is left that the citation could point
// to.
func (g *generate) support(c *candidate, i int, v scan.Value) (*Cite, bool) {
	cite := &Cite{Key: c.prefix + numbered("support:", i), Part: c.part, Base: AnswerBase, Shifts: c.shifts}
	var segment, indices, scores scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "segment":
			segment = o.Val
		case "segment_text", "segmentText":
			cite.Quote = o.Val.Str()
		case "groundingChunkIndices", "grounding_chunk_indices", "supportChunkIndices", "support_chunk_indices":
			if !blank(o.Val) {
				indices = o.Val
			}
		case "confidenceScores", "confidence_scores", "confidenceScore", "confidence_score":
			scores = o.Val
		}
	}
	g.segment(c, cite, segment)
	confidence := scan.Elements(scores)
	for a := scan.Elements(indices); a.Next(); {
		confidence.Val = nil
		confidence.Next()
		n, ok := g.index("groundingChunkIndices", a.Val)
		if !ok {
			continue
		}
		if n >= len(c.chunks) {
			g.issue(IssueChunkIndex, fmt.Sprintf("%s names chunk %d of %d", cite.Key, n, len(c.chunks)), nil)
			continue
		}
		ch := &c.chunks[n]
		cite.Refs = append(
			cite.Refs,
			Ref{Source: ch.key, Quote: ch.quote, Locator: ch.locator, Confidence: score(confidence.Val)},
		)
	}
	return cite, len(cite.Refs) > 0
}

// segment reads which words a support is about. A part index is nearly never sent: then the offsets count over the
// whole text. Where it is, they count over that part first of all, and over the whole text if the words are not there.
func (g *generate) segment(c *candidate, cite *Cite, v scan.Value) {
	var start, end, part scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "startIndex", "start_index":
			start = o.Val
		case "endIndex", "end_index":
			end = o.Val
		case "partIndex", "part_index":
			part = o.Val
		case "text":
			cite.Quote = o.Val.Str()
		}
	}
	g.byteSpan(cite, start, end)
	if cite.Unit == Nowhere {
		cite.Shifts = nil
		return
	}
	n, ok := g.index("partIndex", part)
	if !ok {
		return
	}
	for _, p := range c.parts {
		if p.index == n && p.start > 0 {
			others := slices.DeleteFunc(slices.Clone(c.shifts), func(s int) bool { return s == p.start })
			cite.Shifts = slices.Concat([]int{p.start}, others)
		}
	}
}

// byteSpan fills a citation's offsets in bytes. Google leaves zeros out: without a start it begins at 0, without an end
// it has no place, and the quote, if there is one, is all there is to find it by.
func (o *out) byteSpan(cite *Cite, start, end scan.Value) {
	from, ok := o.index("startIndex", start)
	to, placed := o.index("endIndex", end)
	cite.Unit = Bytes
	if cite.Start, cite.End = from, to; !placed || to == 0 || !ok && !start.IsNull() {
		cite.Unit, cite.Start, cite.End = Nowhere, 0, 0
	}
}

// urls says the pages that the model fetched with its URL tool.
func (g *generate) urls(c *candidate) {
	i := -1
	for a := scan.Elements(c.fields[fieldURLs]); a.Next(); {
		i++
		status := pick(a.Val, "urlRetrievalStatus", "url_retrieval_status").Text()
		g.fetched(g.once, pick(a.Val, "retrievedUrl", "retrieved_url").Str(), status, a.Val)
	}
}

// fetched says one page that the model asked for and, where it did not get it, why. A page that was not read stays a
// source, since a citation may name it.
func (o *out) fetched(once onceSet, url, status string, raw scan.Value) {
	if !once.first("fetched:" + url + " " + status) {
		return
	}
	if url != "" {
		o.source(&Source{Key: "url:" + url, Kind: KindWeb, URL: url, Raw: raw})
	}
	word := strings.ToUpper(strings.TrimPrefix(status, "URL_RETRIEVAL_STATUS_"))
	if word != "" && word != "SUCCESS" && word != "UNSPECIFIED" {
		o.issue(IssueSourceFailed, strings.TrimSpace(word+" "+url), raw)
	}
}

// recitation says one passage that Google found to repeat a known text.
func (g *generate) recitation(c *candidate, i int, v scan.Value) {
	var start, end scan.Value
	s := &Source{Key: c.prefix + numbered("citation:", i), Kind: KindDocument, Raw: v}
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "startIndex", "start_index":
			start = o.Val
		case "endIndex", "end_index":
			end = o.Val
		case "uri":
			s.URL = o.Val.Str()
		case "title":
			s.Title = o.Val.Str()
		case "license":
			s.License = o.Val.Str()
		case "publicationDate", "publication_date":
			s.PublishedAt = calendarDate(o.Val)
		}
	}
	cite := &Cite{Key: s.Key, Part: c.part, Base: AnswerBase}
	if s.URL == "" && s.Title == "" && s.License == "" {
		g.issue(IssueSourceless, cite.Key, v)
		return
	}
	if s.URL != "" {
		s.Kind = KindWeb
		s.Key = "recited:" + s.URL
	}
	g.byteSpan(cite, start, end)
	if s.URL == "" || g.once.first(s.Key+" "+s.Title+" "+s.License) {
		g.source(s)
	}
	cite.Refs = []Ref{{Source: s.Key}}
	g.cite(cite)
}

// calendarDate reads a date that is given as a string or as the numbers of its year, month and day, the last of which
// may be unknown.
func calendarDate(v scan.Value) string {
	if v.IsString() {
		return v.Str()
	}
	year, _ := v.Get("year").Int()
	month, _ := v.Get("month").Int()
	day, _ := v.Get("day").Int()
	switch {
	case year < 1 || year > 9999:
		return ""
	case month < 1 || month > 12:
		return fmt.Sprintf("%04d", year)
	case day < 1 || day > 31:
		return fmt.Sprintf("%04d-%02d", year, month)
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day)
}
