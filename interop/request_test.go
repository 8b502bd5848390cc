package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/cohere-ai/cohere-go/v2/client"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/wire"
)

// sdkHost is the base URL for SDK requests that are only inspected.
const sdkHost = "http://provider.invalid"

// asked is a request without what depends on the client that made it.
type asked struct {
	Method, Path string      // including the query
	Header       http.Header // what the provider requires, and the key
	Body         any
}

// requestCase is one chat, as internal/wire builds it and as an official SDK does: the provider's own, or the one that
// the provider recommends.
type requestCase struct {
	name, provider string
	chat           call.Chat
	sdk            func(ctx context.Context, c *http.Client, stream bool) error
	differences    []difference // known ways in which the SDK writes it differently
}

// difference is a place where an SDK's request and ours have the same meaning in different forms.
type difference struct {
	why string
	// rewrite converts our body to the SDK's form, and reports whether there was anything to convert.
	rewrite func(body map[string]any) bool
}

// The SDKs are the oracle for internal/wire: the same chat results in the same request.
func TestRequests(t *testing.T) {
	var cases []requestCase
	for _, more := range [][]requestCase{geminiRequests(), openaiRequests(), openaiLikeRequests(), cohereRequests(), anthropicRequests()} {
		cases = append(cases, more...)
	}
	for i := range cases {
		for _, stream := range []bool{false, true} {
			t.Run(cases[i].provider+"/"+cases[i].name+"/"+map[bool]string{false: "body", true: "stream"}[stream], func(t *testing.T) {
				cases[i].run(t, stream)
			})
		}
	}
}

func (c *requestCase) run(t *testing.T, stream bool) {
	p, ok := call.FindProvider(c.provider)
	if !ok {
		t.Fatalf("there is no provider %s", c.provider)
	}
	spy := &spy{}
	_ = c.sdk(t.Context(), &http.Client{Transport: spy}, stream) // the SDK rejects the empty answer
	if len(spy.requests) != 1 {
		t.Fatalf("the SDK made %d requests", len(spy.requests))
	}
	chat := c.chat
	chat.Stream = stream
	b := testenv.Must(call.BuildRequest(c.provider, &chat))(t)
	r := testenv.Must(http.NewRequestWithContext(t.Context(), b.Method, sdkHost+b.Path, bytes.NewReader(b.Body)))(t)
	for name, values := range b.Header {
		r.Header[name] = values
	}
	r.Header.Set(p.KeyHeader, p.KeyPrefix+key)
	ours, theirs := readAsked(t, &p, r), readAsked(t, &p, spy.requests[0])
	for _, d := range c.differences {
		if body, ok := ours.Body.(map[string]any); !ok || !d.rewrite(body) {
			t.Errorf("this difference no longer exists: %s", d.why)
		}
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("the request (-SDK +ours):\n%s", diff)
	}
}

// spy records requests and answers none.
type spy struct{ requests []*http.Request }

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.requests = append(s.requests, r)
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"no"}}`)), Request: r,
	}, nil
}

func readAsked(t *testing.T, p *call.Provider, r *http.Request) *asked {
	t.Helper()
	a := &asked{Method: r.Method, Path: r.URL.RequestURI(), Header: http.Header{}}
	for _, name := range []string{p.KeyHeader, "Content-Type"} {
		a.Header[name] = r.Header.Values(name)
	}
	for name := range p.Header {
		a.Header[name] = r.Header.Values(name)
	}
	testenv.OK(t, json.NewDecoder(r.Body).Decode(&a.Body))
	return a
}

// talk is the conversation of every case.
func talk() []call.Message {
	return []call.Message{
		{Role: call.RoleSystem, Text: "Be brief."},
		{Role: call.RoleUser, Text: "How many <nests>?"},
		{Role: call.RoleAssistant, Text: "41 🪺"},
		{Role: call.RoleUser, Text: "Où ?"},
	}
}

// papers are the sources to answer from.
func papers() []wire.Source {
	return []wire.Source{
		{ID: "a", Title: "Herons", URL: "https://a.example/", Content: "There are 41 nests."},
		{ID: "b", Title: "Reeds", Content: "The nests are in the reeds."},
	}
}

func tools(all ...string) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(all))
	for _, tool := range all {
		list = append(list, json.RawMessage(tool))
	}
	return list
}

const (
	neutralWeb   = `{"type":"web_search"}`
	neutralFiles = `{"type":"file_search","stores":["store-1","store-2"]}`
)

func geminiRequests() []requestCase {
	ask := func(config genai.GenerateContentConfig) func(context.Context, *http.Client, bool) error {
		return func(ctx context.Context, c *http.Client, stream bool) error {
			once := int32(1)
			g, err := genai.NewClient(ctx, &genai.ClientConfig{
				Backend: genai.BackendGeminiAPI, APIKey: key, HTTPClient: c,
				HTTPOptions: genai.HTTPOptions{BaseURL: sdkHost, RetryOptions: &genai.HTTPRetryOptions{Attempts: &once}},
			})
			if err != nil {
				return err
			}
			config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: "Be brief."}}}
			contents := []*genai.Content{
				genai.NewContentFromText("How many <nests>?", genai.RoleUser), genai.NewContentFromText("41 🪺", genai.RoleModel),
				genai.NewContentFromText("Où ?", genai.RoleUser),
			}
			if !stream {
				_, err := g.Models.GenerateContent(ctx, "gemini-3-flash", contents, &config)
				return err
			}
			for _, err := range g.Models.GenerateContentStream(ctx, "gemini-3-flash", contents, &config) {
				return err
			}
			return nil
		}
	}
	chat := func(t ...string) call.Chat {
		return call.Chat{Model: "gemini-3-flash", Messages: talk(), Tools: tools(t...), Include: true}
	}
	cases := []requestCase{
		{name: "plain", provider: "gemini", chat: chat(), sdk: ask(genai.GenerateContentConfig{})},
		{
			name: "google search", provider: "gemini", chat: chat(neutralWeb),
			sdk: ask(genai.GenerateContentConfig{Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}),
		},
		{
			name: "file search", provider: "gemini", chat: chat(`{"type":"file_search","stores":["fileSearchStores/x"],"filter":"author = \"Ann\""}`),
			sdk: ask(genai.GenerateContentConfig{Tools: []*genai.Tool{{FileSearch: &genai.FileSearch{
				FileSearchStoreNames: []string{"fileSearchStores/x"}, MetadataFilter: `author = "Ann"`,
			}}}}),
		},
		{
			name: "a tool of its own", provider: "gemini", chat: chat(`{"urlContext":{}}`),
			sdk: ask(genai.GenerateContentConfig{Tools: []*genai.Tool{{URLContext: &genai.URLContext{}}}}),
		},
	}
	for i := range cases {
		cases[i].differences = []difference{
			{"the SDK writes what configures the model, where there is nothing to configure", func(body map[string]any) bool {
				_, ok := body["generationConfig"]
				body["generationConfig"] = map[string]any{}
				return !ok
			}},
			{"the SDK says that instructions are the user's, which the API does not look at", func(body map[string]any) bool {
				system, ok := body["systemInstruction"].(map[string]any)
				if ok {
					system["role"] = "user"
				}
				return ok
			}},
		}
	}
	return cases
}

// askResponsesAt calls an API in the format of OpenAI's Responses.
func askResponsesAt(params responses.ResponseNewParams) func(context.Context, *http.Client, bool) error {
	item := func(role responses.EasyInputMessageRole, text string) responses.ResponseInputItemUnionParam {
		return responses.ResponseInputItemParamOfMessage(text, role)
	}
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		item("system", "Be brief."), item("user", "How many <nests>?"), item("assistant", "41 🪺"), item("user", "Où ?"),
	}}
	return func(ctx context.Context, c *http.Client, stream bool) error {
		o := openai.NewClient(option.WithBaseURL(sdkHost+"/v1"), option.WithAPIKey(key), option.WithHTTPClient(c), option.WithMaxRetries(0))
		if stream {
			s := o.Responses.NewStreaming(ctx, params)
			defer s.Close()
			return s.Err()
		}
		_, err := o.Responses.New(ctx, params)
		return err
	}
}

func openaiRequests() []requestCase {
	web, files := responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch), responses.ToolParamOfFileSearch([]string{"store-1", "store-2"})
	filtered := responses.ToolParamOfFileSearch([]string{"store-1"})
	filtered.OfFileSearch.Filters.OfComparisonFilter = &shared.ComparisonFilterParam{
		Key: "author", Type: "eq", Value: shared.ComparisonFilterValueUnionParam{OfString: openai.String("Ann")},
	}
	keep := openai.Bool(false)
	return []requestCase{
		{
			name: "plain", provider: "openai", chat: call.Chat{Model: "gpt-5.2", Messages: talk(), Include: true},
			sdk: askResponsesAt(responses.ResponseNewParams{Model: "gpt-5.2", Store: keep}),
		},
		{
			name: "search with its sources", provider: "openai",
			chat: call.Chat{Model: "gpt-5.2", Messages: talk(), Tools: tools(neutralFiles, neutralWeb), Include: true},
			sdk: askResponsesAt(responses.ResponseNewParams{
				Model: "gpt-5.2", Store: keep, Tools: []responses.ToolUnionParam{files, web},
				Include: []responses.ResponseIncludable{
					responses.ResponseIncludableFileSearchCallResults, responses.ResponseIncludableWebSearchCallActionSources,
				},
			}),
		},
		{
			name: "search without", provider: "openai",
			chat: call.Chat{Model: "gpt-5.2", Messages: talk(), Tools: tools(neutralWeb)},
			sdk:  askResponsesAt(responses.ResponseNewParams{Model: "gpt-5.2", Store: keep, Tools: []responses.ToolUnionParam{web}}),
		},
		{
			name: "a filter", provider: "openai",
			chat: call.Chat{
				Model: "gpt-5.2", Messages: talk(),
				Tools: tools(`{"type":"file_search","stores":["store-1"],"filter":{"type":"eq","key":"author","value":"Ann"}}`),
			},
			sdk: askResponsesAt(responses.ResponseNewParams{Model: "gpt-5.2", Store: keep, Tools: []responses.ToolUnionParam{filtered}}),
		},
	}
}

// openaiLikeRequests are the cases of providers that recommend OpenAI's SDK.
func openaiLikeRequests() []requestCase {
	web, files := responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch), responses.ToolParamOfFileSearch([]string{"store-1", "store-2"})
	said := []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("Be brief."), openai.UserMessage("How many <nests>?"), openai.AssistantMessage("41 🪺"), openai.UserMessage("Où ?"),
	}
	chatAt := func(base, model string) func(context.Context, *http.Client, bool) error {
		params := openai.ChatCompletionNewParams{Model: model, Messages: said}
		return func(ctx context.Context, c *http.Client, stream bool) error {
			o := openai.NewClient(option.WithBaseURL(sdkHost+base), option.WithAPIKey(key), option.WithHTTPClient(c), option.WithMaxRetries(0))
			if stream {
				s := o.Chat.Completions.NewStreaming(ctx, params)
				defer s.Close()
				return s.Err()
			}
			_, err := o.Chat.Completions.New(ctx, params)
			return err
		}
	}
	return []requestCase{
		{
			name: "search, no links in the text", provider: "xai",
			chat: call.Chat{Model: "grok-4", Messages: talk(), Tools: tools(neutralWeb, neutralFiles), Citations: call.CitationsOff, Include: true},
			sdk: askResponsesAt(responses.ResponseNewParams{
				Model: "grok-4", Store: openai.Bool(false), Tools: []responses.ToolUnionParam{web, files}, Include: []responses.ResponseIncludable{"no_inline_citations"},
			}),
		},
		{
			name: "agents", provider: "perplexity", chat: call.Chat{Model: "openai/gpt-5.2", Messages: talk(), Tools: tools(neutralWeb)},
			sdk: askResponsesAt(responses.ResponseNewParams{Model: "openai/gpt-5.2", Tools: []responses.ToolUnionParam{web}}),
		},
		{
			name: "sonar", provider: "perplexity", chat: call.Chat{Model: "sonar-pro", Messages: talk(), Tools: tools(neutralWeb)},
			sdk: chatAt("", "sonar-pro"),
		},
		{name: "chat", provider: "openrouter", chat: call.Chat{Model: "x/y:online", Messages: talk()}, sdk: chatAt("/api/v1", "x/y:online")},
		{name: "chat", provider: "mistral", chat: call.Chat{Model: "mistral-large-latest", Messages: talk()}, sdk: chatAt("/v1", "mistral-large-latest")},
	}
}

func cohereRequests() []requestCase {
	text := func(s string) *cohere.UserMessageV2Content { return &cohere.UserMessageV2Content{String: s} }
	said := cohere.ChatMessages{
		{Role: "system", System: &cohere.SystemMessageV2{Content: &cohere.SystemMessageV2Content{String: "Be brief."}}},
		{Role: "user", User: &cohere.UserMessageV2{Content: text("How many <nests>?")}},
		{Role: "assistant", Assistant: &cohere.AssistantMessage{Content: &cohere.AssistantMessageV2Content{String: "41 🪺"}}},
		{Role: "user", User: &cohere.UserMessageV2{Content: text("Où ?")}},
	}
	documents := []*cohere.Document{
		{Id: new("a"), Data: map[string]any{"title": "Herons", "url": "https://a.example/", "text": "There are 41 nests."}},
		{Id: new("b"), Data: map[string]any{"title": "Reeds", "text": "The nests are in the reeds."}},
	}
	ask := func(with []*cohere.Document, o *cohere.CitationOptions) func(context.Context, *http.Client, bool) error {
		return func(ctx context.Context, c *http.Client, stream bool) error {
			co := client.NewClient(client.WithBaseURL(sdkHost), client.WithToken(key), client.WithHTTPClient(c), client.WithMaxAttempts(1))
			if stream {
				r := &cohere.V2ChatStreamRequest{Model: "command-a-03-2025", Messages: said, CitationOptions: o}
				for _, d := range with {
					r.Documents = append(r.Documents, &cohere.V2ChatStreamRequestDocumentsItem{Document: d})
				}
				_, err := co.V2.ChatStream(ctx, r)
				return err
			}
			r := &cohere.V2ChatRequest{Model: "command-a-03-2025", Messages: said, CitationOptions: o}
			for _, d := range with {
				r.Documents = append(r.Documents, &cohere.V2ChatRequestDocumentsItem{Document: d})
			}
			_, err := co.V2.Chat(ctx, r)
			return err
		}
	}
	cases := []requestCase{
		{name: "plain", provider: "cohere", chat: call.Chat{Model: "command-a-03-2025", Messages: talk()}, sdk: ask(nil, nil)},
		{name: "documents", provider: "cohere", chat: call.Chat{Model: "command-a-03-2025", Messages: talk(), Documents: papers()}, sdk: ask(documents, nil)},
	}
	for mode, theirs := range map[string]cohere.CitationOptionsMode{
		call.CitationsFast: cohere.CitationOptionsModeFast, call.CitationsAccurate: cohere.CitationOptionsModeAccurate, call.CitationsOff: cohere.CitationOptionsModeOff,
	} {
		cases = append(cases, requestCase{
			name: mode, provider: "cohere", chat: call.Chat{Model: "command-a-03-2025", Messages: talk(), Documents: papers(), Citations: mode},
			sdk: ask(documents, &cohere.CitationOptions{Mode: &theirs}),
		})
	}
	return cases
}

func anthropicRequests() []requestCase {
	ask := func(tools []anthropic.ToolUnionParam, newest ...anthropic.ContentBlockParamUnion) func(context.Context, *http.Client, bool) error {
		params := anthropic.MessageNewParams{
			Model: "claude-sonnet-5", MaxTokens: 4096, System: []anthropic.TextBlockParam{{Text: "Be brief."}}, Tools: tools,
			Messages: []anthropic.MessageParam{
				anthropic.NewUserMessage(anthropic.NewTextBlock("How many <nests>?")), anthropic.NewAssistantMessage(anthropic.NewTextBlock("41 🪺")),
				anthropic.NewUserMessage(append(newest, anthropic.NewTextBlock("Où ?"))...),
			},
		}
		return func(ctx context.Context, c *http.Client, stream bool) error {
			a := anthropic.NewClient(anthropicoption.WithBaseURL(sdkHost), anthropicoption.WithAPIKey(key), anthropicoption.WithHTTPClient(c), anthropicoption.WithMaxRetries(0))
			if stream {
				s := a.Messages.NewStreaming(ctx, params)
				defer s.Close()
				return s.Err()
			}
			_, err := a.Messages.New(ctx, params)
			return err
		}
	}
	documents := func(cited bool) []anthropic.ContentBlockParamUnion {
		var blocks []anthropic.ContentBlockParamUnion
		for _, s := range papers() {
			block := anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: s.Content})
			block.OfDocument.Title = anthropic.String(s.Title)
			block.OfDocument.Citations = anthropic.CitationsConfigParam{Enabled: anthropic.Bool(cited)}
			if s.URL != "" {
				block.OfDocument.Context = anthropic.String(s.URL)
			}
			blocks = append(blocks, block)
		}
		return blocks
	}
	blocks := []difference{
		{"the SDK writes instructions as a list of blocks, where a string is one block of text", func(body map[string]any) bool {
			text, ok := body["system"].(string)
			body["system"] = textBlock(text)
			return ok
		}},
		{"the SDK writes what a message says as a list of blocks, where a string is one block of text", rewriteContents},
	}
	web := []anthropic.ToolUnionParam{{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{}}}
	chat := call.Chat{Model: "claude-sonnet-5", Messages: talk()}
	searching, citing, silent := chat, chat, chat
	searching.Tools = tools(neutralWeb)
	citing.Documents, citing.Citations = papers(), call.CitationsAccurate
	silent.Documents, silent.Citations, silent.Tools = papers(), call.CitationsOff, tools(neutralWeb)
	return []requestCase{
		{name: "plain", provider: "anthropic", chat: chat, sdk: ask(nil), differences: blocks},
		{name: "web search", provider: "anthropic", chat: searching, sdk: ask(web), differences: blocks},
		{name: "documents", provider: "anthropic", chat: citing, sdk: ask(nil, documents(true)...), differences: blocks},
		{name: "documents without citations, and web search", provider: "anthropic", chat: silent, sdk: ask(web, documents(false)...), differences: blocks},
	}
}

// textBlock returns a text as a list of blocks.
func textBlock(text string) []any { return []any{map[string]any{"type": "text", "text": text}} }

// rewriteContents turns messages that are strings into lists of blocks, and reports whether there were any.
func rewriteContents(body map[string]any) bool {
	messages, _ := body["messages"].([]any)
	found := false
	for _, m := range messages {
		message, _ := m.(map[string]any)
		if text, ok := message["content"].(string); ok {
			message["content"] = textBlock(text)
			found = true
		}
	}
	return found
}
