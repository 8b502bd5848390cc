// Command realpage serves a page with answers that real providers and programs gave, to look at: `make page`.
//
//	go -C tools run ./realpage IBID DIR [ADDRESS]
//
// IBID is the program, DIR a directory with recordings: corpus/ of providers, and world/ of programs with prompts of
// their own and of agents. Each is sent through `ibid serve` as its client sent it, with a temporary data directory, and
// answered with what was recorded. It ends with the program, or at SIGINT.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "realpage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) < 3 {
		return errors.New("usage: realpage IBID DIR [ADDRESS]")
	}
	address := "127.0.0.1:0"
	if len(os.Args) > 3 {
		address = os.Args[3]
	}
	recorded, err := readAll(os.Args[2])
	if err != nil {
		return err
	}
	p, err := start(ctx, os.Args[1], address)
	if err != nil {
		return err
	}
	for i := range recorded {
		if err := p.send(ctx, &recorded[i]); err != nil {
			fmt.Fprintf(os.Stderr, "realpage: %s: %v\n", recorded[i].name, err)
		}
	}
	fmt.Println(p.url)
	return p.wait()
}

// pages is a running ibid.
type pages struct {
	url      string
	upstream chan exchange // what the upstream answers next
	wait     func() error
}

// start starts ibid in front of an upstream that answers with what was recorded.
func start(ctx context.Context, program, address string) (*pages, error) {
	p := &pages{upstream: make(chan exchange, 1)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		e := <-p.upstream
		w.Header().Set("Content-Type", e.mediaType)
		_, _ = w.Write(e.response)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	data, err := os.MkdirTemp("", "realpage")
	if err != nil {
		return nil, err
	}
	where := filepath.Join(data, "address")
	args := []string{"serve", "--data", data, "--listen", address, "--address-file", where, "--prompts", "all"}
	for _, name := range []string{
		"openai", "anthropic", "gemini", "cohere", "perplexity", "openrouter", "xai", "mistral", "bedrock", "groq",
	} {
		args = append(args, "--upstream", name+"=http://"+listener.Addr().String())
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.wait = func() error {
		err := cmd.Wait()
		if ctx.Err() != nil { // it was interrupted
			err = nil
		}
		return errors.Join(err, server.Close(), os.RemoveAll(data))
	}
	for p.url == "" {
		if ctx.Err() != nil || cmd.ProcessState != nil {
			return nil, errors.Join(errors.New("ibid did not start"), p.wait())
		}
		time.Sleep(50 * time.Millisecond)
		b, _ := os.ReadFile(where)
		p.url = strings.TrimSpace(string(b))
	}
	return p, nil
}

// send makes a call through ibid, or posts to it.
func (p *pages) send(ctx context.Context, e *exchange) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+e.path, bytes.NewReader(e.request))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range e.header {
		r.Header.Set(name, value)
	}
	if e.response != nil {
		p.upstream <- *e
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if res.StatusCode >= http.StatusBadRequest {
		select {
		case <-p.upstream: // it was refused before
		default:
		}
		return fmt.Errorf("%s: %s: %.300s", e.path, res.Status, body)
	}
	return err
}

// exchange is a recorded call; without a response, something to post to ibid itself.
type exchange struct {
	name, path, mediaType string
	header                map[string]string
	request, response     []byte
}

// compact returns JSON without its white space.
func compact(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}
