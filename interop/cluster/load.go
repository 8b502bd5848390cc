package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	callEvery = time.Second / 20 // interval between calls
	callTime  = 60 * time.Second // a call that takes longer has failed
	retryWait = 50 * time.Millisecond
	// maxRetries is more than enough for a client to find a gateway that is up.
	maxRetries = 100
	runs       = 3 // the calls of a load are steps of these runs
)

// call is one call of a client, with its outcome.
type call struct {
	word, run string // the question's word, and its run
	node      int    // that was called last
	id        string // of the answer; empty if no response began
	body      string // as received
	retries   int    // before the response began
	err       error  // nil if the response ended as it should
	ended     time.Time
}

// complete reports whether the client received the whole answer.
func (c *call) complete() bool { return c.body == answerBody(c.word) }

// load is a set of clients that call all gateways, and of readers that follow their runs' events at each.
type load struct {
	c       *cluster
	name    string
	client  *http.Client
	stopped chan struct{} // closed when no more calls begin
	calling sync.WaitGroup
	reading sync.WaitGroup
	leave   context.CancelFunc // stops the readers
	number  atomic.Int64       // number of calls begun

	mu      sync.Mutex
	calls   []*call
	readers []*reader
}

// startLoad starts calls at a fixed rate, however slow the answers, and as many readers of each run as there are
// gateways.
func (c *cluster) startLoad(ctx context.Context) *load {
	c.next++
	ctx, leave := context.WithCancel(ctx)
	l := &load{
		c: c, name: fmt.Sprint("w", c.next), stopped: make(chan struct{}), leave: leave,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	for run := range runs {
		for node := range c.nodes {
			r := &reader{load: l, run: l.run(run), node: node}
			l.readers = append(l.readers, r)
			l.reading.Go(func() { r.read(ctx) })
		}
	}
	l.calling.Go(func() {
		tick := time.NewTicker(callEvery)
		defer tick.Stop()
		for {
			select {
			case <-l.stopped:
				return
			case <-tick.C:
				l.calling.Go(func() { l.call(ctx) })
			}
		}
	})
	return l
}

func (l *load) run(n int) string { return l.name + "-run-" + strconv.Itoa(n%runs) }

// stop stops starting calls and waits for those in progress.
func (l *load) stop() {
	close(l.stopped)
	l.calling.Wait()
}

// call makes one call. Like the providers' SDKs, it retries calls that have not begun: if the connection is refused, if
// an idle one turns out to be closed, or if a gateway is stopping. Nothing else is retried.
func (l *load) call(ctx context.Context) {
	n := int(l.number.Add(1))
	c := &call{word: l.name + "-" + strconv.Itoa(n), run: l.run(n), node: n % len(l.c.nodes)}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for {
		again := false
		if again, c.err = l.try(ctx, c); !again {
			break
		}
		c.retries++
		c.node = (c.node + 1) % len(l.c.nodes)
		time.Sleep(retryWait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

func (l *load) try(ctx context.Context, c *call) (again bool, err error) {
	r, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://"+l.c.address(c.node)+callPath, strings.NewReader(question(c.word)),
	)
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ibid-Run", c.run)
	reused := false
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused },
	}))
	response, err := l.client.Do(r)
	if err != nil {
		op, ok := errors.AsType[*net.OpError](err)
		return (reused || ok && op.Op == "dial") && ctx.Err() == nil && c.retries < maxRetries, err
	}
	defer func() { _ = response.Body.Close() }()
	if c.id = ""; response.StatusCode == http.StatusOK {
		c.id = response.Header.Get("Ibid-Answer")
	}
	body, err := io.ReadAll(response.Body)
	c.body, c.ended = string(body), time.Now()
	if response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "" {
		return c.retries < maxRetries, errors.New(response.Status)
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: %s", response.Status, body)
	}
	return false, err
}

// reader follows the events of a run at one gateway, or at the next if that one is unavailable.
type reader struct {
	load *load
	run  string
	node int

	mu      sync.Mutex
	last    int64 // number of the last event
	answers []string
	wrong   []string // events that must not have come
}

func (r *reader) read(ctx context.Context) {
	for ctx.Err() == nil {
		_ = r.follow(ctx) // it resumes after the last event, whatever the error
		select {
		case <-ctx.Done():
		case <-time.After(retryWait):
			r.node = (r.node + 1) % len(r.load.c.nodes)
		}
	}
}

// deadStream is how long a stream may be silent: heartbeats come every 15 seconds.
const deadStream = 20 * time.Second

func (r *reader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(deadStream, cancel)
	defer silent.Stop()
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "http://"+r.load.c.address(r.node)+"/v1/runs/"+r.run+"/events", http.NoBody,
	)
	if err != nil {
		return err
	}
	request.Header.Set("Last-Event-Id", strconv.FormatInt(r.seen(), 10))
	response, err := r.load.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	// An event without its empty line is incomplete and is ignored.
	for event, err := range eventsOf(response.Body) {
		if err != nil {
			return err
		}
		silent.Reset(deadStream)
		r.take(event)
	}
	return nil
}

func (r *reader) seen() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// take records a stored event. Live deltas have no number and are best effort.
func (r *reader) take(e event) {
	if e.id == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := strconv.ParseInt(e.id, 10, 64)
	if err != nil || n != r.last+1 {
		r.wrong = append(r.wrong, fmt.Sprintf("event %s after %d", e.id, r.last))
	}
	r.last = n
	var data struct {
		AnswerID string `json:"answer_id"`
	}
	if err := json.Unmarshal([]byte(e.data), &data); err != nil || e.name != "answer" {
		r.wrong = append(r.wrong, fmt.Sprintf("event %s: %s %s", e.id, e.name, e.data))
	}
	r.answers = append(r.answers, data.AnswerID)
}

// stored is an answer as returned by a gateway.
type stored struct {
	ID        string `json:"answer_id"`
	Complete  bool   `json:"complete"`
	Text      string `json:"text"`
	Citations []any  `json:"citations"`
}

// list returns all answers of a run known to a gateway.
func (l *load) list(ctx context.Context, node int, run string) ([]stored, error) {
	var all []stored
	for cursor := ""; ; {
		query := url.Values{"run": {run}, "limit": {"100"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		var page struct {
			Answers []stored `json:"answers"`
			Next    *string  `json:"next_cursor"`
		}
		address := "http://" + l.c.nodes[node].addr + "/v1/answers?" + query.Encode()
		if err := getJSON(ctx, l.client, address, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Answers...)
		if page.Next == nil {
			return all, nil
		}
		cursor = *page.Next
	}
}

// settleTime bounds the time after the last fault until everything is everywhere.
const settleTime = 45 * time.Second

// verdict is the result of a load.
type verdict struct {
	completed, failed, retried int
	wrong                      []string
}

func (v *verdict) String() string {
	return fmt.Sprintf("%d calls completed, %d broke off, %d attempts did not begin", v.completed, v.failed, v.retried)
}

// settle waits until every gateway has all answers and every reader all events, and returns everything that is wrong.
// Calls may only fail if the fault allows it.
func (l *load) settle(ctx context.Context, f *fault) *verdict {
	defer func() {
		l.leave()
		l.reading.Wait()
		l.client.CloseIdleConnections()
	}()
	v := &verdict{}
	for _, c := range l.calls {
		v.retried += c.retries
		switch {
		case c.complete():
			v.completed++
			continue
		case f.mayFail == nil || !f.mayFail(c):
			v.wrong = append(v.wrong, fmt.Sprintf("call %s at %d failed: %v: %.200q", c.word, c.node, c.err, c.body))
		case c.err == nil, strings.Contains(c.body, endMark):
			v.wrong = append(v.wrong, fmt.Sprintf("call %s looks whole: %q", c.word, c.body))
		case !strings.HasPrefix(answerBody(c.word), c.body) && c.id != "":
			v.wrong = append(v.wrong, fmt.Sprintf("call %s was altered: %q", c.word, c.body))
		}
		v.failed++
	}
	var left []string
	for deadline := time.Now().Add(settleTime); ; {
		if left = l.missing(ctx, f); len(left) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	v.wrong = append(v.wrong, left...)
	return v
}

// missing returns what differs from the required end state: every gateway has one answer for each completed call and at
// most one, possibly cut off, for any other, and every reader has one event for each answer. The fault may allow more
// answers for a repeated call, and none for one without an id.
func (l *load) missing(ctx context.Context, f *fault) (wrong []string) {
	byRun := map[string][]*call{}
	for _, c := range l.calls {
		byRun[c.run] = append(byRun[c.run], c)
	}
	for run, calls := range byRun {
		var ids []string
		for node := range l.c.nodes {
			answers, err := l.list(ctx, node, run)
			if err != nil {
				wrong = append(wrong, err.Error())
				continue
			}
			ids = nil
			byID := map[string][]stored{}
			for _, a := range answers {
				byID[a.ID] = append(byID[a.ID], a)
				ids = append(ids, a.ID)
			}
			for _, c := range calls {
				if c.id == "" && f.unkept || f.mayLose != nil && len(byID[c.id]) == 0 && f.mayLose(c) {
					continue
				}
				wrong = append(wrong, c.compare(node, byID[c.id])...)
				delete(byID, c.id)
			}
			for id, a := range byID {
				mine := func(c *call) bool { return (c.id == "" || f.repeats && c.retries > 0) && isOf(a, c.word) }
				if !slices.ContainsFunc(calls, mine) {
					wrong = append(wrong, fmt.Sprintf("gateway %d has %s, which nobody asked for: %+v", node, id, a))
				}
			}
		}
		slices.Sort(ids)
		for _, r := range l.readers {
			if r.run == run {
				wrong = append(wrong, r.compare(ids)...)
			}
		}
	}
	return wrong
}

// isOf reports whether there is exactly one answer, and its text is the one for a word or a prefix of it.
func isOf(answers []stored, word string) bool {
	return len(answers) == 1 && strings.HasPrefix(answerText(word), answers[0].Text)
}

// compare returns what is wrong with the answers that a gateway has under the id of a call.
func (c *call) compare(node int, answers []stored) []string {
	whole := len(answers) == 1 && answers[0].Complete && answers[0].Text == answerText(c.word) &&
		len(answers[0].Citations) == sources
	if whole || !c.complete() && (len(answers) == 0 || isOf(answers, c.word)) {
		return nil
	}
	return []string{fmt.Sprintf("call %s at gateway %d (%s): %d answers: %.300q", c.word, node, c.id, len(answers),
		fmt.Sprint(answers))}
}

// compare returns what is wrong with the events that a reader saw: each answer must have exactly one.
func (r *reader) compare(ids []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seen := slices.Sorted(slices.Values(r.answers)); !slices.Equal(seen, ids) {
		return append(r.wrong, fmt.Sprintf("a reader of %s saw %d events, of %d answers", r.run, len(seen), len(ids)))
	}
	return r.wrong
}
