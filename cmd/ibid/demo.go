package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// The pace of the demo's upstream.
const (
	demoFirst = 250 * time.Millisecond
	demoDelay = 25 * time.Millisecond
	// demoSearch is how long a search of the web takes there, so that a reader sees what is searched for.
	demoSearch = time.Second
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
	c := server.Defaults()
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
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), c, w) },
	}
	flags := cmd.Flags()
	c.AddListenFlags(flags)
	flags.StringVar(&c.Data, "data", "", "`directory` to keep what is asked in (default a temporary one)")
	withoutVariable(flags, "data") // that of ibid serve
	server.AddOriginFlag(flags, &c.Origins)
	return cmd
}

// demo runs the gateway, its upstream and the pages it cites until it is told to stop.
func demo(ctx context.Context, c *server.Config, w world) error {
	ctx, stop := stopSignals(ctx)
	defer stop()
	if c.Data == "" {
		dir, err := os.MkdirTemp("", "ibid-demo-")
		if err != nil {
			return fmt.Errorf("making a directory for the demo: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // what is left of a temporary directory harms nobody
		c.Data = dir
	}
	if err := c.CheckExposure(false); err != nil {
		return err
	}
	// Manifests say where they are, and the port is part of that: it has to be known before all else.
	l, err := server.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has closed it
	publicURL := "http://" + l.Addr().String()
	upstream, end, err := startReplay(ctx, publicURL+"/"+demoSitePath+"/")
	if err != nil {
		return err
	}
	defer end()
	configureDemo(c, publicURL, upstream)
	if err := c.Resolve(nil, func(string) (string, bool) { return "", false }); err != nil {
		return err
	}
	site := &demoSite{}
	o := &server.Options{
		Listener: l, Handlers: map[string]http.Handler{demoSitePath: site},
		Demo: &page.Demo{Changed: demoRun, Holds: demoHolds, Questions: demoQuestions},
	}
	return serve(ctx, c, o, func(s *server.Server, url string) error {
		return greet(ctx, s, site, url, w.out)
	}, w)
}

// demoQuestions are what the demo can be asked in English.
var demoQuestions = []string{
	"How many herons nest at Lake Tonbo?",
	"When does the ferry to the island leave?",
	"May I photograph in the reading room?",
	"Write a short report on the marsh.",
}

// demoOtherwise is what the demo answers to every other question.
func demoOtherwise() string {
	return "This demo has no answer to that. Ask it, for example: " + demoQuestions[0] + "\n"
}

// startReplay starts the upstream at a port of its own, and returns where it is and what ends it. The pages that it
// cites are below an address.
func startReplay(ctx context.Context, copies string) (address string, end func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening for the demo's upstream: %w", err)
	}
	s := &http.Server{
		Handler: replay.New(&replay.Options{
			First: demoFirst, Delay: demoDelay, Search: demoSearch, Copies: copies, Otherwise: demoOtherwise(),
		}),
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
	demoHolds        = "timetable" // all its sources say what its answer cites
	// demoRecheck is how often the demo reads cited sources again.
	demoRecheck = 5 * time.Second
	// demoWait is how long publishing, or reading sources again, may take.
	demoWait = 30 * time.Second
)

// configureDemo configures a gateway for the demo, which is reached at a URL.
func configureDemo(c *server.Config, publicURL, upstream string) {
	c.Quiet = true
	c.CaptureWait = time.Second // a temporary directory may be on a slow disk
	c.PublicURL, c.Publish.Level, c.Publish.Recheck = publicURL, "3", demoRecheck
	c.Publish.Allow = server.Networks{netip.MustParsePrefix("127.0.0.1/32")}
	// where pages usually come from that somebody is working at on the same machine
	for _, port := range []string{"3000", "4173", "4200", "4321", "5173", "8000", "8081"} {
		c.Origins = append(c.Origins, "http://localhost:"+port, "http://127.0.0.1:"+port)
	}
	for _, name := range []string{"openai", "gemini", "anthropic", "cohere", "perplexity", "mistral"} {
		c.Upstreams[name] = &server.Upstream{URL: server.URL(upstream + "/" + name), Provider: name}
	}
	c.Chat = []server.ChatModel{
		{Upstream: "openai", Model: "gpt-5"},
		{Upstream: "gemini", Model: "gemini-3-pro"},
		{Upstream: "anthropic", Model: "claude-opus-4-5"},
		{Upstream: "cohere", Model: "command-a-03-2025"},
		{Upstream: "perplexity", Model: "sonar"},
	}
}

// greet has the conversation of the demo, unless it was had before, and says what to try.
func greet(ctx context.Context, s *server.Server, site *demoSite, url string, out io.Writer) error {
	answer, err := converse(ctx, s, url)
	if err != nil {
		return fmt.Errorf("having the demo's conversation: %w", err)
	}
	path, err := awaitManifests(ctx, s, demoRun, true)
	if err != nil {
		return fmt.Errorf("publishing the demo's answer: %w", err)
	}
	holds, err := awaitManifests(ctx, s, demoHolds, false)
	if err != nil {
		return fmt.Errorf("publishing the demo's other answer: %w", err)
	}
	site.changed.Store(true)
	// Whoever opens the page is to see the change, which is seen when its source is next read again.
	err = awaitEvent(ctx, s, demoRun, func(e *store.Event) (bool, error) { return e.Kind == store.EventIncident, nil })
	if err != nil {
		return fmt.Errorf("reading the demo's sources again: %w", err)
	}
	words, err := template.New("words").Parse(demoWords)
	if err != nil {
		return fmt.Errorf("reading the demo's words: %w", err)
	}
	return words.Execute(out, map[string]string{
		"URL": url, "Answer": answer, "Changed": url + path, "Holds": url + holds,
	})
}

// converse has the conversation, and returns the id of its last answer.
func converse(ctx context.Context, s *server.Server, url string) (answer string, err error) {
	had, err := s.Store.Conversation(ctx, store.DefaultTenant, demoConversation, &store.Query{Limit: 1})
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

// awaitManifests returns the path of the manifest of the answer of a run that is published, if final once that of the
// run is there as well: whatever reads a source then finds it as it was cited.
func awaitManifests(ctx context.Context, s *server.Server, run string, final bool) (path string, err error) {
	isFinal := !final
	err = awaitEvent(ctx, s, run, func(e *store.Event) (bool, error) {
		if e.Kind != store.EventManifest {
			return false, nil
		}
		var built struct {
			AnswerID string `json:"answer_id"`
			Path     string `json:"path"`
		}
		if err := json.Unmarshal(e.Data, &built); err != nil {
			return false, err
		}
		if built.AnswerID == "" {
			isFinal = true
		} else {
			path = built.Path
		}
		return isFinal && path != "", nil
	})
	return path, err
}

// awaitEvent returns when one of the events of a run, from its first one, is the one that is waited for.
func awaitEvent(ctx context.Context, s *server.Server, run string, is func(*store.Event) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, demoWait)
	defer cancel()
	listener, err := s.Bus.Listen(ctx, store.DefaultTenant, run)
	if err != nil {
		return err
	}
	defer listener.Close()
	enough := errors.New("it is there")
	err = listener.Follow(ctx, s.Store, 0, func(m bus.Message) error {
		if m.Event == nil {
			return nil
		}
		found, err := is(m.Event)
		if err == nil && found {
			err = enough
		}
		return err
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
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

// demoSitePath is what the paths of the demo's pages begin with.
const demoSitePath = "demo"

//go:embed demo/page.html
var demoPageWords string

// demoPage writes the page at a site and path that an answer of the demo cites; nil: none does.
func demoPage(at string) []byte {
	for _, a := range replay.Answers() {
		for _, source := range a.Sources {
			u, err := url.Parse(source.URL)
			if err != nil || u.Host+u.Path != at {
				continue
			}
			var b bytes.Buffer
			if err := htmltemplate.Must(htmltemplate.New("page").Parse(demoPageWords)).Execute(&b, source); err != nil {
				return nil
			}
			return b.Bytes()
		}
	}
	return nil
}

//go:embed demo/pages
var demoPages embed.FS

// demoSite serves the pages that the demo's answers cite, below the names of their sites:
// /demo/birds.example/tonbo/census is what https://birds.example/tonbo/census would be. They are real as far as a
// verifier is concerned: it reads them, and one of them changes.
type demoSite struct{ changed atomic.Bool }

// ServeHTTP serves a page. Once the site has changed, the history says another year.
func (s *demoSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := strings.TrimPrefix(r.URL.Path, "/"+demoSitePath+"/")
	body, err := demoPages.ReadFile("demo/pages/" + at + ".html")
	if err != nil {
		if body = demoPage(at); body == nil {
			http.NotFound(w, r)
			return
		}
	}
	if s.changed.Load() {
		body = bytes.ReplaceAll(body, []byte("pair in 1968"), []byte("pair in 1986"))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body) //nolint:gosec // a page of the demo; who left does not read it
}
