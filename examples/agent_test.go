package examples

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

const census = `<!doctype html><title>Heron census at Lake Tonbo</title>
<p>Volunteers counted 41 nests in the alders on 12 April. The first pair was seen in 1968, a year after the mill closed.</p>`

// Anyone who gets the agent's answer can verify it, and anyone who knows the agent can trust it.
func (p programs) testAgent(t *testing.T) {
	site := pages(t, map[string]string{"/census": census})
	agent := p.serve(t, "agent", "127.0.0.1:0", site+"/census")
	res := ask(t, agent+"/ask?q="+url.QueryEscape("How many herons nest at Lake Tonbo?"))
	if want := "Volunteers counted 41 nests in the alders on 12 April."; !strings.HasPrefix(string(res.Body), want) {
		t.Errorf("the agent says %q", res.Body)
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, test := range []struct {
		trust []string
		want  verify.State
	}{
		{nil, verify.Valid},
		{[]string{strings.TrimPrefix(agent, "http://")}, verify.Trusted},
	} {
		v := &verify.Verifier{
			Fetcher: snapshot.NewFetcher(&snapshot.FetchOptions{Allow: loopback}), Trust: test.trust, RequireLevel: 3,
		}
		report, err := v.Response(t.Context(), res)
		if err != nil {
			t.Fatal(err)
		}
		if report.State != test.want || len(report.Claims) == 0 || len(report.Manifests) != 1 {
			var words strings.Builder
			_ = report.WriteText(&words, false)
			t.Errorf("with trust in %q: state %s, want %s\n%s", test.trust, report.State, test.want, &words)
		}
		if err := v.Fetcher.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ask gets an answer with its headers and trailers.
func ask(t *testing.T, url string) *verify.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &verify.Response{URL: url, Status: res.StatusCode, Header: res.Header, Trailer: res.Trailer, Body: body}
}

// The program has no more lines than its README says.
func TestAgentIsShort(t *testing.T) {
	code, err := os.ReadFile("agent/main.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(code)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	if n > 65 {
		t.Errorf("it has %d lines of code", n)
	}
}
