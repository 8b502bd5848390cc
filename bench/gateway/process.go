package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime returns the run time of all threads of a process, from schedstat with nanosecond resolution. Threads that
// have ended are not counted; Go's runtime does not end any.
func cpuTime(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	var sum time.Duration
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		ran, _, _ := strings.Cut(string(b), " ")
		n, _ := strconv.ParseInt(ran, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// resident returns a process's resident memory in bytes.
func resident(pid int) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// process is a program that this one started.
type process struct {
	name  string
	addr  string
	other *other // nil for a part of this program
	cmd   *exec.Cmd
	log   *os.File
}

// self starts this program again as one of its parts, pinned to a core; a negative core pins nothing.
func self(ctx context.Context, core int, name string, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, core, name, append([]string{program, name}, args...))
}

func start(ctx context.Context, core int, name string, argv []string) (*process, error) {
	if core >= 0 {
		argv = append([]string{"taskset", "-c", strconv.Itoa(core)}, argv...)
	}
	log, err := os.CreateTemp("", "ibid-bench-*.log")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // our own program
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &process{name: name, cmd: cmd, log: log}, nil
}

// listening waits until addr accepts connections.
func (p *process) listening(ctx context.Context, addr string) error {
	p.addr = addr
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	said, _ := os.ReadFile(p.log.Name())
	p.stop()
	return fmt.Errorf("start %s: it does not listen on %s: %s", p.name, addr, said)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop ends the process and waits for it.
func (p *process) stop() { p.end(syscall.SIGTERM) }

// kill ends the process without a chance to clean up.
func (p *process) kill() { p.end(syscall.SIGKILL) }

func (p *process) end(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal)
	overdue := time.AfterFunc(40*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait() // the exit status does not matter
	overdue.Stop()
	_ = p.log.Close()
	_ = os.Remove(p.log.Name())
}

// ask runs one of this program's parts to its end and reads the JSON that it prints.
func ask(ctx context.Context, core int, into any, name string, args ...string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append([]string{"-c", strconv.Itoa(core), program, name}, args...)
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, "taskset", argv...) //nolint:gosec // our own program
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, words.Bytes())
	}
	return json.Unmarshal(out, into)
}

// freeAddr returns an unused address.
func freeAddr(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
