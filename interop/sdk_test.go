package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/tee"
)

// tool is the function that every request offers.
const tool = "count_nests"

// sdkCall is the call for an SDK to make.
type sdkCall struct {
	base    string // URL up to the provider's name
	client  *http.Client
	prompt  string
	sources []replay.Source // to pass as documents, if the API accepts any
	stream  bool
}

// said is the SDK's view of the response.
type said struct {
	Answer    string // Ibid-Answer
	ID        string // the provider's
	Text      string
	Citations []string // JSON in the SDK's own types
	Tools     []string // the tools called: name and arguments
	Finish    string   // as the provider names it
	Status    int      // of the error, from the SDK's own error type; 0 if there is none
	Message   string   // of the error
}

// sdk calls one API of a provider through its official SDK. An error that the provider sent is part of the result.
type sdk struct {
	name string
	ask  func(ctx context.Context, c *sdkCall) (*said, error)
	// The provider's finish reasons for an answer, and for one that calls a tool.
	stop, toolUse string
	foreign       bool // it does not run in this process, so that tee.Transport does not apply
}

func sdks() []sdk {
	return []sdk{
		{name: "openai-responses", ask: askResponses, stop: "completed", toolUse: "completed"},
		{name: "openai-chat", ask: askChat, stop: "stop", toolUse: "tool_calls"},
		{name: "gemini", ask: askGemini, stop: "STOP", toolUse: "STOP"},
		{name: "anthropic", ask: askAnthropic, stop: "end_turn", toolUse: "tool_use"},
		{name: "anthropic-documents", ask: askAnthropicDocuments, stop: "end_turn", toolUse: "tool_use"},
		{name: "cohere", ask: askCohere, stop: "COMPLETE", toolUse: "TOOL_CALL"},
	}
}

// heard is the result of a call made in all three ways.
type heard struct {
	direct, through *said
	kept            *ibid.Document // by the gateway; nil for an error instead of an answer
}

// everyWay makes a call to the upstream, through the gateway, and with a tee.Transport. The SDK must not see a
// difference.
func (s *suite) everyWay(t *testing.T, c sdkCall) *heard {
	t.Helper()
	h := &heard{
		direct:  s.call(t, c, s.upstream, http.DefaultClient),
		through: s.call(t, c, s.gateway, http.DefaultClient),
	}
	if diff := cmp.Diff(h.direct, h.through, sameReply()); diff != "" {
		t.Errorf("the response through the gateway differs (-direct +through):\n%s", diff)
	}
	if h.through.Status == 0 || h.through.Answer != "" {
		h.kept = s.document(t, h.through.Answer)
		if h.through.ID != "" && (h.kept.ID == nil || *h.kept.ID != h.through.ID) {
			t.Errorf("the SDK sees the provider's id %q, the stored answer has %v", h.through.ID, h.kept.ID)
		}
	}
	if !s.foreign {
		s.teeWay(t, c, h)
	}
	return h
}

// teeWay makes the call with a tee.Transport.
func (s *suite) teeWay(t *testing.T, c sdkCall, h *heard) {
	t.Helper()
	var answers []*ibid.Answer
	transport := &tee.Transport{OnAnswer: func(_ *http.Request, a *ibid.Answer, err error) {
		if answers = append(answers, a); err != nil {
			t.Errorf("decoding by tee.Transport: %v", err)
		}
	}}
	teed := s.call(t, c, s.upstream, &http.Client{Transport: transport})
	if diff := cmp.Diff(h.direct, teed, sameReply()); diff != "" {
		t.Errorf("the response with tee.Transport differs (-direct +teed):\n%s", diff)
	}
	if len(answers) != 1 {
		t.Fatalf("tee.Transport reported %d answers", len(answers))
	}
	if h.kept == nil {
		return
	}
	if diff := cmp.Diff(h.kept, answers[0].Document(nil), sameAnswer()); diff != "" {
		t.Errorf("the stored answer differs from the one that tee.Transport decoded (-stored +decoded):\n%s", diff)
	}
}

func (s *suite) call(t *testing.T, c sdkCall, base string, client *http.Client) *said {
	t.Helper()
	c.base, c.client = base, client
	got, err := s.ask(t.Context(), &c)
	if err != nil {
		t.Fatalf("%s: %v", base, err)
	}
	return got
}

// sameReply compares responses to the same question, ignoring ids, which are new each time.
func sameReply() cmp.Option {
	return cmp.Options{cmpopts.IgnoreFields(said{}, "Answer", "ID"), cmpopts.EquateEmpty()}
}

// sameAnswer compares answers to the same question, ignoring what is new each time and what only the gateway's
// configuration can know.
func sameAnswer() cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreFields(ibid.Document{}, "AnswerID", "ID", "CreatedAt", "Provider"),
		cmpopts.IgnoreFields(ibid.ToolCall{}, "ID"),
		cmpopts.IgnoreFields(ibid.DocumentActivity{}, "ID"),
		cmp.Comparer(func(a, b json.RawMessage) bool { // an unknown value is null after reading
			return string(a) == string(b) || len(a)+len(b) == len("null") && string(a)+string(b) == "null"
		}),
		cmpopts.EquateEmpty(),
	}
}

func TestSDKs(t *testing.T) {
	w := start(t)
	for _, s := range sdks() {
		t.Run(s.name, (&suite{w, s}).run)
	}
	t.Run("responses again", w.testResponsesAgain)
	t.Run("conversation", w.testConversation)
	t.Run("npm", w.testNPM)
}
