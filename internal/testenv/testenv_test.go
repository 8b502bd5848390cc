package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	root := Root(t)
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "testenv.go")); err != nil {
		t.Errorf("Root is not the module's: %v", err)
	}
	outside := t.TempDir()
	if got, err := rootAbove(outside); err == nil {
		t.Errorf("rootAbove(%s) = %s, want an error", outside, got)
	}
}

func TestSharedDir(t *testing.T) {
	root := filepath.Join(t.TempDir(), "module")
	shared := filepath.Join(root, "..", "shared")
	other := filepath.Join(root, "testdata", "other")
	for _, dir := range []string{shared, other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		about, name string
		want        string // empty: an error
	}{
		{"nothing said", "", shared},
		{"relative to the module, not to the package", "testdata/other", other},
		{"absolute", other, other},
		{"absent", "nowhere", ""},
		{"a file", file, ""},
	} {
		t.Run(test.about, func(t *testing.T) {
			got, err := sharedDir(root, test.name)
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("sharedDir(%q) = %q, %v; want %q", test.name, got, err, test.want)
			}
		})
	}
}

func TestShared(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("IBID_SHARED", dir)
	if got := Shared(t); got != dir {
		t.Errorf("Shared = %s, want %s", got, dir)
	}

	t.Setenv("IBID_SHARED", filepath.Join(dir, "nowhere"))
	t.Setenv("IBID_LEFT_OUT", "") // these are left out for the test's sake
	t.Setenv("IBID_REQUIRE", "tools")
	if got := outcome(func(r *recorder) { Shared(r) }); !strings.HasPrefix(got, "skip: no shared recordings: ") {
		t.Errorf("absent and not required: %s", got)
	}
	t.Setenv("IBID_REQUIRE", "tools,shared")
	if got := outcome(func(r *recorder) { Shared(r) }); !strings.HasPrefix(got, "fail: no shared recordings: ") {
		t.Errorf("absent and required: %s", got)
	}
}

// A nested module finds the same directory as the root module does: ../shared counts from the repository, not from it.
func TestRepository(t *testing.T) {
	top := t.TempDir()
	nested := filepath.Join(top, "bench", "gateway")
	if err := os.MkdirAll(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "LICENSE"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{top, nested} {
		if got := repository(module); got != top {
			t.Errorf("repository(%s) = %s, want %s", module, got, top)
		}
	}
}

func TestTool(t *testing.T) {
	if got := Tool(t, "go"); !filepath.IsAbs(got) {
		t.Errorf("Tool(go) = %s, want an absolute path", got)
	}

	t.Setenv("PATH", t.TempDir())
	t.Setenv("IBID_LEFT_OUT", "") // these are left out for the test's sake
	t.Setenv("IBID_REQUIRE", "shared")
	want := "skip: pandoc is missing: apt-get install pandoc, or make test IBID_INSTALL=1"
	if got := outcome(func(r *recorder) { Tool(r, "pandoc") }); got != want {
		t.Errorf("absent and not required:\n got %s\nwant %s", got, want)
	}
	t.Setenv("IBID_REQUIRE", "tools")
	if got := outcome(func(r *recorder) { Tool(r, "pandoc") }); !strings.HasPrefix(got, "fail: pandoc is missing: ") {
		t.Errorf("absent and required: %s", got)
	}
}

func TestPython(t *testing.T) {
	top := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(top, filepath.FromSlash(name))
		OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		OK(t, os.WriteFile(name, []byte(content), 0o644))
	}
	write("LICENSE", "")
	write("go.mod", "")
	write("interop/go.mod", "")
	write("interop/python/requirements.lock", "six==1\n")
	t.Setenv("IBID_LEFT_OUT", "") // these are left out for the test's sake
	t.Setenv("IBID_REQUIRE", "")
	got := ""
	python := func(r *recorder) { got = Python(r) }
	for _, dir := range []string{".", "interop"} {
		t.Chdir(filepath.Join(top, dir))
		testCase := func(about, want string) {
			t.Helper()
			if end := outcome(python); !strings.HasPrefix(end, want) {
				t.Errorf("in %s, %s: %s, want %s", dir, about, end, want)
			}
		}
		OK(t, os.RemoveAll(filepath.Join(top, "out")))
		testCase("nothing installed", "skip: Python's packages are missing or others")
		write("out/.python/requirements.lock", "six==0\n")
		testCase("others installed", "skip: Python's packages are missing or others")
		t.Setenv("IBID_REQUIRE", "tools")
		testCase("others installed, but required", "fail: Python's packages are missing or others")
		t.Setenv("IBID_REQUIRE", "")
		write("out/.python/requirements.lock", "six==1\n")
		testCase("installed", "pass")
		Equal(t, dir, filepath.Join(top, "out/.python/bin/python"), got)
	}
}

func TestRequired(t *testing.T) {
	for _, test := range []struct {
		list string
		want bool
	}{
		{"", false},
		{"shared", false},
		{"toolshed", false},
		{"tools", true},
		{"shared, tools", true},
	} {
		if got := required(test.list, Tools); got != test.want {
			t.Errorf("required(%q, tools) = %t, want %t", test.list, got, test.want)
		}
	}
}

func TestDebianPackage(t *testing.T) {
	const list = "# program  package  what for\npsql  postgresql-client  # the store\n"
	for name, want := range map[string]string{"psql": "postgresql-client", "jq": "jq", "#": "program"} {
		if got := debianPackage(list, name); got != want {
			t.Errorf("debianPackage(%s) = %s, want %s", name, got, want)
		}
	}
}

// recorder is a testing.TB that writes down how a test ended instead of ending this one.
type recorder struct {
	testing.TB
	end string
}

func (*recorder) Helper() {}

func (r *recorder) Skip(args ...any) {
	r.end = "skip: " + fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end = "fail: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs f as a test of its own and says how it ended. Ending a test ends its goroutine, so it gets one.
func outcome(f func(*recorder)) string {
	r := &recorder{end: "pass"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.end
}
