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
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxText limits the text of a result in bytes: a model needs the beginning. The structured content has what it
	// leaves out.
	maxText = 2000
	// maxRepeated limits the characters of client input that are repeated in a response.
	maxRepeated = 200
)

//go:embed tools/*.json
var toolFiles embed.FS

// tool is one of the tools.
type tool struct {
	name  string
	scope string // required to call it
	open  bool   // it connects to other machines
	do    func(ctx context.Context, c *call) (*result, error)
}

// call is one call of a tool.
type call struct {
	tenant   string
	args     json.RawMessage
	progress func(message string) // reports progress to the client if requested; never nil
}

// result is the result of a call.
type result struct {
	text       string // short, for a model
	structured any    // by the tool's schema
}

// tools returns the available tools.
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
			tool{name: "find_runs", scope: store.ScopeRead, do: withArgs(m.findRuns)},
			tool{name: "find_answers", scope: store.ScopeRead, do: withArgs(m.findAnswers)},
		)
	}
	return all
}

// describe returns the description of a tool for clients.
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

// onlyTools refuses to keep a call open for changes, as there are none.
func onlyTools(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if method == "subscriptions/listen" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the tools never change"}
		}
		return next(ctx, method, req)
	}
}

// handle returns the handler of a tool.
func (m *MCP) handle(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (out *sdk.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				m.logger.LogAttrs(
					ctx, slog.LevelError, "a tool panicked", slog.String("tool", t.name), slog.Any("panic", p),
					slog.String("stack", string(debug.Stack())),
				)
				out = failed(&gateway.Problem{Detail: "internal error in ibid", Hint: "its log has the details"})
			}
		}()
		by, ok := ctx.Value(callerKey{}).(*caller)
		if !ok {
			return nil, errors.New("the caller is unknown")
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		defer context.AfterFunc(by.done, cancel)() //nolint:contextcheck // the end of the caller ends the call
		done, err := m.run(ctx, t, by, req)
		if err != nil {
			return failed(m.problem(ctx, t, err)), nil
		}
		words := shorten(done.text, "… cut here: the structured content has the rest")
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

// shorten cuts a text to maxText bytes, at a line if possible, and adds what to do for the rest.
func shorten(words, rest string) string {
	if len(words) <= maxText {
		return words
	}
	head := text.Head(words, maxText-len(rest)-1)
	if end := strings.LastIndexByte(head, '\n'); end > maxText/2 {
		head = head[:end]
	}
	return head + "\n" + rest
}

// run runs a tool if its caller is allowed to.
func (m *MCP) run(ctx context.Context, t *tool, by *caller, req *sdk.CallToolRequest) (*result, error) {
	if !by.who.May(t.scope) {
		return nil, refuse(
			fmt.Sprintf("the access token lacks the scope %s, which the tool %s needs", t.scope, t.name),
			"`ibid token new` creates one that has it",
		)
	}
	if err := m.calls.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for other calls: %w", err)
	}
	defer m.calls.Release(1)
	if err := ctx.Err(); err != nil { // it ended while the call waited
		return nil, fmt.Errorf("wait for other calls: %w", err)
	}
	c := &call{tenant: by.who.Tenant, args: req.Params.Arguments, progress: progressOf(ctx, req)}
	ctx, release := httpx.WithWorkTime(ctx)
	defer release()
	done, err := t.do(ctx, c)
	if ctx.Err() != nil { // what it left may be incomplete
		return nil, httpx.WorkError(ctx, err)
	}
	return done, err
}

// progressOf returns the function that reports the progress of a call to its client. It is safe for concurrent use.
func progressOf(ctx context.Context, req *sdk.CallToolRequest) func(string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var done atomic.Int64
	return func(message string) {
		// If this fails, the client has disconnected, which ends ctx, or does not read.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(done.Add(1)), Message: message,
		})
	}
}

// refuse returns an error with the reason why a call is refused, and a hint.
func refuse(detail, hint string) error { return &gateway.Problem{Detail: detail, Hint: hint} }

// problem returns the form of an error that clients see.
func (m *MCP) problem(ctx context.Context, t *tool, err error) *gateway.Problem {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &gateway.Problem{
			Detail: fmt.Sprintf("the call took longer than %v", callTime),
			Hint:   "request less at a time, or try again",
		}
	case ctx.Err() != nil:
		return &gateway.Problem{Detail: "the client cancelled the call"}
	}
	if gateway.IsInternal(err) || gateway.ProblemOf(err).Status == http.StatusServiceUnavailable {
		m.logger.LogAttrs(ctx, slog.LevelError, "a tool failed", slog.String("tool", t.name), slog.Any("error", err))
	}
	return gateway.ProblemOf(err)
}

// failed returns the result of a failed call.
func failed(p *gateway.Problem) *sdk.CallToolResult {
	said := p.Error()
	if p.Hint != "" {
		said += "\nhint: " + p.Hint
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: said}}}
}

// cut shortens text of a client or a document to maxRepeated characters on one line.
func cut(s string) string { return text.Line(s, maxRepeated) }

// count formats a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// named returns the display name of a source: its title, else its URL, else its id.
func named(title, url, id string) string { return cut(cmp.Or(title, url, id)) }

// withArgs adapts a tool to the arguments that it accepts.
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

// readArgs reads the arguments of a call. Unknown ones are errors, so that a misspelt limit is not ignored.
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
	hint := "the tool's input schema lists its arguments"
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if kind.Field == "" {
			return refuse("the arguments must be a JSON object, not a JSON "+kind.Value, hint)
		}
		const format = "%s: must be %s, not a JSON %s"
		return refuse(fmt.Sprintf(format, cut(kind.Field), wanted(kind.Type), cut(kind.Value)), hint)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return refuse("unknown argument "+cut(name), hint)
	}
	what := cmp.Or(argumentOf(raw, into, err), "the arguments cannot be read")
	return refuse(what+": "+cut(strings.TrimPrefix(err.Error(), "json: ")), hint)
}

// wanted returns what values of a type are in JSON.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int:
		return "a whole number"
	default:
		return "a number"
	}
}

// argumentOf returns the argument that alone leads to an error, or "" if none does.
func argumentOf(raw json.RawMessage, into any, err error) string {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		return ""
	}
	for name := range args {
		one, failed := json.Marshal(map[string]json.RawMessage{name: args[name]})
		if failed != nil {
			return ""
		}
		alone := json.Unmarshal(one, reflect.New(reflect.TypeOf(into).Elem()).Interface())
		if alone != nil && alone.Error() == err.Error() {
			return cut(name)
		}
	}
	return ""
}

// textArg is an argument that is text, or an object whose JSON is the text, as models send either.
type textArg string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textArg) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*t = textArg(data)
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// choice returns the chosen word, which must be one of words; the first if it is empty.
func choice[T ~string](name, said string, words []T) (T, error) {
	if said == "" {
		return words[0], nil
	}
	if i := slices.Index(words, T(said)); i >= 0 {
		return words[i], nil
	}
	return "", refuse(fmt.Sprintf("%s: unknown value %q", name, cut(said)),
		"use one of "+strings.Join(text.Strings(words), ", "))
}

// number returns an optional whole number, which must be within the bounds; def if it is missing.
func number(name string, said *int, def, least, most int) (int, error) {
	if said == nil {
		return def, nil
	}
	if *said < least || *said > most {
		return 0, refuse(
			fmt.Sprintf("%s: %d is not a whole number from %d to %d", name, *said, least, most),
			fmt.Sprintf("the default is %d", def),
		)
	}
	return *said, nil
}

// share returns an optional threshold; def if it is missing.
func share(name string, said *float64, def float64) (float64, error) {
	if said == nil {
		return def, nil
	}
	if !(*said > 0 && *said <= 1) {
		return 0, refuse(
			fmt.Sprintf("%s: %v is not a number above 0 and up to 1", name, *said),
			fmt.Sprintf("the default is %v", def),
		)
	}
	return *said, nil
}

// shown are the arguments for showing an answer.
type shown struct {
	Style    string `json:"style"`
	Unit     string `json:"unit"`
	Document bool   `json:"document"` // requests the answer document
}

// showing is shown, validated.
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
	return &showing{style, unit, s.Document}, err
}

// documentOf returns the answer document without cited_text, which is next to it in the result; nil if it is not
// requested.
func (s *showing) documentOf(ctx context.Context, a *ibid.Answer, id string) *ibid.Document {
	if !s.document {
		return nil
	}
	return a.Document(&ibid.DocumentOptions{Unit: s.unit, Style: s.style, Bare: true, AnswerID: id, Context: ctx})
}
