package examples

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// Programs in Python and JavaScript publish answers of their own form, which a verifier written by the specification
// alone and ibid's own bind to their manifests; a changed answer is about another response.
func (p programs) testPublish(t *testing.T) {
	python := testenv.Python(t)
	for name, command := range map[string]func(port string) *exec.Cmd{
		"Python": func(port string) *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), python, "-m", "uvicorn", "app:app", "--port", port, "--log-level", "warning")
			cmd.Dir = "publish"
			return cmd
		},
		"JavaScript": func(port string) *exec.Cmd {
			return exec.CommandContext(t.Context(), testenv.Tool(t, "node"), "publish/app.mjs", port)
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := "127.0.0.1:" + freePort(t)
			gateway := p.gateway(t, "--public-url", "http://"+at, "--publish", "3")
			_, port, _ := net.SplitHostPort(at)
			cmd := command(port)
			cmd.Env = append(offline(t), "IBID_URL="+gateway)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			testenv.Until(t, "it listens", func() bool {
				c, err := net.DialTimeout("tcp", at, time.Second)
				if err == nil {
					_ = c.Close()
				}
				return err == nil
			})
			verified := func(url string) (string, error) {
				check := exec.CommandContext(t.Context(), python, "publish/verify.py", url)
				check.Env = offline(t)
				out, err := check.CombinedOutput()
				return string(out), err
			}
			out, err := verified("http://" + at + "/ask?q=nests")
			_, rest, _ := strings.Cut(out, "\n")
			if err != nil || !strings.HasPrefix(out, "signed by ") {
				t.Fatalf("%v: %s", err, out)
			}
			compare(t, rest, "about this response: /answer\n"+
				"'The colony at Lake Tonbo has 41 nests this year.': urn:ibid:src:census has no address\n")
			// A source without an address cannot be read again, which is no failure: status 2.
			own := exec.CommandContext(t.Context(), string(p)+"/ibid", "verify", "http://"+at+"/ask?q=nests", "--allow-net", "127.0.0.0/8")
			own.Env = environment()
			said, _ := own.CombinedOutput()
			for _, want := range []string{"output-bound", "signature-valid", "authority-verified", "level-met"} {
				if !strings.Contains(string(said), "  ok       "+want) {
					t.Errorf("no %s:\n%s", want, said)
				}
			}
			if out, err := verified(changed(t, "http://"+at) + "/ask?q=nests"); err == nil || !strings.Contains(out, "AssertionError") {
				t.Errorf("a changed answer is verified: %v, %s", err, out)
			}
		})
	}
}

// changed returns the address of a proxy that changes a number in answers.
func changed(t *testing.T, origin string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res := ask(t, origin+r.URL.RequestURI())
		for name, values := range res.Header {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		_, _ = io.WriteString(w, strings.Replace(string(res.Body), "41 nests", "42 nests", 1))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// freePort returns a port that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
