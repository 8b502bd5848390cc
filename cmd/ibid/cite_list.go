package main

import (
	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
)

// listOutput writes one bibliography of what all inputs cite, each source once.
type listOutput struct {
	world
	format  biblio.Format
	entries []biblio.Entry
	known   map[string]bool // by Source.Key
}

func (*listOutput) begin(string) *liveView { return nil }

func (o *listOutput) write(r *reading) error {
	if o.known == nil {
		o.known = map[string]bool{}
	}
	for _, entry := range biblio.Cited(r.answer) {
		key := entry.Source.Key()
		if o.known[key] {
			continue
		}
		o.known[key] = !isBare(&entry.Source)
		o.entries = append(o.entries, entry)
	}
	return nil
}

// isBare reports whether nothing is known of a source but its id. All such share a key, and none is another.
func isBare(s *ibid.Source) bool {
	return s.URL == "" && s.GlobalID == "" && s.Content == "" && s.Title == "" && s.Filename == ""
}

func (o *listOutput) close() error {
	if len(o.entries) == 0 {
		say(o.err, "nothing is cited, so the bibliography is empty")
	}
	return biblio.Write(o.out, o.format, o.entries, nil)
}
