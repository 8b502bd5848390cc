package store_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// The file of an open database is deleted or damaged: puts are refused as temporary, so that the journal keeps the
// answers, and the operator is told what to do. SQLite would accept them, and they would be lost.
func TestFileLost(t *testing.T) {
	for _, test := range []struct {
		name  string
		harm  func(t *testing.T, name string)
		whole bool // the next process finds what was stored before
	}{
		{"deleted", func(t *testing.T, name string) {
			t.Helper()
			for _, one := range []string{name, name + "-wal", name + "-shm"} {
				testenv.OK(t, os.Remove(one))
			}
		}, true},
		{"deleted with its directory", func(t *testing.T, name string) {
			t.Helper()
			testenv.OK(t, os.RemoveAll(filepath.Dir(name)))
		}, true},
		{"without its log", func(t *testing.T, name string) {
			t.Helper()
			testenv.OK(t, os.Remove(name+"-wal"))
		}, true},
		{"with an empty log", func(t *testing.T, name string) {
			t.Helper()
			testenv.OK(t, os.Truncate(name+"-wal", 0))
		}, false},
		{"with another log", func(t *testing.T, name string) {
			t.Helper()
			info := testenv.Must(os.Stat(name + "-wal"))(t)
			testenv.OK(t, os.WriteFile(name+"-wal", bytes.Repeat([]byte{0x5a}, int(info.Size())), 0o600))
		}, false},
		{"replaced", func(t *testing.T, name string) {
			t.Helper()
			other := filepath.Join(t.TempDir(), "other.db")
			testenv.OK(t, testenv.Must(store.Open(t.Context(), other, nil))(t).Close())
			testenv.OK(t, os.Rename(other, name))
		}, false},
		{"emptied", func(t *testing.T, name string) {
			t.Helper()
			testenv.OK(t, os.Truncate(name, 0))
		}, false},
		{"cut", func(t *testing.T, name string) {
			t.Helper()
			info := testenv.Must(os.Stat(name))(t)
			testenv.OK(t, os.Truncate(name, info.Size()/2))
		}, false},
		{"overwritten", func(t *testing.T, name string) {
			t.Helper()
			info := testenv.Must(os.Stat(name))(t)
			f := testenv.Must(os.OpenFile(name, os.O_WRONLY, 0))(t)
			_ = testenv.Must(f.Write(bytes.Repeat([]byte{0x5a}, int(info.Size()))))(t)
			testenv.OK(t, f.Close())
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "data", "ibid.db")
			testenv.OK(t, os.Mkdir(filepath.Dir(name), 0o700))
			testenv.OK(t, testenv.Must(store.Open(t.Context(), name, nil))(t).Close()) // creates the tables
			var log bytes.Buffer
			s := testenv.Must(store.Open(t.Context(), name, &store.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
			put(t, s, call(1, "Before."))
			testenv.OK(t, s.Ping(t.Context()))
			test.harm(t, name)
			for range 2 {
				if err := s.Put(t.Context(), []*store.Call{call(2, "After.")}); !errors.Is(err, store.ErrFile) || !store.IsTemporary(err) {
					t.Errorf("putting: %v", err)
				}
			}
			if err := s.Ping(t.Context()); !errors.Is(err, store.ErrFile) {
				t.Errorf("Ping: %v", err)
			}
			if n := strings.Count(log.String(), "the database file cannot be used any more; answers stay in the journal"); n != 1 ||
				!strings.Contains(log.String(), "first find out whether the file is whole") {
				t.Errorf("it was logged %d times: %s", n, log.String())
			}
			_ = s.Close() // closing a damaged file may fail
			if !test.whole {
				return
			}
			info := testenv.Must(os.Stat(name))(t)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v", info.Mode())
			}
			s = open(t, name)
			if got := ids(t, s, store.Query{}); len(got) != 1 {
				t.Errorf("the next process finds %q", got)
			}
			put(t, s, call(2, "After."))
			testenv.OK(t, s.Ping(t.Context()))
		})
	}
}

// A server that is not set up for ibid causes an error on opening, with a hint what to do there.
func TestPostgresNotSetUp(t *testing.T) {
	server := testenv.Postgres(t)
	admin := testenv.Must(sql.Open("pgx", server.DSN))(t)
	defer admin.Close()
	_ = testenv.Must(admin.Exec(`CREATE ROLE "a guest" LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`))(t)
	for dsn, want := range map[string]string{
		strings.Replace(server.DSN, "user=postgres", "user=nobody", 1):    `CREATE ROLE "nobody" LOGIN PASSWORD '…'; CREATE DATABASE "ibid" OWNER "nobody";`,
		strings.Replace(server.DSN, "///ibid", "///other", 1):             `CREATE DATABASE "other" OWNER "postgres";`,
		strings.Replace(server.DSN, "user=postgres", "user=a%20guest", 1): `GRANT CREATE ON SCHEMA public TO `,
	} {
		for _, later := range []bool{false, true} {
			_, err := store.Open(t.Context(), dsn, &store.Options{Later: later})
			var advised interface{ Hint() string }
			if !errors.As(err, &advised) || !strings.Contains(advised.Hint(), want) || errors.Is(err, store.ErrUnreachable) {
				t.Errorf("%s: %v, which does not say %q", dsn, err, want)
			}
		}
		if _, err := store.Inspect(t.Context(), dsn); err == nil && !strings.Contains(dsn, "guest") {
			t.Errorf("%s is there", dsn)
		}
	}
}

// A server without room for another connection is away for now, like one that is down: ibid starts without it.
func TestPostgresHasNoRoom(t *testing.T) {
	server := testenv.Postgres(t)
	admin := testenv.Must(sql.Open("pgx", server.DSN))(t)
	defer admin.Close()
	_ = testenv.Must(admin.Exec(`CREATE ROLE crowded LOGIN CONNECTION LIMIT 0; GRANT ALL ON SCHEMA public TO crowded`))(t)
	dsn := strings.Replace(server.DSN, "user=postgres", "user=crowded", 1)
	if _, err := store.Inspect(t.Context(), dsn); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("inspecting: %v", err)
	}
	s := testenv.Must(store.Open(t.Context(), dsn, &store.Options{Later: true}))(t)
	defer func() { testenv.OK(t, s.Close()) }()
	if err := s.Put(t.Context(), []*store.Call{call(1, "Away.")}); !errors.Is(err, store.ErrUnreachable) || !store.IsTemporary(err) {
		t.Errorf("putting: %v", err)
	}
	_ = testenv.Must(admin.Exec("ALTER ROLE crowded CONNECTION LIMIT 20"))(t)
	put(t, s, call(2, "Back."))
}

// PostgreSQL is unreachable when the store is opened: operations fail until it is back, and then succeed without
// intervention.
func TestOpenLater(t *testing.T) {
	server := testenv.Postgres(t)
	server.Stop(t)
	s := testenv.Must(store.Open(t.Context(), server.DSN, &store.Options{Later: true}))(t)
	defer func() { testenv.OK(t, s.Close()) }()
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("Ping: %v", err)
	}
	if err := s.Put(t.Context(), []*store.Call{call(1, "Away.")}); !errors.Is(err, store.ErrUnreachable) || !store.IsTemporary(err) {
		t.Errorf("putting: %v", err)
	}
	if _, err := s.Tokens(t.Context()); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("tokens: %v", err)
	}
	if pub := s.KnownPub(store.DefaultTenant, "run_1"); pub != "" {
		t.Errorf("the run's public id is known: %q", pub)
	}
	server.Start(t)
	put(t, s, call(1, "Back."))
	testenv.OK(t, s.Ping(t.Context()))
	want := testenv.Must(s.Pub(t.Context(), store.DefaultTenant, "run_1"))(t)
	if got := s.KnownPub(store.DefaultTenant, "run_1"); got != want {
		t.Errorf("the run's public id is %q, want %q", got, want)
	}
}

// The database contains the hash of an access token, and nowhere its secret.
func TestTokenIsKeptAsHash(t *testing.T) {
	dir := t.TempDir()
	s := testenv.Must(store.Open(t.Context(), filepath.Join(dir, "ibid.db"), nil))(t)
	secret := testenv.Must(s.NewToken(t.Context(), &store.Token{Name: "laptop", Scopes: []string{store.ScopeRead}}))(t)
	testenv.Must(s.TokenBySecret(t.Context(), secret))(t)
	testenv.OK(t, s.Close())
	var kept []byte
	for _, name := range testenv.Must(filepath.Glob(filepath.Join(dir, "*")))(t) {
		kept = append(kept, testenv.Must(os.ReadFile(name))(t)...)
	}
	hash := sha256.Sum256([]byte(secret))
	if bytes.Contains(kept, []byte(secret[len("ibid_"):])) || !bytes.Contains(kept, []byte(hex.EncodeToString(hash[:]))) {
		t.Error("the files have the secret, or not its hash")
	}
}
