package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// web/ibid.d.ts is what openapi-typescript makes of the description of the API, and a page's program checks by it.
// IBID_UPDATE=1 writes it anew.
func TestTypes(t *testing.T) {
	node := webProgram(t)
	made := filepath.Join(t.TempDir(), "ibid.d.ts")
	if os.Getenv("IBID_UPDATE") != "" {
		made = "ibid.d.ts"
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = "web"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args[0], err, out)
		}
	}
	const modules = "node_modules"
	run(filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), filepath.Join("..", "..", "api", "openapi.json"),
		"-o", made)
	if os.Getenv("IBID_UPDATE") == "" {
		want := testenv.Must(os.ReadFile(made))(t)
		if is, err := os.ReadFile(filepath.Join("web", "ibid.d.ts")); err != nil || string(is) != string(want) {
			t.Errorf("web/ibid.d.ts is out of date: IBID_UPDATE=1 go -C interop test -run TestTypes . (%v)", err)
		}
	}
	run(filepath.Join(modules, "typescript", "bin", "tsc"), "--noEmit", "--strict", "--noUncheckedIndexedAccess",
		"--target", "es2022", "--lib", "es2023,dom,dom.iterable", "--moduleResolution", "bundler", "--module", "esnext",
		"types_page.ts")
}
