package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// shapePath precedes a shape in a path, for proxies that do not forward a query.
const shapePath = "/shape/"

// shape configures the mock upstream's answer. A request chooses it by its query, or by its path after shapePath.
type shape struct {
	chunks    int           // text deltas of a stream
	delay     time.Duration // before each of them except the first
	size      int           // bytes of text in each
	body      int           // bytes of text of an answer that is not streamed
	citations int           // at the end of either
}

func readShape(u *url.URL) shape {
	q := u.Query()
	if _, rest, found := strings.Cut(u.Path, shapePath); found {
		words, _, _ := strings.Cut(rest, "/")
		q, _ = url.ParseQuery(words)
	}
	number := func(name string, standard int) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			return standard
		}
		return n
	}
	s := shape{
		chunks:    number("chunks", 20),
		size:      number("size", 40),
		body:      number("body", 1000),
		citations: number("citations", 4),
	}
	s.delay, _ = time.ParseDuration(q.Get("delay"))
	return s
}

// upstream is a mock of OpenAI's Chat Completions that uses little CPU: it reads requests with net/http and writes
// responses directly to the socket, one write per event. Every response has its own id, and every delta contains the
// time it was sent ("t=<nanoseconds>|"), so that the reader can compute the delay.
type upstream struct {
	served atomic.Int64
	group  sync.WaitGroup
}

func serveUpstream(ctx context.Context, args []string, _ io.Writer) error {
	set := flags("_upstream")
	addr := set.String("addr", "127.0.0.1:0", "where to listen")
	if err := set.Parse(args); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	return new(upstream).serve(ctx, listener)
}

func (u *upstream) serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer u.group.Wait()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		u.group.Go(func() {
			cut := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer cut()
			u.connection(conn)
		})
	}
}

func (u *upstream) connection(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReaderSize(conn, 4096)
	var out []byte
	for {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		id := u.served.Add(1)
		s := readShape(request.URL)
		switch {
		case strings.Contains(request.URL.Path, "/seeded/"):
			err = writeSeeded(conn, request.URL.Query())
		case bytes.Contains(body, []byte(`"stream":true`)):
			out, err = writeStream(conn, out[:0], id, s)
		default:
			out = appendJSON(out[:0], id, s)
			_, err = conn.Write(out)
		}
		if err != nil || request.Close {
			return
		}
	}
}

const lorem = "The gateway relays words from the model to its reader and keeps every source it saw on the way. "

func appendText(b []byte, n int) []byte {
	for n > 0 {
		k := min(n, len(lorem))
		b = append(b, lorem[:k]...)
		n -= k
	}
	return b
}

func appendCitations(b []byte, n int) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(
			b,
			`{"type":"url_citation","url_citation":{"start_index":%d,"end_index":%d,"title":"Source %d","url":"https://example.org/doc/%d"}}`,
			i*10,
			i*10+9,
			i,
			i,
		)
	}
	return b
}

func appendJSON(b []byte, id int64, s shape) []byte {
	const room = "00000000" // for the length, which is known last
	b = append(b, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+room+"\r\n\r\n"...)
	start := len(b)
	b = fmt.Appendf(
		b,
		`{"id":"chatcmpl-%012d","object":"chat.completion","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"`,
		id,
	)
	b = appendText(b, s.body)
	b = append(b, `","annotations":[`...)
	b = appendCitations(b, s.citations)
	b = append(
		b,
		`]},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":250,"total_tokens":262}}`...)
	copy(b[start-4-len(room):], fmt.Appendf(nil, "%08d", len(b)-start))
	return b
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"

func writeStream(conn net.Conn, b []byte, id int64, s shape) ([]byte, error) {
	head := fmt.Appendf(
		nil,
		`data: {"id":"chatcmpl-%012d","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o","choices":[{"index":0,"delta":`,
		id,
	)
	b = append(b, streamHead...)
	for i := range s.chunks {
		if i > 0 && s.delay > 0 {
			time.Sleep(s.delay)
		}
		b = appendChunk(b, func(b []byte) []byte {
			b = append(append(b, head...), `{"content":"t=`...)
			b = strconv.AppendInt(b, time.Now().UnixNano(), 10)
			b = appendText(append(b, '|'), s.size)
			return append(b, "\"},\"finish_reason\":null}]}\n\n"...)
		})
		if _, err := conn.Write(b); err != nil {
			return b, err
		}
		b = b[:0]
	}
	b = appendChunk(b, func(b []byte) []byte {
		if s.citations > 0 {
			b = append(append(b, head...), `{"annotations":[`...)
			b = append(appendCitations(b, s.citations), "]},\"finish_reason\":null}]}\n\n"...)
		}
		b = append(append(b, head...), "{},\"finish_reason\":\"stop\"}]}\n\n"...)
		return append(b, "data: [DONE]\n\n"...)
	})
	b = append(b, "0\r\n\r\n"...)
	_, err := conn.Write(b)
	return b, err
}

// appendChunk appends one HTTP chunk with the output of fill.
func appendChunk(b []byte, fill func([]byte) []byte) []byte {
	const room = 4
	start := len(b)
	b = fill(append(b, "0000\r\n"...)) // leading zeros are legal
	var size [2]byte
	binary.BigEndian.PutUint16(size[:], uint16(len(b)-start-room-2)) //nolint:gosec // never over 64 KiB here
	copy(b[start:], fmt.Appendf(nil, "%04x", size))
	return append(b, "\r\n"...)
}
