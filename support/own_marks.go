package support

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid"
)

// maxGiven is the most bytes of a document that a source cited by a mark has as its content. Models are given passages,
// and a reader of the citation wants to see the one it got; a whole book only swells the answer.
const maxGiven = 16 << 10

// WithMarks returns the answer with citations of the documents that its text names itself: by marks such as [1], which
// count the documents in their order unless their ids are numbers, by their ids and titles in brackets, and by links
// to their URLs. They are of origin marker, whether the documents say it or not. The answer is not changed; it is
// returned as it is if nothing is named, or if it has sources or citations, with which its marks were read. [Attribute]
// with the same documents then searches for the other sentences only.
func WithMarks(ctx context.Context, answer *ibid.Answer, docs []Document) (*ibid.Answer, error) {
	if len(answer.Citations) > 0 || len(answer.Sources) > 0 || answer.Text == "" || len(docs) == 0 {
		return answer, nil
	}
	given := make([]ibid.Source, len(docs))
	first := firstPieces(docs)
	for i := range docs {
		d := &docs[i]
		given[i] = identified(d, first)
		if given[i].Content == "" && len(d.Text) <= maxGiven {
			given[i].Content = d.Text
		}
	}
	read, err := ibid.Decode([]byte(answer.Text), &ibid.DecodeOptions{
		Format: ibid.Generic, Documents: given, Context: ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("reading the marks of the answer: %w", err)
	}
	if read.Text != answer.Text { // its places are those of another text
		return answer, nil
	}
	cited := map[string]bool{}
	for i := range read.Citations {
		for _, ref := range read.Citations[i].Refs {
			cited[ref.Source] = true
		}
	}
	marked := *answer
	marked.Citations = read.Citations
	marked.Sources = slices.DeleteFunc(read.Sources, func(s ibid.Source) bool { return !cited[s.ID] })
	marked.Issues = slices.Clone(answer.Issues)
	for _, issue := range read.Issues {
		if !slices.Contains(marked.Issues, issue) {
			marked.Issues = append(marked.Issues, issue)
		}
	}
	return &marked, nil
}

// nameOf returns what the pieces of one source have in common: its id, which a document without one lacks, and URL.
func nameOf(d *Document) [2]string { return [2]string{d.Source.ID, d.Source.URL} }

// firstPieces returns the first document of each name.
func firstPieces(docs []Document) map[[2]string]*Document {
	first := make(map[[2]string]*Document, len(docs))
	for i := range docs {
		if d := &docs[i]; first[nameOf(d)] == nil {
			first[nameOf(d)] = d
		}
	}
	return first
}

// isAnonymous reports whether only its text identifies a document.
func (d *Document) isAnonymous() bool {
	return d.Source.Content == "" && d.Source.URL == "" && d.Source.GlobalID == ""
}

// wholeKey is the key of a source that the document's text identifies.
func (d *Document) wholeKey() string { return (&ibid.Source{Content: d.Text}).Key() }

// identified returns the source of a document as an answer has it, with the id still the document's own. First is the
// first document of its name: the text of that one identifies an anonymous source of several pieces.
func identified(d *Document, first map[[2]string]*Document) ibid.Source {
	s := d.Source
	if s.Kind == "" {
		s.Kind = ibid.DocumentKind
	}
	if (s.Score == nil) != (s.ScoreOrigin == "") {
		s.Score, s.ScoreOrigin = nil, ""
	}
	if d.isAnonymous() {
		if d.Source.ID != "" {
			d = first[nameOf(d)]
		}
		s.GlobalID = d.wholeKey()
	}
	return s
}
