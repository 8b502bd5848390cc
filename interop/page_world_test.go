package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// pageWorld is a gateway with something to show, as described to the scripts of web/.
type pageWorld struct {
	Base    string            `json:"base"`    // of the gateway
	Demo    string            `json:"demo"`    // of an ibid demo; empty if there is none
	Foreign string            `json:"foreign"` // of somebody else's page; empty: there is none
	Token   string            `json:"token"`   // required for reading; empty if none is
	Answers map[string]string `json:"answers"` // ids by what was asked
	Images  string            `json:"images"`  // directory for pictures; empty to take none
	Shots   string            `json:"shots"`   // directory for pictures of every page; empty to take none
}

// pageProgram builds ibid.
func pageProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ibid")
	build := exec.CommandContext(t.Context(), "go", "-C", "..", "build", "-o", program, "./cmd/ibid")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building ibid: %v\n%s", err, out)
	}
	return program
}

// servePages starts a gateway with upstreams for every kind of answer: the replay, a slow one, one that returns as many
// citations as requested, and malicious ones.
func servePages(t *testing.T, configure func(*server.Config)) *pageWorld {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", replay.New(nil))
	mux.Handle("/slow/", replay.New(&replay.Options{Delay: 30 * time.Millisecond, ChunkSize: 6}))
	mux.HandleFunc("/many/", answerMany)
	for _, name := range []string{"hostile-gemini", "hostile-anthropic"} {
		body := testenv.Must(os.ReadFile(filepath.Join("web", "page_"+name+".json")))(t)
		mux.HandleFunc("/"+name+"/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		})
	}
	w := servertest.Start(t, &servertest.Setup{
		Upstream:  withHarm(withKey(mux)),
		Providers: []string{"openai", "gemini", "anthropic", "cohere", "perplexity", "mistral"},
		Configure: func(c *server.Config) {
			upstream := strings.TrimSuffix(string(c.Upstreams["openai"].URL), "/openai")
			c.Chat, c.Prompts = nil, server.Defaults().Prompts
			for name, provider := range map[string]string{
				"slow": "openai", "slow-gemini": "gemini", "slow-anthropic": "anthropic",
				"many": "perplexity", "harm": "", "hostile-gemini": "gemini", "hostile-anthropic": "anthropic",
			} {
				path, isSlow := "/"+name, strings.HasPrefix(name, "slow")
				if isSlow {
					path = "/slow"
				}
				c.Upstreams[name] = &server.Upstream{
					URL: server.URL(upstream + path), Provider: provider, KeyEnv: c.Upstreams["openai"].KeyEnv,
				}
			}
			for _, name := range []string{"slow", "slow-gemini", "slow-anthropic", "openai"} {
				c.Chat = append(c.Chat, server.ChatModel{Upstream: name, Model: "heron-1"})
			}
			if configure != nil {
				configure(c)
			}
		},
	})
	return &pageWorld{Base: w.URL, Answers: map[string]string{}}
}

// withHarm serves the pages of [harm], which a browser gets without a key, in addition to next.
func withHarm(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/harm/") {
			harm(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// harm is an upstream whose pages try to act as the user who opens them: each tries to create a token with every
// permission.
func harm(w http.ResponseWriter, r *http.Request) {
	kinds := map[string]string{"html": "text/html", "svg": "image/svg+xml", "xml": "application/xhtml+xml", "text": "text/plain"}
	name := strings.TrimPrefix(r.URL.Path, "/harm/")
	if kind, ok := kinds[name]; ok {
		w.Header().Set("Content-Type", kind)
	} else {
		w.Header()["Content-Type"] = nil
	}
	w.Header().Set("Set-Cookie", "ibid_session=harm; Path=/")
	w.Header().Set("Service-Worker-Allowed", "/")
	const script = `fetch("/v1/tokens",{method:"POST",headers:{"Content-Type":"application/json"},` +
		`body:'{"name":"harm","tenant":"default","scopes":["admin"]}'}).then(r=>{document.title="harm "+r.status})`
	if name == "svg" {
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg"><script>`+script+`</script></svg>`)
		return
	}
	_, _ = io.WriteString(w, `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>page</title></head><body><p>Shown.</p><script>`+
		script+`</script></body></html>`)
}

// answerMany answers in the format of Perplexity, with as many citations as the number at the end of the prompt.
func answerMany(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		http.Error(w, "no question", http.StatusBadRequest)
		return
	}
	words := strings.Fields(asked.Messages[0].Content)
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		http.Error(w, "no number", http.StatusBadRequest)
		return
	}
	sources := max(1, min(60, n/5))
	var text strings.Builder
	var results []map[string]string
	var addresses []string
	if strings.Contains(asked.Messages[0].Content, "table") {
		text.WriteString("| Pond | When it froze |\n| --- | --- |\n")
		for i := range n {
			fmt.Fprintf(&text, "| %d | some days later[%d] |\n", i+1, i%sources+1)
		}
		text.WriteString("\n")
		n = 1
	}
	for i := range n {
		fmt.Fprintf(&text, "Pond %d froze %d days later than the one before it.[%d]", i+1, i%17+1, i%sources+1)
		text.WriteString(map[bool]string{true: "\n\n", false: " "}[i%5 == 4])
	}
	for i := range sources {
		url := fmt.Sprintf("https://ponds%d.example/survey/%d", i+1, i+1)
		addresses = append(addresses, url)
		results = append(results, map[string]string{
			"title": fmt.Sprintf("Survey of the ponds, part %d", i+1), "url": url, "date": "2025-04-12",
			"snippet": fmt.Sprintf("In part %d the ponds froze late: the first on 3 December, the last on 19 January, each some days after the one before it.", i+1),
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "many-" + words[len(words)-1], "model": "sonar", "created": 1767225600, "object": "chat.completion",
		"citations": addresses, "search_results": results,
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": text.String()},
		}},
	})
}

// pageCall is a call that fills a page.
type pageCall struct{ name, path, prompt, conversation string }

// fill makes the calls whose answers the pages show.
func (w *pageWorld) fill(t *testing.T) {
	t.Helper()
	for _, c := range []pageCall{
		{"heron", "/openai/v1/responses", "How many herons nest at Lake Tonbo?", "lake"},
		{"report", "/anthropic/v1/messages", "Write a short report on the marsh.", "lake"},
		{"ferry", "/cohere/v2/chat", "When does the ferry to the island leave?", "lake"},
		{"table", "/openai/v1/responses", "Write a short report on the marsh.", "tables"},
		{"maktaba", "/gemini/v1beta/models/heron-1:generateContent", "متى تفتح مكتبة المدينة؟", "maktaba"},
		{"sagi", "/gemini/v1beta/models/heron-1:generateContent", "とんぼ湖のアオサギについて教えてください。", "sagi"},
		{"buecherei", "/perplexity/chat/completions", "Wann öffnet die Stadtbücherei Mühlbrück?", "stadt"},
		{"rules", "/openai/v1/responses", "May I photograph in the reading room?", "rules"},
		{"thanks", "/openai/v1/responses", "Thank you!", "thanks"},
		{"cells", "/many/chat/completions", "Which ponds froze, as a table? 12", "tables"},
		{"fifty", "/many/chat/completions", "Which ponds froze? 50", "ponds"},
		{"hundreds", "/many/chat/completions", "Which ponds froze? 500", "ponds-500"},
		{"thousands", "/many/chat/completions", "Which ponds froze? 5000", "ponds-5000"},
		{"hostile-gemini", "/hostile-gemini/v1beta/models/heron-1:generateContent", hostileQuestion, "hostile"},
		{"hostile-anthropic", "/hostile-anthropic/v1/messages", hostileQuestion, "hostile"},
	} {
		w.Answers[c.name] = w.call(t, &c)
	}
}

// hostileQuestion tries to be more than a question.
const hostileQuestion = "Is <script>document.title='harm'</script> \u202Ethis\u202C <img src=x onerror=\"document.title='harm'\"> harmless? ](javascript:alert(1))"

// call makes a call and returns the id of its answer.
func (w *pageWorld) call(t *testing.T, c *pageCall) string {
	t.Helper()
	message := map[string]any{"role": "user", "content": c.prompt}
	body := map[string]any{"model": "heron-1", "max_tokens": 1000}
	switch {
	case strings.HasSuffix(c.path, "/responses"):
		body["input"] = c.prompt
		body["tools"] = []any{map[string]any{"type": "web_search"}}
	case strings.HasSuffix(c.path, ":generateContent"):
		body = map[string]any{"contents": []any{map[string]any{"role": "user", "parts": []any{map[string]string{"text": c.prompt}}}}}
	default:
		body["messages"] = []any{message}
	}
	header := http.Header{"Authorization": {"Bearer " + key}, "X-Api-Key": {key}, "X-Goog-Api-Key": {key}, "Ibid-Conversation": {c.conversation}}
	if !strings.HasPrefix(c.path, "/anthropic") && !strings.HasPrefix(c.path, "/hostile-anthropic") {
		header.Del("X-Api-Key")
	} else {
		header.Del("Authorization")
	}
	if !strings.Contains(c.path, ":generateContent") {
		header.Del("X-Goog-Api-Key")
	} else {
		header.Del("Authorization")
	}
	id := w.post(t, c.path, header, body)
	if id == "" {
		t.Fatalf("%s: the response had no Ibid-Answer header", c.name)
	}
	return id
}

// post returns the id of an answer, or "" if the response has none.
func (w *pageWorld) post(t *testing.T, path string, header http.Header, body any) string {
	t.Helper()
	data := testenv.Must(json.Marshal(body))(t)
	r := testenv.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.Base+path, bytes.NewReader(data)))(t)
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	if w.Token != "" {
		r.Header.Set("Ibid-Token", w.Token)
	}
	res, err := http.DefaultClient.Do(r)
	testenv.OK(t, err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %s %v\n%s", path, res.Status, err, got)
	}
	return res.Header.Get("Ibid-Answer")
}

// startDemo starts ibid demo and waits until it has noticed that one of its sources changed.
func startDemo(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, "demo", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "demo"))
	out, in := io.Pipe()
	cmd.Stdout = in
	var log bytes.Buffer
	cmd.Stderr = &log
	testenv.OK(t, cmd.Start())
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_ = in.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-ended; err != nil {
			t.Errorf("ibid demo ended: %v\n%s", err, &log)
		}
	})
	var said []byte
	buffer := make([]byte, 4096)
	for {
		n, err := out.Read(buffer)
		said = append(said, buffer[:n]...)
		if _, rest, ok := strings.Cut(string(said), "Open "); ok {
			if url, _, ok := strings.Cut(rest, "/ in a browser"); ok {
				go func() { _, _ = io.Copy(io.Discard, out) }() // ends when the demo does
				awaitIncident(t, url)
				return url
			}
		}
		if err != nil {
			t.Fatalf("ibid demo did not report its page: %v\n%s", err, &log)
		}
	}
}

// awaitIncident returns once a gateway has recorded an incident.
func awaitIncident(t *testing.T, base string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		data, err := fetch(ctx, base+"/v1/incidents")
		if err != nil {
			t.Fatalf("waiting for an incident: %v", err)
		}
		var all struct {
			Incidents []json.RawMessage `json:"incidents"`
		}
		testenv.OK(t, json.Unmarshal(data, &all))
		if len(all.Incidents) > 0 {
			return
		}
		<-tick.C
	}
}
