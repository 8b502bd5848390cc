package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

const (
	maxCalling = 1000             // calls at the same time
	soakCall   = 30 * time.Second // how long a client waits for an answer
	leaveShare = 0.02             // of the clients leave long before that
	lookAfter  = 15 * time.Second // time between an answer's end and looking it up
	lookBatch  = 500              // answers looked up at once
)

// soakShape returns the response of the n-th call.
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

// soakCalls makes calls, and looks up their answers.
type soakCalls struct {
	w                           *soakWorld
	client                      *http.Client
	seen, broken, shed, altered atomic.Int64
	stop                        context.CancelFunc
	calling, looking            sync.WaitGroup
	mu                          sync.Mutex
	due                         []soakAnswer // to be looked up, in the order in which they ended
	missing                     []soakAnswer
	lookErr                     error         // why the last failed lookup failed
	ended                       chan struct{} // closed when nothing is added to due any more
}

func newSoakCalls(w *soakWorld) *soakCalls {
	return &soakCalls{
		w: w, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxCalling}},
	}
}

// startSoakCalls starts calls at a rate, however long they take, at each gateway in turn.
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
	response, err := postQuestion(ctx, c.client, c.w.addr(gateway), s.path(), s.stream)
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

// look looks up each answer some time after its end was seen.
func (c *soakCalls) look(ctx context.Context) {
	for ctx.Err() == nil {
		ended := false
		select {
		case <-c.ended:
			ended = true
		default:
		}
		batch := c.takeDue(ended)
		switch {
		case len(batch) > 0:
			c.missing = append(c.missing, c.notKept(ctx, batch)...)
		case ended:
			return
		default:
			_ = pause(ctx, time.Second)
		}
	}
}

// takeDue removes and returns a batch of the answers that are due for lookup, or of any if all is true.
func (c *soakCalls) takeDue(all bool) []soakAnswer {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < min(len(c.due), lookBatch) && (all || time.Since(c.due[n].seen) >= lookAfter) {
		n++
	}
	batch := c.due[:n:n]
	c.due = c.due[n:]
	return batch
}

// notKept returns the answers that are not in the database. One with another text, or less complete, is counted as
// altered. It reads the database instead of the gateways, whose load is that of the calls alone.
func (c *soakCalls) notKept(ctx context.Context, batch []soakAnswer) []soakAnswer {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].id
	}
	found, err := c.readKept(ctx, ids)
	if err != nil { // the database fails now and then; all are looked up again
		c.lookErr = err
		return batch
	}
	return slices.DeleteFunc(batch, func(a soakAnswer) bool {
		k, ok := found[a.id]
		if !ok {
			return false
		}
		want, err := ibid.Decode(soakShape(a.n).body(), nil)
		if err != nil || !k.complete || k.text != want.Text {
			c.altered.Add(1)
			fmt.Fprintf(os.Stderr, "soak: %s, of call %d, was kept altered: %v\n", a.id, a.n, err)
		}
		return true
	})
}

// keptAnswer is an answer in the database.
type keptAnswer struct {
	complete bool
	text     string
}

func (c *soakCalls) readKept(ctx context.Context, ids []string) (map[string]keptAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, soakCall)
	defer cancel()
	rows, err := c.w.db.QueryContext(ctx, `SELECT answer_id, COALESCE(call::jsonb #>> '{document,complete}', '') = 'true',
		call::jsonb #>> '{document,text}' FROM calls WHERE tenant = $1 AND answer_id = ANY($2)`, store.DefaultTenant, ids)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	found := make(map[string]keptAnswer, len(ids))
	for rows.Next() {
		var id string
		var kept keptAnswer
		if err := rows.Scan(&id, &kept.complete, &kept.text); err != nil {
			return nil, err
		}
		found[id] = kept
	}
	return found, rows.Err()
}

// stopCalls stops starting calls and waits for those in progress.
func (c *soakCalls) stopCalls() {
	c.stop()
	c.calling.Wait()
	close(c.ended)
}

// discard stops looking up answers after the current batch.
func (c *soakCalls) discard() {
	c.mu.Lock()
	c.due = nil
	c.mu.Unlock()
	c.looking.Wait()
}

// settle looks up missing answers until all are found or the time is over, and returns how many are lost.
func (c *soakCalls) settle(ctx context.Context) (lost int) {
	c.looking.Wait()
	for end := time.Now().Add(settleTime); len(c.missing) > 0; {
		var left []soakAnswer
		for batch := range slices.Chunk(c.missing, lookBatch) {
			left = append(left, c.notKept(ctx, batch)...)
		}
		c.missing = left
		if time.Now().After(end) || pause(ctx, time.Second) != nil {
			break
		}
	}
	c.client.CloseIdleConnections()
	if len(c.missing) > 0 && c.lookErr != nil {
		fmt.Fprintln(os.Stderr, "soak: looking for answers:", c.lookErr)
	}
	return len(c.missing)
}
