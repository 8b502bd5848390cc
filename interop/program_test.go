package interop

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// program is a running program that answers each JSON value on its standard input with one on its standard output.
type program struct {
	calls   *json.Encoder
	replies *json.Decoder
	log     *strings.Builder // its standard error
}

// startProgram starts a program in a directory, which is this one if it is empty. The program ends with the test and
// must then exit with 0.
func startProgram(t *testing.T, dir, name, script string, args ...string) *program {
	t.Helper()
	p := &program{log: &strings.Builder{}}
	// Not t.Context: the program ends at the end of its input.
	cmd := exec.CommandContext(context.Background(), name, append([]string{script}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = p.log
	in := testenv.Must(cmd.StdinPipe())(t)
	out := testenv.Must(cmd.StdoutPipe())(t)
	testenv.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if p.log.Len() > 0 {
			t.Logf("%s wrote:\n%s", script, p.log)
		}
	})
	p.calls, p.replies = json.NewEncoder(in), json.NewDecoder(out)
	return p
}
