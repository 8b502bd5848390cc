package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The words of IBID_REQUIRE.
const (
	Tools       = "tools"  // every program that [Tool] is asked for, [Python] and [NodeModules]
	SharedFiles = "shared" // the directory that [Shared] returns
)

// Root returns the directory of the module that the test belongs to, the one with go.mod.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("finding the module: %v", err)
	}
	root, err := rootAbove(dir)
	if err != nil {
		tb.Fatalf("finding the module: %v", err)
	}
	return root
}

// Shared returns the directory of recordings that are too large, or not ours, to be part of the module: IBID_SHARED, or
// ../shared. A relative name counts from the top of the repository, so that it means the same in the tests of every
// package and module. Where there is no such directory the test is skipped, or fails if IBID_REQUIRE has [SharedFiles].
func Shared(tb testing.TB) string {
	tb.Helper()
	dir, err := sharedDir(repository(Root(tb)), os.Getenv("IBID_SHARED"))
	if err != nil {
		absent(tb, SharedFiles, err.Error())
	}
	return dir
}

// Tool returns the path of a program from outside Go, or of what else a package installs: then name is its absolute
// path. Where it is not installed the test is skipped, or fails if IBID_REQUIRE has [Tools]; scripts/apt.txt says which
// package has it.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := find(name)
	if err != nil {
		list, err := os.ReadFile(filepath.Join(Root(tb), "scripts", "apt.txt"))
		if err != nil {
			tb.Fatalf("looking up the package of %s: %v", name, err)
		}
		absent(
			tb, Tools,
			fmt.Sprintf(
				"%s is missing: apt-get install %s, or make test IBID_INSTALL=1", name,
				debianPackage(string(list), name),
			),
		)
	}
	return path
}

// Python returns the path of the Python that has the packages of interop/python/requirements.lock, in all modules of
// the repository. Where scripts/python has not installed them, or has others, the test is skipped, or fails if
// IBID_REQUIRE has [Tools].
func Python(tb testing.TB) string {
	tb.Helper()
	const name = "requirements.lock"
	top := repository(Root(tb))
	want, err := os.ReadFile(filepath.Join(top, "interop", "python", name))
	if err != nil {
		tb.Fatalf("reading which packages Python needs: %v", err)
	}
	dir := filepath.Join(top, "out", ".python")
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
		absent(tb, Tools, "Python's packages are missing or others: scripts/python installs them")
	}
	return filepath.Join(dir, "bin", "python")
}

// NodeModules returns the directory of the npm packages of a directory of the repository, such as interop/web. Where
// `make interop` has not installed them the test is skipped, or fails if IBID_REQUIRE has [Tools].
func NodeModules(tb testing.TB, dir string) string {
	tb.Helper()
	dir = filepath.Join(repository(Root(tb)), filepath.FromSlash(dir), "node_modules")
	if _, err := os.Stat(dir); err != nil {
		absent(tb, Tools, "npm's packages are missing: make interop installs them: "+err.Error())
	}
	return dir
}

func find(name string) (string, error) {
	if !filepath.IsAbs(name) {
		return exec.LookPath(name)
	}
	_, err := os.Stat(name)
	return name, err
}

// absent ends the test: as skipped, or as failed if IBID_REQUIRE has what.
func absent(tb testing.TB, what, reason string) {
	tb.Helper()
	if required(os.Getenv("IBID_REQUIRE"), what) {
		tb.Fatalf("%s (IBID_REQUIRE=%s)", reason, what)
	}
	if name := os.Getenv("IBID_LEFT_OUT"); name != "" {
		noteLeftOut(tb, name, what, reason)
	}
	tb.Skip(reason)
}

// noteLeftOut appends a line about a test that is left out to the file name: what was missing, the test, and the
// reason. `make test` and `make test-go` count them, because go test shows nothing of packages that pass.
func noteLeftOut(tb testing.TB, name, what, reason string) {
	tb.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\t%s\t%s\n", what, tb.Name(), reason)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		tb.Fatalf("noting that the test is left out: %v", err)
	}
}

func required(list, what string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(word string) bool {
		return strings.TrimSpace(word) == what
	})
}

func rootAbove(dir string) (string, error) {
	for at := dir; ; {
		_, err := os.Stat(filepath.Join(at, "go.mod"))
		if err == nil {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("no go.mod in %s or above", dir)
		}
		at = up
	}
}

// repository returns the top of the repository that a module belongs to, whether it is the root module or one nested in
// it: the nearest directory that has LICENSE.
func repository(module string) string {
	for at := module; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "LICENSE")); err == nil {
			return at
		}
	}
	return module
}

func sharedDir(root, name string) (string, error) {
	if name == "" {
		name = filepath.Join("..", "shared")
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(root, name)
	}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return "", fmt.Errorf("no shared recordings: %w; IBID_SHARED names their directory", err)
	}
	return name, nil
}

// debianPackage finds the package of a program in scripts/apt.txt: lines of program, package and what it is for. A
// program that is not listed is taken to be in the package of its name.
func debianPackage(list, name string) string {
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == name {
			return fields[1]
		}
	}
	return name
}
