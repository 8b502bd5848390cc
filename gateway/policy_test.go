package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

// The answers in these tests are Anthropic's, whose citations have quotes. The source of the first two says 1987.
const (
	millPage    = "<p>The mill closed in 1987. Rain fell on the river, and nobody came.</p>"
	millFine    = "The mill closed in 1987."
	millDiffers = "The mill closed in 1978."
	millMoved   = "The mill was moved over the river in the spring of 1912, stone by stone."
)

// message returns an answer with a text, and a quote of the mill's page unless that is empty.
func message(text, quote string) string {
	cites := ""
	if quote != "" {
		cites = fmt.Sprintf(`,"citations":[{"type":"web_search_result_location","url":"https://mill.example/","title":"The mill","cited_text":%q,"encrypted_index":"x"}]`, quote)
	}
	return fmt.Sprintf(`{"id":"m1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q%s}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, text, cites)
}

// messageParts returns the same as a stream.
func messageParts(text, quote string) []string {
	event := func(kind, data string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + data + "}\n\n"
	}
	parts := []string{
		event("message_start", `"message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`),
		event("content_block_start", `"index":0,"content_block":{"type":"text","text":""}`),
	}
	if quote != "" {
		parts = append(parts, event("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://mill.example/","title":"The mill","cited_text":%q,"encrypted_index":"x"}}`, quote)))
	}
	return append(parts, event("content_block_delta", fmt.Sprintf(`"index":0,"delta":{"type":"text_delta","text":%q}`, text)),
		event("content_block_stop", `"index":0`), event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}`),
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
}

// policed is a world with policies, and the resulting alerts.
type policed struct {
	*world
	mu     sync.Mutex
	alerts []store.Alert
}

func newPoliced(t *testing.T, upstream http.HandlerFunc, of *gateway.Policies, tenants map[string]gateway.Tenant) *policed {
	t.Helper()
	p := &policed{}
	s := &setup{provider: "anthropic", options: gateway.Options{Tenants: tenants, Alert: func(a *store.Alert) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.alerts = append(p.alerts, *a)
	}}}
	s.policies = of
	p.world = newWorld(t, upstream, s)
	testenv.OK(t, p.store.Copies(store.DefaultTenant).Keep(t.Context(), &snapshot.Snapshot{
		URL: "https://mill.example/", FinalURL: "https://mill.example/", Status: 200, MediaType: "text/html", FetchedAt: time.Now(),
		Octets: []byte(millPage), Hash: snapshot.Hash([]byte(millPage)),
	}))
	return p
}

// kinds waits until all answers are checked, and returns the kinds of the alerts.
func (p *policed) kinds(t *testing.T) []string {
	t.Helper()
	p.holds(t, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for i := range p.alerts {
		list = append(list, string(p.alerts[i].Kind))
	}
	return list
}

func (p *policed) message(t *testing.T) (*reply, []byte) {
	t.Helper()
	r := p.request(t, http.MethodPost, "/up/v1/messages", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"When?"}]}`))
	r.Header.Set("Content-Type", "application/json")
	return p.do(t, r)
}

// Each policy with each action, for an upstream or a tenant, for complete answers and streams.
func TestPolicies(t *testing.T) {
	answers := map[string]struct{ text, quote string }{
		"fine": {millFine, millFine}, "uncited": {millFine, ""}, "differs": {millDiffers, millFine}, "altered": {millMoved, millMoved},
	}
	policies := map[string]func(gateway.Action) *gateway.Policies{
		"require-citations": func(a gateway.Action) *gateway.Policies { return &gateway.Policies{RequireCitations: a} },
		"differs":           func(a gateway.Action) *gateway.Policies { return &gateway.Policies{Differs: a} },
		"altered":           func(a gateway.Action) *gateway.Policies { return &gateway.Policies{Altered: a} },
	}
	against := map[string]string{"uncited": "require-citations", "differs": "differs", "altered": "altered"}
	kinds := map[string]string{"uncited": "uncited", "differs": "differs", "altered": "source-changed"}
	for policy, of := range policies {
		for _, action := range append(gateway.Actions(), "") {
			for name, answer := range answers {
				for _, stream := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%s/%v", policy, action, name, stream), func(t *testing.T) {
						t.Parallel()
						want := message(answer.text, answer.quote)
						upstream := answerJSON(want)
						if stream {
							parts := messageParts(answer.text, answer.quote)
							want, upstream = strings.Join(parts, ""), answerParts(parts...)
						}
						ofUpstream, tenants := of(action), map[string]gateway.Tenant(nil)
						if action == gateway.Header { // from the tenant: the stricter counts
							ofUpstream, tenants = of(gateway.Note), map[string]gateway.Tenant{store.DefaultTenant: {Policies: of(action)}}
						}
						p := newPoliced(t, upstream, ofUpstream, tenants)
						res, body := p.message(t)
						hit, header, status := against[name] == policy && action != "", "", 200
						if hit && !stream && action != gateway.Note {
							header = policy
						}
						if hit && !stream && action == gateway.Block {
							status = 422
						}
						if res.StatusCode != status || res.Header.Get(gateway.PolicyHeader) != header || res.Header.Get(gateway.RunHeader) == "" {
							t.Errorf("%d %v", res.StatusCode, res.Header)
						}
						if status == 200 && string(body) != want {
							t.Errorf("%d bytes, want %d unchanged", len(body), len(want))
						}
						if status == 422 && (res.Header.Get("Content-Type") != "application/problem+json" ||
							!bytes.Contains(body, []byte("against-policy")) || bytes.Contains(body, []byte("content_block"))) {
							t.Errorf("%v %s", res.Header, body)
						}
						if c := p.stored(t, res.Header.Get(gateway.AnswerHeader)); c.Answer.Text != answer.text || c.Status != 200 {
							t.Errorf("stored: %+v", c)
						}
						var alerts []string
						if hit {
							alerts = []string{kinds[name]}
						}
						testenv.Equal(t, "alerts", alerts, p.kinds(t))
					})
				}
			}
		}
	}
}

// Unchecked answers pass, marked as such: a check that takes too long, one that fails, and an answer too long to be
// held.
func TestNotChecked(t *testing.T) {
	block := &gateway.Policies{RequireCitations: gateway.Block, Differs: gateway.Block, Altered: gateway.Block}
	long := message(strings.Repeat("long ", gateway.DefaultHeaderBuffer/4), "")
	for name, test := range map[string]struct {
		body   string
		before func(p *policed)
	}{
		"slow":   {message(millDiffers, millFine), func(p *policed) { p.gateway.Hurry(time.Nanosecond) }},
		"failed": {message(millDiffers, millFine), func(p *policed) { testenv.OK(t, p.store.Close()) }},
		"long":   {long, func(*policed) {}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoliced(t, answerJSON(test.body), block, nil)
			test.before(p)
			res, body := p.message(t)
			if res.StatusCode != 200 || res.Header.Get(gateway.PolicyHeader) != gateway.NotChecked || string(body) != test.body {
				t.Errorf("%d %v, %d bytes of %d", res.StatusCode, res.Header, len(body), len(test.body))
			}
		})
	}
}

// A policy cannot be evaded by requesting several answers and using another than the first, by fetching an answer again
// that was not complete, by truncating it, or by offering another protocol.
func TestPoliciesHoldForAll(t *testing.T) {
	choice := `{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":"Nothing is cited for this."}}`
	two := strings.TrimSuffix(chatBody("So it is."), "]}") + "," + choice + "]}"
	response := `{"id":"r1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m1","role":"assistant",` +
		`"status":"completed","content":[{"type":"output_text","text":"Nothing is cited for this.","annotations":[]}]}]}`
	for name, test := range map[string]struct {
		call, body string
		header     http.Header
	}{
		"second":     {"POST " + chat, two, nil},
		"background": {"GET /up/v1/responses/r1", response, nil},
		"under way":  {"GET /up/v1/responses/r1", strings.Replace(response, "completed", "in_progress", 1), nil},
		"cut":        {"POST /up/v1/responses", strings.TrimSuffix(response, "}"), nil},
		"protocol":   {"GET /up/v1/responses/r1", response, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}},
		"odd":        {"POST /up/v1/chat/%63ompletions", two, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, answerJSON(test.body), &setup{policies: &gateway.Policies{RequireCitations: gateway.Block}})
			method, path, _ := strings.Cut(test.call, " ")
			r := w.request(t, method, path, strings.NewReader(chatRequest))
			if method == http.MethodGet {
				r = w.request(t, method, path, nil)
			}
			maps.Copy(r.Header, test.header)
			if res, body := w.do(t, r); res.StatusCode != 422 || bytes.Contains(body, []byte("Nothing is")) {
				t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
			}
		})
	}
}

// An unreadable response counts as not checked, and so does one with very many claims.
func TestNotReadIsNotChecked(t *testing.T) {
	block := &gateway.Policies{RequireCitations: gateway.Block, Differs: gateway.Block}
	var many strings.Builder
	for range gateway.MaxJudgedClaims + 1 {
		fmt.Fprintf(&many, `{"type":"text","text":"%s ","citations":[{"type":"web_search_result_location","url":"https://mill.example/","title":"The mill","cited_text":%q,"encrypted_index":"x"}]},`, millFine, millFine)
	}
	claims := fmt.Sprintf(`{"id":"m1","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":"end_turn"}`, strings.TrimSuffix(many.String(), ","))
	for name, test := range map[string]struct{ header, value, body string }{
		"encoding": {"Content-Encoding", "unknown", message(millFine, "")},
		"text":     {"Content-Type", "text/plain", message(millFine, "")},
		"no type":  {"Content-Type", "", message(millFine, "")},
		"page":     {"Content-Type", "text/html", message(millFine, "")},
		"no JSON":  {"Content-Type", "application/json", "Nothing is cited for this."},
		"claims":   {"Content-Type", "application/json", claims},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoliced(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				if w.Header()[test.header] = []string{test.value}; test.value == "" {
					w.Header()[test.header] = nil // and prevents sniffing
				}
				fmt.Fprint(w, test.body)
			}, block, nil)
			if res, body := p.message(t); res.StatusCode != 200 || res.Header.Get(gateway.PolicyHeader) != gateway.NotChecked || string(body) != test.body {
				t.Errorf("%d %v, %d bytes of %d", res.StatusCode, res.Header, len(body), len(test.body))
			}
		})
	}
}

// A tenant whose answers take long to check does not keep other tenants' answers from being checked.
func TestPoliciesOfBusyTenant(t *testing.T) {
	p := newPoliced(t, answerJSON(""), &gateway.Policies{RequireCitations: gateway.Block}, nil)
	p.gateway.Comparing(gateway.Identity{Tenant: "busy"})
	uncited := &ibid.Answer{Text: millFine, Complete: true}
	if header, blocked := p.gateway.Judge("busy", "up", "", uncited); header != gateway.NotChecked || blocked != nil {
		t.Errorf("%q %v", header, blocked)
	}
	if header, blocked := p.gateway.Judge("other", "up", "", uncited); header != gateway.PolicyCitations || blocked == nil {
		t.Errorf("of another: %q %v", header, blocked)
	}
}

// Without policies no answer waits, and a tenant's policies do not affect others.
func TestPoliciesOfOthers(t *testing.T) {
	p := newPoliced(t, answerJSON(message(millFine, "")), nil, map[string]gateway.Tenant{
		"other": {Policies: &gateway.Policies{RequireCitations: gateway.Block}, Quota: 1},
	})
	if res, _ := p.message(t); res.StatusCode != 200 || res.Header[gateway.PolicyHeader] != nil || res.Header.Get(gateway.AnswerHeader) == "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	for _, wrong := range []*gateway.Options{
		{Tenants: map[string]gateway.Tenant{"a": {Policies: &gateway.Policies{Differs: "x"}}}},
		{Upstreams: []gateway.Upstream{{Name: "up", URL: p.options.Upstreams[0].URL, Policies: &gateway.Policies{Altered: "no"}}}},
	} {
		if wrong.Upstreams == nil {
			wrong.Upstreams = p.options.Upstreams
		}
		wrong.Store, wrong.Journal = p.store, p.journal
		if _, err := gateway.New(wrong); err == nil || !strings.Contains(err.Error(), "must be note, header or block") {
			t.Errorf("New: %v", err)
		}
	}
}

// Answers of a tenant over its quota pass unchanged and are not stored; freed space is used again.
func TestQuota(t *testing.T) {
	want := message(millFine, millFine)
	p := newPoliced(t, answerJSON(want), nil, map[string]gateway.Tenant{store.DefaultTenant: {Quota: 100}})
	ask := func() (id string) {
		t.Helper()
		res, body := p.message(t)
		if res.StatusCode != 200 || string(body) != want {
			t.Fatalf("%d %v", res.StatusCode, res.Header)
		}
		return res.Header.Get(gateway.AnswerHeader)
	}
	first := ask()
	if first == "" {
		t.Fatal("the first is not kept")
	}
	p.stored(t, first)
	for range 2 {
		if id := ask(); id != "" {
			t.Errorf("%s is stored over the quota", id)
		}
	}
	testenv.Equal(t, "alerts", []string{"quota", "quota"}, p.kinds(t))
	testenv.Equal(t, "kept", 1, len(testenv.Must(p.store.Calls(t.Context(), store.DefaultTenant, nil))(t).Items))
	p.mu.Lock()
	a, b := p.alerts[0], p.alerts[1]
	p.mu.Unlock()
	a.Fill()
	if b.Fill(); a.ID != b.ID || !strings.HasSuffix(a.Summary, "; its quota is 100.") {
		t.Errorf("two alerts of one day: %+v %+v", a, b)
	}
	if log := p.log.String(); !strings.Contains(log, "quota allows") {
		t.Errorf("the log: %s", log)
	}
	testenv.OK(t, p.store.Delete(t.Context(), store.DefaultTenant, first))
	p.gateway.CountStored(t.Context())
	if ask() == "" {
		t.Error("not kept despite free space")
	}
}
