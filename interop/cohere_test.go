package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/cohere-ai/cohere-go/v2/client"
	"github.com/cohere-ai/cohere-go/v2/core"
)

func askCohere(ctx context.Context, c *sdkCall) (*said, error) {
	headers, httpClient := withHeaders(c.client) // this SDK exposes no response headers
	if c.stream {
		httpClient.Transport = &oneByOne{next: httpClient.Transport}
	}
	co := client.NewClient(
		client.WithBaseURL(c.base+"/cohere"), client.WithToken(key), client.WithHTTPClient(httpClient), client.WithMaxAttempts(1))
	messages := cohere.ChatMessages{{Role: "user", User: &cohere.UserMessageV2{Content: &cohere.UserMessageV2Content{String: c.prompt}}}}
	tools := []*cohere.ToolV2{{
		Type:     new("function"),
		Function: &cohere.ToolV2Function{Name: tool, Parameters: map[string]any{"type": "object"}},
	}}
	got := &said{}
	var err error
	if c.stream {
		request := &cohere.V2ChatStreamRequest{Model: "command-a-03-2025", Messages: messages, Tools: tools}
		for _, d := range cohereDocuments(c) {
			request.Documents = append(request.Documents, &cohere.V2ChatStreamRequestDocumentsItem{Document: d})
		}
		var stream *core.Stream[cohere.V2ChatStreamResponse]
		if stream, err = co.V2.ChatStream(ctx, request); err == nil {
			err = got.readChatStream(stream)
		}
	} else {
		request := &cohere.V2ChatRequest{Model: "command-a-03-2025", Messages: messages, Tools: tools}
		for _, d := range cohereDocuments(c) {
			request.Documents = append(request.Documents, &cohere.V2ChatRequestDocumentsItem{Document: d})
		}
		var r *cohere.V2ChatResponse
		if r, err = co.V2.Chat(ctx, request); err == nil {
			got.readCohere(r)
		}
	}
	got.Answer = headers.answer
	if e, ok := errors.AsType[*core.APIError](err); ok {
		got.Status = e.StatusCode
		_, got.Message, _ = strings.Cut(e.Error(), `"message":`) // after an id that is new each time
		if _, typed := errors.AsType[*cohere.TooManyRequestsError](err); typed != (e.StatusCode == 429) {
			return nil, fmt.Errorf("status %d is a %T", e.StatusCode, err)
		}
		return got, nil
	}
	return got, err
}

// cohereDocuments returns the sources with the ids under which the upstream cites them.
func cohereDocuments(c *sdkCall) []*cohere.Document {
	var documents []*cohere.Document
	for i, s := range c.sources {
		documents = append(documents, &cohere.Document{
			Id:   new(fmt.Sprintf("doc:%d", i)),
			Data: map[string]any{"title": s.Title, "url": s.URL, "text": s.Quote},
		})
	}
	return documents
}

func (s *said) readCohere(r *cohere.V2ChatResponse) {
	s.ID, s.Finish = r.Id, string(r.FinishReason)
	for _, content := range r.Message.Content {
		s.Text += content.Text.GetText()
	}
	for _, c := range r.Message.Citations {
		s.Citations = append(s.Citations, asJSON(c))
	}
	for _, t := range r.Message.ToolCalls {
		s.Tools = append(s.Tools, *t.Function.Name+*t.Function.Arguments)
	}
}

func (s *said) readChatStream(stream *core.Stream[cohere.V2ChatStreamResponse]) error {
	defer stream.Close()
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch e.Type {
		case "message-start":
			s.ID = *e.MessageStart.Id
		case "content-delta":
			s.Text += *e.ContentDelta.Delta.Message.Content.Text
		case "citation-start":
			s.Citations = append(s.Citations, asJSON(e.CitationStart.Delta.Message.Citations))
		case "tool-call-start":
			s.Tools = append(s.Tools, *e.ToolCallStart.Delta.Message.ToolCalls.Function.Name)
		case "tool-call-delta":
			s.Tools[len(s.Tools)-1] += *e.ToolCallDelta.Delta.Message.ToolCalls.Function.Arguments
		case "message-end":
			s.Finish = string(*e.MessageEnd.Delta.FinishReason)
			if e.MessageEnd.Delta.Error != nil {
				s.Message = *e.MessageEnd.Delta.Error
			}
		}
	}
}

// oneByOne delivers the events of a stream the way this SDK needs them: it takes the result of one Read for a whole
// event, and the empty line after an event for another event (cohere-go issue 103), with or without a gateway.
type oneByOne struct{ next http.RoundTripper }

func (o *oneByOne) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := o.next.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusOK {
		res.Body = &events{ReadCloser: res.Body, lines: bufio.NewReader(res.Body)}
	}
	return res, err
}

// events is a body whose every Read returns one line of data.
type events struct {
	io.ReadCloser
	lines *bufio.Reader
}

func (e *events) Read(p []byte) (int, error) {
	for {
		line, err := e.lines.ReadString('\n')
		if strings.HasPrefix(line, "data: ") {
			if len(line) > len(p) {
				return 0, io.ErrShortBuffer
			}
			return copy(p, line), nil
		}
		if err != nil {
			return 0, err
		}
	}
}
