package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// postgresBin is where Debian puts the server's programs, which are not in PATH.
const postgresBin = "/usr/lib/postgresql/15/bin/"

// PostgresServer is a PostgreSQL server of a test's own. It listens on a socket in its own directory and on no network.
type PostgresServer struct {
	DSN string // postgres://… of an empty database

	dir string
}

// Postgres starts a PostgreSQL server and stops it at the end of the test. Where PostgreSQL is not installed the test is
// skipped, as by [Tool].
func Postgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	initdb := Tool(tb, postgresBin+"initdb")
	// Not tb.TempDir: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "ibid-pg") //nolint:usetesting // as said
	if err != nil {
		tb.Fatalf("making a directory for PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("removing PostgreSQL's directory: %v", err)
		}
	})
	p := &PostgresServer{dir: dir}
	if os.Geteuid() == 0 {
		p.must(tb, "chown", "postgres:", dir)
	}
	p.mustAs(tb, initdb, "-D", p.data(), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
	p.Start(tb)
	tb.Cleanup(func() {
		if p.running() {
			p.Stop(tb)
		}
	})
	p.DSN = p.Database(tb, "ibid")
	return p
}

// Start starts the server after [PostgresServer.Stop], and returns when it takes connections.
func (p *PostgresServer) Start(tb testing.TB) {
	tb.Helper()
	// What a test stores need not survive a power cut.
	options := fmt.Sprintf("-c listen_addresses= -c unix_socket_directories=%s -c fsync=off", p.dir)
	p.mustAs(tb, postgresBin+"pg_ctl", "-D", p.data(), "-l", filepath.Join(p.dir, "log"), "-o", options, "-w", "start")
}

// Stop ends the server and all its connections at once, as a crash does.
func (p *PostgresServer) Stop(tb testing.TB) {
	tb.Helper()
	p.mustAs(tb, postgresBin+"pg_ctl", "-D", p.data(), "-m", "immediate", "-w", "stop")
}

// Database makes an empty database and returns its DSN.
func (p *PostgresServer) Database(tb testing.TB, name string) string {
	tb.Helper()
	p.mustAs(tb, postgresBin+"psql", "-h", p.dir, "-U", "postgres", "-q", "-c", "CREATE DATABASE "+name, "postgres")
	return "postgres:///" + name + "?host=" + p.dir + "&user=postgres"
}

func (p *PostgresServer) data() string { return filepath.Join(p.dir, "data") }

func (p *PostgresServer) running() bool {
	_, err := os.Stat(filepath.Join(p.data(), "postmaster.pid"))
	return err == nil
}

// mustAs runs a program of PostgreSQL's, which refuses to be root.
func (p *PostgresServer) mustAs(tb testing.TB, args ...string) {
	tb.Helper()
	if os.Geteuid() == 0 {
		args = append([]string{"runuser", "-u", "postgres", "--"}, args...)
	}
	p.must(tb, args...)
}

func (p *PostgresServer) must(tb testing.TB, args ...string) {
	tb.Helper()
	// Not tb.Context: that ends before the clean-up does.
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Dir = p.dir
	// A file, not a pipe: a server that goes on running would hold it open.
	out, err := os.Create(filepath.Join(p.dir, "out"))
	if err != nil {
		tb.Fatalf("running PostgreSQL: %v", err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		tb.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, text, log)
	}
}
