package interop

import (
	"context"
	"errors"

	"google.golang.org/genai"
)

func askGemini(ctx context.Context, c *sdkCall) (*said, error) {
	headers, httpClient := withHeaders(c.client)
	once := int32(1)
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: key, HTTPClient: httpClient,
		HTTPOptions: genai.HTTPOptions{BaseURL: c.base + "/gemini", RetryOptions: &genai.HTTPRetryOptions{Attempts: &once}},
	})
	if err != nil {
		return nil, err
	}
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{
		{GoogleSearch: &genai.GoogleSearch{}},
		{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: tool, Description: "Counts nests."}}},
	}}
	got := &said{}
	if c.stream {
		for r, err := range client.Models.GenerateContentStream(ctx, "gemini-3-flash", genai.Text(c.prompt), config) {
			if err != nil {
				return got, got.failGemini(err, headers)
			}
			got.readGemini(r)
		}
		return got, nil
	}
	r, err := client.Models.GenerateContent(ctx, "gemini-3-flash", genai.Text(c.prompt), config)
	if err != nil {
		return got, got.failGemini(err, headers)
	}
	got.readGemini(r)
	return got, nil
}

// readGemini adds a response, or the next one of a stream.
func (s *said) readGemini(r *genai.GenerateContentResponse) {
	s.Answer = r.SDKHTTPResponse.Headers.Get("Ibid-Answer")
	s.ID = r.ResponseID
	for _, candidate := range r.Candidates {
		for _, part := range candidate.Content.Parts {
			s.Text += part.Text
			if f := part.FunctionCall; f != nil {
				s.Tools = append(s.Tools, f.Name+asJSON(f.Args))
			}
		}
		if candidate.FinishReason != "" {
			s.Finish = string(candidate.FinishReason)
		}
		if g := candidate.GroundingMetadata; g != nil {
			for _, chunk := range g.GroundingChunks {
				if chunk.RetrievedContext != nil {
					chunk.RetrievedContext.FileSearchStore = "" // another one each time
				}
			}
			s.Citations = append(s.Citations, asJSON(g))
		}
	}
}

func (s *said) failGemini(err error, headers *headers) error {
	e, ok := errors.AsType[genai.APIError](err)
	if !ok {
		return err
	}
	s.Status, s.Message, s.Answer = e.Code, e.Message, headers.answer
	return nil
}
