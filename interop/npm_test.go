package interop

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

// node is a running npm/ask.mjs.
type node struct {
	calls   *json.Encoder
	replies *json.Decoder
	log     *strings.Builder
}

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
	program := testenv.Tool(t, "node")
	n := &node{log: &strings.Builder{}}
	// Not t.Context: the program ends at the end of its input.
	cmd := exec.CommandContext(context.Background(), program, "ask.mjs")
	cmd.Dir = "npm"
	cmd.Stderr = n.log
	in := testenv.Must(cmd.StdinPipe())(t)
	out := testenv.Must(cmd.StdoutPipe())(t)
	testenv.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("node: %v", err)
		}
		if n.log.Len() > 0 {
			t.Logf("node's words:\n%s", n.log)
		}
	})
	n.calls, n.replies = json.NewEncoder(in), json.NewDecoder(out)
	return n
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
