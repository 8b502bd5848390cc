package main

import (
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// isSaved reports whether nobody watches what is written to w: it is a file or a pipe, which gets the final text.
func isSaved(w io.Writer) bool {
	_, ok := w.(*os.File)
	return ok && !isTerminal(w)
}

// isTerminal reports whether f, a reader or a writer, is a terminal.
func isTerminal(f any) bool {
	if _, ok := f.(*cleaner); ok {
		return true
	}
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// helpWidth is the width of help if the terminal's is unknown.
const helpWidth = 80

// terminalWidth returns the width of a terminal, or helpWidth if w is none.
func terminalWidth(w io.Writer) int {
	if c, ok := w.(*cleaner); ok {
		if f, ok := c.w.(*os.File); ok {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
		}
	}
	return helpWidth
}

// forTerminal makes it safe to write answers to a terminal. Other writers are returned unchanged.
func forTerminal(w io.Writer) io.Writer {
	if isTerminal(w) {
		return &cleaner{w: w}
	}
	return w
}

// cleaner removes everything but text from what is written to a terminal: an answer may contain escape sequences that
// rewrite the screen, the title or the clipboard.
type cleaner struct {
	w    io.Writer
	tail []byte // an incomplete character at the end of the last Write
}

// Write writes the text of p. It returns the number of bytes consumed, not of those written.
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

// turnsText reports whether r changes the order in which the following text is displayed, so that a line could look
// like another. The plain marks of right-to-left scripts do not count.
func turnsText(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// The thresholds for a progress bar.
const (
	manyInputs = 20
	largeInput = 32 << 20 // bytes
)

// progress shows how much of many or large files has been read. A nil progress shows nothing.
type progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newProgress starts a progress bar for reading files if standard error is a terminal and the files are many or large,
// or slow to process. If answers go to the terminal as well, they show the progress.
func newProgress(names []string, slow bool, w world) *progress {
	terminal, ok := w.err.(*cleaner)
	if !ok || isTerminal(w.out) {
		return nil
	}
	var total int64
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	if total == 0 || !slow && len(names) <= manyInputs && total < largeInput {
		return nil
	}
	return newBar(terminal, total, decor.CountersKibiByte("% .1f / % .1f"), decor.Percentage())
}

// countProgress starts a progress bar that counts things: "3 / 20 runs". It is nil unless standard error is a terminal.
func countProgress(total int, what string, w world) *progress {
	terminal, ok := w.err.(*cleaner)
	if !ok {
		return nil
	}
	return newBar(terminal, int64(total), decor.CountersNoUnit("%d / %d "+what), nil)
}

func newBar(terminal *cleaner, total int64, counters, after decor.Decorator) *progress {
	pool := mpb.New(mpb.WithOutput(terminal.w), mpb.WithAutoRefresh())
	options := []mpb.BarOption{mpb.PrependDecorators(counters), mpb.BarRemoveOnComplete()}
	if after != nil {
		options = append(options, mpb.AppendDecorators(after))
	}
	return &progress{pool, pool.AddBar(total, options...)}
}

// step counts one more.
func (p *progress) step() {
	if p != nil {
		p.bar.Increment()
	}
}

// set sets the number done.
func (p *progress) set(done int) {
	if p != nil {
		p.bar.SetCurrent(int64(done))
	}
}

// watch counts the bytes read from r.
func (p *progress) watch(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &counter{r, p.bar}
}

// over redirects messages to appear above the bar, until end removes the bar.
func (p *progress) over(messages *io.Writer) (end func()) {
	if p == nil {
		return func() {}
	}
	before := *messages
	*messages = p.pool
	return func() {
		p.end()
		*messages = before
	}
}

// end removes the bar.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
}

// counter advances a bar by the bytes read.
type counter struct {
	r   io.Reader
	bar *mpb.Bar
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.bar.IncrBy(n)
	return n, err
}
