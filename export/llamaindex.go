package export

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

// LlamaIndex's Response, NodeWithScore and TextNode, of llama_index.core, as their own to_dict writes them.
type (
	response struct {
		Response string                  `json:"response"`
		Nodes    []nodeWithScore         `json:"source_nodes"`
		Metadata map[string]nodeMetadata `json:"metadata"` // of the nodes, by their ids
	}
	nodeWithScore struct {
		Node  textNode `json:"node"`
		Score *float64 `json:"score"`
		Class string   `json:"class_name"`
	}
	textNode struct {
		ID       string       `json:"id_"`
		Metadata nodeMetadata `json:"metadata"`
		Text     string       `json:"text"`
		Class    string       `json:"class_name"`
	}
	// nodeMetadata uses the names of LlamaIndex's own file readers, where they have one.
	nodeMetadata struct {
		Number      int              `json:"citation_number"`
		Cited       bool             `json:"cited"`
		Kind        ibid.SourceKind  `json:"source_kind"`
		Title       string           `json:"title,omitempty"`
		URL         string           `json:"url,omitempty"`
		Filename    string           `json:"file_name,omitempty"`
		FileID      string           `json:"file_id,omitempty"`
		Page        string           `json:"page_label,omitempty"` // if a single page is cited
		Site        string           `json:"site,omitempty"`
		Author      string           `json:"author,omitempty"`
		PublishedAt string           `json:"published_at,omitempty"`
		License     string           `json:"license,omitempty"`
		ScoreOrigin ibid.ScoreOrigin `json:"score_origin,omitempty"`
	}
)

// newResponse returns a as a LlamaIndex response. Each source is one node, ordered by number: that is how readers
// resolve [n].
func newResponse(a *ibid.Answer, o *Options) response {
	numbering := o.Numbering
	if numbering == nil {
		numbering = &ibid.Numbering{}
	}
	r := newRows(a, &Options{Numbering: numbering, Numbers: o.Numbers, Context: o.Context})
	if o.Numbering == nil && !r.counts() {
		*numbering, o.Numbers = nil, ibid.NumbersUsed
		r = newRows(a, &Options{Numbering: numbering, Numbers: o.Numbers, Context: o.Context})
	}
	used := map[string]*usage{}
	r.each(func(row *ibid.DocumentCitation, s *ibid.Source, _ *ibid.DocumentSource) {
		u := used[s.ID]
		if u == nil {
			u = &usage{seen: map[string]bool{}}
			used[s.ID] = u
		}
		u.add(row)
	})
	out := response{
		Response: a.Render(&ibid.RenderOptions{
			Style: ibid.StylePlain, Numbering: numbering, Numbers: o.Numbers, Context: o.Context,
		}),
		Nodes: make([]nodeWithScore, 0, len(a.Sources)), Metadata: make(map[string]nodeMetadata, len(a.Sources)),
	}
	for i := range a.Sources {
		if r.sources[a.Sources[i].ID] != i {
			continue // a duplicate id, which cannot be cited
		}
		n := newNode(&a.Sources[i], &r.document.Sources[i], used[a.Sources[i].ID])
		out.Nodes = append(out.Nodes, n)
		out.Metadata[n.Node.ID] = n.Node.Metadata
	}
	slices.SortStableFunc(out.Nodes, func(a, b nodeWithScore) int {
		return cmp.Compare(a.Node.Metadata.Number, b.Node.Metadata.Number)
	})
	return out
}

// usage is what the citations of one source have of it.
type usage struct {
	quotes []string
	seen   map[string]bool
	pages  []int // first pages, without repetitions in a row
}

func (u *usage) add(row *ibid.DocumentCitation) {
	if q := row.Quote; q != nil && !u.seen[*q] {
		u.seen[*q] = true
		u.quotes = append(u.quotes, *q)
	}
	if l := row.Locator; l != nil && l.Page > 0 && (len(u.pages) == 0 || u.pages[len(u.pages)-1] != l.Page) {
		u.pages = append(u.pages, l.Page)
	}
}

func newNode(s *ibid.Source, shown *ibid.DocumentSource, u *usage) nodeWithScore {
	m := nodeMetadata{
		Number:      shown.Index,
		Cited:       shown.Cited,
		Kind:        s.Kind,
		Title:       s.Title,
		URL:         s.URL,
		Filename:    s.Filename,
		FileID:      fileID(s),
		Site:        s.Site,
		Author:      strings.Join(s.Authors, "; "),
		PublishedAt: s.PublishedAt,
		License:     s.License,
	}
	if shown.ScoreOrigin != nil {
		m.ScoreOrigin = *shown.ScoreOrigin
	}
	if u != nil && len(u.pages) == 1 {
		m.Page = strconv.Itoa(u.pages[0])
	}
	return nodeWithScore{
		Node:  textNode{ID: s.ID, Metadata: m, Text: nodeText(s, u), Class: "TextNode"},
		Score: shown.Score, Class: "NodeWithScore",
	}
}

// nodeText returns the known text of a source: all its pieces, or its content, or its quotes.
func nodeText(s *ibid.Source, u *usage) string {
	var pieces []string
	for i := range s.Chunks {
		if c := s.Chunks[i].Content; c != "" {
			pieces = append(pieces, c)
		}
	}
	switch {
	case len(pieces) > 0:
	case s.Content != "":
		return s.Content
	case u != nil:
		pieces = u.quotes
	}
	return strings.Join(pieces, "\n\n")
}

// counts reports whether the numbers of the sources count from 1.
func (r *rows) counts() bool {
	for i := range r.document.Sources {
		if r.document.Sources[i].Index > len(r.document.Sources) {
			return false
		}
	}
	return true
}
