package export

import (
	"cmp"

	"github.com/ibidhq/ibid"
)

// LangChain's TypedDicts TextContentBlock and Citation, of langchain_core.messages.content.
type (
	textBlock struct {
		Type        string     `json:"type"`
		ID          string     `json:"id,omitempty"`
		Text        string     `json:"text"`
		Annotations []citation `json:"annotations"`
	}
	citation struct {
		Type      string `json:"type"`
		URL       string `json:"url,omitempty"`
		Title     string `json:"title,omitempty"`
		Start     *int   `json:"start_index,omitempty"`
		End       *int   `json:"end_index,omitempty"`
		CitedText string `json:"cited_text,omitempty"` // the source's words, not the answer's
		Extras    extras `json:"extras"`
	}
)

// extras is what LangChain has no field for, in the words of the answer document.
type extras struct {
	CitationID  string          `json:"citation_id"`
	SourceID    string          `json:"source_id"`
	SourceKind  ibid.SourceKind `json:"source_kind"`
	Number      int             `json:"number"`
	Covers      ibid.Covers     `json:"covers"`
	Claim       *[2]int         `json:"claim,omitempty"`
	FileID      string          `json:"file_id,omitempty"`
	Filename    string          `json:"filename,omitempty"`
	Locator     *ibid.Locator   `json:"locator,omitempty"`
	Score       *float64        `json:"score,omitempty"`
	Confidence  *float64        `json:"confidence,omitempty"`
	Origin      ibid.Origin     `json:"origin"`
	PublishedAt string          `json:"published_at,omitempty"`
	License     string          `json:"license,omitempty"`
}

// contentBlocks returns a as LangChain's content blocks, of which there is one.
func contentBlocks(a *ibid.Answer, o *Options) []textBlock {
	block := textBlock{Type: "text", ID: cmp.Or(o.ID, a.ID), Text: a.Text, Annotations: []citation{}}
	newRows(a, o).each(func(row *ibid.DocumentCitation, s *ibid.Source, shown *ibid.DocumentSource) {
		c := citation{
			Type: "citation", URL: s.URL, Title: cmp.Or(s.Title, s.Filename), Start: row.TextStart, End: row.TextEnd,
			Extras: extras{
				CitationID:  row.ID,
				SourceID:    s.ID,
				SourceKind:  s.Kind,
				Number:      row.Index,
				Covers:      row.Covers,
				FileID:      fileID(s),
				Filename:    s.Filename,
				Locator:     row.Locator,
				Score:       shown.Score,
				Confidence:  row.Confidence,
				Origin:      row.Origin,
				PublishedAt: s.PublishedAt,
				License:     s.License,
			},
		}
		if row.Quote != nil {
			c.CitedText = *row.Quote
		}
		if row.ClaimStart != nil {
			c.Extras.Claim = &[2]int{*row.ClaimStart, *row.ClaimEnd}
		}
		block.Annotations = append(block.Annotations, c)
	})
	return []textBlock{block}
}
