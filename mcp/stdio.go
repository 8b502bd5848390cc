package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines is a connection with one JSON-RPC message per line. Unlike the SDK's own, it continues after an invalid line,
// and when its input ends it lets pending calls be answered: a user who pipes a few messages into a program wants to
// see the results.
type lines struct {
	in       io.Reader
	out      io.Writer
	incoming chan line
	closed   chan struct{}
	close    func() error

	writing sync.Mutex

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // calls without an answer
	idle chan struct{}       // closed when there are none; nil if nothing waits for that
}

// line is a line, or the reason why there are no more.
type line struct {
	text []byte
	err  error
}

var errLongLine = errors.New("the line is too long")

func newLines(in io.Reader, out io.Writer) *lines {
	c := &lines{in: in, out: out, incoming: make(chan line), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		if closer, ok := in.(io.Closer); ok {
			return closer.Close()
		}
		return nil
	})
	return c
}

// Connect implements [sdk.Transport].
func (c *lines) Connect(context.Context) (sdk.Connection, error) {
	go c.read()
	return c, nil
}

// read passes on lines until the input ends or the connection is closed.
func (c *lines) read() {
	r := bufio.NewReaderSize(c.in, 1<<16)
	for {
		text, err := readLine(r)
		if len(text) > 0 || err != nil {
			select {
			case c.incoming <- line{text, err}:
			case <-c.closed:
				return
			}
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return
		}
	}
}

// readLine returns a line without its end and surrounding white space. If it is longer than a message may be, it
// returns only errLongLine. The last line needs no line break.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > MaxMessage+1; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) > 0:
			return bytes.TrimSpace(text), nil // the next read returns the error again
		default:
			return bytes.TrimSpace(text), err
		}
	}
}

// Read implements [sdk.Connection].
func (c *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var next line
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case next = <-c.incoming:
		}
		var why *jsonrpc.Error
		switch {
		case errors.Is(next.err, errLongLine):
			why = &jsonrpc.Error{
				Code:    jsonrpc.CodeInvalidRequest,
				Message: fmt.Sprintf("the message has more than %d bytes", MaxMessage),
			}
		case next.err != nil:
			return nil, c.drain(ctx, next.err)
		default:
			var msg jsonrpc.Message
			if msg, _, why = readMessage(next.text); why == nil {
				c.begin(msg)
				return msg, nil
			}
		}
		if err := c.refuse(why); err != nil {
			return nil, err
		}
	}
}

// refuse answers an invalid message, whose id is unknown.
func (c *lines) refuse(why *jsonrpc.Error) error {
	body, err := json.Marshal(struct {
		Version string         `json:"jsonrpc"`
		ID      *string        `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}{"2.0", nil, why})
	if err != nil {
		return err
	}
	return c.send(body)
}

// begin records a call that must be answered.
func (c *lines) begin(msg jsonrpc.Message) {
	if request, ok := msg.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[request.ID] = true
	}
}

// drain waits until all calls are answered, and returns end.
func (c *lines) drain(ctx context.Context, end error) error {
	c.mu.Lock()
	idle := make(chan struct{})
	if len(c.open) == 0 {
		close(idle)
	} else {
		c.idle = idle
	}
	c.mu.Unlock()
	select {
	case <-idle:
	case <-c.closed:
	case <-ctx.Done():
	}
	return end
}

// Write implements [sdk.Connection].
func (c *lines) Write(_ context.Context, msg jsonrpc.Message) error {
	body, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if err := c.send(restore(body)); err != nil {
		return err
	}
	if response, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, response.ID)
		if len(c.open) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
	}
	return nil
}

func (c *lines) send(body []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(body, '\n'))
	return err
}

// Close implements [sdk.Connection].
func (c *lines) Close() error { return c.close() }

// SessionID implements [sdk.Connection]. There is only one session.
func (c *lines) SessionID() string { return "" }
