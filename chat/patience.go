package chat

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// MaxSilence is how long a provider may say nothing, before its answer and within it, unless [Options] say
	// otherwise: models think for minutes.
	MaxSilence = 10 * time.Minute
	// MaxSilenceAlone is how long it may while nobody follows: a question that nobody waits for must not take another's
	// place for long.
	MaxSilenceAlone = time.Minute
)

var errSilent = errors.New("the provider said nothing for too long")

// patience ends a call whose provider says nothing for too long.
type patience struct {
	most, alone time.Duration // alone: while nobody follows
	end         func()

	mu        sync.Mutex
	heard     time.Time // when the provider said something
	followers int
	timer     *time.Timer // nil: it is not waited for any more
}

// newPatience begins to wait. There is one follower, who asked.
func newPatience(most time.Duration, end func()) *patience {
	p := &patience{most: most, alone: min(most, MaxSilenceAlone), end: end, heard: time.Now(), followers: 1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(most, p.check)
	return p
}

// left returns how long the provider may go on saying nothing.
func (p *patience) left() time.Duration {
	most := p.most
	if p.followers == 0 {
		most = p.alone
	}
	return most - time.Since(p.heard)
}

// check ends the call if it is time, or looks again later.
func (p *patience) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch left := p.left(); {
	case p.timer == nil:
	case left <= 0:
		p.timer = nil
		p.end()
	default:
		p.timer.Reset(left)
	}
}

// follow says that somebody waits for the answer, or with -1 that somebody left.
func (p *patience) follow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers += n
	if p.timer != nil {
		p.timer.Reset(max(p.left(), 0))
	}
}

// hear says that the provider said something.
func (p *patience) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
}

// over says that nothing more is to be said.
func (p *patience) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// heard is a response's body whose bytes show that the provider is alive.
type heard struct {
	io.ReadCloser

	by *patience
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	if n > 0 {
		h.by.hear()
	}
	return n, err
}
