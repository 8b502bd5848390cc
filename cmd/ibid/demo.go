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
	// demoSearch is the duration of a web search, long enough for a reader to see the query.
	demoSearch = time.Second
)

//go:embed demo/calls.json
var demoCalls []byte

//go:embed demo/words.txt
var demoWords string

// demoCall is one call of the conversation that the demo starts with.
type demoCall struct {
	Path   string            `json:"path"`
	Header map[string]string `json:"header"`
	Body   json.RawMessage   `json:"body"`
}

func newDemo(w world) *cobra.Command {
	c := server.Defaults()
	judge := false
	cmd := &cobra.Command{
		Use:   "demo [--listen ADDRESS]",
		Short: "Run a gateway with simulated providers, no key needed",
		Long: `Runs ibid serve in a temporary directory, in front of an upstream that simulates
OpenAI, Gemini, Anthropic, Cohere, Perplexity and Mistral with answers about things
that do not exist. It prints the address of its page, and commands to try. A prompt
may also say "call a tool", "error 429", "error in the stream" or "break off".

It publishes one answer with a signed manifest, whose sources are pages of its own
below /demo/; one of them changes, and ibid notices. For this it may fetch pages
from 127.0.0.1, which ibid serve does not.

Ctrl-C ends it and removes the directory. With --data the directory is kept, and
its conversations are there again next time.`,
		Example: `  ibid demo
  ibid demo --data demo/ --listen 127.0.0.1:0`,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), c, judge, w) },
	}
	flags := cmd.Flags()
	c.AddListenFlags(flags)
	flags.StringVar(&c.Data, "data", "", "`directory` for the data (default a temporary one)")
	withoutVariable(flags, "data") // the variable belongs to ibid serve
	server.AddOriginFlag(flags, &c.Origins)
	flags.BoolVar(&judge, "judge", false,
		"have citations judged by a made-up judge, which is no model: its verdicts say "+demoJudgeModel)
	withoutVariable(flags, "judge")
	return cmd
}

// demo runs the gateway, its upstream and the pages it cites until ctx ends or a signal arrives.
func demo(ctx context.Context, c *server.Config, judge bool, w world) error {
	ctx, stop := stopSignals(ctx)
	defer stop()
	if c.Data == "" {
		dir, err := os.MkdirTemp("", "ibid-demo-")
		if err != nil {
			return fmt.Errorf("making a directory for the demo: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // leftovers in a temporary directory are harmless
		c.Data = dir
	}
	if err := c.CheckExposure(false); err != nil {
		return err
	}
	// Manifests contain their address with the port, which must therefore be known first.
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
	if judge {
		c.Judge = upstream + demoJudgePath + "#" + demoJudgeModel
	}
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

// demoQuestions are English questions that the demo can answer.
var demoQuestions = []string{
	"How many herons nest at Lake Tonbo?",
	"When does the ferry to the island leave?",
	"May I photograph in the reading room?",
	"Write a short report on the marsh.",
}

// demoOtherwise is the demo's answer to any other question.
func demoOtherwise() string {
	return "This demo has no answer to that. Ask it, for example: " + demoQuestions[0] + "\n"
}

// startReplay starts the upstream on a port of its own, and returns its address and a function that ends it. The pages
// that it cites are below copies.
func startReplay(ctx context.Context, copies string) (address string, end func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening for the demo's upstream: %w", err)
	}
	s := &http.Server{
		Handler: withDemoJudge(replay.New(&replay.Options{
			First: demoFirst, Delay: demoDelay, Search: demoSearch, Copies: copies, Otherwise: demoOtherwise(),
		})),
		ReadHeaderTimeout: time.Minute,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with Close
	}()
	return "http://" + l.Addr().String(), func() {
		_ = s.Close() // its only client, the gateway, has ended
		<-done
	}, nil
}

const (
	demoConversation = "herons"
	demoRun          = "demo"
	demoHolds        = "timetable" // a run whose sources all support its answer
	// demoRecheck is how often the demo fetches cited sources again.
	demoRecheck = 5 * time.Second
	// demoWait bounds publishing and fetching sources again.
	demoWait = 30 * time.Second
)

// configureDemo configures a gateway for the demo, which is reachable at publicURL.
func configureDemo(c *server.Config, publicURL, upstream string) {
	c.Quiet = true
	c.CaptureWait = time.Second // a temporary directory may be on a slow disk
	c.PublicURL, c.Publish.Level, c.Publish.Recheck.Every = publicURL, "3", demoRecheck
	c.Publish.Allow = server.Networks{netip.MustParsePrefix("127.0.0.1/32")}
	// the usual ports of development servers on the same machine
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

// greet runs the demo's conversation unless it is stored already, and prints what to try.
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
	// Wait until the change is found when the source is next fetched, so that visitors see it.
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

// converse runs the conversation and returns the id of its last answer.
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

// awaitManifests waits until the answer of a run is published, and if final also the run, so that their sources were
// read as cited. It returns the path of the answer's manifest.
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

// awaitEvent waits for the event of a run that is accepted by is, starting with the first one.
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
	defer response.Body.Close() //nolint:errcheck // read to its end, or the error is returned
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %s", c.Path, response.Status)
	}
	return response.Header.Get("Ibid-Answer"), nil
}

// demoSitePath is the first path segment of the demo's pages.
const demoSitePath = "demo"

//go:embed demo/page.html
var demoPageWords string

// demoPage returns the page that an answer of the demo cites at a host and path, or nil if there is none.
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

// demoSite serves the pages that the demo's answers cite, below their host names: /demo/birds.example/tonbo/census
// stands for https://birds.example/tonbo/census. A verifier fetches them like real pages, and one of them changes.
type demoSite struct{ changed atomic.Bool }

// ServeHTTP serves a page. Once the site has changed, the history gives another year.
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
	_, _ = w.Write(body) //nolint:gosec // a page of the demo; a client that left does not matter
}
