package server

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestAge(t *testing.T) {
	for text, want := range map[string]struct {
		age  time.Duration
		back string
	}{
		"30d": {30 * day, "30d"}, "720h": {30 * day, "30d"}, "36h": {36 * time.Hour, "36h"}, "90m": {90 * time.Minute, "1h30m0s"}, "forever": {0, "forever"},
	} {
		var a Age
		if err := a.Set(text); err != nil || time.Duration(a) != want.age || a.String() != want.back {
			t.Errorf("%s: %v, %v %s", text, err, time.Duration(a), &a)
		}
	}
	for _, text := range []string{"", "0", "-1h", "0d", "-3d", "1.5d", "d", "3", "9999999999d", "200000d", "1w"} {
		var a Age
		if err := a.Set(text); err == nil {
			t.Errorf("%q is %s", text, &a)
		}
	}
}

func TestRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://me:secret@db:5432/ibid?password=secret&sslmode=require": "postgres://db:5432/ibid",
		"nats://token@a:4222, nats://u:p@b:4222":                            "nats://a:4222,nats://b:4222",
		"embedded":                                                          "embedded",
		"/var/lib/ibid.db":                                                  "/var/lib/ibid.db",
		"postgres://me:%zz@a":                                               "…",
		"https://a.example/x#secret":                                        "https://a.example/x",
	} {
		if got := Redacted(address); got != want {
			t.Errorf("Redacted(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestNameHint(t *testing.T) {
	names := []string{"capture", "capture-wait", "listen", "data", "db", "key_env"}
	all := "valid names are capture, capture-wait, listen, data, db, key_env"
	for said, want := range map[string]string{
		"capture_wait": "did you mean capture-wait?", "Listen": "did you mean listen?",
		"lisen": "did you mean listen?", "keyenv": "did you mean key_env?", "dta": "did you mean data?",
		"tenant": all, "zz": all, "": all,
	} {
		if got := nameHint(said, names); got != want {
			t.Errorf("nameHint(%q) = %q, want %q", said, got, want)
		}
	}
}

// A server that others can reach, by whatever way, needs a token. The hint is a command that works unchanged.
func TestCheckExposure(t *testing.T) {
	for _, test := range []struct{ listen, public, bootstrap, want string }{
		{"127.0.0.1:8080", "", "", ""},
		{"localhost:8080", "http://127.0.0.1:8080", "", ""},
		{"[::1]:8080", "https://ibid.localhost/", "", ""},
		{"0.0.0.0:8080", "", "", "0.0.0.0:8080 can be reached from elsewhere, but there is no access token"},
		{"127.0.0.1:8080", "https://ibid.example", "", "https://ibid.example can be reached from elsewhere, but there is no access token"},
		{"127.0.0.1:8080", "http://192.168.1.2:8080", "", "http://192.168.1.2:8080 can be reached from elsewhere, but there is no access token"},
		{"127.0.0.1:8080", "https://localhost.example", "", "https://localhost.example can be reached from elsewhere, but there is no access token"},
		{"0.0.0.0:8080", "https://ibid.example", "0123456789abcdef", ""},
	} {
		c := Defaults()
		c.Listen, c.PublicURL, c.BootstrapToken, c.Data = test.listen, test.public, test.bootstrap, "/var/lib/ibid"
		testenv.OK(t, c.Resolve(nil, func(string) (string, bool) { return "", false }))
		err := c.CheckExposure(false)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s, %q: %q, want %q", test.listen, test.public, got, test.want)
		}
		if usage, ok := errors.AsType[*usageError](err); test.want != "" &&
			(!ok || !strings.HasPrefix(usage.hint, "`ibid token new --name FIRST --scope all --data /var/lib/ibid` ")) {
			t.Errorf("%s, %q: the hint of %v", test.listen, test.public, err)
		}
		if err := c.CheckExposure(true); err != nil {
			t.Errorf("%s, %q, with a token: %v", test.listen, test.public, err)
		}
	}
}

// A file of brackets or dashes is refused before it costs anything.
func TestConfigNesting(t *testing.T) {
	for text, ok := range map[string]bool{
		"a: " + strings.Repeat("[", 20_000):                               false,
		strings.Repeat("[", 100_000):                                      false,
		strings.Repeat("{a: ", 20_000):                                    false,
		strings.Repeat("- ", 20_000) + "a":                                false,
		"a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100):       true,
		"a: '" + strings.Repeat("[", 1000) + "'":                          true,
		"a: [" + strings.Repeat("[],", 1000) + "]\nb:\n- " + "- a\n- - b": true,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := Config{File: filepath.Join(t.TempDir(), "ibid.yaml")}
		if err := os.WriteFile(c.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := c.readFile(pflag.NewFlagSet("ibid", pflag.ContinueOnError))
		runtime.ReadMemStats(&after)
		if deep := err != nil && strings.Contains(err.Error(), "nests"); deep == ok {
			t.Errorf("%.20s… of %d bytes: %v", text, len(text), err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
			t.Errorf("%.20s… of %d bytes: %d MB", text, len(text), used)
		}
	}
}
