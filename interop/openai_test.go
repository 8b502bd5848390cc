package interop

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

func newOpenAI(c *sdkCall) openai.Client {
	return openai.NewClient(option.WithBaseURL(c.base+"/openai/v1"), option.WithAPIKey(key), option.WithHTTPClient(c.client))
}

func askResponses(ctx context.Context, c *sdkCall) (*said, error) {
	client := newOpenAI(c)
	params := responses.ResponseNewParams{
		Model: "gpt-5",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(c.prompt)},
		Include: []responses.ResponseIncludable{
			responses.ResponseIncludableFileSearchCallResults, responses.ResponseIncludableWebSearchCallActionSources,
		},
		Tools: []responses.ToolUnionParam{
			responses.ToolParamOfFunction(tool, map[string]any{"type": "object"}, false),
			responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch),
		},
	}
	got := &said{}
	var raw *http.Response
	if !c.stream {
		r, err := client.Responses.New(ctx, params, option.WithResponseInto(&raw))
		if err != nil {
			return got, got.failOpenAI(err)
		}
		got.readResponse(r)
	} else {
		stream := client.Responses.NewStreaming(ctx, params, option.WithResponseInto(&raw))
		got.readResponseStream(stream)
		if err := stream.Err(); err != nil {
			return got, got.failOpenAI(err)
		}
	}
	got.Answer = raw.Header.Get("Ibid-Answer")
	return got, nil
}

func (s *said) readResponse(r *responses.Response) {
	s.ID, s.Finish, s.Text = r.ID, string(r.Status), r.OutputText()
	s.Message = r.Error.Message
	for _, item := range r.Output {
		if item.Type == "function_call" {
			s.Tools = append(s.Tools, item.Name+item.Arguments.OfString)
		}
		for _, part := range item.Content {
			for _, a := range part.Annotations {
				s.Citations = append(s.Citations, a.RawJSON())
			}
		}
	}
}

// readResponseStream reads the events one by one. From the last one, which repeats everything, it reads only how the
// response ended.
func (s *said) readResponseStream(stream *ssestream.Stream[responses.ResponseStreamEventUnion]) {
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case responses.ResponseCreatedEvent:
			s.ID = e.Response.ID
		case responses.ResponseTextDeltaEvent:
			s.Text += e.Delta
		case responses.ResponseOutputTextAnnotationAddedEvent:
			s.Citations = append(s.Citations, e.JSON.Annotation.Raw())
		case responses.ResponseOutputItemDoneEvent:
			if e.Item.Type == "function_call" {
				s.Tools = append(s.Tools, e.Item.Name+e.Item.Arguments.OfString)
			}
		case responses.ResponseCompletedEvent:
			s.Finish = string(e.Response.Status)
		case responses.ResponseFailedEvent:
			s.Finish, s.Message = string(e.Response.Status), e.Response.Error.Message
		}
	}
}

func askChat(ctx context.Context, c *sdkCall) (*said, error) {
	client := newOpenAI(c)
	params := openai.ChatCompletionNewParams{
		Model:    "gpt-5-search-api",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.prompt)},
		Tools:    []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: tool})},
	}
	got := &said{}
	var raw *http.Response
	into := option.WithResponseInto(&raw)
	if !c.stream {
		r, err := client.Chat.Completions.New(ctx, params, into)
		if err != nil {
			return got, got.failOpenAI(err)
		}
		got.readChat(r)
		got.Answer = raw.Header.Get("Ibid-Answer")
		return got, nil
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(ctx, params, into)
	all := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		chunk := stream.Current()
		all.AddChunk(chunk)
		for _, choice := range chunk.Choices {
			// The SDK has no field for a stream's citations, but exposes their JSON.
			if list, ok := choice.Delta.JSON.ExtraFields["annotations"]; ok {
				got.Citations = append(got.Citations, elements(list.Raw())...)
			}
		}
	}
	got.readChat(&all.ChatCompletion)
	if raw != nil {
		got.Answer = raw.Header.Get("Ibid-Answer")
	}
	if err := stream.Err(); err != nil {
		return got, got.failOpenAI(err)
	}
	return got, nil
}

func (s *said) readChat(r *openai.ChatCompletion) {
	s.ID = r.ID
	for _, choice := range r.Choices {
		s.Finish = choice.FinishReason
		s.Text += choice.Message.Content
		for _, t := range choice.Message.ToolCalls {
			s.Tools = append(s.Tools, t.Function.Name+t.Function.Arguments)
		}
		for _, a := range choice.Message.Annotations {
			s.Citations = append(s.Citations, a.RawJSON())
		}
	}
}

func (s *said) failOpenAI(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		s.Status, s.Message, s.Answer = e.StatusCode, e.Message, e.Response.Header.Get("Ibid-Answer")
		return nil
	}
	if e, ok := errors.AsType[*ssestream.StreamError](err); ok {
		s.Message = e.Message
		return nil
	}
	return err
}

// Fetching a response again updates the stored answer and creates no other.
func (w *world) testResponsesAgain(t *testing.T) {
	c := &sdkCall{base: w.gateway, client: http.DefaultClient, prompt: "How many herons nest at Lake Tonbo?"}
	first := testenv.Must(askResponses(t.Context(), c))(t)
	before := w.document(t, first.Answer)
	count := w.count(t)
	client := newOpenAI(c)
	var raw *http.Response
	again := testenv.Must(client.Responses.Get(t.Context(), first.ID, responses.ResponseGetParams{}, option.WithResponseInto(&raw)))(t)
	second := &said{Answer: first.Answer}
	if second.readResponse(again); !cmp.Equal(first, second) {
		t.Errorf("the second response differs (-first +again):\n%s", cmp.Diff(first, second))
	}
	if diff := cmp.Diff(before, w.document(t, first.Answer)); diff != "" {
		t.Errorf("the stored answer differs (-before +after):\n%s", diff)
	}
	if now := w.count(t); now != count {
		t.Errorf("%d answers are stored, were %d", now, count)
	}
	if id := raw.Header.Get("Ibid-Answer"); id != "" && id != first.Answer {
		t.Errorf("the response names answer %s, the stored one is %s", id, first.Answer)
	}
}

// Setting ibid's request headers needs nothing beyond the SDK either.
func (w *world) testConversation(t *testing.T) {
	client := newOpenAI(&sdkCall{base: w.gateway, client: http.DefaultClient})
	var raw *http.Response
	testenv.Must(client.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "gpt-5", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Thank you!")},
	}, option.WithHeader("Ibid-Conversation", "support-4711"), option.WithResponseInto(&raw)))(t)
	var conversation any
	w.get(t, "/v1/conversations/support-4711", &conversation)
	if id := raw.Header.Get("Ibid-Answer"); id == "" || !strings.Contains(asJSON(conversation), id) {
		t.Errorf("answer %q is not in conversation %v", id, conversation)
	}
}

// count returns the number of stored answers.
func (w *world) count(t *testing.T) int {
	t.Helper()
	n, cursor := 0, ""
	for {
		var page struct {
			Answers []ibid.Document `json:"answers"`
			Next    *string         `json:"next_cursor"`
		}
		w.get(t, "/v1/answers?cursor="+cursor, &page)
		n += len(page.Answers)
		if page.Next == nil {
			return n
		}
		cursor = *page.Next
	}
}
