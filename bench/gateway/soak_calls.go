package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid"
)

const (
	maxCalling = 1000             // calls at the same time
	soakCall   = 30 * time.Second // how long a client waits for an answer
	leaveShare = 0.02             // of the clients leave long before that
	lookAfter  = 15 * time.Second // how long after its end was seen an answer is looked for
)

// soakShape is the response of the n-th call.
func soakShape(n uint64) seeded {
	sizes := []int{16, 100, 1 << 10, 4 << 10}
	return seeded{seed: n, stream: n%3 != 0, chunk: sizes[n%uint64(len(sizes))], slow: n%10 == 9, short: true}
}

// soakAnswer is an answer whose end a client saw.
type soakAnswer struct {
	id   string
	n    uint64
	seen time.Time
}

// soakCalls makes calls, and looks for their answers.
type soakCalls struct {
	w                           *soakWorld
	client                      *http.Client
	seen, broken, shed, altered atomic.Int64
	stop                        context.CancelFunc
	calling, looking            sync.WaitGroup
	mu                          sync.Mutex
	due                         []soakAnswer // to be looked for, in the order in which they ended
	missing                     []soakAnswer
	ended                       chan struct{} // no more is added to due
}

func newSoakCalls(w *soakWorld) *soakCalls {
	return &soakCalls{
		w: w, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxCalling}},
	}
}

// startSoakCalls begins calls at a rate, however long they take, in turn at each gateway.
func startSoakCalls(ctx context.Context, w *soakWorld, rate float64, seed uint64) *soakCalls {
	c := newSoakCalls(w)
	ticking, stop := context.WithCancel(ctx)
	c.stop = stop
	slots := make(chan struct{}, maxCalling)
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // no secret
	c.calling.Go(func() {
		tick := time.NewTicker(time.Duration(float64(time.Second) / rate))
		defer tick.Stop()
		for n := seed; ; n++ {
			select {
			case <-ticking.Done():
				return
			case <-tick.C:
			}
			select {
			case slots <- struct{}{}:
			default:
				c.shed.Add(1)
				continue
			}
			patience := soakCall
			if random.Float64() < leaveShare {
				patience = time.Duration(random.IntN(int(20 * time.Millisecond)))
			}
			c.calling.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				if id, err := c.make(ctx, soakShape(n), int(n%2)); err == nil { //nolint:gosec // 0 or 1
					c.mu.Lock()
					c.due = append(c.due, soakAnswer{id, n, time.Now()})
					c.mu.Unlock()
				}
			})
		}
	})
	c.looking.Go(func() { c.look(ctx) })
	return c
}

// make makes a call. The error is nil if the end of the answer was seen.
func (c *soakCalls) make(ctx context.Context, s seeded, gateway int) (id string, err error) {
	defer func() {
		if err != nil {
			c.broken.Add(1)
		} else {
			c.seen.Add(1)
		}
	}()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://"+c.w.addr(gateway)+"/mock/seeded/v1/chat/completions?"+s.query(),
		strings.NewReader(fmt.Sprintf(`{"model":"gpt-4o","stream":%t,"messages":[{"role":"user","content":"?"}]}`, s.stream)),
	)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s", response.Status)
	}
	want := s.body()
	switch {
	case bytes.Equal(got, want): // whatever happened to the connection then
		return response.Header.Get("Ibid-Answer"), nil
	case err == nil, !bytes.HasPrefix(want, got): // it looks whole, or is another
		c.altered.Add(1)
		fmt.Fprintf(os.Stderr, "soak: call %d came altered: %d bytes of %d, %v\n", s.seed, len(got), len(want), err)
	}
	return "", errNoEnd
}

// look looks for each answer some time after its end was seen.
func (c *soakCalls) look(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		var next *soakAnswer
		if len(c.due) > 0 {
			next = &c.due[0]
		}
		c.mu.Unlock()
		ended := false
		select {
		case <-c.ended:
			ended = true
		default:
		}
		switch {
		case next == nil && ended:
			return
		case next == nil:
			_ = pause(ctx, time.Second)
			continue
		case !ended && time.Since(next.seen) < lookAfter:
			_ = pause(ctx, lookAfter-time.Since(next.seen))
		}
		if !c.isKept(ctx, next) {
			c.missing = append(c.missing, *next)
		}
		c.mu.Lock()
		c.due = c.due[1:]
		c.mu.Unlock()
	}
}

// isKept reports whether an answer is there and whole. One with another text is counted as altered.
func (c *soakCalls) isKept(ctx context.Context, a *soakAnswer) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.w.addr(0)+"/v1/answers/"+a.id, http.NoBody)
	if err != nil {
		return false
	}
	response, err := c.client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	var document struct {
		Complete bool   `json:"complete"`
		Text     string `json:"text"`
	}
	if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&document) != nil {
		return false
	}
	want, err := ibid.Decode(soakShape(a.n).body(), nil)
	if err != nil || !document.Complete || document.Text != want.Text {
		c.altered.Add(1)
		fmt.Fprintf(os.Stderr, "soak: %s, of call %d, was kept altered: %v\n", a.id, a.n, err)
	}
	return true
}

// stopCalls lets the calls that have begun end.
func (c *soakCalls) stopCalls() {
	c.stop()
	c.calling.Wait()
	close(c.ended)
}

// discard ends looking for answers: the one that is being looked for is the last.
func (c *soakCalls) discard() {
	c.mu.Lock()
	c.due = c.due[:min(1, len(c.due))]
	c.mu.Unlock()
	c.looking.Wait()
}

// settle looks for what was not there until it is, or time is over, and returns how many answers are lost.
func (c *soakCalls) settle(ctx context.Context) (lost int) {
	c.looking.Wait()
	for end := time.Now().Add(settleTime); ; {
		var left []soakAnswer
		for i := range c.missing {
			if !c.isKept(ctx, &c.missing[i]) {
				left = append(left, c.missing[i])
			}
		}
		if c.missing = left; len(left) == 0 || time.Now().After(end) || pause(ctx, time.Second) != nil {
			break
		}
	}
	c.client.CloseIdleConnections()
	return len(c.missing)
}
