package main

import (
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
	cited := map[string]bool{}
	for i := range r.answer.Citations {
		for _, ref := range r.answer.Citations[i].Refs {
			cited[ref.Source] = true
		}
	}
	for i := range r.answer.Sources {
		s := &r.answer.Sources[i]
		if key := s.Key(); cited[s.ID] && !o.known[key] {
			o.known[key] = true
			o.entries = append(o.entries, biblio.Entry{Source: *s})
		}
	}
	return nil
}

func (o *listOutput) close() error {
	if len(o.entries) == 0 {
		say(o.err, "nothing is cited, so the bibliography is empty")
	}
	return biblio.Write(o.out, o.format, o.entries, nil)
}
