package interop

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func askAnthropic(ctx context.Context, c *sdkCall) (*said, error) {
	return askMessages(ctx, c, anthropic.NewTextBlock(c.prompt))
}

// askAnthropicDocuments gives the sources as documents to be cited.
func askAnthropicDocuments(ctx context.Context, c *sdkCall) (*said, error) {
	var content []anthropic.ContentBlockParamUnion
	for _, s := range c.sources {
		block := anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: s.Quote})
		block.OfDocument.Title = anthropic.String(s.Title)
		block.OfDocument.Citations = anthropic.CitationsConfigParam{Enabled: anthropic.Bool(true)}
		content = append(content, block)
	}
	return askMessages(ctx, c, append(content, anthropic.NewTextBlock(c.prompt))...)
}

func askMessages(ctx context.Context, c *sdkCall, content ...anthropic.ContentBlockParamUnion) (*said, error) {
	client := anthropic.NewClient(
		option.WithBaseURL(c.base+"/anthropic"), option.WithAPIKey(key), option.WithHTTPClient(c.client))
	params := anthropic.MessageNewParams{
		Model: "claude-sonnet-5", MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(content...)},
		Tools: []anthropic.ToolUnionParam{
			anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{}, tool),
			{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{}},
		},
	}
	got := &said{}
	var raw *http.Response
	var message anthropic.Message
	if c.stream {
		stream := client.Messages.NewStreaming(ctx, params, option.WithResponseInto(&raw))
		for stream.Next() {
			if err := message.Accumulate(stream.Current()); err != nil {
				return nil, err
			}
		}
		got.readMessage(&message)
		if err := stream.Err(); err != nil {
			return got, got.failAnthropic(err)
		}
	} else {
		m, err := client.Messages.New(ctx, params, option.WithResponseInto(&raw))
		if err != nil {
			return got, got.failAnthropic(err)
		}
		got.readMessage(m)
	}
	got.Answer = raw.Header.Get("Ibid-Answer")
	return got, nil
}

func (s *said) readMessage(m *anthropic.Message) {
	s.ID, s.Finish = m.ID, string(m.StopReason)
	for _, block := range m.Content {
		s.Text += block.Text
		for _, c := range block.Citations {
			s.Citations = append(s.Citations, c.RawJSON())
		}
		if block.Type == "tool_use" {
			s.Tools = append(s.Tools, block.Name+asJSON(block.Input))
		}
	}
}

func (s *said) failAnthropic(err error) error {
	e, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return err
	}
	var body struct{ Error struct{ Message string } }
	if err := json.Unmarshal([]byte(e.RawJSON()), &body); err != nil {
		return err
	}
	s.Status, s.Message, s.Answer = e.StatusCode, body.Error.Message, e.Response.Header.Get("Ibid-Answer")
	return nil
}
