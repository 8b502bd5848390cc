package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// whole is a node with a gateway and its backfill.
type whole struct {
	*node

	gateway  *gateway.Gateway
	backfill *watch.Backfill
	said     lines // the backfill's log: one line per answer, written when it is done
}

// lines receives what a logger writes, line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// newWhole starts a node in a directory, in front of a provider with Gemini's API. Nothing runs in the background yet.
func newWhole(t *testing.T, dir string, provider *url.URL) *whole {
	t.Helper()
	w := &whole{said: make(lines, 10)}
	w.backfill = testenv.Must(watch.NewBackfill(&watch.BackfillOptions{
		Rules:  []watch.Rule{{Upstream: "gemini", Provider: "gemini", Timeout: 20 * time.Second}},
		Logger: slog.New(slog.NewJSONHandler(w.said, nil)),
		Store:  func(ctx context.Context, c *store.Call) error { return w.gateway.Keep(ctx, c) },
	}))(t)
	w.node = openNode(t, dir, func(n *node, o *api.Options) {
		n.capture(t, o, "gemini", provider, gateway.Options{CaptureWait: time.Minute, Backfill: w.backfill})
		w.gateway = o.Gateway
	})
	return w
}

// geminiStream and geminiBody return an answer with one sentence per site, each citing a page of it; without sites,
// there are no citations.
func geminiStream(id, text string, sites ...string) string {
	return "data: " + geminiBody(id, text, sites...) + "\r\n\r\n"
}

func geminiBody(id, text string, sites ...string) string {
	grounding := ""
	if len(sites) > 0 {
		var chunks, supports []string
		at := 0
		for i, sentence := range strings.SplitAfter(text, ". ")[:len(sites)] {
			said := strings.TrimSpace(sentence)
			chunks = append(chunks, fmt.Sprintf(`{"web":{"uri":"https://%s/","title":"%[1]s"}}`, sites[i]))
			supports = append(supports, fmt.Sprintf(`{"segment":{"startIndex":%d,"endIndex":%d,"text":%q},"groundingChunkIndices":[%d]}`, at, at+len(said), said, i))
			at += len(sentence)
		}
		grounding = `,"groundingMetadata":{"groundingChunks":[` + strings.Join(chunks, ",") + `],"groundingSupports":[` + strings.Join(supports, ",") + `]}`
	}
	if id != "" {
		id = `,"responseId":"` + id + `"`
	}
	return fmt.Sprintf(`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":%q}]},"finishReason":"STOP"%s}],"modelVersion":"gemini-heron"%s}`, text, grounding, id)
}

// backfilled is what the tests compare of a citation.
type backfilled struct {
	Index             int
	CitedText, Origin string
}

// A stream without citations gets them from a second call: they are in the answer, numbered on in its conversation, and
// reported by its run. None of this needs an id of the provider, and it survives a crash before the first answer was
// stored.
func TestBackfill(t *testing.T) {
	const herons, owls = "Herons nest in March. They feed on fish. ", "Herons nest in March. Owls hunt at night. "
	calls := 0
	address := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		calls++ // not concurrent
		switch {
		case !strings.Contains(r.URL.Path, ":stream"):
			if r.Header.Get("X-Goog-Api-Key") != "key" {
				t.Errorf("the second call's header: %v", r.Header)
			}
			fmt.Fprint(w, geminiBody("second", "Well. "+owls, "well.example", "a.example", "c.example"))
		case calls == 1:
			fmt.Fprint(w, geminiStream("first", herons, "a.example", "b.example"))
		default:
			fmt.Fprint(w, geminiStream("", owls))
		}
	})
	dir := t.TempDir()
	before := newWhole(t, dir, address)
	before.start(before.backfill.Run) // without the indexer, the store stays empty
	ask := func(prompt string) string {
		res := before.do(t, "POST", "/gemini/v1beta/models/gemini-heron:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"text":"`+prompt+`"}]}]}`, "Ibid-Conversation", "c1", "Ibid-Run", "r1", "X-Goog-Api-Key", "key")
		if res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, res.body)
		}
		return res.Header.Get(gateway.AnswerHeader)
	}
	ask("Herons?")
	id := ask("Owls?")
	if line := <-before.said; !strings.Contains(line, `"asked again for citations"`) || !strings.Contains(line, id) {
		t.Fatalf("logged %s", line)
	}
	before.end(t)

	after := newWhole(t, dir, address)
	after.start(after.gateway.Run)
	var got struct {
		AnswerID  string `json:"answer_id"`
		ID        *string
		Text      string
		Citations []struct {
			Index     int
			CitedText string `json:"cited_text"`
			Origin    string
		}
		Issues []ibid.Issue
	}
	show := func() (list []backfilled) {
		for _, c := range got.Citations {
			list = append(list, backfilled{c.Index, c.CitedText, c.Origin})
		}
		return list
	}
	testenv.OK(t, after.gateway.CatchUp(t.Context()))
	after.read(t, "/v1/answers/"+id, &got)
	want := []backfilled{{1, "Herons nest in March.", "inferred"}, {2, "Owls hunt at night.", "inferred"}}
	if diff := cmp.Diff(want, show()); diff != "" || got.AnswerID != id || got.ID != nil || got.Text != owls {
		t.Errorf("the answer (-want +got):\n%s\n%+v", diff, got)
	}
	if len(got.Issues) != 1 || got.Issues[0].Code != watch.IssueTextDiffers {
		t.Errorf("issues %v", got.Issues)
	}
	var talk struct {
		Messages  []any
		Numbering ibid.Numbering
	}
	after.read(t, "/v1/conversations/c1", &talk)
	numbers := ibid.Numbering{
		"web:https://a.example/": 1, "web:https://b.example/": 2, "web:https://c.example/": 3, "web:https://well.example/": 4,
	}
	if diff := cmp.Diff(numbers, talk.Numbering); diff != "" || len(talk.Messages) != 4 {
		t.Errorf("%d messages, numbering (-want +got):\n%s", len(talk.Messages), diff)
	}
	events := after.listen(t, "/v1/runs/r1/events")
	events.next()
	events.wantAnswer(2, id)
	if told := events.next(); !strings.HasPrefix(told, "id: 3\nevent: backfill\n") || !strings.Contains(told, `"answer_id":"`+id+`"`) ||
		!strings.Contains(told, `"citations":2,"sources":3`) || !strings.Contains(told, `"step":2`) {
		t.Errorf("the run has %q", told)
	}
}

// If the second call fails, the answer is unchanged, and one line is logged.
func TestBackfillFails(t *testing.T) {
	address := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, ":stream") {
			fmt.Fprint(w, geminiStream("first", "Herons nest in March."))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	n := newWhole(t, t.TempDir(), address)
	n.start(n.gateway.Run)
	res := n.do(t, "POST", "/gemini/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Herons?"}]}]}`,
		"Ibid-Run", "r1", "X-Goog-Api-Key", "sk-secret")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.backfill.Run(ctx) }()
	line := <-n.said
	cancel()
	<-done
	if len(n.said) > 0 || !strings.Contains(line, `"no citations by a second call"`) || !strings.Contains(line, `"result":"refused"`) ||
		strings.Contains(line, "secret") {
		t.Errorf("logged %s and %d more", line, len(n.said))
	}
	if got := n.get(t, "/v1/answers/"+res.Header.Get(gateway.AnswerHeader)); got.StatusCode != 200 || !strings.Contains(got.body, `"citations":[]`) {
		t.Errorf("the answer: %d %s", got.StatusCode, got.body)
	}
	if events, err := n.store.Events(t.Context(), store.DefaultTenant, "r1", 0, 0); err != nil || len(events) > 1 {
		t.Errorf("events %v, %v", events, err)
	}
}
