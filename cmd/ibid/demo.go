package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/store"
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
over answers about things that do not exist. It says where its page is, and prints
commands to try. A prompt may also say "call a tool", "error 429", "error in the
stream" or "break off".

It publishes one answer with a signed manifest, whose sources are pages of its own
below /demo/; one of them changes, and ibid notices. For that it may read pages at
127.0.0.1, which ibid serve does not.

Ctrl-C ends it and removes the directory. With --data it stays, and what was asked
is there again the next time.`,
		Example: `  ibid demo
  ibid demo --data demo/ --listen 127.0.0.1:0`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), c, w) },
	}
	c.addListenFlags(cmd)
	cmd.Flags().StringVar(&c.data, "data", "", "`directory` to keep what is asked in (default a temporary one)")
	cmd.Flags().
		Var(&c.origins, "cors-origin", "a web `origin` whose pages may call, besides the usual ones of development servers; repeatable")
	if err := cmd.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was added above
	}
	return cmd
}

// demo runs the gateway, its upstream and the pages it cites until it is told to stop.
func demo(ctx context.Context, c *config, w world) error {
	w.err = &locked{w: w.err}
	ctx, stop := stopSignals(ctx)
	defer stop()
	if c.data == "" {
		dir, err := os.MkdirTemp("", "ibid-demo-")
		if err != nil {
			return fmt.Errorf("making a directory for the demo: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // what is left of a temporary directory harms nobody
		c.data = dir
	}
	upstream, end, err := startReplay(ctx)
	if err != nil {
		return err
	}
	defer end()
	if local, err := isLocal(c.listen); err != nil {
		return err
	} else if !local {
		return exposedError(c.listen)
	}
	l, err := openListener(ctx, c.listen) // before all else: manifests say where they are, and the port is part of that
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has closed it
	if err := c.setDemo("http://"+l.Addr().String(), upstream, w); err != nil {
		return err
	}
	d, err := newDaemon(ctx, c, w)
	if err != nil {
		return err
	}
	d.listener, d.demo = l, &demoSite{}
	d.own[demoSitePath] = true
	return d.run(ctx, d.greet)
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

const (
	demoConversation = "herons"
	demoRun          = "demo"
	// demoRecheck is how often the demo reads cited sources again.
	demoRecheck = 5 * time.Second
	// demoPublish is how long publishing may take.
	demoPublish = 30 * time.Second
)

// setDemo configures a gateway for the demo, which is reached at a URL.
func (c *config) setDemo(publicURL, upstream string, w world) error {
	c.nats, c.drain, c.quiet = "embedded", defaultDrain, true
	c.captureWait = time.Second // a temporary directory may be on a slow disk
	c.publicURL, c.attribution.level.value, c.attribution.recheck = publicURL, "3", demoRecheck
	c.attribution.runIdle, c.attribution.buffer = defaultRunIdle, gateway.DefaultHeaderBuffer
	c.attribution.allow = prefixList{netip.MustParsePrefix("127.0.0.1/32")}
	c.origins = append(c.origins, developmentOrigins()...)
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
	c.chat.asked = chatFlag{
		{upstream: "openai", model: "gpt-5"},
		{upstream: "gemini", model: "gemini-3-pro"},
		{upstream: "anthropic", model: "claude-opus-4-5"},
		{upstream: "cohere", model: "command-a-03-2025"},
		{upstream: "perplexity", model: "sonar"},
	}
	return c.check()
}

// developmentOrigins returns where pages usually come from that somebody is working at on the same machine.
func developmentOrigins() []string {
	var all []string
	for _, port := range []string{"3000", "4173", "4200", "4321", "5173", "8000", "8081"} {
		all = append(all, "http://localhost:"+port, "http://127.0.0.1:"+port)
	}
	return all
}

// greet has the conversation of the demo, unless it was had before, and says what to try.
func (d *daemon) greet(ctx context.Context, url string) error {
	answer, err := d.converse(ctx, url)
	if err != nil {
		return fmt.Errorf("having the demo's conversation: %w", err)
	}
	path, err := d.awaitManifests(ctx)
	if err != nil {
		return fmt.Errorf("publishing the demo's answer: %w", err)
	}
	d.demo.changed.Store(true)
	words, err := template.New("words").Parse(demoWords)
	if err != nil {
		return fmt.Errorf("reading the demo's words: %w", err)
	}
	return words.Execute(d.world.out, map[string]string{"URL": url, "Answer": answer, "Manifest": url + path})
}

// converse has the conversation, and returns the id of its last answer.
func (d *daemon) converse(ctx context.Context, url string) (answer string, err error) {
	had, err := d.store.Conversation(ctx, store.DefaultTenant, demoConversation, &store.Query{Limit: 1})
	if err == nil {
		return had.Calls[0].AnswerID, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	var calls []demoCall
	if err := json.Unmarshal(
		bytes.ReplaceAll(demoCalls, []byte("SITE"), []byte(url+"/"+demoSitePath)),
		&calls,
	); err != nil {
		return "", err
	}
	for _, call := range calls {
		id, err := call.make(ctx, url)
		if err != nil {
			return "", err
		}
		answer = cmp.Or(id, answer)
	}
	return answer, nil
}

// awaitManifests returns the path of the manifest of the demo's published answer, once that of its run is there as
// well: whatever reads a source then finds it as it was cited.
func (d *daemon) awaitManifests(ctx context.Context) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, demoPublish)
	defer cancel()
	listener, err := d.bus.Listen(ctx, store.DefaultTenant, demoRun)
	if err != nil {
		return "", err
	}
	defer listener.Close()
	isFinal := false
	enough := errors.New("both are there")
	err = listener.Follow(ctx, d.store, 0, func(m bus.Message) error {
		if m.Event == nil || m.Event.Kind != store.EventManifest {
			return nil
		}
		var built struct {
			AnswerID string `json:"answer_id"`
			Path     string `json:"path"`
		}
		if err := json.Unmarshal(m.Event.Data, &built); err != nil {
			return err
		}
		if built.AnswerID == "" {
			isFinal = true
		} else {
			path = built.Path
		}
		if isFinal && path != "" {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return path, nil
	}
	return "", err
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
	if response.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %s", c.Path, response.Status)
	}
	return response.Header.Get("Ibid-Answer"), nil
}
