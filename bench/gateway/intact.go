package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// seeded describes a response that both ends can generate from a seed, so that the reader knows what to expect.
type seeded struct {
	seed   uint64
	stream bool
	chunk  int // bytes the upstream writes at a time
	slow   bool
	short  bool // fewer and shorter events
}

// path returns the mock upstream's path for this response.
func (s seeded) path() string {
	return fmt.Sprintf("/seeded/v1/chat/completions?seed=%d&stream=%t&chunk=%d&slow=%t&short=%t",
		s.seed, s.stream, s.chunk, s.slow, s.short)
}

func readSeeded(q url.Values) seeded {
	seed, _ := strconv.ParseUint(q.Get("seed"), 10, 64)
	chunk, _ := strconv.Atoi(q.Get("chunk"))
	return seeded{seed, q.Get("stream") == "true", max(1, chunk), q.Get("slow") == "true", q.Get("short") == "true"}
}

// body returns the response's bytes: a valid answer of Chat Completions with text in many scripts.
func (s seeded) body() []byte {
	random := rand.New(rand.NewPCG(s.seed, 7)) //nolint:gosec // reproducible at both ends
	words := strings.Fields("ibid heron Müller 東京 مكتبة 🐦 source \\\" \\n naïve [1] window Straße 引用 café \\u00e9 end")
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	most := 60 // limits of words per event, and of events
	if s.short {
		most = 8
	}
	if !s.stream {
		return fmt.Appendf(
			nil,
			`{"id":"chatcmpl-%d","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}]}`,
			s.seed,
			text(1+random.IntN(most*50)),
		)
	}
	var b []byte
	for range 1 + random.IntN(most) {
		b = fmt.Appendf(
			b,
			`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"%s"}}]}`+"\n\n",
			s.seed,
			text(1+random.IntN(most)),
		)
	}
	return append(b, "data: [DONE]\n\n"...)
}

func writeSeeded(conn net.Conn, q url.Values) error {
	s := readSeeded(q)
	body := s.body()
	kind := "application/json"
	if s.stream {
		kind = "text/event-stream"
	}
	if _, err := fmt.Fprintf(
		conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", kind,
	); err != nil {
		return err
	}
	for len(body) > 0 {
		n := min(s.chunk, len(body))
		if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", n, body[:n]); err != nil {
			return err
		}
		if body = body[n:]; s.slow {
			time.Sleep(time.Millisecond)
		}
	}
	_, err := io.WriteString(conn, "0\r\n\r\n")
	return err
}

// intact reads many responses through the gateway and compares each with what was sent.
func intact(ctx context.Context, args []string, out io.Writer) error {
	set := flags("intact")
	count := set.Int("count", 10_000, "responses")
	only := set.Int("only", -1, "one proxy, by its number from 0")
	if err := set.Parse(args); err != nil {
		return err
	}
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.remove()
	fmt.Fprintf(
		out, "\n### Altered or cut short, of %d\n\n| | altered | cut short or failed |\n| --- | --- | --- |\n", *count,
	)
	for i, t := range targets(s.dir) {
		if *only >= 0 && i != *only {
			continue
		}
		proxy, err := startProxy(ctx, s.up.addr, t)
		if err != nil {
			return err
		}
		altered, failed := readAll(ctx, proxy.addr, *count)
		proxy.stop()
		fmt.Fprintf(out, "| %s | %d | %d |\n", t.name, altered, failed)
	}
	return nil
}

func readAll(ctx context.Context, addr string, count int) (altered, failed int64) {
	const readers = 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers, DisableCompression: true}}
	var wrong, broken, next atomic.Int64
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for i := next.Add(1); i <= int64(count) && ctx.Err() == nil; i = next.Add(1) {
				switch err := readOne(ctx, client, addr, uint64(i)); { //nolint:gosec // from 1
				case errors.Is(err, errAltered):
					wrong.Add(1)
				case err != nil:
					broken.Add(1)
				}
			}
		})
	}
	group.Wait()
	client.CloseIdleConnections()
	return wrong.Load(), broken.Load()
}

var errAltered = errors.New("other bytes than were sent")

func readOne(ctx context.Context, client *http.Client, addr string, seed uint64) error {
	sizes := []int{1, 7, 100, 1 << 10, 4 << 10, 16 << 10, 64 << 10}
	s := seeded{seed: seed, stream: seed%3 != 0, chunk: sizes[seed%uint64(len(sizes))], slow: seed%10 == 9}
	if s.chunk == 1 {
		s.slow = false // it would take minutes for one answer
	}
	response, err := postQuestion(ctx, client, addr, s.path(), s.stream)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	if !bytes.Equal(got, s.body()) {
		return errAltered
	}
	return nil
}
