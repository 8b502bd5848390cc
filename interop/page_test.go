package interop

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

var (
	images = flag.Bool("images", false, "take the pictures of docs/images anew")
	shots  = flag.String("shots", "", "directory for pictures of every page, to look at")
)

// What people see, in a real browser: every kind of page, at the widths of a laptop and a phone.
func TestPage(t *testing.T) {
	webProgram(t)
	testenv.Tool(t, "chromium")
	program := pageProgram(t)
	w := servePages(t, program)
	w.fill(t)
	w.Demo = startDemo(t, program)
	w.picture(t)
	for _, script := range []string{"all"} {
		t.Run(script, func(t *testing.T) { w.script(t, script) })
	}
}

// picture has pictures taken where the flags of the test say so.
func (w *pageWorld) picture(t *testing.T) {
	t.Helper()
	var err error
	if *images {
		if w.Images, err = filepath.Abs(filepath.Join("..", "docs", "images")); err == nil {
			err = os.MkdirAll(w.Images, 0o755)
		}
	}
	if err == nil && *shots != "" {
		w.Shots = *shots
		err = os.MkdirAll(w.Shots, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// script runs web/page_NAME.mjs over the world, which prints what it finds.
func (w *pageWorld) script(t *testing.T, name string) {
	t.Helper()
	told, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), webProgram(t), "page_"+name+".mjs", testenv.Tool(t, "chromium"), string(told))
	cmd.Dir = "web"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
		return
	}
	t.Logf("%s", out)
}
