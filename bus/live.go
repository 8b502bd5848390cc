package bus

import (
	"encoding/json"
	"log/slog"
)

// maxLiveQueue is how many live deltas wait to be sent. More are not sent at all: nats.go can block while it connects,
// and an answer never waits for its listeners.
const maxLiveQueue = 1024

// Tell sends a live delta to whoever listens to the run. It never blocks and promises nothing: ask [Bus.Listens] first,
// and join text so that an answer sends at most ten deltas a second. A delta that is too large (see [MaxMessage]), or
// that comes while NATS is slow or away, is lost; the listener sees that by Live.At. m.Data must not change afterwards.
func (b *Bus) Tell(tenant, run string, m Live) {
	select {
	case b.live <- liveMessage{Tenant: tenant, Run: run, Live: m}:
	default:
	}
}

// sendLive sends what Tell was told.
func (b *Bus) sendLive() {
	for {
		select {
		case <-b.done:
			return
		case m := <-b.live:
			b.publishLive(&m)
		}
	}
}

func (b *Bus) publishLive(m *liveMessage) {
	data, err := json.Marshal(m)
	if err == nil && len(data) <= b.limit() {
		err = b.conn.Publish(runKey{m.Tenant, m.Run}.subject()+liveSuffix, data)
	}
	if err != nil {
		b.log.Debug("lost a live delta", slog.Any("error", err))
	}
}
