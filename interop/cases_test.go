package interop

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
)

// suite is the set of tests of an SDK.
type suite struct {
	*world
	sdk
}

// run runs the suite of one SDK.
func (s *suite) run(t *testing.T) {
	t.Run("answers", s.testAnswers)
	t.Run("tools", s.testTools)
	t.Run("errors", s.testErrors)
}

// testAnswers requests every answer of the upstream, whole and as a stream.
func (s *suite) testAnswers(t *testing.T) {
	for _, answer := range replay.Answers() {
		t.Run(answer.Query, func(t *testing.T) {
			var whole *heard
			for _, stream := range []bool{false, true} {
				h := s.everyWay(t, sdkCall{prompt: answer.Prompt, sources: answer.Sources, stream: stream})
				if h.through.Finish != s.stop || h.through.Status != 0 {
					t.Errorf("stream %t: the SDK sees %+v", stream, h.through)
				}
				checkDocument(t, &answer, h)
				if whole == nil {
					whole = h
					continue
				}
				if diff := cmp.Diff(whole.through.Text, h.through.Text); diff != "" {
					t.Errorf("the stream's text differs (-whole +stream):\n%s", diff)
				}
				if diff := cmp.Diff(whole.kept, h.kept, sameAnswer()); diff != "" {
					t.Errorf("the stream's stored answer differs (-whole +stream):\n%s", diff)
				}
			}
		})
	}
}

// checkDocument compares the stored answer with what the SDK received and the upstream meant.
func checkDocument(t *testing.T, answer *replay.Answer, h *heard) {
	t.Helper()
	d := h.kept
	if !d.Complete || d.Finish == nil || *d.Finish != ibid.FinishStop || d.Error != nil || len(d.Issues) > 0 {
		t.Errorf("stored as complete %t, finish %v, error %v, issues %v", d.Complete, d.Finish, d.Error, d.Issues)
	}
	if d.Text != h.through.Text {
		t.Errorf("stored text (-SDK +stored):\n%s", cmp.Diff(h.through.Text, d.Text))
	}
	if len(answer.Claims) > 0 && len(h.through.Citations) == 0 {
		t.Error("the SDK sees no citations")
	}
	type claim struct{ Words, Source string }
	var meant, kept []claim
	for _, c := range answer.Claims {
		for _, n := range c.Sources {
			meant = append(meant, claim{answer.Text[c.Start:c.End], answer.Sources[n].Title})
		}
	}
	for _, c := range d.Citations {
		if c.TextStart == nil || c.CitedText == nil || d.Text[*c.TextStart:*c.TextEnd] != *c.CitedText {
			t.Errorf("the text of citation %s differs from that at its place", c.ID)
			continue
		}
		kept = append(kept, claim{d.Text[*c.ClaimStart:*c.ClaimEnd], title(answer, &d.Sources[c.Index-1])})
	}
	if diff := cmp.Diff(meant, kept); diff != "" {
		t.Errorf("citations (-meant +stored):\n%s", diff)
	}
}

// title finds the upstream's source that corresponds to a stored one.
func title(answer *replay.Answer, kept *ibid.DocumentSource) string {
	for _, s := range answer.Sources {
		if kept.URL != nil && *kept.URL == s.URL || kept.Title != nil && *kept.Title == s.Title || kept.Filename != nil && *kept.Filename == s.Title {
			return s.Title
		}
	}
	return fmt.Sprintf("unknown source %+v", kept)
}

func (s *suite) testTools(t *testing.T) {
	for _, stream := range []bool{false, true} {
		h := s.everyWay(t, sdkCall{prompt: "Please call a tool about herons.", stream: stream})
		if h.through.Finish != s.toolUse || len(h.through.Tools) != 1 || !strings.HasPrefix(h.through.Tools[0], tool+"{") {
			t.Errorf("stream %t: the SDK sees %+v", stream, h.through)
		}
		calls := h.kept.ToolCalls
		if !h.kept.Complete || h.kept.Finish == nil || *h.kept.Finish != ibid.FinishTool || len(calls) != 1 || calls[0].Name != tool {
			t.Errorf("stream %t: stored as complete %t, finish %v, calls %v", stream, h.kept.Complete, h.kept.Finish, calls)
		}
	}
}

// testErrors checks that the SDK reports a provider's error through the gateway as it does without. An error with its
// own status is not stored; one that ends a stream is.
func (s *suite) testErrors(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusTooManyRequests} {
		for _, stream := range []bool{false, true} {
			h := s.everyWay(t, sdkCall{prompt: fmt.Sprintf("error %d", status), stream: stream})
			if h.through.Status != status || !strings.Contains(h.through.Message, fmt.Sprintf("asked for status %d", status)) {
				t.Errorf("%d, stream %t: the SDK sees %+v", status, stream, h.through)
			}
			if h.through.Answer != "" {
				t.Errorf("%d, stream %t: the response has Ibid-Answer %s", status, stream, h.through.Answer)
			}
		}
	}
	h := s.everyWay(t, sdkCall{prompt: "herons: error in the stream", stream: true})
	if !strings.Contains(h.through.Message, "asked to fail here") || h.through.Text == "" {
		t.Errorf("in the stream: the SDK sees %+v", h.through)
	}
	if h.kept == nil {
		t.Fatal("in the stream: no answer is stored")
	}
	if h.kept.Error == nil || h.kept.Text != h.through.Text || *h.kept.Finish != ibid.FinishError {
		t.Errorf("in the stream: stored as error %v, finish %v, text %q", h.kept.Error, h.kept.Finish, h.kept.Text)
	}
}

// headers captures the response headers that an SDK does not expose.
type headers struct {
	next   http.RoundTripper
	answer string // of the last response
}

// withHeaders returns a copy of a client, and the headers of its responses. It supports one call at a time.
func withHeaders(c *http.Client) (*headers, *http.Client) {
	h := &headers{next: c.Transport}
	if h.next == nil {
		h.next = http.DefaultTransport
	}
	return h, &http.Client{Transport: h}
}

func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := h.next.RoundTrip(r)
	if err == nil {
		h.answer = res.Header.Get("Ibid-Answer")
	}
	return res, err
}

// asJSON is for comparing: v was JSON before.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// elements are those of a JSON array, as they are.
func elements(array string) []string {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(array), &list); err != nil {
		return []string{err.Error()}
	}
	all := make([]string, len(list))
	for i, e := range list {
		all[i] = string(e)
	}
	return all
}
