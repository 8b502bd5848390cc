package page_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// firstWorld is a server as it is without any setting, before a provider whose answer quotes one page that still says
// so, one that says something else now, and one that does not answer.
func firstWorld(t *testing.T, configure func(*server.Config)) *world {
	t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			http.NotFound(w, r)
		case "/ferry":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<p>The ferry to Hask crosses in 55 minutes, whatever the tide, says the harbour office.</p>")
		case "/fares":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<p>A return ticket to the island costs 41 florins for grown-ups since the spring.</p>")
		default:
			http.Error(w, "away", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(pages.Close)
	cite := func(path, quote string) string {
		return `[{"type": "web_search_result_location", "url": "` + pages.URL + path + `", "title": "The ` + path[1:] +
			`", "encrypted_index": "x", "cited_text": "` + quote + `"}]`
	}
	upstream := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "content": [
			{"type": "text", "text": "The ferry to Hask crosses in 55 minutes, whatever the tide.", "citations": `+
			cite("/ferry", "The ferry to Hask crosses in 55 minutes, whatever the tide")+`},
			{"type": "text", "text": " A return ticket to the island costs 34 florins for grown-ups.", "citations": `+
			cite("/fares", "A return ticket to the island costs 34 florins for grown-ups since the spring.")+`},
			{"type": "text", "text": " The cabins can be booked until noon.", "citations": `+
			cite("/cabins", "The cabins of the upper deck can be booked until noon")+`}],
			"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}`)
	})
	return &world{servertest.Start(t, &servertest.Setup{
		Upstream: upstream, Providers: []string{"anthropic"}, Configure: func(c *server.Config) {
			c.Publish.Recheck = server.Recheck{}
			c.Publish.Allow = server.Networks{netip.MustParsePrefix("127.0.0.0/8")}
			configure(c)
		},
	})}
}

const firstCall = `{"model": "claude-haiku-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": "How long does the ferry take?"}]}`

// The sources of a first answer are read once without any setting, so that the page of a new user shows what they say
// now. A source that cannot be reached is told only to who asks for it.
func TestFirstCheck(t *testing.T) {
	w := firstWorld(t, func(*server.Config) {})
	res := w.do(t, "POST", "/anthropic/v1/messages", firstCall, "Content-Type", "application/json", "x-api-key", "k")
	page := "/ui/answers/" + res.Header.Get("Ibid-Answer")
	var parts []string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		parts = wordsOfAll(every(sound(t, w.get(t, page).body), "trust-part"))
		if strings.Join(parts, ", ") == "1 supported, 1 changed, 1 not checked" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the page says %q", parts)
		}
	}
	if body := w.get(t, page).body; !strings.Contains(body, "The source now says 41, the answer 34.") {
		t.Errorf("the difference is not shown: %s", body)
	}
	w.do(t, "POST", page+"/check", "", "Sec-Fetch-Site", "same-origin")
	parts = wordsOfAll(every(sound(t, w.get(t, page).body), "trust-part"))
	if got := strings.Join(parts, ", "); got != "1 supported, 1 changed, 1 not reachable" {
		t.Errorf("after asking, the page says %q", got)
	}
}

// Where others can use the server, or it publishes, nothing is read unless the operator says so, and the page says how.
func TestFirstCheckOff(t *testing.T) {
	for name, configure := range map[string]func(*server.Config){
		"off":   func(c *server.Config) { c.Publish.Recheck = server.Recheck{Off: true} },
		"token": func(c *server.Config) { c.BootstrapToken = strings.Repeat("t", 40) },
	} {
		t.Run(name, func(t *testing.T) {
			w := firstWorld(t, configure)
			if w.Page == nil || strings.Contains(w.Log.String(), "are read once") {
				t.Errorf("sources are read: %s", w.Log.String())
			}
		})
	}
}
