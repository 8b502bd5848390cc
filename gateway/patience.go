package gateway

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// patience ends a call whose client does not read: what is written to it may take Limits.Idle, and up to twice as long.
// How long the upstream is silent is of no matter, which is why a deadline for all that is written would not do. HTTP/2
// would not see it otherwise: its server only looks at whole connections.
//
// It costs a write two atomic additions, and a call a timer that is used again.
type patience struct {
	writes atomic.Uint64 // writes begun and ended: odd while one is going on; there is one at a time

	mu    sync.Mutex
	w     http.ResponseWriter // nil: no call
	idle  time.Duration
	seen  uint64 // of writes
	timer *time.Timer
}

// begin watches over a call.
func (p *patience) begin(w http.ResponseWriter, idle time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.idle, p.seen = w, idle, 0
	p.writes.Store(0)
	if p.timer == nil {
		p.timer = time.AfterFunc(idle, p.look)
		return
	}
	p.timer.Reset(idle)
}

// end leaves the rest to the server, which has to flush it in the same time. The server takes the deadline away.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	setWriteDeadline(p.w, time.Now().Add(p.idle))
	p.w = nil
}

// writing surrounds what writes to the client.
func (p *patience) writing() { p.writes.Add(1) }
func (p *patience) written() { p.writes.Add(1) }

// look ends the write that it saw the last time too.
func (p *patience) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	if n := p.writes.Load(); n%2 == 0 || n != p.seen {
		p.seen = n
		p.timer.Reset(p.idle)
		return
	}
	setWriteDeadline(p.w, time.Unix(1, 0)) // HTTP/2 resets the stream at once
}

// setReadDeadline and setWriteDeadline bound how long the client may take. That a writer knows no deadlines is no
// error: it is a test's.
func setReadDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(t)
}

func setWriteDeadline(w http.ResponseWriter, t time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(t)
}
