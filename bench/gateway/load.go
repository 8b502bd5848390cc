package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// loadPlan configures the load generator: one call in flight on each connection, followed by the next when it is done
// or, with a rate, when it is due.
type loadPlan struct {
	url      string
	header   string // additional HTTP header lines of each call
	conns    int
	rate     float64 // calls a second on all connections; 0 means unlimited
	warm     time.Duration
	duration time.Duration
	stream   bool
	pid      int // of the proxy, whose CPU time is read; 0 means none
}

// loadResult is the measurement. Times are in microseconds.
type loadResult struct {
	Calls      int64     `json:"calls"`
	Errors     int64     `json:"errors"`
	FirstError string    `json:"first_error,omitempty"`
	Chunks     int64     `json:"chunks"`
	Rate       float64   `json:"rate"` // calls a second
	Total      quantiles `json:"total"`
	FirstByte  quantiles `json:"first_byte"`
	Transit    quantiles `json:"transit"` // of a chunk
	CPUCall    float64   `json:"cpu_call"`
	CPUChunk   float64   `json:"cpu_chunk"`
}

func runLoad(ctx context.Context, args []string, out io.Writer) error {
	var p loadPlan
	set := flags("_load")
	set.StringVar(&p.url, "url", "", "what to call")
	set.StringVar(&p.header, "header", "", "lines of HTTP that each call has besides")
	set.IntVar(&p.conns, "conns", 1, "connections")
	set.Float64Var(&p.rate, "rate", 0, "calls a second; 0: as many as are served")
	set.DurationVar(&p.warm, "warm", 300*time.Millisecond, "before measuring")
	set.DurationVar(&p.duration, "duration", 3*time.Second, "how long")
	set.BoolVar(&p.stream, "stream", false, "ask for a stream")
	set.IntVar(&p.pid, "pid", 0, "the proxy's process")
	if err := set.Parse(args); err != nil {
		return err
	}
	result, err := load(ctx, p)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// benchKey is the API key in every call.
const benchKey = "sk-bench"

// requestBytes returns a call of Chat Completions as sent on the wire, with size bytes of question.
func requestBytes(target, header string, stream bool, size int) (string, []byte, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return "", nil, fmt.Errorf("address %q: not a URL", target)
	}
	body := fmt.Appendf(nil, `{"model":"gpt-4o","stream":%t,"messages":[{"role":"user","content":"`, stream)
	body = append(appendText(body, size), `"}]}`...)
	var b bytes.Buffer
	fmt.Fprintf(
		&b,
		"POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nUser-Agent: bench\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n\r\n",
		u.RequestURI(),
		u.Host,
		benchKey,
		header,
		len(body),
	)
	b.Write(body)
	return u.Host, b.Bytes(), nil
}

// postQuestion requests an answer of the mock upstream, whose shape is in the path and query, from a gateway.
func postQuestion(
	ctx context.Context, client *http.Client, addr, path string, stream bool,
) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":"gpt-4o","stream":%t,"messages":[{"role":"user","content":"?"}]}`, stream)
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, "http://"+addr+"/mock"+path, strings.NewReader(body),
	)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return client.Do(request)
}

// caller is one connection of the load generator.
type caller struct {
	host      string
	request   []byte
	stream    bool
	due       time.Time     // when the next call begins
	every     time.Duration // from one call to the next; 0 means no pause
	conn      net.Conn
	in        *bufio.Reader
	measuring *atomic.Bool

	total, first, transit []float64
	chunks, calls, errors int64
	firstError            error
}

func load(ctx context.Context, p loadPlan) (loadResult, error) {
	host, request, err := requestBytes(p.url, p.header, p.stream, 60)
	if err != nil {
		return loadResult{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var measuring atomic.Bool
	var group sync.WaitGroup
	callers := make([]*caller, p.conns)
	for i := range callers {
		callers[i] = &caller{host: host, request: request, stream: p.stream, measuring: &measuring}
		if p.rate > 0 {
			callers[i].every = time.Duration(float64(p.conns) / p.rate * float64(time.Second))
			callers[i].due = time.Now().Add(callers[i].every * time.Duration(i) / time.Duration(p.conns))
		}
		group.Go(func() { callers[i].loop(ctx) })
	}
	time.Sleep(p.warm)
	cpu, begin := cpuTime(p.pid), time.Now()
	measuring.Store(true)
	time.Sleep(p.duration)
	measuring.Store(false)
	elapsed := time.Since(begin)
	cpu = cpuTime(p.pid) - cpu
	stop()
	group.Wait()
	return sum(callers, cpu, elapsed), nil
}

func sum(callers []*caller, cpu, elapsed time.Duration) loadResult {
	var r loadResult
	var total, first, transit []float64
	for _, c := range callers {
		total, first, transit = append(total, c.total...), append(first, c.first...), append(transit, c.transit...)
		r.Calls += c.calls
		r.Chunks += c.chunks
		r.Errors += c.errors
		if c.firstError != nil && r.FirstError == "" {
			r.FirstError = c.firstError.Error()
		}
	}
	r.Rate = float64(r.Calls) / elapsed.Seconds()
	r.Total, r.FirstByte, r.Transit = quantilesOf(total), quantilesOf(first), quantilesOf(transit)
	r.CPUCall = microseconds(cpu) / float64(max(1, r.Calls))
	r.CPUChunk = microseconds(cpu) / float64(max(1, r.Chunks))
	return r
}

func (c *caller) loop(ctx context.Context) {
	defer c.hangUp()
	for ctx.Err() == nil {
		if err := c.call(ctx, c.begin()); err != nil && ctx.Err() == nil {
			c.errors++
			if c.firstError == nil {
				c.firstError = err
			}
			c.hangUp()
			time.Sleep(time.Millisecond)
		}
	}
}

// begin waits until the next call is due and returns that time. A call delayed by a slow one before it is measured from
// when it was due: its client would have waited too.
func (c *caller) begin() time.Time {
	if c.every == 0 {
		return time.Now()
	}
	due := c.due
	time.Sleep(time.Until(due))
	c.due = due.Add(c.every)
	return due
}

func (c *caller) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *caller) call(ctx context.Context, begin time.Time) error {
	if c.conn == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.host)
		if err != nil {
			return err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 8192)
	}
	if err := c.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return fmt.Errorf("status %d: %s", response.StatusCode, b)
	}
	if c.stream {
		err = c.readStream(response.Body, begin)
	} else {
		_, err = io.Copy(io.Discard, response.Body)
	}
	if err == nil && c.measuring.Load() {
		c.calls++
		c.total = append(c.total, microseconds(time.Since(begin)))
	}
	return err
}

// readStream reads a stream to its end and records when its chunks arrived.
func (c *caller) readStream(body io.Reader, begin time.Time) error {
	lines := bufio.NewReaderSize(body, 8192)
	for first := true; ; {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if !bytes.HasPrefix(line, []byte("data:")) || !c.measuring.Load() {
			continue
		}
		now := time.Now()
		if first {
			first = false
			c.first = append(c.first, microseconds(now.Sub(begin)))
		}
		if sent, ok := sentAt(line); ok {
			c.chunks++
			c.transit = append(c.transit, float64(now.UnixNano()-sent)/1e3)
		}
	}
}

// sentAt returns when the mock upstream sent a delta.
func sentAt(line []byte) (int64, bool) {
	_, rest, found := bytes.Cut(line, []byte(`"t=`))
	number, _, ended := bytes.Cut(rest, []byte("|"))
	if !found || !ended {
		return 0, false
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

// quantiles describe a distribution, in microseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
	N   int     `json:"n"`
}

func quantilesOf(v []float64) quantiles {
	if len(v) == 0 {
		return quantiles{}
	}
	slices.Sort(v)
	at := func(q float64) float64 { return v[min(len(v)-1, int(q*float64(len(v))))] }
	return quantiles{at(0.5), at(0.99), v[len(v)-1], len(v)}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
