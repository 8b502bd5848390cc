package mcp_test

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/store"
)

// Sources and passages have one form in all tools: texts, or objects with a text under any usual name. An error names
// the element.
func TestSourceForms(t *testing.T) {
	session := connect(t, mcp.New(nil), store.DefaultTenant, nil)
	for _, form := range []any{
		"Herons eat fish.",
		object{"text": "Herons eat fish.", "title": "Herons", "url": "https://heron.example/"},
		object{"page_content": "Herons eat fish.", "metadata": object{"source": "https://heron.example/"}},
		object{"node": object{"id_": "n1", "text": "Herons eat fish."}, "score": 0.5},
	} {
		for tool, args := range map[string]object{
			"attribute": {"answer": "Herons eat fish.", "sources": []any{form}},
			"check":     {"claim": "Herons eat fish.", "passages": []any{form}},
		} {
			res := testenv.Must(session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args}))(t)
			text := res.Content[0].(*sdk.TextContent).Text
			if res.IsError || tool == "check" && !strings.HasPrefix(text, "supported") || tool == "attribute" && !strings.Contains(text, "1") {
				t.Errorf("%s of %v: %s", tool, form, text)
			}
		}
	}
	res := testenv.Must(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "check", Arguments: object{"claim": "x", "passages": []any{"a", 5}}}))(t)
	if text := res.Content[0].(*sdk.TextContent).Text; !res.IsError || !strings.Contains(text, "passages: element 1") || !strings.Contains(text, `"text"`) {
		t.Errorf("%s", text)
	}
}
