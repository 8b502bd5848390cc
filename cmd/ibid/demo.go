package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/internal/replay"
)

// The pace of the demo's upstream.
const (
	demoFirst = 250 * time.Millisecond
	demoDelay = 25 * time.Millisecond
)

//go:embed demo/calls.json
var demoCalls []byte

//go:embed demo/words.txt
var demoWords string

// demoCall is one call of the conversation that is there from the start.
type demoCall struct {
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"`
}

func newDemo(w world) *cobra.Command {
	c := newConfig()
	cmd := &cobra.Command{
		Use:   "demo [--listen ADDRESS]",
		Short: "Run a gateway with made-up providers, to look at without a key",
		Long: `Runs what ibid serve runs, in a temporary directory, in front of an upstream that
speaks the formats of OpenAI, Gemini, Anthropic, Cohere, Perplexity and Mistral
over answers about things that do not exist. It prints commands to try. A prompt
may also say "call a tool", "error 429", "error in the stream" or "break off".

Ctrl-C ends it and removes the directory.`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), c, w) },
	}
	c.addListenFlags(cmd)
	return cmd
}

// demo runs the gateway and its upstream until it is told to stop.
func demo(ctx context.Context, c *config, w world) error {
	w.err = &locked{w: w.err}
	ctx, stop := stopSignals(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "ibid-demo-")
	if err != nil {
		return fmt.Errorf("making a directory for the demo: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left of a temporary directory harms nobody
	upstream, end, err := startReplay(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := c.setDemo(dir, upstream, w); err != nil {
		return err
	}
	d, err := newDaemon(ctx, c, w)
	if err != nil {
		return err
	}
	return d.run(ctx, func(ctx context.Context, url string) error { return greet(ctx, url, w.out) })
}

// startReplay starts the upstream at a port of its own, and returns where it is and what ends it.
func startReplay(ctx context.Context) (address string, end func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening for the demo's upstream: %w", err)
	}
	s := &http.Server{
		Handler:           replay.New(&replay.Options{First: demoFirst, Delay: demoDelay}),
		ReadHeaderTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // it ends by Close
	}()
	return "http://" + l.Addr().String(), func() {
		_ = s.Close() // its calls are the gateway's, which has ended
		<-done
	}, nil
}

// setDemo configures a gateway for the demo.
func (c *config) setDemo(dir, upstream string, w world) error {
	c.data, c.nats, c.drain, c.quiet = dir, "embedded", defaultDrain, true
	c.captureWait = time.Second // a temporary directory may be on a slow disk
	if err := c.resolveData(w); err != nil {
		return err
	}
	for _, name := range []string{"openai", "gemini", "anthropic", "cohere", "perplexity", "mistral"} {
		u, err := url.Parse(upstream + "/" + name)
		if err != nil {
			return err
		}
		c.settings[name] = &upstreamSetting{name: name, url: u, provider: name}
	}
	return c.check()
}

// greet has the conversation of the demo, and says what to try.
func greet(ctx context.Context, url string, out io.Writer) error {
	var calls []demoCall
	if err := json.Unmarshal(demoCalls, &calls); err != nil {
		return fmt.Errorf("reading the demo's calls: %w", err)
	}
	answer := ""
	for _, call := range calls {
		id, err := call.make(ctx, url)
		if err != nil {
			return fmt.Errorf("having the demo's conversation: %w", err)
		}
		answer = id
	}
	words, err := template.New("words").Parse(demoWords)
	if err != nil {
		return fmt.Errorf("reading the demo's words: %w", err)
	}
	return words.Execute(out, map[string]string{"URL": url, "Answer": answer})
}

// make makes the call and returns the id of its answer.
func (c *demoCall) make(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+c.Path, bytes.NewReader(c.Body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end, or the error is returned
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", c.Path, response.Status)
	}
	return response.Header.Get("Ibid-Answer"), nil
}
