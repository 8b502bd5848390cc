package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTime is how long a process may take until it listens, and stopTime until it has ended.
const (
	startTime = 60 * time.Second
	stopTime  = 45 * time.Second
)

// process is a server that can be stopped and restarted at the same address with the same log.
type process struct {
	name string
	addr string // where it listens
	argv []string
	env  []string // added to this program's
	log  string   // path of the log file

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // why the process ended
}

// start starts the process and returns once it listens.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.argv[0], p.argv[1:]...) //nolint:gosec,noctx // our own; it ends with stop
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	// Ctrl-C only reaches this program, which stops the others in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.ended = cmd, ended
	p.mu.Unlock()
	go func() {
		p.err = cmd.Wait()
		close(ended)
	}()
	deadline := time.Now().Add(startTime)
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return fmt.Errorf("starting %s: it ended: %w\n%s", p.name, p.err, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("starting %s: %w", p.name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("starting %s: it does not listen on %s\n%s", p.name, p.addr, p.logTail())
		}
	}
}

// signal sends a signal to the process: SIGSTOP pauses it, SIGCONT resumes it.
func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("%s does not run", p.name)
	}
	return p.cmd.Process.Signal(s)
}

// kill ends the process without a chance to clean up.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}

// stop asks the process to end, and fails unless it does so in time and without an error.
func (p *process) stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("stopping %s: it goes on for %v\n%s", p.name, stopTime, p.logTail()), p.kill())
	}
	if p.err != nil {
		return fmt.Errorf("stopping %s: %w\n%s", p.name, p.err, p.logTail())
	}
	return nil
}

// end kills the process if it is still running.
func (p *process) end() {
	p.mu.Lock()
	running := p.cmd != nil
	p.mu.Unlock()
	if running {
		_ = p.kill()
	}
}

// logTail returns the last lines of the log, except those that only report an answer.
func (p *process) logTail() string {
	data, _ := os.ReadFile(p.log)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(line string) bool {
		return strings.Contains(line, `"msg":"answer"`)
	})
	return p.name + ":\n" + strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// freeAddr returns an unused address of this machine.
func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// natsCommand is the argument that makes this program a NATS server. It is followed by the server's name, its address,
// its cluster address, and those of the others, separated by commas.
const natsCommand = "_nats"

func newNATS(dir string, i int, addrs, routes []string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("nats-%d", i)
	return &process{
		name: name, addr: addrs[i], log: filepath.Join(dir, name+".log"),
		argv: []string{self, natsCommand, name, addrs[i], routes[i], strings.Join(routes, ",")},
	}, nil
}

func serveNATS(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: NAME ADDRESS CLUSTER-ADDRESS ROUTES")
	}
	client, err := net.ResolveTCPAddr("tcp", args[1])
	if err != nil {
		return err
	}
	cluster, err := net.ResolveTCPAddr("tcp", args[2])
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: args[0], Host: client.IP.String(), Port: client.Port, NoSigs: true,
		// Clients know all addresses. They are not told others, which would bypass the links.
		Cluster: server.ClusterOpts{
			Name: "cluster", Host: cluster.IP.String(), Port: cluster.Port, NoAdvertise: true,
		},
		Routes: server.RoutesFromStr("nats://" + strings.ReplaceAll(args[3], ",", ",nats://")),
	})
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}
