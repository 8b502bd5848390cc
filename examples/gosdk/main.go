// Gosdk calls a provider through its official SDK, with an HTTP client that listens in, and prints the answer with its
// citations.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	cohere "github.com/cohere-ai/cohere-go/v2"
	cohereclient "github.com/cohere-ai/cohere-go/v2/client"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/tee"
)

// call is one question to a provider. The SDK needs only its HTTP client to work with ibid.
type call struct {
	client   *http.Client
	base     string // base URL of all providers, followed by their names; empty means their own hosts
	question string
}

func main() {
	provider := flag.String("provider", "openai", "openai, gemini, anthropic or cohere; its key is in its SDK's usual variable")
	c := &call{client: &http.Client{Transport: &tee.Transport{OnAnswer: show}}}
	flag.StringVar(&c.base, "base", "", "a `URL` under which all providers are, by name: http://127.0.0.1:8080 is ibid demo")
	flag.StringVar(&c.question, "question", "How many herons nest at Lake Tonbo?", "what to ask")
	flag.Parse()
	ask, ok := map[string]func(context.Context) error{
		"openai": c.openai, "gemini": c.gemini, "anthropic": c.anthropic, "cohere": c.cohere,
	}[*provider]
	if !ok {
		fmt.Fprintf(os.Stderr, "gosdk: no provider %q\n", *provider)
		os.Exit(2)
	}
	if err := ask(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}

// show is called with each answer, before the SDK has seen its end.
func show(_ *http.Request, answer *ibid.Answer, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "the answer may not be all of it:", err)
	}
	fmt.Print(answer.Render(&ibid.RenderOptions{Style: ibid.StylePlain, List: true}))
}

func (c *call) openai(ctx context.Context) error {
	options := []option.RequestOption{option.WithHTTPClient(c.client)}
	if c.base != "" {
		options = append(options, option.WithBaseURL(c.base+"/openai/v1"))
	}
	client := openai.NewClient(options...)
	stream := client.Responses.NewStreaming(ctx, responses.ResponseNewParams{
		Model:   "gpt-5",
		Input:   responses.ResponseNewParamsInputUnion{OfString: openai.String(c.question)},
		Tools:   []responses.ToolUnionParam{responses.ToolParamOfWebSearch(responses.WebSearchToolTypeWebSearch)},
		Include: []responses.ResponseIncludable{responses.ResponseIncludableWebSearchCallActionSources}, // including uncited ones
	})
	for stream.Next() { // your program's own reading of the stream
	}
	return stream.Err()
}

func (c *call) gemini(ctx context.Context) error {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{HTTPClient: c.client, HTTPOptions: genai.HTTPOptions{BaseURL: c.at("/gemini")}})
	if err != nil {
		return err
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}}}
	for _, err := range client.Models.GenerateContentStream(ctx, "gemini-3-flash", genai.Text(c.question), config) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *call) anthropic(ctx context.Context) error {
	options := []anthropicoption.RequestOption{anthropicoption.WithHTTPClient(c.client)}
	if c.base != "" {
		options = append(options, anthropicoption.WithBaseURL(c.base+"/anthropic"))
	}
	client := anthropic.NewClient(options...)
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: "claude-sonnet-5", MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(c.question))},
		Tools:    []anthropic.ToolUnionParam{{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{}}},
	})
	for stream.Next() {
	}
	return stream.Err()
}

// cohere cites the documents passed in the request.
func (c *call) cohere(ctx context.Context) error {
	request := &cohere.V2ChatRequest{
		Model:    "command-a-03-2025",
		Messages: cohere.ChatMessages{{Role: "user", User: &cohere.UserMessageV2{Content: &cohere.UserMessageV2Content{String: c.question}}}},
	}
	for _, text := range []string{"Volunteers counted 41 nests in the alders on 12 April.", "The first pair was seen in 1968."} {
		request.Documents = append(request.Documents, &cohere.V2ChatRequestDocumentsItem{
			Document: &cohere.Document{Data: map[string]any{"text": text}},
		})
	}
	client := cohereclient.NewClient(cohereclient.WithHTTPClient(c.client), cohereclient.WithBaseURL(c.at("/cohere")))
	_, err := client.V2.Chat(ctx, request)
	return err
}

// at returns the base URL of a provider, or "" for the SDK's default.
func (c *call) at(provider string) string {
	if c.base == "" {
		return ""
	}
	return c.base + provider
}
