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

// BreakableDisk is a small ext4 file system for a test, which can fail as a real one does.
type BreakableDisk struct {
	Dir   string
	image string
}

// NewBreakableDisk makes and mounts a disk of the given size in megabytes. It requires root and loop devices: the test
// is skipped without them.
func NewBreakableDisk(tb testing.TB, megabytes int) *BreakableDisk {
	tb.Helper()
	Tool(tb, "mount")
	mkfs := Tool(tb, "mkfs.ext4")
	if os.Geteuid() != 0 {
		tb.Skip("only root may mount a disk to break")
	}
	d := &BreakableDisk{Dir: tb.TempDir(), image: filepath.Join(tb.TempDir(), "image")}
	f := Must(os.Create(d.image))(tb)
	OK(tb, f.Truncate(int64(megabytes)<<20))
	OK(tb, f.Close())
	if said, err := exec.CommandContext(tb.Context(), mkfs, "-q", "-F", d.image).CombinedOutput(); err != nil {
		tb.Fatalf("making a file system: %v: %s", err, said)
	}
	if said, err := d.mount(tb); err != nil {
		// Nothing that could be installed: a container may have no loop devices.
		tb.Skip("a disk to break cannot be mounted here: " + string(bytes.TrimSpace(said)))
	}
	tb.Cleanup(func() { d.unmount(tb) })
	return d
}

func (d *BreakableDisk) mount(tb testing.TB) ([]byte, error) {
	tb.Helper()
	options := "loop,errors=remount-ro"
	return exec.CommandContext(tb.Context(), "mount", "-o", options, d.image, d.Dir).CombinedOutput()
}

func (d *BreakableDisk) unmount(tb testing.TB) {
	tb.Helper()
	command := exec.CommandContext(context.WithoutCancel(tb.Context()), "umount", d.Dir)
	if said, err := command.CombinedOutput(); err != nil {
		tb.Errorf("unmounting %s: %v: %s", d.Dir, err, said)
	}
}

// Break makes the disk read-only under the processes that write to it, as the kernel does after an error of the device.
func (d *BreakableDisk) Break(tb testing.TB) {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), "mount", "-o", "remount,abort", d.Dir)
	if said, err := command.CombinedOutput(); err != nil {
		tb.Fatalf("breaking %s: %v: %s", d.Dir, err, said)
	}
}

// Mend mounts the disk again, which recovers it from its own journal. No process may have a file of it open.
func (d *BreakableDisk) Mend(tb testing.TB) {
	tb.Helper()
	d.unmount(tb)
	if said, err := d.mount(tb); err != nil {
		tb.Fatalf("mounting %s again: %v: %s", d.Dir, err, said)
	}
}
