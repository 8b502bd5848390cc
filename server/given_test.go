package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// caller makes requests to a server with a token.
type caller struct{ base, token string }

// reply is what a server answered beside the text of the body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// call makes a request. fields are alternating names and values of header fields.
func (c *caller) call(t *testing.T, method, path, body string, fields ...string) (reply, string) {
	t.Helper()
	r := testenv.Must(http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+c.token)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	res := testenv.Must(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	return reply{res.StatusCode, res.Header}, string(testenv.Must(io.ReadAll(res.Body))(t))
}

// givenAnswers are answers that programs post, by their form.
var givenAnswers = map[string]string{
	"text": `{"text": "Herons eat fish [1].", "documents": [{"id": "a", "title": "Birds", "url": "https://birds.example/", "text": "Herons eat fish."}],
		"request": "What do herons eat?"}`,
	"document": `{"version": 1, "unit": "utf-16", "text": "𝄞 Herons eat fish.", "complete": true, "sources": [{"id": "s", "title": "Birds", "url": "https://birds.example/"}],
		"citations": [{"source_id": "s", "text_start": 3, "text_end": 18}]}`,
	"response": `{"id": "x", "model": "sonar", "citations": ["https://birds.example/"],
		"choices": [{"finish_reason": "stop", "message": {"content": "Herons eat fish.[1]"}}]}`,
}

// An answer of one's own is an answer like any other: it is listed, found, exported and published, and nobody else's.
func TestGivenAnswers(t *testing.T) {
	w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
		c.BootstrapToken, c.Publish.Level, c.PublicURL = bootstrap, "2", "https://ibid.example"
	}})
	own, other := &caller{w.URL, bootstrap}, &caller{w.URL, (&tenantsWorld{World: w}).token(t, "other")}
	for form, body := range givenAnswers {
		t.Run(form, func(t *testing.T) {
			res, posted := own.call(t, "POST", "/v1/answers", body, "Content-Type", "text/plain",
				"Ibid-Run", "run-"+form, "Ibid-Step", `2;tool="search"`, "Ibid-Conversation", "talk-"+form, "Ibid-Agent", "birder")
			id := res.Header.Get("Ibid-Answer")
			if res.StatusCode != 201 || id == "" || res.Header.Get("Location") != "/v1/answers/"+id || res.Header.Get("Ibid-Run") != "run-"+form {
				t.Fatalf("%d %v %s", res.StatusCode, res.Header, posted)
			}
			if !strings.Contains(res.Header.Get("Citation-Source"), "/cite/"+id) {
				t.Errorf("Citation-Source: %q", res.Header.Get("Citation-Source"))
			}
			var got struct {
				ID        string `json:"answer_id"`
				Citations []struct {
					Start int    `json:"text_start"`
					URL   string `json:"source_url"`
				}
				Call struct {
					Upstream, Conversation, Agent, Tool string
					Step                                *int
					Prompt                              []struct{ Role, Text string }
				}
			}
			for _, text := range []string{posted, getOK(t, own, "/v1/answers/"+id)} {
				testenv.OK(t, json.Unmarshal([]byte(text), &got))
				if got.ID != id || len(got.Citations) != 1 || got.Citations[0].URL != "https://birds.example/" || got.Call.Upstream != "given" ||
					got.Call.Conversation != "talk-"+form || got.Call.Agent != "birder" || got.Call.Tool != "search" {
					t.Errorf("%s", text)
				}
			}
			if form == "text" && (len(got.Call.Prompt) != 1 || got.Call.Prompt[0].Text != "What do herons eat?") {
				t.Errorf("%+v", got.Call)
			}
			if form == "document" && got.Citations[0].Start != 5 {
				t.Errorf("%+v", got)
			}
			for _, path := range []string{
				"/v1/answers", "/v1/answers?q=herons+fish", "/v1/answers?source=" + url.QueryEscape("https://birds.example/"), "/v1/answers?run=run-" + form,
				"/v1/sources?url=" + url.QueryEscape("https://birds.example/"), "/v1/conversations/talk-" + form, "/v1/runs/run-" + form, "/ui/answers/" + id,
			} {
				if text := getOK(t, own, path); !strings.Contains(text, id) {
					t.Errorf("%s: %s", path, text)
				}
			}
			if text := getOK(t, own, "/v1/answers/"+id+"?as=bibtex"); !strings.Contains(text, "birds.example") {
				t.Errorf("%s", text)
			}
			if text := getOK(t, own, "/v1/answers/"+id+"/manifest"); !strings.Contains(text, "/cite/"+id) {
				t.Errorf("%s", text)
			}
			for _, path := range []string{"/v1/answers/" + id, "/v1/answers/" + id + "/manifest"} {
				if res, text := other.call(t, "GET", path, ""); res.StatusCode != 404 {
					t.Errorf("%s of another tenant: %d %s", path, res.StatusCode, text)
				}
			}
			if res, text := other.call(t, "GET", "/v1/answers?q=herons", ""); strings.Contains(text, id) {
				t.Errorf("another tenant: %d %s", res.StatusCode, text)
			}
		})
	}
	res, text := own.call(t, "POST", "/v1/answers", givenAnswers["text"], "Ibid-Publish", "no")
	id := res.Header.Get("Ibid-Answer")
	if res, _ := own.call(t, "GET", "/v1/answers/"+id+"/manifest", ""); res.StatusCode != 404 || !strings.HasPrefix(id, "ans_") {
		t.Errorf("published: %s", text)
	}
	if res, _ := own.call(t, "DELETE", "/v1/answers/"+id, ""); res.StatusCode != 204 {
		t.Errorf("delete: %d", res.StatusCode)
	}
}

func getOK(t *testing.T, c *caller, path string) string {
	t.Helper()
	res, text := c.call(t, "GET", path, "", "Ibid-Token", c.token, "Accept", "*/*", "Cookie", "")
	if res.StatusCode != 200 && !strings.HasPrefix(path, "/ui/") {
		t.Errorf("%s: %d %s", path, res.StatusCode, text)
	}
	return text
}

// What is no answer is refused with the reason, and nothing is stored.
func TestGivenRefused(t *testing.T) {
	w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) { c.BootstrapToken = bootstrap }})
	own := &caller{w.URL, bootstrap}
	for body, status := range map[string]int{
		"": 422, "\x00\x01\x02\xff": 422, `{"text": ""}`: 400, `{"text": 7}`: 400, `{"text": "x", "documents": {}}`: 400,
		`{"version": 1, "unit": "utf-8", "text": "é", "citations": [{"source_id": "s", "text_start": 0, "text_end": 1}], "sources": [{"id": "s"}]}`:                422,
		`{"version": 1, "unit": "utf-8", "text": "x", "citations": [{"source_id": "none", "text_start": 0, "text_end": 1}]}`:                                       422,
		`{"version": 1, "unit": "utf-8", "text": "x", "citations": [], "sources": [{"id": "s", "kind": "house"}]}`:                                                 422,
		`{"version": 1, "unit": "utf-8", "text": "x", "citations": [], "sources": [{"id": ""}]}`:                                                                   422,
		`{"version": 1, "unit": "utf-8", "text": "x", "text_sha256": "00", "citations": []}`:                                                                       422,
		`{"version": 1, "unit": "utf-8", "text": "x", "citations": [], "parts": [{"text_start": 0, "text_end": 0, "kind": "answer", "message": 0, "content": 0}]}`: 422,
	} {
		if res, text := own.call(t, "POST", "/v1/answers", body); res.StatusCode != status || res.Header.Get("Ibid-Answer") != "" {
			t.Errorf("%s: %d %s, want %d", body, res.StatusCode, text, status)
		}
	}
	for _, fields := range [][]string{
		{"Ibid-Run", "a b"}, {"Ibid-Step", "0"}, {"Ibid-Publish", "perhaps"}, {"Content-Type", "multipart/form-data"}, {"Content-Encoding", "lzw"},
	} {
		if res, text := own.call(t, "POST", "/v1/answers", givenAnswers["text"], fields...); res.StatusCode/100 != 4 {
			t.Errorf("%v: %d %s", fields, res.StatusCode, text)
		}
	}
	if text := getOK(t, own, "/v1/answers"); !strings.Contains(text, `"answers":[]`) {
		t.Errorf("stored: %s", text)
	}
}

// Over a tenant's quota nothing more is stored.
func TestGivenOverQuota(t *testing.T) {
	w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
		c.BootstrapToken = bootstrap
		c.Tenants = map[string]*server.Tenant{"default": {Quota: 1}}
	}})
	own := &caller{w.URL, bootstrap}
	own.call(t, "POST", "/v1/answers", givenAnswers["text"])
	if res, text := own.call(t, "POST", "/v1/answers", givenAnswers["text"]); res.StatusCode != 413 || !strings.Contains(text, "quota") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}
