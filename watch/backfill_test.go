package watch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callersKey   = "sk-callers-own"
	operatorsKey = "sk-operators"
)

func data(t *testing.T, name string) []byte {
	t.Helper()
	return testenv.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// provider is an upstream that answers every call in the same way and records the requests.
type provider struct {
	*httptest.Server
	url *url.URL

	mu    sync.Mutex
	asked []asked
}

type asked struct {
	path, query string
	header      http.Header
	request     *call.Request
	tools       []string // as received
}

func answers(t *testing.T, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a := asked{path: r.URL.EscapedPath(), query: r.URL.RawQuery, header: r.Header}
		if a.request, err = call.ReadRequest("", body); err != nil {
			t.Errorf("the second request is not readable: %v", err)
		}
		var raw struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(body, &raw); err != nil {
			t.Error(err)
		}
		for _, tool := range raw.Tools {
			a.tools = append(a.tools, string(tool))
		}
		p.mu.Lock()
		p.asked = append(p.asked, a)
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	var err error
	if p.url, err = url.Parse(p.URL); err != nil {
		t.Fatal(err)
	}
	return p
}

func answersWith(t *testing.T, name string) *provider {
	t.Helper()
	body := data(t, name)
	return answers(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
}

func (p *provider) calls() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// job returns a stream that has ended, of a provider whose files have that prefix.
func job(t *testing.T, name string) watch.Job {
	t.Helper()
	a := testenv.Must(ibid.Decode(data(t, name+"-first.sse"), &ibid.DecodeOptions{Provider: name}))(t)
	return watch.Job{
		Call: &store.Call{
			AnswerID: "ans_1", Tenant: "acme", Upstream: name, Route: "POST /stream", Conversation: "c1", Run: "run_1",
			Step: store.Step{Number: 2, Tool: "search"}, Status: 200, Started: time.Unix(1795000000, 0).UTC(), Bytes: 12,
			Answer: a,
		},
		Provider: name, Request: data(t, name+"-request.json"),
	}
}

// bench runs a Backfill and collects the results.
type bench struct {
	*watch.Backfill
	registry *prometheus.Registry
	stored   chan *store.Call
	log      *lines
}

type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	note chan struct{} // signals a log line
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(p)
	select {
	case l.note <- struct{}{}:
	default:
	}
	return n, err
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func prepare(t *testing.T, rules ...watch.Rule) *bench {
	t.Helper()
	b := &bench{
		registry: prometheus.NewRegistry(), stored: make(chan *store.Call, 10), log: &lines{note: make(chan struct{}, 1000)},
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	b.Backfill = testenv.Must(watch.NewBackfill(&watch.BackfillOptions{
		Rules:   rules,
		Client:  &http.Client{Transport: transport},
		Logger:  slog.New(slog.NewTextHandler(b.log, nil)),
		Metrics: b.registry,
		Store: func(_ context.Context, c *store.Call) error {
			if c.AnswerID == "ans_broken" {
				return errors.New("the disk is full")
			}
			b.stored <- c
			return nil
		},
	}))(t)
	return b
}

func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// offer queues a job and returns the stored result.
func (b *bench) offer(t *testing.T, j watch.Job) *store.Call {
	t.Helper()
	if !b.Offer(j) {
		t.Fatalf("the job was not taken:\n%s", b.log)
	}
	<-b.log.note // the last thing that happens
	select {
	case c := <-b.stored:
		return c
	default:
		t.Fatalf("nothing was stored:\n%s", b.log)
		return nil
	}
}

// counts returns how often each result was counted.
func (b *bench) counts(t *testing.T) map[string]float64 {
	t.Helper()
	families := testenv.Must(b.registry.Gather())(t)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" {
					out[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// cited is what these tests compare of a citation.
type cited struct {
	Words, Source string
	Covers        ibid.Covers
	Anchor        ibid.Anchor
	Origin        ibid.Origin
	Inferred      bool
}

func citations(a *ibid.Answer) []cited {
	var out []cited
	for _, c := range a.Citations {
		out = append(out, cited{
			a.Text[c.Span.Start:c.Span.End], a.Source(c.Refs[0].Source).URL + a.Source(c.Refs[0].Source).GlobalID,
			c.Covers, c.Anchor, c.Origin, c.ClaimInferred,
		})
	}
	return out
}

func codes(a *ibid.Answer) []string {
	var out []string
	for _, i := range a.Issues {
		out = append(out, i.Code)
	}
	return out
}

// A Gemini stream is asked again at its upstream, with its caller's key and last messages. Text in both answers gets
// its citations; text only in the second leaves its source.
func TestSameProvider(t *testing.T) {
	p := answersWith(t, "gemini-second.json")
	tool := `{"fileSearch":{"fileSearchStoreNames":["herons"]}}`
	b := prepare(t, watch.Rule{Upstream: "gemini", Provider: "gemini", Model: "gemini-2.5-flash", Tools: []json.RawMessage{json.RawMessage(tool)}})
	b.start(t)
	j := job(t, "gemini")
	j.URL, j.Keys = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}
	before := testenv.Must(json.Marshal(j.Call.Answer))(t)
	c := b.offer(t, j)

	a := c.Answer
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	if a.Text != "Graureiher brüten ab März. 苍鹭在三月筑巢。Both parents feed the young." || a.Text != j.Call.Answer.Text {
		t.Errorf("the text is %q", a.Text)
	}
	want := []cited{
		{"Graureiher brüten ab März.", "https://heron.example/brut", ibid.CoversClaim, ibid.AnchorMoved, ibid.OriginInferred, false},
		{"苍鹭在三月筑巢。", "https://bird.example/cn", ibid.CoversClaim, ibid.AnchorMoved, ibid.OriginInferred, false},
	}
	testenv.Equal(t, "citations", want, citations(a))
	if len(a.Sources) != 3 || a.Sources[2].URL != "https://young.example/" {
		t.Errorf("the sources are %+v", a.Sources)
	}
	if *a.Citations[0].Refs[0].Confidence != 0.9 {
		t.Error("the confidence is lost")
	}
	testenv.Equal(t, "issues", []string{"backfill-text-differs", "backfill-context-differs"}, codes(a))
	if len(a.Display) != 1 || len(a.Queries) != 1 {
		t.Errorf("the provider's demands: %+v, queries %q", a.Display, a.Queries)
	}
	if after, err := json.Marshal(j.Call.Answer); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the first answer was changed: %s, %v", after, err)
	}
	if c.AnswerID != "ans_1" || c.Tenant != "acme" || c.Run != "run_1" || c.Step.Number != 2 {
		t.Errorf("the call is %+v", c)
	}

	calls := p.calls()
	if len(calls) != 1 {
		t.Fatalf("the provider was asked %d times", len(calls))
	}
	if got := calls[0].header.Get("X-Goog-Api-Key"); got != callersKey {
		t.Errorf("the key is %q", got)
	}
	if !strings.HasSuffix(calls[0].path, "/models/gemini-2.5-flash:generateContent") {
		t.Errorf("the path is %s?%s", calls[0].path, calls[0].query)
	}
	wantMessages := []call.Message{
		{Role: call.RoleSystem, Text: "Be brief."},
		{Role: call.RoleUser, Text: "Grey ones"},
		{Role: call.RoleAssistant, Text: "And what about them?"},
		{Role: call.RoleUser, Text: "Wann brüten Graureiher?"},
	}
	testenv.Equal(t, "messages", wantMessages, calls[0].request.Messages)
	testenv.Equal(t, "tools", []string{tool}, calls[0].tools)
	testenv.Equal(t, "counted", map[string]float64{"found": 1}, b.counts(t))
}

// With all messages and the same text there are no issues, and places are the provider's.
func TestSameText(t *testing.T) {
	p := answersWith(t, "gemini-same.json")
	b := prepare(t, watch.Rule{Upstream: "gemini", Route: "POST /stream", Provider: "gemini", Messages: watch.AllMessages})
	b.start(t)
	j := job(t, "gemini")
	j.URL, j.Keys = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}
	a := b.offer(t, j).Answer
	want := []cited{
		{"Graureiher brüten ab März.", "https://heron.example/brut", ibid.CoversClaim, ibid.AnchorExact, ibid.OriginInferred, false},
		{"苍鹭在三月筑巢。", "https://bird.example/cn", ibid.CoversClaim, ibid.AnchorExact, ibid.OriginInferred, false},
	}
	testenv.Equal(t, "citations", want, citations(a))
	if len(a.Issues) != 0 {
		t.Errorf("issues: %+v", a.Issues)
	}
	if calls := p.calls(); len(calls[0].request.Messages) != 8 || !strings.Contains(calls[0].path, "gemini-2.5-flash") {
		t.Errorf("asked %s with %d messages", calls[0].path, len(calls[0].request.Messages))
	}
}

// Another provider is asked with the operator's key; the caller's key is not sent there. Its citations are links and
// points, which stand for the sentence before them.
func TestOtherProvider(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          []cited
	}{
		"links": {"gemini", "openai-second.json", []cited{{
			"Graureiher brüten ab März.", "https://heron.example/brut", ibid.CoversClaim, ibid.AnchorMoved, ibid.OriginInferred, true,
		}}},
		"points": {"openai", "openai-files.json", []cited{{
			"Herons build in March.", "file-1", ibid.CoversClaim, ibid.AnchorUnverified, ibid.OriginInferred, true,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := answersWith(t, test.second)
			b := prepare(t, watch.Rule{
				Upstream: test.first, Provider: "openai", URL: p.url, Model: "gpt-5-mini", Messages: 1,
				Tools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)},
				Key:   func() string { return operatorsKey },
			})
			b.start(t)
			j := job(t, test.first)
			j.URL = &url.URL{Scheme: "https", Host: "first.example"}
			j.Keys = http.Header{"X-Goog-Api-Key": {callersKey}, "Authorization": {"Bearer " + callersKey}}
			a := b.offer(t, j).Answer
			testenv.Equal(t, "citations", test.want, citations(a))
			if err := a.Check(); err != nil {
				t.Error(err)
			}
			got := p.calls()[0]
			if got.path != "/v1/responses" || got.header.Get("Authorization") != "Bearer "+operatorsKey {
				t.Errorf("asked %s with %q", got.path, got.header.Get("Authorization"))
			}
			for name, values := range got.header {
				if strings.Contains(strings.Join(values, ""), callersKey) {
					t.Errorf("the caller's key went to somebody else, in %s", name)
				}
			}
			if got.request.Stream || got.request.Model != "gpt-5-mini" {
				t.Errorf("asked for %+v", got.request)
			}
		})
	}
}

// Any failure leaves the answer unchanged, one line without secrets, and a count.
func TestFailures(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		body := data(t, "refused.json")
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			w.Write(body)
		}
	}
	says := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
	}
	whole := string(data(t, "gemini-second.json"))
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		change func(*watch.Job, *watch.Rule)
		result string
	}{
		"a hanging provider": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil, "timeout"},
		"a provider that hangs in the middle": {func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, whole[:400])
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, nil, "timeout"},
		"a wrong key":                {status(http.StatusUnauthorized), nil, "refused"},
		"a limit":                    {status(http.StatusTooManyRequests), nil, "refused"},
		"a redirect":                 {status(http.StatusTemporaryRedirect), nil, "refused"},
		"an error that is no status": {status(http.StatusOK), nil, "refused"},
		"a broken connection": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}, nil, "error"},
		"half a body":          {says(whole[:600]), nil, "unreadable"},
		"no body":              {says(""), nil, "unreadable"},
		"garbage":              {says("<html>"), nil, "refused"},
		"too much":             {says(strings.Repeat(" ", watch.MaxResponse) + whole), nil, "too-large"},
		"no citations":         {says(strings.ReplaceAll(whole, "groundingMetadata", "x")), nil, "nothing"},
		"no key of the caller": {says(whole), func(j *watch.Job, _ *watch.Rule) { j.Keys = nil }, "no-key"},
		"no key of the operator": {says(whole), func(_ *watch.Job, r *watch.Rule) {
			r.URL = &url.URL{Scheme: "https", Host: "other.example"}
		}, "no-key"},
		"a request that is not JSON": {says(whole), func(j *watch.Job, _ *watch.Rule) { j.Request = []byte("x") }, "unreadable"},
		"a request without messages": {says(whole), func(j *watch.Job, _ *watch.Rule) { j.Request = []byte("{}") }, "unreadable"},
		"a store that is away":       {says(whole), func(j *watch.Job, _ *watch.Rule) { j.Call.AnswerID = "ans_broken" }, "not-stored"},
	} {
		t.Run(name, func(t *testing.T) {
			p := answers(t, test.answer)
			rule := watch.Rule{Upstream: "gemini", Provider: "gemini", Timeout: 5 * time.Second}
			if test.result == "timeout" {
				rule.Timeout = 50 * time.Millisecond
			}
			j := job(t, "gemini")
			j.URL, j.Keys = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}
			if test.change != nil {
				test.change(&j, &rule)
			}
			b := prepare(t, rule)
			b.start(t)
			if !b.Offer(j) {
				t.Fatal("the job was not taken")
			}
			<-b.log.note
			if diff := cmp.Diff(map[string]float64{test.result: 1}, b.counts(t)); diff != "" {
				t.Errorf("counted (-want +got):\n%s\n%s", diff, b.log)
			}
			text := b.log.String()
			if strings.Count(text, "\n") != 1 || !strings.Contains(text, "upstream=gemini") {
				t.Errorf("logged:\n%s", text)
			}
			for _, secret := range []string{callersKey, "sk-cal", "Graureiher", "Herons", p.URL} {
				if strings.Contains(text, secret) {
					t.Errorf("the log has %q:\n%s", secret, text)
				}
			}
			if len(b.stored) != 0 {
				t.Errorf("stored %+v", <-b.stored)
			}
		})
	}
}

// Only complete answers without citations and pending tools are asked again, and only if a rule applies.
func TestOffer(t *testing.T) {
	b := prepare(t, watch.Rule{Upstream: "gemini", Route: "POST /stream", Provider: "gemini"})
	for name, change := range map[string]func(*watch.Job){
		"another upstream": func(j *watch.Job) { j.Call.Upstream = "openai" },
		"another route":    func(j *watch.Job) { j.Call.Route = "POST /body" },
		"no call":          func(j *watch.Job) { j.Call = nil },
		"no answer":        func(j *watch.Job) { j.Call.Answer = nil },
		"broken off":       func(j *watch.Job) { j.Call.Answer.Complete = false },
		"waits for a tool": func(j *watch.Job) { j.Call.Answer.Finish = ibid.FinishTool },
		"no text":          func(j *watch.Job) { j.Call.Answer.Text = "" },
		"an error":         func(j *watch.Job) { j.Call.Answer.Error = &ibid.ProviderError{Message: "no"} },
		"grounded":         func(j *watch.Job) { j.Call.Answer.Citations = []ibid.Citation{{}} },
	} {
		j := job(t, "gemini")
		change(&j)
		if b.Offer(j) {
			t.Errorf("%s: the job was taken", name)
		}
	}
	if b.log.String() != "" {
		t.Errorf("logged:\n%s", b.log)
	}
	models := prepare(t, watch.Rule{Upstream: "gemini", Provider: "gemini", Route: "POST /v1beta/models/*:streamGenerateContent"})
	for route, want := range map[string]bool{
		"POST /v1beta/models/gemini-2.5-flash:streamGenerateContent": true,
		"POST /v1beta/models/gemini-2.5-flash:generateContent":       false,
		"POST /v1beta/models/a/b:streamGenerateContent":              false,
	} {
		if got := models.Wants("gemini", route); got != want {
			t.Errorf("Wants(%q) = %t", route, got)
		}
	}
	if !b.Wants("gemini", "POST /stream") || b.Wants("gemini", "POST /body") || b.Wants("openai", "POST /stream") {
		t.Error("Wants does not follow the rules")
	}
}

// A full queue refuses jobs and logs it; Run ends while its calls hang.
func TestQueueIsBounded(t *testing.T) {
	arrived := make(chan struct{}, watch.MaxWorkers)
	p := answers(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	b := prepare(t, watch.Rule{Upstream: "gemini", Provider: "gemini", Timeout: time.Hour})
	j := job(t, "gemini")
	j.URL, j.Keys = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}
	call, answer := *j.Call, *j.Call.Answer // before it is encoded, which a call caches
	answer.Text += strings.Repeat(" ", watch.MaxJobBytes)
	call.Answer = &answer
	large := j
	large.Request = append(bytes.Repeat([]byte(" "), watch.MaxJobBytes), j.Request...)
	if b.Offer(large) {
		t.Error("a request that is too large was taken")
	}
	large = j
	large.Call = &call
	if b.Offer(large) {
		t.Error("an answer that is too large was taken")
	}
	for i := range watch.MaxJobs {
		if !b.Offer(j) {
			t.Fatalf("job %d was not taken", i)
		}
	}
	if b.Offer(j) {
		t.Error("one job too many was taken")
	}
	testenv.Equal(t, "counted", map[string]float64{"dropped": 3}, b.counts(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	for range watch.MaxWorkers {
		<-arrived
	}
	select {
	case <-arrived:
		t.Error("more calls are under way than workers")
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestRules(t *testing.T) {
	good := watch.Rule{Upstream: "gemini", Provider: "gemini"}
	keep := func(context.Context, *store.Call) error { return nil }
	for want, o := range map[string]*watch.BackfillOptions{
		"a store is missing":  {Rules: []watch.Rule{good}},
		"an earlier rule":     {Rules: []watch.Rule{good, good}, Store: keep},
		"no upstream":         {Rules: []watch.Rule{{Provider: "gemini"}}, Store: keep},
		"unknown provider":    {Rules: []watch.Rule{{Upstream: "x", Provider: "y"}}, Store: keep},
		"messages":            {Rules: []watch.Rule{{Upstream: "x", Provider: "gemini", Messages: -2}}, Store: keep},
		"timeout":             {Rules: []watch.Rule{{Upstream: "x", Provider: "gemini", Timeout: -1}}, Store: keep},
		"not a valid pattern": {Rules: []watch.Rule{{Upstream: "x", Provider: "gemini", Route: "POST /["}}, Store: keep},
		"not JSON":            {Rules: []watch.Rule{{Upstream: "x", Provider: "gemini", Tools: []json.RawMessage{[]byte("{")}}}, Store: keep},
	} {
		if _, err := watch.NewBackfill(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewBackfill: %v, want one about %q", err, want)
		}
	}
}

func TestKeys(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/gemini/v1beta/models/x?alt=sse&key=from-query", http.NoBody)
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("Ibid-Token", "ibid_secret")
	r.Header.Set("Content-Type", "application/json")
	want := http.Header{"Authorization": {"Bearer x"}, "X-Goog-Api-Key": {"from-query"}}
	testenv.Equal(t, "gemini", want, watch.Keys(r, "gemini"))
	testenv.Equal(t, "openai", http.Header{"Authorization": {"Bearer x"}}, watch.Keys(r, "openai"))
}

// A completed call has everything from the first one, including fields that are added to store.Call later.
func TestCallIsComplete(t *testing.T) {
	p := answersWith(t, "gemini-same.json")
	b := prepare(t, watch.Rule{Upstream: "gemini", Provider: "gemini"})
	b.start(t)
	j := job(t, "gemini")
	j.URL, j.Keys = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}
	v := reflect.ValueOf(j.Call).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !v.Type().Field(i).IsExported(), !f.IsZero():
		case f.Kind() == reflect.String:
			f.SetString("some " + v.Type().Field(i).Name)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.CanInt():
			f.SetInt(int64(i))
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			t.Fatalf("fill in %s", v.Type().Field(i).Name)
		}
	}
	got := reflect.ValueOf(b.offer(t, j)).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() || name == "Answer" {
			continue
		}
		if diff := cmp.Diff(v.Field(i).Interface(), got.Field(i).Interface()); diff != "" {
			t.Errorf("%s (-first +completed):\n%s", name, diff)
		}
	}
}

// A key repeated in a second answer is not stored, whether it is the caller's or the operator's, and such an answer is
// not published.
func TestRepeatedKeyIsMasked(t *testing.T) {
	for _, key := range []string{callersKey, operatorsKey} {
		body := strings.NewReplacer("https://heron.example/brut", "https://heron.example/brut?key="+key, `"title": "`, `"title": "`+key+" ").Replace(string(data(t, "gemini-second.json")))
		if strings.Count(body, key) < 3 {
			t.Fatalf("the response has no key: %s", body)
		}
		p := answers(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		rule := watch.Rule{Upstream: "gemini", Provider: "gemini"}
		j := job(t, "gemini")
		j.URL, j.Keys, j.Call.Publish = p.url, http.Header{"X-Goog-Api-Key": {callersKey}}, true
		if key == operatorsKey {
			other := *p.url
			other.Path = "/other"
			rule.URL, rule.Key = &other, func() string { return operatorsKey }
		}
		b := prepare(t, rule)
		b.start(t)
		c := b.offer(t, j)
		record := testenv.Must(c.Encode())(t)
		if bytes.Contains(record, []byte(key)) || c.Publish || len(c.Answer.Citations) != 2 {
			t.Errorf("published: %v, stored: %s", c.Publish, record)
		}
	}
}
