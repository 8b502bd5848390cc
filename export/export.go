package export

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/wire"
)

// Format is a format in which another program represents an answer and its citations.
type Format string

// The formats, with the unit of their offsets unless [Options] has another one.
const (
	// OpenAI is a chat completion whose message has an annotation for each source of a citation: a page if the source
	// has a URL, else a file. Offsets are those of the citation's span in the text of [Parted], in code points.
	OpenAI Format = "openai"
	// LangChain is a list of LangChain's standard content blocks, version 1: a text block for each message, with an
	// annotation for each source of a citation. Offsets are those of the citation's span in the block's text, in code
	// points like Python's. The concatenated texts of the blocks are the text of [Parted].
	LangChain Format = "langchain"
	// LlamaIndex is a LlamaIndex response with [n] in its text and the sources as nodes: [n] is the nth node, unless a
	// Numbering assigns other numbers. It has no offsets.
	LlamaIndex Format = "llamaindex"
)

// Formats returns all formats.
func Formats() []Format { return []Format{OpenAI, LangChain, LlamaIndex} }

// Options configure the output. The zero value, and nil, mean what the format's readers expect.
type Options struct {
	Unit      ibid.Unit       // of offsets; empty for the format's default
	Numbering *ibid.Numbering // assigns the numbers of sources, and is extended by new ones; nil numbers from 1
	Numbers   ibid.Numbers    // which numbers the sources get
	ID        string          // of the answer; empty for Answer.ID
	Context   context.Context //nolint:containedctx // as in [ibid.RenderOptions]; may be nil
}

// Write writes an answer as one line of JSON. The error is that of w, or says that there is no such format.
func Write(w io.Writer, f Format, a *ibid.Answer, o *Options) error {
	var opts Options
	if o != nil {
		opts = *o
	}
	line, err := object(f, a, &opts)
	if err != nil {
		return fmt.Errorf("exporting an answer: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func object(f Format, a *ibid.Answer, o *Options) ([]byte, error) {
	switch f {
	case OpenAI:
		return Completion(a, o).Body()
	case LangChain:
		return wire.Encode(contentBlocks(a, o))
	case LlamaIndex:
		return wire.Encode(newResponse(a, o))
	default:
		return nil, fmt.Errorf("there is no format %q", string(f))
	}
}

// rows are the citations of an answer as in its document, a row for each source, with their sources.
type rows struct {
	answer   *ibid.Answer
	document *ibid.Document
	sources  map[string]int // index in the answer and its document, by id
}

func newRows(a *ibid.Answer, o *Options) *rows {
	r := &rows{
		answer: a,
		document: a.Document(&ibid.DocumentOptions{
			Unit: cmp.Or(o.Unit, ibid.CodePoint), Numbering: o.Numbering, Numbers: o.Numbers, Bare: true,
			Context: o.Context,
		}),
		sources: make(map[string]int, len(a.Sources)),
	}
	for i, s := range slices.Backward(a.Sources) {
		r.sources[s.ID] = i
	}
	return r
}

// each calls do for each row that has a source.
func (r *rows) each(do func(row *ibid.DocumentCitation, s *ibid.Source, shown *ibid.DocumentSource)) {
	for i := range r.document.Citations {
		row := &r.document.Citations[i]
		if at, ok := r.sources[row.SourceID]; ok {
			do(row, &r.answer.Sources[at], &r.document.Sources[at])
		}
	}
}

// Completion returns a in the format [OpenAI], for callers that send it piece by piece.
func Completion(a *ibid.Answer, o *Options) *wire.Completion {
	if o == nil {
		o = &Options{}
	}
	a = Parted(a)
	c := &wire.Completion{ID: cmp.Or(o.ID, a.ID), Model: a.Model, Text: a.Text, Finish: string(a.Finish)}
	if !a.Created.IsZero() {
		c.Created = a.Created.Unix()
	}
	newRows(a, o).each(func(row *ibid.DocumentCitation, s *ibid.Source, _ *ibid.DocumentSource) {
		note := wire.Annotation{
			URL:      s.URL,
			Title:    s.Title,
			FileID:   cmp.Or(fileID(s), s.ID),
			Filename: cmp.Or(s.Filename, s.Title),
		}
		if row.TextStart != nil {
			note.Start, note.End = *row.TextStart, *row.TextEnd
		}
		c.Annotations = append(c.Annotations, note)
	})
	return c
}

// fileID returns the provider's id of a file; empty if s is not a file, or has none.
func fileID(s *ibid.Source) string {
	if s.Kind != ibid.File {
		return ""
	}
	return s.GlobalID
}

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

// extras is what LangChain has no field for, with the names of the answer document.
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

// contentBlocks returns a as LangChain content blocks, one for each message.
func contentBlocks(a *ibid.Answer, o *Options) []textBlock {
	a = Parted(a)
	starts := messages(a)
	r := newRows(a, o)
	offsets := ibid.NewOffsets(a.Text)
	blocks, bases := make([]textBlock, len(starts)), make([]int, len(starts))
	for i, start := range starts {
		end := len(a.Text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		blocks[i] = textBlock{Type: "text", Text: a.Text[start:end], Annotations: []citation{}}
		bases[i], _ = offsets.In(r.document.Unit, ibid.Span{Start: start, End: start})
	}
	blocks[0].ID = cmp.Or(o.ID, a.ID)
	r.each(func(row *ibid.DocumentCitation, s *ibid.Source, shown *ibid.DocumentSource) {
		c := citation{
			Type: "citation", URL: s.URL, Title: cmp.Or(s.Title, s.Filename),
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
		in := len(blocks) - 1 // a citation without a place goes into the last block
		if row.TextStart != nil {
			in = max(0, sort.SearchInts(bases, *row.TextEnd)-1) // the block in which its span ends
			c.Start, c.End = new(max(0, *row.TextStart-bases[in])), new(*row.TextEnd-bases[in])
		}
		if row.ClaimStart != nil && *row.ClaimStart >= bases[in] {
			c.Extras.Claim = &[2]int{*row.ClaimStart - bases[in], *row.ClaimEnd - bases[in]}
		}
		blocks[in].Annotations = append(blocks[in].Annotations, c)
	})
	return blocks
}
