package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ibidhq/ibid/internal/scan"
)

// readMessage reads one message of a client, or returns why it is invalid. It also returns the message as the SDK is to
// read it: with stand-ins for the ids of the client, because the SDK reads numbers as floating-point numbers and would
// answer 9007199254740993 as 9007199254740992. They become what the client sent when [restore] writes the answer.
func readMessage(text []byte) (msg jsonrpc.Message, replaced []byte, _ *jsonrpc.Error) {
	invalid := func(why string) (jsonrpc.Message, []byte, *jsonrpc.Error) {
		return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why}
	}
	if !json.Valid(text) {
		return nil, nil, &jsonrpc.Error{
			Code: jsonrpc.CodeParseError, Message: "not JSON: a message is one object, with nothing after it",
		}
	}
	if text[0] == '[' {
		return invalid("batches are not supported; send messages one by one")
	}
	const foreign = "not a JSON-RPC message: "
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return invalid(foreign + "it is not an object")
	}
	n := 0
	for m := scan.Members(text); m.Next(); n++ {
	}
	if n != len(members) {
		return invalid(foreign + "a member appears twice")
	}
	if !utf8.Valid(members["id"]) {
		return invalid(foreign + "its id is not UTF-8")
	}
	standIn(members, "id")
	if params := members["params"]; bytes.Contains(params, []byte(`"progressToken"`)) {
		within(members, "params", func(params map[string]json.RawMessage) {
			within(params, "_meta", func(meta map[string]json.RawMessage) { standIn(meta, "progressToken") })
		})
	}
	if string(members["method"]) == `"notifications/cancelled"` {
		within(members, "params", func(params map[string]json.RawMessage) { standIn(params, "requestId") })
	}
	replaced, err := json.Marshal(members)
	if err != nil {
		return invalid(foreign + cut(err.Error()))
	}
	if msg, err = jsonrpc.DecodeMessage(replaced); err != nil {
		return invalid(foreign + cut(err.Error()))
	}
	if response, ok := msg.(*jsonrpc.Response); ok && response.Result == nil && response.Error == nil {
		return invalid(foreign + "it has neither a method nor a result")
	}
	return msg, replaced, nil
}

// within changes the object that is a member of an object.
func within(object map[string]json.RawMessage, name string, change func(map[string]json.RawMessage)) {
	var inner map[string]json.RawMessage
	if json.Unmarshal(object[name], &inner) != nil || inner == nil {
		return
	}
	change(inner)
	if b, err := json.Marshal(inner); err == nil {
		object[name] = b
	}
}

// standInPrefix begins the string that stands for an id; the id as sent follows in base64.
const standInPrefix = "id-as-sent:"

// standIn replaces an id, if it is a string or a number.
func standIn(object map[string]json.RawMessage, name string) {
	if id := object[name]; len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		object[name] = fmt.Appendf(nil, `"%s%s"`, standInPrefix, base64.RawURLEncoding.EncodeToString(id))
	}
}

// restore returns a message of the SDK, or an event with one, with the client's id in place of its stand-in. Only the
// first id is one: a result that repeats a stand-in is left alone.
func restore(out []byte) []byte {
	for _, name := range []string{"id", "progressToken"} {
		before, rest, found := bytes.Cut(out, []byte(`"`+name+`":"`+standInPrefix))
		if !found {
			continue
		}
		encoded, after, _ := bytes.Cut(rest, []byte(`"`))
		id, err := base64.RawURLEncoding.AppendDecode(nil, encoded)
		if err != nil {
			return out
		}
		return bytes.Join([][]byte{before, []byte(`"` + name + `":`), id, after}, nil)
	}
	return out
}
