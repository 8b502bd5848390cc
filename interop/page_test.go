package interop

import (
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
)

var (
	images = flag.Bool("images", false, "take the pictures of docs/images anew")
	shots  = flag.String("shots", "", "directory for pictures of every page, to look at")
)

// Every kind of page in a real browser, at the widths of a laptop and a phone: what people see, how they use it, and
// how long that takes.
func TestPage(t *testing.T) {
	webProgram(t)
	for _, tool := range []string{
		"chromium", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
	} {
		testenv.Tool(t, tool)
	}
	program := pageProgram(t)
	w := servePages(t, nil)
	w.fill(t)
	w.Demo = startDemo(t, program)
	w.picture(t)
	if w.Images != "" {
		t.Cleanup(func() { shrink(t, w.Images) }) // when all scripts have ended
	}
	t.Run("many", func(t *testing.T) { w.script(t, "many") }) // alone, because it measures times
	for _, script := range []string{"all", "card", "live", "run", "trust", "ways"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w.script(t, script)
		})
	}
	t.Run("element", func(t *testing.T) {
		t.Parallel()
		foreign := *w
		foreign.Foreign = servePage(t, w.Base)
		foreign.script(t, "element")
	})
	t.Run("origin", func(t *testing.T) {
		t.Parallel()
		open := servePages(t, nil) // needs no token
		open.script(t, "origin")
	})
	t.Run("login", func(t *testing.T) {
		t.Parallel()
		closed := servePages(t, func(c *server.Config) { c.BootstrapToken = pageToken })
		closed.Token, closed.Foreign = pageToken, servePage(t, closed.Base)
		closed.Answers["heron"] = closed.call(t, &pageCall{"heron", "/openai/v1/responses", "How many herons nest at Lake Tonbo?", "lake"})
		closed.script(t, "login")
	})
}

// pageToken creates a token for the gateway that requires one.
const pageToken = "token-of-the-test-of-the-page-0123456789"

// foreignPage is a third party's page with citations.
const foreignPage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Somebody else</title><script src="IBID/ibid.js" defer></script></head><body><main><h1>Herons</h1>
<p>There are 41 nests.<ibid-cite title="Heron census at Lake Tonbo" site="birds.example" href="https://birds.example/tonbo/census"
quote="Volunteers counted 41 nests in the alders on 12 April." date="12 April 2025" status="quote found"><a href="https://birds.example/tonbo/census">[1]</a></ibid-cite>
The first pair came in 1968.<ibid-cite title="The lake and its birds" href="https://lake.example/history.pdf" page="3"><a href="https://lake.example/history.pdf">[2]</a></ibid-cite>
Nothing runs.<ibid-cite title="&lt;img src=x onerror=&quot;document.title='harm'&quot;&gt;" href="javascript:document.title='harm'"
quote="&lt;script&gt;document.title='harm'&lt;/script&gt;"><button>[3]</button></ibid-cite></p></main></body></html>`

// elementExample returns the page of docs/element.md as a third party would serve it.
func elementExample(t *testing.T, base string) string {
	t.Helper()
	doc := testenv.Must(os.ReadFile(filepath.Join("..", "docs", "element.md")))(t)
	_, rest, _ := strings.Cut(string(doc), "```html\n")
	page, _, ok := strings.Cut(rest, "```")
	if !ok || !strings.Contains(page, `src="/ibid.js"`) {
		t.Fatal("docs/element.md no longer has a page that loads /ibid.js")
	}
	return strings.Replace(page, `src="/ibid.js"`, `src="`+base+`/ibid.js"`, 1)
}

// servePage serves foreignPage and the page of docs/element.md, as well as a page that posts to another site and one
// that frames it.
func servePage(t *testing.T, base string) string {
	t.Helper()
	example := elementExample(t, base)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		q := r.URL.Query()
		switch r.URL.Path {
		case "/", "/example":
			h.Set("Content-Security-Policy", "default-src 'none'; script-src "+base)
			body := map[string]string{"/": strings.ReplaceAll(foreignPage, "IBID", base), "/example": example}[r.URL.Path]
			_, _ = io.WriteString(w, body)
		case "/post":
			_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Post</title><form method="post" action="%s">`, html.EscapeString(q.Get("to")))
			fields, _ := url.ParseQuery(q.Get("body"))
			for name := range fields {
				_, _ = fmt.Fprintf(w, `<input type="hidden" name="%s" value="%s">`, html.EscapeString(name), html.EscapeString(fields.Get(name)))
			}
			_, _ = io.WriteString(w, "<button>Win</button></form>")
		case "/frame":
			_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Frame</title><iframe src="%s"></iframe>`, html.EscapeString(q.Get("of")))
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// picture takes pictures if the test's flags ask for them.
func (w *pageWorld) picture(t *testing.T) {
	t.Helper()
	var err error
	if *images {
		if w.Images, err = filepath.Abs(filepath.Join("..", "docs", "images")); err == nil {
			err = os.MkdirAll(w.Images, 0o755)
		}
	}
	if err == nil && *shots != "" {
		w.Shots = *shots
		err = os.MkdirAll(w.Shots, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// script runs web/page_NAME.mjs over the world and collects its output.
func (w *pageWorld) script(t *testing.T, name string) {
	t.Helper()
	told := testenv.Must(json.Marshal(w))(t)
	cmd := exec.CommandContext(t.Context(), webProgram(t), "page_"+name+".mjs", testenv.Tool(t, "chromium"), string(told))
	cmd.Dir = "web"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
		return
	}
	t.Logf("%s", out)
}
