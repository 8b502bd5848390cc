package interop

import (
	"context"
	"errors"
	"testing"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

// node is a running npm/ask.mjs.
type node struct{ *program }

// testNPM makes the same calls with the SDKs for JavaScript.
func (w *world) testNPM(t *testing.T) {
	n := startNode(t)
	for _, s := range sdks() {
		name := s.name
		s.ask = func(_ context.Context, c *sdkCall) (*said, error) { return n.ask(name, c) }
		s.foreign = true
		t.Run(name, (&suite{w, s}).run)
	}
}

func startNode(t *testing.T) *node {
	t.Helper()
	testenv.NodeModules(t, "interop/npm")
	return &node{startProgram(t, "npm", testenv.Tool(t, "node"), "ask.mjs")}
}

// ask makes node make a call.
func (n *node) ask(api string, c *sdkCall) (*said, error) {
	err := n.calls.Encode(map[string]any{
		"api": api, "base": c.base, "key": key, "prompt": c.prompt, "stream": c.stream, "sources": append([]replay.Source{}, c.sources...),
	})
	if err != nil {
		return nil, err
	}
	var reply struct {
		said
		Failure string // an error that does not come from the SDK
	}
	if err := n.replies.Decode(&reply); err != nil {
		return nil, err
	}
	if reply.Failure != "" {
		return nil, errors.New(reply.Failure)
	}
	return &reply.said, nil
}
