package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/ibidhq/ibid/internal/passage"
)

// sourceArgs are texts that a model gives a tool, in one form for all tools: strings, or objects with a text and what
// it is called, under any of the names that searches and retrievers use.
type sourceArgs []sourceArg

type sourceArg struct{ ID, Title, URL, Text string }

// UnmarshalJSON implements [json.Unmarshaler]. Its errors name the element and the form that it should have.
func (list *sourceArgs) UnmarshalJSON(data []byte) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(data, &elements); err != nil {
		return err //nolint:wrapcheck // encoding/json adds the name of the member
	}
	*list = make(sourceArgs, len(elements))
	for i, raw := range elements {
		of := &(*list)[i]
		switch raw[0] {
		case '"':
			if err := json.Unmarshal(raw, &of.Text); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		case '{':
			p, _ := passage.ReadObject(raw)
			*of = sourceArg{p.ID, p.Title, p.URL, p.Text}
		default:
			return fmt.Errorf("element %d must not be a JSON %s: want %s", i, jsonKind(raw), sourceForm)
		}
	}
	return nil
}

func jsonKind(raw json.RawMessage) string {
	switch raw[0] {
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

const sourceForm = `a string, or an object {"text", "title", "url", "id"}`
