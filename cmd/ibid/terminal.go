package main

import (
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// isTerminal reports whether f, a reader or a writer, is a terminal.
func isTerminal(f any) bool {
	if _, ok := f.(*cleaner); ok {
		return true
	}
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// forTerminal makes a terminal safe to write answers to. What is no terminal gets every byte.
func forTerminal(w io.Writer) io.Writer {
	if isTerminal(w) {
		return &cleaner{w: w}
	}
	return w
}

// cleaner takes out of what is written to a terminal everything but text: an answer may hold escape sequences that
// rewrite the screen, the title or the clipboard.
type cleaner struct {
	w    io.Writer
	tail []byte // the beginning of a character that the last Write cut
}

// Write writes the text of p. It counts the bytes taken, not those written.
func (c *cleaner) Write(p []byte) (int, error) {
	b := append(c.tail, p...)
	out := make([]byte, 0, len(b))
	for len(b) > 0 && (b[0] < utf8.RuneSelf || utf8.FullRune(b)) {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && !turnsText(r) {
			out = utf8.AppendRune(out, r)
		}
	}
	c.tail = append([]byte(nil), b...)
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// turnsText reports whether r makes what follows it read in another order than it stands, so that a line can say
// something else than it does. The plain marks that right-to-left writing needs are not among them.
func turnsText(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}
