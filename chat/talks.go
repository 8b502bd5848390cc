package chat

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
)

// MaxTalks is how many talks a tenant may have open on one node.
const MaxTalks = 256

// talkKey names a talk: by its conversation, or by its answer.
type talkKey struct{ tenant, id string }

// talks are those that have not ended.
type talks struct {
	mu     sync.Mutex
	by     map[talkKey][]*Talk // those that have begun in the order in which they did
	open   map[string]int      // of each tenant
	closed bool
}

// add takes up a talk.
func (l *talks) add(t *Talk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return gateway.Unavailable("ibid is shutting down")
	}
	if l.open[t.tenant] >= MaxTalks {
		return httpx.TooMany(2*time.Second, fmt.Sprintf("%d questions are being answered already", MaxTalks),
			"wait for one of them, or end it: DELETE /v1/chat/{id}/stream")
	}
	if l.by == nil {
		l.by, l.open = map[talkKey][]*Talk{}, map[string]int{}
	}
	l.open[t.tenant]++
	if t.Conversation != "" {
		l.put(t, t.Conversation)
	}
	return nil
}

func (l *talks) put(t *Talk, id string) {
	key := talkKey{t.tenant, id}
	l.by[key] = append(l.by[key], t)
}

func (l *talks) remove(t *Talk, id string) {
	key := talkKey{t.tenant, id}
	l.by[key] = slices.DeleteFunc(l.by[key], func(other *Talk) bool { return other == t })
	if len(l.by[key]) == 0 {
		delete(l.by, key)
	}
}

// begin makes a talk the one of its conversation, and known by its answer's id too.
func (l *talks) begin(t *Talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.known = true
	l.put(t, t.AnswerID)
	if t.Conversation != "" {
		l.remove(t, t.Conversation)
		l.put(t, t.Conversation)
	}
}

// end says that a talk has ended: there is nothing to follow any more.
func (l *talks) end(t *Talk) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[t.tenant]--; l.open[t.tenant] == 0 {
		delete(l.open, t.tenant)
	}
	l.remove(t, t.Conversation)
	l.remove(t, t.AnswerID)
}

// find returns the talk of a conversation or an answer: of several the one that began last, of those that have not
// begun the newest. Nil: there is none.
func (l *talks) find(tenant, id string) *Talk {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.by[talkKey{tenant, id}]
	for _, t := range slices.Backward(list) {
		if t.known {
			return t
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// all returns the talks of a conversation or an answer.
func (l *talks) all(tenant, id string) []*Talk {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.by[talkKey{tenant, id}])
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
