package testenv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Disk is a small file system of a test's own, in memory.
type Disk struct{ Dir string }

// NewDisk mounts a disk of so many megabytes and unmounts it at the end of the test. Only root may mount: the test is
// skipped, as by [Tool], for others and where mounting is not allowed at all.
func NewDisk(tb testing.TB, megabytes int) *Disk {
	tb.Helper()
	mount := Tool(tb, "mount")
	if os.Geteuid() != 0 {
		tb.Skip("only root may mount a disk to fill")
	}
	d := &Disk{Dir: tb.TempDir()}
	size := "size=" + strconv.Itoa(megabytes) + "m"
	command := exec.CommandContext(tb.Context(), mount, "-t", "tmpfs", "-o", size, "tmpfs", d.Dir)
	if said, err := command.CombinedOutput(); err != nil {
		absent(tb, Tools, "a disk to fill cannot be mounted here: "+string(bytes.TrimSpace(said)))
	}
	tb.Cleanup(func() {
		command := exec.CommandContext(context.WithoutCancel(tb.Context()), "umount", "-l", d.Dir)
		if said, err := command.CombinedOutput(); err != nil {
			tb.Errorf("unmounting %s: %v: %s", d.Dir, err, said)
		}
	})
	return d
}

// Fill takes all space that is left.
func (d *Disk) Fill(tb testing.TB) {
	tb.Helper()
	f := Must(os.Create(filepath.Join(d.Dir, "filler")))(tb)
	defer f.Close() //nolint:errcheck // what it says is known: there is no space
	for block := make([]byte, 64<<10); len(block) > 0; {
		switch _, err := f.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2]
		case err != nil:
			tb.Fatalf("filling a disk: %v", err)
		}
	}
}

// Free gives back what Fill took.
func (d *Disk) Free(tb testing.TB) {
	tb.Helper()
	OK(tb, os.Remove(filepath.Join(d.Dir, "filler")))
}

// ReadOnly makes the disk read-only, or writable again. No file of it may be open for writing.
func (d *Disk) ReadOnly(tb testing.TB, yes bool) {
	tb.Helper()
	option := "remount,rw"
	if yes {
		option = "remount,ro"
	}
	command := exec.CommandContext(tb.Context(), "mount", "-o", option, d.Dir)
	if said, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("%s of %s: %v: %s", option, d.Dir, err, said)
	}
}
