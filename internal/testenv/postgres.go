package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// postgresBin is where Debian installs the server's programs, which are not in PATH.
const postgresBin = "/usr/lib/postgresql/15/bin/"

// PostgresServer is a PostgreSQL server for a test. It only listens on a socket in its own directory.
type PostgresServer struct {
	DSN string // postgres://… of an empty database

	dir string
}

// Postgres starts a PostgreSQL server and stops it at the end of the test. If PostgreSQL is not installed, the test is
// skipped, as by [Tool].
func Postgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	Tool(tb, postgresBin+"initdb")
	p, err := NewPostgres(tb.Context())
	if err != nil {
		tb.Fatalf("starting PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(tb.Context())); err != nil {
			tb.Errorf("removing PostgreSQL: %v", err)
		}
	})
	return p
}

// NewPostgres is [Postgres] for programs other than tests: the caller must call Remove.
func NewPostgres(ctx context.Context) (*PostgresServer, error) {
	// Not the test's directory: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "ibid-pg")
	if err != nil {
		return nil, err
	}
	p := &PostgresServer{dir: dir}
	if os.Geteuid() == 0 {
		err = p.run(ctx, "chown", "postgres:", dir)
	}
	if err == nil {
		err = p.runAs(
			ctx, "initdb", "-D", p.data(), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8",
			"--locale=C.UTF-8",
		)
	}
	if err == nil {
		err = p.Up(ctx)
	}
	if err == nil {
		p.DSN, err = p.create(ctx, "ibid")
	}
	if err != nil {
		return nil, errors.Join(err, p.Remove(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// Remove stops the server if it is running and removes its directory.
func (p *PostgresServer) Remove(ctx context.Context) error {
	var err error
	if p.running() {
		err = p.Down(ctx)
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Start starts the server after [PostgresServer.Stop], and returns when it accepts connections.
func (p *PostgresServer) Start(tb testing.TB) {
	tb.Helper()
	if err := p.Up(context.WithoutCancel(tb.Context())); err != nil {
		tb.Fatal(err)
	}
}

// Stop ends the server and all its connections at once, like a crash. It may be called in clean-ups, after tb's context
// has ended.
func (p *PostgresServer) Stop(tb testing.TB) {
	tb.Helper()
	if err := p.Down(context.WithoutCancel(tb.Context())); err != nil {
		tb.Fatal(err)
	}
}

// Database creates an empty database and returns its DSN.
func (p *PostgresServer) Database(tb testing.TB, name string) string {
	tb.Helper()
	dsn, err := p.create(context.WithoutCancel(tb.Context()), name)
	if err != nil {
		tb.Fatal(err)
	}
	return dsn
}

// Up is Start for programs other than tests.
func (p *PostgresServer) Up(ctx context.Context) error {
	// Test data need not survive a power failure.
	options := fmt.Sprintf("-c listen_addresses= -c unix_socket_directories=%s -c fsync=off", p.dir)
	return p.runAs(ctx, "pg_ctl", "-D", p.data(), "-l", filepath.Join(p.dir, "log"), "-o", options, "-w", "start")
}

// Down is Stop for programs other than tests.
func (p *PostgresServer) Down(ctx context.Context) error {
	return p.runAs(ctx, "pg_ctl", "-D", p.data(), "-m", "immediate", "-w", "stop")
}

func (p *PostgresServer) create(ctx context.Context, name string) (dsn string, err error) {
	err = p.runAs(ctx, "psql", "-h", p.dir, "-U", "postgres", "-q", "-c", "CREATE DATABASE "+name, "postgres")
	return "postgres:///" + name + "?host=" + p.dir + "&user=postgres", err
}

func (p *PostgresServer) data() string { return filepath.Join(p.dir, "data") }

func (p *PostgresServer) running() bool {
	_, err := os.Stat(filepath.Join(p.data(), "postmaster.pid"))
	return err == nil
}

// runAs runs a program of PostgreSQL, which refuses to run as root.
func (p *PostgresServer) runAs(ctx context.Context, program string, args ...string) error {
	args = append([]string{postgresBin + program}, args...)
	if os.Geteuid() == 0 {
		args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
	}
	return p.run(ctx, args...)
}

func (p *PostgresServer) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.dir
	// A file, not a pipe: a server that keeps running would hold it open.
	out, err := os.Create(filepath.Join(p.dir, "out"))
	if err != nil {
		return fmt.Errorf("running PostgreSQL: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		return fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, text, log)
	}
	return nil
}
