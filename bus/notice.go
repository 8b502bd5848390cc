package bus

import (
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// WakeEvery is how often a listener is woken at least, so that whatever was lost is found: a good moment to send a
	// reader a heartbeat.
	WakeEvery = 15 * time.Second

	noticeEvery = 5 * time.Second  // how often a node repeats which runs it has listeners for
	noticeLasts = 20 * time.Second // how long the others believe it
	noticePage  = 256              // runs in a notice, if they fit
	maxNotices  = 1024             // notices that wait to be read; more are lost until they are repeated
)

// notice is what nodes tell each other of their listeners, on ibid.v1.listen.
type notice struct {
	Node string      `json:"node"`
	On   [][2]string `json:"on,omitempty"`  // tenant and run: somebody listens
	New  bool        `json:"new,omitempty"` // to what On says somebody began to listen just now
	Off  [][2]string `json:"off,omitempty"` // nobody does any more
	Ask  bool        `json:"ask,omitempty"` // the node knows nothing yet: tell it
	Bye  bool        `json:"bye,omitempty"` // the node ends
}

// keep listens to the other nodes, repeats what they must know, and wakes the listeners.
func (b *Bus) keep() {
	repeat, wake := time.NewTicker(noticeEvery), time.NewTicker(WakeEvery)
	defer repeat.Stop()
	defer wake.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-b.online: // whatever was said meanwhile is lost
			b.announce(&notice{Ask: true})
			b.announceAll()
			b.wakeAll()
		case m := <-b.notices:
			b.hear(m, time.Now())
		case now := <-repeat.C:
			b.interest.sweep(func(_ string, until time.Time) bool { return now.After(until) })
			b.announceAll()
		case <-wake.C:
			b.wakeAll()
		}
	}
}

func (b *Bus) hear(m *nats.Msg, now time.Time) {
	var n notice
	if err := json.Unmarshal(m.Data, &n); err != nil {
		b.log.Debug("cannot read a notice", slog.Any("error", err))
		return
	}
	if n.Node == b.node || n.Node == "" {
		return
	}
	for _, pair := range n.On {
		b.interest.hear(runKey{pair[0], pair[1]}, n.Node, now.Add(noticeLasts), n.New)
	}
	for _, pair := range n.Off {
		b.interest.forget(runKey{pair[0], pair[1]}, n.Node)
	}
	if n.Bye {
		b.interest.sweep(func(node string, _ time.Time) bool { return node == n.Node })
	}
	if n.Ask {
		b.announceAll()
	}
}

// announceJoin tells the others that somebody here began to listen to the run.
func (b *Bus) announceJoin(k runKey) { b.announceRun(k, true) }

// announceLeave tells the others that somebody here ceased to, and whether anybody still does.
func (b *Bus) announceLeave(k runKey) { b.announceRun(k, false) }

func (b *Bus) announceRun(k runKey, joined bool) {
	b.announcing.Lock()
	defer b.announcing.Unlock()
	b.mu.Lock()
	_, listens := b.topics[k]
	b.mu.Unlock()
	pairs := [][2]string{{k.tenant, k.run}}
	if listens {
		b.announce(&notice{On: pairs, New: joined})
	} else {
		b.announce(&notice{Off: pairs})
	}
}

// announceAll tells the others all that somebody here listens to, in messages that a server takes.
func (b *Bus) announceAll() {
	b.announcing.Lock()
	defer b.announcing.Unlock()
	b.mu.Lock()
	pairs := make([][2]string, 0, len(b.topics))
	for k := range b.topics {
		pairs = append(pairs, [2]string{k.tenant, k.run})
	}
	b.mu.Unlock()
	for page := range slices.Chunk(pairs, noticePage) {
		b.announceOn(page)
	}
}

// announceOn tells of runs that somebody here listens to, in as many messages as it takes.
func (b *Bus) announceOn(pairs [][2]string) {
	if !b.announce(&notice{On: pairs}) && len(pairs) > 1 {
		half := len(pairs) / 2
		b.announceOn(pairs[:half])
		b.announceOn(pairs[half:])
	}
}

// announce sends a notice, and reports whether it was small enough.
func (b *Bus) announce(n *notice) bool {
	n.Node = b.node
	data, err := json.Marshal(n)
	if err == nil && len(data) > b.limit() {
		return false
	}
	if err == nil {
		err = b.conn.Publish(listenSubject, data)
	}
	if err != nil {
		b.log.Debug("cannot tell the other nodes of a listener", slog.Any("error", err))
	}
	return true
}
