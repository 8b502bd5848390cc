package bus

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxHeard is how many runs with listeners on other nodes a node remembers. Listeners to further runs get events, but
// no live deltas from this node.
const maxHeard = 100_000

// interest knows which runs have listeners, on whatever node. Its zero value is ready.
type interest struct {
	count atomic.Int64 // len(runs), so that where nobody listens nobody takes the lock
	mu    sync.RWMutex
	runs  map[runKey]*places
	heard int // runs with listeners elsewhere
	joins uint64
}

// places are the nodes on which a run has listeners.
type places struct {
	here      bool
	elsewhere map[string]time.Time // by node: until when it is taken to be true
	joined    uint64               // which of all joins the last one to the run was
}

// joined returns which of all joins the last one to the run was; 0: the run has no listeners. It is asked for every
// piece of every answer.
func (in *interest) joined(k runKey) uint64 {
	if in.count.Load() == 0 {
		return 0
	}
	in.mu.RLock()
	defer in.mu.RUnlock()
	if p := in.runs[k]; p != nil {
		return p.joined
	}
	return 0
}

// join notes that somebody on this node began to listen to the run.
func (in *interest) join(k runKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.at(k)
	p.here = true
	in.countJoin(p)
	in.tidy(k)
}

// leave notes that nobody on this node listens to the run any more.
func (in *interest) leave(k runKey) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at(k).here = false
	in.tidy(k)
}

// hear notes that the run has listeners on another node, until then. It is a join if they were not known, or if one is
// new.
func (in *interest) hear(k runKey, node string, until time.Time, isNew bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.at(k)
	if len(p.elsewhere) == 0 {
		if in.heard >= maxHeard {
			in.tidy(k)
			return
		}
		in.heard++
		p.elsewhere = map[string]time.Time{}
	}
	if _, known := p.elsewhere[node]; !known || isNew {
		in.countJoin(p)
	}
	p.elsewhere[node] = until
	in.tidy(k)
}

// forget notes that the run has no listeners on another node any more.
func (in *interest) forget(k runKey, node string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.drop(k, node)
}

// sweep forgets what gone says of a node and a time.
func (in *interest) sweep(gone func(node string, until time.Time) bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for k, p := range in.runs {
		for node, until := range p.elsewhere {
			if gone(node, until) {
				in.drop(k, node)
			}
		}
	}
}

func (in *interest) drop(k runKey, node string) {
	p := in.runs[k]
	if p == nil {
		return
	}
	if _, there := p.elsewhere[node]; !there {
		return
	}
	delete(p.elsewhere, node)
	if len(p.elsewhere) == 0 {
		in.heard--
	}
	in.tidy(k)
}

func (in *interest) at(k runKey) *places {
	if in.runs == nil {
		in.runs = map[runKey]*places{}
	}
	if in.runs[k] == nil {
		in.runs[k] = &places{}
	}
	return in.runs[k]
}

// countJoin counts a join.
func (in *interest) countJoin(p *places) {
	in.joins++
	p.joined = in.joins
}

// tidy removes the run if nobody listens to it, and counts again.
func (in *interest) tidy(k runKey) {
	if p := in.runs[k]; !p.here && len(p.elsewhere) == 0 {
		delete(in.runs, k)
	}
	in.count.Store(int64(len(in.runs)))
}
