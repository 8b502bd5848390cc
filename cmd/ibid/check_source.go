package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// material is what a claim is checked against.
type material struct {
	passages []support.Passage
	from     []origin // of each passage
}

// origin says where a passage comes from.
type origin struct {
	source string // as it was named, and of several documents in one file which
	page   int    // from 1; 0: there are none
	start  int    // of the passage in the document's text
}

// readMaterial reads sources, and cuts their documents into passages.
func readMaterial(names []string, w world) (*material, error) {
	m := &material{}
	for _, name := range names {
		documents, err := readSource(name, w.in)
		if err != nil {
			v := explain(err)
			return nil, &usageError{fmt.Errorf("read %s: %w", name, err), v.hint}
		}
		for i := range documents {
			m.add(name, &documents[i], len(documents) > 1)
			for _, issue := range documents[i].Text.Issues {
				say(w.err, "%s: %s: %s", name, issue.Code, issue.Detail)
			}
		}
	}
	if len(m.passages) == 0 {
		return nil, errors.New("the sources hold no text")
	}
	return m, nil
}

func (m *material) add(name string, d *snapshot.Document, several bool) {
	if several {
		name += " (" + d.ID + ")"
	}
	for _, p := range d.Text.Passages(nil) {
		text := d.Text.Content[p.Span.Start:p.Span.End]
		m.passages = append(m.passages, support.Passage{ID: d.ID, Text: text, Language: d.Text.Language})
		m.from = append(m.from, origin{name, p.Page, p.Span.Start})
	}
}

// readSource reads the documents of a file.
func readSource(name string, stdin io.Reader) ([]snapshot.Document, error) {
	in := stdin
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, bare(err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, snapshot.MaxBytes+1))
	if err != nil {
		return nil, bare(err)
	}
	return snapshot.ReadDocuments(filepath.Base(name), data, nil)
}

// name gives the evidence of a line the names of the sources, and offsets in their texts.
func (m *material) name(line *checkLine) {
	for i := range line.Evidence {
		e := &line.Evidence[i]
		from := m.from[e.Passage]
		e.Source, e.Page = &from.source, nil
		if from.page > 0 {
			e.Page = &from.page
		}
		e.Start, e.End = e.Start+from.start, e.End+from.start
	}
}
