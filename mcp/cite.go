package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ibidhq/ibid"
)

// citeArgs are the arguments of cite.
type citeArgs struct {
	shown

	Response  text            `json:"response"`
	Request   text            `json:"request"`
	Documents json.RawMessage `json:"documents"`
	Format    string          `json:"format"`
}

// cited is what cite gives back.
type cited struct {
	CitedText string         `json:"cited_text"`
	Complete  bool           `json:"complete"`
	Citations int            `json:"citations"`
	Sources   int            `json:"sources"`
	Issues    []ibid.Issue   `json:"issues"`
	Error     *citedError    `json:"error"`
	Document  *ibid.Document `json:"document"`
}

type citedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// cite reads a provider's response.
func (m *MCP) cite(_ context.Context, c *call) (*result, error) {
	var args citeArgs
	if err := readArgs(c.args, &args); err != nil {
		return nil, err
	}
	show, err := args.check()
	if err != nil {
		return nil, err
	}
	opts := ibid.DecodeOptions{Request: []byte(args.Request)}
	if args.Format != "" {
		if opts.Format, err = choice("format", args.Format, ibid.Formats()); err != nil {
			return nil, err
		}
	}
	if raw := bytes.TrimSpace(args.Documents); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if opts.Documents, err = ibid.ReadDocuments(raw); err != nil {
			return nil, refuse(
				"documents: "+err.Error(),
				`they are an array of strings, flat objects or {"id", "data"}, in the order in which the model was given them`,
			)
		}
	}
	answer, err := ibid.Decode([]byte(args.Response), &opts)
	if err := judge(answer, err, opts.Format); err != nil {
		return nil, err
	}
	out := &cited{
		CitedText: answer.Render(
			&ibid.RenderOptions{Style: show.style},
		),
		Complete:  answer.Complete,
		Citations: len(answer.Citations),
		Sources:   len(answer.Sources),
		Issues:    append([]ibid.Issue{}, answer.Issues...),
		Document:  show.documentOf(answer, ""),
	}
	if answer.Error != nil {
		out.Error = &citedError{answer.Error.Code, answer.Error.Message}
	}
	return &result{citedText(answer, show), out}, nil
}

// judge says why nothing can be shown. What merely breaks off can.
func judge(a *ibid.Answer, err error, format string) error {
	blank := a.ID == "" && a.Text == "" && len(a.Sources) == 0 && len(a.ToolCalls) == 0 && a.Finish == "" &&
		a.Error == nil
	switch {
	case errors.Is(err, ibid.ErrEmpty):
		return refuse(
			"response: it is missing or empty",
			"it is a provider's response as it came: the JSON body, or the recorded stream",
		)
	case errors.Is(err, ibid.ErrBinary):
		return refuse("response: it is not JSON, an event stream or text", "if it was compressed, unpack it")
	case err != nil && blank:
		return refuse("response: "+cut(err.Error()), "nothing of it could be read")
	case blank && format != "" && format != ibid.Generic:
		return refuse("response: nothing in it is of the format "+format, "without format it is recognised")
	}
	return nil
}

// citedText shows an answer to a model: its text with the list of its sources, and what is odd about it.
func citedText(a *ibid.Answer, show *showing) string {
	var b strings.Builder
	if a.Error != nil {
		b.WriteString("The provider answered with an error: " + cut(a.Error.Error()) + "\n\n")
	}
	b.WriteString(strings.TrimRight(a.Render(&ibid.RenderOptions{Style: show.style, List: true}), "\n"))
	if !a.Complete && a.Format != ibid.Generic {
		b.WriteString("\n\nThe response breaks off: this is what could be read.")
	}
	if n := len(a.Issues); n > 0 {
		b.WriteString("\n\n" + count(n, "issue") + "; the structured content lists them.")
	}
	return b.String()
}
