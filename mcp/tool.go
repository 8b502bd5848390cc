package mcp

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxText is how many bytes the text of a result has. Its structured content has the rest.
	maxText = 64 << 10
	// maxRepeated is how many characters of what a client sent are repeated to it.
	maxRepeated = 200
)

//go:embed tools/*.json
var toolFiles embed.FS

// tool is one of the tools.
type tool struct {
	name  string
	scope string // what a token needs to call it
	open  bool   // it reaches out into the world
	do    func(ctx context.Context, c *call) (*result, error)
}

// call is one call of a tool.
type call struct {
	tenant   string
	args     json.RawMessage
	progress func(message string) // tells the client that something was done, if it wants to know; never nil
}

// result is what came of a call.
type result struct {
	text       string // short, for a model
	structured any    // as the tool's schema says
}

// tools returns the tools that are offered.
func (m *MCP) tools() []tool {
	all := []tool{
		{name: "cite", scope: store.ScopeRead, do: withArgs(m.cite)},
		{name: "attribute", scope: store.ScopeRead, do: withArgs(m.attribute)},
		{name: "check", scope: store.ScopeRead, do: withArgs(m.check)},
	}
	if m.verifies != nil {
		all = append(all, tool{name: "verify", scope: store.ScopeVerify, open: true, do: withArgs(m.verify)})
	}
	if m.store != nil {
		all = append(all,
			tool{name: "run_sources", scope: store.ScopeRead, do: withArgs(m.runSources)},
			tool{name: "find_answers", scope: store.ScopeRead, do: withArgs(m.findAnswers)},
		)
	}
	return all
}

// describe returns what clients are told of a tool.
func (t *tool) describe() *sdk.Tool {
	var about struct {
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema"`
	}
	raw, err := toolFiles.ReadFile("tools/" + t.name + ".json")
	if err == nil {
		err = json.Unmarshal(raw, &about)
	}
	if err != nil {
		panic(fmt.Sprintf("mcp: the description of the tool %s: %v", t.name, err)) // it is part of the program
	}
	return &sdk.Tool{
		Name:         t.name,
		Title:        about.Title,
		Description:  about.Description,
		InputSchema:  about.Input,
		OutputSchema: about.Output,
		Annotations: &sdk.ToolAnnotations{
			Title:           about.Title,
			ReadOnlyHint:    true,
			IdempotentHint:  true,
			DestructiveHint: new(false),
			OpenWorldHint:   &t.open,
		},
	}
}

// onlyTools refuses to keep a call open for news: there never are any.
func onlyTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "subscriptions/listen" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the tools never change"}
		}
		return next(ctx, method, req)
	}
}

// handle returns what answers calls of a tool.
func (m *MCP) handle(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (out *sdk.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				m.logger.LogAttrs(
					ctx, slog.LevelError, "a tool panicked", slog.String("tool", t.name), slog.Any("panic", p),
					slog.String("stack", string(debug.Stack())),
				)
				out = failed(&gateway.Problem{Detail: "something went wrong inside ibid", Hint: "its log says what"})
			}
		}()
		by, ok := ctx.Value(callerKey{}).(*caller)
		if !ok {
			return nil, errors.New("nobody knows who calls")
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		defer context.AfterFunc(by.done, cancel)() //nolint:contextcheck // the end of the caller ends the call
		done, err := m.run(ctx, t, by, req)
		if err != nil {
			return failed(m.problem(ctx, t, err)), nil
		}
		words := text.Head(done.text, maxText)
		if words != done.text {
			words += "…\n(cut here; the structured content has all of it)"
		}
		structured, err := json.Marshal(done.structured)
		if err != nil {
			return failed(m.problem(ctx, t, err)), nil
		}
		return &sdk.CallToolResult{
			Content:           []sdk.Content{&sdk.TextContent{Text: words}},
			StructuredContent: json.RawMessage(structured),
		}, nil
	}
}

// run does what a call asks for, if its caller may.
func (m *MCP) run(ctx context.Context, t *tool, by *caller, req *sdk.CallToolRequest) (*result, error) {
	if !by.who.May(t.scope) {
		return nil, refuse(
			fmt.Sprintf("the access token lacks the scope %s, which the tool %s needs", t.scope, t.name),
			"`ibid token new` makes one that has it",
		)
	}
	if err := m.calls.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other calls: %w", err)
	}
	defer m.calls.Release(1)
	if err := ctx.Err(); err != nil { // it ended while the call waited
		return nil, fmt.Errorf("wait for other calls: %w", err)
	}
	return t.do(ctx, &call{tenant: by.who.Tenant, args: req.Params.Arguments, progress: progressOf(ctx, req)})
}

// progressOf returns what tells a client how far a call is. Its functions are called one at a time or at once.
func progressOf(ctx context.Context, req *sdk.CallToolRequest) func(string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var done atomic.Int64
	return func(message string) {
		// A client that cannot be told has hung up, which ends ctx, or reads no more.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(done.Add(1)), Message: message,
		})
	}
}

// refuse returns an error that says what was wrong with a call, and what to do about it.
func refuse(detail, hint string) error { return &gateway.Problem{Detail: detail, Hint: hint} }

// problem is what a client is told of an error.
func (m *MCP) problem(ctx context.Context, t *tool, err error) *gateway.Problem {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &gateway.Problem{
			Detail: fmt.Sprintf("the call took longer than %v", callTime),
			Hint:   "ask for less at a time, or try again",
		}
	case ctx.Err() != nil:
		return &gateway.Problem{Detail: "the call was given up by its client"}
	}
	if gateway.IsInternal(err) {
		m.logger.LogAttrs(ctx, slog.LevelError, "a tool failed", slog.String("tool", t.name), slog.Any("error", err))
	}
	return gateway.ProblemOf(err)
}

// failed is the result of a call that could not be done.
func failed(p *gateway.Problem) *sdk.CallToolResult {
	said := p.Error()
	if p.Hint != "" {
		said += "\nhint: " + p.Hint
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: said}}}
}

// cut shortens what a client or a document said to maxRepeated characters, on one line.
func cut(s string) string { return text.Line(s, maxRepeated) }

// count writes a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// named returns what a source is called: its title, else its address, else its id.
func named(title, url, id string) string { return cut(cmp.Or(title, url, id)) }

// withArgs returns what calls a tool with the arguments that it takes.
func withArgs[A any](
	do func(ctx context.Context, c *call, args *A) (*result, error),
) func(context.Context, *call) (*result, error) {
	return func(ctx context.Context, c *call) (*result, error) {
		args := new(A)
		if err := readArgs(c.args, args); err != nil {
			return nil, err
		}
		return do(ctx, c, args)
	}
}

// readArgs reads the arguments of a call. One that the tool does not have is an error: who misspells a limit must not
// do without it.
func readArgs(raw json.RawMessage, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); errors.Is(end, io.EOF) {
			return nil
		}
		err = errors.New("there is more than one value")
	}
	hint := "the tool's input schema says what it takes"
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if kind.Field == "" {
			return refuse("the arguments must be a JSON object, and not a JSON "+kind.Value, hint)
		}
		return refuse(fmt.Sprintf("%s: it must not be a JSON %s", cut(kind.Field), cut(kind.Value)), hint)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return refuse("there is no argument "+cut(name), hint)
	}
	return refuse("the arguments cannot be read: "+cut(strings.TrimPrefix(err.Error(), "json: ")), hint)
}

// textArg is an argument that is text, or an object whose JSON is the text: models send either.
type textArg string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textArg) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*t = textArg(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// choice returns the word that was chosen, which must be one of words; the first if none was.
func choice[T ~string](name, said string, words []T) (T, error) {
	if said == "" {
		return words[0], nil
	}
	if i := slices.Index(words, T(said)); i >= 0 {
		return words[i], nil
	}
	return "", refuse(fmt.Sprintf("%s: there is no %q", name, cut(said)),
		"it is one of "+strings.Join(text.Strings(words), ", "))
}

// number returns a whole number that was said, which must lie within bounds; def if it was not.
func number(name string, said *int, def, least, most int) (int, error) {
	if said == nil {
		return def, nil
	}
	if *said < least || *said > most {
		return 0, refuse(
			fmt.Sprintf("%s: %d is not a whole number from %d to %d", name, *said, least, most),
			fmt.Sprintf("without it, it is %d", def),
		)
	}
	return *said, nil
}

// share returns a threshold that was said; def if it was not.
func share(name string, said *float64, def float64) (float64, error) {
	if said == nil {
		return def, nil
	}
	if !(*said > 0 && *said <= 1) {
		return 0, refuse(
			fmt.Sprintf("%s: %v is not a number above 0 and up to 1", name, *said),
			fmt.Sprintf("without it, it is %v", def),
		)
	}
	return *said, nil
}

// shown says how an answer is to be shown.
type shown struct {
	Style string `json:"style"`
	Unit  string `json:"unit"`
	// Document says whether the answer document is wanted; nil: it is.
	Document *bool `json:"document"`
}

// showing is shown, checked.
type showing struct {
	style    ibid.Style
	unit     ibid.Unit
	document bool
}

func (s *shown) check() (*showing, error) {
	style, err := choice("style", s.Style, ibid.Styles())
	if err != nil {
		return nil, err
	}
	unit, err := choice("unit", s.Unit, ibid.Units())
	return &showing{style, unit, s.Document == nil || *s.Document}, err
}

// documentOf returns the answer document, without cited_text, which stands beside it; nil: it is not wanted.
func (s *showing) documentOf(a *ibid.Answer, id string) *ibid.Document {
	if !s.document {
		return nil
	}
	return a.Document(&ibid.DocumentOptions{Unit: s.unit, Style: s.style, Bare: true, AnswerID: id})
}
