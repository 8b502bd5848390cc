package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// library is a folder of documents with a search index.
type library struct {
	docs     []support.Document
	passages []place // of all documents
	corpus   *support.Corpus
}

// place identifies a passage.
type place struct{ doc, passage int }

// read reads all documents of a folder. Unreadable ones are reported and skipped.
func read(dir string) (*library, error) {
	l := &library{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		found, err := snapshot.ReadDocuments(d.Name(), data, nil) // Markdown, HTML, text, PDF, JSON lines
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", name, err)
			return nil
		}
		for _, f := range found {
			l.docs = append(l.docs, support.Document{Source: f.Source, Text: f.Text.Content, Passages: f.Text.Passages(nil)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	var texts []support.Passage
	for i := range l.docs {
		for j := range l.docs[i].Passages {
			l.passages = append(l.passages, place{i, j})
			texts = append(texts, support.Passage{Text: l.above(place{i, j}) + l.text(place{i, j})})
		}
	}
	l.corpus = support.NewCorpus(texts)
	return l, nil
}

// text returns a passage with its headings, paragraphs and items on separate lines.
func (l *library) text(p place) string {
	d := &l.docs[p.doc]
	return d.Passages[p.passage].Apart(d.Text)
}

// above returns a passage's title and headings, because a paragraph seldom repeats its subject.
func (l *library) above(p place) string {
	return l.docs[p.doc].Source.Title + "\n" + l.heading(p) + "\n"
}

func (l *library) heading(p place) string { return l.docs[p.doc].Passages[p.passage].Heading }

// search returns the passages that share the most words with the question, best first, and their documents reduced to
// those passages: an answer may only rest on what was retrieved for it.
func (l *library) search(question string, k int) ([]place, []support.Document) {
	var hits []place
	var docs []support.Document
	at := map[int]int{} // document to index in docs
	for _, h := range l.corpus.Search(question, k) {
		p := l.passages[h.Passage]
		hits = append(hits, p)
		i, ok := at[p.doc]
		if !ok {
			i = len(docs)
			at[p.doc] = i
			d := l.docs[p.doc]
			d.Passages = nil
			docs = append(docs, d)
		}
		docs[i].Passages = append(docs[i].Passages, l.docs[p.doc].Passages[p.passage])
	}
	return hits, docs
}
