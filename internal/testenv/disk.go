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

// Disk is a small in-memory file system for a test.
type Disk struct{ Dir string }

// NewDisk mounts a disk of the given size in megabytes and unmounts it at the end of the test. It requires root: the
// test is skipped, as by [Tool], for other users or if mounting is not allowed.
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

// Fill uses up all free space.
func (d *Disk) Fill(tb testing.TB) {
	tb.Helper()
	f := Must(os.Create(filepath.Join(d.Dir, "filler")))(tb)
	defer f.Close() //nolint:errcheck // any error is expected: there is no space
	for block := make([]byte, 64<<10); len(block) > 0; {
		switch _, err := f.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2]
		case err != nil:
			tb.Fatalf("filling a disk: %v", err)
		}
	}
}

// Free releases what Fill used.
func (d *Disk) Free(tb testing.TB) {
	tb.Helper()
	OK(tb, os.Remove(filepath.Join(d.Dir, "filler")))
}

// ReadOnly makes the disk read-only, or writable again. None of its files may be open for writing.
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
