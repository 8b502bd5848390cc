package chat

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/ibidhq/ibid/gateway"
)

// MaxTalks is how many talks a tenant may have open on one node.
const MaxTalks = 256

// talkKey names a talk: by its conversation, or by its answer.
type talkKey struct{ tenant, id string }

// talks are those that have not ended.
type talks struct {
	mu     sync.Mutex
	by     map[talkKey]*Talk
	open   map[string]int // of each tenant
	closed bool
}

// add takes up a talk that begins. It is the one of its conversation from now on.
func (l *talks) add(t *Talk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return gateway.Unavailable("ibid is shutting down")
	}
	if l.open[t.tenant] >= MaxTalks {
		return &gateway.Problem{
			Status: http.StatusTooManyRequests, Code: gateway.CodeTooMany, Detail: fmt.Sprintf("%d questions are being answered already", MaxTalks),
			Hint: "wait for one of them, or end it: DELETE /v1/chat/{id}/stream", Header: http.Header{"Retry-After": {"2"}},
		}
	}
	if l.by == nil {
		l.by, l.open = map[talkKey]*Talk{}, map[string]int{}
	}
	l.open[t.tenant]++
	if t.Conversation != "" {
		l.by[talkKey{t.tenant, t.Conversation}] = t
	}
	return nil
}

// begin makes a talk known by its answer's id too.
func (l *talks) begin(t *Talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[talkKey{t.tenant, t.AnswerID}] = t
}

// end says that a talk has ended: there is nothing to follow any more.
func (l *talks) end(t *Talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[t.tenant]--; l.open[t.tenant] == 0 {
		delete(l.open, t.tenant)
	}
	for _, id := range []string{t.Conversation, t.AnswerID} {
		if key := (talkKey{t.tenant, id}); l.by[key] == t {
			delete(l.by, key)
		}
	}
}

// find returns the talk of a conversation or an answer; nil: there is none.
func (l *talks) find(tenant, id string) *Talk {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[talkKey{tenant, id}]
}

// count returns how many talks have not ended.
func (l *talks) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, open := range l.open {
		n += open
	}
	return n
}

// close makes add refuse.
func (l *talks) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
