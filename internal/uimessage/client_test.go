package uimessage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/uimessage"
)

// members are the chunks that version 5.0.0 of npm ai documents, and their members. It rejects all others.
func members() map[string][]string {
	return map[string][]string{
		"start":            {"messageId", "messageMetadata"},
		"start-step":       {},
		"text-start":       {"id!", "providerMetadata"},
		"text-delta":       {"id!", "delta!", "providerMetadata"},
		"text-end":         {"id!", "providerMetadata"},
		"reasoning-start":  {"id!", "providerMetadata"},
		"reasoning-delta":  {"id!", "delta!", "providerMetadata"},
		"reasoning-end":    {"id!", "providerMetadata"},
		"tool-input-start": {"toolCallId!", "toolName!", "providerExecuted", "dynamic"},
		"tool-input-delta": {"toolCallId!", "inputTextDelta!"},
		"tool-input-available": {
			"toolCallId!", "toolName!", "input!", "providerExecuted", "providerMetadata", "dynamic",
		},
		"tool-output-available": {"toolCallId!", "output!", "providerExecuted", "dynamic"},
		"tool-output-error":     {"toolCallId!", "errorText!", "providerExecuted", "dynamic"},
		"source-url":            {"sourceId!", "url!", "title", "providerMetadata"},
		"source-document":       {"sourceId!", "mediaType!", "title!", "filename", "providerMetadata"},
		"data-citations":        {"id", "data!", "transient"},
		"error":                 {"errorText!"},
		"abort":                 {},
		"finish-step":           {},
		"finish":                {"messageMetadata"},
	}
}

// client builds a message from a stream like the AI SDK, and is as strict as its strictest version.
type client struct {
	message uimessage.Message
	open    map[string]int // text and reasoning parts by id
	data    []uimessage.Part
	failed  string
	ended   bool // [DONE] was received
}

func (c *client) read(stream []byte) error {
	c.open = map[string]int{}
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if strings.HasPrefix(frame, ":") {
			continue
		}
		data, ok := strings.CutPrefix(frame, "data: ")
		switch {
		case !ok || strings.Contains(data, "\n"):
			return fmt.Errorf("no frame: %q", frame)
		case c.ended:
			return fmt.Errorf("behind the end: %q", frame)
		case data == "[DONE]":
			c.ended = true
			continue
		}
		if err := c.chunk(data); err != nil {
			return fmt.Errorf("%w in %.300s", err, data)
		}
	}
	return nil
}

func (c *client) chunk(data string) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &raw); err != nil {
		return err
	}
	var chunk struct {
		uimessage.Part
		MessageID, Delta, ToolName, InputTextDelta string
	}
	if err := json.Unmarshal([]byte(data), &chunk); err != nil {
		return err
	}
	known, ok := members()[chunk.Type]
	if !ok {
		return fmt.Errorf("no such chunk")
	}
	for name, value := range raw {
		if name != "type" && !slices.Contains(known, name) && !slices.Contains(known, name+"!") {
			return fmt.Errorf("no such member: %s", name)
		}
		if bytes.Equal(value, []byte("null")) {
			return fmt.Errorf("null: %s", name)
		}
	}
	for _, name := range known {
		if need, ok := strings.CutSuffix(name, "!"); ok && raw[need] == nil {
			return fmt.Errorf("no %s", need)
		}
	}
	for _, m := range chunk.ProviderMetadata {
		if m[0] != '{' {
			return fmt.Errorf("providerMetadata is no object of objects")
		}
	}
	if strings.HasPrefix(chunk.Type, "tool-") {
		return c.applyTool(&chunk.Part, chunk.ToolName)
	}
	return c.apply(chunk.Part, chunk.MessageID+chunk.Delta+chunk.ErrorText)
}

// applyTool applies a chunk of a call. Like the AI SDK, it replaces the streamed input with the final one.
func (c *client) applyTool(p *uimessage.Part, name string) error {
	m := &c.message
	at := slices.IndexFunc(m.Parts, func(other uimessage.Part) bool { return other.ToolCallID == p.ToolCallID })
	switch {
	case p.ToolCallID == "":
		return fmt.Errorf("the call has no id")
	case p.Type == "tool-input-start" && at >= 0:
		return fmt.Errorf("the call came before")
	case p.Type == "tool-input-start":
		m.Parts = append(m.Parts, uimessage.Part{
			Type: "tool-" + name, ToolCallID: p.ToolCallID, ProviderExecuted: p.ProviderExecuted, State: "input-streaming",
		})
		return nil
	case at < 0:
		return fmt.Errorf("the call was not begun")
	}
	tool := &m.Parts[at]
	switch p.Type {
	case "tool-input-available":
		if tool.State != "input-streaming" || tool.Type != "tool-"+name {
			return fmt.Errorf("it was %s of %s", tool.State, tool.Type)
		}
		tool.State, tool.Input = "input-available", p.Input
	case "tool-output-available":
		if tool.State != "input-available" {
			return fmt.Errorf("it was %s", tool.State)
		}
		tool.State, tool.Output = "output-available", p.Output
	case "tool-output-error":
		tool.State, tool.ErrorText = "output-error", p.ErrorText
	}
	return nil
}

func (c *client) apply(p uimessage.Part, words string) error {
	m := &c.message
	at, open := c.open[p.ID]
	switch p.Type {
	case "start":
		m.ID, m.Role = words, "assistant"
	case "start-step":
		m.Parts = append(m.Parts, uimessage.Part{Type: "step-start"})
	case "text-start", "reasoning-start":
		c.open[p.ID] = len(m.Parts)
		begun := uimessage.Part{Type: strings.TrimSuffix(p.Type, "-start")}
		if begun.Type == "reasoning" {
			begun.ID = p.ID
		}
		m.Parts = append(m.Parts, begun)
	case "text-delta", "text-end", "reasoning-delta", "reasoning-end":
		if !open {
			return fmt.Errorf("the part was not begun")
		}
		m.Parts[at].Text += words
		if strings.HasSuffix(p.Type, "-end") {
			m.Parts[at].State, m.Parts[at].ProviderMetadata = "done", p.ProviderMetadata
			delete(c.open, p.ID)
		}
	case "source-url", "source-document":
		if slices.ContainsFunc(m.Parts, func(other uimessage.Part) bool { return other.SourceID == p.SourceID }) {
			return fmt.Errorf("the source came before")
		}
		m.Parts = append(m.Parts, p)
	case "data-citations":
		c.data = append(c.data, p)
		if at := slices.IndexFunc(m.Parts, func(other uimessage.Part) bool { return other.Type == p.Type && other.ID == p.ID }); at >= 0 {
			m.Parts[at] = p
			break
		}
		m.Parts = append(m.Parts, p)
	case "error":
		c.failed = words
	case "finish":
		if len(c.open) > 0 {
			return fmt.Errorf("a text did not end")
		}
	}
	return nil
}

// citations is the data of data-citations.
type citations struct {
	Status    uimessage.Status
	AnswerID  string `json:"answer_id"`
	Unit      ibid.Unit
	Complete  bool
	Citations []ibid.DocumentCitation
}

func readCitations(p *uimessage.Part) (citations, error) {
	var c citations
	err := json.Unmarshal(p.Data, &c)
	return c, err
}
