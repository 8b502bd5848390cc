package file_test

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/internal/file"
)

func TestReplace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "keys.json")
	for _, content := range []string{"old", "new and longer", ""} {
		if err := file.Replace(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != content {
			t.Fatalf("the file contains %q (%v), want %q", got, err, content)
		}
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, want 0644", info.Mode())
	}
	assertOnly(t, name)
}

// If a file cannot be replaced, it is unchanged and no temporary file is left.
func TestReplaceFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "directory")
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := file.Replace(name, []byte("x"), 0o600); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	assertOnly(t, name)
}

func TestLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such lock")
	}
	name := filepath.Join(t.TempDir(), "lock")
	first, err := file.Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	var all sync.WaitGroup
	all.Go(func() {
		second, err := file.Lock(name)
		note("second")
		if err == nil {
			err = second.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	note("first")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if order[0] != "first" {
		t.Errorf("the second lock was granted while the first one was held")
	}
}

func assertOnly(t *testing.T, name string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != filepath.Base(name) {
		t.Errorf("the directory contains %v, want only %s", entries, filepath.Base(name))
	}
}
