package packaging

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// install.sh installs the program of a release if its hash is right, and otherwise leaves everything as it was.
func TestInstall(t *testing.T) {
	sh, curl := testenv.Tool(t, "sh"), testenv.Tool(t, "curl")
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for Linux and macOS")
	}
	name := "ibid_v9.9.9_" + runtime.GOOS + "_" + runtime.GOARCH
	program := []byte("#!/bin/sh\necho this is ibid\n")
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	testenv.OK(t, w.WriteHeader(&tar.Header{Name: name + "/ibid", Mode: 0o755, Size: int64(len(program))}))
	testenv.Must(w.Write(program))(t)
	testenv.OK(t, w.Close())
	testenv.OK(t, z.Close())
	sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	script := strings.Replace(read(t, "scripts", "install.sh"), "@VERSION@", "v9.9.9", 1)
	for _, test := range []struct{ name, sums, says string }{
		{"right", sum + "  ./" + name + ".tar.gz\n", "installed ibid v9.9.9"},
		{"other names", strings.Repeat("0", 64) + "  ./x" + name + ".tar.gz\n" + sum + "  " + name + ".tar.gz\n", "installed ibid v9.9.9"},
		{"wrong hash", strings.Repeat("0", 64) + "  ./" + name + ".tar.gz\n", "nothing was installed"},
		{"not listed", sum + "  ./" + name + ".tar.gz.sig\n", "does not list"},
		{"no list", "", "SHA256SUMS cannot be fetched"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/SHA256SUMS" && test.sums != "":
					fmt.Fprint(w, test.sums)
				case r.URL.Path == "/"+name+".tar.gz":
					_, _ = w.Write(archive.Bytes())
				default:
					http.NotFound(w, r)
				}
			}))
			defer files.Close()
			bin := filepath.Join(t.TempDir(), "new", "bin")
			cmd := exec.CommandContext(t.Context(), sh)
			cmd.Stdin = strings.NewReader(script)
			cmd.Env = []string{
				"PATH=" + filepath.Dir(curl) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "IBID_URL=" + files.URL, "IBID_BIN=" + bin,
			}
			said, err := cmd.CombinedOutput()
			right := strings.HasPrefix(test.says, "installed")
			if (err == nil) != right || !strings.Contains(string(said), test.says) {
				t.Fatalf("%v, %s", err, said)
			}
			got, err := os.ReadFile(filepath.Join(bin, "ibid"))
			if right != (err == nil && bytes.Equal(got, program)) || !right && err == nil {
				t.Errorf("installed %q, %v", got, err)
			}
		})
	}
}
