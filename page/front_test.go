package page_test

import (
	"cmp"
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// While there is nothing to show, the page says how to send the first call to each configured provider, with commands
// that this server accepts. Otherwise it lists the latest.
func TestFrontPage(t *testing.T) {
	providers := []string{"openai", "gemini", "cohere", "anthropic", "perplexity", "xai", "openrouter", "mistral"}
	w := &world{servertest.Start(t, &servertest.Setup{Providers: providers, Configure: func(c *server.Config) {
		for name := range c.Upstreams {
			if !slices.Contains(providers, name) {
				delete(c.Upstreams, name)
			}
		}
		c.Upstreams["mine"] = &server.Upstream{URL: c.Upstreams["cohere"].URL, Provider: "cohere"}
	}})}
	providers = append(providers, "mine")
	speaks := map[string]string{"mine": "cohere"}
	empty := w.get(t, "/").body
	commands := regexp.MustCompile(`(?s)<code>curl (.*?)</code>`).FindAllStringSubmatch(empty, -1)
	if len(commands) != len(providers) {
		t.Fatalf("%d commands for %d providers: %s", len(commands), len(providers), empty)
	}
	for i, m := range commands {
		command := html.UnescapeString(m[1])
		address, _, _ := strings.Cut(command, " ")
		_, body, _ := strings.Cut(command, "-d '")
		body = strings.TrimSuffix(body, "'")
		path, ok := strings.CutPrefix(address, w.URL+"/"+providers[i])
		route, known := call.FindRoute(cmp.Or(speaks[providers[i]], providers[i]), http.MethodPost, path)
		if !ok || !known || !json.Valid([]byte(body)) {
			t.Errorf("%s: %s is no call of it", providers[i], command)
			continue
		}
		if _, err := call.ReadRequest(route.Format, []byte(body)); err != nil {
			t.Errorf("%s: %v in %s", providers[i], err, body)
		}
	}
	w.herons(t)
	if got := w.get(t, "/").body; !strings.Contains(got, `<h1>Answers</h1>`) || strings.Contains(got, "Nothing has been asked") {
		t.Error(got)
	}
}
