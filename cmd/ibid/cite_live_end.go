package main

import (
	"io"

	"github.com/ibidhq/ibid"
)

// live shows a stream once it has ended.
type live struct {
	W         io.Writer
	Style     ibid.Style
	Numbering *ibid.Numbering

	answer *ibid.Answer
}

// Event takes what became known.
func (l *live) Event(e ibid.Event) error {
	if e.Answer != nil && e.Candidate == 0 {
		l.answer = e.Answer
	}
	return nil
}

// Close writes the answer.
func (l *live) Close() error {
	_, err := io.WriteString(l.W, l.answer.Render(&ibid.RenderOptions{Style: l.Style, Numbering: l.Numbering}))
	return err
}
