package gateway

import (
	"io"
	"net/http"
	"time"
)

const (
	// DefaultPace is in which time the next [PaceBytes] of a body have to arrive, unless told otherwise.
	DefaultPace = 10 * time.Second
	// PaceBytes is how much of a body has to arrive in each of these times.
	PaceBytes = 32 << 10
)

// NewPaced returns a reader of a request's body that times out where the body comes too slowly: where the next
// [PaceBytes] do not come within pace, or all of it not by end (zero: no such limit). A client that stops in the middle
// would otherwise hold memory that others need. What follows the body may take as long as it likes once [Paced.Done]
// was called.
func NewPaced(body io.Reader, w http.ResponseWriter, pace time.Duration, end time.Time) *Paced {
	p := &Paced{body: body, w: w, pace: pace, end: end}
	p.extend()
	return p
}

// Paced is a body that has to keep pace. Get one from [NewPaced].
type Paced struct {
	body io.Reader
	w    http.ResponseWriter
	pace time.Duration
	end  time.Time
	come int // since the deadline was set
}

func (p *Paced) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	if p.come += n; p.come >= PaceBytes {
		p.extend()
	}
	return n, err
}

// Done takes the deadline away.
func (p *Paced) Done() { setReadDeadline(p.w, time.Time{}) }

func (p *Paced) extend() {
	next := time.Now().Add(p.pace)
	if !p.end.IsZero() && next.After(p.end) {
		next = p.end
	}
	p.come = 0
	setReadDeadline(p.w, next)
}
