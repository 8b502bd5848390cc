package main

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// What is worth a progress bar.
const (
	manyInputs = 20
	largeInput = 32 << 20 // bytes
)

// progress shows how much of many or large files has been read. A nil progress shows nothing.
type progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newProgress begins a progress bar, if there is somebody to see it and reason to. Where answers go to the terminal,
// too, they are the progress.
func newProgress(names []string, w world) *progress {
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
	if total == 0 || len(names) <= manyInputs && total < largeInput {
		return nil
	}
	return startProgress(total, terminal)
}

// startProgress begins a progress bar of so many bytes.
func startProgress(total int64, terminal *cleaner) *progress {
	pool := mpb.New(mpb.WithOutput(terminal.w), mpb.WithAutoRefresh())
	bar := pool.AddBar(total,
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.Percentage()),
		mpb.BarRemoveOnComplete(),
	)
	return &progress{pool, bar}
}

// watch counts what is read of r.
func (p *progress) watch(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &counter{r, p.bar}
}

// words returns where messages go meanwhile: above the bar.
func (p *progress) words(w io.Writer) io.Writer {
	if p == nil {
		return w
	}
	return p.pool
}

// end takes the bar away.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
}

// counter moves a bar by what is read.
type counter struct {
	r   io.Reader
	bar *mpb.Bar
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.bar.IncrBy(n)
	return n, err
}
