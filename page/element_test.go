package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/testenv"
)

// The element is small.
func TestElementWeight(t *testing.T) {
	const most = 4 << 10
	if n := len(newViews(t).assets["ibid.js"].packed); n > most {
		t.Errorf("ibid.js has %d bytes, compressed; it may have %d", n, most)
	}
}

// drive opens the card of the example, and those of hostile citations, and reports what it saw.
const drive = `addEventListener("load", async () => {
  const out = {}, cite = document.querySelector("ibid-cite"), part = (n) => document.querySelector("ibid-card").shadowRoot.querySelector("[part=" + n + "]");
  const open = () => !!document.querySelector("ibid-card:popover-open"), link = cite.querySelector("a");
  let events = [];
  for (const type of ["ibid-open", "ibid-close"]) document.addEventListener(type, () => events.push(type));
  link.click();
  out.open = open();
  out.expanded = link.getAttribute("aria-expanded");
  out.parts = ["title", "meta", "quote", "status"].map((n) => part(n).textContent);
  out.href = part("open").href;
  out.tip = cite.hasAttribute("title");
  out.label = document.querySelector("ibid-card").getAttribute("aria-label");
  out.position = getComputedStyle(document.querySelector("ibid-card")).position; // styled in spite of this policy
  link.click();
  link.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true, composed: true }));
  document.querySelector("ibid-card").hidePopover();
  out.closed = !open();
  out.events = events.join(" ");
  const bad = document.createElement("ibid-cite");
  bad.setAttribute("href", "javascript:alert(1)");
  bad.setAttribute("title", "<img src=x onerror=alert(1)>");
  bad.textContent = "2";
  document.body.append(bad);
  bad.click();
  out.bad = [part("open").hidden, part("title").textContent, part("title").children.length, bad.getAttribute("role")];
  const own = document.createElement("ibid-cite");
  own.innerHTML = "<a href='#x'>3</a><template><b>Mine</b></template>";
  document.body.append(own);
  own.querySelector("a").click();
  out.own = document.querySelector("ibid-card").textContent;
  own.remove();
  out.gone = !open();
  document.body.append(Object.assign(document.createElement("pre"), { id: "result", textContent: JSON.stringify(out) }));
});`

// The example of the documentation works in a browser, under a policy that allows nothing but the file.
func TestElementExample(t *testing.T) {
	chromium := testenv.Tool(t, "chromium")
	doc := testenv.Must(os.ReadFile(filepath.Join(testenv.Root(t), "docs", "element.md")))(t)
	example := regexp.MustCompile("(?s)```html\n(.*?)```").FindSubmatch(doc)
	if example == nil {
		t.Fatal("docs/element.md has no example")
	}
	p := newViews(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(string(example[1]) + `<script src="/drive.js" defer></script>`))
	})
	mux.HandleFunc("GET /drive.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(drive))
	})
	mux.HandleFunc("GET /ibid.js", func(w http.ResponseWriter, r *http.Request) {
		if err := p.element(&httpx.Reply{ResponseWriter: w}, &httpx.Request{Request: r}); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir="+t.TempDir(), "--dump-dom", server.URL).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(resultOf(t, string(out))), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	want := map[string]any{
		"open": true, "expanded": "true", "tip": false, "label": "Source: Herons of the lower valley", "position": "absolute",
		"parts": []any{"Herons of the lower valley", "birds.example · 3 May 2025 · p. 7", "Most pairs nest in colonies of up to two hundred.", "quote found"},
		"href":  "https://birds.example/herons.pdf#page=7", "closed": true, "events": "ibid-open ibid-close",
		"bad": []any{true, "<img src=x onerror=alert(1)>", 0.0, "button"}, "own": "Mine", "gone": true,
	}
	testenv.Equal(t, "", want, got)
}

// resultOf returns what the driver wrote into the page.
func resultOf(t *testing.T, dom string) string {
	t.Helper()
	n := testenv.Must(html.Parse(strings.NewReader(dom)))(t)
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && attr(d, "id") == "result" {
			return said(d)
		}
	}
	t.Fatalf("the page has no result:\n%s", dom)
	return ""
}
