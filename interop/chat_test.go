package interop

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// aiVersions are the tested versions of npm "ai", by their names in web/package.json.
var aiVersions = []string{"ai-5-first", "ai-5", "ai-6", "ai-7"}

// recordings are real answers with reasoning; those of Anthropic and Google have provider-side searches and citations.
// The key is the provider, and the upstream is called "recorded-" and that.
var recordings = map[string]string{
	"anthropic": "anthropic/pydantic-ai__anthropic-web-search-tool.json",
	"gemini":    "gemini/pydantic-ai__thinking-with-native-tool-wire-contract-google.json",
	"xai":       "xai/vercel-ai__xai-text-streaming.1-chunks.sse", // OpenAI's Responses API
}

// recorded returns the events of a recording. A recorded body is turned into the stream that its provider would have
// sent.
func recorded(t *testing.T, provider string) []string {
	t.Helper()
	body := testenv.Must(os.ReadFile(filepath.Join(testenv.Shared(t), "corpus", filepath.FromSlash(recordings[provider]))))(t)
	var events []string
	add := func(v map[string]any) {
		name, _ := v["type"].(string)
		events = append(events, "event: "+name+"\ndata: "+string(testenv.Must(json.Marshal(v))(t)))
	}
	var whole map[string]any
	switch provider {
	case "anthropic":
		testenv.OK(t, json.Unmarshal(body, &whole))
		content, _ := whole["content"].([]any)
		whole["content"] = []any{}
		add(map[string]any{"type": "message_start", "message": whole})
		for i, block := range content {
			addBlock(add, i, block.(map[string]any))
		}
		add(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": whole["stop_reason"]}})
		add(map[string]any{"type": "message_stop"})
	case "gemini":
		testenv.OK(t, json.Unmarshal(body, &whole))
		candidate := whole["candidates"].([]any)[0].(map[string]any)
		for _, part := range candidate["content"].(map[string]any)["parts"].([]any) {
			add(map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"parts": []any{part}}}}})
		}
		candidate["content"] = map[string]any{"parts": []any{map[string]any{"text": ""}}}
		add(whole)
	default:
		events = strings.Split(strings.TrimSpace(string(body)), "\n\n")
	}
	return events
}

// addBlock adds the events of one of Anthropic's content blocks: its citations precede its text.
func addBlock(add func(map[string]any), i int, block map[string]any) {
	var deltas []map[string]any
	switch block["type"] {
	case "text":
		citations, _ := block["citations"].([]any)
		for _, c := range citations {
			deltas = append(deltas, map[string]any{"type": "citations_delta", "citation": c})
		}
		deltas = append(deltas, map[string]any{"type": "text_delta", "text": block["text"]})
		block = map[string]any{"type": "text", "text": ""}
	case "thinking":
		for word := range strings.SplitAfterSeq(block["thinking"].(string), " ") {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": word})
		}
		block = map[string]any{"type": "thinking", "thinking": ""}
	case "server_tool_use":
		input, _ := json.Marshal(block["input"])
		for half := range slices.Chunk(input, len(input)/2+1) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": string(half)})
		}
		block["input"] = map[string]any{}
	}
	add(map[string]any{"type": "content_block_start", "index": i, "content_block": block})
	for _, delta := range deltas {
		add(map[string]any{"type": "content_block_delta", "index": i, "delta": delta})
	}
	add(map[string]any{"type": "content_block_stop", "index": i})
}

// heldBefore lists the events of a recording before which its "held-" upstream waits: while the model thinks, and while
// it searches.
var heldBefore = map[string][]string{
	"anthropic": {`"content_block_stop"`, `"web_search_tool_result"`},
	"gemini":    {`"toolCall"`, `"toolResponse"`},
	"xai":       {`"response.reasoning_summary_text.done"`},
}

// sayRecorded answers every request with the events of a recording, spread over about two seconds. Before the first
// event that contains holds[0] it waits for next, then before the first that contains holds[1], and so on.
func sayRecorded(events, holds []string, next <-chan struct{}) http.HandlerFunc {
	pause := 2 * time.Second / time.Duration(len(events))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		holds := holds
		for _, event := range events {
			if len(holds) > 0 && strings.Contains(event, holds[0]) {
				holds = holds[1:]
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
			_, _ = io.WriteString(w, event+"\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
	}
}

// startChat starts ibid with a /v1/chat that can ask openai, gemini, anthropic and cohere, as well as late, whose
// citations arrive with a second call, slow, and the recordings, played straight through or held until next releases
// them.
func startChat(t *testing.T, origins ...string) (w *world, next chan<- struct{}) {
	t.Helper()
	goOn := make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/", replay.New(&replay.Options{Delay: time.Millisecond}))
	mux.Handle("/slow/", replay.New(&replay.Options{Delay: 20 * time.Millisecond, ChunkSize: 6}))
	providers := []string{"openai", "gemini", "anthropic", "cohere", "late", "slow"}
	for provider := range recordings {
		providers = append(providers, "recorded-"+provider, "held-"+provider)
		mux.Handle("/recorded-"+provider+"/", sayRecorded(recorded(t, provider), nil, nil))
		mux.Handle("/held-"+provider+"/", sayRecorded(recorded(t, provider), heldBefore[provider], goOn))
	}
	s := servertest.Start(t, &servertest.Setup{
		Upstream:  withKey(mux),
		Providers: providers,
		Configure: func(c *server.Config) {
			c.Origins = origins
			for provider := range recordings {
				c.Upstreams["recorded-"+provider].Provider = provider
				c.Upstreams["held-"+provider].Provider = provider
			}
			for _, name := range []string{"late", "slow"} {
				c.Upstreams[name].Provider = "openai"
			}
			c.Upstreams["late"].Backfill = []server.Backfill{{
				Route: "POST /v1/responses", Tools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)},
			}}
		},
	})
	return &world{upstream: s.Upstream.URL, gateway: s.URL}, goOn
}

// The AI SDK's own client reads what /v1/chat writes, in every version in use.
func TestChatAISDK(t *testing.T) {
	node := webProgram(t)
	w, _ := startChat(t)
	for _, version := range aiVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), node, "ui_check.mjs", w.gateway, version)
			cmd.Dir = "web"
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// reactVersions are the packages of React's useChat for each version of npm "ai" since 5, by their names in
// web/package.json.
var reactVersions = map[string]string{"ai-5": "react-ai-5", "ai-6": "react-ai-6", "ai-7": "@ai-sdk/react"}

// The component of docs/chat.md, bundled by esbuild and opened in Chromium, asks, shows the answer and its citations as
// they arrive, late ones included, and shows it again after a reload at any time.
func TestChatReact(t *testing.T) {
	node := webProgram(t)
	chromium := testenv.Tool(t, "chromium")
	docs := testenv.Must(os.ReadFile(filepath.Join("..", "docs", "chat.md")))(t)
	example := func(language string) string {
		_, code, _ := strings.Cut(string(docs), "```"+language+"\n")
		code, _, _ = strings.Cut(code, "```")
		return code
	}
	component := strings.NewReplacer(
		`'http://127.0.0.1:8080/v1/chat'`, "`${new URLSearchParams(location.search).get('ibid')}/v1/chat`",
		`DefaultChatTransport({ api })`, `DefaultChatTransport({ api, body: { provider: new URLSearchParams(location.search).get('provider') } })`,
	).Replace(example("jsx"))
	pages := http.NewServeMux()
	for ai, react := range reactVersions {
		script := bundle(t, component, ai, react)
		pages.HandleFunc("/"+ai+".js", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(script)
		})
		pages.HandleFunc("/"+ai, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, `<!doctype html><title>useChat</title><div id="root"></div><script type="module" src="/`+ai+`.js"></script>`)
		})
	}
	page := httptest.NewServer(pages)
	t.Cleanup(page.Close)
	w, next := startChat(t, page.URL)
	pages.HandleFunc("/next", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case next <- struct{}{}:
		case <-r.Context().Done():
		}
	})
	pages.HandleFunc("/plain", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(out, strings.ReplaceAll(example("html"), "http://127.0.0.1:8080", w.gateway))
	})
	for ai := range reactVersions {
		t.Run(ai, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, "ui_browser.mjs", page.URL, w.gateway, chromium, ai, *shots)
			cmd.Dir = "web"
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// bundle returns the page's script with a component, for a version of the AI SDK and its hook.
func bundle(t *testing.T, component, ai, react string) []byte {
	t.Helper()
	dir := t.TempDir()
	app, err := os.ReadFile(filepath.Join("web", "ui_app.jsx"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "ui_app.jsx"), app, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "ui_component.jsx"), []byte(component), 0o600)
	}
	packages, pathErr := filepath.Abs(filepath.Join("web", "node_modules"))
	if err = errors.Join(err, pathErr); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "app.js")
	arguments := []string{
		filepath.Join(dir, "ui_app.jsx"), "--bundle", "--format=esm", "--jsx=automatic", "--define:process.env.NODE_ENV=\"production\"",
		"--alias:ai=" + ai, "--outfile=" + out,
	}
	if react != "@ai-sdk/react" {
		arguments = append(arguments, "--alias:@ai-sdk/react="+react)
	}
	build := exec.CommandContext(t.Context(), filepath.Join(packages, ".bin", "esbuild"), arguments...)
	build.Dir, build.Env = "web", append(os.Environ(), "NODE_PATH="+packages)
	if words, err := build.CombinedOutput(); err != nil {
		t.Fatalf("bundling the page: %v\n%s", err, words)
	}
	script := testenv.Must(os.ReadFile(out))(t)
	return script
}

// webProgram returns the path of node. It ends the test where node or the packages of web/package.json are missing.
func webProgram(t *testing.T) string {
	t.Helper()
	testenv.NodeModules(t, "interop/web")
	return testenv.Tool(t, "node")
}
